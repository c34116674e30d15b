"""Moving a replica so that it may lead, in plain Python: every node is tried, every rule asked."""

import numpy as np

from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import VOTER, Problem, State
from tests.naive.core.node_scan import preference
from tests.naive.core.state import admits, domains_have_room, loads, recount, row, spent


def place_leaders(problem: Problem, state: State, partitions: list[int]) -> State:
    """The state once a voter of each partition that cannot be led went to where it may lead."""
    state = state._replace(node=state.node.copy(), leader=state.leader.copy())
    for p in partitions:
        replicas, before = row(problem, p), int(state.leader[p])
        if any(may_lead(problem, state, p, k) for k in replicas):
            continue
        order = [slot for slot in range(len(replicas)) if slot == before]
        order += [slot for slot in range(len(replicas)) if slot != before]
        for slot in order:
            k = replicas[slot]
            if state.node[k] < 0 or state.role[k] != VOTER or not problem.partitions.movable[k]:
                continue
            if not can_pay(problem, state, p, slot):
                continue
            here = int(state.node[k])
            state.leader[p] = slot
            n = best_node(problem, state, k, 0.5 * FAR)
            state.leader[p] = before
            if n is None:
                continue
            state.node[k] = n
            follows = recount(problem, state)
            state.leader[p] = slot
            if domains_have_room(problem, follows, recount(problem, state)):
                break
            state.node[k], state.leader[p] = here, before
    return state


def can_pay(problem: Problem, state: State, p: int, slot: int) -> bool:
    """Whether the budgets let a slot lead, all that is spent being counted anew."""
    budgets = problem.budgets
    if slot == state.leader[p] or not budgets.binds:
        return True
    leader = state.leader.copy()
    leader[p] = slot
    _, was_data, was = spent(problem, state)["spent"]
    _, data, then = spent(problem, state._replace(leader=leader))["spent"]
    return bool(data <= max(was_data, budgets.data) and then <= max(was, budgets.leader_changes))


def may_lead(problem: Problem, state: State, p: int, k: int) -> bool:
    """Whether a replica stands where a leader may, room apart."""
    n, rank = int(state.node[k]), problem.rules.lead_rank[problem.partitions.rule[p]]
    return bool(n >= 0 and state.role[k] == VOTER and problem.nodes.leads[n] and rank[n] < 255)


def best_node(problem: Problem, state: State, k: int, ceiling: float) -> int | None:
    """The admitted node that is least full of its watermarks with the replica; None for none."""
    books, size = recount(problem, state), np.array(loads(problem, state, k))
    found = []
    for n in range(len(state.replicas)):
        scale = 1.0 / np.maximum(problem.nodes.watermark[:, n], 1e-30)
        score = float(((books["load"][:, n] + size) * scale).max())
        if score <= ceiling and admits(problem, state, k, n):
            found.append((preference(score, n, k, len(state.replicas)), n))
    return min(found)[1] if found else None


def place_on_first(problem: Problem, state: State, k: int, nodes: list[int]) -> int:
    """The position of the first node that admits a replica and can carry it as a leader; or -1."""
    load = problem.partitions.leader_load[problem.partitions.owner[k]]
    books = recount(problem, state)
    for i, n in enumerate(nodes):
        fits = (books["load"][:, n] + load <= problem.nodes.watermark[:, n]).all()
        if fits and admits(problem, state, k, n):
            return i
    return -1
