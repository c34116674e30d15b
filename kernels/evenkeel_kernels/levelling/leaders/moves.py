"""Appoint, transfer and restore leaders without moving data.

A leader's extra load goes with the leadership, and a transfer costs no data. So leaders are
unassigned before replicas are placed: replicas then weigh what data weighs, and a share of every
node is kept free for the leaders that are assigned again. Then leadership is transferred until no
node is above its watermark.

A partition whose leader is lost is led by a surviving replica that can take over at once, where no
goal needs a new copy to, while the lost copy is made again. If that copy is to lead in the end,
leadership is transferred once more.
"""

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.leadership import (
    admits_leader,
    affords_lead,
    leads_late,
    may_be_led_from,
    shares_leader,
)
from evenkeel_kernels.core.node_scan import FAR, Scan
from evenkeel_kernels.core.problem import VOTER, Problem, State, following_load, index, leading_node
from evenkeel_kernels.core.state import lead, relocate, transfer_leader
from evenkeel_kernels.levelling.penalty import Targets, passing_lead
from evenkeel_kernels.levelling.slices import PARTITIONS, slices

LARGE_SWEEPS = 4

SWEEPS = 8  # looks at every partition: what one hands on, another may take, and make even


@inline_only
def may_lead(problem: Problem, state: State, p: int, k: int) -> bool:
    """Whether replica ``k`` of ``p`` stands where a leader may, room apart."""
    n = index(state.node[k])
    return (
        n >= 0
        and state.role[k] == VOTER
        and may_be_led_from(problem, k, n)
        and problem.rules.lead_rank[problem.partitions.rule[p], n] < 255
    )


@inline_only
def leads_well(problem: Problem, state: State, p: int) -> bool:
    """Whether ``p`` has a leader that may lead where it is."""
    slot = state.leader[p]
    return slot >= 0 and may_lead(problem, state, p, problem.partitions.first[p] + slot)


@inline_only
def can_pass_on(problem: Problem, state: State, p: int) -> bool:
    """Whether another replica of ``p`` could lead it."""
    partitions = problem.partitions
    for k in range(partitions.first[p], partitions.first[p + 1]):
        if k != partitions.first[p] + state.leader[p] and may_lead(problem, state, p, k):
            return True
    return False


@inline_only
def stands_alone(problem: Problem, state: State, p: int) -> bool:
    """Whether no replica of ``p`` has a node: the first that gets one may have to lead."""
    for k in range(problem.partitions.first[p], problem.partitions.first[p + 1]):
        if state.node[k] >= 0:
            return False
    return True


@inline_only
def keeps_floors(
    problem: Problem, state: State, floor: NDArray[np.float64], p: int, slot: int
) -> bool:
    """Whether no node gets, or gets further, below its ``floor (D, N)`` if ``slot`` leads ``p``."""
    partitions = problem.partitions
    led, k = partitions.first[p] + state.leader[p], partitions.first[p] + slot
    here, there = index(state.node[led]), index(state.node[k])
    for d in range(state.load.shape[0]):
        less = partitions.leader_load[p, d] - following_load(partitions, state, led, d)
        more = partitions.leader_load[p, d] - following_load(partitions, state, k, d)
        if less > 0.0 < floor[d, here] and state.load[d, here] - less < floor[d, here]:
            return False
        if more < 0.0 < floor[d, there] and state.load[d, there] + more < floor[d, there]:
            return False
    return True


@inline_only
def can_lead(problem: Problem, state: State, p: int, n: int) -> bool:
    """Whether node ``n`` has room for the leader of ``p``, which is not there yet."""
    for d in range(state.load.shape[0]):
        more = problem.partitions.leader_load[p, d]
        there = state.load[d, n] + state.held[d, n] + more
        if more > 0.0 and there > problem.nodes.capacity[d, n]:
            return False
    return True


@no_alloc
def unassign_leaders(
    problem: Problem, state: State, was: NDArray[np.int16], extra: NDArray[np.float64]
) -> None:
    """Let every leader that another replica could replace stand down.

    ``was (P,)`` becomes the slot that led; ``extra (D,)`` the load that the leadership of those who
    stood down adds in all. O(K + P D).
    """
    partitions = problem.partitions
    for d in range(extra.shape[0]):
        extra[d] = 0.0
    for p in range(was.shape[0]):
        was[p] = state.leader[p]
        if state.leader[p] >= 0 and can_pass_on(problem, state, p):
            lead(problem, state, p, index(-1))
            for d in range(extra.shape[0]):
                extra[d] += partitions.leader_load[p, d] - partitions.voter_load[p, d]


