"""Tuples of arrays that hold the stores, ranges and settings of CockroachDB's allocator.

A decision sees *stores* as one of them knows them, perhaps from long ago, and the replicas of one
*range*. S stores, C classes of stores that are alike, J conjunctions of constraints, Q
configurations, P ranges, K replicas, A amounts. A store is a node of the cluster in the words of
the rest of this project, and a *host* is what CockroachDB calls a node.

Stores are *alike* if their localities and what they satisfy of every conjunction are the same, so
that whatever concerns constraints and diversity is asked once for each class. Only stores of a host
that holds a replica of the range differ from their class: between them lies no diversity.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, inlined, no_alloc
from evenkeel_kernels.core.problem import index
from evenkeel_kernels.core.rng import advance

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOWHERE = -1

VOTER, NON_VOTER, LEARNER = 0, 1, 2  # roles of a replica

# States of a store. One that is decommissioned counts as dead.
AVAILABLE, THROTTLED, SUSPECT, DRAINING, UNKNOWN, DECOMMISSIONING, DEAD = 0, 1, 2, 3, 4, 5, 6

RANGES, LEASES, QPS, CPU, WRITES, BYTES = 0, 1, 2, 3, 4, 5
AMOUNTS = 6  # rows of ``Stores.amount`` and of the loads of ranges

# what a ``Scorer`` levels: the number of ranges, the load of one row, nothing
COUNT, LOAD, NEUTRAL = 0, 1, 2

# what is known of a range's raft group: nothing is asked, the leaseholder leads it, or none here
# does, so that nothing may be removed and no lease moved
NOT_MODELLED, LEADING, LEADERLESS = 0, 1, 2

# what overload of a store's disk bandwidth stops: nothing, moves to it, additions too
IGNORE, BLOCK_REBALANCE, BLOCK_ALL = 0, 1, 2

CLOSE = 1e-10  # diversities nearer than this are the same


@by_reference
class Stores(NamedTuple):
    """Stores as a decision knows them."""

    status: NDArray[np.int8]  # (S,) AVAILABLE and so on
    ready: Flags  # (S,) whether its host is fit for routine moves
    # (A, S) RANGES and LEASES are counts, QPS and CPU per second, WRITES and BYTES in bytes
    amount: Floats
    # capacity, available: (S,) bytes; 0 for a capacity that is not known
    capacity: Floats
    available: Floats
    io: Floats  # (S,) overload of the disk's bandwidth


@by_reference
class Localities(NamedTuple):
    """Where stores are, and what they satisfy; never stale."""

    host: Longs  # (S,) host of each store, counted from 0
    # host_first, host_store: (hosts + 1,), (S,) stores of each host, ascending
    host_first: Longs
    host_store: Longs
    alike: Longs  # (S,) class of each store
    # class_first, class_store: (C + 1,), (S,) stores of each class, ascending
    class_first: Longs
    class_store: Longs
    pair: Floats  # (C, C) diversity of two stores of these classes on different hosts, 0 to 1
    matches: Flags  # (J, C) whether stores of a class satisfy a conjunction


@by_reference
class Configs(NamedTuple):
    """What is wanted of ranges."""

    # replicas, voters: (Q,) wanted; voters at most replicas
    replicas: Ints
    voters: Ints
    # total, voter_total: (Q,) what counts of constraints are measured against, to see whether some
    # replicas are left unconstrained; 0 if they never are
    total: Ints
    voter_total: Ints
    # first, row, asked: (Q + 1,) int64, (.,) int32, (.,) conjunctions that bind every replica, and
    # for how many (0 for all)
    first: Longs
    row: Ints
    asked: Ints
    # voter_first, voter_row, voter_asked: (Q + 1,) int64, (.,) int32, (.,) conjunctions that bind
    # voters
    voter_first: Longs
    voter_row: Ints
    voter_asked: Ints
    # lead_first, lead_row: (Q + 1,) int64, (.,) conjunctions that the leaseholder should satisfy,
    # first choice first
    lead_first: Longs
    lead_row: Ints


@by_reference
class Ranges(NamedTuple):
    """Where ranges are. A slot may be empty, and every row may keep spare ones."""

    first: Longs  # (P + 1,) slots of each range
    store: Ints  # (K,) store of each replica; -1 for an empty slot
    role: NDArray[np.uint8]  # (K,) VOTER and so on; of an empty slot, the role it is kept for
    lease: NDArray[np.int16]  # (P,) slot of the leaseholder; -1 for none
    config: Ints  # (P,) its configuration
    # replica_load, lease_load: (A, P) what each replica carries, and what the leaseholder carries
    # on top; (A, 0) if not known
    replica_load: Floats
    lease_load: Floats
    raft: NDArray[np.int8]  # (P,) NOT_MODELLED and so on; the next two are read where it is LEADING
    # up_to_date, behind: (K,) whether a replica has all that is committed; whether it may need a
    # snapshot
    up_to_date: Flags
    behind: Flags
    joint: Flags  # (P,) whether a change of replicas was left unfinished


@by_reference
class Settings(NamedTuple):
    """Thresholds; the settings of that name in CockroachDB."""

    disk_full: float  # fraction used from which a store is no target, and sheds
    disk_rebalance: float  # fraction used from which a store is no target of a move
    io_threshold: float
    io_factor: float  # times the mean
    io_enforcement: int  # IGNORE, BLOCK_REBALANCE, BLOCK_ALL
    recover_to_good: bool  # replacements are drawn from the good and not only the best


class Scorer(NamedTuple):
    """What is levelled, and how far."""

    kind: int  # COUNT, LOAD, NEUTRAL
    row: int  # of Stores.amount
    threshold: float  # share of the mean
    least: float  # in the unit of the row
    difference: float  # least difference between two stores for load to be moved


@by_reference
class Members(NamedTuple):
    """The replicas of one range, taken out of its row; callers may change them."""

    # voter, non_voter: (W,) stores, ascending
    voter: Longs
    non_voter: Longs
    up_to_date: Flags  # (W,) of each voter
    size: Longs  # (3,) voters, non-voters, and what is known of raft: NOT_MODELLED and so on


@inlined
def diversity(localities: Localities, a: int, b: int) -> float:
    """Return the diversity of two stores: 0 on one host, 1 if they share no tier. O(1)."""
    if localities.host[a] == localities.host[b]:
        return 0.0
    return localities.pair[localities.alike[a], localities.alike[b]]


@inlined
def fraction_used(stores: Stores, s: int) -> float:
    """Return how full a store's disk is; 0 if its capacity is not known. O(1)."""
    if stores.capacity[s] == 0.0:
        return 0.0
    used = stores.amount[BYTES, s]
    if used == 0.0:
        return (stores.capacity[s] - stores.available[s]) / stores.capacity[s]
    return used / (stores.available[s] + used)


