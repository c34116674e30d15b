"""Changes of one range, applied to where it is and to what stores have.

A store that gains a replica gains its load, and so does one that gains the lease; the class of the
store is tallied again. Where a decision is made on what somebody knows of stores, the ``stores``
given here are the ones as they are, or the copy that the decision maker keeps up to date itself.
"""

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.cockroach.tables import (
    AMOUNTS,
    BYTES,
    NOWHERE,
    Floats,
    Ranges,
    Stores,
)
from evenkeel_kernels.core.problem import index


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
    """Put a replica on a store, or make a voter of the non-voter there; whether there was room.

    Of the empty slots one that is kept for its role is taken first.
    """
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
    """Let the replica on ``removed`` move to ``target``, in its slot and role. O(W).

    Where ``target`` has another replica of the range, the two change roles, and no data moves.
    """
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
    """Let the replica on a store hold the lease; nobody, for -1. O(W)."""
    holder = leaseholder(ranges, p)
    if holder >= 0:
        book(stores, ranges.lease_load, p, holder, -1.0)
    ranges.lease[p] = -1
    if s >= 0:
        ranges.lease[p] = slot_of(ranges, p, s) - ranges.first[p]
        book(stores, ranges.lease_load, p, s, 1.0)
