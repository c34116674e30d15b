"""Jenkins' hash and Java's string hash, map order and shuffle, in plain Python."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

WORD = 0xFFFFFFFF
SEED, X, Y = 1315423911, 231232, 1232

T = TypeVar("T")


def mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    """The nine lines, three at a time."""
    for right, left, last in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = (a - b - c & WORD) ^ (c >> right)
        b = (b - c - a & WORD) ^ (a << left & WORD)
        c = (c - a - b & WORD) ^ (b >> last)
    return a, b, c


CALLS = {1: ("bx", "ya"), 2: ("ab", "xa", "by"), 3: ("ab", "cx", "ya", "bx", "yc")}
CALLS |= {4: ("ab", "cd", "ax", "yb", "cx", "yd")}
CALLS |= {5: ("ab", "cd", "ex", "ya", "bx", "yc", "dx", "ye")}


@lru_cache(1 << 14)
def jenkins(*words: int) -> int:
    """Hash one to five words (any integers, taken modulo 2^32)."""
    state = dict(zip("abcde", (word & WORD for word in words), strict=False))
    h = SEED
    for word in state.values():
        h ^= word
    state |= {"x": X, "y": Y}
    if len(words) == 1:
        state["b"] = state["a"]
    for first, second in CALLS[len(words)]:
        state[first], state[second], h = mix(state[first], state[second], h)
    return h


def signed(word: int) -> int:
    """The int32 that has the bits of a word."""
    word &= WORD
    return word - (1 << 32) if word >> 31 else word


def utf16(text: str) -> list[int]:
    """The UTF-16 code units of a string; Java's strings compare by them."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return [encoded[i] << 8 | encoded[i + 1] for i in range(0, len(encoded), 2)]


def java_hash(text: str) -> int:
    """``String.hashCode``."""
    h = 0
    for unit in utf16(text):
        h = 31 * h + unit
    return signed(h)


class JavaMap(dict[Any, Any]):
    """A dict that is iterated as a ``HashMap`` would be; nothing is ever removed."""

    def __init__(self, hash_of: Callable[[Any], int], expected: int = 0) -> None:
        super().__init__()
        self.hash_of = hash_of
        self.capacity = 16
        while expected > self.capacity:
            self.capacity *= 2

    def __iter__(self) -> Iterator[Any]:
        capacity = self.capacity
        while len(self) > 0.75 * capacity:
            capacity *= 2
        buckets: dict[int, list[Hashable]] = {}
        for key in super().__iter__():
            h = self.hash_of(key) & WORD
            buckets.setdefault((h ^ h >> 16) & capacity - 1, []).append(key)
        return (key for bucket in sorted(buckets) for key in buckets[bucket])


def java_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Keys put into a ``HashMap`` one after another, in the order it gives them back."""
    filled = JavaMap(hash_of)
    for key in keys:
        filled[key] = None
    return list(iter(filled))


class JavaRandom:
    """``java.util.Random``."""

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def bits(self, count: int) -> int:
        self.state = (self.state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return signed(self.state >> 48 - count)

    def below(self, bound: int) -> int:
        drawn = self.bits(31)
        if bound & bound - 1 == 0:
            return bound * drawn >> 31
        while drawn - drawn % bound + bound - 1 >= 1 << 31:
            drawn = self.bits(31)
        return drawn % bound


def java_shuffle(items: Sequence[T], seed: int) -> list[T]:
    """``Collections.shuffle(items, new Random(seed))``."""
    shuffled = list(items)
    random = JavaRandom(seed)
    for i in range(len(shuffled) - 1, 0, -1):
        j = random.below(i + 1)
        shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
    return shuffled
