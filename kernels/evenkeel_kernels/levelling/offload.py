"""Which replicas a node above its watermark gives away: the fewest that cover the excess.

In one dimension the largest do, and the last of them need only be as large as what is left. In
several it is a covering problem; a greedy under a few different weights of the dimensions comes
close. Among covers of the same number the one is taken that also relieves the dimensions in which
the node would else have little room for leaders.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index, load_of

ROUNDS = 6

ROUNDING = 1e-9
"""Part of a load that sums of shares, in another order, may be off by."""

MANY = 2_500
"""Replicas beyond which they are covered lazily."""


@no_alloc
def cover(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    soft: NDArray[np.float64],
    weight: NDArray[np.float64],
    gain: NDArray[np.float64],
    bits: NDArray[np.int64],
    rest: NDArray[np.float64],
    chosen: NDArray[np.int64],
    limit: int,
) -> int:
    """Choose few of the first ``items`` columns of ``value (D, .)`` that cover ``hard (D,)``.

    Each is worth what it adds towards ``soft (D,)``, which is at least ``hard``, under ``weight
    (D,)``. ``peak (D,)`` is the largest value of each dimension; ``gain``, ``bits`` (the same
    memory) and ``rest`` are scratch. Fills ``chosen`` and returns how many, or ``limit`` + 1 if
    more are needed; then all ``limit`` entries are set, to -1 where nothing more would help.

    Complexity: O(items D) for each item chosen, vectorised.
    """
    dimensions = value.shape[0]
    for d in range(dimensions):
        rest[d] = soft[d]
    for c in range(limit):
        same = c > 0  # while no item is larger than what is left, each adds what it did before
        for d in range(dimensions):
            same = same and (weight[d] <= 0.0 or rest[d] >= peak[d])
        if same:
            gain[chosen[c - 1]] = 0.0
        else:
            for i in range(items):
                gain[i] = 0.0
            for d in range(dimensions):
                if weight[d] > 0.0 and rest[d] > 0.0:
                    for i in range(items):
                        gain[i] += weight[d] * min(value[d, i], rest[d])
            for i in range(c):
                gain[chosen[i]] = 0.0
        best = -1
        most = -FAR
        one_will_do = True
        for d in range(dimensions):
            if hard[d] - soft[d] + rest[d] > peak[d]:
                one_will_do = False
        if one_will_do:
            for i in range(items):
                worth = gain[i]
                if worth <= 0.0:
                    continue
                for d in range(dimensions):
                    if value[d, i] < hard[d] - soft[d] + rest[d]:
                        worth = -FAR
                        break
                    worth -= weight[d] * max(0.0, value[d, i] - max(rest[d], 0.0))
                if worth > most:
                    most = worth
                    best = i
        if best >= 0:
            chosen[c] = best
            return c + 1
        top = np.int64(0)
        for i in range(items):
            top = max(top, bits[i])
        if top == 0:  # nothing that is left would help
            for i in range(c, limit):
                chosen[i] = -1
            break
        best = 0
        while bits[best] != top:
            best += 1
        chosen[c] = best
        for d in range(dimensions):
            rest[d] -= value[d, best]
    return limit + 1


@inline_only
def worth_of(
    value: NDArray[np.float64],
    weight: NDArray[np.float64],
    rest: NDArray[np.float64],
    i: int,
) -> float:
    """What item ``i`` of ``value (D, items)`` adds towards ``rest (D,)``, under ``weight (D,)``."""
    worth = 0.0
    for d in range(rest.shape[0]):
        if weight[d] > 0.0 and rest[d] > 0.0:
            worth += weight[d] * min(value[d, i], rest[d])
    return worth


@inline_only
def settle(heap: NDArray[np.int64], size: int, gain: NDArray[np.float64], at: int) -> None:
    """Let the item at a place of a heap sink: most ``gain`` on top, of equals the first item."""
    one = heap[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size:
            left, right = heap[below], heap[below + 1]
            if gain[right] > gain[left] or (gain[right] == gain[left] and right < left):
                below += 1
        under = heap[below]
        if gain[one] > gain[under] or (gain[one] == gain[under] and one < under):
            break
        heap[at] = under
        at = below
    heap[at] = one


@no_alloc
def cover_lazily(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    soft: NDArray[np.float64],
    weight: NDArray[np.float64],
    gain: NDArray[np.float64],
    heap: NDArray[np.int64],
    rest: NDArray[np.float64],
    chosen: NDArray[np.int64],
    limit: int,
) -> int:
    """Do what `cover` does, where items are many: few of them are looked at again.

    What an item adds only falls as others are chosen, so what it added when it was last looked at
    is as much as it can add now. ``value (D, items)`` is what each takes away, ``peak``, ``hard``,
    ``soft`` and ``weight`` are as there; ``chosen (limit,)`` is filled; ``gain``, ``heap (items,)``
    and ``rest (D,)`` are scratch.

    Complexity: O(items D), vectorised, and about O(log items) for each item chosen.

    References
    ----------
    Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978.
    """
    dimensions = value.shape[0]
    for d in range(dimensions):
        rest[d] = soft[d]
    for i in range(items):
        gain[i] = 0.0
        heap[i] = i
    for d in range(dimensions):
        if weight[d] > 0.0 and rest[d] > 0.0:
            for i in range(items):
                gain[i] += weight[d] * min(value[d, i], rest[d])
    size = items
    for i in range(size // 2 - 1, -1, -1):
        settle(heap, size, gain, i)
    for c in range(limit):
        best = index(-1)
        most = -FAR
        one_will_do = True
        for d in range(dimensions):
            if hard[d] - soft[d] + rest[d] > peak[d]:
                one_will_do = False
        if one_will_do:
            for at in range(size):
                i = heap[at]
                enough = True
                for d in range(dimensions):
                    if value[d, i] < hard[d] - soft[d] + rest[d]:
                        enough = False
                        break
                worth = worth_of(value, weight, rest, i) if enough else 0.0
                if worth <= 0.0:
                    continue
                for d in range(dimensions):
                    worth -= weight[d] * max(0.0, value[d, i] - max(rest[d], 0.0))
                if worth > most or (worth == most and i < best):
                    most = worth
                    best = i
        if best >= 0:
            chosen[c] = best
            return c + 1
        while size > 0:
            best = heap[0]
            now = worth_of(value, weight, rest, best)
            if not now < gain[best]:
                break
            gain[best] = now
            settle(heap, size, gain, 0)
        if size == 0 or gain[best] == 0.0:  # nothing that is left would help
            for i in range(c, limit):
                chosen[i] = -1
            break
        size -= 1
        heap[0] = heap[size]
        settle(heap, size, gain, 0)
        chosen[c] = best
        for d in range(dimensions):
            rest[d] -= value[d, best]
    return limit + 1


@inline_only
def cover_some(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    soft: NDArray[np.float64],
    weight: NDArray[np.float64],
    gain: NDArray[np.float64],
    bits: NDArray[np.int64],
    heap: NDArray[np.int64],
    rest: NDArray[np.float64],
    chosen: NDArray[np.int64],
    limit: int,
) -> int:
    """Choose as `cover` does, in the way that is quicker for so many ``items``.

    Takes what `cover` takes: ``value``, ``peak``, ``hard``, ``soft``, ``weight``, ``chosen``; and
    scratch: ``gain``, ``bits``, ``heap``, ``rest``.
    """
    if items > MANY:
        return cover_lazily(value, items, peak, hard, soft, weight, gain, heap, rest, chosen, limit)
    return cover(value, items, peak, hard, soft, weight, gain, bits, rest, chosen, limit)


@inline_only
def is_fewest(
    value: NDArray[np.float64],
    items: int,
    hard: NDArray[np.float64],
    gain: NDArray[np.float64],
    bits: NDArray[np.int64],
    count: int,
) -> bool:
    """Whether no fewer than ``count`` of the first ``items`` of ``value (D, .)`` cover ``hard``.

    Fewer do not if, in some dimension of ``hard (D,)``, not even the largest would. ``gain`` and
    ``bits`` (the same memory) are scratch. O(items) for each of ``count``, in each dimension.
    """
    for d in range(hard.shape[0]):
        if hard[d] <= 0.0:
            continue
        for i in range(items):
            gain[i] = value[d, i]
        covered = 0.0
        for _ in range(count - 1):
            top = bits[0]
            for i in range(items):
                top = max(top, bits[i])
            best = 0
            while bits[best] != top:
                best += 1
            covered += gain[best]
            if gain[best] <= 0.0 or covered >= hard[d] * (1.0 - ROUNDING):
                break
            gain[best] = 0.0
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

    Of the nodes ``begin`` to ``end``; each chooses by itself.

    ``share (D,)`` is the part of a watermark that leaders will take on average; the part ``firm``
    of it must be free afterwards, all of it would be welcome. ``first`` and ``member`` list the
    replicas of each node (`by_node`); those that are ``forced (K,)`` leave anyway.

    Complexity: O(K D) and, for a node above its watermark, O(replicas D) for each one given away;
    O(log replicas) where they are more than ``MANY``.
    """
    dimensions = state.load.shape[0]
    most = int(np.diff(first[begin : end + 1]).max(initial=0))
    item = np.empty(most, np.int64)
    value = np.empty((dimensions, most))
    gain = np.empty(most)
    chosen = np.empty(most, np.int64)
    scratch = np.empty((7, dimensions))
    pool = np.empty(first[end] - first[begin], np.int64)
    count = shed_each(
        problem,
        state,
        forced,
        share,
        firm,
        first,
        member,
        item,
        value,
        gain,
        gain.view(np.int64),
        np.empty(most if most > MANY else 0, np.int64),
        chosen,
        scratch,
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
    bits: NDArray[np.int64],
    heap: NDArray[np.int64],
    chosen: NDArray[np.int64],
    scratch: NDArray[np.float64],
    pool: NDArray[np.int64],
    begin: int,
    end: int,
) -> int:
    """Fill ``pool`` for `select_evictions`; returns how many.

    ``forced``, ``share``, ``first``, ``member``, ``begin`` and ``end`` as there. For the replicas
    of one node: ``item``, ``value (D, .)``, ``gain`` with ``bits`` (the same memory),
    ``heap``, which may be empty where no node has ``MANY``, and ``chosen``; ``scratch (7, D)``.
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
        wishes = False
        for d in range(dimensions):
            hard[d] = max(0.0, staying[d] - watermark[d, n] * (1.0 - firm * share[d]))
            soft[d] = max(hard[d], staying[d] - watermark[d, n] * (1.0 - share[d]))
            emphasis[d] = 1.0
            needs += int(hard[d] > 0.0)
            wishes = wishes or soft[d] > hard[d]
        if needs == 0:
            continue
        fewest = items + 1
        for _ in range(1 if needs == 1 else ROUNDS):
            for d in range(dimensions):
                weight[d] = emphasis[d] / hard[d] if hard[d] > 0.0 else 0.0
            limit = min(fewest, items)
            c = cover_some(
                value, items, peak, hard, hard, weight, gain, bits, heap, rest, chosen, limit
            )
            if c < fewest and c <= items:
                fewest = c
                for i in range(c):
                    pool[count + i] = item[chosen[i]]
                if needs > 1 and is_fewest(value, items, hard, gain, bits, fewest):
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
        while wishes and part > 0.03:
            for d in range(dimensions):
                factor = part if soft[d] > hard[d] else 1.0
                if hard[d] > 0.0:
                    factor = max(factor, 1.0)
                weight[d] = factor / max(watermark[d, n], 1e-30)
            c = cover_some(
                value, items, peak, hard, soft, weight, gain, bits, heap, rest, chosen, fewest
            )
            if c <= fewest:
                fewest = c
                for i in range(c):
                    pool[count + i] = item[chosen[i]]
                break
            part *= 0.25
        count += fewest
    return count
