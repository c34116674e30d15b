"""Keywords: a word that a function does not know is an ``InvalidInput`` that names the closest."""

import functools
import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import ParamSpec, TypeVar

from evenkeel.model.errors import FaultList

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def check_keywords(faults: FaultList, given: dict[str, object], known: Collection[str]) -> None:
    """Note arguments that are not among those known, each with the closest word that is."""
    for word, value in given.items():
        if word not in known:
            close = get_close_matches(word, known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            faults.add(word, value, f"unknown argument{hint}")


def known_keywords(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make a function refuse keywords it does not know before anything else is looked at.

    Examples
    --------
    >>> @known_keywords
    ... def area(*, width: float, height: float) -> float:
    ...     return width * height
    >>> area(width=2.0, hight=3.0)
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: hight: unknown argument; did you mean 'height'? (got 3.0)
    """
    known = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        faults = FaultList()
        check_keywords(faults, kwargs, known)
        faults.raise_if_any()
        return function(*args, **kwargs)

    return checked
