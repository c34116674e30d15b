"""Minimise moves of equal replicas by paths and negative cycles on the graph of nodes.

An arc leads from one node to another where a replica of the first may go to the second, and costs
what that changes in moves: 1 where it leaves home, -1 where it returns, otherwise 0. A node above
its targets is relieved along the cheapest path to one with room; where none is, paths and cycles of
negative cost save moves. Once there are none, no placement makes fewer moves: where rules only
limit the replicas of a partition in domains of which one lies within another, any better placement
differs by such paths and cycles, since what a partition gives up can be paired with what it takes
so that each pair is admitted by itself.

References
----------
M. Klein, "A primal method for minimal cost flows", Management Science 14 (1967): cycles.
R. Brualdi, "Comments on bases in dependence structures", Bulletin of the Australian Mathematical
Society 1 (1969): the pairs.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits, keeps_limits, may_stand
from evenkeel_kernels.core.leadership import keeps_leader
from evenkeel_kernels.core.problem import Problem, State, index, is_away, leads_now
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.penalty import Targets

NONE = 1 << 20  # cost of an arc that is not there

# sorts of ways: one relieves a node above its targets, or saves moves; one that closes does
RELIEF, SAVING, CYCLE = 0, 1, 2


@inline_only
def holds(state: State, targets: Targets, n: int, size: NDArray[np.float64], more: float) -> bool:
    """Whether node ``n`` is within its targets of load with so many replicas of ``size (D,)``."""
    for d in range(state.load.shape[0]):
        if (state.load[d, n] + more * size[d]) * targets.scale[d, n] > 1.0:
            return False
    return True


@device_function
def fill_arcs(
    problem: Problem,
    state: State,
    a: int,
    head: NDArray[np.int64],
    after: NDArray[np.int64],
    cost: NDArray[np.int64],
    via: NDArray[np.int64],
) -> None:
    """Fill the arcs of node ``a``, rows of ``cost`` and ``via (N, N)``: the cheapest replica each.

    Its replicas are a list: ``head (N,)`` has the first of a node, ``after (K,)`` the next one. A
    move counts for more than all leaders that move along a path. O(N) for each replica on it.
    """
    partitions, nodes = problem.partitions, cost.shape[0]
    for n in range(nodes):
        cost[a, n], via[a, n] = NONE, -1
    k = index(head[a])
    while k >= 0:
        p = index(partitions.owner[k])
        leads = int(leads_now(partitions.first, state.leader, p, k))
        now = is_away(problem, k, a)
        for n in range(nodes if partitions.movable[k] else 0):
            price = 2 * nodes * (1 - now) + leads
            if price - 2 * nodes >= cost[a, n] or n == a:
                continue
            price -= 2 * nodes * (1 - is_away(problem, k, index(n)))
            if (
                price < cost[a, n]
                and may_stand(problem, p, index(n))
                and keeps_leader(problem, state, k, index(n))
                and keeps_limits(problem, state, k, index(n))
            ):
                cost[a, n], via[a, n] = price, k
        k = index(after[k])


@device_function
def find(
    state: State,
    targets: Targets,
    size: NDArray[np.float64],
    max_replicas: NDArray[np.int32],
    cost: NDArray[np.int64],
    distance: NDArray[np.int64],
    parent: NDArray[np.int64],
) -> tuple[int, int]:
    """Return the end of a path, or of a cycle, and its sort: RELIEF, SAVING or CYCLE; -1 for none.

    ``cost (N, N)`` is of arcs; nodes hold replicas of ``size (D,)``, ``max_replicas (N,)`` at most.
    ``parent (N,)`` leads back from there; ``distance (N,)`` is scratch. Bellman and Ford, O(N^3).
    """
    nodes, relief = cost.shape[0], False
    for n in range(nodes):
        parent[n], distance[n] = -1, 0
        relief = relief or not holds(state, targets, index(n), size, 0.0)
    for n in range(nodes if relief else 0):
        if holds(state, targets, index(n), size, 0.0):
            distance[n] = NONE
    changed = True
    while changed:
        changed = False
        for a in range(nodes):
            for b in range(nodes if distance[a] < NONE else 0):
                if cost[a, b] < NONE and distance[a] + cost[a, b] < distance[b]:
                    distance[b] = distance[a] + cost[a, b]
                    parent[b] = a
                    changed = True
        for n in range(nodes if changed else 0):  # a cycle among parents costs less than nothing
            b, steps = index(n), 0
            while b >= 0 and steps < nodes:
                b, steps = index(parent[b]), steps + 1
            if b >= 0:
                return b, CYCLE
    least, end = index(NONE if relief else -nodes), index(-1)
    for n in range(nodes):
        if distance[n] < least and parent[n] >= 0 and holds(state, targets, index(n), size, 1.0):
            if state.replicas[n] < max_replicas[n]:
                least, end = index(distance[n]), index(n)
    return end, RELIEF if relief else SAVING


@device_function
def follow(
    problem: Problem,
    state: State,
    path: NDArray[np.int64],
    length: int,
    closed: bool,
    cost: NDArray[np.int64],
    via: NDArray[np.int64],
) -> bool:
    """Send a replica along each arc of ``path``, the last one first; whether all are admitted.

    ``via (N, N)`` has the replica of each arc. On a cycle the last one leaves first and arrives
    last. An arc that is not admitted is struck from ``cost (N, N)``.
    """
    last = length - 1
    if closed:
        move(problem, state, index(via[path[last], path[length]]), index(-1))
    refused = index(-1)
    done = 0
    while done < length and refused < 0:
        at = last - done - int(closed)
        at = last if at < 0 else at
        k = index(via[path[at], path[at + 1]])
        if admits(problem, state, k, index(path[at + 1])):
            move(problem, state, k, index(path[at + 1]))
            done += 1
        else:
            refused = index(at)
    if refused < 0:
        return True
    for step in range(done):
        at = last - step - int(closed)
        move(problem, state, index(via[path[at], path[at + 1]]), index(path[at]))
    if closed:
        move(problem, state, index(via[path[last], path[length]]), index(path[last]))
    cost[path[refused], path[refused + 1]] = NONE
    return False


@no_alloc
def cancel(
    problem: Problem,
    state: State,
    targets: Targets,
    size: NDArray[np.float64],
    lists: NDArray[np.int64],
    cost: NDArray[np.int64],
    via: NDArray[np.int64],
    rows: NDArray[np.int64],
    left: NDArray[np.int64],
) -> bool:
    """Relieve nodes and save moves until that is proven to be all, or no work is ``left (1,)``.

    Returns whether it is proven. ``size (D,)`` is what each replica weighs. ``lists (K + N,)``,
    ``cost`` and ``via (N, N)`` and ``rows (4, N + 1)`` are scratch.

    Complexity: O(K N) to begin with; O(N^3), and O(K) for each node on it, for each path.
    """
    nodes, partitions = cost.shape[0], problem.partitions
    after, head = lists[nodes:], lists[:nodes]
    distance, parent, path, stale = rows[0], rows[1], rows[2], rows[3]
    head[:] = -1
    for k in range(state.node.shape[0] - 1, -1, -1):
        if state.node[k] >= 0:
            after[k], head[state.node[k]] = head[state.node[k]], k
    stale[:] = 1
    refused = False
    while left[0] > 0:
        for n in range(nodes):
            if stale[n] != 0:
                fill_arcs(problem, state, index(n), head, after, cost, via)
                left[0] -= nodes * (1 + state.replicas[n])
                stale[n] = 0
        left[0] -= nodes * nodes
        end, sort = find(state, targets, size, problem.nodes.max_replicas, cost, distance, parent)
        if end < 0:
            return sort == SAVING and not refused
        length, b = 0, end
        path[nodes] = b
        while parent[b] >= 0 and (b != end or length == 0):
            b = index(parent[b])
            length += 1
            path[nodes - length] = b
        for at in range(length + 1):
            path[at] = path[nodes - length + at]
        if not follow(problem, state, path, length, sort == CYCLE, cost, via):
            refused = True
            continue
        for at in range(length):
            k, a, b = index(via[path[at], path[at + 1]]), index(path[at]), index(path[at + 1])
            if head[a] == k:
                head[a] = after[k]
            else:
                i = index(head[a])
                while after[i] != k:
                    i = index(after[i])
                after[i] = after[k]
            after[k], head[b] = head[b], k
            p = index(partitions.owner[k])
            stale[a], stale[b] = 1, 1
            for i in range(partitions.first[p], partitions.first[p + 1]):
                if state.node[i] >= 0:
                    stale[state.node[i]] = 1
    return False
