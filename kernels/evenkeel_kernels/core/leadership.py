"""Test whether a slot may lead a partition under rules, capacities and budgets.

Like `feasibility`, it is inlined into the kernel that calls it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.problem import (
    ANYWHERE,
    NOWHERE,
    VOTER,
    Problem,
    State,
    crossing,
    following_load,
    index,
    is_away,
    leading_node,
    leads_now,
)


@inline_only
def leader_away(problem: Problem, p: int, n: int) -> bool:
    """Whether ``p`` counts as led by another node than before if ``n`` (-1: none) leads it."""
    was = problem.partitions.led_from[p]
    return was >= 0 and n >= 0 and n != was


@inline_only
def would_lead(problem: Problem, k: int, n: int) -> bool:
    """Whether the system of replica ``k`` would elect it on node ``n``."""
    # where another lags that replica stays, and leads no more than before
    partitions = problem.partitions
    if partitions.electable.shape[0] == 0:
        return True
    p = index(partitions.owner[k])
    for i in range(partitions.first[p], partitions.first[p + 1]):
        if partitions.home[i] == n and partitions.electable[i] != ANYWHERE:
            return False
    return partitions.electable[k] != NOWHERE


@inline_only
def may_be_led_from(problem: Problem, k: int, n: int) -> bool:
    """Whether replica ``k`` may lead on node ``n``: the node may, and its system would elect it."""
    return problem.nodes.leads[n] and would_lead(problem, k, n)


@inline_only
def keeps_leader(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether the leader that the partition of ``k`` has would be elected with ``k`` on ``n``."""
    # a replica that no election makes the leader does not come to where the leader was: that stays
    partitions = problem.partitions
    if partitions.electable.shape[0] == 0:
        return True
    p = index(partitions.owner[k])
    if leads_now(partitions.first, state.leader, p, k):
        return would_lead(problem, k, n)
    return partitions.electable[k] != NOWHERE or partitions.led_from[p] != n


@inline_only
def leads_on(problem: Problem, p: int) -> bool:
    """Whether the leader of ``p`` leads until another can: not if lost, or if its node follows."""
    # a node that gives its replicas away leads them as long as it has them
    was = problem.partitions.led_from[p]
    return was >= 0 and (problem.nodes.leads[was] or not problem.nodes.accepts[was])


@inline_only
def leads_late(problem: Problem, p: int, n: int) -> int:
    """Whether ``p``, whose leader leads on no more, could not be led from ``n`` at once: 1 or 0."""
    # another leads it then until its copy is made there, and hands it on
    partitions = problem.partitions
    if leads_on(problem, p):
        return 0
    for k in range(partitions.first[p], partitions.first[p + 1]):
        if partitions.home[k] == n and partitions.ready[k]:
            return 0
    return 1


@inline_only
def is_led_anew(problem: Problem, p: int, n: int) -> int:
    """Whether leading ``p`` from ``n`` costs a change of leaders that another might not: 1 or 0."""
    return int(leader_away(problem, p, n) or leads_late(problem, p, n) > 0)


@inline_only
def affords_leader(problem: Problem, state: State, p: int, n: int) -> bool:
    """Whether the budget of leader changes lets node ``n`` lead ``p``."""
    if not problem.budgets.binds or not leader_away(problem, p, n):
        return True
    if leader_away(problem, p, leading_node(problem, state, p)):
        return True
    return state.spent[2] + 1.0 <= problem.budgets.leader_changes


@inline_only
def affords_lead(problem: Problem, state: State, p: int, k: int) -> bool:
    """Whether the budgets let replica ``k`` of ``p`` lead where it stands."""
    # what has moved may weigh more once it leads, or once it leads no more
    budgets, partitions = problem.budgets, problem.partitions
    if not budgets.binds:
        return True
    n = index(state.node[k])
    d = budgets.data_dimension
    if d >= 0:
        more = 0.0
        if is_away(problem, k, n) > 0:
            more += partitions.leader_load[p, d] - partitions.voter_load[p, d]
        led = index(partitions.first[p] + max(state.leader[p], 0))
        if (
            state.leader[p] >= 0
            and state.node[led] >= 0
            and is_away(problem, led, index(state.node[led])) > 0
        ):
            more += following_load(partitions, state, led, d) - partitions.leader_load[p, d]
        if more > 0.0 and state.spent[1] + more > budgets.data:
            return False
    return affords_leader(problem, state, p, n)


