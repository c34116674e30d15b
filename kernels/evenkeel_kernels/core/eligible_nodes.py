"""Which nodes can ever take a replica: its *reach*, a bit for each node.

What stands at home somewhere in a transient dimension takes room there whether it leaves or not, so
many a node has hardly any for guests; a search that draws nothing else than what can be spends its
time on that. Replicas that can go anywhere share row 0.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index


@inlined
def reaches(reach: NDArray[np.uint64], reach_row: NDArray[np.int32], k: int, n: int) -> bool:
    """Whether node ``n`` is within the reach of replica ``k``.

    ``reach (R, W)``: a bit for each node, 64 to a word; ``reach_row (K,)``: row of each replica;
    ``k``, ``n``: the replica and the node. Returns false if no placement that keeps the rules has
    ``k`` there.
    """
    word = reach[reach_row[k], n >> 6]
    return bool((word >> np.uint64(n & 63)) & np.uint64(1))


@no_alloc
def fill_reach(
    problem: Problem,
    state: State,
    item: NDArray[np.int32],
    stand: NDArray[np.uint64],
    roomiest: NDArray[np.uint64],
    fits: NDArray[np.int32],
    reach: NDArray[np.uint64],
    reach_row: NDArray[np.int32],
) -> int:
    """Give a row of ``reach`` to each replica of ``item`` that cannot go anywhere, while they last.

    A replica can stay where it is, can go home, and can go where its partition may stand and a
    guest has room. Complexity: O(I W B).

    ``item (I,)``: replicas that may move; ``stand (M, W)``: for each mask, the nodes that accept
    and that it allows; ``roomiest (B, N + 1, W)``: for each narrow dimension, the so many nodes
    with the most room for guests; ``fits (B, I)``: on how many of them each replica of ``item``
    fits; ``reach (R, W)``: filled; row 0, of all nodes, is given; ``reach_row (K,)``: filled for
    ``item``; 0 once no row is left. Returns rows in use.
    """
    partitions = problem.partitions
    used = 1
    for i in range(item.shape[0]):
        k = item[i]
        reach_row[k] = 0
        if used == reach.shape[0]:
            continue
        p = index(partitions.owner[k])
        mask = index(partitions.mask[p])
        for w in range(reach.shape[1]):
            bits = stand[mask, w]
            for j in range(fits.shape[0]):
                bits &= roomiest[j, fits[j, i], w]
            reach[used, w] = bits
        for j in range(partitions.forbidden_first[p], partitions.forbidden_first[p + 1]):
            n = index(partitions.forbidden[j])
            reach[used, n >> 6] &= ~(np.uint64(1) << np.uint64(n & 63))
        for turn in range(2):
            n = index(partitions.home[k] if turn == 0 else state.node[k])
            if n >= 0:
                reach[used, n >> 6] |= np.uint64(1) << np.uint64(n & 63)
        anywhere = True
        for w in range(reach.shape[1]):
            anywhere = anywhere and reach[used, w] == reach[0, w]
        if not anywhere:
            reach_row[k] = used
            used += 1
    return used
