"""Which replica of a range goes where, if any: a rebalance.

References
----------
CockroachDB, ``allocator.go``, ``rebalanceTarget``, and ``allocator_scorer.go``,
``rankedCandidateListForRebalancing``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.cockroach.equivalence_classes import ClassRoom, find_classes
from evenkeel_kernels.cockroach.replicas.remove import remove_target
from evenkeel_kernels.cockroach.replicas.rooms import RebalanceRoom, Rooms
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
from evenkeel_kernels.cockroach.store_stats import Tally
from evenkeel_kernels.cockroach.tables import (
    CLOSE,
    IGNORE,
    NOWHERE,
    VOTER,
    Configs,
    Localities,
    Longs,
    Members,
    Scorer,
    Settings,
    Stores,
    add_member,
    fraction_used,
    place_of,
)
from evenkeel_kernels.core.problem import index


class Decision(NamedTuple):
    """A rebalance: who comes, who goes, whom it was better than, and by how much.

    ``score`` is that of ``compare``; ``target`` is -1 where nothing is done.
    """

    target: int
    removed: int
    replaced: int
    score: float


@device_function
def rebalance(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    rooms: Rooms,
    rng_state: NDArray[np.uint64],
) -> Decision:
    """Decide which VOTER, or NON_VOTER, of a range goes where; ``rng_state (1,)`` makes the draws.

    ``tally`` is one of these stores for this scorer. A move is made only if removing one replica
    afterwards would not take back the one that came. O(R (C (E + 1) + X (W + E))), and O(S) more
    for each class where something should move.
    """
    must_move = find_classes(
        localities, stores, tally, configs, settings, scorer, q, members, role, rooms.analysis,
        rooms.classes,
    )  # fmt: skip
    size = rooms.classes.size[0]
    should = must_move
    for i in range(size):
        if rooms.classes.listed[i] and rooms.classes.number[i] > 0:
            prepare(localities, stores, tally, scorer, rooms, i)
            should = should or should_move(localities, stores, tally, scorer, rooms, i)
    if not should:
        return nothing()
    for i in range(size):
        rooms.rebalance.kept[i] = 0
        if rooms.classes.listed[i] and rooms.classes.number[i] > 0:
            keep_better(localities, stores, tally, settings, scorer, rooms, i)
    while True:
        found, target, score = best_pair(stores, settings, scorer, rooms, rng_state)
        if found < 0:
            return nothing()
        replaced = rooms.classes.replica[found]
        if rooms.classes.voter_necessary[found]:
            return decided(target, replaced, replaced, score)
        removed = simulate(
            localities,
            stores,
            configs,
            settings,
            scorer,
            q,
            members,
            role,
            target,
            rooms,
            rng_state,
        )
        if removed < 0:
            return nothing()
        if removed != target:
            return decided(target, removed, replaced, score)
        drop(rooms.rebalance, found, target)


@inline_only
def nothing() -> Decision:
    """Return the decision to leave all as it is."""
    return decided(NOWHERE, NOWHERE, NOWHERE, 0.0)


@inline_only
def decided(target: int, removed: int, replaced: int, score: float) -> Decision:
    """Return a decision, its stores as one type of number."""
    return Decision(index(target), index(removed), index(replaced), score)


@device_function
def should_rebalance(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    rooms: Rooms,
) -> bool:
    """Whether a replica of the range must move or is on a store too full; as `rebalance`."""
    should = find_classes(
        localities, stores, tally, configs, settings, scorer, q, members, role, rooms.analysis,
        rooms.classes,
    )  # fmt: skip
    for i in range(rooms.classes.size[0]):
        if rooms.classes.listed[i] and rooms.classes.number[i] > 0:
            prepare(localities, stores, tally, scorer, rooms, i)
            should = should or should_move(localities, stores, tally, scorer, rooms, i)
    return should


@device_function
def better_of(localities: Localities, tally: Tally, rooms: Rooms, i: int) -> int:
    """List the class of replica ``i`` in ``rooms.rebalance.best``; returns how many they are.

    None, unless they are strictly better by constraints, disk and diversity; classes are those
    found last. Stores that hold a replica are left out. O(S X).
    """
    room = rooms.classes
    if not room.listed[i] or room.number[i] == 0:
        return 0
    better = not room.valid[i] or room.full[i]
    if not better and room.target_necessary[i] == room.necessary[i]:
        farther = room.target_diversity[i] > room.current[0] + CLOSE
        better = room.voter_necessary[i] or farther
    elif not better:
        better = room.target_necessary[i]
    if not better:
        return 0
    size = members_of(localities, tally, room, i, rooms.rebalance.best)
    at = 0
    for j in range(size):
        s = rooms.rebalance.best[j]
        if place_of(room.replica, room.size[0], s) < 0:
            rooms.rebalance.best[at] = s
            at += 1
    return at


@inline_only
def is_plain(tally: Tally, room: ClassRoom, s: int) -> bool:
    """Whether a store is eligible and no special one. O(X)."""
    return tally.eligible[s] and place_of(room.special, room.size[1], s) < 0


@device_function
def members_of(localities: Localities, tally: Tally, room: ClassRoom, i: int, listed: Longs) -> int:
    """Write the stores of equivalence class ``i`` to ``listed (S,)``; returns how many. O(S X)."""
    size = 0
    for a in range(room.rank.size):
        if room.alike[i, a]:
            for j in range(localities.class_first[a], localities.class_first[a + 1]):
                s = localities.class_store[j]
                if is_plain(tally, room, s):
                    listed[size] = s
                    size += 1
    for x in range(room.size[1]):
        if room.special_in[i, x]:
            listed[size] = room.special[x]
            size += 1
    return size


@device_function
def prepare(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    scorer: Scorer,
    rooms: Rooms,
    i: int,
) -> None:
    """Find the store of class ``i`` to which the replica's load would go; -1 for none. O(S)."""
    room = rooms.classes
    rooms.rebalance.lightest[i] = NOWHERE
    if not is_load(scorer):
        return
    size = members_of(localities, tally, room, i, rooms.rebalance.best)
    lightest = rooms.rebalance.best[0]
    for j in range(1, size):
        s = rooms.rebalance.best[j]
        load, least = stores.amount[scorer.row, s], stores.amount[scorer.row, lightest]
        if load < least or (load == least and s < lightest):
            lightest = s
    source = stores.amount[scorer.row, room.replica[i]]
    mean = (room.total[i] + source) / (room.number[i] + 1)
    if sheds_load(scorer, source, stores.amount[scorer.row, lightest], mean):
        rooms.rebalance.lightest[i] = lightest


