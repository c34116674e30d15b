"""The partitions that each node leads, as linked lists, and the search through them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc


class Leading(NamedTuple):
    """The partitions that each node leads, as linked lists."""

    led: NDArray[np.int64]  # (N,) how many a node leads
    first: NDArray[np.int64]  # (N,) one of them, -1 for none
    # next, previous: (P,) the ones that the same node leads after and before a partition, -1 for
    # none
    next: NDArray[np.int64]
    previous: NDArray[np.int64]


class Search(NamedTuple):
    """A search for the shortest chain of handing on."""

    queue: NDArray[np.int64]  # (N,) nodes reached, in order
    reached: NDArray[np.int64]  # (N,) number of the last search that reached a node
    # through, before: (N,) the partition whose lead a node would take, and the node that would hand
    # it on
    through: NDArray[np.int64]
    before: NDArray[np.int64]


@no_alloc
def take_lead(leading: Leading, n: int, p: int) -> None:
    """Let a node lead one more partition."""
    follower = leading.first[n]
    leading.next[p] = follower
    leading.previous[p] = -1
    if follower >= 0:
        leading.previous[follower] = p
    leading.first[n] = p
    leading.led[n] += 1


@no_alloc
def leave_lead(leading: Leading, n: int, p: int) -> None:
    """Let a node lead one partition less."""
    before, after = leading.previous[p], leading.next[p]
    if before >= 0:
        leading.next[before] = after
    else:
        leading.first[n] = after
    if after >= 0:
        leading.previous[after] = before
    leading.led[n] -= 1
