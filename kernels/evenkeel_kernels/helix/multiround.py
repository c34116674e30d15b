"""MultiRoundCRUSH: choose zones by CRUSH, then deal the partitions of each zone to its nodes.

After every partition the nodes of the zone are weighed anew by what they lack, so that straws are
computed as often as partitions are placed; the hashes, which do not depend on weights, are computed
once, in vector lanes, and a draw multiplies a row of them with the straws of the moment.

References
----------
Apache Helix, ``MultiRoundCrushRebalanceStrategy`` and ``CRUSHPlacementAlgorithm``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, jit, no_alloc
from evenkeel_kernels.core.jenkins_hash import hash1, hash3, hash3_lanes
from evenkeel_kernels.helix.crush import (
    LOOPBACKS,
    LOW,
    STRIDE,
    WIDTH,
    Children,
    by_value,
    choose,
    fill_straws,
    select,
)

ROUNDS = 100  # inputs tried for one partition before the whole group is given up

# the two buckets that a zone can be: by what its nodes weigh, and by what they lack
ORIGINAL, LACKING = 0, 1


@by_reference
class Rooms(NamedTuple):
    """The nodes of all zones, zone after zone, as MultiRoundCRUSH needs them."""

    # (Z + 1,) the nodes of zone z are ``first[z]`` to ``first[z + 1]``, and stand inside it by
    # bucket in a map that holds the whole zone, then in tree order
    first: NDArray[np.int64]
    id: NDArray[np.uint32]  # (N,) what is hashed for a node
    weight: NDArray[np.int64]  # (N,) weight; 0 for a node that is not live
    node: NDArray[np.int32]  # (N,) the node
    bucket: NDArray[np.int32]  # (C, N) for maps of increasing capacity, the bucket of a node
    # (M + 1,) row of ``bucket`` for a map that holds so many nodes; M is the size of the largest
    # zone
    capacity: NDArray[np.int64]


class Straws(NamedTuple):
    """One zone of n nodes as a bucket from which M partitions draw."""

    # (M, n) low 16 bits of the hash of each partition with each node at the first trial
    hashed: NDArray[np.uint32]
    row: NDArray[np.uint32]  # (1, n) the same for one partition at another trial
    bucket: NDArray[np.int32]  # (n,) bucket of a node in a map of all of them; ascending
    # weight, straw: (2, n) int64, (2, n) weights and straw lengths, ``ORIGINAL`` and ``LACKING``
    weight: NDArray[np.int64]
    straw: NDArray[np.uint32]
    order: NDArray[np.int64]  # (2, n) nodes from the heaviest to the lightest
    # sorted_weight, sorted_straw: (n,) int64, (n,) scratch for the computation of straws
    sorted_weight: NDArray[np.int64]
    sorted_straw: NDArray[np.uint32]


@jit
def new_straws(
    rooms: Rooms, begin: int, end: int, x: NDArray[np.uint32], target: NDArray[np.int64]
) -> Straws:
    """Hash every partition with every node, and weigh the nodes.

    ``begin``, ``end``: those of the zone; ``x (M,)``: hashes of the partitions' names; ``target
    (n,)``: partitions that a node should hold.
    """
    size = end - begin
    straws = Straws(
        hashed=first_hashes(rooms.id[begin:end], x),
        row=np.empty((1, size), np.uint32),
        bucket=rooms.bucket[rooms.capacity[size], begin:end].copy(),
        weight=np.empty((2, size), np.int64),
        straw=np.zeros((2, size), np.uint32),
        order=np.empty((2, size), np.int64),
        sorted_weight=np.empty(size, np.int64),
        sorted_straw=np.empty(size, np.uint32),
    )
    for n in range(size):
        straws.weight[ORIGINAL, n] = rooms.weight[begin + n]
        straws.weight[LACKING, n] = 10 * target[n]
        straws.order[:, n] = n
    weigh(straws, ORIGINAL)
    return straws


@jit
def first_hashes(node: NDArray[np.uint32], x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Hash every partition with every node at the first trial.

    ``node (n,)``: what is hashed for a node; ``x (M,)``: hashes of the partitions' names. Returns
    the low 16 bits, (M, n).
    """
    hashed = np.empty((x.size, node.size), np.uint32)
    lane = np.zeros(WIDTH, np.uint32)
    drawn = np.empty(WIDTH + 1, np.uint32)
    for start in range(0, x.size, WIDTH):
        used = min(WIDTH, x.size - start)
        lanes = (used + STRIDE - 1) // STRIDE * STRIDE
        for m in range(used):
            lane[m] = x[start + m]
        for n in range(node.size):
            hash3_lanes(lane, node[n], np.uint32(1), lanes, drawn)
            for m in range(used):
                hashed[start + m, n] = drawn[m] & LOW
    return hashed


