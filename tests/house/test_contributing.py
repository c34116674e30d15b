"""What CONTRIBUTING names is there: files, folders, functions, make targets."""

import ast
import re

import pytest

from tests.house.parsed import parsed
from tests.support import places

ROOT = places.ROOT
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
BESIDE = [
    ROOT / place
    for place in ("", "solver/evenkeel", "kernels", "kernels/evenkeel_kernels", "tests")
]
"""Where a path that the page names may begin."""

NOT_OURS = {"build/docs", "a.txt"}  # what is made, and what only serves as an example
NAMED = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
PATHS = [
    name
    for name in NAMED
    if re.fullmatch(r"[\w./-]+(:\w+)?", name)
    and (name.partition(":")[0].endswith((".py", ".md", ".json", ".txt")) or "/" in name)
    and name.partition(":")[0] not in NOT_OURS
]


def places_of(path):
    """Where a path that the page names is."""
    return [beside / path for beside in BESIDE if (beside / path).exists()]


@pytest.mark.parametrize("name", PATHS)
def test_every_path_is_there(name):
    path, _, function = name.partition(":")
    found = places_of(path)
    assert found
    if function:
        defined = {
            node.name
            for file in found
            for node in ast.walk(parsed(file.read_text()))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert function in defined


def test_paths_are_found_on_the_page():
    assert len(PATHS) > 50


def test_it_says_what_the_checks_run():
    run = re.sub("#.*", "", (ROOT / ".ci/run").read_text())
    told = re.search(r"`make check` \| ([\w, -]+), with an empty", PAGE)
    assert told is not None
    ran = {name for line in re.findall(r"make ((?:-k )?[a-z -]+)", run) for name in line.split()}
    listed = set(re.split(r", | and ", told[1]))
    assert listed == ran - {"-k"}
    assert "versions" in listed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([\w-]+)`", PAGE))))
def test_every_target_is_in_the_makefile(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
