"""Names with the hashes that Helix makes of them, and the order of Java's collections.

Helix's results depend on the order of ``HashMap``, ``HashSet``, ``TreeMap`` and
``Collections.shuffle``. This is the only place that knows it: hashes or seeds go in, permutations
come out, and everything else works with those.

References
----------
The Java class library: ``HashMap`` (buckets by ``h ^ h >>> 16``, doubled when more than three
quarters full), ``Collections.shuffle``, ``java.util.Random`` (48-bit congruential generator),
``String.compareTo`` (UTF-16 code units).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names
from evenkeel.model.runtime.heartbeat import beat
from evenkeel_kernels.core.jenkins_hash import java_hashes
from evenkeel_kernels.helix.java_order import by_bucket, shuffle

SMALLEST = 16
"""Buckets of a new ``HashMap``."""


def grown_capacity(count: int) -> int:
    """Buckets of a map into which entries were put one after another.

    >>> grown_capacity(12), grown_capacity(13)
    (16, 32)
    """
    capacity = SMALLEST
    while 4 * count > 3 * capacity:
        capacity *= 2
    return capacity


def copied_capacity(count: int) -> int:
    """Buckets of a set made from a collection."""
    wanted = max(4 * count // 3 + 1, SMALLEST)
    return 1 << (wanted - 1).bit_length()


def filled_capacity(count: int) -> int:
    """Buckets of an empty map into which all entries of another were put at once.

    >>> filled_capacity(2), filled_capacity(3), filled_capacity(6)
    (4, 8, 16)
    """
    return 1 << (4 * count // 3).bit_length()


def buckets(hashes: NDArray[np.int32], capacity: int) -> NDArray[np.int32]:
    """Tell which bucket each key falls into."""
    words = hashes.view(np.uint32)
    return ((words ^ (words >> np.uint32(16))) & np.uint32(capacity - 1)).view(np.int32)


def map_order(hashes: NDArray[np.int32], capacity: int | None = None) -> NDArray[np.int64]:
    """Walk a ``HashMap`` or ``HashSet`` of different keys."""
    return by_bucket(hashes, capacity or grown_capacity(hashes.size))


def set_orders(first: NDArray[np.int64], hashes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Walk several ``HashMap``s or ``HashSet``s, each grown from empty."""
    size = np.diff(first)
    capacity = np.full(len(size), SMALLEST, np.int64)
    while (small := 4 * size > 3 * capacity).any():
        capacity[small] *= 2
    words = hashes.view(np.uint32)
    owner = np.repeat(np.arange(len(size)), size)
    bucket = (words ^ (words >> np.uint32(16))) & (capacity - 1)[owner]
    return np.lexsort((bucket, owner))


def text_order(names: Sequence[str]) -> NDArray[np.int64]:
    """Walk a ``TreeMap`` of names."""
    if all(map(str.isascii, names)):
        keys: Sequence[str | bytes] = names
    else:
        keys = [name.encode("utf-16-be", "surrogatepass") for name in names]
    return np.array(sorted(range(len(names)), key=keys.__getitem__), np.int64)


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """Shuffle a list with ``Collections.shuffle`` and a new ``Random``.

    >>> shuffled(5, 42).tolist()
    [1, 2, 3, 4, 0]
    """
    return shuffled_lists(np.array([0, count]), np.array([seed], np.int32))


def shuffled_lists(first: NDArray[np.int64], seeds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Shuffle several lists, each with a generator of its own."""
    return shuffle(first, seeds)


@dataclass(frozen=True, eq=False)
class HashedNames:
    """Names and their Java hashes; what is asked for is computed once."""

    names: Names  # the names
    # (n,)) more names, and the places of these among them: what was computed for all is taken over
    among: "tuple[HashedNames, NDArray[np.int64]] | None" = None

    @classmethod
    def of(cls, names: Sequence[str]) -> "HashedNames":
        """Take names in."""
        return cls(names if isinstance(names, Names) else Names(names, len(names), ""))

    @classmethod
    def joined(cls, parts: Sequence["HashedNames"]) -> "HashedNames":
        """Put lists of names one behind the other; hashes that are known of all are taken over."""
        chosen = [part.among for part in parts if part.among is not None]
        wholes = {id(whole): whole for whole, _ in chosen}
        if len(chosen) < len(parts) or len(wholes) != 1:
            return cls.of([name for part in parts for name in part.names])
        (whole,) = wholes.values()
        places = np.concatenate([places for _, places in chosen])
        beat()
        return whole if np.array_equal(places, np.arange(len(whole))) else whole.some(places)

    def some(self, places: NDArray[np.int64]) -> "HashedNames":
        """Select some of the names."""
        return HashedNames(
            Names([self.texts[i] for i in places.tolist()], len(places), ""), (self, places)
        )

    @cached_property
    def texts(self) -> list[str]:
        """The names as a list, which is faster to look up in."""
        return list(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def hash(self) -> NDArray[np.int32]:
        """``String.hashCode`` of each name, (n,) int32."""
        if self.among is not None:
            whole, places = self.among
            return whole.hash[places]
        beat()
        first, units = self.names.utf16
        beat()
        return java_hashes(units.copy(), first.copy())

    @property
    def word(self) -> NDArray[np.uint32]:
        """The same bits, as Jenkins' hash takes them, (n,) uint32."""
        return self.hash.view(np.uint32)

    @cached_property
    def power(self) -> NDArray[np.uint32]:
        """31 to the power of each name's length, (n,) uint32.

        What the hash of a string is multiplied by when the name is appended to it.
        """
        if self.among is not None:
            whole, places = self.among
            return whole.power[places]
        first, _ = self.names.utf16
        lengths = np.diff(first)
        powers = np.ones(int(lengths.max(initial=0)) + 1, np.uint32)
        powers[1:] = 31
        return np.multiply.accumulate(powers, dtype=np.uint32)[lengths]

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Place of each name in the order of a ``TreeMap``, (n,) int32."""
        rank = np.empty(len(self), np.int32)
        if self.among is not None:
            whole, places = self.among
            order = np.argsort(whole.rank[places], kind="stable")
        else:
            order = text_order(self.names)
        rank[order] = np.arange(len(self), dtype=np.int32)
        return rank

    @cached_property
    def id(self) -> NDArray[np.uint32]:
        """First four bytes of SHA-1 of each name in UTF-8, (n,) uint32: its id in a tree."""
        digests = [
            hashlib.sha1(name.encode("utf-8", "replace")).digest()[:4] for name in self.names
        ]
        return np.frombuffer(b"".join(digests), ">u4").astype(np.uint32)


@lru_cache(maxsize=2)
def hashed(names: Names) -> HashedNames:
    """Hash the names of a cluster, which is likely to be solved again with the same ones.

    >>> names = Names(None, 3, "p")
    >>> hashed(names) is hashed(names)
    True
    """
    return HashedNames(names)
