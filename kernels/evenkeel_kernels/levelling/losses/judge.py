"""Audit only what the loss of nodes changed, by rules compiled apart from the search.

In a cluster that broke no rule only two things can break one after nodes were lost: partitions that
had a replica there, which are checked replica by replica, and nodes by their loads, which are
summed here and not taken over from the search. Everything else is unchanged, and so is sound. It
shares no code with ``core.feasibility``; tests compare it with the full audit.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function
from evenkeel_kernels.core.problem import PartitionArrays, index
from evenkeel_kernels.levelling.losses.records import (
    MAX_DOMAINS,
    MIN_DOMAINS,
    SPREAD,
    Demanded,
    LossReport,
    Stock,
)

TOLERANCE = 1e-11  # relative excess over a capacity that is rounding, as the audit has it

# relative excess over a target that is rounding; results are measured against ten times of it
ROUNDING = 1e-10


@device_function
def find_endangered(
    partitions: PartitionArrays, demanded: Demanded, report: LossReport, count: int
) -> None:
    """List the partitions that the loss leaves without data, short of live replicas, or stuck."""
    report.endangered_count[:] = 0
    for i in range(count):
        p = index(partitions.owner[report.replica[i]])
        if i > 0 and partitions.owner[report.replica[i - 1]] == p:
            continue
        live, voters, live_voters = 0, 0, 0
        for j in range(demanded.first[p], demanded.first[p + 1]):
            n = partitions.home[j]
            if n < 0:
                continue
            lives = demanded.serves[n] and not report.lost[n]
            votes = demanded.role[j] == 0
            live += int(lives)
            voters += int(votes)
            live_voters += int(lives and votes)
        if demanded.replicas[p] <= 0:
            continue
        for danger, found in (
            (0, live == 0),
            (1, live < demanded.min_active[p]),
            (2, voters > 0 and 2 * live_voters <= voters),
        ):
            if found:
                report.endangered[danger, report.endangered_count[danger]] = p
                report.endangered_count[danger] += 1


@device_function
def measure(
    partitions: PartitionArrays, stock: Stock, demanded: Demanded, report: LossReport, count: int
) -> None:
    """Add up what nodes carry and lead now, and what moved."""
    # A lost node carries what waits there. What moved weighs on its new node what it weighs in its
    # role there, and was a follower where it left a node that is not lost; who was promoted in
    # place weighs more by the difference.
    dimensions, nodes = stock.load.shape
    for n in range(nodes):
        report.replicas[n] = 0 if report.lost[n] else demanded.replicas_on[n]
        report.leaders[n] = 0 if report.lost[n] else demanded.leaders_on[n]
    for d in range(dimensions):
        report.moved[d] = 0.0
        for n in range(nodes):
            report.load[d, n] = 0.0 if report.lost[n] else stock.load[d, n]
    for i in range(count):
        k, n = report.replica[i], report.node[i]
        p = index(partitions.owner[k])
        leader = demanded.first[p] + report.slot[i] if report.slot[i] >= 0 else -1
        home = index(partitions.home[k])
        stood = not report.lost[home]
        waits = report.lost[n]
        report.replicas[n] += 1
        report.replicas[home] -= int(stood)
        report.leaders[n] += int(leader == k)
        for d in range(dimensions):
            more = partitions.voter_load[p, d]
            if leader == k:
                more = partitions.leader_load[p, d]
            elif demanded.role[k] == 1:
                more = partitions.non_voter_load[p, d]
            report.load[d, n] += more
            if not waits:
                report.moved[d] += more
            if stood:
                report.load[d, home] -= more
        last = i + 1 == count or partitions.owner[report.replica[i + 1]] != p
        if report.led[p] or not last or leader < 0 or was_lost(report, partitions.owner, i, leader):
            continue
        there = partitions.home[leader]
        report.leaders[there] += 1
        for d in range(dimensions):
            less = partitions.voter_load[p, d]
            report.load[d, there] += partitions.leader_load[p, d] - less
    for d in range(dimensions):
        room, carried, most = 0.0, 0.0, 0.0
        for n in range(nodes):
            if report.lost[n]:
                continue
            capacity = demanded.capacity[d, n]
            if demanded.receives[n]:
                room += capacity
            if demanded.serves[n]:
                carried += report.load[d, n]
                if capacity > 0.0:
                    most = max(most, report.load[d, n] / capacity)
        report.most[d] = most
        report.fair[d] = carried / room if room > 0.0 else 0.0


@device_function
def was_lost(report: LossReport, owner: NDArray[np.int32], last: int, k: int) -> bool:
    """Whether ``k`` is among what its partition lost, by ``owner (K,)``; ``last`` is its entry."""
    at = last
    while at >= 0 and owner[report.replica[at]] == owner[k]:
        if report.replica[at] == k:
            return True
        at -= 1
    return False


@device_function
def is_sound(
    partitions: PartitionArrays,
    target: NDArray[np.float64],
    demanded: Demanded,
    node: NDArray[np.int32],
    leader: NDArray[np.int16],
    has_leaders: bool,
    report: LossReport,
    count: int,
) -> bool:
    """Whether no rule is broken but by what waits, and every node within its target.

    Targets are not asked for where they had to be exceeded so that less has to wait.
    Of ``node (K,)`` and ``leader (P,)`` only rows in which something moved, or waits, are read;
    ``target (D, N)`` is what nodes may carry.
    """
    owner, levelled = partitions.owner, report.waits[0] == 0 or report.waits[2] > 0
    for n in range(target.shape[1]):
        if report.lost[n]:
            continue
        if report.leaders[n] > report.most_leaders[n]:
            return False
        for d in range(target.shape[0]):
            if levelled and report.load[d, n] > target[d, n] * (1.0 + ROUNDING):
                return False
            there = demanded.serves[n] or demanded.holds[n]
            if there and report.load[d, n] > demanded.capacity[d, n] * (1.0 + TOLERANCE):
                return False
        if 0 <= demanded.max_replicas[n] < report.replicas[n]:
            return False
    for i in range(count):
        p = index(owner[report.replica[i]])
        if not demanded.receives[report.node[i]] and not report.lost[report.node[i]]:
            return False
        if i > 0 and owner[report.replica[i - 1]] == p:
            continue
        if not row_is_sound(partitions.home, demanded, node, report.lost, p):
            return False
        if has_leaders and demanded.replicas[p] > 0:
            if leader[p] < 0:
                if might_be_led(demanded, node, p):
                    return False
                continue
            k = demanded.first[p] + leader[p]
            if node[k] < 0 or report.lost[node[k]] or not demanded.leads[node[k]]:
                return False
            if demanded.role[k] != 0:
                return False
    return True


@device_function
def might_be_led(demanded: Demanded, node: NDArray[np.int32], p: int) -> bool:
    """Whether some replica of ``p`` stands on ``node (K,)``: who waits is not to blame then."""
    for k in range(demanded.first[p], demanded.first[p + 1]):
        if node[k] >= 0:
            return True
    return False


@device_function
def where_it_stands(
    home: NDArray[np.int32], node: NDArray[np.int32], lost: NDArray[np.bool_], k: int
) -> int:
    """Return the node of ``k`` by ``node (K,)``, or ``home (K,)`` where that is ``lost (N,)``."""
    # -1 for a replica that was nowhere before
    n, came_from = index(node[k]), index(home[k])
    return came_from if n < 0 and came_from >= 0 and lost[came_from] else n


@device_function
def row_is_sound(
    home: NDArray[np.int32],
    demanded: Demanded,
    node: NDArray[np.int32],
    lost: NDArray[np.bool_],
    p: int,
) -> bool:
    """Whether ``p`` breaks no rule with its replicas on ``node (K,)``, of nodes ``lost (N,)``.

    What is nowhere waits where it came from, its ``home (K,)``; that it lives there no more, and is
    missed by who counts the living, is not asked.
    """
    first, end = demanded.first[p], demanded.first[p + 1]
    placed, live, waits = 0, 0, 0
    for k in range(first, end):
        n = node[k]
        if n < 0:
            waits += int(where_it_stands(home, node, lost, index(k)) >= 0)
            continue
        placed += 1
        if lost[n] or not demanded.holds[n] or not demanded.is_open[demanded.rule[p], n]:
            return False
        live += int(demanded.serves[n])
        for i in range(demanded.forbidden_first[p], demanded.forbidden_first[p + 1]):
            if demanded.forbidden[i] == n:
                return False
    if placed + waits != demanded.replicas[p]:
        return False
    if waits == 0 and live < demanded.min_active[p]:
        return False
    q = demanded.rule[p]
    for i in range(demanded.limit_first[q], demanded.limit_first[q + 1]):
        tier, kind, amount = demanded.limit[i, 0], demanded.limit[i, 1], demanded.limit[i, 2]
        distinct, fullest = 0, 0
        for k in range(first, end):
            here = where_it_stands(home, node, lost, index(k))
            where = demanded.domain[tier, here] if here >= 0 else -1
            if where < 0:
                continue
            earlier, later = 0, 0
            for j in range(first, end):
                there = where_it_stands(home, node, lost, index(j))
                if there >= 0 and demanded.domain[tier, there] == where:
                    earlier += int(j < k)
                    later += int(j >= k)
            distinct += int(earlier == 0)
            fullest = max(fullest, earlier + later)
        if kind == SPREAD and fullest > amount:
            return False
        if kind == MIN_DOMAINS and distinct < amount and demanded.replicas[p] > 0:
            return False
        if kind == MAX_DOMAINS and distinct > amount:
            return False
    return True
