"""Transfer leadership under a budget of changes, each from the fullest node.

What is handed on partition by partition spends the budget in the order of their names, also on
nodes that are hardly above their targets. Here the fullest node gives first, to whom is furthest
below, so that a budget that runs out leaves the fullest node as low as it can.
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.leadership import (
    Leading,
    Search,
    admits_leader,
    leader_away,
    leave_lead,
    take_lead,
)
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.state import transfer_leader
from evenkeel_kernels.levelling.leaders.chains import new_lists, relay
from evenkeel_kernels.levelling.penalty import Targets, passing_lead
from evenkeel_kernels.levelling.slices import PARTITIONS


def ration_leaders(
    problem: Problem, state: State, targets: Targets, by_load: bool
) -> Generator[int]:
    """Hand leaders on from the fullest node, one after the other, while one is overfull."""
    # Without ``by_load`` a node is only as full as it leads many: moves can relieve the rest.
    # Yields the partitions looked at, slice by slice. O(N D) and, for each leader of the fullest
    # node, O(R D), for each change; O(K D) where it takes a chain.
    if not (by_load or targets.leader_scale.any()):
        return
    leading, search = new_lists(problem, state)
    stuck, searches = np.zeros(len(state.leaders), bool), np.zeros(1, np.int64)
    looked = PARTITIONS
    while looked >= PARTITIONS:
        looked = relieve_fullest(
            problem, state, targets, by_load, leading, search, stuck, searches, PARTITIONS
        )
        yield looked


@no_alloc
def relieve_fullest(
    problem: Problem,
    state: State,
    targets: Targets,
    by_load: bool,
    leading: Leading,
    search: Search,
    stuck: NDArray[np.bool_],
    searches: NDArray[np.int64],
    most: int,
) -> int:
    """Do what `ration_leaders` does until ``most`` partitions were looked at, or to the end.

    ``stuck (N,)`` are the nodes that can hand on nothing; ``searches (1,)`` counts those for
    chains. Returns how many were looked at: fewer than ``most`` at the end.
    """
    partitions = problem.partitions
    looked = 0
    while looked < most:
        top = fullest(state, targets, by_load, stuck)
        if top < 0:
            break
        best, slot = index(-1), index(-1)
        least = (-1e-12, 0, FAR)
        p = leading.first[top]
        while p >= 0:
            looked += 1
            for other in range(partitions.first[p + 1] - partitions.first[p]):
                n = index(state.node[partitions.first[p] + other])
                if n < 0 or n == top:
                    continue
                change = passing_lead(partitions, state, targets, p, top, n)
                if change > least[0]:
                    continue
                more = int(leader_away(problem, p, n)) - int(leader_away(problem, p, top))
                gain = (change, more, pressure_by(problem, state, targets, p, n))
                if (gain < least or (gain == least and p < best)) and admits_leader(
                    problem, state, p, other
                ):
                    best, slot, least = p, index(other), gain
            p = leading.next[p]
        if best >= 0:
            n = index(state.node[partitions.first[best] + slot])
            transfer_leader(problem, state, best, slot)
            leave_lead(leading, top, best)
            take_lead(leading, n, best)
            continue
        stuck[top] = True
        if state.leaders[top] * targets.leader_scale[top] > 1.0:
            stuck[top] = relay(problem, state, targets, leading, search, top, searches[0]) == 0
            searches[0] += 1
    return looked


@inline_only
def fullest(state: State, targets: Targets, by_load: bool, stuck: NDArray[np.bool_]) -> int:
    """Node of the greatest target ratio above 1 that is not ``stuck (N,)``; -1 for none."""
    top, most = index(-1), 1.0
    for n in range(state.load.shape[1]):
        if stuck[n]:
            continue
        ratio = state.leaders[n] * targets.leader_scale[n]
        for d in range(state.load.shape[0] if by_load else 0):
            ratio = max(ratio, state.load[d, n] * targets.scale[d, n])
        if ratio > most:
            top, most = index(n), ratio
    return top


@inline_only
def pressure_by(problem: Problem, state: State, targets: Targets, p: int, n: int) -> float:
    """Greatest target ratio of node ``n``, in what leading ``p`` adds to, if it led that."""
    ratio = (state.leaders[n] + 1) * targets.leader_scale[n]
    for d in range(state.load.shape[0]):
        extra = problem.partitions.leader_load[p, d] - problem.partitions.voter_load[p, d]
        if extra > 0.0:
            ratio = max(ratio, (state.load[d, n] + extra) * targets.scale[d, n])
    return ratio
