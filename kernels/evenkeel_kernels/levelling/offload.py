"""Select the fewest replicas whose eviction brings a node below its watermark.

In one dimension the largest do, and the last of them need only be as large as what is left. In
several it is a covering problem; a greedy under a few different weights of the dimensions comes
close. Among covers of the same number the one is taken that also relieves the dimensions in which
the node would else have little room for leaders.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index, load_of

ROUNDS = 6

ROUNDING = 1e-9  # part of a load that sums of shares, in another order, may be off by

# parts of the greatest gain: from which on items are near it; below which all are looked at
NEAR, SMALL = 0.5, 1e-3


@by_reference
class Near(NamedTuple):
    """The items whose gain is near the greatest, in arrays of their own; place for all items."""

    place: NDArray[np.int64]  # (items,) which items, ascending
    value: NDArray[np.float64]  # (D, items)
    gain: NDArray[np.float64]  # (items,)
    bits: NDArray[np.int64]  # (items,) the same memory, read as integers

    @classmethod
    def place_for(cls, dimensions: int, items: int) -> "Near":
        """Return arrays for so many items."""
        gain = np.empty(items)
        return cls(
            np.empty(items, np.int64), np.empty((dimensions, items)), gain, gain.view(np.int64)
        )


@inline_only
def add_up(
    value: NDArray[np.float64],
    items: int,
    weight: NDArray[np.float64],
    rest: NDArray[np.float64],
    gain: NDArray[np.float64],
) -> None:
    """Fill ``gain`` with what each of the first ``items`` columns of ``value (D, .)`` adds.

    Towards ``rest (D,)``, under ``weight (D,)``.
    """
    for i in range(items):
        gain[i] = 0.0
    for d in range(rest.shape[0]):
        if weight[d] > 0.0 and rest[d] > 0.0:
            for i in range(items):
                gain[i] += weight[d] * min(value[d, i], rest[d])


@inline_only
def greatest(bits: NDArray[np.int64], items: int) -> int:
    """First of the items with the greatest gain, of which these are the ``bits``; -1 for none."""
    best, top = index(-1), np.int64(-1)
    for i in range(items):
        if bits[i] > top:
            best, top = index(i), bits[i]
    return best


@inline_only
def last_one(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    soft: NDArray[np.float64],
    weight: NDArray[np.float64],
    gain: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> int:
    """Return the item that covers all that is left, and adds most without being larger; else -1.

    Takes ``value``, ``peak``, ``hard``, ``soft``, ``weight``, ``gain`` and ``rest`` of `cover`.
    """
    tight, part = 0, -FAR
    for d in range(rest.shape[0]):
        if hard[d] - soft[d] + rest[d] > part * peak[d]:
            tight, part = d, (hard[d] - soft[d] + rest[d]) / peak[d]
    best, most = index(-1), -FAR
    least = hard[tight] - soft[tight] + rest[tight]
    for i in range(items):
        if value[tight, i] < least or gain[i] <= 0.0:
            continue
        enough = True
        for d in range(rest.shape[0]):
            enough = enough and value[d, i] >= hard[d] - soft[d] + rest[d]
        if not enough:
            continue
        worth = 0.0
        for d in range(rest.shape[0]):
            if weight[d] > 0.0 and rest[d] > 0.0:
                worth += weight[d] * min(value[d, i], rest[d])
        if worth <= 0.0:
            continue
        for d in range(rest.shape[0]):
            worth -= weight[d] * max(0.0, value[d, i] - max(rest[d], 0.0))
        if worth > most:
            best, most = index(i), worth
    return best


@no_alloc
def cover(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    soft: NDArray[np.float64],
    weight: NDArray[np.float64],
    gain: NDArray[np.float64],
    near: Near,
    rest: NDArray[np.float64],
    chosen: NDArray[np.int64],
    limit: int,
) -> int:
    """Choose few of the first ``items`` columns of ``value (D, .)`` that cover ``hard (D,)``.

    Each is worth what it adds towards ``soft (D,)``, which is at least ``hard``, under
    ``weight (D,)``. ``peak (D,)`` is the largest value of each dimension; ``gain (.,)``, ``near``
    and ``rest (D,)`` are scratch. Fills ``chosen`` and returns how many, or ``limit`` + 1 if more
    are needed; then all ``limit`` entries are set, to -1 where nothing more would help. O(items D)
    a few times, and O(D) for each near item and item chosen, vectorised.
    """
    # what an item adds only falls as others are chosen, so what it added when it was last looked at
    # is as much as it can add now: only items near the greatest gain are looked at every time
    # Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978
    dimensions = value.shape[0]
    for d in range(dimensions):
        rest[d] = soft[d]
    for i in range(items):
        gain[i] = FAR
    count, least = index(0), FAR
    for c in range(limit):
        one_will_do = True
        same = True  # while no item is larger than what is left, each adds what it did before
        for d in range(dimensions):
            one_will_do = one_will_do and hard[d] - soft[d] + rest[d] <= peak[d]
            same = same and (weight[d] <= 0.0 or rest[d] >= peak[d])
        if one_will_do:
            best = last_one(value, items, peak, hard, soft, weight, gain, rest)
            if best >= 0:
                chosen[c] = best
                return c + 1
        if not same and count > 0:
            add_up(near.value, count, weight, rest, near.gain)
        top = greatest(near.bits, count)
        if top < 0 or near.gain[top] < least:
            add_up(value, items, weight, rest, near.gain)
            for i in range(items):
                gain[i] = min(gain[i], near.gain[i])
                near.gain[i] = gain[i]
            top = greatest(near.bits, items)
            if top < 0 or gain[top] == 0.0:  # nothing that is left would help
                for i in range(c, limit):
                    chosen[i] = -1
                break
            count, least = index(0), NEAR * gain[top]
            for i in range(items):
                near.place[count] = i
                near.gain[count] = gain[i]
                count += int(gain[i] >= least)
            for d in range(dimensions):
                for i in range(count):
                    near.value[d, i] = value[d, near.place[i]]
            top = greatest(near.bits, count)
        best = near.place[top]
        chosen[c] = best
        gain[best] = 0.0
        near.gain[top] = 0.0
        for d in range(dimensions):
            near.value[d, top] = 0.0
            rest[d] -= value[d, best]
    return limit + 1


@inline_only
def is_fewest(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    near: Near,
    count: int,
) -> bool:
    """Whether no fewer than ``count`` of the first ``items`` of ``value (D, .)`` cover ``hard``.

    Fewer do not if, in some dimension of ``hard (D,)``, not even the largest would. ``peak (D,)``
    is the largest value of each; ``near`` is scratch.

    Complexity: O(items) a few times in each dimension; O(1) for each near item and of ``count``.
    """
    for d in range(hard.shape[0]):
        if hard[d] <= 0.0:
            continue
        covered, least, listed, left = 0.0, FAR, index(0), count - 1
        while left > 0 and covered < hard[d] * (1.0 - ROUNDING):
            top = greatest(near.bits, listed)
            if top >= 0 and near.gain[top] > 0.0:
                covered += near.gain[top]
                near.gain[top] = 0.0
                left -= 1
            elif least > 0.0:
                most, least = least, NEAR * min(least, peak[d])
                if least < SMALL * peak[d]:
                    least = 0.0
                listed = index(0)
                for i in range(items):
                    near.gain[listed] = value[d, i]
                    listed += int(value[d, i] >= least) & int(value[d, i] < most)
            else:
                break
        if covered < hard[d] * (1.0 - ROUNDING):
            return True
    return False


def select_evictions(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    share: NDArray[np.float64],
    firm: float,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    begin: int,
    end: int,
) -> NDArray[np.int64]:
    """Choose, for every node above its watermark, the replicas that it should give away.

    ``share (D,)`` is the part of a watermark that leaders will take on average; the part ``firm``
    of it must be free afterwards, all of it would be welcome. ``first`` and ``member`` list the
    replicas of each node (`by_node`); those that are ``forced (K,)`` leave anyway. O(K D) and, for
    a node above its watermark, `cover` up to ten times.
    """
    # of the nodes ``begin`` to ``end``; each chooses by itself
    dimensions = state.load.shape[0]
    most = int(np.diff(first[begin : end + 1]).max(initial=0))
    pool = np.empty(first[end] - first[begin], np.int64)
    count = shed_each(
        problem,
        state,
        forced,
        share,
        firm,
        first,
        member,
        np.empty(most, np.int64),
        np.empty((dimensions, most)),
        np.empty(most),
        Near.place_for(dimensions, most),
        np.empty(most, np.int64),
        np.empty((7, dimensions)),
        pool,
        begin,
        end,
    )
    return pool[:count]


@no_alloc
def shed_each(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    share: NDArray[np.float64],
    firm: float,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    item: NDArray[np.int64],
    value: NDArray[np.float64],
    gain: NDArray[np.float64],
    near: Near,
    chosen: NDArray[np.int64],
    scratch: NDArray[np.float64],
    pool: NDArray[np.int64],
    begin: int,
    end: int,
) -> int:
    """Fill ``pool`` for `select_evictions`; returns how many.

    ``forced``, ``share``, ``first``, ``member``, ``begin`` and ``end`` as there. For the replicas
    of one node: ``item``, ``value (D, .)``, ``gain``, ``near`` and ``chosen``; ``scratch (7, D)``.
    """
    partitions, watermark = problem.partitions, problem.nodes.watermark
    dimensions = state.load.shape[0]
    hard, soft, peak = scratch[0], scratch[1], scratch[2]
    weight, rest, emphasis, staying = scratch[3], scratch[4], scratch[5], scratch[6]
    count = 0
    for n in range(begin, end):
        above = False
        for d in range(dimensions):
            staying[d] = state.load[d, n]
            peak[d] = 0.0
            if staying[d] > watermark[d, n] * (1.0 - firm * share[d]):
                above = True
        if not above:
            continue
        items = index(0)
        for i in range(first[n], first[n + 1]):
            k = member[i]
            if forced[k]:
                for d in range(dimensions):
                    staying[d] -= load_of(partitions, state, k, d)
            elif partitions.movable[k]:
                item[items] = k
                for d in range(dimensions):
                    value[d, items] = load_of(partitions, state, k, d)
                    peak[d] = max(peak[d], value[d, items])
                items += 1
        needs = 0
        has_soft = False
        for d in range(dimensions):
            hard[d] = max(0.0, staying[d] - watermark[d, n] * (1.0 - firm * share[d]))
            soft[d] = max(hard[d], staying[d] - watermark[d, n] * (1.0 - share[d]))
            emphasis[d] = 1.0
            needs += int(hard[d] > 0.0)
            has_soft = has_soft or soft[d] > hard[d]
        if needs == 0:
            continue
        fewest = items + 1
        for _ in range(1 if needs == 1 else ROUNDS):
            for d in range(dimensions):
                weight[d] = emphasis[d] / hard[d] if hard[d] > 0.0 else 0.0
            limit = min(fewest, items)
            c = cover(value, items, peak, hard, hard, weight, gain, near, rest, chosen, limit)
            if c < fewest and c <= items:
                fewest = c
                for i in range(c):
                    pool[count + i] = item[chosen[i]]
                if needs > 1 and is_fewest(value, items, peak, hard, near, fewest):
                    break
            for d in range(dimensions):
                if hard[d] > 0.0:
                    got = 1e-9 * hard[d]
                    for i in range(min(c, limit)):
                        if chosen[i] >= 0:
                            got += value[d, chosen[i]]
                    emphasis[d] *= hard[d] / got
        if fewest > items:  # nothing it holds would do: give nothing away
            continue
        part = 2.0
        while has_soft and part > 0.03:
            for d in range(dimensions):
                factor = part if soft[d] > hard[d] else 1.0
                if hard[d] > 0.0:
                    factor = max(factor, 1.0)
                weight[d] = factor / max(watermark[d, n], 1e-30)
            c = cover(value, items, peak, hard, soft, weight, gain, near, rest, chosen, fewest)
            if c <= fewest:
                fewest = c
                for i in range(c):
                    pool[count + i] = item[chosen[i]]
                break
            part *= 0.25
        count += fewest
    return count
