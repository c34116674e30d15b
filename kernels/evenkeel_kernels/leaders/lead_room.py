"""What leading takes of the room that nodes have, and domains with a capacity of their own.

Whoever leads a partition carries so much more, or less, than whoever follows. A *row* is a node or
a domain. It carries at most what it can, or what it came with where that was more already.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc


@by_reference
class LeadRoom(NamedTuple):
    """What rows carry by who leads what. M rows, C dimensions in which room may run out."""

    # (N, T) the rows of each node, itself first; -1 where it is in no domain of a tier
    row: NDArray[np.int64]
    weight: NDArray[np.float64]  # (P, C) what leading each partition adds
    base: NDArray[np.float64]  # (M, C) what rows carry whoever leads
    most: NDArray[np.float64]  # (M, C) the most that they may
    load: NDArray[np.float64]  # (M, C) what they carry; changed


@no_alloc
def move_load(room: LeadRoom, p: int, here: int, there: int) -> None:
    """Take the lead of ``p`` off node ``here``, -1 for none, and put it on ``there``. O(T C)."""
    if room.load.shape[1] == 0:
        return
    for t in range(room.row.shape[1]):
        for c in range(room.load.shape[1]):
            if here >= 0 and room.row[here, t] >= 0:
                room.load[room.row[here, t], c] -= room.weight[p, c]
            if room.row[there, t] >= 0:
                room.load[room.row[there, t], c] += room.weight[p, c]


@inlined
def has_room(room: LeadRoom, p: int, here: int, there: int) -> bool:
    """Whether node ``there`` may lead ``p`` instead of ``here``. O(T C).

    Who leads no more carries more than before where leading weighs less than following.
    """
    if room.load.shape[1] == 0:
        return True
    for t in range(room.row.shape[1]):
        left, to = room.row[here, t], room.row[there, t]
        if left == to:
            continue
        for c in range(room.load.shape[1]):
            more = room.weight[p, c]
            if to >= 0 and more > 0.0 and room.load[to, c] + more > room.most[to, c]:
                return False
            if left >= 0 and more < 0.0 and room.load[left, c] - more > room.most[left, c]:
                return False
    return True


@inlined
def stays_within(room: LeadRoom, n: int) -> bool:
    """Whether a node, and the domains that it is in, carry no more than they may. O(T C)."""
    for t in range(room.row.shape[1]):
        for c in range(room.load.shape[1]):
            if room.row[n, t] >= 0 and room.load[room.row[n, t], c] > room.most[room.row[n, t], c]:
                return False
    return True
