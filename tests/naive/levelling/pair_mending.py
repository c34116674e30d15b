"""Mending by two moves at once in plain Python: rules and loads are counted anew each time."""

from collections import Counter
from itertools import permutations

import numpy as np

from evenkeel_kernels.core.problem import NON_VOTER, Problem, State
from evenkeel_kernels.levelling.penalty import Targets
from tests.naive.core.state import (
    admits,
    domains_of,
    leads,
    loads,
    moved_to,
    recount,
    row,
    spread_of,
)

WAITS = 1_000  # how many broken rules a replica without a node is worth


def repair_pairs(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: list[bool],
    dropped: list[bool],
    partitions: list[int],
    kind: list[int],
    looks: int,
) -> tuple[State, int, int]:
    """The state once two moves at once mend nothing more, the pairs moved, and the looks left."""
    pairs, each = 0, (max(kind, default=-1) + 1) ** 2 * len(kind)
    for p in partitions:
        if bound_as_a_group(problem, p):
            continue
        going = True
        while going:
            going = False
            may = [
                k
                for k in row(problem, p)
                if problem.partitions.movable[k]
                and not dropped[k]
                and (state.node[k] >= 0 or forced[k])
            ]
            for k, j in permutations(may, 2):
                if looks <= 0 or illness(problem, state, forced, p) == 0:
                    break
                looks -= each
                after = mended(problem, state, targets, forced, k, j, kind)
                if after is not None:
                    state, pairs, going = after, pairs + 1, True
                    break
    return state, pairs, looks


def mended(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: list[bool],
    k: int,
    j: int,
    kind: list[int],
) -> State | None:
    """The state with both elsewhere that leaves least wrong; None if none leaves less than now."""
    p = int(problem.partitions.owner[k])
    here, there = int(state.node[k]), int(state.node[j])
    least, best = illness(problem, state, forced, p), None
    lifted = moved_to(moved_to(state, k, -1), j, -1)
    for one in range(max(kind) + 1):
        n = best_of_kind(problem, lifted, targets, k, here, kind, one)
        if n is None or n == here:
            continue
        with_one = moved_to(lifted, k, n)
        for other in range(max(kind) + 1):
            m = best_of_kind(problem, with_one, targets, j, there, kind, other)
            if m is None or m == there:
                continue
            tried = moved_to(with_one, j, m)
            ill = illness(problem, tried, forced, p)
            if ill < least and keeps_counts(problem, state, tried, p):
                least, best = ill, tried
    return best


def best_of_kind(
    problem: Problem, state: State, targets: Targets, k: int, here: int, kind: list[int], of: int
) -> int | None:
    """The admitted node of a kind on which the replica, which is nowhere, presses least."""
    rank = problem.rules.lead_rank[problem.partitions.rule[problem.partitions.owner[k]]]
    leader = leads(problem, state, k)
    found = [
        (pressing(problem, state, targets, k, n), n)
        for n in range(len(kind))
        if kind[n] == of and not (leader and rank[n] > rank[here]) and admits(problem, state, k, n)
    ]
    return min(found)[1] if found else None


def pressing(problem: Problem, state: State, targets: Targets, k: int, n: int) -> float:
    """Change of the penalty if the node had the replica as well."""
    books, change = recount(problem, state), 0.0
    for d, more in enumerate(loads(problem, state, k)):
        load, scale = books["load"][d, n], targets.scale[d, n]
        change += squared((load + more) * scale - targets.threshold)
        change -= squared(load * scale - targets.threshold)
    if leads(problem, state, k):
        count, scale = books["leaders"][n], targets.leader_scale[n]
        change += squared((count + 1.0) * scale - 1.0) - squared(count * scale - 1.0)
    return float(change)


def squared(over: float) -> float:
    """Square of what is above 0."""
    return over * over if over > 0.0 else 0.0


def illness(problem: Problem, state: State, forced: list[bool], p: int) -> int:
    """How much is wrong with a partition: who waits for a node, then the rules broken."""
    home = problem.partitions.home
    waits = [forced[k] and state.node[k] in (-1, home[k]) for k in row(problem, p)]
    return WAITS * sum(waits) + breaches(problem, state, p)


def breaches(problem: Problem, state: State, p: int) -> int:
    """By how much a partition breaks its limits and terms."""
    rules, q, replicas, total = problem.rules, problem.partitions.rule[p], row(problem, p), 0
    for level, most, fewest, widest, skew in limits(problem, p):
        count = domains_of(problem, state, level, replicas)
        if most >= 0:
            total += sum(max(0, held - most) for held in count.values())
        if fewest >= 0:
            total += max(0, fewest - len(count))
        if widest >= 0:
            total += max(0, len(count) - widest)
        if skew >= 0:
            total += max(0, spread_of(problem, p, level, count) - skew)
    for term in rules.term[rules.term_first[q] : rules.term_first[q + 1]]:
        total += lack(problem, state, replicas, term)
    return total


def limits(problem: Problem, p: int) -> list[list[int]]:
    """The limits of a partition's own rule."""
    rules, q = problem.rules, problem.partitions.rule[p]
    found: list[list[int]] = rules.limit[rules.limit_first[q] : rules.limit_first[q + 1]].tolist()
    return found


def lack(problem: Problem, state: State, replicas: list[int], term: np.ndarray) -> int:
    """How many a term lacks inside; or how many are outside, where none may be."""
    counted = [
        k for k in replicas if state.node[k] >= 0 and not (term[1] and state.role[k] == NON_VOTER)
    ]
    there = Counter(bool(problem.rules.term_mask[term[2], state.node[k]]) for k in counted)
    return there[False] if term[0] < 0 else max(0, int(term[0]) - there[True])


def keeps_counts(problem: Problem, before: State, after: State, p: int) -> bool:
    """Whether no limit but the spread, and no term, is broken more than it was."""
    rules, q, replicas = problem.rules, problem.partitions.rule[p], row(problem, p)
    for level, _, fewest, widest, skew in limits(problem, p):
        was, now = (domains_of(problem, one, level, replicas) for one in (before, after))
        if fewest >= 0 and len(now) < min(fewest, len(was)):
            return False
        if widest >= 0 and len(now) > max(widest, len(was)):
            return False
        if skew >= 0:
            uneven = spread_of(problem, p, level, now)
            if uneven > max(skew, spread_of(problem, p, level, was)):
                return False
    terms = rules.term[rules.term_first[q] : rules.term_first[q + 1]]
    return all(
        lack(problem, after, replicas, term) <= lack(problem, before, replicas, term)
        for term in terms
    )


def bound_as_a_group(problem: Problem, p: int) -> bool:
    """Whether a rule of its group as a whole binds a partition."""
    rules, g = problem.rules, problem.partitions.group[p]
    starts = (rules.group_limit_first, rules.group_term_first, rules.needs_first)
    return any(first[g] < first[g + 1] for first in (*starts, rules.needed_first))
