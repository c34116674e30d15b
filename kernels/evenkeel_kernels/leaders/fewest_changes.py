"""Choose leaders within bounds per node with the fewest changes, by successive shortest paths.

Leads are counted in *places*: a node, or a group on a node, which is a place within that node's.
The last place holds all. One with too many leads hands one on, the one that takes it may hand on
another, until the last is taken by a place that may, or should, have more (Ahuja, Magnanti and
Orlin, *Network Flows*, 1993, section 9.7). A lead costs 1 away from who has it now, and prices keep
all costs at 0 or more: first the length of the shortest chain is found, then as many chains of that
length as there are, those of few hops first (Dinic). After any round every partition is led, and no
place is further from its numbers than before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, no_alloc
from evenkeel_kernels.core.leadership import Leading, leave_lead, take_lead

FAR = np.iinfo(np.int64).max  # distance of what no chain reaches


@by_reference
class LeadFlow(NamedTuple):
    """Who leads what, who may, and how many each place may have. A arcs, V places, P partitions."""

    # (P + 1,) arcs of partition p are ``first[p] : first[p + 1]``; each has one at least
    first: NDArray[np.int64]
    place: NDArray[np.int64]  # (A,) place of each arc
    began: NDArray[np.int64]  # (P,) the arc of who led as things came; -1 for none
    taken: NDArray[np.int64]  # (P,) the arc over which each partition is led; changed
    least: NDArray[np.int64]  # (V,) leads that each place should have, in it and those within
    most: NDArray[np.int64]  # (V,) the most that it may
    around: NDArray[np.int64]  # (V,) the place that it is in, a later one; -1 for the last
    inner: NDArray[np.int64]  # (V,) the first place within each, -1 for none
    beside: NDArray[np.int64]  # (V,) the next place within the same, -1 for none
    passed: NDArray[np.int64]  # (V,) leads that count in the place around; changed
    surplus: NDArray[np.int64]  # (V,) leads beyond these, below 0 where some are lacking; changed
    leading: Leading  # the partitions that each place leads, without those within; changed
    price: NDArray[np.int64]  # (V,) what a lead in each place is worth, in changes; changed
    # distance, stack: (V,) room to work in: changes, or hops, from places with too many leads, and
    # places to look at
    distance: NDArray[np.int64]
    stack: NDArray[np.int64]
    # cursor, within, given, over: (V,) room to work in: the next partition, and the next place
    # within, that a place looks at; the partition that it hands on, -1 for one that only counts
    # elsewhere, and the arc, or the place, that this takes
    cursor: NDArray[np.int64]
    within: NDArray[np.int64]
    given: NDArray[np.int64]
    over: NDArray[np.int64]
    settled: NDArray[np.bool_]  # (V,) room to work in: places whose distance is known


@no_alloc
def begin_flow(flow: LeadFlow) -> None:
    """Let partitions be led by who led them, others by who may lead the most more. O(A + V)."""
    leading, most, last = flow.leading, flow.most, len(flow.most) - 1
    for v in range(last + 1):
        leading.led[v] = 0
        leading.first[v] = -1
        flow.price[v] = 0
    for p in range(len(flow.began)):
        if flow.began[p] >= 0:
            flow.taken[p] = flow.began[p]
            take_lead(leading, flow.place[flow.taken[p]], p)
    for p in range(len(flow.began)):
        if flow.began[p] >= 0:
            continue
        best = flow.first[p]
        for a in range(best + 1, flow.first[p + 1]):
            v, other = flow.place[a], flow.place[best]
            if most[v] - leading.led[v] > most[other] - leading.led[other]:
                best = a
        flow.taken[p] = best
        take_lead(leading, flow.place[best], p)
    for v in range(last + 1):
        flow.surplus[v] = leading.led[v]
    for v in range(last + 1):
        flow.passed[v] = min(max(flow.surplus[v], flow.least[v]), most[v])
        flow.surplus[v] -= flow.passed[v]
        if v < last:
            flow.surplus[flow.around[v]] += flow.passed[v]


@no_alloc
def excess(flow: LeadFlow) -> int:
    """Return how many leads are above what places may have, or should go elsewhere. O(V)."""
    total = 0
    for v in range(len(flow.most)):
        total += max(flow.surplus[v], 0)
    return total


@no_alloc
def _changes(flow: LeadFlow, p: int, a: int, v: int) -> int:
    """Return what leading ``p`` over an arc costs instead of as now in ``v``, at prices. O(1)."""
    now, then = flow.taken[p] != flow.began[p], a != flow.began[p]
    return int(then) - int(now) + flow.price[v] - flow.price[flow.place[a]]


@no_alloc
def _passes(flow: LeadFlow, v: int, to: int) -> bool:
    """Whether a lead of ``v`` may count in the place around it, or in one within. O(1)."""
    if to < 0:
        return False
    if flow.around[v] == to:
        return flow.passed[v] < flow.most[v]
    return flow.passed[to] > flow.least[to]


@no_alloc
def _near(flow: LeadFlow, v: int, to: int, found: int, size: int) -> int:
    """Note that a place is within reach; stack it if it is as near as ``v``. O(1)."""
    if not flow.settled[to] and found < flow.distance[to]:
        flow.distance[to] = found
        if found == flow.distance[v]:
            flow.stack[size] = to
            size += 1
    return size


@no_alloc
def _settle(flow: LeadFlow, v: int, size: int) -> int:
    """Note what a place's leads can reach; stack what costs nothing more. O(its arcs)."""
    price, around = flow.price, flow.around[v]
    if _passes(flow, v, around):
        size = _near(flow, v, around, flow.distance[v] + price[v] - price[around], size)
    p = flow.leading.first[v]
    while p >= 0:
        for a in range(flow.first[p], flow.first[p + 1]):
            size = _near(flow, v, flow.place[a], flow.distance[v] + _changes(flow, p, a, v), size)
        p = flow.leading.next[p]
    w = flow.inner[v]
    while w >= 0:
        if _passes(flow, v, w):
            size = _near(flow, v, w, flow.distance[v] + price[v] - price[w], size)
        w = flow.beside[w]
    return size


