"""Collection: no folder of tests is left out, and no file with tests of the kind asked for."""

import re
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest

from tests.conftest import LONGEST, TESTS, place_of, pytest_ignore_collect
from tests.support import places


def test_every_folder_of_tests_is_run(request):
    """Folders of some names are passed over without a word; by default ``build`` is one of them."""
    patterns = request.config.getini("norecursedirs")
    folders = {file.parent for file in (places.ROOT / "tests").rglob("test_*.py")}
    passed_over = [
        str(folder)
        for folder in sorted(folders)
        for name in folder.relative_to(places.ROOT).parts
        if any(fnmatch(name, one) for one in patterns)
    ]
    assert passed_over == []


@pytest.mark.parametrize(
    ("asked", "text", "left_out"),
    [
        ("small", "@pytest.mark.small", None),
        ("small", "@pytest.mark.long", True),
        ("long and not notebook and not browser", "mostly_long(range(9), range(2))", None),
        ("long and not notebook and not browser", "marks=pytest.mark.long", None),
        ("long and not notebook and not browser", "def test_it(): ...", True),
        ("not long and not notebook", "def test_it(): ...", None),
        ("long or small", "@pytest.mark.small", None),
        ("", "def test_it(): ...", None),
    ],
)
def test_files_are_left_out_by_what_they_mark(tmp_path, asked, text, left_out):
    (tmp_path / "test_it.py").write_text(text)
    config = SimpleNamespace(option=SimpleNamespace(markexpr=asked))
    assert pytest_ignore_collect(tmp_path / "test_it.py", config) is left_out


def test_no_test_takes_its_mark_from_another_file():
    marks = [
        str(file.relative_to(TESTS))
        for file in sorted(TESTS.rglob("*.py"))
        if not file.name.startswith("test_") and re.search(r"mark\.(long|small)", file.read_text())
    ]
    assert marks == ["conftest.py", "support/effort.py"]


def test_what_takes_longest_is_there_and_comes_first():
    assert [name for name in LONGEST if not (TESTS / name).exists()] == []
    given = ("view/test_html.py", "face/test_cli.py", "systems/folders/test_died.py", LONGEST[0])
    assert sorted((TESTS / name for name in given), key=place_of)[::-1] == [
        TESTS / name for name in given
    ]
