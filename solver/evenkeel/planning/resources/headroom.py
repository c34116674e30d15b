"""Resources of actions: headroom of nodes and domains, and copies under a throttle."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.list_scheduler import Resources
from evenkeel.planning.throttle import Throttle

ROUNDING = 1e-12
"""Relative excess over a capacity that is rounding."""


BLOCK = 1 << 15
"""Actions that are charged in one go, so that what is worked out for them stays small."""


@dataclass(frozen=True, eq=False)
class Effects:
    """What E nodes carry of one partition before, at most during, and after an act; (E, D) each.

    The last dimension counts replicas.
    """

    action: NDArray[np.intp]
    node: NDArray[np.int32]
    before: NDArray[np.float64]
    peak: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shifts:
    """By how much changes make nodes fuller, (E, D), negative where they relieve them."""

    change: NDArray[np.int32]
    node: NDArray[np.int32]
    amount: NDArray[np.float64]


def charge_space(
    resources: Resources,
    cluster: Cluster,
    target: Placement,
    actions: Actions,
    split: NDArray[np.bool_],
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


def _carried(cluster: Cluster, placement: Placement) -> NDArray[np.float64]:
    """Return load and number of replicas of every node, (N, D + 1)."""
    placed = PlacementCounts.of(cluster, placement)
    return np.column_stack([placed.loads, placed.replicas.astype(np.float64)])


@dataclass(frozen=True, eq=False)
class Room:
    """What is free of places of one kind, a row each, and the resource that it begins with."""

    base: int
    free: NDArray[np.float64]

    def charge(
        self,
        resources: Resources,
        change: NDArray[np.integer],
        where: NDArray[np.integer],
        before: NDArray[np.float64],
        peak: NDArray[np.float64],
        after: NDArray[np.float64],
    ) -> None:
        """Charge changes for what they add to places, leaving out what has no limit there."""
        width = self.free.shape[1]
        bound = np.isfinite(self.free).take(where, axis=0)
        for amount, charge in ((peak - before, resources.claim), (peak - after, resources.give)):
            row, column = np.nonzero(bound & (amount > 0.0))
            charge(self.base + where[row].astype(np.int64) * width + column, change[row],
                   amount[row, column])  # fmt: skip


def _add_nodes(
    resources: Resources, cluster: Cluster, start: NDArray[np.float64], end: NDArray[np.float64]
) -> Room:
    nodes = cluster.nodes
    most = np.where(nodes.max_replicas < 0, np.inf, nodes.max_replicas)
    capacity = np.column_stack([nodes.capacity, most])
    capacity[~cluster.nodes.carries] = np.inf
    held = np.maximum(capacity, end)
    with np.errstate(invalid="ignore"):
        free = held * (1.0 + ROUNDING) - start
    return Room(resources.add("node", free), free)


def _add_domains(
    resources: Resources,
    cluster: Cluster,
    tier: str,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
) -> tuple[Room, NDArray[np.int32]]:
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
    domain: NDArray[np.int32],
    actions: Actions,
    effects: Effects,
    split: NDArray[np.bool_],
) -> None:
    """Charge the room that domains share; what stays inside is no load of them.

    That goes for leads, too, which are not among the effects: they are handed over at one instant,
    so a domain has one at a time.
    """
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


def _gives(cluster: Cluster, actions: Actions) -> NDArray[np.uint8]:
    """Return the role of who hands over: voters, but for leaders that came in without a vote."""
    start = cluster.placement
    first = (actions.next_leader >= 0) & (
        actions.next_leader == start.leader_replica[actions.partition]
    )
    return np.where(first, start.role[actions.next_leader], np.uint8(Role.VOTER))


def _holders(actions: Actions) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the nodes that lead before actions, and after; -1 for no matter."""
    led = np.where(actions.led, actions.source, actions.next_leader_node)
    return led, np.where(actions.leads, actions.target, np.int32(-1))


def effects_of(cluster: Cluster, actions: Actions, *, leads: bool = True) -> Effects:
    """Return what actions do to nodes: joined, left, stood on, and of who hands over.

    The last weighs what others do unless leads count.
    """
    nothing, role, in_place = np.zeros(len(actions), bool), actions.role, actions.stays
    plain = _weights(cluster, actions.partition, role, nothing)
    led = _weights(cluster, actions.partition, actions.was, actions.led)
    settled = _weights(cluster, actions.partition, role, actions.leads)
    voting = _weights(cluster, actions.partition, np.zeros_like(role), nothing)
    given = _weights(cluster, actions.partition, _gives(cluster, actions), nothing)
    leading = _weights(cluster, actions.partition, role, ~nothing) if leads else given
    found = []

    def add(
        which: NDArray[np.bool_],
        node: NDArray[np.int32],
        before: NDArray[np.float64] | None,
        between: NDArray[np.float64],
        after: NDArray[np.float64] | None,
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


def in_flight(cluster: Cluster, actions: Actions) -> NDArray[np.float64]:
    """Return what copies that are under way weigh on the nodes that they come to, (n, D + 1)."""
    weight = _weights(cluster, actions.partition, actions.was, np.zeros(len(actions), bool))
    counts = np.append(cluster.transient, True) | (actions.action == Action.ADD)[:, None]
    return np.where(counts, weight, 0.0)


def _weights(
    cluster: Cluster,
    partition: NDArray[np.int32],
    role: NDArray[np.uint8],
    leads: NDArray[np.bool_],
) -> NDArray[np.float64]:
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


SLACK = 1.0 + 1e-9
"""Room for the rounding of rates that add up to a bandwidth."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Of M actions: where each copies from, how much, how long, and when after its change began."""

    moves: NDArray[np.bool_]  # (M,) whether it copies at all
    source: NDArray[np.int32]  # (M,) node that is copied from; -1 for none
    size: NDArray[np.float64]  # (M,) bytes; 0 without a dimension of bytes
    seconds: NDArray[np.float64]  # (M,) how long the copy takes

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

    def durations(self, actions: Actions, changes: int) -> NDArray[np.float64]:
        """Return how long every change takes, (C,)."""
        longest = np.zeros(changes)
        np.maximum.at(longest, actions.change, self.seconds)
        return longest


def crosses(
    cluster: Cluster, tier: str, source: NDArray[np.integer], target: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Whether copies go from one domain of a tier to another."""
    domain = _domains(cluster, tier)
    return np.asarray(domain[source] != domain[target])


def _domains(cluster: Cluster, tier: str) -> NDArray[np.int32]:
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
        name: str, most: float | None, count: int, where: NDArray[np.integer],
        amount: NDArray[np.float64],
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
            away = np.where(crosses(cluster, tier, origin, to), domain[where], -1)
            hold(f"{tier}_{end}", most, int(domain.max(initial=-1)) + 1, away, one)
    hold("copies", throttle.copies, 1, np.zeros(len(rows), np.int64), one)


def _sources(cluster: Cluster, transitions: TransitionTable, actions: Actions) -> NDArray[np.int32]:
    """Return the node that each act copies from: its own where it lives, else that of another.

    Others that stay are asked before those that go; which of them turns with the partition.
    """
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
    best = np.argmax(worth * slots - turned, axis=1)
    lines = np.arange(len(lost))
    # by then it may have moved itself, and be on a node that it only goes by
    moving = np.flatnonzero(actions.action == Action.MOVE)
    key = np.sort(actions.replica[moving].astype(np.int64) * (len(actions) + 1) + moving)
    chosen = transitions.replica[row, best]
    begins = np.searchsorted(actions.change, actions.change[lost])
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
