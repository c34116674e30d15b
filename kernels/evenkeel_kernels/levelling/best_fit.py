"""Greedy best fit: each replica, largest first, goes where the greatest utilisation stays least.

The least used nodes are kept in arrays of their own, as nearly always the best one is among them. A
replica only adds to the load of a node, and so does what is charged besides its load: no node
scores less with it than its use without it. So where the best of a few nodes scores less than any
other is used, it is the best of all, and the others need no look. Nodes that are all but full, the
most of a cluster just expanded, are looked at once in a while and not for every replica.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits, affords_move
from evenkeel_kernels.core.node_scan import (
    FAR,
    REFUSALS,
    SPREADING,
    Scan,
    close_full,
    close_full_of_group,
    close_new,
    count_lead,
    fill,
    full_domain,
    lowest,
    refuse,
    take_size,
)
from evenkeel_kernels.core.problem import VOTER, Problem, State, index, leads_now
from evenkeel_kernels.core.state import apply
from evenkeel_kernels.levelling.leaders.moves import appoint, can_lead, may_lead, stands_alone

FEWEST = 32  # replicas to place that are worth a list

HALVINGS, MOST = 24, 4.0  # how closely is found up to which use nodes are listed, and the most

LATER = 1e200  # score of a node that is taken if no other will do, and may be closed still

# replicas whose best node is not on the shortlist before it is drawn up anew; and how many it must
# have served by then, else those that are left go without
MISSES, WORTHWHILE = 16, 64


@device_function
def draw_up(problem: Problem, state: State, scan: Scan, replicas: int) -> None:
    """List the nodes used least, to place so many replicas; none if that is not worth it."""
    # the scores of ``scan`` hold no longer. O(D N), vectorised.
    listed = scan.listed
    listed.length[0] = 0
    most = listed.node.shape[0]
    if most == 0 or replicas < FEWEST:
        return
    n_nodes = scan.score.shape[0]
    for n in range(n_nodes):
        scan.score[n] = use_of(state, scan, index(n)) if problem.nodes.accepts[n] else FAR
    low, high = 0.0, MOST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        count = 0
        for n in range(n_nodes):
            count += int(scan.score[n] < middle)
        if count <= most:
            low = middle
        else:
            high = middle
    listed.beyond[0] = low
    at = index(0)
    for n in range(n_nodes):
        listed.place[n] = -1
        if scan.score[n] < low:
            listed.node[at] = n
            listed.place[n] = at
            for d in range(state.load.shape[0]):
                listed.load[d, at] = state.load[d, n]
                listed.scale[d, at] = scan.scale[d, n]
            for mask in range(listed.closed.shape[0]):
                listed.closed[mask, at] = scan.closed[mask, n]
            for level in range(listed.domain.shape[0]):
                listed.domain[level, at] = problem.domains.domain[level, n]
            at += 1
    listed.length[0] = at


@inline_only
def use_of(state: State, scan: Scan, n: int) -> float:
    """The least that node ``n`` can score: what it would with a replica that weighs nothing."""
    use = state.load[0, n] * scan.scale[0, n]
    for d in range(1, state.load.shape[0]):
        use = max(use, state.load[d, n] * scan.scale[d, n])
    return use


@inline_only
def follow(state: State, scan: Scan, n: int) -> None:
    """Keep the list current: the load of node ``n`` has changed, if there is such a node."""
    listed = scan.listed
    if listed.length[0] == 0 or n < 0:
        return
    at = listed.place[n]
    if at < 0:
        listed.beyond[0] = min(listed.beyond[0], use_of(state, scan, n))
        return
    for d in range(state.load.shape[0]):
        listed.load[d, at] = state.load[d, n]


@device_function
def find_listed(problem: Problem, state: State, scan: Scan, k: int, limit: float) -> int:
    """Best node for replica ``k``, in hand, if it is certain from the list alone, else -1."""
    # It scores at most ``limit``. The scores are those of `evenkeel_kernels.core.node_scan.fill`,
    # bit for bit, and so is which of equals is first.
    listed, rules = scan.listed, problem.rules
    count = listed.length[0]
    p = index(problem.partitions.owner[k])
    first, mask = problem.partitions.first, problem.partitions.mask[p]
    more = scan.size[0]
    for i in range(count):
        score = (listed.load[0, i] + more) * listed.scale[0, i]
        listed.score[i] = listed.closed[mask, i] + score
    for d in range(1, scan.size.shape[0]):
        more = scan.size[d]
        for i in range(count):
            score = (listed.load[d, i] + more) * listed.scale[d, i]
            listed.score[i] = max(listed.score[i], score)
    q = problem.partitions.rule[p]
    for limited in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level = index(rules.limit[limited, 0])
        for j in range(first[p], first[p + 1]):
            where = full_domain(problem, state, k, index(limited), index(j))
            if where >= 0:
                for i in range(count):
                    full = listed.domain[level, i] == where
                    listed.score[i] = FAR if full else listed.score[i]
    flipped = (k * SPREADING) >> 32 & ~scan.keep
    for _ in range(min(REFUSALS, count)):  # LLVM would make four copies of a fixed number
        least = listed.bits[0] | ~scan.keep
        for i in range(count):
            least = min(least, (listed.bits[i] & scan.keep) | (listed.node[i] ^ flipped))
        n = index((least & ~scan.keep) ^ flipped)
        at = listed.place[n]
        if least & scan.keep >= listed.beyond_bits[0] & scan.keep or listed.score[at] > limit:
            return index(-1)
        if admits(problem, state, k, n):
            return n
        listed.score[at] = FAR
    return index(-1)


@no_alloc
def best_fit(
    problem: Problem,
    state: State,
    scan: Scan,
    order: NDArray[np.int64],
    forced: NDArray[np.bool_],
    led: NDArray[np.bool_],
    ceiling: float,
    begin: int,
    end: int,
) -> int:
    """Move the replicas ``order[begin:end]``, in that order, each to the node where it fits best.

    A replica that finds no node, or, unless it is ``forced (K,)``, none that scores at most
    ``ceiling``, stays where it is. A partition that is not ``led (P,)`` gets its leader as soon as
    the last of its replicas in a row is placed; until then any voter of it might be the one, and
    the first of them goes where there is room to lead. Who comes with the lead adds to what a node
    leads as to a load. Replicas of one partition that follow each other, have no node yet and weigh
    the same share a scan. Returns how many were moved. Call it again with the next stretch of
    ``order`` to go on; a stretch should not end within a partition.

    Complexity: O(D N) for each partition and O(N) for each further replica of it, both vectorised;
    a part of that where nodes are many and the best is among those that are used least.
    """
    partitions = problem.partitions
    moved = 0
    if scan.score.shape[0] == 0:
        return moved  # no node to look at
    served, missed = 0, 0  # by the shortlist
    draw_up(problem, state, scan, end - begin)
    scanned = -1  # partition whose scores are in the buffer and still hold
    role = np.uint8(VOTER)
    for at in range(begin, end):
        k = order[at]
        p = index(partitions.owner[k])
        here = index(state.node[k])
        limit = FAR * 0.5 if forced[k] else ceiling
        alike = here < 0 and not leads_now(partitions.first, state.leader, p, k)
        anew = scanned != p or role != state.role[k] or not alike
        if anew:
            role = state.role[k]
            take_size(problem, state, scan, k)
            if not led[p] and role == VOTER:
                for d in range(scan.size.shape[0]):
                    scan.size[d] = partitions.leader_load[p, d]
        with_lead = comes_with_lead(problem, state, led, k)
        last = not led[p] and is_last_to_lead(problem, state, order, at, end)
        alone = not led[p] and stands_alone(problem, state, p)
        affordable = affords_move(problem, state, k)
        n = index(-1)
        if scan.listed.length[0] > 0 and affordable and not with_lead and not last:
            n = find_listed(problem, state, scan, k, limit)
            if n >= 0 and alone and not can_lead(problem, state, p, n):
                n = index(-1)
            served, missed = served + int(n >= 0), missed + int(n < 0)
        if n >= 0:
            scanned = -1
        else:
            if anew:
                fill(scan, state.load, partitions.mask[p])
                scanned = p if alike else -1
                if with_lead:
                    count_lead(state, scan)
            if last:
                put_off_followers(problem, scan, p)
                scanned = -1
            close_full(problem, state, scan, k)
            close_full_of_group(problem, state, scan, k)
            if not affordable:
                close_new(problem, scan, k)
                scanned = -1
            refused = 0
            while True:
                n = lowest(scan, k)
                if scan.score[n] > limit:
                    n = index(-1)
                    scanned = -1
                    break
                if admits(problem, state, k, n) and not (
                    alone and not can_lead(problem, state, p, n)
                ):
                    break
                refused = refuse(problem, state, scan, k, n, refused)
                scanned = -1
        if n >= 0:
            apply(problem, state, k, n)
            moved += 1
            follow(state, scan, n)
            follow(state, scan, here)
            score = scan.closed[partitions.mask[p], n]
            for d in range(scan.size.shape[0]):
                score = max(score, (state.load[d, n] + scan.size[d]) * scan.scale[d, n])
            scan.score[n] = score
        if not led[p] and (at + 1 == end or partitions.owner[order[at + 1]] != p):
            scanned = -1
            if state.leader[p] < 0:
                appoint(problem, state, scan, p, index(-1))
                if state.leader[p] >= 0:
                    follow(state, scan, index(state.node[partitions.first[p] + state.leader[p]]))
        if missed == MISSES:
            draw_up(problem, state, scan, end - at if served >= WORTHWHILE else 0)
            served, missed, scanned = 0, 0, -1
    return moved


@inline_only
def comes_with_lead(problem: Problem, state: State, led: NDArray[np.bool_], k: int) -> bool:
    """Whether ``k`` leads wherever it goes: it does now, or its partition has no other replica.

    A partition that is ``led (P,)`` keeps its leader.
    """
    first, p = problem.partitions.first, index(problem.partitions.owner[k])
    if leads_now(first, state.leader, p, k):
        return True
    return not led[p] and first[p + 1] - first[p] == 1 and state.role[k] == VOTER


@inline_only
def is_last_to_lead(
    problem: Problem, state: State, order: NDArray[np.int64], at: int, end: int
) -> bool:
    """Whether the partition of ``order[at]`` is unled unless this replica goes where it may."""
    first, p = problem.partitions.first, index(problem.partitions.owner[order[at]])
    if state.role[order[at]] != VOTER:
        return False
    for i in range(at + 1, end):
        if problem.partitions.owner[order[i]] != p:
            break
        if state.role[order[i]] == VOTER:
            return False
    for k in range(first[p], first[p + 1]):
        if k != order[at] and may_lead(problem, state, p, index(k)):
            return False
    return True


@inline_only
def put_off_followers(problem: Problem, scan: Scan, p: int) -> None:
    """Let the nodes that may not lead ``p`` come after all those that may."""
    rank = problem.rules.lead_rank[problem.partitions.rule[p]]
    for n in range(scan.score.shape[0]):
        if not problem.nodes.leads[n] or rank[n] == 255:
            scan.score[n] += LATER


def largest_first(problem: Problem, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List the ``chosen (K,)`` replicas, those of the largest partitions first; ties by index."""
    # Replicas of one partition stay together. O(K + P log P).
    partitions = problem.partitions
    replicas = np.flatnonzero(chosen)
    count = np.bincount(partitions.owner[replicas], minlength=partitions.first.shape[0] - 1)
    rank = by_size(problem, np.flatnonzero(count))
    length = count[rank]
    start = (np.cumsum(count) - count)[rank]
    within = np.arange(replicas.shape[0]) - np.repeat(np.cumsum(length) - length, length)
    return replicas[np.repeat(start, length) + within]


