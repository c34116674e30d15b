"""Find an order for deadlocked changes, by detours through spare nodes and by search.

The search is a uniform-cost search (Dijkstra 1959) over the changes that are done and the replicas
on a spare node. It makes one change at a time, which is enough: changes that may run side by side
may run one after another.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise

import numpy as np

from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64, Reals, Roles, Rows
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.paths import (
    Cost,
    Edge,
    Partition,
    State,
    actions_along,
    cheapest,
    taken_over,
    tradable,
    ways_of,
)
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.list_scheduler import Resources
from evenkeel.planning.resources import Counts, Tally, charge_groups, charge_space
from evenkeel.planning.schedule import Schedule, split_in_two

ROUNDS = 64  # times that a plan is drafted anew with more moves staged
CIRCLE = 8  # of a circle of so many changes, one is staged in a round
CANDIDATES = 64  # nodes that are asked for a replica to wait on


def circles(schedule: Schedule) -> Ints64:
    """Return for each change the circle of changes that wait for each other, (C,); -1 for none."""
    # A change waits for those that give back what it lacks, and for the one before it in its
    # partition; a circle is a strongly connected component of that (Tarjan 1972).
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    timetable, stuck = schedule.timetable, schedule.stuck
    count = len(timetable.start)
    circle = np.full(count, -1, np.int64)
    is_stuck = np.zeros(count, bool)
    is_stuck[stuck] = True
    giver = np.repeat(np.arange(count), np.diff(timetable.gift_first))
    held = np.flatnonzero(is_stuck[giver])
    order = held[np.argsort(timetable.gift_on[held], kind="stable")]
    lacks = timetable.lacks[stuck]
    on = timetable.gift_on[order]
    low, high = np.searchsorted(on, lacks), np.searchsorted(on, lacks, side="right")
    high = np.where(lacks >= 0, high, low)
    row = np.repeat(np.arange(len(stuck)), high - low)
    laid = np.cumsum(high - low) - (high - low)
    other = giver[order[np.arange(len(row)) + (low - laid)[row]]]
    waiting = np.flatnonzero((lacks < 0) & (schedule.previous[stuck] >= 0))
    source = np.concatenate([stuck[row], stuck[waiting]])
    target = np.concatenate([other, schedule.previous[stuck[waiting]]])
    graph = csr_array((np.ones(len(source), np.int8), (source, target)), (count, count))
    _, label = connected_components(graph, connection="strong")
    size = np.bincount(label[stuck], minlength=int(label.max(initial=-1)) + 1)
    inside = stuck[size[label[stuck]] > 1]
    circle[inside] = np.unique(label[inside], return_inverse=True)[1]
    return circle


def staged(schedule: Schedule) -> Schedule:
    """Return a schedule in which what can be let loose by way of a spare node is."""
    best = schedule
    safety = Safety(schedule.cluster, schedule.transitions, schedule.protocol)
    barred: set[int] = set()
    for _ in range(ROUNDS):
        spare = _spares(schedule, safety, barred)
        if not spare:
            break
        barred.update(int(schedule.actions.replica[i]) for i in spare)
        schedule = schedule.again(by_way_of(schedule.actions, spare))
        if len(schedule.stuck) == 0:
            return schedule
    while len(stranded := _stranded(schedule)):
        schedule = schedule.again(direct(schedule.actions, stranded))
    return schedule if schedule.left < best.left else best


def halfway(schedule: Schedule) -> Flags:
    """Return the actions, (M,), of partitions of which a replica would be left on a spare node."""
    actions = schedule.actions
    starts = ~np.isnan(schedule.timetable.start[actions.change])
    moves = np.flatnonzero(actions.action == Action.MOVE)
    order = moves[np.argsort(actions.replica[moves], kind="stable")]
    one, other = order[:-1], order[1:]
    left = (actions.replica[one] == actions.replica[other]) & starts[one] & ~starts[other]
    return np.isin(actions.partition, actions.partition[other[left]])


def by_way_of(actions: Actions, spare: dict[int, int]) -> Actions:
    """Let some actions, by index, go to a spare node first."""
    first = np.array(sorted(spare), np.intp)
    twice = np.ones(len(actions), np.int64)
    twice[first] = 2
    copy = {one.name: np.repeat(getattr(actions, one.name), twice) for one in fields(actions)}
    at = first + np.arange(len(first))
    node = np.array([spare[int(i)] for i in first], np.int32)
    copy["target"][at] = node
    copy["source"][at + 1] = node
    for name in ("next_leader", "next_leader_node"):
        copy[name][at] = -1
    copy["leads"][at] = copy["led"][at]
    for half in (at, at + 1):
        copy["left"][half] = 1.0
    more = np.zeros(len(copy["change"]), np.int32)
    more[at + 1] = 1
    copy["change"] = (copy["change"] + np.cumsum(more)).astype(np.int32)
    return Actions(**copy)


def direct(actions: Actions, second: Rows) -> Actions:
    """Take back the staging of which these actions are the second halves."""
    kept = np.ones(len(actions), bool)
    kept[second - 1] = False
    copy = {one.name: getattr(actions, one.name).copy() for one in fields(actions)}
    copy["source"][second] = actions.source[second - 1]
    less = (~kept).astype(np.int32)
    copy["change"] = (copy["change"] - np.cumsum(less)).astype(np.int32)
    return Actions(**{name: values[kept] for name, values in copy.items()})


def _stranded(schedule: Schedule) -> Rows:
    """Return the second halves of staged moves that never start."""
    actions = schedule.actions
    second = np.zeros(len(actions), bool)
    second[1:] = (
        (actions.replica[1:] == actions.replica[:-1]) & (actions.action[1:] == Action.MOVE)
        & (actions.action[:-1] == Action.MOVE)
    )  # fmt: skip
    return np.flatnonzero(second & np.isnan(schedule.timetable.start[actions.change]))


def _spares(schedule: Schedule, safety: Safety, barred: set[int]) -> dict[int, int]:
    """Choose actions to stage, and the spare node of each."""
    actions, circle = schedule.actions, circles(schedule)
    of_act = circle[actions.change]
    alone = np.bincount(actions.change, minlength=len(circle)) == 1
    fit = (of_act >= 0) & (actions.action == Action.MOVE) & alone[actions.change] & ~actions.blocked
    fit &= (schedule.timetable.lacks[actions.change] >= 0) & ~actions.flying
    usable = np.flatnonzero(fit)
    weight = schedule.copies.size[usable]
    order = usable[np.lexsort((usable, weight, of_act[usable]))]
    room = Room(schedule, safety)
    spare: dict[int, int] = {}
    quota = -(-np.bincount(circle[circle >= 0]) // CIRCLE)
    for i in order.tolist():
        if quota[of_act[i]] > 0 and int(actions.replica[i]) not in barred:
            node = room.spare_node(i)
            if node >= 0:
                spare[i] = node
                quota[of_act[i]] -= 1
    return spare


class Room:
    """What is free of nodes and domains, by default where a schedule got stuck."""

    def __init__(self, schedule: Schedule, safety: Safety, free: Reals | None = None) -> None:
        self.schedule = schedule
        self.safety = safety
        self.tables = []
        cluster, resources = schedule.cluster, schedule.resources
        every = schedule.timetable.free if free is None else free
        capacities = cluster.topology.tier_capacity
        count = len(cluster.nodes)
        for name, base, width in resources.kinds:
            if name == "node" or name in capacities:
                rows = count if name == "node" else len(capacities[name])
                if rows == 0:
                    continue
                table = every[base : base + rows * width].reshape(rows, width)
                tier = cluster.topology.tier_index(name)
                self.tables.append((table, cluster.topology.domain_with_nodes[tier]))

    def spare_node(self, action: int) -> int:
        """Return the roomiest node that a replica may wait on, -1 for none, and take its room."""
        p = int(self.schedule.actions.partition[action])
        weight = self._weight(p)
        nodes, left = self._open_nodes(p, weight, self._held(p))
        nodes = nodes[left >= 0.0]
        nodes = nodes[self._admitted(action, nodes)]
        if len(nodes) == 0:
            return -1
        n = int(nodes[0])
        for free, domain in self.tables:
            if domain[n] >= 0:
                free[domain[n]] -= weight[: free.shape[1]]
        return n

    def spare_nodes(self, action: int, most: int) -> list[int]:
        """Return nodes that a replica may wait on once they have room, the roomiest first."""
        p = int(self.schedule.actions.partition[action])
        nodes, _ = self._open_nodes(p, self._weight(p), self._held(p))
        found: list[int] = nodes[self._admitted(action, nodes)][:most].tolist()
        return found

    def nodes_for(self, partition: int, taken: Collection[int], most: int) -> list[int]:
        """Return nodes that may receive a partition, but for some, the roomiest first."""
        weight = self._weight(partition)
        found: list[int] = self._open_nodes(partition, weight, taken)[0][:most].tolist()
        return found

    def _held(self, partition: int) -> list[int]:
        transitions = self.schedule.transitions
        row = int(np.searchsorted(transitions.partition, partition))
        found: list[int] = np.append(transitions.before[row], transitions.after[row]).tolist()
        return found

    def _weight(self, p: int) -> Reals:
        load = self.schedule.cluster.partitions.load
        heaviest = np.maximum(load.leader[p], np.maximum(load.voter[p], load.non_voter[p]))
        return np.append(heaviest, 1.0)

    def _open_nodes(self, p: int, weight: Reals, taken: Collection[int]) -> tuple[Rows, Reals]:
        """Return nodes that receive a partition, and what would be left there, roomiest first."""
        cluster = self.schedule.cluster
        open_to = cluster.nodes.may_receive.copy()
        open_to[cluster.forbidden[cluster.forbidden[:, 0] == p, 1]] = False
        open_to[[n for n in taken if n >= 0]] = False
        least = np.full(len(open_to), np.inf)
        for free, domain in self.tables:
            left = free[domain] - weight[: free.shape[1]]
            left[domain < 0] = np.inf
            least = np.minimum(least, left.min(axis=1, initial=np.inf))
        nodes = np.flatnonzero(open_to)
        nodes = nodes[np.argsort(-least[nodes], kind="stable")][:CANDIDATES]
        return nodes, least[nodes]

    def _now(self, action: int, row: int) -> tuple[Ints32, Roles]:
        """Return nodes and roles of a partition when it is an act's turn."""
        transitions, actions = self.schedule.transitions, self.schedule.actions
        node, role = transitions.before[row].copy(), transitions.role[row].copy()
        low = int(np.searchsorted(actions.partition, transitions.partition[row]))
        for i in range(low, action):
            slot = transitions.replica[row] == actions.replica[i]
            node[slot], role[slot] = actions.target[i], actions.role[i]
        return node, role

    def _admitted(self, action: int, nodes: Rows) -> Flags:
        """Whether rules let a replica stand on each of ``nodes (n,)``, and get there and away."""
        actions, transitions = self.schedule.actions, self.schedule.transitions
        row = int(np.searchsorted(transitions.partition, actions.partition[action]))
        now, role = self._now(action, row)
        slot = int(np.flatnonzero(transitions.replica[row] == actions.replica[action])[0])
        count = len(nodes)
        rows, twin = np.full(count, row), np.full(count, slot)
        new = nodes.astype(np.int32)[:, None]
        here = np.repeat(now[None], count, axis=0)
        there = here.copy()
        there[:, slot] = nodes
        roles = np.repeat(role[None], count, axis=0)
        fits = self.safety.keeps(rows, there, roles)
        if self.schedule.split[action]:
            on = np.full((count, 1), actions.target[action], np.int32)
            roles = np.hstack([roles, roles[:, slot, None]])
            for both in (np.hstack([here, new]), np.hstack([there, on])):
                fits &= self.safety.keeps(rows, both, roles, twin)
        return fits & (not actions.led[action] or self.schedule.cluster.nodes.may_lead[nodes])


