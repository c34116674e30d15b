"""Scan all nodes for the one on which a replica leaves the lowest utilisation.

A node's score for a replica is the greatest of its utilisations, over the dimensions, with the
replica on it. numba vectorises no minimum of floats, but it does vectorise filling a row of scores
and taking the least of the same bits read as integers, and floats that are not negative order as
those do. So a scan is two such passes; a node that may not be used scores ``FAR``, and any rule too
specific for a pass is tested on the least node only, which is then closed if the rule forbids it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.core.feasibility import admits, affords, count_in_domain
from evenkeel_kernels.core.problem import MOST, Problem, State, crossing, index, is_away, load_of

FAR = 1e300

# part of a limit by which sums and products of shares may be beyond it, and are within
ROUNDING = 1e-10

REFUSALS = 4  # nodes that are refused one by one before all that are hopeless are closed at once

# from so many nodes on the least used have arrays of their own; one in how many, at most
MANY, LISTED = 1_500, 4

# a prime of 32 bits, as xxHash has it: times any number, the bits above look drawn at random
SPREADING = 3_266_489_917


class Shortlist(NamedTuple):
    """The nodes that are used least, as `evenkeel_kernels.levelling.best_fit` keeps them."""

    # There is place for S of them; for none where nodes are few. Those listed are the first ones.

    node: NDArray[np.int64]  # (S,)
    place: NDArray[np.int64]  # (N,) where a node is listed, -1 where it is not
    load: NDArray[np.float64]  # (D, S)
    scale: NDArray[np.float64]  # (D, S)
    closed: NDArray[np.float64]  # (M, S)
    domain: NDArray[np.int32]  # (L + 1, S)
    score: NDArray[np.float64]  # (S,)
    bits: NDArray[np.int64]  # (S,) the same memory, read as integers
    length: NDArray[np.int64]  # (1,) how many are listed
    beyond: NDArray[np.float64]  # (1,) all others are used as much, or more
    beyond_bits: NDArray[np.int64]  # (1,) the same memory


class Scan(NamedTuple):
    """What one pass over the nodes needs."""

    scale: NDArray[np.float64]  # (D, N) 1 / the load to stay below; 0 where any load will do
    closed: NDArray[np.float64]  # (M, N) FAR where the mask or the node forbids a replica, else 0
    score: NDArray[np.float64]  # (N,)
    bits: NDArray[np.int64]  # (N,) the same memory, read as integers
    size: NDArray[np.float64]  # (D,) load of the replica in hand
    leader_scale: NDArray[np.float64]  # (N,) 1 / the most to lead; 0 where any number will do
    keep: int  # the bits of a score that count; those below them hold the node
    listed: Shortlist


def new_scan(
    problem: Problem,
    reserve: NDArray[np.float64],
    most_leaders: NDArray[np.float64] | None = None,
    listed: int | None = None,
) -> Scan:
    """Scan against the watermarks, of which the share ``reserve (D,)`` is to stay free. O(D N).

    No node shall lead more than ``most_leaders (N,)``, and there is place to list so many nodes,
    where given.
    """
    nodes = problem.nodes
    if listed is None:
        listed = len(nodes.accepts) // LISTED if len(nodes.accepts) >= MANY else 0
    if most_leaders is None:
        most_leaders = np.full(nodes.accepts.shape[0], np.inf)
    usable = problem.rules.allowed & nodes.accepts
    score = np.empty(nodes.accepts.shape[0])
    return Scan(
        inverse(nodes.watermark * (1.0 - reserve)[:, np.newaxis]),
        np.where(usable, 0.0, FAR),
        score,
        score.view(np.int64),
        np.empty(reserve.shape[0]),
        inverse(most_leaders * (1.0 + ROUNDING)),
        -(1 << (score.shape[0] - 1).bit_length()),
        new_shortlist(problem, listed, len(usable)),
    )


def new_shortlist(problem: Problem, most: int, masks: int) -> Shortlist:
    """Make an empty list with place for so many nodes."""
    dimensions, n_nodes = problem.nodes.watermark.shape
    score, beyond = np.empty(most), np.zeros(1)
    return Shortlist(
        node=np.empty(most, np.int64),
        place=np.full(n_nodes if most else 0, -1, np.int64),
        load=np.empty((dimensions, most)),
        scale=np.empty((dimensions, most)),
        closed=np.empty((masks, most)),
        domain=np.empty((problem.domains.domain.shape[0], most), np.int32),
        score=score,
        bits=score.view(np.int64),
        length=np.zeros(1, np.int64),
        beyond=beyond,
        beyond_bits=beyond.view(np.int64),
    )


def inverse(limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / limit; 0 for no limit, and very large where nothing may be: 0 / 0 is to be 0."""
    return 1.0 / np.maximum(limit, 1e-30)


@inline_only
def lowest(scan: Scan, k: int) -> int:
    """Node with the least score for replica ``k``; of equals one that depends on ``k``."""
    # The node's index takes the place of the last bits, those that do not count, so that one pass
    # finds both. Bits that ``k`` flips there make another node the first of equals: else the same
    # few nodes would share all that they hold.
    flipped = (k * SPREADING) >> 32 & ~scan.keep
    least = scan.bits[0] | ~scan.keep
    for n in range(scan.bits.shape[0]):
        least = min(least, (scan.bits[n] & scan.keep) | (n ^ flipped))
    return (least & ~scan.keep) ^ flipped


