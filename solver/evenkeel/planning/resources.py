"""Resources of actions: headroom of nodes and domains, and copies under a throttle."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, assert_never

import numpy as np

from evenkeel.measure.binding import eligible_domains, group_scope, nodes_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Reals, Roles, Rows
from evenkeel.model.rules import Term
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.safety import serving_domains
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.list_scheduler import Resources
from evenkeel.planning.throttle import Throttle


def charge_groups(
    resources: Resources, cluster: Cluster, target: Placement, actions: Actions
) -> None:
    """Add what groups may have per domain, and lack on the nodes of an expression."""
    scope = group_scope(cluster)
    for q in np.unique(scope.rule).tolist():
        demands, bound = scope.demands[q], scope.rule == q
        for limit in demands.limits:
            if limit.hard and limit.kind == "spread":
                _charge_spread(resources, cluster, target, actions, bound, limit.tier, limit.amount)
        for term in demands.counted:
            _charge_least(resources, cluster, target, actions, bound, term)


def _counts(cluster: Cluster, placement: Placement, where: Ints, size: int) -> Ints64:
    """Count the replicas of every group in each place, (G, size); -1 is no place."""
    group = cluster.partitions.group[placement.owner].astype(np.int64)
    groups = len(cluster.partitions.group_names)
    inside = where >= 0
    key = group[inside] * size + where[inside]
    return np.bincount(key, minlength=groups * size).reshape(groups, size)


def _by_domain(cluster: Cluster, placement: Placement, tier: int) -> Ints64:
    """Count the replicas of every group that serve in each domain of a tier, (G, domains)."""
    where = serving_domains(cluster, tier)[placement.node]
    return _counts(cluster, placement, where, int(cluster.topology.domain_count[tier]))


def _charge_spread(
    resources: Resources,
    cluster: Cluster,
    target: Placement,
    actions: Actions,
    bound: Flags,
    tier: str,
    most: int,
) -> None:
    topology = cluster.topology
    row = topology.tier_index(tier)
    size = int(topology.domain_count[row])
    domain = serving_domains(cluster, row).astype(np.int64)
    start, end = (_by_domain(cluster, one, row) for one in (cluster.placement, target))
    held = bound & (start <= most).all(1) & (end <= most).all(1)
    free = np.where(held[:, None], float(most) - start, np.inf)
    group = cluster.partitions.group[actions.partition].astype(np.int64)
    to, origin = domain[actions.target], domain[actions.source]
    crosses = held[group] & (to != origin)
    # what is under way has its room from the beginning
    coming = np.flatnonzero(actions.flying & crosses & (to >= 0))
    np.subtract.at(free, (group[coming], to[coming]), 1.0)
    base = resources.add("group", free)
    one = np.ones(len(actions))
    for where, charge in ((to, resources.claim), (origin, resources.give)):
        rows = np.flatnonzero(crosses & (where >= 0))
        if charge == resources.claim:
            rows = rows[~actions.flying[rows]]
        charge(base + group[rows] * size + where[rows], actions.change[rows], one[rows])


def _charge_least(
    resources: Resources,
    cluster: Cluster,
    target: Placement,
    actions: Actions,
    bound: Flags,
    term: Term,
) -> None:
    inside = np.append(nodes_of(cluster, term) & cluster.nodes.serves, False)

    def having(placement: Placement) -> Ints64:
        counts = inside[placement.node]
        if term.voters:
            counts = counts & (placement.role == Role.VOTER)
        return _counts(cluster, placement, np.where(counts, 0, -1), 1)[:, 0]

    start, end = having(cluster.placement), having(target)
    held = bound & (start >= term.least) & (end >= term.least)
    base = resources.add("group", np.where(held, start - float(term.least), np.inf))
    group = cluster.partitions.group[actions.partition].astype(np.int64)
    before, after = inside[actions.source], inside[actions.target]
    if term.voters:
        before, after = before & (actions.was == Role.VOTER), after & actions.votes
    one = np.ones(len(actions))
    for which, charge in ((before & ~after, resources.claim), (after & ~before, resources.give)):
        rows = np.flatnonzero(which & held[group])
        charge(base + group[rows], actions.change[rows], one[rows])


# of each tier how many replicas each group has in its domains
Counts = dict[int, dict[int, Ints64]]


@dataclass(frozen=True, eq=False)
class Tie:
    """A rule of a group: of what domains of a tier it touches, or of the group that it needs."""

    kind: Literal["min_domains", "max_domains", "skew", "depends"]
    group: int
    tier: int
    amount: int
    other: int
    is_open: Flags

    def kept(self, counts: Ints64 | Mapping[int, Ints64]) -> bool:
        """Whether it is kept where each group has so many replicas per domain."""
        mine = counts[self.group]
        if self.kind == "depends":
            return not ((mine > 0) & (counts[self.other] == 0) & self.is_open).any()
        if self.kind == "skew":
            least = int(mine[self.is_open].min(initial=2**31))
            return not self.is_open.any() or int(mine.max()) - least <= self.amount
        touched = int(np.count_nonzero(mine))
        if self.kind == "max_domains":
            return touched <= self.amount
        if self.kind == "min_domains":
            return touched >= self.amount
        assert_never(self.kind)


def ties(cluster: Cluster, target: Placement) -> list[Tie]:
    """Return the rules of groups that both ends keep, but for those that count by the domain."""
    found: list[Tie] = []
    topology, scope = cluster.topology, group_scope(cluster)
    for g in np.flatnonzero(cluster.partitions.group_rule >= 0).tolist():
        q = scope.rule[g]
        for limit in scope.demands[q].limits:
            if not limit.hard or limit.kind == "spread":
                continue
            tier = topology.tier_index(limit.tier)
            is_open = eligible_domains(cluster, scope, tier)[q]
            found.append(Tie(limit.kind, g, tier, limit.amount, -1, is_open))
    tiers = {one.tier for one in found} | set(cluster.depends[:, 2].tolist())
    ends = [
        {tier: _by_domain(cluster, placement, tier) for tier in tiers}
        for placement in (cluster.placement, target)
    ]
    found = [one for one in found if all(one.kept(end[one.tier]) for end in ends)]
    for g, h, tier in cluster.depends.tolist():
        lacks = [(end[tier][g] > 0) & (end[tier][h] == 0) for end in ends]
        found.append(Tie("depends", g, tier, 0, h, ~(lacks[0] | lacks[1])))
    return found


def tied(
    cluster: Cluster, target: Placement, actions: Actions, by_rank: Ints32, previous: Ints32
) -> tuple[Ints32, Flags]:
    """Return the change before each one, (C,), and which have no place in any order found."""
    # changes of tied groups come one after another, each in the first round in which the rules of
    # its group admit it: what is exchanged counts where it is to stay
    tally = Tally(cluster, target)
    blocked = np.zeros(len(by_rank), bool)
    if not tally.held:
        return previous, blocked
    label = _components(len(cluster.partitions.group_names), tally.held)
    of_change = np.zeros(len(by_rank), np.int64)
    of_change[actions.change] = label[cluster.partitions.group[actions.partition]]
    first = np.searchsorted(actions.change, np.arange(len(by_rank) + 1)).tolist()
    previous, own = previous.copy(), previous
    counts = tally.begin
    last: dict[int, int] = {}
    done = of_change < 0
    waiting = by_rank[~done[by_rank]].tolist()
    while waiting:
        left = []
        for c in waiting:
            then = None
            if own[c] < 0 or done[own[c]]:
                then = tally.after(counts, tally.effect(actions, range(first[c], first[c + 1])))
            if then is None:
                left.append(c)
                continue
            counts = then
            previous[c] = last.get(int(of_change[c]), -1)
            last[int(of_change[c])] = c
            done[c] = True
        if len(left) == len(waiting):
            blocked[left] = True
            break
        waiting = left
    return previous, blocked


# the group of a change, the rules that bind it, and the domains in which its counts change
Effect = tuple[int, list[Tie], list[tuple[int, int, int]]]


class Tally:
    """Counts of tied groups by tier, as changes leave them one after another."""

    def __init__(self, cluster: Cluster, target: Placement) -> None:
        self.held = ties(cluster, target)
        self.group = cluster.partitions.group
        tiers = sorted({one.tier for one in self.held})
        self.domain = {tier: serving_domains(cluster, tier) for tier in tiers}
        groups = {g for one in self.held for g in (one.group, one.other) if g >= 0}
        tables = {tier: _by_domain(cluster, cluster.placement, tier) for tier in tiers}
        self.begin: Counts = {t: {g: table[g] for g in groups} for t, table in tables.items()}

    def effect(self, actions: Actions, change: range) -> Effect:
        """Return what the actions of a change do to the counts of its group."""
        group = int(self.group[actions.partition[change[0]]])
        mine = [one for one in self.held if group in (one.group, one.other)]
        shifts: list[tuple[int, int, int]] = []
        for tier, domain in self.domain.items() if mine else ():
            for i in change:
                to, origin = int(domain[actions.target[i]]), int(domain[actions.source[i]])
                if actions.action[i] != Action.LEAD and to != origin:
                    shifts += [(tier, to, 1)] if to >= 0 else []
                    shifts += [(tier, origin, -1)] if origin >= 0 else []
        return group, mine, shifts

    def after(self, counts: Counts, effect: Effect, *, checked: bool = True) -> Counts | None:
        """Return what a change makes of counts; None if it is checked and rules do not admit it."""
        group, mine, shifts = effect
        if not mine:
            return counts
        then = {tier: dict(rows) for tier, rows in counts.items()}
        for tier in then:
            then[tier][group] = then[tier][group].copy()
        for tier, where, by in shifts:
            then[tier][group][where] += by
        kept = not checked or all(one.kept(then[one.tier]) for one in mine)
        return then if kept else None


def _components(groups: int, held: list[Tie]) -> Ints64:
    """Return a number per group, the same for those that are tied together; -1: not tied."""
    label = np.full(groups, -1)
    for one in held:
        ends = [one.group] if one.other < 0 else [one.group, one.other]
        known = [int(label[g]) for g in ends if label[g] >= 0]
        number = min(known, default=one.group)
        for k in known:
            label[label == k] = number
        label[ends] = number
    return label


ROUNDING = 1e-12  # relative excess over a capacity that is rounding


# actions that are charged in one go, so that what is worked out for them stays small
BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Effects:
    """Loads of E nodes from one partition before, at most during, and after an act; (E, D) each."""

    # the last dimension counts replicas

    action: Rows
    node: Ints32
    before: Reals
    peak: Reals
    after: Reals


@dataclass(frozen=True, eq=False)
class Shifts:
    """By how much changes make nodes fuller, (E, D), negative where they relieve them."""

    change: Ints32
    node: Ints32
    amount: Reals


def charge_space(
    resources: Resources, cluster: Cluster, target: Placement, actions: Actions, split: Flags
) -> Shifts:
    """Add the headroom of nodes and domains, and what actions take of it, and return it."""
    ends = [_carried(cluster, placement) for placement in (cluster.placement, target)]
    # what is under way has its room from the beginning
    coming = np.flatnonzero(actions.flying)
    np.add.at(ends[0], actions.target[coming], in_flight(cluster, actions.take(coming)))
    nodes = _add_nodes(resources, cluster, *ends)
    domains = [_add_domains(resources, cluster, tier, *ends)
               for tier in cluster.topology.tier_capacity]  # fmt: skip
    found = []
    for some in _blocks(actions):
        own = actions.take(some)
        effects = effects_of(cluster, own)
        change = own.change[effects.action]
        nodes.charge(resources, change, effects.node,
                     effects.before, effects.peak, effects.after)  # fmt: skip
        bare = _without_leads(cluster, own, effects) if domains else effects
        for room, domain in domains:
            _charge_domains(resources, cluster, room, domain, own, bare, split[some])
        found.append((change, effects.node, (effects.after - effects.before)[:, :-1]))
    return Shifts(*(np.concatenate(one) for one in zip(*found, strict=True)))


def _blocks(actions: Actions) -> Iterator[slice]:
    """Yield actions, some at a time, that divide no change."""
    opens = np.append(np.flatnonzero(np.diff(actions.change, prepend=-1)), len(actions))
    cuts = opens[np.unique(np.searchsorted(opens, np.arange(0, len(actions) + BLOCK, BLOCK)))
                 .clip(max=len(opens) - 1)]  # fmt: skip
    yield from (slice(int(a), int(b)) for a, b in pairwise(np.unique(cuts).tolist()))


def _carried(cluster: Cluster, placement: Placement) -> Reals:
    """Return load and number of replicas of every node, (N, D + 1)."""
    placed = PlacementCounts.of(cluster, placement)
    return np.column_stack([placed.loads, placed.replicas.astype(np.float64)])


@dataclass(frozen=True, eq=False)
class Room:
    """What is free of places of one kind, a row each, and the resource that it begins with."""

    base: int
    free: Reals

    def charge(
        self,
        resources: Resources,
        change: Ints,
        where: Ints,
        before: Reals,
        peak: Reals,
        after: Reals,
    ) -> None:
        """Charge changes for what they add to places, leaving out what has no limit there."""
        width = self.free.shape[1]
        bound = np.isfinite(self.free).take(where, axis=0)
        for amount, charge in ((peak - before, resources.claim), (peak - after, resources.give)):
            row, column = np.nonzero(bound & (amount > 0.0))
            charge(self.base + where[row].astype(np.int64) * width + column, change[row],
                   amount[row, column])  # fmt: skip


def _add_nodes(resources: Resources, cluster: Cluster, start: Reals, end: Reals) -> Room:
    nodes = cluster.nodes
    most = np.where(nodes.max_replicas < 0, np.inf, nodes.max_replicas)
    capacity = np.column_stack([nodes.capacity, most])
    capacity[~cluster.nodes.carries] = np.inf
    held = np.maximum(capacity, end)
    with np.errstate(invalid="ignore"):
        free = held * (1.0 + ROUNDING) - start
    return Room(resources.add("node", free), free)


def _add_domains(
    resources: Resources, cluster: Cluster, tier: str, start: Reals, end: Reals
) -> tuple[Room, Ints32]:
    """Add the room that the nodes of each domain of a tier share; return the domains of nodes."""
    topology = cluster.topology
    capacity = topology.tier_capacity[tier]
    domain = topology.domain_with_nodes[topology.tier_index(tier)]
    domain = np.where(cluster.nodes.carries, domain, np.int32(-1))
    counted = domain >= 0
    carried = np.zeros((2, *capacity.shape))
    for total, loads in zip(carried, (start, end), strict=True):
        np.add.at(total, domain[counted], loads[counted, :-1])
    free = np.maximum(capacity, carried[1]) * (1.0 + ROUNDING) - carried[0]
    return Room(resources.add(tier, free), free), domain


def _charge_domains(
    resources: Resources,
    cluster: Cluster,
    room: Room,
    domain: Ints32,
    actions: Actions,
    effects: Effects,
    split: Flags,
) -> None:
    """Charge the room that domains share; what stays inside is no load of them."""
    inside = domain[effects.node] >= 0
    key = effects.action[inside] * len(room.free) + domain[effects.node[inside]]
    distinct, index = np.unique(key, return_inverse=True)
    sums = []
    for amount in (effects.before, effects.peak, effects.after):
        total = np.zeros((len(distinct), room.free.shape[1]))
        np.add.at(total, index, amount[inside, :-1])
        sums.append(total)
    before, peak, after = sums
    action, where = np.divmod(distinct, len(room.free))
    at_once = ((actions.action == Action.MOVE) & ~split)[action][:, None] & ~cluster.transient
    peak = np.where(at_once, np.maximum(before, after), peak)
    load = cluster.partitions.load
    if load.leader is not load.voter:
        whose = actions.partition[action]
        was = np.where(actions.led, actions.was, _gives(cluster, actions))[action]
        light = (was == Role.NON_VOTER)[:, None]
        alone = np.where(light, load.non_voter[whose], load.voter[whose])
        led, leads = (
            np.where((np.append(domain, -1)[holder[action]] == where)[:, None], lead, 0.0)
            for holder, lead in zip(
                _holders(actions), (load.leader[whose] - alone, (load.leader - load.voter)[whose]),
                strict=True,
            )
        )  # fmt: skip
        peak += np.maximum(led, leads)
        before, after = before + led, after + leads
    room.charge(resources, actions.change[action], where, before, peak, after)


def _without_leads(cluster: Cluster, actions: Actions, effects: Effects) -> Effects:
    """Return the effects of actions but for what those who lead weigh more or less."""
    if cluster.partitions.load.leader is cluster.partitions.load.voter:
        return effects
    none_leads = np.zeros(len(actions), bool)
    return effects_of(cluster, replace(actions, led=none_leads, leads=none_leads), leads=False)


def _gives(cluster: Cluster, actions: Actions) -> Roles:
    """Return the role of who hands over: voters, but for leaders that came in without a vote."""
    start = cluster.placement
    first = (actions.next_leader >= 0) & (
        actions.next_leader == start.leader_replica[actions.partition]
    )
    return np.where(first, start.role[actions.next_leader], np.uint8(Role.VOTER))


def _holders(actions: Actions) -> tuple[Ints32, Ints32]:
    """Return the nodes that lead before actions, and after; -1 for no matter."""
    led = np.where(actions.led, actions.source, actions.next_leader_node)
    return led, np.where(actions.leads, actions.target, np.int32(-1))


def effects_of(cluster: Cluster, actions: Actions, *, leads: bool = True) -> Effects:
    """Return what actions do to nodes: joined, left, stood on, and of who hands over."""
    nothing, role, in_place = np.zeros(len(actions), bool), actions.role, actions.stays
    plain = _weights(cluster, actions.partition, role, nothing)
    led = _weights(cluster, actions.partition, actions.was, actions.led)
    settled = _weights(cluster, actions.partition, role, actions.leads)
    voting = _weights(cluster, actions.partition, np.zeros_like(role), nothing)
    given = _weights(cluster, actions.partition, _gives(cluster, actions), nothing)
    leading = _weights(cluster, actions.partition, role, ~nothing) if leads else given
    found = []

    def add(
        which: Flags, node: Ints32, before: Reals | None, between: Reals, after: Reals | None
    ) -> None:
        rows = np.flatnonzero(which & (node >= 0))
        none = np.zeros((len(rows), between.shape[1]))
        one = none if before is None else before[rows]
        other = none if after is None else after[rows]
        peak = np.maximum(np.maximum(one, other), between[rows])
        found.append((rows, node[rows], one, peak, other))

    there = np.zeros_like(plain)
    there[actions.flying] = in_flight(cluster, actions.take(actions.flying))
    add(~in_place, actions.target, there, plain, settled)
    add(~in_place, actions.source, led, plain, None)
    add(in_place, actions.source, led, voting, settled)
    add(actions.next_leader >= 0, actions.next_leader_node, leading, given, given)
    columns = zip(*found, strict=True)
    return Effects(*(np.concatenate(one) for one in columns))


def in_flight(cluster: Cluster, actions: Actions) -> Reals:
    """Return what copies that are under way weigh on the nodes that they come to, (n, D + 1)."""
    weight = _weights(cluster, actions.partition, actions.was, np.zeros(len(actions), bool))
    counts = np.append(cluster.transient, True) | (actions.action == Action.ADD)[:, None]
    return np.where(counts, weight, 0.0)


def _weights(cluster: Cluster, partition: Ints32, role: Roles, leads: Flags) -> Reals:
    """Return what replicas weigh in a role, and 1 for the replica itself; (n, D + 1)."""
    load = cluster.partitions.load
    weight = np.ones((len(partition), load.voter.shape[1] + 1))
    weight[:, :-1] = load.voter[partition]
    for by_role, which in (
        (load.non_voter, (role == Role.NON_VOTER) & ~leads), (load.leader, leads),
    ):  # fmt: skip
        if by_role is not load.voter and which.any():
            weight[which, :-1] = by_role[partition[which]]
    return weight


SLACK = 1.0 + 1e-9  # room for the rounding of rates that add up to a bandwidth


@dataclass(frozen=True, eq=False)
class Copies:
    """Of M actions: where each copies from, how much, how long, and when after its change began."""

    moves: Flags  # (M,) whether it copies at all
    source: Ints32  # (M,) node that is copied from; -1 for none
    size: Reals  # (M,) bytes; 0 without a dimension of bytes
    seconds: Reals  # (M,) how long the copy takes

    @classmethod
    def of(
        cls, cluster: Cluster, transitions: TransitionTable, actions: Actions, throttle: Throttle
    ) -> "Copies":
        """Choose sources, the replica itself where it lives, and durations."""
        moves = (actions.action == Action.MOVE) | (actions.action == Action.ADD)
        source = np.where(moves, _sources(cluster, transitions, actions), np.int32(-1))
        size = np.zeros(len(actions))
        if cluster.bytes_dimension >= 0:
            load, p, d = cluster.partitions.load, actions.partition, cluster.bytes_dimension
            size = (
                np.where(actions.votes, load.voter[p, d], load.non_voter[p, d])
                * moves
                * actions.left
            )
        seconds = moves * actions.left
        if throttle.node_bandwidth is not None:
            seconds = size / throttle.node_bandwidth
        return cls(moves, source.astype(np.int32), size, seconds)

    def durations(self, actions: Actions, changes: int) -> Reals:
        """Return how long every change takes, (C,)."""
        longest = np.zeros(changes)
        np.maximum.at(longest, actions.change, self.seconds)
        return longest


def _domains(cluster: Cluster, tier: str) -> Ints32:
    """Return the domain of each node, and -1 for none at the end."""
    return np.append(cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)], -1)


def charge_throttle(
    resources: Resources, cluster: Cluster, throttle: Throttle, actions: Actions, copies: Copies
) -> None:
    """Add to ``resources`` what a throttle allows, and what each copy holds of it."""
    rows = np.flatnonzero(copies.moves)
    change, to, origin = actions.change[rows], actions.target[rows], copies.source[rows]
    nodes = len(cluster.nodes)
    one = np.ones(len(rows))
    rate = np.zeros(len(rows))
    if throttle.node_bandwidth is not None and np.isfinite(throttle.node_bandwidth):
        rate[:] = throttle.node_bandwidth

    def hold(
        name: str, most: float | None, count: int, where: Ints,
        amount: Reals,
    ) -> None:  # fmt: skip
        if most is not None:
            base = resources.add(name, np.full(count, float(most)))
            some = where >= 0
            resources.borrow(base + where[some], change[some], amount[some])

    slack = None if throttle.node_bandwidth is None else throttle.node_bandwidth * SLACK
    for end, where, counts, by_tier in (
        ("in", to, throttle.node_in, throttle.domain_in),
        ("out", origin, throttle.node_out, throttle.domain_out),
    ):
        # at its full rate a copy has a node for itself
        alone = slack is not None and 2.0 * float(rate.min(initial=np.inf)) > slack
        hold(f"node_{end}", None if alone else counts, nodes, where, one)
        hold(f"bandwidth_{end}", slack, nodes, where, rate)
        for tier, most in by_tier.items():
            domain = _domains(cluster, tier)
            away = np.where(domain[origin] != domain[to], domain[where], -1)
            hold(f"{tier}_{end}", most, int(domain.max(initial=-1)) + 1, away, one)
    hold("copies", throttle.copies, 1, np.zeros(len(rows), np.int64), one)


def _sources(cluster: Cluster, transitions: TransitionTable, actions: Actions) -> Ints32:
    """Return the node that each act copies from: its own where it lives, else that of another."""
    live = np.append(cluster.nodes.serves, False)
    own = np.where(live[actions.source], actions.source, np.int32(-1))
    lost = np.flatnonzero(
        (own < 0) & ((actions.action == Action.MOVE) | (actions.action == Action.ADD))
    )
    if len(lost) == 0:
        return own
    row = np.searchsorted(transitions.partition, actions.partition[lost])
    slots = transitions.before.shape[1]
    here = transitions.before[row]
    worth = np.where(live[here], np.where(here == transitions.after[row], 2, 1), 0)
    turned = (np.arange(slots) - actions.partition[lost][:, None]) % max(slots, 1)
    lines, change = np.arange(len(lost)), actions.change[lost]
    # what is copied at once has sources of its own
    turn = (lines - np.searchsorted(change, change)) % np.maximum((worth > 0).sum(1), 1)
    best = np.argsort(turned - worth * slots, axis=1, kind="stable")[lines, turn]
    # by then it may have moved itself, and be on a node that it only goes by
    moving = np.flatnonzero(actions.action == Action.MOVE)
    key = np.sort(actions.replica[moving].astype(np.int64) * (len(actions) + 1) + moving)
    chosen = transitions.replica[row, best]
    begins = np.searchsorted(actions.change, change)
    at = np.searchsorted(key, chosen * (len(actions) + 1) + begins) - 1
    replica, action = np.divmod(np.append(key, -1)[at], len(actions) + 1)
    there = np.where(
        replica == chosen, actions.target[np.minimum(action, len(actions) - 1)], here[lines, best]
    )
    own[lost] = np.where(worth[lines, best] > 0, there, -1)
    # without a live replica the first that comes is new, and the others are copied from it
    new = lost[own[lost] < 0]
    began = np.flatnonzero(np.diff(actions.partition[new], prepend=-1))
    head = new[np.repeat(began, np.diff(np.append(began, len(new))))]
    own[new] = np.where(head < new, actions.target[head], -1)
    return own
