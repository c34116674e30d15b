"""Leaders within a number for each node, the fewest of them changed: successive shortest paths.

A node that leads too many hands one on, whoever takes it may hand on another, until a node that may
lead more takes the last (Ahuja, Magnanti and Orlin, *Network Flows*, 1993, section 9.7). A lead
costs 1 away from who has it now, and prices keep all costs at 0 or more: first the length of the
shortest chain is found, then as many chains of that length as there are, those of few hops first
(Dinic). After any round every partition is led, and no node is above its number that was not.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, no_alloc
from evenkeel_kernels.core.leader_lists import Leading, leave_lead, take_lead

FAR = np.iinfo(np.int64).max
"""Distance of what no chain reaches."""


@by_reference
class LeadFlow(NamedTuple):
    """Who leads what, who may, and how many each node may lead. A arcs, N nodes, P partitions."""

    # (P + 1,) arcs of partition p are ``first[p] : first[p + 1]``; each has one at least
    first: NDArray[np.int64]
    node: NDArray[np.int64]  # (A,) node of each arc
    began: NDArray[np.int64]  # (P,) the arc of who led as things came; -1 for none
    taken: NDArray[np.int64]  # (P,) the arc over which each partition is led; changed
    most: NDArray[np.int64]  # (N,) leads that each node may have
    leading: Leading  # the partitions that each node leads; changed
    price: NDArray[np.int64]  # (N,) what a lead on each node is worth, in changes; changed
    # distance, stack: (N,) room to work in: changes, or hops, from nodes with too many leads, and
    # nodes to look at
    distance: NDArray[np.int64]
    stack: NDArray[np.int64]
    # cursor, given, over: (N,) room to work in: the next partition that a node looks at, and the
    # partition that it hands on and the arc that this takes
    cursor: NDArray[np.int64]
    given: NDArray[np.int64]
    over: NDArray[np.int64]
    settled: NDArray[np.bool_]  # (N,) room to work in: nodes whose distance is known


@no_alloc
def begin_flow(flow: LeadFlow) -> None:
    """Let partitions be led by who led them, others by who may lead the most more. O(A + N)."""
    leading, most = flow.leading, flow.most
    for n in range(len(most)):
        leading.led[n] = 0
        leading.first[n] = -1
        flow.price[n] = 0
    for p in range(len(flow.began)):
        if flow.began[p] >= 0:
            flow.taken[p] = flow.began[p]
            take_lead(leading, flow.node[flow.taken[p]], p)
    for p in range(len(flow.began)):
        if flow.began[p] >= 0:
            continue
        best = flow.first[p]
        for a in range(best + 1, flow.first[p + 1]):
            n, other = flow.node[a], flow.node[best]
            if most[n] - leading.led[n] > most[other] - leading.led[other]:
                best = a
        flow.taken[p] = best
        take_lead(leading, flow.node[best], p)


@no_alloc
def excess(flow: LeadFlow) -> int:
    """Return how many leads are above what nodes may have. O(N)."""
    total = 0
    for n in range(len(flow.most)):
        total += max(flow.leading.led[n] - flow.most[n], 0)
    return total


@no_alloc
def _changes(flow: LeadFlow, p: int, a: int, n: int) -> int:
    """Return what leading ``p`` over an arc costs instead of as now on ``n``, at prices. O(1)."""
    now, then = flow.taken[p] != flow.began[p], a != flow.began[p]
    return int(then) - int(now) + flow.price[n] - flow.price[flow.node[a]]


@no_alloc
def _settle(flow: LeadFlow, n: int, size: int) -> int:
    """Note what a node's leads can reach; stack what costs nothing more. O(its arcs)."""
    p = flow.leading.first[n]
    while p >= 0:
        for a in range(flow.first[p], flow.first[p + 1]):
            m = flow.node[a]
            if flow.settled[m]:
                continue
            found = flow.distance[n] + _changes(flow, p, a, n)
            if found < flow.distance[m]:
                flow.distance[m] = found
                if found == flow.distance[n]:
                    flow.stack[size] = m
                    size += 1
        p = flow.leading.next[p]
    return size