@no_alloc
def weigh(straws: Straws, which: int) -> None:
    """Compute the straws of one of the two buckets from its weights.

    ``which``: ``ORIGINAL`` or ``LACKING``.
    """
    size = straws.bucket.size
    for i in range(size):  # insertion sort: almost in order already
        n = straws.order[which, i]
        own = straws.weight[which, n]
        j = i
        while j > 0 and straws.weight[which, straws.order[which, j - 1]] < own:
            straws.order[which, j] = straws.order[which, j - 1]
            j -= 1
        straws.order[which, j] = n
    for i in range(size):
        straws.sorted_weight[i] = straws.weight[which, straws.order[which, i]]
    fill_straws(straws.sorted_weight, straws.sorted_straw)
    for i in range(size):
        straws.straw[which, straws.order[which, i]] = straws.sorted_straw[i]


@no_alloc
def longest(straws: Straws, which: int, hashed: NDArray[np.uint32], row: int) -> int:
    """Draw a node: the longest straw; among equals the first bucket, the heavier, the first.

    ``which``: ``ORIGINAL`` or ``LACKING``; ``hashed (rows, n)``: low 16 bits of hashes; ``row``:
    the row to draw with.
    """
    winner = 0
    best = np.uint32(hashed[row, 0] * straws.straw[which, 0])
    for n in range(1, straws.bucket.size):
        score = np.uint32(hashed[row, n] * straws.straw[which, n])
        if score > best:
            best = score
            winner = n
        elif score == best and straws.bucket[n] == straws.bucket[winner]:
            if straws.weight[which, n] > straws.weight[which, winner]:
                winner = n
    return winner


@no_alloc
def draw_again(
    straws: Straws, which: int, ids: NDArray[np.uint32], begin: int, x: np.uint32
) -> int:
    """Draw until a node is found that weighs something.

    ``which``: ``ORIGINAL`` or ``LACKING``; ``ids (N,)``: what is hashed for a node; ``begin``: the
    zone's first node among them; ``x``: hash of the partition's name. Returns the node; -1 after a
    hundred inputs with fifty loopbacks each.
    """
    for _ in range(ROUNDS):
        for trial in range(1, LOOPBACKS + 2):
            for n in range(straws.bucket.size):
                straws.row[0, n] = hash3(x, ids[begin + n], np.uint32(trial)) & LOW
            n = longest(straws, which, straws.row, 0)
            if straws.weight[which, n] > 0:
                return n
        x = hash1(x)
    return -1


ITERATIONS = 3  # times that partitions are distributed inside a zone

DEALT, FILLED, OVERFULL = 0, 1, 2  # what is counted in ``Hands.size``


class Hands(NamedTuple):
    """What n nodes hold of M partitions, and what they are to give back."""

    # target, held: (n,) partitions that a node should hold, and does
    target: NDArray[np.int64]
    held: NDArray[np.int64]
    # partition, node: (4 * M,) who was dealt what, in order
    partition: NDArray[np.int64]
    node: NDArray[np.int64]
    # filled, overfull: (n,) nodes that ever held a partition, and that ever had a surplus, in the
    # order of that
    filled: NDArray[np.int64]
    overfull: NDArray[np.int64]
    known: NDArray[np.bool_]  # (2, n) whether a node is among them
    # (3,) how many entries there are in ``partition``, ``filled`` and ``overfull``
    size: NDArray[np.int64]
    # (n,) surplus of a node that has changed since surplus was last taken back, else 0
    fresh: NDArray[np.int64]
    # surplus_first, surplus_count: (n,) the node's surplus in ``surplus``
    surplus_first: NDArray[np.int64]
    surplus_count: NDArray[np.int64]
    surplus: NDArray[np.int64]  # (4 * M,) partitions remembered for removal, node after node
    returned: NDArray[np.bool_]  # (n, M) the same as a table


