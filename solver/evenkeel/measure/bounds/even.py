"""Compute the most even division of a load among nodes that rules allow.

The total load is divided by capacity. A spread limit leaves the replicas of a partition only so
many places outside a set of nodes, and a rule that opens few nodes leaves none; replicas without a
place outside have to be inside. Where rules thus force more than the mean into some nodes, these
are level among themselves, and the others share the rest: of all divisions that rules permit, the
one whose fullest nodes are least full, then the next ones, and so on. A node that accepts nothing
carries no more than it holds. Nodes for which nothing is left, beside others of endless room or
others that hold it and accept nothing, get no fuller than where rules force least.

Source: Fujishige, Lexicographically optimal base of a polymatroid with respect to a weight vector,
1980 (sets that are forced to hold most for their size are fixed first, one after the other).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenkeel.measure.binding import (
    NONE,
    Scope,
    group_scope,
    nodes_of,
    nodes_that_meet,
    partition_scope,
)
from evenkeel.measure.loads import utilisation, weighted_sum
from evenkeel.measure.room import most_away, piling, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.intake.stranded import unchanged
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Reals, Rows
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.topology import NODE_TIER

Part = tuple[Flags, float]  # a set of nodes, and how much of a load is forced into it
LEAST = 1e-300  # stands for nothing where something is divided by it
MARGIN = 1e-6  # relative difference that rounding cannot make
# classes up to which partitions are distinguished by the domains that keep replicas of them
MOST_CLASSES = 1024

NONE_KEPT = np.zeros(0, np.intp)  # neither partitions nor nodes
ALIKE = np.zeros(1, np.intp)  # numbers of voters that do not matter


@dataclass(frozen=True, eq=False)
class Classes:
    """Q classes of partitions that have the same rule and want equally many replicas."""

    # where rules are about voters, partitions of a class want equally many of these, too

    # rule, wanted: (Q,) the rule, and the number of replicas of each
    rule: Ints64
    wanted: Ints64
    member: Ints64  # (P,) class of each partition
    first: Ints64  # (Q,) first partition of each; none if there are no partitions
    # (E,) class and node of each replica that nodes set apart keep, of one partition of each class
    kept_of: Rows
    kept_on: Rows

    @classmethod
    def of(cls, placed: PlacementCounts, scope: Scope) -> "Classes":
        """Return the classes of a cluster, found once for a scope."""
        partitions = placed.cluster.partitions
        of_voters = any(term.voters for demands in scope.demands for term in demands.terms)
        voters = partitions.voters if of_voters else ALIKE
        return memoize(
            scope, "classes", lambda: cls.by(scope, partitions.replicas, voters=voters), partitions
        )

    @classmethod
    def by(
        cls, scope: Scope, wanted: Ints, owner: Rows = NONE_KEPT, node: Rows = NONE_KEPT,
        voters: Ints = ALIKE,
    ) -> "Classes":  # fmt: skip
        """Find the classes of partitions that want so many replicas, (P,), beside those kept."""
        # replicas kept are given by partition and node, (E,); in a class they are on the same nodes
        alike = len(wanted) > 0 and wanted.min() == wanted.max() and voters.min() == voters.max()
        if alike and len(scope.open) == 1 > len(owner):
            one, none = np.array([wanted[0]], np.int64), np.zeros(1, np.int64)
            return cls(none, one, np.zeros(len(wanted), np.int64), none, NONE_KEPT, NONE_KEPT)
        most = int(wanted.max(initial=0)) + 1
        key = scope.rule.astype(np.int64) * most + wanted
        key = key * (int(voters.max(initial=0)) + 1) + voters
        order = np.lexsort((node, owner))
        owner, node = owner[order], node[order]
        nth = np.arange(len(owner)) - np.searchsorted(owner, owner)
        size = scope.open.shape[1] + 1
        for n in range(int(nth.max(initial=-1)) + 1):
            if key.max() >= 2**62 // size:
                key = np.unique(key, return_inverse=True)[1].reshape(-1)
            key *= size
            key[owner[nth == n]] += node[nth == n] + 1
        _, first, member = np.unique(key, return_index=True, return_inverse=True)
        of = member.reshape(-1)[owner]
        shown = first[of] == owner
        rule, each = scope.rule[first].astype(np.int64), wanted[first].astype(np.int64)
        return cls(rule, each, member.reshape(-1), first, of[shown], node[shown])

    def loads(self, load: Reals) -> Reals:
        """Return the weight of one replica of every partition of each class."""
        return memoize(self, "loads", lambda: self._added_up(load), load)

    def _added_up(self, load: Reals) -> Reals:
        """Add up what one replica of every partition of each class weighs."""
        if len(self.rule) == 1:
            return weighted_sum(np.ones(len(load), np.int64), load)[None]
        total = np.zeros((len(self.rule), load.shape[1]))
        for d in range(load.shape[1]):
            total[:, d] = np.bincount(self.member, load[:, d], len(self.rule))
        return total


class Forced(NamedTuple):
    """What rules force into a set of nodes: by which term, and the load of each dimension, (D,)."""

    term: str
    inside: Flags
    load: Reals


def forced_parts(
    placed: PlacementCounts, scope: Scope, usable: Flags, capacity: Reals
) -> Iterator[Forced]:
    """Yield the sets of nodes that rules make fuller than others, and the load forced into them."""
    # where some nodes accept nothing, there are sets with and without these: all that they hold
    # stays
    classes = Classes.of(placed, scope)
    yield from _parts(placed, scope, classes, usable, capacity)
    yield from _terms(placed, scope, classes, usable)
    nodes, stays = placed.cluster.nodes, staying(placed, scope)
    keeps, before = usable & ~nodes.may_receive, usable
    if not keeps.any():
        return
    empty = np.bincount(stays, minlength=len(nodes) + 1)[1:] == 0
    no_level = empty | ~nodes.alive | np.isinf(capacity).any(1)
    for apart in (keeps & no_level, keeps):
        if (before & apart).any():
            before = usable & ~apart
            yield from _beside_kept(placed, scope, before, capacity)


def _beside_kept(
    placed: PlacementCounts, scope: Scope, takes: Flags, capacity: Reals
) -> Iterator[Forced]:
    """Give nodes that take replicas what the others do not keep; to none what finds no place."""
    stays, nodes = staying(placed, scope), placed.cluster.nodes
    at = np.flatnonzero(np.append(False, nodes.may_hold & ~takes).take(stays))
    owner, node = placed.partition(at), stays[at] - 1
    wanted, piles = placed.cluster.partitions.replicas, piling(placed, scope)
    kept, away = np.bincount(owner, minlength=len(wanted)), most_away(placed, stays > 0)
    stay = ((kept <= away) & ~piles)[owner]  # else any of them may leave, or others come to it
    kept = np.where(piles & (kept > 0), wanted, kept)
    rest = np.maximum(wanted - np.minimum(kept, away), 0)
    classes = Classes.by(scope, rest, owner[stay], _alike(placed, scope)[node[stay]])
    if len(classes.rule) > MOST_CLASSES:
        classes = Classes.by(scope, rest)
    placeable = _placeable(classes, _limits(placed, scope, classes, takes, capacity))
    if (placeable < classes.wanted).any():
        lost = (classes.wanted - placeable) @ classes.loads(placed.lightest)
        yield Forced("spread", np.zeros_like(takes), lost)
        classes = replace(classes, wanted=placeable)
    yield Forced("spread", takes, classes.wanted @ classes.loads(placed.lightest))
    yield from _parts(placed, scope, classes, takes, capacity)


def _alike(placed: PlacementCounts, scope: Scope) -> Rows:
    """Return the first node that is in the same domains of limits, (N,), other than nodes."""
    topology = placed.cluster.topology
    tiers = [topology.tier_index(one.tier) for one in scope.spreads if one.tier != NODE_TIER]
    domains = topology.domain_with_nodes[tiers]
    _, first, which = np.unique(domains, axis=1, return_index=True, return_inverse=True)
    return first[which.reshape(-1)]


def _placeable(classes: Classes, limits: "Iterable[_Limit]") -> Ints64:
    """Return how many replicas of a partition the limits leave places for, by class, (Q,)."""
    lost = np.zeros(len(classes.wanted))
    for limit in limits:
        lost = np.maximum(lost, limit.wanted - limit.places.sum(1))
    return np.maximum(classes.wanted - lost, 0.0).astype(np.int64)


def wished_parts(
    placed: PlacementCounts, scope: Scope, usable: Flags, capacity: Reals
) -> list[Forced]:
    """Return the same of spread limits that are soft; none if one of them finds no room."""
    classes = Classes.of(placed, scope)
    limits = _limits(placed, scope, classes, usable, capacity, hard=False)
    found = [*_spread(placed, scope, classes, usable, limits)]
    fits = all((one.load <= capacity[one.inside].sum(0)).all() for one in found)
    return found if fits else []


def forced_loads(
    placed: PlacementCounts,
    scope: Scope,
    classes: Classes,
    amount: Ints32,
    domain: Ints32,
    usable: Flags,
) -> Reals:
    """Return the load that a limit leaves no place for but in each domain, (domains, D)."""
    bound, places = _places(scope, classes, amount, domain, usable)
    alone = _alone(classes.wanted * bound, places)
    if not alone.any():
        return np.zeros((places.shape[1], len(placed.cluster.dimensions)))
    forced: Reals = alone.T @ classes.loads(placed.lightest)
    return forced


def _alone(wanted: Ints64, places: Reals) -> Reals:
    """Replicas of one partition that each domain must hold, by class; (Q, domains)."""
    return _with_places(wanted[:, None] - (places.sum(1, keepdims=True) - places), places)


def _with_places(forced: Reals, places: Reals) -> Reals:
    """Limit what is forced somewhere to the places there; where there are none, it has no place."""
    return np.maximum(np.where(places > 0.0, np.minimum(forced, places), forced), 0.0)


def _parts(
    placed: PlacementCounts, scope: Scope, classes: Classes, usable: Flags, capacity: Reals
) -> Iterator[Forced]:
    """Yield what spread limits force into domains, and rules into nodes that they leave open."""
    limits = [*_limits(placed, scope, classes, usable, capacity)]
    yield from _spread(placed, scope, classes, usable, limits)
    yield from _class(placed, scope, classes, usable, limits)


def _spread(
    placed: PlacementCounts, scope: Scope, classes: Classes, usable: Flags,
    limits: "Iterable[_Limit]",
) -> Iterator[Forced]:  # fmt: skip
    """Give domains what a spread limit leaves no place for elsewhere."""
    # With at most a per domain, z domains, and w replicas, any k of the domains together have at
    # least w - a (z - k). Single domains are tried, and the k with least room; of these the
    # fullest, then the fullest with more domains of what these have beside, and so on.
    is_shared = _is_shared(placed, scope, usable)
    for limit in limits:
        inside, domain, _, wanted, places, room = limit
        if is_shared and (_ample(placed, classes, limit) < room.sum(0)).all():
            continue
        weight = classes.loads(placed.lightest)
        alone = _alone(wanted, places)
        for c in np.flatnonzero(alone.any(0)).tolist():
            yield Forced("spread", inside & (domain == c), alone[:, c] @ weight)
        everywhere = places.sum(1)
        for d in range(room.shape[1]):
            order = np.argsort(room[:, d], kind="stable")
            among = np.cumsum(places[:, order], axis=1)[:, :-1]  # (Q, domains - 1)
            together = _with_places(wanted[:, None] - (everywhere[:, None] - among), among)
            load, there = together.T @ weight, np.cumsum(room[order, d])[:-1]
            there = there[np.isfinite(there)]
            for k in fullest(load[: len(there), d], there):
                yield Forced("spread", inside & np.isin(domain, order[: k + 1]), load[k])


def fullest(load: Reals, room: Reals) -> Iterator[int]:
    """Yield the fullest of growing sets, then the one fullest in what it has beside, and so on."""
    at, loaded, taken = -1, 0.0, 0.0
    while at + 1 < len(load):
        full = utilisation(load[at + 1 :] - loaded, room[at + 1 :] - taken)
        if not full.max() > 0.0:
            return
        at += 1 + int(np.argmax(full))
        loaded, taken = float(load[at]), float(room[at])
        yield at


def _ample(placed: PlacementCounts, classes: Classes, limit: "_Limit") -> Reals:
    """Return how much room in all is enough for a limit to force nothing anywhere, (D,)."""
    # Then no domain has more of all room than the limit lets it take of a partition's replicas:
    # what is kept out of some domains finds as much room elsewhere as on average, so that no part
    # gets fuller than the mean, which another term bounds. Whole units all have a node at the
    # level of one unit more for every node; partitions that stay as they are want no more of them.
    cluster, bound, more = placed.cluster, limit.bound, np.zeros(limit.room.shape[1])
    if not unchanged(cluster.placement).any():
        load = classes.wanted @ classes.loads(placed.lightest)
        units = np.where(load > 0.0, len(cluster.nodes) * cluster.partitions.load.unit, 0.0)
        more = utilisation(units, load)
    most = limit.places.max(1, initial=0.0)[bound]
    share = (most / np.maximum(classes.wanted[bound], 1)).min(initial=1.0)
    ample: Reals = limit.room.max(0, initial=0.0) / max(share * (1.0 - MARGIN), LEAST)
    return ample * (1.0 + more)


def ample_room(placed: PlacementCounts, usable: Flags) -> Reals:
    """Return how much room in all is enough for no rule to force anything anywhere, (D,)."""
    scope, capacity = partition_scope(placed.cluster), placed.cluster.nodes.capacity
    if not _is_shared(placed, scope, usable):
        return np.full(capacity.shape[1], np.inf)
    classes, ample = Classes.of(placed, scope), np.zeros(capacity.shape[1])
    for limit in _limits(placed, scope, classes, usable, capacity):
        ample = np.maximum(ample, _ample(placed, classes, limit))
    return ample


def _is_shared(placed: PlacementCounts, scope: Scope, usable: Flags) -> bool:
    """Return whether every node that may hold replicas may be given any."""
    return bool(scope.open.all()) and np.array_equal(usable, placed.cluster.nodes.may_receive)


class _Limit(NamedTuple):
    """A spread limit on N nodes in M domains, and the Q classes that it binds."""

    inside: Flags  # (N,) usable nodes in the domains
    domain: Ints32  # (N,)
    bound: Flags  # (Q,)
    wanted: Ints64  # (Q,) replicas that want places; 0 of classes that are not bound
    places: Reals  # (Q, M) how many of them each domain takes
    room: Reals  # (M, D) capacity of the nodes


def _limits(
    placed: PlacementCounts,
    scope: Scope,
    classes: Classes,
    usable: Flags,
    capacity: Reals,
    hard: bool = True,
) -> Iterator[_Limit]:
    """Yield the spread limits that bind; what is kept in a domain takes a place of it."""
    topology = placed.cluster.topology
    for binding in scope.bindings:
        if binding.kind != "spread" or binding.hard is not hard:
            continue
        domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
        bound, places = _places(scope, classes, binding.amount, domain, usable)
        wanted = classes.wanted * bound
        if not hard:  # it yields where nodes and terms cannot keep it
            places = np.minimum(places, _on_nodes(scope, classes, domain, usable))
            for inside, asked in zip(*asked_on(placed, scope, classes, usable), strict=True):
                there = np.unique(domain[inside])
                if len(there) == 1 and there[0] >= 0:
                    places[:, there[0]] = np.maximum(places[:, there[0]], asked)
            wanted = np.minimum(wanted, places.sum(1)).astype(np.int64)
        of, on = classes.kept_of, domain[classes.kept_on]
        if len(of) and binding.tier != NODE_TIER:
            counted = bound[of] & (on >= 0)
            kept, count = np.unique(of[counted] * places.shape[1] + on[counted], return_counts=True)
            q, at = np.divmod(kept, places.shape[1])
            beyond = np.maximum(count - binding.amount[classes.first[q]], 0)  # has to leave
            np.add.at(wanted, q, beyond)
            places[q, at] = np.maximum(places[q, at] - count, 0.0)
        if not bound.any():
            continue
        inside = usable & (domain >= 0)
        room = np.zeros((places.shape[1], capacity.shape[1]))
        for d in range(capacity.shape[1]):
            room[:, d] = np.bincount(domain[inside], capacity[inside, d], places.shape[1])
        yield _Limit(inside, domain, bound, wanted, places, room)


def _places(
    scope: Scope, classes: Classes, amount: Ints32, domain: Ints32, usable: Flags
) -> tuple[Flags, Reals]:
    """Return which classes a limit binds, and how many replicas each domain takes; (Q, domains)."""
    bound, most = np.zeros(len(classes.rule), bool), amount[classes.first]
    places = np.zeros((len(classes.rule), int(domain.max(initial=-1)) + 1))
    for rule, is_open in enumerate(scope.open):
        there = domain[usable & is_open]
        which = np.flatnonzero((classes.rule == rule) & (most != NONE))
        # nodes outside every domain take any number
        if len(which) and len(there) and there.min() >= 0:
            bound[which] = True
            places[which[:, None], there] = most[which, None]
    return bound, places


def _class(
    placed: PlacementCounts, scope: Scope, classes: Classes, usable: Flags,
    limits: "Iterable[_Limit]",
) -> Iterator[Forced]:  # fmt: skip
    """Give the nodes that a rule leaves open all partitions that find no place elsewhere."""
    if len(scope.open) == 1 and scope.open.all():
        return
    weight = classes.loads(placed.lightest)
    forced = _with_places(
        classes.wanted.astype(np.float64), _placeable(classes, limits).astype(np.float64)
    )
    for inside in np.unique(scope.open & usable, axis=0):
        bound = ~(scope.open & usable & ~inside).any(1)[classes.rule]
        yield Forced("class", inside, (forced * bound) @ weight)


# nodes that a rule names, how many replicas it asks for there by class, (Q,), and if these vote
Asks = tuple[Flags, Reals, bool]
MOST_SETS = 64  # sets of nodes that terms name up to which one within another counts for both


def asked_on(
    placed: PlacementCounts, scope: Scope, classes: Classes, usable: Flags
) -> tuple[Flags, Reals]:
    """Return the usable nodes that terms name, (S, N), and how many they ask for there, (S, Q)."""
    # a term on some nodes of a set asks for replicas in the set, too; of several the most counts
    terms = [
        (rule, term)
        for rule, demands in enumerate(scope.demands)
        for term in demands.terms
        if term.voters or not term.for_all
    ]
    if not terms:
        return np.zeros((0, len(usable)), np.bool_), np.zeros((0, len(classes.rule)))
    cluster = placed.cluster
    votes = [nodes_that_meet(cluster, one.required(voters=True)) & usable for one in scope.demands]
    voters = np.full(len(classes.rule), np.iinfo(np.int64).max)
    np.minimum.at(voters, classes.member, cluster.partitions.voters.astype(np.int64))
    voters = np.minimum(voters, classes.wanted)

    def taken(inside: Flags, of_voters: bool) -> Reals:
        held = _on_nodes(scope, classes, np.where(inside, 0, -1).astype(np.int32), usable)
        most: Reals = np.minimum(held.sum(1), voters if of_voters else classes.wanted)
        return most

    of_rules: dict[int, list[Asks]] = {}
    more = max(MOST_SETS - len(terms), 0)
    for rule, term in terms:
        inside = scope.open[rule] & (votes[rule] if term.voters else usable)
        inside = inside if term.for_all else nodes_of(cluster, term) & inside
        least = voters if term.for_all else np.full(len(voters), term.least)
        least = np.minimum(least, taken(inside, term.voters))
        asks = inside, np.where(classes.rule == rule, least, 0.0), term.voters
        known = of_rules.setdefault(rule, [])
        joined = [one for other in known for one in _joined(asks, other, taken) if one[1].any()]
        known += [asks, *joined[:more]]
        more -= len(joined[:more])
    named, each, _ = zip(*(one for known in of_rules.values() for one in known), strict=True)
    sets, of = np.unique(named, axis=0, return_inverse=True)
    asked = np.zeros((len(sets), len(classes.rule)))
    np.maximum.at(asked, of.reshape(-1), each)
    if 1 < len(sets) <= MOST_SETS:
        within = sets.astype(np.float32) @ ~sets.T == 0.0
        asked = np.stack([asked[inner].max(0) for inner in within.T])
    return sets, asked


def _joined(one: Asks, other: Asks, taken: Callable[[Flags, bool], Reals]) -> Iterator[Asks]:
    """Yield what two sets ask for on the nodes of either, and on those of both."""
    # on either, both but for what counts for both; on both, both but for what is on either
    of_voters = one[2] and other[2]
    either, both, least = one[0] | other[0], one[0] & other[0], one[1] + other[1]
    for inside, rest in ((either, both), (both, either)):
        found = np.clip(least - taken(rest, of_voters), 0.0, taken(inside, of_voters))
        yield inside, found, of_voters


def _terms(
    placed: PlacementCounts, scope: Scope, classes: Classes, usable: Flags
) -> Iterator[Forced]:
    """Give the nodes that a term names what it asks for there, as far as they are places for it."""
    sets, each = asked_on(placed, scope, classes, usable)
    if not sets.any():
        return
    weight = classes.loads(placed.lightest)
    for inside, asked in zip(sets, each, strict=True):
        if inside.any():
            yield Forced("place", inside, asked @ weight)


def _on_nodes(scope: Scope, classes: Classes, domain: Ints32, usable: Flags) -> Reals:
    """Return how many replicas of a partition the nodes of each domain take, (Q, domains)."""
    nodes = np.zeros((len(scope.open), int(domain.max(initial=-1)) + 1))
    for rule, is_open in enumerate(scope.open):
        np.add.at(nodes[rule], domain[usable & is_open & (domain >= 0)], 1.0)
    most = np.full(len(classes.rule), np.inf)
    for one in scope.spreads:
        if one.tier == NODE_TIER:
            amount = one.amount[classes.first]
            most = np.where(amount == NONE, most, np.minimum(most, amount))
    held = nodes[classes.rule]
    return np.where(held > 0.0, np.maximum(held, 1.0) * most[:, None], 0.0)


def group_level(placed: PlacementCounts, usable: Flags, capacity: Reals) -> Reals:
    """Spread the largest replicas of each group over as many domains as its limit asks for."""
    # with at most a per domain, one of the k largest is at best in the domain of rank k / a,
    # rounded up, on its largest node
    cluster = placed.cluster
    level = np.zeros(capacity.shape[1])
    if (cluster.partitions.group_rule < 0).all():
        return level
    group, copies = cluster.partitions.group, cluster.partitions.replicas
    for binding in group_scope(cluster).spreads:
        topology = cluster.topology
        domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
        amount = binding.amount[group]
        members = np.flatnonzero((amount != NONE) & (copies > 0))
        if (domain[usable] < 0).any() or len(members) == 0:
            continue
        owner = np.repeat(members, copies[members])
        for d in range(len(level)):
            best = np.zeros(int(domain.max(initial=-1)) + 1)
            np.maximum.at(best, domain[usable], capacity[usable, d])
            best = np.sort(best)[::-1]
            weight = placed.lightest[owner, d]
            order = np.lexsort((-weight, group[owner]))
            of = group[owner][order]
            start = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
            rank = np.arange(len(of)) - np.repeat(start, np.diff(np.append(start, len(of))))
            at = rank // np.maximum(amount[owner][order], 1)
            fits = (at < len(best)) & (amount[owner][order] > 0)
            full = utilisation(weight[order][fits], best[at[fits]])
            level[d] = max(level[d], float(full.max(initial=0.0)))
    return level


WHOLE = 1e-9  # numbers this close to a whole number are replaced by it before rounding
NEARLY = 1.0 + 1e-12  # tolerance of rounding up to which a number counts as whole


class Even(NamedTuple):
    """What each of N nodes carries of one load, where all is as level as rules permit."""

    # (N,) share of its room, as if loads could be split; 0 where nothing is divided, or room has no
    # end
    level: Reals
    # (N,) load in whole units, so many that all find a place: no node's target is below that
    least: Reals

    def target(self, tolerance: float, room: Reals, unit: float) -> Reals:
        """Return the target of each node: rounded down to a unit, if any, not below the least."""
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.where(room > 0.0, (1.0 + tolerance) * self.level * room, 0.0)
        return np.maximum(whole_loads(most, unit), self.least)


def even_shares(
    load: float, room: Reals, most: Reals, unit: float, parts: Sequence[Part], fits: Reals
) -> Even:
    """Divide a load evenly over nodes of some ``room (N,)``, each of which holds ``most (N,)``."""
    # ``parts`` are masks of nodes with the load that is forced into each. All loads are multiples
    # of ``unit`` (0: of none), and ``fits (N,)`` is the load up to which whole units have room.
    lost = max((forced for inside, forced in parts if not inside.any()), default=0.0)
    load = max(load - lost, 0.0)  # what has no place is on no node
    with np.errstate(over="ignore", invalid="ignore"):
        even, least = _divided(load, room, most, parts), np.zeros(len(room))
        if unit > 0.0:
            least = _whole(load, room, np.minimum(most, fits), unit, parts)
    return Even(even, least)


def _divided(load: float, room: Reals, most: Reals, parts: Sequence[Part]) -> Reals:
    """Return the share of its room that each node carries, as if loads could be split."""
    even, rest, lowest = np.zeros(len(room)), np.ones(len(room), bool), 0.0
    left = [one for one in parts if one[0].any()]
    while True:
        level = filled(load, room[rest], most[rest])
        full = [filled(forced, room[inside], most[inside]) for inside, forced in left]
        full = [one if one < np.inf else 0.0 for one in full]  # what has no place is in no part
        at = int(np.argmax(full)) if full else -1
        if not left or not level * (1.0 + MARGIN) < full[at]:
            if level <= MARGIN * lowest and _is_held_apart(room[rest], most[rest]):
                level = lowest
            even[rest] = level if level < np.inf else 0.0
            return np.where(room < np.inf, even, 0.0)
        (inside, amount), lowest = left[at], full[at]
        even[inside] = lowest
        rest, load = rest & ~inside, max(load - amount, 0.0)
        left = [
            (nodes & ~inside, max(forced - (amount if (nodes & inside).any() else 0.0), 0.0))
            for nodes, forced in left
            if (nodes & ~inside).any()
        ]


def _whole(load: float, room: Reals, most: Reals, unit: float, parts: Sequence[Part]) -> Reals:
    """Return the units of each node, so that all units have a node."""
    # room of a part beyond what is forced into it is room for the rest, though not the reverse:
    # what is forced into a part without room for it finds no place
    slots = room / unit
    most = np.floor(most / unit * NEARLY + WHOLE)
    least, rest, lowest = np.zeros(len(room)), np.ones(len(room), bool), 0.0
    count, enough = whole_units(load, unit), np.inf
    left = [(nodes, whole_units(forced, unit)) for nodes, forced in parts if nodes.any()]
    while True:
        level = min(whole_level(slots[rest], count, most[rest]), enough)
        full = [whole_level(slots[inside], forced, most[inside]) for inside, forced in left]
        at = int(np.argmax(full)) if full else -1
        is_last = not left or full[at] == 0.0 or full[at] * NEARLY < level
        if is_last and level == 0.0 and _is_held_apart(slots[rest], most[rest]):
            level = lowest
        inside, own = (rest, level) if is_last else (left[at][0], full[at])
        if own == np.inf:
            least[inside] = slots[inside]
        elif own > 0.0:
            least[inside] = np.floor(own * slots[inside] * NEARLY)
        if is_last:
            return np.where(slots < np.inf, least, 0.0) * unit
        lowest = own
        taken = np.where(inside, np.minimum(least, most), 0.0)
        lost = max(left[at][1] - int(taken.sum()), 0)
        there = int(taken.sum())
        if own <= level * NEARLY:  # the rest may be as full: only what is forced leaves it
            there, enough = left[at][1] - lost, level
        rest, count = rest & ~inside, max(count - there - lost, 0)
        left = [
            (
                nodes & ~inside,
                max(forced - int(taken[nodes].sum()) - (0 if (inside & ~nodes).any() else lost), 0),
            )
            for nodes, forced in left
            if (nodes & ~inside).any()
        ]


def filled(load: float, room: Reals, most: Reals) -> float:
    """Return the level at which nodes hold a load, none more than its ``most (N,)``."""
    free = ~((room == np.inf) & (most < np.inf))  # without end, and so never at a level
    left = load - float(most[~free].sum())
    while True:
        level = float(utilisation(np.array(max(left, 0.0)), np.array(room[free].sum())))
        with np.errstate(invalid="ignore"):
            full = free & (most < level * room * (1.0 - MARGIN))
        if not full.any():
            return level
        free &= ~full
        left = load - float(most[~free].sum())


def _is_held_apart(room: Reals, most: Reals) -> bool:
    """Return whether nodes of endless room, or nodes without room that keep what they hold, may
    hold what the rest do.
    """
    return bool(room.sum() == np.inf or ((room == 0.0) & (most > 0.0) & (most < np.inf)).any())


def left_over(load: float, amount: float) -> float:
    """Return what is left of a load, 0 where that is no more than rounding."""
    left = load - amount
    return left if left > MARGIN * load else 0.0


def whole_loads(load: Reals, unit: float) -> Reals:
    """Round loads down to whole units; 0 for none."""
    return np.floor(load / unit * NEARLY + WHOLE) * unit if unit > 0.0 else load


def whole_units(amount: float, unit: float) -> int:
    """Return how many units there are in an amount."""
    return int(np.ceil(amount / unit * (1.0 - 1e-12) - WHOLE))


def whole_level(room: Reals, count: int, most: Reals | None = None) -> float:
    """Return the least t with a sum of floor(t x room), each at most ``most``, of ``count``."""
    # infinite if there is none, 0 where room has no end
    if most is None or not (most < np.inf).any():
        return _whole_level(room, count)
    free, level = ~((room == np.inf) & (most < np.inf)), 0.0
    while True:
        level = max(level, _whole_level(room[free], max(count - int(most[~free].sum()), 0)))
        full = free & (most < (np.floor(level * room * NEARLY) if level < np.inf else np.inf))
        if not full.any():
            return level
        free &= ~full


def _whole_level(room: Reals, count: int) -> float:
    """Return the least t for which the sum of floor(t x room) reaches a count."""
    room = room[room > 0.0]
    if count == 0 or room.sum() == np.inf:
        return 0.0
    if len(room) == 0:
        return np.inf
    start = count / room.sum()
    held = np.floor(start * room * NEARLY)
    short = count - int(held.sum())
    if short <= 0:
        return float(start)
    upper = np.partition((held + 1.0) / room, short - 1)[short - 1]
    steps = np.maximum(np.floor(upper * room * NEARLY) - held, 0.0).astype(np.int64)
    bin_of = np.repeat(np.arange(len(room)), steps)
    nth = np.arange(len(bin_of)) - np.repeat(np.cumsum(steps) - steps, steps) + 1
    events = (held[bin_of] + nth) / room[bin_of]
    return float(np.partition(events, short - 1)[short - 1])
