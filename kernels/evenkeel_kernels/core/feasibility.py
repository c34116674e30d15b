"""Test whether a replica may move to a node under rules, capacities and budgets.

A rule that is broken already may stay as broken as it is, never become worse. Everything here is
inlined into the kernel that calls it, which should be ``no_alloc`` itself: then a call of
``admits`` takes some 60 ns, otherwise microseconds.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.core.leadership import affords_leader, keeps_leader
from evenkeel_kernels.core.problem import (
    FEWEST,
    MOST,
    SKEW,
    UNLIMITED,
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

ROUNDING = 1e-9  # sums of data in another order agree within this share


@inline_only
def count_in_domain(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    domain: NDArray[np.int32],
    p: int,
    except_k: int,
    level: int,
    where: int,
) -> int:
    """Replicas of ``p`` except ``except_k`` whose node lies in domain ``where`` of ``level``.

    ``first (P + 1,)``, ``node (K,)`` and ``domain (L + 1, N)`` are those of problem and state.
    """
    count = 0
    for j in range(first[p], first[p + 1]):
        if j != except_k and node[j] >= 0 and domain[level, node[j]] == where:
            count += 1
    return count


@inline_only
def skew_of(
    problem: Problem, node: NDArray[np.int32], p: int, moved_k: int, target: int, level: int
) -> int:
    """Most minus fewest replicas of ``p`` per domain of ``level``, ``moved_k`` being on ``target``.

    The fewest are sought in domains with a node that the mask allows. ``node (K,)`` is where
    replicas are.
    """
    domains, first = problem.domains, problem.partitions.first
    allowed = problem.rules.allowed[problem.partitions.mask[p]]
    least = 1 << 30
    most = 0
    for where in range(domains.domain_offset[level], domains.domain_offset[level + 1]):
        eligible = False
        for i in range(domains.member_first[where], domains.member_first[where + 1]):
            if allowed[domains.member[i]]:
                eligible = True
                break
        count = count_in_domain(first, node, domains.domain, p, moved_k, level, where)
        if target >= 0 and domains.domain[level, target] == where:
            count += 1
        most = max(most, count)
        if eligible:
            least = min(least, count)
    return max(0, most - least)


@device_function
def beyond_limit(
    problem: Problem,
    node: NDArray[np.int32],
    p: int,
    i: int,
    column: int,
    moved_k: int,
    target: int,
) -> int:
    """By how much ``p`` breaks a ``column`` of limit ``i`` if ``moved_k`` sat on ``target``.

    ``node (K,)`` is where replicas are; a target of -1 is nowhere. Each replica beyond the first
    ones that its domain may have is one too many. O(R^2), and for a skew O(N + R domains).
    """
    first, domain = problem.partitions.first, problem.domains.domain
    level, allowed = index(problem.rules.limit[i, 0]), index(problem.rules.limit[i, column])
    if allowed < 0:
        return index(0)
    if column == SKEW:
        return max(index(0), skew_of(problem, node, p, moved_k, target, level) - allowed)
    beyond, distinct = index(0), index(0)
    for j in range(first[p], first[p + 1]):
        n = target if j == moved_k else node[j]
        where = domain[level, n] if n >= 0 else -1
        if where < 0:
            continue
        earlier = 0
        for other in range(first[p], j):
            at = target if other == moved_k else node[other]
            earlier += int(at >= 0 and domain[level, at] == where)
        beyond += int(earlier >= allowed)
        distinct += int(earlier == 0)
    if column == MOST:
        return beyond
    return max(index(0), allowed - distinct if column == FEWEST else distinct - allowed)


@inline_only
def count_by_term(
    problem: Problem, state: State, p: int, i: int, moved_k: int, target: int
) -> tuple[int, int, int]:
    """Count the replicas of ``p`` inside the mask of term ``i``, outside, and nowhere."""
    # only those of a role that counts, ``moved_k`` being on ``target``
    rules, first = problem.rules, problem.partitions.first
    inside, outside, nowhere = index(0), index(0), index(0)
    for j in range(first[p], first[p + 1]):
        if rules.term[i, 1] and state.role[j] != VOTER:
            continue
        n = target if j == moved_k else state.node[j]
        if n < 0:
            nowhere += 1
        elif rules.term_mask[rules.term[i, 2], n]:
            inside += 1
        else:
            outside += 1
    return inside, outside, nowhere


@inline_only
def rows_of(problem: Problem, p: int) -> int:
    """Count what `broken_by` tells apart: a row for each column of a limit and for each term."""
    rules, q = problem.rules, problem.partitions.rule[p]
    limits = rules.limit_first[q + 1] - rules.limit_first[q]
    return SKEW * limits + rules.term_first[q + 1] - rules.term_first[q]


@inline_only
def broken_by(problem: Problem, state: State, p: int, row: int, moved_k: int, target: int) -> int:
    """By how much ``p`` breaks one of its `rows_of` if ``moved_k`` sat on ``target``."""
    # a term counts the replicas that it lacks inside; or those outside, where none may be
    rules, q = problem.rules, problem.partitions.rule[p]
    own = SKEW * (rules.limit_first[q + 1] - rules.limit_first[q])
    if row < own:
        i, column = rules.limit_first[q] + row // SKEW, MOST + row % SKEW
        if rules.limit[i, column] < 0:
            return index(0)
        return beyond_limit(problem, state.node, p, i, column, moved_k, target)
    i = rules.term_first[q] + row - own
    inside, outside, _ = count_by_term(problem, state, p, i, moved_k, target)
    return outside if rules.term[i, 0] < 0 else max(index(0), rules.term[i, 0] - inside)


@inline_only
def may_stand(problem: Problem, p: int, n: int) -> bool:
    """Whether a replica of ``p`` may be put on ``n`` at all: the node, mask and bans allow."""
    if not problem.nodes.accepts[n]:
        return False
    partitions = problem.partitions
    if not problem.rules.allowed[partitions.mask[p], n]:
        return False
    for i in range(partitions.forbidden_first[p], partitions.forbidden_first[p + 1]):
        if partitions.forbidden[i] == n:
            return False
    return True


@inline_only
def fits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether node ``n`` and the domains around it have room for replica ``k``."""
    # what adds no load in a dimension needs no room in it, even where there is less than none
    nodes = problem.nodes
    if state.replicas[n] >= nodes.max_replicas[n]:
        return False
    returns = problem.partitions.home[k] == n
    for d in range(nodes.capacity.shape[0]):
        more = load_of(problem.partitions, state, k, d)
        there = state.load[d, n] + state.held[d, n]
        if returns and nodes.transient[d]:
            there -= following_load(problem.partitions, state, k, d)
        if more > 0.0 and there + more > nodes.capacity[d, n]:
            return False
    domains = problem.domains
    for i in range(domains.limited.shape[0]):
        _, where = crossing(problem, index(domains.limited[i]), index(state.node[k]), n)
        if where < 0:
            continue
        for d in range(nodes.capacity.shape[0]):
            more = load_of(problem.partitions, state, k, d)
            if more > 0.0 and state.domain_load[d, where] + more > domains.tier_capacity[d, where]:
                return False
    return True


