"""CRUSH-ed's even distribution: card dealing, leader order, and re-placement of lost replicas.

What overfull nodes hold too much of goes to those with the fewest cards: hands say what each node
holds, lists who holds a partition. The order of each partition's nodes says who leads. A
consistent-hash ring finds homes for replicas on nodes that are not live. Where the original walks
a Java collection, the order of the walk is handed in.

References
----------
Apache Helix, CRUSH-ed for even distribution, steps 2 to 4: ``CardDealingAdjustmentAlgorithmV2``,
``AbstractEvenDistributionRebalanceStrategy`` and ``ConsistentHashingAdjustmentAlgorithm``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit, no_alloc
from evenkeel_kernels.core.jenkins_hash import hash1, hash2, hash3
from evenkeel_kernels.core.leadership import Leading, Search, leave_lead, take_lead

ROUNDS = 3  # times that cards are dealt, with one card more per node each time


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

    ``target (N,)``: as from `targets`; ``weight (N,)``: weights; ``zone (N,)``: zones; ``zones``:
    Z; ``order (N,)``: the nodes in the order in which they are visited. Returns cards that a node
    may keep; -1 where it holds no more than the whole part of its target, (N,).
    """
    # as many nodes as there are replicas left over by an equal division may keep one card above the
    # whole part of their target, and of each zone no more than its share of them
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
    taker: NDArray[np.int32]  # (C,) who took a card of the pool; -1 while none has
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


@jit
def shuffle_lists(
    lists: Lists,
    order: NDArray[np.int64],
    load: NDArray[np.int64],
    partition_hash: NDArray[np.uint32],
    name_hash: NDArray[np.uint32],
    name_power: NDArray[np.uint32],
) -> None:
    """Order each partition's nodes so that all of them come first about equally often.

    ``order (p,)``: the partitions in the order in which they are walked; ``load (N,)``: replicas
    that each node holds; ``partition_hash (P,)``: java hash of each partition's name;
    ``name_hash``, ``name_power (N,)``: java hash of each node's name, and 31 to the power of its
    length; together with the former they give the hash of the names put together, which decides
    between equals.
    """
    # the node that comes first is charged R * R, and each node of the list pays one back, from what
    # it holds
    score = load.copy()
    tie = np.empty(lists.node.shape[1], np.int32)
    for p in order:
        size = lists.size[p]
        for i in range(size):
            n = lists.node[p, i]
            own = np.int32(np.uint32(partition_hash[p] * name_power[n] + name_hash[n]))
            j = i
            while j > 0:
                other = lists.node[p, j - 1]
                ahead = score[other] < score[n]
                if ahead or (score[other] == score[n] and tie[j - 1] <= own):
                    break
                lists.node[p, j] = other
                tie[j] = tie[j - 1]
                j -= 1
            lists.node[p, j] = n
            tie[j] = own
        for i in range(size):
            score[lists.node[p, i]] -= 1
        score[lists.node[p, 0]] += size * size


@jit
def level_leaders(lists: Lists, nodes: int) -> None:
    """Swap leaders within lists until no chain of swaps levels them further."""
    # the node that leads most hands a partition on to another node of its list, and that one hands
    # on one of its own, until it reaches a node that leads at least two fewer than the first
    partitions = lists.size.size
    leading = Leading(
        led=np.zeros(nodes, np.int64),
        first=np.full(nodes, -1),
        next=np.full(partitions, -1),
        previous=np.full(partitions, -1),
    )
    search = Search(
        queue=np.empty(nodes, np.int64),
        reached=np.full(nodes, -1),
        through=np.empty(nodes, np.int64),
        before=np.empty(nodes, np.int64),
    )
    settled = np.zeros(nodes, np.bool_)
    for p in range(partitions - 1, -1, -1):
        if lists.size[p] > 0:
            take_lead(leading, lists.node[p, 0], p)
    number = 0
    while True:
        top = -1
        for n in range(nodes):
            if not settled[n] and (top < 0 or leading.led[n] > leading.led[top]):
                top = n
        if top < 0:
            return
        goal = shortest_chain(lists, leading, search, settled, top, number)
        if goal < 0:
            # a node that a chain reaches from here leads at most one fewer, and reaches no other
            for n in range(nodes):
                settled[n] |= search.reached[n] == number
            number += 1
            continue
        number += 1
        while goal != top:
            p, giver = search.through[goal], search.before[goal]
            k = 1
            while lists.node[p, k] != goal:
                k += 1
            lists.node[p, k] = giver
            lists.node[p, 0] = goal
            leave_lead(leading, giver, p)
            take_lead(leading, goal, p)
            goal = giver


