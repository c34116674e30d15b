"""Make room for a replica that fits nowhere, where another is proven to have to move.

Where all lost replicas found a place but one, and no node could take that one even if all its other
replicas followed and led nothing, some replica that was not lost has to move. If then one move is
enough, no placement that meets the goals makes do with fewer.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.node_scan import Scan, find
from evenkeel_kernels.core.problem import PartitionArrays, Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.leaders.moves import appoint
from evenkeel_kernels.levelling.losses.judge import ROUNDING, row_is_sound
from evenkeel_kernels.levelling.losses.records import Demanded, LossReport, Stock
from evenkeel_kernels.levelling.losses.urgency import size_of

# replicas that are asked to give way, the smallest first, before a search is worth its time
TRIES = 32


@device_function
def make_room(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    report: LossReport,
    at: int,
    count: int,
) -> int:
    """Place the one of ``count`` lost replicas ``at`` this place, where another gives way."""
    # None of them is placed yet; it becomes the first in ``report.replica``, and what gave way
    # comes after the last. That one leads nothing, and its partition has lost nothing. The placed
    # one shall follow: if its partition is not led, a live replica is appointed. Returns how many
    # gave way: 0 or 1; none where it is not proven that one has to, or where any node is too full
    # before. O(K D) at first and for each that is asked, and O(N R^2) for each limit.
    partitions, watermark = problem.partitions, problem.nodes.watermark
    k = report.replica[at]
    p = index(partitions.owner[k])
    lost = 0
    for j in range(partitions.first[p], partitions.first[p + 1]):
        lost += int(partitions.home[j] >= 0 and report.lost[partitions.home[j]])
    for n in range(watermark.shape[1]):
        for d in range(watermark.shape[0]):
            if not report.lost[n] and state.load[d, n] > watermark[d, n] * (1.0 + ROUNDING):
                return 0
    if lost > 1 or not has_to_be_made(problem, state, stock, demanded, report, k):
        return 0
    if not report.led[p]:
        appoint(problem, state, scan, p, index(-1))
        if state.leader[p] < 0:
            return 0
    j = index(-1)
    for _ in range(TRIES):
        j = smallest_that_covers(problem, state, stock, report, k, j)
        if j < 0:
            return 0
        here = index(state.node[j])
        there = find(problem, state, scan, j, 1.0)
        if there < 0:
            continue
        move(problem, state, j, there)
        within = True
        for d in range(watermark.shape[0]):
            load = state.load[d, here] + load_of(partitions, state, k, d)
            within = within and load * scan.scale[d, here] <= 1.0
        if within and admits(problem, state, k, here):
            move(problem, state, k, here)
            for i in range(at, 0, -1):
                report.replica[i] = report.replica[i - 1]
            report.replica[0] = k
            report.replica[count] = j
            return 1
        move(problem, state, j, here)
    return 0


@device_function
def has_to_be_made(
    problem: Problem, state: State, stock: Stock, demanded: Demanded, report: LossReport, k: int
) -> bool:
    """Whether no node has room for ``k`` while all that was not lost stays, whichever leads.

    ``report.hosts (N,)`` becomes the nodes on which no rule of its row would be broken.
    """
    partitions, watermark = problem.partitions, problem.nodes.watermark
    p = index(partitions.owner[k])
    for n in range(watermark.shape[1]):
        report.hosts[n] = False
        if report.lost[n] or not demanded.receives[n]:
            continue
        state.node[k] = n
        report.hosts[n] = row_is_sound(partitions.home, demanded, state.node, report.lost, p)
        state.node[k] = -1
        if not report.hosts[n]:
            continue
        room = True
        for d in range(watermark.shape[0]):
            least = lightest_of(partitions, p, d)
            for i in range(stock.first[n], stock.first[n + 1]):
                least += lightest_of(partitions, index(partitions.owner[stock.member[i]]), d)
            if least > watermark[d, n] * (1.0 + ROUNDING):
                room = False
                break
        if room:
            return False
    return True


@device_function
def lightest_of(partitions: PartitionArrays, p: int, d: int) -> float:
    """Return what a replica of ``p`` weighs in dimension ``d`` in its lightest role."""
    least = min(partitions.voter_load[p, d], partitions.leader_load[p, d])
    return min(least, partitions.non_voter_load[p, d])


@device_function
def smallest_that_covers(
    problem: Problem, state: State, stock: Stock, report: LossReport, k: int, tried: int
) -> int:
    """Return the smallest replica that makes room for ``k`` where it stands, else -1."""
    # of equals the last one; only those come into question that would come after the one ``tried``
    partitions, watermark = problem.partitions, problem.nodes.watermark
    best, least, above = index(-1), np.inf, -1.0
    if tried >= 0:
        above = size_of(partitions, stock, index(partitions.owner[tried]))
    for n in range(watermark.shape[1]):
        if not report.hosts[n]:
            continue
        for i in range(stock.first[n], stock.first[n + 1]):
            j = stock.member[i]
            q = index(partitions.owner[j])
            size = size_of(partitions, stock, q)
            if size > least or (size == least and j < best) or not partitions.movable[j]:
                continue
            if size < above or (size == above and j >= tried):
                continue
            covers = not leads_now(partitions.first, state.leader, q, j)
            for d in range(watermark.shape[0]):
                load = state.load[d, n] + load_of(partitions, state, k, d)
                covers = covers and load - load_of(partitions, state, j, d) <= watermark[d, n]
            if covers and is_whole(problem, report.lost, q):
                best, least = index(j), size
    return best


@device_function
def is_whole(problem: Problem, lost: NDArray[np.bool_], p: int) -> bool:
    """Whether ``p`` has no replica on a node of ``lost (N,)``."""
    partitions = problem.partitions
    for k in range(partitions.first[p], partitions.first[p + 1]):
        if partitions.home[k] >= 0 and lost[partitions.home[k]]:
            return False
    return True
