"""Choose anew which replicas leave a node, and where they go, with the disks of nodes in view.

A search levels nodes without their disks. Of the replicas that may leave a node it takes one on a
disk that has room, while another has to leave its disk in any case; and it takes a node on whose
disks others must then make way. On small clusters, one replica takes the place of another as long
as that leaves less to move, or disks further below their targets, and nothing worse for nodes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import compare
from evenkeel.measure.disks import disk_report
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.answers import objective_tuple, regresses
from evenkeel.methods.shared.disks import on_disks
from evenkeel.methods.shared.giving_up import with_last_in_sync
from evenkeel.methods.shared.size import size_of
from evenkeel.model.disks import disk_of
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals, move_costs
from evenkeel.model.placement import Flag, Placement

EFFORT = 50_000
"""Replicas x nodes x placements that are tried at most."""

MOST = 60
"""Placements that are tried at most."""

PLAIN = np.uint16(Flag.HEALTHY | Flag.CAUGHT_UP | Flag.PREFERRED)
"""Flags of replicas of which nothing has to be known before they move."""

Moved = tuple[tuple[int, int], ...]
"""Replicas, and the node of each."""


class Score(NamedTuple):
    """What disks break and miss, and what moves cost; less is better."""

    broken: int
    over: int
    cost: float
    inside: int


def with_disks_in_view(request: Request, goals: Goals, placement: Placement) -> Placement:
    """Return a placement on disks that takes less inside nodes, of the same worth to nodes."""
    cluster = request.cluster
    tries = min(EFFORT // max(size_of(cluster), 1), MOST)
    if not tries:
        return placement
    troubled = _troubled(request, goals, placement)
    costs = move_costs(FaultList(), cluster, goals)
    best, least = _score(request, goals, placement, costs), _worth(request, placement)
    improved = True
    while improved and troubled.any():
        improved = False
        for moved in _exchanges(request, placement, troubled):
            if not tries or request.watch.reason is not None:
                return placement
            tries -= 1
            node = placement.node.copy()
            for k, n in moved:
                node[k] = n
            made = cluster.placement.replaced(node, placement.leader)
            found = on_disks(cluster, made, goals.disks).placement
            score = _score(request, goals, found, costs)
            if score < best and _worth(request, found) <= least and not _worse(request, found):
                placement, best, improved = found, score, True
                least, troubled = _worth(request, found), _troubled(request, goals, found)
                break
    return placement


def _worth(request: Request, placement: Placement) -> tuple[float, ...]:
    """Return what nodes have of a placement, beside its moves; less is better."""
    return objective_tuple(request, _outcome(placement))[:-1]


def _worse(request: Request, placement: Placement) -> bool:
    return regresses(request, _outcome(placement))


def _outcome(placement: Placement) -> Outcome:
    return Outcome(placement.node, placement.leader, "tolerance")


def _score(
    request: Request, goals: Goals, placement: Placement, costs: NDArray[np.float64]
) -> Score:
    report = disk_report(request.cluster, placement, goals.disks)
    over = 0 if goals.disks is None else len(report.over_target)
    joined = compare(request.cluster, request.cluster.placement, placement).joined
    cost = float(costs[placement.owner[joined]].sum())
    return Score(report.broken, over, cost, report.moves)


def _troubled(request: Request, goals: Goals, placement: Placement) -> NDArray[np.bool_]:
    """Return the nodes whose replicas change their disk, or with disks above their target."""
    cluster, before = request.cluster, request.cluster.placement
    found = np.zeros(len(cluster.nodes), np.bool_)
    assert cluster.disks is not None, "asked of a cluster without disks"
    lay, lies = disk_of(cluster.disks, before), disk_of(cluster.disks, placement)
    moved = (placement.node == before.node) & (lies != lay) & (lay >= 0)
    found[placement.node[moved]] = True
    report = disk_report(cluster, placement, goals.disks)
    found[cluster.disks.node[np.concatenate([report.over_target, report.over_capacity])]] = True
    found[placement.node[np.concatenate([report.to_empty, report.adrift])]] = True
    return found


def _exchanges(
    request: Request, placement: Placement, troubled: NDArray[np.bool_]
) -> Iterator[Moved]:
    """Return what may be tried on nodes in trouble.

    Another leaves in place of one that left; one that came goes elsewhere, or is exchanged for
    another that came; another leaves for a third node.
    """
    before, nodes = request.cluster.placement, request.cluster.nodes
    odd = (with_last_in_sync(request).cluster.placement.flags & ~PLAIN) != 0
    odd = (np.bincount(before.owner, odd, len(before)) > 0)[before.owner]
    was, now = before.node, placement.node
    joined = (was != now) & (now >= 0) & ~odd
    free = np.flatnonzero(nodes.accepts & nodes.alive).tolist()
    home = joined & np.append(nodes.may_hold & nodes.serves & troubled, False)[was]
    stay = (was == now) & ~odd & np.append(troubled, False)[now]
    pairs = [
        (x, y)
        for x in np.flatnonzero(home).tolist()
        for y in np.flatnonzero(stay & (now == was[x])).tolist()
    ]
    for x, y in pairs:
        yield (x, int(was[x])), (y, int(now[x]))
    some = np.flatnonzero(joined).tolist()
    came = [x for x in some if troubled[now[x]]]
    for x in came:
        yield from (((x, n),) for n in free if n != now[x])
    for x in came:
        yield from (((x, int(now[z])), (z, int(now[x]))) for z in some if now[z] != now[x])
    for x, y in pairs:
        yield from (((x, int(was[x])), (y, n)) for n in free if n not in (now[x], was[x]))
