"""Redistribution: make the moves that a balanced cluster needs at least, in slices of work.

Leaders are unassigned, replicas are selected on over-full nodes, every replica that moves finds its
best fit, largest first, and leaders are assigned again.

More replicas move where leadership alone cannot fill the emptier nodes, or relieve the fuller. A
node can carry no more than what its replicas weigh as leaders. Where leading adds to every
dimension, an emptier node can be short of that while the fuller ones, none of them above its
watermark without its leaders, lead more than they have room for: no transfer of leadership helps,
and only replicas that move do. The largest make the fewest moves.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, no_alloc
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.leadership import may_be_led_from
from evenkeel_kernels.core.node_scan import ROUNDING, new_scan
from evenkeel_kernels.core.problem import UNLIMITED, VOTER, Problem, State, index, load_of
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first, repairs_first
from evenkeel_kernels.levelling.crowding import crowded_replicas
from evenkeel_kernels.levelling.leaders.levelling import binds_leaders
from evenkeel_kernels.levelling.leaders.moves import assign_leaders, reinstate, unassign_leaders
from evenkeel_kernels.levelling.offload import select_evictions
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import highest, new_targets
from evenkeel_kernels.levelling.slices import node_slices, replica_slices

MARGIN, MOST_MARGIN = 0.012, 0.5  # what moves beyond what finds no place, since leaders are not
# free to go anywhere: a part of the load, but at most a part of what finds none

# part of all load that sums of loads may be off by; less than that decides nothing
NEGLIGIBLE = 1e-9


def reserve_leader_headroom(
    problem: Problem, state: State, leaving: NDArray[np.bool_], extra: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Choose the largest replicas, until what moves can fill the nodes that would be too empty.

    ``leaving (K,)`` leave anyway; ``extra (D,)`` is what the leaders that have stood down will
    add. At most one replica of a partition is chosen, and none of one that has another leaving:
    only one of them can lead where it goes.

    Complexity: O(K D + K log K).
    """
    partitions = problem.partitions
    share = partitions.leader_load / np.maximum(state.load.sum(axis=1) + extra, 1e-30)
    heaviest = np.argsort(-share.max(axis=1, initial=0.0), kind="stable")
    could = np.zeros(state.load.shape)
    moving = np.zeros(state.leader.shape[0], np.bool_)
    wanting, total = np.zeros(state.load.shape[0]), np.zeros(state.load.shape[0])
    pool = np.empty(state.leader.shape[0], np.int64)
    count = draw_off_each(
        problem, state, leaving, extra, heaviest, could, moving, wanting, total, pool
    )
    return pool[:count]