@inline_only
def fill(scan: Scan, load: NDArray[np.float64], mask: int) -> None:
    """Score every node, with its ``load (D, N)``, for the replica in hand."""
    # one vectorised pass for each dimension
    n_nodes = scan.score.shape[0]
    more = scan.size[0]
    for n in range(n_nodes):
        scan.score[n] = scan.closed[mask, n] + (load[0, n] + more) * scan.scale[0, n]
    for d in range(1, load.shape[0]):
        more = scan.size[d]
        for n in range(n_nodes):
            scan.score[n] = max(scan.score[n], (load[d, n] + more) * scan.scale[d, n])


@inline_only
def count_lead(state: State, scan: Scan) -> None:
    """Score every node by what it leads as well: the replica in hand comes with its lead."""
    for n in range(scan.score.shape[0]):
        scan.score[n] = max(scan.score[n], (state.leaders[n] + 1) * scan.leader_scale[n])


@inline_only
def close_new(problem: Problem, scan: Scan, k: int) -> None:
    """Close the nodes that are new to the partition of ``k``. O(N R)."""
    for n in range(scan.score.shape[0]):
        if is_away(problem, k, index(n)) > 0:
            scan.score[n] = FAR


@inline_only
def close_full_of_group(problem: Problem, state: State, scan: Scan, k: int) -> None:
    """Close the nodes that hold as many replicas of the group of ``k`` as its limits allow."""
    # The one that ``k`` is on is open to it. One vectorised pass for each limit on a node.
    rules, domains = problem.rules, problem.domains
    g, here = problem.partitions.group[problem.partitions.owner[k]], index(state.node[k])
    last = domains.domain.shape[0] - 1  # of the nodes
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        base, most = rules.group_base[i], rules.group_limit[i, MOST]
        if rules.group_limit[i, 0] != last or most < 0:
            continue
        kept = scan.score[here] if here >= 0 else 0.0
        for n in range(scan.score.shape[0]):
            full = state.group_count[base + n] >= most
            scan.score[n] = FAR if full else scan.score[n]
        if here >= 0:
            scan.score[here] = kept


@inline_only
def close_full(problem: Problem, state: State, scan: Scan, k: int) -> None:
    """Close the domains that hold as many other replicas of the partition as its limits allow."""
    partitions, rules, domains = problem.partitions, problem.rules, problem.domains
    p = index(partitions.owner[k])
    q = partitions.rule[p]
    for i in range(rules.limit_first[q], rules.limit_first[q + 1]):
        for j in range(partitions.first[p], partitions.first[p + 1]):
            where = full_domain(problem, state, k, i, index(j))
            if where >= 0:
                for m in range(domains.member_first[where], domains.member_first[where + 1]):
                    scan.score[domains.member[m]] = FAR


@inline_only
def full_domain(problem: Problem, state: State, k: int, i: int, j: int) -> int:
    """Domain of replica ``j`` if it is full for its sibling ``k`` by the limit ``i``, else -1."""
    # the one that ``k`` is in is open to it
    partitions, domain = problem.partitions, problem.domains.domain
    level, most = index(problem.rules.limit[i, 0]), index(problem.rules.limit[i, MOST])
    if most < 0 or j == k or state.node[j] < 0:
        return index(-1)
    _, where = crossing(problem, level, index(state.node[k]), index(state.node[j]))
    if where >= 0 and most > 1:
        p = index(partitions.owner[k])
        if count_in_domain(partitions.first, state.node, domain, p, k, level, where) < most:
            return index(-1)
    return where


@inline_only
def score_all(problem: Problem, state: State, scan: Scan, k: int) -> None:
    """Take replica ``k`` in hand and score every node, closing those that are full for it."""
    take_size(problem, state, scan, k)
    fill(scan, state.load, problem.partitions.mask[problem.partitions.owner[k]])
    close_full(problem, state, scan, k)
    close_full_of_group(problem, state, scan, k)


@inline_only
def take_size(problem: Problem, state: State, scan: Scan, k: int) -> None:
    """Take replica ``k`` in hand."""
    for d in range(scan.size.shape[0]):
        scan.size[d] = load_of(problem.partitions, state, k, d)


@inline_only
def close_hopeless(problem: Problem, state: State, scan: Scan, k: int) -> None:
    """Close the nodes that lack room for ``k``, its home apart, or that budgets keep it from."""
    # one vectorised pass for each dimension, and O(N R) where budgets bind
    nodes = problem.nodes
    home = index(problem.partitions.home[k])
    kept = scan.score[home] if home >= 0 else 0.0
    for d in range(scan.size.shape[0]):
        more = load_of(problem.partitions, state, k, d)
        if more <= 0.0:
            continue
        for n in range(scan.score.shape[0]):
            full = state.load[d, n] + state.held[d, n] + more > nodes.capacity[d, n]
            scan.score[n] = FAR if full else scan.score[n]
    if home >= 0:
        scan.score[home] = kept
    if problem.budgets.binds:
        for n in range(scan.score.shape[0]):
            if scan.score[n] < FAR and not affords(problem, state, k, index(n)):
                scan.score[n] = FAR


@inline_only
def refuse(problem: Problem, state: State, scan: Scan, k: int, n: int, refused: int) -> int:
    """Close ``n`` for ``k``, after ``refused`` other nodes; returns how many are closed so now."""
    scan.score[n] = FAR
    if refused + 1 == REFUSALS:
        close_hopeless(problem, state, scan, k)
    return refused + 1


@device_function
def find(problem: Problem, state: State, scan: Scan, k: int, ceiling: float) -> int:
    """Return the best node for ``k`` among those that score at most ``ceiling``, else -1."""
    score_all(problem, state, scan, k)
    refused = 0
    while True:
        n = lowest(scan, k)
        if scan.score[n] > ceiling:
            return -1
        if admits(problem, state, k, n):
            return n
        refused = refuse(problem, state, scan, k, n, refused)
