"""Compute the load that leaders may still add to nodes and to domains with a capacity.

Where replicas stay, only a change of leaders can fill a node. Most clusters have room for any
choice of leaders, which is tested first; headroom is then not checked again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import compare
from evenkeel.measure.loads import node_loads
from evenkeel.methods.contract import Request
from evenkeel.methods.leaders.flow import Arcs
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel_kernels.leaders.level_by_load import LeadRoom

ROUNDING = 1e-12  # part of what a row may carry by which sums in another order may differ


class LeaderStart(NamedTuple):
    """A choice of leaders to begin with, for which there is room."""

    arcs: Arcs  # of the partitions that the choice leads
    room: LeadRoom
    taken: NDArray[np.int64]  # (P,), the arc of each partition
    began: NDArray[np.int64]  # (P,), the arc of its leader, or -1
    left: int  # partitions that stay led as they came


def unled(start: Placement, arcs: Arcs) -> Placement:
    """Return a placement without the leaders that the arcs decide."""
    leader = start.leader.copy()
    leader[start.owner[arcs.replica]] = -1
    return start.replaced(start.node, leader)


def lead_loads(cluster: Cluster, start: Placement, arcs: Arcs) -> NDArray[np.float64]:
    """Return the load that leading each partition of the arcs adds to a voter's node, (P, D)."""
    load = cluster.partitions.load
    return np.asarray(load.leader - load.voter)[_owners(start, arcs)]


def room_of(cluster: Cluster, start: Placement, arcs: Arcs) -> LeadRoom:
    """Return the load of leading and the headroom; no dimension where any choice has room."""
    row = _rows(cluster)
    weight = lead_loads(cluster, start, arcs)
    beat()
    base = _loads_of_rows(cluster, row, unled(start, arcs))
    shared = cluster.topology.tier_capacity.values()
    most = np.concatenate([cluster.nodes.capacity, *shared])
    most = np.maximum(most, _loads_of_rows(cluster, row, cluster.placement)) * (1.0 + ROUNDING)
    greatest = base + _sums(row, arcs.node, np.maximum(weight, 0.0), arcs.p, len(base))
    if (greatest <= most).all():
        weight, base, most = weight[:, :0], base[:, :0], most[:, :0]
    return LeadRoom(row, weight.copy(), base.copy(), most.copy(), base.copy())


def overflows(arcs: Arcs, room: LeadRoom, taken: NDArray[np.int64]) -> bool:
    """Return whether a row would carry more than it may if partitions were led over these arcs."""
    more = _sums(room.row, arcs.node[taken], room.weight, slice(None), len(room.base))
    return bool((room.base + more > room.most).any())


def initial_leaders(cluster: Cluster, start: Placement, arcs: Arcs, room: LeadRoom) -> LeaderStart:
    """Keep eligible leaders; elect others where there is room, first fit."""
    began, first = arcs.began, arcs.first
    taken = np.where(began >= 0, began, first[:-1])
    if room.base.shape[1] == 0:
        return LeaderStart(arcs, room, taken, began, 0)
    load = _loads_of_rows(cluster, room.row, start)
    of_voter, of_other = cluster.partitions.load.voter, cluster.partitions.load.non_voter
    owner = _owners(start, arcs)
    kept = np.ones(arcs.count, bool)
    for p in np.flatnonzero(began < 0).tolist():
        beat()
        q, k = int(owner[p]), int(start.leader_replica[owner[p]])
        here = _rows_of(room, int(start.leader_node[q]))
        follows = of_other if start.role[k] == Role.NON_VOTER else of_voter
        lead = cluster.partitions.load.leader[q] - follows[q]
        load[here] -= lead
        fits = not (load[here] > room.most[here])[:, lead < 0.0].any()
        successors = range(first[p], first[p + 1]) if fits else range(0)
        for a in successors:
            there = _rows_of(room, int(arcs.node[a]))
            then = load[there] + room.weight[p]
            if not (then > room.most[there])[:, room.weight[p] > 0.0].any():
                load[there] = then
                taken[p] = a
                break
        else:
            load[here] += lead
            kept[p] = False
    if kept.all():
        return LeaderStart(arcs, room, taken, began, 0)
    fewer = _only(arcs, kept)
    number = np.cumsum(kept[arcs.p]) - 1
    return LeaderStart(
        fewer,
        room_of(cluster, start, fewer),
        number[taken[kept]],
        np.where(began[kept] >= 0, number[began[kept]], -1),
        int(np.count_nonzero(~kept)),
    )