@jit
def place_in_rounds(
    zones: Children,
    rooms: Rooms,
    x: NDArray[np.uint32],
    state: NDArray[np.int32],
    order: NDArray[np.int64],
) -> tuple[NDArray[np.int32], int]:
    """Place the partitions of a group by MultiRoundCRUSH.

    ``x (P,)``: hash of each partition's name; ``state (R,)``: state of each place of a list, from
    0, ascending; ``order (P,)``: the partitions in the order in which a map of their names is
    walked. Returns the nodes by state and, inside one state, by zone; a partition for which no
    zones or no node could be found; -1 when all went well.
    """
    total, replicas = x.size, state.size
    placed = np.full((total, replicas), -1, np.int32)
    if total == 0 or replicas == 0:
        return placed, -1
    if np.sum(zones.live) < replicas:
        return placed, 0
    chosen, plain = choose(zones, x, replicas)
    for p in range(total):
        if not plain[p] and not zones_in_rounds(zones, x[p], chosen[p]):
            return placed, p
    states = state[-1] + 1
    for p in range(total):
        for k in range(replicas):
            chosen[p, k] = zones.item[chosen[p, k]] * states + state[k]
    members = by_value(chosen, order, zones.id.size * states)
    place_of = np.empty(states, np.int64)
    for value in range(states):
        place_of[value] = np.searchsorted(state, value)
    for v in range(zones.id.size * states):
        row = members.row[members.first[v] : members.first[v + 1]]
        if row.size == 0:
            continue
        begin, end = rooms.first[v // states], rooms.first[v // states + 1]
        own = np.empty(row.size, np.uint32)
        for m in range(row.size):
            own[m] = x[row[m]]
        drawn, failed = distribute(rooms, begin, end, own)
        if failed >= 0:
            return placed, row[failed]
        for m in range(row.size):
            k = place_of[v % states]
            while placed[row[m], k] >= 0:
                k += 1
            placed[row[m], k] = rooms.node[begin + drawn[m]]
    return placed, -1


@jit
def zones_in_rounds(zones: Children, x: np.uint32, chosen: NDArray[np.int32]) -> bool:
    """Choose zones for one partition, trying up to a hundred inputs.

    ``x``: hash of the partition's name; ``chosen (R,)``: receives places in ``zones``. Returns
    whether R zones were found.
    """
    taken = np.zeros(zones.id.size, np.bool_)
    selected = np.empty(chosen.size, np.int32)
    have = 0
    for _ in range(ROUNDS):
        got = select(zones, 0, zones.id.size, x, chosen.size, taken, selected)
        for k in range(min(got, chosen.size - have)):
            chosen[have] = selected[k]
            have += 1
        if have == chosen.size:
            return True
        x = hash1(x)
    return False


@jit
def distribute(
    rooms: Rooms, begin: int, end: int, x: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], int]:
    """Deal partitions to the nodes of one zone, and deal surplus again, twice.

    ``begin``, ``end``: those of the zone, which weighs something; ``x (M,)``: hashes of the
    partitions' names. Returns the node of each partition, counted inside the zone; a partition that
    no node could be found for, or -1.
    """
    size, count = end - begin, x.size
    hands = new_hands(rooms.weight[begin:end], count)
    straws = new_straws(rooms, begin, end, x, hands.target)
    waiting = np.arange(4 * count)
    place = np.empty(size, np.int64)
    drawn = np.full(count, -1)
    left = count
    which = ORIGINAL
    for iteration in range(ITERATIONS):
        if iteration > 0:
            left = take_back(rooms, begin, hands, waiting, place)
        which = deal(rooms, begin, x, waiting, left, straws, hands, which)
        if which < 0:
            return drawn, waiting[-1 - which]
    for i in range(hands.size[FILLED]):
        place[i] = hands.filled[i]
    walk(rooms, begin, place, hands.size[FILLED])
    for i in range(hands.size[FILLED]):
        for entry in range(hands.size[DEALT]):
            if hands.node[entry] == place[i]:
                drawn[hands.partition[entry]] = place[i]
    return drawn, -1


@jit
def new_hands(weight: NDArray[np.int64], count: int) -> Hands:
    """Set targets and lay empty hands.

    ``weight (n,)``: weights of the nodes; ``count``: partitions to deal.
    """
    size = weight.size
    target = np.empty(size, np.int64)
    whole = np.float64(np.sum(weight))
    for n in range(size):
        target[n] = math.floor(np.float64(weight[n]) / whole * np.float64(count))
    return Hands(
        target=target,
        held=np.zeros(size, np.int64),
        partition=np.empty(4 * count, np.int64),
        node=np.empty(4 * count, np.int64),
        filled=np.empty(size, np.int64),
        overfull=np.empty(size, np.int64),
        known=np.zeros((2, size), np.bool_),
        size=np.zeros(3, np.int64),
        fresh=np.zeros(size, np.int64),
        surplus_first=np.zeros(size, np.int64),
        surplus_count=np.zeros(size, np.int64),
        surplus=np.empty(4 * count, np.int64),
        returned=np.zeros((size, count), np.bool_),
    )


