"""Repair broken rules on the replicas of a partition or group, such as two in one zone.

References
----------
cockroachdb/cockroach, issue 88829: a better placement that takes two moves through a worse one.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, Violations, audit, broken_limits, broken_terms
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.levelling.make_room import make_room_to_lead
from evenkeel.methods.levelling.run_state import SearchRun
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import SKEW, Problem, State
from evenkeel_kernels.levelling.group_skew import even_out
from evenkeel_kernels.levelling.leaders.lone_leaders import place_leaders
from evenkeel_kernels.levelling.pair_moves import move_in_tandem, repair_pairs
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import Targets, highest
from evenkeel_kernels.levelling.repair import repair_partitions, send_siblings
from evenkeel_kernels.levelling.slices import RULES, slices

GROUPS = 32  # groups whose skews are lowered between two looks at the clock

PAIRED = 32  # partitions repaired by pairs between two looks at the clock


def rules_broken(run: SearchRun, placement: Placement) -> list[Violations]:
    """Rules broken in a placement that moves can repair, leaders excluded."""
    standing = PlacementCounts.of(run.request.cluster, placement)
    found = broken_limits(standing) + broken_terms(standing)
    return [one for one in found if one.kind != "lead" and one.count]


def some_repaired(run: SearchRun) -> bool:
    """Return whether hard rules of some kind, or capacities, are broken less often than before."""
    was, now = (
        Counter(
            {
                kind: n
                for kind, n in audit(run.request.cluster, one).counts.items()
                if KINDS[kind].hard
            }
        )
        for one in (run.request.start, run.placement)
    )
    return bool(was - now)


def repair_rules(run: SearchRun, most: int | None = None) -> bool:
    """Repair broken rules move by move; return whether a move was made and left a node too full."""
    # at ``most`` so many more replicas leave where they came from, by default as many as may
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(problem.nodes.watermark.shape[0]))
    most = run.moves_left if most is None else most
    left, made, reached = np.array([most, 0]), np.zeros(1, np.int64), 0
    while reached < len(state.leader) and run.look():
        left[1] = RULES
        reached = repair_partitions(problem, state, scan, reached, left, made)
    if made[0] and run.ratio > 1.0 and run.stop is None and not rules_broken(run, run.placement):
        kind = kinds_of(problem)
        while send_siblings(problem, state, run.targets, run.forced, kind) and run.look():
            pass
    return bool(made[0] > 0) and run.ratio > 1.0


def only_crowded(run: SearchRun) -> bool:
    """Return whether all that is broken is soft limits of groups on nodes, and none are spent."""
    last = len(run.problem.domains.domain) - 1  # of the nodes
    crowds = all(
        not KINDS[one.kind].hard and (one.partition < 0).all() and (one.tier == last).all()
        for one in run.broken
    )
    return crowds and not run.problem.budgets.binds and size_of(run.request.cluster) > SMALL


def even_out_groups(run: SearchRun) -> bool:
    """Lower the skews of groups to what is allowed; whether that left a node too full."""
    problem, rules = run.problem, run.problem.rules
    skewed = rules.group_limit[:, 4] >= 0
    if not skewed.any():
        return False
    groups = len(rules.group_limit_first) - 1
    group = np.where(run.dropped, -1, problem.partitions.group[problem.partitions.owner])
    first, member = by_node(group.astype(np.int32), groups)
    domains = np.diff(problem.domains.domain_offset)[rules.group_limit[skewed, 0]]
    enough = 2 * int(domains.max()) + 2
    journal, length, made = np.zeros((enough, 2), np.int64), 2, 0
    while length < 2 * enough and run.stop is None:
        length = length if problem.budgets.binds else enough
        for begin, end in slices(groups, GROUPS):
            if not run.look():
                break
            made += even_out(
                problem, run.state, run.forced, first, member, begin, end, journal[:length]
            )
        length *= 2
    return made > 0 and run.ratio > 1.0


def repair_leaders(run: SearchRun) -> bool:
    """Let a replica move where a partition has none on a node that may lead."""
    problem, state = run.problem, run.state
    ill = _led_by_none(run)
    if len(ill) == 0:
        return False
    scan = new_scan(problem, np.zeros(len(state.load)))
    return place_leaders(problem, state, scan, ill) > 0 and run.ratio > 1.0


def make_way_for_leaders(run: SearchRun) -> bool:
    """Let others make way where a partition finds no room on a node that may lead."""
    ill = _led_by_none(run)
    if len(ill) == 0:
        return False
    made = make_room_to_lead(run.problem, run.state, run.forced, ill, run.look)
    return made > 0 and run.ratio > 1.0


def _led_by_none(run: SearchRun) -> NDArray[np.int64]:
    """List the partitions whose leader stands where it may not lead, or that have none."""
    problem, state, cluster = run.problem, run.state, run.request.cluster
    if not has_leaders(cluster) or problem.nodes.leads.all():
        return np.zeros(0, np.int64)
    if state.leaders.sum() == len(state.leader) and not state.leaders[~problem.nodes.leads].any():
        return np.zeros(0, np.int64)
    leads = np.append(problem.nodes.leads, False)
    first = problem.partitions.first[:-1]
    # a last row without slots begins behind all replicas
    led = state.node.take(first + np.maximum(state.leader, 0), mode="clip")
    at = np.where(state.leader >= 0, led, -1)
    return np.flatnonzero(~leads[at] & (cluster.partitions.replicas > 0))


def repair_in_pairs(run: SearchRun) -> None:
    """Move two replicas of a partition at once, where one waits or a rule was broken."""
    problem, state = run.problem, run.state
    partitions = np.unique(problem.partitions.owner[run.waiting]).astype(np.int64)
    if run.broken:
        found = [one.partition for one in run.broken]
        partitions = np.unique(np.concatenate([partitions, *found])).astype(np.int64)
        partitions = partitions[partitions >= 0]
    if len(partitions) == 0 or run.stop is not None:
        return
    kind = kinds_of(problem)
    looks = np.array([run.parameters.pair_looks], np.int64)
    before = new_counts(problem)
    for begin, end in slices(len(partitions), PAIRED):
        repair_pairs(
            problem, state, run.targets, run.forced, run.dropped, partitions[begin:end], kind,
            int(kind.max(initial=-1)) + 1, looks, before,
        )  # fmt: skip
        if not run.look():
            break


def move_pairs(
    problem: Problem,
    state: State,
    targets: Targets,
    most_moves: int,
    may_go_on: Callable[[], bool],
    parameters: Parameters = DEFAULT,
) -> int:
    """Move pairs of replicas off overfull nodes for as long as that helps; returns the looks."""
    kind = kinds_of(problem)
    kinds = int(kind.max(initial=-1)) + 1
    left = np.array([most_moves, parameters.pair_looks], np.int64)
    before = new_counts(problem)
    made = 1
    while made and highest(state, targets) > 1.0:
        made = 0
        replica = _on_hot_nodes(problem, state, targets)
        for begin in range(0, len(replica), parameters.pair_stretch):
            end = min(begin + parameters.pair_stretch, len(replica))
            made += move_in_tandem(
                problem, state, targets, replica, kind, kinds, left, before, begin, end
            )
            if left[0] < 2 or left[1] <= 0 or not may_go_on():
                return parameters.pair_looks - int(left[1])
    return parameters.pair_looks - int(left[1])


def new_counts(problem: Problem) -> NDArray[np.int64]:
    """Return a buffer for what any one partition breaks, as `rows_of` counts it."""
    rules = problem.rules
    rows = SKEW * np.diff(rules.limit_first) + np.diff(rules.term_first)
    return np.zeros(int(rows.max(initial=0)), np.int64)


def kinds_of(problem: Problem) -> NDArray[np.int64]:
    """Return classes of nodes with the same domains, masks and leader rank, (N,)."""
    rules = problem.rules
    columns = [
        problem.domains.domain[:-1],
        rules.allowed,
        rules.term_mask,
        rules.lead_rank,
        problem.nodes.accepts[None],
        problem.nodes.leads[None],
    ]
    table = np.concatenate([column.astype(np.int64) for column in columns])
    return np.unique(table, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _on_hot_nodes(problem: Problem, state: State, targets: Targets) -> NDArray[np.int64]:
    """The replicas on overfull nodes, the fullest node's first, and of these the largest."""
    ratio = (state.load * targets.scale).max(axis=0)
    ratio = np.maximum(ratio, state.leaders * targets.leader_scale)
    first, member = by_node(state.node, len(ratio))
    rows = []
    for n in np.argsort(-ratio, kind="stable").tolist():
        if ratio[n] <= 1.0:
            break
        row = member[first[n] : first[n + 1]]
        load = problem.partitions.voter_load[problem.partitions.owner[row]]
        size = (load * targets.scale[:, n]).max(axis=1)
        rows.append(row[np.argsort(-size, kind="stable")])
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)
