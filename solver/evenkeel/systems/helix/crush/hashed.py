"""Names with the hashes that Helix makes of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.helix.crush.java_order import text_order
from evenkeel_kernels.core.jenkins_hash import java_hashes


@dataclass(frozen=True, eq=False)
class HashedNames:
    """Names and their Java hashes; what is asked for is computed once.

    Parameters
    ----------
    names : Names
        The names.
    among : tuple of (HashedNames, ndarray of int64, shape (n,)), optional
        More names, and the places of these among them: what was computed for all is taken over.

    Examples
    --------
    >>> hashed = HashedNames.of(["a", "ab"])
    >>> hashed.hash.tolist(), hashed.power.tolist()
    ([97, 3105], [31, 961])
    """

    names: Names
    among: "tuple[HashedNames, NDArray[np.int64]] | None" = None

    @classmethod
    def of(cls, names: Sequence[str]) -> "HashedNames":
        """Take names in."""
        return cls(names if isinstance(names, Names) else Names(names, len(names), ""))

    @classmethod
    def joined(cls, parts: Sequence["HashedNames"]) -> "HashedNames":
        """Put lists of names one behind the other; hashes that are known of all are taken over.

        Examples
        --------
        >>> whole = HashedNames.of(["a", "b", "c"])
        >>> parts = [whole.some(np.array(places)) for places in ([0, 1], [2])]
        >>> HashedNames.joined(parts) is whole
        True
        """
        chosen = [part.among for part in parts if part.among is not None]
        wholes = {id(whole): whole for whole, _ in chosen}
        if len(chosen) < len(parts) or len(wholes) != 1:
            return cls.of([name for part in parts for name in part.names])
        (whole,) = wholes.values()
        places = np.concatenate([places for _, places in chosen])
        beat()
        return whole if np.array_equal(places, np.arange(len(whole))) else whole.some(places)

    def some(self, places: NDArray[np.int64]) -> "HashedNames":
        """Select some of the names.

        Examples
        --------
        >>> HashedNames.of(["a", "b", "c"]).some(np.array([2, 0])).hash.tolist()
        [99, 97]
        """
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

    Examples
    --------
    >>> names = Names(None, 3, "p")
    >>> hashed(names) is hashed(names)
    True
    """
    return HashedNames(names)
