"""Rules as constraints: limits and terms of partitions and groups, neighbours, leaders' places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evenkeel.methods.exact.seats import Seats, Wish
from evenkeel.methods.shared.scope import Scope, group_scope, partition_scope
from evenkeel.model.binding import bound_rules, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Limit, Rule

Count = Callable[[int], Any]
"""From a node to how many replicas of the member in question it holds."""


def bind(seats: Seats) -> list[Wish]:
    """Add every rule but those of single nodes."""
    cluster = seats.cluster
    wishes: list[Wish] = []
    scope = partition_scope(cluster)
    rules, rule_of = bound_rules(cluster)
    for p in range(len(cluster.partitions)):
        q = int(rule_of[p])
        if scope.wanted[p]:
            wanted = int(cluster.partitions.replicas[p])
            for limit in scope.limits[q]:
                wishes += _limit(seats, scope, q, limit, [p], (p, wanted))
            _terms(seats, rules[q].own, [p], ("partition", p))
            wishes += _best_led(seats, p, rules[q].lead)
    if (cluster.partitions.group_rule >= 0).any():
        wishes += _bind_groups(seats)
    for group, other, tier in cluster.depends.tolist():
        _near(seats, group, other, tier)
    return wishes


def _bind_groups(seats: Seats) -> list[Wish]:
    cluster = seats.cluster
    scope = group_scope(cluster)
    wishes: list[Wish] = []
    for g in np.flatnonzero(cluster.partitions.group_rule >= 0).tolist():
        members = np.flatnonzero(cluster.partitions.group == g).tolist()
        wanted = int(cluster.partitions.replicas[members].sum())
        if wanted == 0:
            continue
        q = int(scope.rule[g])
        for limit in scope.limits[q]:
            wishes += _limit(seats, scope, q, limit, members, (g, wanted))
        _terms(seats, cluster.rules[q], members, ("group", g))
    return wishes


def _limit(
    seats: Seats, scope: Scope, q: int, limit: Limit, members: list[int], whose: tuple[int, int]
) -> list[Wish]:
    """Add one limit on the replicas of some partitions together: ``whose`` number, how many."""
    cluster, model = seats.cluster, seats.model
    row = cluster.topology.tier_index(limit.tier)
    member, wanted = whose
    kind = "same_node" if (limit.kind, limit.tier) == ("spread", "node") else limit.kind
    slack: Any = seats.leeway.slack(kind, scope.column, member, row)
    may_give = not limit.hard or not isinstance(slack, int)
    if not limit.hard:
        slack = model.new_int_var(0, wanted + int(limit.amount), "")
    name = f"{scope.column} {limit.kind} {limit.tier} {limit.amount}"
    nodes_of = _nodes_by_domain(cluster, row)
    counts = {where: _held(seats, members, nodes) for where, nodes in nodes_of.items()}
    if limit.kind == "spread":
        over: list[Any] = []
        for where, count in counts.items():
            own: Any = 0
            if may_give:  # every domain may be too full by itself
                own = model.new_int_var(0, wanted, "")
                over.append(own)
            seats.reasons.hold(
                count <= limit.amount + own, f"{name} ({_domain_name(cluster, row, where)})"
            )
        if limit.hard and over:
            model.add(sum(over) <= slack)
        slack = sum(over) if not limit.hard else slack
    elif limit.kind == "skew":
        usable = cluster.nodes.may_hold & scope.open[q]
        most, least = model.new_int_var(0, wanted, ""), model.new_int_var(0, wanted, "")
        for where, count in counts.items():
            model.add(most >= count)
            if usable[nodes_of[where]].any():
                model.add(least <= count)
        seats.reasons.hold(most - least <= limit.amount + slack, name)
    else:
        used = [_occupied(seats, count, wanted) for count in counts.values()]
        if limit.kind == "min_domains":
            seats.reasons.hold(sum(used) + slack >= limit.amount, name)
        else:
            seats.reasons.hold(sum(used) <= limit.amount + slack, name)
    if limit.hard:
        return []
    return [Wish(slack, max(wanted, int(limit.amount)), limit.weight)]


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


def _held(seats: Seats, members: Iterable[int], nodes: list[int]) -> Any:
    """Replicas of some partitions on some nodes."""
    return sum(seats.count(p, n) for p in members for n in nodes)


def _occupied(seats: Seats, count: Any, most: int) -> Any:
    """Whether a count is above 0, both ways."""
    used = seats.model.new_bool_var("")
    seats.model.add(count >= used)
    seats.model.add(count <= most * used)
    return used


def _terms(seats: Seats, rule: Rule, members: list[int], whose: tuple[str, int]) -> None:
    """Add the least numbers of replicas, or voters, on the nodes of an expression."""
    for kind, wanted in (("place", rule.place), ("voters_place", rule.voters_place)):
        for text, least in wanted.items():
            inside = np.flatnonzero(node_mask(seats.cluster, text)).tolist()
            if kind == "place":
                count = _held(seats, members, inside)
            else:
                count = sum(seats.voters[p].get(n, 0) for p in members for n in inside)
            slack = seats.leeway.slack(kind, *whose, text)
            seats.reasons.hold(count + slack >= least, f"{kind} {text!r} {least}")


def _best_led(seats: Seats, p: int, lead: list[str]) -> list[Wish]:
    """Let nobody lead whose node is ranked behind that of a voter which could.

    That is a wish where what came broken is to be mended as far as can be.
    """
    wishes: list[Wish] = []
    if not lead or not seats.leads[p]:
        return wishes
    rank = np.full(len(seats.cluster.nodes), len(lead))
    for choice in range(len(lead) - 1, -1, -1):
        rank[node_mask(seats.cluster, lead[choice])] = choice
    may_lead = seats.cluster.nodes.may_lead
    for choice in range(len(lead)):
        better = [v for n, v in seats.voters[p].items() if may_lead[n] and rank[n] <= choice]
        worse = [v for n, v in seats.leads[p].items() if rank[n] > choice]
        if better and worse:
            there = seats.model.new_bool_var("")
            seats.model.add(sum(better) <= int(seats.cluster.partitions.replicas[p]) * there)
            behind: Any = 0
            if seats.leeway.mends:
                behind = seats.model.new_bool_var("")
                wishes.append(Wish(behind, 1))
            seats.reasons.hold(sum(worse) + there <= 1 + behind, f"lead {lead}")
    return wishes


def _near(seats: Seats, group: int, other: int, tier: int) -> None:
    """Let a group be in no domain in which a group that it needs is not."""
    cluster = seats.cluster
    own = np.flatnonzero(cluster.partitions.group == group).tolist()
    needed = np.flatnonzero(cluster.partitions.group == other).tolist()
    most = int(cluster.partitions.replicas[own].sum())
    names = cluster.partitions.group_names
    for nodes in _nodes_by_domain(cluster, tier).values():
        there = _occupied(seats, _held(seats, own, nodes), most) if most else 0
        slack = seats.leeway.slack("depends", "group", group, tier)
        seats.reasons.hold(
            _held(seats, needed, nodes) + slack >= there, f"{names[group]} needs {names[other]}"
        )