@no_alloc
def measure_chains(flow: LeadFlow) -> bool:
    """Price places by the shortest chain from one with too many leads (Dijkstra, Dial's buckets).

    O(A + V x changes of that chain).

    Returns whether there is a chain at all; if not, places at a ``distance`` below ``FAR`` are
    those that any could begin or go through.
    """
    count = len(flow.most)
    for v in range(count):
        flow.distance[v] = 0 if flow.surplus[v] > 0 else FAR
        flow.settled[v] = False
    nearest, ends = 0, False
    while not ends:
        size = 0
        for v in range(count):
            if not flow.settled[v] and flow.distance[v] == nearest:
                flow.stack[size] = v
                size += 1
        while size > 0:
            size -= 1
            v = flow.stack[size]
            if flow.settled[v]:
                continue
            flow.settled[v] = True
            ends = ends or flow.surplus[v] < 0
            size = _settle(flow, v, size)
        if ends:
            break
        nearest = FAR
        for v in range(count):
            if not flow.settled[v]:
                nearest = min(nearest, flow.distance[v])
        if nearest == FAR:
            return False
    for v in range(count):
        flow.price[v] += min(flow.distance[v], nearest)
    return True


@no_alloc
def rank_places(flow: LeadFlow) -> bool:
    """Rank places by the hops of chains that cost nothing at prices (Dinic's layers). O(A).

    Returns whether such a chain ends; places as far as the first end, or farther, have no rank.
    """
    count, leading = len(flow.most), flow.leading
    size = 0
    for v in range(count):
        flow.cursor[v] = leading.first[v]
        flow.within[v] = flow.inner[v]
        flow.distance[v] = FAR
        if flow.surplus[v] > 0:
            flow.distance[v] = 0
            flow.stack[size] = v
            size += 1
    at, last = 0, FAR
    while at < size and flow.distance[flow.stack[at]] < last:
        v = flow.stack[at]
        at += 1
        before = size
        if _is_next(flow, v, flow.around[v], FAR):
            size = _rank(flow, v, flow.around[v], size)
        p = leading.first[v]
        while p >= 0:
            for a in range(flow.first[p], flow.first[p + 1]):
                if flow.distance[flow.place[a]] == FAR and _changes(flow, p, a, v) == 0:
                    size = _rank(flow, v, flow.place[a], size)
            p = leading.next[p]
        w = flow.inner[v]
        while w >= 0:
            if _is_next(flow, v, w, FAR):
                size = _rank(flow, v, w, size)
            w = flow.beside[w]
        for i in range(before, size):
            if flow.surplus[flow.stack[i]] < 0:
                last = flow.distance[flow.stack[i]]
    return last < FAR


