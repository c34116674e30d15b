"""Taking over: a replica that fits nowhere takes the place of any one that has room elsewhere.

Displacing goes from larger replicas to smaller ones, so that it ends; where all weigh the same
nobody is smaller. Here one makes way whatever it weighs, and only to a node that has room for it.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.core.feasibility import admits, may_stand
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.make_room import frees, missing_room

ALIKE = 0.5
"""Where nobody makes way for one replica, nobody is sought for another so many times as large."""


@device_function
def makes_way(
    problem: Problem, state: State, i: int, n: int, too_many: int, lack: NDArray[np.float64]
) -> bool:
    """Whether the going of ``i`` alone makes the room on ``n`` that ``lack (D,)`` says."""
    if state.node[i] != n or not problem.partitions.movable[i] or too_many > 1:
        return False
    for d in range(lack.shape[0]):
        if lack[d] > 0.0 and frees(problem, state, i, n, d) < lack[d]:
            return False
    return True


@device_function
def takes_over(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    k: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    roomy: NDArray[np.int32],
    lack: NDArray[np.float64],
    in_vain: NDArray[np.float64],
) -> bool:
    """Put ``k`` where the smallest replica was that can go to a roomy node; whether there is one.

    ``size (P,)``, ``first (N + 1,)``, ``member``, ``roomy``, ``lack (D,)`` and ``in_vain (N,)`` are
    those of `take_over_each`. The first node on which ``k`` may be is taken.
    """
    partitions = problem.partitions
    p = index(partitions.owner[k])
    for n in range(state.replicas.shape[0]):
        if n == state.node[k] or size[p] >= ALIKE * in_vain[n] or not may_stand(problem, p, n):
            continue
        too_many = missing_room(problem, state, k, n, lack)
        asked = admitted = False
        best, best_to = index(-1), index(-1)
        for at in range(first[n], first[n + 1]):
            i = member[at]
            o = index(partitions.owner[i])
            if o == p or not makes_way(problem, state, i, n, too_many, lack):
                continue
            if not asked:  # whether rules admit ``k`` does not depend on who makes way
                asked = True
                move(problem, state, i, index(-1))
                admitted = admits(problem, state, k, n)
                move(problem, state, i, n)
                if not admitted:
                    break
            if best >= 0 and size[o] >= size[partitions.owner[best]]:
                continue
            for j in range(roomy.shape[0]):
                m = index(roomy[j])
                if m != n and admits(problem, state, i, m):
                    best, best_to = index(i), m
                    break
        if best < 0:
            if admitted:
                in_vain[n] = size[p]
            continue
        move(problem, state, best, best_to)
        if admits(problem, state, k, n):
            move(problem, state, k, n)
            return True
        move(problem, state, best, n)
    return False


@no_alloc
def take_over_each(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    order: NDArray[np.int64],
    begin: int,
    end: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    roomy: NDArray[np.int32],
    lack: NDArray[np.float64],
    in_vain: NDArray[np.float64],
    most: int,
    failures: int,
) -> int:
    """Place ``order[begin:end]`` where others make way; returns how many failed in a row at last.

    No more than ``most`` find a place, and it ends after ``failures`` in a row. ``size (P,)`` says
    how large replicas are, ``first (N + 1,)`` and ``member`` list those of each node, as they were
    at some time, ``roomy`` the nodes to go to, in the order of preference; ``lack (D,)`` is
    scratch. ``in_vain (N,)``, inf at first, says for which size nobody was found to make way on a
    node: nobody is sought there for what is about as large.

    Complexity: O(K roomy) checks for each one that finds no place.
    """
    failed = 0
    for at in range(begin, end):
        if failed == failures or most <= 0:
            break
        if takes_over(problem, state, size, index(order[at]), first, member, roomy, lack, in_vain):
            failed = 0
            most -= 1
        else:
            failed += 1
    return failed
