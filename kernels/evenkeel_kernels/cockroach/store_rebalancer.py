"""The store rebalancer: move leases, then replicas, of the hottest ranges off overloaded stores.

A round asks every store once, and rounds go on until one decides nothing. So that they come to an
end, a change of replicas is made only if it pays: it takes load off stores that carry too much, and
the replicate queue would not undo it. And no replica returns to a store that its range has left in
this run, nor does a lease.

References
----------
CockroachDB, ``pkg/kv/kvserver/store_rebalancer.go``, and ``allocator_scorer.go``,
``bestStoreToMinimizeLoadDelta``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, inlined, no_alloc
from evenkeel_kernels.cockroach.changes import (
    DecisionLog,
    Left,
    give_lease,
    has_left,
    has_room,
    is_worn,
    leaseholder,
    note,
    note_left,
    slot_of,
    swap,
)
from evenkeel_kernels.cockroach.cluster_rules import agrees
from evenkeel_kernels.cockroach.context import AllocatorContext, tally_all
from evenkeel_kernels.cockroach.leases import (
    OFF,
    REPLICAS,
    LeaseContext,
    LoadSettings,
    count_leases,
    lags,
    mark_eligible,
    mean_load,
    overfull_load,
    prefers_local,
    take_contenders,
)
from evenkeel_kernels.cockroach.rebalance import rebalance
from evenkeel_kernels.cockroach.tables import (
    LEADING,
    LEARNER,
    LOAD,
    NON_VOTER,
    NOT_MODELLED,
    NOWHERE,
    RANGES,
    VOTER,
    Floats,
    Longs,
    Members,
    Ranges,
    Scorer,
    Stores,
    holds,
    may_receive_load,
    member_at,
    put_member,
    take_members,
    take_out_member,
)
from evenkeel_kernels.core.problem import index

# what phase 1 says of a lease: it goes; no store is better; it is near its requests; its range has
# too little of the store's load
MOVES, NO_BETTER, STAYS_LOCAL, TOO_LITTLE = 0, 1, 2, 3

# what phase 2 says of a range: it changes; it has too little of the store's load; its replicas are
# not as many as are wanted; no replica has a better place; none of the new ones may lead
CHANGES, TOO_COLD, MISCOUNTED, NO_STEP, NO_LEADER = 0, 1, 2, 3, 4

# how far numbers of ranges may be off the mean before the replicate queue moves them
RANGE_SHARE, RANGE_LEAST = 0.05, 2.0

# what the log calls them; the last stands behind the replicas that moved with it
LEASE_BY_LOAD, VOTER_BY_LOAD, NON_VOTER_BY_LOAD, LEASE_WITH_REPLICAS = 50, 51, 52, 53


@by_reference
class HotList(NamedTuple):
    """The replicas with the most load on one store."""

    slot: Longs  # (H,) their slots in the row of all replicas; as a heap while it is filled
    range: Longs  # (H,) their ranges
    load: Floats  # (H,) what they carry there
    size: Longs  # (1,) how many there are


@by_reference
class LoadContext(NamedTuple):
    """All that decisions about load read, and the scratch that they write to."""

    leases: LeaseContext  # with the stores that are decided on, where changes are booked
    # of these stores; it levels the load, and its members are those of the range at hand as they
    # should be
    allocator: AllocatorContext
    before: Members  # the same as they are
    hot: HotList  # the hottest replicas of one store
    # first, owner, slot: (S + 1,), (K,), (K,) replicas by store, listed as a round begins
    first: Longs
    owner: Longs
    slot: Longs


def room_for_hottest(most: int) -> HotList:
    """Make room for a list of so many."""
    return HotList(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most), np.zeros(1, np.int64)
    )


@inlined
def load_of(ranges: Ranges, row: int, p: int) -> float:
    """Return the whole load of a range at its leaseholder."""
    return ranges.replica_load[row, p] + ranges.lease_load[row, p]


@no_alloc
def list_replicas(
    ranges: Ranges, first: NDArray[np.int64], owner: NDArray[np.int64], slot: NDArray[np.int64]
) -> None:
    """Sort replicas by store: ``first (S + 1,)``, with ``owner (K,)`` and ``slot (K,)`` of each."""
    # These are its range and its slot, of the replicas on the first store, then of those on the
    # next. O(K + S).
    first[:] = 0
    stores = first.size - 1
    for k in range(ranges.store.size):
        if ranges.store[k] >= 0 and ranges.role[k] != LEARNER:
            first[ranges.store[k] + 1] += 1
    for s in range(stores):
        first[s + 1] += first[s]
    for p in range(ranges.lease.size):
        for k in range(ranges.first[p], ranges.first[p + 1]):
            if ranges.store[k] >= 0 and ranges.role[k] != LEARNER:
                at = first[ranges.store[k]]
                owner[at] = p
                slot[at] = k
                first[ranges.store[k]] += 1
    for s in range(stores, 0, -1):
        first[s] = first[s - 1]
    first[0] = 0


@inlined
def hotter(hot: HotList, i: int, load: float, p: int) -> bool:
    """Whether entry ``i`` is hotter than a range; of two alike, the one with the lower number."""
    return hot.load[i] > load or (hot.load[i] == load and hot.range[i] < p)


@no_alloc
def hottest(
    ranges: Ranges,
    row: int,
    s: int,
    first: NDArray[np.int64],
    owner: NDArray[np.int64],
    slot: NDArray[np.int64],
    hot: HotList,
) -> None:
    """List the hottest replicas of store ``s``, hottest first.

    ``first (S + 1,)``, ``owner`` and ``slot (K,)`` are as `list_replicas` fills them; what has left
    the store since is passed over. O(replicas there * log H).
    """
    hot.size[0] = 0
    for j in range(first[s], first[s + 1]):
        p, k = owner[j], slot[j]
        if ranges.store[k] != s:
            continue
        load = ranges.replica_load[row, p]
        if ranges.lease[p] >= 0 and ranges.first[p] + ranges.lease[p] == k:
            load += ranges.lease_load[row, p]
        if hot.size[0] < hot.load.size:
            i = hot.size[0]
            hot.size[0] += 1
            while i > 0 and hotter(hot, (i - 1) // 2, load, p):
                move_entry(hot, (i - 1) // 2, i)
                i = (i - 1) // 2
            put_entry(hot, i, k, p, load)
        elif not hotter(hot, 0, load, p):
            sift(hot, hot.size[0], k, p, load)
    for end in range(hot.size[0] - 1, 0, -1):
        k, p, load = hot.slot[end], hot.range[end], hot.load[end]
        move_entry(hot, 0, end)
        sift(hot, end, k, p, load)


@inlined
def move_entry(hot: HotList, i: int, j: int) -> None:
    """Copy entry ``i`` to ``j``."""
    hot.slot[j] = hot.slot[i]
    hot.range[j] = hot.range[i]
    hot.load[j] = hot.load[i]


@inlined
def put_entry(hot: HotList, i: int, k: int, p: int, load: float) -> None:
    """Write entry ``i``."""
    hot.slot[i] = k
    hot.range[i] = p
    hot.load[i] = load


@no_alloc
def sift(hot: HotList, size: int, k: int, p: int, load: float) -> None:
    """Replace the coldest entry, at the top of a heap of ``size``. O(log H)."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and hotter(hot, child, hot.load[child + 1], hot.range[child + 1]):
            child += 1
        if hotter(hot, child, load, p):
            break
        move_entry(hot, child, i)
        i = child
    put_entry(hot, i, k, p, load)


