"""Which stores could take over each replica of a range without making it worse.

For each replica these are the stores that are not worse than it by constraints, disk and diversity,
and of them those that are best: its *equivalence class*. Only within it are counts or loads
compared. What constraints and diversity say is worked out once for each class of stores that are
alike; the stores of hosts that hold a replica of the range are *special* and looked at one by one.

References
----------
CockroachDB, ``allocator_scorer.go``, ``rankedCandidateListForRebalancing``, steps 1 and 2.
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
    check_rebalance,
    check_remove,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.store_stats import Tally, is_listed
from evenkeel_kernels.cockroach.tables import (
    CLOSE,
    NON_VOTER,
    RANGES,
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
    place_of,
)
from evenkeel_kernels.core.problem import index

OUT = -1
"""Rank of stores that are no candidates."""

VOTER_NECESSARY = 4
"""Bit of a rank, above VALID and below what NECESSARY becomes."""


@by_reference
class ClassRoom(NamedTuple):
    """Scratch, and the equivalence classes found: R replicas of a kind, X special stores.

    Attributes
    ----------
    replica : (R,) int64
        Stores of the replicas, ascending.
    listed, valid, necessary, full : (R,) bool
        Of each replica; one that is not listed has no class.
    current : (1,) float64
        Diversity of the range.
    target_necessary, voter_necessary : (R,) bool
        Of the class of each replica.
    target_diversity : (R,) float64
        Of the range, once a store of the class has taken over.
    number : (R,) int64
        Stores of each equivalence class.
    total, least : (R,) float64
        What they have of what the scorer levels, and the fewest ranges of one; inf for none.
    alike : (R, C) bool
        Whether the stores of a class that are not special belong to it.
    special : (X,) int64
        Stores of hosts that hold a replica.
    special_in : (R, X) bool
        Whether a special store belongs to it.
    without_number, without_total : (C,) int64, float64
        What the special stores have of a class.
    reach : (C,) float64
        Diversity of a class to all replicas that it is compared with, in all.
    rank : (C,) int8
        What the constraints say of a class, for the replica at hand.
    size : (2,) int64
        Replicas and special stores.
    """

    replica: Longs
    listed: Flags
    valid: Flags
    necessary: Flags
    full: Flags
    current: Floats
    target_necessary: Flags
    voter_necessary: Flags
    target_diversity: Floats
    number: Longs
    total: Floats
    least: Floats
    alike: Flags
    special: Longs
    special_in: Flags
    without_number: Longs
    without_total: Floats
    reach: Floats
    rank: NDArray[np.int8]
    size: Longs


def room_for_classes(localities: Localities, width: int) -> ClassRoom:
    """Make room for decisions about ranges of so many replicas of both kinds together."""
    classes, crowd = len(localities.pair), int(np.diff(localities.host_first).max(initial=1))
    flags = [np.zeros(width, np.bool_) for _ in range(6)]
    return ClassRoom(
        replica=np.zeros(width, np.int64),
        listed=flags[0],
        valid=flags[1],
        necessary=flags[2],
        full=flags[3],
        current=np.zeros(1),
        target_necessary=flags[4],
        voter_necessary=flags[5],
        target_diversity=np.zeros(width),
        number=np.zeros(width, np.int64),
        total=np.zeros(width),
        least=np.zeros(width),
        alike=np.zeros((width, classes), np.bool_),
        special=np.zeros(width * crowd, np.int64),
        special_in=np.zeros((width, width * crowd), np.bool_),
        without_number=np.zeros(classes, np.int64),
        without_total=np.zeros(classes),
        reach=np.zeros(classes),
        rank=np.zeros(classes, np.int8),
        size=np.zeros(2, np.int64),
    )


@device_function
def find_classes(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    analysis: Analysis,
    room: ClassRoom,
) -> bool:
    """Find the equivalence class of every VOTER, or every NON_VOTER; whether one must move.

    O(R (C (E + 1) + X (W + E))).
    """
    analyse(localities, configs, q, members, analysis)
    take_replicas(members, role, room)
    take_specials(localities, stores, tally, scorer, members, room)
    take_reach(localities, members, role, room)
    must_move = False
    for i in range(room.size[0]):
        s = room.replica[i]
        room.listed[i] = is_listed(scorer, stores, s)
        room.number[i] = 0
        if not room.listed[i]:
            continue
        a = localities.alike[s]
        found = check_remove(localities, every(configs, q, analysis), a)
        by_voters = check_remove(localities, of_voters(configs, q, analysis), a)
        if role == VOTER:
            found = both(found, by_voters)
        room.valid[i] = found & VALID != 0
        room.necessary[i] = found & NECESSARY != 0
        room.full[i] = fraction_used(stores, s) >= settings.disk_full
        if not room.valid[i] or room.full[i]:
            must_move = True
        promotes = role == VOTER and by_voters & NECESSARY == 0
        better = find_class(
            localities,
            stores,
            tally,
            configs,
            scorer,
            q,
            members,
            role,
            promotes,
            analysis,
            room,
            i,
        )
        must_move = must_move or better
    return must_move


@inline_only
def take_replicas(members: Members, role: int, room: ClassRoom) -> None:
    """Copy the replicas of the kind that may move."""
    if role == VOTER:
        room.size[0] = members.size[0]
        for i in range(members.size[0]):
            room.replica[i] = members.voter[i]
    else:
        room.size[0] = members.size[1]
        for i in range(members.size[1]):
            room.replica[i] = members.non_voter[i]


@inline_only
def take_specials(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    scorer: Scorer,
    members: Members,
    room: ClassRoom,
) -> None:
    """List the stores of hosts that hold a replica, and what each class has without them."""
    for a in range(room.without_number.size):
        room.without_number[a] = 0
        room.without_total[a] = 0.0
    room.size[1] = 0
    for i in range(members.size[0]):
        take_host(localities, stores, tally, scorer, members.voter[i], room)
    for i in range(members.size[1]):
        take_host(localities, stores, tally, scorer, members.non_voter[i], room)


@device_function
def take_host(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    scorer: Scorer,
    replica: int,
    room: ClassRoom,
) -> None:
    """List the stores of one replica's host, unless they are listed."""
    host = localities.host[replica]
    for i in range(localities.host_first[host], localities.host_first[host + 1]):
        s = localities.host_store[i]
        if place_of(room.special, room.size[1], s) >= 0:
            return
        room.special[room.size[1]] = s
        room.size[1] += 1
        if tally.eligible[s]:
            a = localities.alike[s]
            room.without_number[a] += 1
            room.without_total[a] += stores.amount[scorer.row, s]


