"""Divide the replicas of two nodes optimally between them, by branch and bound.

A replica that the rules admit on the other node is an *item*; so are two of one group that may only
change places. What cannot be decided by itself stays. The items, the largest first, are given to
one side or the other; a branch ends where even the best that its open items could do would not be
better than what is known. Since what leaves one node enters the other, the two excesses in a
channel have a fixed sum, and how far the first can still be moved bounds the cost of both.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.cost.annealing import suits, suits_group
from evenkeel_kernels.cost.compound_move import (
    LEAST_GAIN,
    CompoundMove,
    add_move,
    are_alike,
    beside_load,
    make_moves,
)
from evenkeel_kernels.cost.cost_state import CostState

NO_ITEM = -1


@by_reference
class Division(NamedTuple):
    """Two nodes and up to F items; C channels, D dimensions. Option 0 of an item is to stay."""

    item: NDArray[np.int64]  # (F, 2) a replica, and the one it may change places with, -1 for none
    size: NDArray[np.float64]  # (F,) what the item could matter
    moving: NDArray[np.float64]  # (F,) what option 1 costs in movement
    part: NDArray[np.float64]  # (F, 2, C) what each option adds to the first node
    held: NDArray[np.float64]  # (F, 2, 2, D) what each option takes of each node's room
    low: NDArray[np.float64]  # (F + 1, C) least excess of the first node, by items decided
    high: NDArray[np.float64]  # (F + 1, C) most
    taken: NDArray[np.float64]  # (F + 1, 2, D) least room taken beyond what there is
    total: NDArray[np.float64]  # (C,) excess of both nodes together
    spent: NDArray[np.float64]  # (F + 1,) least movement, by items decided
    option: NDArray[np.int64]  # (F,) option being tried
    tried: NDArray[np.int64]  # (F,) options tried
    best: NDArray[np.int64]  # (F,) options of the best division
    order: NDArray[np.int64]  # (F,) items, the largest first


def new_division(most: int, channels: int, dimensions: int) -> Division:
    """Scratch for divisions.

    ``most``: items at most; ``channels``, ``dimensions``: of the cost state.
    """
    return Division(
        item=np.full((most, 2), NO_ITEM, np.int64),
        size=np.zeros(most),
        moving=np.zeros(most),
        part=np.zeros((most, 2, channels)),
        held=np.zeros((most, 2, 2, dimensions)),
        low=np.zeros((most + 1, channels)),
        high=np.zeros((most + 1, channels)),
        taken=np.zeros((most + 1, 2, dimensions)),
        total=np.zeros(channels),
        spent=np.zeros(most + 1),
        option=np.zeros(most, np.int64),
        tried=np.zeros(most, np.int64),
        best=np.zeros(most, np.int64),
        order=np.zeros(most, np.int64),
    )


@inline_only
def may_cross(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether the rules, room apart, admit replica ``k`` on ``n``."""
    return (
        problem.partitions.movable[k]
        and suits(problem, state, k, n)
        and suits_group(problem, state, k, n)
    )


@device_function
def find_items(
    problem: Problem,
    state: State,
    division: Division,
    x: int,
    y: int,
    replica: NDArray[np.int64],
    count: int,
) -> int:
    """Fill ``division.item`` from the first ``count`` of ``replica (R,)``; returns how many."""
    most = division.item.shape[0]
    items = 0
    for i in range(count):
        if items == most:
            break
        a = replica[i]
        here = index(state.node[a])
        there = y if here == x else x
        if may_cross(problem, state, a, there):
            division.item[items, 0], division.item[items, 1] = a, NO_ITEM
            items += 1
            continue
        if not problem.partitions.movable[a]:
            continue
        # the first of a pair finds the second; only the one on the first node looks
        if here != x:
            continue
        for j in range(count):
            b = replica[j]
            if state.node[b] != y or not problem.partitions.movable[b]:
                continue
            if not are_alike(problem, state, a, b) or may_cross(problem, state, b, x):
                continue
            if suits(problem, state, a, y) and suits(problem, state, b, x):
                taken = False
                for f in range(items):
                    taken |= division.item[f, 1] == b
                if not taken:
                    division.item[items, 0], division.item[items, 1] = a, b
                    items += 1
                    break
    return items


