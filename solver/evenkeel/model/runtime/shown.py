"""How a snapshot is shown, in a notebook or as a page: floors above say it, and register here."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_writers: dict[type | str, Callable[[Any], str]] = {}
_reporters: dict[str, Callable[[Any, str | os.PathLike[str]], Path]] = {}


class Shown:
    """What notebooks show as HTML once somebody has said how.

    Examples
    --------
    >>> Shown()._repr_html_() is None
    True
    """

    def _repr_html_(self) -> str | None:
        kind = type(self)
        write = _writers.get(kind) or _writers.get(_name(kind))
        return None if write is None else write(self)


def show_as(kind: type | str, write: Callable[[Any], str]) -> None:
    """Say how objects of a class are shown."""
    _writers[kind] = write


def report_as(kind: str, write: Callable[[Any, str | os.PathLike[str]], Path]) -> None:
    """Say how objects of a class, told by module and name, are written as a page."""
    _reporters[kind] = write


def reported(value: object, path: str | os.PathLike[str]) -> Path:
    """Write an object as a page."""
    return _reporters[_name(type(value))](value, path)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
