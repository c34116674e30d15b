"""Pinned replicas in assignments: these know neither flags nor what is on dead nodes."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only


def with_pinned(cluster: Cluster, current: Assignment) -> Assignment:
    """Add what is pinned to a dead node, which no assignment lists: it waits, and counts."""
    own, nodes = cluster.placement, cluster.nodes
    at = np.flatnonzero((own.flags & Flag.PINNED) != 0)
    at = at[at_node(~(nodes.may_hold | nodes.serves), own.node[at])]
    listed = _pairs(cluster, current.owner, current.node)
    at = at[~np.isin(_pairs(cluster, own.owner[at], own.node[at]), listed)]
    if len(at) == 0:
        return current
    return Assignment.of_rows(
        len(current),
        np.concatenate([current.owner, own.owner[at]]),
        np.concatenate([current.node, own.node[at]]),
        np.concatenate([current.state, np.full(len(at), TOP + 1, np.uint8)]),
    )


def pinned_flags(cluster: Cluster, seats: Placement) -> NDArray[np.uint16]:
    """Flags of the replicas that are pinned where they stand, (K,)."""
    fixed = is_pinned(cluster, seats.owner, seats.node)
    return read_only(np.where(fixed, np.uint16(Flag.PINNED), np.uint16(0)))


def is_pinned(
    cluster: Cluster, owner: NDArray[np.integer], node: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether the cluster pins its replica of ``owner (K,)`` to ``node (K,)``."""
    own = cluster.placement
    fixed = np.flatnonzero(((own.flags & Flag.PINNED) != 0) & (own.node >= 0))
    if len(fixed) == 0:
        return np.zeros(len(node), bool)
    here = _pairs(cluster, own.owner[fixed], own.node[fixed])
    found: NDArray[np.bool_] = np.isin(_pairs(cluster, owner, node), here) & (node >= 0)
    return found


def _pairs(
    cluster: Cluster, owner: NDArray[np.integer], node: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Number each pair of a partition and a node."""
    return owner.astype(np.int64) * len(cluster.nodes) + node
