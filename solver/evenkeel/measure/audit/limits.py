"""Audit of limits: replicas of a partition or group in the domains of a tier.

Partitions and groups are judged by the same code: a *scope* defines its members, its
limits, and the replicas that count for each member.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.violations import Violations, violations
from evenkeel.measure.binding import (
    NONE,
    Binding,
    Scope,
    eligible_domains,
    group_scope,
    partition_scope,
    read_from,
)
from evenkeel.measure.rows import replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.memoize import memoize

FEW_SLOTS = 8
"""Rows up to this long are compared slot with slot."""

DENSE = 16
"""Replicas are counted in a table while it has at most so many entries for each of them."""


def broken_limits(placed: PlacementCounts) -> list[Violations]:
    """Find every limit, hard or soft, of a partition or a group that a placement breaks.

    Every replica that has a node counts in its domain, whether that node lives or not.
    """
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


def suspects(placed: PlacementCounts, binding: Binding, row: int) -> NDArray[np.intp]:
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
    return np.flatnonzero((distinct > binding.amount) & bound)


def _repeats(
    placed: PlacementCounts, domain: NDArray[np.int32]
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
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


def domain_of(domain: NDArray[np.int32], node: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the domain of each node given; -1 for no node or none."""
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
    else:
        distinct = np.bincount(who, minlength=len(members))
        unfit = distinct - amount if binding.kind == "max_domains" else amount - distinct
        if binding.kind == "min_domains":
            unfit = np.where(scope.wanted[members], unfit, 0)
    bad = np.flatnonzero(unfit > 0)
    return violations(
        binding.violation, unfit[bad], asked=amount[bad], tier=row, **{scope.column: members[bad]}
    )


def count_by_domain(
    which: NDArray[np.integer], where: NDArray[np.integer], members: int, domains: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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
    cluster: Cluster,
    scope: Scope,
    row: int,
    members: NDArray[np.intp],
    who: NDArray[np.int64],
    at: NDArray[np.int64],
    count: NDArray[np.int64],
) -> NDArray[np.int64]:
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