def lone_leaders_beyond(
    problem: Problem, state: State, leaving: NDArray[np.bool_], most_leaders: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Choose leaders on nodes that lead more than ``most_leaders (N,)``, though others stood down.

    No other could take over from those that still lead, so that replicas have to move: the smallest
    of those that are not ``leaving (K,)`` anyway, as they fit best elsewhere. O(P log P).
    """
    partitions = problem.partitions
    led = np.flatnonzero(state.leader >= 0)
    replica = partitions.first[led] + state.leader[led]
    replica = replica[~leaving[replica] & (state.node[replica] >= 0)]
    beyond = np.bincount(state.node[replica], minlength=len(most_leaders)) - np.floor(
        most_leaders * (1.0 + NEGLIGIBLE)
    )
    replica = replica[partitions.movable[replica] & (beyond[state.node[replica]] > 0.0)]
    share = partitions.leader_load / np.maximum(state.load.sum(axis=1), 1e-30)
    size, node = share.max(axis=1, initial=0.0)[partitions.owner[replica]], state.node[replica]
    order = np.lexsort((size, node))
    begin = np.searchsorted(node[order], node[order])
    return replica[order[np.arange(len(order)) - begin < beyond[node[order]]]]


@no_alloc
def draw_off_each(
    problem: Problem,
    state: State,
    leaving: NDArray[np.bool_],
    extra: NDArray[np.float64],
    heaviest: NDArray[np.int64],
    could: NDArray[np.float64],
    moving: NDArray[np.bool_],
    wanting: NDArray[np.float64],
    total: NDArray[np.float64],
    pool: NDArray[np.int64],
) -> int:
    """Fill ``pool (P,)`` for `reserve_leader_headroom`; returns how many.

    ``leaving`` and ``extra`` as there; ``heaviest (P,)`` lists the partitions, the largest first.
    ``could (D, N)``, ``moving (P,)`` and ``wanting (D,)`` start out as zero: what each node would
    carry if all it keeps led, which partitions have a replica leaving, and the load that finds no
    place yet. ``total (D,)`` becomes all load.
    """
    partitions, watermark = problem.partitions, problem.nodes.watermark
    dimensions, n_nodes = state.load.shape
    for d in range(dimensions):
        wanting[d] = extra[d]
        for n in range(n_nodes):
            wanting[d] += state.load[d, n]
        total[d] = wanting[d]
    for p in range(moving.shape[0]):
        for k in range(partitions.first[p], partitions.first[p + 1]):
            if leaving[k]:
                for d in range(dimensions):
                    load = partitions.voter_load[p, d]
                    if not moving[p]:
                        load = partitions.leader_load[p, d]
                    wanting[d] -= load if state.node[k] >= 0 else load - partitions.voter_load[p, d]
                moving[p] = True
            elif state.node[k] >= 0:
                leads = state.role[k] == VOTER and may_be_led_from(problem, k, index(state.node[k]))
                for d in range(dimensions):
                    load = load_of(partitions, state, k, d)
                    could[d, state.node[k]] += partitions.leader_load[p, d] if leads else load
    for d in range(dimensions):
        for n in range(n_nodes):
            wanting[d] -= min(watermark[d, n], could[d, n])
        if wanting[d] > 0.0:
            wanting[d] += min(MARGIN * total[d], MOST_MARGIN * wanting[d])
    count = index(0)
    for p in heaviest:
        short = False
        for d in range(dimensions):
            short = short or wanting[d] > NEGLIGIBLE * total[d]
        if not short:
            break
        for k in range(partitions.first[p], partitions.first[p + 1]):
            n = state.node[k]
            if moving[p] or n < 0 or not partitions.movable[k] or state.role[k] != VOTER:
                continue
            full = True
            for d in range(dimensions):
                keeps = could[d, n] - partitions.leader_load[p, d]
                full = full and keeps >= watermark[d, n] - NEGLIGIBLE * total[d]
            if not full:
                continue
            for d in range(dimensions):
                could[d, n] -= partitions.leader_load[p, d]
                wanting[d] -= partitions.leader_load[p, d]
            moving[p] = True
            pool[count] = k
            count += 1
    return count


@by_reference
class Ease(NamedTuple):
    """How much room leadership needs and has."""

    share: NDArray[np.float64]  # (D,) part of the watermarks that leaders take on average
    firm: float  # part of its share that a node must keep free when it gives replicas away
    reserve: float  # part of its share that best fit keeps free on a node


def leader_ease(problem: Problem, state: State, extra: NDArray[np.float64]) -> Ease:
    """Judge how much room to keep for leaders whose load is ``extra (D,)`` in all. O(D N)."""
    # The more the watermarks leave over in the dimensions that leaders load, the less a node that
    # gives replicas away need free for them, since other nodes can lead more, and the more of their
    # share best fit can afford to keep free where it puts replicas. Measured, not derived.
    watermark = problem.nodes.watermark
    counted = np.isfinite(watermark) & problem.nodes.leads
    room = np.where(counted, watermark, 0.0).sum(axis=1)
    share = np.clip(np.divide(extra, room, out=np.zeros_like(extra), where=room > 0.0), 0.0, 0.9)
    free = np.where(counted, watermark - state.load, 0.0).sum(axis=1) - extra
    led = share > 0.0
    ease = float((free[led] / (room[led] * share[led])).min(initial=1.0))
    return Ease(
        share,
        0.0 if led.all() else min(max(0.5 - 0.4 * ease, 0.25), 0.5),
        min(max(0.5 + 2.0 * ease, 0.5), 1.0),
    )


def moves_made(problem: Problem, state: State, forced: NDArray[np.bool_]) -> int:
    """Count the replicas that have moved though nothing forced them; dropping one is none. O(K)."""
    return int(((state.node >= 0) & (state.node != problem.partitions.home) & ~forced).sum())


def penalty_threshold(problem: Problem, state: State, part: float) -> float:
    """Target ratio that lies below 1 by ``part`` of the slack in the tightest dimension. O(D N)."""
    watermark = problem.nodes.watermark
    counted = np.isfinite(watermark)
    room = np.where(counted, watermark, 0.0).sum(axis=1)
    load = np.where(counted, state.load, 0.0).sum(axis=1)
    slack = np.divide(room - load, room, out=np.ones_like(room), where=room > 0.0)
    return 1.0 - part * float(np.clip(slack.min(initial=1.0), 0.0, 0.1))


def give_and_take(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    most_moves: int,
    parameters: Parameters,
    leaders_stand_down: bool,
) -> Generator[int, None, int]:
    """Choose what moves and put it down, while those that another could replace lead nothing.

    Where leaders must not stand down, replicas weigh what they weigh now, leaders included.
    ``forced (K,)`` and ``most_leaders (N,)`` are those of `placed_anew`, and so is what it yields
    and returns. Leaders come back also where the caller stops halfway.
    """
    targets = new_targets(problem, most_leaders, 1.0)
    too_full = forced.any() or highest(state, targets) > 1.0
    was = np.empty(state.leader.shape[0], np.int16)
    extra = np.empty(state.load.shape[0])
    stood_down = leaders_stand_down and not binds_leaders(problem)
    if stood_down:
        unassign_leaders(problem, state, was, extra)
    else:  # what stands down could come back elsewhere, or find its room taken
        was[:] = state.leader
        extra[:] = 0.0
    ease = leader_ease(problem, state, extra)
    scan = new_scan(problem, ease.reserve * ease.share, most_leaders)
    moved = 0
    try:
        leaving, must = np.zeros_like(forced), forced
        if too_full:
            must = yield from mark_leaving(problem, state, forced, was, ease, extra, leaving)
            if stood_down and np.isfinite(most_leaders).any():
                leaving[lone_leaders_beyond(problem, state, forced | leaving, most_leaders)] = True
        if most_moves < UNLIMITED:
            left = max(0, most_moves - moves_made(problem, state, forced))
            if left < leaving.sum():
                leaving[largest_first(problem, leaving)[left:]] = False
        order = repairs_first(problem, state, forced & (state.node < 0), forced | leaving)
        evicted = forced[order] & (state.node[order] >= 0)
        if evicted.any():  # what is lost has the first choice, then what must leave where it lives
            order = order[np.argsort(evicted + 2 * leaving[order], kind="stable")]
        for begin, end in replica_slices(problem, order):
            moved += best_fit(
                problem, state, scan, order, must, was >= 0, parameters.ceiling, begin, end
            )
            yield end - begin
    finally:
        assign_leaders(problem, state, scan, was)
    return moved


def mark_leaving(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    was: NDArray[np.int16],
    ease: Ease,
    extra: NDArray[np.float64],
    leaving: NDArray[np.bool_],
) -> Generator[int, None, NDArray[np.bool_]]:
    """Mark in ``leaving (K,)`` what over-full and crowded nodes give away; yields nodes looked at.

    ``forced (K,)`` leaves anyway; ``was (P,)`` led before; ``extra (D,)`` is what the leaders that
    stood down will add. Returns what must leave: that, and who is too many of its group.
    """
    nodes = state.load.shape[1]
    first, member = scattered_by_node(problem.partitions, state.node, was, nodes)
    crowded = crowded_replicas(problem, state, forced, was, first, member)
    leaving |= crowded & ~forced
    for begin, end in node_slices(nodes, len(member)):
        leaving[
            select_evictions(
                problem, state, crowded, ease.share, ease.firm, first, member, begin, end
            )
        ] = True
        yield end - begin
    if (ease.share > 0.0).all():
        leaving[reserve_leader_headroom(problem, state, forced | leaving, extra)] = True
        yield nodes
    return crowded


def is_overrun(
    problem: Problem,
    state: State,
    leader: NDArray[np.int16],
    load: NDArray[np.float64],
    domain_load: NDArray[np.float64],
) -> bool:
    """Whether a node or domain is fuller and beyond its capacity, or one led before is not now.

    ``leader (P,)``, ``load (D, N)`` and ``domain_load (D, domains)`` are those before.
    O(P + D (N + domains)).
    """
    for now, before, capacity in (
        (state.load, load, problem.nodes.capacity),
        (state.domain_load, domain_load, problem.domains.tier_capacity),
    ):
        if ((now > capacity * (1.0 + ROUNDING)) & (now > before * (1.0 + ROUNDING))).any():
            return True
    return bool(((leader >= 0) & (state.leader < 0)).any())


def placed_anew(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    most_moves: int,
    parameters: Parameters = DEFAULT,
) -> Generator[int, None, int]:
    """Re-home the ``forced (K,)`` replicas and level the cluster with about the fewest moves.

    At most ``most_moves`` replicas that are not forced are moved, and no node shall lead more than
    ``most_leaders (N,)``. Watermarks must be inf on nodes that do not count (dead ones). Yields
    what each slice looked at, and returns how many replicas were moved. Where the caller stops
    halfway, what was done until then stands, unless it left a node over-full.

    Complexity: O(K D + K log K), and O(D N) for each replica that moves.
    """
    before = state.node.copy(), state.leader.copy(), state.load.copy(), state.domain_load.copy()
    moved, overrun = 0, False
    try:
        moved = yield from give_and_take(
            problem, state, forced, most_leaders, most_moves, parameters, True
        )
    finally:
        overrun = is_overrun(problem, state, *before[1:])
        if overrun:
            reinstate(problem, state, *before[:2])
    if overrun:
        moved = yield from give_and_take(
            problem, state, forced, most_leaders, most_moves, parameters, False
        )
    return moved
