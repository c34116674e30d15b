"""The event: a change to a cluster from outside, at a time."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList

if TYPE_CHECKING:
    from evenkeel.simulate.engine.world import World

NAMED = 3
"""Nodes or partitions up to which each is named; of more the first two are."""


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """Something that happens at a time.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> events: list[simulate.Event] = [
    ...     simulate.NodesDown(at=60.0, nodes="n0"), simulate.Split(at=30.0, partition="p0"),
    ... ]
    >>> simulate.play(c, events, until=60.0, every=60.0).events
    ((30.0, 'p0 split'), (60.0, 'n0 down'))
    """

    at: float = 0.0
    name: str = ""

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return False

    @abstractmethod
    def happen(self, world: "World") -> "Sequence[Event]":
        """Change the world.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            What follows from it later.
        """

    def what(self, world: "World") -> str:
        """Return a short description.

        Parameters
        ----------
        world : World
            Whose nodes and partitions it names.

        Returns
        -------
        str
            Its name if it has one; nothing for what only goes on.
        """
        return self.name or self._describe(world)

    def bound(self, faults: FaultList, path: str, cluster: Cluster) -> "Sequence[Event]":
        """Put numbers in the place of names, and what is several one by one.

        Parameters
        ----------
        faults : FaultList
            Where everything that makes no sense is noted.
        path : str
            What the caller calls it.
        cluster : Cluster
            Whose nodes, levels and partitions it names.

        Returns
        -------
        sequence of Event
            Itself, or what it stands for.
        """
        at_least(faults, f"{path}.at", self.at, 0.0)
        if not isinstance(self.name, str):
            faults.add(f"{path}.name", self.name, "must be a string")
        return self._bound(faults, path, cluster)

    @abstractmethod
    def _describe(self, world: "World") -> str:
        """Return a short description."""

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> "Sequence[Event]":
        """Look at what is its own, and put numbers in the place of names."""
        return (self,)


def at_least(faults: FaultList, path: str, value: float, least: float) -> None:
    """Note a number that is too small, or none.

    Examples
    --------
    >>> found = FaultList()
    >>> at_least(found, "events[0].at", -1.0, 0.0)
    >>> str(found.faults[0])
    'events[0].at: must be 0 or more (got -1.0)'
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        faults.add(path, value, "must be a number")
    elif not value >= least:
        faults.add(path, value, f"must be {least:g} or more")


def above_zero(faults: FaultList, path: str, value: float) -> None:
    """Note a number that is not above 0, not finite, or none.

    Examples
    --------
    >>> found = FaultList()
    >>> above_zero(found, "events[0].factor", 0.0)
    >>> str(found.faults[0])
    'events[0].factor: must be finite and above 0 (got 0.0)'
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        faults.add(path, value, "must be a number")
    elif not 0.0 < value < np.inf:
        faults.add(path, value, "must be finite and above 0")


def listed(names: Sequence[str], which: Iterable[int]) -> str:
    """Name a few of many.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], [0, 2]), listed(["a", "b", "c", "d"], range(4))
    ('a, c', 'a, b and 2 more')
    """
    chosen = [int(i) for i in which]
    if len(chosen) <= NAMED:
        return ", ".join(names[i] for i in chosen)
    return f"{', '.join(names[i] for i in chosen[:2])} and {len(chosen) - 2} more"


def several(given: Any) -> Any:
    """Return a sequence, of one where one was given by itself.

    Examples
    --------
    >>> several("n3"), several(["n3", "n4"])
    (['n3'], ['n3', 'n4'])
    """
    return [given] if isinstance(given, str | int | np.integer) else given