@no_alloc
def shortest_chain(
    lists: Lists,
    leading: Leading,
    search: Search,
    settled: NDArray[np.bool_],
    top: int,
    number: int,
) -> int:
    """Find the nearest node that leads at least two fewer than another, past no settled one.

    Returns the node, -1 where there is none; the chain to it is in ``search``.
    """
    search.queue[0] = top
    search.reached[top] = number
    head, tail = 0, 1
    while head < tail:
        n = search.queue[head]
        head += 1
        p = leading.first[n]
        while p >= 0:
            for k in range(1, lists.size[p]):
                other = lists.node[p, k]
                if settled[other] or search.reached[other] == number:
                    continue
                search.reached[other] = number
                search.before[other] = n
                search.through[other] = p
                if leading.led[other] <= leading.led[top] - 2:
                    return int(other)
                search.queue[tail] = other
                tail += 1
            p = leading.next[p]
    return -1


POINTS = 1000  # points of a node on the ring


class Ring(NamedTuple):
    """The ring of the live nodes."""

    point: NDArray[np.uint64]  # (C,) points, ascending; a second lap may follow, 2^32 further on
    node: NDArray[np.int32]  # (C,) whose they are


@jit
def ring_of(name: NDArray[np.uint32], order: NDArray[np.int64], live: NDArray[np.bool_]) -> Ring:
    """Put every node on the ring, and keep the points of live ones.

    ``name (N,)``: java hash of each node's name; ``order (N,)``: the nodes in the order in which
    they are put on the ring; of two nodes at one point the later one has it, live or not; ``live
    (N,)``: whether a node is live. Returns one lap.

    >>> name = np.array([7, 8], np.uint32)
    >>> ring = ring_of(name, np.array([1, 0]), np.array([True, False]))
    >>> ring.point.size, np.unique(ring.node).tolist()
    (1000, [0])
    """
    point, owner = sorted_points(name, order)
    count = point.size
    kept = 0
    for i in range(count):
        if (i + 1 == count or point[i + 1] != point[i]) and live[owner[i]]:
            point[kept] = point[i]
            owner[kept] = owner[i]
            kept += 1
    return Ring(point[:kept].astype(np.uint64), owner[:kept].copy())