@inline_only
def take_reach(localities: Localities, members: Members, role: int, room: ClassRoom) -> None:
    """Sum up the diversity of each class to all replicas, and of these among themselves."""
    for a in range(room.reach.size):
        reach = 0.0
        for i in range(members.size[0]):
            reach += localities.pair[a, localities.alike[members.voter[i]]]
        if role == NON_VOTER:
            for i in range(members.size[1]):
                reach += localities.pair[a, localities.alike[members.non_voter[i]]]
        room.reach[a] = reach
    others = members.size[1] if role == NON_VOTER else 0
    among = 0.0
    for i in range(members.size[0] + others):
        for j in range(i):
            among += diversity(localities, compared(members, i), compared(members, j))
    pairs = pairs_of(members.size[0] + others)
    room.current[0] = among / pairs if pairs else 1.0


@inline_only
def compared(members: Members, i: int) -> int:
    """Return the store of the ``i``-th replica, voters first."""
    n = members.size[0]
    return members.voter[i] if i < n else members.non_voter[i - n]


@inline_only
def pairs_of(n: int) -> int:
    """Return how many pairs ``n`` replicas make."""
    return n * (n - 1) // 2


@device_function
def find_class(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    promotes: bool,
    analysis: Analysis,
    room: ClassRoom,
    i: int,
) -> bool:
    """Find the class of replica ``i``; whether it is strictly better than the replica. O(C E)."""
    r = room.replica[i]
    b = localities.alike[r]
    n = members.size[0] + (members.size[1] if role == NON_VOTER else 0)
    pairs = pairs_of(n)
    rest = rest_of(localities, members, n, r, room.current[0] * pairs)
    top_rank, top = index(OUT), -1.0
    for a in range(room.rank.size):
        room.rank[a] = OUT
        room.alike[i, a] = False
        if tally.number[a] == room.without_number[a]:
            continue
        room.rank[a] = rank_of(localities, configs, q, role, False, analysis, a, b)
        if room.rank[a] < top_rank or room.rank[a] == OUT:
            continue
        score = share(rest + room.reach[a] - localities.pair[a, b], pairs)
        if room.rank[a] > top_rank or score > top:
            top_rank, top = index(room.rank[a]), score
    for x in range(room.size[1]):
        s = room.special[x]
        room.special_in[i, x] = False
        if not is_candidate(tally, members, role, s, r):
            continue
        rank = special_rank(localities, configs, q, members, role, promotes, analysis, s, b)
        score = share(rest + reach_of(localities, members, n, s, r), pairs)
        if rank > top_rank or (rank == top_rank and score > top):
            top_rank, top = rank, score
    if top_rank == OUT:
        return False
    own_rank = VALID | (2 * VOTER_NECESSARY if room.necessary[i] else 0)
    if room.valid[i] and not room.full[i]:
        if top_rank < own_rank or (top_rank == own_rank and top < room.current[0] - CLOSE):
            return False
    room.target_necessary[i] = top_rank >= 2 * VOTER_NECESSARY
    room.voter_necessary[i] = top_rank & VOTER_NECESSARY != 0
    room.target_diversity[i] = top
    gather(
        localities, stores, tally, configs, scorer, q, members, role, promotes, analysis, room, i,
        top_rank, rest,
    )  # fmt: skip
    return top_rank > own_rank or (top_rank == own_rank and top > room.current[0] + CLOSE)


