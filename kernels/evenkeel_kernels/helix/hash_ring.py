"""The consistent-hash ring: new homes for replicas on nodes that are not live.

References
----------
Apache Helix, CRUSH-ed for even distribution, step 4; ``ConsistentHashingAdjustmentAlgorithm``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit
from evenkeel_kernels.core.jenkins_hash import hash1, hash2, hash3
from evenkeel_kernels.helix.even_deal import Hands, Lists

POINTS = 1000
"""Points of a node on the ring."""


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

    Examples
    --------
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

    Points are as good as random, so that about one falls into each of as many equal arcs.

    ``name (N,)``: java hash of each node's name; ``order (N,)``: the nodes in the order in which
    they are put on the ring. Returns points, ascending; of equal ones the later put comes later;
    whose they are.
    """
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
