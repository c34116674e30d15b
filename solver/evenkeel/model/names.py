"""Map the names of nodes, partitions, groups and domains to indices, and back."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import items_of, read_only

SHOWN = 6  # names up to which all are shown; of more the first and the last


class Names(Sequence[str]):
    """The names of nodes, partitions, groups or domains, looked up both ways.

    Parameters
    ----------
    given : sequence of str or None
        The names; None to count them up behind ``prefix``, without storing any.
    count : int
        How many there are.
    prefix : str
        What counted names start with.
    also : mapping of str to int, optional
        Further names by which some are looked up, such as that of a pool beside its number.

    Examples
    --------
    >>> names = Names(None, 3, "n")
    >>> names[2], names.index("n1"), len(names)
    ('n2', 1, 3)
    >>> names, Names(None, 2_000, "p")
    (<Names: 'n0', 'n1', 'n2'>, <Names: 'p0', 'p1', 'p2', 'p3', 'p4', ... 'p1999', 2,000 in all>)
    """

    def __init__(
        self,
        given: Sequence[str] | None,
        count: int,
        prefix: str,
        also: Mapping[str, int] | None = None,
    ) -> None:
        self._given = None if given is None else tuple(given)
        self._count = count
        self._prefix = prefix
        self._also = dict(also or {})

    @classmethod
    def read(
        cls, faults: FaultList, path: str, given: Sequence[str] | None, count: int, prefix: str
    ) -> "Names":
        """Take names in, noting duplicates, wrong types and a wrong count.

        Parameters
        ----------
        faults : FaultList
            Where faults are noted.
        path : str
            Name of the argument.
        given : sequence of str or None
            What the caller gave.
        count : int
            How many are needed.
        prefix : str
            What counted names start with.

        Returns
        -------
        Names
            The names given, or counted ones after a fault.
        """
        if given is None:
            return cls(None, count, prefix)
        if isinstance(given, Names) and len(given) == count:
            return given
        listed = items_of(faults, path, given)
        if faults.about(path):
            return cls(None, count, prefix)
        if len(listed) != count:
            faults.add(path, len(listed), f"needs {count} names, one for each")
            return cls(None, count, prefix)
        if {*map(type, listed)} <= {str} and len({*listed}) == count:
            return cls(listed, count, prefix)
        names = [str(name) for name in listed]
        seen: dict[str, int] = {}
        for i, name in enumerate(names):
            if not isinstance(listed[i], str):
                faults.add(f"{path}[{i}]", listed[i], "must be a string")
            if name in seen:
                faults.add(f"{path}[{i}]", name, f"is already the name of number {seen[name]}")
            seen.setdefault(name, i)
        return cls(names, count, prefix)

    @property
    def counted(self) -> bool:
        """Whether the names are counted up and not stored."""
        return self._given is None

    def counted_to(self, count: int) -> "Names":
        """Return as many names, counted up the way these are."""
        return Names(None, count, self._prefix)

    @cached_property
    def _places(self) -> dict[str, int]:
        return self._also | {name: i for i, name in enumerate(self)}

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[str]: ...
    def __getitem__(self, i: int | slice) -> str | Sequence[str]:
        if self._given is not None:
            return self._given[i]
        if isinstance(i, slice):
            return tuple(self[j] for j in range(*i.indices(self._count)))
        if not -self._count <= i < self._count:
            raise IndexError(i)
        return f"{self._prefix}{i % self._count}"

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        if self._given is not None:
            return iter(self._given)
        return (f"{self._prefix}{i}" for i in range(self._count))

    def __repr__(self) -> str:
        if self._count <= SHOWN:
            return f"<Names: {', '.join(map(repr, self)) or 'none'}>"
        first = ", ".join(map(repr, self[: SHOWN - 1]))
        return f"<Names: {first}, ... {self[-1]!r}, {self._count:,} in all>"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._places

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Names) or len(self) != len(other):
            return False
        if self._given is not None and other._given is not None:
            return self._given is other._given or self._given == other._given
        if self._given is None and other._given is None:
            return self._count == 0 or self._prefix == other._prefix
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._count, self._prefix, self._given))

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """Return the index of a name.

        Parameters
        ----------
        name : str
            The name.
        start, stop : int, optional
            As in ``list.index``.

        Returns
        -------
        int
            Its place.

        Raises
        ------
        ValueError
            If there is no such name in the range.
        """
        place = self._places.get(name, -1)
        if not start <= place < (self._count if stop is None else stop):
            raise ValueError(f"no such name: {name!r}")
        return place

    @cached_property
    def utf16(self) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
        """Their UTF-16 code units, which Java's string hash reads: offsets (count + 1,), units."""
        encoded = [name.encode("utf-16-le", "surrogatepass") for name in self]
        first = np.zeros(self._count + 1, np.int64)
        np.cumsum([len(units) // 2 for units in encoded], out=first[1:])
        return read_only(first), read_only(np.frombuffer(b"".join(encoded), np.uint16))
