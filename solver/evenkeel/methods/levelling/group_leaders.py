"""Balance the leaders of each group by a network flow, and move replicas where that falls short.

Who leads what within the numbers of each group and node is a flow (`evenkeel.methods.leaders`). It
knows no loads: where leading weighs, it begins from the leaders that the search chose as well as
from those that came, and the better answer is taken.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import goals_met
from evenkeel.measure.compare import compare
from evenkeel.measure.elections import led_from
from evenkeel.measure.group_goals import LeadGoals, crowding, group_targets, lead_goals
from evenkeel.measure.levelness import levelness
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.leaders.flow import Arcs, Places, arcs_of, flow_within, led_over
from evenkeel.methods.levelling.run_state import placed_state
from evenkeel.methods.shared.answers import audited_answer, regresses
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.methods.shared.replica_counts import leading_slots
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import writable
from evenkeel.model.runtime.printable import counted
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import UNLIMITED, Problem, State
from evenkeel_kernels.leaders.fewest_changes import FAR, LeadFlow, excess
from evenkeel_kernels.levelling.descent import relieve
from evenkeel_kernels.levelling.leaders.lone_leaders import place_on_first
from evenkeel_kernels.levelling.leaders.transport import Cells, transport_leaders
from evenkeel_kernels.levelling.penalty import highest, new_targets

FEW = 8  # leads up to which one replica moves at a time: one move may make another superfluous


def led_with_fewest_changes(request: Request, outcome: Outcome) -> Outcome:
    """Return the answer in which the fewest leaders change, where leading weighs nothing."""
    # its replicas stay, and all goals are met before
    cluster, before = request.cluster, request.cluster.placement
    load, room = cluster.partitions.load, request.bounds.leader_target
    weighs = (load.leader != load.voter).any()
    if weighs or outcome.stop_reason != "tolerance" or not np.isfinite(room).any():
        return outcome
    stayed = _stayed(before, outcome.node)
    if ((outcome.leader == stayed) | (stayed < 0)).all():
        return outcome
    arcs = arcs_of(cluster, outcome.node, stayed)
    most = np.minimum(room, len(before)).astype(np.int64)
    try:
        flow = flow_within(arcs, Places.on_nodes(arcs, most), Clock(request.watch))
    except OutOfTime:
        return outcome
    found = replace(outcome, leader=led_over(before, arcs, flow.taken, outcome.leader))
    made = (before.replaced(one.node, one.leader) for one in (found, outcome))
    fewer, many = (compare(cluster, before, one).leader_changes for one in made)
    return outcome if excess(flow) or fewer >= many or regresses(request, found) else found


def led_within_groups(request: Request, outcome: Outcome) -> Outcome:
    """Return the answer with the leaders of groups nearest to the goals, or the same one."""
    # replicas move only where no choice of leaders meets the goals
    asked = lead_goals(request.cluster, request.goals)
    if asked is None or outcome.stop_reason in ("time", "work", "interrupted"):
        return outcome

    try:
        every = [outcome, *_answers(request, asked, outcome)]
        undone = [_undone(request, asked, one) for one in every]
    except OutOfTime:
        return outcome
    least = min(undone)
    best = every[undone.index(least)]
    if moved := int((best.node != outcome.node).sum()):
        text = f"Passing leads does not meet the goals within groups: {counted(moved, 'replica')}"
        best = replace(best, warnings=(*best.warnings, f"{text} moved for them."))
    small = size_of(request.cluster) <= SMALL  # which CP-SAT looks at
    if small and best.stop_reason == "tolerance" and any(least[2:4]):
        best = replace(best, stop_reason="exhausted")
    return best


# budgets exceeded or rules broken further than they came, hard violations, leaders and replicas
# beyond goals within groups, other goals missed, and by how much the fullest node is above its
# target, moves and changes
Undone = tuple[bool, int, int, bool, float, int, int]


def _undone(request: Request, asked: LeadGoals, outcome: Outcome) -> Undone:
    """Return what an answer breaks, lacks and changes, the worst first."""
    cluster, before = request.cluster, request.cluster.placement
    placement, audited = audited_answer(request, outcome)
    off = int(np.abs(asked.cells_of(cluster, placement).off).sum())
    if (most := group_targets(cluster, request.goals)) is not None:
        there = placement.node >= 0
        off += int(crowding(cluster, most, placement.owner[there], placement.node[there]).sum())
    level, bounds = levelness(cluster, placement), request.bounds
    above = np.where(bounds.target > 0.0, level.loads / np.maximum(bounds.target, 1e-300), 1.0)
    made = compare(cluster, before, placement)
    return (
        regresses(request, outcome), audited.hard, off,
        not goals_met(level, bounds), round(max(1.0, float(above.max(initial=0.0))), 9),
        made.moves, made.leader_changes,
    )  # fmt: skip


def _answers(request: Request, asked: LeadGoals, outcome: Outcome) -> Iterator[Outcome]:
    """Yield answers with other leaders, and with other replicas where those fall short."""
    load, clock = request.cluster.partitions.load, Clock(request.watch)
    weighs = bool((load.leader != load.voter).any())
    for came in (True, False) if weighs else (True,):
        found = _nearest(request, asked, outcome, clock, came=came)
        yield found
        yield _within_budget(request, asked, outcome, found)
        if weighs:
            yield _levelled_by_leads(request, asked, found, clock)


def _nearest(
    request: Request, asked: LeadGoals, outcome: Outcome, clock: Clock, *, came: bool
) -> Outcome:
    """Pass leads, from those that ``came`` or those of an answer, and move as few as it takes."""
    cluster, before = request.cluster, request.cluster.placement
    most = np.minimum(request.bounds.leader_target, len(before)).astype(np.int64)
    found, tried, left, made = outcome, outcome, UNLIMITED, 1
    while made and left:
        arcs = arcs_of(cluster, tried.node, _stayed(before, tried.node) if came else tried.leader)
        flow = flow_within(arcs, Places.on_nodes(arcs, most, arcs.cells(cluster, asked)), clock)
        if excess(flow) >= left:
            break
        left = excess(flow)
        found = replace(tried, leader=led_over(before, arcs, flow.taken, tried.leader), fewest=0)
        if left:
            problem, state = _compiled(request, found)
            for full in (problem.nodes.watermark, problem.nodes.capacity):
                within = problem._replace(nodes=problem.nodes._replace(watermark=full))
                if made := _move_some(request, asked, arcs, flow, within, state):
                    break
            tried = replace(found, node=np.where(state.node >= 0, state.node, found.node))
    return found if found.node is not outcome.node else replace(found, fewest=outcome.fewest)


def _stayed(came: Placement, node: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the slots that led and are where they were, (P,); -1 for the others."""
    led = np.flatnonzero(came.leader >= 0)
    replica = came.first[led] + came.leader[led]
    led = led[node[replica] == came.node[replica]]
    stayed = np.full(len(came), -1, np.int16)
    stayed[led] = came.leader[led]
    return stayed


