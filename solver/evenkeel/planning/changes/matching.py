"""Matching: replicas of a partition whose changes are blocked go to its new nodes in other ways."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, permutations, product

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.actions import Act, Acts, never
from evenkeel.planning.changes.partition_order import turns_of
from evenkeel.planning.changes.paths import Did, Edge, Partition, acts_along
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import Ends, matched
from evenkeel.planning.protocols import Protocol

WAYS = 120
"""Ways that are tried of each partition: all of five replicas."""


def rematched(
    cluster: Cluster,
    target: Placement,
    ends: Ends,
    acts: Acts,
    protocol: Protocol,
    at_once: float,
    *,
    urged: bool,
) -> tuple[Placement, Ends, Acts]:
    """Return target, ends and acts in which what was blocked goes another way if one is open.

    Replicas of a partition are alike if their roles are, so it is all one which of them goes to
    which of its new nodes. The way of the fewest acts is taken, the first of those; what is lost
    goes first if ``urged``.
    """
    blocked = np.isin(ends.partition, acts.partition[acts.blocked]) & ~never(cluster, ends)
    safety = Safety(cluster, ends, protocol)
    rows: list[int] = []
    origins: list[list[int]] = []
    changes: list[tuple[int, tuple[Did, ...]]] = []
    if not urged:  # all others have been tried
        blocked &= (safety.urgent != safety.begun).any(1)
    for row in np.flatnonzero(blocked & tradable(target, ends)).tolist():
        partition = Partition(safety, row, at_once, urged=urged)
        best: list[Edge] | None = None
        fewest = len(partition.moves)
        for origin in ways_of(cluster, ends, row):
            way = partition.traded(origin).way()
            if way is not None and (best is None or _acts(way) < _acts(best)):
                best, taken = way, origin
                if _acts(way) <= fewest:
                    break
        if best is not None:
            rows.append(row)
            origins.append(taken)
            changes += [(row, edge.did) for edge in best]
    if not rows:
        return target, ends, acts
    acts = acts.with_others(acts_along(ends, changes), ends.partition[rows])
    return *traded(target, ends, np.array(rows), np.array(origins)), acts


def _acts(way: list[Edge]) -> int:
    """Return how many acts a way takes."""
    return sum(len(edge.did) for edge in way)


def tradable(target: Placement, ends: Ends) -> NDArray[np.bool_]:
    """Return the rows of which no slot waits for a node that is down, (A,), or leads unasked.

    Such a slot stands elsewhere in the target than in its ends, or does not lead there.
    """
    there = ((ends.after == target.node[ends.replica]) | (ends.replica < 0)).all(1)
    return np.asarray(there & ((ends.leads < 0) | (ends.leads == target.leader[ends.partition])))


def as_led(target: Placement, ends: Ends, acts: Acts) -> tuple[Placement, Ends]:
    """Return a target, and its ends, in which slots have the nodes that acts lead them to."""
    node = target.node.copy()
    goes = (acts.act == Act.MOVE) & ~acts.blocked
    # the last act of a replica is where it stays
    node[acts.replica[goes]] = acts.target[goes]
    there = np.where(ends.replica >= 0, node[ends.replica], ends.after)
    rows = np.flatnonzero((there != ends.after).any(1) & tradable(target, ends))
    origin = np.argmax(ends.after[rows][:, None, :] == there[rows][:, :, None], axis=2)
    return traded(target, ends, rows, origin)


def ways_of(cluster: Cluster, ends: Ends, row: int) -> Iterator[list[int]]:
    """Yield from which slot each slot takes its node, in all ways but the usual one."""
    replica = ends.replica[row]
    begun = (cluster.placement.flags[replica] & Flag.INCOMING) != 0
    free = ends.moves[row] & ~ends.recasts[row] & ~begun
    leads = int(ends.leads[row])
    # what leads without a vote goes on, but no other takes that over
    free[leads] &= leads < 0 or ends.becomes[row, leads] == Role.VOTER
    # where roles change in place anyway, another may come to be what one is to become
    recast = bool(ends.recasts[row].any())
    alike: dict[tuple[int, int], list[int]] = {}
    for slot in np.flatnonzero(free).tolist():
        becomes = -1 if recast else int(ends.becomes[row, slot])
        alike.setdefault((int(ends.role[row, slot]), becomes), []).append(slot)
    slots = [slot for group in alike.values() for slot in group]
    ways = product(*(islice(permutations(group), WAYS) for group in alike.values()))
    for way in islice(ways, 1, WAYS):
        origin = list(range(len(replica)))
        for slot, other in zip(slots, chain.from_iterable(way), strict=True):
            origin[slot] = other
        yield origin


def by_way(ends: Ends, rows: NDArray[np.intp], origin: NDArray[np.intp]) -> Ends:
    """Return some rows of the ends in which slots take the nodes of others, and their roles."""
    some = ends.take(rows)
    leads = np.where(some.leads >= 0, np.argmax(origin == some.leads[:, None], axis=1), some.leads)
    after = np.take_along_axis(some.after, origin, 1)
    becomes = np.take_along_axis(some.becomes, origin, 1)
    # what only leaves keeps its role, and what only comes has that from the beginning
    becomes = np.where(after >= 0, becomes, some.role)
    role = np.where(some.before >= 0, some.role, becomes)
    return replace(some, after=after, role=role, becomes=becomes, leads=leads)


def traded(
    target: Placement, ends: Ends, rows: NDArray[np.intp], origin: NDArray[np.intp]
) -> tuple[Placement, Ends]:
    """Return target and ends in which slots of some rows take the nodes and roles of others."""
    if len(rows) == 0:
        return target, ends
    some = by_way(ends, rows, origin)
    inside = some.replica >= 0
    node, role, leader = target.node.copy(), target.role.copy(), target.leader.copy()
    node[some.replica[inside]] = some.after[inside]
    role[some.replica[inside]] = some.becomes[inside]
    led = some.partition[some.leads >= 0]
    leader[led] = some.leads[some.leads >= 0]
    node, role, leader = read_only(node), read_only(role), read_only(leader)
    target = replace(target, node=node, role=role, leader=leader)
    changed = {}
    for name in ("after", "role", "becomes", "leads"):
        changed[name] = getattr(ends, name).copy()
        changed[name][rows] = getattr(some, name)
    return target, replace(ends, **changed)


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