@inline_only
def keeps_limits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` breaks no limit of its partition, or repairs more than that."""
    # a limit that is broken already may stay as broken as it is, never become worse
    partitions, rules, domain = problem.partitions, problem.rules, problem.domains.domain
    p = index(partitions.owner[k])
    q = partitions.rule[p]
    here = index(state.node[k])
    for i in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level = index(rules.limit[i, 0])
        where = index(domain[level, n])
        if here >= 0 and domain[level, here] == where:
            continue
        if rules.limit[i, MOST] >= 0 and where >= 0:
            others = count_in_domain(partitions.first, state.node, domain, p, k, level, where)
            if others >= rules.limit[i, MOST]:
                return False
        for column in range(FEWEST, SKEW + 1):
            if rules.limit[i, column] < 0:
                continue
            after = beyond_limit(problem, state.node, p, index(i), column, k, n)
            if after > 0 and after > beyond_limit(
                problem, state.node, p, index(i), column, k, here
            ):
                return False
    return True


@inline_only
def keeps_terms(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` leaves every term of its rule as well met as it was."""
    partitions, rules = problem.partitions, problem.rules
    p = index(partitions.owner[k])
    q = partitions.rule[p]
    here = index(state.node[k])
    for i in range(rules.term_first[q], rules.term_first[q + 1]):
        if rules.term[i, 1] and state.role[k] != VOTER:
            continue
        mask = rules.term[i, 2]
        if rules.term_mask[mask, n]:
            continue
        if rules.term[i, 0] < 0:  # every such replica must stand inside
            return False
        if here >= 0 and not rules.term_mask[mask, here]:
            continue
        # what comes from nowhere may be outside while enough others can still stand inside
        inside, _, nowhere = count_by_term(problem, state, p, i, k, n)
        if inside + (nowhere if here < 0 else 0) < rules.term[i, 0]:
            return False
    return True


@inline_only
def group_skew(problem: Problem, state: State, i: int, come_from: int, to: int) -> int:
    """Most minus fewest replicas per domain of group limit ``i`` if one changed domains."""
    # the fewest are sought in domains that the rule leaves open; -1 for no domain
    rules, offset = problem.rules, problem.domains.domain_offset
    level = index(rules.group_limit[i, 0])
    base = rules.group_base[i]
    least = index(1 << 30)
    most = index(0)
    for where in range(offset[level], offset[level + 1]):
        at = base + where - offset[level]
        count = index(state.group_count[at]) + int(where == to) - int(where == come_from)
        most = max(most, count)
        if rules.group_open[at]:
            least = min(least, count)
    return max(index(0), most - least)


@inline_only
def beyond_group_limit(
    problem: Problem, state: State, i: int, column: int, come_from: int, to: int
) -> int:
    """By how much group limit ``i`` is broken if one changed domains; -1 for no domain.

    ``column`` is FEWEST, WIDEST or SKEW. O(1), and for a skew O(domains).
    """
    rules = problem.rules
    allowed = index(rules.group_limit[i, column])
    if allowed < 0:
        return index(0)
    if column == SKEW:
        return max(index(0), group_skew(problem, state, i, come_from, to) - allowed)
    base = rules.group_base[i] - problem.domains.domain_offset[rules.group_limit[i, 0]]
    found = index(state.group_domains[i])
    found -= int(come_from >= 0 and state.group_count[base + come_from] == 1)
    found += int(to >= 0 and state.group_count[base + to] == 0)
    return max(index(0), allowed - found if column == FEWEST else found - allowed)


@inline_only
def keeps_group_limits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` leaves every limit and term of its group as well met."""
    rules, no = problem.rules, index(-1)
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = index(state.node[k])
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = index(rules.group_limit[i, 0])
        come_from, to = crossing(problem, level, here, n)
        if to == come_from:
            continue
        base = rules.group_base[i] - problem.domains.domain_offset[level]
        if to >= 0 and 0 <= rules.group_limit[i, MOST] <= state.group_count[base + to]:
            return False
        for column in range(FEWEST, SKEW + 1):
            after = beyond_group_limit(problem, state, i, column, come_from, to)
            if after > 0 and after > beyond_group_limit(problem, state, i, column, no, no):
                return False
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        mask = rules.term_mask[rules.group_term[i, 2]]
        if mask[n] or (rules.group_term[i, 1] and state.role[k] != VOTER):
            continue
        if here >= 0 and mask[here] and state.group_inside[i] <= rules.group_term[i, 0]:
            return False
    return True


