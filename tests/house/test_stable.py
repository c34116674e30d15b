"""The list of stable names is that of the public ones, and a name that goes warns before."""

import importlib
import re

import pytest

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
    """A name leaves the list in the minor version that `evenkeel._GOING` names, not before."""
    going = {f"evenkeel.{name}" for name in evenkeel._GOING}
    assert sorted({*public(), *going}) == list(listed())


def test_names_are_stable_since_a_version_that_there_was():
    now = tuple(map(int, evenkeel.__version__.split(".")[:2]))
    for name, since in listed().items():
        assert re.fullmatch(r"\d+\.\d+", since), name
        assert tuple(map(int, since.split("."))) <= now, name


def test_what_goes_stays_for_a_minor_version():
    now = tuple(map(int, evenkeel.__version__.split(".")[:2]))
    for name, (instead, version) in evenkeel._GOING.items():
        assert hasattr(evenkeel, instead), name
        assert tuple(map(int, version.split("."))) > now, f"{name} is to be removed"


def test_a_name_that_goes_warns_and_is_the_other(monkeypatch):
    for instead in ("solve", "Cluster"):
        monkeypatch.setitem(evenkeel._GOING, "old", (instead, "0.3"))
        with pytest.warns(DeprecationWarning, match=f"old goes in 0.3: use evenkeel.{instead}"):
            assert evenkeel.old is getattr(evenkeel, instead)
