"""Search: every order of a few changes, by the bytes that detours cost, where scheduling is stuck.

Uniform-cost search (Dijkstra 1959) over what has been done and what waits on a spare node. One
change at a time is enough: what may run side by side may run one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.acts import Act, Acts
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.draft import Draft
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.resources.groups import charge_groups
from evenkeel.planning.resources.space import charge_space
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.stuck.staging import Room

FEW = 14
"""Changes whose orders are searched."""

SPARES = 16
"""Nodes on which each of them may wait, the roomiest."""

STATES = 3000
"""States that are looked at."""

Mark = tuple[tuple[int, ...], ...]
"""What a change does, whatever others have done before it."""

State = tuple[int, ...]
"""Which of its stages each partition has reached."""


@dataclass(frozen=True, eq=False)
class Transition:
    """What a partition may do at one stage: a change, or half of one by way of a spare node."""

    position: int
    after: int
    cost: float
    acts: Acts
    split: NDArray[np.bool_]
    waits_for: tuple[int, Mark] | None


@dataclass(eq=False)
class Stages:
    """The stages of one partition: what is done at each, how many changes are left, and what then.

    A replica that waits on a spare node makes a stage of its own.
    """

    done: list[frozenset[Mark]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    then: list[list[int]] = field(default_factory=list)
    known: dict[tuple[frozenset[Mark], int], int] = field(default_factory=dict)

    def add(self, done: frozenset[Mark], left: int) -> int:
        """Add a stage, and return its number."""
        self.done.append(done)
        self.left.append(left)
        self.then.append([])
        return len(self.done) - 1

    def at(self, done: frozenset[Mark], left: int) -> int:
        """Return the stage at which that is done, and nothing waits on a spare node.

        All ways share the beginning. From there on what has the same done, but not as much left, is
        on its way to another trade of slots.
        """
        key = done, -1 if not self.done or done == self.done[0] else left
        if key not in self.known:
            self.known[key] = self.add(done, left)
        return self.known[key]


class Ways:
    """What each of some partitions may go through, as transitions between its stages."""

    def __init__(self, draft: Draft, chosen: list[int]) -> None:
        self.draft = draft
        self.chosen = set(chosen)
        first = np.searchsorted(draft.acts.change, chosen)
        self.partition: list[int] = np.unique(draft.acts.partition[first]).tolist()
        self.stages = [Stages() for _ in self.partition]
        self.transitions: list[Transition] = []

    def add(self, draft: Draft, room: Room) -> None:
        """Add the changes of the partitions in the order in which a draft has them."""
        for position, p in enumerate(self.partition):
            low = int(np.searchsorted(draft.acts.partition, p))
            high = int(np.searchsorted(draft.acts.partition, p, side="right"))
            if low < high and not draft.acts.blocked[low]:
                self._follow(draft, room, position, _changes(draft.acts, low, high))

    def _follow(
        self, draft: Draft, room: Room, position: int, changes: list[tuple[Mark, slice]]
    ) -> None:
        """Add the changes of one partition that are left to be done."""
        begun = self._begun(position)
        if {mark for mark, _ in changes[: len(begun)]} != begun:
            return
        stages, done = self.stages[position], begun
        for i in range(len(begun), len(changes)):
            mark, rows = changes[i]
            before = stages.at(done, len(changes) - i)
            done |= {mark}
            after = stages.at(done, len(changes) - i - 1)
            if not any(self.transitions[t].after == after for t in stages.then[before]):
                self._step(draft, room, position, before, after, rows)

    def _step(
        self, draft: Draft, room: Room, position: int, before: int, after: int, rows: slice
    ) -> None:
        """Add a change, and its ways over spare nodes."""
        stages, acts, split = self.stages[position], draft.acts.take(rows), draft.split[rows]
        ahead = self._ahead(draft, int(acts.change[0]), position)
        self._note(before, Transition(position, after, 0.0, acts, split, ahead))
        if len(acts) > 1 or acts.act[0] != Act.MOVE:
            return
        cost = float(draft.copies.size[rows.start])
        none, whole = np.array([-1], np.int32), np.ones(1)
        for n in room.spare_nodes(rows.start, SPARES):
            node = np.array([n], np.int32)
            waits = stages.add(stages.done[before], stages.left[before])
            away = replace(acts, target=node, heir=none, heir_node=none, leads=acts.led, left=whole)
            on = replace(acts, source=node, left=whole)
            self._note(before, Transition(position, waits, cost, away, split, ahead))
            self._note(waits, Transition(position, after, 0.0, on, split, None))

    def _note(self, before: int, made: Transition) -> None:
        self.stages[made.position].then[before].append(len(self.transitions))
        self.transitions.append(made)

    def _begun(self, position: int) -> frozenset[Mark]:
        """Return what a partition has done before it got stuck."""
        acts, p = self.draft.acts, self.partition[position]
        low = int(np.searchsorted(acts.partition, p))
        high = int(np.searchsorted(acts.partition, p, side="right"))
        changes = _changes(acts, low, high)
        return frozenset(
            mark for mark, rows in changes if int(acts.change[rows.start]) not in self.chosen
        )

    def _ahead(self, draft: Draft, change: int, position: int) -> tuple[int, Mark] | None:
        """Return the change of another partition that comes before one of the draft's."""
        if draft is not self.draft or draft.previous[change] not in self.chosen:
            return None
        ahead, acts = int(draft.previous[change]), draft.acts
        low, high = (int(np.searchsorted(acts.change, c)) for c in (ahead, ahead + 1))
        other = self.partition.index(int(acts.partition[low]))
        return None if other == position else (other, _changes(acts, low, high)[0][0])


