"""Rules of whole groups, as resources that their partitions share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import eligible_domains, group_scope, nodes_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.rules import Term
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.safety import serving_domains
from evenkeel.planning.list_scheduler import Resources


def charge_groups(
    resources: Resources, cluster: Cluster, target: Placement, actions: Actions
) -> None:
    """Add what groups may have per domain, and lack on the nodes of an expression.

    A replica that serves counts at both ends of its move where a group may have too many, and at
    neither where it may have too few. What one end breaks is not held.
    """
    scope = group_scope(cluster)
    for q in np.unique(scope.rule).tolist():
        demands, bound = scope.demands[q], scope.rule == q
        for limit in demands.limits:
            if limit.hard and limit.kind == "spread":
                _charge_spread(resources, cluster, target, actions, bound, limit.tier, limit.amount)
        for term in demands.counted:
            _charge_least(resources, cluster, target, actions, bound, term)


def _counts(
    cluster: Cluster, placement: Placement, where: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Count the replicas of every group in each place, (G, size); -1 is no place."""
    group = cluster.partitions.group[placement.owner].astype(np.int64)
    groups = len(cluster.partitions.group_names)
    inside = where >= 0
    key = group[inside] * size + where[inside]
    return np.bincount(key, minlength=groups * size).reshape(groups, size)


def _charge_spread(
    resources: Resources,
    cluster: Cluster,
    target: Placement,
    actions: Actions,
    bound: NDArray[np.bool_],
    tier: str,
    most: int,
) -> None:
    topology = cluster.topology
    row = topology.tier_index(tier)
    size = int(topology.domain_count[row])
    domain = serving_domains(cluster, row).astype(np.int64)
    start, end = (
        _counts(cluster, one, domain[one.node], size) for one in (cluster.placement, target)
    )
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
    bound: NDArray[np.bool_],
    term: Term,
) -> None:
    inside = np.append(nodes_of(cluster, term) & cluster.nodes.serves, False)

    def having(placement: Placement) -> NDArray[np.int64]:
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


Counts = dict[int, dict[int, NDArray[np.int64]]]
"""Of each tier how many replicas each group has in its domains."""


@dataclass(frozen=True, eq=False)
class Tie:
    """A rule of a group: of what domains of a tier it touches, or of the group that it needs.

    Of domains those that are open count: to a skew those that may be used, to a need those in which
    both ends meet it.
    """

    kind: str
    group: int
    tier: int
    amount: int
    other: int
    is_open: NDArray[np.bool_]

    def kept(self, counts: NDArray[np.int64] | Mapping[int, NDArray[np.int64]]) -> bool:
        """Whether it is kept where each group has so many replicas per domain."""
        mine = counts[self.group]
        if self.kind == "depends":
            return not ((mine > 0) & (counts[self.other] == 0) & self.is_open).any()
        if self.kind == "skew":
            least = int(mine[self.is_open].min(initial=2**31))
            return not self.is_open.any() or int(mine.max()) - least <= self.amount
        touched = int(np.count_nonzero(mine))
        return touched <= self.amount if self.kind == "max_domains" else touched >= self.amount


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
        {tier: _counts_after(cluster, placement, tier) for tier in tiers}
        for placement in (cluster.placement, target)
    ]
    found = [one for one in found if all(one.kept(end[one.tier]) for end in ends)]
    for g, h, tier in cluster.depends.tolist():
        lacks = [(end[tier][g] > 0) & (end[tier][h] == 0) for end in ends]
        found.append(Tie("depends", g, tier, 0, h, ~(lacks[0] | lacks[1])))
    return found


