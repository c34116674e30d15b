"""Live tests run where they are asked for: ``make live``, or ``pytest -m live``."""

import time

import pytest

from tests.live.parts import NotObtainable

HERE = "tests/live/"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is here, and leave it out, counted as deselected, unless it was asked for."""
    live = [item for item in items if item.nodeid.startswith(HERE)]
    for item in live:
        item.add_marker(pytest.mark.live)
    if live and "live" not in config.getoption("markexpr"):
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Let what cannot be had here fail by its name."""
    try:
        return (yield)
    except NotObtainable as missing:
        pytest.fail(f"NOT RUN: {missing}", pytrace=False)


@pytest.fixture
def stopwatch():
    """Seconds since the test began, as a text."""
    begun = time.monotonic()
    return lambda: f"{time.monotonic() - begun:.0f} s"
