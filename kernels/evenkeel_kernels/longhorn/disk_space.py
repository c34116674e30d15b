"""Space on Longhorn's disks: what fits, what is under pressure, and which disk keeps things level.

All amounts are whole bytes, so that every comparison is exact.

References
----------
Longhorn, replica scheduler: space rule, disk pressure, balance score.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, no_alloc


@inlined
def share_of(amount: int, percent: int) -> int:
    """Return ``percent`` % of an amount, rounded down, without a product that could overflow."""
    return amount // 100 * percent + amount % 100 * percent // 100


@inlined
def leaves_free(maximum: int, available: int, required: int, minimal: int) -> bool:
    """Whether copying leaves more than ``minimal`` bytes free on a disk that has anything."""
    return maximum > 0 and available > 0 and available - required > minimal


@inlined
def under_pressure(maximum: int, available: int, reserved: int, percent: int) -> bool:
    """Whether the unused share, in whole percent, is below what ``percent`` leaves; 0 is never.

    Of a disk without size, as one that has failed shows itself, nothing is unused.
    """
    if percent == 0:
        return False
    unused = (available - reserved) * 100 // maximum if maximum > 0 else 0
    return max(0, unused) < 100 - percent


@inlined
def stays_below(maximum: int, scheduled: int, reserved: int, required: int, percent: int) -> bool:
    """Whether a disk with a copy of ``required`` bytes more is used to less than ``percent`` %."""
    return (required + scheduled + reserved) * 100 < percent * maximum


@no_alloc
def levellest(
    group: NDArray[np.int32],
    rank: NDArray[np.int32],
    candidate: NDArray[np.bool_],
    usable: NDArray[np.int64],
    size: int,
    total: NDArray[np.int64],
    fit: NDArray[np.bool_],
    spread: NDArray[np.int64],
) -> int:
    """Choose the group whose totals are levellest once it has taken ``size``; -1 for none.

    Every choice leaves the same mean, so that the least (max - min) / mean is the least max - min,
    in whole bytes. O(items + groups).

    ``group`` (m,) int32 of each item, ``rank`` (g,) int32 of groups by name, ``candidate`` (m,)
    bool, ``usable`` (m,) int64 bytes. Filled: ``total`` (g,) int64 bytes of the candidates, -1 for
    groups without one; ``fit`` (g,) bool, groups with an item of ``size``; ``spread`` (g,) int64
    max - min after placing there, -1 for groups that do not fit.
    """
    total[:] = -1
    fit[:] = False
    spread[:] = -1
    for i in range(group.shape[0]):
        if candidate[i]:
            g = group[i]
            total[g] = max(total[g], 0) + usable[i]
            fit[g] = fit[g] or usable[i] >= size
    most, second, least, next_least = -1, -1, -1, -1  # places of the two extremes at each end
    for g in range(total.shape[0]):
        if total[g] < 0:
            continue
        if most < 0 or total[g] > total[most]:
            most, second = g, most
        elif second < 0 or total[g] > total[second]:
            second = g
        if least < 0 or total[g] < total[least]:
            least, next_least = g, least
        elif next_least < 0 or total[g] < total[next_least]:
            next_least = g
    best = -1
    for g in range(total.shape[0]):
        if not fit[g]:
            continue
        left = total[g] - size
        other_most = second if g == most else most
        other_least = next_least if g == least else least
        high = left if other_most < 0 else max(left, total[other_most])
        low = left if other_least < 0 else min(left, total[other_least])
        spread[g] = high - low
        if best < 0 or spread[g] < spread[best]:
            best = g
        elif spread[g] == spread[best] and rank[g] < rank[best]:
            best = g
    return best
