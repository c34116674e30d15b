"""Choose the store for one more replica of a range, and the replica to remove.

References
----------
CockroachDB, ``allocator_scorer.go``, ``rankedCandidateListForAllocation`` and
``candidateListForRemoval``.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.cockroach.actions import removable
from evenkeel_kernels.cockroach.constraints import (
    ADD,
    NECESSARY,
    REPLACE,
    VALID,
    analyse,
    both,
    check,
    check_remove,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.context import AllocatorContext
from evenkeel_kernels.cockroach.scores import (
    AROUND_THE_MEAN,
    Candidate,
    balance,
    compare,
    is_load,
    keeps_away,
    ranges_of,
    two_of,
)
from evenkeel_kernels.cockroach.tables import (
    BLOCK_ALL,
    CLOSE,
    DECOMMISSIONING,
    LEADERLESS,
    LEADING,
    NOWHERE,
    VOTER,
    Longs,
    Members,
    compared,
    diversity,
    fraction_used,
    is_live,
    may_receive,
    member_at,
    place_of,
)
from evenkeel_kernels.core.problem import index


@device_function
def candidates_to_add(
    context: AllocatorContext, q: int, role: int, replaced: int, recovers: bool
) -> tuple[int, float]:
    """Fill ``context.adding.chosen`` with the best stores for one more replica.

    Returns how many, and the mean of what the scorer levels over all that constraints allow.

    The replica is a VOTER or a NON_VOTER. It may stand in for the one on store ``replaced``, which
    then does not count as there; -1 for none. What ``recovers`` takes any store of the best
    constraints and diversity, to spread wider. O(S (E + W)).
    """
    localities, stores, settings = context.localities, context.stores, context.settings
    scorer, room = context.scorer, context.adding
    analyse(context, q)
    table, voters = every(context, q), of_voters(context, q)
    limit = io_limit(context)
    change, b = (ADD, 0) if replaced < 0 else (REPLACE, localities.alike[replaced])
    number, total = 0, 0.0
    for s in range(stores.io.size):
        room.code[s] = 0
        if not may_receive(stores.status[s]) or fraction_used(stores, s) >= settings.disk_full:
            continue
        if settings.io_enforcement == BLOCK_ALL and stores.io[s] >= limit:
            continue
        found = check(localities, table, change, localities.alike[s], b)
        if role == VOTER:
            found = both(found, check(localities, voters, change, localities.alike[s], b))
        if found & VALID:
            room.code[s] = found
            number += 1
            total += stores.amount[scorer.row, s]
    if number == 0:
        return 0, 0.0
    mean = total / number
    exclude_held(context, role, replaced)
    return choose(context, role, replaced, mean, recovers), mean


@inline_only
def io_limit(context: AllocatorContext) -> float:
    """Return the score from which a store's disk bandwidth is overloaded. O(S)."""
    stores, settings = context.stores, context.settings
    number, total = 0, 0.0
    for s in range(stores.io.size):
        if may_receive(stores.status[s]):
            number += 1
            total += stores.io[s]
    mean = total / number if number else 0.0
    return max(settings.io_threshold, mean * settings.io_factor)


@inline_only
def exclude_held(context: AllocatorContext, role: int, replaced: int) -> None:
    """Take out the stores of hosts that hold a replica; a voter may go to a non-voter's store."""
    localities, members = context.localities, context.members
    for i in range(compared(members, role)):
        if member_at(members, i) != replaced:
            host = localities.host[member_at(members, i)]
            for j in range(localities.host_first[host], localities.host_first[host + 1]):
                context.adding.code[localities.host_store[j]] = 0


@inline_only
def diversity_to(context: AllocatorContext, role: int, besides: int, s: int) -> float:
    """Return the mean diversity of a store to all replicas but ``besides``; 1 to none. O(W)."""
    localities, members = context.localities, context.members
    total, number = 0.0, 0
    for i in range(compared(members, role)):
        if member_at(members, i) != besides:
            total += diversity(localities, s, member_at(members, i))
            number += 1
    return total / number if number else 1.0


