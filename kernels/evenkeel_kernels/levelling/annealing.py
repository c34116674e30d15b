"""Refine a small cluster by annealing that may pass through placements with broken rules.

Where replicas are few, each is large beside the room that is left, and what is best often lies
behind placements that break a rule or fill a node. So capacities, targets, budgets and the rules of
a partition are no walls here but penalties; only where a replica may not stand at all, and what a
group may not do, is never tried. What counts is the best placement met that breaks nothing: within
the *aim*, a multiple of every target, the one with the fewest moves, then the fewest changes of
leaders. An aim may fall: each placement met within it sets one a little lower.

References
----------
S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by Simulated Annealing", Science 220
(1983): the acceptance rule.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import affinity, keeps_group_limits, may_stand, overrun
from evenkeel_kernels.core.leadership import is_led_anew, keeps_leader
from evenkeel_kernels.core.problem import Problem, State, index, is_away, leads_now, squared_excess
from evenkeel_kernels.core.rng import draw
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import may_lead
from evenkeel_kernels.levelling.penalty import (
    Targets,
    highest,
    passing_lead,
    passing_pair,
    passing_replica,
)
from evenkeel_kernels.levelling.repair import breaches

COOL_EVERY = 64
FAULTS, MOVES, CHANGES, TRADES = 0, 1, 2, 3  # of a tally
SHIFT, RETURN, TRADE = 40, 55, 80  # per cent of the proposals, cumulative; the rest hand on
ONE = float(1 << 30)


@by_reference
class Aim(NamedTuple):
    """How full nodes may be: a multiple of targets, up to what they hold, down to their floors."""

    value: NDArray[np.float64]  # (1,) the multiple; 1 is what was asked for
    asked: Targets  # of the targets
    targets: Targets  # of what a node may carry and lead within the aim
    floor: NDArray[np.float64]  # (D, N) the least that a node must carry


@by_reference
class Best(NamedTuple):
    """The best placement met."""

    node: NDArray[np.int32]  # (K,)
    leader: NDArray[np.int16]  # (P,)
    worth: NDArray[np.float64]  # (5,) broken rules (inf: none met), aim, moves, leader changes,
    # trades of roles


@by_reference
class Pace(NamedTuple):
    """How a run goes."""

    move_penalty: float  # price of a move, in units of the penalty
    lead_penalty: float  # price of a change of leaders, or of a role traded
    fault: float  # price of a broken rule
    hot: float  # temperature at the start
    cold: float  # and at the end
    fall: float  # by what share an aim above 1 falls once it is met; 0: it stays


@by_reference
class Course(NamedTuple):
    """What a run starts from and keeps up to date."""

    forced: NDArray[np.bool_]  # (K,) replicas that had to leave home
    led: NDArray[np.bool_]  # (P,) whether it is to be led
    mixed: NDArray[np.bool_]  # (P,) whether its replicas are not all of one role
    faults: NDArray[np.int64]  # (P,) broken rules of each partition
    tally: NDArray[np.int64]  # (4,) broken rules and what is beyond budgets, moves, changes of
    # leaders and trades of roles
    random: NDArray[np.uint64]  # (1,) state of the generator


@inline_only
def set_aim(problem: Problem, aim: Aim, value: float) -> None:
    """Let nodes be ``value`` times as full as their targets. O(D N)."""
    aim.value[0] = value
    for n in range(aim.targets.scale.shape[1]):
        aim.targets.leader_scale[n] = aim.asked.leader_scale[n] / value
        for d in range(aim.targets.scale.shape[0]):
            most = max(aim.asked.scale[d, n] / value, problem.nodes.inverse[d, n])
            aim.targets.scale[d, n] = most


@device_function
def node_penalty(problem: Problem, state: State, aim: Aim, fault: float, n: int) -> float:
    """Penalty of node ``n``: what it carries and leads beyond the aim, or lacks to its floor."""
    # every other limit that it breaks counts ``fault``
    nodes, domains, targets = problem.nodes, problem.domains, aim.targets
    total = squared_excess(state.leaders[n] * targets.leader_scale[n], targets.threshold)
    for d in range(state.load.shape[0]):
        total += squared_excess(state.load[d, n] * targets.scale[d, n], targets.threshold)
        if aim.floor[d, n] > 0.0:
            lack = (aim.floor[d, n] - state.load[d, n]) * aim.asked.scale[d, n]
            total += squared_excess(lack, 0.0)
        if nodes.transient[d]:
            held = state.load[d, n] + state.held[d, n]
            total += squared_excess(held * nodes.inverse[d, n], targets.threshold)
    if state.replicas[n] > nodes.max_replicas[n]:
        total += fault * (state.replicas[n] - nodes.max_replicas[n])
    for i in range(domains.limited.shape[0]):
        where = index(domains.domain[domains.limited[i], n])
        if where >= 0:
            for d in range(state.load.shape[0]):
                if state.domain_load[d, where] > domains.tier_capacity[d, where]:
                    total += fault
    return total


@device_function
def faults_of(problem: Problem, state: State, course: Course, p: int) -> int:
    """Count the broken rules of ``p``: limits, terms, replicas without a node, who leads."""
    partitions = problem.partitions
    first = partitions.first[p]
    count = breaches(problem, state, p, index(-1), index(-1))
    rank = problem.rules.lead_rank[partitions.rule[p]]
    own = 255
    slot = state.leader[p]
    if slot >= 0 and may_lead(problem, state, p, first + slot):
        own = index(rank[state.node[first + slot]])
    leader_preference_violations = int(course.led[p] and own == 255)
    for k in range(first, partitions.first[p + 1]):
        if state.node[k] < 0:
            count += int(course.forced[k])
        elif slot >= 0 and own > 0 and may_lead(problem, state, p, k):
            leader_preference_violations = max(
                leader_preference_violations, int(rank[state.node[k]] < own)
            )
    return count + leader_preference_violations


@inline_only
def may_be_on(problem: Problem, state: State, course: Course, k: int, n: int, leaves: int) -> bool:
    """Whether ``n`` may keep one more of the replicas that were there, or ``k`` may stand there.

    ``leaves`` is a replica that makes way, -1 for none.
    """
    partitions = problem.partitions
    if n == partitions.home[k] and course.forced[k]:
        return False
    if not keeps_leader(problem, state, k, n):
        return False
    p = index(partitions.owner[k])
    places = 0
    for i in range(partitions.first[p], partitions.first[p + 1]):
        places += int(partitions.home[i] == n and not course.forced[i])
        places -= int(state.node[i] == n and i != k and i != leaves)
    return places > 0 or may_stand(problem, p, n)


@inline_only
def may_join(problem: Problem, state: State, course: Course, k: int, n: int, leaves: int) -> bool:
    """Whether ``k`` may be on ``n`` at all: its home, or where it may stand, and its group may."""
    if not may_be_on(problem, state, course, k, n, leaves):
        return False
    return keeps_group_limits(problem, state, k, n) and affinity(problem, state, k, n)


@device_function
def moved_if_joining(
    problem: Problem, state: State, course: Course, k: int, n: int, leaves: int
) -> bool:
    """Move ``k`` to ``n`` if it may be there at all, once ``leaves`` has left; whether it moved."""
    if not may_join(problem, state, course, k, n, leaves):
        return False
    move(problem, state, k, n)
    return True


@device_function
def traded_if_joining(problem: Problem, state: State, course: Course, k: int, i: int) -> bool:
    """Let ``k`` and ``i`` trade nodes if they may be there at all; whether they did."""
    # two of one group and role leave its counts as they are, whatever each by itself would do
    partitions = problem.partitions
    here, there = index(state.node[k]), index(state.node[i])
    p, q = index(partitions.owner[k]), index(partitions.owner[i])
    if partitions.group[p] == partitions.group[q] and state.role[k] == state.role[i]:
        if not may_be_on(problem, state, course, k, there, i):
            return False
        if not may_be_on(problem, state, course, i, here, k):
            return False
        move(problem, state, k, there)
        move(problem, state, i, here)
        return True
    if not moved_if_joining(problem, state, course, k, there, i):
        return False
    if not moved_if_joining(problem, state, course, i, here, -1):
        move(problem, state, k, here)
        return False
    return True


@inline_only
def is_reseated(problem: Problem, course: Course, k: int, n: int) -> int:
    """Whether ``k`` on ``n`` is where a replica of its partition, of another role maybe, stood."""
    if not course.mixed[problem.partitions.owner[k]] or n == problem.partitions.home[k]:
        return 0
    return 1 - is_away(problem, k, n)


@inline_only
def changes_of(problem: Problem, state: State, p: int, q: int) -> int:
    """Count the changes of leaders of ``p`` and of ``q``, -1 for none: 0 to 2."""
    count = 0
    first, leader = problem.partitions.first, state.leader
    if leader[p] >= 0:
        count += is_led_anew(problem, p, index(state.node[first[p] + leader[p]]))
    if q >= 0 and leader[q] >= 0:
        count += is_led_anew(problem, q, index(state.node[first[q] + leader[q]]))
    return count


@no_alloc
def count_up(problem: Problem, state: State, course: Course) -> None:
    """Add up broken rules, what is beyond budgets, moves and changes of leaders. O(K R)."""
    faults, moves, changes, trades = overrun(problem, state), 0, 0, 0
    for p in range(course.faults.shape[0]):
        faults += course.faults[p]
        changes += changes_of(problem, state, p, index(-1))
    for k in range(state.node.shape[0]):
        if state.node[k] >= 0:
            moves += is_away(problem, k, index(state.node[k]))
            trades += is_reseated(problem, course, k, index(state.node[k]))
    tally = course.tally
    tally[FAULTS], tally[MOVES], tally[CHANGES], tally[TRADES] = faults, moves, changes, trades


@no_alloc
def note(problem: Problem, state: State, aim: Aim, course: Course, best: Best, fall: float) -> bool:
    """Keep the placement, whose ``tally`` is up to date, as the best one if it is."""
    # Lowers an aim that it is within by ``fall``, that of the pace. Whether it was kept.
    # O(D N + K), where the tally is no worse.
    worth, within = best.worth, aim.value[0]
    tally = course.tally
    faults, moves, changes, trades = tally[FAULTS], tally[MOVES], tally[CHANGES], tally[TRADES]
    if faults > worth[0] or (faults == worth[0] and within > worth[1]):
        return False
    if faults == worth[0] and within == worth[1]:
        if moves > worth[2] or (moves == worth[2] and changes > worth[3]):
            return False
        if moves == worth[2] and changes == worth[3] and trades >= worth[4]:
            return False
    for n in range(state.replicas.shape[0]):
        if node_penalty(problem, state, aim, 1.0, n) > 0.0:
            return False
    for k in range(state.node.shape[0]):
        best.node[k] = state.node[k]
    for p in range(state.leader.shape[0]):
        best.leader[p] = state.leader[p]
    worth[0], worth[1], worth[2], worth[3], worth[4] = faults, within, moves, changes, trades
    if fall > 0.0 and within > 1.0:
        most = highest(state, aim.asked)
        worth[1] = max(1.0, most)
        set_aim(problem, aim, max(1.0, most * (1.0 - fall)))
    return True


@no_alloc
def begin_course(problem: Problem, state: State, aim: Aim, value: float, course: Course) -> None:
    """Count what is broken, and let nodes be ``value`` times as full as asked. O(K R + D N)."""
    set_aim(problem, aim, value)
    for p in range(course.faults.shape[0]):
        course.faults[p] = faults_of(problem, state, course, p)
    count_up(problem, state, course)


@inline_only
def is_plain(problem: Problem, aim: Aim) -> bool:
    """Whether too much load and too many leaders are all that counts against a node."""
    nodes = problem.nodes
    for d in range(nodes.transient.shape[0]):
        if nodes.transient[d]:
            return False
        for n in range(nodes.max_replicas.shape[0]):
            if aim.floor[d, n] > 0.0:
                return False
    for n in range(nodes.max_replicas.shape[0]):
        if nodes.max_replicas[n] < 1 << 30:
            return False
    return problem.domains.limited.shape[0] == 0


@no_alloc
def refine(
    problem: Problem,
    state: State,
    aim: Aim,
    course: Course,
    best: Best,
    pace: Pace,
    begin: int,
    end: int,
    steps: int,
) -> int:
    """Take the steps ``begin`` to ``end`` of a run of ``steps``; returns how many were accepted.

    Complexity: O(D) for most steps, O(D + R^2 levels) for those that are looked at closely.
    """
    partitions, random, targets = problem.partitions, course.random, aim.targets
    n_nodes, n_replicas = state.replicas.shape[0], state.node.shape[0]
    n_partitions = state.leader.shape[0]
    plain = is_plain(problem, aim)
    beyond = overrun(problem, state)
    heat = pace.hot
    accepted = 0
    for step in range(begin, end):
        if step % COOL_EVERY == 0 or step == begin:
            heat = pace.hot * (pace.cold / pace.hot) ** (step / steps)
        kind = draw(random, 100)
        allowed = -heat * math.log((draw(random, 1 << 30) + 1.0) / ONE)
        k, p, i, q = index(-1), index(-1), index(-1), index(-1)
        slot, led, more, trades = index(-1), index(-1), 0, 0
        if kind < TRADE:
            k = index(draw(random, n_replicas))
            p = index(partitions.owner[k])
            here = index(state.node[k])
            if kind < SHIFT:
                there = index(draw(random, n_nodes))
            elif kind < RETURN:
                there = index(partitions.home[k])
            else:
                i = index(draw(random, n_replicas))
                size = partitions.first[p + 1] - partitions.first[p]
                if course.mixed[p] and draw(random, 4) == 0:
                    i = index(partitions.first[p] + draw(random, size))
                q = index(partitions.owner[i])
                there = index(state.node[i])
                if here < 0 or not partitions.movable[i]:
                    continue
                if q == p:
                    if state.role[i] == state.role[k]:
                        continue
                    q = index(-1)
            if there < 0 or there == here or not partitions.movable[k]:
                continue
            if here < 0 and not course.forced[k]:
                continue
            more = is_away(problem, k, there)
            trades = is_reseated(problem, course, k, there)
            if here >= 0:
                more -= is_away(problem, k, here)
                trades -= is_reseated(problem, course, k, here)
            if i >= 0:
                more += is_away(problem, i, here) - is_away(problem, i, there)
                trades += is_reseated(problem, course, i, here)
                trades -= is_reseated(problem, course, i, there)
            change = pace.move_penalty * more + pace.lead_penalty * trades
            if plain and here >= 0:
                rough = change - pace.fault * (course.faults[p] + beyond)
                if i < 0:
                    rough += passing_replica(partitions, state, targets, k, here, there)
                else:
                    rough += passing_pair(partitions, state, targets, k, i, here, there)
                    if q >= 0:
                        rough -= pace.fault * course.faults[q]
                    if leads_now(partitions.first, state.leader, p, k) != leads_now(
                        partitions.first, state.leader, index(partitions.owner[i]), i
                    ):
                        rough = -np.inf
                if rough > allowed:
                    continue
                if i < 0 or q >= 0:
                    rough += pace.fault * breaches(problem, state, p, k, there)
                    if q >= 0:
                        rough += pace.fault * breaches(problem, state, q, i, here)
                    if rough > allowed:
                        continue
        else:
            p = index(draw(random, n_partitions))
            first = partitions.first[p]
            size = partitions.first[p + 1] - first
            led = index(state.leader[p])
            if size < 1 or not course.led[p] or (led >= 0 and size < 2):
                continue
            slot = index(draw(random, size - int(led >= 0)))
            slot += int(led >= 0 and slot >= led)
            here = index(state.node[first + led]) if led >= 0 else index(-1)
            there = index(state.node[first + slot])
            if not may_lead(problem, state, p, first + slot) or here == there:
                continue
            change = pace.lead_penalty * is_led_anew(problem, p, there)
            if here >= 0:
                change -= pace.lead_penalty * is_led_anew(problem, p, here)
            if plain and here >= 0:
                rough = change - pace.fault * (course.faults[p] + beyond)
                if rough + passing_lead(partitions, state, targets, p, here, there) > allowed:
                    continue
        before = changes_of(problem, state, p, q)
        change -= node_penalty(problem, state, aim, pace.fault, there)
        if here >= 0:
            change -= node_penalty(problem, state, aim, pace.fault, here)
        if slot >= 0:
            transfer_leader(problem, state, p, slot)
        elif i >= 0:
            if not traded_if_joining(problem, state, course, k, i):
                continue
        elif not moved_if_joining(problem, state, course, k, there, -1):
            continue
        own, other, over = faults_of(problem, state, course, p), 0, overrun(problem, state)
        change += pace.fault * (own - course.faults[p] + over - beyond)
        if q >= 0:
            other = faults_of(problem, state, course, q)
            change += pace.fault * (other - course.faults[q])
        hot = node_penalty(problem, state, aim, pace.fault, there)
        if here >= 0:
            hot += node_penalty(problem, state, aim, pace.fault, here)
        if change + hot > allowed:
            if slot >= 0:
                transfer_leader(problem, state, p, led)
            else:
                if i >= 0:
                    move(problem, state, i, there)
                move(problem, state, k, here)
            continue
        accepted += 1
        course.tally[FAULTS] += own - course.faults[p] + over - beyond
        course.faults[p] = own
        beyond = over
        if q >= 0:
            course.tally[FAULTS] += other - course.faults[q]
            course.faults[q] = other
        course.tally[MOVES] += more
        course.tally[TRADES] += trades
        course.tally[CHANGES] += changes_of(problem, state, p, q) - before
        if hot == 0.0:
            note(problem, state, aim, course, best, pace.fall)
    return accepted
