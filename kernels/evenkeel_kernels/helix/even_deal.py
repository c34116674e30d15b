"""Card dealing: what overfull nodes hold too much of goes to those with the fewest cards.

Hands say what each node holds, lists who holds a partition. Where the original walks a Java
collection, the order of the walk is handed in.

References
----------
Apache Helix, CRUSH-ed for even distribution, step 2; ``CardDealingAdjustmentAlgorithmV2``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit, no_alloc

ROUNDS = 3
"""Times that cards are dealt, with one card more per node each time."""


class Hands(NamedTuple):
    """What each node holds."""

    # (N + 1,) node n holds ``partition[first[n]:first[n + 1]]``, in that order
    first: NDArray[np.int64]
    partition: NDArray[np.int32]  # (T,) partitions
    # (n,) the nodes that ever held something, in the order in which they first did
    entered: NDArray[np.int32]


class Lists(NamedTuple):
    """Who holds each partition."""

    node: NDArray[np.int32]  # (P, R) nodes, -1 after the end of a list
    size: NDArray[np.int32]  # (P,) length of each list
    # (p,) the partitions that have a list, in the order in which they first got a node
    entered: NDArray[np.int32]


@jit
def hands_of(placed: NDArray[np.int32], order: NDArray[np.int64], nodes: int) -> Hands:
    """Gather what each node holds.

    ``placed (P, R)``: nodes of each partition, -1 for none; ``order (P,)``: the partitions in the
    order in which they are walked. Returns hands in the order of the walk.

    Examples
    --------
    >>> hands = hands_of(np.array([[2, 0], [0, 2]], np.int32), np.array([1, 0]), 3)
    >>> hands.first.tolist(), hands.partition.tolist(), hands.entered.tolist()
    ([0, 2, 2, 4], [1, 0, 1, 0], [0, 2])
    """
    replicas = placed.shape[1]
    first = np.zeros(nodes + 1, np.int64)
    entered = np.empty(nodes, np.int32)
    known = 0
    for p in order:
        for k in range(replicas):
            n = placed[p, k]
            if n >= 0:
                if first[n + 1] == 0:
                    entered[known] = n
                    known += 1
                first[n + 1] += 1
    for n in range(nodes):
        first[n + 1] += first[n]
    partition = np.empty(first[nodes], np.int32)
    cursor = first[:-1].copy()
    for p in order:
        for k in range(replicas):
            n = placed[p, k]
            if n >= 0:
                partition[cursor[n]] = p
                cursor[n] += 1
    return Hands(first, partition, entered[:known].copy())


@jit
def lists_of(hands: Hands, walk: NDArray[np.int64], partitions: int, replicas: int) -> Lists:
    """Gather who holds each partition.

    ``walk (n,)``: the nodes in the order in which they are walked; ``partitions``, ``replicas``: P
    and R; no partition is held by more than R nodes. Returns lists in the order of the walk.
    """
    node = np.full((partitions, replicas), -1, np.int32)
    size = np.zeros(partitions, np.int32)
    entered = np.empty(partitions, np.int32)
    known = 0
    for n in walk:
        for i in range(hands.first[n], hands.first[n + 1]):
            p = hands.partition[i]
            if size[p] == 0:
                entered[known] = p
                known += 1
            node[p, size[p]] = n
            size[p] += 1
    return Lists(node, size, entered[:known].copy())


@jit
def targets(
    weight: NDArray[np.int64], zone: NDArray[np.int32], zones: int, total: int, replicas: int
) -> NDArray[np.float32]:
    """Share all replicas out among the nodes by weight, in 32-bit floats.

    ``weight (N,)``: weights, all positive; ``zone (N,)``: zones; ``zones``: Z; where it is the
    number of replicas, every zone must take as much as any other; ``total``: replicas of all
    partitions; ``replicas``: replicas of each. Returns what each node should hold, (N,).

    Examples
    --------
    >>> targets(np.array([1, 1, 3]), np.array([0, 1, 2], np.int32), 3, 12, 2).tolist()
    [2.4000000953674316, 2.4000000953674316, 7.199999809265137]
    """
    zone_weight = np.zeros(zones, np.int64)
    for n in range(weight.size):
        zone_weight[zone[n]] += weight[n]
    whole = np.float32(np.sum(zone_weight))
    target = np.empty(weight.size, np.float32)
    for n in range(weight.size):
        of_zone = np.float32(zone_weight[zone[n]])
        if replicas == zones:
            share = np.float32(total) / np.float32(zones)
        else:
            share = np.float32(np.float32(total) * of_zone) / whole
        target[n] = np.float32(np.float32(weight[n]) / of_zone) * share
    return target


@jit
def limits(
    hands: Hands,
    target: NDArray[np.float32],
    weight: NDArray[np.int64],
    zone: NDArray[np.int32],
    zones: int,
    order: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Decide how many cards each overfull node may keep: the buffers of card dealing.

    As many nodes as there are replicas left over by an equal division may keep one card above the
    whole part of their target, and of each zone no more than its share of them.

    ``target (N,)``: as from `targets`; ``weight (N,)``: weights; ``zone (N,)``: zones; ``zones``:
    Z; ``order (N,)``: the nodes in the order in which they are visited. Returns cards that a node
    may keep; -1 where it holds no more than the whole part of its target, (N,).
    """
    count = weight.size
    budget = hands.partition.size % count
    zone_weight = np.zeros(zones, np.int64)
    for n in range(count):
        zone_weight[zone[n]] += weight[n]
    whole = np.float32(np.sum(zone_weight))
    zone_budget = np.empty(zones, np.int64)
    for z in range(zones):
        share = np.float32(np.float32(budget) * np.float32(zone_weight[z])) / whole
        zone_budget[z] = math.ceil(share)
    limit = np.full(count, -1)
    for n in order:
        least = math.floor(target[n])
        if hands.first[n + 1] - hands.first[n] <= least:
            continue
        limit[n] = least
        if budget > 0 and zone_budget[zone[n]] > 0:
            limit[n] = math.ceil(target[n])
            budget -= 1
            zone_budget[zone[n]] -= 1
    return limit