@device_function
def choose(context: AllocatorContext, role: int, replaced: int, mean: float, recovers: bool) -> int:
    """Keep the stores that tie at the top of the ladder, range counts left aside. O(S W)."""
    stores, scorer, members = context.stores, context.scorer, context.members
    room = context.adding
    needed, farthest = 0, -1.0
    for s in range(stores.io.size):
        if room.code[s] == 0 or not stores.ready[s] or context.barred[s]:
            room.code[s] = 0
            continue
        room.diversity[s] = diversity_to(context, role, replaced, s)
        need = room.code[s] & NECESSARY
        if need > needed or (need == needed and room.diversity[s] > farthest):
            needed, farthest = need, room.diversity[s]
    level, held = -2, False
    size = 0
    for s in range(stores.io.size):
        if room.code[s] == 0 or room.code[s] & NECESSARY != needed:
            continue
        if room.diversity[s] < farthest - CLOSE:
            continue
        if not recovers:
            its_level = balance(scorer, stores.amount[scorer.row, s], mean)
            its_hold = role == VOTER and place_of(members.non_voter, members.size[1], s) >= 0
            if its_level > level or (its_level == level and its_hold and not held):
                level, held, size = its_level, its_hold, 0
            elif its_level < level or its_hold != held:
                continue
        room.chosen[size] = s
        size += 1
    return size


@device_function
def add_target(
    context: AllocatorContext, q: int, role: int, replaced: int, rng_state: NDArray[np.uint64]
) -> int:
    """Return the store for one more replica, or -1; ``rng_state (1,)`` draws two that tie."""
    # as `candidates_to_add`; what stands in for another one recovers it. O(S (E + W)).
    settings, room = context.settings, context.adding
    recovers = replaced >= 0 and settings.recover_to_good
    size, mean = candidates_to_add(context, q, role, replaced, recovers)
    if size == 0:
        return NOWHERE
    first, second = two_of(size, rng_state)
    c = as_candidate(context, role, mean, room.chosen[first])
    o = as_candidate(context, role, mean, room.chosen[second])
    return o.store if compare(o, c) > 0.0 else c.store


@inline_only
def as_candidate(context: AllocatorContext, role: int, mean: float, s: int) -> Candidate:
    """Return a store of the set that ties on constraints and diversity. O(W)."""
    stores, scorer, members = context.stores, context.scorer, context.members
    return Candidate(
        store=s,
        valid=True,
        full=False,
        necessary=False,
        voter_necessary=False,
        diversity=0.0,
        overloaded=False,
        io=0.0,
        converges=0,
        balance=balance(scorer, stores.amount[scorer.row, s], mean),
        non_voter=role == VOTER and place_of(members.non_voter, members.size[1], s) >= 0,
        ranges=ranges_of(scorer, stores, s),
    )


@inline_only
def row_of(members: Members, role: int) -> tuple[Longs, int]:
    """Return the stores of the replicas of one role, and how many they are."""
    return (members.voter if role == VOTER else members.non_voter), members.size[role]


@device_function
def candidates_to_remove(context: AllocatorContext, q: int, role: int, newest: int) -> int:
    """Fill ``context.removing.worst`` with replicas of one of which goes; returns how many."""
    # They are places among the VOTERs or NON_VOTERs of ``context.members``. The ``newest``, a place
    # or -1, has only just come. Replicas on dead or decommissioned stores are left to other
    # actions. O(W (W + E)).
    stores, scorer, members = context.stores, context.scorer, context.members
    room = context.removing
    analyse(context, q)
    row, size = row_of(members, role)
    if role == VOTER and members.size[2] == LEADERLESS:
        return 0
    if role == VOTER and members.size[2] == LEADING:
        removable(members.up_to_date, size, newest, room.free)
    else:
        for i in range(size):
            room.free[i] = True
    found = 0
    for i in range(size):
        state = stores.status[row[i]]
        if room.free[i] and is_live(state) and state != DECOMMISSIONING:
            judge(context, q, role, i)
            room.worst[found] = i
            found += 1
    found = keep_worst(context, found)
    total = 0.0
    most = index(NOWHERE)
    for j in range(found):
        value = stores.amount[scorer.row, row[room.worst[j]]]
        total += value
        if most < 0 or value > stores.amount[scorer.row, row[most]]:
            most = room.worst[j]
    for j in range(found):
        i = room.worst[j]
        value, mean = stores.amount[scorer.row, row[i]], total / found
        room.balance[i] = balance(scorer, value, mean)
        room.converges[i] = keeps_away(scorer, value, mean)
        if is_load(scorer):
            room.converges[i] = -1 if i == most else 0
    return keep_worst(context, found)


