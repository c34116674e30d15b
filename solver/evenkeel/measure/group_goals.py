"""Goals within groups: how many replicas of each a node may hold, who has more, and the moves."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.topology import NODE_TIER

ROUNDING = 1e-9
"""Share by which a share may be off a whole number by rounding."""

LISTED = 3
"""Groups that are named where they miss the goal, those furthest above it first."""


def group_targets(cluster: Cluster, goals: Goals | Cost) -> NDArray[np.int64] | None:
    """Return the replicas of each group that a node may hold, (G,); None without such a goal.

    They are (1 + tolerance) x the share of a node, or what rules force on one where that is more,
    rounded down to whole replicas, but never below it rounded up.
    """
    if isinstance(goals, Cost) or goals.groups is None:
        return None
    partitions, receives = cluster.partitions, cluster.nodes.may_receive
    scope, count = partition_scope(cluster), len(partitions.group_names)
    size = np.bincount(partitions.group, partitions.replicas, count)
    forced = size / max(int(receives.sum()), 1)
    for q, is_open in enumerate(scope.open):
        members, takes = scope.rule == q, receives & is_open
        wanted = np.where(members, partitions.replicas, 0)
        forced = np.maximum(forced, _held(partitions.group, wanted, count, int(takes.sum())))
        for limit in scope.demands[q].limits:
            if limit.kind != "spread" or not limit.hard or limit.tier == NODE_TIER:
                continue
            domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(limit.tier)]
            nodes = np.bincount(domain[takes & (domain >= 0)], minlength=1)
            nodes = nodes[nodes > 0]
            if len(nodes) and (domain[takes] >= 0).all():
                rest = np.maximum(wanted - limit.amount * (len(nodes) - 1), 0)
                held = _held(partitions.group, rest, count, int(nodes.min()))
                forced = np.maximum(forced, held)
    target: NDArray[np.float64] = np.maximum(
        np.floor((1.0 + goals.groups) * forced * (1.0 + ROUNDING)),
        np.ceil(forced * (1.0 - ROUNDING)),
    )
    return target.astype(np.int64)


def group_moves(cluster: Cluster, target: NDArray[np.int64]) -> int:
    """Return how many replicas must at least leave nodes that hold too many of their group.

    Those on nodes that live and keep nothing must as well.
    """
    partitions, placement, nodes = cluster.partitions, cluster.placement, cluster.nodes
    over = np.maximum(_table(cluster, placement.node) - target[:, None], 0)
    there = np.bincount(placement.owner[placement.node >= 0], minlength=len(partitions))
    surplus = np.maximum(there - partitions.replicas, 0)  # is dropped, which is no move
    dropped = np.bincount(partitions.group, surplus, len(target)).astype(np.int64)
    stays, goes = (
        np.bincount(placement.owner[np.append(one, False)[placement.node]], minlength=len(there))
        for one in (nodes.may_hold, nodes.serves & ~nodes.may_hold)
    )
    leaving = np.clip(partitions.replicas - stays, 0, goes).sum()
    crowded = np.maximum(over[:, nodes.may_hold].sum(1) - dropped, 0).sum()
    return int(crowded + leaving)


def groups_met(cluster: Cluster, goals: Goals | Cost, node: NDArray[np.int32]) -> bool:
    """Return whether no node holds too many replicas of a group, which are on ``node (K,)``."""
    target = group_targets(cluster, goals)
    return target is None or bool((_table(cluster, node).max(1, initial=0) <= target).all())


def group_excesses(cluster: Cluster, goals: Goals | Cost, node: NDArray[np.int32]) -> Iterator[str]:
    """Yield for groups that miss the goal the worst node, the worst group first."""
    target = group_targets(cluster, goals)
    if target is None:
        return
    held = _table(cluster, node)
    over = held.max(1, initial=0) - target
    for g in np.argsort(-over, kind="stable")[:LISTED].tolist():
        if over[g] > 0:
            n = int(held[g].argmax())
            yield (
                f"{cluster.nodes.names[n]} holds {int(held[g, n]):,} replicas of "
                f"{cluster.partitions.group_names[g]} where {int(target[g]):,} are within the goal"
            )


def _held(
    group: NDArray[np.int32], replicas: NDArray[np.int64], groups: int, nodes: int
) -> NDArray[np.float64]:
    """Return what some of so many nodes hold at least of each group."""
    share: NDArray[np.float64] = np.bincount(group, replicas, groups) / max(nodes, 1)
    return share


def _table(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count the replicas of each group on each node, (G, N)."""
    groups, size, there = len(cluster.partitions.group_names), len(cluster.nodes), node >= 0
    group = cluster.partitions.group[cluster.placement.owner[there]].astype(np.int64)
    return np.bincount(group * size + node[there], minlength=groups * size).reshape(groups, size)