@jit
def sorted_points(
    name: NDArray[np.uint32], order: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Sort the points of all nodes: by their upper bits first, then by insertion.

    ``name (N,)``: java hash of each node's name; ``order (N,)``: the nodes in the order in which
    they are put on the ring. Returns points, ascending; of equal ones the later put comes later;
    whose they are.
    """
    # points are as good as random, so that about one falls into each of as many equal arcs
    count = name.size * POINTS
    drawn = np.empty(count, np.uint32)
    for i in range(name.size):
        own = name[order[i]]
        for j in range(POINTS):
            drawn[i * POINTS + j] = hash2(own, np.uint32(j))
    bits = 1
    while 1 << bits < count:
        bits += 1
    first = np.zeros((1 << bits) + 1, np.int32)
    for i in range(count):
        first[(drawn[i] >> np.uint32(32 - bits)) + 1] += 1
    for arc in range(1 << bits):
        first[arc + 1] += first[arc]
    point = np.empty(count, np.uint32)
    owner = np.empty(count, np.int32)
    for i in range(name.size):
        for j in range(POINTS):
            own = drawn[i * POINTS + j]
            arc = own >> np.uint32(32 - bits)
            point[first[arc]] = own
            owner[first[arc]] = order[i]
            first[arc] += 1
    for i in range(1, count):
        own, node = point[i], owner[i]
        j = i
        while j > 0 and point[j - 1] > own:
            point[j] = point[j - 1]
            owner[j] = owner[j - 1]
            j -= 1
        point[j] = own
        owner[j] = node
    return point, owner


@jit
def lost_partitions(
    hands: Hands, walk: NDArray[np.int64], live: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """List the partitions held by nodes that are not live.

    ``walk (n,)``: the nodes in the order in which they are walked; ``live (N,)``: whether a node is
    live. Returns each partition once, in the order of the walk, (l,).
    """
    highest = -1
    for p in hands.partition:
        highest = max(highest, p)
    seen = np.zeros(highest + 1, np.bool_)
    lost = np.empty(hands.partition.size, np.int32)
    count = 0
    for n in walk:
        if live[n]:
            continue
        for i in range(hands.first[n], hands.first[n + 1]):
            p = hands.partition[i]
            if not seen[p]:
                seen[p] = True
                lost[count] = p
                count += 1
    return lost[:count].copy()


@jit
def rehome(
    lists: Lists,
    lost: NDArray[np.int32],
    live: NDArray[np.bool_],
    zone: NDArray[np.int32],
    ring: Ring,
    partition_hash: NDArray[np.uint32],
    seed: np.uint32,
) -> NDArray[np.int32]:
    """Find a new node on the ring for each replica on a node that is not live.

    ``lost (l,)``: the partitions that have lost replicas, in the order in which they are walked;
    ``live (N,)``: whether a node is live; ``zone (N,)``: zones; ``partition_hash (P,)``: java hash
    of each partition's name; ``seed``: java hash of the group's name. Returns new nodes of each
    partition, in the order in which they were found; -1 for the others, and for those not found,
    (l, R).
    """
    found = np.full((lost.size, lists.node.shape[1]), -1, np.int32)
    held = np.empty(lists.node.shape[1], np.int32)
    for a in range(lost.size):
        p = lost[a]
        zones = 0
        for k in range(lists.size[p]):
            n = lists.node[p, k]
            if live[n]:
                held[zones] = zone[n]
                zones += 1
        missing = lists.size[p] - zones
        for k in range(missing):
            start = hash1(hash3(seed, partition_hash[p], np.uint32(k)))
            at = np.searchsorted(ring.point, np.uint64(start))
            while at < ring.point.size:
                n = ring.node[at]
                fits = True
                for z in range(zones):
                    if held[z] == zone[n]:
                        fits = False
                if fits:
                    found[a, k] = n
                    held[zones] = zone[n]
                    zones += 1
                    break
                at += 1
    return found


@jit
def replace_lost(
    lists: Lists,
    lost: NDArray[np.int32],
    found: NDArray[np.int32],
    live: NDArray[np.bool_],
    rank: NDArray[np.int32],
) -> None:
    """Take nodes that are not live out of the lists, and append those found for them.

    ``lost (l,)``: the partitions that have lost replicas; ``found (l, R)``: as from `rehome`;
    ``live (N,)``: whether a node is live; ``rank (R + 1, N)``: place of each node in the order in
    which a set of so many nodes is walked; the new nodes are appended in that order.
    """
    for a in range(lost.size):
        p = lost[a]
        kept = 0
        for k in range(lists.size[p]):
            n = lists.node[p, k]
            if live[n]:
                lists.node[p, kept] = n
                kept += 1
        size = kept
        for k in range(found.shape[1]):
            size += found[a, k] >= 0
        end = kept
        for k in range(found.shape[1]):
            n = found[a, k]
            if n < 0:
                continue
            j = end
            while j > kept and rank[size, lists.node[p, j - 1]] > rank[size, n]:
                lists.node[p, j] = lists.node[p, j - 1]
                j -= 1
            lists.node[p, j] = n
            end += 1
        lists.node[p, end:] = -1
        lists.size[p] = end