@device_function
def judge(context: AllocatorContext, q: int, role: int, i: int) -> None:
    """Say what one replica is worth, range counts left aside. O(W + E)."""
    localities, stores, settings = context.localities, context.stores, context.settings
    members, room = context.members, context.removing
    s = members.voter[i] if role == VOTER else members.non_voter[i]
    a = localities.alike[s]
    found = check_remove(localities, every(context, q), a)
    if role == VOTER:
        found = both(found, check_remove(localities, of_voters(context, q), a))
    if not found & VALID:
        found = 0
    room.code[i] = found
    room.full[i] = found != 0 and fraction_used(stores, s) >= settings.disk_full
    room.diversity[i] = diversity_to(context, role, s, s) if found else 0.0
    room.converges[i] = AROUND_THE_MEAN
    room.balance[i] = AROUND_THE_MEAN


@device_function
def keep_worst(context: AllocatorContext, found: int) -> int:
    """Keep of ``found`` places those that tie at the bottom; returns how many. O(W)."""
    # invalid ones come first, then those on full disks
    room = context.removing
    invalid, full = 0, 0
    for j in range(found):
        invalid += room.code[room.worst[j]] == 0
        full += room.full[room.worst[j]]
    kept = 0
    if 0 < invalid < found:
        for j in range(found):
            if room.code[room.worst[j]] == 0:
                room.worst[kept] = room.worst[j]
                kept += 1
        return kept
    if 0 < full < found:
        for j in range(found):
            if room.full[room.worst[j]]:
                room.worst[kept] = room.worst[j]
                kept += 1
        return kept
    bottom = index(NOWHERE)
    for j in range(found):
        if bottom < 0 or is_below(context, room.worst[j], bottom):
            bottom = room.worst[j]
    for j in range(found):
        if not is_below(context, bottom, room.worst[j]):
            room.worst[kept] = room.worst[j]
            kept += 1
    return kept


@inline_only
def is_below(context: AllocatorContext, i: int, j: int) -> bool:
    """Whether place ``i`` is worse than ``j``: necessity, diversity, convergence, balance."""
    room = context.removing
    if room.code[i] != room.code[j]:
        return room.code[i] < room.code[j]
    if abs(room.diversity[i] - room.diversity[j]) > CLOSE:
        return room.diversity[i] < room.diversity[j]
    if room.converges[i] != room.converges[j]:
        return room.converges[i] < room.converges[j]
    return room.balance[i] < room.balance[j]


@device_function
def remove_target(
    context: AllocatorContext, q: int, role: int, newest: int, rng_state: NDArray[np.uint64]
) -> int:
    """Return the store that loses its replica, or -1; ``rng_state (1,)`` draws two of the worst."""
    # As `candidates_to_remove`; ``newest`` is a store here, or -1. O(W (W + E)).
    stores, scorer, members = context.stores, context.scorer, context.members
    room = context.removing
    place = place_of(members.voter, members.size[0], newest) if role == VOTER else NOWHERE
    size = candidates_to_remove(context, q, role, place)
    if size == 0:
        return NOWHERE
    first, second = two_of(size, rng_state)
    row = members.voter if role == VOTER else members.non_voter
    a, b = row[room.worst[first]], row[room.worst[second]]
    return b if ranges_of(scorer, stores, b) > ranges_of(scorer, stores, a) else a
