"""Matching: other assignments of a blocked partition's replicas to its new nodes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, permutations, product

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.actions import Action, Actions, never
from evenkeel.planning.changes.paths import Did, Edge, Partition, actions_along
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.throttle import Protocol

WAYS = 120
"""Ways that are tried of each partition: all of five replicas."""


def rematched(
    cluster: Cluster,
    target: Placement,
    transitions: TransitionTable,
    actions: Actions,
    protocol: Protocol,
    at_once: float,
    *,
    urged: bool,
) -> tuple[Placement, TransitionTable, Actions]:
    """Return target, ends and actions in which what was blocked goes another way if one is open.

    Replicas of a partition are alike if their roles are, so it is all one which of them goes to
    which of its new nodes. The way of the fewest actions is taken, the first of those; what is lost
    goes first if ``urged``.
    """
    blocked = np.isin(transitions.partition, actions.partition[actions.blocked]) & ~never(
        cluster, transitions
    )
    safety = Safety(cluster, transitions, protocol)
    rows: list[int] = []
    origins: list[list[int]] = []
    changes: list[tuple[int, tuple[Did, ...]]] = []
    if not urged:  # all others have been tried
        blocked &= (safety.urgent != safety.begun).any(1)
    for row in np.flatnonzero(blocked & tradable(target, transitions)).tolist():
        partition = Partition(safety, row, at_once, urged=urged)
        best: list[Edge] | None = None
        fewest = len(partition.moves)
        for origin in ways_of(cluster, transitions, row):
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
        return target, transitions, actions
    actions = actions.with_others(actions_along(transitions, changes), transitions.partition[rows])
    return *traded(target, transitions, np.array(rows), np.array(origins)), actions


def _acts(way: list[Edge]) -> int:
    """Return how many actions a way takes."""
    return sum(len(edge.did) for edge in way)


def tradable(target: Placement, transitions: TransitionTable) -> NDArray[np.bool_]:
    """Return the rows of which no slot waits for a node that is down, (A,), or leads unasked.

    Such a slot stands elsewhere in the target than in its ends, or does not lead there.
    """
    there = (
        (transitions.after == target.node[transitions.replica]) | (transitions.replica < 0)
    ).all(1)
    return np.asarray(
        there
        & ((transitions.leads < 0) | (transitions.leads == target.leader[transitions.partition]))
    )


def as_led(
    target: Placement, transitions: TransitionTable, actions: Actions
) -> tuple[Placement, TransitionTable]:
    """Return a target, and its ends, in which slots have the nodes that actions lead them to."""
    node = target.node.copy()
    goes = (actions.action == Action.MOVE) & ~actions.blocked
    # the last act of a replica is where it stays
    node[actions.replica[goes]] = actions.target[goes]
    there = np.where(transitions.replica >= 0, node[transitions.replica], transitions.after)
    rows = np.flatnonzero((there != transitions.after).any(1) & tradable(target, transitions))
    origin = np.argmax(transitions.after[rows][:, None, :] == there[rows][:, :, None], axis=2)
    return traded(target, transitions, rows, origin)


def ways_of(cluster: Cluster, transitions: TransitionTable, row: int) -> Iterator[list[int]]:
    """Yield from which slot each slot takes its node, in all ways but the usual one."""
    replica = transitions.replica[row]
    begun = (cluster.placement.flags[replica] & Flag.INCOMING) != 0
    free = transitions.moves[row] & ~transitions.recasts[row] & ~begun
    leads = int(transitions.leads[row])
    # what leads without a vote goes on, but no other takes that over
    free[leads] &= leads < 0 or transitions.becomes[row, leads] == Role.VOTER
    # where roles change in place anyway, another may come to be what one is to become
    recast = bool(transitions.recasts[row].any())
    alike: dict[tuple[int, int], list[int]] = {}
    for slot in np.flatnonzero(free).tolist():
        becomes = -1 if recast else int(transitions.becomes[row, slot])
        alike.setdefault((int(transitions.role[row, slot]), becomes), []).append(slot)
    slots = [slot for group in alike.values() for slot in group]
    ways = product(*(islice(permutations(group), WAYS) for group in alike.values()))
    for way in islice(ways, 1, WAYS):
        origin = list(range(len(replica)))
        for slot, other in zip(slots, chain.from_iterable(way), strict=True):
            origin[slot] = other
        yield origin


def traded(
    target: Placement,
    transitions: TransitionTable,
    rows: NDArray[np.intp],
    origin: NDArray[np.intp],
) -> tuple[Placement, TransitionTable]:
    """Return target and ends in which slots of some rows take the nodes and roles of others."""
    if len(rows) == 0:
        return target, transitions
    some = transitions.take(rows)
    leads = np.where(some.leads >= 0, np.argmax(origin == some.leads[:, None], axis=1), some.leads)
    after = np.take_along_axis(some.after, origin, 1)
    becomes = np.take_along_axis(some.becomes, origin, 1)
    # what only leaves keeps its role, and what only comes has that from the beginning
    becomes = np.where(after >= 0, becomes, some.role)
    role = np.where(some.before >= 0, some.role, becomes)
    some = replace(some, after=after, role=role, becomes=becomes, leads=leads)
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
        changed[name] = getattr(transitions, name).copy()
        changed[name][rows] = getattr(some, name)
    return target, replace(transitions, **changed)
