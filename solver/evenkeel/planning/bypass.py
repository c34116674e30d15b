"""Staging: moves that wait for one another in a circle are let loose through a spare node."""

from collections.abc import Collection
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.actions import Act, Acts
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.schedule import Draft
from evenkeel.planning.throttle import Throttle

ROUNDS = 64
"""Times that a plan is drafted anew with more moves staged."""

CIRCLE = 8
"""Of a circle of so many changes, one is staged in a round."""

CANDIDATES = 64
"""Nodes that are asked for a replica to wait on."""


def circles(draft: Draft) -> NDArray[np.int64]:
    """Return for each change the circle of changes that it is in, (C,); -1 for none.

    A change waits for those that give back what it lacks, and for the one before it in its
    partition. A circle is a strongly connected component of that (Tarjan 1972).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    schedule, stuck = draft.schedule, draft.stuck
    count = len(schedule.start)
    circle = np.full(count, -1, np.int64)
    is_stuck = np.zeros(count, bool)
    is_stuck[stuck] = True
    giver = np.repeat(np.arange(count), np.diff(schedule.gift_first))
    held = np.flatnonzero(is_stuck[giver])
    order = held[np.argsort(schedule.gift_on[held], kind="stable")]
    lacks = schedule.lacks[stuck]
    on = schedule.gift_on[order]
    low, high = np.searchsorted(on, lacks), np.searchsorted(on, lacks, side="right")
    high = np.where(lacks >= 0, high, low)
    row = np.repeat(np.arange(len(stuck)), high - low)
    laid = np.cumsum(high - low) - (high - low)
    other = giver[order[np.arange(len(row)) + (low - laid)[row]]]
    waiting = np.flatnonzero((lacks < 0) & (draft.previous[stuck] >= 0))
    source = np.concatenate([stuck[row], stuck[waiting]])
    target = np.concatenate([other, draft.previous[stuck[waiting]]])
    graph = csr_array((np.ones(len(source), np.int8), (source, target)), (count, count))
    _, label = connected_components(graph, connection="strong")
    size = np.bincount(label[stuck], minlength=int(label.max(initial=-1)) + 1)
    inside = stuck[size[label[stuck]] > 1]
    circle[inside] = np.unique(label[inside], return_inverse=True)[1]
    return circle


def staged(draft: Draft, throttle: Throttle, protocol: Protocol) -> Draft:
    """Return a draft in which what can be let loose by way of a spare node is.

    Of every circle the move of the fewest bytes that finds a spare node goes there first. What then
    cannot go on from its spare node is not sent there.
    """
    best = draft
    safety = Safety(draft.cluster, draft.ends, protocol)
    barred: set[int] = set()
    for _ in range(ROUNDS):
        spare = _spares(draft, safety, barred)
        if not spare:
            break
        barred.update(int(draft.acts.replica[i]) for i in spare)
        acts = by_way_of(draft.acts, spare)
        draft = Draft.of(draft.cluster, draft.target, draft.ends, acts, throttle, protocol)
        if len(draft.stuck) == 0:
            return draft
    while True:
        stranded = _stranded(draft)
        if len(stranded) == 0:
            break
        acts = direct(draft.acts, stranded)
        draft = Draft.of(draft.cluster, draft.target, draft.ends, acts, throttle, protocol)
    return draft if draft.left < best.left else best


def halfway(draft: Draft) -> NDArray[np.bool_]:
    """Return the acts, (M,), of partitions of which a replica would be left on a spare node."""
    acts = draft.acts
    starts = ~np.isnan(draft.schedule.start[acts.change])
    moves = np.flatnonzero(acts.act == Act.MOVE)
    order = moves[np.argsort(acts.replica[moves], kind="stable")]
    one, other = order[:-1], order[1:]
    left = (acts.replica[one] == acts.replica[other]) & starts[one] & ~starts[other]
    return np.isin(acts.partition, acts.partition[other[left]])


def by_way_of(acts: Acts, spare: dict[int, int]) -> Acts:
    """Let some acts, by index, go to a spare node first."""
    first = np.array(sorted(spare), np.intp)
    twice = np.ones(len(acts), np.int64)
    twice[first] = 2
    copy = {one.name: np.repeat(getattr(acts, one.name), twice) for one in fields(acts)}
    at = first + np.arange(len(first))
    node = np.array([spare[int(i)] for i in first], np.int32)
    copy["target"][at] = node
    copy["source"][at + 1] = node
    for name in ("heir", "heir_node"):
        copy[name][at] = -1
    copy["leads"][at] = copy["led"][at]
    for half in (at, at + 1):
        copy["left"][half] = 1.0
    more = np.zeros(len(copy["change"]), np.int32)
    more[at + 1] = 1
    copy["change"] = (copy["change"] + np.cumsum(more)).astype(np.int32)
    return Acts(**copy)


def direct(acts: Acts, second: NDArray[np.intp]) -> Acts:
    """Take back the staging of which these acts are the second halves."""
    kept = np.ones(len(acts), bool)
    kept[second - 1] = False
    copy = {one.name: getattr(acts, one.name).copy() for one in fields(acts)}
    copy["source"][second] = acts.source[second - 1]
    less = (~kept).astype(np.int32)
    copy["change"] = (copy["change"] - np.cumsum(less)).astype(np.int32)
    return Acts(**{name: values[kept] for name, values in copy.items()})


def _stranded(draft: Draft) -> NDArray[np.intp]:
    """Return the second halves of staged moves that never start."""
    acts = draft.acts
    second = np.zeros(len(acts), bool)
    second[1:] = (
        (acts.replica[1:] == acts.replica[:-1]) & (acts.act[1:] == Act.MOVE)
        & (acts.act[:-1] == Act.MOVE)
    )  # fmt: skip
    return np.flatnonzero(second & np.isnan(draft.schedule.start[acts.change]))


def _spares(draft: Draft, safety: Safety, barred: set[int]) -> dict[int, int]:
    """Choose acts to stage, and the spare node of each."""
    acts, circle = draft.acts, circles(draft)
    of_act = circle[acts.change]
    alone = np.bincount(acts.change, minlength=len(circle)) == 1
    fit = (of_act >= 0) & (acts.act == Act.MOVE) & alone[acts.change] & ~acts.blocked
    fit &= (draft.schedule.lacks[acts.change] >= 0) & ~acts.flying
    usable = np.flatnonzero(fit)
    weight = draft.copies.size[usable]
    order = usable[np.lexsort((usable, weight, of_act[usable]))]
    room = Room(draft, safety)
    spare: dict[int, int] = {}
    quota = -(-np.bincount(circle[circle >= 0]) // CIRCLE)
    for i in order.tolist():
        if quota[of_act[i]] > 0 and int(acts.replica[i]) not in barred:
            node = room.spare_node(i)
            if node >= 0:
                spare[i] = node
                quota[of_act[i]] -= 1
    return spare


class Room:
    """What is free of nodes and domains, by default where a draft got stuck."""

    def __init__(
        self,
        draft: Draft,
        safety: Safety,
        free: NDArray[np.float64] | None = None,
    ) -> None:
        self.draft = draft
        self.safety = safety
        self.tables = []
        cluster, resources = draft.cluster, draft.resources
        every = draft.schedule.free if free is None else free
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

    def spare_node(self, act: int) -> int:
        """Return the roomiest node that a replica may wait on, -1 for none, and take its room."""
        p = int(self.draft.acts.partition[act])
        weight = self._weight(p)
        nodes, left = self._open_nodes(p, weight, self._held(p))
        nodes = nodes[left >= 0.0]
        nodes = nodes[self._admitted(act, nodes)]
        if len(nodes) == 0:
            return -1
        n = int(nodes[0])
        for free, domain in self.tables:
            if domain[n] >= 0:
                free[domain[n]] -= weight[: free.shape[1]]
        return n

    def spare_nodes(self, act: int, most: int) -> list[int]:
        """Return nodes that a replica may wait on once they have room, the roomiest first.

        Those that others of its partition leave, or are to join, are none.
        """
        p = int(self.draft.acts.partition[act])
        nodes, _ = self._open_nodes(p, self._weight(p), self._held(p))
        found: list[int] = nodes[self._admitted(act, nodes)][:most].tolist()
        return found

    def nodes_for(self, partition: int, taken: Collection[int], most: int) -> list[int]:
        """Return nodes that may receive a partition, but for some, the roomiest first."""
        weight = self._weight(partition)
        found: list[int] = self._open_nodes(partition, weight, taken)[0][:most].tolist()
        return found

    def _held(self, partition: int) -> list[int]:
        ends = self.draft.ends
        row = int(np.searchsorted(ends.partition, partition))
        found: list[int] = np.append(ends.before[row], ends.after[row]).tolist()
        return found

    def _weight(self, p: int) -> NDArray[np.float64]:
        load = self.draft.cluster.partitions.load
        heaviest = np.maximum(load.leader[p], np.maximum(load.voter[p], load.non_voter[p]))
        return np.append(heaviest, 1.0)

    def _open_nodes(
        self, p: int, weight: NDArray[np.float64], taken: Collection[int]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return nodes that receive a partition, and what would be left there, roomiest first."""
        cluster = self.draft.cluster
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

    def _now(self, act: int, row: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return nodes and roles of a partition when it is an act's turn."""
        ends, acts = self.draft.ends, self.draft.acts
        node, role = ends.before[row].copy(), ends.role[row].copy()
        low = int(np.searchsorted(acts.partition, ends.partition[row]))
        for i in range(low, act):
            slot = ends.replica[row] == acts.replica[i]
            node[slot], role[slot] = acts.target[i], acts.role[i]
        return node, role

    def _admitted(self, act: int, nodes: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether rules let a replica stand on each of ``nodes (n,)``, and get there and away."""
        acts, ends = self.draft.acts, self.draft.ends
        row = int(np.searchsorted(ends.partition, acts.partition[act]))
        now, role = self._now(act, row)
        slot = int(np.flatnonzero(ends.replica[row] == acts.replica[act])[0])
        count = len(nodes)
        rows, twin = np.full(count, row), np.full(count, slot)
        new = nodes.astype(np.int32)[:, None]
        here = np.repeat(now[None], count, axis=0)
        there = here.copy()
        there[:, slot] = nodes
        roles = np.repeat(role[None], count, axis=0)
        fits = self.safety.keeps(rows, there, roles)
        if self.draft.split[act]:
            on = np.full((count, 1), acts.target[act], np.int32)
            roles = np.hstack([roles, roles[:, slot, None]])
            for both in (np.hstack([here, new]), np.hstack([there, on])):
                fits &= self.safety.keeps(rows, both, roles, twin)
        return fits & (not acts.led[act] or self.draft.cluster.nodes.may_lead[nodes])