@device_function
def should_move(
    localities: Localities, stores: Stores, tally: Tally, scorer: Scorer, rooms: Rooms, i: int
) -> bool:
    """Whether replica ``i`` is on a store too full for its class, which has some stores. O(S X)."""
    room = rooms.classes
    if is_load(scorer):
        return rooms.rebalance.lightest[i] >= 0
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, room.replica[i]]
    if too_many(scorer, value, mean):
        return True
    if value <= mean or not too_few(scorer, room.least[i], mean):
        return False
    size = members_of(localities, tally, room, i, rooms.rebalance.best)
    for j in range(size):
        if too_few(scorer, stores.amount[scorer.row, rooms.rebalance.best[j]], mean):
            return True
    return False


@device_function
def existing(stores: Stores, scorer: Scorer, rooms: Rooms, i: int) -> Candidate:
    """Return replica ``i`` as the ladder sees it. O(1)."""
    room = rooms.classes
    s = room.replica[i]
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, s]
    stays = keeps_away(scorer, value, mean)
    if rooms.rebalance.lightest[i] >= 0:
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
def candidate(
    stores: Stores, settings: Settings, scorer: Scorer, rooms: Rooms, i: int, s: int
) -> Candidate:
    """Return a store of class ``i`` as the ladder sees it. O(1)."""
    room = rooms.classes
    mean = room.total[i] / room.number[i]
    value = stores.amount[scorer.row, s]
    draws = draws_near(scorer, value, mean)
    if rooms.rebalance.lightest[i] == s:
        draws = 1
    return Candidate(
        store=s,
        valid=True,
        full=fraction_used(stores, s) >= settings.disk_rebalance,
        necessary=room.target_necessary[i],
        voter_necessary=room.voter_necessary[i],
        diversity=room.target_diversity[i],
        overloaded=settings.io_enforcement != IGNORE
        and stores.io[s] >= rooms.rebalance.io_limit[i],
        io=stores.io[s],
        converges=draws,
        balance=balance(scorer, value, mean),
        non_voter=False,
        ranges=ranges_of(scorer, stores, s),
    )