@no_alloc
def measure_chains(flow: LeadFlow) -> bool:
    """Price nodes by the shortest chain from one that leads too many (Dijkstra, Dial's buckets).

    O(A + N x changes of that chain).

    Returns whether there is a chain at all.
    """
    count, leading = len(flow.most), flow.leading
    for n in range(count):
        flow.distance[n] = 0 if leading.led[n] > flow.most[n] else FAR
        flow.settled[n] = False
    nearest, ends = 0, False
    while not ends:
        size = 0
        for n in range(count):
            if not flow.settled[n] and flow.distance[n] == nearest:
                flow.stack[size] = n
                size += 1
        while size > 0:
            size -= 1
            n = flow.stack[size]
            if flow.settled[n]:
                continue
            flow.settled[n] = True
            ends = ends or leading.led[n] < flow.most[n]
            size = _settle(flow, n, size)
        if ends:
            break
        nearest = FAR
        for n in range(count):
            if not flow.settled[n]:
                nearest = min(nearest, flow.distance[n])
        if nearest == FAR:
            return False
    for n in range(count):
        flow.price[n] += min(flow.distance[n], nearest)
    return True


@no_alloc
def rank_nodes(flow: LeadFlow) -> bool:
    """Rank nodes by the hops of chains that cost nothing at prices (Dinic's layers). O(A).

    Returns whether such a chain ends; nodes as far as the first end, or farther, have no rank.
    """
    count, leading = len(flow.most), flow.leading
    size = 0
    for n in range(count):
        flow.cursor[n] = leading.first[n]
        flow.distance[n] = FAR
        if leading.led[n] > flow.most[n]:
            flow.distance[n] = 0
            flow.stack[size] = n
            size += 1
    at, last = 0, FAR
    while at < size and flow.distance[flow.stack[at]] < last:
        n = flow.stack[at]
        at += 1
        p = leading.first[n]
        while p >= 0:
            for a in range(flow.first[p], flow.first[p + 1]):
                m = flow.node[a]
                if flow.distance[m] == FAR and _changes(flow, p, a, n) == 0:
                    flow.distance[m] = flow.distance[n] + 1
                    flow.stack[size] = m
                    size += 1
                    if leading.led[m] < flow.most[m]:
                        last = flow.distance[m]
            p = leading.next[p]
    return last < FAR


@no_alloc
def _next_of_chain(flow: LeadFlow, n: int) -> int:
    """Find a node of the next rank that takes a lead of ``n`` at no cost, or -1. O(its arcs)."""
    p, rank = flow.cursor[n], flow.distance[n] + 1
    while p >= 0:
        for a in range(flow.first[p], flow.first[p + 1]):
            if flow.distance[flow.node[a]] == rank and _changes(flow, p, a, n) == 0:
                flow.given[n] = p
                flow.over[n] = a
                return int(flow.node[a])
        p = flow.leading.next[p]
        flow.cursor[n] = p
    return -1


@no_alloc
def _hand_on(flow: LeadFlow, length: int) -> None:
    """Let every node of a chain hand its lead to the next. O(length)."""
    for i in range(length):
        n = flow.stack[i]
        p = flow.given[n]
        flow.cursor[n] = flow.leading.next[p]
        flow.taken[p] = flow.over[n]
        leave_lead(flow.leading, n, p)
        take_lead(flow.leading, flow.node[flow.taken[p]], p)


@no_alloc
def _follow_chain(flow: LeadFlow, start: int) -> bool:
    """Hand on one lead of a node along a chain of rising rank, if one is left. O(A)."""
    depth = 0
    flow.stack[0] = start
    while depth >= 0:
        n = flow.stack[depth]
        if flow.leading.led[n] < flow.most[n]:
            _hand_on(flow, depth)
            return True
        m = _next_of_chain(flow, n)
        if m >= 0:
            depth += 1
            flow.stack[depth] = m
        else:
            flow.distance[n] = FAR
            depth -= 1
    return False


@no_alloc
def follow_chains(flow: LeadFlow) -> None:
    """Hand on along chains of rising rank until each is blocked. O(A + length of all chains)."""
    for n in range(len(flow.most)):
        while flow.leading.led[n] > flow.most[n] and _follow_chain(flow, n):
            pass
