"""Break out of local minima: make the change that relieves the fullest node most, without a move.

A walk that draws its changes at random seldom hits the few that help once few nodes are overfull.
Here the fullest node evaluates all changes that need no further move: transfer a leadership; trade
a replica that came to it for another that moves anyway, or send it elsewhere; let one of its own
leave in place of one that left. Where nothing helps, the node's excess over its watermark weighs
more from then on, so that others make room for it, and for a while it is passed over.

References
----------
P. Morris, "The breakout method for escaping from local minima", AAAI (1993): the weights.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.problem import (
    PartitionArrays,
    Problem,
    State,
    index,
    leads_now,
    load_of,
    squared_excess,
)
from evenkeel_kernels.core.state import move, move_if_admitted, transfer_leader
from evenkeel_kernels.levelling.penalty import Targets
from evenkeel_kernels.levelling.threshold_walk import trade_if_admitted

LEAST = -1e-14  # change of the penalty that is worth making
GROWTH, HEAVIEST = 1.1, 100.0  # of a weight
SPAN = 512  # replicas that each one in turn is compared with before another node has its turn
LOOKS_PER_SCAN = 8  # entries of a list gone through at the cost of one candidate
PATIENCE = 8  # turns for each node without a change before it is given up
TURN, LOOKED, START, CHANGED = 0, 1, 2, 3


@by_reference
class Breakout(NamedTuple):
    """What breaking out remembers from turn to turn."""

    weight: NDArray[np.float64]  # (D, N) what a node's penalty counts
    rest: NDArray[np.int64]  # (N,) turn until which a node is passed over
    tally: NDArray[np.int64]  # (4,) turns, candidates looked at, where the next comparison
    # starts, turn of the last change
    partner: NDArray[np.int64]  # (M,) scratch: those that a replica is compared with


def new_breakout(state: State, moved: NDArray[np.int64]) -> Breakout:
    """Begin with equal weights, for the replicas that ``moved``. O(D N)."""
    return Breakout(
        np.ones_like(state.load),
        np.zeros(state.load.shape[1], np.int64),
        np.zeros(4, np.int64),
        np.empty(max(SPAN, state.load.shape[1], moved.shape[0]), np.int64),
    )


def gave_up(breakout: Breakout) -> bool:
    """Whether nothing has changed for so long that nothing will."""
    idle = breakout.tally[TURN] - breakout.tally[CHANGED]
    return bool(idle >= PATIENCE * breakout.rest.shape[0])


@inline_only
def more_leaders(state: State, targets: Targets, n: int, more: int) -> float:
    """Change of the penalty if node ``n`` led so many more."""
    scale = targets.leader_scale[n]
    return squared_excess((state.leaders[n] + more) * scale, 1.0) - squared_excess(
        state.leaders[n] * scale, 1.0
    )


@inline_only
def more_load(
    state: State, targets: Targets, weight: NDArray[np.float64], d: int, n: int, more: float
) -> float:
    """Change of the penalty, by ``weight (D, N)``, if ``n`` carried ``more`` in dimension ``d``."""
    now = state.load[d, n] * targets.scale[d, n]
    then = (state.load[d, n] + more) * targets.scale[d, n]
    return weight[d, n] * (
        squared_excess(then, targets.threshold) - squared_excess(now, targets.threshold)
    )


@inline_only
def lead_passing(
    partitions: PartitionArrays,
    state: State,
    targets: Targets,
    weight: NDArray[np.float64],
    p: int,
    n: int,
    more: int,
) -> float:
    """Change of ``n``'s penalty, by ``weight (D, N)``, if it led ``p`` (``more`` 1) or not (-1)."""
    change = more_leaders(state, targets, n, more)
    for d in range(state.load.shape[0]):
        extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
        if extra != 0.0:
            change += more_load(state, targets, weight, d, n, more * extra)
    return change