FEW = 14  # changes whose orders are searched
SPARES = 16  # nodes on which each of them may wait, the roomiest
STATES = 3000  # states that are looked at
STAGES = 2000  # stages of a partition that are distinguished
Reached = tuple[int, ...]  # which of its stages each partition has reached


@dataclass(frozen=True, eq=False)
class Transition:
    """What a partition may do at one stage: a change, or half of one by way of a spare node."""

    position: int
    after: int
    cost: Cost  # bytes of copies to spare nodes, and changes of leaders alone
    actions: Actions
    split: Flags
    edge: Edge | None = None


@dataclass(eq=False)
class Stages:
    """The stages of one partition: how much is left at each, and what then."""

    left: list[int] = field(default_factory=list)
    then: list[list[int]] = field(default_factory=list)

    def add(self, left: int) -> int:
        """Add a stage, and return its number."""
        self.left.append(left)
        self.then.append([])
        return len(self.left) - 1


class Ways:
    """What each of some partitions may go through, as transitions between its stages."""

    def __init__(self, schedule: Schedule, chosen: list[int]) -> None:
        self.schedule = schedule
        self.chosen = set(chosen)
        first = np.searchsorted(schedule.actions.change, chosen)
        self.partition: list[int] = np.unique(schedule.actions.partition[first]).tolist()
        self.stages = [Stages() for _ in self.partition]
        self.transitions: list[Transition] = []
        self.safety = Safety(schedule.cluster, schedule.transitions, schedule.protocol)

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
        """Add all that a partition may go through; False, and nothing, if that is too much."""
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
        split = split_in_two(actions, self.schedule.protocol)
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
    """Return the changes that are left to be searched, none if they are too many."""
    hopeless = schedule.actions.partition[schedule.actions.blocked]
    first = np.searchsorted(schedule.actions.change, schedule.stuck)
    chosen: list[int] = schedule.stuck[
        ~np.isin(schedule.actions.partition[first], hopeless)
    ].tolist()
    return chosen if len(chosen) <= FEW else []


