"""Search: every order of a few changes, by the bytes that detours cost, where scheduling is stuck.

Uniform-cost search (Dijkstra 1959) over what has been done and what waits on a spare node. One
change at a time is enough: what may run side by side may run one after another.
"""

from dataclasses import dataclass, fields
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.acts import Act, Acts
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.draft import Draft
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.resources.groups import charge_groups
from evenkeel.planning.resources.space import charge_space
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.stuck.staging import Room, by_way_of

FEW = 14
"""Changes whose orders are searched."""

SPARES = 16
"""Nodes on which each of them may wait, the roomiest."""

STATES = 3000
"""States that are looked at."""

PENDING, DONE = -1, -2
"""What has become of a change; else the node on which its replica waits."""

State = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Transitions:
    """What each change may do: T rows, Q resources that any of them touch.

    Parameters
    ----------
    change : list of int
        Position of the change among those searched.
    before, after : list of int
        What has become of it.
    cost : list of float
        Bytes of a detour.
    claim, gift : ndarray of float64, shape (T, Q)
        Taken at the start, and given back at the finish.
    """

    change: list[int]
    before: list[int]
    after: list[int]
    cost: list[float]
    claim: NDArray[np.float64]
    gift: NDArray[np.float64]


def searched(draft: Draft, protocol: Protocol) -> tuple[Acts, list[int]] | None:
    """Return acts with detours, and changes in an order in which all of them get through.

    None where there is no order, or none was found among so many states. Where the draft has but a
    few changes they are searched from the beginning, else from where it got stuck. What rules admit
    in no order stays out of it.
    """
    hopeless = draft.acts.partition[draft.acts.blocked]
    changes = np.arange(len(draft.schedule.start))
    whole = len(changes) <= FEW
    if not whole:
        changes = draft.stuck
    first = np.searchsorted(draft.acts.change, changes)
    chosen = changes[~np.isin(draft.acts.partition[first], hopeless)].tolist()
    if not 0 < len(chosen) <= FEW:
        return None
    free = np.concatenate(draft.resources.free) if whole else draft.schedule.free
    room = Room(draft, Safety(draft.cluster, draft.ends, protocol), free)
    transitions, touched = _transitions(draft, chosen, room)
    way = _way(draft, chosen, transitions, free[touched])
    return None if way is None else _in_turn(draft, chosen, transitions, way)


def _transitions(
    draft: Draft, chosen: list[int], room: Room
) -> tuple[Transitions, NDArray[np.int32]]:
    """List what changes may do, and the resources, (Q,), that they touch."""
    acts, cluster = draft.acts, draft.cluster
    rows = [np.flatnonzero(acts.change == c) for c in chosen]
    made: list[tuple[int, int, int, float, NDArray[np.intp], int, int]] = []
    for position, mine in enumerate(rows):
        made.append((position, PENDING, DONE, 0.0, mine, -1, -1))
        i = int(mine[0])
        if len(mine) > 1 or acts.act[i] != Act.MOVE:
            continue
        for n in room.spare_nodes(i, SPARES):
            made.append((position, PENDING, n, float(draft.copies.size[i]), mine, -1, n))
            made.append((position, n, DONE, 0.0, mine, n, -1))
    at = np.concatenate([one[4] for one in made])
    length = [len(one[4]) for one in made]
    copy = {one.name: getattr(acts, one.name)[at] for one in fields(acts)}
    copy["change"] = np.repeat(np.arange(len(made), dtype=np.int32), length)
    source = np.repeat([one[5] for one in made], length).astype(np.int32)
    target = np.repeat([one[6] for one in made], length).astype(np.int32)
    copy["source"] = np.where(source >= 0, source, copy["source"])
    copy["target"] = np.where(target >= 0, target, copy["target"])
    away = target >= 0
    for name in ("heir", "heir_node"):
        copy[name] = np.where(away, np.int32(-1), copy[name])
    copy["leads"] = np.where(away, copy["led"], copy["leads"])
    resources = Resources(len(made))
    some = Acts(**copy)
    charge_space(resources, cluster, draft.target, some, draft.split[at])
    charge_groups(resources, cluster, draft.target, some)
    tables = []
    touched = np.unique(
        np.concatenate([np.zeros(0, np.int32), *(one[0] for one in resources.claims)])
    )
    for charges in (resources.claims, resources.gifts):
        first, on, amount = resources.rows(charges)
        table = np.zeros((len(made), len(touched)))
        owner = np.repeat(np.arange(len(made)), np.diff(first))
        column = np.searchsorted(touched, on)
        inside = touched[np.minimum(column, len(touched) - 1)] == on if len(touched) else on < 0
        np.add.at(table, (owner[inside], column[inside]), amount[inside])
        tables.append(table)
    columns = [[one[k] for one in made] for k in range(4)]
    return Transitions(*columns, *tables), touched  # type: ignore[arg-type]


def _way(
    draft: Draft, chosen: list[int], transitions: Transitions, free: NDArray[np.float64]
) -> list[int] | None:
    """Return the cheapest sequence of transitions after which all changes are done."""
    position = {c: i for i, c in enumerate(chosen)}
    ahead = [position.get(int(draft.previous[c]), -1) for c in chosen]
    by_change: list[dict[int, list[int]]] = [{} for _ in chosen]
    for t, (change, before) in enumerate(zip(transitions.change, transitions.before, strict=True)):
        by_change[change].setdefault(before, []).append(t)
    begin: State = (PENDING,) * len(chosen)
    goal: State = (DONE,) * len(chosen)
    best = {begin: 0.0}
    came: dict[State, tuple[State, int]] = {}
    serial = 0
    heap = [(0.0, len(chosen), serial, begin, free)]
    for _ in range(STATES):
        if not heap:
            return None
        cost, left, _, state, room = heappop(heap)
        if state == goal:
            return _traced(came, goal)
        if best[state] < cost:
            continue
        able = [
            t
            for i, now in enumerate(state)
            if now != DONE and (ahead[i] < 0 or state[ahead[i]] == DONE)
            for t in by_change[i][now]
        ]
        fits = (transitions.claim[able] <= room).all(axis=1)
        possible = np.array(able, np.intp)[fits].tolist()
        for t in possible:
            i, then = transitions.change[t], transitions.after[t]
            after = (*state[:i], then, *state[i + 1 :])
            total = cost + transitions.cost[t]
            if total < best.get(after, np.inf):
                best[after] = total
                came[after] = state, t
                serial += 1
                moved = room - transitions.claim[t] + transitions.gift[t]
                heappush(heap, (total, left - (then == DONE), serial, after, moved))
    return None


def _traced(came: dict[State, tuple[State, int]], state: State) -> list[int]:
    """Return the transitions that led to a state."""
    way = []
    while state in came:
        state, t = came[state]
        way.append(t)
    return way[::-1]


def _in_turn(
    draft: Draft, chosen: list[int], transitions: Transitions, way: list[int]
) -> tuple[Acts, list[int]]:
    """Return acts that take the detours of a way, and the changes in its order."""
    first = np.searchsorted(draft.acts.change, np.arange(len(draft.schedule.start)))
    spare = {
        int(first[chosen[transitions.change[t]]]): transitions.after[t]
        for t in way
        if transitions.after[t] != DONE
    }
    away = sorted(int(draft.acts.change[i]) for i in spare)
    sequence = []
    for t in way:
        c = chosen[transitions.change[t]]
        later = transitions.before[t] != PENDING
        sequence.append(c + int(np.searchsorted(away, c)) + later)
    return by_way_of(draft.acts, spare), sequence
