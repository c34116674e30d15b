"""Exchange moves between nodes so that the disks of each node have room.

A search levels nodes without their disks. Of the replicas that may leave a node it may take one on
a disk that has room, while another has to leave its disk in any case; and it may choose a node on
whose disks others must then be moved. On small clusters, one replica takes the place of another as
long as that makes moves cheaper, or leaves fewer disks above their targets, and nothing is worse
for nodes. One or two more replicas leave where disks miss their targets, or where that costs less
than the moves inside nodes.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined
from evenkeel.measure.disks import disk_report, price_of_moves
from evenkeel.measure.elections import led_from_behind
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.answers import objective_tuple, regresses
from evenkeel.methods.shared.disks import on_disks
from evenkeel.methods.shared.giving_up import with_last_in_sync
from evenkeel.methods.shared.size import size_of
from evenkeel.model.disks import disk_of
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Flag, Placement

EFFORT = 50_000  # replicas x nodes x placements that are tried at most
MOST = 60  # placements that are tried at most
# flags of replicas of which nothing has to be known before they move
PLAIN = np.uint16(Flag.HEALTHY | Flag.CAUGHT_UP | Flag.PREFERRED)

Moved = tuple[tuple[int, int], ...]  # replicas, and the node of each


class Score(NamedTuple):
    """What disks break and miss, and what moves cost; less is better."""

    broken: int
    over: int
    cost: float
    moves: int
    inside: int


def with_disks_in_view(request: Request, goals: Goals, placement: Placement) -> Placement:
    """Return a placement on disks that takes less inside nodes, of the same worth to nodes."""
    cluster = request.cluster
    tries = min(EFFORT // max(size_of(cluster), 1), MOST)
    if not tries:
        return placement
    troubled = _troubled(request, goals, placement)
    best, least = _score(request, goals, placement), _worth(request, placement)
    improved = True
    while improved and troubled.any():
        improved = False
        departs = best.over > 0 or goals.disk_move_cost * best.inside > 1.0
        if (limit := request.limits.disk_moves) is not None:
            departs &= best.inside < limit  # else what it forbids would move between nodes
        for moved in _exchanges(request, placement, troubled, departs):
            if not tries or request.watch.reason is not None:
                return placement
            tries -= 1
            node = placement.node.copy()
            for k, n in moved:
                node[k] = n
            made = cluster.placement.replaced(node, placement.leader)
            found = on_disks(cluster, made, goals.disks, request.limits.disk_moves).placement
            score = _score(request, goals, found)
            if score < best and _worth(request, found) <= least and not _worse(request, found):
                placement, best, improved = found, score, True
                least, troubled = _worth(request, found), _troubled(request, goals, found)
                break
    return placement


def _worth(request: Request, placement: Placement) -> tuple[float, ...]:
    """Return what nodes have of a placement, beside its moves; less is better."""
    return objective_tuple(request, _outcome(placement))[:-1]


def _worse(request: Request, placement: Placement) -> bool:
    behind = led_from_behind(request.cluster, placement)
    return bool(behind.any()) or regresses(request, _outcome(placement))


def _outcome(placement: Placement) -> Outcome:
    return Outcome(placement.node, placement.leader, "tolerance")


def _score(request: Request, goals: Goals, placement: Placement) -> Score:
    cluster, report = request.cluster, disk_report(request.cluster, placement, goals.disks)
    over = 0 if goals.disks is None else len(report.over_target)
    cost = price_of_moves(cluster, goals, placement)
    moves = int(joined(cluster.placement, placement).sum())
    return Score(report.broken, over, cost, moves, report.moves)


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
    request: Request, placement: Placement, troubled: NDArray[np.bool_], departs: bool
) -> Iterator[Moved]:
    """Return what may be tried on nodes in trouble; with ``departs``, also further departures."""
    # Another leaves in place of one that left; one that came goes elsewhere, or is exchanged for
    # another that came; another leaves for a third node; or, with ``departs``, one or two leave
    # besides.
    before, nodes = request.cluster.placement, request.cluster.nodes
    odd = (with_last_in_sync(request).cluster.placement.flags & ~PLAIN) != 0
    odd = (np.bincount(before.owner, odd, len(before)) > 0)[before.owner]
    was, now = before.node, placement.node
    moved = (was != now) & (now >= 0) & ~odd
    free = np.flatnonzero(nodes.accepts & nodes.alive).tolist()
    home = moved & np.append(nodes.may_hold & nodes.serves & troubled, False)[was]
    stay = (was == now) & ~odd & np.append(troubled, False)[now]
    pairs = [
        (x, y)
        for x in np.flatnonzero(home).tolist()
        for y in np.flatnonzero(stay & (now == was[x])).tolist()
    ]
    for x, y in pairs:
        yield (x, int(was[x])), (y, int(now[x]))
    some = np.flatnonzero(moved).tolist()
    came = [x for x in some if troubled[now[x]]]
    for x in came:
        yield from (((x, n),) for n in free if n != now[x])
    for x in came:
        yield from (((x, int(now[z])), (z, int(now[x]))) for z in some if now[z] != now[x])
    for x, y in pairs:
        yield from (((x, int(was[x])), (y, n)) for n in free if n not in (now[x], was[x]))
    if departs:
        steps = [
            (x, n)
            for x in np.flatnonzero((now >= 0) & ~odd).tolist()
            for n in free
            if n != now[x] and (troubled[n] or troubled[now[x]])
        ]
        yield from ((step,) for step in steps)
        yield from (two for two in combinations(steps, 2) if two[0][0] != two[1][0])
