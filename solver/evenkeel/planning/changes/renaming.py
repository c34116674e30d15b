"""Renaming: replicas that trade domains in a circle are copied within their own instead."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.ends import Ends, matched
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.turns import turns_of
from evenkeel.planning.protocols import Protocol


def renamed(cluster: Cluster, target: Placement, protocol: Protocol) -> tuple[Placement, Ends]:
    """Return a target, and its ends, in which none trade domains that could not in any order."""
    ends = Ends.of(cluster.placement, target)
    if not protocol.joint or len(ends) == 0:
        return target, ends
    node, leader = target.node.copy(), target.leader.copy()
    changed = False
    for tier in reversed(range(len(cluster.topology))):
        rows, circle = _circles(cluster, ends, tier)
        if len(rows) == 0:
            continue
        some = ends.take(rows)
        turns = turns_of(Safety(cluster, some, protocol))
        stuck = np.flatnonzero(turns.disorderly)
        if len(stuck) == 0:
            continue
        rows, match = rows[stuck], circle[stuck]
        alone = np.logical_not(match.any(axis=2))
        match |= np.eye(match.shape[1], dtype=bool) & alone[:, :, None]
        where, _, leads = matched(ends, ends.leads, rows, match)
        ends = replace(ends, after=where, leads=leads)
        inside = ends.replica[rows] >= 0
        node[ends.replica[rows][inside]] = where[rows][inside]
        led = ends.partition[rows]
        leader[led] = np.where(leads[rows] >= 0, leads[rows], leader[led])
        changed = True
    if changed:
        target = replace(target, node=read_only(node), leader=read_only(leader))
        ends = Ends.of(cluster.placement, target)
    return target, ends


def _circles(cluster: Cluster, ends: Ends, tier: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return rows with a circle, and whether each slot stands where another comes, (n, R, R)."""
    before, after = ends.before, ends.after
    eye = np.eye(before.shape[1], dtype=bool)
    domain = np.append(cluster.topology.domain_with_nodes[tier], -1)
    moves = (before != after) & (before >= 0) & (after >= 0) & (domain[before] != domain[after])
    rows = np.flatnonzero(moves.sum(1) > 1)
    moves, home, to = moves[rows], domain[before[rows]], domain[after[rows]]
    meets = (home[:, :, None] == to[:, None, :]) & (home >= 0)[:, :, None]
    for role in (ends.role[rows], ends.becomes[rows]):
        meets &= role[:, :, None] == role[:, None, :]
    meets &= moves[:, :, None] & moves[:, None, :] & ~eye
    some = np.flatnonzero(meets.any(2).sum(1) > 1)
    rows, meets = rows[some], meets[some]
    reach = meets.copy()
    for _ in range(max(before.shape[1] - 1, 1).bit_length()):
        reach |= np.matmul(reach, reach)
    circle = meets & reach.transpose(0, 2, 1)
    some = np.flatnonzero(circle.any((1, 2)))
    return rows[some], circle[some]
