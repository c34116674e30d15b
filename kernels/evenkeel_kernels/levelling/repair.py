"""Mark the replicas that must leave their node, and repair broken rules by single moves.

A replica must leave a node that does not keep it, or that its rule's mask or a ban forbids; one
without a node must get one. `evenkeel_kernels.levelling.best_fit.best_fit` finds their new nodes.
Rules that are broken between replicas, two in one zone for instance, are repaired one move at a
time; for the skews of groups, see `evenkeel_kernels.levelling.group_skew`.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.feasibility import (
    admits,
    distinct_domains,
    group_skew,
    skew_of,
)
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.node_scan import (
    FAR,
    Scan,
    close_full,
    close_full_of_group,
    fill,
    lowest,
    refuse,
    take_size,
)
from evenkeel_kernels.core.problem import NON_VOTER, Problem, State, index, leads_now
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import appoint


def must_relocate(problem: Problem, state: State, keeps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say of each replica whether it must get another node, where ``keeps (N,)`` may keep theirs.

    O(K), and the bans of each partition.
    """
    forced = np.zeros(state.node.shape[0], np.bool_)
    mark_homeless(problem, state, keeps, forced)
    return forced


@no_alloc
def mark_homeless(
    problem: Problem, state: State, keeps: NDArray[np.bool_], forced: NDArray[np.bool_]
) -> None:
    """Fill ``forced (K,)`` for `must_relocate`, with the same ``keeps (N,)``."""
    partitions = problem.partitions
    for k in range(state.node.shape[0]):
        n = index(state.node[k])
        p = index(partitions.owner[k])
        forced[k] = n < 0 or not keeps[n] or not problem.rules.allowed[partitions.mask[p], n]
        for i in range(partitions.forbidden_first[p], partitions.forbidden_first[p + 1]):
            if partitions.forbidden[i] == n:
                forced[k] = True


@inline_only
def breaches(problem: Problem, state: State, p: int, moved_k: int, target: int) -> int:
    """Count by how much ``p`` breaks its limits and terms if ``moved_k`` sat on ``target``.

    O(R^2) for each limit and term.
    """
    partitions, rules, domains = problem.partitions, problem.rules, problem.domains
    first, last = partitions.first[p], partitions.first[p + 1]
    q = partitions.rule[p]
    count = 0
    for i in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level, most = index(rules.limit[i, 0]), index(rules.limit[i, 1])
        if most >= 0:
            seen = 0  # each replica beyond the first ``most`` of its domain is one too many
            for j in range(first, last):
                n = target if j == moved_k else state.node[j]
                where = domains.domain[level, n] if n >= 0 else -1
                if where < 0:
                    continue
                earlier = 0
                for other in range(first, j):
                    at = target if other == moved_k else state.node[other]
                    if at >= 0 and domains.domain[level, at] == where:
                        earlier += 1
                seen += int(earlier >= most)
            count += seen
        if rules.limit[i, 2] >= 0 or rules.limit[i, 3] >= 0:
            distinct = distinct_domains(
                partitions.first, state.node, domains.domain, p, moved_k, target, level
            )
            count += max(0, rules.limit[i, 2] - distinct)
            if rules.limit[i, 3] >= 0:
                count += max(0, distinct - rules.limit[i, 3])
        if rules.limit[i, 4] >= 0:
            allowed = rules.allowed[partitions.mask[p]]
            skew = skew_of(
                partitions.first, state.node, domains, allowed, p, moved_k, target, level
            )
            count += max(0, skew - rules.limit[i, 4])
    for i in range(rules.term_first[q], rules.term_first[q + 1]):
        inside = 0
        outside = 0
        for j in range(first, last):
            n = target if j == moved_k else state.node[j]
            if n < 0 or (rules.term[i, 1] and state.role[j] == NON_VOTER):
                continue
            if rules.term_mask[rules.term[i, 2], n]:
                inside += 1
            else:
                outside += 1
        count += outside if rules.term[i, 0] < 0 else max(0, rules.term[i, 0] - inside)
    return count


@inline_only
def group_breaches(problem: Problem, state: State, k: int, n: int) -> int:
    """Count the limits and terms of the group of ``k`` broken with it on ``n``, skews apart.

    Of limits on a domain and of terms those that it breaks by being there; nowhere (-1) none.
    """
    rules, domains = problem.rules, problem.domains
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = index(state.node[k])
    count = 0
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level, most = index(rules.group_limit[i, 0]), index(rules.group_limit[i, 1])
        where = index(domains.domain[level, n]) if n >= 0 else index(-1)
        if most < 0 or where < 0:
            continue
        inside = state.group_count[rules.group_base[i] - domains.domain_offset[level] + where]
        if here < 0 or domains.domain[level, here] != where:
            inside += 1
        count += int(inside > most)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = index(rules.group_limit[i, 0])
        to = index(domains.domain[level, n]) if n >= 0 else index(-1)
        come_from = index(domains.domain[level, here]) if here >= 0 else index(-1)
        if to == come_from:
            to, come_from = index(-1), index(-1)
        if rules.group_limit[i, 2] >= 0 or rules.group_limit[i, 3] >= 0:
            base = rules.group_base[i] - domains.domain_offset[level]
            after = index(state.group_domains[i])
            after -= int(come_from >= 0 and state.group_count[base + come_from] == 1)
            after += int(to >= 0 and state.group_count[base + to] == 0)
            count += max(0, rules.group_limit[i, 2] - after)
            if rules.group_limit[i, 3] >= 0:
                count += max(0, after - rules.group_limit[i, 3])
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        if n < 0 or (rules.group_term[i, 1] and state.role[k] == NON_VOTER):
            continue
        if rules.group_term[i, 0] < 0 or state.group_inside[i] < rules.group_term[i, 0]:
            count += int(not rules.term_mask[rules.group_term[i, 2], n])
    return count