# part of its watermark at which a node is nearly full: one more lead there may crowd others
NEARLY_FULL = 0.7


@device_function
def appoint(problem: Problem, state: State, scan: Scan, p: int, favoured: int) -> None:
    """Give ``p``, which none leads, the leader that its rule prefers."""
    # among equals one with room, which the ``favoured`` slot, that has led already, may go without;
    # one whose node what leading adds does not press; where who led is lost, one that is there
    # before a copy yet to be made; the favoured one; the one whose node is least full; the one that
    # leads least
    partitions = problem.partitions
    rank = problem.rules.lead_rank[partitions.rule[p]]
    best = index(-1)
    least = (255, False, FAR, 0, FAR, 0)
    for turn in range(-1, partitions.first[p + 1] - partitions.first[p]):
        slot = index(favoured if turn < 0 else turn)
        k = partitions.first[p] + slot
        if slot < 0 or not may_lead(problem, state, p, k):
            continue
        n = index(state.node[k])
        if not affords_lead(problem, state, p, k):
            continue
        score, late = -1.0, leads_late(problem, p, n)
        if turn < 0 and (late > 0 or rank[n] > 0):
            continue  # another may be better
        if slot != favoured or late > 0:
            score = 0.0
            for d in range(state.load.shape[0]):
                extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
                if extra != 0.0:
                    score = max(score, (state.load[d, n] + extra) * scan.scale[d, n])
        full = not admits_leader(problem, state, p, slot)
        if full and (slot != favoured or turn < 0):
            continue
        order = (int(rank[n]), full, max(score, NEARLY_FULL), late, score, int(state.leaders[n]))
        if order < least:
            best, least = slot, order
        if turn < 0:
            break
    if best >= 0:
        lead(problem, state, p, best)


@no_alloc
def assign_leaders(problem: Problem, state: State, scan: Scan, was: NDArray[np.int16]) -> int:
    """Appoint a leader wherever none leads, preferably the slot ``was (P,)`` that did.

    Returns how many changed. O(K D).
    """
    changed = 0
    for p in range(was.shape[0]):
        if state.leader[p] < 0:
            appoint(problem, state, scan, p, index(was[p]))
            changed += int(state.leader[p] != was[p])
    return changed


@no_alloc
def return_leaders(problem: Problem, state: State, was: NDArray[np.int16]) -> None:
    """Let the slot ``was (P,)`` lead again, or none, asking no rule. O(P), and D for each."""
    for p in range(was.shape[0]):
        if state.leader[p] != was[p]:
            transfer_leader(problem, state, p, index(was[p]))


@no_alloc
def lead_if_afforded(
    problem: Problem, state: State, replicas: NDArray[np.int64], leads: NDArray[np.bool_]
) -> None:
    """Let ``replicas (M,)`` lead where budgets and domains let each, as ``leads (M,)`` says."""
    # a replica that moves within its domain later on is not asked again whether that has room
    for i in range(replicas.shape[0]):
        k = index(replicas[i])
        p = index(problem.partitions.owner[k])
        slot = index(k - problem.partitions.first[p])
        if slot == state.leader[p]:
            leads[i] = True
            continue
        now = leading_node(problem, state, p)
        leads[i] = affords_lead(problem, state, p, k)
        leads[i] = leads[i] and shares_leader(problem, state, p, index(state.node[k]), now)
        if leads[i]:
            transfer_leader(problem, state, p, slot)


