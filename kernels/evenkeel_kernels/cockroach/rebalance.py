"""Choose a rebalance of a range: the replica to move and its new store, if any.

For each replica these are the stores that are not worse than it by constraints, disk and diversity,
and of them those that are best: its *equivalence class*. Only within it are counts or loads
compared. What constraints and diversity say is worked out once for each class of stores that are
alike; the stores of hosts that hold a replica of the range are *special* and looked at one by one.

References
----------
CockroachDB, ``allocator.go``, ``rebalanceTarget``, and ``allocator_scorer.go``,
``rankedCandidateListForRebalancing``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.cockroach.add_remove import remove_target, row_of
from evenkeel_kernels.cockroach.constraints import (
    NECESSARY,
    VALID,
    analyse,
    both,
    check_rebalance,
    check_remove,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.context import AllocatorContext, is_listed
from evenkeel_kernels.cockroach.scores import (
    Candidate,
    balance,
    compare,
    draws_near,
    is_load,
    keeps_away,
    ranges_of,
    sheds_load,
    too_few,
    too_many,
    two_of,
)
from evenkeel_kernels.cockroach.tables import (
    CLOSE,
    IGNORE,
    NON_VOTER,
    NOWHERE,
    RANGES,
    VOTER,
    Longs,
    compared,
    diversity,
    fraction_used,
    member_at,
    place_of,
    put_member,
    take_out_member,
)
from evenkeel_kernels.core.problem import index

OUT = -1  # rank of stores that are no candidates

VOTER_NECESSARY = 4  # bit of a rank, above VALID and below what NECESSARY becomes


@device_function
def find_classes(context: AllocatorContext, q: int, role: int) -> bool:
    """Find the equivalence class of every VOTER, or every NON_VOTER; whether one must move.

    O(R (C (E + 1) + X (W + E))).
    """
    localities, stores, settings = context.localities, context.stores, context.settings
    scorer, room = context.scorer, context.classes
    analyse(context, q)
    take_replicas(context, role)
    take_specials(context)
    take_reach(context, role)
    must_move = False
    for i in range(room.size[0]):
        s = room.replica[i]
        room.listed[i] = is_listed(scorer, stores, s)
        room.number[i] = 0
        if not room.listed[i]:
            continue
        a = localities.alike[s]
        found = check_remove(localities, every(context, q), a)
        by_voters = check_remove(localities, of_voters(context, q), a)
        if role == VOTER:
            found = both(found, by_voters)
        room.valid[i] = found & VALID != 0
        room.necessary[i] = found & NECESSARY != 0
        room.full[i] = fraction_used(stores, s) >= settings.disk_full
        if not room.valid[i] or room.full[i]:
            must_move = True
        promotes = role == VOTER and by_voters & NECESSARY == 0
        better = find_class(context, q, role, promotes, i)
        must_move = must_move or better
    return must_move


@inline_only
def take_replicas(context: AllocatorContext, role: int) -> None:
    """Copy the replicas of the kind that may move."""
    row, size = row_of(context.members, role)
    context.classes.size[0] = size
    for i in range(size):
        context.classes.replica[i] = row[i]


@inline_only
def take_specials(context: AllocatorContext) -> None:
    """List the stores of hosts that hold a replica, and what each class has without them."""
    members, room = context.members, context.classes
    for a in range(room.without_number.size):
        room.without_number[a] = 0
        room.without_total[a] = 0.0
    room.size[1] = 0
    for i in range(members.size[0] + members.size[1]):
        take_host(context, member_at(members, i))


@device_function
def take_host(context: AllocatorContext, replica: int) -> None:
    """List the stores of one replica's host, unless they are listed."""
    localities, stores, tally = context.localities, context.stores, context.tally
    scorer, room = context.scorer, context.classes
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
def take_reach(context: AllocatorContext, role: int) -> None:
    """Sum up the diversity of each class to all replicas, and of these among themselves."""
    localities, members, room = context.localities, context.members, context.classes
    n = compared(members, role)
    for a in range(room.reach.size):
        reach = 0.0
        for i in range(n):
            reach += localities.pair[a, localities.alike[member_at(members, i)]]
        room.reach[a] = reach
    among = 0.0
    for i in range(n):
        for j in range(i):
            among += diversity(localities, member_at(members, i), member_at(members, j))
    pairs = pairs_of(n)
    room.current[0] = among / pairs if pairs else 1.0


@inline_only
def pairs_of(n: int) -> int:
    """Return how many pairs ``n`` replicas make."""
    return n * (n - 1) // 2


