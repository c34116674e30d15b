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
    found = []
    cluster, placement = standing.cluster, standing.placement
    group = cluster.partitions.group.take(placement.owner)
    for row in np.unique(cluster.depends[:, 2]).tolist():
        pairs = cluster.depends[cluster.depends[:, 2] == row, :2]
        tied, place = np.unique(pairs, return_inverse=True)
        place = place.reshape(pairs.shape)
        number = np.full(len(cluster.partitions.group_names), -1)
        number[tied] = np.arange(len(tied))
        where = domain_of(cluster.topology.domain_with_nodes[row], placement.node)
        counted = (number[group] >= 0) & (where >= 0)
        domains = int(cluster.topology.domain_count[row])
        who, at, _ = tally(number[group[counted]], where[counted], len(tied), domains)
        first = np.searchsorted(who, np.arange(len(tied) + 1))
        present = who * domains + at
        for (one, other), (a, b) in zip(pairs.tolist(), place.tolist(), strict=True):
            own = present[first[a] : first[a + 1]] - a * domains
            lacking = np.setdiff1d(own, present[first[b] : first[b + 1]] - b * domains)
            if one != other:
                found += violations(
                    "depends", np.ones(len(lacking)), group=one, level=row, domain=lacking
                )
    return found
