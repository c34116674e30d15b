"""Lower bounds on the utilisation of the fullest node, and on the moves that fill the emptiest.

For nodes below their floor, the least load wanted there, the bound is a number of moves onto them.
A node is asked for no more load than all replicas that may be on it have together.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from evenkeel.measure.binding import Scope, partition_scope
from evenkeel.measure.bounds.even import (
    Forced,
    forced_parts,
    group_level,
    whole_level,
    whole_loads,
    whole_units,
    wished_parts,
)
from evenkeel.measure.bounds.moves import ROUNDING
from evenkeel.measure.loads import (
    absent_keepers,
    has_leaders,
    keepers,
    usable,
    utilisation,
    wanted_load,
    wanted_replicas,
    weighted_sum,
)
from evenkeel.measure.room import most_by_number, piling, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.reading.arrays import Flags, Ints64, Reals
from evenkeel.model.runtime.memoize import memoize

DEEPEST_PILE = 4  # items on one node up to which the pigeonhole term looks
ROWS = 1024  # rows that are looked at together


def level_terms(
    placed: PlacementCounts, scope: Scope, wanted: Reals, parts: Sequence[Forced]
) -> Iterator[tuple[str, Reals]]:
    """Yield each reason why the fullest node cannot be emptier, and how full it makes it."""
    # Every term holds for every placement that breaks no hard rule. A node that keeps what it has
    # but accepts nothing may be as full as it is now; one that is not even alive is left out.
    cluster = placed.cluster
    able, absent = usable(cluster), absent_keepers(cluster)
    capacity = cluster.nodes.capacity
    if absent.any():
        capacity = np.where(absent[:, None], np.inf, capacity)
    yield "aggregate", aggregate(placed, scope, wanted)
    yield "whole replicas", whole_replicas(cluster, able, wanted)
    yield "largest replica", largest_replica(placed, scope, able, capacity)
    yield "pigeonhole", pigeonhole(placed, able, capacity)
    for term in ("leaders", "spread", "class", "place"):
        level = np.zeros(len(wanted))
        for part in parts:
            if part.term == term:
                full = utilisation(part.load, capacity[part.inside].sum(0))
                whole = whole_replicas(cluster, part.inside, part.load)
                level = np.maximum(level, np.maximum(full, whole))
        yield term, level
    yield "group", group_level(placed, able, capacity)


def parts_of(placed: PlacementCounts, scope: Scope) -> list[Forced]:
    """Return the sets of nodes that rules force loads into, and the loads."""
    cluster, able, capacity = placed.cluster, usable(placed.cluster), _taking(placed)
    leading = leaders_together(cluster, able)
    parts = [*([] if leading is None else [leading]), *forced_parts(placed, scope, able, capacity)]
    # what a number limits alone is at no level: sets are looked at with and without these nodes
    endless = np.where(np.isinf(cluster.nodes.capacity) & (capacity > 0.0), np.inf, capacity)
    if (endless > capacity).any():
        parts += forced_parts(placed, scope, able, endless)
    return parts


def soft_parts_of(placed: PlacementCounts, scope: Scope) -> list[Forced]:
    """Return the same of soft limits, which proves nothing: goals that yield to them aim at it."""
    if not any(one.kind == "spread" and not one.hard for one in scope.bindings):
        return []
    return wished_parts(placed, scope, usable(placed.cluster), _taking(placed))


def _taking(placed: PlacementCounts) -> Reals:
    """Return what nodes can take, (N, D), by capacity and number: those absent take nothing."""
    capacity = np.minimum(placed.cluster.nodes.capacity, most_by_number(placed))
    absent = absent_keepers(placed.cluster)
    return np.where(absent[:, None], 0.0, capacity) if absent.any() else capacity


def aggregate(placed: PlacementCounts, scope: Scope, wanted: Reals) -> Reals:
    """Divide the load wanted by the capacity there is for it."""
    cluster = placed.cluster
    nodes = cluster.nodes
    load = wanted
    room = nodes.capacity[nodes.may_receive].sum(0)
    keeps = keepers(cluster)
    if not keeps.any():
        return utilisation(load, room)
    piles = piling(placed, scope)
    absent = np.append(False, keeps & ~nodes.alive).take(placed.node_row)
    if (placed.tallied(absent)[piles] > 0).any():
        return np.zeros(len(load))  # all of a partition may pile up where no level is asked of it
    each = placed.heaviest
    # where one replica stands that may share its node, the others of its partition may come
    if piles.any():
        each = each * np.where(piles, np.maximum(cluster.partitions.replicas, 1), 1)[:, None]
    held = placed.weighed(each.T, staying(placed, scope))
    load = load - held[keeps & ~nodes.alive].sum(0)
    held, capacity = held[keeps & nodes.alive], nodes.capacity[keeps & nodes.alive]
    level = np.zeros(len(load))
    for d in range(len(load)):
        # whichever keepers stay as full as they are, the others and the receivers share the rest
        order = np.argsort(utilisation(held[:, d], capacity[:, d]), kind="stable")
        full = np.concatenate([[0.0], np.cumsum(held[order, d])])
        shared = room[d] + np.append(np.cumsum(capacity[order[::-1], d])[::-1], 0.0)
        rest = np.maximum(load[d] * (1.0 - 1e-12) - full, 0.0)
        level[d] = utilisation(rest, shared).max()
    return level


def leaders_together(cluster: Cluster, able: Flags) -> Forced | None:
    """Give the nodes that may lead, of those ``able (N,)``, all that leaders weigh."""
    nodes, parts = cluster.nodes, cluster.partitions
    leading = able & nodes.may_lead
    if np.array_equal(leading, able) or not leading.any() or not has_leaders(cluster):
        return None
    if (leading & ~nodes.may_receive).any():
        return None
    load = weighted_sum((parts.replicas > 0).astype(np.int64), parts.load.leader)
    return Forced("leaders", leading, load)


def whole_replicas(cluster: Cluster, inside: Flags, load: Reals) -> Reals:
    """Spread a load (D,) of multiples of one unit, which cannot be split, over nodes (N,)."""
    level, units = np.zeros(len(cluster.dimensions)), cluster.partitions.load.unit
    if not units.any() or absent_keepers(cluster).any():
        return level
    for d in np.flatnonzero(units).tolist():
        unit = float(units[d])
        with np.errstate(over="ignore"):
            slots = cluster.nodes.capacity[inside, d] / unit
        level[d] = whole_level(slots, whole_units(float(load[d]), unit))
    return level


def largest_replica(placed: PlacementCounts, scope: Scope, able: Flags, capacity: Reals) -> Reals:
    """Put the largest replica on one of the nodes ``able (N,)`` that may hold it."""
    # there it is beside the partitions that are on every node which may hold them
    cluster = placed.cluster
    leads, everywhere = has_leaders(cluster), _everywhere(placed, scope, able)
    everyone, held = np.ones_like(everywhere), np.zeros_like(capacity)
    sizes = memoize(
        scope, f"largest, leaders {leads}",
        lambda: _largest_loads(cluster, scope, everyone, leads=leads), cluster.partitions,
    )  # fmt: skip
    level = _on_one(sizes, scope, able, held, capacity)
    if everywhere.any():
        for q in np.unique(scope.rule[everywhere]).tolist():
            among = everywhere & (scope.rule == q)
            held[able & scope.open[q]] += weighted_sum(among.astype(np.int64), placed.lightest)
        sizes = _largest_loads(cluster, scope, ~everywhere, leads=leads)
        level = np.maximum(level, _on_one(sizes, scope, able, held, capacity))
    return level


def _on_one(
    sizes: Sequence[tuple[int, Reals]], scope: Scope, able: Flags, held: Reals, capacity: Reals
) -> Reals:
    """Return how full the emptiest node gets, (D,), beside what is ``held (N, D)``, at most."""
    level = np.zeros(capacity.shape[1])
    for q, largest in sizes:
        there = able & scope.open[q]
        least = utilisation(held[there] + largest, capacity[there]).min(0, initial=np.inf)
        level = np.maximum(level, np.where(largest > 0.0, least, 0.0))
    return level


def _everywhere(placed: PlacementCounts, scope: Scope, able: Flags) -> Flags:
    """Return the partitions that need all nodes ``able (N,)`` which are open to them, (P,)."""
    cluster = placed.cluster
    partitions = cluster.partitions
    places, replicas = (scope.open & able).sum(1), partitions.replicas
    most = memoize(partitions, "most replicas", lambda: int(replicas.max(initial=0)))
    if (places > most).all() or keepers(cluster).any() or len(cluster.forbidden):
        return np.zeros(len(partitions), np.bool_)
    lacking = (places[scope.rule] > 0) & (replicas >= places[scope.rule])
    return np.asarray(lacking & ~piling(placed, scope)) if lacking.any() else lacking


def _largest_loads(
    cluster: Cluster, scope: Scope, among: Flags, *, leads: bool
) -> list[tuple[int, Reals]]:
    """Return the class and the greatest loads (D,) of the replicas of each class and role."""
    parts = cluster.partitions
    found = []
    for q in range(len(scope.open)):
        bound = among if len(scope.open) == 1 else among & (scope.rule == q)
        others = parts.voters[bound] - leads
        for load, needed in (
            (parts.load.leader, (parts.replicas[bound] > 0) & leads),
            (parts.load.voter, others > 0),
            (parts.load.non_voter, parts.replicas[bound] > parts.voters[bound]),
        ):
            if needed.any():
                there = load[bound] if needed.all() else load[bound][needed]
                found.append((q, column_maxima(there)))
    return found


def column_maxima(loads: Reals) -> Reals:
    """Return the greatest of each column, 0 or more, (D,): row by row would be slow."""
    many, dimensions = len(loads) // ROWS, loads.shape[1]
    greatest = loads[: many * ROWS].reshape(many, ROWS * dimensions).max(0, initial=0.0)
    rest = loads[many * ROWS :]
    each = np.concatenate([greatest.reshape(ROWS, dimensions), rest])
    return np.asarray(each.max(0, initial=0.0))


def pigeonhole(placed: PlacementCounts, able: Flags, capacity: Reals) -> Reals:
    """Let one of the M nodes ``able (N,)`` hold k + 1 of the k M + 1 largest replicas."""
    # Martello, Toth, Knapsack Problems, 1990, section 8.3: bounds L1 and L2 for bin packing
    cluster = placed.cluster
    level = np.zeros(len(cluster.dimensions))
    copies, count = cluster.partitions.replicas, wanted_replicas(cluster)
    least = placed.lightest
    total, largest_of = memoize(
        cluster.partitions, "lightest in all",
        lambda: (weighted_sum(copies, least), column_maxima(least).tolist()),
    )  # fmt: skip
    for d in range(len(level)):
        room = capacity[able, d]
        room = room[room > 0.0]
        widest = room.max(initial=0.0)
        if len(room) == 0 or not np.isfinite(widest) or count <= len(room):
            continue
        largest = largest_of[d]
        deepest = min(DEEPEST_PILE, (count - 1) // len(room))
        # (k + 1) of the largest, or of the average of the first k M + 1, are no less than the term
        piles = [
            k
            for k in range(1, deepest + 1)
            if (k + 1) * largest * room.sum() > total[d] * widest
            and (k + 1) * room.sum() > (k * len(room) + 1) * widest
        ]
        if not piles:
            continue
        reach = piles[-1] * len(room) + 1
        order = np.argsort(-least[:, d], kind="stable")
        enough = int(np.searchsorted(np.cumsum(copies[order]), reach)) + 1
        item = np.repeat(least[order[:enough], d], copies[order[:enough]])
        for k in piles:
            last = k * len(room) + 1
            level[d] = max(level[d], item[last - k - 1 : last].sum() / widest)
    return level


def floor_target(cluster: Cluster, goals: Goals, fair: Reals, even: Reals, target: Reals) -> Reals:
    """Return the load that each node must hold at least for its dimensions to be level, (N, D)."""
    # (1 - floor) x the mean utilisation of its capacity, rounded down where loads only count
    # replicas, but no more than its target, than rules leave for it, and than all that may stand on
    # it; 0 on nodes that accept nothing, and where no floor is asked for.
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


def floor_mean(cluster: Cluster, fair: Reals) -> Reals:
    """Return the mean utilisation that floors are counted from, (D,)."""
    # Where some nodes keep what they have and accept nothing it is the mean of all that hold or
    # accept anything: ``fair (D,)`` leaves out the capacity of the former. It does not depend on
    # how much these hold, or floors would rise with what leaves them.
    nodes = cluster.nodes
    keeps = keepers(cluster)
    if not keeps.any():
        return fair
    placed = PlacementCounts.of(cluster, cluster.placement)
    held = placed.weighed(placed.heaviest.T, staying(placed, partition_scope(cluster)))
    waiting = held[keeps & ~nodes.alive].sum(0)
    counts = nodes.may_receive[:, None] | ((keeps & nodes.alive)[:, None] & (held > 0.0))
    room = np.where(counts, nodes.capacity, 0.0).sum(0)
    left = np.maximum(wanted_load(cluster) - waiting, 0.0)
    return np.minimum(utilisation(left, room), fair)


def arrivals(placed: PlacementCounts, floor: Reals) -> Ints64:
    """Return how many replicas must at least join each node for it to hold its floor, (N,)."""
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


def _standing_room(placed: PlacementCounts, scope: Scope) -> Reals:
    """Return the load of all replicas that rules and numbers let stand on each node, (N, D)."""
    cluster = placed.cluster
    copies = np.where(piling(placed, scope), cluster.partitions.replicas, 1)
    copies = np.minimum(copies, cluster.partitions.replicas)
    each = placed.heaviest * copies[:, None]
    of_class = np.stack(
        [np.bincount(scope.rule, column, len(scope.open)) for column in each.T], axis=1
    )
    room: Reals = scope.open.T.astype(np.float64) @ of_class
    partition, node = cluster.forbidden.T
    np.subtract.at(room, node, each[partition])
    most = cluster.nodes.max_replicas
    limited = np.flatnonzero(most >= 0)
    if len(limited):
        largest = np.sort(np.repeat(placed.heaviest, copies, axis=0), axis=0)[::-1]
        sums = np.concatenate([np.zeros((1, room.shape[1])), np.cumsum(largest, axis=0)])
        room[limited] = np.minimum(room[limited], sums[np.minimum(most[limited], len(largest))])
    return np.maximum(room, 0.0)
