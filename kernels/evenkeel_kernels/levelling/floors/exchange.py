"""Exchange: where no single replica fills a node up to its floor, two of them trade places.

In several dimensions a node may be at its target in one and below its floor in another: it can take
nothing then, but give one replica for another that has more of what it lacks. The node that is
furthest below its floor is served first, by the nodes that can spare most. What another node lacks
after that counts like what this one does, as its square, so that a large lack may be parted among
several nodes, which then trade on. No exchange takes a node above its target.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import more_moved, move
from evenkeel_kernels.levelling.floors.fill import ROUNDING, fullest, lacks_most

LEAST_GAIN = 0.01
"""Part of its lack, squared, of which an exchange must rid a node: else they would hardly end."""

MOVING = 0.7
"""How much less an exchange counts for each replica that moves by it and has not moved before."""

ENOUGH = 0.45
"""Part of its lack, squared, of which to rid a node is good enough to ask no further nodes: a
little less than all of it, with two replicas that have not moved before."""

PAIRS = 2_000_000
"""Pairs of replicas looked at for one exchange before a node is given up."""


@inline_only
def lacking(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    n: int,
    size: NDArray[np.float64],
    gone: int,
    sign: float,
) -> float:
    """Sum the squares of the parts of ``lowest (D, N)`` that ``n`` lacks after an exchange.

    The last row of ``size (., D)`` is what comes and the row ``gone`` what leaves (``sign`` 1.0),
    or the other way round (-1.0); 0.0 for neither. ``FAR`` beyond its target. O(D).
    """
    total = 0.0
    come = size.shape[0] - 1
    for d in range(lowest.shape[0]):
        more = sign * (size[come, d] - size[gone, d])
        after = state.load[d, n] + more
        if more > 0.0 and after > problem.nodes.watermark[d, n]:
            return FAR
        if lowest[d, n] > 0.0:
            part = 1.0 - after / lowest[d, n]
            if part > ROUNDING:
                total += part * part
    return total


@device_function
def admits_second(problem: Problem, state: State, k: int, i: int) -> bool:
    """Whether ``i`` may go where ``k`` is once ``k`` has gone where ``i`` is."""
    here = index(state.node[k])
    move(problem, state, k, index(state.node[i]))
    admitted = admits(problem, state, i, here)
    move(problem, state, k, here)
    return admitted


@inline_only
def leaders_fit(
    problem: Problem, state: State, most_leaders: NDArray[np.float64], k: int, i: int
) -> bool:
    """Whether ``k`` and ``i`` may trade places for all that nodes lead, ``most_leaders (N,)``."""
    partitions = problem.partitions
    k_leads = leads_now(partitions.first, state.leader, index(partitions.owner[k]), k)
    if k_leads == leads_now(partitions.first, state.leader, index(partitions.owner[i]), i):
        return True
    taker = state.node[i] if k_leads else state.node[k]
    return state.leaders[taker] + 1.0 <= most_leaders[taker]


@no_alloc
def exchange(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    stuck: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    size: NDArray[np.float64],
    tally: NDArray[np.int64],
    turns: int,
) -> bool:
    """Let nodes below their floors trade replicas with others; return whether that is all.

    ``lowest (D, N)``: load that each node is to hold at least; 0 where nothing is asked; ``first``,
    ``member (N + 1,)``: the replicas of each node, as `evenkeel_kernels.core.by_node` lists them,
    kept up to date; ``stuck (N,)``: false at first; comes back True for nodes that no exchange
    brings nearer; ``most_leaders (N,)``: partitions that each node may lead; ``donor``, ``surplus
    (M,)`` and ``size (., D)``: room to work in, for the nodes asked at once, and for one replica
    more than any node holds; ``tally (2,)``: counts the exchanges, and how many pairs of replicas
    may still be looked at; ``turns``: most exchanges tried until the caller is asked;
    called again, it goes on. Returns false if turns are over and there may be more to do.

    Complexity: O(N D + M (K / N)^2 D) for each exchange, and N / M times that for each node that is
    stuck, but no more than PAIRS D.
    """
    for _ in range(turns):
        n = lacks_most(problem, state, lowest, stuck)
        if n < 0 or tally[1] <= 0:
            return True
        mine, other, looked = best_trade(
            problem, state, lowest, first, member, most_leaders, donor, surplus, size, n
        )
        tally[1] -= looked
        if mine < 0:
            stuck[n] = True
            continue
        i, k = index(member[mine]), index(member[other])
        here = index(state.node[k])
        move(problem, state, k, n)
        move(problem, state, i, here)
        member[mine], member[other] = k, i
        tally[0] += 1
    return False


@inline_only
def best_trade(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    most_leaders: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    size: NDArray[np.float64],
    n: int,
) -> tuple[int, int, int]:
    """Return where in ``member`` two replicas are that had better trade places, the first on ``n``.

    -1 for none; and how many pairs were looked at. ``lowest (D, N)``, ``first (N + 1,)``, ``member
    (.,)``, ``most_leaders (N,)``, ``donor (M,)``, ``surplus (M,)`` and ``size (., D)`` are those of
    `exchange`.
    """
    partitions = problem.partitions
    begin, end, last = index(first[n]), index(first[n + 1]), index(size.shape[0] - 1)
    for row in range(end - begin):
        for d in range(lowest.shape[0]):
            size[row, d] = load_of(partitions, state, index(member[begin + row]), d)
    lacks = lacking(problem, state, lowest, n, size, last, 0.0)
    closed, closed_at = np.inf, index(-1)
    mine, other, most, looked = index(-1), index(-1), 0.0, index(0)
    while mine < 0 and looked < PAIRS:
        found = fullest(problem, state, lowest, donor, surplus, n, closed, closed_at)
        if found == 0:
            break
        for turn in range(found):
            if most > ENOUGH * lacks:
                break
            here = index(donor[turn])
            lacks_there = lacking(problem, state, lowest, here, size, last, 0.0)
            for at in range(first[here], first[here + 1]):
                k = index(member[at])
                if not admits(problem, state, k, n):
                    continue
                looked += end - begin
                for d in range(lowest.shape[0]):
                    size[last, d] = load_of(partitions, state, k, d)
                for row in range(end - begin):
                    gain = lacks - lacking(problem, state, lowest, n, size, row, 1.0)
                    if gain <= LEAST_GAIN * lacks or gain <= most:
                        continue
                    gain += lacks_there - lacking(problem, state, lowest, here, size, row, -1.0)
                    if gain <= LEAST_GAIN * lacks:
                        continue
                    i = index(member[begin + row])
                    more = more_moved(problem, state, k, n) + more_moved(problem, state, i, here)
                    for _ in range(more):
                        gain *= MOVING
                    if (
                        gain > most
                        and partitions.owner[k] != partitions.owner[i]
                        and leaders_fit(problem, state, most_leaders, k, i)
                        and admits_second(problem, state, k, i)
                    ):
                        mine, other, most = begin + row, index(at), gain
        closed, closed_at = surplus[found - 1], donor[found - 1]
    return mine, other, looked
