"""What was decided, in order, and which stores a range's replicas have left.

A replica that leaves a store and comes back within one run moves data for nothing. So each range
remembers the last stores it left, and goes back to none of them by its own choice; one that has
left as many as it can remember moves no more unless it must.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only
from evenkeel_kernels.cockroach.tables import Floats, Ints, Longs

REMEMBERED = 4
"""Stores that a range remembers having left."""


@by_reference
class DecisionLog(NamedTuple):
    """Decisions in the order in which they were made: L of them at most.

    Attributes
    ----------
    kind : (L,) int8
        What was done: an action of the replicate queue, or a code of leases or of load.
    range : (L,) int32
        To which range.
    source, target : (L,) int32
        Store that lost the replica or the lease, and store that got it; -1 for none.
    score : (L,) float64
        By how much the target was better: how much depends on the kind.
    size : (1,) int64
        How many there are.
    """

    kind: NDArray[np.int8]
    range: Ints
    source: Ints
    target: Ints
    score: Floats
    size: Longs


@by_reference
class Left(NamedTuple):
    """The stores that the replicas of each range have left in this run."""

    store: Ints  # (P, REMEMBERED) in the order in which they were left; -1 for none


def room_to_log(most: int) -> DecisionLog:
    """Make room for so many decisions."""
    return DecisionLog(
        np.zeros(most, np.int8),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most),
        np.zeros(1, np.int64),
    )


def nothing_left(ranges: int) -> Left:
    """Make the memory of so many ranges."""
    return Left(np.full((ranges, REMEMBERED), -1, np.int32))


@inline_only
def note(log: DecisionLog, kind: int, p: int, source: int, target: int, score: float) -> None:
    """Append a decision, for which there must be room. O(1)."""
    at = log.size[0]
    log.kind[at] = kind
    log.range[at] = p
    log.source[at] = source
    log.target[at] = target
    log.score[at] = score
    log.size[0] += 1


@inline_only
def has_room(log: DecisionLog, more: int) -> bool:
    """Whether so many more decisions fit. O(1)."""
    return log.size[0] + more <= log.kind.size


@inline_only
def has_left(left: Left, p: int, s: int) -> bool:
    """Whether a replica of the range has left the store. O(1)."""
    for i in range(REMEMBERED):
        if left.store[p, i] == s:
            return True
    return False


@inline_only
def note_left(left: Left, p: int, s: int) -> None:
    """Remember a store that a replica has left, and forget the first of too many. O(1)."""
    for i in range(REMEMBERED):
        if left.store[p, i] < 0:
            left.store[p, i] = s
            return
    for i in range(REMEMBERED - 1):
        left.store[p, i] = left.store[p, i + 1]
    left.store[p, REMEMBERED - 1] = s


@inline_only
def is_worn(left: Left, p: int) -> bool:
    """Whether the range has left as many stores as it remembers. O(1)."""
    return left.store[p, REMEMBERED - 1] >= 0