def searched(schedule: Schedule, *, free: bool, trades: bool) -> tuple[Actions, list[int]] | None:
    """Return actions with detours, and an order in which all changes succeed; None if not found."""
    # The search starts where the schedule got stuck. A partition goes through its changes in the
    # order of the schedule, or if ``free`` in any, with ``trades`` of the targets of its slots;
    # then its replicas also wait on nodes that come free. Partitions of which a copy is under way
    # keep their order.
    chosen = searchable(schedule)
    if not chosen:
        return None
    room = schedule.timetable.free
    ways = Ways(schedule, chosen)
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
            effect = tally.effect(schedule.actions, range(rows.start, rows.stop))
            counts = tally.after(counts, effect, checked=False) or counts
    way = _way(ways, claim, gift, room[touched], tally, counts)
    return None if way is None else _in_turn(schedule, chosen, [ways.transitions[t] for t in way])


def _bound(schedule: Schedule) -> set[int]:
    """Return the partitions that keep their order."""
    actions, cluster = schedule.actions, schedule.cluster
    kept = (cluster.placement.flags[actions.replica] & Flag.INCOMING) != 0
    kept |= actions.recovers | actions.blocked | (actions.left < 1.0)
    return {*actions.partition[kept].tolist()}


def _charged(schedule: Schedule, transitions: list[Transition]) -> tuple[Reals, Reals, Ints32]:
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
    ways: Ways, claim: Reals, gift: Reals, free: Reals, tally: Tally, counts: Counts
) -> list[int] | None:
    """Return the cheapest sequence of transitions after which all changes are done."""
    stages, transitions = ways.stages, ways.transitions
    effects = [tally.effect(one.actions, range(len(one.actions))) for one in transitions]
    reached: dict[Reached, tuple[Reals, Counts]] = {}

    def edges(
        state: Reached, came: tuple[Reached, int] | None
    ) -> Iterator[tuple[Cost, Reached, int]]:
        room, held = free, counts
        if came is not None:
            before, t = came
            room, held = reached[before]
            room = room - claim[t] + gift[t]
            held = tally.after(held, effects[t], checked=False) or held
        reached[state] = room, held
        able = [t for one, now in zip(stages, state, strict=True) for t in one.then[now]]
        fits = (claim[able] <= room).all(axis=1)
        for t in np.array(able, np.intp)[fits].tolist():
            if tally.after(held, effects[t]) is not None:
                i, then = transitions[t].position, transitions[t].after
                yield transitions[t].cost, (*state[:i], then, *state[i + 1 :]), t

    def left(state: Reached) -> int:
        return sum(one.left[now] for one, now in zip(stages, state, strict=True))

    return cheapest((0,) * len(stages), edges, left, STATES)


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
