"""Nodes are lost: what they held is placed anew, judged, told, and taken back.

The cluster that it begins with breaks no rule. What stands on lost nodes has to move, and the
answer is worth having only if it is proven to be as good as any: everything placed, no rule broken,
every node within its target, and as many moves made as replicas were lost; or one more, where
`evenkeel_kernels.levelling.losses.room` proves that they are not enough. No placement makes do with
fewer then. In any other case -1 is returned, and somebody else has to search.

A loss costs O(D N) for each replica lost, vectorised, and O(N (D + M)) besides: nothing is looked
at that was not touched. Everything is put back as it was, floats bit by bit, so that what is told
of a loss does not depend on those that were played before.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.core.node_scan import FAR, Scan
from evenkeel_kernels.core.problem import Problem, State, index, leads_now
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.best_fit import best_fit
from evenkeel_kernels.levelling.losses.judge import find_endangered, is_sound, measure
from evenkeel_kernels.levelling.losses.records import PLACE, Asked, Demanded, Kept, Stock, Told
from evenkeel_kernels.levelling.losses.room import make_room

ATTEMPTS, FEW = 3, 8
"""Attempts at placing all that was lost, and how many may have failed in the first one."""

WHOLE = 1e-9
"""What is this close to a whole number is taken for it before it is rounded up."""


@no_alloc
def play_losses(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    asked: Asked,
    kept: Kept,
    nodes: NDArray[np.int32],
    forced: NDArray[np.bool_],
    led: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    told: Told,
) -> int:
    """Lose ``nodes (n,)``, place what they held, tell what came of it, and take it back.

    What found no place goes first in a second attempt; if that was one replica, another gives way
    in the third. Returns how many moved, or -1 if no answer was found that is proven the best.
    ``forced (K,)`` is all false and ``led (P,)`` all true, before and after; ``most_leaders (N,)``
    is scratch, as are the watermarks of ``problem`` and the scales of ``scan``.
    """
    count = lose(problem, state, scan, stock, nodes, led, told)
    find_endangered(problem.partitions, demanded, told, count)
    set_targets(problem, scan, stock, demanded, asked, told.lost, most_leaders)
    gave_way, failed, at = index(0), index(0), index(0)
    for attempt in range(ATTEMPTS):
        if attempt > 0:
            take_back(problem, state, scan, stock, kept, nodes, led, told, count)
            count = lose(problem, state, scan, stock, nodes, led, told)
        if attempt == 1:
            at = index(told.node[0])
            bring_forward(problem.partitions.owner, told, failed, count)
        if attempt == 2:
            gave_way = make_room(problem, state, scan, stock, demanded, led, told, at, count)
            if gave_way == 0:
                break
        placed = gave_way + best_fit(
            problem, state, scan, told.replica, forced, led, 1.0, gave_way, count
        )
        if attempt == 0:
            failed = list_failures(state.node, told, count)
        if placed == count or failed > (FEW if attempt == 0 else 1):
            break
    told.gave_way[0] = gave_way
    sound = placed == count
    count += gave_way
    for i in range(count):
        k = told.replica[i]
        told.node[i] = state.node[k]
        told.slot[i] = state.leader[problem.partitions.owner[k]]
    if sound:
        measure(problem.partitions, stock, demanded, led, told, count)
        sound = is_sound(
            problem.partitions.owner, problem.nodes.watermark, most_leaders, demanded,
            state.node, state.leader, stock.led > 0, told, count,
        )  # fmt: skip
    take_back(problem, state, scan, stock, kept, nodes, led, told, count)
    return count if sound else index(-1)


@device_function
def lose(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    nodes: NDArray[np.int32],
    led: NDArray[np.bool_],
    told: Told,
) -> int:
    """Close ``nodes (n,)`` and take what they hold off them; how much that is.

    It is listed in ``told.replica``, largest partitions first; ``led (P,)`` becomes false of those
    whose leader is among it.
    """
    partitions = problem.partitions
    count = index(0)
    for n in nodes:
        told.lost[n] = True
        problem.nodes.accepts[n] = False
        problem.nodes.leads[n] = False
        for mask in range(scan.closed.shape[0]):
            scan.closed[mask, n] = FAR
            problem.rules.allowed[mask, n] = False
        for i in range(stock.first[n], stock.first[n + 1]):
            k = stock.member[i]
            told.replica[count] = (stock.rank[partitions.owner[k]] << PLACE) | k
            count += 1
    ascending(told.replica, count)
    for i in range(count):
        k = told.replica[i] & ((1 << PLACE) - 1)
        told.replica[i] = k
        p = index(partitions.owner[k])
        if leads_now(partitions.first, state.leader, p, k):
            transfer_leader(problem, state, p, index(-1))
            led[p] = False
            partitions.led_from[p] = -1
        move(problem, state, k, index(-1))
    return count


@device_function
def list_failures(node: NDArray[np.int32], told: Told, count: int) -> int:
    """Fill ``told.node`` with the places of what has no ``node (K,)``; how many of ``count``."""
    failed = index(0)
    for at in range(count):
        if node[told.replica[at]] < 0:
            told.node[failed] = at
            failed += 1
    return failed


@device_function
def bring_forward(owner: NDArray[np.int32], told: Told, failed: int, count: int) -> None:
    """Put what is at places ``told.node[:failed]`` first, with its partition by ``owner (K,)``."""
    front, done = index(0), index(0)
    for i in range(failed):
        begin = index(told.node[i])
        if begin < done:
            continue
        p = owner[told.replica[begin]]
        while begin > done and owner[told.replica[begin - 1]] == p:
            begin -= 1
        done = begin
        while done < count and owner[told.replica[done]] == p:
            k = told.replica[done]
            for at in range(done, front, -1):
                told.replica[at] = told.replica[at - 1]
            told.replica[front] = k
            front += 1
            done += 1


@device_function
def ascending(values: NDArray[np.int64], count: int) -> None:
    """Sort the first ``count`` of distinct values, in place (Shell, 1959; gaps of Knuth)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            one = values[i]
            at = i
            while at >= gap and values[at - gap] > one:
                values[at] = values[at - gap]
                at -= gap
            values[at] = one
        gap //= 3