def within_changes(request: Request, arcs: Arcs) -> tuple[Arcs, int | None, int]:
    """Return the arcs that a limit of leader changes leaves, the changes left, partitions left out.

    Left out are partitions whose live leader may not lead on, beyond as many as the limit allows.
    """
    cluster, start, most = request.cluster, request.start, request.limits.leader_changes
    if most is None:
        return arcs, None, 0
    most = max(0, most - compare(cluster, cluster.placement, start).leader_changes)
    alive = np.append(cluster.nodes.alive, False)
    must = (arcs.began < 0) & alive[start.leader_node[_owners(start, arcs)]]
    kept = ~must | (np.cumsum(must) <= most)
    return _only(arcs, kept), most - int((must & kept).sum()), int(np.count_nonzero(~kept))


def handed_on(start: LeaderStart, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the arcs of a start, (P,), with those ``wanted (P,)`` in their place as these fit."""
    room, taken, count = start.room, start.taken.copy(), -1
    node = start.arcs.node
    room.load[:] = room.base + _sums(
        room.row, node[taken], room.weight, slice(None), len(room.base)
    )
    while count != (count := int((taken != wanted).sum())):
        for p in np.flatnonzero(taken != wanted).tolist():
            beat()
            here, there = (_rows_of(room, int(node[a])) for a in (taken[p], wanted[p]))
            rows = np.union1d(here, there)
            before = room.load[rows]
            room.load[here] -= room.weight[p]
            room.load[there] += room.weight[p]
            after = room.load[rows]
            if ((after > room.most[rows]) & (after > before)).any():
                room.load[rows] = before
            else:
                taken[p] = wanted[p]
    return taken


def left_as_they_came(left: int) -> tuple[str, ...]:
    """Warn of partitions whose leader stays since no better one has room."""
    if left == 0:
        return ()
    return (
        f"{left:,} partitions keep their leader: no other node has room, or limits allow no "
        "change. What is proven is of the others.",
    )


def _owners(start: Placement, arcs: Arcs) -> NDArray[np.int32]:
    """Return which partition of the cluster each partition of the arcs is."""
    owner: NDArray[np.int32] = start.owner[arcs.replica]
    return owner[np.searchsorted(arcs.p, np.arange(arcs.count))]


def _rows(cluster: Cluster) -> NDArray[np.int64]:
    """Number the rows of each node: itself, then its domains, where these have a capacity."""
    nodes, topology = cluster.nodes, cluster.topology
    found = [np.arange(len(nodes))]
    below = len(nodes)
    serving = nodes.carries
    for tier, capacity in topology.tier_capacity.items():
        domain = topology.domain[topology.tier_index(tier)]
        found.append(np.where(serving & (domain >= 0), domain + below, -1))
        below += len(capacity)
    return np.ascontiguousarray(np.stack(found, axis=1).astype(np.int64))


def _rows_of(room: LeadRoom, node: int) -> NDArray[np.int64]:
    """Return the rows of a node; none of -1."""
    row = room.row[node] if node >= 0 else room.row[0, :0]
    return row[row >= 0]


def _loads_of_rows(
    cluster: Cluster, row: NDArray[np.int64], placement: Placement
) -> NDArray[np.float64]:
    """Return the load of nodes and domains under a placement, (M, D)."""
    count = sum(map(len, cluster.topology.tier_capacity.values()), len(cluster.nodes))
    return _sums(row, np.arange(len(row)), node_loads(cluster, placement), slice(None), count)


def _sums(
    row: NDArray[np.int64],
    node: NDArray[np.integer],
    load: NDArray[np.float64],
    of: NDArray[np.integer] | slice,
    count: int,
) -> NDArray[np.float64]:
    """Add ``load[of] (X, D)`` to all the rows ``row (N, T)`` of the nodes ``node (X,)``."""
    total = np.zeros((count, load.shape[1]))
    columns = np.ascontiguousarray(load.T)
    for t in range(row.shape[1]):
        # what has no row is added to one beyond the last
        here = np.where(row[:, t] < 0, count, row[:, t])[node]
        for d, column in enumerate(columns):
            beat()
            total[:, d] += np.bincount(here, column[of], count + 1)[:-1]
    return total


def _only(arcs: Arcs, kept: NDArray[np.bool_]) -> Arcs:
    """Return the arcs of some partitions."""
    stays, number = kept[arcs.p], np.cumsum(kept) - 1
    return Arcs(
        arcs.replica[stays],
        number[arcs.p[stays]],
        arcs.node[stays],
        arcs.leads[stays],
        int(np.count_nonzero(kept)),
    )
