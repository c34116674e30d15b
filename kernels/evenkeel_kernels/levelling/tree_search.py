"""Completing a placement of a small cluster: mending it with at most so many moves.

A depth-first search, through most of the ways there are. In what is still too full something must
leave the most pressed node, and of a partition whose rules are broken some replica must move: so
only those are tried, each replica once on a way. A way ends where more nodes are too full than
moves are left, even if all that lead there stood down. Ways that put a replica on a node that is
too full already, or break more rules of a partition before they break fewer, are not gone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index, is_away, leads_now
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.annealing import (
    Aim,
    Best,
    Course,
    count_up,
    faults_of,
    moved_if_joining,
    note,
    strain,
)
from evenkeel_kernels.levelling.leaders.moves import may_lead
from evenkeel_kernels.levelling.repair import breaches

NOWHERE = -1  # nothing is to be mended


@by_reference
class Trail(NamedTuple):
    """The way that is being tried, a step a row, and what was touched on it."""

    spot: NDArray[np.int64]  # (S,) node to relieve, or N + p to mend partition p
    cursor: NDArray[np.int64]  # (S,) next change to try there
    left: NDArray[np.int64]  # (S,) moves left before the step
    replica: NDArray[np.int64]  # (S,) what changed: a replica, or K + p for who leads p
    before: NDArray[np.int64]  # (S,) its node, or the slot that led
    touched: NDArray[np.bool_]  # (K,) replicas moved on the way
    handed: NDArray[np.bool_]  # (P,) partitions handed on, on the way
    lighter: NDArray[np.float64]  # (D, N) what leading adds to the load of a node


@inline_only
def moves_needed(problem: Problem, state: State, aim: Aim, course: Course, trail: Trail) -> int:
    """Count the moves that are needed at least: one for each node or partition, who leads apart.

    O(P D + N D).
    """
    partitions = problem.partitions
    scale = aim.targets.scale
    for d in range(scale.shape[0]):
        for n in range(scale.shape[1]):
            trail.lighter[d, n] = 0.0
    for p in range(state.leader.shape[0]):
        slot = state.leader[p]
        if slot < 0 or partitions.first[p + 1] - partitions.first[p] < 2 or trail.handed[p]:
            continue
        n = index(state.node[partitions.first[p] + slot])
        if n >= 0:
            for d in range(scale.shape[0]):
                extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
                trail.lighter[d, n] += max(extra, 0.0)
    nodes = 0
    for n in range(scale.shape[1]):
        for d in range(scale.shape[0]):
            least = (state.load[d, n] - trail.lighter[d, n]) * scale[d, n]
            if least > aim.targets.knee:
                nodes += 1
                break
    broken = 0
    for p in range(state.leader.shape[0]):
        if course.faults[p] > 0:
            broken += int(breaches(problem, state, p, index(-1), index(-1)) > 0)
    return max(nodes, broken)


@inline_only
def most_pressing(state: State, aim: Aim, course: Course) -> int:
    """Return the node to relieve next, or N + the partition to mend; ``NOWHERE`` for none."""
    n_nodes = state.replicas.shape[0]
    for p in range(course.faults.shape[0]):
        if course.faults[p] > 0:
            return n_nodes + p
    most = aim.targets.knee
    spot = index(NOWHERE)
    for n in range(n_nodes):
        ratio = state.leaders[n] * aim.targets.leader_scale[n]
        for d in range(state.load.shape[0]):
            ratio = max(ratio, state.load[d, n] * aim.targets.scale[d, n])
        if ratio > most:
            most = ratio
            spot = n
    return spot


@no_alloc
def complete(
    problem: Problem,
    state: State,
    aim: Aim,
    course: Course,
    best: Best,
    trail: Trail,
    most_moves: int,
    effort: NDArray[np.int64],
) -> bool:
    """Mend and relieve all with at most ``most_moves`` moves; whether ``best`` got better.

    If so, ``state`` is what was found, else as it was. ``effort (1,)`` is how many changes may
    still be tried, and is kept up to date. What is away from home may go elsewhere for nothing.

    Complexity: O(P D + R^2 levels) for each change that is tried.
    """
    partitions = problem.partitions
    n_nodes, n_replicas = state.replicas.shape[0], state.node.shape[0]
    for k in range(n_replicas):
        trail.touched[k] = False
    for p in range(trail.handed.shape[0]):
        trail.handed[p] = False
    level = 0
    trail.left[0] = most_moves
    trail.cursor[0] = 0
    trail.spot[0] = most_pressing(state, aim, course)
    if moves_needed(problem, state, aim, course, trail) > most_moves:
        return False
    if trail.spot[0] == NOWHERE:
        count_up(problem, state, course)
        return note(problem, state, aim, course, best, 0.0)
    while level >= 0:
        spot = trail.spot[level]
        c = trail.cursor[level]
        went = False
        while c < n_replicas * (n_nodes + 1) and effort[0] > 0:
            k = c // (n_nodes + 1)
            n = c - k * (n_nodes + 1)  # n_nodes stands for: lead
            p = index(partitions.owner[k])
            here = index(state.node[k])
            slot = state.leader[p]
            leads = leads_now(partitions.first, state.leader, p, k)
            on_spot = p == spot - n_nodes if spot >= n_nodes else here == spot
            if n < n_nodes:
                if not on_spot or trail.touched[k] or not partitions.movable[k]:
                    c = k * (n_nodes + 1) + n_nodes
                    continue
                c += 1
                if n == here or (here < 0 and not course.forced[k]):
                    continue
                cost = is_away(problem, k, n)
                if here >= 0:
                    cost -= is_away(problem, k, here)
                if cost > trail.left[level]:
                    continue
                was_overfull = strain(problem, state, aim, 1.0, n) > 0.0
                if was_overfull or not moved_if_joining(problem, state, course, k, n, -1):
                    continue
                trail.replica[level] = k
                trail.before[level] = here
            else:
                c += 1
                if leads or not course.led[p] or trail.handed[p]:
                    continue
                if spot < n_nodes and (slot < 0 or state.node[partitions.first[p] + slot] != spot):
                    continue
                if spot >= n_nodes and not on_spot:
                    continue
                if not may_lead(problem, state, p, k):
                    continue
                cost = 0
                trail.replica[level] = n_replicas + p
                trail.before[level] = slot
                transfer_leader(problem, state, p, index(k - partitions.first[p]))
            effort[0] -= 1
            faults = faults_of(problem, state, course, p)
            was_faults = course.faults[p]
            course.faults[p] = faults
            left = trail.left[level] - cost
            if n < n_nodes:
                trail.touched[k] = True
            else:
                trail.handed[p] = True
            if faults <= was_faults and level + 1 < trail.spot.shape[0]:
                if moves_needed(problem, state, aim, course, trail) <= left:
                    went = True
                    trail.cursor[level] = c
                    level += 1
                    trail.left[level] = left
                    trail.cursor[level] = 0
                    trail.spot[level] = most_pressing(state, aim, course)
                    if trail.spot[level] == NOWHERE:
                        count_up(problem, state, course)
                        if note(problem, state, aim, course, best, 0.0):
                            return True
                        trail.cursor[level] = n_replicas * (n_nodes + 1)
                    break
            take_step_back(problem, state, course, trail, level)
        if went:
            continue
        level -= 1
        if level >= 0:
            take_step_back(problem, state, course, trail, level)
    return False


@inline_only
def take_step_back(
    problem: Problem, state: State, course: Course, trail: Trail, level: int
) -> None:
    """Undo the step of ``level``."""
    n_replicas = state.node.shape[0]
    what = trail.replica[level]
    if what < n_replicas:
        move(problem, state, index(what), index(trail.before[level]))
        trail.touched[what] = False
        p = index(problem.partitions.owner[what])
    else:
        p = index(what - n_replicas)
        transfer_leader(problem, state, p, index(trail.before[level]))
        trail.handed[p] = False
    course.faults[p] = faults_of(problem, state, course, p)
