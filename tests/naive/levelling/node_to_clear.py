"""Which node others leave for a replica that fits nowhere, in plain Python."""

from collections.abc import Callable

import numpy as np

from evenkeel_kernels.core.problem import VOTER, Problem, State
from tests.naive.core.state import admits, recount, row

# who would leave a node, if that makes room on it
MakingWay = Callable[[State, int], list[int] | None]


def node_to_clear(
    problem: Problem,
    state: State,
    size: np.ndarray,
    k: int,
    closed: np.ndarray,
    making_way: MakingWay,
) -> tuple[int, list[int], int]:
    """The node that gives away least and that rules admit, who leaves it, and who leads then."""
    p = problem.partitions.owner[k]
    before = int(state.leader[p])
    state = led_by_the_first(problem, state, k)
    found = []
    for n in range(len(closed)):
        if not closed[n] and n != state.node[k] and may_stand(problem, p, n):
            who = making_way(state, n)
            if who is not None:
                found.append((sum(size[problem.partitions.owner[i]] for i in who), n, who))
    for _, n, who in sorted(found, key=lambda one: one[:2]):
        node = state.node.copy()
        node[who] = -1
        away = state._replace(node=node)
        if admits(problem, away._replace(**recount(problem, away)), k, n):
            return n, who, int(state.leader[p])
    return -1, [], before


def led_by_the_first(problem: Problem, state: State, k: int) -> State:
    """The state with ``k`` as the leader, if its partition has no leader and it is the first."""
    # it has to fit before it leads, too: who would weigh less as a leader does not lead yet
    partitions = problem.partitions
    p = partitions.owner[k]
    alone = all(state.node[i] < 0 for i in row(problem, p))
    lighter = (partitions.leader_load[p] < partitions.voter_load[p]).any()
    if state.leader[p] >= 0 or state.role[k] != VOTER or not alone or lighter:
        return state
    leader = state.leader.copy()
    leader[p] = k - partitions.first[p]
    led = state._replace(leader=leader)
    return led._replace(**recount(problem, led))


def may_stand(problem: Problem, p: int, n: int) -> bool:
    """Whether the node accepts replicas, of this partition too."""
    partitions = problem.partitions
    bans = partitions.forbidden[partitions.forbidden_first[p] : partitions.forbidden_first[p + 1]]
    allowed = problem.rules.allowed[partitions.mask[p], n]
    return bool(problem.nodes.accepts[n] and allowed and n not in bans)