@inline_only
def breaches_and_skew(problem: Problem, state: State, k: int, n: int) -> int:
    """Count `group_breaches`, and by how much the skews of the group are too great."""
    rules, domain = problem.rules, problem.domains.domain
    g, here = problem.partitions.group[problem.partitions.owner[k]], index(state.node[k])
    count = group_breaches(problem, state, k, n)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        if rules.group_limit[i, 4] >= 0:
            level = index(rules.group_limit[i, 0])
            to = index(domain[level, n]) if n >= 0 else index(-1)
            come_from = index(domain[level, here]) if here >= 0 else index(-1)
            if to == come_from:
                to, come_from = index(-1), index(-1)
            count += max(0, group_skew(problem, state, i, come_from, to) - rules.group_limit[i, 4])
    return count


@no_alloc
def breaches_without(
    problem: Problem, state: State, replicas: NDArray[np.int64], count: NDArray[np.int64]
) -> None:
    """Fill ``count (K,)`` for ``replicas (M,)``: how broken its rules are without each."""
    for i in range(replicas.shape[0]):
        k = index(replicas[i])
        p = index(problem.partitions.owner[k])
        count[k] = breaches(problem, state, p, k, index(-1))
        count[k] -= breaches_and_skew(problem, state, k, index(state.node[k]))


@no_alloc
def leave_out_dead(
    problem: Problem, state: State, replicas: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    """Put ``replicas`` back on the dead nodes they stood on, unless that breaks a rule.

    Those that stay out are marked in ``out (K,)``. O(R^2) for each limit and term.
    """
    for i in range(replicas.shape[0]):
        k = index(replicas[i])
        p = index(problem.partitions.owner[k])
        home = index(problem.partitions.home[k])
        before = breaches(problem, state, p, index(-1), index(-1))
        if breaches(problem, state, p, k, home) > before:
            out[k] = True
        elif breaches_and_skew(problem, state, k, home) > breaches_and_skew(
            problem, state, k, index(-1)
        ):
            out[k] = True
        else:
            move(problem, state, k, home)


@inline_only
def repairing_node(problem: Problem, state: State, scan: Scan, k: int, broken: int) -> int:
    """Best node for ``k`` on which fewer than ``broken`` rules are broken, -1 for none."""
    p = index(problem.partitions.owner[k])
    take_size(problem, state, scan, k)
    fill(scan, state.load, problem.partitions.mask[p])
    close_full(problem, state, scan, k)
    close_full_of_group(problem, state, scan, k)
    refused = 0
    while True:
        n = lowest(scan, k)
        if scan.score[n] > 0.5 * FAR:
            return -1
        now = breaches(problem, state, p, k, n) + group_breaches(problem, state, k, n)
        if now < broken and admits(problem, state, k, n):
            return n
        refused = refuse(problem, state, scan, k, n, refused)


@no_alloc
def repair_partitions(
    problem: Problem,
    state: State,
    scan: Scan,
    begin: int,
    left: NDArray[np.int64],
    made: NDArray[np.int64],
) -> int:
    """Repair the broken limits and terms of partitions from ``begin`` on; returns where to go on.

    ``left (2,)`` is how many replicas may leave the node that they came from, and for how many
    partitions and nodes there may be a look; ``made (1,)`` counts the moves. Both are kept up to
    date. A partition is repaired by single moves, each of which leaves less broken than before; of
    its replicas the one tried first leads nothing and comes first; a leader leads on where it goes,
    if it may, and otherwise another does; where no other could, it stays.
    What no move repairs stays.

    Complexity: O(K R) for each limit where nothing is broken, and a scan per replica where it is.
    """
    partitions = problem.partitions
    for p in range(begin, partitions.first.shape[0] - 1):
        if left[1] <= 0:
            return p
        left[1] -= 1
        first, last = partitions.first[p], partitions.first[p + 1]
        going = True
        while going:
            going = False
            own = breaches(problem, state, p, -1, -1)
            for turn in range(2):
                for k in range(first, last):
                    if going or int(leads_now(partitions.first, state.leader, p, k)) != turn:
                        continue
                    here = index(state.node[k])
                    if here < 0 or not partitions.movable[k]:
                        continue
                    at_home = here == partitions.home[k]
                    if at_home and left[0] <= 0:
                        continue
                    broken = own + group_breaches(problem, state, k, here)
                    if broken == 0:
                        continue
                    slot = index(k - first)
                    if turn == 1:  # where it led from is no reason to leave a rule broken
                        transfer_leader(problem, state, p, index(-1))
                    left[1] -= scan.score.shape[0]
                    n = repairing_node(problem, state, scan, k, broken)
                    if n >= 0:
                        move(problem, state, k, n)
                    if n >= 0 and turn == 1:
                        if admits_leader(problem, state, p, slot):
                            transfer_leader(problem, state, p, slot)
                        else:
                            appoint(problem, state, scan, p, index(-1))
                        if state.leader[p] < 0:
                            move(problem, state, k, here)
                            n = index(-1)
                    if n < 0 and turn == 1:
                        transfer_leader(problem, state, p, slot)
                    if n >= 0:
                        made[0] += 1
                        left[0] -= int(at_home)
                        going = True
    return partitions.first.shape[0] - 1
