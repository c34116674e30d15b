"""Placement: the node and the role of each replica."""

from dataclasses import dataclass, replace
from enum import IntEnum, IntFlag
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import as_array, read_only
from evenkeel.model.runtime.shown import Shown


class Role(IntEnum):
    """Role of a replica. Leading is not a role, but ``Placement.leader``.

    Examples
    --------
    >>> [one.name for one in Role]
    ['VOTER', 'NON_VOTER', 'LEARNER']
    """

    VOTER = 0
    NON_VOTER = 1
    LEARNER = 2


class Flag(IntFlag):
    """Properties of a replica besides its node and role.

    ``ELECTED``: it leads, and only its system elects leaders: no order makes another one lead.
    ``STAND_IN``: its partition has no leader, and the first replica counts as one, as in a cluster
    all partitions have leaders or none has.
    ``BLOCKS``: its system refuses a list of replicas that names a dead node, so that a partition
    changes no replica and no leader while one on such a node is listed.
    ``PREFERRED``: its system gives it the lead of its partition.
    ``AWAITED``: its system prefers it, and gives it the lead once it can lead again.

    Examples
    --------
    >>> flags = np.zeros(2, np.uint16)
    >>> flags |= Flag.PINNED
    >>> flags & ~Flag.PINNED
    array([0, 0], dtype=uint16)
    """

    PINNED = 1
    INCOMING = 2
    OUTGOING = 4
    HEALTHY = 8
    CAUGHT_UP = 16
    NEW = 32
    EVICTING = 64
    ERROR = 128
    STRANDED = 256
    PREFERRED = 512
    LEFT_ALONE = 1024
    ELECTED = 2048
    STAND_IN = 4096
    BLOCKS = 8192
    AWAITED = 16384

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Count as an entry of ``flags``, so that ``flags |= Flag.PINNED`` stays uint16."""
        plain = (np.uint16(int(one) & 0xFFFF) if isinstance(one, Flag) else one for one in inputs)
        return getattr(ufunc, method)(*plain, **kwargs)


PREFERENCES = Flag.PREFERRED | Flag.AWAITED

# what is wrong with rows of nodes in the place of a placement
NO_PLACEMENT = "must be a Placement; cluster.replace(placement=rows).placement is one of rows"


@dataclass(frozen=True, eq=False)
class Placement(Shown):
    """Where every replica is. P partitions, K replicas; every array is read-only.

    Replicas are flat: those of partition ``p`` are ``first[p] : first[p + 1]``, and a replica's
    place in that row, its *slot*, never changes. Any slot may lead, rows may differ in length, and
    a slot may be empty.

    There is one order everywhere, that of the slots: in ``node``, ``role`` and ``flags``, in the
    table ``nodes``, and in ``np.asarray(placement)``, which is the same table. Leaders are
    beside it, in ``leader``. A whole placement goes back in as
    ``Cluster.from_arrays(placement=placement, ...)``. Only ``by_leader`` has another order.

    Parameters
    ----------
    first : ndarray of int64, shape (P + 1,)
        Where each partition's replicas start.
    node : ndarray of int32, shape (K,)
        Node of each replica; -1 for none.
    role : ndarray of uint8, shape (K,)
        A ``Role``.
    flags : ndarray of uint16, shape (K,)
        A combination of ``Flag``.
    leader : ndarray of int16, shape (P,)
        Slot that leads; -1 for none.
    disk : ndarray of int32, shape (K,), optional
        Disk of each replica, where nodes have ``Disks``; -1 where it is not known.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1], [2]], leader=[1, 0])
    >>> c.placement.nodes.tolist(), c.placement.leader.tolist()
    ([[0, 1], [2, -1]], [1, 0])
    >>> c.placement.by_leader().tolist()
    [[1, 0], [2, -1]]
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    role: NDArray[np.uint8]
    flags: NDArray[np.uint16]
    leader: NDArray[np.int16]
    disk: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.leader)

    @cached_property
    def slots(self) -> int | None:
        """Slots per partition where every row has as many, else None."""
        partitions = len(self.leader)
        if partitions == 0:
            return None
        slots, rest = divmod(len(self.node), partitions)
        if rest:
            return None
        even = np.arange(0, len(self.node) + 1, slots) if slots else np.zeros(partitions + 1)
        return slots if np.array_equal(self.first, even) else None

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """Partition of each replica, (K,) int32."""
        rows = np.arange(len(self.leader), dtype=np.int32)
        return read_only(np.repeat(rows, self.slots or np.diff(self.first)))

    @cached_property
    def leader_replica(self) -> NDArray[np.int64]:
        """Index of the replica that leads each partition, (P,) int64; -1 for none."""
        replica = self.first[:-1] + self.leader
        if self._all_led:
            return read_only(replica)
        return read_only(np.where(self.leader >= 0, replica, -1))

    @cached_property
    def leader_node(self) -> NDArray[np.int32]:
        """Node that leads each partition, (P,) int32; -1 for none."""
        if len(self.node) == 0:
            return read_only(np.full(len(self.leader), -1, np.int32))
        if self._all_led:
            return read_only(self.node.take(self.leader_replica))
        return read_only(
            np.where(self.leader >= 0, self.node[np.maximum(self.leader_replica, 0)], np.int32(-1))
        )

    @property
    def _all_led(self) -> bool:
        """Whether every partition names a slot that leads."""
        return bool(self.leader.min(initial=0) >= 0)

    @property
    def nodes(self) -> NDArray[np.int32]:
        """Node per partition and slot, (P, R) int32; -1 where a slot is empty or a row has ended.

        R is the length of the longest row.
        """
        partitions = len(self.leader)
        if self.slots is not None:
            return read_only(self.node.reshape(partitions, self.slots))
        width = np.diff(self.first)
        table = np.full((partitions, int(width.max(initial=0))), -1, np.int32)
        table[np.arange(table.shape[1]) < width[:, None]] = self.node
        return read_only(table)

    def by_leader(self) -> NDArray[np.int32]:
        """Return the nodes of each partition with its leader first, the others as their slots are.

        Rows without a leader stay in the order of their slots: see ``leader``.

        Returns
        -------
        ndarray of int32, shape (P, R)
            A copy; -1 where a slot is empty or a row has ended.
        """
        slots = np.arange(self.nodes.shape[1], dtype=np.int16)
        # the leader's key sorts before every other slot; the others keep their order
        key = np.where(slots == self.leader[:, None], np.int16(-1), slots)
        return np.take_along_axis(self.nodes, np.argsort(key, axis=1, kind="stable"), axis=1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """``nodes``: node per partition and slot, in the order of the slots, (P, R) int32.

        An array has no column for leaders: take ``leader`` with it, or use ``by_leader``.
        """
        return np.array(self.nodes, dtype=dtype, copy=copy)

    @cached_property
    def preferred_node(self) -> NDArray[np.int32]:
        """Node that the system prefers to lead each partition, (P,); mostly the leader's."""
        node = self.leader_node.copy()
        at = np.flatnonzero((self.flags & PREFERENCES) != 0)
        node[self.owner[at]] = self.node[at]
        return read_only(node)

    def replaced(self, node: ArrayLike, leader: ArrayLike) -> "Placement":
        """Return this placement with other nodes and leaders in the same slots.

        Parameters
        ----------
        node : array-like of int32, shape (K,)
            New node of each replica.
        leader : array-like of int16, shape (P,)
            New leading slots.

        Returns
        -------
        Placement
            Sharing rows, roles and flags with this one; what moved lies on no known disk.

        Raises
        ------
        InvalidInput
            If there are not as many, or if they are no whole numbers.
        """
        faults = FaultList()
        node = as_array(faults, "node", node, np.int32, self.node.shape)
        leader = as_array(faults, "leader", leader, np.int16, self.leader.shape)
        faults.raise_if_any()
        disk = self.disk
        if disk is not None:
            disk = read_only(np.where(node == self.node, disk, np.int32(-1)))
        made = replace(self, node=read_only(node), leader=read_only(leader), disk=disk)
        for name in ("slots", "owner"):  # the rows are the same
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name]
        return made


class Placed(Protocol):
    """What has a placement, as a ``Result`` or a ``Cluster`` does.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> def fullest(placed: Placed) -> int:
    ...     return int(placed.placement.node.max())
    >>> fullest(c), fullest(ek.solve(c, goals=ek.Goals(level=0.0)))
    (1, 2)
    """

    @property
    def placement(self) -> Placement:
        """Where replicas are, or should be."""


def placement_of(given: Placement | Placed) -> Placement:
    """Return the placement that is given, alone or as that of a result."""
    return given.placement if hasattr(given, "placement") else given
