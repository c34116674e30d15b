"""Leadership handed on, in plain Python: every load is counted anew."""

import numpy as np

from evenkeel_kernels.core.problem import VOTER, Problem, State
from evenkeel_kernels.levelling.penalty import Targets
from tests.naive.core.state import domains_have_room, recount, row
from tests.naive.levelling.leaders.lone_leaders import can_pay


def prefer(problem: Problem, state: State, targets: Targets, floor: np.ndarray) -> list[int]:
    """Who leads each partition, where rules prefer it and no node gets overfull or too empty."""
    state = state._replace(leader=state.leader.copy())
    for p, slot in enumerate(state.leader.tolist()):
        if slot < 0:
            continue
        replicas = row(problem, p)
        rank = problem.rules.lead_rank[problem.partitions.rule[p]]
        now = int(state.node[replicas[slot]])
        if now < 0:
            continue
        better = [
            (int(rank[state.node[k]]), other)
            for other, k in enumerate(replicas)
            if state.node[k] >= 0
            and rank[state.node[k]] < rank[now]
            and keeps_floors(problem, state, floor, p, other)
            and may_take_over(problem, state, targets, p, other)
        ]
        if better:
            state.leader[p] = min(better)[1]
    return state.leader.tolist()


def lead_if_afforded(
    problem: Problem, state: State, replicas: list[int]
) -> tuple[list[bool], list[int]]:
    """Whether each of some replicas leads in the end, budgets and domains counted anew, and who."""
    state, leads = state._replace(leader=state.leader.copy()), []
    for k in replicas:
        p = int(problem.partitions.owner[k])
        slot = k - int(problem.partitions.first[p])
        then = state._replace(leader=state.leader.copy())
        then.leader[p] = slot
        rooms = domains_have_room(problem, recount(problem, state), recount(problem, then))
        leads.append(can_pay(problem, state, p, slot) and rooms)
        if leads[-1]:
            state.leader[p] = slot
    return leads, state.leader.tolist()


def keeps_floors(problem: Problem, state: State, floor: np.ndarray, p: int, slot: int) -> bool:
    """Whether no node loses load, and has less than its floor then, if a replica leads."""
    then = state._replace(leader=state.leader.copy())
    then.leader[p] = slot
    before, after = recount(problem, state)["load"], recount(problem, then)["load"]
    return not ((after < before) & (after < floor)).any()


def may_take_over(problem: Problem, state: State, targets: Targets, p: int, slot: int) -> bool:
    """Whether a replica may lead, with room for it, and nobody who gains by it gets overfull."""
    replicas, nodes = row(problem, p), problem.nodes
    k = replicas[slot]
    n, now = int(state.node[k]), int(state.node[replicas[state.leader[p]]])
    rank = problem.rules.lead_rank[problem.partitions.rule[p]]
    if state.role[k] != VOTER or not nodes.leads[n] or rank[n] == 255:
        return False
    then = state._replace(leader=state.leader.copy())
    then.leader[p] = slot
    before, after = recount(problem, state), recount(problem, then)
    if after["leaders"][n] * targets.leader_scale[n] > 1.0:
        return False
    for there in {n, now}:
        gains = after["load"][:, there] > before["load"][:, there]
        overfull = after["load"][:, there] * targets.scale[:, there] > 1.0
        over = (after["load"] + after["held"])[:, there] > nodes.capacity[:, there]
        if (gains & (overfull | over)).any():
            return False
    return domains_have_room(problem, before, after)
