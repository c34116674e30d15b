"""Several moves as one: all are made if the rules allow it and the cost falls, or none is.

Moves that are good together may be in one another's way: a replica cannot come before the one whose
place it takes has gone. So each is made as soon as the rules admit it, in any order that works, and
two of one group that only change places are never judged apart. Capacity and cost are judged at the
end.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index, load_of
from evenkeel_kernels.core.state import move, move_cost, sharing_cost
from evenkeel_kernels.cost.annealing import suits, suits_group
from evenkeel_kernels.cost.cost_state import CostState, keep_if_best, refresh, stray

LEAST_GAIN = 1e-12  # part of the cost that a gain must exceed; less is rounding


@by_reference
class CompoundMove(NamedTuple):
    """Moves to make as one, and what is noted while they are made."""

    replica: NDArray[np.int64]  # (J,) each at most once
    target: NDArray[np.int64]  # (J,) where it shall go
    number: NDArray[np.int64]  # (2,) how many there are, and entries of the log
    log_replica: NDArray[np.int64]  # (2 J,)
    log_node: NDArray[np.int64]  # (2 J,) where it came from


def new_joint(most: int) -> CompoundMove:
    """Room for so many moves.

    ``most``: moves.
    """
    return CompoundMove(
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(2, np.int64),
        np.zeros(2 * most, np.int64),
        np.zeros(2 * most, np.int64),
    )


@inline_only
def add_move(joint: CompoundMove, k: int, n: int) -> None:
    """Note that replica ``k`` shall go to ``n``."""
    at = joint.number[0]
    joint.replica[at] = k
    joint.target[at] = n
    joint.number[0] = at + 1


@inline_only
def beside_load(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of what movement and groups cost if replica ``k`` went to ``n``."""
    return move_cost(problem, state, k, n) + sharing_cost(problem, state, k, n)


@inline_only
def are_alike(problem: Problem, state: State, a: int, b: int) -> bool:
    """Whether ``a`` and ``b`` may change places as far as the rules of their group go."""
    partitions = problem.partitions
    p, q = partitions.owner[a], partitions.owner[b]
    return p != q and partitions.group[p] == partitions.group[q] and state.role[a] == state.role[b]


@inline_only
def came_from(state: State, joint: CompoundMove, k: int) -> int:
    """Node that replica ``k`` was on before any move was made."""
    for i in range(joint.number[1]):
        if joint.log_replica[i] == k:
            return index(joint.log_node[i])
    return index(state.node[k])


@inline_only
def domains_hold(problem: Problem, state: State, joint: CompoundMove) -> bool:
    """Whether the domains around all targets have room, or are no fuller than before."""
    domains = problem.domains
    for i in range(domains.limited.shape[0]):
        level = domains.limited[i]
        for m in range(joint.number[0]):
            where = domains.domain[level, joint.target[m]]
            if where < 0:
                continue
            for d in range(state.load.shape[0]):
                if state.domain_load[d, where] <= domains.tier_capacity[d, where]:
                    continue
                more = 0.0
                for j in range(joint.number[0]):
                    k = joint.replica[j]
                    load = load_of(problem.partitions, state, k, d)
                    if domains.domain[level, state.node[k]] == where:
                        more += load
                    if domains.domain[level, came_from(state, joint, k)] == where:
                        more -= load
                if more > 0.0:
                    return False
    return True


@no_alloc
def make_moves(problem: Problem, state: State, walk: CostState, joint: CompoundMove) -> float:
    """Make the moves of ``joint`` if all of them may be made and lower the cost.

    Returns the change of the cost, below 0; 0 where everything is as it was.

    Complexity: O(J^2) for J moves, if each had to wait for the one after it.
    """
    count = joint.number[0]
    joint.number[1] = 0
    before = walk.total[0]
    change = 0.0
    waiting, made = 0, 1
    while made > 0:
        waiting, made = 0, 0
        for i in range(count):
            k, n = joint.replica[i], joint.target[i]
            x = index(state.node[k])
            if x == n:
                continue
            other = index(-1)
            for j in range(count):
                b = joint.replica[j]
                if state.node[b] == n and joint.target[j] != n:
                    if are_alike(problem, state, k, b):
                        other = b
                        break
            # each swap and each move sets one replica for good, so that the log never overflows
            may = suits(problem, state, k, n)
            if other >= 0:
                may = may and suits(problem, state, other, x)
            else:
                may = may and suits_group(problem, state, k, n)
                may = may and state.replicas[n] < problem.nodes.max_replicas[n] + count
            if not may:
                waiting += 1
                continue
            made += 1
            for turn in range(1 if other < 0 else 2):
                mover, to = (k, n) if turn == 0 else (other, x)
                change += beside_load(problem, state, mover, to)
                joint.log_replica[joint.number[1]] = mover
                joint.log_node[joint.number[1]] = state.node[mover]
                joint.number[1] += 1
                move(problem, state, mover, to)
    logged = joint.number[1]
    overloaded = walk.overloaded[0]
    for turn in range(2):
        for i in range(logged):
            for n in (joint.log_node[i], index(state.node[joint.log_replica[i]])):
                change -= walk.cost[n]
                refresh(problem, state, walk, n)
                change += walk.cost[n]
        if turn == 1:
            return 0.0
        keeps = waiting == 0 and walk.overloaded[0] <= overloaded
        keeps = keeps and change < -LEAST_GAIN * max(1.0, abs(before))
        for i in range(count):
            n = joint.target[i]
            keeps = keeps and state.replicas[n] <= problem.nodes.max_replicas[n]
        if keeps and domains_hold(problem, state, joint):
            break
        for i in range(logged - 1, -1, -1):
            k, n = joint.log_replica[i], joint.log_node[i]
            joint.log_node[i] = state.node[k]
            move(problem, state, k, n)
    for i in range(logged):
        stray(walk, joint.log_replica[i])
    walk.total[0] = before + change
    keep_if_best(state, walk)
    return change
