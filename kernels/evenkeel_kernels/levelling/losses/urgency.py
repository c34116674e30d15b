"""Order the lost replicas for placement: the largest or the most endangered first.

The largest first packs best. Where budgets cannot carry all of it, the partitions in most danger
come first, and among equals, where the budget of data is what binds, those of least data.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function
from evenkeel_kernels.core.feasibility import ROUNDING
from evenkeel_kernels.core.problem import NON_VOTER, PartitionArrays, Problem, State, index
from evenkeel_kernels.levelling.losses.records import Demanded, LossReport, Stock

# more than any row has replicas: a margin of live ones outweighs every margin of voters
MARGINS = 1 << 20


@device_function
def size_of(partitions: PartitionArrays, stock: Stock, p: int) -> float:
    """Return the greatest share of the cluster that a follower of ``p`` takes in any dimension."""
    size = 0.0
    for d in range(stock.share.shape[0]):
        size = max(size, partitions.voter_load[p, d] * stock.share[d])
        size = max(size, partitions.non_voter_load[p, d] * stock.share[d])
    return size


@device_function
def largest_first(
    partitions: PartitionArrays, stock: Stock, report: LossReport, count: int
) -> None:
    """Put what was lost in the order of sizes; replicas of a partition stay together."""
    for i in range(count):
        report.urgency[i] = 0
        report.size[i] = -size_of(partitions, stock, index(partitions.owner[report.replica[i]]))
    sort_lost(report, count)


@device_function
def most_endangered_first(
    budgeted: Problem, state: State, demanded: Demanded, report: LossReport, count: int
) -> None:
    """Put what was lost, the largest first until now, in the order of danger."""
    # the fewest live replicas against those that must live come first, then the fewest voters
    # against a quorum; each replica of a partition that is repaired makes the next one less urgent
    partitions, budgets = budgeted.partitions, budgeted.budgets
    by_data = budgets.data_dimension >= 0 and data_of(budgeted, state, report, count) > budgets.data
    earlier = 0
    for i in range(count):
        p = index(partitions.owner[report.replica[i]])
        earlier = earlier + 1 if i > 0 and partitions.owner[report.replica[i - 1]] == p else 0
        live, voters, voting = 0, 0, 0
        for k in range(demanded.first[p], demanded.first[p + 1]):
            n = partitions.home[k]
            lives = n >= 0 and demanded.serves[n] and not report.lost[n]
            votes = n >= 0 and demanded.role[k] == 0
            live += int(lives)
            voters += int(votes)
            voting += int(lives and votes)
        margin = live - demanded.min_active[p] + earlier
        report.urgency[i] = margin * MARGINS + voting - voters // 2 - 1 + earlier
        if by_data:
            report.size[i] = data_of_one(budgeted, state, report.replica[i])
    sort_lost(report, count)


@device_function
def data_of(budgeted: Problem, state: State, report: LossReport, count: int) -> float:
    """Return what all that was lost weighs in the dimension that moves."""
    data = 0.0
    for i in range(count):
        data += data_of_one(budgeted, state, report.replica[i])
    return data


@device_function
def data_of_one(budgeted: Problem, state: State, k: int) -> float:
    """Return what ``k`` weighs in the dimension that moves, unless it leads."""
    partitions, d = budgeted.partitions, budgeted.budgets.data_dimension
    p = index(partitions.owner[k])
    return partitions.non_voter_load[p, d] if state.role[k] == NON_VOTER else (
        partitions.voter_load[p, d]
    )  # fmt: skip


@device_function
def budgets_carry(
    budgeted: Problem, state: State, demanded: Demanded, report: LossReport, count: int
) -> bool:
    """Whether the budgets might let all that was lost move: their sums are enough for it."""
    budgets = budgeted.budgets
    if not budgets.binds:
        return True
    if count > budgets.moves or (count > 0 and budgets.of_partition == 0):
        return False
    if budgets.data_dimension >= 0:
        if data_of(budgeted, state, report, count) > budgets.data * (1.0 + ROUNDING):
            return False
    return may_enter(budgeted, state, demanded, report.lost, count)


@device_function
def may_enter(
    budgeted: Problem, state: State, demanded: Demanded, lost: NDArray[np.bool_], count: int
) -> bool:
    """Whether ``count`` more replicas may enter the nodes that receive any, tier by tier.

    A domain without such a node takes nothing. A node in none, and a domain with a ``lost (N,)``
    node, which what stood there does not enter, take any number.
    """
    budgets, domains = budgeted.budgets, budgeted.domains
    for i in range(budgets.tiers.shape[0]):
        tier = index(budgets.tiers[i])
        room = 0
        for n in range(lost.shape[0]):
            if demanded.receives[n] and not lost[n] and domains.domain[tier, n] < 0:
                room = count
        for where in range(domains.domain_offset[tier], domains.domain_offset[tier + 1]):
            receives, has_lost = False, False
            for m in range(domains.member_first[where], domains.member_first[where + 1]):
                n = domains.member[m]
                has_lost = has_lost or lost[n]
                receives = receives or (demanded.receives[n] and not lost[n])
            if receives and has_lost:
                room = count
            elif receives and room < count:
                room += min(count, max(0, budgets.into[where] - state.came[where]))
        if room < count:
            return False
    return True


@device_function
def sort_lost(report: LossReport, count: int) -> None:
    """Sort by urgency, then size, then replica, in place (Shell, 1959; gaps of Knuth)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            urgency, size, k = report.urgency[i], report.size[i], report.replica[i]
            at = i
            while at >= gap and is_later(report, at - gap, urgency, size, k):
                report.urgency[at] = report.urgency[at - gap]
                report.size[at] = report.size[at - gap]
                report.replica[at] = report.replica[at - gap]
                at -= gap
            report.urgency[at], report.size[at], report.replica[at] = urgency, size, k
        gap //= 3


@device_function
def is_later(report: LossReport, i: int, urgency: int, size: float, k: int) -> bool:
    """Whether entry ``i`` comes after ``k`` of this urgency and size."""
    if report.urgency[i] != urgency:
        return report.urgency[i] > urgency
    if report.size[i] != size:
        return report.size[i] > size
    return report.replica[i] > k
