"""What broken soft rules cost, by the weights that they were given."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.binding import Scope, group_scope, partition_scope
from evenkeel.model.cluster import Cluster


def soft_cost(cluster: Cluster, audited: Audit) -> float:
    """Add up weight x amount of all soft limits that are broken, and 1 for each worse leader.

    Examples
    --------
    >>> from evenkeel.measure.audit import audit
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]],
    ...                         domains={"zone": [0, 0, 0]}, spread={"zone": (1, "soft", 5.0)})
    >>> soft_cost(c, audit(c, c.placement))
    10.0
    """
    limits = [limit for rule in cluster.rules for limit in rule.limits()]
    if all(limit.hard or limit.weight == 1.0 for limit in limits):
        return float(audited.soft)
    cost = float(audited.counts["lead"])
    for one in audited.found:
        if KINDS[one.kind].hard or not KINDS[one.kind].summed or not len(one.amount):
            continue
        tiers = (*cluster.topology.tiers, "node")
        tier = tiers[one.tier[0]]  # each broken limit is of one
        for scope, member in (
            (partition_scope(cluster), one.partition),
            (group_scope(cluster), one.group),
        ):
            whose = np.flatnonzero(member >= 0)
            weight = _weights(scope, one.kind, tier)[member[whose]]
            cost += float((weight * one.amount[whose]).sum())
    return cost


def _weights(scope: Scope, kind: str, tier: str) -> NDArray[np.float64]:
    """Return the weight of each member's soft limit of a kind on a tier, (E,)."""
    for binding in scope.bindings:
        if (binding.violation, binding.tier) == (kind, tier):
            return binding.weight
    return np.zeros(len(scope.rule))