@inlined
def least_loaded(context: LeaseContext, row: int, besides: int) -> int:
    """Return the place of the eligible one with the least load, ``besides`` apart, or -1. O(W)."""
    stores, contenders = context.stores, context.contenders
    best = NOWHERE
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if not contenders.eligible[i] or s == besides:
            continue
        if best >= 0:
            load, least = stores.amount[row, s], stores.amount[row, contenders.store[best]]
            if load > least or (load == least and s > contenders.store[best]):
                continue
        best = i
    return best


@inlined
def worth_moving(
    load: LoadSettings, mean: float, source: float, best: float, impact: float
) -> bool:
    """Whether load of that ``impact`` should go from a store to the ``best`` one there is."""
    if best > source or source <= overfull_load(load, mean):
        return False
    return max(source - impact, 0.0) - best >= load.difference


@no_alloc
def lease_by_load(context: LeaseContext, ranges: Ranges, mean: float, p: int) -> tuple[int, int]:
    """Return the store to which a hot range's lease should go, or -1, and MOVES or why not.

    ``mean`` is the load of stores on the average. O(W E).
    """
    stores, load, contenders = context.stores, context.load, context.contenders
    here = take_contenders(context, ranges, p, True)
    row = load.row
    if here < 0 or load_of(ranges, row, p) < load.lease_share * stores.amount[row, here]:
        return NOWHERE, TOO_LITTLE
    mark_eligible(context, index(ranges.config[p]), index(ranges.raft[p]), here, False)
    best = least_loaded(context, row, here)
    if best < 0:
        return NOWHERE, NO_BETTER
    target = contenders.store[best]
    source = stores.amount[row, here]
    if not worth_moving(load, mean, source, stores.amount[row, target], ranges.lease_load[row, p]):
        return NOWHERE, NO_BETTER
    if prefers_local(context, p, here, target):
        return NOWHERE, STAYS_LOCAL
    return target, MOVES