@inlined
def is_dead(status: int) -> bool:
    """Whether a store of that state will not come back by itself."""
    return status == DEAD


@inlined
def is_live(status: int) -> bool:
    """Whether a store of that state serves now; one that is not known does not."""
    return status != DEAD and status != UNKNOWN


@inlined
def may_receive(status: int) -> bool:
    """Whether the replicate queue may add a replica to a store of that state."""
    return status == AVAILABLE


@inlined
def may_receive_load(status: int) -> bool:
    """Whether load may be moved to a store of that state, and counts in its mean."""
    return status == AVAILABLE or status == THROTTLED


@no_alloc
def draw(rng_state: NDArray[np.uint64], below: int) -> int:
    """Return a number from 0 up to ``below``; ``rng_state (1,)`` is the generator's state."""
    rng_state[0] = advance(rng_state[0])
    return index((rng_state[0] >> np.uint64(33)) % np.uint64(below))


@inlined
def member_at(members: Members, i: int) -> int:
    """Return the store of the ``i``-th replica, voters first."""
    n = members.size[0]
    return members.voter[i] if i < n else members.non_voter[i - n]


@inlined
def compared(members: Members, role: int) -> int:
    """Return how many replicas diversity compares one of that role with: voters with voters."""
    return members.size[0] + (members.size[1] if role == NON_VOTER else 0)


@inlined
def holds(members: Members, role: int, s: int) -> bool:
    """Whether a replica of that role is on a store. O(W)."""
    row = members.voter if role == VOTER else members.non_voter
    return place_of(row, members.size[role], s) >= 0


@device_function
def put_member(members: Members, role: int, s: int, up_to_date: bool) -> None:
    """Add a replica. O(W)."""
    if role == VOTER:
        at = add_member(members.voter, members.size[0], s)
        for i in range(members.size[0], at, -1):
            members.up_to_date[i] = members.up_to_date[i - 1]
        members.up_to_date[at] = up_to_date
    else:
        add_member(members.non_voter, members.size[1], s)
    members.size[role] += 1


@device_function
def take_out_member(members: Members, role: int, s: int) -> bool:
    """Take a replica out, if it is there; whether it was. O(W)."""
    row = members.voter if role == VOTER else members.non_voter
    at = place_of(row, members.size[role], s)
    if at < 0:
        return False
    for i in range(at, members.size[role] - 1):
        row[i] = row[i + 1]
        if role == VOTER:
            members.up_to_date[i] = members.up_to_date[i + 1]
    members.size[role] -= 1
    return True


@inline_only
def take_members(ranges: Ranges, p: int, members: Members) -> None:
    """Fill ``members`` with the replicas of a range; learners are left out. O(W squared)."""
    members.size[0] = 0
    members.size[1] = 0
    members.size[2] = ranges.raft[p]
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] < 0 or ranges.role[k] == LEARNER:
            continue
        put_member(members, index(ranges.role[k]), index(ranges.store[k]), ranges.up_to_date[k])


@inlined
def add_member(row: Longs, size: int, s: int) -> int:
    """Insert a store into the ascending ``row`` of ``size`` entries; return its place. O(W)."""
    at = size
    while at > 0 and row[at - 1] > s:
        row[at] = row[at - 1]
        at -= 1
    row[at] = s
    return at


@inlined
def place_of(row: Longs, size: int, s: int) -> int:
    """Return where a store stands in the first ``size`` entries of ``row``, or -1. O(W)."""
    for i in range(size):
        if row[i] == s:
            return i
    return NOWHERE
