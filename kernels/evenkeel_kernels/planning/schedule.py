"""Schedule changes under limited resources by list scheduling, in an order of benefit.

A *change* is what a partition goes through at once; a *resource* is whatever is finite: room of a
node in a dimension, a copy in flight, bytes per second. A change takes from resources at its start
and gives back at its finish. Kolisch (1996) calls this the parallel schedule generation scheme for
projects under resource constraints.

A change waits in the heap of the resource that it lacked, the smallest claim on top, and is tried
again only when there is room for it. Released amounts are kept as *tokens*, oldest first; a claim
takes what was free at first, then tokens, and comes after those that gave them. So any execution
that keeps these arrows keeps within every resource, whatever its clock does.

The order of benefit puts first the change that levels most per byte, evaluated again as nodes
change. The benefit of a change is how much less its nodes are above the mean, and above their
capacity, once it is done. A change whose benefit is clearly less by the time it comes to the top of
the heap goes back into it: lazy evaluation (Minoux 1978).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import index

EXCESS = 1000.0  # what being above capacity counts, beside being above the mean

SLACK = 0.05  # share of its worth that a change may have lost without going back into the heap


@by_reference
class Changes(NamedTuple):
    """What is to be scheduled. C changes, Q resources; claims and returns of a change are rows."""

    duration: NDArray[np.float64]  # (C,) seconds
    rank: NDArray[np.int32]  # (C,) the lower goes first; all different
    previous: NDArray[np.int32]  # (C,) change that must have finished, -1 none
    following: NDArray[np.int32]  # (C,) the change whose previous this is, -1 none
    claim_first: NDArray[np.int64]  # (C + 1,)
    claim_on: NDArray[np.int32]  # (.,) resource, each at most once per change
    claim: NDArray[np.float64]  # (.,) taken at the start
    return_first: NDArray[np.int64]  # (C + 1,)
    return_on: NDArray[np.int32]  # (.,) resource
    returned: NDArray[np.float64]  # (.,) given back at the finish


@by_reference
class Schedule(NamedTuple):
    """What the scheduler changes; it comes in as `fresh` says."""

    start: NDArray[np.float64]  # (C,) seconds; NaN: not started
    finish: NDArray[np.float64]  # (C,)
    wave: NDArray[np.int32]  # (C,) longest chain of arrows that leads to it
    sequence: NDArray[np.int32]  # (C,) changes in the order in which they started
    lacks: NDArray[np.int32]  # (C,) resource that it waited for last, -1 none
    free: NDArray[np.float64]  # (Q,) room that is left
    pool: NDArray[np.float64]  # (Q,) of that, what was free at the beginning; below 0: a debt
    root: NDArray[np.int32]  # (Q + 1,) top of the heap of waiting changes; last: of running ones
    left: NDArray[np.int32]  # (C,) children in whichever heap a change is in
    right: NDArray[np.int32]  # (C,)
    key: NDArray[np.float64]  # (C,) what heaps are ordered by: a claim, or a finish
    token_head: NDArray[np.int32]  # (Q,) oldest token, a row of returns
    token_tail: NDArray[np.int32]  # (Q,)
    token_next: NDArray[np.int32]  # (returns,)
    token: NDArray[np.float64]  # (returns,) what is left of it
    token_of: NDArray[np.int32]  # (returns,) who gave it
    payer: NDArray[np.int32]  # (Q,) who paid a debt: rows of returns, linked by token_owed
    token_owed: NDArray[np.int32]  # (returns,)
    arrow: NDArray[np.int32]  # (2, arrows) from, to
    touched: NDArray[np.int32]  # (Q,) scratch
    is_touched: NDArray[np.bool_]  # (Q,) scratch
    ready: NDArray[np.int32]  # (C,) scratch
    counts: NDArray[np.int64]  # (2,) changes started, arrows


@inline_only
def goes_before(changes: Changes, schedule: Schedule, a: int, b: int) -> bool:
    """Whether ``a`` lies above ``b`` in a heap."""
    if schedule.key[a] != schedule.key[b]:
        return bool(schedule.key[a] < schedule.key[b])
    return bool(changes.rank[a] < changes.rank[b])


@device_function
def merged(changes: Changes, schedule: Schedule, a: int, b: int) -> int:
    """Return the top of two skew heaps made one (Sleator and Tarjan 1986)."""
    if a < 0:
        return b
    if b < 0:
        return a
    if goes_before(changes, schedule, b, a):
        a, b = b, a
    top = a
    while True:
        below = index(schedule.right[a])
        schedule.right[a] = schedule.left[a]
        if below < 0:
            schedule.left[a] = b
            return top
        if goes_before(changes, schedule, b, below):
            below, b = b, below
        schedule.left[a] = below
        a = below


@inline_only
def push(changes: Changes, schedule: Schedule, heap: int, c: int, key: float) -> None:
    """Put change ``c`` into a heap."""
    schedule.key[c] = key
    schedule.left[c] = -1
    schedule.right[c] = -1
    schedule.root[heap] = merged(changes, schedule, index(schedule.root[heap]), index(c))


@inline_only
def pop(changes: Changes, schedule: Schedule, heap: int) -> int:
    """Take the top change from a heap that is not empty."""
    c = index(schedule.root[heap])
    schedule.root[heap] = merged(
        changes, schedule, index(schedule.left[c]), index(schedule.right[c])
    )
    return int(c)


@inline_only
def draw_arrow(schedule: Schedule, token: int, c: int) -> None:
    """Let ``c`` come after each that gave a token."""
    giver = schedule.token_of[token]
    at = schedule.counts[1]
    if at > 0 and schedule.arrow[0, at - 1] == giver and schedule.arrow[1, at - 1] == c:
        return
    schedule.arrow[0, at] = giver
    schedule.arrow[1, at] = c
    schedule.counts[1] = at + 1
    schedule.wave[c] = max(schedule.wave[c], schedule.wave[giver] + 1)


@inline_only
def consume(schedule: Schedule, c: int, resource: int, amount: float) -> None:
    """Take what ``c`` claims from what was free, then from the oldest tokens."""
    schedule.free[resource] -= amount
    owed = index(schedule.payer[resource])
    while owed >= 0:
        draw_arrow(schedule, owed, c)
        owed = index(schedule.token_owed[owed])
    if schedule.pool[resource] > 0.0:
        took = min(amount, schedule.pool[resource])
        schedule.pool[resource] -= took
        amount -= took
    token = index(schedule.token_head[resource])
    while amount > 0.0 and token >= 0:
        draw_arrow(schedule, token, c)
        if schedule.token[token] > amount:
            schedule.token[token] -= amount
            break
        amount -= schedule.token[token]
        token = index(schedule.token_next[token])
        schedule.token_head[resource] = token


@inline_only
def give(schedule: Schedule, row: int, resource: int, amount: float) -> None:
    """Give back what a finished change returns: pay what is owed first, the rest is a token."""
    schedule.free[resource] += amount
    if schedule.pool[resource] < 0.0:
        schedule.token_owed[row] = schedule.payer[resource]
        schedule.payer[resource] = row
        schedule.pool[resource] += amount
        if schedule.pool[resource] <= 0.0:
            return
        amount = schedule.pool[resource]
        schedule.pool[resource] = 0.0
    schedule.token[row] = amount
    schedule.token_next[row] = -1
    if schedule.token_head[resource] < 0:
        schedule.token_head[resource] = row
    else:
        schedule.token_next[schedule.token_tail[resource]] = row
    schedule.token_tail[resource] = row


@device_function
def start_or_wait(changes: Changes, schedule: Schedule, c: int, now: float) -> int:
    """Start change ``c`` if there is room for all it claims, else let it wait for the first lack.

    Returns the resource that it waits for, -1 if it started.
    """
    first, last = changes.claim_first[c], changes.claim_first[c + 1]
    for i in range(first, last):
        resource = index(changes.claim_on[i])
        if changes.claim[i] > schedule.free[resource]:
            schedule.lacks[c] = resource
            push(changes, schedule, resource, c, changes.claim[i])
            return int(resource)
    if changes.previous[c] >= 0:
        schedule.wave[c] = schedule.wave[changes.previous[c]] + 1
    for i in range(first, last):
        consume(schedule, c, index(changes.claim_on[i]), changes.claim[i])
    schedule.start[c] = now
    schedule.finish[c] = now + changes.duration[c]
    schedule.sequence[schedule.counts[0]] = c
    schedule.counts[0] += 1
    running = schedule.root.shape[0] - 1
    push(changes, schedule, running, c, schedule.finish[c])
    return -1


@inline_only
def finish_all(changes: Changes, schedule: Schedule, now: float) -> tuple[int, int]:
    """Finish what finishes now: how many resources were touched, and how many changes are ready."""
    running = schedule.root.shape[0] - 1
    resources = index(0)
    ready = index(0)
    while schedule.root[running] >= 0 and schedule.key[schedule.root[running]] <= now:
        c = pop(changes, schedule, running)
        for i in range(changes.return_first[c], changes.return_first[c + 1]):
            resource = index(changes.return_on[i])
            give(schedule, i, resource, changes.returned[i])
            if not schedule.is_touched[resource]:
                schedule.is_touched[resource] = True
                schedule.touched[resources] = resource
                resources += 1
        if changes.following[c] >= 0:
            schedule.ready[ready] = changes.following[c]
            ready += 1
    return resources, ready


@no_alloc
def run_schedule(changes: Changes, schedule: Schedule, by_rank: NDArray[np.int32]) -> int:
    """Start every change as early as resources and order admit; return how many were started.

    ``by_rank (C,)`` lists the changes by rank. Those that were not started wait for one another:
    ``schedule.lacks`` says for what. O((C + claims) log C) but for claims that fail repeatedly.
    """
    running = schedule.root.shape[0] - 1
    for i in range(by_rank.shape[0]):
        c = index(by_rank[i])
        if changes.previous[c] < 0:
            start_or_wait(changes, schedule, c, 0.0)
    while schedule.root[running] >= 0:
        now = schedule.key[schedule.root[running]]
        resources, ready = finish_all(changes, schedule, now)
        for i in range(ready):
            start_or_wait(changes, schedule, index(schedule.ready[i]), now)
        for i in range(resources):
            resource = index(schedule.touched[i])
            schedule.is_touched[resource] = False
            while schedule.root[resource] >= 0:
                if schedule.key[schedule.root[resource]] > schedule.free[resource]:
                    break
                c = index(pop(changes, schedule, resource))
                if start_or_wait(changes, schedule, c, now) == resource:
                    break
    return int(schedule.counts[0])


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
