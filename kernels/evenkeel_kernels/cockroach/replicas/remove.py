"""Which replica a range can best do without.

References
----------
CockroachDB, ``allocator_scorer.go``, ``candidateListForRemoval``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only
from evenkeel_kernels.cockroach.constraints import (
    VALID,
    Analysis,
    analyse,
    both,
    check_remove,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.quorum import removable
from evenkeel_kernels.cockroach.scores import (
    AROUND_THE_MEAN,
    balance,
    is_load,
    keeps_away,
    ranges_of,
    two_of,
)
from evenkeel_kernels.cockroach.tables import (
    CLOSE,
    DECOMMISSIONING,
    LEADERLESS,
    LEADING,
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
    is_live,
    place_of,
)
from evenkeel_kernels.core.problem import index


@by_reference
class RemoveRoom(NamedTuple):
    """Scratch for one decision about up to W replicas of a kind.

    Attributes
    ----------
    free : (W,) bool
        Whether raft can do without it.
    code : (W,) int8
        What the constraints say.
    full : (W,) bool
        Its disk.
    diversity : (W,) float64
        To the other replicas.
    converges, balance : (W,) int64
        Within the worst; 0 before these are known.
    worst : (W,) int64
        Places of those that tie at the bottom.
    """

    free: Flags
    code: NDArray[np.int8]
    full: Flags
    diversity: Floats
    converges: NDArray[np.int64]
    balance: NDArray[np.int64]
    worst: Longs


def room_to_remove(width: int) -> RemoveRoom:
    """Make room for decisions about ranges of so many replicas."""
    return RemoveRoom(
        np.zeros(width, np.bool_),
        np.zeros(width, np.int8),
        np.zeros(width, np.bool_),
        np.zeros(width),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
    )


@device_function
def candidates_to_remove(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    newest: int,
    analysis: Analysis,
    room: RemoveRoom,
) -> int:
    """Fill ``room.worst`` with the places of the replicas of one of which goes; returns how many.

    Places are those of the VOTERs or NON_VOTERs in ``members``. The ``newest``, a place or -1, has
    only just come. Replicas on dead or decommissioned stores are left to other actions.
    O(W (W + E)).
    """
    analyse(localities, configs, q, members, analysis)
    row, size = (members.voter, members.size[0]) if role == VOTER else row_of_others(members)
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
            judge(localities, stores, configs, settings, q, members, role, i, analysis, room)
            room.worst[found] = i
            found += 1
    found = keep_worst(room, found)
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
    return keep_worst(room, found)


@inline_only
def row_of_others(members: Members) -> tuple[Longs, int]:
    """Return the non-voters."""
    return members.non_voter, members.size[1]


@device_function
def judge(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    q: int,
    members: Members,
    role: int,
    i: int,
    analysis: Analysis,
    room: RemoveRoom,
) -> None:
    """Say what one replica is worth, range counts left aside. O(W + E)."""
    s = members.voter[i] if role == VOTER else members.non_voter[i]
    a = localities.alike[s]
    found = check_remove(localities, every(configs, q, analysis), a)
    if role == VOTER:
        found = both(found, check_remove(localities, of_voters(configs, q, analysis), a))
    if not found & VALID:
        found = 0
    room.code[i] = found
    room.full[i] = found != 0 and fraction_used(stores, s) >= settings.disk_full
    room.diversity[i] = diversity_of(localities, members, role, s) if found else 0.0
    room.converges[i] = AROUND_THE_MEAN
    room.balance[i] = AROUND_THE_MEAN


@inline_only
def diversity_of(localities: Localities, members: Members, role: int, s: int) -> float:
    """Return the mean diversity of a replica to the others; 1 if it is alone. O(W)."""
    total, number = 0.0, 0
    for i in range(members.size[0]):
        if members.voter[i] != s:
            total += diversity(localities, s, members.voter[i])
            number += 1
    if role == NON_VOTER:
        for i in range(members.size[1]):
            if members.non_voter[i] != s:
                total += diversity(localities, s, members.non_voter[i])
                number += 1
    return total / number if number else 1.0


@device_function
def keep_worst(room: RemoveRoom, found: int) -> int:
    """Keep of ``found`` places those that tie at the bottom; returns how many. O(W).

    Invalid ones come first, then those on full disks.
    """
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
        if bottom < 0 or is_below(room, room.worst[j], bottom):
            bottom = room.worst[j]
    for j in range(found):
        if not is_below(room, bottom, room.worst[j]):
            room.worst[kept] = room.worst[j]
            kept += 1
    return kept


@inline_only
def is_below(room: RemoveRoom, i: int, j: int) -> bool:
    """Whether place ``i`` is worse than ``j``: necessity, diversity, convergence, balance."""
    if room.code[i] != room.code[j]:
        return room.code[i] < room.code[j]
    if abs(room.diversity[i] - room.diversity[j]) > CLOSE:
        return room.diversity[i] < room.diversity[j]
    if room.converges[i] != room.converges[j]:
        return room.converges[i] < room.converges[j]
    return room.balance[i] < room.balance[j]


@device_function
def remove_target(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    newest: int,
    analysis: Analysis,
    room: RemoveRoom,
    rng_state: NDArray[np.uint64],
) -> int:
    """Return the store that loses its replica, or -1; ``rng_state (1,)`` draws two of the worst.

    As `candidates_to_remove`; ``newest`` is a store here, or -1. O(W (W + E)).
    """
    place = place_of(members.voter, members.size[0], newest) if role == VOTER else NOWHERE
    size = candidates_to_remove(
        localities, stores, configs, settings, scorer, q, members, role, place, analysis, room
    )
    if size == 0:
        return NOWHERE
    first, second = two_of(size, rng_state)
    row = members.voter if role == VOTER else members.non_voter
    a, b = row[room.worst[first]], row[room.worst[second]]
    return b if ranges_of(scorer, stores, b) > ranges_of(scorer, stores, a) else a
