"""Groups that need each other: directed affinity within the domains of a tier."""

import numpy as np

from evenkeel.measure.audit.limits import count_by_domain, domain_of
from evenkeel.measure.audit.violations import Violations, violations
from evenkeel.measure.tally import PlacementCounts


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
