"""The order in which Java walks its collections, as permutations.

Helix's results depend on the order of ``HashMap``, ``HashSet``, ``TreeMap`` and
``Collections.shuffle``. This is the only place that knows it: hashes or seeds go in, permutations
come out, and everything else works with those.

References
----------
The Java class library: ``HashMap`` (buckets by ``h ^ h >>> 16``, doubled when more than three
quarters full), ``Collections.shuffle``, ``java.util.Random`` (48-bit congruential generator),
``String.compareTo`` (UTF-16 code units).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.helix.java_order import by_bucket, shuffle

SMALLEST = 16
"""Buckets of a new ``HashMap``."""


def grown_capacity(count: int) -> int:
    """Buckets of a map into which entries were put one after another.

    Examples
    --------
    >>> grown_capacity(12), grown_capacity(13)
    (16, 32)
    """
    capacity = SMALLEST
    while 4 * count > 3 * capacity:
        capacity *= 2
    return capacity


def copied_capacity(count: int) -> int:
    """Buckets of a set made from a collection.

    Examples
    --------
    >>> copied_capacity(11), copied_capacity(12)
    (16, 32)
    """
    wanted = max(4 * count // 3 + 1, SMALLEST)
    return 1 << (wanted - 1).bit_length()


def filled_capacity(count: int) -> int:
    """Buckets of an empty map into which all entries of another were put at once.

    Examples
    --------
    >>> filled_capacity(2), filled_capacity(3), filled_capacity(6)
    (4, 8, 16)
    """
    return 1 << (4 * count // 3).bit_length()


def buckets(hashes: NDArray[np.int32], capacity: int) -> NDArray[np.int32]:
    """Tell which bucket each key falls into.

    Examples
    --------
    >>> buckets(np.array([3105, 65536 * 5], np.int32), 16).tolist()
    [1, 5]
    """
    words = hashes.view(np.uint32)
    return ((words ^ (words >> np.uint32(16))) & np.uint32(capacity - 1)).view(np.int32)


def map_order(hashes: NDArray[np.int32], capacity: int | None = None) -> NDArray[np.int64]:
    """Walk a ``HashMap`` or ``HashSet`` of different keys.

    Examples
    --------
    >>> map_order(np.array([17, 16, 1], np.int32)).tolist()
    [1, 0, 2]
    """
    return by_bucket(hashes, capacity or grown_capacity(hashes.size))


def set_orders(first: NDArray[np.int64], hashes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Walk several ``HashMap``s or ``HashSet``s, each grown from empty.

    Examples
    --------
    >>> set_orders(np.array([0, 3, 5]), np.array([17, 16, 1, 2, 1], np.int32)).tolist()
    [1, 0, 2, 4, 3]
    """
    size = np.diff(first)
    capacity = np.full(len(size), SMALLEST, np.int64)
    while (small := 4 * size > 3 * capacity).any():
        capacity[small] *= 2
    words = hashes.view(np.uint32)
    owner = np.repeat(np.arange(len(size)), size)
    bucket = (words ^ (words >> np.uint32(16))) & (capacity - 1)[owner]
    return np.lexsort((bucket, owner))


def text_order(names: Sequence[str]) -> NDArray[np.int64]:
    """Walk a ``TreeMap`` of names.

    Examples
    --------
    >>> text_order(["b10", "b9", "a"]).tolist()
    [2, 0, 1]
    """
    if all(map(str.isascii, names)):
        keys: Sequence[str | bytes] = names
    else:
        keys = [name.encode("utf-16-be", "surrogatepass") for name in names]
    return np.array(sorted(range(len(names)), key=keys.__getitem__), np.int64)


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """Shuffle a list with ``Collections.shuffle`` and a new ``Random``.

    Examples
    --------
    >>> shuffled(5, 42).tolist()
    [1, 2, 3, 4, 0]
    """
    return shuffled_lists(np.array([0, count]), np.array([seed], np.int32))


def shuffled_lists(first: NDArray[np.int64], seeds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Shuffle several lists, each with a generator of its own.

    Examples
    --------
    >>> shuffled_lists(np.array([0, 5, 7]), np.array([42, 0], np.int32)).tolist()
    [1, 2, 3, 4, 0, 5, 6]
    """
    return shuffle(first, seeds)
