"""Rules as constraints: limits and terms of partitions and groups, dependencies, leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evenkeel.measure.binding import (
    Scope,
    eligible_domains,
    group_scope,
    lead_ranks,
    nodes_of,
    partition_scope,
)
from evenkeel.methods.exact.variables import SoftTerm, Variables
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Limit, Term

Count = Callable[[int], Any]
"""From a node to how many replicas of the member in question it holds."""


def bind(variables: Variables) -> list[SoftTerm]:
    """Add every rule but those of single nodes."""
    cluster = variables.cluster
    soft_terms: list[SoftTerm] = []
    scope = partition_scope(cluster)
    for p in range(len(cluster.partitions)):
        q = int(scope.rule[p])
        if scope.wanted[p]:
            wanted, demands = int(cluster.partitions.replicas[p]), scope.demands[q]
            for limit in demands.limits:
                soft_terms += _limit(variables, scope, q, limit, [p], (p, wanted))
            _terms(variables, demands.counted, [p], ("partition", p))
            soft_terms += _best_led(variables, p, demands.lead)
    if (cluster.partitions.group_rule >= 0).any():
        soft_terms += _bind_groups(variables)
    for group, other, tier in cluster.depends.tolist():
        _near(variables, group, other, tier)
    return soft_terms


def _bind_groups(variables: Variables) -> list[SoftTerm]:
    cluster = variables.cluster
    scope = group_scope(cluster)
    soft_terms: list[SoftTerm] = []
    for g in np.flatnonzero(cluster.partitions.group_rule >= 0).tolist():
        members = np.flatnonzero(cluster.partitions.group == g).tolist()
        wanted = int(cluster.partitions.replicas[members].sum())
        if wanted == 0:
            continue
        q = int(scope.rule[g])
        for limit in scope.demands[q].limits:
            soft_terms += _limit(variables, scope, q, limit, members, (g, wanted))
        _terms(variables, scope.demands[q].counted, members, ("group", g))
    return soft_terms


def _limit(
    variables: Variables,
    scope: Scope,
    q: int,
    limit: Limit,
    members: list[int],
    whose: tuple[int, int],
) -> list[SoftTerm]:
    """Add one limit on the replicas of some partitions together: ``whose`` number, how many."""
    cluster, model = variables.cluster, variables.model
    row = cluster.topology.tier_index(limit.tier)
    member, wanted = whose
    kind = "same_node" if (limit.kind, limit.tier) == ("spread", "node") else limit.kind
    slack: Any = variables.slack.slack(kind, scope.column, member, row)
    may_give = not limit.hard or not isinstance(slack, int)
    if not limit.hard:
        slack = model.new_int_var(0, wanted + int(limit.amount), "")
    name = f"{scope.column} {limit.kind} {limit.tier} {limit.amount}"
    inside = _nodes_by_domain(cluster, row)
    counts = {where: _held(variables, members, nodes) for where, nodes in inside.items()}
    if limit.kind == "spread":
        over: list[Any] = []
        for where, count in counts.items():
            own: Any = 0
            if may_give:  # every domain may be too full by itself
                own = model.new_int_var(0, wanted, "")
                over.append(own)
            variables.reasons.hold(
                count <= limit.amount + own, f"{name} ({_domain_name(cluster, row, where)})"
            )
        if limit.hard and over:
            model.add(sum(over) <= slack)
        slack = sum(over) if not limit.hard else slack
    elif limit.kind == "skew":
        eligible = eligible_domains(cluster, scope, row)[q]
        most, least = model.new_int_var(0, wanted, ""), model.new_int_var(0, wanted, "")
        for where, count in counts.items():
            model.add(most >= count)
            if eligible[where]:
                model.add(least <= count)
        variables.reasons.hold(most - least <= limit.amount + slack, name)
    else:
        used = [_occupied(variables, count, wanted) for count in counts.values()]
        if limit.kind == "min_domains":
            variables.reasons.hold(sum(used) + slack >= limit.amount, name)
        else:
            variables.reasons.hold(sum(used) <= limit.amount + slack, name)
    if limit.hard:
        return []
    return [SoftTerm(slack, max(wanted, int(limit.amount)), limit.weight)]


def _domain_name(cluster: Cluster, row: int, where: int) -> str:
    if row == len(cluster.topology):
        return f"node={cluster.nodes.names[where]}"
    return f"{cluster.topology.tiers[row]}={cluster.topology.domain_name(row, where)}"


def _nodes_by_domain(cluster: Cluster, row: int) -> dict[int, list[int]]:
    domain = cluster.topology.domain_with_nodes[row]
    return {
        int(where): np.flatnonzero(domain == where).tolist()
        for where in np.unique(domain)
        if where >= 0
    }


def _held(variables: Variables, members: Iterable[int], nodes: list[int]) -> Any:
    """Replicas of some partitions on some nodes."""
    return sum(variables.count(p, n) for p in members for n in nodes)


def _occupied(variables: Variables, count: Any, most: int) -> Any:
    """Return whether a count is above 0, both ways."""
    used = variables.model.new_bool_var("")
    variables.model.add(count >= used)
    variables.model.add(count <= most * used)
    return used


def _terms(
    variables: Variables, terms: list[Term], members: list[int], whose: tuple[str, int]
) -> None:
    """Add the least numbers of replicas, or voters, on the nodes of an expression."""
    for one in terms:
        inside = np.flatnonzero(nodes_of(variables.cluster, one)).tolist()
        if one.voters:
            count = sum(variables.voters[p].get(n, 0) for p in members for n in inside)
        else:
            count = _held(variables, members, inside)
        slack = variables.slack.slack(one.kind, *whose, one.text)
        variables.reasons.hold(count + slack >= one.least, f"{one.kind} {one.text!r} {one.least}")


def _best_led(variables: Variables, p: int, lead: tuple[str, ...]) -> list[SoftTerm]:
    """Let no replica lead whose node ranks behind that of a voter which could.

    It is a soft term where broken rules are repaired as far as possible.
    """
    soft_terms: list[SoftTerm] = []
    if not lead or not variables.leads[p]:
        return soft_terms
    rank = lead_ranks(variables.cluster, lead)
    may_lead = variables.cluster.nodes.may_lead
    for choice in range(len(lead)):
        better = [v for n, v in variables.voters[p].items() if may_lead[n] and rank[n] <= choice]
        worse = [v for n, v in variables.leads[p].items() if rank[n] > choice]
        if better and worse:
            there = variables.model.new_bool_var("")
            variables.model.add(
                sum(better) <= int(variables.cluster.partitions.replicas[p]) * there
            )
            behind: Any = 0
            if variables.slack.repairs:
                behind = variables.model.new_bool_var("")
                soft_terms.append(SoftTerm(behind, 1))
            variables.reasons.hold(sum(worse) + there <= 1 + behind, f"lead {[*lead]}")
    return soft_terms


def _near(variables: Variables, group: int, other: int, tier: int) -> None:
    """Let a group be in no domain in which a group that it needs is not."""
    cluster = variables.cluster
    own = np.flatnonzero(cluster.partitions.group == group).tolist()
    needed = np.flatnonzero(cluster.partitions.group == other).tolist()
    most = int(cluster.partitions.replicas[own].sum())
    names = cluster.partitions.group_names
    for nodes in _nodes_by_domain(cluster, tier).values():
        there = _occupied(variables, _held(variables, own, nodes), most) if most else 0
        slack = variables.slack.slack("depends", "group", group, tier)
        variables.reasons.hold(
            _held(variables, needed, nodes) + slack >= there, f"{names[group]} needs {names[other]}"
        )
