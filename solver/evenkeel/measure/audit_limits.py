"""Limits: how the replicas of a partition, or of a whole group, stand in the domains of a level.

Partitions and groups are judged by the same code: a *scope* says who its members are, which limits
bind them, and which replicas count for whom.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import replicas_of
from evenkeel.measure.standing import Standing
from evenkeel.measure.violations import Violations, violations
from evenkeel.model.binding import allowed_masks, bound_rules, judged_by, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.once import once
from evenkeel.model.rules import Limit, LimitKind, Rule

NONE = -1
"""Amount of a limit that does not bind."""

FEW_SLOTS = 8
"""Rows up to this long are compared slot with slot."""

DENSE = 16
"""Replicas are counted in a table while it has at most so many entries for each of them."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Whose limits: E members, which are partitions or groups, under Q rules.

    Parameters
    ----------
    column : str
        "partition" or "group".
    limits : tuple of tuple of Limit
        Limits of each rule.
    rule : ndarray of int32, shape (E,)
        Rule of each member.
    wanted : ndarray of bool, shape (E,)
        Members of which at least one replica is wanted.
    open : ndarray of bool, shape (Q, N)
        Nodes that each rule leaves open to replicas.
    """

    column: str
    limits: tuple[tuple[Limit, ...], ...]
    rule: NDArray[np.int32]
    wanted: NDArray[np.bool_]
    open: NDArray[np.bool_]

    @cached_property
    def bindings(self) -> "tuple[Binding, ...]":
        """What binds the members, one kind of limit on one level at a time."""
        amounts: dict[tuple[str, LimitKind, bool], NDArray[np.int32]] = {}
        for q, limits in enumerate(self.limits):
            for limit in limits:
                key = (limit.level, limit.kind, limit.hard)
                none = np.full(len(self.limits), NONE, np.int32)
                amounts.setdefault(key, none)[q] = limit.amount
        return tuple(
            Binding(level, kind, hard, by_rule.take(self.rule))
            for (level, kind, hard), by_rule in amounts.items()
        )


@dataclass(frozen=True, eq=False)
class Binding:
    """One kind of limit on one level, for all members of a scope.

    Parameters
    ----------
    level : str
        Level, or "node".
    kind : str
        As in ``Limit``.
    hard : bool
        As in ``Limit``.
    amount : ndarray of int32, shape (E,)
        The number that each member is held to; -1 where it is not bound.
    """

    level: str
    kind: LimitKind
    hard: bool
    amount: NDArray[np.int32]

    @property
    def violation(self) -> str:
        """The kind of violation that breaking it is."""
        kind = "same_node" if (self.level, self.kind) == ("node", "spread") else self.kind
        return kind if self.hard else f"soft_{kind}"


def partition_scope(cluster: Cluster) -> Scope:
    """Return the limits that bind each partition by itself.

    Parameters
    ----------
    cluster : Cluster
        The rules.

    Returns
    -------
    Scope
        With P members.
    """

    def read() -> Scope:
        rules, rule_of = bound_rules(cluster)
        return Scope(
            column="partition",
            limits=tuple(tuple(rule.own.limits()) for rule in rules),
            rule=rule_of,
            wanted=cluster.partitions.replicas > 0,
            open=allowed_masks(cluster, rules),
        )

    return once(cluster.partitions, "partition scope", read, *judged_by(cluster))


def group_scope(cluster: Cluster) -> Scope:
    """Return the limits that bind each group as a whole.

    Parameters
    ----------
    cluster : Cluster
        The rules.

    Returns
    -------
    Scope
        With G members.
    """
    partitions = cluster.partitions

    def read() -> Scope:
        rules = (*cluster.rules, Rule())
        groups = len(partitions.group_names)
        is_open = np.ones((len(rules), len(cluster.nodes)), bool)
        for q, rule in enumerate(rules):
            for text in rule.require:
                is_open[q] &= node_mask(cluster, text)
        return Scope(
            column="group",
            limits=tuple(tuple(rule.limits(per_node=False)) for rule in rules),
            rule=np.where(partitions.group_rule < 0, len(cluster.rules), partitions.group_rule),
            wanted=np.bincount(partitions.group, partitions.replicas > 0, groups) > 0,
            open=is_open,
        )

    return once(partitions, "group scope", read, *judged_by(cluster))


def broken_limits(standing: Standing) -> list[Violations]:
    """Find every limit, hard or soft, of a partition or a group that a placement breaks.

    Every replica that has a node counts in its domain, whether that node lives or not.

    Parameters
    ----------
    standing : Standing
        Where the replicas are, the rules and the topology.

    Returns
    -------
    list of Violations
        Of the kinds same_node, spread, min_domains, max_domains and skew, and the soft ones.
    """
    cluster = standing.cluster
    # of the nodes' state only the skew depends: whether a domain has a node that may hold anything
    nodes = cluster.nodes if any(rule.skew for rule in cluster.rules) else None
    of = nodes, cluster.partitions, *judged_by(cluster)
    return list(once(standing, "broken limits", lambda: _all_broken(standing), *of))


def _all_broken(standing: Standing) -> list[Violations]:
    cluster, placement = standing.cluster, standing.placement
    found = []
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        row = cluster.topology.level_index(binding.level)
        domain = cluster.topology.domain_with_nodes[row]
        members = suspects(standing, binding, row)
        if len(members):
            replicas, which = replicas_of(placement, members)
            where = domain_of(domain, placement.node[replicas])
            found += _broken(cluster, scope, binding, row, members, which, where)
    if (cluster.partitions.group_rule >= 0).any():
        scope = group_scope(cluster)
        group = cluster.partitions.group.take(placement.owner)
        for binding in scope.bindings:
            row = cluster.topology.level_index(binding.level)
            members = np.flatnonzero(binding.amount != NONE)
            place = np.full(len(scope.rule), -1)
            place[members] = np.arange(len(members))
            replicas = np.flatnonzero(place[group] >= 0)
            domain = cluster.topology.domain_with_nodes[row]
            where = domain_of(domain, placement.node[replicas])
            found += _broken(cluster, scope, binding, row, members, place[group[replicas]], where)
    return found


def suspects(standing: Standing, binding: Binding, row: int) -> NDArray[np.intp]:
    """Return the partitions that may break a limit: those a cheap look does not clear.

    Parameters
    ----------
    standing : Standing
        Where the replicas are.
    binding : Binding
        The limit, of the partition scope.
    row : int
        Row of its level in the topology.

    Returns
    -------
    ndarray of intp
        Partitions, ascending; all that the limit binds where rows are long or uneven.
    """
    bound = binding.amount != NONE
    slots = standing.placement.slots
    if slots is None or not 0 < slots <= FEW_SLOTS or binding.kind == "skew":
        return np.flatnonzero(bound)
    topology = standing.cluster.topology
    domain = topology.domain_with_nodes[row]
    earlier, inside = once(standing, f"repeats {row}", lambda: _repeats(standing, domain), topology)
    if binding.kind == "spread":
        return np.flatnonzero((earlier.max(0) >= binding.amount) & bound)
    distinct = ((earlier == 0) & inside).sum(0)
    if binding.kind == "min_domains":
        return np.flatnonzero((distinct < binding.amount) & bound)
    return np.flatnonzero((distinct > binding.amount) & bound)


def _repeats(
    standing: Standing, domain: NDArray[np.int32]
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Count for each slot the earlier ones in its domain, and say which are in any; (R, P) both."""
    partitions = len(standing.placement)
    at = np.append(np.int32(-1), domain).take(standing.seat).reshape(-1, partitions)
    inside = at >= 0
    if not inside.all():
        # a slot without a domain is its own, and equals no other
        at = np.where(inside, at, -1 - np.arange(len(at), dtype=np.int32)[:, None])
    earlier = np.zeros(at.shape, np.int8)
    for i in range(1, len(at)):
        for j in range(i):
            earlier[i] += (at[i] == at[j]).view(np.int8)
    return earlier, inside


