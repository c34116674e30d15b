"""Evaluate a candidate in full: its whole cost and every hard rule, without early exit.

A search dismisses most candidates by part of their price (`evenkeel_kernels.cost.annealing`). Here
nothing is left out, so that what all of it takes can be measured, and be compared with a recount.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.feasibility import affinity, keeps_group_limits
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.rng import advance, scaled
from evenkeel_kernels.core.state import more_moved, most_moved, sharing_cost, trip_cost
from evenkeel_kernels.cost.annealing import domains_bear, suits
from evenkeel_kernels.cost.cost_state import CostState, pair_price, penalty_with

# what a candidate breaks: capacity, transient use or the number of a node's replicas; a rule of its
# partition or the capacity of a domain; a limit or term of its group (conflict and spread); what
# its group needs, or is needed for, nearby
OVERFULL, MISPLACED, CLASHING, AFFINITY_BROKEN = 1, 2, 4, 8


@inline_only
def trade_keeps_near(problem: Problem, state: State, a: int, b: int) -> bool:
    """Return whether the `affinity` of ``a`` and ``b`` alone also holds if they exchange nodes."""
    # each is evaluated while the other one has not left; O(L), and O(groups tied to theirs) where
    # one of them is the last of its group in a domain
    rules, domains = problem.rules, problem.domains
    if state.near_count.shape[0] == 0:
        return True
    g = index(problem.partitions.group[problem.partitions.owner[a]])
    h = index(problem.partitions.group[problem.partitions.owner[b]])
    for level in range(rules.near_base.shape[1]):
        if rules.near_base[g, level] < 0 or rules.near_base[h, level] < 0 or g == h:
            continue
        for turn in range(2):
            leaves, comes = (g, h) if turn == 0 else (h, g)
            where = domains.domain[level, state.node[a if turn == 0 else b]]
            if where < 0 or domains.domain[level, state.node[b if turn == 0 else a]] == where:
                continue
            at = rules.near_base[leaves, level] - domains.domain_offset[level] + where
            if state.near_count[at] > 1:
                continue
            for i in range(rules.needs_first[comes], rules.needs_first[comes + 1]):
                if rules.needs[i, 0] == leaves and rules.needs[i, 1] == level:
                    return False
    return True


@inline_only
def nodes_bear(problem: Problem, state: State, walk: CostState, a: int, b: int, y: int) -> bool:
    """Whether no node is above a capacity with ``a`` on ``y``, and ``b``, if any, in its place."""
    x = index(state.node[a])
    home = problem.partitions.home
    if b < 0 and state.replicas[y] >= problem.nodes.max_replicas[y]:
        return False
    # in a transient dimension those who are away from home count at home, too
    leaves, arrives = home[a] == x, home[a] == y
    returns, departs = b >= 0 and home[b] == x, b >= 0 and home[b] == y
    # O(D)
    penalty = penalty_with(
        walk.need, walk.room, walk.penalty_weight, walk.kept, y, a, arrives, b, departs
    )
    penalty += penalty_with(
        walk.need, walk.room, walk.penalty_weight, walk.kept, x, b, returns, a, leaves
    )
    return penalty == 0.0


@inline_only
def moving_price(problem: Problem, state: State, a: int, b: int, y: int) -> float:
    """What moves and groups cost more if ``a`` went to ``y``, and ``b``, if any, to its place."""
    # O(L + limits of the group)
    x = index(state.node[a])
    groups, owner = problem.partitions.group, problem.partitions.owner
    price = trip_cost(problem, state, a, y)
    more = more_moved(problem, state, a, y)
    g = index(groups[owner[a]])
    h, also = g, index(0)
    if b >= 0:
        price += trip_cost(problem, state, b, x)
        h, also = index(groups[owner[b]]), more_moved(problem, state, b, x)
    if b < 0 or g != h:  # two of one group leave its counts as they are
        price += sharing_cost(problem, state, a, y)
        if b >= 0:
            price += sharing_cost(problem, state, b, x)
    if problem.moves.group_weight != 0.0 and (more != 0 or also != 0):
        most = most_moved(state, g, more, h, also)
        price += problem.moves.group_weight * (most - state.moved_most[0])
    return price


@inline_only
def broken_by(problem: Problem, state: State, walk: CostState, a: int, b: int, y: int) -> int:
    """Return as bits what breaks if ``a`` went to ``y``, and ``b`` (-1: none) to its place."""
    # a limit that is broken already may stay as broken as it is; all rules are asked
    x = index(state.node[a])
    partitions = problem.partitions
    broken = 0 if nodes_bear(problem, state, walk, a, b, y) else OVERFULL
    alike = False
    if b >= 0:
        p, q = partitions.owner[a], partitions.owner[b]
        if p == q:
            return MISPLACED
        # two of one group and role leave all counts of the group as they are
        alike = partitions.group[p] == partitions.group[q] and state.role[a] == state.role[b]
    for turn in range(1 if b < 0 else 2):
        k, n = (a, y) if turn == 0 else (b, x)
        if not suits(problem, state, k, n):
            broken |= MISPLACED
        if not domains_bear(problem, state, n, k, b if turn == 0 else a):
            broken |= MISPLACED
        if alike:
            continue
        if not keeps_group_limits(problem, state, k, n):
            broken |= CLASHING
        if not affinity(problem, state, k, n):
            broken |= AFFINITY_BROKEN
    if b >= 0 and not alike and not trade_keeps_near(problem, state, a, b):
        broken |= AFFINITY_BROKEN
    return broken


@no_alloc
def probe(
    problem: Problem, state: State, walk: CostState, work: int, found: NDArray[np.int64]
) -> float:
    """Look at random candidates in full, changing nothing; a quarter of them are single moves."""
    # The walk has a penalty above 0 everywhere; only its generator changes. ``found`` counts single
    # moves, candidates that break nothing, those that break no rule of group or neighbourhood, and
    # those that cost less. The result is the sum of what those that break nothing cost more, of
    # nodes and movement.
    need, weight, excess, cost = walk.need, walk.weight, walk.excess, walk.cost
    item, node = walk.item, state.node
    random = walk.random[0]
    total = 0.0
    for _ in range(work):
        random = advance(random)
        a = index(item[scaled(random, item.shape[0])])
        x = index(node[a])
        random = advance(random)
        if random & np.uint64(3) == np.uint64(0):
            b = index(-1)
            y = scaled(random, cost.shape[0])
        else:
            b = index(item[scaled(random, item.shape[0])])
            y = index(node[b])
        if x == y:
            continue
        found[0] += int(b < 0)
        price = pair_price(need, weight, excess, cost, a, x, b, y, np.inf)
        price += moving_price(problem, state, a, b, y)
        broken = broken_by(problem, state, walk, a, b, y)
        found[1] += int(broken == 0)
        found[2] += int(broken & (CLASHING | AFFINITY_BROKEN) == 0)
        found[3] += int(price < 0.0)
        if broken == 0:
            total += price
    walk.random[0] = random
    return total