class Deal(NamedTuple):
    """Cards on their way from overfull nodes to others."""

    kept: NDArray[np.int64]  # (N,) cards that each node keeps of its hand
    pool: NDArray[np.int32]  # (C,) cards given up, by name
    # (C + 1,) the card after each that is still in the pool; the first one is ``following[C]``, and
    # C is the end
    following: NDArray[np.int64]
    held: NDArray[np.int32]  # (P, R) zones that hold each partition
    size: NDArray[np.int32]  # (P,) how many
    load: NDArray[np.int64]  # (N,) cards that each node holds now
    taker: NDArray[np.int32]  # (C,) who took a card of the pool; -1 while nobody has
    order: NDArray[np.int64]  # (C,) the cards of the pool in the order in which they were taken


@jit
def give_up(
    hands: Hands,
    limit: NDArray[np.int64],
    zone: NDArray[np.int32],
    rank: NDArray[np.int32],
    replicas: int,
) -> Deal:
    """Take from every overfull node the end of its hand.

    ``limit (N,)``: cards that a node keeps; -1 for all; ``zone (N,)``: zones; ``rank (P,)``: place
    of each partition in the order of names; ``replicas``: R.
    """
    nodes, partitions = limit.size, rank.size
    kept = np.empty(nodes, np.int64)
    held = np.full((partitions, replicas), -1, np.int32)
    size = np.zeros(partitions, np.int32)
    pooled = np.zeros(partitions, np.int32)
    cards = 0
    for n in range(nodes):
        begin, end = hands.first[n], hands.first[n + 1]
        kept[n] = end - begin if limit[n] < 0 else min(limit[n], end - begin)
        for i in range(begin, begin + kept[n]):
            p = hands.partition[i]
            held[p, size[p]] = zone[n]
            size[p] += 1
        for i in range(begin + kept[n], end):
            pooled[rank[hands.partition[i]]] += 1
            cards += 1
    by_rank = np.empty(partitions, np.int32)
    for p in range(partitions):
        by_rank[rank[p]] = p
    pool = np.empty(cards, np.int32)
    following = np.empty(cards + 1, np.int64)
    at = 0
    for r in range(partitions):
        for _ in range(pooled[r]):
            pool[at] = by_rank[r]
            at += 1
    for c in range(cards):
        following[c] = c + 1
    following[cards] = 0
    load = kept.copy()
    taker = np.full(cards, -1, np.int32)
    return Deal(kept, pool, following, held, size, load, taker, np.empty(cards, np.int64))


