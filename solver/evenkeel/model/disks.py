"""Disks of nodes: their capacities and states."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import as_array, check_amounts, check_range, items_of, read_only
from evenkeel.model.reading.quantities import is_whole


class DiskState(IntEnum):
    """State of a disk: what is not fine takes no replica, and its replicas leave it.

    Examples
    --------
    >>> [one.name for one in DiskState]
    ['FINE', 'EMPTYING', 'FAILED']
    """

    FINE = 0
    EMPTYING = 1
    FAILED = 2


@dataclass(frozen=True, init=False, eq=False)
class Disks:
    """The disks of nodes (JBOD), in one dimension: that of the bytes that move. M disks.

    Parameters
    ----------
    node : array_like of int32, shape (M,)
        Node of each disk, in ascending order.
    capacity : array_like of float64, shape (M,), optional
        What a disk holds at most; ``inf`` by default, which levels its node's disks alike.
    state : array_like of uint8, shape (M,), optional
        A ``DiskState``; all fine by default.
    names : sequence of str, optional
        ``disk0``, ``disk1``, ... by default.

    Raises
    ------
    InvalidInput
        Naming every array that does not fit, with its path and value.

    Examples
    --------
    Two nodes with two disks each; the replicas of n0 lie on one of its disks.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[20.0]] * 2, load=[[1.0]] * 8, dimensions=["disk"], bytes="disk",
    ...     placement=[[0]] * 4 + [[1]] * 4, disks=ek.Disks([0, 0, 1, 1], [10.0] * 4),
    ...     disk=[[0]] * 4 + [[2], [2], [3], [3]])
    >>> result = ek.solve(c, goals=ek.Goals(disks=0.0))
    >>> result.disks.moves, result.disks.moves_at_least, result.disks.loads.tolist()
    (2, 2, [2.0, 2.0, 2.0, 2.0])
    """

    node: NDArray[np.int32]
    capacity: NDArray[np.float64]
    state: NDArray[np.uint8]
    names: Sequence[str]

    def __init__(
        self,
        node: ArrayLike,
        capacity: ArrayLike | None = None,
        state: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        faults = FaultList()
        of = as_array(faults, "disks.node", node, np.int32, (None,))
        count = len(of)
        most = np.full(count, np.inf) if capacity is None else capacity
        states = np.zeros(count, np.uint8) if state is None else state
        room = as_array(faults, "disks.capacity", most, np.float64, (count,))
        known = as_array(faults, "disks.state", states, np.uint8, (count,))
        check_amounts(faults, "disks.capacity", room, infinite=True)
        check_range(faults, "disks.state", known, 0, len(DiskState), "must be a DiskState")
        if (of < 0).any() or (np.diff(of) < 0).any():
            faults.add("disks.node", of.tolist()[:8], "must be nodes in ascending order")
        labels = Names.read(faults, "disks.names", names, count, "disk")
        faults.raise_if_any()
        for name, value in (("node", of), ("capacity", room), ("state", known)):
            object.__setattr__(self, name, read_only(value))
        object.__setattr__(self, "names", labels)

    def __len__(self) -> int:
        return len(self.node)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether a disk takes replicas, (M,)."""
        return read_only(self.state == DiskState.FINE)

    def marked(self, which: str | Sequence[str], state: DiskState) -> "Disks":
        """Return these disks with some in another state: to be emptied, failed, or fine again.

        Parameters
        ----------
        which : str or sequence of str
            Names of disks, or patterns such as ``"*:/data/d2"``; or a sequence of numbers.
        state : DiskState
            Their state.

        Returns
        -------
        Disks
            For ``Cluster.replace(disks=)``.

        Raises
        ------
        InvalidInput
            If a name or pattern is that of no disk.

        Examples
        --------
        >>> disks = Disks([0, 0, 1], names=["a:/d1", "a:/d2", "b:/d1"])
        >>> disks.marked("*:/d1", DiskState.EMPTYING).usable.tolist()
        [False, True, False]
        """
        faults, states = FaultList(), self.state.copy()
        states[find_disks(faults, "disks", self, which)] = state
        faults.raise_if_any()
        return Disks(self.node, self.capacity, states, self.names)

    def per_node(self, nodes: int) -> NDArray[np.float64]:
        """Return what the usable disks of each node hold in all, (N,); ``inf`` without disks."""
        total = np.bincount(self.node, np.where(self.usable, self.capacity, 0.0), nodes)
        return np.where(np.bincount(self.node, minlength=nodes) > 0, total, np.inf)


def find_disks(faults: FaultList, path: str, disks: Disks, which: Any) -> NDArray[np.int64]:
    """Return the disks of names, patterns or numbers; note what is none."""
    found: list[int] = []
    for i, one in enumerate([which] if isinstance(which, str) else items_of(faults, path, which)):
        if isinstance(one, str):
            own = [d for d, name in enumerate(disks.names) if name == one or fnmatchcase(name, one)]
        else:
            own = [int(one)] if is_whole(one) and 0 <= one < len(disks) else []
        if not own:
            usual = f", as {disks.names[0]!r} is" if len(disks) else ": there are none"
            faults.add(f"{path}[{i}]", one, f"is no disk{usual}")
        found += own
    return np.unique(np.array(found, np.int64))


def lying(after: Placement, before: Placement) -> NDArray[np.int32] | None:
    """Return the disk of each replica of ``after`` on the same node in ``before``, (K,), or -1."""
    disk = before.disk
    if disk is None:
        return None
    here = np.zeros(len(after.node), np.bool_)
    found = np.full(len(here), -1, np.int32)
    if before.first is after.first or np.array_equal(before.first, after.first):
        here = before.node == after.node
        found[here] = disk[here]
    came = np.flatnonzero((after.node >= 0) & ~here)
    p = after.owner[came]
    for slot in range(int(np.diff(before.first)[p].max(initial=0))):  # some only changed their slot
        at = np.minimum(before.first[p] + slot, len(disk) - 1)
        same = (before.node[at] == after.node[came]) & (
            before.first[p] + slot < before.first[p + 1]
        )
        found[came[same]] = disk[at[same]]
    return found


def disk_of(disks: Disks, placement: Placement) -> NDArray[np.int32]:
    """Return the disk of each replica, (K,); -1 where none of its node is known."""
    if placement.disk is None:
        return np.full(len(placement.node), -1, np.int32)
    there = np.append(disks.node, np.int32(-2))[placement.disk] == placement.node
    return np.where(there, placement.disk, np.int32(-1)).astype(np.int32)
