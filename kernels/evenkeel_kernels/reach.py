"""Which nodes can ever take a replica: its *reach*, a bit for each node.

What stands at home somewhere in a transient dimension takes room there whether it leaves or not, so
many a node has hardly any for guests; a search that draws nothing else than what can be spends its
time on that. Replicas that can go anywhere share row 0.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.admission import may_stand
from evenkeel_kernels.jit import inlined, lean
from evenkeel_kernels.problem import Problem, State, index


@inlined
def reaches(reach: NDArray[np.uint64], reach_row: NDArray[np.int32], k: int, n: int) -> bool:
    """Whether node ``n`` is within the reach of replica ``k``.

    Parameters
    ----------
    reach : (R, W) uint64
        A bit for each node, 64 to a word.
    reach_row : (K,) int32
        Row of each replica.
    k, n : int
        The replica and the node.

    Returns
    -------
    bool
        False if no placement that keeps the rules has ``k`` there.
    """
    word = reach[reach_row[k], n >> 6]
    return bool((word >> np.uint64(n & 63)) & np.uint64(1))


@lean
def fill_reach(
    problem: Problem,
    state: State,
    need: NDArray[np.float64],
    space: NDArray[np.float64],
    narrow: NDArray[np.int64],
    item: NDArray[np.int32],
    reach: NDArray[np.uint64],
    reach_row: NDArray[np.int32],
) -> int:
    """Give a row of ``reach`` to each replica of ``item`` that cannot go anywhere, while they last.

    A replica can stay where it is, can go home, and can go where its partition may stand and a
    guest has room. Complexity: O(I N B) at worst.

    Parameters
    ----------
    problem : Problem
        What does not change.
    state : State
        Where the replicas are.
    need : (K, C) float64
        Load of each replica in the first D channels.
    space : (N, D) float64
        Most that a guest can need on each node.
    narrow : (B,) int64
        Dimensions in which some replica needs more than some node has for guests.
    item : (I,) int32
        Replicas that may move.
    reach : (R, W) uint64
        All 0 at first; row 0 is for who can go anywhere.
    reach_row : (K,) int32
        Filled for ``item``; 0 once no row is left.

    Returns
    -------
    int
        Rows in use.
    """
    partitions = problem.partitions
    nodes, words = space.shape[0], reach.shape[1]
    for n in range(nodes):
        reach[0, n >> 6] |= np.uint64(1) << np.uint64(n & 63)
    used = 1
    for i in range(item.shape[0]):
        k = item[i]
        if used == reach.shape[0]:
            reach_row[k] = 0
            continue
        p = index(partitions.owner[k])
        anywhere = True
        for w in range(words):
            bits = np.uint64(0)
            for n in range(64 * w, min(64 * w + 64, nodes)):
                fits = n == partitions.home[k] or n == state.node[k]
                if not fits:
                    fits = True
                    for j in range(narrow.shape[0]):
                        if need[k, narrow[j]] > space[n, narrow[j]]:
                            fits = False
                            break
                    fits = fits and may_stand(problem, p, n)
                if fits:
                    bits |= np.uint64(1) << np.uint64(n & 63)
                else:
                    anywhere = False
            reach[used, w] = bits
        reach_row[k] = 0 if anywhere else used
        used += int(not anywhere)
    return used
