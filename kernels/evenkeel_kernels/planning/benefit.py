"""Order of benefit: what levels the most per byte goes first, judged anew as nodes change.

A change is worth by how much less its nodes are above the mean, and above their capacity, once it
is done. What is worth clearly less by the time it comes to the top of the heap goes back into it:
lazy evaluation (Minoux 1978).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import index

EXCESS = 1000.0
"""What being above capacity counts, beside being above the mean."""

SLACK = 0.05
"""Share of its worth that a change may have lost without going back into the heap."""


@by_reference
class Benefits(NamedTuple):
    """What is to be ordered. C changes, N nodes, D dimensions."""

    urgency: NDArray[np.int64]  # (C,) the lower goes first, whatever it is worth
    size: NDArray[np.float64]  # (C,) bytes, above 0
    previous: NDArray[np.int32]  # (C,) change that goes before, -1 none
    following: NDArray[np.int32]  # (C,) the change whose previous this is, -1 none
    shift_first: NDArray[np.int64]  # (C + 1,)
    shift_node: NDArray[np.int32]  # (.,) node that becomes fuller or emptier, once per change
    shift: NDArray[np.float64]  # (., D) by how much of its capacity
    mean: NDArray[np.float64]  # (D,) utilisation above which a node is to be relieved


@by_reference
class Heap(NamedTuple):
    """Changes that may go next, the most urgent and then the most worth on top."""

    used: NDArray[np.float64]  # (N, D) utilisation of nodes after what went
    key: NDArray[np.float64]  # (C,) worth per byte when it was last looked at, negative
    heap: NDArray[np.int32]  # (C,)
    order: NDArray[np.int32]  # (C,) what went, in order


@device_function
def lost(benefits: Benefits, heap: Heap, c: int) -> float:
    """Return by how much a change makes nodes fuller beyond what they should be, per byte."""
    worse = 0.0
    for i in range(benefits.shift_first[c], benefits.shift_first[c + 1]):
        n = index(benefits.shift_node[i])
        for d in range(benefits.mean.shape[0]):
            before = heap.used[n, d]
            after = before + benefits.shift[i, d]
            mean = benefits.mean[d]
            worse += max(after - mean, 0.0) - max(before - mean, 0.0)
            worse += EXCESS * (max(after - 1.0, 0.0) - max(before - 1.0, 0.0))
    return worse / benefits.size[c]


@inline_only
def goes_first(benefits: Benefits, heap: Heap, a: int, b: int) -> bool:
    """Whether ``a`` lies above ``b``."""
    if benefits.urgency[a] != benefits.urgency[b]:
        return bool(benefits.urgency[a] < benefits.urgency[b])
    if heap.key[a] != heap.key[b]:
        return bool(heap.key[a] < heap.key[b])
    return bool(a < b)


@inline_only
def sift_down(benefits: Benefits, heap: Heap, count: int) -> None:
    """Let the top change sink to its place."""
    at = index(0)
    c = index(heap.heap[0])
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and goes_first(
            benefits, heap, index(heap.heap[below + 1]), index(heap.heap[below])
        ):
            below += 1
        if not goes_first(benefits, heap, index(heap.heap[below]), c):
            break
        heap.heap[at] = heap.heap[below]
        at = below
    heap.heap[at] = c


@inline_only
def sift_up(benefits: Benefits, heap: Heap, at: int) -> None:
    """Let a change rise to its place."""
    c = index(heap.heap[at])
    while at > 0:
        above = (at - 1) // 2
        if not goes_first(benefits, heap, c, index(heap.heap[above])):
            break
        heap.heap[at] = heap.heap[above]
        at = above
    heap.heap[at] = c


@no_alloc
def order_by_benefit(benefits: Benefits, heap: Heap) -> int:
    """Put all changes in order; return how many there are. O((C + looks) log C)."""
    count = index(0)
    for i in range(benefits.size.shape[0]):
        c = index(i)
        if benefits.previous[c] < 0:
            heap.key[c] = lost(benefits, heap, c)
            heap.heap[count] = c
            count += 1
            sift_up(benefits, heap, count - 1)
    done = index(0)
    while count > 0:
        c = index(heap.heap[0])
        fresh = lost(benefits, heap, c)
        if fresh - heap.key[c] > SLACK * abs(heap.key[c]):
            heap.key[c] = fresh
            sift_down(benefits, heap, count)
            if index(heap.heap[0]) != c:
                continue
        for i in range(benefits.shift_first[c], benefits.shift_first[c + 1]):
            n = index(benefits.shift_node[i])
            for d in range(benefits.mean.shape[0]):
                heap.used[n, d] += benefits.shift[i, d]
        heap.order[done] = c
        done += 1
        then = index(benefits.following[c])
        if then >= 0:
            heap.key[then] = lost(benefits, heap, then)
            heap.heap[0] = then
        else:
            count -= 1
            heap.heap[0] = heap.heap[count]
        if count > 0:
            sift_down(benefits, heap, count)
    return int(done)