@inline_only
def room_part(problem: Problem, walk: CostState, k: int, n: int, is_there: bool, d: int) -> float:
    """Room that replica ``k`` takes of node ``n``: where it is, and where it left what is kept."""
    if is_there:
        return walk.need[k, d]
    return walk.kept[k, d] if problem.partitions.home[k] == n else 0.0


@device_function
def weigh_items(
    problem: Problem, state: State, walk: CostState, division: Division, x: int, y: int, items: int
) -> None:
    """Fill all that ``division`` says of its items, and the bounds before any is decided."""
    channels, dimensions = walk.weight.shape[0], walk.room.shape[1]
    for f in range(items):
        size = 0.0
        a, b = division.item[f, 0], division.item[f, 1]
        here = index(state.node[a])
        division.moving[f] = beside_load(problem, state, a, y if here == x else x)
        if b >= 0:
            division.moving[f] += beside_load(problem, state, b, x if here == x else y)
        for o in range(2):
            a_on_x = (here == x) == (o == 0)
            for c in range(channels):
                more = walk.need[a, c] if a_on_x else 0.0
                if b >= 0 and not a_on_x:
                    more += walk.need[b, c]
                division.part[f, o, c] = more
            for d in range(dimensions):
                for side in range(2):
                    n = x if side == 0 else y
                    a_here = a_on_x == (side == 0)
                    taken = room_part(problem, walk, a, n, a_here, d)
                    if b >= 0:
                        taken += room_part(problem, walk, b, n, not a_here, d)
                    division.held[f, o, side, d] = taken
        for c in range(channels):
            size += walk.weight[c] * abs(division.part[f, 0, c] - division.part[f, 1, c])
        division.size[f] = size
    # the largest first; of equals, the one found first
    for f in range(items):
        at = f
        while at > 0 and division.size[division.order[at - 1]] < division.size[f]:
            division.order[at] = division.order[at - 1]
            at -= 1
        division.order[at] = f
    for c in range(channels):
        reach = 1.0
        for f in range(items):
            reach += abs(division.part[f, 0, c]) + abs(division.part[f, 1, c])
        # a node that is farther below than all items reach never pays; infinities do not subtract
        here = max(walk.excess[x, c], -4.0 * reach)
        division.total[c] = here + max(walk.excess[y, c], -4.0 * reach)
        division.low[0, c] = here
        division.high[0, c] = here
        for f in range(items):
            now, other = division.part[f, 0, c], division.part[f, 1, c]
            division.low[0, c] += min(now, other) - now
            division.high[0, c] += max(now, other) - now
    for side in range(2):
        n = x if side == 0 else y
        for d in range(dimensions):
            division.taken[0, side, d] = -walk.room[n, d]
            for f in range(items):
                now, other = division.held[f, 0, side, d], division.held[f, 1, side, d]
                division.taken[0, side, d] += min(now, other) - now
    division.spent[0] = 0.0
    for f in range(items):
        division.spent[0] += min(0.0, division.moving[f])


@inline_only
def decide(division: Division, walk: CostState, depth: int, option: int, least: float) -> float:
    """Give the item at ``depth`` its ``option``; the bound then, inf where room is lacking."""
    f = division.order[depth]
    spent = division.spent[depth] - min(0.0, division.moving[f])
    if option == 1:
        spent += division.moving[f]
    division.spent[depth + 1] = spent
    for side in range(2):
        for d in range(walk.room.shape[1]):
            now, other = division.held[f, 0, side, d], division.held[f, 1, side, d]
            more = division.held[f, option, side, d] - min(now, other)
            division.taken[depth + 1, side, d] = division.taken[depth, side, d] + more
            if more > 0.0 and division.taken[depth + 1, side, d] > 0.0:
                return np.inf
    bound = spent
    for c in range(walk.weight.shape[0]):
        now, other = division.part[f, 0, c], division.part[f, 1, c]
        chosen = division.part[f, option, c]
        low = division.low[depth, c] + (chosen - min(now, other))
        high = division.high[depth, c] + (chosen - max(now, other))
        division.low[depth + 1, c] = low
        division.high[depth + 1, c] = high
        total = division.total[c]
        bound += walk.weight[c] * max(max(0.0, total), max(low, total - high))
        if bound >= least:
            return np.inf
    return bound


