"""Refining in plain Python: what is broken, and what strains a node.

All is counted anew from where replicas are and who leads.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.annealing import Aim, Course
from tests.naive.core import state as naive

NOWHERE = -1


def may_lead(problem: Problem, state: State, p: int, k: int) -> bool:
    """Whether ``k`` stands where a leader of ``p`` may be."""
    n = int(state.node[k])
    rank = problem.rules.lead_rank[problem.partitions.rule[p]]
    return n >= 0 and bool(problem.nodes.leads[n]) and rank[n] < 255


def faults_of(problem: Problem, state: State, course: Course, p: int) -> int:
    """Count replicas too many in a domain, or outside, without a node, and who leads wrongly."""
    rules, row = problem.rules, naive.row(problem, p)
    q = problem.partitions.rule[p]
    count = 0
    for level, most, *_ in rules.limit[rules.limit_first[q] : rules.limit_first[q + 1]].tolist():
        there = naive.domains_of(problem, state, level, row)
        count += sum(max(0, seen - most) for seen in there.values())
    placed = [k for k in row if state.node[k] >= 0]
    for term in rules.term[rules.term_first[q] : rules.term_first[q + 1]]:
        inside = naive.inside(problem, state, term, row)
        count += len(placed) - inside if term[0] < 0 else max(0, int(term[0]) - inside)
    count += sum(state.node[k] < 0 and bool(course.forced[k]) for k in row)
    if course.led[p]:
        rank = rules.lead_rank[q]
        slot = int(state.leader[p])
        fit = [k for k in row if may_lead(problem, state, p, k)]
        leads = slot >= 0 and row[slot] in fit
        best = min((rank[state.node[k]] for k in fit), default=255)
        count += not leads or best < rank[state.node[row[slot]]]
    return int(count)


def strains(problem: Problem, state: State, aim: Aim) -> np.ndarray:
    """Penalty of every node for what it carries and leads beyond the aim, (N,)."""
    counts = naive.recount(problem, state)
    targets = aim.targets
    over = np.maximum(counts["load"] * targets.scale - targets.threshold, 0.0) ** 2
    led = np.maximum(counts["leaders"] * targets.leader_scale - targets.threshold, 0.0) ** 2
    lack = np.where(aim.floor > 0.0, aim.floor - counts["load"], 0.0)
    short = np.maximum(lack, 0.0) * np.where(aim.floor > 0.0, aim.asked.scale, 0.0)
    return np.asarray(over.sum(0) + led + (short**2).sum(0))


def worth(problem: Problem, state: State, aim: Aim, course: Course) -> tuple[float, ...] | None:
    """Broken rules and what is beyond budgets, moves, changes of leaders, roles traded."""
    # None where a node carries too much
    if (strains(problem, state, aim) > 0.0).any():
        return None
    faults = sum(faults_of(problem, state, course, p) for p in range(len(state.leader)))
    faults += naive.overrun(problem, state)
    changes = leader_changes(problem, state)
    return faults, moves(problem, state), changes, trades(problem, state, course)


def moves(problem: Problem, state: State) -> int:
    """Count the replicas on nodes that are new to their partition."""
    rows = [naive.row(problem, p) for p in range(len(state.leader))]
    home = problem.partitions.home
    stood = [{int(home[k]) for k in row} for row in rows]
    return sum(
        state.node[k] >= 0 and int(state.node[k]) not in before
        for before, row in zip(stood, rows, strict=True)
        for k in row
    )


def trades(problem: Problem, state: State, course: Course) -> int:
    """Count the replicas that stand where another of their partition stood, if roles differ."""
    home, count = problem.partitions.home, 0
    for p in np.flatnonzero(course.mixed).tolist():
        row = naive.row(problem, p)
        stood = {int(home[k]) for k in row}
        at = [(int(home[k]), int(state.node[k])) for k in row if state.node[k] >= 0]
        count += sum(was != now and now in stood for was, now in at)
    return count


def leader_changes(problem: Problem, state: State) -> int:
    """Count the partitions that another node leads than before, or than could lead them at once."""
    count, partitions = 0, problem.partitions
    for p, slot in enumerate(state.leader.tolist()):
        row, old = naive.row(problem, p), int(partitions.led_from[p])
        free = {int(partitions.home[k]) for k in row if partitions.ready[k]} if old < 0 else {old}
        count += slot >= 0 and int(state.node[row[slot]]) not in free
    return count


def _crowds_closed(problem: Problem, course: Course, node: tuple[int, ...]) -> bool:
    """Whether a node that accepts none of a partition has more of it than it may keep."""
    partitions = problem.partitions
    for p in range(len(partitions.first) - 1):
        row = naive.row(problem, p)
        for n in {node[k] for k in row} - {NOWHERE}:
            allowed = problem.rules.allowed[partitions.mask[p]][n]
            if problem.nodes.accepts[n] and allowed:
                continue
            kept = sum(partitions.home[k] == n and not course.forced[k] for k in row)
            if sum(node[k] == n for k in row) > kept:
                return True
    return False


def everything(problem: Problem, state: State, course: Course) -> Iterator[State]:
    """Go through placements and leaders of a tiny cluster that rules do not exclude outright."""
    # a replica stays without a node only where it was without one
    partitions, rules = problem.partitions, problem.rules
    nodes = range(len(problem.nodes.accepts))
    where: list[list[int]] = []
    for k, home in enumerate(partitions.home.tolist()):
        allowed = rules.allowed[partitions.mask[partitions.owner[k]]]
        keeps = not course.forced[k]
        if home < 0 and keeps:
            where.append([NOWHERE])
            continue
        row = naive.row(problem, partitions.owner[k])
        kept = {int(partitions.home[i]) for i in row if not course.forced[i]}
        may = [n for n in nodes if n in kept or (problem.nodes.accepts[n] and allowed[n])]
        if not keeps:
            may = [n for n in may if n != home] + [NOWHERE] * (home < 0)
        where.append(may)
    slots = [range(-1, len(naive.row(problem, p))) for p in range(len(state.leader))]
    for node in product(*where):
        if _crowds_closed(problem, course, node):
            continue
        for leader in product(*slots):
            yield state._replace(node=np.array(node, np.int32), leader=np.array(leader, np.int16))
