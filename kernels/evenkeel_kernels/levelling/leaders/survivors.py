"""Lost leaders: whoever could take over at once leads on, where no goal needs a new copy to.

A partition whose leader is lost is led by one that survived while the lost copy is made anew. If
that copy is to lead in the end, leadership is handed on once more.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.leadership import leads_late
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.state import transfer_leader
from evenkeel_kernels.levelling.leaders.moves import can_take_over, keeps_floors
from evenkeel_kernels.levelling.penalty import Targets

SWEEPS = 8
"""Looks at every partition: what one hands on, another may take, and make even."""


def lead_by_survivors(
    problem: Problem, state: State, targets: Targets, floor: NDArray[np.float64]
) -> int:
    """Let those that could lead at once lead what has lost its leader, evenly; how many changed.

    A new copy hands on to the one of them that leads least, if no node gets overfull by it, nor
    below its ``floor (D, N)``; one of them does to another that leads fewer, unless leading weighs
    anything: loads level themselves.

    Complexity: O(P), and O(R D) for each partition whose leader is lost, for each of some sweeps.
    """
    lost = np.flatnonzero((problem.partitions.led_from < 0) & (state.leader >= 0))
    changed = 0
    for _ in range(SWEEPS if len(lost) else 0):
        made = hand_to_survivors(problem, state, targets, floor, lost)
        changed += made
        if made == 0:
            break
    return changed


@no_alloc
def hand_to_survivors(
    problem: Problem,
    state: State,
    targets: Targets,
    floor: NDArray[np.float64],
    lost: NDArray[np.int64],
) -> int:
    """Do what `lead_by_survivors` does, once, for the partitions ``lost (M,)``.

    ``floor (D, N)`` is that of `lead_by_survivors`.
    """
    partitions = problem.partitions
    changed = 0
    for i in range(lost.shape[0]):
        p = index(lost[i])
        now = index(state.node[partitions.first[p] + state.leader[p]])
        if now < 0:
            continue
        fewest = state.leaders[now] - 1
        if leads_late(problem, p, now) > 0:
            fewest = problem.partitions.first.shape[0]
        elif weighs(problem, p):
            continue
        best = index(-1)
        for slot in range(partitions.first[p + 1] - partitions.first[p]):
            n = index(state.node[partitions.first[p] + slot])
            if n < 0 or state.leaders[n] >= fewest or leads_late(problem, p, n) > 0:
                continue
            if not keeps_floors(problem, state, floor, p, slot):
                continue
            if can_take_over(problem, state, targets, p, slot):
                best, fewest = slot, state.leaders[n]
        if best >= 0:
            transfer_leader(problem, state, p, best)
            changed += 1
    return changed


@inline_only
def weighs(problem: Problem, p: int) -> bool:
    """Whether leading ``p`` weighs another thing than following."""
    partitions = problem.partitions
    for d in range(partitions.leader_load.shape[1]):
        if partitions.leader_load[p, d] != partitions.voter_load[p, d]:
            return True
    return False