@inlined
def scorer_of(load: LoadSettings) -> Scorer:
    """Return what levels the load."""
    return Scorer(LOAD, load.row, load.threshold, load.least, load.difference)


@no_alloc
def replicas_by_load(
    context: LoadContext, ranges: Ranges, p: int, rng_state: NDArray[np.uint64]
) -> tuple[int, int]:
    """Return the store that should lead range ``p``, or -1, and CHANGES or why not.

    ``context.allocator.members`` then says where its replicas should be, ``context.before`` where
    they are. ``rng_state (1,)`` draws among what ties. Every step moves one replica, and the loads
    of stores stay as they are until all have been found. O(W) rebalances.
    """
    leases, before, after = context.leases, context.before, context.allocator.members
    load, stores, configs = leases.load, leases.stores, leases.configs
    take_members(ranges, p, before)
    take_members(ranges, p, after)
    q, row = index(ranges.config[p]), load.row
    voters, others = before.size[0], before.size[1]
    if ranges.lease[p] < 0:
        return NOWHERE, NO_LEADER
    here = index(ranges.store[ranges.first[p] + ranges.lease[p]])
    impact = load_of(ranges, row, p)
    if impact < load.replica_share * stores.amount[row, here]:
        return NOWHERE, TOO_COLD
    if voters != configs.voters[q] or others != configs.replicas[q] - configs.voters[q]:
        return NOWHERE, MISCOUNTED
    context.allocator.impact[0] = impact
    role, step = VOTER, 0
    while step < voters + others:
        found = rebalance(context.allocator, q, role, rng_state)
        if found.target >= 0:
            replace_member(after, role, found.target, found.removed)
            step += 1
        else:
            step = voters if role == VOTER else voters + others
        role = VOTER if step < voters else NON_VOTER
    if same(before, after):
        return NOWHERE, NO_STEP
    take_changed(context, ranges, p, here)
    mark_eligible(leases, q, NOT_MODELLED, here, False)
    best = least_loaded(leases, row, NOWHERE)
    if best < 0:
        return NOWHERE, NO_LEADER
    return leases.contenders.store[best], CHANGES


@inlined
def replace_member(members: Members, role: int, target: int, removed: int) -> None:
    """Replace a replica; a non-voter whose store gets the voter goes where the voter was. O(W)."""
    promoted = role == VOTER and take_out_member(members, NON_VOTER, target)
    take_out_member(members, role, removed)
    put_member(members, role, target, False)
    if promoted:
        put_member(members, NON_VOTER, removed, False)


@inlined
def same(one: Members, other: Members) -> bool:
    """Whether two have as many of each kind, in the same places. O(W)."""
    for i in range(one.size[0]):
        if one.voter[i] != other.voter[i]:
            return False
    for i in range(one.size[1]):
        if one.non_voter[i] != other.non_voter[i]:
            return False
    return True


@inlined
def take_changed(context: LoadContext, ranges: Ranges, p: int, here: int) -> None:
    """Fill in the voters that there will be; those that are new are not behind. O(W squared)."""
    # of the present ones the leaseholder is not behind either, if anything is known at all
    contenders, before, after = context.leases.contenders, context.before, context.allocator.members
    contenders.size[0] = after.size[0]
    for i in range(after.size[0]):
        s = after.voter[i]
        contenders.store[i] = s
        contenders.behind[i] = False
        if not holds(before, VOTER, s):
            continue
        for k in range(ranges.first[p], ranges.first[p + 1]):
            if ranges.store[k] == s:
                leads = s == here and ranges.raft[p] == LEADING
                contenders.behind[i] = lags(ranges, p, k) and not leads


