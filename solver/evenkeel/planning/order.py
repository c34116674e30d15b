"""Priorities of the list scheduler: the rank of each change among those that may start."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.actions import Actions, under_way, ushered
from evenkeel.planning.resources.copies import Copies
from evenkeel.planning.resources.headroom import Shifts
from evenkeel.planning.throttle import Throttle
from evenkeel_kernels.planning.benefit import Benefits, Heap, order_by_benefit

SAFE = np.iinfo(np.int32).max
"""Danger of a partition that lacks nothing."""


def ranks(
    cluster: Cluster,
    actions: Actions,
    copies: Copies,
    shifts: Shifts,
    throttle: Throttle,
    previous: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return changes in the order of their priority, (C,), and the class of each, the first 0.

    ``previous (C,)`` are the changes before them. Classes come one after another in any order.

    Copies that are under way go on first. Then come partitions with the fewest live replicas of
    those that lack some, then groups by their priority, then what relieves nodes above capacity.
    Where copies are throttled what holds up the busiest nodes goes next, so that the plan is short,
    and otherwise what levels the most per byte.
    """
    changes = len(previous)
    first = np.flatnonzero(np.diff(actions.change, prepend=-1))
    urgency = dangers(cluster)[actions.partition[first]]
    urgency = _by_priority(cluster, throttle, urgency, actions.partition[first])
    urgency[begun(cluster, actions, changes)] = -1
    size = np.where(copies.moves, np.maximum(copies.size, 0.0), 0.0)
    if cluster.bytes_dimension < 0:
        size = copies.moves.astype(np.float64)
    total = np.asarray(np.bincount(actions.change, size, changes), np.float64)
    if not throttle.limits_copies:
        by_benefit = _by_benefit(cluster, shifts, urgency, total, previous)
        return by_benefit, np.zeros(changes, np.int64)
    relieved = np.bincount(actions.change, _relief(cluster, actions), changes)
    with np.errstate(over="ignore"):
        gain = np.divide(relieved, total, out=np.full(changes, np.inf), where=total > 0.0)
    held_up = busiest(actions, copies, throttle, changes) + _afterwards(actions, copies, previous)
    late = np.where(relieved > 0.0, -gain, -held_up)
    relieves = -(relieved > 0.0).astype(np.int8)
    order = np.lexsort((np.arange(changes), -total, late, relieves, urgency))
    # those that relieve nodes come first of those that are as urgent
    rank = 2 * np.unique(urgency, return_inverse=True)[1] + 1 + relieves
    return order.astype(np.int32), np.unique(rank, return_inverse=True)[1]


def _by_priority(
    cluster: Cluster, throttle: Throttle, urgency: NDArray[np.int64], partition: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return urgencies in which those that are equal differ by the priority of their groups."""
    if not throttle.priority:
        return urgency
    names = cluster.partitions.group_names
    priority = np.array([float(throttle.priority.get(name, 0.0)) for name in names])
    _, rank = np.unique(-priority, return_inverse=True)
    return urgency * len(names) + rank[cluster.partitions.group[partition]]


def _by_benefit(
    cluster: Cluster,
    shifts: Shifts,
    urgency: NDArray[np.int64],
    size: NDArray[np.float64],
    previous: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return changes by what they level per byte, judged anew after each."""
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    capacity, count = cluster.nodes.capacity, len(previous)
    holds = cluster.nodes.may_hold
    share = np.zeros(capacity.shape)
    np.divide(1.0, capacity, out=share, where=np.isfinite(capacity) & (capacity > 0.0))
    whole = capacity[holds].sum(0)
    mean = np.zeros(len(whole))
    np.divide(loads.sum(0), whole, out=mean, where=whole > 0.0)
    order = np.argsort(shifts.change, kind="stable")
    node = shifts.node[order]
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(shifts.change, minlength=count), out=first[1:])
    shift = shifts.amount[order] * share[node]
    following = np.full(count, -1, np.int32)
    follows = np.flatnonzero(previous >= 0)
    following[previous[follows]] = follows
    # what copies nothing is worth the more, and what is worth nothing goes last
    least = float(size.max(initial=0.0)) * 1e-6
    benefits = Benefits(
        urgency, np.maximum(size, least) if least > 0.0 else np.ones(count), previous, following,
        first, node, shift, mean,
    )  # fmt: skip
    heap = Heap(loads * share, np.zeros(count), *(np.full(count, -1, np.int32) for _ in range(2)))
    order_by_benefit(benefits, heap)
    return heap.order


def dangers(cluster: Cluster) -> NDArray[np.int64]:
    """Return the live replicas of partitions that lack some, (P,); of others more than any has."""
    live = cluster.nodes.serves
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    lacking = having < np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.where(lacking, having, SAFE)


def begun(cluster: Cluster, actions: Actions, changes: int) -> NDArray[np.bool_]:
    """Return the changes of which a copy has begun already, and those just before them, (C,)."""
    rows = under_way(actions, cluster.placement.flags)
    found = np.zeros(changes, bool)
    found[actions.change[rows]] = True
    found[actions.change[ushered(actions, rows)] - 1] = True
    return found


def _relief(cluster: Cluster, actions: Actions) -> NDArray[np.float64]:
    """Return the share that actions take of nodes above capacity."""
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    capacity = cluster.nodes.capacity
    leaves = actions.source != actions.target
    over = np.vstack([loads > capacity, np.zeros(capacity.shape[1], bool)])
    if not over.any():
        return np.zeros(len(actions))
    weight = cluster.partitions.load.voter[actions.partition]
    share = utilisation(weight, np.vstack([capacity, capacity[:1]])[actions.source])
    share[~np.isfinite(share)] = 0.0
    return np.where(leaves, (share * over[actions.source]).sum(axis=1), 0.0)


def busiest(
    actions: Actions, copies: Copies, throttle: Throttle, changes: int
) -> NDArray[np.float64]:
    """Return the seconds that the busier end of each change's copies takes for all of its own.

    An end without slots or a bandwidth takes any number at once, and delays no copy.
    """
    rows = np.flatnonzero(copies.moves)
    found = np.zeros(changes)
    for where, slots in ((actions.target, throttle.node_in), (copies.source, throttle.node_out)):
        if slots is None and throttle.node_bandwidth is None:
            continue
        at_once = 1 if slots is None or throttle.node_bandwidth is not None else slots
        node = where[rows]
        work = np.bincount(node + 1, copies.seconds[rows]) / at_once
        work[:1] = 0.0
        np.maximum.at(found, actions.change[rows], work[node + 1])
    return found


def least_seconds(
    actions: Actions, copies: Copies, throttle: Throttle, lasts: NDArray[np.float64]
) -> float:
    """Return what no order of changes that last so long (C,) takes less than.

    That is what a node takes for its copies, a partition for its changes, and the cluster for all.
    """
    first = np.flatnonzero(np.diff(actions.change, prepend=-1))
    found = [
        float(busiest(actions, copies, throttle, len(lasts)).max(initial=0.0)),
        float(np.bincount(actions.partition[first], lasts).max(initial=0.0)),
    ]
    if throttle.copies is not None:
        found.append(float(copies.seconds[copies.moves].sum()) / throttle.copies)
    return max(found)


def _afterwards(
    actions: Actions, copies: Copies, previous: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the seconds that what a partition goes through after each change takes."""
    own = copies.durations(actions, len(previous))
    whole = np.cumsum(own)
    opens = np.flatnonzero(previous < 0)
    ends = np.append(opens[1:], len(previous)) - 1
    return np.asarray(np.repeat(whole[ends], np.diff(np.append(opens, len(previous)))) - whole)
