"""What the decisions about one range stand on, as tuples of arrays: CockroachDB's allocator.

A decision sees *stores* as somebody knows them, which may be long ago, and the replicas of one
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

from evenkeel_kernels.build.jit import by_reference, inline_only, inlined, no_alloc
from evenkeel_kernels.core.problem import index
from evenkeel_kernels.core.rng import advance

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOWHERE = -1

VOTER, NON_VOTER, LEARNER = 0, 1, 2
"""Roles of a replica."""

AVAILABLE, THROTTLED, SUSPECT, DRAINING, UNKNOWN, DECOMMISSIONING, DEAD = 0, 1, 2, 3, 4, 5, 6
"""States of a store. One that is decommissioned counts as dead."""

RANGES, LEASES, QPS, CPU, WRITES, BYTES = 0, 1, 2, 3, 4, 5
AMOUNTS = 6
"""Rows of ``Stores.amount`` and of the loads of ranges."""

COUNT, LOAD, NEUTRAL = 0, 1, 2
"""What a ``Scorer`` levels: the number of ranges, the load of one row, nothing."""

NOT_MODELLED, LEADING, LEADERLESS = 0, 1, 2
"""What is known of a range's raft group: nothing is asked, the leaseholder leads it, or nobody
here does, so that nothing may be removed and no lease moved."""

IGNORE, BLOCK_REBALANCE, BLOCK_ALL = 0, 1, 2
"""What overload of a store's disk bandwidth stops: nothing, moves to it, additions too."""

CLOSE = 1e-10
"""Diversities nearer than this are the same."""


@by_reference
class Stores(NamedTuple):
    """Stores as a decision knows them.

    Attributes
    ----------
    status : (S,) int8
        AVAILABLE and so on.
    ready : (S,) bool
        Whether its host is fit for routine moves.
    amount : (A, S) float64
        RANGES and LEASES are counts, QPS and CPU per second, WRITES and BYTES in bytes.
    capacity, available : (S,) float64
        Bytes; 0 for a capacity that is not known.
    io : (S,) float64
        Overload of the disk's bandwidth.
    """

    status: NDArray[np.int8]
    ready: Flags
    amount: Floats
    capacity: Floats
    available: Floats
    io: Floats


@by_reference
class Localities(NamedTuple):
    """Where stores are, and what they satisfy; never stale.

    Attributes
    ----------
    host : (S,) int64
        Host of each store, counted from 0.
    host_first, host_store : (hosts + 1,), (S,) int64
        Stores of each host, ascending.
    alike : (S,) int64
        Class of each store.
    class_first, class_store : (C + 1,), (S,) int64
        Stores of each class, ascending.
    pair : (C, C) float64
        Diversity of two stores of these classes on different hosts, 0 to 1.
    matches : (J, C) bool
        Whether stores of a class satisfy a conjunction.
    """

    host: Longs
    host_first: Longs
    host_store: Longs
    alike: Longs
    class_first: Longs
    class_store: Longs
    pair: Floats
    matches: Flags


@by_reference
class Configs(NamedTuple):
    """What is wanted of ranges.

    Attributes
    ----------
    replicas, voters : (Q,) int32
        Wanted; voters at most replicas.
    total, voter_total : (Q,) int32
        What counts of constraints are measured against, to see whether some replicas are left
        unconstrained; 0 if they never are.
    first, row, asked : (Q + 1,) int64, (.,) int32, (.,) int32
        Conjunctions that bind every replica, and for how many (0 for all).
    voter_first, voter_row, voter_asked : (Q + 1,) int64, (.,) int32, (.,) int32
        Conjunctions that bind voters.
    lead_first, lead_row : (Q + 1,) int64, (.,) int32
        Conjunctions that the leaseholder should satisfy, first choice first.
    """

    replicas: Ints
    voters: Ints
    total: Ints
    voter_total: Ints
    first: Longs
    row: Ints
    asked: Ints
    voter_first: Longs
    voter_row: Ints
    voter_asked: Ints
    lead_first: Longs
    lead_row: Ints


@by_reference
class Ranges(NamedTuple):
    """Where ranges are. A slot may be empty, and every row may keep spare ones.

    Attributes
    ----------
    first : (P + 1,) int64
        Slots of each range.
    store : (K,) int32
        Store of each replica; -1 for an empty slot.
    role : (K,) uint8
        VOTER and so on; of an empty slot, the role it is kept for.
    lease : (P,) int16
        Slot of the leaseholder; -1 for none.
    config : (P,) int32
        Its configuration.
    replica_load, lease_load : (A, P) float64
        What each replica carries, and what the leaseholder carries on top; (A, 0) if not known.
    raft : (P,) int8
        NOT_MODELLED and so on; the next two are read where it is LEADING.
    up_to_date, behind : (K,) bool
        Whether a replica has all that is committed; whether it may need a snapshot.
    joint : (P,) bool
        Whether a change of replicas was left unfinished.
    """

    first: Longs
    store: Ints
    role: NDArray[np.uint8]
    lease: NDArray[np.int16]
    config: Ints
    replica_load: Floats
    lease_load: Floats
    raft: NDArray[np.int8]
    up_to_date: Flags
    behind: Flags
    joint: Flags


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
    impact: float  # load of the range that is moved


@by_reference
class Members(NamedTuple):
    """The replicas of one range, taken out of its row; callers may change them.

    Attributes
    ----------
    voter, non_voter : (W,) int64
        Stores, ascending.
    up_to_date : (W,) bool
        Of each voter.
    size : (3,) int64
        Voters, non-voters, and what is known of raft: NOT_MODELLED and so on.
    """

    voter: Longs
    non_voter: Longs
    up_to_date: Flags
    size: Longs


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


@inline_only
def take_members(ranges: Ranges, p: int, members: Members) -> None:
    """Fill ``members`` with the replicas of a range; learners are left out. O(W squared)."""
    members.size[0] = 0
    members.size[1] = 0
    members.size[2] = ranges.raft[p]
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] < 0 or ranges.role[k] == LEARNER:
            continue
        if ranges.role[k] == VOTER:
            at = add_member(members.voter, members.size[0], ranges.store[k])
            for i in range(members.size[0], at, -1):
                members.up_to_date[i] = members.up_to_date[i - 1]
            members.up_to_date[at] = ranges.up_to_date[k]
            members.size[0] += 1
        else:
            add_member(members.non_voter, members.size[1], ranges.store[k])
            members.size[1] += 1


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
