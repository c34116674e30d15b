"""Lower bound on the fullest node if only replicas move that must.

Lost and missing replicas must find room beside everything that stays. One large replica may not
find a balanced node, and then no choice for the others helps.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, Scope, partition_scope
from evenkeel.measure.bounds.moves import keepable
from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster


def rehoming_level(cluster: Cluster, largest: int | None = None) -> float:
    """Prove how full the fullest node is, in whichever dimension, after the fewest moves of all.

    It holds for every placement that places all replicas wanted, breaks no hard rule, and keeps
    whatever can be kept of the cluster's own placement. A replica for which no node has capacity is
    left out: there is no such placement then.

    Only the ``largest`` partitions that lack replicas are looked at, if it is given.
    """
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    kept = keepable(placed)
    nodes = cluster.nodes
    seen = nodes.serves
    full = utilisation(kept.load, nodes.capacity)
    level = float(full[seen].max(initial=0.0))
    stays = np.bincount(
        placed.partition(np.flatnonzero(kept.node_row)), minlength=len(cluster.partitions)
    )
    lacking = np.flatnonzero(stays < cluster.partitions.replicas)
    widest = np.where(nodes.may_receive[:, None], nodes.capacity, 0.0).max(axis=0, initial=0.0)
    size = utilisation(placed.lightest[lacking], widest).max(axis=1, initial=0.0)
    for p in lacking[np.argsort(-size, kind="stable")[:largest]].tolist():
        beside = utilisation(kept.load + placed.lightest[p], nodes.capacity).max(axis=1)
        there = beside[_open_to(cluster, scope, p)]
        least = float(there.min(initial=np.inf))
        if least <= 1.0:
            level = max(level, least)
    return level


def _open_to(cluster: Cluster, scope: Scope, p: int) -> NDArray[np.bool_]:
    """Nodes that may be given a replica of a partition that keeps what it can, (N,)."""
    nodes, placement, topology = cluster.nodes, cluster.placement, cluster.topology
    is_open: NDArray[np.bool_] = nodes.may_receive & scope.open[scope.rule[p]]
    is_open[cluster.forbidden[cluster.forbidden[:, 0] == p, 1]] = False
    held = placement.node[placement.first[p] : placement.first[p + 1]]
    held = held[held >= 0]
    held = held[nodes.may_hold[held]]
    if len(held) > cluster.partitions.replicas[p]:
        return is_open  # some of these are dropped, whichever
    for binding in scope.bindings:
        if binding.kind != "spread" or not binding.hard or binding.amount[p] == NONE:
            continue
        domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
        there, count = np.unique(domain[held], return_counts=True)
        taken = there[(count == binding.amount[p]) & (there >= 0)]
        is_open &= ~np.isin(domain, taken)
    return is_open
