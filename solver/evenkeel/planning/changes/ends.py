"""Ends: the two placements of a plan, and the partitions that differ between them, as tables."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only


@dataclass(frozen=True, eq=False)
class Ends:
    """The A partitions that change, with R slots each, at both ends; -1 for no node or no slot.

    Parameters
    ----------
    partition : ndarray of int32, shape (A,)
        Which they are.
    replica : ndarray of int64, shape (A, R)
        Row of each slot in the placement.
    before, after : ndarray of int32, shape (A, R)
        Node of each slot.
    role : ndarray of uint8, shape (A, R)
        Its role, the same at both.
    led, leads : ndarray of int64, shape (A,)
        Slot that leads before, and after.
    """

    partition: NDArray[np.int32]
    replica: NDArray[np.int64]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    role: NDArray[np.uint8]
    led: NDArray[np.int64]
    leads: NDArray[np.int64]

    @classmethod
    def of(cls, start: Placement, target: Placement) -> "Ends":
        """Compare two placements with the same rows."""
        differs = start.leader != target.leader
        differs[start.owner[start.node != target.node]] = True
        partition = np.flatnonzero(differs).astype(np.int32)
        first = start.first[partition]
        length = start.first[partition + 1] - first
        slots = np.arange(int(length.max(initial=0)))
        inside = slots < length[:, None]
        replica = np.where(inside, first[:, None] + slots, -1)

        before, after = (
            np.where(inside, one.node[replica], np.int32(-1)) for one in (start, target)
        )
        role = np.where(inside, target.role[replica], np.uint8(0))
        return cls(
            partition, replica, before, after, role,
            _leading(start, partition), _leading(target, partition),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.partition)

    def take(self, rows: NDArray[np.intp]) -> "Ends":
        """Return some of the partitions."""
        return Ends(*(getattr(self, one.name)[rows] for one in fields(self)))


def _leading(placement: Placement, partition: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the slot that leads each partition; -1 where it has no node."""
    placed = placement.leader_node[partition] >= 0
    return np.where(placed, placement.leader[partition], -1).astype(np.int64)


def check_target(
    faults: FaultList, cluster: Cluster, target: Placement, path: str = "target"
) -> None:
    """Note why a placement cannot be the target of a plan for a cluster."""
    start = cluster.placement
    if not isinstance(target, Placement):
        faults.add(path, type(target).__name__, "must be a Placement")
    elif len(target) != len(start):
        faults.add(path, len(target), f"places other partitions: the cluster has {len(start)}")
    elif not np.array_equal(target.first, start.first):
        p = int(np.argmax(np.diff(target.first) != np.diff(start.first)))
        faults.add(
            f"{path}.first[{p + 1}]", int(target.first[p + 1]),
            f"needs the slots that the cluster has: {int(start.first[p + 1])}",
        )  # fmt: skip
    else:
        bad = np.flatnonzero((target.node < -1) | (target.node >= len(cluster.nodes)))
        for k in bad.tolist():
            faults.add(f"{path}.node[{k}]", int(target.node[k]), "is no node of the cluster")
        placed = (start.node >= 0) & (target.node >= 0)
        for k in np.flatnonzero(placed & (target.role != start.role)).tolist():
            faults.add(
                f"{path}.role[{k}]", int(target.role[k]),
                f"no step changes the role of a replica: it is {int(start.role[k])}",
            )  # fmt: skip


def in_place(cluster: Cluster, target: Placement) -> Placement:
    """Return a target in which a node that stays with a partition keeps its slot.

    Replicas of a partition are alike: that two of them trade nodes is no reason to copy anything.
    A partition to which the target gives no voter as its leader keeps the one it has if that stays.
    """
    start = cluster.placement
    ends = Ends.of(start, target)
    if len(ends) == 0:
        return target
    node, leader = target.node.copy(), target.leader.copy()
    where, leads = _unpermuted(ends)
    inside = ends.replica >= 0
    node[ends.replica[inside]] = where[inside]
    rows = np.arange(len(ends))
    votes = (where >= 0) & (ends.role == Role.VOTER)
    if where.shape[1]:
        leads[~votes[rows, leads]] = -1
        # slots on one node are one leader
        same = (ends.led >= 0) & (leads >= 0) & votes[rows, ends.led]
        same &= where[rows, ends.led] == where[rows, leads]
        leads[same] = ends.led[same]
        stays = np.flatnonzero((leads < 0) & (ends.led >= 0))
        stays = stays[where[stays, ends.led[stays]] >= 0]
        leads[stays] = ends.led[stays]
    lost = (leads < 0) & (ends.led >= 0) & votes.any(1)
    leads[lost] = np.argmax(votes[lost], axis=1)
    leader[ends.partition] = leads
    role = np.where(start.node >= 0, start.role, target.role)
    return Placement(start.first, read_only(node), read_only(role), target.flags, read_only(leader))


def _unpermuted(ends: Ends) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return nodes and leading slots after, nodes that stay in their role being where they were."""
    where, leads = ends.after.copy(), ends.leads.copy()
    if where.size == 0:
        return where, leads
    slots = where.shape[1]
    same = (ends.before[:, :, None] == where[:, None, :]) & (where >= 0)[:, None, :]
    same &= ends.role[:, :, None] == ends.role[:, None, :]
    off = ~np.eye(slots, dtype=bool)
    rows = np.flatnonzero((same & off).any((1, 2)))
    return matched(where, leads, rows, same[rows])


def matched(
    where: NDArray[np.int32],
    leads: NDArray[np.int64],
    rows: NDArray[np.intp],
    same: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Let slots of some rows take the nodes of those they match, (n, R, R), the others the rest."""
    slots = where.shape[1]
    once = (same.sum(1) <= 1).all(1) & (same.sum(2) <= 1).all(1)
    rows, match = rows[once], same[once]
    where, leads = where.copy(), leads.copy()
    kept, used = match.any(2), match.any(1)
    # the slot that each slot is to take its node from: its match, else what is left, in order
    origin = np.argmax(match, axis=2)
    free, left = np.argsort(kept, axis=1, kind="stable"), np.argsort(used, axis=1, kind="stable")
    count = slots - kept.sum(1)
    for i in range(slots):
        some = np.flatnonzero(i < count)
        origin[some, free[some, i]] = left[some, i]
    where[rows] = np.take_along_axis(where[rows], origin, 1)
    led = leads[rows]
    leads[rows] = np.where(led >= 0, np.argmax(origin == led[:, None], axis=1), led)
    return where, leads
