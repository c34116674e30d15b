"""Asked: what a target carries bounds a plan, and not what becomes of the target on the way."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only

ROUNDING = 1e-9
"""Share of a limit that is rounding."""


def room(cluster: Cluster, asked: Placement) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return places of every node, (N, 1 + T), and their limits less what a target carries, (M, D).

    Places are nodes, and domains with a capacity; the last place has all the room there is. A limit
    is a capacity, or what the beginning or the target carries where that is more.
    """
    nodes, topology = cluster.nodes, cluster.topology
    count = len(nodes)
    start, end = (PlacementCounts.of(cluster, one).loads for one in (cluster.placement, asked))
    places, limits, loads = [np.arange(count)], [nodes.capacity], [(start, end)]
    size = count
    for tier, capacity in topology.tier_capacity.items():
        domain = topology.domain_with_nodes[topology.tier_index(tier)]
        inside = np.flatnonzero(nodes.carries & (domain >= 0))
        sums = np.zeros((2, *capacity.shape))
        for total, one in zip(sums, (start, end), strict=True):
            np.add.at(total, domain[inside], one[inside])
        place = np.full(count, -1, np.intp)
        place[inside] = size + domain[inside]
        places.append(place)
        limits.append(capacity)
        loads.append((sums[0], sums[1]))
        size += len(capacity)
    where = np.stack(places, 1).astype(np.intp)
    where[where < 0] = size
    where[~nodes.carries, 0] = size
    most = np.concatenate(limits)
    before, after = (np.concatenate(one) for one in zip(*loads, strict=True))
    most = np.maximum(most, np.maximum(before, after))
    endless = np.full((1, most.shape[1]), np.inf)
    with np.errstate(invalid="ignore"):
        free = np.concatenate([most * (1.0 + ROUNDING) - after, endless])
    return where, free


def in_bounds(cluster: Cluster, asked: Placement, target: Placement) -> Placement | None:
    """Return what a plan to a target is bound by if that is not the target itself.

    Where some of what was asked stays behind, what stays and what comes together may be more than
    there is room for, or than a group may have: then it is what was asked.
    """
    other = _unlike(cluster, asked, target)
    if not other.any() or not _exceeds(cluster, asked, target):
        return None
    # what stays listed on a node that is down is what rules of its partition see
    listed = np.append(~cluster.nodes.serves, False)[target.node]
    return with_rows(target, other, asked, other[target.owner] & ~listed)


def as_far(cluster: Cluster, found: Placement, bound: Placement, target: Placement) -> Placement:
    """Return what was found on the way to a bound, as far as the target goes along with that."""
    which = _unlike(cluster, bound, target)
    return with_rows(found, which, target, which[target.owner])


def _unlike(cluster: Cluster, asked: Placement, target: Placement) -> NDArray[np.bool_]:
    """Tell which partitions have live replicas or leaders in a target that were not asked, (P,).

    What stays listed on a node that is down takes nobody's room.
    """
    live = np.append(cluster.nodes.serves, False)
    differs = (asked.leader_node != target.leader_node) & live[target.leader_node]
    other = (asked.node != target.node) | (asked.role != target.role)
    differs[asked.owner[other & live[target.node]]] = True
    return np.asarray(differs)


def with_rows(
    placement: Placement,
    leaders: NDArray[np.bool_],
    other: Placement,
    rows: NDArray[np.bool_],
) -> Placement:
    """Return a placement with leaders (P,) and replicas (K,) of another."""
    return replace(
        placement,
        node=read_only(np.where(rows, other.node, placement.node)),
        role=read_only(np.where(rows, other.role, placement.role)),
        leader=read_only(np.where(leaders, other.leader, placement.leader)),
    )


def _exceeds(cluster: Cluster, asked: Placement, target: Placement) -> bool:
    """Whether a target may break a limit that another keeps."""
    grouped = (cluster.partitions.group_rule >= 0).any() or len(cluster.depends)
    if grouped and (asked.node != target.node).any():
        return True
    counts = [PlacementCounts.of(cluster, one) for one in (cluster.placement, asked, target)]
    start, end, now = (one.replicas for one in counts)
    most = cluster.nodes.max_replicas
    bound = cluster.nodes.carries & (most >= 0)
    if (bound & (now > np.maximum(most, np.maximum(start, end)))).any():
        return True
    where, free = room(cluster, asked)
    more = counts[2].loads - counts[1].loads
    for place in where.T:
        np.subtract.at(free, place, more)
    return bool((free < 0.0).any())
