"""Groups: what rules ask of a group as a whole, as resources that its partitions share."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.binding import node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.changes.acts import Acts
from evenkeel.planning.changes.rule_tests import serving_domains
from evenkeel.planning.resources.table import Resources


def charge_groups(resources: Resources, cluster: Cluster, target: Placement, acts: Acts) -> None:
    """Add what groups may have per domain, and lack on the nodes of an expression.

    A replica that serves counts at both ends of its move where a group may have too many, and at
    neither where it may have too few. What one end breaks is not held.
    """
    group_rule = cluster.partitions.group_rule
    for i in np.unique(group_rule[group_rule >= 0]).tolist():
        rule = cluster.rules[i]
        bound = group_rule == i
        for limit in rule.limits(per_node=False):
            if limit.hard and limit.kind == "spread":
                _charge_spread(resources, cluster, target, acts, bound, limit.tier, limit.amount)
        for counts, voters in ((rule.place, False), (rule.voters_place, True)):
            for text, least in counts.items():
                mask = node_mask(cluster, text)
                _charge_least(resources, cluster, target, acts, bound, mask, least, voters)


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
    acts: Acts,
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
    group = cluster.partitions.group[acts.partition].astype(np.int64)
    to, origin = domain[acts.target], domain[acts.source]
    crosses = held[group] & (to != origin)
    # what is under way has its room from the beginning
    coming = np.flatnonzero(acts.flying & crosses & (to >= 0))
    np.subtract.at(free, (group[coming], to[coming]), 1.0)
    base = resources.add("group", free)
    one = np.ones(len(acts))
    for where, charge in ((to, resources.claim), (origin, resources.give)):
        rows = np.flatnonzero(crosses & (where >= 0))
        if charge == resources.claim:
            rows = rows[~acts.flying[rows]]
        charge(base + group[rows] * size + where[rows], acts.change[rows], one[rows])


def _charge_least(
    resources: Resources,
    cluster: Cluster,
    target: Placement,
    acts: Acts,
    bound: NDArray[np.bool_],
    mask: NDArray[np.bool_],
    least: int,
    voters: bool,
) -> None:
    inside = np.append(mask & cluster.nodes.serves, False)

    def having(placement: Placement) -> NDArray[np.int64]:
        counts = inside[placement.node]
        if voters:
            counts = counts & (placement.role == Role.VOTER)
        return _counts(cluster, placement, np.where(counts, 0, -1), 1)[:, 0]

    start, end = having(cluster.placement), having(target)
    held = bound & (start >= least) & (end >= least)
    base = resources.add("group", np.where(held, start - float(least), np.inf))
    group = cluster.partitions.group[acts.partition].astype(np.int64)
    before, after = inside[acts.source], inside[acts.target]
    if voters:
        before, after = before & (acts.was == Role.VOTER), after & acts.votes
    one = np.ones(len(acts))
    for which, charge in ((before & ~after, resources.claim), (after & ~before, resources.give)):
        rows = np.flatnonzero(which & held[group])
        charge(base + group[rows], acts.change[rows], one[rows])
