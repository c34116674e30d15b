"""The store rebalancer: stores that carry too much give away leases, then replicas, hottest first.

A round asks every store once, and rounds go on until one decides nothing. So that they come to an
end, a change of replicas is made only if it pays: it takes load off stores that carry too much, and
the replicate queue would not undo it. And no replica returns to a store that its range has left in
this run, nor does a lease.

References
----------
CockroachDB, ``pkg/kv/kvserver/store_rebalancer.go``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.cockroach.apply import give_lease, leaseholder, slot_of, swap
from evenkeel_kernels.cockroach.cluster_rules import agrees
from evenkeel_kernels.cockroach.decision_log import (
    DecisionLog,
    Left,
    has_left,
    has_room,
    is_worn,
    note,
    note_left,
)
from evenkeel_kernels.cockroach.leases.queue import LeaseDesk
from evenkeel_kernels.cockroach.leases.stats import count_leases
from evenkeel_kernels.cockroach.load.replica_targets import (
    CHANGES,
    Change,
    replicas_by_load,
    scorer_of,
)
from evenkeel_kernels.cockroach.load.tables import (
    MOVES,
    NO_BETTER,
    OFF,
    REPLICAS,
    HotList,
    LoadSettings,
    hottest,
    lease_by_load,
    list_replicas,
    mean_load,
    overfull_load,
)
from evenkeel_kernels.cockroach.replicas.rooms import Rooms
from evenkeel_kernels.cockroach.store_stats import Tally, tally_all
from evenkeel_kernels.cockroach.tables import (
    NON_VOTER,
    NOWHERE,
    RANGES,
    VOTER,
    Longs,
    Members,
    Ranges,
    Settings,
    Stores,
    may_receive_load,
    place_of,
)
from evenkeel_kernels.core.problem import index

RANGE_SHARE, RANGE_LEAST = 0.05, 2.0
"""How far numbers of ranges may be off the mean before the replicate queue moves them."""

LEASE_BY_LOAD, VOTER_BY_LOAD, NON_VOTER_BY_LOAD, LEASE_WITH_REPLICAS = 50, 51, 52, 53
"""What the log calls them; the last stands behind the replicas that moved with it."""


@by_reference
class LoadDesk(NamedTuple):
    """All that decisions about load read, and the scratch that they write to.

    Attributes
    ----------
    leases : LeaseDesk
        With the stores that are decided on, where changes are booked.
    settings : Settings
        Thresholds of the allocator.
    tally : Tally
        Of these stores, for the load; counted again as they change.
    rooms, change : Rooms, Change
        Scratch.
    hot : HotList
        The hottest replicas of one store.
    first, owner, slot : (S + 1,), (K,), (K,) int64
        Replicas by store, listed as a round begins.
    """

    leases: LeaseDesk
    settings: Settings
    tally: Tally
    rooms: Rooms
    change: Change
    hot: HotList
    first: Longs
    owner: Longs
    slot: Longs


@no_alloc
def rebalance_stores(
    ranges: Ranges,
    context: LoadDesk,
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
    count_leases(context.leases.localities, context.leases.stores, context.leases.book)
    room = context.hot.load.size * (2 * context.change.before.voter.size + 1)
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
    context: LoadDesk,
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
    tally_all(
        context.leases.localities, stores, context.settings, scorer_of(load, 0.0), context.tally
    )
    give_replicas(ranges, context, s, mean, cursor, left, left_leases, log, rng_state)


@inline_only
def give_leases(
    ranges: Ranges,
    context: LoadDesk,
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
        target, why = lease_by_load(
            context.leases.localities, stores, context.leases.configs, context.leases.settings,
            context.leases.book, context.leases.workload, context.leases.load, ranges, mean, p,
            context.leases.contenders,
        )  # fmt: skip
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
    context: LoadDesk,
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
        holder, why = replicas_by_load(
            context.leases.localities, stores, context.tally, context.leases.configs,
            context.settings,
            context.leases.settings, context.leases.book, load, ranges, p, context.change,
            context.leases.contenders, context.rooms, rng_state,
        )  # fmt: skip
        if why != CHANGES or not pays(ranges, stores, load, mean, p, context.change, holder):
            continue
        if returns(context.change, p, left) or is_worn(left, p):
            cursor[3] += 1
            continue
        if holder != s and (has_left(left_leases, p, holder) or is_worn(left_leases, p)):
            cursor[3] += 1
            continue
        before = log.size[0]
        relocate(ranges, stores, p, context.change, holder, log)
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
        tally_all(
            context.leases.localities, stores, context.settings, scorer_of(load, 0.0), context.tally
        )


@device_function
def pays(
    ranges: Ranges,
    stores: Stores,
    load: LoadSettings,
    mean: float,
    p: int,
    change: Change,
    holder: int,
) -> bool:
    """Whether a change takes load off stores that carry too much, and counts would not undo it.

    A decision takes every replica for one with all of the range's load. Where followers carry next
    to nothing, it may send them about and leave the store as it was.
    """
    limit = overfull_load(load, mean)
    here = leaseholder(ranges, p)
    each, lease = ranges.replica_load[load.row, p], ranges.lease_load[load.row, p]
    gain, most = 0.0, 0.0
    for i in range(change.before.size[0] + change.before.size[1]):
        s = member_at(change.before, i)
        now = stores.amount[load.row, s]
        then = now - (0.0 if holds(change.after, s) else each)
        then += (lease if s == holder else 0.0) - (lease if s == here else 0.0)
        gain += max(now - limit, 0.0) ** 2 - max(then - limit, 0.0) ** 2
        if not holds(change.after, s):
            most = max(most, stores.amount[RANGES, s])
    crowd = crowded_from(stores)
    for i in range(change.after.size[0] + change.after.size[1]):
        s = member_at(change.after, i)
        if holds(change.before, s):
            continue
        now = stores.amount[load.row, s]
        then = now + each + (lease if s == holder else 0.0)
        gain += max(now - limit, 0.0) ** 2 - max(then - limit, 0.0) ** 2
        if stores.amount[RANGES, s] + 1.0 > max(crowd, most):
            return False
    return gain > 0.0


@inline_only
def member_at(members: Members, i: int) -> int:
    """Return the store of the ``i``-th replica, voters first."""
    n = members.size[0]
    return members.voter[i] if i < n else members.non_voter[i - n]


@inline_only
def crowded_from(stores: Stores) -> float:
    """Return the number of ranges above which the queue takes some off a store. O(S)."""
    mean = mean_load(stores, RANGES)
    return math.ceil(mean + max(RANGE_SHARE * mean, RANGE_LEAST))


@inline_only
def holds(members: Members, s: int) -> bool:
    """Whether either kind of replica is on a store."""
    voter = place_of(members.voter, members.size[0], s)
    return voter >= 0 or place_of(members.non_voter, members.size[1], s) >= 0


@inline_only
def returns(change: Change, p: int, left: Left) -> bool:
    """Whether a change would bring a replica back to where the range has left."""
    for i in range(change.after.size[0]):
        s = change.after.voter[i]
        if not holds(change.before, s) and has_left(left, p, s):
            return True
    for i in range(change.after.size[1]):
        s = change.after.non_voter[i]
        if not holds(change.before, s) and has_left(left, p, s):
            return True
    return False


@device_function
def relocate(
    ranges: Ranges,
    stores: Stores,
    p: int,
    change: Change,
    holder: int,
    log: DecisionLog,
) -> None:
    """Move the replicas of a range to where they should be, and its lease to ``holder``.

    Those that stay but change their kind do so first, in pairs, so that no data moves for it.
    """
    source = leaseholder(ranges, p)
    give_lease(ranges, stores, p, NOWHERE)
    for kind in range(2):
        while True:
            s, x = misplaced(ranges, p, change.after, kind)
            if s < 0 or x < 0:
                break
            swap(ranges, stores, p, x, s)
            note(log, VOTER_BY_LOAD, p, s, x, 0.0)
    for i in range(change.after.size[0]):
        move_in(ranges, stores, p, VOTER, change.after.voter[i], change.after, log)
    for i in range(change.after.size[1]):
        move_in(ranges, stores, p, NON_VOTER, change.after.non_voter[i], change.after, log)
    give_lease(ranges, stores, p, holder)
    note(log, LEASE_WITH_REPLICAS, p, source, holder, 0.0)


@inline_only
def stays_as(after: Members, role: int, s: int) -> bool:
    """Whether a replica of that kind should be on a store."""
    if role == VOTER:
        return place_of(after.voter, after.size[0], s) >= 0
    return place_of(after.non_voter, after.size[1], s) >= 0


@device_function
def misplaced(ranges: Ranges, p: int, after: Members, kind: int) -> tuple[int, int]:
    """Return a voter and a non-voter that should change places, or -1 for one of them.

    One of them stays on its store: for ``kind`` 0 the voter, as a non-voter, for 1 the non-voter.
    The other is best one that stays too.
    """
    voter, other = NOWHERE, NOWHERE
    for turn in range(2):
        for k in range(ranges.first[p], ranges.first[p + 1]):
            s = index(ranges.store[k])
            if s < 0 or stays_as(after, ranges.role[k], s):
                continue
            stays = stays_as(after, NON_VOTER if ranges.role[k] == VOTER else VOTER, s)
            if ranges.role[k] == VOTER and voter < 0 and (stays or (kind == 1 and turn == 1)):
                voter = s
            if ranges.role[k] == NON_VOTER and other < 0 and (stays or (kind == 0 and turn == 1)):
                other = s
    return voter, other


@device_function
def move_in(
    ranges: Ranges,
    stores: Stores,
    p: int,
    role: int,
    target: int,
    after: Members,
    log: DecisionLog,
) -> None:
    """Move a replica of that kind to ``target``, unless there is one, from where none should be."""
    if slot_of(ranges, p, target) >= 0:
        return
    for k in range(ranges.first[p], ranges.first[p + 1]):
        s = index(ranges.store[k])
        if s < 0 or ranges.role[k] != role or stays_as(after, role, s):
            continue
        swap(ranges, stores, p, target, s)
        note(log, VOTER_BY_LOAD if role == VOTER else NON_VOTER_BY_LOAD, p, s, target, 0.0)
        return
