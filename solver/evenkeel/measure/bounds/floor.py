"""Floors: the least load wanted on each node, and the least number of moves onto nodes below it.

A node can be asked for no more than could stand on it, whatever stood elsewhere.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import Scope, partition_scope
from evenkeel.measure.bounds.even import whole_loads
from evenkeel.measure.bounds.level import piling, staying
from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import wanted_load
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals

ROUNDING = 1e-10
"""Relative lack that may be rounding, and is not counted."""


def floor_target(
    cluster: Cluster, goals: Goals, fair: NDArray[np.float64], even: NDArray[np.float64],
    target: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Return the load that each node must hold at least for its dimensions to be level, (N, D).

    That is (1 - floor) x the mean utilisation of its capacity, rounded down where loads only count
    replicas, no more than its target or than rules leave for it, and no more than all that may
    stand on it; 0 on nodes that accept nothing, and where no floor is asked for.
    """
    floor = np.zeros(cluster.nodes.capacity.shape)
    asked = [goals.floor_tolerance(name) for name in cluster.dimensions]
    if all(tolerance is None for tolerance in asked):
        return floor
    placed, nodes = PlacementCounts.of(cluster, cluster.placement), cluster.nodes
    most = np.minimum(target, _standing_room(placed, partition_scope(cluster)))
    mean, load = floor_mean(cluster, fair), cluster.partitions.load
    for d, unit in enumerate(np.where(load.alike, load.unit, 0.0).tolist()):
        tolerance = asked[d]
        least = (0.0 if tolerance is None else max(1.0 - tolerance, 0.0)) * mean[d]
        share = np.where(even[:, d] > 0.0, np.minimum(least, even[:, d]), least)
        with np.errstate(invalid="ignore"):
            least = np.minimum(share * nodes.capacity[:, d], most[:, d])
        least = whole_loads(least, unit)
        floor[:, d] = np.where(nodes.may_receive & np.isfinite(least), least, 0.0)
    return floor


def floor_mean(cluster: Cluster, fair: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean utilisation that floors are counted from, (D,).

    Where some nodes keep what they have and accept nothing it is the mean of all that hold or
    accept anything: ``fair (D,)`` leaves out the capacity of the former. It does not depend on how
    much these hold, or floors would rise with what leaves them.
    """
    nodes = cluster.nodes
    keeps = nodes.may_hold & ~nodes.may_receive
    if not keeps.any():
        return fair
    placed = PlacementCounts.of(cluster, cluster.placement)
    held = placed.weighed(placed.heaviest.T, staying(placed, partition_scope(cluster)))
    waiting = held[keeps & ~nodes.alive].sum(0)
    counts = nodes.may_receive[:, None] | ((keeps & nodes.alive)[:, None] & (held > 0.0))
    room = np.where(counts, nodes.capacity, 0.0).sum(0)
    left = np.maximum(wanted_load(cluster) - waiting, 0.0)
    return np.minimum(utilisation(left, room), fair)


def arrivals(placed: PlacementCounts, floor: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many replicas must at least join each node for it to hold its floor, (N,).

    All that stands there may stay, in its heaviest role; what joins may be the largest there are.
    """
    cluster = placed.cluster
    count = np.zeros(len(floor), np.int64)
    if not floor.any() or piling(placed, partition_scope(cluster)).any():
        return count  # where replicas pile up, more may stand on a node without any joining
    held = placed.weighed(placed.heaviest.T, placed.node_row)
    lack = floor * (1.0 - ROUNDING) - held
    wanted = cluster.partitions.replicas > 0
    for d in np.flatnonzero((lack > 0.0).any(0)):
        # one of each partition, as a node holds no two
        largest = np.sort(placed.heaviest[wanted, d])[::-1]
        short = np.maximum(lack[:, d], 0.0)
        needed = np.searchsorted(np.cumsum(largest), short * (1.0 - ROUNDING)) + 1
        count = np.maximum(count, np.where(short > 0.0, np.minimum(needed, len(largest)), 0))
    return count


def _standing_room(placed: PlacementCounts, scope: Scope) -> NDArray[np.float64]:
    """Return the load of all replicas that rules and numbers let stand on each node, (N, D)."""
    cluster = placed.cluster
    copies = np.where(piling(placed, scope), cluster.partitions.replicas, 1)
    copies = np.minimum(copies, cluster.partitions.replicas)
    each = placed.heaviest * copies[:, None]
    of_class = np.stack(
        [np.bincount(scope.rule, column, len(scope.open)) for column in each.T], axis=1
    )
    room: NDArray[np.float64] = scope.open.T.astype(np.float64) @ of_class
    partition, node = cluster.forbidden.T
    np.subtract.at(room, node, each[partition])
    most = cluster.nodes.max_replicas
    limited = np.flatnonzero(most >= 0)
    if len(limited):
        largest = np.sort(np.repeat(placed.heaviest, copies, axis=0), axis=0)[::-1]
        sums = np.concatenate([np.zeros((1, room.shape[1])), np.cumsum(largest, axis=0)])
        room[limited] = np.minimum(room[limited], sums[np.minimum(most[limited], len(largest))])
    return np.maximum(room, 0.0)
