"""The order of Java's hash maps and of its shuffled lists.

References
----------
The Java class library: ``HashMap``, ``Collections.shuffle``, ``java.util.Random``.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit

MULTIPLIER = np.uint64(0x5DEECE66D)
INCREMENT = np.uint64(0xB)
STATE = np.uint64((1 << 48) - 1)


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
