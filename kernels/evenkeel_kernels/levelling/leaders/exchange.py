"""Move a follower instead of a leader: the leader stays, and the follower leaves its node.

The replicas that leave a node are chosen before the leaders, so that leaders are among them, each
of which costs a change of leaders. Mostly a follower on the same node would do as well.
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.feasibility import admits, fits, keeps_group_limits
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.problem import (
    VOTER,
    Problem,
    State,
    following_load,
    index,
    is_away,
    leading_node,
    leads_now,
    load_of,
)
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import can_take_over, keeps_floors
from evenkeel_kernels.levelling.penalty import Targets, is_overfull
from evenkeel_kernels.levelling.slices import slices

# looks at every partition, since what goes home makes way for others; and one in how many that are
# led anew must be spared for another look
SWEEPS, WORTHWHILE = 3, 64

# parts of sums of loads, and of numbers of 32 bits, by which they may be off
ROUNDING, FLOAT32 = 1e-12, 1e-6

LOOKS = 5_000_000  # followers, times nodes to go to, that a slice looks at


def spare_leaders(
    problem: Problem,
    state: State,
    targets: Targets,
    floor: NDArray[np.float64],
    stays: NDArray[np.bool_],
    anywhere: bool,
) -> Generator[int, None, int]:
    """Send leaders home whose place a follower of the same node can take; returns how many went.

    Those whose node still has a voter lead again, too. No more replicas move than before, no node
    gets above its target or below its ``floor (D, N)``, and replicas that ``stays (K,)`` names stay
    where they are. The follower goes where the leader was, or with ``anywhere`` to any node. Yields
    the partitions looked at, slice by slice.

    Complexity: O(P), and where leaders moved O(K + P D), and O(D) for each replica on the node of
    each; with ``anywhere`` O(N D).
    """
    nodes, spared = state.load.shape[1], 0
    changed = led_elsewhere(problem, state)
    if len(changed) == 0:
        return spared
    size, share = sizes_of(problem), shares_of_room(problem)
    for _ in range(SWEEPS):
        before = spared
        first, member = by_node(state.node, nodes)
        frees = np.full(len(member), -1.0, np.float32)
        each = (nodes if anywhere else 1) * (1 + len(member) // nodes)
        for begin, end in slices(len(changed), max(1, LOOKS // each)):
            spared += spare_each(
                problem, state, targets, floor, stays, anywhere, first, member, size, share, frees,
                changed[begin:end],
            )  # fmt: skip
            yield end - begin
        if (spared - before) * WORTHWHILE <= len(changed):
            break
        changed = led_elsewhere(problem, state)
    return spared


def led_elsewhere(problem: Problem, state: State) -> NDArray[np.int64]:
    """List the partitions that another node leads than before. O(P)."""
    partitions = problem.partitions
    led = (partitions.led_from >= 0) & (state.leader >= 0)
    if not led.any():
        return np.zeros(0, np.int64)
    now = state.node.take(partitions.first[:-1] + state.leader)  # -1 reads a replica, and is masked
    return np.flatnonzero(led & (now != partitions.led_from))


def sizes_of(problem: Problem) -> NDArray[np.float64]:
    """The greatest part of all room that a replica of each partition takes, (P,). O(P D)."""
    load, room = problem.partitions.voter_load, room_of(problem)
    counted = np.flatnonzero(room > 0.0)
    parts = np.empty((len(counted), len(load)))  # row by row: columns of three are slow to reduce
    np.divide(load.T[counted], room[counted, None], out=parts)
    return np.asarray(np.maximum.reduce(parts, axis=0, initial=0.0))


def room_of(problem: Problem) -> NDArray[np.float64]:
    """The room that all watermarks leave together, (D,). O(D N)."""
    watermark = problem.nodes.watermark
    return np.where(np.isfinite(watermark), watermark, 0.0).sum(axis=1)


def shares_of_room(problem: Problem) -> NDArray[np.float64]:
    """1 / all room, (D,); 0 where there is none. O(D N)."""
    room = room_of(problem)
    return np.divide(1.0, room, out=np.zeros_like(room), where=room > 0.0)


@no_alloc
def spare_each(
    problem: Problem,
    state: State,
    targets: Targets,
    floor: NDArray[np.float64],
    stays: NDArray[np.bool_],
    anywhere: bool,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    size: NDArray[np.float64],
    share: NDArray[np.float64],
    frees: NDArray[np.float32],
    changed: NDArray[np.int64],
) -> int:
    """Do what `spare_leaders` does, once, for the partitions ``changed (M,)``.

    ``floor (D, N)`` and ``stays (K,)`` are those of `spare_leaders`, ``first (N + 1,)`` and
    ``member`` list who is where. Of several followers the one goes that is
    smallest by ``size (P,)``, the first of these. Most are too small, which is seen from what each
    of ``member`` ``frees`` at most, by the ``share (D,)`` of all room that a unit is; it is below 0
    until it is known.
    """
    partitions = problem.partitions
    spared = 0
    for p in changed:
        if handed_back(problem, state, targets, floor, p):
            spared += 1
            continue
        k = moved_leader(problem, state, stays, p)
        if k < 0:
            continue
        here, there = index(partitions.home[k]), index(state.node[k])
        led = index(state.leader[p])
        best, best_to, least = index(-1), index(-1), np.inf
        if first[here] < first[here + 1] and frees[first[here]] < 0.0:
            for i in range(first[here], first[here + 1]):
                frees[i] = most_freed(problem, state, share, index(member[i]))
        needed = least_needed(problem, state, targets, share, k)
        group = partitions.group[p]
        may_return = keeps_group_limits(problem, state, k, here)
        for i in range(first[here], first[here + 1]):
            if frees[i] < needed:
                continue
            j = index(member[i])
            alike = partitions.group[partitions.owner[j]] == group  # others leave its counts alone
            if not may_return and not alike:
                continue
            if not makes_room(problem, state, targets, k, j):
                continue  # most do not, and this asks for the least
            if size[partitions.owner[j]] >= least or state.node[j] != here:
                continue
            if not may_go(problem, state, stays, j):
                continue
            for at in range(state.load.shape[1] + 1 if anywhere else 1):
                to = there if at == 0 else index(at - 1)
                if to == here or not finds_room(problem, state, targets, k, j, to):
                    continue
                if not alike and not keeps_group_limits(problem, state, j, to):
                    continue
                if exchanged(problem, state, targets, floor, k, j, to):
                    put_back(problem, state, k, j, there, led)
                    best, best_to, least = j, to, size[partitions.owner[j]]
                    break
        if best >= 0:
            spared += int(exchanged(problem, state, targets, floor, k, best, best_to))
    return spared


@device_function
def handed_back(
    problem: Problem, state: State, targets: Targets, floor: NDArray[np.float64], p: int
) -> bool:
    """Let the node lead ``p`` that led it, if a voter of it is there; whether it does.

    No node gets above its target by it, nor below its ``floor (D, N)``.
    """
    first, was = problem.partitions.first, index(problem.partitions.led_from[p])
    for k in range(first[p], first[p + 1]):
        slot = index(k - first[p])
        if state.node[k] != was or not keeps_floors(problem, state, floor, p, slot):
            continue
        if can_take_over(problem, state, targets, p, slot):
            transfer_leader(problem, state, p, slot)
            return True
    return False


@inline_only
def moved_leader(problem: Problem, state: State, stays: NDArray[np.bool_], p: int) -> int:
    """Replica of ``p`` that led it where it came from, and moved though it ``stays (K,)`` not.

    -1 for none.
    """
    partitions = problem.partitions
    was = index(partitions.led_from[p])
    now = leading_node(problem, state, p)
    if was < 0 or now == was or now < 0:
        return -1
    for k in range(partitions.first[p], partitions.first[p + 1]):
        n = index(state.node[k])
        if partitions.home[k] != was or n == was or n < 0 or state.role[k] != VOTER:
            continue
        if not stays[k] and partitions.movable[k] and is_away(problem, k, n) > 0:
            return index(k)
    return -1


@inline_only
def may_go(problem: Problem, state: State, stays: NDArray[np.bool_], j: int) -> bool:
    """Whether replica ``j`` follows where it came from, and may leave: not if it ``stays (K,)``."""
    partitions = problem.partitions
    if state.node[j] != partitions.home[j] or stays[j] or not partitions.movable[j]:
        return False
    return not leads_now(partitions.first, state.leader, index(partitions.owner[j]), j)


@inline_only
def most_freed(problem: Problem, state: State, share: NDArray[np.float64], j: int) -> float:
    """The greatest part of all room that the follower ``j`` takes; ``share (D,)`` is of a unit."""
    most = 0.0
    for d in range(share.shape[0]):
        most = max(most, following_load(problem.partitions, state, j, d) * share[d])
    return most


@inline_only
def least_needed(
    problem: Problem, state: State, targets: Targets, share: NDArray[np.float64], k: int
) -> float:
    """Least part of all room that must be freed for ``k`` to lead at home, roundings deducted.

    ``share (D,)`` is what a unit is of all room. Who frees less does not make room.
    """
    partitions = problem.partitions
    here, p = index(partitions.home[k]), index(partitions.owner[k])
    least = 0.0
    for d in range(share.shape[0]):
        if targets.scale[d, here] > 0.0:
            at_home = state.load[d, here] + partitions.leader_load[p, d]
            over = at_home * (1.0 - ROUNDING) - 1.0 / targets.scale[d, here]
            least = max(least, over * share[d])
    return least * (1.0 - FLOAT32)


@inline_only
def makes_room(problem: Problem, state: State, targets: Targets, k: int, j: int) -> bool:
    """Whether ``k`` can lead at home within its target once the follower ``j`` has left. O(D)."""
    partitions = problem.partitions
    here, p = index(partitions.home[k]), index(partitions.owner[k])
    for d in range(state.load.shape[0]):
        size = following_load(partitions, state, j, d)
        at_home = state.load[d, here] + partitions.leader_load[p, d] - size
        if at_home * targets.scale[d, here] > 1.0:
            return False
    return True


@inline_only
def finds_room(problem: Problem, state: State, targets: Targets, k: int, j: int, to: int) -> bool:
    """Whether the follower ``j`` is within the target of ``to`` once ``k`` has gone home. O(D)."""
    partitions = problem.partitions
    there = index(state.node[k])
    for d in range(state.load.shape[0]):
        away = state.load[d, to] + following_load(partitions, state, j, d)
        if to == there:
            away -= load_of(partitions, state, k, d)
        if away * targets.scale[d, to] > 1.0:
            return False
    return True


@inline_only
def is_within(state: State, targets: Targets, floor: NDArray[np.float64], n: int) -> bool:
    """Whether node ``n`` is neither above its target nor below its ``floor (D, N)``."""
    for d in range(state.load.shape[0]):
        if state.load[d, n] < floor[d, n]:
            return False
    return not is_overfull(state, targets, n)


@device_function
def put_back(problem: Problem, state: State, k: int, j: int, there: int, led: int) -> None:
    """Undo an exchange: ``k`` on ``there``, ``j`` at home, the slot ``led`` leading."""
    p = index(problem.partitions.owner[k])
    transfer_leader(problem, state, p, led)
    if state.node[k] != there:
        move(problem, state, k, there)
    if state.node[j] != problem.partitions.home[j]:
        move(problem, state, j, index(problem.partitions.home[j]))


@device_function
def exchanged(
    problem: Problem,
    state: State,
    targets: Targets,
    floor: NDArray[np.float64],
    k: int,
    j: int,
    to: int,
) -> bool:
    """Send ``k`` home to lead, and ``j`` from there to ``to``, if all admits it; whether it did.

    ``floor (D, N)`` is that of `spare_leaders`.
    """
    partitions = problem.partitions
    p = index(partitions.owner[k])
    here, there, led = index(partitions.home[k]), index(state.node[k]), index(state.leader[p])
    leads_from = index(state.node[partitions.first[p] + led])
    slot = index(k - partitions.first[p])
    if is_away(problem, j, to) == 0:
        return False
    move(problem, state, j, index(-1))
    if admits(problem, state, k, here):
        move(problem, state, k, here)
        fitting = fits(problem, state, j, to)  # beside what went home to a domain of both, too
        move(problem, state, j, here)  # what its going breaks is seen only from where it stands
        if fitting and admits(problem, state, j, to):
            move(problem, state, j, to)
            if led == slot or admits_leader(problem, state, p, slot):
                transfer_leader(problem, state, p, slot)
                if (
                    is_within(state, targets, floor, here)
                    and is_within(state, targets, floor, there)
                    and is_within(state, targets, floor, to)
                    and is_within(state, targets, floor, leads_from)
                ):
                    return True
    put_back(problem, state, k, j, there, led)
    return False
