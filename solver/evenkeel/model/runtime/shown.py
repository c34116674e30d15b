"""Registry of functions that show objects in notebooks and as pages."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_writers: dict[str, Callable[[Any], str]] = {}
_reporters: dict[str, Callable[[Any, str | os.PathLike[str]], Path]] = {}


class Shown:
    """Base of objects that notebooks show as HTML once a function is registered.

    Examples
    --------
    >>> Shown()._repr_html_() is None
    True
    """

    def _repr_html_(self) -> str | None:
        write = _writers.get(_name(type(self)))
        return None if write is None else write(self)


class Reported:
    """Base of objects that are written as a page once a function is registered.

    Examples
    --------
    >>> import tempfile
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for one in (ek.sweep(c, "node"), ek.frontier(c, points=2), ek.plan(c, c.placement)):
    ...         print(one.report(f"{folder}/out.html").name)
    out.html
    out.html
    out.html
    """

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write all that there is to know of it as one page of HTML that needs nothing beside it.

        A page has tables to search and is for a screen, a phone, or paper. The same object gives
        the same bytes: no time of day, and no seconds that something took.

        Parameters
        ----------
        path : str or path-like
            Where to; must end in ``.html`` or ``.htm``. A file there is replaced as a whole.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidInput
            If the path has another suffix.
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = ek.solve(c, goals=ek.Goals(level=0.0)).report(f"{folder}/out.html")
        ...     "2 moves" in page.read_text()
        True
        """
        return _reporters[_name(type(self))](self, path)


def show_as(kind: str, write: Callable[[Any], str]) -> None:
    """Register the function that shows objects of a class, given by module and name."""
    _writers[kind] = write


def report_as(kind: str, write: Callable[[Any, str | os.PathLike[str]], Path]) -> None:
    """Register the function that writes objects of a class, given by module and name."""
    _reporters[kind] = write


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
