"""Incremental state: compute the cost of a change, and update loads and counts with it.

The pieces are inlined into the kernel that calls them, which should be ``no_alloc`` itself.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.leadership import leader_away
from evenkeel_kernels.core.problem import (
    NON_VOTER,
    VOTER,
    Problem,
    State,
    crossing,
    following_load,
    index,
    is_away,
    leads_now,
    load_of,
)


@inline_only
def excess_cost(problem: Problem, state: State, n: int) -> float:
    """Cost of node ``n`` now: load above its watermarks, dimensions out of proportion, hinges."""
    nodes = problem.nodes
    cost = 0.0
    for d in range(nodes.watermark.shape[0]):
        cost += nodes.weight[d] * max(0.0, state.load[d, n] - nodes.watermark[d, n])
    for b in range(nodes.proportion.shape[0]):
        i, j = nodes.proportion_of[b, 0], nodes.proportion_of[b, 1]
        free_i = nodes.capacity[i, n] - state.load[i, n]
        free_j = nodes.capacity[j, n] - state.load[j, n]
        cost += nodes.proportion[b, 1] * max(0.0, nodes.proportion[b, 0] * free_i - free_j)
    for h in range(nodes.hinge.shape[0]):
        beyond = nodes.hinge[h, 0] * (state.load[nodes.hinge_of[h], n] - nodes.hinge_at[h, n])
        cost += nodes.hinge[h, 1] * max(0.0, beyond)
    return cost


@inline_only
def distance(problem: Problem, a: int, b: int) -> float:
    """Distance of two nodes: the matrix if there is one, else by the widest level that differs."""
    moves, domains = problem.moves, problem.domains
    if a < 0 or b < 0:
        return 0.0
    if moves.distance.shape[0] > 0:
        return moves.distance[a, b]
    levels = domains.domain.shape[0] - 1
    for level in range(levels):
        if domains.domain[level, a] != domains.domain[level, b]:
            return moves.tier_distance[level]
    return moves.tier_distance[levels]


@inline_only
def trip_cost(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of what movement costs if replica ``k`` went to ``n``, its group's share apart."""
    home = index(problem.partitions.home[k])
    here = index(state.node[k])
    cost = problem.moves.distance_weight * (
        distance(problem, home, n) - distance(problem, home, here)
    )
    more = more_moved(problem, state, k, n)
    if more != 0:
        cost += more * problem.moves.move_cost[problem.partitions.owner[k]]
    return cost


@inline_only
def more_moved(problem: Problem, state: State, k: int, n: int) -> int:
    """How many more replicas are away from home if replica ``k`` went to ``n``: -1, 0 or 1."""
    home = problem.partitions.home[k]
    return int(n != home) - int(state.node[k] != home)


@inline_only
def most_moved(state: State, g: int, more: int, h: int, also: int) -> int:
    """Moved replicas of the group with most of them, ``more`` in ``g``, ``also`` in ``h``. O(1)."""
    # each changes by 1 at most; they may be the same group
    most = state.moved_most[0]
    one = state.moved[g] + more
    other = state.moved[h] + also
    if g == h:
        one += also
        other = one
    after = max(one, other)
    if after >= most:
        return after
    still = state.moved_histogram[most] - int(state.moved[g] == most)
    if g != h:
        still -= int(state.moved[h] == most)
    if still > 0:
        return most
    if after < most - 1 and state.moved_histogram[most - 1] > 0:
        return most - 1
    return after


