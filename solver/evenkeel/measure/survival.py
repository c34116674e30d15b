"""Survival: partitions that a placement leaves without data, short of live replicas, or blocked."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node, replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only


@dataclass(frozen=True, eq=False)
class Survival:
    """Partitions in danger, by index and ascending; every array is read-only.

    Partitions that want no replicas are in none.

    Parameters
    ----------
    lost : ndarray of int32, shape (n,)
        Partitions that have replicas, none of them on a live node.
    under_min_active : ndarray of int32, shape (n,)
        Partitions with fewer live replicas than ``min_active``, lost ones included.
    without_quorum : ndarray of int32, shape (n,)
        Partitions of whose voters no majority lives, lost ones included where they had voters.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> found = ek.sweep(c, "node").scenario("node n0").before
    >>> found.lost.tolist(), found.without_quorum.tolist()
    ([], [0, 1])
    """

    lost: NDArray[np.int32]
    under_min_active: NDArray[np.int32]
    without_quorum: NDArray[np.int32]


def survival(cluster: Cluster, placement: Placement) -> Survival:
    """Find the partitions that the state of the nodes puts in danger.

    A node lives if it is alive and not gone. A quorum is a majority of the voters that are placed,
    wherever they are; learners and non-voters count for none.
    """
    lives = cluster.nodes.serves
    placed = PlacementCounts.of(cluster, placement)
    parts = cluster.partitions
    # whatever has no replica on a dead node lives as a whole
    hit = np.zeros(0, np.intp)
    if placed.replicas[~lives].any():
        hit = np.unique(placed.partition(placed.where(~lives)))
        hit = hit[parts.replicas[hit] > 0]
    replicas, which = replicas_of(placement, hit)
    node = placement.node[replicas]
    live, votes = at_node(lives, node), (placement.role[replicas] == Role.VOTER) & (node >= 0)
    having, voters, live_voters = (
        np.bincount(which[flag], minlength=len(hit)) for flag in (live, votes, live & votes)
    )
    short = hit[:0]
    if parts.min_active.any():
        lacking = placed.per_partition(lives) < parts.min_active
        short = np.flatnonzero(lacking & (parts.replicas > 0))
    return Survival(
        lost=read_only(hit[having == 0].astype(np.int32)),
        under_min_active=read_only(short.astype(np.int32)),
        without_quorum=read_only(hit[(voters > 0) & (2 * live_voters <= voters)].astype(np.int32)),
    )
