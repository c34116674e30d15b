"""Seats: the nodes that each changed partition has replicas on at any time, as columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True, eq=False)
class Seats:
    """Q partitions that steps change, each with up to W seats: a replica on a node.

    A seat's column is the replica's slot where it stands there at the beginning; further ones
    follow in the order of replicas and nodes.

    Parameters
    ----------
    partition : ndarray of int64, shape (Q,)
        Ascending.
    local : ndarray of int64, shape (P,)
        Index of each partition among these; -1 for the others.
    node, slot : ndarray of int32, shape (W, Q)
        Node and slot of each seat; node -1 where there is none.
    held : ndarray of bool, shape (W, Q)
        Seats that serve at the beginning.
    added : ndarray of int64, shape (A,)
        Seats that no replica has at the beginning, as replica x N + node, ascending.
    column : ndarray of int64, shape (A,)
        Their columns.
    """

    partition: NDArray[np.int64]
    local: NDArray[np.int64]
    node: NDArray[np.int32]
    slot: NDArray[np.int32]
    held: NDArray[np.bool_]
    added: NDArray[np.int64]
    column: NDArray[np.int64]

    @classmethod
    def of(cls, cluster: Cluster, steps: Steps) -> "Seats":
        """Gather the seats of all partitions that steps change."""
        placement = cluster.placement
        touched = np.zeros(len(placement), bool)
        touched[steps.partition] = True
        partition = np.flatnonzero(touched)
        local = np.full(len(placement), -1, np.int64)
        local[partition] = np.arange(len(partition))
        start = placement.first[partition]
        width = placement.first[partition + 1] - start
        copied = np.flatnonzero(steps.kind == StepKind.COPY)
        copied = copied[placement.node[steps.replica[copied]] != steps.target[copied]]
        key = steps.replica[copied] * np.int64(len(cluster.nodes)) + steps.target[copied]
        added, at = np.unique(key, return_index=True)
        owner = local[steps.partition[copied[at]]]
        place = np.arange(len(added)) - np.searchsorted(owner, np.arange(len(partition)))[owner]
        column = width[owner] + place
        columns = int(max(width.max(initial=0), column.max(initial=-1) + 1))
        node = np.full((columns, len(partition)), -1, np.int32)
        slot = np.full(node.shape, -1, np.int32)
        for c in range(int(width.max(initial=0))):
            inside = np.flatnonzero(c < width)
            node[c, inside] = placement.node[start[inside] + c]
            slot[c, inside] = c
        held = node >= 0
        replica, on = np.divmod(added, max(len(cluster.nodes), 1))
        node[column, owner] = on
        slot[column, owner] = replica - start[owner]
        return cls(partition, local, node, slot, held, added, column)

    def find(
        self,
        cluster: Cluster,
        partition: NDArray[np.int32],
        replica: NDArray[np.int32],
        node: NDArray[np.int32],
    ) -> NDArray[np.int64]:
        """Return the columns of replicas on nodes; -1 where a replica never has that seat.

        It is quickest where partitions ascend.
        """
        placement = cluster.placement
        home = (placement.node[replica] == node) & (node >= 0)
        found = np.where(home, replica - placement.first[partition], -1)
        other = np.flatnonzero(~home & (node >= 0))
        if len(self.added) and len(other):
            key = replica[other] * np.int64(len(cluster.nodes)) + node[other]
            at = np.minimum(np.searchsorted(self.added, key), len(self.added) - 1)
            found[other] = np.where(self.added[at] == key, self.column[at], -1)
        return found