@inline_only
def move_cost(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of what movement costs if ``k`` went to ``n``: its own, its group's, its distance."""
    cost = trip_cost(problem, state, k, n)
    if problem.moves.group_weight != 0.0:
        more = more_moved(problem, state, k, n)
        if more != 0:
            g = index(problem.partitions.group[problem.partitions.owner[k]])
            most = most_moved(state, g, more, g, index(0))
            cost += problem.moves.group_weight * (most - state.moved_most[0])
    return cost


@inline_only
def price_of_count(problem: Problem, i: int, where: int, count: int) -> float:
    """Return what group limit ``i`` charges for ``count`` replicas in its domain ``where``."""
    rules = problem.rules
    row = rules.price_of[i, 0] + rules.price_of[i, 1] * where
    last = rules.price.shape[1] - 1
    if count <= last:
        return rules.price[row, count]
    each = rules.price[row, last] - rules.price[row, last - 1]
    return rules.price[row, last] + each * (count - last)


@inline_only
def sharing_cost(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of what the group of replica ``k`` pays for sharing domains if ``k`` went to ``n``."""
    rules = problem.rules
    g = index(problem.partitions.group[problem.partitions.owner[k]])
    here = index(state.node[k])
    change = 0.0
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        if rules.price_of[i, 0] < 0:
            continue
        level = index(rules.group_limit[i, 0])
        come_from, to = crossing(problem, level, here, n)
        for domain, more in ((to, 1), (come_from, -1)):
            if domain >= 0:
                where = domain - problem.domains.domain_offset[level]
                count = index(state.group_count[rules.group_base[i] + where])
                change += price_of_count(problem, i, where, count + more)
                change -= price_of_count(problem, i, where, count)
    return change


@inline_only
def sharing_total(problem: Problem, state: State) -> float:
    """Return what all groups pay for sharing domains. O(counts)."""
    rules, offset = problem.rules, problem.domains.domain_offset
    cost = 0.0
    for i in range(rules.group_limit.shape[0]):
        if rules.price_of[i, 0] >= 0:
            level = index(rules.group_limit[i, 0])
            for where in range(offset[level + 1] - offset[level]):
                count = index(state.group_count[rules.group_base[i] + where])
                cost += price_of_count(problem, i, where, count)
    return cost


@inline_only
def count_move(state: State, g: int, by: int) -> None:
    """Book one more (``by`` 1) or one fewer (-1) moved replica of group ``g``."""
    before = state.moved[g]
    after = before + by
    state.moved[g] = after
    state.moved_histogram[before] -= 1
    state.moved_histogram[after] += 1
    if after > state.moved_most[0]:
        state.moved_most[0] = after
    while state.moved_most[0] > 0 and state.moved_histogram[state.moved_most[0]] == 0:
        state.moved_most[0] -= 1


@device_function
def count_near(problem: Problem, state: State, g: int, level: int, where: int, by: int) -> None:
    """Book one more (``by`` 1) or one fewer (-1) replica of the tied group ``g`` in a domain.

    O(1), and O(groups tied to it) where the first of them comes or the last one goes.
    """
    rules = problem.rules
    inside = where - problem.domains.domain_offset[level]
    at = rules.near_base[g, level] + inside
    before = state.near_count[at]
    state.near_count[at] = before + by
    if before + min(by, 0) != 0:
        return
    for i in range(rules.needed_first[g], rules.needed_first[g + 1]):
        if rules.needed[i, 1] == level:
            state.near_absent[rules.near_base[rules.needed[i, 0], level] + inside] -= by
    for i in range(rules.needs_first[g], rules.needs_first[g + 1]):
        if rules.needs[i, 1] == level:
            state.near_relying[rules.near_base[rules.needs[i, 0], level] + inside] += by


@inline_only
def carry(problem: Problem, state: State, n: int, d: int, more: float) -> None:
    """Let node ``n``, and the limited domains around it, carry ``more`` in dimension ``d``."""
    domains = problem.domains
    state.load[d, n] += more
    for i in range(domains.limited.shape[0]):
        where = domains.domain[domains.limited[i], n]
        if where >= 0:
            state.domain_load[d, where] += more


@inline_only
def book(problem: Problem, state: State, k: int, n: int, sign: int) -> None:
    """Add replica ``k`` to the counts of node ``n`` (``sign`` 1), or take it out of them (-1)."""
    partitions, domains, rules = problem.partitions, problem.domains, problem.rules
    p = index(partitions.owner[k])
    home = index(partitions.home[k])
    leads = leads_now(partitions.first, state.leader, p, k)
    follows = partitions.non_voter_load if state.role[k] == NON_VOTER else partitions.voter_load
    load = partitions.leader_load if leads else follows
    state.replicas[n] += sign
    state.leaders[n] += sign * int(leads)
    for d in range(state.load.shape[0]):
        carry(problem, state, n, d, sign * load[p, d])
        if problem.nodes.transient[d] and home == n and problem.budgets.source[n]:
            # a leader hands over before it leaves; from a dead node nothing is copied
            state.held[d, n] -= sign * follows[p, d]
    g = partitions.group[p]
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = index(rules.group_limit[i, 0])
        where = index(domains.domain[level, n])
        if where >= 0:
            at = rules.group_base[i] - domains.domain_offset[level] + where
            before = state.group_count[at]
            state.group_count[at] = before + sign
            if sign > 0 and before == 0:
                state.group_domains[i] += 1
            elif sign < 0 and before == 1:
                state.group_domains[i] -= 1
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        if rules.group_term[i, 1] and state.role[k] != VOTER:
            continue
        if rules.term_mask[rules.group_term[i, 2], n]:
            state.group_inside[i] += sign
    if state.near_count.shape[0] > 0:
        for level in range(rules.near_base.shape[1]):
            if rules.near_base[g, level] >= 0 and domains.domain[level, n] >= 0:
                count_near(problem, state, g, level, index(domains.domain[level, n]), sign)


@device_function
def spend(problem: Problem, state: State, k: int, n: int, sign: int) -> None:
    """Book what replica ``k`` on ``n`` takes of the budgets (``sign`` 1), or give it back (-1)."""
    # A replica that is nowhere, or at home, takes nothing; one on another node where its partition
    # stood is no move, and leaves its home. O(R + tiers).
    budgets, domain = problem.budgets, problem.domains.domain
    home = index(problem.partitions.home[k])
    p = index(problem.partitions.owner[k])
    if n < 0:
        return
    if leads_now(problem.partitions.first, state.leader, p, k) and leader_away(problem, p, n):
        state.spent[2] += sign
    if n == home:
        return
    new = is_away(problem, k, n) > 0
    if new:
        state.spent[0] += sign
        state.moved_of[p] += sign
        if budgets.data_dimension >= 0:
            state.spent[1] += sign * load_of(problem.partitions, state, k, budgets.data_dimension)
    for i in range(budgets.tiers.shape[0]):
        tier = index(budgets.tiers[i])
        origin, to = crossing(problem, tier, home, n)
        if to >= 0 and (new or tier + 1 < domain.shape[0]):
            state.came[to] += sign
        if origin >= 0 and budgets.source[home]:
            state.went[origin] += sign


@device_function
def apply(problem: Problem, state: State, k: int, n: int) -> None:
    """Move replica ``k`` to node ``n`` (-1: nowhere) and keep every count and load in step."""
    here = index(state.node[k])
    if problem.budgets.binds:
        spend(problem, state, k, here, index(-1))
        spend(problem, state, k, n, index(1))
    if here >= 0:
        book(problem, state, k, here, index(-1))
    more = more_moved(problem, state, k, n)
    if more != 0:
        count_move(state, index(problem.partitions.group[problem.partitions.owner[k]]), more)
    state.node[k] = n
    if n >= 0:
        book(problem, state, k, n, index(1))


@inline_only
def lead(problem: Problem, state: State, p: int, slot: int) -> None:
    """Let ``slot`` (-1: none) lead partition ``p``; the leader's extra load goes with it."""
    partitions = problem.partitions
    before = state.leader[p]
    for turn in range(2):
        s = before if turn == 0 else slot
        if s < 0:
            continue
        k = partitions.first[p] + s
        n = index(state.node[k])
        if n < 0:
            continue
        sign = -1.0 if turn == 0 else 1.0
        follows = partitions.non_voter_load if state.role[k] == NON_VOTER else partitions.voter_load
        state.leaders[n] += -1 if turn == 0 else 1
        if problem.budgets.binds:
            dimension = problem.budgets.data_dimension
            if leader_away(problem, p, n):
                state.spent[2] += sign
            if dimension >= 0 and is_away(problem, k, n) > 0:
                less = follows[p, dimension]
                state.spent[1] += sign * (partitions.leader_load[p, dimension] - less)
        for d in range(state.load.shape[0]):
            carry(problem, state, n, d, sign * (partitions.leader_load[p, d] - follows[p, d]))
    state.leader[p] = slot


@device_function
def move(problem: Problem, state: State, k: int, n: int) -> None:
    """Do what `apply` does, as a call."""
    apply(problem, state, k, n)


@device_function
def transfer_leader(problem: Problem, state: State, p: int, slot: int) -> None:
    """Do what `lead` does, as a call."""
    lead(problem, state, p, slot)


@device_function
def move_if_admitted(problem: Problem, state: State, k: int, n: int) -> bool:
    """Move replica ``k`` to node ``n`` if every rule admits it; whether it moved."""
    if not admits(problem, state, k, n):
        return False
    apply(problem, state, k, n)
    return True


@no_alloc
def relocate(
    problem: Problem, state: State, replicas: NDArray[np.int64], nodes: NDArray[np.int32]
) -> None:
    """Move each of ``replicas`` to its entry of ``nodes`` (-1: nowhere), asking no rule."""
    for i in range(replicas.shape[0]):
        apply(problem, state, replicas[i], index(nodes[i]))


@no_alloc
def settle(problem: Problem, state: State) -> None:
    """Fill every book of ``state`` from ``node``, ``role`` and ``leader``, which are given."""
    # The counters must come in as zeros. ``held`` starts as what the replicas that already left
    # their home would hold there, so a start other than the placement that came in is priced
    # correctly.
    partitions = problem.partitions
    groups = state.moved.shape[0]
    state.moved_histogram[0] = groups
    rules, offset = problem.rules, problem.domains.domain_offset
    for g in range(groups):
        for i in range(rules.needs_first[g], rules.needs_first[g + 1]):
            level = rules.needs[i, 1]
            for inside in range(offset[level + 1] - offset[level]):
                state.near_absent[rules.near_base[g, level] + inside] += 1
    any_transient = False
    for d in range(state.load.shape[0]):
        any_transient |= problem.nodes.transient[d]
    for k in range(state.node.shape[0]):
        home = index(partitions.home[k])
        if any_transient and home >= 0 and problem.budgets.source[home]:
            for d in range(state.load.shape[0]):
                if problem.nodes.transient[d]:
                    state.held[d, home] += following_load(partitions, state, k, d)
        if state.node[k] >= 0:
            book(problem, state, k, index(state.node[k]), index(1))
        if problem.budgets.binds:
            spend(problem, state, k, index(state.node[k]), index(1))
        if state.node[k] != home:
            count_move(state, index(partitions.group[partitions.owner[k]]), index(1))


@no_alloc
def total_cost(problem: Problem, state: State) -> float:
    """Cost of the whole state, from scratch: nodes, moves, distances, groups. O(N D + K)."""
    cost = 0.0
    for n in range(state.replicas.shape[0]):
        cost += excess_cost(problem, state, n)
    partitions, moves = problem.partitions, problem.moves
    for k in range(state.node.shape[0]):
        home = index(partitions.home[k])
        if state.node[k] != home:
            cost += moves.move_cost[partitions.owner[k]]
            cost += moves.distance_weight * distance(problem, home, state.node[k])
    return cost + moves.group_weight * state.moved_most[0] + sharing_total(problem, state)