def _within_budget(request: Request, asked: LeadGoals, outcome: Outcome, found: Outcome) -> Outcome:
    """Return an answer with as many of the changes of another as leader changes are left."""
    cluster, came = request.cluster, request.cluster.placement
    most = request.limits.leader_changes
    if most is None:
        return found
    stands, other = (came.replaced(one.node, one.leader) for one in (outcome, found))
    most -= compare(cluster, came, stands).leader_changes
    leader, group = outcome.leader.copy(), cluster.partitions.group
    led = np.zeros((len(asked.count), len(asked.weight)), np.int64)
    np.add.at(led, (group, stands.leader_node), stands.leader_node >= 0)
    for p in np.flatnonzero(stands.leader_node != other.leader_node).tolist():
        g, ends = group[[p, p]], np.array([stands.leader_node[p], other.leader_node[p]])
        many, few = led[g, ends] > asked.most(g, ends), led[g, ends] < asked.least(g, ends)
        if most > 0 and (many[0] or few[1]):
            most -= 1
            leader[p] = found.leader[p]
            led[g, ends] += [-1, 1]
    return replace(outcome, leader=leader)


def _levelled_by_leads(
    request: Request, asked: LeadGoals, outcome: Outcome, clock: Clock
) -> Outcome:
    """Pass leads within the numbers of groups, so that nodes are level, and move followers."""
    cluster, group = request.cluster, request.cluster.partitions.group
    problem, state = _compiled(request, outcome)
    led = cluster.placement.replaced(outcome.node, outcome.leader).leader_node

    def cells(partition: NDArray[np.int32], node: NDArray[np.int32]) -> Cells:
        every = np.append(partition, np.flatnonzero(led >= 0))
        found = asked.cells(group[every], np.append(node, led[led >= 0]))
        now = np.bincount(found.which[len(node) :], minlength=len(found.group))
        return found.which[: len(node)], now, found.least, found.most

    targets = new_targets(problem, request.bounds.leader_target, 1.0)
    came = writable(cluster.placement.leader)
    for work in transport_leaders(problem, state, targets, came, cells=cells):
        clock.ask(work)
    movable, leader, done = problem.partitions.movable.copy(), state.leader, np.ones(2, np.int64)
    movable[(problem.partitions.first[:-1] + leader)[leader >= 0]] = False
    problem = problem._replace(partitions=problem.partitions._replace(movable=movable))
    scan = new_scan(problem, np.zeros(len(state.load)))
    while done[0] and highest(state, targets) > 1.0 and clock.goes_on():
        members = scattered_by_node(problem.partitions, state.node, leader, len(state.replicas))
        done[:] = 0
        relieve(problem, state, targets, scan, *members, UNLIMITED, done, 0, UNLIMITED)
    node = np.where(state.node >= 0, state.node, outcome.node)
    return replace(outcome, node=node, leader=leading_slots(cluster, node, leader), fewest=0)


