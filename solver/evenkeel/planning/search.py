"""Search over all orders of a few blocked changes, by the bytes that bypass moves cost.

Uniform-cost search (Dijkstra 1959) over what has been done and what waits on a spare node. One
change at a time is enough: what may run side by side may run one after another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag
from evenkeel.planning.bypass import Room
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.matching import tradable, ways_of
from evenkeel.planning.changes.paths import Edge, Partition, State, actions_along, taken_over
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.resources.groups import Counts, Tally, charge_groups
from evenkeel.planning.resources.headroom import charge_space
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.schedule import Schedule, split_in_two

FEW = 14
"""Changes whose orders are searched."""

SPARES = 16
"""Nodes on which each of them may wait, the roomiest."""

STATES = 3000
"""States that are looked at."""

STAGES = 2000
"""Stages of a partition that are distinguished."""

Reached = tuple[int, ...]
"""Which of its stages each partition has reached."""

Cost = tuple[float, int]
"""Bytes of copies to spare nodes, and changes of leaders alone."""


@dataclass(frozen=True, eq=False)
class Transition:
    """What a partition may do at one stage: a change, or half of one by way of a spare node."""

    position: int
    after: int
    cost: Cost
    actions: Actions
    split: NDArray[np.bool_]
    edge: Edge | None = None


@dataclass(eq=False)
class Stages:
    """The stages of one partition: how much is left at each, and what then.

    A replica that waits on a spare node makes a stage of its own.
    """

    left: list[int] = field(default_factory=list)
    then: list[list[int]] = field(default_factory=list)

    def add(self, left: int) -> int:
        """Add a stage, and return its number."""
        self.left.append(left)
        self.then.append([])
        return len(self.left) - 1


class Ways:
    """What each of some partitions may go through, as transitions between its stages.

    It is the one of the schedule, and for those that are ``free`` any that the protocol allows.
    """

    def __init__(self, schedule: Schedule, chosen: list[int], protocol: Protocol) -> None:
        self.schedule = schedule
        self.chosen = set(chosen)
        first = np.searchsorted(schedule.actions.change, chosen)
        self.partition: list[int] = np.unique(schedule.actions.partition[first]).tolist()
        self.stages = [Stages() for _ in self.partition]
        self.transitions: list[Transition] = []
        self.protocol = protocol
        self.safety = Safety(schedule.cluster, schedule.transitions, protocol)

    def follow(self, room: Room, position: int) -> None:
        """Add the changes of a partition in the order in which the schedule has them."""
        actions, p = self.schedule.actions, self.partition[position]
        low, high = np.searchsorted(actions.partition, [p, p + 1]).tolist()
        rest = [
            rows
            for rows in _changes(actions, low, high)
            if int(actions.change[rows.start]) in self.chosen
        ]
        before = self.stages[position].add(len(rest))
        for i, rows in enumerate(rest):
            after = self.stages[position].add(len(rest) - i - 1)
            self._step(room, position, before, after, rows)
            before = after

    def _step(self, room: Room, position: int, before: int, after: int, rows: slice) -> None:
        """Add a change, and its ways over spare nodes."""
        schedule, stages = self.schedule, self.stages[position]
        actions, split = schedule.actions.take(rows), schedule.split[rows]
        self._note(before, Transition(position, after, (0.0, 0), actions, split))
        if len(actions) > 1 or actions.action[0] != Action.MOVE or actions.flying[0]:
            return
        cost = (self._size(actions), 0)
        none, whole = np.array([-1], np.int32), np.ones(1)
        for n in room.spare_nodes(rows.start, SPARES):
            node = np.array([n], np.int32)
            waits = stages.add(stages.left[before])
            away = replace(
                actions,
                target=node,
                next_leader=none,
                next_leader_node=none,
                leads=actions.led,
                left=whole,
            )
            on = replace(actions, source=node, left=whole)
            self._note(before, Transition(position, waits, cost, away, split))
            self._note(waits, Transition(position, after, (0.0, 0), on, split))

    def explore(self, room: Room, position: int, *, trades: bool) -> bool:
        """Add all that a partition may go through; False, and nothing, if that is too much.

        A drop of one of several replicas on a node changes no state: it keeps its order.
        """
        row = int(np.searchsorted(self.schedule.transitions.partition, self.partition[position]))
        partition = Partition(self.safety, row, 0.0)
        begin = self._state(partition)
        if partition.left(begin) == 0:
            return False
        stages = Stages()
        known: dict[tuple[object, ...], int] = {}
        found: list[tuple[int, Transition]] = []

        def stage(one: Partition, state: State) -> int:
            key = (one.replicas(state), state.leader, state.away)
            if key not in known:
                known[key] = stages.add(one.left(state))
            return known[key]

        seen: set[tuple[int, int]] = set()
        for one in self._matchings(partition, begin, trades=trades):
            thirds = room.nodes_for(self.partition[position], one.after, SPARES)
            waiting, reached = [begin], {begin}
            while waiting:
                state = waiting.pop()
                before = stage(one, state)
                edges = [*one.edges(state, thirds)]
                if state.away[0] >= 0:
                    edges = [e for e in edges if e.did[0].slot == state.away[0] and e.did[0].moves]
                for edge in one.lawful(edges):
                    after = stage(one, edge.after)
                    if len(stages.left) > STAGES:
                        return False
                    if (before, after) not in seen:
                        seen.add((before, after))
                        found.append((before, self._transition(one, position, after, edge)))
                    if edge.after not in reached:
                        reached.add(edge.after)
                        waiting.append(edge.after)
        self.stages[position] = stages
        for before, made in found:
            self._note(before, made)
        return True

    def _transition(self, one: Partition, position: int, after: int, edge: Edge) -> Transition:
        actions = actions_along(self.schedule.transitions, [(one.row, edge.did)])
        away = edge.after.away[0] == edge.did[0].slot and edge.did[0].moves
        cost = (self._size(actions) if away else 0.0, int(actions.action[0] == Action.LEAD))
        split = split_in_two(actions, self.protocol)
        return Transition(position, after, cost, actions, split, edge)

    def _matchings(
        self, partition: Partition, begin: State, *, trades: bool
    ) -> Iterator[Partition]:
        """Yield a partition, and it with trades of slots that have not moved."""
        yield partition
        transitions, row = self.schedule.transitions, partition.row
        some = transitions.take(np.array([row]))
        nowhere = (some.before < 0) | (some.after < 0)
        if (
            not trades
            or (nowhere & some.moves).any()
            or not tradable(self.schedule.target, some)[0]
        ):
            return
        done = [s for s in partition.slots if begin.moved >> s & 1 or begin.away[0] == s]
        for origin in ways_of(self.schedule.cluster, transitions, row):
            if all(origin[s] == s for s in done):
                yield partition.traded(origin)

    def _state(self, partition: Partition) -> State:
        """Return the state of a partition after what it has done before it got stuck."""
        actions, p = self.schedule.actions, int(self.schedule.transitions.partition[partition.row])
        low, high = np.searchsorted(actions.partition, [p, p + 1]).tolist()
        slots = self.schedule.transitions.replica[partition.row].tolist()
        state = partition.begin
        for i in range(low, high):
            if int(actions.change[i]) in self.chosen:
                break
            slot, target = slots.index(int(actions.replica[i])), int(actions.target[i])
            if actions.action[i] == Action.ROLE:
                state = state._replace(recast=state.recast | 1 << slot)
            elif actions.action[i] != Action.LEAD and target != partition.after[slot]:
                state = state._replace(away=(slot, target))
            elif actions.action[i] != Action.LEAD:
                away = (-1, -1) if state.away[0] == slot else state.away
                state = state._replace(moved=state.moved | 1 << slot, away=away)
            if actions.leads[i]:
                state = state._replace(leader=slot)
        return state

    def _size(self, actions: Actions) -> float:
        """Return what a copy of the replica of an act costs."""
        cluster, p = self.schedule.cluster, int(actions.partition[0])
        load, d = cluster.partitions.load, cluster.bytes_dimension
        by_role = load.voter if actions.votes[0] else load.non_voter
        return float(by_role[p, d]) if d >= 0 else 1.0

    def _note(self, before: int, made: Transition) -> None:
        self.stages[made.position].then[before].append(len(self.transitions))
        self.transitions.append(made)


def _changes(actions: Actions, low: int, high: int) -> list[slice]:
    """Return the rows of each change of some actions."""
    cuts = (np.flatnonzero(np.diff(actions.change[low:high], prepend=-1)) + low).tolist()
    return [slice(a, b) for a, b in pairwise([*cuts, high])]


def searchable(schedule: Schedule) -> list[int]:
    """Return the changes that are left to be searched, none if they are too many.

    What rules admit in no order stays out of it.
    """
    hopeless = schedule.actions.partition[schedule.actions.blocked]
    first = np.searchsorted(schedule.actions.change, schedule.stuck)
    chosen: list[int] = schedule.stuck[
        ~np.isin(schedule.actions.partition[first], hopeless)
    ].tolist()
    return chosen if len(chosen) <= FEW else []


def searched(
    schedule: Schedule, protocol: Protocol, *, free: bool, trades: bool
) -> tuple[Actions, list[int]] | None:
    """Return actions with detours, and changes in an order in which all of them get through.

    The search starts where the schedule got stuck, with what is ``searchable``. None if there is no
    order, or none was found among so many states. A partition goes through its changes in the order
    of the schedule, or where they are ``free`` in any, its slots trading what they are to become if
    they may; then its replicas also wait on nodes that come free. Partitions of which a copy is
    under way keep the order that they have.
    """
    chosen = searchable(schedule)
    if not chosen:
        return None
    room = schedule.timetable.free
    ways = Ways(schedule, chosen, protocol)
    bound = _bound(schedule) if free else set(ways.partition)
    spare = Room(schedule, ways.safety, room)
    for position, p in enumerate(ways.partition):
        if p in bound or not ways.explore(spare, position, trades=trades):
            ways.follow(spare, position)
    if not ways.transitions:
        return None
    claim, gift, touched = _charged(schedule, ways.transitions)
    tally = Tally(schedule.cluster, schedule.target)
    counts = tally.begin
    for rows in _changes(schedule.actions, 0, len(schedule.actions)):
        if not np.isnan(schedule.timetable.start[schedule.actions.change[rows.start]]):
            counts = tally.after(counts, schedule.actions.take(rows), checked=False) or counts
    way = _way(ways, claim, gift, room[touched], tally, counts)
    return None if way is None else _in_turn(schedule, chosen, [ways.transitions[t] for t in way])


def _bound(schedule: Schedule) -> set[int]:
    """Return the partitions that keep their order."""
    actions, cluster = schedule.actions, schedule.cluster
    kept = (cluster.placement.flags[actions.replica] & Flag.INCOMING) != 0
    kept |= actions.recovers | actions.blocked | (actions.left < 1.0)
    return {*actions.partition[kept].tolist()}


def _charged(
    schedule: Schedule, transitions: list[Transition]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    """Return what transitions take at their start, (T, Q), give back, and which resources."""
    resources = Resources(len(transitions))
    actions = _numbered([one.actions for one in transitions])
    split = np.concatenate([one.split for one in transitions])
    charge_space(resources, schedule.cluster, schedule.target, actions, split)
    charge_groups(resources, schedule.cluster, schedule.target, actions)
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
    ways: Ways,
    claim: NDArray[np.float64],
    gift: NDArray[np.float64],
    free: NDArray[np.float64],
    tally: Tally,
    counts: Counts,
) -> list[int] | None:
    """Return the cheapest sequence of transitions after which all changes are done."""
    stages, transitions = ways.stages, ways.transitions
    begin = (0,) * len(stages)
    nothing: Cost = (0.0, 0)
    best = {begin: nothing}
    came: dict[Reached, tuple[Reached, int]] = {}
    serial = 0
    heap = [(nothing, sum(one.left[0] for one in stages), serial, begin, free, counts)]
    for _ in range(STATES):
        if not heap:
            return None
        cost, left, _, state, room, counts = heappop(heap)
        if left == 0:
            return _traced(came, state)
        if best[state] < cost:
            continue
        able = [t for one, now in zip(stages, state, strict=True) for t in one.then[now]]
        fits = (claim[able] <= room).all(axis=1)
        for t in np.array(able, np.intp)[fits].tolist():
            i, then = transitions[t].position, transitions[t].after
            after = (*state[:i], then, *state[i + 1 :])
            bytes_, leads = transitions[t].cost
            total = cost[0] + bytes_, cost[1] + leads
            if total < best.get(after, (np.inf, 0)):
                tallied = tally.after(counts, transitions[t].actions)
                if tallied is None:
                    continue
                best[after] = total
                came[after] = state, t
                serial += 1
                less = stages[i].left[state[i]] - stages[i].left[then]
                moved = room - claim[t] + gift[t]
                heappush(heap, (total, left - less, serial, after, moved, tallied))
    return None


def _traced(came: dict[Reached, tuple[Reached, int]], state: Reached) -> list[int]:
    """Return the transitions that led to a state."""
    way = []
    while state in came:
        state, t = came[state]
        way.append(t)
    return way[::-1]


def _in_turn(
    schedule: Schedule, chosen: list[int], way: list[Transition]
) -> tuple[Actions, list[int]]:
    """Return actions that go a way, and the changes in its order."""
    rest = schedule.actions.take(np.flatnonzero(~np.isin(schedule.actions.change, chosen)))
    turn = _numbered(_led_with(schedule.transitions, way))
    turn = replace(turn, change=turn.change + schedule.actions.change[-1] + 1)
    actions = Actions.joined([rest, turn])
    # what a partition has done already comes first
    actions = actions.take(np.argsort(actions.partition, kind="stable"))
    opens = np.diff(actions.change, prepend=-1) != 0
    first = np.flatnonzero(opens & (actions.change > schedule.actions.change[-1]))
    change = (np.cumsum(opens) - 1).astype(np.int32)
    sequence = change[first[np.argsort(actions.change[first])]].tolist()
    return replace(actions, change=change), sequence


def _led_with(transitions: TransitionTable, way: list[Transition]) -> list[Actions]:
    """Return the actions of transitions; who has just come takes the lead as it does."""
    found: list[tuple[Transition, Edge | None]] = []
    for one in way:
        last = found[-1] if found else None
        if last and one.edge and last[1] and last[0].position == one.position:
            both = taken_over(last[1], one.edge)
            if both is not None:
                found[-1] = (last[0], both)
                continue
        found.append((one, one.edge))
    made = []
    for one, edge in found:
        row = int(np.searchsorted(transitions.partition, one.actions.partition[0]))
        made.append(one.actions if edge is None or edge is one.edge
                    else actions_along(transitions, [(row, edge.did)]))  # fmt: skip
    return made


def _numbered(parts: list[Actions]) -> Actions:
    """Join actions, each part a change of its own."""
    change = np.repeat(np.arange(len(parts), dtype=np.int32), [len(one) for one in parts])
    return replace(Actions.joined(parts), change=change)
