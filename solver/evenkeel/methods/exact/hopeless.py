"""What no placement mends, seen without a search: too few nodes, or no moves left."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.regressions import spread_excess_before
from evenkeel.methods.shared.replica_counts import missing_places
from evenkeel.methods.shared.scope import NONE, partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement

OF_PLACES = frozenset({"unassigned", "on_dead", "not_kept", "min_active"})
"""What is broken where replicas have no node that keeps them."""

OF_LEADERS = frozenset({"leader", "leaderless"})
"""What a leader elsewhere may mend, however few nodes there are."""

OF_MASKS = frozenset({"require", "voters_require", "forbidden"})
"""What is broken by replicas on nodes that are not open to them."""


def is_hopeless(
    cluster: Cluster, limits: Limits, placement: Placement, audited: Audit, is_endangered: bool
) -> bool:
    """Whether nothing that is broken can be mended, as each partition by itself shows.

    Where partitions are endangered, moves may have been spent on the wrong ones, or on evacuating
    live replicas that had better stay until another stands beside them.
    """
    leaving = np.append(cluster.nodes.serves & ~cluster.nodes.may_hold, False)
    if is_endangered and leaving[cluster.placement.node].any():
        return False
    broken = [one for one in audited.found if KINDS[one.kind].hard and one.count]
    missing = missing_places(cluster, placement.node)
    if limits.moves is not None and not is_endangered and {one.kind for one in broken} <= OF_PLACES:
        placed = int((missing_places(cluster, cluster.placement.node) - missing).sum())
        if placed >= limits.moves and _stand_apart(cluster):
            return True  # each of these took a move, and so would each of the others
    if any(one.kind in OF_LEADERS or (one.partition < 0).any() for one in broken):
        return False
    if any(one.kind in OF_MASKS and (missing[one.partition] > 0).any() for one in broken):
        return False  # who stands where it may not leaves the places of others free
    lacking = lacking_nodes(cluster)
    beyond = all((lacking[one.partition] > 0).all() for one in broken)
    return beyond and bool((missing <= lacking).all())


def _stand_apart(cluster: Cluster) -> bool:
    """Whether no two replicas of a partition may share a node: who joins one makes no move."""
    apart = np.zeros(len(cluster.partitions), bool)
    for binding in partition_scope(cluster).bindings:
        if binding.kind == "spread" and binding.hard and binding.tier == "node":
            apart |= binding.amount == 1
    return bool(apart.all())


def lacking_nodes(cluster: Cluster) -> NDArray[np.int64]:
    """Count the replicas wanted of each partition that find no node whatever is moved, (P,).

    A partition is looked at by itself, and only its mask, its bans and its hard spread limits,
    which may stay broken as far as they came.
    """
    placement, nodes, scope = cluster.placement, cluster.nodes, partition_scope(cluster)
    wanted = cluster.partitions.replicas.astype(np.int64)
    by_rule = scope.open[scope.rule]
    open_to = by_rule & nodes.may_receive
    stands = np.flatnonzero(np.append(nodes.may_hold, False)[placement.node])
    owner, node = placement.owner[stands], placement.node[stands]
    open_to[owner, node] |= by_rule[owner, node]
    open_to[tuple(cluster.forbidden.T)] = False
    most = wanted.copy()
    excess = spread_excess_before(cluster)
    for binding in scope.bindings:
        if binding.kind != "spread" or not binding.hard:
            continue
        row = cluster.topology.tier_index(binding.tier)
        domain = cluster.topology.domain_with_nodes[row]
        if (domain < 0).any():
            continue
        inside = domain[:, None] == np.unique(domain)
        reached = (open_to.astype(np.int64) @ inside.astype(np.int64) > 0).sum(axis=1)
        bound = binding.amount != NONE
        most[bound] = np.minimum(most, reached * binding.amount + excess[row])[bound]
    most[placement.owner[(placement.flags & Flag.PINNED) != 0]] = wanted.max(initial=0)
    lacking: NDArray[np.int64] = np.maximum(wanted - most, 0)
    return lacking