def by_size(problem: Problem, some: NDArray[np.int64]) -> NDArray[np.int64]:
    """List ``some (n,)`` partitions, the largest first; ties as they come. O(n log n)."""
    # a partition is as large as the greatest share of the cluster that a replica of it takes in any
    # dimension, its leader counting as a voter
    partitions, weight = problem.partitions, share_of_room(problem)
    size = np.zeros(some.shape[0])
    for d in range(weight.shape[0]):  # a maximum along a short axis is slow
        for load in (partitions.voter_load, partitions.non_voter_load):
            np.maximum(size, load[some, d] * weight[d], out=size)
    return some[greatest_first(size)]


def share_of_room(problem: Problem) -> NDArray[np.float64]:
    """Return what part of the room below the watermarks a load of 1 takes, (D,)."""
    watermark = problem.nodes.watermark
    room = np.where(np.isfinite(watermark) & problem.nodes.accepts, watermark, 0.0).sum(axis=1)
    return np.divide(1.0, room, out=np.zeros_like(room), where=room > 0.0)


def greatest_first(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of ``values (n,)``, the greatest first; ties by index. O(n log n)."""
    # a sort that keeps ties in order takes six times as long where the other one is vectorised: so
    # ties are put in order behind it
    order = np.argsort(-values)
    ranked = values[order]
    apart = ranked[1:] != ranked[:-1]
    if apart.all():
        return order
    run = np.zeros_like(order)
    np.cumsum(apart, out=run[1:])
    run *= run.shape[0]
    return np.sort(run + order) - run


def repairs_first(
    problem: Problem, state: State, repairs: NDArray[np.bool_], others: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """List ``repairs (K,)`` and ``others (K,)`` in the order in which they are placed."""
    # All largest first, which packs best, unless the budget of data cannot carry the repairs: then
    # these come first, those of least data before, so that it carries as many as it can.
    # O(K log K).
    budgets = problem.budgets
    if budgets.data_dimension < 0:
        return largest_first(problem, repairs | others)
    order, data = largest_first(problem, repairs), data_of(problem, state)
    if state.spent[1] + data[order].sum() <= budgets.data:
        return largest_first(problem, repairs | others)
    order = order[np.argsort(data[order], kind="stable")]
    return np.concatenate([order, largest_first(problem, others & ~repairs)])


def data_of(problem: Problem, state: State) -> NDArray[np.float64]:
    """What each replica weighs (K,), unless it leads, in the dimension that moves. O(K)."""
    partitions, d = problem.partitions, problem.budgets.data_dimension
    voter = partitions.voter_load[:, d][partitions.owner]
    return np.where(state.role == VOTER, voter, partitions.non_voter_load[:, d][partitions.owner])
