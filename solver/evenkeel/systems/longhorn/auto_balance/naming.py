"""Names of replicas and their order: ties are broken by name, and kernels know ranks only.

Longhorn draws the names of new replicas at random. Here they are counted, volume by volume, so that
a run that is read in again decides as the run itself would have.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.heartbeat import beat

NEW_NAME = re.compile(r"^(.*)-r-new(\d{5,})$")
"""How new replicas are called: after their volume, with a number."""

PLACE_BITS, NUMBER_BITS = 40, 16
"""A rank is a place among the names that were there, above these bits; below them it is 0 for the
name that stands there, else the place of a volume among those whose new names fall behind that one,
and the number of the new replica of that volume."""

STRETCH = 1 << 13
"""Volumes between two heartbeats."""


class ReplicaNames:
    """Names and ranks of the replicas that are there, and of those that will come.

    Parameters
    ----------
    names : sequence of str
        K names of slots; "" for an empty one.
    volumes : sequence of str
        P names.

    Examples
    --------
    >>> known = ReplicaNames(["v-r-b", "v-r-x"], ["v"])
    >>> known.rank.tolist() == [1 << 40, 2 << 40]
    True
    >>> coming = int(known.next_rank[0])
    >>> known.name(0, coming), [coming > rank for rank in known.rank.tolist()]
    ('v-r-new00001', [True, False])
    """

    def __init__(self, names: Sequence[str], volumes: Sequence[str]) -> None:
        self._names = names
        self._volumes = volumes
        self._slots = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        self.rank = np.empty(len(names), np.int64)
        self.rank[self._slots] = (np.arange(len(names), dtype=np.int64) + 1) << PLACE_BITS
        beat()
        self._made = self._numbers()
        beat()
        first = [self._new(v, 1) for v in range(len(volumes))]
        beat()
        ordered = [names[k] for k in self._slots.tolist()]
        self.next_rank = np.empty(len(volumes), np.int64)
        for turn, v in enumerate(sorted(range(len(volumes)), key=first.__getitem__)):
            if turn % STRETCH == 0:
                beat()
            place = bisect_left(ordered, first[v])
            self.next_rank[v] = (place << PLACE_BITS) + ((turn + 1) << NUMBER_BITS)

    def _numbers(self) -> dict[str, int]:
        """Return the highest number of a replica that an earlier run made, by volume."""
        highest: dict[str, int] = {}
        for name in self._names:
            if "-r-new" in name and (found := NEW_NAME.match(name)):
                highest[found[1]] = max(highest.get(found[1], 0), int(found[2]))
        return highest

    def _new(self, volume: int, number: int) -> str:
        name = self._volumes[volume]
        return f"{name}-r-new{self._made.get(name, 0) + number:05}"

    def slot(self, rank: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots of replicas in the cluster's placement.

        Parameters
        ----------
        rank : ndarray of int64, shape (n,)
            Ranks.

        Returns
        -------
        ndarray of int64, shape (n,)
            -1 for new ones.
        """
        slot = np.full(len(rank), -1, np.int64)
        known = rank & ((1 << PLACE_BITS) - 1) == 0
        slot[known] = self._slots[(rank[known] >> PLACE_BITS) - 1]
        return slot

    def name(self, volume: int, rank: int) -> str:
        """Return the name of a replica.

        Parameters
        ----------
        volume : int
            Its volume.
        rank : int
            Its rank.

        Returns
        -------
        str
            Its own, or the counted one of a new replica.
        """
        if rank & ((1 << PLACE_BITS) - 1) == 0:
            return self._names[int(self._slots[(rank >> PLACE_BITS) - 1])]
        return self._new(volume, (rank & ((1 << NUMBER_BITS) - 1)) + 1)


def ranks(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each name in alphabetical order, equal ones in the order given.

    Examples
    --------
    >>> ranks(["b", "a", "c"]).tolist()
    [1, 0, 2]
    """
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return rank
