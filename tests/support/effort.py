"""Select the cases of a test that every run of the suite has; others are marked ``long``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def mostly_long(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Mark all cases but a few as long; each of the few must be one of them."""
    cases = list(cases)
    assert set(always) <= set(cases)
    return [one if one in always else pytest.param(one, marks=pytest.mark.long) for one in cases]


def share_of_examples(share: float) -> settings:
    """Draw a share of the examples of the profile, less than 1 where each takes long."""
    return settings(max_examples=max(1, round(share * settings.default.max_examples)))
