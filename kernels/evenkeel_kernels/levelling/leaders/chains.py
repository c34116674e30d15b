"""Transfer leadership along chains of nodes, where no single transfer helps.

A node that leads too many hands a partition on to one that leads as many as it should, which hands
on another one, until it reaches a node that may lead one more. The shortest chain is taken.
"""

import numpy as np

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.leadership import (
    Leading,
    Search,
    admits_leader,
    leader_away,
    leave_lead,
    no_leads,
    take_lead,
)
from evenkeel_kernels.core.problem import Problem, State, index, leading_node
from evenkeel_kernels.core.state import transfer_leader
from evenkeel_kernels.levelling.penalty import Targets


def chain_leaders(problem: Problem, state: State, targets: Targets) -> int:
    """Bring every node down to the leaders it should have, as far as chains reach."""
    # No node gets overfull by it. Returns how many partitions changed hands. O(N) where no node
    # leads too many, else O(P) and, for each leader too many, at most O(K D).
    if not (state.leaders * targets.leader_scale > 1.0).any():
        return 0
    leading, search = new_lists(problem, state)
    return relay_each(problem, state, targets, leading, search)


def new_lists(problem: Problem, state: State) -> tuple[Leading, Search]:
    """List what each node leads, the first partition first, with scratch to search it. O(P + N)."""
    n_nodes = state.leaders.shape[0]
    leading = no_leads(n_nodes, state.leader.shape[0])
    search = Search(
        queue=np.empty(n_nodes, np.int64),
        reached=np.full(n_nodes, -1, np.int64),
        through=np.empty(n_nodes, np.int64),
        before=np.empty(n_nodes, np.int64),
    )
    list_leads(problem, state, leading)
    return leading, search


@no_alloc
def list_leads(problem: Problem, state: State, leading: Leading) -> None:
    """Fill the empty lists of what each node leads. O(P)."""
    for p in range(state.leader.shape[0] - 1, -1, -1):
        n = leading_node(problem, state, index(p))
        if n >= 0:
            take_lead(leading, n, p)


@no_alloc
def relay_each(
    problem: Problem, state: State, targets: Targets, leading: Leading, search: Search
) -> int:
    """Do what `chain_leaders` does, with the lists that it makes."""
    number = 0
    changed = 0
    for top in range(state.leaders.shape[0]):
        while state.leaders[top] * targets.leader_scale[top] > 1.0:
            made = relay(problem, state, targets, leading, search, top, number)
            number += 1
            changed += made
            if made == 0:
                break
    return changed


@no_alloc
def relay(
    problem: Problem,
    state: State,
    targets: Targets,
    leading: Leading,
    search: Search,
    top: int,
    number: int,
) -> int:
    """Let ``top`` lead one less by the shortest chain, if the budget affords all of it.

    ``number`` tells searches apart. Returns how many partitions changed hands.
    """
    partitions = problem.partitions
    goal = nearest_with_room(problem, state, targets, leading, search, top, number)
    if goal < 0 or not affords_chain(problem, state, search, top, goal):
        return 0
    changed = 0
    while goal != top:
        k, giver = search.through[goal], search.before[goal]
        p = index(partitions.owner[k])
        transfer_leader(problem, state, p, k - partitions.first[p])
        leave_lead(leading, giver, p)
        take_lead(leading, goal, p)
        changed += 1
        goal = giver
    return changed


@inline_only
def affords_chain(problem: Problem, state: State, search: Search, top: int, goal: int) -> bool:
    """Whether the budget of leader changes has room for all links of a chain; each alone fits."""
    if not problem.budgets.binds:
        return True
    more = 0
    while goal != top:
        giver = search.before[goal]
        p = index(problem.partitions.owner[search.through[goal]])
        more += int(leader_away(problem, p, goal)) - int(leader_away(problem, p, giver))
        goal = giver
    return more <= 0 or state.spent[2] + more <= problem.budgets.leader_changes


@no_alloc
def nearest_with_room(
    problem: Problem,
    state: State,
    targets: Targets,
    leading: Leading,
    search: Search,
    top: int,
    number: int,
) -> int:
    """Find the node nearest to ``top`` that may lead one more; -1 for none."""
    # The chain to it is in ``search``; a node is reached ``through`` the replica that would lead
    # there. Two nodes are next to each other where one leads what the other could (`could_take`).
    partitions = problem.partitions
    search.queue[0] = top
    search.reached[top] = number
    head, tail = 0, 1
    while head < tail:
        here = search.queue[head]
        head += 1
        p = leading.first[here]
        while p >= 0:
            for slot in range(partitions.first[p + 1] - partitions.first[p]):
                n = index(state.node[partitions.first[p] + slot])
                if n < 0 or search.reached[n] == number:
                    continue
                if not could_take(problem, state, targets, p, slot, n):
                    continue
                search.reached[n] = number
                search.before[n] = here
                search.through[n] = partitions.first[p] + slot
                if (state.leaders[n] + 1) * targets.leader_scale[n] <= 1.0:
                    return n
                search.queue[tail] = n
                tail += 1
            p = leading.next[p]
    return -1


@inline_only
def could_take(problem: Problem, state: State, targets: Targets, p: int, slot: int, n: int) -> bool:
    """Whether ``slot`` of ``p``, on node ``n``, may lead it with its node below its watermark."""
    # only where leading weighs no less than following: then no link of a chain burdens another
    for d in range(state.load.shape[0]):
        extra = problem.partitions.leader_load[p, d] - problem.partitions.voter_load[p, d]
        if extra < 0.0:
            return False
        if extra > 0.0 and (state.load[d, n] + extra) * targets.scale[d, n] > 1.0:
            return False
    return admits_leader(problem, state, p, slot)