def domain_of(domain: NDArray[np.int32], node: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the domain of each node given; -1 for no node or none.

    Parameters
    ----------
    domain : ndarray of int32, shape (N,)
        Domain of each node; -1 for none.
    node : ndarray of int32
        Nodes, -1 for none.

    Returns
    -------
    ndarray of int32
        Of the shape of ``node``.
    """
    # node -1 reads the last entry
    return np.append(domain, np.int32(-1)).take(node)


def _broken(
    cluster: Cluster,
    scope: Scope,
    binding: Binding,
    row: int,
    members: NDArray[np.intp],
    which: NDArray[np.intp],
    where: NDArray[np.int32],
) -> list[Violations]:
    """Judge some members: their replica i is of ``members[which[i]]``, in domain ``where[i]``."""
    inside = where >= 0
    domains = int(cluster.topology.domain_count[row])
    who, at, count = tally(which[inside], where[inside], len(members), domains)
    amount = binding.amount[members]
    if binding.kind == "spread":
        over = count - amount[who]
        bad = np.flatnonzero(over > 0)
        return violations(
            binding.violation, over[bad], level=row, domain=at[bad],
            **{scope.column: members[who[bad]]},
        )  # fmt: skip
    if binding.kind == "skew":
        unfit = _skew(cluster, scope, row, members, who, at, count) - amount
    else:
        distinct = np.bincount(who, minlength=len(members))
        unfit = distinct - amount if binding.kind == "max_domains" else amount - distinct
        if binding.kind == "min_domains":
            unfit = np.where(scope.wanted[members], unfit, 0)
    bad = np.flatnonzero(unfit > 0)
    return violations(binding.violation, unfit[bad], level=row, **{scope.column: members[bad]})


def tally(
    which: NDArray[np.integer], where: NDArray[np.integer], members: int, domains: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Count replicas per member and domain.

    Parameters
    ----------
    which, where : ndarray of int, shape (n,)
        Member and domain of each replica.
    members, domains : int
        How many there are.

    Returns
    -------
    tuple of ndarray of int64
        Member, domain and count of every pair that occurs, by member, then by domain.

    Examples
    --------
    >>> [a.tolist() for a in tally(np.array([1, 0, 1]), np.array([2, 0, 2]), 2, 3)]
    [[0, 1], [0, 2], [1, 2]]
    """
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
    cluster: Cluster,
    scope: Scope,
    row: int,
    members: NDArray[np.intp],
    who: NDArray[np.int64],
    at: NDArray[np.int64],
    count: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Fullest domain of each member minus the emptiest that holds a node open to it; (members,)."""
    domains = int(cluster.topology.domain_count[row])
    domain = cluster.topology.domain_with_nodes[row]
    usable = cluster.nodes.may_hold & (domain >= 0)
    eligible = np.zeros((len(scope.limits), domains), bool)
    for q, is_open in enumerate(scope.open):
        eligible[q, domain[is_open & usable]] = True
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
