"""Compile the rules of single partitions into arrays, for clusters without violations.

The incremental audit of a session reads them; they are bound as the audit binds them.
"""

from typing import NamedTuple

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.binding import partition_scope
from evenkeel.measure.room import piling
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64
from evenkeel.model.rules import LimitKind

# the limits that a row decides by itself; a skew depends on nodes elsewhere
KINDS: tuple[LimitKind, ...] = ("spread", "min_domains", "max_domains")


class RowDemands(NamedTuple):
    """Demands of Q classes of P partitions on N nodes."""

    rule: Ints32  # class of each partition, (P,)
    is_open: Flags  # nodes that meet what every replica requires, (Q, N)
    limit_first: Ints64  # where the limits of each class start, and the end, (Q + 1,)
    limit: Ints32  # tier, place in ``KINDS`` and amount of each limit, hard or soft, (., 3)


def row_demands(cluster: Cluster) -> RowDemands | None:
    """Return demands on single rows; None if rules need more than rows, or any is broken now."""
    partitions, nodes = cluster.partitions, cluster.nodes
    if len(cluster.depends) or cluster.topology.tier_capacity or cluster.transient.any():
        return None
    if (partitions.group_rule >= 0).any() or (nodes.may_hold & ~nodes.serves).any():
        return None
    scope = partition_scope(cluster)
    for one in scope.demands:
        if one.counted or one.required(voters=True) or one.lead:
            return None
        if any(limit.kind not in KINDS for limit in one.limits):
            return None
    placed = PlacementCounts.of(cluster, cluster.placement)
    broken = audit(cluster, cluster.placement).counts
    if any(broken.values()) or piling(placed, scope).any():
        return None
    rows = [
        [
            (cluster.topology.tier_index(at.tier), KINDS.index(at.kind), at.amount)
            for at in one.limits
        ]
        for one in scope.demands
    ]
    return RowDemands(
        rule=scope.rule,
        is_open=scope.open,
        limit_first=np.concatenate([[0], np.cumsum([len(one) for one in rows])]).astype(np.int64),
        limit=np.array([row for one in rows for row in one], np.int32).reshape(-1, 3),
    )
