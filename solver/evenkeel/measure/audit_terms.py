"""Terms: which nodes replicas, voters and leaders of a partition, or of a group, should be on."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node, replicas_of
from evenkeel.measure.standing import Standing
from evenkeel.measure.violations import Violations, violations
from evenkeel.model.binding import BoundRule, bound_rules, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.rules import Rule


def broken_terms(standing: Standing) -> list[Violations]:
    """Find replicas and voters on excluded nodes, too few on wanted ones, and misplaced leaders.

    Parameters
    ----------
    standing : Standing
        Where the replicas are, and the rules.

    Returns
    -------
    list of Violations
        Of the kinds require, voters_require, place, voters_place and lead.
    """
    cluster, placement = standing.cluster, standing.placement
    rules, rule_of = bound_rules(cluster)
    found = []
    for q, rule in enumerate(rules):
        own = rule.own
        if not (rule.require or rule.voters_require or rule.lead or own.place or own.voters_place):
            continue
        partitions = np.flatnonzero(rule_of == q)
        found += _excluded(cluster, placement, rule, partitions)
        found += _short_of(cluster, placement, own, "partition", partitions)
        found += _less_preferred(cluster, placement, rule, partitions)
    for q, shared in enumerate(cluster.rules):
        groups = np.flatnonzero(cluster.partitions.group_rule == q)
        found += _short_of(cluster, placement, shared, "group", groups)
    return found


def _excluded(
    cluster: Cluster, placement: Placement, rule: BoundRule, partitions: NDArray[np.intp]
) -> list[Violations]:
    """Find replicas of some partitions on nodes that the rule that binds them excludes."""
    found = []
    for kind, texts in (("require", rule.require), ("voters_require", rule.voters_require)):
        if not texts:
            continue
        excluded = np.zeros(len(cluster.nodes), bool)
        for text in texts:
            excluded |= ~node_mask(cluster, text)
        replicas, which = replicas_of(placement, partitions)
        bad = at_node(excluded, placement.node[replicas])
        if kind == "voters_require":
            bad &= placement.role[replicas] == Role.VOTER
        found += violations(
            kind, np.ones(int(bad.sum())), partition=partitions[which[bad]],
            node=placement.node[replicas[bad]],
        )  # fmt: skip
    return found


def _short_of(
    cluster: Cluster, placement: Placement, rule: Rule, column: str, members: NDArray[np.intp]
) -> list[Violations]:
    """Find partitions, or groups, with fewer replicas on some nodes than their rule wants there."""
    if len(members) == 0 or not (rule.place or rule.voters_place):
        return []
    parts = cluster.partitions
    size = len(parts) if column == "partition" else len(parts.group_names)
    place = np.full(size, -1)
    place[members] = np.arange(len(members))
    member = np.arange(len(parts)) if column == "partition" else parts.group
    partitions = np.flatnonzero(place[member] >= 0)
    replicas, which = replicas_of(placement, partitions)
    who = place[member[partitions[which]]]
    voter = placement.role[replicas] == Role.VOTER
    asked = np.bincount(place[member[partitions]], parts.replicas[partitions] > 0, len(members)) > 0
    found = []
    for kind, counts in (("place", rule.place), ("voters_place", rule.voters_place)):
        for text, least in counts.items():
            inside = at_node(node_mask(cluster, text), placement.node[replicas])
            if kind == "voters_place":
                inside &= voter
            short = np.where(asked, least - np.bincount(who[inside], minlength=len(members)), 0)
            bad = np.flatnonzero(short > 0)
            found += violations(kind, short[bad], **{column: members[bad]})
    return found


def _less_preferred(
    cluster: Cluster, placement: Placement, rule: BoundRule, partitions: NDArray[np.intp]
) -> list[Violations]:
    """Find leaders on a node that the rule ranks behind that of another voter which could lead."""
    if not rule.lead:
        return []
    rank = np.full(len(cluster.nodes) + 1, len(rule.lead))
    for choice in range(len(rule.lead) - 1, -1, -1):
        rank[:-1][node_mask(cluster, rule.lead[choice])] = choice
    replicas, which = replicas_of(placement, partitions)
    node = placement.node[replicas]
    fit = at_node(cluster.nodes.may_lead, node) & (placement.role[replicas] == Role.VOTER)
    best = np.full(len(partitions), len(rule.lead))
    np.minimum.at(best, which[fit], rank[node[fit]])
    leader = placement.leader_node[partitions]
    behind = np.where(leader >= 0, rank[leader] - best, 0)
    bad = np.flatnonzero(behind > 0)
    return violations("lead", behind[bad], partition=partitions[bad], node=leader[bad])