def _changes(acts: Acts, low: int, high: int) -> list[tuple[Mark, slice]]:
    """Return the changes of some acts, and the rows of each."""
    cuts = (np.flatnonzero(np.diff(acts.change[low:high], prepend=-1)) + low).tolist()
    what = (acts.act, acts.replica, acts.target, acts.role, acts.leads, acts.heir, acts.deputy)
    found = []
    for a, b in pairwise([*cuts, high]):
        mark = tuple(tuple(int(one[i]) for one in what) for i in range(a, b))
        found.append((mark, slice(a, b)))
    return found


def searchable(draft: Draft) -> list[int]:
    """Return the changes that are left to be searched, none if they are too many.

    What rules admit in no order stays out of it.
    """
    hopeless = draft.acts.partition[draft.acts.blocked]
    first = np.searchsorted(draft.acts.change, draft.stuck)
    chosen: list[int] = draft.stuck[~np.isin(draft.acts.partition[first], hopeless)].tolist()
    return chosen if len(chosen) <= FEW else []


def searched(
    draft: Draft, protocol: Protocol, others: Sequence[Draft] = ()
) -> tuple[Acts, list[int]] | None:
    """Return acts with detours, and changes in an order in which all of them get through.

    They are searched from where the draft got stuck, what is ``searchable``. None where there is no
    order, or none was found among so many states. A partition goes through its changes in the order
    of the draft, or of the ``others``; where there are such its replicas also wait on nodes that
    come free.
    """
    chosen = searchable(draft)
    if not chosen:
        return None
    free = draft.schedule.free
    ways = Ways(draft, chosen)
    safety = Safety(draft.cluster, draft.ends, protocol)
    for one in (draft, *others):
        ways.add(one, Room(one, safety, free, vacant=len(others) > 0))
    claim, gift, touched = _charged(draft, ways.transitions)
    way = _way(ways, claim, gift, free[touched])
    return None if way is None else _in_turn(draft, chosen, [ways.transitions[t] for t in way])


def _charged(
    draft: Draft, transitions: list[Transition]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    """Return what transitions take at their start, (T, Q), give back, and which resources."""
    resources = Resources(len(transitions))
    acts = _numbered([one.acts for one in transitions])
    split = np.concatenate([one.split for one in transitions])
    charge_space(resources, draft.cluster, draft.target, acts, split)
    charge_groups(resources, draft.cluster, draft.target, acts)
    touched = np.unique(
        np.concatenate([np.zeros(0, np.int32), *(one[0] for one in resources.claims)])
    )
    tables = []
    for charges in (resources.claims, resources.gifts):
        first, on, amount = resources.rows(charges)
        table = np.zeros((len(transitions), len(touched)))
        owner = np.repeat(np.arange(len(transitions)), np.diff(first))
        column = np.searchsorted(touched, on)
        inside = touched[np.minimum(column, len(touched) - 1)] == on if len(touched) else on < 0
        np.add.at(table, (owner[inside], column[inside]), amount[inside])
        tables.append(table)
    return tables[0], tables[1], touched


def _way(
    ways: Ways, claim: NDArray[np.float64], gift: NDArray[np.float64], free: NDArray[np.float64]
) -> list[int] | None:
    """Return the cheapest sequence of transitions after which all changes are done."""
    stages, transitions = ways.stages, ways.transitions
    begin: State = (0,) * len(stages)
    best = {begin: 0.0}
    came: dict[State, tuple[State, int]] = {}
    serial = 0
    heap = [(0.0, sum(one.left[0] for one in stages), serial, begin, free)]
    for _ in range(STATES):
        if not heap:
            return None
        cost, left, _, state, room = heappop(heap)
        if left == 0:
            return _traced(came, state)
        if best[state] < cost:
            continue
        able = []
        for one, now in zip(stages, state, strict=True):
            for t in one.then[now]:
                ahead = transitions[t].waits_for
                if ahead is None or ahead[1] in stages[ahead[0]].done[state[ahead[0]]]:
                    able.append(t)
        fits = (claim[able] <= room).all(axis=1)
        for t in np.array(able, np.intp)[fits].tolist():
            i, then = transitions[t].position, transitions[t].after
            after = (*state[:i], then, *state[i + 1 :])
            total = cost + transitions[t].cost
            if total < best.get(after, np.inf):
                best[after] = total
                came[after] = state, t
                serial += 1
                less = stages[i].left[state[i]] - stages[i].left[then]
                moved = room - claim[t] + gift[t]
                heappush(heap, (total, left - less, serial, after, moved))
    return None


def _traced(came: dict[State, tuple[State, int]], state: State) -> list[int]:
    """Return the transitions that led to a state."""
    way = []
    while state in came:
        state, t = came[state]
        way.append(t)
    return way[::-1]


def _in_turn(draft: Draft, chosen: list[int], way: list[Transition]) -> tuple[Acts, list[int]]:
    """Return acts that go a way, and the changes in its order."""
    rest = draft.acts.take(np.flatnonzero(~np.isin(draft.acts.change, chosen)))
    turn = _numbered([one.acts for one in way])
    turn = replace(turn, change=turn.change + draft.acts.change[-1] + 1)
    acts = Acts.joined([rest, turn])
    # what a partition has done already comes first
    acts = acts.take(np.argsort(acts.partition, kind="stable"))
    opens = np.diff(acts.change, prepend=-1) != 0
    first = np.flatnonzero(opens & (acts.change > draft.acts.change[-1]))
    change = (np.cumsum(opens) - 1).astype(np.int32)
    sequence = change[first[np.argsort(acts.change[first])]].tolist()
    return replace(acts, change=change), sequence


def _numbered(parts: list[Acts]) -> Acts:
    """Join acts, each part a change of its own."""
    change = np.repeat(np.arange(len(parts), dtype=np.int32), [len(one) for one in parts])
    return replace(Acts.joined(parts), change=change)