@device_function
def find_class(context: AllocatorContext, q: int, role: int, promotes: bool, i: int) -> bool:
    """Find the class of replica ``i``; whether it is strictly better than the replica. O(C E)."""
    localities, tally, members = context.localities, context.tally, context.members
    room = context.classes
    r = room.replica[i]
    b = localities.alike[r]
    n = compared(members, role)
    pairs = pairs_of(n)
    rest = rest_of(context, n, r, room.current[0] * pairs)
    top_rank, top = index(OUT), -1.0
    for a in range(room.rank.size):
        room.rank[a] = OUT
        room.alike[i, a] = False
        if tally.number[a] == room.without_number[a]:
            continue
        room.rank[a] = rank_of(context, q, role, False, a, b)
        if room.rank[a] < top_rank or room.rank[a] == OUT:
            continue
        score = share(rest + room.reach[a] - localities.pair[a, b], pairs)
        if room.rank[a] > top_rank or score > top:
            top_rank, top = index(room.rank[a]), score
    for x in range(room.size[1]):
        s = room.special[x]
        room.special_in[i, x] = False
        if not is_candidate(context, role, s, r):
            continue
        rank = special_rank(context, q, role, promotes, s, b)
        score = share(rest + reach_of(context, n, s, r), pairs)
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
    gather(context, q, role, promotes, i, top_rank, rest)
    return top_rank > own_rank or (top_rank == own_rank and top > room.current[0] + CLOSE)


@device_function
def gather(
    context: AllocatorContext, q: int, role: int, promotes: bool, i: int, top_rank: int, rest: float
) -> None:
    """Mark who ties at the top for replica ``i``, and sum up what they have. O(C + X (W + E))."""
    localities, stores, tally = context.localities, context.stores, context.tally
    scorer, members, room = context.scorer, context.members, context.classes
    r = room.replica[i]
    b = localities.alike[r]
    top = room.target_diversity[i]
    n = compared(members, role)
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
        if not is_candidate(context, role, s, r):
            continue
        rank = special_rank(context, q, role, promotes, s, b)
        if rank != top_rank:
            continue
        if share(rest + reach_of(context, n, s, r), pairs) >= top - CLOSE:
            room.special_in[i, x] = True
            number += 1
            total += stores.amount[scorer.row, s]
            least = min(least, stores.amount[RANGES, s])
    room.number[i] = number
    room.total[i] = total
    room.least[i] = least


@inline_only
def is_candidate(context: AllocatorContext, role: int, s: int, r: int) -> bool:
    """Whether store ``s`` could take over from ``r``, as far as its state goes. O(W)."""
    tally, members = context.tally, context.members
    if s == r or not tally.eligible[s]:
        return False
    return role == VOTER or place_of(members.voter, members.size[0], s) < 0


@device_function
def rank_of(context: AllocatorContext, q: int, role: int, promotes: bool, a: int, b: int) -> int:
    """Return how a store of class ``a`` does for one of class ``b`` by constraints. O(E)."""
    # OUT, or the larger the better: VALID, VOTER_NECESSARY where it ``promotes`` a non-voter that
    # voters' constraints need, and twice that where it is necessary
    localities = context.localities
    found = check_rebalance(localities, every(context, q), a, b)
    by_voters = 0
    if role == VOTER:
        by_voters = check_rebalance(localities, of_voters(context, q), a, b)
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
    context: AllocatorContext, q: int, role: int, promotes: bool, s: int, b: int
) -> int:
    """Return the rank of a special store, which may hold a non-voter of the range. O(W + E)."""
    localities, members = context.localities, context.members
    holds = promotes and place_of(members.non_voter, members.size[1], s) >= 0
    return rank_of(context, q, role, holds, localities.alike[s], b)


@inline_only
def rest_of(context: AllocatorContext, n: int, r: int, among: float) -> float:
    """Return the diversity of all pairs without ``r``, of ``among`` with it. O(W)."""
    localities, members = context.localities, context.members
    for i in range(n):
        if member_at(members, i) != r:
            among -= diversity(localities, r, member_at(members, i))
    return among


@inline_only
def reach_of(context: AllocatorContext, n: int, s: int, r: int) -> float:
    """Return the diversity of a store to all replicas but ``r``, in all. O(W)."""
    localities, members = context.localities, context.members
    reach = 0.0
    for i in range(n):
        if member_at(members, i) != r:
            reach += diversity(localities, s, member_at(members, i))
    return reach


@inline_only
def share(total: float, pairs: int) -> float:
    """Return the mean over all pairs; 1 where there are none."""
    return total / pairs if pairs else 1.0


class Decision(NamedTuple):
    """A rebalance: who comes, who goes, whom it was better than, and by how much."""

    # ``score`` is that of ``compare``; ``target`` is -1 where nothing is done

    target: int
    removed: int
    replaced: int
    score: float


