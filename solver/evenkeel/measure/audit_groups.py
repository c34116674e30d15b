"""Groups that need each other: directed affinity within the domains of a level."""

import numpy as np

from evenkeel.measure.audit_limits import domain_of, tally
from evenkeel.measure.standing import Standing
from evenkeel.measure.violations import Violations, violations


def missing_neighbours(standing: Standing) -> list[Violations]:
    """Find domains that hold a replica of a group, but none of a group that it needs there.

    Parameters
    ----------
    standing : Standing
        Where the replicas are, and which group needs which.

    Returns
    -------
    list of Violations
        Of the kind depends, a row per needing group, needed group and domain.
    """
    found: list[Violations] = []
    cluster, placement = standing.cluster, standing.placement
    group = cluster.partitions.group.take(placement.owner)
    for row in np.unique(cluster.depends[:, 2]).tolist():
        pairs = np.unique(cluster.depends[cluster.depends[:, 2] == row, :2], axis=0)
        tied = np.unique(pairs)
        number = np.full(len(cluster.partitions.group_names), -1)
        number[tied] = np.arange(len(tied))
        where = domain_of(cluster.topology.domain_with_nodes[row], placement.node)
        counted = (number[group] >= 0) & (where >= 0)
        domains = int(cluster.topology.domain_count[row])
        who, at, _ = tally(number[group[counted]], where[counted], len(tied), domains)
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
            level=row,
            domain=domain[lacks],
        )
    return found