@no_alloc
def deal(
    rooms: Rooms,
    begin: int,
    x: NDArray[np.uint32],
    waiting: NDArray[np.int64],
    left: int,
    straws: Straws,
    hands: Hands,
    which: int,
) -> int:
    """Deal the waiting partitions, weighing the nodes anew after each.

    ``begin``: the zone's first; ``x (M,)``: hashes of the partitions' names; ``waiting (at least
    left,)``: partitions to deal, in order; ``left``: how many; ``which``: the bucket that the first
    of them draws from. Returns the bucket that the next one would draw from; ``-1 - a`` when none
    was found for the a-th one waiting.
    """
    size = straws.bucket.size
    for a in range(left):
        m = waiting[a]
        n = longest(straws, which, straws.hashed, m)
        if straws.weight[which, n] == 0:
            n = draw_again(straws, which, rooms.id, begin, x[m])
            if n < 0:
                return -1 - a
        entry = hands.size[DEALT]
        hands.partition[entry] = m
        hands.node[entry] = n
        hands.size[DEALT] = entry + 1
        hands.held[n] += 1
        note_surplus(hands, n)
        if a == 0:  # since surplus was taken back, anybody may lack something
            for other in range(size):
                straws.weight[LACKING, other] = 10 * max(0, hands.target[other] - hands.held[other])
        straws.weight[LACKING, n] = 10 * max(0, hands.target[n] - hands.held[n])
        which = ORIGINAL
        for other in range(size):
            if straws.weight[LACKING, other] > 0:
                which = LACKING
        if which == LACKING:
            weigh(straws, LACKING)
    return which


@no_alloc
def note_surplus(hands: Hands, n: int) -> None:
    """Note that a node came to hold one more partition."""
    if not hands.known[0, n]:
        hands.known[0, n] = True
        hands.filled[hands.size[FILLED]] = n
        hands.size[FILLED] += 1
    surplus = hands.held[n] - hands.target[n] - 1
    if surplus <= 0:
        return
    hands.fresh[n] = surplus
    if not hands.known[1, n]:
        hands.known[1, n] = True
        hands.overfull[hands.size[OVERFULL]] = n
        hands.size[OVERFULL] += 1


@no_alloc
def take_back(
    rooms: Rooms, begin: int, hands: Hands, waiting: NDArray[np.int64], place: NDArray[np.int64]
) -> int:
    """Take all remembered surplus out of the hands, and let it wait to be dealt again.

    ``begin``: the zone's first; ``waiting (4 * M,)``: receives the partitions; ``place (n,)``:
    scratch. Returns how many wait.
    """
    # what a node is remembered for is never forgotten, only replaced by a later surplus
    remember(hands)
    overfull = hands.size[OVERFULL]
    for i in range(overfull):
        place[i] = hands.overfull[i]
    walk(rooms, begin, place, overfull)
    left = 0
    for i in range(overfull):
        n = place[i]
        for j in range(hands.surplus_first[n], hands.surplus_first[n] + hands.surplus_count[n]):
            waiting[left] = hands.surplus[j]
            left += 1
    kept = 0
    hands.held[:] = 0
    for entry in range(hands.size[DEALT]):
        m, n = hands.partition[entry], hands.node[entry]
        if not hands.returned[n, m]:
            hands.partition[kept] = m
            hands.node[kept] = n
            hands.held[n] += 1
            kept += 1
    hands.size[DEALT] = kept
    return left


@no_alloc
def remember(hands: Hands) -> None:
    """Write down the oldest partitions of every node whose surplus has changed."""
    used = 0
    for n in range(hands.held.size):
        used = max(used, hands.surplus_first[n] + hands.surplus_count[n])
    for n in range(hands.held.size):
        if hands.fresh[n] > 0:
            hands.surplus_first[n] = used
            hands.surplus_count[n] = 0
            used += hands.fresh[n]
            hands.returned[n, :] = False
    for entry in range(hands.size[DEALT]):
        m, n = hands.partition[entry], hands.node[entry]
        if hands.surplus_count[n] < hands.fresh[n]:
            hands.surplus[hands.surplus_first[n] + hands.surplus_count[n]] = m
            hands.surplus_count[n] += 1
            hands.returned[n, m] = True
    hands.fresh[:] = 0


@no_alloc
def walk(rooms: Rooms, begin: int, place: NDArray[np.int64], count: int) -> None:
    """Put nodes that entered a map one after another into the order in which it is walked.

    ``begin``: the zone's first; ``place (at least count,)``: nodes, in the order in which they
    entered; sorted in place; ``count``: how many.
    """
    row = rooms.capacity[count]
    for i in range(count):
        n = place[i]
        j = i
        while j > 0 and rooms.bucket[row, begin + place[j - 1]] > rooms.bucket[row, begin + n]:
            place[j] = place[j - 1]
            j -= 1
        place[j] = n
