"""The list of stable names is that of the public ones."""

import importlib
import re

import evenkeel
from tests.house.doors import DOORS, OPTIONS
from tests.support import places

LIST = places.ROOT / "docs/project/stable.txt"


def listed():
    """The names of the list, and the version that each is stable since."""
    lines = [line for line in LIST.read_text().splitlines() if line and line[0] != "#"]
    return dict(line.split() for line in lines)


def public():
    """Every name that the public modules export."""
    for module in map(importlib.import_module, DOORS):
        yield from (f"{module.__name__}.{name}" for name in module.__all__)
    options = importlib.import_module(OPTIONS)
    yield from (f"{OPTIONS}.{name}" for name in dir(options) if name[0].isupper())


def test_the_list_has_every_public_name_and_no_other():
    assert sorted(public()) == list(listed())


def test_names_are_stable_since_a_version_that_there_was():
    now = tuple(map(int, evenkeel.__version__.split(".")[:2]))
    for name, since in listed().items():
        assert re.fullmatch(r"\d+\.\d+", since), name
        assert tuple(map(int, since.split("."))) <= now, name