@no_alloc
def _rank(flow: LeadFlow, v: int, to: int, size: int) -> int:
    """Rank a place next to ``v``, and stack it. O(1)."""
    flow.distance[to] = flow.distance[v] + 1
    flow.stack[size] = to
    return size + 1


@no_alloc
def _is_next(flow: LeadFlow, v: int, to: int, rank: int) -> bool:
    """Whether a lead of ``v`` counts at no cost in the place around, or within, of a rank. O(1)."""
    free = _passes(flow, v, to) and flow.price[v] == flow.price[to]
    return free and flow.distance[to] == rank


@no_alloc
def _next_of_chain(flow: LeadFlow, v: int) -> int:
    """Find a place of the next rank that takes a lead of ``v`` at no cost, or -1. O(its arcs)."""
    p, rank = flow.cursor[v], flow.distance[v] + 1
    flow.given[v] = -1
    flow.over[v] = flow.around[v]
    if _is_next(flow, v, flow.around[v], rank):
        return int(flow.around[v])
    while p >= 0:
        for a in range(flow.first[p], flow.first[p + 1]):
            if flow.distance[flow.place[a]] == rank and _changes(flow, p, a, v) == 0:
                flow.given[v] = p
                flow.over[v] = a
                return int(flow.place[a])
        p = flow.leading.next[p]
        flow.cursor[v] = p
    while flow.within[v] >= 0:
        flow.over[v] = flow.within[v]
        if _is_next(flow, v, flow.within[v], rank):
            return int(flow.within[v])
        flow.within[v] = flow.beside[flow.within[v]]
    return -1


@no_alloc
def _hand_on(flow: LeadFlow, length: int) -> None:
    """Let every place of a chain hand its lead to the next. O(length)."""
    for i in range(length):
        v = flow.stack[i]
        p = flow.given[v]
        if p >= 0:
            flow.cursor[v] = flow.leading.next[p]
            flow.taken[p] = flow.over[v]
            leave_lead(flow.leading, v, p)
            take_lead(flow.leading, flow.place[flow.taken[p]], p)
        elif flow.around[v] == flow.over[v]:
            flow.passed[v] += 1
        else:
            flow.passed[flow.over[v]] -= 1
    flow.surplus[flow.stack[0]] -= 1
    flow.surplus[flow.stack[length]] += 1


@no_alloc
def _follow_chain(flow: LeadFlow, start: int) -> bool:
    """Hand on one lead of a place along a chain of rising rank, if one is left. O(A)."""
    depth = 0
    flow.stack[0] = start
    while depth >= 0:
        v = flow.stack[depth]
        if flow.surplus[v] < 0:
            _hand_on(flow, depth)
            return True
        w = _next_of_chain(flow, v)
        if w >= 0:
            depth += 1
            flow.stack[depth] = w
        else:
            flow.distance[v] = FAR
            depth -= 1
    return False


@no_alloc
def follow_chains(flow: LeadFlow) -> None:
    """Hand on along chains of rising rank until each is blocked. O(A + length of all chains)."""
    for v in range(len(flow.most)):
        while flow.surplus[v] > 0 and _follow_chain(flow, v):
            pass