def _compiled(request: Request, outcome: Outcome) -> tuple[Problem, State]:
    """Compile a request, and the state of an answer."""
    cluster = request.cluster
    target, ones = np.ascontiguousarray(request.bounds.target.T), np.ones(len(cluster.dimensions))
    problem = compile_problem(cluster, target, ones, limits=request.limits)
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    return problem, placed_state(cluster, problem, stands, np.zeros(len(outcome.node), bool))


def _move_some(
    request: Request, asked: LeadGoals, arcs: Arcs, flow: LeadFlow, problem: Problem, state: State
) -> int:
    """Move replicas from where leads are too many to where one more is wanted; return how many."""
    cluster, nodes = request.cluster, len(asked.weight)
    placement, ends, far = cluster.placement, _ends(arcs, flow), problem.nodes.watermark
    here, left = flow.place[flow.taken], flow.surplus.copy()
    if left[-1] > 0:  # more are lacking than there are too many of
        left = np.maximum(left, flow.passed - flow.least)
    reached = np.flatnonzero(flow.distance[here] < FAR)
    taken = arcs.replica[flow.taken[reached]]
    lives = led_from(cluster)[placement.owner[taken]] >= 0  # the lost are led at once
    taken, here = taken[lives], here[reached[lives]]
    cells = arcs.cells(cluster, asked)
    pairs = zip(cells.group.tolist(), cells.node.tolist(), strict=True)
    inside = dict(zip(pairs, ends[: len(cells.group)].tolist(), strict=True))
    order = np.argsort((state.load / np.maximum(far, 1e-300)).max(0), kind="stable").tolist()
    wanted = {}
    for g in np.unique(cluster.partitions.group[placement.owner[taken]]).tolist():
        most = asked.most(np.full(nodes, g), np.arange(nodes)) > 0
        free = most & ends[-1 - nodes : -1] & (asked.weight > 0.0)
        wanted[g] = [n for n in order if inside.get((g, n), free[n])]
    most_moves = excess(flow) if excess(flow) > FEW else 1
    made, first = 0, np.argsort(-np.maximum(left[here], 0), kind="stable")
    for again in (False, True):
        for at, v in zip(taken[first].tolist(), here[first].tolist(), strict=True):
            if most_moves > 1 and left[v] <= 0:
                continue
            p = int(placement.owner[at])
            places = wanted[int(cluster.partitions.group[p])]
            replicas = [at, *range(placement.first[p], placement.first[p + 1])]
            for k in replicas if made < most_moves else ():
                was = int(state.node[k])
                if was < 0 or (was == placement.node[k]) != again:
                    continue
                to = place_on_first(problem, state, k, np.array(places, np.int64))
                if to >= 0:
                    places.pop(to)
                    left[v] -= 1
                    made += 1
                    break
    return made


def _ends(arcs: Arcs, flow: LeadFlow) -> NDArray[np.bool_]:
    """Return the places from which a lead can be handed on to where one is lacking, (V,)."""
    able, around, count = flow.surplus < 0, flow.around[:-1], -1
    here = flow.place[flow.taken][arcs.p]
    while count != (count := int(able.sum())):
        able[:-1] |= able[around] & (flow.passed < flow.most)[:-1]
        able[around[able[:-1] & (flow.passed > flow.least)[:-1]]] = True
        able[here[able[flow.place]]] = True
    return able