def reinstate(
    problem: Problem, state: State, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> None:
    """Put replicas back on ``node (K,)``, slots ``leader (P,)`` leading, asking no rule. O(K)."""
    changed = np.flatnonzero(state.node != node)
    return_leaders(problem, state, np.full_like(leader, -1))
    relocate(problem, state, changed, node[changed])
    return_leaders(problem, state, leader)


@inline_only
def may_follow(problem: Problem, state: State, p: int) -> bool:
    """Whether the leader of ``p``, where following weighs more, has room to follow."""
    k = index(problem.partitions.first[p] + state.leader[p])
    n = index(state.node[k])
    if n < 0:
        return True
    for d in range(state.load.shape[0]):
        less = following_load(problem.partitions, state, k, d)
        more = less - problem.partitions.leader_load[p, d]
        there = state.load[d, n] + state.held[d, n] + more
        if more > 0.0 and there > problem.nodes.capacity[d, n]:
            return False
    return shares_leader(problem, state, p, index(-1), n)


@inline_only
def _counts_as_unled(problem: Problem, state: State, p: int, slot: int) -> bool:
    """Whether a slot without a vote leads a partition that none led: it shall not go on to."""
    k = problem.partitions.first[p] + max(slot, 0)
    return slot >= 0 and state.role[k] != VOTER and problem.partitions.led_from[p] < 0


@no_alloc
def replace_leaders(problem: Problem, state: State, scan: Scan) -> int:
    """Replace every leader whose node may not lead, where another replica can. O(K)."""
    changed = 0
    for p in range(state.leader.shape[0]):
        if leads_well(problem, state, p):
            continue
        before = state.leader[p]
        if before < 0 or (can_pass_on(problem, state, p) and may_follow(problem, state, p)):
            transfer_leader(problem, state, p, index(-1))
            appoint(problem, state, scan, p, index(-1))
            if state.leader[p] < 0 and not _counts_as_unled(problem, state, p, before):
                transfer_leader(problem, state, p, index(before))
            changed += int(state.leader[p] != before)
    return changed


def spread_leaders(
    problem: Problem, state: State, targets: Targets, trigger: float, sweeps: int, large: float
) -> Generator[int, None, int]:
    """Hand leadership on, partition by partition, from nodes with ratios above ``trigger``."""
    # Each goes to the replica that lowers the penalty most. The first sweep tries only leaders
    # whose extra target ratio is ``large`` or more, the next ones those of half of that, and so on:
    # fewer change hands if the large ones do. Ends when a sweep over all changes nothing, or after
    # ``sweeps``. Yields the partitions looked at, slice by slice, and returns the changes made.
    # O(P D) for each sweep, and O(R D) for each leader on an overfull node.
    changed = 0
    for sweep in range(sweeps):
        before = changed
        least_extra = large * 0.5**sweep if sweep < LARGE_SWEEPS else 0.0
        for begin, end in slices(len(state.leader), PARTITIONS):
            changed += spread_some(problem, state, targets, trigger, least_extra, begin, end)
            yield end - begin
        if changed == before and least_extra == 0.0:
            break
    return changed


@no_alloc
def spread_some(
    problem: Problem,
    state: State,
    targets: Targets,
    trigger: float,
    least_extra: float,
    begin: int,
    end: int,
) -> int:
    """Do what `spread_leaders` does for partitions ``begin`` to ``end``, once."""
    # Only for leaders whose extra target ratio is ``least_extra`` or more. Returns the changes
    # made.
    partitions = problem.partitions
    dimensions = state.load.shape[0]
    changed = 0
    for p in range(begin, end):
        here = leading_node(problem, state, p)
        if here < 0:
            continue
        overfull = least_extra == 0.0 and state.leaders[here] * targets.leader_scale[here] > 1.0
        for d in range(dimensions):
            if state.load[d, here] * targets.scale[d, here] > trigger:
                extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
                if extra > 0.0 and extra * targets.scale[d, here] >= least_extra:
                    overfull = True
        if not overfull:
            continue
        best = index(-1)
        least = -1e-12
        for other in range(partitions.first[p + 1] - partitions.first[p]):
            there = state.node[partitions.first[p] + other]
            if there < 0 or there == here:
                continue
            change = passing_lead(partitions, state, targets, p, here, there)
            if change < least and admits_leader(problem, state, p, other):
                least = change
                best = other
        if best >= 0:
            transfer_leader(problem, state, p, best)
            changed += 1
    return changed


@device_function
def can_take_over(problem: Problem, state: State, targets: Targets, p: int, slot: int) -> bool:
    """Whether ``slot``, which has a node, may lead ``p``, and no node gets overfull by it."""
    partitions = problem.partitions
    n = index(state.node[partitions.first[p] + slot])
    now = leading_node(problem, state, p)
    if now < 0 or (state.leaders[n] + 1) * targets.leader_scale[n] > 1.0:
        return False
    for d in range(state.load.shape[0]):
        extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
        gains, more = (n, extra) if extra > 0.0 else (now, -extra)
        if more > 0.0 and (state.load[d, gains] + more) * targets.scale[d, gains] > 1.0:
            return False
    return admits_leader(problem, state, p, slot)


@no_alloc
def prefer(problem: Problem, state: State, targets: Targets, floor: NDArray[np.float64]) -> int:
    """Hand leadership on to where the rules prefer it, wherever no node gets overfull by it.

    None gets below its ``floor (D, N)`` either. Returns how many changed. O(K D).
    """
    partitions = problem.partitions
    changed = 0
    for p in range(state.leader.shape[0]):
        rank, now = problem.rules.lead_rank[partitions.rule[p]], leading_node(problem, state, p)
        if now < 0:
            continue
        best, least = index(-1), rank[now]
        for slot in range(partitions.first[p + 1] - partitions.first[p]):
            n = index(state.node[partitions.first[p] + slot])
            if n < 0 or rank[n] >= least or not keeps_floors(problem, state, floor, p, slot):
                continue
            if can_take_over(problem, state, targets, p, slot):
                best, least = slot, rank[n]
        if best >= 0:
            transfer_leader(problem, state, p, best)
            changed += 1
    return changed


@no_alloc
def restore_leaders(
    problem: Problem, state: State, targets: Targets, was: NDArray[np.int16]
) -> int:
    """Let the slot ``was (P,)`` lead again where it has not moved and no node gets overfull by it.

    Returns how many changed. O(P D).
    """
    partitions = problem.partitions
    changed = 0
    for p in range(was.shape[0]):
        slot = index(was[p])
        if slot < 0 or state.leader[p] < 0 or state.leader[p] == slot:
            continue
        k = partitions.first[p] + slot
        n = index(state.node[k])
        if n < 0 or n != partitions.home[k]:
            continue
        if can_take_over(problem, state, targets, p, slot):
            transfer_leader(problem, state, p, slot)
            changed += 1
    return changed


def lead_by_survivors(
    problem: Problem, state: State, targets: Targets, floor: NDArray[np.float64]
) -> int:
    """Let those that could lead at once lead what has lost its leader, evenly; how many changed.

    A new copy hands on to the one of them that leads least, if no node gets overfull by it, nor
    below its ``floor (D, N)``. Where the leader is lost one of them does to another that leads
    fewer, unless leading weighs anything: loads level themselves.

    Complexity: O(P), and O(R D) for each partition whose leader is lost, for each of some sweeps.
    """
    nodes, was = problem.nodes, problem.partitions.led_from
    leads_on = (was >= 0) & np.append(nodes.leads | ~nodes.accepts, False)[was]
    lost = np.flatnonzero(~leads_on & (state.leader >= 0))
    changed = 0
    for _ in range(SWEEPS if len(lost) else 0):
        made = hand_to_survivors(problem, state, targets, floor, lost)
        changed += made
        if made == 0:
            break
    return changed


@no_alloc
def hand_to_survivors(
    problem: Problem,
    state: State,
    targets: Targets,
    floor: NDArray[np.float64],
    lost: NDArray[np.int64],
) -> int:
    """Do what `lead_by_survivors` does, once, for the partitions ``lost (M,)``.

    ``floor (D, N)`` is that of `lead_by_survivors`.
    """
    partitions = problem.partitions
    changed = 0
    for i in range(lost.shape[0]):
        p = index(lost[i])
        now = leading_node(problem, state, p)
        if now < 0:
            continue
        fewest = state.leaders[now] - 1
        if leads_late(problem, p, now) > 0:
            fewest = problem.partitions.first.shape[0]
        elif partitions.led_from[p] >= 0 or weighs(problem, p):
            continue
        best = index(-1)
        for slot in range(partitions.first[p + 1] - partitions.first[p]):
            n = index(state.node[partitions.first[p] + slot])
            if n < 0 or state.leaders[n] >= fewest or leads_late(problem, p, n) > 0:
                continue
            if not keeps_floors(problem, state, floor, p, slot):
                continue
            if can_take_over(problem, state, targets, p, slot):
                best, fewest = slot, state.leaders[n]
        if best >= 0:
            transfer_leader(problem, state, p, best)
            changed += 1
    return changed


@inline_only
def weighs(problem: Problem, p: int) -> bool:
    """Whether leading ``p`` weighs another thing than following."""
    partitions = problem.partitions
    for d in range(partitions.leader_load.shape[1]):
        if partitions.leader_load[p, d] != partitions.voter_load[p, d]:
            return True
    return False
