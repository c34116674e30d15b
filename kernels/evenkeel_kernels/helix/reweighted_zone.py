"""A fault zone whose nodes are weighed anew again and again: the bucket of MultiRoundCRUSH.

The hashes of partitions with nodes do not depend on weights, so they are computed once, in vector
lanes; a draw then multiplies a row of them with the straws of the moment.

References
----------
Apache Helix, ``MultiRoundCrushRebalanceStrategy`` and ``CRUSHPlacementAlgorithm``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, jit, no_alloc
from evenkeel_kernels.core.jenkins_hash import hash1, hash3, hash3_lanes
from evenkeel_kernels.helix.crush import LOOPBACKS, LOW, STRIDE, WIDTH, fill_straws

ROUNDS = 100
"""Inputs tried for one partition before the whole group is given up."""

ORIGINAL, LACKING = 0, 1
"""The two buckets that a zone can be: by what its nodes weigh, and by what they lack."""


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
    """One zone of n nodes as a bucket from which M partitions draw.

    Attributes
    ----------
    hashed : (M, n) uint32
        Low 16 bits of the hash of each partition with each node at the first trial.
    row : (1, n) uint32
        The same for one partition at another trial.
    bucket : (n,) int32
        Bucket of a node in a map of all of them; ascending.
    weight, straw : (2, n) int64, (2, n) uint32
        Weights and straw lengths, ``ORIGINAL`` and ``LACKING``.
    order : (2, n) int64
        Nodes from the heaviest to the lightest.
    sorted_weight, sorted_straw : (n,) int64, (n,) uint32
        Scratch for the computation of straws.
    """

    hashed: NDArray[np.uint32]
    row: NDArray[np.uint32]
    bucket: NDArray[np.int32]
    weight: NDArray[np.int64]
    straw: NDArray[np.uint32]
    order: NDArray[np.int64]
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
