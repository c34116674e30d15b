"""Find sets of nodes that have to hold more than an even division leaves them.

What rules force into a set is what they leave no place for outside. Nodes that rules, domains and
capacities treat alike are of one kind. Where kinds are few, all sets of whole kinds are examined:
if any set has to hold more than it is left, such a one does, as what is forced into sets is
supermodular. The fullest that lacks room is forced, and all is divided again.

Source: S. Fujishige, Submodular Functions and Optimization, 2005, section 7.2; of cuts in flows,
L. Ford, D. Fulkerson, 1956.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, Binding, Scope, eligible_domains, group_scope
from evenkeel.measure.bounds.even import (
    MARGIN,
    WHOLE,
    Classes,
    Even,
    Part,
    asked_on,
    even_shares,
    whole_loads,
)
from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Flags, Reals
from evenkeel.model.topology import NODE_TIER

# sets of nodes, times nodes, times classes of partitions up to which every set is looked at
MOST_CELLS = 2**17

NOTHING = 1e-12  # share of its room up to which a node is empty

MOST_PARTS = 64  # sets that are forced at most, one after the other


def sets_of_kinds(rows: Sequence[NDArray[Any]], classes: int) -> Flags:
    """Return all sets of whole kinds of nodes, (S, N), none first; kinds agree in all rows."""
    # where these are too many sets, the last rows are left out; no sets if they still are
    nodes = rows[0].shape[1]
    for upto in range(len(rows), 0, -1):
        _, of = np.unique(np.vstack(rows[:upto]), axis=1, return_inverse=True)
        count = int(of.max(initial=-1)) + 1
        if max(classes, 1) * nodes << count <= MOST_CELLS:
            return np.asarray(np.arange(1 << count)[:, None] >> of.reshape(-1) & 1 > 0)
    return np.zeros((0, nodes), bool)


def shares_with_room(
    load: float, room: Reals, most: Reals, unit: float, parts: Sequence[Part], fits: Reals,
    sets: Flags, forced: Reals,
) -> tuple[Even, list[Part]]:  # fmt: skip
    """Return ``even_shares`` if ``sets (S, N)`` hold their ``forced (S,)``, and sets raised."""
    # a set is held to no more than it has room for
    holds = whole_loads(np.minimum(np.minimum(most, fits), load), unit)
    within, fresh = sets.astype(np.float64), np.ones(len(sets), bool)
    beyond = max(forced.max(initial=0.0) - load, 0.0)  # what is not placed may be of any set
    forced, raised = np.minimum(forced - beyond, within @ holds), list[Part]()
    # beside endless room others carry nothing until they have to
    unforced = (room.sum() == np.inf) & (room > 0.0) & (room < np.inf)
    barely = np.minimum(holds, np.where(unforced, NOTHING * room, np.inf))
    while True:
        even = even_shares(load, room, most, unit, [*parts, *raised], fits)
        if not fresh.any() or len(raised) == MOST_PARTS:
            return even, raised
        bound = (room > 0.0) & (even.level > 0.0)
        left = np.where(bound, np.minimum(even.target(0.0, room, unit), holds), barely)
        held: Reals = within @ left
        full = np.where(fresh & (forced > held * (1.0 + MARGIN)), utilisation(forced, held), 0.0)
        at = int(np.argmax(full))
        if full[at] == 0.0:
            return even, raised
        raised.append((sets[at], float(forced[at])))
        fresh[at] = False


def confines(scope: Scope) -> bool:
    """Return whether a rule other than a spread limit may force replicas into some nodes."""
    limits = any(one.hard and one.kind != "spread" for one in scope.bindings)
    return limits or any(one.terms for one in scope.demands)


def sets_of_places(
    placed: PlacementCounts, scope: Scope, usable: Flags, capacity: Reals
) -> tuple[Flags, Reals]:
    """Return sets of whole kinds of nodes, and the load forced into each, (S, D)."""
    topology, classes = placed.cluster.topology, Classes.of(placed, scope)
    asked, least = asked_on(placed, scope, classes, usable)
    of_groups = limits_of_groups(placed.cluster)
    tiers = sorted({topology.tier_index(one.tier) for one in (*scope.bindings, *of_groups)
                    if one.hard and one.tier != NODE_TIER})  # fmt: skip
    apart = np.vstack([scope.open, asked, topology.domain_with_nodes[tiers], usable])
    sets = sets_of_kinds([apart, capacity.T], len(classes.rule))
    forced = np.zeros((len(classes.first), len(sets)))
    for q, row in enumerate(forced if len(sets) else ()):
        terms = zip(asked, least[:, q], strict=True)
        row[:] = _forced(placed, scope, classes, q, usable, sets, terms)
    forced -= forced[:, :1]  # what has no place is on no node
    loads = forced.T @ classes.loads(placed.lightest)[: len(forced)]
    for limit in of_groups if len(sets) else ():
        by = _by_skew if limit.kind == "skew" else _by_spread
        loads = np.maximum(loads, by(placed, limit, usable, sets))
    return sets, loads


def limits_of_groups(cluster: Cluster) -> list[Binding]:
    """Return the skews and spread limits that bind whole groups."""
    if (cluster.partitions.group_rule < 0).all():
        return []
    bindings = group_scope(cluster).bindings
    return [one for one in bindings if one.kind in ("skew", "spread") and one.hard]


def _of_groups(placed: PlacementCounts) -> tuple[NDArray[np.int64], Reals]:
    """Return the replicas wanted of each group, (G,), and its lightest ones, (G, D)."""
    partitions = placed.cluster.partitions
    groups = len(group_scope(placed.cluster).rule)
    wanted = np.bincount(partitions.group, partitions.replicas, groups).astype(np.int64)
    lightest = np.full((groups, placed.lightest.shape[1]), np.inf)
    np.minimum.at(lightest, partitions.group, placed.lightest)
    return wanted, lightest


def _by_spread(placed: PlacementCounts, limit: Binding, usable: Flags, sets: Flags) -> Reals:
    """Return the load that a limit of groups leaves no place for outside each set, (S, D)."""
    topology, scope = placed.cluster.topology, group_scope(placed.cluster)
    wanted, lightest = _of_groups(placed)
    domain = topology.domain_with_nodes[topology.tier_index(limit.tier)]
    loads = np.zeros((len(sets), lightest.shape[1]))
    for rule in np.unique(scope.rule[(limit.amount != NONE) & (wanted > 0)]).tolist():
        there = scope.open[rule] & usable
        if (domain[there] < 0).any():
            continue  # no limit holds outside of domains
        of = np.equal.outer(domain, np.unique(domain[there]))
        domains = ((~sets & there).astype(float) @ of > 0.0).sum(1)  # with a node outside the set
        g = np.flatnonzero((scope.rule == rule) & (limit.amount != NONE) & (wanted > 0))
        places = np.multiply.outer(domains, limit.amount[g])
        loads += (
            np.maximum(np.minimum(wanted[g], of.shape[1] * limit.amount[g]) - places, 0.0)
            @ (lightest[g])
        )
    return loads


def _by_skew(placed: PlacementCounts, skew: Binding, usable: Flags, sets: Flags) -> Reals:
    """Return the load that a skew of groups forces into each set, (S, D), in lightest replicas.

    Of w replicas in m domains, none with over s more than another, each has at least
    (w - s (m - 1)) / m and at most (w + s (m - 1)) / m.
    """
    cluster = placed.cluster
    topology, scope = cluster.topology, group_scope(cluster)
    wanted, lightest = _of_groups(placed)
    row = topology.tier_index(skew.tier)
    domain, counted = topology.domain_with_nodes[row], eligible_domains(cluster, scope, row)
    of = np.equal.outer(domain, np.arange(counted.shape[1]))  # (N, domains)
    strays = (scope.open & usable & (domain < 0)).any(1)
    closed = (counted & ~of[usable & cluster.nodes.may_receive].any(0)).any(1)
    bound = (skew.amount != NONE) & ~(strays | closed)[scope.rule] & (wanted > 0)
    counted, w = counted[scope.rule[bound]], wanted[bound]
    m = np.maximum(counted.sum(1), 1)
    beside = skew.amount[bound] * (m - 1.0)
    least, most = np.ceil((w - beside) / m - WHOLE), np.floor((w + beside) / m + WHOLE)
    within = ~((~sets & usable).astype(float) @ of > 0.0)  # domains without a node outside the set
    k = within @ counted.T.astype(float)
    return np.asarray(np.maximum(np.maximum(k * least, w - (m - k) * most), 0.0) @ lightest[bound])


def _forced(
    placed: PlacementCounts, scope: Scope, classes: Classes, q: int, usable: Flags, sets: Flags,
    asked: Iterator[tuple[Flags, float]],
) -> Reals:  # fmt: skip
    """Return how many replicas of a partition of a class have to be in each set, (S,)."""
    topology, rule = placed.cluster.topology, classes.rule[q]
    wanted, first = int(classes.wanted[q]), classes.first[q]
    amounts = {
        (one.tier, one.kind): int(one.amount[first])
        for one in scope.bindings if one.hard and one.amount[first] != NONE
    }  # fmt: skip
    each = min(amounts.get((NODE_TIER, "spread"), wanted), wanted)
    there = scope.open[rule] & usable
    outside = (~sets & there).astype(np.float64)
    forced, limits = np.zeros(len(sets)), list[tuple[Flags, Reals]]()
    for tier in {NODE_TIER, *(tier for tier, _ in amounts)}:
        row = topology.tier_index(tier)
        domain = topology.domain_with_nodes[row]
        count = int(domain.max(initial=-1)) + 1
        of = np.equal.outer(domain, [*range(count), -1])  # (N, M + 1): last those in no domain
        most = np.minimum(each * there @ of, wanted)
        most[:-1] = np.minimum(most[:-1], amounts.get((tier, "spread"), wanted))
        low = np.zeros(count + 1)
        if (tier, "skew") in amounts:
            counted = np.append(eligible_domains(placed.cluster, scope, row)[rule], False)
            low = _within_skew(amounts[tier, "skew"], wanted, counted, most)
        few = min(amounts.get((tier, "max_domains"), count), count)
        if 0 < few < count:  # those too small for a partition beside the largest others are closed
            largest = np.sort(most[:-1])[::-1]
            beside = largest[:few].sum() - np.maximum(most[:-1], largest[few - 1])
            most[:-1][most[:-1] + beside + most[-1] < wanted] = 0.0
        limits.append((of, most))
        places = each * outside @ of
        left = np.minimum(places, most)
        left[:, :-1] = np.sort(left[:, :-1], axis=1)
        left[:, : count - few] = 0.0
        fewest = amounts.get((tier, "min_domains"), 0) - (left[:, :-1] > 0.0).sum(1)
        inside = np.maximum(low - places, 0.0).sum(1)
        forced = np.maximum.reduce([forced, wanted - left.sum(1), inside, fewest])
    for nodes, least in asked:
        for of, most in limits if least > 0.0 else ():
            left = np.minimum(each * (outside * nodes) @ of, most).sum(1)
            forced = np.maximum(forced, least - left)
    return forced


def _within_skew(skew: int, wanted: int, counted: Flags, most: Reals) -> Reals:
    """Limit what domains hold at ``most (M,)`` by a skew, and return the least they hold, (M,)."""
    if not counted.any():
        return np.zeros(len(most))
    highest = min(wanted, int(most[counted].min()) + skew)
    beside = int(counted.sum()) - 1
    while highest + beside * max(highest - skew, 0) > wanted:
        highest -= 1
    most[:-1] = np.minimum(most[:-1], highest)
    lowest = 0
    while lowest < wanted and np.minimum(most[:-1], lowest + skew).sum() + most[-1] < wanted:
        lowest += 1
    return np.where(counted, lowest, 0.0)