@no_alloc
def rebalance_stores(
    ranges: Ranges,
    context: LoadContext,
    cursor: Longs,
    budget: int,
    left: Left,
    left_leases: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> None:
    """Let every store give away load, again and again, until a whole round decides nothing.

    Goes on at store ``cursor[0]``, before which ``cursor[1]`` of this round have in a row given
    nothing away; adds decisions to ``cursor[2]`` and counts in ``cursor[3]`` those of this round
    that memory forbade (``cursor (4,)``). It is done when ``cursor[1]`` is the number of stores,
    and stops before that after ``budget`` stores or when the log is full. Replicas are listed as a
    round begins,
    and others may have changed them only where ``cursor`` is all 0. ``rng_state (1,)``
    draws.
    """
    many = context.leases.stores.io.size
    if context.leases.load.mode == OFF:
        cursor[1] = many
    count_leases(context.leases)
    room = context.hot.load.size * (2 * context.before.voter.size + 1)
    for _ in range(budget):
        if cursor[1] >= many or not has_room(log, room):
            return
        if cursor[0] == 0 or cursor[0] >= many:
            list_replicas(ranges, context.first, context.owner, context.slot)
            cursor[0] = 0
            cursor[1] = 0
            cursor[3] = 0
        cursor[1] += 1
        before = cursor[2]
        relieve(ranges, context, cursor[0], cursor, left, left_leases, log, rng_state)
        if cursor[2] > before:
            cursor[1] = 0
        cursor[0] += 1


@device_function
def relieve(
    ranges: Ranges,
    context: LoadContext,
    s: int,
    cursor: Longs,
    left: Left,
    left_leases: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> None:
    """Give away leases of store ``s``, and then replicas; ``cursor (4,)``, ``rng_state (1,)``."""
    stores, load = context.leases.stores, context.leases.load
    if not may_receive_load(stores.status[s]):
        return
    mean = mean_load(stores, load.row)
    if stores.amount[load.row, s] <= overfull_load(load, mean):
        return
    hottest(ranges, load.row, s, context.first, context.owner, context.slot, context.hot)
    give_leases(ranges, context, s, mean, cursor, left_leases, log)
    if load.mode < REPLICAS or stores.amount[load.row, s] <= overfull_load(load, mean):
        return
    tally_all(context.allocator)
    give_replicas(ranges, context, s, mean, cursor, left, left_leases, log, rng_state)


@inline_only
def give_leases(
    ranges: Ranges,
    context: LoadContext,
    s: int,
    mean: float,
    cursor: Longs,
    left: Left,
    log: DecisionLog,
) -> None:
    """Phase 1: leases of hot ranges; what is settled is taken off the list. ``cursor (4,)``."""
    hot, stores = context.hot, context.leases.stores
    row = context.leases.load.row
    for i in range(hot.size[0]):
        if stores.amount[row, s] <= overfull_load(context.leases.load, mean):
            return
        p = hot.range[i]
        if leaseholder(ranges, p) != s:
            hot.range[i] = -1
            continue
        target, why = lease_by_load(context.leases, ranges, mean, p)
        if why != NO_BETTER:
            hot.range[i] = -1
        if why != MOVES:
            continue
        if has_left(left, p, target) or is_worn(left, p):
            cursor[3] += 1
            continue
        gain = stores.amount[row, s] - stores.amount[row, target]
        give_lease(ranges, stores, p, target)
        if not agrees(context.leases.rules, ranges, stores, p):
            continue
        note_left(left, p, s)
        note(log, LEASE_BY_LOAD, p, s, target, gain)
        cursor[2] += 1


@inline_only
def give_replicas(
    ranges: Ranges,
    context: LoadContext,
    s: int,
    mean: float,
    cursor: Longs,
    left: Left,
    left_leases: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> None:
    """Phase 2: hot ranges as a whole; ``cursor (4,)``, and ``rng_state (1,)`` draws."""
    hot, stores = context.hot, context.leases.stores
    load = context.leases.load
    for i in range(hot.size[0]):
        if stores.amount[load.row, s] <= overfull_load(load, mean):
            return
        p = hot.range[i]
        if p < 0:
            continue
        holder, why = replicas_by_load(context, ranges, p, rng_state)
        if why != CHANGES or not pays(context, ranges, mean, p, holder):
            continue
        if returns(context, p, left) or is_worn(left, p):
            cursor[3] += 1
            continue
        if holder != s and (has_left(left_leases, p, holder) or is_worn(left_leases, p)):
            cursor[3] += 1
            continue
        before = log.size[0]
        relocate(context, ranges, p, holder, log)
        if not agrees(context.leases.rules, ranges, stores, p):
            log.size[0] = before
            continue
        for i in range(before, log.size[0]):
            source = index(log.source[i])
            if slot_of(ranges, p, source) < 0 and not has_left(left, p, source):
                note_left(left, p, source)
        if holder != s:
            note_left(left_leases, p, s)
        cursor[2] += 1
        tally_all(context.allocator)


@device_function
def pays(context: LoadContext, ranges: Ranges, mean: float, p: int, holder: int) -> bool:
    """Whether a change takes load off stores that carry too much, and counts would not undo it."""
    # A decision takes every replica for one with all of the range's load. Where followers carry
    # next to nothing, it may send them about and leave the store as it was.
    before, after = context.before, context.allocator.members
    stores, load = context.leases.stores, context.leases.load
    limit = overfull_load(load, mean)
    here = leaseholder(ranges, p)
    each, lease = ranges.replica_load[load.row, p], ranges.lease_load[load.row, p]
    gain, most = 0.0, 0.0
    for i in range(before.size[0] + before.size[1]):
        s = member_at(before, i)
        now = stores.amount[load.row, s]
        then = now - (0.0 if holds_any(after, s) else each)
        then += (lease if s == holder else 0.0) - (lease if s == here else 0.0)
        gain += max(now - limit, 0.0) ** 2 - max(then - limit, 0.0) ** 2
        if not holds_any(after, s):
            most = max(most, stores.amount[RANGES, s])
    crowd = crowded_from(stores)
    for i in range(after.size[0] + after.size[1]):
        s = member_at(after, i)
        if holds_any(before, s):
            continue
        now = stores.amount[load.row, s]
        then = now + each + (lease if s == holder else 0.0)
        gain += max(now - limit, 0.0) ** 2 - max(then - limit, 0.0) ** 2
        if stores.amount[RANGES, s] + 1.0 > max(crowd, most):
            return False
    return gain > 0.0


@inline_only
def crowded_from(stores: Stores) -> float:
    """Return the number of ranges above which the queue takes some off a store. O(S)."""
    mean = mean_load(stores, RANGES)
    return math.ceil(mean + max(RANGE_SHARE * mean, RANGE_LEAST))


@inline_only
def holds_any(members: Members, s: int) -> bool:
    """Whether either kind of replica is on a store."""
    return holds(members, VOTER, s) or holds(members, NON_VOTER, s)


@inline_only
def returns(context: LoadContext, p: int, left: Left) -> bool:
    """Whether a change would bring a replica back to where the range has left."""
    after = context.allocator.members
    for i in range(after.size[0] + after.size[1]):
        s = member_at(after, i)
        if not holds_any(context.before, s) and has_left(left, p, s):
            return True
    return False


@device_function
def relocate(context: LoadContext, ranges: Ranges, p: int, holder: int, log: DecisionLog) -> None:
    """Move the replicas of a range to where they should be, and its lease to ``holder``."""
    # those that stay but change their kind do so first, in pairs, so that no data moves for it
    stores, after = context.leases.stores, context.allocator.members
    source = leaseholder(ranges, p)
    give_lease(ranges, stores, p, NOWHERE)
    for kind in range(2):
        while True:
            s, x = misplaced(ranges, p, after, kind)
            if s < 0 or x < 0:
                break
            swap(ranges, stores, p, x, s)
            note(log, VOTER_BY_LOAD, p, s, x, 0.0)
    for i in range(after.size[0]):
        move_in(ranges, stores, p, VOTER, after.voter[i], after, log)
    for i in range(after.size[1]):
        move_in(ranges, stores, p, NON_VOTER, after.non_voter[i], after, log)
    give_lease(ranges, stores, p, holder)
    note(log, LEASE_WITH_REPLICAS, p, source, holder, 0.0)


@device_function
def misplaced(ranges: Ranges, p: int, after: Members, kind: int) -> tuple[int, int]:
    """Return a voter and a non-voter that should change places, or -1 for one of them."""
    # One of them stays on its store: for ``kind`` 0 the voter, as a non-voter, for 1 the non-voter.
    # The other is the best one that stays too.
    voter, other = NOWHERE, NOWHERE
    for turn in range(2):
        for k in range(ranges.first[p], ranges.first[p + 1]):
            s = index(ranges.store[k])
            if s < 0 or holds(after, index(ranges.role[k]), s):
                continue
            stays = holds(after, NON_VOTER if ranges.role[k] == VOTER else VOTER, s)
            if ranges.role[k] == VOTER and voter < 0 and (stays or (kind == 1 and turn == 1)):
                voter = s
            if ranges.role[k] == NON_VOTER and other < 0 and (stays or (kind == 0 and turn == 1)):
                other = s
    return voter, other


@device_function
def move_in(
    ranges: Ranges, stores: Stores, p: int, role: int, target: int, after: Members, log: DecisionLog
) -> None:
    """Move a replica of that kind to ``target``, unless there is one, from where none should be."""
    if slot_of(ranges, p, target) >= 0:
        return
    for k in range(ranges.first[p], ranges.first[p + 1]):
        s = index(ranges.store[k])
        if s < 0 or ranges.role[k] != role or holds(after, role, s):
            continue
        swap(ranges, stores, p, target, s)
        note(log, VOTER_BY_LOAD if role == VOTER else NON_VOTER_BY_LOAD, p, s, target, 0.0)
        return
