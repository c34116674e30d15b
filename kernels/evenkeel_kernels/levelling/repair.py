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
    affinity,
    beyond_group_limit,
    broken_by,
    keeps_group_limits,
    rows_of,
)
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.node_scan import FAR, Scan, lowest, refuse, score_all
from evenkeel_kernels.core.problem import (
    FEWEST,
    MOST,
    SKEW,
    VOTER,
    Problem,
    State,
    crossing,
    index,
    leads_now,
)
from evenkeel_kernels.core.state import move, move_if_admitted, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import appoint
from evenkeel_kernels.levelling.penalty import Targets, passing_replica

ROUNDING = 1e-9  # fall of the penalty that is none


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
def is_waiting(problem: Problem, state: State, forced: NDArray[np.bool_], k: int) -> bool:
    """Whether ``k``, one of ``forced (K,)``, must get another node and has none yet."""
    n = state.node[k]
    return forced[k] and (n < 0 or n == problem.partitions.home[k])


@inline_only
def breaches(problem: Problem, state: State, p: int, moved_k: int, target: int) -> int:
    """Count by how much ``p`` breaks its limits and terms if ``moved_k`` sat on ``target``.

    O(R^2) for each limit and term.
    """
    count = index(0)
    for row in range(rows_of(problem, p)):
        count += broken_by(problem, state, p, row, moved_k, target)
    return count


@inline_only
def group_breaches(problem: Problem, state: State, k: int, n: int) -> int:
    """Count the limits and terms of the group of ``k`` broken with it on ``n``, skews apart."""
    # of limits on a domain and of terms those that it breaks by being there; nowhere (-1) none
    rules, domains = problem.rules, problem.domains
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = index(state.node[k])
    count = index(0)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level, most = index(rules.group_limit[i, 0]), index(rules.group_limit[i, MOST])
        come_from, to = crossing(problem, level, here, n)
        where = index(domains.domain[level, n]) if n >= 0 else index(-1)
        if most >= 0 and where >= 0:
            at = rules.group_base[i] - domains.domain_offset[level] + where
            count += int(state.group_count[at] + int(to >= 0) > most)
        for column in range(FEWEST, SKEW):
            count += beyond_group_limit(problem, state, i, column, come_from, to)
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        if n < 0 or (rules.group_term[i, 1] and state.role[k] != VOTER):
            continue
        if rules.group_term[i, 0] < 0 or state.group_inside[i] < rules.group_term[i, 0]:
            count += int(not rules.term_mask[rules.group_term[i, 2], n])
    return count


@inline_only
def breaches_and_skew(problem: Problem, state: State, k: int, n: int) -> int:
    """Count `group_breaches`, and by how much the skews of the group are too great."""
    rules = problem.rules
    g, here = problem.partitions.group[problem.partitions.owner[k]], index(state.node[k])
    count = group_breaches(problem, state, k, n)
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        come_from, to = crossing(problem, index(rules.group_limit[i, 0]), here, n)
        count += beyond_group_limit(problem, state, i, index(SKEW), come_from, to)
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
        for row in range(rows_of(problem, p)):
            broken = broken_by(problem, state, p, row, k, home)
            out[k] |= broken > broken_by(problem, state, p, row, k, index(-1))
        there = breaches_and_skew(problem, state, k, home)
        out[k] |= there > breaches_and_skew(problem, state, k, index(-1))
        out[k] |= not keeps_group_limits(problem, state, k, home)
        out[k] |= not affinity(problem, state, k, home)
        if not out[k]:
            move(problem, state, k, home)


@inline_only
def repairing_node(problem: Problem, state: State, scan: Scan, k: int, broken: int) -> int:
    """Best node for ``k`` on which fewer than ``broken`` rules are broken, -1 for none."""
    p = index(problem.partitions.owner[k])
    score_all(problem, state, scan, k)
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
            own = breaches(problem, state, p, index(-1), index(-1))
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


@inline_only
def goes_instead(problem: Problem, state: State, j: int, k: int) -> bool:
    """Let ``j`` move to where ``k`` of the same partition is, and ``k`` go home; whether it did."""
    came, here = index(state.node[k]), index(state.node[j])
    move(problem, state, k, index(-1))
    if move_if_admitted(problem, state, j, came):
        if move_if_admitted(problem, state, k, index(problem.partitions.home[k])):
            return True
        move(problem, state, j, here)
    move(problem, state, k, came)
    return False


@no_alloc
def send_siblings(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    kind: NDArray[np.int64],
) -> int:
    """Send replicas of nodes above their targets in place of siblings that have moved.

    The sibling goes home, so that as many move, where that lowers the penalty. Both nodes are of
    one ``kind (N,)``: rules see no difference. Leaders stay, and so does what is ``forced (K,)``.
    Returns how many went.

    Complexity: O(K R D), and O(R) for each level where it pays.
    """
    partitions = problem.partitions
    made = 0
    for p in range(partitions.first.shape[0] - 1):
        first, last = partitions.first[p], partitions.first[p + 1]
        for k in range(first, last):
            home = index(partitions.home[k])
            if home < 0 or state.node[k] < 0 or state.node[k] == home or forced[k]:
                continue
            if leads_now(partitions.first, state.leader, p, k) or not partitions.movable[k]:
                continue
            for j in range(first, last):
                here = index(state.node[j])
                if here < 0 or here != partitions.home[j] or state.role[j] != state.role[k]:
                    continue
                if forced[j] or kind[here] != kind[home]:
                    continue
                if leads_now(partitions.first, state.leader, p, j):
                    continue
                gain = -passing_replica(partitions, state, targets, j, here, home)
                if gain > ROUNDING and goes_instead(problem, state, j, k):
                    made += 1
                    break
    return made
