"""Live tests run where they are asked for: ``make live``, or ``pytest -m live``."""

import time

import pytest

HERE = "tests/live/"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is here, and leave it out, counted as deselected, unless it was asked for."""
    live = [item for item in items if item.nodeid.startswith(HERE)]
    for item in live:
        item.add_marker(pytest.mark.live)
    if live and "live" not in config.getoption("markexpr"):
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


@pytest.fixture
def stopwatch():
    """Seconds since the test began, as a text."""
    begun = time.monotonic()
    return lambda: f"{time.monotonic() - begun:.0f} s"
