"""Audit of terms: nodes required for replicas, voters and leaders of a partition or group."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.violations import AND, Violations, violations
from evenkeel.measure.binding import (
    Demands,
    Scope,
    group_scope,
    lead_ranks,
    nodes_of,
    nodes_that_meet,
    partition_scope,
)
from evenkeel.measure.rows import at_node, replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.rules import REQUIREMENTS, Rule


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
    cluster: Cluster, placement: Placement, rule: Rule, partitions: NDArray[np.intp]
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
    cluster: Cluster,
    placement: Placement,
    scope: Scope,
    demands: Demands,
    members: NDArray[np.intp],
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
    cluster: Cluster, placement: Placement, demands: Demands, partitions: NDArray[np.intp]
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