@no_alloc
def settle_down(key: NDArray[np.int64], node: NDArray[np.int32], size: int, at: int) -> None:
    """Let an entry of a heap sink to its place; the least key, then the least node, is on top.

    ``key (at least size,)``: keys; ``node (at least size,)``: nodes; ``size``: entries of the heap.
    """
    own, who = key[at], node[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        other = child + 1
        if other < size and (
            key[other] < key[child] or (key[other] == key[child] and node[other] < node[child])
        ):
            child = other
        if own < key[child] or (own == key[child] and who < node[child]):
            break
        key[at] = key[child]
        node[at] = node[child]
        at = child
    key[at] = own
    node[at] = who


@no_alloc
def take_card(deal: Deal, zone: int) -> int:
    """Take the first card of the pool whose partition is not in a zone.

    Returns the card, -1 where none fits.
    """
    end = deal.pool.size
    before = end
    card = deal.following[end]
    while card < end:
        p = deal.pool[card]
        fits = True
        for k in range(deal.size[p]):
            if deal.held[p, k] == zone:
                fits = False
        if fits:
            deal.held[p, deal.size[p]] = zone
            deal.size[p] += 1
            deal.following[before] = deal.following[card]
            return card
        before = card
        card = deal.following[card]
    return -1


@jit
def deal_out(
    deal: Deal, room: NDArray[np.int64], zone: NDArray[np.int32], tie: NDArray[np.int32], dealt: int
) -> int:
    """Deal the pool: the node with the fewest cards takes the first card that its zone lacks.

    ``room (N,)``: cards up to which a node takes more. A node that can take none leaves; ``zone
    (N,)``: zones; ``tie (N,)``: who of two nodes with equally many cards comes first; ``dealt``:
    cards dealt so far. Returns cards dealt now.
    """
    nodes = room.size
    cards = deal.pool.size
    key = np.empty(nodes, np.int64)
    node = np.empty(nodes, np.int32)
    for n in range(nodes):
        key[n] = (deal.load[n] << 32) + tie[n]
        node[n] = n
    for at in range(nodes // 2 - 1, -1, -1):
        settle_down(key, node, nodes, at)
    while nodes > 0 and dealt < cards:
        n = node[0]
        card = take_card(deal, zone[n]) if deal.load[n] < room[n] else -1
        if card >= 0:
            deal.taker[card] = n
            deal.order[dealt] = card
            dealt += 1
            deal.load[n] += 1
            key[0] += np.int64(1) << 32
        else:
            nodes -= 1
            key[0] = key[nodes]
            node[0] = node[nodes]
        settle_down(key, node, nodes, 0)
    return dealt


@jit
def dealt_hands(hands: Hands, deal: Deal, dealt: int) -> Hands:
    """Put together what each node kept and what it took.

    ``dealt``: cards dealt.
    """
    nodes = deal.kept.size
    first = np.zeros(nodes + 1, np.int64)
    for n in range(nodes):
        first[n + 1] = first[n] + deal.load[n]
    partition = np.empty(first[nodes], np.int32)
    cursor = first[:-1].copy()
    for n in range(nodes):
        for i in range(deal.kept[n]):
            partition[cursor[n]] = hands.partition[hands.first[n] + i]
            cursor[n] += 1
    entered = np.empty(nodes, np.int32)
    inside = np.zeros(nodes, np.bool_)
    known = 0
    for n in hands.entered:
        entered[known] = n
        inside[n] = True
        known += 1
    for i in range(dealt):
        card = deal.order[i]
        n = deal.taker[card]
        partition[cursor[n]] = deal.pool[card]
        cursor[n] += 1
        if not inside[n]:
            inside[n] = True
            entered[known] = n
            known += 1
    return Hands(first, partition, entered[:known].copy())