def tied(
    cluster: Cluster,
    target: Placement,
    actions: Actions,
    by_rank: NDArray[np.int32],
    previous: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the change before each one, (C,), and which have no place in any order found.

    Changes of tied groups come one after another, each of them in the first round in which the
    rules of its group admit it: what is exchanged counts where it is to stay.
    """
    held = ties(cluster, target)
    blocked = np.zeros(len(by_rank), bool)
    if not held:
        return previous, blocked
    label = _components(len(cluster.partitions.group_names), held)
    group = cluster.partitions.group[actions.partition]
    of_change = np.zeros(len(by_rank), np.int64)
    of_change[actions.change] = group
    first = np.searchsorted(actions.change, np.arange(len(by_rank) + 1))
    tiers = {one.tier for one in held}
    counts = {tier: _counts_after(cluster, cluster.placement, tier) for tier in tiers}
    previous = previous.copy()
    own = previous.copy()
    last: dict[int, int] = {}
    done = np.ones(len(by_rank), bool)
    bound = by_rank[label[of_change[by_rank]] >= 0]
    done[bound] = False
    waiting = bound.tolist()
    while waiting:
        left = []
        for c in waiting:
            g = int(of_change[c])
            if (own[c] >= 0 and not done[own[c]]) or not _admitted(
                cluster, held, counts, actions, range(first[c], first[c + 1]), g
            ):
                left.append(c)
                continue
            previous[c] = last.get(int(label[g]), -1)
            last[int(label[g])] = c
            done[c] = True
        if len(left) == len(waiting):
            blocked[left] = True
            break
        waiting = left
    return previous, blocked


def _admitted(
    cluster: Cluster,
    held: list[Tie],
    counts: dict[int, NDArray[np.int64]],
    actions: Actions,
    change: range,
    group: int,
) -> bool:
    """Whether rules admit a change; if so, count it."""
    shifts = shifts_of(cluster, counts, actions, change)
    for tier, where, by in shifts:
        counts[tier][group, where] += by
    if all(one.kept(counts[one.tier]) for one in held if group in (one.group, one.other)):
        return True
    for tier, where, by in shifts:
        counts[tier][group, where] -= by
    return False


def shifts_of(
    cluster: Cluster, tiers: Iterable[int], actions: Actions, rows: Iterable[int]
) -> list[tuple[int, int, int]]:
    """Return in which domains of some tiers actions bring one replica more, or one less."""
    found = []
    for tier in tiers:
        domain = serving_domains(cluster, tier)
        for i in rows:
            to, origin = int(domain[actions.target[i]]), int(domain[actions.source[i]])
            if actions.action[i] != Action.LEAD and to != origin:
                found += [(tier, to, 1)] if to >= 0 else []
                found += [(tier, origin, -1)] if origin >= 0 else []
    return found


Effect = tuple[int, list[Tie], list[tuple[int, int, int]]]
"""The group of a change, the rules that bind it, and the domains in which its counts change."""


class Tally:
    """Counts of tied groups by tier, as changes leave them one after another."""

    def __init__(self, cluster: Cluster, target: Placement) -> None:
        self.cluster = cluster
        self.held = ties(cluster, target)
        self.tiers = sorted({one.tier for one in self.held})
        groups = {g for one in self.held for g in (one.group, one.other) if g >= 0}
        tables = {tier: _counts_after(cluster, cluster.placement, tier) for tier in self.tiers}
        self.begin: Counts = {t: {g: table[g] for g in groups} for t, table in tables.items()}

    def effect(self, actions: Actions) -> Effect:
        """Return what a change does to the counts of its group."""
        group = int(self.cluster.partitions.group[actions.partition[0]])
        mine = [one for one in self.held if group in (one.group, one.other)]
        rows = range(len(actions))
        return group, mine, shifts_of(self.cluster, self.tiers, actions, rows) if mine else []

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


def _counts_after(cluster: Cluster, placement: Placement, tier: int) -> NDArray[np.int64]:
    """Count the replicas of every group that serve in each domain of a tier, (G, domains)."""
    size = int(cluster.topology.domain_count[tier])
    where = serving_domains(cluster, tier)[placement.node].astype(np.int64)
    group = cluster.partitions.group[placement.owner].astype(np.int64)
    groups = len(cluster.partitions.group_names)
    key = (group * size + where)[where >= 0]
    return np.bincount(key, minlength=groups * size).reshape(groups, size)


def _components(groups: int, held: list[Tie]) -> NDArray[np.int64]:
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
