"""Two replicas of a partition move at once to mend it, where no single move would be lawful.

A voter can come to a region only once a non-voter has left it; a replica of an emptied zone can go
only where a lost one stood that is placed elsewhere first.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.pair_moves import (
    best_for,
    keeps_counts,
    stands_alone,
    take_counts,
)
from evenkeel_kernels.levelling.penalty import Targets
from evenkeel_kernels.levelling.repair import breaches

WAITS = 1_000
"""How many broken rules a replica without a node is worth."""


@inline_only
def is_waiting(problem: Problem, state: State, forced: NDArray[np.bool_], k: int) -> bool:
    """Whether ``k``, one of ``forced (K,)``, must get another node and has none yet."""
    n = state.node[k]
    return forced[k] and (n < 0 or n == problem.partitions.home[k])


@inline_only
def illness(problem: Problem, state: State, forced: NDArray[np.bool_], p: int) -> int:
    """How much is wrong with ``p``: those of ``forced (K,)`` that wait, then rules broken."""
    total = index(breaches(problem, state, p, index(-1), index(-1)))
    for k in range(problem.partitions.first[p], problem.partitions.first[p + 1]):
        total += WAITS * int(is_waiting(problem, state, forced, k))
    return total


@device_function
def mend_pair(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    k: int,
    j: int,
    kind: NDArray[np.int64],
    kinds: int,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> bool:
    """Move ``k`` and ``j`` at once, if that leaves less wrong with their partition.

    ``forced (K,)`` is as in `mend_pairs`; ``kind (N,)`` says of which of so many ``kinds`` each
    node is; ``before`` and ``after (limits + terms, COUNTS)`` are scratch. O(kinds^2 N (D +
    admits)).
    """
    p = index(problem.partitions.owner[k])
    here, there = index(state.node[k]), index(state.node[j])
    take_counts(problem, state, p, before)
    least = illness(problem, state, forced, p)
    best_k, best_j = index(-1), index(-1)
    move(problem, state, k, index(-1))
    move(problem, state, j, index(-1))
    for of in range(kinds):
        n = best_for(problem, state, targets, k, here, kind, index(of))
        if n < 0 or n == here:
            continue
        move(problem, state, k, n)
        for other in range(kinds):
            m = best_for(problem, state, targets, j, there, kind, index(other))
            if m < 0 or m == there:
                continue
            move(problem, state, j, m)
            ill = illness(problem, state, forced, p)
            if ill < least and keeps_counts(problem, state, p, before, after):
                best_k, best_j, least = n, m, ill
            move(problem, state, j, index(-1))
        move(problem, state, k, index(-1))
    move(problem, state, k, here if best_k < 0 else best_k)
    move(problem, state, j, there if best_k < 0 else best_j)
    return best_k >= 0


@no_alloc
def mend_pairs(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    dropped: NDArray[np.bool_],
    partitions: NDArray[np.int64],
    kind: NDArray[np.int64],
    kinds: int,
    looks: NDArray[np.int64],
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> int:
    """Mend each of ``partitions`` by two moves at once, for as long as that helps.

    ``forced (K,)`` replicas must get another node, ``dropped (K,)`` ones get none. ``looks (1,)``
    is how many nodes may still be looked at, and is kept up to date; ``kind``, ``before`` and
    ``after`` are as in `mend_pair`.
    Returns how many pairs moved.
    """
    first = problem.partitions.first
    pairs = 0
    for i in range(partitions.shape[0]):
        p = index(partitions[i])
        if not stands_alone(problem, p):
            continue
        going = True
        while going:
            going = False
            for k in range(first[p], first[p + 1]):
                for j in range(first[p], first[p + 1]):
                    if going or j == k or looks[0] <= 0:
                        continue
                    if not _may_go(problem, state, forced, dropped, k):
                        continue
                    if not _may_go(problem, state, forced, dropped, j):
                        continue
                    if illness(problem, state, forced, p) == 0:
                        continue
                    looks[0] -= kinds * kinds * kind.shape[0]
                    if mend_pair(problem, state, targets, forced, k, j, kind, kinds, before, after):
                        pairs += 1
                        going = True
    return pairs


@inline_only
def _may_go(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    dropped: NDArray[np.bool_],
    k: int,
) -> bool:
    """Whether replica ``k`` may move: it has a node, or waits for one."""
    if dropped[k] or not problem.partitions.movable[k]:
        return False
    return state.node[k] >= 0 or forced[k]
