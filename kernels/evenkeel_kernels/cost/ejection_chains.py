"""Ejection chains and cycles: up to three replicas move at once, each into the place of the next.

Within a *window*, a set of nodes and the replicas on them, the price of every *arc* is kept: what
changes on a node if one replica comes and another, or none, leaves. Nodes are apart in the cost, so
a cycle of arcs through different nodes, or a chain from a node that only gives to one that only
takes, costs the sum of its arcs. All of up to three arcs are looked through, but for those that
the cheapest arcs in and out show to be too dear: the search ends where no shift, swap, chain or
cycle of three within the window helps.

References
----------
Thompson, Psaraftis: Cyclic transfer algorithms for multivehicle routing and scheduling problems,
Operations Research 41 (1993). Ahuja, Orlin, Sharma: Multi-exchange neighborhood structures,
Operations Research Letters 31 (2003).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.cost.annealing import suits, suits_group
from evenkeel_kernels.cost.compound_move import (
    LEAST_GAIN,
    CompoundMove,
    add_move,
    are_alike,
    beside_load,
    make_moves,
)
from evenkeel_kernels.cost.cost_state import CostState

SCANNED_PER_PRICED = 8  # arcs looked at in the time that pricing one takes


@by_reference
class Arcs(NamedTuple):
    """A window of M nodes and the R replicas on them that may move, and its arcs."""

    node: NDArray[np.int64]  # (M,)
    replica: NDArray[np.int64]  # (R,)
    at: NDArray[np.int64]  # (R,) which of the nodes each is on
    may: NDArray[np.bool_]  # (R, M) whether the rules, room apart, admit each on each node
    moving: NDArray[np.float64]  # (R, M) what it costs, beside loads, to move each there
    price: NDArray[np.float64]  # (R, R) if one comes and the other leaves; inf where it may not
    add: NDArray[np.float64]  # (R, M) if one comes and none leaves
    lose: NDArray[np.float64]  # (R,) if each leaves and none comes
    out: NDArray[np.float64]  # (R,) least price with each coming
    into: NDArray[np.float64]  # (R,) least price with each leaving
    free: NDArray[np.float64]  # (R,) least of ``add``
    free_at: NDArray[np.int64]  # (R,) and which of the nodes that is
    stale: NDArray[np.bool_]  # (M,) nodes whose arcs are out of date
    best: NDArray[np.int64]  # (4,) arcs of the best chain, then up to three that move


def new_arcs(node: NDArray[np.int64], replica: NDArray[np.int64]) -> Arcs:
    """Open a window, all of it out of date.

    ``node (M,)``: its nodes; ``replica (R,)``: replicas on them that may move. Returns to be filled
    by ``price_arcs``. O(R (R + M)) memory.
    """
    nodes, replicas = len(node), len(replica)
    return Arcs(
        node=node,
        replica=replica,
        at=np.zeros(replicas, np.int64),
        may=np.zeros((replicas, nodes), bool),
        moving=np.zeros((replicas, nodes)),
        price=np.full((replicas, replicas), np.inf),
        add=np.full((replicas, nodes), np.inf),
        lose=np.zeros(replicas),
        out=np.zeros(replicas),
        into=np.zeros(replicas),
        free=np.zeros(replicas),
        free_at=np.zeros(replicas, np.int64),
        stale=np.ones(nodes, bool),
        best=np.zeros(4, np.int64),
    )


@inline_only
def arriving(problem: Problem, walk: CostState, n: int, comes: int, goes: int) -> float:
    """Change of the cost of node ``n``, movement apart; inf where there is no room."""
    # one ``comes`` and one ``goes``; -1 for none
    home = problem.partitions.home
    for d in range(walk.room.shape[1]):
        more = 0.0
        if comes >= 0:
            more += walk.need[comes, d] - (walk.kept[comes, d] if home[comes] == n else 0.0)
        if goes >= 0:
            more -= walk.need[goes, d] - (walk.kept[goes, d] if home[goes] == n else 0.0)
        if more > 0.0 and more > walk.room[n, d]:
            return np.inf
    change = -walk.cost[n]
    for c in range(walk.weight.shape[0]):
        more = walk.excess[n, c]
        if comes >= 0:
            more += walk.need[comes, c]
        if goes >= 0:
            more -= walk.need[goes, c]
        change += walk.weight[c] * max(0.0, more)
    return change


@no_alloc
def price_arcs(
    problem: Problem, state: State, walk: CostState, place: NDArray[np.int64], arcs: Arcs
) -> int:
    """Price the arcs of all nodes that are out of date.

    ``place (N,)``: which node of the window each node is; -1 for none. Returns arcs priced.
    """
    replicas, nodes = arcs.add.shape
    priced = 0
    for i in range(replicas):
        k = arcs.replica[i]
        arcs.at[i] = place[state.node[k]]
    for i in range(replicas):
        k = arcs.replica[i]
        here = arcs.stale[arcs.at[i]]
        for m in range(nodes):
            n = arcs.node[m]
            if here:
                away = m != arcs.at[i]
                arcs.may[i, m] = (
                    away and suits(problem, state, k, n) and suits_group(problem, state, k, n)
                )
                arcs.moving[i, m] = beside_load(problem, state, k, n) if away else 0.0
            if here or arcs.stale[m]:
                arcs.add[i, m] = np.inf
                if arcs.may[i, m] and state.replicas[n] < problem.nodes.max_replicas[n]:
                    arcs.add[i, m] = arcs.moving[i, m] + arriving(problem, walk, n, k, index(-1))
                    priced += 1
        if here:
            arcs.lose[i] = arriving(problem, walk, index(state.node[k]), index(-1), k)
    for i in range(replicas):
        k = arcs.replica[i]
        here = arcs.stale[arcs.at[i]]
        for j in range(replicas):
            m = arcs.at[j]
            if not here and not arcs.stale[m]:
                continue
            b = arcs.replica[j]
            arcs.price[i, j] = np.inf
            if m == arcs.at[i]:
                continue
            if arcs.may[i, m] or are_alike(problem, state, k, b):
                arcs.price[i, j] = arcs.moving[i, m] + arriving(problem, walk, arcs.node[m], k, b)
                priced += 1
    for i in range(replicas):
        arcs.into[i] = np.inf
        arcs.free[i] = np.inf
        arcs.free_at[i] = 0
        for m in range(nodes):
            if arcs.add[i, m] < arcs.free[i]:
                arcs.free[i] = arcs.add[i, m]
                arcs.free_at[i] = m
    for i in range(replicas):
        arcs.out[i] = arcs.free[i]
        for j in range(replicas):
            arcs.out[i] = min(arcs.out[i], arcs.price[i, j])
            arcs.into[j] = min(arcs.into[j], arcs.price[i, j])
    for m in range(nodes):
        arcs.stale[m] = False
    return priced


@inline_only
def note_best(arcs: Arcs, length: int, s: int, j: int, c: int) -> None:
    """Remember a chain: how many replicas move, which, and in what order."""
    arcs.best[0] = length
    arcs.best[1], arcs.best[2], arcs.best[3] = s, j, c


@device_function
def best_chain(arcs: Arcs, s: int, freest: float, least: float) -> tuple[float, int]:
    """Find the cheapest chain or cycle that begins with replica ``s`` of the window.

    ``freest`` is the least of ``arcs.free``; only what costs less than ``least`` counts. Returns
    its price, or ``least``, and how many arcs were looked at; ``arcs.best`` is (number of replicas,
    negative if they form a cycle, then these).
    """
    replicas = arcs.price.shape[0]
    x = arcs.at[s]
    best = least
    scanned = replicas
    if arcs.lose[s] + arcs.free[s] < best:
        best = arcs.lose[s] + arcs.free[s]
        note_best(arcs, index(1), s, index(-1), index(-1))
    close = min(arcs.into[s], arcs.lose[s] + freest)
    for j in range(replicas):
        first = arcs.price[s, j]
        if first + min(arcs.out[j], 0.0) + close >= best and first + arcs.out[j] >= best:
            continue
        y = arcs.at[j]
        if first + arcs.price[j, s] < best:
            best = first + arcs.price[j, s]
            note_best(arcs, index(-2), s, j, index(-1))
        if first + arcs.free[j] + arcs.lose[s] < best and arcs.free_at[j] != x:
            best = first + arcs.free[j] + arcs.lose[s]
            note_best(arcs, index(2), s, j, index(-1))
        if first + arcs.out[j] + close >= best:
            continue
        scanned += replicas
        for c in range(replicas):
            second = first + arcs.price[j, c]
            if second + close >= best:
                continue
            if second + arcs.price[c, s] < best and arcs.at[c] != x:
                best = second + arcs.price[c, s]
                note_best(arcs, index(-3), s, j, c)
            if second + arcs.free[c] + arcs.lose[s] < best:
                if arcs.free_at[c] != x and arcs.free_at[c] != y and arcs.at[c] != x:
                    best = second + arcs.free[c] + arcs.lose[s]
                    note_best(arcs, index(3), s, j, c)
    return best, scanned


@inline_only
def take_chain(arcs: Arcs, joint: CompoundMove) -> None:
    """Make the best chain of ``arcs`` the moves of ``joint``."""
    joint.number[0] = 0
    length = abs(arcs.best[0])
    for i in range(1, length + 1):
        member = arcs.best[i]
        if i < length:
            to = arcs.at[arcs.best[i + 1]]
        elif arcs.best[0] < 0:
            to = arcs.at[arcs.best[1]]
        else:
            to = arcs.free_at[member]
        add_move(joint, index(arcs.replica[member]), index(arcs.node[to]))


@no_alloc
def eject(
    problem: Problem,
    state: State,
    walk: CostState,
    place: NDArray[np.int64],
    arcs: Arcs,
    joint: CompoundMove,
    turn: NDArray[np.int64],
    begin: int,
    work: int,
) -> tuple[int, int, int]:
    """Make the best chain or cycle of some replicas of the window in turn, if it lowers the cost.

    ``place (N,)``: which node of the window each node is; -1 for none; ``turn (T,)``: replicas of
    the window that have a turn: chains begin with them, cycles pass through them; ``begin``: turn
    to begin with; ``work``: arcs that may be priced, or eight times as many looked at, before the
    next turn. Returns the turn to begin with next; T when all had theirs; work done; chains and
    cycles made.

    Complexity: O(R) for each arc that might be part of something good.
    """
    replicas = arcs.price.shape[0]
    done = price_arcs(problem, state, walk, place, arcs)
    made = 0
    for at in range(begin, turn.shape[0]):
        s = turn[at]
        if done >= work:
            return at, done, made
        freest = np.inf
        for i in range(replicas):
            freest = min(freest, arcs.free[i])
        least = -LEAST_GAIN * max(1.0, abs(walk.total[0]))
        change, scanned = best_chain(arcs, s, freest, least)
        done += 1 + scanned // SCANNED_PER_PRICED
        if change >= least:
            continue
        take_chain(arcs, joint)
        for i in range(joint.number[0]):
            arcs.stale[place[state.node[joint.replica[i]]]] = True
            arcs.stale[place[joint.target[i]]] = True
        if make_moves(problem, state, walk, joint) < 0.0:
            made += 1
            done += price_arcs(problem, state, walk, place, arcs)
        else:
            for m in range(arcs.stale.shape[0]):
                arcs.stale[m] = False
    return turn.shape[0], done, made