@device_function
def set_targets(
    problem: Problem,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    asked: Asked,
    lost: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
) -> None:
    """Set the watermarks, and ``most_leaders (N,)``, by the nodes that are not ``lost (N,)``.

    Tolerances are on top of the mean alone: where a greater floor is proven, targets are higher.
    Where there is no mean, since capacity has no end, nothing is within a target.
    """
    nodes, watermark = lost.shape[0], problem.nodes.watermark
    for d in range(watermark.shape[0]):
        room = 0.0
        for n in range(nodes):
            if demanded.receives[n] and not lost[n]:
                room += demanded.capacity[d, n]
        level = 0.0
        if asked.tolerance[d] >= 0.0 and room > 0.0:
            level = (1.0 + asked.tolerance[d]) * (stock.wanted[d] / room)
        endless = asked.tolerance[d] >= 0.0 and stock.wanted[d] > 0.0 and not 0.0 < level < np.inf
        for n in range(nodes):
            target = 0.0 if endless else np.inf
            if not endless and not lost[n] and (demanded.serves[n] or demanded.holds[n]):
                target = demanded.capacity[d, n]
                if level > 0.0 and demanded.serves[n]:
                    share = level * target
                    if stock.unit[d] > 0.0:
                        share = np.ceil(share / stock.unit[d] - WHOLE) * stock.unit[d]
                    target = min(target, share)
            watermark[d, n] = target
            scan.scale[d, n] = 1.0 / max(target, 1e-30)
    weight = 0.0
    for n in range(nodes):
        most_leaders[n] = np.inf
        if not lost[n]:
            weight += stock.lead_weight[n]
    if asked.leaders >= 0.0 and weight > 0.0:
        for n in range(nodes):
            share = 0.0 if lost[n] else stock.lead_weight[n] * (stock.led / weight)
            most_leaders[n] = np.ceil((1.0 + asked.leaders) * share - WHOLE)


@device_function
def take_back(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    kept: Kept,
    nodes: NDArray[np.int32],
    led: NDArray[np.bool_],
    told: Told,
    count: int,
) -> None:
    """Put all back as it was before ``nodes (n,)`` were lost, ``led (P,)`` and sums included."""
    partitions = problem.partitions
    for i in range(count):
        k = told.replica[i]
        p = index(partitions.owner[k])
        if not led[p]:
            if state.leader[p] >= 0:
                transfer_leader(problem, state, p, index(-1))
            led[p] = True
        move(problem, state, k, index(partitions.home[k]))
    for i in range(count):
        p = index(partitions.owner[told.replica[i]])
        if state.leader[p] != stock.leader[p]:
            transfer_leader(problem, state, p, index(stock.leader[p]))
            partitions.led_from[p] = partitions.home[partitions.first[p] + stock.leader[p]]
    for d in range(state.load.shape[0]):
        for n in range(state.load.shape[1]):
            state.load[d, n] = kept.load[d, n]
            state.held[d, n] = kept.held[d, n]
        for where in range(state.domain_load.shape[1]):
            state.domain_load[d, where] = kept.domain_load[d, where]
    for n in nodes:
        told.lost[n] = False
        problem.nodes.accepts[n] = kept.accepts[n]
        problem.nodes.leads[n] = kept.leads[n]
        for mask in range(scan.closed.shape[0]):
            scan.closed[mask, n] = kept.closed[mask, n]
            problem.rules.allowed[mask, n] = kept.allowed[mask, n]
