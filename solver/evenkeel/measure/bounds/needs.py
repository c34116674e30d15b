"""Needs: the least load that sets of nodes must hold if all replicas are placed.

Rules leave replicas only so many places outside a set of nodes; what finds none there has to be
inside, where every node holds only so much. Each need is a condition that every placement meets
which places all replicas and breaks no hard rule, whatever stands where. With a fixed number of
domains, the needs of all sets of them are also enough for a fractional placement of one dimension.

Source: Ford, Fulkerson, Maximal flow through a network, 1956 (the needs of sets of domains are the
cuts of a transport); Martello, Toth, Knapsack Problems, 1990, section 8.3 (whole replicas).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from evenkeel.measure.binding import NONE, Scope, group_scope, nodes_of, partition_scope
from evenkeel.measure.bounds.even import LEAST, Classes
from evenkeel.measure.levelness import Levelness
from evenkeel.measure.loads import has_leaders, wanted_load
from evenkeel.measure.room import piling, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Reals
from evenkeel.model.rules import readable
from evenkeel.model.runtime.figures import fine_percent
from evenkeel.model.topology import NODE_TIER

ALL_SUBSETS = 6  # domains up to which every set of them is looked at
MOST_CLASSES = 64  # kinds of partitions up to which it is asked what keeps a node full
MOST_PARTS = 24  # sets of nodes that rules name, which are looked at one by one
# replicas on one node up to which sizes are distinguished that just do not fit once more
DEEPEST = 4

Kind = Literal[
    "load", "whole replicas", "replicas of a node", "nodes", "domains", "group", "leading"
]


class Case(NamedTuple):
    """What a cluster has to bear. N nodes, D dimensions."""

    name: str  # description of the loss; empty for none
    lost: Flags  # (N,) nodes that are lost
    most: Reals  # (D,) share of its capacity that a node may then be filled to
    spare: int = 0  # any so many nodes that are lost beside
    recovered: bool = True  # whether lost replicas get another node, or only leaders do


@dataclass(frozen=True, eq=False)
class Need:
    """What a set of nodes must hold, in one measure. N nodes."""

    case: Case  # when
    # in what: the load of a dimension; replicas of at least some size, which are whole; replicas
    # that nodes count; the replicas of one partition, on nodes or in domains; those of a group that
    # is bound as a whole; loads of leaders
    kind: Kind
    # of that load or size; for domains and groups, the row of their tier; -1 for none, and for the
    # nodes themselves
    dimension: int
    where: str  # the set in words, empty for all nodes; or the group
    amount: float  # what it must hold
    # (N,) what each node can hold, before it is rounded down if ``whole``; 0 outside the set
    room: Reals
    kept: Reals  # (N,) what stands on nodes of the set that accept nothing
    whole: bool = False  # whether only whole replicas count
    spare: int = 0  # any so many nodes that are lost

    @property
    def holds(self) -> Reals:
        """What each node holds at most, (N,) float64."""
        room = np.floor(self.room * (1.0 + ROUNDING)) if self.whole else self.room
        return room + self.kept


class _Measure(NamedTuple):
    """A way to count: what replicas of each class weigh (Q,), and what nodes hold (N,)."""

    kind: Kind
    dimension: int
    weight: Reals
    room: Reals
    kept: Reals
    whole: bool


class _NamedPart(NamedTuple):
    """A set of nodes, (N,), its description, and the tier whose domains describe it."""

    where: str
    inside: Flags
    tier: str


class _Ground(NamedTuple):
    """What all needs of a case are counted from."""

    placed: PlacementCounts
    scope: Scope
    classes: Classes
    case: Case
    usable: Flags
    receives: Flags


def needs(cluster: Cluster, case: Case) -> Iterator[Need]:
    """Yield what sets of nodes must hold in a case, for all that is wanted to have its place."""
    ground = _ground(cluster, case)
    placed, scope, usable, receives = ground.placed, ground.scope, ground.usable, ground.receives
    if (placed.per_partition(usable & ~receives)[piling(placed, scope)] > 0).any():
        return  # of a partition that may pile up, more may stand where nothing is accepted
    if not case.recovered:
        yield from _by_role(ground, "leading", cluster.partitions.load.leader)
        return
    yield from _by_role(ground, "load", None)
    yield from _large_leaders(ground)
    measures = list(_measures(ground))
    for part in _parts(ground):
        forced = _forced(ground, part)
        if not forced.any():
            continue
        for one in measures:
            amount = float(forced @ one.weight)
            if amount > 0.0:
                yield Need(
                    case, one.kind, one.dimension, part.where, amount,
                    np.where(part.inside, one.room, 0.0), np.where(part.inside, one.kept, 0.0),
                    one.whole, case.spare,
                )  # fmt: skip
        yield from _of_one_partition(ground, part, forced)
    yield from _domains(ground)
    yield from _of_groups(ground)


def _ground(cluster: Cluster, case: Case) -> _Ground:
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    receives = cluster.nodes.may_receive & ~case.lost
    usable = receives | (cluster.nodes.may_hold & ~case.lost)
    return _Ground(placed, scope, Classes.of(placed, scope), case, usable, receives)


def out_of_reach(cluster: Cluster, level: Levelness, target: Reals) -> str:
    """Return rules or pins that are proven to keep a node from its ``target (N, D)``, else ""."""
    over = level.loads / np.maximum(target, LEAST)
    for d in range(len(cluster.dimensions)):
        worst = int(np.argmax(over[:, d])) if len(over) else 0
        if len(over) and over[worst, d] > 1.0 + ROUNDING:
            reason = _held(cluster, worst, d, target[:, d])
            if reason:
                return reason
    return ""


def _held(cluster: Cluster, node: int, dimension: int, most: Reals) -> str:
    """Return rules or pins that keep a node, or one in its domains, above ``most (N,)`` of a load;
    "" if none that name it do.
    """
    nowhere = np.zeros(len(cluster.nodes), bool)
    ground = _ground(cluster, Case("", nowhere, np.ones(len(cluster.dimensions))))
    lightest, placement = ground.placed.lightest[:, dimension], cluster.placement
    here = (placement.node == node) & (placement.flags & Flag.PINNED > 0)
    pinned = float(lightest[placement.owner[here]].sum())
    alone = np.arange(len(nowhere)) == node
    found = [(pinned, alone, "pinned replicas", cluster.nodes.names[node])]
    if len(ground.classes.rule) <= MOST_CLASSES:
        weight = ground.classes.loads(ground.placed.lightest)[:, dimension]
        for part in _parts_around(ground, node):
            amount = float(_forced(ground, part) @ weight)
            found.append((amount, part.inside, "rules", part.where))
    over = [amount / max(float(most[inside].sum()), LEAST) for amount, inside, _, _ in found]
    if max(over) <= 1.0 + ROUNDING:
        return ""
    amount, inside, what, where = found[int(np.argmax(over))]
    share = amount / max(float(cluster.nodes.capacity[inside, dimension].sum()), LEAST)
    name = cluster.dimensions[dimension]
    return f"{what} take at least {fine_percent(share)} of the capacity of {where} in {name}"


def _by_role(ground: _Ground, kind: Kind, leading: Reals | None) -> Iterator[Need]:
    """All load by role, on all nodes; or what leaders alone weigh, (P, D)."""
    cluster, case = ground.placed.cluster, ground.case
    wanted = wanted_load(cluster)
    if leading is not None:
        led = has_leaders(cluster) & (cluster.partitions.replicas > 0)
        wanted = leading[led].sum(0)
    held = ground.placed.weighed(ground.placed.heaviest.T, staying(ground.placed, ground.scope))
    keeps = ground.usable & ~ground.receives
    for d, amount in enumerate(wanted.tolist()):
        if amount > 0.0:
            room = np.where(ground.receives, case.most[d] * cluster.nodes.capacity[:, d], 0.0)
            kept = np.where(keeps, held[:, d], 0.0)
            yield Need(case, kind, d, "", amount, room, kept, spare=case.spare)


def _large_leaders(ground: _Ground) -> Iterator[Need]:
    """Leaders of at least some size, which are whole, on all nodes."""
    cluster, case = ground.placed.cluster, ground.case
    load = cluster.partitions.load
    if not has_leaders(cluster) or load.leader is load.voter:
        return
    keeps = ground.usable & ~ground.receives
    for d in range(len(cluster.dimensions)):
        leading = np.where(cluster.partitions.replicas > 0, load.leader[:, d], 0.0)
        capacity = np.where(ground.receives, case.most[d] * cluster.nodes.capacity[:, d], 0.0)
        for size in _sizes(leading, capacity[ground.receives]):
            large = (leading >= size).astype(np.float64)
            with np.errstate(over="ignore"):
                room = capacity / size
            kept = _kept(ground, keeps, large)
            yield Need(case, "whole replicas", d, "", large.sum(), room, kept, True, case.spare)


def _measures(ground: _Ground) -> Iterator[_Measure]:
    """Yield the ways to count what forced replicas weigh, and what nodes hold of that."""
    cluster, classes, placed = ground.placed.cluster, ground.classes, ground.placed
    lightest = placed.lightest
    keeps = ground.usable & ~ground.receives
    count = len(classes.rule)
    sums = classes.loads(lightest)
    for d in range(len(cluster.dimensions)):
        column = np.ascontiguousarray(lightest[:, d])
        capacity = np.where(
            ground.receives, ground.case.most[d] * cluster.nodes.capacity[:, d], 0.0
        )
        kept = _kept(ground, keeps, column)
        yield _Measure("load", d, sums[:, d], capacity, kept, False)
        for size in _sizes(column[cluster.partitions.replicas > 0], capacity[ground.receives]):
            large = (column >= size).astype(np.float64)
            weight = np.bincount(classes.member, large, count).astype(np.float64)
            with np.errstate(over="ignore"):
                room = capacity / size
            yield _Measure("whole replicas", d, weight, room, _kept(ground, keeps, large), True)
    most = cluster.nodes.max_replicas
    if (most[ground.receives] >= 0).any():
        every = np.ones(len(lightest))
        room = np.where(ground.receives, np.where(most >= 0, most, np.inf), 0.0)
        weight = np.bincount(classes.member, every, count).astype(np.float64)
        kept = _kept(ground, keeps, every)
        yield _Measure("replicas of a node", -1, weight, room, kept, False)


def _kept(ground: _Ground, keeps: Flags, weight: Reals) -> Reals:
    """Return the weight of what stays on nodes that keep and do not accept, (N,)."""
    if not keeps.any():
        return np.zeros(len(keeps))
    stays = staying(ground.placed, ground.scope)
    return np.where(keeps, ground.placed.weighed(weight[None], stays)[:, 0], 0.0)


def _sizes(load: Reals, capacity: Reals) -> list[float]:
    """Return sizes of replicas of which a node holds one less than it would if they were split."""
    values = np.unique(load[load > 0.0])
    if not len(values):
        return []
    found = {float(values[0]), float(values[-1])}
    rooms = np.unique(capacity[np.isfinite(capacity) & (capacity > 0.0)])[-DEEPEST:]
    for room in rooms.tolist():
        for count in range(1, DEEPEST + 1):
            at = int(np.searchsorted(values, room / (count + 1) * (1.0 + ROUNDING), side="right"))
            if at < len(values):
                found.add(float(values[at]))
    return sorted(found)


def _parts(ground: _Ground) -> Iterator[_NamedPart]:
    """Yield sets of nodes: those that rules name, and in each every set of domains."""
    cluster, scope = ground.placed.cluster, ground.scope
    everywhere = np.ones(len(cluster.nodes), bool)
    named: dict[bytes, tuple[str, Flags]] = {everywhere.tobytes(): ("", everywhere)}
    for demands, mask in zip(scope.demands, scope.open, strict=True):
        texts = ", ".join(map(readable, demands.required(voters=False)))
        named.setdefault(mask.tobytes(), (texts, mask))
        for term in demands.counted:
            if not term.voters:
                inside = nodes_of(cluster, term)
                named.setdefault(inside.tobytes(), (readable(term.text), inside))
    tiers = dict.fromkeys(
        one.tier for one in scope.bindings
        if one.kind in ("spread", "min_domains") and one.hard and one.tier != NODE_TIER
    )  # fmt: skip
    for text, mask in [*named.values()][:MOST_PARTS]:
        yield _NamedPart(text, mask & ground.usable, "")
        for tier in tiers:
            yield from _of_domains(ground, tier, text, mask)


def _parts_around(ground: _Ground, node: int) -> Iterator[_NamedPart]:
    """Yield the sets of nodes around one: its domains, those that rules name, and both at once."""
    cluster, scope = ground.placed.cluster, ground.scope
    topology = cluster.topology
    named = {"": np.ones(len(cluster.nodes), bool)}
    for demands in scope.demands:
        for term in demands.counted:
            if not term.voters:
                named[readable(term.text)] = nodes_of(cluster, term)
    for text, mask in [*named.items()][:MOST_PARTS]:
        if text and mask[node]:
            yield _NamedPart(text, mask & ground.usable, "")
        for tier in dict.fromkeys(one.tier for one in scope.bindings if one.tier != NODE_TIER):
            row = topology.tier_index(tier)
            domain = topology.domain_with_nodes[row]
            if domain[node] >= 0 and mask[node]:
                name = topology.domain_name(row, int(domain[node]))
                inside = (domain == domain[node]) & mask & ground.usable
                yield _NamedPart(f"{tier} {name}{', ' if text else ''}{text}", inside, tier)


def _of_domains(ground: _Ground, tier: str, text: str, mask: Flags) -> Iterator[_NamedPart]:
    """Yield sets of the domains of a tier, within some nodes."""
    cluster = ground.placed.cluster
    topology = cluster.topology
    row = topology.tier_index(tier)
    domain = topology.domain_with_nodes[row]
    there = np.unique(domain[ground.usable & mask & (domain >= 0)])
    for some in _some(there, cluster, domain, ground.receives):
        inside = np.isin(domain, some) & mask & ground.usable
        names = " + ".join(topology.domain_name(row, int(d)) for d in some)
        yield _NamedPart(f"{tier} {names}{', ' if text else ''}{text}", inside, tier)


def _some(
    there: Ints32, cluster: Cluster, domain: Ints32, receives: Flags
) -> list[tuple[int, ...]]:
    """Return sets of domains: all there are of a few, else one, all but one, and the smallest."""
    one = there.tolist()
    if len(one) <= ALL_SUBSETS:
        return [some for size in range(1, len(one) + 1) for some in combinations(one, size)]
    found = {(d,) for d in one} | {tuple(d for d in one if d != left) for left in one}
    found.add(tuple(one))
    for capacity in cluster.nodes.capacity.T:
        inside = receives & (domain >= 0)
        room = np.bincount(domain[inside], capacity[inside], int(domain.max()) + 1)
        order = there[np.argsort(room[there], kind="stable")].tolist()
        found |= {tuple(sorted(order[:size])) for size in range(2, len(order))}
    return sorted(found)


def _forced(ground: _Ground, part: _NamedPart) -> Reals:
    """Return how many replicas of a partition of each class have to stand in a part, (Q,)."""
    cluster, scope, classes = ground.placed.cluster, ground.scope, ground.classes
    topology = cluster.topology
    forced = np.zeros(len(classes.rule))
    outside = ground.usable & ~part.inside
    fewest = [one for one in scope.bindings if one.kind == "min_domains" and one.hard]
    for q, rule in enumerate(classes.rule.tolist()):
        if len(classes.first) <= q:
            continue
        left = outside & scope.open[rule]
        wanted = float(classes.wanted[q])
        places = np.inf if left.any() else 0.0
        for one in scope.spreads:
            amount = int(one.amount[classes.first[q]])
            if amount == NONE or one.tier != part.tier:
                continue
            domain = topology.domain_with_nodes[topology.tier_index(one.tier)][left]
            if (domain >= 0).all():  # nodes outside every domain take any number
                places = min(places, float(amount * len(np.unique(domain))))
        forced[q] = max(0.0, wanted - places)
        for one in fewest:  # of so many domains, those that are not outside are inside
            domain = topology.domain_with_nodes[topology.tier_index(one.tier)][left]
            short = int(one.amount[classes.first[q]]) - len(np.unique(domain[domain >= 0]))
            forced[q] = max(forced[q], min(float(short), wanted))
        for term in scope.demands[rule].counted:
            elsewhere = nodes_of(cluster, term) & ground.usable & ~part.inside
            if not term.voters and not elsewhere.any():
                forced[q] = max(forced[q], float(min(term.least, wanted)))
    return forced


def _of_one_partition(ground: _Ground, part: _NamedPart, forced: Reals) -> Iterator[Need]:
    """Nodes take only so many replicas of one partition, which asks for so many nodes."""
    scope, classes = ground.scope, ground.classes
    seen: set[tuple[float, int, bytes]] = set()
    for one in scope.spreads:
        if one.tier != NODE_TIER:
            continue
        for q in np.flatnonzero(forced > 0.0).tolist():
            amount = int(one.amount[classes.first[q]])
            inside = part.inside & scope.open[classes.rule[q]]
            key = float(forced[q]), amount, inside.tobytes()
            if amount == NONE or key in seen:
                continue
            seen.add(key)
            room = np.where(inside, float(amount), 0.0)
            none = np.zeros(len(room))
            yield Need(
                ground.case, "nodes", -1, part.where, key[0], room, none, spare=ground.case.spare
            )


def _domains(ground: _Ground) -> Iterator[Need]:
    """Domains take only so many replicas of one partition, which asks for so many domains."""
    cluster, scope, classes = ground.placed.cluster, ground.scope, ground.classes
    topology = cluster.topology
    seen: set[tuple[int, int, str, bytes]] = set()
    for one in scope.spreads:
        if one.tier == NODE_TIER:
            continue
        row = topology.tier_index(one.tier)
        domain = topology.domain_with_nodes[row]
        for q in range(len(classes.first)):
            amount = int(one.amount[classes.first[q]])
            inside = ground.usable & scope.open[classes.rule[q]]
            key = int(classes.wanted[q]), amount, one.tier, inside.tobytes()
            if amount == NONE or key in seen or (domain[inside] < 0).any():
                continue
            seen.add(key)
            room = np.where(inside, float(amount), 0.0)
            yield Need(ground.case, "domains", row, "", float(key[0]), room, np.zeros(len(room)))


def _of_groups(ground: _Ground) -> Iterator[Need]:
    """Yield the limits of nodes and domains on replicas of a group, the largest of each rule."""
    cluster, scope = ground.placed.cluster, group_scope(ground.placed.cluster)
    parts, topology = cluster.partitions, cluster.topology
    wanted = np.bincount(parts.group, parts.replicas, len(parts.group_names))
    for one in scope.spreads:
        row = -1 if one.tier == NODE_TIER else topology.tier_index(one.tier)
        domain = topology.domain_with_nodes[row]
        for q in np.unique(one.rule[one.amount != NONE]).tolist():
            group = int(np.argmax(np.where(one.rule == q, wanted, -1.0)))
            inside = ground.usable & scope.open[q]
            if (domain[inside] < 0).any():
                continue  # nodes outside every domain take any number
            room = np.where(inside, float(one.amount[group]), 0.0)
            spare = ground.case.spare if row < 0 else 0
            name = f"group {parts.group_names[group]}"
            yield Need(
                ground.case, "group", row, name, float(wanted[group]), room, np.zeros(len(room)),
                spare=spare,
            )  # fmt: skip