@inline_only
def replaced(
    partitions: PartitionArrays,
    state: State,
    targets: Targets,
    weight: NDArray[np.float64],
    k: int,
    i: int,
    n: int,
) -> float:
    """Change of the penalty of ``n``, by ``weight (D, N)``, if ``i`` stood there and not ``k``.

    O(D).
    """
    change, leaders = 0.0, 0
    if i >= 0:
        leaders += int(leads_now(partitions.first, state.leader, index(partitions.owner[i]), i))
    if k >= 0:
        leaders -= int(leads_now(partitions.first, state.leader, index(partitions.owner[k]), k))
    if leaders != 0:
        change = more_leaders(state, targets, n, leaders)
    for d in range(state.load.shape[0]):
        load = load_of(partitions, state, i, d) if i >= 0 else 0.0
        if k >= 0:
            load -= load_of(partitions, state, k, d)
        change += more_load(state, targets, weight, d, n, load)
    return change


@inline_only
def fullest(state: State, targets: Targets, breakout: Breakout) -> int:
    """Find the node that is most above its watermarks, by weight; -1 if none is."""
    # one that is passed over is taken only if all overfull ones are
    best = index(-1)
    most = 0.0
    awake = False
    turn = breakout.tally[TURN] + 1
    for n in range(state.load.shape[1]):
        excess = max(0.0, state.leaders[n] * targets.leader_scale[n] - 1.0)
        for d in range(state.load.shape[0]):
            over = state.load[d, n] * targets.scale[d, n] - 1.0
            if over > 0.0:
                excess += breakout.weight[d, n] * over
        if excess > 0.0:
            up = breakout.rest[n] <= turn
            if (up and not awake) or (up == awake and excess > most):
                most = excess
                best = index(n)
                awake = up
    return best


@device_function
def hand_best_on(
    problem: Problem, state: State, targets: Targets, breakout: Breakout, k: int, least: float
) -> float:
    """Return by how much the penalty changes if ``k`` hands its leadership on, at best.

    ``least`` where nothing changes it by less; else the slot is left in ``breakout.partner[0]``.
    """
    partitions = problem.partitions
    p = index(partitions.owner[k])
    here = index(state.node[k])
    relief = lead_passing(partitions, state, targets, breakout.weight, p, here, index(-1))
    if relief >= least:
        return least
    for slot in range(partitions.first[p + 1] - partitions.first[p]):
        there = index(state.node[partitions.first[p] + slot])
        if there < 0 or there == here:
            continue
        breakout.tally[LOOKED] += 1
        change = relief + lead_passing(
            partitions, state, targets, breakout.weight, p, there, index(1)
        )
        if change < least and admits_leader(problem, state, p, slot):
            least = change
            breakout.partner[0] = slot
    return least


@device_function
def best_partner(
    problem: Problem,
    state: State,
    targets: Targets,
    breakout: Breakout,
    moved: NDArray[np.int64],
    k: int,
    partners: int,
    least: float,
) -> tuple[int, float]:
    """Find which of the first so many ``breakout.partner`` (places in ``moved``) to trade with.

    Returns the place, -1 if no trade changes the penalty by less than ``least``, and that change.
    """
    partitions = problem.partitions
    weight = breakout.weight
    here = index(state.node[k])
    best = index(-1)
    breakout.tally[LOOKED] += partners
    for at in range(partners):
        i = moved[breakout.partner[at]]
        there = index(state.node[i])
        change = replaced(partitions, state, targets, weight, k, i, here)
        if change >= least or partitions.owner[k] == partitions.owner[i]:
            continue
        if partitions.home[k] == there:
            continue
        change += replaced(partitions, state, targets, weight, i, k, there)
        if change < least and trade_if_admitted(problem, state, k, i):
            move(problem, state, k, here)
            move(problem, state, i, there)
            least = change
            best = index(breakout.partner[at])
    return best, least


@device_function
def best_place(
    problem: Problem, state: State, targets: Targets, breakout: Breakout, k: int, least: float
) -> tuple[int, float]:
    """Find the node to send ``k`` to, as `best_partner` finds a partner; home is none."""
    partitions = problem.partitions
    here = index(state.node[k])
    best = index(-1)
    no, weight = index(-1), breakout.weight
    relief = replaced(partitions, state, targets, weight, k, no, here)
    breakout.tally[LOOKED] += state.load.shape[1]
    for n in range(state.load.shape[1]):
        if n == here or n == partitions.home[k]:
            continue
        change = relief + replaced(partitions, state, targets, weight, no, k, index(n))
        if change < least and move_if_admitted(problem, state, k, index(n)):
            move(problem, state, k, here)
            least = change
            best = index(n)
    return best, least