@inline_only
def shares_leader(problem: Problem, state: State, p: int, n: int, now: int) -> bool:
    """Whether the domains have room if ``n`` leads ``p`` instead of ``now``; -1: none."""
    partitions, domains = problem.partitions, problem.domains
    led = index(partitions.first[p] + max(state.leader[p], 0))
    for i in range(domains.limited.shape[0]):
        left, where = crossing(problem, index(domains.limited[i]), now, n)
        for d in range(problem.nodes.capacity.shape[0]):
            most = domains.tier_capacity
            more = partitions.leader_load[p, d] - partitions.voter_load[p, d]
            if where >= 0 and more > 0.0 and state.domain_load[d, where] + more > most[d, where]:
                return False
            if left < 0:
                continue
            more = following_load(partitions, state, led, d) - partitions.leader_load[p, d]
            if more > 0.0 and state.domain_load[d, left] + more > most[d, left]:
                return False
    return True


@inline_only
def admits_leader(problem: Problem, state: State, p: int, slot: int) -> bool:
    """Whether ``slot`` may lead ``p``: a voter, where leaders may be, preferred, with room."""
    partitions = problem.partitions
    k = partitions.first[p] + slot
    n = index(state.node[k])
    if n < 0 or state.role[k] != VOTER or slot == state.leader[p]:
        return False
    if not may_be_led_from(problem, k, n):
        return False
    rank = problem.rules.lead_rank[partitions.rule[p]]
    if rank[n] == 255:
        return False
    led, now = index(partitions.first[p] + state.leader[p]), leading_node(problem, state, p)
    if now >= 0 and problem.nodes.leads[now] and rank[n] > rank[now]:
        return False
    if not affords_lead(problem, state, p, k):
        return False
    for d in range(problem.nodes.capacity.shape[0]):
        more = partitions.leader_load[p, d] - partitions.voter_load[p, d]
        if more > 0.0:
            there = state.load[d, n] + state.held[d, n] + more
            if there > problem.nodes.capacity[d, n]:
                return False
        if now >= 0:  # who leads no more may weigh more than before, and be no voter
            more = following_load(partitions, state, led, d) - partitions.leader_load[p, d]
            there = state.load[d, now] + state.held[d, now] + more
            if more > 0.0 and there > problem.nodes.capacity[d, now]:
                return False
    return shares_leader(problem, state, p, n, now)


class Leading(NamedTuple):
    """The partitions that each node leads, as linked lists."""

    led: NDArray[np.int64]  # (N,) how many a node leads
    first: NDArray[np.int64]  # (N,) one of them, -1 for none
    # next, previous: (P,) the ones that the same node leads after and before a partition, -1 for
    # none
    next: NDArray[np.int64]
    previous: NDArray[np.int64]


def no_leads(nodes: int, partitions: int) -> Leading:
    """Make empty lists of what so many nodes lead."""
    return Leading(
        np.zeros(nodes, np.int64),
        np.full(nodes, -1, np.int64),
        np.full(partitions, -1, np.int64),
        np.full(partitions, -1, np.int64),
    )


class Search(NamedTuple):
    """A search for the shortest chain of handing on."""

    queue: NDArray[np.int64]  # (N,) nodes reached, in order
    reached: NDArray[np.int64]  # (N,) number of the last search that reached a node
    # through, before: (N,) the partition whose lead a node would take, and the node that would hand
    # it on
    through: NDArray[np.int64]
    before: NDArray[np.int64]


@no_alloc
def take_lead(leading: Leading, n: int, p: int) -> None:
    """Let a node lead one more partition."""
    follower = leading.first[n]
    leading.next[p] = follower
    leading.previous[p] = -1
    if follower >= 0:
        leading.previous[follower] = p
    leading.first[n] = p
    leading.led[n] += 1


@no_alloc
def leave_lead(leading: Leading, n: int, p: int) -> None:
    """Let a node lead one partition less."""
    before, after = leading.previous[p], leading.next[p]
    if before >= 0:
        leading.next[before] = after
    else:
        leading.first[n] = after
    if after >= 0:
        leading.previous[after] = before
    leading.led[n] -= 1