@device_function
def divide(
    division: Division, walk: CostState, items: int, least: float, work: int
) -> tuple[float, int]:
    """Find the division of least cost below ``least``, into ``division.best``.

    Returns its cost, or ``least``, and the branches looked at; more than ``work`` are not, and then
    there may be a better one.
    """  # fmt: skip
    best = least
    looked = 0
    depth = 0
    if items > 0:
        division.tried[0] = 0
    while depth >= 0 and items > 0:
        if division.tried[depth] == 2 or looked >= work:
            depth -= 1
            continue
        if division.tried[depth] == 0:
            stays = decide(division, walk, depth, index(0), best)
            goes = decide(division, walk, depth, index(1), best)
            looked += 2
            division.option[depth] = 0 if stays <= goes else 1
            if min(stays, goes) >= best:
                depth -= 1
                continue
        else:
            division.option[depth] = 1 - division.option[depth]
        division.tried[depth] += 1
        bound = decide(division, walk, depth, division.option[depth], best)
        if bound >= best:
            continue
        if depth + 1 < items:
            depth += 1
            division.tried[depth] = 0
            continue
        best = bound
        for i in range(items):
            division.best[division.order[i]] = division.option[i]
    return best, looked


@no_alloc
def repartition(
    problem: Problem,
    state: State,
    walk: CostState,
    division: Division,
    joint: CompoundMove,
    x: int,
    y: int,
    replica: NDArray[np.int64],
    count: int,
    work: int,
) -> tuple[float, int]:
    """Divide what is on two nodes anew, if that lowers the cost.

    ``x``, ``y``: two nodes; ``replica (R,)``: replicas on them; the first ones are items as long as
    there is room for items; ``count``: how many of ``replica`` to look at; ``work``: branches to
    look at. Returns change of the cost, at most 0; branches looked at, at least 1.

    Complexity: O(C + D) a branch, at most 2^F of them.
    """
    items = find_items(problem, state, division, x, y, replica, count)
    weigh_items(problem, state, walk, division, x, y, items)
    now = walk.cost[x] + walk.cost[y]
    least = now - LEAST_GAIN * max(1.0, abs(walk.total[0]))
    best, looked = divide(division, walk, items, least, work)
    if best >= least:
        return 0.0, looked + 1
    joint.number[0] = 0
    for f in range(items):
        if division.best[f] == 1:
            for turn in range(2):
                k = division.item[f, turn]
                if k >= 0:
                    add_move(joint, k, y if state.node[k] == x else x)
    return make_moves(problem, state, walk, joint), looked + 1


@inline_only
def gather(
    state: State,
    x: int,
    y: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    replica: NDArray[np.int64],
) -> int:
    """List the replicas of two nodes in turns, as far as ``replica (R,)`` goes; returns how many.

    ``first (N + 1,)`` and ``member (.,)`` list those of each node, some of which may have left.
    """
    count = 0
    i, j = first[x], first[y]
    while count < replica.shape[0] and (i < first[x + 1] or j < first[y + 1]):
        if j >= first[y + 1] or (i < first[x + 1] and i - first[x] <= j - first[y]):
            k, n = member[i], x
            i += 1
        else:
            k, n = member[j], y
            j += 1
        if state.node[k] == n:
            replica[count] = k
            count += 1
    return count


@no_alloc
def repartition_each(
    problem: Problem,
    state: State,
    walk: CostState,
    division: Division,
    joint: CompoundMove,
    pair: NDArray[np.int64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    replica: NDArray[np.int64],
    begin: int,
    branches: int,
    work: int,
) -> tuple[int, int, int]:
    """Divide the replicas of many pairs of nodes anew, one pair after the other.

    ``pair (Q, 2)``: nodes; ``first (N + 1,)``: where the replicas of each node begin in ``member``;
    ``member (.,)``: replicas of the nodes as they were at the start; where there are too many, the
    first count; ``replica (R,)``: scratch: so many replicas of two nodes are looked at; ``begin``:
    pair to begin with; ``branches``: most branches for a pair; ``work``: branches after which no
    other pair is begun. Returns pair to begin with next; Q when all are done; branches looked at;
    pairs that were divided better.
    """
    done, made = 0, 0
    for q in range(begin, pair.shape[0]):
        if done >= work:
            return q, done, made
        x, y = pair[q, 0], pair[q, 1]
        count = gather(state, x, y, first, member, replica)
        change, looked = repartition(
            problem, state, walk, division, joint, x, y, replica, count, branches
        )
        # finding and weighing the items costs about as much as so many branches
        done += looked + count
        made += int(change < 0.0)
    return pair.shape[0], done, made