@no_alloc
def break_out(
    problem: Problem,
    state: State,
    targets: Targets,
    moved: NDArray[np.int64],
    home_first: NDArray[np.int64],
    home_member: NDArray[np.int64],
    breakout: Breakout,
    most: int,
) -> bool:
    """Relieve the fullest node, time and again; True as soon as it finds that none is overfull.

    Ends once ``most`` candidates have been looked at in all, or nothing has helped for long.
    ``moved`` lists the moved replicas, and is kept up to date; none is added. ``home_first (N +
    1,)`` and ``home_member`` list the replicas by the node they came from. Going on with the same
    ``breakout`` does what one call would.

    Complexity: O(D N) for each turn, and O(D) for each candidate.
    """
    partitions = problem.partitions
    partner = breakout.partner
    count = moved.shape[0]
    patience = PATIENCE * state.load.shape[1]
    while (
        breakout.tally[LOOKED] < most and breakout.tally[TURN] - breakout.tally[CHANGED] < patience
    ):
        here = fullest(state, targets, breakout)
        if here < 0:
            return True
        breakout.tally[TURN] += 1
        least = LEAST
        best, other, place = index(-1), index(-1), index(-1)
        breakout.tally[LOOKED] += 1 + (count + state.load.shape[1]) // LOOKS_PER_SCAN
        own = home_first[here + 1] - home_first[here]
        for at in range(own + count):
            k = home_member[home_first[here] + at] if at < own else moved[at - own]
            p = index(partitions.owner[k])
            if state.node[k] != here or not leads_now(partitions.first, state.leader, p, k):
                continue
            change = hand_best_on(problem, state, targets, breakout, k, least)
            if change < least:
                least, best, other = change, index(k), partner[0]
        if best >= 0:
            transfer_leader(problem, state, index(partitions.owner[best]), other)
            breakout.tally[CHANGED] = breakout.tally[TURN]
            continue
        partners = 0
        for at in range(count):
            i = moved[at]
            if partitions.home[i] == here and state.node[i] != here and state.node[i] >= 0:
                partner[partners] = at
                partners += 1
        for at in range(own if partners > 0 else 0):
            k = home_member[home_first[here] + at]
            if state.node[k] == here:
                found, least = best_partner(
                    problem, state, targets, breakout, moved, k, partners, least
                )
                if found >= 0:
                    best, other = index(k), found
        partners = 0
        for at in range(min(SPAN, count)):
            place_in = (breakout.tally[START] + at) % count
            i = moved[place_in]
            if state.node[i] != here and state.node[i] >= 0 and partitions.home[i] != here:
                partner[partners] = place_in
                partners += 1
        for at in range(count):
            k = moved[at]
            if state.node[k] != here or partitions.home[k] == here:
                continue
            found, least = best_partner(
                problem, state, targets, breakout, moved, k, partners, least
            )
            if found >= 0:
                best, other, place = index(k), found, index(-1)
            found, least = best_place(problem, state, targets, breakout, k, least)
            if found >= 0:
                best, place = index(k), found
        if count > 0:
            breakout.tally[START] = (breakout.tally[START] + SPAN) % count
        if best >= 0:
            breakout.tally[CHANGED] = breakout.tally[TURN]
        if best < 0:
            overfull = 0
            for d in range(state.load.shape[0]):
                if state.load[d, here] * targets.scale[d, here] > 1.0:
                    breakout.weight[d, here] = min(breakout.weight[d, here] * GROWTH, HEAVIEST)
            for n in range(state.load.shape[1]):
                overfull += int(breakout.rest[n] > breakout.tally[TURN])
            breakout.rest[here] = breakout.tally[TURN] + 1 + overfull // 2
        elif place >= 0:
            move(problem, state, best, place)
        elif trade_if_admitted(problem, state, best, moved[other]):
            if partitions.home[best] == here:
                moved[other] = best
    return False
