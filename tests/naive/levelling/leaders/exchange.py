"""Followers that move instead of leaders, in plain Python: every exchange is tried on a copy."""

from evenkeel_kernels.core.problem import VOTER, Problem, State
from evenkeel_kernels.levelling.leaders.exchange import SWEEPS, sizes_of
from evenkeel_kernels.levelling.penalty import Targets
from tests.naive.core.state import admits, leads, recount, row
from tests.naive.levelling.leaders.moves import keeps_floors, may_take_over


def spare_leaders(
    problem: Problem, state: State, targets: Targets, floor, stays, anywhere: bool
) -> State:
    """The state once no follower can take the place of a leader that moved."""
    state = _copied(state)
    size, nodes = sizes_of(problem), len(state.replicas)
    for _ in range(SWEEPS):
        began, leader = state.node.tolist(), state.leader.tolist()
        for p in [p for p in range(len(state.leader)) if _led_from(problem, state, p) is not None]:
            back = _handed_back(problem, state, targets, floor, p)
            if back is not None:
                state = back
                continue
            k = _moved_leader(problem, state, stays, p)
            if k is None:
                continue
            here, there = int(problem.partitions.home[k]), int(state.node[k])
            found = []
            for j in (j for j, n in enumerate(began) if n == here == state.node[j]):
                if not _may_go(problem, state, stays, j):
                    continue
                for to in [there, *range(nodes)] if anywhere else [there]:
                    then = _exchanged(problem, state, targets, floor, k, j, to)
                    if then is not None:
                        found.append((size[problem.partitions.owner[j]], j, then))
                        break
            if found:
                state = min(found, key=lambda one: one[:2])[2]
        if (state.node.tolist(), state.leader.tolist()) == (began, leader):
            break
    return state


def _copied(state: State) -> State:
    return state._replace(node=state.node.copy(), leader=state.leader.copy())


def _led_from(problem: Problem, state: State, p: int) -> int | None:
    """The node that led a partition which another one leads now; None if there is none."""
    was, slot = int(problem.partitions.led_from[p]), int(state.leader[p])
    if was < 0 or slot < 0 or state.node[row(problem, p)[slot]] in (was, -1):
        return None
    return was


def _handed_back(problem: Problem, state: State, targets: Targets, floor, p: int) -> State | None:
    """The state with a partition led from where it was; None if something is in the way."""
    was, replicas = _led_from(problem, state, p), row(problem, p)
    now, rank = (
        int(state.node[replicas[state.leader[p]]]),
        problem.rules.lead_rank[problem.partitions.rule[p]],
    )
    if was is None or (problem.nodes.leads[now] and rank[was] > rank[now]):
        return None
    for slot, k in enumerate(replicas):
        kept = state.node[k] == was and keeps_floors(problem, state, floor, p, slot)
        if kept and may_take_over(problem, state, targets, p, slot):
            then = _copied(state)
            then.leader[p] = slot
            return then
    return None


def _moved_leader(problem: Problem, state: State, stays, p: int) -> int | None:
    was, home = _led_from(problem, state, p), problem.partitions.home
    stood = {int(home[i]) for i in row(problem, p)}
    for k in row(problem, p) if was is not None else ():
        n = int(state.node[k])
        free = problem.partitions.movable[k] and not stays[k] and state.role[k] == VOTER
        if home[k] == was and free and n >= 0 and n not in stood:
            return k
    return None


def _may_go(problem: Problem, state: State, stays, j: int) -> bool:
    partitions = problem.partitions
    at_home = state.node[j] == partitions.home[j]
    return bool(at_home and partitions.movable[j] and not stays[j] and not leads(problem, state, j))


def _exchanged(
    problem: Problem, state: State, targets: Targets, floor, k: int, j: int, to: int
) -> State | None:
    """The state after an exchange; None if something is in the way."""
    partitions = problem.partitions
    p, here, there = int(partitions.owner[k]), int(partitions.home[k]), int(state.node[k])
    slot, replicas = k - int(partitions.first[p]), row(problem, p)
    leading = int(state.node[replicas[state.leader[p]]])
    if to == here or to in {int(partitions.home[i]) for i in row(problem, partitions.owner[j])}:
        return None
    then = _copied(state)
    then.node[j] = -1
    if not admits(problem, then, k, here):
        return None
    then.node[[k, j]] = here
    if not admits(problem, then, j, to):
        return None
    then.node[j] = to
    if then.leader[p] != slot:
        now = int(then.node[replicas[then.leader[p]]])
        rank = problem.rules.lead_rank[partitions.rule[p]]
        if problem.nodes.leads[now] and rank[here] > rank[now]:
            return None
        if not may_take_over(problem, then, targets, p, slot):
            return None
        then.leader[p] = slot
    books = recount(problem, then)
    for n in (here, there, to, leading):
        over = (books["load"][:, n] * targets.scale[:, n] > 1.0).any()
        led = books["leaders"][n] * targets.leader_scale[n] > 1.0
        if over or led or (books["load"][:, n] < floor[:, n]).any():
            return None
    return then
