"""Move a replica to a node that may lead, for partitions with no replica on such a node."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.leadership import affords_lead, shares_leader
from evenkeel_kernels.core.node_scan import FAR, Scan, find
from evenkeel_kernels.core.problem import VOTER, Problem, State, index, leading_node
from evenkeel_kernels.core.state import move, move_if_admitted, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import can_pass_on, leads_well


@no_alloc
def place_leaders(problem: Problem, state: State, scan: Scan, partitions: NDArray[np.int64]) -> int:
    """Let a voter of each of ``partitions`` that cannot be led move to where it may lead."""
    # The one that leads now is tried first; another takes the lead along, for which the domains
    # that it stays in must have room. Returns how many moved. O(R D N) for each partition.
    first = problem.partitions.first
    moved = 0
    for i in range(partitions.shape[0]):
        p = index(partitions[i])
        before = index(state.leader[p])
        if leads_well(problem, state, p) or can_pass_on(problem, state, p):
            continue
        now = leading_node(problem, state, p)
        done = False
        for turn in range(2):
            for k in range(first[p], first[p + 1]):
                slot = index(k - first[p])
                if done or int(slot != before) != turn:
                    continue
                if state.node[k] < 0 or state.role[k] != VOTER or not problem.partitions.movable[k]:
                    continue
                if turn == 1 and not affords_lead(problem, state, p, k):
                    continue
                here = index(state.node[k])
                if turn == 1:
                    transfer_leader(problem, state, p, slot)
                n = find(problem, state, scan, k, 0.5 * FAR)
                if turn == 1:
                    transfer_leader(problem, state, p, before)
                if n < 0:
                    continue
                move(problem, state, k, n)
                if turn == 1 and not shares_leader(problem, state, p, n, now):
                    move(problem, state, k, here)
                    continue
                if turn == 1:
                    transfer_leader(problem, state, p, slot)
                moved += 1
                done = True
    return moved


@no_alloc
def place_on_first(problem: Problem, state: State, k: int, nodes: NDArray[np.int64]) -> int:
    """Move replica ``k`` to the first of ``nodes`` that admits it, below its watermark if it leads.

    Returns the position of that node, -1 for none. O(D) for each, beside what admitting takes.
    """
    p = index(problem.partitions.owner[k])
    for i in range(nodes.shape[0]):
        n = index(nodes[i])
        fits = True
        for d in range(state.load.shape[0]):
            more = state.load[d, n] + problem.partitions.leader_load[p, d]
            fits = fits and more <= problem.nodes.watermark[d, n]
        if fits and move_if_admitted(problem, state, k, n):
            return i
    return -1
