"""Count the violations of the rules of groups, for searches that pay a penalty for each.

A breach is one replica too many in a domain, one domain too few or too many, one replica too few on
the nodes of a term, or one replica in a domain without another group that its own needs there. A
search that pays for each breach can pass through states that break rules, as it passes through
states that do not fit.
"""

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import beyond_group_limit
from evenkeel_kernels.core.problem import FEWEST, MOST, SKEW, Problem, State, crossing, index


@inline_only
def breaches_of_limits(problem: Problem, state: State, g: int, k: int, n: int) -> int:
    """Change of what breaks limits and terms of group ``g`` if its replica ``k`` went to ``n``."""
    rules, no = problem.rules, index(-1)
    here = index(state.node[k])
    change = index(0)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = index(rules.group_limit[i, 0])
        come_from, to = crossing(problem, level, here, n)
        if to == come_from:
            continue
        base = rules.group_base[i] - problem.domains.domain_offset[level]
        most = rules.group_limit[i, MOST]
        if to >= 0:
            change += int(0 <= most <= state.group_count[base + to])
        if come_from >= 0:
            change -= int(0 <= most < state.group_count[base + come_from])
        for column in range(FEWEST, SKEW):
            change += beyond_group_limit(problem, state, i, column, come_from, to)
            change -= beyond_group_limit(problem, state, i, column, no, no)
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        if rules.group_term[i, 1] and state.role[k] != 0:
            continue
        inside = rules.term_mask[rules.group_term[i, 2]]
        before = state.group_inside[i]
        after = before + int(inside[n]) - int(here >= 0 and inside[here])
        least = rules.group_term[i, 0]
        change += max(0, least - after) - max(0, least - before)
    return change


@inline_only
def breaches_of_needs(problem: Problem, state: State, g: int, k: int, n: int) -> int:
    """Change of the replicas without a group that theirs needs nearby if ``k`` went to ``n``."""
    # a group that needs itself never lacks it
    rules, domains, near = problem.rules, problem.domains, state.near_count
    here = index(state.node[k])
    change = 0
    for turn in range(2):  # as the one that needs, as the one that is needed
        first = rules.needs_first if turn == 0 else rules.needed_first
        rows = rules.needs if turn == 0 else rules.needed
        for i in range(first[g], first[g + 1]):
            other, level = index(rows[i, 0]), index(rows[i, 1])
            if other == g:
                continue
            come_from, to = crossing(problem, level, here, n)
            if to == come_from:
                continue
            own = rules.near_base[g, level] - domains.domain_offset[level]
            theirs = rules.near_base[other, level] - domains.domain_offset[level]
            if turn == 0:
                # a replica lacks what it needs where none of the other group is
                change += int(to >= 0 and near[theirs + to] == 0)
                change -= int(come_from >= 0 and near[theirs + come_from] == 0)
                continue
            # the first of its group serves all of the other one, and the last one fails all of it
            if to >= 0 and near[own + to] == 0:
                change -= near[theirs + to]
            if come_from >= 0 and near[own + come_from] == 1:
                change += near[theirs + come_from]
    return change


@device_function
def breaches(problem: Problem, state: State, k: int, n: int) -> int:
    """Change of the number of breaches if replica ``k`` went to node ``n``."""
    g = index(problem.partitions.group[problem.partitions.owner[k]])
    return breaches_of_limits(problem, state, g, k, n) + breaches_of_needs(problem, state, g, k, n)


@inline_only
def tied(problem: Problem, g: int, h: int) -> bool:
    """Whether group ``g`` needs group ``h`` anywhere, or the other way round."""
    rules = problem.rules
    for i in range(rules.needs_first[g], rules.needs_first[g + 1]):
        if rules.needs[i, 0] == h:
            return True
    for i in range(rules.needed_first[g], rules.needed_first[g + 1]):
        if rules.needed[i, 0] == h:
            return True
    return False


@no_alloc
def all_breaches(problem: Problem, state: State) -> int:
    """Count the breaches of a whole state. O(counts)."""
    rules, domains = problem.rules, problem.domains
    offset = domains.domain_offset
    found = 0
    for i in range(rules.group_limit.shape[0]):
        level, most = rules.group_limit[i, 0], rules.group_limit[i, MOST]
        for where in range(offset[level + 1] - offset[level]):
            if most >= 0:
                found += max(0, state.group_count[rules.group_base[i] + where] - most)
        for column in range(FEWEST, SKEW):
            found += beyond_group_limit(problem, state, index(i), column, index(-1), index(-1))
    for i in range(rules.group_term.shape[0]):
        found += max(0, rules.group_term[i, 0] - state.group_inside[i])
    for g in range(rules.needs_first.shape[0] - 1):
        for i in range(rules.needs_first[g], rules.needs_first[g + 1]):
            other, level = rules.needs[i, 0], rules.needs[i, 1]
            own, theirs = rules.near_base[g, level], rules.near_base[other, level]
            for where in range(offset[level + 1] - offset[level]):
                if state.near_count[theirs + where] == 0:
                    found += state.near_count[own + where]
    return found
