"""From the rows that a fit has filled to assignments, and to the slots of a placement."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc


@no_alloc
def pack_rows(
    row_first: NDArray[np.int64],
    row_size: NDArray[np.int32],
    row_node: NDArray[np.int32],
    row_state: NDArray[np.uint8],
    name: NDArray[np.int32],
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
) -> None:
    """Sort each row by state, then by node, and put the rows one after another.

    Row ``p`` is ``row_size (P,)`` entries of ``row_node (K,)`` and ``row_state (K,)`` from
    ``row_first (P + 1,)`` on; ``name (n,)`` is the node that each stands for. Fills ``first (P +
    1,)``, ``node`` and ``state``. O(K R), with rows of R replicas.
    """
    first[0] = 0
    for p in range(row_size.shape[0]):
        begin = first[p]
        for k in range(row_size[p]):
            what, where = row_state[row_first[p] + k], name[row_node[row_first[p] + k]]
            i = begin + k
            while i > begin and (
                state[i - 1] > what or (state[i - 1] == what and node[i - 1] > where)
            ):
                state[i], node[i] = state[i - 1], node[i - 1]
                i -= 1
            state[i], node[i] = what, where
        first[p + 1] = begin + row_size[p]


@no_alloc
def into_slots(
    slot_first: NDArray[np.int64],
    before: NDArray[np.int32],
    led: NDArray[np.int16],
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    after: NDArray[np.int32],
    leader: NDArray[np.int16],
) -> int:
    """Put an assignment into the slots of a placement; returns how many replicas had none.

    A node stays in the slot that it had ``before (K,)``; the others fill the free slots, the higher
    states first. The slot ``led (P,)`` goes on leading if its node is in the top state, else the
    first slot does whose node is. ``slot_first (P + 1,)`` says where slots begin, ``first (P +
    1,)``, ``node (R,)`` and ``state (R,)`` are the assignment; fills ``after (K,)`` and ``leader
    (P,)``. O(K R), with rows of R replicas.
    """
    spilled = 0
    for p in range(led.shape[0]):
        begin, end = slot_first[p], slot_first[p + 1]
        for k in range(begin, end):
            after[k] = -1
            if before[k] >= 0 and not _within(before, begin, k, before[k]):
                if _within(node, first[p], first[p + 1], before[k]):
                    after[k] = before[k]
        free = begin
        for i in range(first[p], first[p + 1]):
            if _within(after, begin, end, node[i]):
                continue
            while free < end and after[free] >= 0:
                free += 1
            if free == end:
                spilled += 1
            else:
                after[free] = node[i]
        leader[p] = -1
        for k in range(begin, end):
            if after[k] >= 0 and _is_top(first[p], first[p + 1], node, state, after[k]):
                if leader[p] < 0 or k - begin == led[p]:
                    leader[p] = k - begin
    return spilled


@no_alloc
def _within(node: NDArray[np.int32], begin: int, end: int, sought: int) -> bool:
    """Whether ``node[begin:end]`` holds a node."""
    for i in range(begin, end):
        if node[i] == sought:
            return True
    return False


@no_alloc
def _is_top(
    begin: int, end: int, node: NDArray[np.int32], state: NDArray[np.uint8], sought: int
) -> bool:
    """Whether a node is in the top state in ``node[begin:end]``."""
    for i in range(begin, end):
        if node[i] == sought:
            return state[i] == 0
    return False
