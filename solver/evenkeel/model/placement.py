"""Placement: which node holds each replica, with roles."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.arrays import frozen
from evenkeel.model.shown import Shown


class Role(IntEnum):
    """What a replica is. Who leads is not a role of a replica but ``Placement.leader``."""

    VOTER = 0
    NON_VOTER = 1
    LEARNER = 2


class Flag(IntFlag):
    """What is known of a replica beyond its node and role."""

    PINNED = 1
    INCOMING = 2
    OUTGOING = 4
    HEALTHY = 8
    CAUGHT_UP = 16
    NEW = 32
    EVICTING = 64
    ERROR = 128


@dataclass(frozen=True, eq=False)
class Placement(Shown):
    """Where every replica is. P partitions, K replicas; every array is read-only.

    Replicas are flat: those of partition ``p`` are ``first[p] : first[p + 1]``, and a replica's
    place in that row, its *slot*, never changes. Any slot may lead, rows may differ in length, and
    a slot may be empty.

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
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    role: NDArray[np.uint8]
    flags: NDArray[np.uint16]
    leader: NDArray[np.int16]

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
        return frozen(np.repeat(rows, self.slots or np.diff(self.first)))

    @cached_property
    def leader_replica(self) -> NDArray[np.int64]:
        """Index of the replica that leads each partition, (P,) int64; -1 for none."""
        return frozen(np.where(self.leader >= 0, self.first[:-1] + self.leader, -1))

    @cached_property
    def leader_node(self) -> NDArray[np.int32]:
        """Node that leads each partition, (P,) int32; -1 for none."""
        if len(self.node) == 0:
            return frozen(np.full(len(self.leader), -1, np.int32))
        return frozen(
            np.where(self.leader >= 0, self.node[np.maximum(self.leader_replica, 0)], np.int32(-1))
        )

    @property
    def by_slot(self) -> NDArray[np.int32]:
        """Node per partition and slot, (P, R) int32, slots in their order.

        Raises
        ------
        ValueError
            If partitions differ in their number of slots; use ``first`` and ``node`` then.
        """
        if len(self.leader) == 0:
            return np.zeros((0, 0), np.int32)
        if self.slots is None:
            raise ValueError("rows differ in length: use placement.first and placement.node")
        return self.node.reshape(len(self.leader), self.slots)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Node per partition and replica, leader first, (P, R) int32.

        An array has no place to say who leads, so the leader comes first, exactly as
        ``Cluster.from_arrays`` reads one. Use ``by_slot`` where the slot itself matters.
        """
        table = self.by_slot
        if table.size and (self.leader > 0).any():
            slots = np.arange(table.shape[1], dtype=np.int16)
            # the leader's key sorts before every other slot; the others keep their order
            key = np.where(slots[None, :] == self.leader[:, None], np.int16(-1), slots[None, :])
            table = np.take_along_axis(table, np.argsort(key, axis=1, kind="stable"), axis=1)
        elif copy:
            table = table.copy()
        return table if dtype is None else table.astype(dtype, copy=False)

    def replaced(self, node: NDArray[np.int32], leader: NDArray[np.int16]) -> "Placement":
        """Return this placement with other nodes and leaders in the same slots.

        Parameters
        ----------
        node : ndarray of int32, shape (K,)
            New node of each replica.
        leader : ndarray of int16, shape (P,)
            New leading slots.

        Returns
        -------
        Placement
            Sharing rows, roles and flags with this one.
        """
        return Placement(self.first, frozen(node), self.role, self.flags, frozen(leader))