@inline_only
def affinity(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether every group still has the groups it needs in each domain that it touches. O(L)."""
    rules, domains = problem.rules, problem.domains
    if state.near_count.shape[0] == 0:
        return True
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = index(state.node[k])
    for level in range(rules.near_base.shape[1]):
        if rules.near_base[g, level] < 0:
            continue
        base = rules.near_base[g, level] - domains.domain_offset[level]
        come_from, to = crossing(problem, index(level), here, n)
        if to >= 0 and state.near_absent[base + to] > 0:
            return False
        last = come_from >= 0 and state.near_count[base + come_from] == 1
        if last and state.near_relying[base + come_from] > 0:
            return False
    return True


@inline_only
def affords_move(problem: Problem, state: State, k: int) -> bool:
    """Whether the budgets, those of nodes and domains apart, let ``k`` be on a new node."""
    budgets = problem.budgets
    if not budgets.binds:
        return True
    here = index(state.node[k])
    if here >= 0 and is_away(problem, k, here) > 0:
        return True
    if state.spent[0] + 1.0 > budgets.moves:
        return False
    if state.moved_of[problem.partitions.owner[k]] >= budgets.of_partition:
        return False
    if budgets.data_dimension >= 0:
        load = load_of(problem.partitions, state, k, budgets.data_dimension)
        return state.spent[1] + load <= budgets.data
    return True


@inline_only
def affords(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether the budgets let ``k`` move to ``n``; going home is free. O(R + tiers)."""
    # a node where its partition stood before, as no node itself, is nothing that it moves to
    budgets, domain = problem.budgets, problem.domains.domain
    home = index(problem.partitions.home[k])
    if not budgets.binds or n == home:
        return True
    new = is_away(problem, k, n) > 0
    if new and not affords_move(problem, state, k):
        return False
    here = index(state.node[k])
    away = here >= 0 and here != home
    for i in range(budgets.tiers.shape[0]):
        tier = index(budgets.tiers[i])
        origin, to = crossing(problem, tier, home, n)
        if to == origin:
            continue
        now = index(domain[tier, here]) if away else origin
        enters = to >= 0 and to != now and (new or tier + 1 < domain.shape[0])
        if enters and state.came[to] >= budgets.into[to]:
            return False
        leaves = origin >= 0 and now == origin and budgets.source[home]
        if leaves and state.went[origin] >= budgets.out_of[origin]:
            return False
    return True


@device_function
def overrun(problem: Problem, state: State) -> int:
    """Count what is spent beyond the budgets; of data, moves of mean weight beyond. O(P + N)."""
    # what was spent already counts, too, so that a search which steps beyond finds its way back
    budgets, spent = problem.budgets, state.spent
    if not budgets.binds:
        return 0
    count = max(0, int(spent[0]) - budgets.moves)
    count += max(0, int(spent[2]) - budgets.leader_changes)
    beyond = spent[1] - budgets.data * (1.0 + ROUNDING)
    if budgets.data_dimension >= 0 and beyond > 0.0:
        count += 1 + int(beyond * spent[0] / spent[1])
    if budgets.of_partition < UNLIMITED:
        for p in range(state.moved_of.shape[0]):
            count += max(0, state.moved_of[p] - budgets.of_partition)
    for i in range(budgets.tiers.shape[0]):
        tier = index(budgets.tiers[i])
        for where in range(
            problem.domains.domain_offset[tier], problem.domains.domain_offset[tier + 1]
        ):
            count += max(0, state.came[where] - budgets.into[where])
            count += max(0, state.went[where] - budgets.out_of[where])
    return count


@inline_only
def may_step_down(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether leader ``k`` may leave its home for ``n``: it weighs as a follower there first."""
    here, home = index(state.node[k]), index(problem.partitions.home[k])
    if home < 0 or home == n:
        return True
    if here >= 0 and here != home:
        return True
    nodes, p = problem.nodes, index(problem.partitions.owner[k])
    for d in range(nodes.capacity.shape[0]):
        more = following_load(problem.partitions, state, k, d)
        more -= problem.partitions.leader_load[p, d]
        if not nodes.transient[d] or more <= 0.0:
            continue
        there = state.load[d, home] + state.held[d, home]
        if here == home:
            there += more
        if there > nodes.capacity[d, home]:
            return False
    return True


@device_function
def admits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether replica ``k`` may move to node ``n``: every hard rule, every budget, and room.

    Complexity: O(R * levels + D), R the replicas of its partition, whatever its group needs.
    """
    p = index(problem.partitions.owner[k])
    here = index(state.node[k])
    if here == n or not problem.partitions.movable[k]:
        return False
    if leads_now(problem.partitions.first, state.leader, p, k):
        rank = problem.rules.lead_rank[problem.partitions.rule[p]]
        if not problem.nodes.leads[n] or rank[n] == 255:
            return False
        if here >= 0 and problem.nodes.leads[here] and rank[n] > rank[here]:
            return False
        if state.role[k] != VOTER and problem.partitions.led_from[p] < 0:
            return False  # where it leads now it counts as unled
        if not affords_leader(problem, state, p, n) or not may_step_down(problem, state, k, n):
            return False
    return (
        may_stand(problem, p, n)
        and keeps_leader(problem, state, k, n)
        and affords(problem, state, k, n)
        and fits(problem, state, k, n)
        and keeps_limits(problem, state, k, n)
        and keeps_terms(problem, state, k, n)
        and keeps_group_limits(problem, state, k, n)
        and affinity(problem, state, k, n)
    )
