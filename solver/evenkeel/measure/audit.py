"""Audit: find every rule that a placement breaks, from the placement alone.

The audit imports nothing of the methods or the kernels, so that it can judge them; which rules
bind which partition, both take from `measure.binding`. Limits on the
replicas of partitions and of groups in the domains of a tier are checked by the same code: a
*scope* defines the members, their limits, and the replicas that count for each member.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.binding import (
    NONE,
    Binding,
    Demands,
    Scope,
    eligible_domains,
    group_scope,
    lead_ranks,
    nodes_of,
    nodes_that_meet,
    partition_scope,
    read_from,
)
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.rows import at_node, more_often, pinned, replicas_of, stands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Reals, Rows, read_only
from evenkeel.model.rules import LIMITS, REQUIREMENTS, Rule
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.memoize import memoize

Number = TypeVar("Number", bound=np.generic)


class Kind(NamedTuple):
    """One kind of violation."""

    hard: bool  # whether it must not be
    summed: bool  # whether a row counts for its amount (replicas, domains) and not for one
    meaning: str  # description for users


KINDS: dict[str, Kind] = {  # every kind, hard ones first; an audit counts all of them
    "unassigned": Kind(True, True, "replicas wanted that have no node"),
    "on_dead": Kind(True, True, "replicas on nodes that are dead or gone"),
    "not_kept": Kind(True, True, "replicas on live nodes that may keep none"),
    "not_accepted": Kind(True, True, "replicas that joined nodes which accept none"),
    "surplus": Kind(True, True, "replicas beyond those wanted"),
    "min_active": Kind(True, True, "live replicas short of the least a partition needs"),
    "leaderless": Kind(True, True, "partitions without a leader on any node"),
    "leader": Kind(True, True, "leaders on nodes that may not lead, or that are not voters"),
    "forbidden": Kind(True, True, "replicas on nodes where their partition is disabled"),
    "pinned": Kind(True, True, "pinned replicas that left their node"),
    "require": Kind(True, True, "replicas on nodes that a rule excludes"),
    "voters_require": Kind(True, True, "voters on nodes that a rule excludes for voters"),
    "place": Kind(True, True, "replicas short of those wanted on the nodes of an expression"),
    "voters_place": Kind(True, True, "voters short of those wanted on the nodes of an expression"),
    "same_node": Kind(True, True, "replicas too many on one node"),
    "spread": Kind(True, True, "replicas too many in one domain"),
    "min_domains": Kind(True, True, "domains short of the least number"),
    "max_domains": Kind(True, True, "domains beyond the greatest number"),
    "skew": Kind(True, True, "replicas by which domains differ too much"),
    "depends": Kind(True, True, "domains that lack a group which another one there needs"),
    "capacity": Kind(True, False, "nodes over capacity in a dimension"),
    "transient": Kind(True, False, "nodes over capacity in a dimension while replicas move"),
    "tier_capacity": Kind(True, False, "domains over their shared capacity in a dimension"),
    "max_replicas": Kind(True, True, "replicas beyond the most a node takes"),
    **{
        f"soft_{kind}": Kind(False, True, f"as {kind}, for a soft limit")
        for kind in ("same_node", *LIMITS)
    },
    "lead": Kind(False, False, "leaders on a node less preferred than another replica's"),
}

AND = " and "  # between the expressions of a rule that fail together


class Violation(NamedTuple):
    """One row of an audit's table; "" where a column does not apply to this kind.

    Parameters
    ----------
    kind : str
        Key of ``KINDS``.
    hard : bool
        Whether it must not be.
    partition, group, node, tier, domain, dimension : str
        Names of what it concerns.
    amount : float
        Replicas, domains, ranks, or load above capacity in the dimension's unit.
    expression : str
        The expression of a rule that fails, as it was written; all that fail, joined by "and".
    asked : float or None
        The number that is not kept: of a count or a limit, or a capacity in the dimension's unit.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> first = ek.solve(c).audit_before.table()[0]
    >>> first.kind, first.node, first.dimension, first.amount
    ('capacity', 'n0', 'd0', 4.0)
    """

    kind: str
    hard: bool
    partition: str
    group: str
    node: str
    tier: str
    domain: str
    dimension: str
    amount: float
    expression: str = ""
    asked: float | None = None


@dataclass(frozen=True, eq=False)
class Violations:
    """All violations of one kind that one check found; every array is read-only.

    Parameters
    ----------
    kind : str
        Key of ``KINDS``.
    amount : ndarray of float64, shape (n,)
        How much of it.
    partition, group, node, tier, domain, dimension : ndarray of int32, shape (n,)
        Indices of what each concerns; -1 for nothing. A tier is a row of ``domain_with_nodes``.
    asked : ndarray of float64, shape (n,)
        The number that is not kept; NaN where it is none.
    expression : str
        The expression that fails, the same for all; empty where it is none.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> found = ek.solve(c).audit_before.found[0]
    >>> found.kind, found.node.tolist(), found.amount.tolist()
    ('capacity', [0], [4.0])
    """

    kind: str
    amount: Reals
    partition: Ints32
    group: Ints32
    node: Ints32
    tier: Ints32
    domain: Ints32
    dimension: Ints32
    asked: Reals
    expression: str = ""

    @property
    def count(self) -> int:
        """What they add to the count of their kind."""
        return int(self.amount.sum()) if KINDS[self.kind].summed else len(self.amount)

    def take(self, which: Ints) -> "Violations":
        """Return some of them, by their indices."""
        return Violations(
            self.kind,
            read_only(self.amount[which]),
            read_only(self.partition[which]),
            read_only(self.group[which]),
            read_only(self.node[which]),
            read_only(self.tier[which]),
            read_only(self.domain[which]),
            read_only(self.dimension[which]),
            read_only(self.asked[which]),
            self.expression,
        )

    def rows(self, cluster: Cluster) -> list[Violation]:
        """Return them with names.

        Parameters
        ----------
        cluster : Cluster
            The cluster with the names.

        Returns
        -------
        list of Violation
            One per row.
        """
        hard = KINDS[self.kind].hard
        names = (cluster.partitions.names, cluster.partitions.group_names, cluster.nodes.names)
        tiers = [*cluster.topology.tiers, "node"]
        found = []
        for i, (amount, asked) in enumerate(
            zip(self.amount.tolist(), self.asked.tolist(), strict=True)
        ):
            tier, domain = int(self.tier[i]), int(self.domain[i])
            at_node = tier == len(cluster.topology)
            node = domain if at_node else int(self.node[i])
            domain_name = ""
            if domain >= 0 and not at_node:
                domain_name = cluster.topology.domain_name(tier, domain)
            indices = (int(self.partition[i]), int(self.group[i]), node)
            partition, group, holder = (
                one[at] if at >= 0 else "" for one, at in zip(names, indices, strict=True)
            )
            dimension = int(self.dimension[i])
            found.append(
                Violation(
                    self.kind, hard, partition, group, holder,
                    tiers[tier] if tier >= 0 else "", domain_name,
                    cluster.dimensions[dimension] if dimension >= 0 else "", amount,
                    self.expression, None if np.isnan(asked) else asked,
                )
            )  # fmt: skip
        return found


def violations(
    kind: str,
    amount: ArrayLike,
    expression: str = "",
    /,
    *,
    asked: ArrayLike = np.nan,
    partition: ArrayLike = -1,
    group: ArrayLike = -1,
    node: ArrayLike = -1,
    tier: ArrayLike = -1,
    domain: ArrayLike = -1,
    dimension: ArrayLike = -1,
) -> list[Violations]:
    """Gather what a check found, with indices of what it concerns; an empty list for nothing."""
    amounts = np.asarray(amount, np.float64)
    if len(amounts) == 0:
        return []

    def column(index: ArrayLike) -> Ints32:
        return _of_length(index, np.int32, len(amounts))

    return [
        Violations(
            kind, read_only(amounts), column(partition), column(group), column(node),
            column(tier), column(domain), column(dimension),
            _of_length(asked, np.float64, len(amounts)), expression,
        )
    ]  # fmt: skip


def _of_length(value: ArrayLike, kind: type[Number], length: int) -> NDArray[Number]:
    """Give a single value to every row, or take an array as it is."""
    return read_only(np.asarray(value, kind) if np.ndim(value) else np.full(length, value, kind))


# relative excess that is rounding: one unit in 4e9 is above it, the drift of sums below
TOLERANCE = 1e-11


def overloads(placed: PlacementCounts, before: Placement) -> list[Violations]:
    """Find nodes and domains that carry more than they can; dead nodes carry nothing."""
    cluster, loads = placed.cluster, placed.loads
    nodes = cluster.nodes
    serving = (nodes.alive | nodes.keeps) & ~nodes.gone
    found = _over("capacity", "node", loads, nodes.capacity, serving)
    if cluster.transient.any():
        held = held_loads(cluster, before, placed.placement)
        # a node over capacity is reported once
        steady = _exceeds(loads, nodes.capacity)
        both = np.where(steady | (held == 0.0), 0.0, loads + held)
        if _exceeds(both, nodes.capacity).any():
            # a node that came too full carries no more than that until its replicas have left
            came = PlacementCounts.of(cluster, before).loads
            both = np.where(_exceeds(both, came), both, 0.0)
        found += _over("transient", "node", both, nodes.capacity, serving)
    for tier, capacity in cluster.topology.tier_capacity.items():
        row = cluster.topology.tier_index(tier)
        domain = cluster.topology.domain[row]
        counted = serving & (domain >= 0)
        shared = np.zeros(capacity.shape)
        np.add.at(shared, domain[counted], loads[counted])
        every = np.ones(len(capacity), bool)
        found += _over("tier_capacity", "domain", shared, capacity, every, tier=row)
    crowded = np.where(serving & (nodes.max_replicas >= 0), placed.replicas - nodes.max_replicas, 0)
    bad = np.flatnonzero(crowded > 0)
    return found + violations("max_replicas", crowded[bad], asked=nodes.max_replicas[bad], node=bad)


def held_loads(cluster: Cluster, before: Placement, after: Placement) -> Reals:
    """Return the load that leaving replicas still put on their initial nodes."""
    load = cluster.partitions.load
    leaving = _leaving(before, after)
    leaving = leaving[cluster.nodes.alive[before.node[leaving]]]
    owner = before.owner[leaving]
    weight = load.voter[owner]
    other = before.role[leaving] == Role.NON_VOTER
    weight[other] = load.non_voter[owner[other]]
    ends = (before.leader_replica[owner] == leaving) & (after.leader_node[owner] < 0)
    weight[ends] = np.minimum(weight, load.leader[owner])[ends]  # no other leads it before it goes
    held = np.zeros(cluster.nodes.capacity.shape)
    for d in np.flatnonzero(cluster.transient):
        held[:, d] = np.bincount(before.node[leaving], weight[:, d], len(held))
    return held


def _leaving(before: Placement, after: Placement) -> Rows:
    """Return the replicas that leave: of those that share a node, as many as are fewer there."""
    alike = np.array_equal(before.first, after.first)
    moved = before.node != after.node if alike else np.ones(len(before.node), bool)
    changed = np.zeros(len(before), bool)
    changed[before.owner[moved]] = True
    was = np.flatnonzero(changed[before.owner] & (before.node >= 0))
    now = np.flatnonzero(changed[after.owner] & (after.node >= 0))
    nodes = 1 + int(max(before.node.max(initial=0), after.node.max(initial=0)))
    place = before.owner[was].astype(np.int64) * nodes + before.node[was]
    stay = np.sort(after.owner[now].astype(np.int64) * nodes + after.node[now])
    order = np.lexsort((moved[was], place))  # those that keep their slot stay first
    was, place = was[order], place[order]
    turn = np.arange(len(place)) - np.searchsorted(place, place)
    staying = np.searchsorted(stay, place, "right") - np.searchsorted(stay, place)
    leaving: Rows = np.sort(was[turn >= staying])
    return leaving


def _exceeds(loads: Reals, capacity: Reals) -> Flags:
    return loads > capacity * (1.0 + TOLERANCE)


def _over(
    kind: str, column: str, loads: Reals, capacity: Reals, counted: Flags, tier: int = -1
) -> list[Violations]:
    """Find the rows that count and carry more than they can, dimension by dimension."""
    where, dimension = np.nonzero(_exceeds(loads, capacity) & counted[:, None])
    excess = loads[where, dimension] - capacity[where, dimension]
    return violations(
        kind, excess, asked=capacity[where, dimension], tier=tier, dimension=dimension,
        **{column: where},
    )  # fmt: skip


def _joined_closed(before: Placement, after: Placement, closed: Flags) -> list[Violations]:
    """Return the replicas by which partitions have more on nodes that accept none (N,)."""
    pairs = [
        one.owner[rows].astype(np.int64) * len(closed) + one.node[rows]
        for one in (before, after)
        for rows in [np.flatnonzero(at_node(closed, one.node))]
    ]
    there, more = more_often(*pairs)
    partition, node = np.divmod(there, len(closed))
    return violations("not_accepted", more, partition=partition, node=node)


def misplaced_replicas(placed: PlacementCounts, before: Placement) -> list[Violations]:
    """Find replicas that are missing, too many, or where they may not be."""
    cluster, placement = placed.cluster, placed.placement
    nodes = cluster.nodes
    serves = nodes.serves
    found = []
    for kind, banned in (
        ("on_dead", ~nodes.may_hold & ~serves),
        ("not_kept", ~nodes.may_hold & serves),
    ):
        if placed.replicas[banned].any():
            bad = placed.where(banned)
            found += violations(
                kind, np.ones(len(bad)), partition=placed.partition(bad),
                node=placed.node_row[bad] - 1,
            )  # fmt: skip
    closed = nodes.may_hold & ~nodes.accepts
    if placed.replicas[closed].any():
        found += _joined_closed(before, placement, closed)
    found += _wrong_number(placed)
    if cluster.partitions.min_active.any():
        short = cluster.partitions.min_active - placed.per_partition(serves)
        bad = np.flatnonzero(short > 0)
        found += violations("min_active", short[bad], partition=bad)
    if len(cluster.forbidden):
        partition, node = cluster.forbidden.T
        hit = stands(placement, partition, node)
        found += violations(
            "forbidden", np.ones(int(hit.sum())), partition=partition[hit], node=node[hit]
        )
    if before.flags.any():
        owner, node = pinned(before)
        left = ~stands(placement, owner, node)
        found += violations(
            "pinned", np.ones(int(left.sum())), partition=owner[left], node=node[left]
        )
    return found


def misplaced_in_rows(cluster: Cluster, placement: Placement, replicas: Ints64) -> list[Violations]:
    """Find the same, and leaderless partitions, if only ``replicas (n,)`` are on dead nodes."""
    serves = cluster.nodes.serves
    waits = np.sort(replicas)
    owner = placement.owner[waits]
    found = violations("on_dead", np.ones(len(waits)), partition=owner, node=placement.node[waits])
    partitions = owner[np.append(True, owner[1:] != owner[:-1])]
    least = cluster.partitions.min_active[partitions]
    if least.any():
        row, which = replicas_of(placement, partitions)
        live = np.bincount(which[at_node(serves, placement.node[row])], minlength=len(partitions))
        bad = least > live
        found += violations("min_active", (least - live)[bad], partition=partitions[bad])
    bad = (cluster.partitions.replicas[partitions] > 0) & (placement.leader[partitions] < 0)
    if bad.any() and has_leaders(cluster):
        found += violations("leaderless", np.ones(int(bad.sum())), partition=partitions[bad])
    return found


def misplaced_leaders(placed: PlacementCounts) -> list[Violations]:
    """Find partitions without a leader, and leaders that may not lead."""
    cluster, placement = placed.cluster, placed.placement
    found = []
    wanted = cluster.partitions.replicas > 0
    at = placement.leader_node
    if placed.leaders.sum() < len(wanted) and has_leaders(cluster):
        bad = np.flatnonzero(wanted & (at < 0))
        found += violations("leaderless", np.ones(len(bad)), partition=bad)
    unfit = np.zeros(len(at), bool)
    banned = ~cluster.nodes.may_lead
    if placed.leaders[banned].any():
        unfit |= at_node(banned, at)
    if placement.role.any():
        led = np.flatnonzero(at >= 0)
        unfit[led] |= placement.role[placement.leader_replica[led]] != Role.VOTER
    bad = np.flatnonzero(unfit)
    return found + violations("leader", np.ones(len(bad)), partition=bad, node=at[bad])


def _wrong_number(placed: PlacementCounts) -> list[Violations]:
    """Find partitions with fewer replicas than wanted, or with more that may stay."""
    placement = placed.placement
    wanted = placed.cluster.partitions.replicas
    full = placed.uniform and placed.replicas.sum() == len(placement.node)
    if full and (wanted == placement.slots).all():
        return []
    short = wanted - placed.tallied(placed.node_row > 0)
    bad = np.flatnonzero(short > 0)
    found = violations("unassigned", short[bad], partition=bad)
    over = placed.holding - wanted
    bad = np.flatnonzero(over > 0)
    return found + violations("surplus", over[bad], partition=bad)


def broken_terms(placed: PlacementCounts) -> list[Violations]:
    """Find replicas and voters on excluded nodes, too few on wanted ones, and misplaced leaders."""
    cluster, placement = placed.cluster, placed.placement
    found = []
    scope = partition_scope(cluster)
    for q, demands in enumerate(scope.demands):
        if not (demands.terms or demands.lead):
            continue
        partitions = np.flatnonzero(scope.rule == q)
        for rule in demands.written:
            found += _excluded(cluster, placement, rule, partitions)
        found += _short_of(cluster, placement, scope, demands, partitions)
        found += _less_preferred(cluster, placement, demands, partitions)
    if (cluster.partitions.group_rule >= 0).any():
        scope = group_scope(cluster)
        for q, demands in enumerate(scope.demands):
            members = np.flatnonzero(scope.rule == q)
            found += _short_of(cluster, placement, scope, demands, members)
    return found


def _excluded(
    cluster: Cluster, placement: Placement, rule: Rule, partitions: Rows
) -> list[Violations]:
    """Find replicas of some partitions on nodes that a rule excludes, by what they fail."""
    found = []
    for kind, voters in REQUIREMENTS.items():
        texts = getattr(rule, kind)
        if not texts:
            continue
        fails = np.array([~nodes_that_meet(cluster, [text]) for text in texts])
        replicas, which = replicas_of(placement, partitions)
        bad = at_node(np.logical_or.reduce(fails), placement.node[replicas])
        if voters:
            bad &= placement.role[replicas] == Role.VOTER
        node, partition = placement.node[replicas[bad]], partitions[which[bad]]
        ways, way = np.unique(fails[:, node], axis=1, return_inverse=True)
        for i, failed in enumerate(ways.T):
            at = way.reshape(-1) == i
            broken = AND.join(text for text, fail in zip(texts, failed, strict=True) if fail)
            found += violations(
                kind, np.ones(int(at.sum())), broken, partition=partition[at],
                node=node[at],
            )  # fmt: skip
    return found


def _short_of(
    cluster: Cluster, placement: Placement, scope: Scope, demands: Demands, members: Rows
) -> list[Violations]:
    """Find members of a scope with fewer replicas on the nodes of an expression than demanded."""
    if len(members) == 0 or not demands.counted:
        return []
    parts = cluster.partitions
    place = np.full(len(scope.rule), -1)
    place[members] = np.arange(len(members))
    member = np.arange(len(parts)) if scope.column == "partition" else parts.group
    partitions = np.flatnonzero(place[member] >= 0)
    replicas, which = replicas_of(placement, partitions)
    who = place[member[partitions[which]]]
    voter = placement.role[replicas] == Role.VOTER
    found = []
    for term in demands.counted:
        inside = at_node(nodes_of(cluster, term), placement.node[replicas])
        if term.voters:
            inside &= voter
        short = term.least - np.bincount(who[inside], minlength=len(members))
        bad = np.flatnonzero((short > 0) & scope.wanted[members])
        found += violations(
            term.kind, short[bad], term.text, asked=term.least, **{scope.column: members[bad]}
        )
    return found


def _less_preferred(
    cluster: Cluster, placement: Placement, demands: Demands, partitions: Rows
) -> list[Violations]:
    """Find leaders on a node ranked behind that of another voter which could lead."""
    lead = demands.lead
    if not lead:
        return []
    rank = np.append(lead_ranks(cluster, lead), len(lead))
    replicas, which = replicas_of(placement, partitions)
    node = placement.node[replicas]
    fit = at_node(cluster.nodes.may_lead, node) & (placement.role[replicas] == Role.VOTER)
    best = np.full(len(partitions), len(lead))
    np.minimum.at(best, which[fit], rank[node[fit]])
    leader = placement.leader_node[partitions]
    behind = np.where(leader >= 0, rank[leader] - best, 0)
    found = []
    for choice in np.unique(best[behind > 0]).tolist():
        bad = np.flatnonzero((behind > 0) & (best == choice))
        found += violations(
            "lead", behind[bad], lead[choice], partition=partitions[bad],
            node=leader[bad],
        )  # fmt: skip
    return found


FEW_SLOTS = 8  # rows up to this long are compared slot with slot

DENSE = 16  # replicas are counted in a table while it has at most so many entries for each of them


def broken_limits(placed: PlacementCounts) -> list[Violations]:
    """Find every limit, hard or soft, of a partition or a group that a placement breaks."""
    cluster = placed.cluster
    # of the nodes' state only the skew depends: whether a domain has a node that may hold anything
    nodes = cluster.nodes if any(rule.skew for rule in cluster.rules) else None
    of = nodes, cluster.partitions, *read_from(cluster)
    return list(memoize(placed, "broken limits", lambda: _all_broken(placed), *of))


def _all_broken(placed: PlacementCounts) -> list[Violations]:
    cluster, placement = placed.cluster, placed.placement
    found = []
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        row = cluster.topology.tier_index(binding.tier)
        domain = cluster.topology.domain_with_nodes[row]
        members = suspects(placed, binding, row)
        if len(members):
            replicas, which = replicas_of(placement, members)
            where = domain_of(domain, placement.node[replicas])
            found += _broken(cluster, scope, binding, row, members, which, where)
    if (cluster.partitions.group_rule >= 0).any():
        scope = group_scope(cluster)
        group = cluster.partitions.group.take(placement.owner)
        for binding in scope.bindings:
            row = cluster.topology.tier_index(binding.tier)
            members = np.flatnonzero(binding.amount != NONE)
            place = np.full(len(scope.rule), -1)
            place[members] = np.arange(len(members))
            replicas = np.flatnonzero(place[group] >= 0)
            domain = cluster.topology.domain_with_nodes[row]
            where = domain_of(domain, placement.node[replicas])
            found += _broken(cluster, scope, binding, row, members, place[group[replicas]], where)
    return found


def suspects(placed: PlacementCounts, binding: Binding, row: int) -> Rows:
    """Return the partitions that may break a limit: those a cheap look does not clear."""
    bound = binding.amount != NONE
    slots = placed.placement.slots
    if slots is None or not 0 < slots <= FEW_SLOTS or binding.kind == "skew":
        return np.flatnonzero(bound)
    topology = placed.cluster.topology
    domain = topology.domain_with_nodes[row]
    earlier, inside = memoize(placed, f"repeats {row}", lambda: _repeats(placed, domain), topology)
    if binding.kind == "spread":
        return np.flatnonzero((earlier.max(0) >= binding.amount) & bound)
    distinct = ((earlier == 0) & inside).sum(0)
    if binding.kind == "min_domains":
        return np.flatnonzero((distinct < binding.amount) & bound)
    if binding.kind == "max_domains":
        return np.flatnonzero((distinct > binding.amount) & bound)
    assert_never(binding.kind)


def _repeats(placed: PlacementCounts, domain: Ints32) -> tuple[NDArray[np.int8], Flags]:
    """Count for each slot the earlier ones in its domain; mark slots in any domain; (R, P) both."""
    partitions = len(placed.placement)
    at = np.append(np.int32(-1), domain).take(placed.node_row).reshape(-1, partitions)
    inside = at >= 0
    earlier = np.zeros(at.shape, np.int8)
    for i in range(1, len(at)):
        for j in range(i):
            # a slot without a domain is its own, and equals no other
            earlier[i] += ((at[i] == at[j]) & inside[i]).view(np.int8)
    return earlier, inside


def domain_of(domain: Ints32, node: Ints32) -> Ints32:
    """Return the domain of each node given; -1 for no node or none."""
    # node -1 reads the last entry
    return np.append(domain, np.int32(-1)).take(node)


def _broken(
    cluster: Cluster,
    scope: Scope,
    binding: Binding,
    row: int,
    members: Rows,
    which: Rows,
    where: Ints32,
) -> list[Violations]:
    """Judge some members: their replica i is of ``members[which[i]]``, in domain ``where[i]``."""
    inside = where >= 0
    domains = int(cluster.topology.domain_count[row])
    who, at, count = count_by_domain(which[inside], where[inside], len(members), domains)
    amount = binding.amount[members]
    if binding.kind == "spread":
        over = count - amount[who]
        bad = np.flatnonzero(over > 0)
        return violations(
            binding.violation, over[bad], asked=amount[who[bad]], tier=row, domain=at[bad],
            **{scope.column: members[who[bad]]},
        )  # fmt: skip
    if binding.kind == "skew":
        unfit = _skew(cluster, scope, row, members, who, at, count) - amount
    elif binding.kind == "max_domains":
        unfit = np.bincount(who, minlength=len(members)) - amount
    elif binding.kind == "min_domains":
        short = amount - np.bincount(who, minlength=len(members))
        unfit = np.where(scope.wanted[members], short, 0)
    else:
        assert_never(binding.kind)
    bad = np.flatnonzero(unfit > 0)
    return violations(
        binding.violation, unfit[bad], asked=amount[bad], tier=row, **{scope.column: members[bad]}
    )


def count_by_domain(
    which: Ints, where: Ints, members: int, domains: int
) -> tuple[Ints64, Ints64, Ints64]:
    """Count replicas per member and domain."""
    key = which.astype(np.int64) * domains + where
    if members * domains <= DENSE * len(key):
        table = np.bincount(key, minlength=members * domains)
        pair = np.flatnonzero(table)
        count = table[pair]
    else:
        pair, count = np.unique(key, return_counts=True)
    who, at = np.divmod(pair, max(domains, 1))
    return who, at, count


def _skew(
    cluster: Cluster, scope: Scope, row: int, members: Rows, who: Ints64, at: Ints64, count: Ints64
) -> Ints64:
    """Fullest domain of each member minus the emptiest that holds a node open to it; (members,)."""
    eligible = eligible_domains(cluster, scope, row)
    rule = scope.rule[members]
    most = np.zeros(len(members), np.int64)
    np.maximum.at(most, who, count)
    counts = eligible[rule[who], at]
    touched = np.bincount(who[counts], minlength=len(members))
    least = most.copy()
    np.minimum.at(least, who[counts], count[counts])
    empty = touched < eligible.sum(1)[rule]
    least[empty] = 0
    somewhere = np.flatnonzero(eligible.sum(1) > 0)
    return np.where(np.isin(rule, somewhere), most - least, 0)


# audits that a cluster keeps, and the replicas up to which it does: on small ones, many steps audit
# the same placement
KEPT, MOST_KEPT = 8, 10_000


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that a placement breaks.

    Parameters
    ----------
    cluster : Cluster
        Its rules are audited.
    found : tuple of Violations
        What each check found, as arrays; empty where all is well.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> found = ek.solve(c).audit_before
    >>> found.ok, found.hard
    (False, 1)
    """

    cluster: Cluster
    found: tuple[Violations, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each kind is broken; every kind of ``KINDS`` is there."""
        counts = dict.fromkeys(KINDS, 0)
        for one in self.found:
            counts[one.kind] += one.count
        return counts

    @property
    def hard(self) -> int:
        """How often hard rules are broken."""
        return sum(count for kind, count in self.counts.items() if KINDS[kind].hard)

    @property
    def soft(self) -> int:
        """Number of broken soft rules."""
        return sum(count for kind, count in self.counts.items() if not KINDS[kind].hard)

    @property
    def ok(self) -> bool:
        """Whether no hard rule is broken."""
        return self.hard == 0

    def table(self, kind: str | None = None) -> list[Violation]:
        """Return the violations with names.

        Parameters
        ----------
        kind : str, optional
            Only those of this kind; all by default.

        Returns
        -------
        list of Violation
            In the order of the checks.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        if kind is not None and kind not in KINDS:
            raise ValueError(f"no such kind of violation: {kind!r}; known: {list(KINDS)}")
        return [
            row for one in self.found if kind in (None, one.kind) for row in one.rows(self.cluster)
        ]

    def worse_than(self, other: "Audit") -> bool:
        """Return whether more hard rules are broken than in another, or as many and more soft ones.

        Parameters
        ----------
        other : Audit
            Of the same cluster.

        Returns
        -------
        bool
            True if the other placement is the better one.
        """
        return (self.hard, self.soft) > (other.hard, other.soft)

    def __repr__(self) -> str:
        broken = {kind: count for kind, count in self.counts.items() if count}
        return f"<Audit: {broken or 'no rule broken'}>"


def audit(cluster: Cluster, placement: Placement, before: Placement | None = None) -> Audit:
    """Count every rule, hard or soft, that a placement breaks.

    Parameters
    ----------
    cluster : Cluster
        The rules, and the wanted replicas.
    placement : Placement
        The placement to judge.
    before : Placement, optional
        Where moved and pinned replicas come from; the cluster's own placement by default.

    Returns
    -------
    Audit
        Counts per kind, and where.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0], [9.0]], load=[[2.0]] * 2, placement=[[0], [1]])
    >>> found = audit(c, c.placement)
    >>> found.hard, found.counts["capacity"], found.table()[0].node
    (1, 1, 'n0')
    """
    if before is not None or len(placement.node) > MOST_KEPT:
        return _audited(cluster, placement, before)
    kept: deque[tuple[bytes, Placement, Audit]] = memoize(
        cluster, "audits", lambda: deque(maxlen=KEPT)
    )
    # a search may change the arrays later on, so what they hold is compared, and not they
    held = placement.node.tobytes() + placement.leader.tobytes()
    for was, one, found in kept:
        alike = one.first is placement.first and one.role is placement.role
        if was == held and alike and one.flags is placement.flags:
            return found
    found = _audited(cluster, placement, before)
    kept.appendleft((held, placement, found))
    return found


def _audited(cluster: Cluster, placement: Placement, before: Placement | None) -> Audit:
    """Count what a placement breaks, anew."""
    start = cluster.placement if before is None else before
    placed = PlacementCounts.of(cluster, placement)
    found = misplaced_replicas(placed, start)
    for judge in (misplaced_leaders, broken_limits, broken_terms):
        beat()
        found += judge(placed)
    found += overloads(placed, start)
    if len(cluster.depends):
        found += missing_neighbours(placed)
    return Audit(cluster, tuple(found))


def missing_neighbours(placed: PlacementCounts) -> list[Violations]:
    """Find domains that hold a replica of a group, but none of a group that it needs there."""
    found: list[Violations] = []
    cluster, placement = placed.cluster, placed.placement
    group = cluster.partitions.group.take(placement.owner)
    for row in np.unique(cluster.depends[:, 2]).tolist():
        pairs = np.unique(cluster.depends[cluster.depends[:, 2] == row, :2], axis=0)
        tied = np.unique(pairs)
        number = np.full(len(cluster.partitions.group_names), -1)
        number[tied] = np.arange(len(tied))
        where = domain_of(cluster.topology.domain_with_nodes[row], placement.node)
        counted = (number[group] >= 0) & (where >= 0)
        domains = int(cluster.topology.domain_count[row])
        who, at, _ = count_by_domain(number[group[counted]], where[counted], len(tied), domains)
        # for every pair, the domains that its first group is in
        one, other = number[pairs].T
        start, end = np.searchsorted(who, one), np.searchsorted(who, one, side="right")
        which = np.repeat(np.arange(len(pairs)), end - start)
        laid = np.cumsum(end - start) - (end - start)
        domain = at[np.arange(len(which)) + (start - laid)[which]]
        lacks = ~np.isin(other[which] * domains + domain, who * domains + at)
        found += violations(
            "depends",
            np.ones(int(lacks.sum())),
            group=pairs[which[lacks], 0],
            tier=row,
            domain=domain[lacks],
        )
    return found


def soft_cost(cluster: Cluster, audited: Audit) -> float:
    """Add up weight x amount of all soft limits that are broken, and 1 for each worse leader."""
    limits = [limit for rule in cluster.rules for limit in rule.limits()]
    if all(limit.hard or limit.weight == 1.0 for limit in limits):
        return float(audited.soft)
    cost = float(audited.counts["lead"])
    for one in audited.found:
        if KINDS[one.kind].hard or not KINDS[one.kind].summed or not len(one.amount):
            continue
        tiers = (*cluster.topology.tiers, "node")
        tier = tiers[one.tier[0]]  # each broken limit is of one
        for scope, member in (
            (partition_scope(cluster), one.partition),
            (group_scope(cluster), one.group),
        ):
            whose = np.flatnonzero(member >= 0)
            weight = _weights(scope, one.kind, tier)[member[whose]]
            cost += float((weight * one.amount[whose]).sum())
    return cost


def _weights(scope: Scope, kind: str, tier: str) -> Reals:
    """Return the weight of each member's soft limit of a kind on a tier, (E,)."""
    for binding in scope.bindings:
        if (binding.violation, binding.tier) == (kind, tier):
            return binding.weight
    return np.zeros(len(scope.rule))
