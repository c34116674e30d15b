"""Where a range gets one more replica.

References
----------
CockroachDB, ``allocator_scorer.go``, ``rankedCandidateListForAllocation``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only
from evenkeel_kernels.cockroach.constraints import (
    NECESSARY,
    VALID,
    Analysis,
    analyse,
    both,
    check_add,
    check_replace,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.scores import Candidate, balance, compare, ranges_of, two_of
from evenkeel_kernels.cockroach.tables import (
    BLOCK_ALL,
    CLOSE,
    NON_VOTER,
    NOWHERE,
    VOTER,
    Configs,
    Flags,
    Floats,
    Localities,
    Longs,
    Members,
    Scorer,
    Settings,
    Stores,
    diversity,
    fraction_used,
    may_receive,
    place_of,
)


@by_reference
class AddRoom(NamedTuple):
    """Scratch for one decision."""

    code: NDArray[np.int8]  # (S,) what the constraints say; 0 for a store that is out
    diversity: Floats  # (S,) to the replicas there are
    chosen: Longs  # (S,) the stores that tie at the top
    barred: Flags  # (S,) stores that are left out, since the cluster's own rules refused them


def room_to_add(barred: Flags) -> AddRoom:
    """Make room for decisions about stores of which some may be ``barred (S,)``."""
    stores = len(barred)
    return AddRoom(np.zeros(stores, np.int8), np.zeros(stores), np.zeros(stores, np.int64), barred)


@device_function
def candidates_to_add(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    replaced: int,
    analysis: Analysis,
    room: AddRoom,
    recovers: bool,
) -> tuple[int, float]:
    """Fill ``room.chosen`` with the best stores for one more replica.

    Returns how many, and the mean of what the scorer levels over all that constraints allow.

    The replica is a VOTER or a NON_VOTER. It may stand in for the one on store ``replaced``, which
    then does not count as there; -1 for none. What ``recovers`` takes any store of the best
    constraints and diversity, to spread wider. O(S (E + W)).
    """
    analyse(localities, configs, q, members, analysis)
    table, voters = every(configs, q, analysis), of_voters(configs, q, analysis)
    limit = io_limit(stores, settings)
    number, total = 0, 0.0
    for s in range(stores.io.size):
        room.code[s] = 0
        if not may_receive(stores.status[s]) or fraction_used(stores, s) >= settings.disk_full:
            continue
        if settings.io_enforcement == BLOCK_ALL and stores.io[s] >= limit:
            continue
        a = localities.alike[s]
        if replaced < 0:
            found = check_add(localities, table, a)
            if role == VOTER:
                found = both(found, check_add(localities, voters, a))
        else:
            b = localities.alike[replaced]
            found = check_replace(localities, table, a, b)
            if role == VOTER:
                found = both(found, check_replace(localities, voters, a, b))
        if found & VALID:
            room.code[s] = found
            number += 1
            total += stores.amount[scorer.row, s]
    if number == 0:
        return 0, 0.0
    mean = total / number
    exclude_held(localities, members, role, replaced, room)
    size = choose(localities, stores, scorer, members, role, replaced, mean, recovers, room)
    return size, mean


@inline_only
def io_limit(stores: Stores, settings: Settings) -> float:
    """Return the score from which a store's disk bandwidth is overloaded. O(S)."""
    number, total = 0, 0.0
    for s in range(stores.io.size):
        if may_receive(stores.status[s]):
            number += 1
            total += stores.io[s]
    mean = total / number if number else 0.0
    return max(settings.io_threshold, mean * settings.io_factor)


@inline_only
def exclude_held(
    localities: Localities, members: Members, role: int, replaced: int, room: AddRoom
) -> None:
    """Take out the stores of hosts that hold a replica; a voter may go to a non-voter's store."""
    for i in range(members.size[0]):
        if members.voter[i] != replaced:
            exclude_host(localities, members.voter[i], room)
    if role == NON_VOTER:
        for i in range(members.size[1]):
            if members.non_voter[i] != replaced:
                exclude_host(localities, members.non_voter[i], room)


@inline_only
def exclude_host(localities: Localities, s: int, room: AddRoom) -> None:
    """Take out all stores of the host of ``s``."""
    host = localities.host[s]
    for i in range(localities.host_first[host], localities.host_first[host + 1]):
        room.code[localities.host_store[i]] = 0


@inline_only
def diversity_to(
    localities: Localities, members: Members, role: int, replaced: int, s: int
) -> float:
    """Return the mean diversity of a store to the replicas it is compared with; 1 to none. O(W)."""
    total, number = 0.0, 0
    for i in range(members.size[0]):
        if members.voter[i] != replaced:
            total += diversity(localities, s, members.voter[i])
            number += 1
    if role == NON_VOTER:
        for i in range(members.size[1]):
            if members.non_voter[i] != replaced:
                total += diversity(localities, s, members.non_voter[i])
                number += 1
    return total / number if number else 1.0


@device_function
def choose(
    localities: Localities,
    stores: Stores,
    scorer: Scorer,
    members: Members,
    role: int,
    replaced: int,
    mean: float,
    recovers: bool,
    room: AddRoom,
) -> int:
    """Keep the stores that tie at the top of the ladder, range counts left aside. O(S W)."""
    needed, farthest = 0, -1.0
    for s in range(stores.io.size):
        if room.code[s] == 0 or not stores.ready[s] or room.barred[s]:
            room.code[s] = 0
            continue
        room.diversity[s] = diversity_to(localities, members, role, replaced, s)
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
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    replaced: int,
    analysis: Analysis,
    room: AddRoom,
    rng_state: NDArray[np.uint64],
) -> int:
    """Return the store for one more replica, or -1; ``rng_state (1,)`` draws two of those that tie.

    As `candidates_to_add`; what stands in for another one recovers it. O(S (E + W)).
    """
    recovers = replaced >= 0 and settings.recover_to_good
    size, mean = candidates_to_add(
        localities,
        stores,
        configs,
        settings,
        scorer,
        q,
        members,
        role,
        replaced,
        analysis,
        room,
        recovers,
    )
    if size == 0:
        return NOWHERE
    first, second = two_of(size, rng_state)
    c = as_candidate(stores, scorer, members, role, mean, room.chosen[first])
    o = as_candidate(stores, scorer, members, role, mean, room.chosen[second])
    return o.store if compare(o, c) > 0.0 else c.store


@inline_only
def as_candidate(
    stores: Stores, scorer: Scorer, members: Members, role: int, mean: float, s: int
) -> Candidate:
    """Return a store of the set that ties on constraints and diversity. O(W)."""
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
