"""Move two replicas of a partition at once, where neither may, or should, move alone.

A partition may keep the rules before and after and break one halfway: two racks of which each holds
one replica, and two tags that are to be one each. Moving one replica at a time never gets
there. Here both are removed; the first is tried on the best node of every kind, and the second then
finds its own best. Nodes are of one kind if no rule distinguishes them.

Pairs of moves also repair a partition where no single move would be admitted. A voter can come to a
region only once a non-voter has left it; a replica of an emptied zone can replace only a lost one
that is placed elsewhere first.

Rules of a group as a whole are not considered: its partitions are left to single moves.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits, broken_by, rows_of
from evenkeel_kernels.core.problem import Problem, State, index, leads_now
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.penalty import Targets, is_overfull, passing_node
from evenkeel_kernels.levelling.repair import breaches, is_waiting

LEAST_GAIN = 1e-9  # of the penalty of `evenkeel_kernels.levelling.penalty`; less is rounding

WAITS = 1_000  # how many broken rules a replica without a node is worth


@inline_only
def stands_alone(problem: Problem, p: int) -> bool:
    """Whether no rule of its group as a whole binds the partition."""
    rules = problem.rules
    g = problem.partitions.group[p]
    return (
        rules.group_limit_first[g] == rules.group_limit_first[g + 1]
        and rules.group_term_first[g] == rules.group_term_first[g + 1]
        and rules.needs_first[g] == rules.needs_first[g + 1]
        and rules.needed_first[g] == rules.needed_first[g + 1]
    )


@inline_only
def take_counts(problem: Problem, state: State, p: int, counts: NDArray[np.int64]) -> None:
    """Fill ``counts (rows,)`` with how much the partition breaks each of its `rows_of`."""
    for row in range(rows_of(problem, p)):
        counts[row] = broken_by(problem, state, p, row, index(-1), index(-1))


@inline_only
def keeps_counts(problem: Problem, state: State, p: int, before: NDArray[np.int64]) -> bool:
    """Whether no limit and no term is broken more than ``before``, as `take_counts` fills it."""
    # what is nowhere counts as outside of a term: one replica at a time is admitted where others
    # may still come, though some of them never do
    for row in range(rows_of(problem, p)):
        if broken_by(problem, state, p, row, index(-1), index(-1)) > before[row]:
            return False
    return True


@inline_only
def keeps_rank(problem: Problem, state: State, k: int, here: int, n: int) -> bool:
    """Whether ``k``, if it leads, is on ``n`` no worse a leader than it was ``here``."""
    p = index(problem.partitions.owner[k])
    if not leads_now(problem.partitions.first, state.leader, p, k):
        return True
    rank = problem.rules.lead_rank[problem.partitions.rule[p]]
    return rank[n] <= rank[here]


@device_function
def best_for(
    problem: Problem,
    state: State,
    targets: Targets,
    k: int,
    here: int,
    kind: NDArray[np.int64],
    of: int,
) -> int:
    """Return the admitted node for ``k``, which is nowhere, whose penalty rises least by it; or -1.

    Only nodes whose ``kind (N,)`` is ``of`` are looked at, or all for -1. O(N (D + admits)).
    """  # fmt: skip
    best = index(-1)
    least = 0.0
    for n in range(kind.shape[0]):
        if of >= 0 and kind[n] != of:
            continue
        if not keeps_rank(problem, state, k, here, n) or not admits(problem, state, k, n):
            continue
        change = passing_node(problem, state, targets, k, n, 1.0)
        if best < 0 or change < least:
            best, least = n, change
    return best


@device_function
def try_pair(
    problem: Problem,
    state: State,
    targets: Targets,
    k: int,
    j: int,
    kind: NDArray[np.int64],
    kinds: int,
    before: NDArray[np.int64],
) -> bool:
    """Move ``k`` and ``j`` at once, if that lowers the penalty; whether they moved.

    ``kind (N,)`` says of which of so many ``kinds`` each node is; ``before (rows,)`` is scratch.
    O(kinds N (D + admits)).
    """
    p = index(problem.partitions.owner[k])
    here, there = index(state.node[k]), index(state.node[j])
    take_counts(problem, state, p, before)
    gone = passing_node(problem, state, targets, k, here, -1.0)
    move(problem, state, k, index(-1))
    gone += passing_node(problem, state, targets, j, there, -1.0)
    move(problem, state, j, index(-1))
    best_k, best_j, least = index(-1), index(-1), -LEAST_GAIN
    for of in range(kinds):
        n = best_for(problem, state, targets, k, here, kind, of)
        if n < 0 or n == here:
            continue
        change = gone + passing_node(problem, state, targets, k, n, 1.0)
        if change >= least:
            continue
        move(problem, state, k, n)
        m = best_for(problem, state, targets, j, there, kind, index(-1))
        if m >= 0:
            change += passing_node(problem, state, targets, j, m, 1.0)
            move(problem, state, j, m)
            if change < least and keeps_counts(problem, state, p, before):
                best_k, best_j, least = n, m, change
            move(problem, state, j, index(-1))
        move(problem, state, k, index(-1))
    move(problem, state, k, here if best_k < 0 else best_k)
    move(problem, state, j, there if best_j < 0 else best_j)
    return best_k >= 0


@no_alloc
def move_in_tandem(
    problem: Problem,
    state: State,
    targets: Targets,
    replica: NDArray[np.int64],
    kind: NDArray[np.int64],
    kinds: int,
    left: NDArray[np.int64],
    before: NDArray[np.int64],
    begin: int,
    end: int,
) -> int:
    """Let each of ``replica[begin:end]`` on an overfull node move with another of its partition.

    ``kind (N,)`` says of which of so many ``kinds`` each node is. ``left (2,)`` is how many
    replicas may still move, and how many nodes may still be looked at; both are kept up to date.
    ``before (rows,)`` is scratch. Returns how many pairs moved.

    Complexity: O(R kinds N (D + admits)) for each replica.
    """
    partitions = problem.partitions
    pairs = 0
    for i in range(begin, end):
        k = replica[i]
        if state.node[k] < 0 or not partitions.movable[k]:
            continue
        p = index(partitions.owner[k])
        if not stands_alone(problem, p):
            continue
        for j in range(partitions.first[p], partitions.first[p + 1]):
            if left[0] < 2 or left[1] <= 0:
                return pairs
            if j == k or state.node[j] < 0 or not partitions.movable[j]:
                continue
            if not is_overfull(state, targets, index(state.node[k])):
                break
            left[1] -= kinds * state.load.shape[1]
            was = int(state.node[k] == partitions.home[k]) + int(
                state.node[j] == partitions.home[j]
            )
            if try_pair(problem, state, targets, k, j, kind, kinds, before):
                pairs += 1
                left[0] -= was
                left[0] += int(state.node[k] == partitions.home[k])
                left[0] += int(state.node[j] == partitions.home[j])
    return pairs


@inline_only
def illness(problem: Problem, state: State, forced: NDArray[np.bool_], p: int) -> int:
    """How much is wrong with ``p``: those of ``forced (K,)`` that wait, then rules broken."""
    total = index(breaches(problem, state, p, index(-1), index(-1)))
    for k in range(problem.partitions.first[p], problem.partitions.first[p + 1]):
        total += WAITS * int(is_waiting(problem, state, forced, k))
    return total


@device_function
def repair_pair(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    k: int,
    j: int,
    kind: NDArray[np.int64],
    kinds: int,
    before: NDArray[np.int64],
) -> bool:
    """Move ``k`` and ``j`` at once, if that leaves less wrong with their partition.

    ``forced (K,)`` is as in `repair_pairs`; ``kind (N,)`` says of which of so many ``kinds`` each
    node is; ``before (rows,)`` is scratch. O(kinds^2 N (D + admits)).
    """
    p = index(problem.partitions.owner[k])
    here, there = index(state.node[k]), index(state.node[j])
    take_counts(problem, state, p, before)
    least = illness(problem, state, forced, p)
    best_k, best_j = index(-1), index(-1)
    move(problem, state, k, index(-1))
    move(problem, state, j, index(-1))
    for of in range(kinds):
        n = best_for(problem, state, targets, k, here, kind, index(of))
        if n < 0 or n == here:
            continue
        move(problem, state, k, n)
        for other in range(kinds):
            m = best_for(problem, state, targets, j, there, kind, index(other))
            if m < 0 or m == there:
                continue
            move(problem, state, j, m)
            ill = illness(problem, state, forced, p)
            if ill < least and keeps_counts(problem, state, p, before):
                best_k, best_j, least = n, m, ill
            move(problem, state, j, index(-1))
        move(problem, state, k, index(-1))
    move(problem, state, k, here if best_k < 0 else best_k)
    move(problem, state, j, there if best_k < 0 else best_j)
    return best_k >= 0


@no_alloc
def repair_pairs(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    dropped: NDArray[np.bool_],
    partitions: NDArray[np.int64],
    kind: NDArray[np.int64],
    kinds: int,
    looks: NDArray[np.int64],
    before: NDArray[np.int64],
) -> int:
    """Repair each of ``partitions`` by two moves at once, for as long as that helps.

    ``forced (K,)`` replicas must get another node, ``dropped (K,)`` ones get none. ``looks (1,)``
    is how many nodes may still be looked at, and is kept up to date; ``kind`` and ``before`` are as
    in `repair_pair`. Returns how many pairs moved.
    """
    first = problem.partitions.first
    pairs = 0
    for i in range(partitions.shape[0]):
        p = index(partitions[i])
        if not stands_alone(problem, p):
            continue
        going = True
        while going:
            going = False
            for k in range(first[p], first[p + 1]):
                for j in range(first[p], first[p + 1]):
                    if going or j == k or looks[0] <= 0:
                        continue
                    if not _may_go(problem, state, forced, dropped, k):
                        continue
                    if not _may_go(problem, state, forced, dropped, j):
                        continue
                    if illness(problem, state, forced, p) == 0:
                        continue
                    looks[0] -= kinds * kinds * kind.shape[0]
                    if repair_pair(problem, state, targets, forced, k, j, kind, kinds, before):
                        pairs += 1
                        going = True
    return pairs


@inline_only
def _may_go(
    problem: Problem, state: State, forced: NDArray[np.bool_], dropped: NDArray[np.bool_], k: int
) -> bool:
    """Whether replica ``k`` may move: it has a node, or waits for one."""
    if dropped[k] or not problem.partitions.movable[k]:
        return False
    return state.node[k] >= 0 or forced[k]
