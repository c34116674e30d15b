"""Lost leaders handed to survivors, in plain Python: every load is counted anew."""

import numpy as np

from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.leaders.moves import SWEEPS
from evenkeel_kernels.levelling.penalty import Targets
from tests.naive.core.state import recount, row
from tests.naive.levelling.leaders.moves import keeps_floors, may_take_over


def lead_by_survivors(
    problem: Problem, state: State, targets: Targets, floor: np.ndarray
) -> list[int]:
    """Who leads each partition once survivors lead what they can, evenly."""
    state = state._replace(leader=state.leader.copy())
    for _ in range(SWEEPS):
        before = state.leader.tolist()
        for p in range(len(before)):
            if state.leader[p] >= 0 and not leads_on(problem, p):
                hand_on(problem, state, targets, floor, p)
        if state.leader.tolist() == before:
            break
    return state.leader.tolist()


def leads_on(problem: Problem, p: int) -> bool:
    """Whether the node that led a partition lives, and may lead or gives its replicas away."""
    was, nodes = int(problem.partitions.led_from[p]), problem.nodes
    return was >= 0 and bool(nodes.leads[was] or not nodes.accepts[was])


def hand_on(problem: Problem, state: State, targets: Targets, floor: np.ndarray, p: int) -> None:
    """Hand a partition to the survivor that leads least, if that is better."""
    partitions, replicas = problem.partitions, row(problem, p)
    at_once = {int(partitions.home[k]) for k in replicas if partitions.ready[k]} - {-1}
    now = int(state.node[replicas[state.leader[p]]])
    if now < 0:
        return
    led = recount(problem, state)["leaders"]
    rank, leads = problem.rules.lead_rank[partitions.rule[p]], problem.nodes.leads
    weighs = (partitions.leader_load[p] != partitions.voter_load[p]).any()
    evens = partitions.led_from[p] < 0 and not weighs
    found = [
        (int(led[state.node[k]]), slot)
        for slot, k in enumerate(replicas)
        if state.node[k] in at_once
        and slot != state.leader[p]
        and (not leads[now] or rank[state.node[k]] <= rank[now])
        and (now not in at_once or (evens and led[state.node[k]] + 1 < led[now]))
        and keeps_floors(problem, state, floor, p, slot)
        and may_take_over(problem, state, targets, p, slot)
    ]
    if found:
        state.leader[p] = min(found)[1]
