"""Which cases every run of the suite has, and which wait for ``make check``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_long(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Mark all cases but a few as long; each of the few must be one of them."""
    cases = list(cases)
    assert set(always) <= set(cases)
    return [one if one in always else pytest.param(one, marks=pytest.mark.long) for one in cases]
