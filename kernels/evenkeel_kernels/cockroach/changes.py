"""Apply changes of one range to its replicas and to the figures of stores, and log them.

A store that gains a replica gains its load, and so does one that gains the lease; the class of the
store is tallied again. Where a decision is made on what one store knows of others, the ``stores``
given here are the ones as they are, or the copy that the decision maker keeps up to date itself.

A replica that leaves a store and comes back within one run moves data for nothing. So each range
remembers the last stores it left, and goes back to none of them by its own choice; one that has
left as many as it can remember moves no more unless it must.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only
from evenkeel_kernels.cockroach.tables import (
    AMOUNTS,
    BYTES,
    NOWHERE,
    Floats,
    Ints,
    Longs,
    Ranges,
    Stores,
)
from evenkeel_kernels.core.problem import index

REMEMBERED = 4  # stores that a range remembers having left


@by_reference
class DecisionLog(NamedTuple):
    """Decisions in the order in which they were made: L of them at most."""

    # (L,) what was done: an action of the replicate queue, or a code of leases or of load
    kind: NDArray[np.int8]
    range: Ints  # (L,) to which range
    # source, target: (L,) store that lost the replica or the lease, and store that got it; -1 for
    # none
    source: Ints
    target: Ints
    score: Floats  # (L,) by how much the target was better: how much depends on the kind
    size: Longs  # (1,) how many there are


@by_reference
class Left(NamedTuple):
    """The stores that the replicas of each range have left in this run."""

    store: Ints  # (P, REMEMBERED) in the order in which they were left; -1 for none


@device_function
def book(stores: Stores, load: Floats, p: int, s: int, sign: float) -> None:
    """Add ``sign`` times column ``p`` of ``load (A, P)`` to what a store has. O(A)."""
    for row in range(AMOUNTS):
        stores.amount[row, s] += sign * load[row, p]
    stores.available[s] -= sign * load[BYTES, p]


@inline_only
def slot_of(ranges: Ranges, p: int, s: int) -> int:
    """Return the place of a range's replica on a store, among all replicas; -1 for none. O(W)."""
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] == s:
            return k
    return NOWHERE


@inline_only
def leaseholder(ranges: Ranges, p: int) -> int:
    """Return the store that holds a range's lease, or -1. O(1)."""
    if ranges.lease[p] < 0:
        return NOWHERE
    return ranges.store[ranges.first[p] + ranges.lease[p]]


@device_function
def join(ranges: Ranges, stores: Stores, p: int, s: int, role: int) -> bool:
    """Put a replica on a store, or make a voter of the non-voter there; whether there was room."""
    # of the empty slots one that is kept for its role is taken first
    here = slot_of(ranges, p, s)
    if here >= 0:
        ranges.role[here] = role
        return True
    free = index(NOWHERE)
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] < 0 and (free < 0 or (ranges.role[k] == role != ranges.role[free])):
            free = k
    if free < 0:
        return False
    ranges.store[free] = s
    ranges.role[free] = role
    ranges.up_to_date[free] = True
    ranges.behind[free] = False
    book(stores, ranges.replica_load, p, s, 1.0)
    return True


@device_function
def withdraw(ranges: Ranges, stores: Stores, p: int, s: int) -> None:
    """Take a range's replica off a store; its lease goes with it. O(W)."""
    k = slot_of(ranges, p, s)
    if ranges.lease[p] == k - ranges.first[p]:
        give_lease(ranges, stores, p, NOWHERE)
    ranges.store[k] = NOWHERE
    book(stores, ranges.replica_load, p, s, -1.0)


@device_function
def swap(ranges: Ranges, stores: Stores, p: int, target: int, removed: int) -> None:
    """Let the replica on ``removed`` move to ``target``, in its slot and role. O(W)."""
    # where ``target`` has another replica of the range, the two change roles, and no data moves
    k, other = slot_of(ranges, p, removed), slot_of(ranges, p, target)
    ranges.store[k] = target
    if other >= 0:
        ranges.store[other] = removed
        if ranges.lease[p] == k - ranges.first[p]:
            book(stores, ranges.lease_load, p, removed, -1.0)
            book(stores, ranges.lease_load, p, target, 1.0)
        return
    if ranges.lease[p] == k - ranges.first[p]:
        book(stores, ranges.lease_load, p, removed, -1.0)
        book(stores, ranges.lease_load, p, target, 1.0)
    ranges.up_to_date[k] = True
    ranges.behind[k] = False
    book(stores, ranges.replica_load, p, removed, -1.0)
    book(stores, ranges.replica_load, p, target, 1.0)


@device_function
def give_lease(ranges: Ranges, stores: Stores, p: int, s: int) -> None:
    """Let the replica on a store hold the lease; none for -1. O(W)."""
    holder = leaseholder(ranges, p)
    if holder >= 0:
        book(stores, ranges.lease_load, p, holder, -1.0)
    ranges.lease[p] = -1
    if s >= 0:
        ranges.lease[p] = slot_of(ranges, p, s) - ranges.first[p]
        book(stores, ranges.lease_load, p, s, 1.0)


def room_to_log(most: int) -> DecisionLog:
    """Make room for so many decisions."""
    return DecisionLog(
        np.zeros(most, np.int8),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most),
        np.zeros(1, np.int64),
    )


def nothing_left(ranges: int) -> Left:
    """Make the memory of so many ranges."""
    return Left(np.full((ranges, REMEMBERED), -1, np.int32))


@inline_only
def note(log: DecisionLog, kind: int, p: int, source: int, target: int, score: float) -> None:
    """Append a decision, for which there must be room. O(1)."""
    at = log.size[0]
    log.kind[at] = kind
    log.range[at] = p
    log.source[at] = source
    log.target[at] = target
    log.score[at] = score
    log.size[0] += 1


@inline_only
def has_room(log: DecisionLog, more: int) -> bool:
    """Whether so many more decisions fit. O(1)."""
    return log.size[0] + more <= log.kind.size


@inline_only
def has_left(left: Left, p: int, s: int) -> bool:
    """Whether a replica of the range has left the store. O(1)."""
    for i in range(REMEMBERED):
        if left.store[p, i] == s:
            return True
    return False


@inline_only
def note_left(left: Left, p: int, s: int) -> None:
    """Remember a store that a replica has left, and forget the first of too many. O(1)."""
    for i in range(REMEMBERED):
        if left.store[p, i] < 0:
            left.store[p, i] = s
            return
    for i in range(REMEMBERED - 1):
        left.store[p, i] = left.store[p, i + 1]
    left.store[p, REMEMBERED - 1] = s


@inline_only
def is_worn(left: Left, p: int) -> bool:
    """Whether the range has left as many stores as it remembers. O(1)."""
    return left.store[p, REMEMBERED - 1] >= 0
