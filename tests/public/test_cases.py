"""Every public case is described, and used by a test."""

import re

from tests.public.case import PUBLIC
from tests.support import places

CASES = sorted(file.parent.relative_to(PUBLIC).as_posix() for file in PUBLIC.rglob("about.md"))


def test_every_case_is_used():
    tests = "".join(file.read_text() for file in (places.ROOT / "tests").rglob("test_*.py"))
    assert not [name for name in CASES if f'"{name}"' not in tests]


def test_every_case_names_its_source_and_what_is_right():
    for name in CASES:
        about = (PUBLIC / name / "about.md").read_text()
        assert re.search("^Source", about, re.MULTILINE), name
        assert re.search("^Right:", about, re.MULTILINE), name