@device_function
def keep_better(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    settings: Settings,
    scorer: Scorer,
    rooms: Rooms,
    i: int,
) -> None:
    """Keep the stores of class ``i`` that are better than the replica, and free. O(S X)."""
    room = rooms.rebalance
    size = members_of(localities, tally, rooms.classes, i, room.best)
    io = 0.0
    for j in range(size):
        io += stores.io[room.best[j]]
    room.io_limit[i] = max(settings.io_threshold, io / size * settings.io_factor)
    now = existing(stores, scorer, rooms, i)
    for j in range(size):
        s = room.best[j]
        held = place_of(rooms.classes.replica, rooms.classes.size[0], s) >= 0
        if held or room.barred[s]:
            continue
        if compare(candidate(stores, settings, scorer, rooms, i, s), now) > 0.0:
            room.target[i, room.kept[i]] = s
            room.kept[i] += 1


@device_function
def best_of(stores: Stores, settings: Settings, scorer: Scorer, rooms: Rooms, i: int) -> int:
    """List the kept stores of class ``i`` that tie at the top; returns how many. O(S)."""
    room = rooms.rebalance
    size, highest, level = 0, 0, 0
    for j in range(room.kept[i]):
        one = candidate(stores, settings, scorer, rooms, i, room.target[i, j])
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
def best_pair(
    stores: Stores,
    settings: Settings,
    scorer: Scorer,
    rooms: Rooms,
    rng_state: NDArray[np.uint64],
) -> tuple[int, int, float]:
    """Draw a target for each replica, by ``rng_state (1,)``, and return the pair that gains most.

    Returns which replica, -1 for none, its target, and how much better that is. O(R S).
    """
    found, target, most = NOWHERE, NOWHERE, 0.0
    for i in range(rooms.classes.size[0]):
        if not rooms.classes.listed[i] or rooms.rebalance.kept[i] == 0:
            continue
        size = best_of(stores, settings, scorer, rooms, i)
        if size == 0:
            continue
        first, second = two_of(size, rng_state)
        a, b = rooms.rebalance.best[first], rooms.rebalance.best[second]
        drawn = b if ranges_of(scorer, stores, b) < ranges_of(scorer, stores, a) else a
        one = candidate(stores, settings, scorer, rooms, i, drawn)
        gain = compare(one, existing(stores, scorer, rooms, i))
        if found >= 0 and gain < most - CLOSE:
            continue
        if found >= 0 and gain <= most + CLOSE:
            other = candidate(stores, settings, scorer, rooms, found, target)
            if compare(one, other) < 0.0:
                continue
        found, target, most = i, drawn, gain
    return found, target, most


@device_function
def simulate(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    q: int,
    members: Members,
    role: int,
    target: int,
    rooms: Rooms,
    rng_state: NDArray[np.uint64],
) -> int:
    """Return who would be removed once ``target`` has joined, or -1; ``rng_state (1,)`` draws.

    ``members`` is left as it was. O(W (W + E)).
    """
    promoted = False
    if role == VOTER:
        promoted = leave(members.non_voter, members, 1, target)
        join_voters(members, target)
    else:
        add_member(members.non_voter, members.size[1], target)
        members.size[1] += 1
    removed = remove_target(
        localities, stores, configs, settings, scorer, q, members, role, target, rooms.analysis,
        rooms.remove, rng_state,
    )  # fmt: skip
    if role == VOTER:
        leave_voters(members, target)
        if promoted:
            add_member(members.non_voter, members.size[1], target)
            members.size[1] += 1
    else:
        leave(members.non_voter, members, 1, target)
    return removed


@inline_only
def join_voters(members: Members, s: int) -> None:
    """Add a voter that is not up to date. O(W)."""
    at = add_member(members.voter, members.size[0], s)
    for i in range(members.size[0], at, -1):
        members.up_to_date[i] = members.up_to_date[i - 1]
    members.up_to_date[at] = False
    members.size[0] += 1


@inline_only
def leave_voters(members: Members, s: int) -> None:
    """Take a voter out. O(W)."""
    at = place_of(members.voter, members.size[0], s)
    for i in range(at, members.size[0] - 1):
        members.up_to_date[i] = members.up_to_date[i + 1]
    leave(members.voter, members, 0, s)


@device_function
def leave(row: Longs, members: Members, kind: int, s: int) -> bool:
    """Take a store out of ``row (W,)``, if it is in it; whether it was. O(W)."""
    at = place_of(row, members.size[kind], s)
    if at < 0:
        return False
    for i in range(at, members.size[kind] - 1):
        row[i] = row[i + 1]
    members.size[kind] -= 1
    return True


@inline_only
def drop(room: RebalanceRoom, i: int, target: int) -> None:
    """Take a target out of what is kept for replica ``i``. O(S)."""
    at = 0
    for j in range(room.kept[i]):
        if room.target[i, j] != target:
            room.target[i, at] = room.target[i, j]
            at += 1
    room.kept[i] = at
