"""Order: which change goes first among those that may start."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.planning.changes.acts import Acts
from evenkeel.planning.resources.copies import Copies
from evenkeel.planning.throttle import Throttle


def ranks(
    cluster: Cluster, acts: Acts, copies: Copies, throttle: Throttle, changes: int
) -> NDArray[np.int32]:
    """Return changes in the order of their priority, (C,).

    Copies that are under way go on first. Then partitions with the fewest live replicas of those
    that lack some come; then what leaves
    nodes above capacity, the most relief per byte first. Of the rest what holds up the busiest
    nodes goes first where copies are throttled, so that the plan is short, and otherwise what
    levels the most per byte.
    """
    first = np.flatnonzero(np.diff(acts.change, prepend=-1))
    danger = _danger(cluster)[acts.partition[first]]
    relief, levelling = _benefit(cluster, acts)
    size = np.where(copies.moves, np.maximum(copies.size, 0.0), 0.0)
    if cluster.bytes_dimension < 0:
        size = copies.moves.astype(np.float64)
    total = np.bincount(acts.change, size, changes)
    relieved = np.bincount(acts.change, relief, changes)
    gain = np.where(relieved > 0.0, relieved, np.bincount(acts.change, levelling, changes))
    with np.errstate(over="ignore"):
        gain = np.divide(gain, total, out=np.full(changes, np.inf), where=total > 0.0)
    if throttle == Throttle():
        keys = [-total, -gain]
    else:
        keys = [-total, np.where(relieved > 0.0, -gain, -_held_up(acts, copies, changes))]
    begun = (cluster.placement.flags[acts.replica] & Flag.INCOMING) != 0
    waits = np.bincount(acts.change, begun & copies.moves, changes) == 0.0
    relieves = -(relieved > 0.0).astype(np.int8)
    order = np.lexsort((np.arange(changes), *keys, relieves, danger, waits))
    return order.astype(np.int32)


def _danger(cluster: Cluster) -> NDArray[np.int64]:
    """Return the live replicas of partitions that lack some, (P,); of others more than any has."""
    live = cluster.nodes.alive & ~cluster.nodes.gone
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    lacking = having < np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.where(lacking, having, np.iinfo(np.int32).max)


def _benefit(cluster: Cluster, acts: Acts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what acts take from nodes above capacity, and how much fuller the node left is."""
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    capacity = cluster.nodes.capacity
    used = np.append(utilisation(loads, capacity).max(axis=1, initial=0.0), 0.0)
    used[~np.isfinite(used)] = 1e9
    leaves = acts.source != acts.target
    weight = cluster.partitions.load.voter[acts.partition]
    over = np.vstack([loads > capacity, np.zeros(capacity.shape[1], bool)])
    share = utilisation(weight, np.vstack([capacity, capacity[:1]])[acts.source])
    share[~np.isfinite(share)] = 0.0
    relief = np.where(leaves, (share * over[acts.source]).sum(axis=1), 0.0)
    levelling = np.where(leaves, used[acts.source] - used[acts.target], 0.0)
    return relief, levelling * share.max(axis=1, initial=0.0)


def _held_up(acts: Acts, copies: Copies, changes: int) -> NDArray[np.float64]:
    """Return the seconds of copies at the busier end of each change's copies."""
    rows = np.flatnonzero(copies.moves)
    busiest = np.zeros(changes)
    for where in (acts.target[rows], copies.source[rows]):
        work = np.bincount(where + 1, copies.seconds[rows])
        work[:1] = 0.0
        np.maximum.at(busiest, acts.change[rows], work[where + 1])
    return busiest