@device_function
def rebalance(
    context: AllocatorContext, q: int, role: int, rng_state: NDArray[np.uint64]
) -> Decision:
    """Decide which VOTER, or NON_VOTER, of a range goes where; ``rng_state (1,)`` draws."""
    # A move is made only if removing one replica afterwards would not take back the one that came.
    # O(R (C (E + 1) + X (W + E))), and O(S) more for each class where something should move.
    if not should_rebalance(context, q, role):
        return nothing()
    for i in range(context.classes.size[0]):
        context.rebalancing.kept[i] = 0
        if context.classes.listed[i] and context.classes.number[i] > 0:
            keep_better(context, i)
    while True:
        found, target, score = best_pair(context, rng_state)
        if found < 0:
            return nothing()
        replaced = context.classes.replica[found]
        if context.classes.voter_necessary[found]:
            return decided(target, replaced, replaced, score)
        removed = simulate(context, q, role, target, rng_state)
        if removed < 0:
            return nothing()
        if removed != target:
            return decided(target, removed, replaced, score)
        drop(context, found, target)


@inline_only
def nothing() -> Decision:
    """Return the decision to leave all as it is."""
    return decided(NOWHERE, NOWHERE, NOWHERE, 0.0)


@inline_only
def decided(target: int, removed: int, replaced: int, score: float) -> Decision:
    """Return a decision, its stores as one type of number."""
    return Decision(index(target), index(removed), index(replaced), score)


@device_function
def should_rebalance(context: AllocatorContext, q: int, role: int) -> bool:
    """Whether a replica of the range must move or is on a store too full; as `rebalance`."""
    should = find_classes(context, q, role)
    for i in range(context.classes.size[0]):
        if context.classes.listed[i] and context.classes.number[i] > 0:
            prepare(context, i)
            should = should or should_move(context, i)
    return should


@inline_only
def is_plain(context: AllocatorContext, s: int) -> bool:
    """Whether a store is eligible and no special one. O(X)."""
    tally, room = context.tally, context.classes
    return tally.eligible[s] and place_of(room.special, room.size[1], s) < 0


@device_function
def members_of(context: AllocatorContext, i: int, listed: Longs) -> int:
    """Write the stores of equivalence class ``i`` to ``listed (S,)``; returns how many. O(S X)."""
    localities, room = context.localities, context.classes
    size = 0
    for a in range(room.rank.size):
        if room.alike[i, a]:
            for j in range(localities.class_first[a], localities.class_first[a + 1]):
                s = localities.class_store[j]
                if is_plain(context, s):
                    listed[size] = s
                    size += 1
    for x in range(room.size[1]):
        if room.special_in[i, x]:
            listed[size] = room.special[x]
            size += 1
    return size


@device_function
def prepare(context: AllocatorContext, i: int) -> None:
    """Find the store of class ``i`` to which the replica's load would go; -1 for none. O(S)."""
    stores, scorer = context.stores, context.scorer
    room = context.classes
    context.rebalancing.lightest[i] = NOWHERE
    if not is_load(scorer):
        return
    size = members_of(context, i, context.rebalancing.best)
    lightest = context.rebalancing.best[0]
    for j in range(1, size):
        s = context.rebalancing.best[j]
        load, least = stores.amount[scorer.row, s], stores.amount[scorer.row, lightest]
        if load < least or (load == least and s < lightest):
            lightest = s
    source = stores.amount[scorer.row, room.replica[i]]
    mean = (room.total[i] + source) / (room.number[i] + 1)
    if sheds_load(scorer, context.impact[0], source, stores.amount[scorer.row, lightest], mean):
        context.rebalancing.lightest[i] = lightest


@device_function
def should_move(context: AllocatorContext, i: int) -> bool:
    """Whether replica ``i`` is on a store too full for its class, which has some stores. O(S X)."""
    stores, scorer = context.stores, context.scorer
    room = context.classes
    if is_load(scorer):
        return context.rebalancing.lightest[i] >= 0
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, room.replica[i]]
    if too_many(scorer, value, mean):
        return True
    if value <= mean or not too_few(scorer, room.least[i], mean):
        return False
    size = members_of(context, i, context.rebalancing.best)
    for j in range(size):
        if too_few(scorer, stores.amount[scorer.row, context.rebalancing.best[j]], mean):
            return True
    return False


@device_function
def existing(context: AllocatorContext, i: int) -> Candidate:
    """Return replica ``i`` as the ladder sees it. O(1)."""
    stores, scorer = context.stores, context.scorer
    room = context.classes
    s = room.replica[i]
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, s]
    stays = keeps_away(scorer, value, mean)
    if context.rebalancing.lightest[i] >= 0:
        stays = -1
    return Candidate(
        store=s,
        valid=room.valid[i],
        full=room.full[i],
        necessary=room.necessary[i],
        voter_necessary=False,
        diversity=room.current[0],
        overloaded=False,
        io=0.0,
        converges=stays,
        balance=balance(scorer, value, mean),
        non_voter=False,
        ranges=ranges_of(scorer, stores, s),
    )