@device_function
def gather(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    promotes: bool,
    analysis: Analysis,
    room: ClassRoom,
    i: int,
    top_rank: int,
    rest: float,
) -> None:
    """Mark who ties at the top for replica ``i``, and sum up what they have. O(C + X (W + E))."""
    r = room.replica[i]
    b = localities.alike[r]
    top = room.target_diversity[i]
    n = members.size[0] + (members.size[1] if role == NON_VOTER else 0)
    pairs = pairs_of(n)
    number, total, least = 0, 0.0, np.inf
    for a in range(room.rank.size):
        if room.rank[a] != top_rank:
            continue
        score = share(rest + room.reach[a] - localities.pair[a, b], pairs)
        if score >= top - CLOSE:
            room.alike[i, a] = True
            number += tally.number[a] - room.without_number[a]
            total += tally.total[a] - room.without_total[a]
            least = min(least, tally.least[a])
    for x in range(room.size[1]):
        s = room.special[x]
        if not is_candidate(tally, members, role, s, r):
            continue
        rank = special_rank(localities, configs, q, members, role, promotes, analysis, s, b)
        if rank != top_rank:
            continue
        if share(rest + reach_of(localities, members, n, s, r), pairs) >= top - CLOSE:
            room.special_in[i, x] = True
            number += 1
            total += stores.amount[scorer.row, s]
            least = min(least, stores.amount[RANGES, s])
    room.number[i] = number
    room.total[i] = total
    room.least[i] = least


@inline_only
def is_candidate(tally: Tally, members: Members, role: int, s: int, r: int) -> bool:
    """Whether store ``s`` could take over from ``r``, as far as its state goes. O(W)."""
    if s == r or not tally.eligible[s]:
        return False
    return role == VOTER or place_of(members.voter, members.size[0], s) < 0


@device_function
def rank_of(
    localities: Localities,
    configs: Configs,
    q: int,
    role: int,
    promotes: bool,
    analysis: Analysis,
    a: int,
    b: int,
) -> int:
    """Return how a store of class ``a`` does for one of class ``b`` by constraints. O(E).

    OUT, or the larger the better: VALID, VOTER_NECESSARY where it ``promotes`` a non-voter that
    voters' constraints need, and twice that where it is necessary.
    """
    found = check_rebalance(localities, every(configs, q, analysis), a, b)
    by_voters = 0
    if role == VOTER:
        by_voters = check_rebalance(localities, of_voters(configs, q, analysis), a, b)
        found = both(found, by_voters)
    if found & VALID == 0:
        return OUT
    rank = VALID
    if promotes and by_voters & NECESSARY:
        rank |= VOTER_NECESSARY
    if found & NECESSARY:
        rank |= 2 * VOTER_NECESSARY
    return rank


@inline_only
def special_rank(
    localities: Localities,
    configs: Configs,
    q: int,
    members: Members,
    role: int,
    promotes: bool,
    analysis: Analysis,
    s: int,
    b: int,
) -> int:
    """Return the rank of a special store, which may hold a non-voter of the range. O(W + E)."""
    holds = promotes and place_of(members.non_voter, members.size[1], s) >= 0
    return rank_of(localities, configs, q, role, holds, analysis, localities.alike[s], b)


@inline_only
def rest_of(localities: Localities, members: Members, n: int, r: int, among: float) -> float:
    """Return the diversity of all pairs without ``r``, of ``among`` with it. O(W)."""
    for i in range(n):
        if compared(members, i) != r:
            among -= diversity(localities, r, compared(members, i))
    return among


@inline_only
def reach_of(localities: Localities, members: Members, n: int, s: int, r: int) -> float:
    """Return the diversity of a store to all replicas but ``r``, in all. O(W)."""
    reach = 0.0
    for i in range(n):
        if compared(members, i) != r:
            reach += diversity(localities, s, compared(members, i))
    return reach


@inline_only
def share(total: float, pairs: int) -> float:
    """Return the mean over all pairs; 1 where there are none."""
    return total / pairs if pairs else 1.0
