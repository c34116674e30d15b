"""Bypass moves: dependency cycles are broken by moving a replica via a spare node."""

from collections.abc import Collection
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.schedule import Schedule
from evenkeel.planning.throttle import Throttle

ROUNDS = 64
"""Times that a plan is drafted anew with more moves staged."""

CIRCLE = 8
"""Of a circle of so many changes, one is staged in a round."""

CANDIDATES = 64
"""Nodes that are asked for a replica to wait on."""


def circles(schedule: Schedule) -> NDArray[np.int64]:
    """Return for each change the circle of changes that it is in, (C,); -1 for none.

    A change waits for those that give back what it lacks, and for the one before it in its
    partition. A circle is a strongly connected component of that (Tarjan 1972).
    """
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


def staged(schedule: Schedule, throttle: Throttle, protocol: Protocol) -> Schedule:
    """Return a schedule in which what can be let loose by way of a spare node is.

    Of every circle the move of the fewest bytes that finds a spare node goes there first. What then
    cannot go on from its spare node is not sent there.
    """
    best = schedule
    safety = Safety(schedule.cluster, schedule.transitions, protocol)
    barred: set[int] = set()
    for _ in range(ROUNDS):
        spare = _spares(schedule, safety, barred)
        if not spare:
            break
        barred.update(int(schedule.actions.replica[i]) for i in spare)
        actions = by_way_of(schedule.actions, spare)
        schedule = Schedule.of(
            schedule.cluster, schedule.target, schedule.transitions, actions, throttle, protocol
        )
        if len(schedule.stuck) == 0:
            return schedule
    while True:
        stranded = _stranded(schedule)
        if len(stranded) == 0:
            break
        actions = direct(schedule.actions, stranded)
        schedule = Schedule.of(
            schedule.cluster, schedule.target, schedule.transitions, actions, throttle, protocol
        )
    return schedule if schedule.left < best.left else best


def halfway(schedule: Schedule) -> NDArray[np.bool_]:
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


def direct(actions: Actions, second: NDArray[np.intp]) -> Actions:
    """Take back the staging of which these actions are the second halves."""
    kept = np.ones(len(actions), bool)
    kept[second - 1] = False
    copy = {one.name: getattr(actions, one.name).copy() for one in fields(actions)}
    copy["source"][second] = actions.source[second - 1]
    less = (~kept).astype(np.int32)
    copy["change"] = (copy["change"] - np.cumsum(less)).astype(np.int32)
    return Actions(**{name: values[kept] for name, values in copy.items()})


def _stranded(schedule: Schedule) -> NDArray[np.intp]:
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

    def __init__(
        self,
        schedule: Schedule,
        safety: Safety,
        free: NDArray[np.float64] | None = None,
    ) -> None:
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
        """Return nodes that a replica may wait on once they have room, the roomiest first.

        Those that others of its partition leave, or are to join, are none.
        """
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

    def _weight(self, p: int) -> NDArray[np.float64]:
        load = self.schedule.cluster.partitions.load
        heaviest = np.maximum(load.leader[p], np.maximum(load.voter[p], load.non_voter[p]))
        return np.append(heaviest, 1.0)

    def _open_nodes(
        self, p: int, weight: NDArray[np.float64], taken: Collection[int]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
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

    def _now(self, action: int, row: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return nodes and roles of a partition when it is an act's turn."""
        transitions, actions = self.schedule.transitions, self.schedule.actions
        node, role = transitions.before[row].copy(), transitions.role[row].copy()
        low = int(np.searchsorted(actions.partition, transitions.partition[row]))
        for i in range(low, action):
            slot = transitions.replica[row] == actions.replica[i]
            node[slot], role[slot] = actions.target[i], actions.role[i]
        return node, role

    def _admitted(self, action: int, nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
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
