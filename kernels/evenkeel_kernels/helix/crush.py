"""Helix's CRUSH: straw lengths, draws, and the placement of many partitions.

A draw asks which child of a bucket an input takes at a trial: the child with the greatest hash
times straw length. Inputs that draw from the same bucket are drawn together, one child after
another, so that the hash runs in vector lanes whatever the size of the bucket.

Children stand in the order in which ties are decided: the first one of equals wins.

References
----------
Apache Helix, ``CRUSHPlacementAlgorithm`` and ``CrushRebalanceStrategy``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, jit, no_alloc
from evenkeel_kernels.core.jenkins_hash import hash1, hash3, hash3_lanes

WIDTH = 256  # inputs drawn together at most

# inputs drawn together come in multiples of this, so that the loops over them have no rest
STRIDE = 64

LOOPBACKS = 50  # draws of something that is out, after which one replica is given up

ROUNDS = 10  # inputs that CRUSH tries before it returns a short list

LOW = np.uint32(0xFFFF)
FULL_STRAW = np.float32(65536)

MULTIPLIER = np.uint64(0x5DEECE66D)
INCREMENT = np.uint64(0xB)
STATE = np.uint64((1 << 48) - 1)


@by_reference
class Children(NamedTuple):
    """Children of one bucket or, one bucket after another, of several."""

    id: NDArray[np.uint32]  # (C,) what is hashed for a child
    straw: NDArray[np.uint32]  # (C,) straw length, from 0 to 65536
    live: NDArray[np.bool_]  # (C,) whether the child weighs something and has not failed
    item: NDArray[np.int32]  # (C,) the node, or zone, that the child is


@jit
def straw_lengths(weight: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Turn weights into straw lengths, in 32-bit floats but for the power.

    ``weight (C,)``: weights in descending order, none negative. Returns straw lengths; 0 for weight
    0, 65536 for the heaviest, (C,).

    >>> straw_lengths(np.array([2000, 1000, 1000, 0])).tolist()
    [65536, 56755, 56755, 0]
    """
    # the recurrence is CRUSH's first one (straw version 0), run from the heaviest child to the
    # lightest, so that lighter children get shorter straws in only roughly the right proportion
    straw = np.empty(weight.size, np.uint32)
    fill_straws(weight, straw)
    return straw


@no_alloc
def fill_straws(weight: NDArray[np.int64], straw: NDArray[np.uint32]) -> None:
    """Compute straw lengths into an array that is there already.

    ``weight (C,)``: weights in descending order, none negative; ``straw (C,)``: receives the straw
    lengths.
    """
    count = weight.size
    scale, below, last = np.float32(1), np.float32(0), np.float32(0)
    left = count
    i = 0
    while i < count:
        own = weight[i]
        end = i + 1
        while end < count and weight[end] == own:
            end += 1
        length = np.uint32(scale * FULL_STRAW) if own > 0 else np.uint32(0)
        for j in range(i, end):
            straw[j] = length
        if own == 0 or end == count:
            i = end
            continue
        after = weight[end]
        below = np.float32(below + (np.float32(own) - last) * np.float32(left))
        run = end
        while run < count and weight[run] == after:
            run += 1
        left -= run - end
        ahead = np.float32(left * (after - own))
        share = np.float64(np.float32(below / np.float32(below + ahead)))
        scale = np.float32(np.float64(scale) * math.pow(1.0 / share, 1.0 / left))
        last = np.float32(own)
        i = end


@inlined
def draw_one(children: Children, begin: int, end: int, x: np.uint32, trial: int) -> int:
    """Draw one child for one input; returns the place of the child."""
    winner = begin
    best = np.uint32(0)
    for i in range(begin, end):
        score = np.uint32((hash3(x, children.id[i], np.uint32(trial)) & LOW) * children.straw[i])
        if score > best:
            best = score
            winner = i
    return winner


@jit
def draw_many(
    children: Children,
    begin: int,
    end: int,
    x: NDArray[np.uint32],
    count: int,
    trial: int,
    winner: NDArray[np.int32],
) -> None:
    """Draw one child for each of many inputs.

    ``begin``, ``end``: the bucket's children among them; ``x (at least count,)``: inputs;
    ``count``: how many of them draw; ``trial``: number of the trial, from 1; ``winner (at least
    count,)``: receives the places of the children drawn.
    """
    lane = np.zeros(WIDTH, np.uint32)
    drawn = np.empty(WIDTH + 1, np.uint32)
    best = np.empty(WIDTH, np.uint32)
    place = np.empty(WIDTH, np.int32)
    for start in range(0, count, WIDTH):
        used = min(WIDTH, count - start)
        lanes = (used + STRIDE - 1) // STRIDE * STRIDE
        for p in range(used):
            lane[p] = x[start + p]
        for p in range(lanes):
            best[p] = 0
            place[p] = begin
        for i in range(begin, end):
            hash3_lanes(lane, children.id[i], np.uint32(trial), lanes, drawn)
            length = children.straw[i]
            for p in range(lanes):
                score = np.uint32((drawn[p] & LOW) * length)
                longer = score > best[p]
                best[p] = score if longer else best[p]
                place[p] = i if longer else place[p]
        for p in range(used):
            winner[start + p] = place[p]


