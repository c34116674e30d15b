"""Assignment: node and state of each replica, any number per partition.

A placement has the cluster's slots. What a pipeline keeps between two runs, and what Helix's
rebalancers take and return, has not: a partition may have more replicas than it wants while a node
is down, or fewer while zones are missing, and its replicas have states beyond leader and follower.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only

TOP = 0  # the state that leads


@dataclass(frozen=True, eq=False)
class Assignment:
    """Replicas by partition. P partitions, K replicas; every array is read-only.

    Parameters
    ----------
    first : ndarray of int64, shape (P + 1,)
        Where each partition's replicas start.
    node : ndarray of int32, shape (K,)
        Node of each replica, never -1: a replica without a node is not in an assignment.
    state : ndarray of uint8, shape (K,)
        State of each replica by falling priority in its partition's state model; 0 is the top
        state. Rows are sorted by state, then by node.

    Examples
    --------
    >>> one = Assignment(np.array([0, 2]), np.array([3, 1], np.int32), np.array([0, 1], np.uint8))
    >>> len(one), one.node[one.state == TOP].tolist()
    (1, [3])
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.first) - 1

    def __repr__(self) -> str:
        return f"<Assignment: {len(self):,} partitions, {len(self.node):,} replicas>"

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """Partition of each replica, (K,) int32."""
        return read_only(np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.first)))

    def same_as(self, other: "Assignment") -> bool:
        """Return whether another assignment is equal.

        Parameters
        ----------
        other : Assignment
            Of the same nodes and partitions.

        Returns
        -------
        bool
            True if every replica is on the same node in the same state.
        """
        return (
            np.array_equal(self.first, other.first)
            and np.array_equal(self.node, other.node)
            and np.array_equal(self.state, other.state)
        )

    @classmethod
    def of_rows(
        cls,
        partitions: int,
        owner: NDArray[np.integer],
        node: NDArray[np.int32],
        state: NDArray[np.uint8],
    ) -> "Assignment":
        """Build an assignment from replicas in any order.

        Parameters
        ----------
        partitions : int
            P.
        owner : ndarray of int, shape (K,)
            Partition of each replica.
        node : ndarray of int32, shape (K,)
            Node of each replica; those on -1 are left out.
        state : ndarray of uint8, shape (K,)
            State of each replica.

        Returns
        -------
        Assignment
            With rows sorted by state, then by node.

        Examples
        --------
        >>> node, state = np.array([5, -1], np.int32), np.array([0, 0], np.uint8)
        >>> Assignment.of_rows(2, np.array([1, 0]), node, state).first.tolist()
        [0, 0, 1]
        """
        held = node >= 0
        if not held.all():
            owner, node, state = owner[held], node[held], state[held]
        # one number identifies a row, and numbers sort several times as fast as three keys do
        width = int(node.max(initial=0)).bit_length()
        key = (owner.astype(np.int64) << (width + 8)) | (state.astype(np.int64) << width) | node
        key.sort()
        first = np.zeros(partitions + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=partitions), out=first[1:])
        return cls(
            read_only(first),
            read_only((key & ((1 << width) - 1)).astype(np.int32)),
            read_only((key >> width).astype(np.uint8)),  # bits above the state are dropped
        )

    def kept(self, which: NDArray[np.bool_]) -> "Assignment":
        """Return it with some of its replicas only, (K,) bool."""
        if which.all():
            return self
        return Assignment.of_rows(len(self), self.owner[which], self.node[which], self.state[which])

    def joined(self, more: "Assignment") -> "Assignment":
        """Return it with the replicas of another one of the same partitions beside its own."""
        owner, node, state = (
            np.concatenate([getattr(self, name), getattr(more, name)])
            for name in ("owner", "node", "state")
        )
        return Assignment.of_rows(len(self), owner, node, state)

    @classmethod
    def of_placement(cls, placement: Placement) -> "Assignment":
        """Read a placement: leaders are in the top state, other replicas in the next one.

        Parameters
        ----------
        placement : Placement
            Any placement; empty slots are left out.

        Returns
        -------
        Assignment
            Of the same partitions.
        """
        state = np.ones(len(placement.node), np.uint8)
        state[placement.leader_replica[placement.leader >= 0]] = TOP
        return cls.of_rows(len(placement), placement.owner, placement.node, state)

    @cached_property
    def as_placement(self) -> Placement:
        """The same replicas as a placement: all of them voters, replicas in the top state lead."""
        leader = np.full(len(self), -1, np.int16)
        held = self.first[:-1] < self.first[1:]
        # the top state comes first in a row
        led = np.flatnonzero(held)[self.state[self.first[:-1][held]] == TOP]
        leader[led] = 0
        count = len(self.node)
        return Placement(
            self.first,
            self.node,
            read_only(np.zeros(count, np.uint8)),
            read_only(np.zeros(count, np.uint16)),
            read_only(leader),
        )
