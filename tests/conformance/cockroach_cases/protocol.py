"""What a category is: which keys its cases may have, what is computed, and how that is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]  # a case, or an answer


class Refused(Exception):
    """A case that holds what nobody here knows."""


@dataclass(frozen=True)
class Category:
    """One category of cases.

    ``answer`` takes the document and a case and returns all that could be expected of it; it never
    sees what is expected. ``judges`` are the comparisons by key, of what is expected with what is
    computed; values of other keys must be equal.
    """

    keys: frozenset[str]
    answer: Callable[[Json, Json], Json]
    judges: Mapping[str, Callable[[Any, Any], bool]]


def within(expected: list[int], computed: list[int]) -> bool:
    """Judge sets of accepted outcomes: all of ours are accepted, and there is one if one may be."""
    return set(computed) <= set(expected) and bool(computed) == bool(expected)


def same_set(expected: list[int], computed: list[int]) -> bool:
    """Judge lists that are compared as sets."""
    return sorted(expected) == sorted(computed)


def near(expected: float, computed: float) -> bool:
    """Judge scores."""
    return abs(expected - computed) <= 1e-9
