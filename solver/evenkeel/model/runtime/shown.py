"""How a snapshot is shown in a notebook: a floor above says it, and registers here."""

from collections.abc import Callable
from typing import Any

_writers: dict[type | str, Callable[[Any], str]] = {}


class Shown:
    """What notebooks show as HTML once somebody has said how.

    Examples
    --------
    >>> Shown()._repr_html_() is None
    True
    """

    def _repr_html_(self) -> str | None:
        kind = type(self)
        write = _writers.get(kind) or _writers.get(f"{kind.__module__}.{kind.__qualname__}")
        return None if write is None else write(self)


def show_as(kind: type | str, write: Callable[[Any], str]) -> None:
    """Say how objects of a class are shown."""
    _writers[kind] = write