@device_function
def candidate(context: AllocatorContext, i: int, s: int) -> Candidate:
    """Return a store of class ``i`` as the ladder sees it. O(1)."""
    stores, settings, scorer = context.stores, context.settings, context.scorer
    room = context.classes
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, s]
    draws = draws_near(scorer, value, mean)
    if context.rebalancing.lightest[i] == s:
        draws = 1
    return Candidate(
        store=s,
        valid=True,
        full=fraction_used(stores, s) >= settings.disk_rebalance,
        necessary=room.target_necessary[i],
        voter_necessary=room.voter_necessary[i],
        diversity=room.target_diversity[i],
        overloaded=settings.io_enforcement != IGNORE
        and stores.io[s] >= context.rebalancing.io_limit[i],
        io=stores.io[s],
        converges=draws,
        balance=balance(scorer, value, mean),
        non_voter=False,
        ranges=ranges_of(scorer, stores, s),
    )


@device_function
def keep_better(context: AllocatorContext, i: int) -> None:
    """Keep the stores of class ``i`` that are better than the replica, and free. O(S X)."""
    stores, settings = context.stores, context.settings
    room = context.rebalancing
    size = members_of(context, i, room.best)
    io = 0.0
    for j in range(size):
        io += stores.io[room.best[j]]
    room.io_limit[i] = max(settings.io_threshold, io / size * settings.io_factor)
    now = existing(context, i)
    for j in range(size):
        s = room.best[j]
        held = place_of(context.classes.replica, context.classes.size[0], s) >= 0
        if held or context.barred[s]:
            continue
        if compare(candidate(context, i, s), now) > 0.0:
            room.target[i, room.kept[i]] = s
            room.kept[i] += 1


@device_function
def best_of(context: AllocatorContext, i: int) -> int:
    """List the kept stores of class ``i`` that tie at the top; returns how many. O(S)."""
    room = context.rebalancing
    size, highest, level = 0, 0, 0
    for j in range(room.kept[i]):
        one = candidate(context, i, room.target[i, j])
        if one.full or one.overloaded:
            continue
        ahead = one.converges > highest
        if size == 0 or ahead or (one.converges == highest and one.balance > level):
            size, highest, level = 0, one.converges, one.balance
        if one.converges == highest and one.balance == level:
            room.best[size] = one.store
            size += 1
    return size


@inline_only
def best_pair(context: AllocatorContext, rng_state: NDArray[np.uint64]) -> tuple[int, int, float]:
    """Draw a target for each replica, by ``rng_state (1,)``, and return the pair that gains most.

    Returns which replica, -1 for none, its target, and how much better that is. O(R S).
    """
    stores, scorer = context.stores, context.scorer
    found, target, most = NOWHERE, NOWHERE, 0.0
    for i in range(context.classes.size[0]):
        if not context.classes.listed[i] or context.rebalancing.kept[i] == 0:
            continue
        size = best_of(context, i)
        if size == 0:
            continue
        first, second = two_of(size, rng_state)
        a, b = context.rebalancing.best[first], context.rebalancing.best[second]
        drawn = b if ranges_of(scorer, stores, b) < ranges_of(scorer, stores, a) else a
        one = candidate(context, i, drawn)
        gain = compare(one, existing(context, i))
        if found >= 0 and gain < most - CLOSE:
            continue
        if found >= 0 and gain <= most + CLOSE:
            other = candidate(context, found, target)
            if compare(one, other) < 0.0:
                continue
        found, target, most = i, drawn, gain
    return found, target, most


@device_function
def simulate(
    context: AllocatorContext, q: int, role: int, target: int, rng_state: NDArray[np.uint64]
) -> int:
    """Return who would be removed once ``target`` has joined, or -1; ``rng_state (1,)`` draws.

    ``members`` is left as it was. O(W (W + E)).
    """
    members = context.members
    promoted = role == VOTER and take_out_member(members, NON_VOTER, target)
    put_member(members, role, target, False)
    removed = remove_target(context, q, role, target, rng_state)
    take_out_member(members, role, target)
    if promoted:
        put_member(members, NON_VOTER, target, False)
    return removed


@inline_only
def drop(context: AllocatorContext, i: int, target: int) -> None:
    """Take a target out of what is kept for replica ``i``. O(S)."""
    room = context.rebalancing
    at = 0
    for j in range(room.kept[i]):
        if room.target[i, j] != target:
            room.target[i, at] = room.target[i, j]
            at += 1
    room.kept[i] = at