class Members(NamedTuple):
    """Cells of a table, brought together by what stands in them."""

    first: NDArray[np.int64]  # (V + 1,) the cells with value v are ``first[v]`` to ``first[v + 1]``
    # row, column: (M,) where a cell stands
    row: NDArray[np.int32]
    column: NDArray[np.int32]


@jit
def by_value(cell: NDArray[np.int32], order: NDArray[np.int64], values: int) -> Members:
    """Bring together the cells in which the same value stands.

    ``cell (P, R)``: values from 0; ``order (Q,)``: the rows that count, in the order in which their
    cells are listed. Returns cells by value.
    """
    columns = cell.shape[1]
    first = np.zeros(values + 1, np.int64)
    for p in order:
        for k in range(columns):
            first[cell[p, k] + 1] += 1
    for v in range(values):
        first[v + 1] += first[v]
    row = np.empty(first[values], np.int32)
    column = np.empty(first[values], np.int32)
    cursor = first[:-1].copy()
    for p in order:
        for k in range(columns):
            at = cursor[cell[p, k]]
            row[at] = p
            column[at] = k
            cursor[cell[p, k]] = at + 1
    return Members(first, row, column)


@jit
def choose(
    children: Children, x: NDArray[np.uint32], count: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Choose for each input the first ``count`` different children that it draws.

    ``x (P,)``: inputs; ``count``: how many children each needs. Returns places of
    children, in the order drawn; false where a child was drawn that is not live; that row is not
    complete.
    """
    total = x.size
    chosen = np.full((total, count), -1, np.int32)
    plain = np.ones(total, np.bool_)
    found = np.zeros(total, np.int32)
    waiting = np.arange(total)
    lane = x.copy()
    winner = np.empty(total, np.int32)
    left = total if count > 0 else 0
    trial = 0
    while left > 0:
        trial += 1
        draw_many(children, 0, children.id.size, lane, left, trial, winner)
        kept = 0
        for a in range(left):
            p = waiting[a]
            drawn = winner[a]
            if not children.live[drawn]:
                plain[p] = False
                continue
            have = found[p]
            new = True
            for k in range(have):
                if chosen[p, k] == drawn:
                    new = False
            if new:
                chosen[p, have] = drawn
                have += 1
                found[p] = have
            if have < count:
                waiting[kept] = p
                lane[kept] = lane[a]
                kept += 1
        left = kept
    return chosen, plain


@jit
def select(
    children: Children,
    begin: int,
    end: int,
    x: np.uint32,
    count: int,
    taken: NDArray[np.bool_],
    selected: NDArray[np.int32],
) -> int:
    """Select up to ``count`` children that are live and not taken, for one input.

    ``begin``, ``end``: the bucket's children among them; ``count``: how many to select; ``taken
    (C,)``: children that do not count; those selected are added; ``selected (at least count,)``:
    receives the places of those selected. Returns how many were selected. A draw of something that
    is out sends the search back to its origin; a replica that comes back more than 50 times is
    given up.
    """
    available = 0
    for i in range(begin, end):
        available += children.live[i] and not taken[i]
    done = 0
    for r in range(1, count + 1):
        trial = r
        loopbacks = 0
        while available > 0:
            drawn = draw_one(children, begin, end, x, trial)
            trial += 1
            if taken[drawn]:
                continue
            if children.live[drawn]:
                taken[drawn] = True
                selected[done] = drawn
                done += 1
                available -= 1
                break
            if loopbacks == LOOPBACKS:
                break
            loopbacks += 1
    return done


@jit
def place_on_nodes(nodes: Children, x: NDArray[np.uint32], replicas: int) -> NDArray[np.int32]:
    """Place partitions by CRUSH where every node is a fault zone of its own.

    ``x (P,)``: hash of each partition's name; ``replicas``: replicas of each partition. Returns the
    nodes, first the one that leads; -1 where no node could be found, (P, replicas).
    """
    reachable = min(replicas, int(np.sum(nodes.live)))
    chosen, plain = choose(nodes, x, reachable)
    placed = np.full((x.size, replicas), -1, np.int32)
    taken = np.zeros(nodes.id.size, np.bool_)
    selected = np.empty(replicas, np.int32)
    for p in range(x.size):
        if plain[p]:
            for k in range(reachable):
                placed[p, k] = nodes.item[chosen[p, k]]
            continue
        taken[:] = False
        again = x[p]
        have = 0
        for _ in range(ROUNDS):
            got = select(nodes, 0, nodes.id.size, again, replicas - have, taken, selected)
            for k in range(got):
                placed[p, have + k] = nodes.item[selected[k]]
            have += got
            if have >= reachable:
                break
            again = hash1(again)
    return placed


@jit
def place_in_zones(
    zones: Children, first: NDArray[np.int64], nodes: Children, x: NDArray[np.uint32], replicas: int
) -> NDArray[np.int32]:
    """Place partitions by CRUSH: distinct zones first, then a node inside each.

    ``first (Z + 1,)``: the nodes of zone ``zones.item[z]`` are ``first[z]`` to ``first[z + 1]`` of
    ``nodes``; ``x (P,)``: hash of each partition's name; ``replicas``: replicas of each partition.
    Returns the nodes, first the one that leads; -1 where no node could be found, (P, replicas).
    """
    total = x.size
    reachable = min(replicas, int(np.sum(zones.live)))
    chosen, plain = choose(zones, x, reachable)
    placed = np.full((total, replicas), -1, np.int32)
    members = by_value(chosen, np.flatnonzero(plain), zones.id.size)
    lane = np.empty(total, np.uint32)
    winner = np.empty(total, np.int32)
    for z in range(zones.id.size):
        count = members.first[z + 1] - members.first[z]
        for a in range(count):
            lane[a] = x[members.row[members.first[z] + a]]
        draw_many(nodes, first[z], first[z + 1], lane, count, 1, winner)
        for a in range(count):
            p = members.row[members.first[z] + a]
            drawn = winner[a]
            if nodes.live[drawn]:
                placed[p, members.column[members.first[z] + a]] = nodes.item[drawn]
            else:
                plain[p] = False
    zone_taken = np.zeros(zones.id.size, np.bool_)
    node_taken = np.zeros(nodes.id.size, np.bool_)
    selected = np.empty(replicas, np.int32)
    inner = np.empty(1, np.int32)
    for p in range(total):
        if plain[p]:
            continue
        zone_taken[:] = False
        placed[p] = -1
        again = x[p]
        have = 0
        for _ in range(ROUNDS):
            got = select(zones, 0, zones.id.size, again, replicas - have, zone_taken, selected)
            for k in range(got):
                z = selected[k]
                node_taken[first[z] : first[z + 1]] = False
                if select(nodes, first[z], first[z + 1], again, 1, node_taken, inner):
                    placed[p, have] = nodes.item[inner[0]]
                    have += 1
            if have == replicas:
                break
            again = hash1(again)
    return placed


@jit
def by_bucket(hashes: NDArray[np.int32], capacity: int) -> NDArray[np.int64]:
    """Order different keys as a ``HashMap`` of so many buckets does.

    ``hashes (K,)``: hash of each key, in the order in which they were put in. Returns the keys in
    the order of a walk, (K,).
    """
    count = hashes.size
    mask = np.uint32(capacity - 1)
    bucket = np.empty(count, np.uint32)
    first = np.zeros(capacity + 1, np.int64)
    for i in range(count):
        word = np.uint32(hashes[i])
        bucket[i] = (word ^ (word >> np.uint32(16))) & mask
        first[bucket[i] + 1] += 1
    for b in range(capacity):
        first[b + 1] += first[b]
    order = np.empty(count, np.int64)
    for i in range(count):
        order[first[bucket[i]]] = i
        first[bucket[i]] += 1
    return order


@jit
def shuffle(first: NDArray[np.int64], seeds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Shuffle lists, each with a new ``Random``.

    ``first (L + 1,)``: list l holds the numbers ``first[l]`` to ``first[l + 1]``; ``seeds (L,)``.
    Returns the numbers of all lists in their new order, (first[L],).
    """
    order = np.arange(first[-1])
    for s in range(seeds.size):
        state = (np.uint64(seeds[s]) ^ MULTIPLIER) & STATE
        for i in range(first[s + 1] - first[s] - 1, 0, -1):
            bound = i + 1
            while True:
                state = (state * MULTIPLIER + INCREMENT) & STATE
                drawn = np.int64(state >> np.uint64(17))
                if bound & (bound - 1) == 0:
                    j = (bound * drawn) >> 31
                    break
                j = drawn % bound
                if drawn - j + bound - 1 < 1 << 31:
                    break
            here, there = first[s] + i, first[s] + j
            order[here], order[there] = order[there], order[here]
    return order
