"""Mending rules that are broken between replicas: two in one zone, too few voters in a region."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.audit.terms import broken_terms
from evenkeel.measure.audit.violations import KINDS, Violations
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.levelling.make_room import make_room_to_lead
from evenkeel.methods.levelling.pair_moves import kinds_of, new_counts
from evenkeel.methods.levelling.run_state import Run
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.levelling.leaders.seats import seat_leaders
from evenkeel_kernels.levelling.pair_mending import mend_pairs
from evenkeel_kernels.levelling.repair import mend
from evenkeel_kernels.levelling.slices import RULES, slices

PAIRED = 32
"""Partitions mended by pairs between two looks at the clock."""


def rules_broken(run: Run, placement: Placement) -> list[Violations]:
    """Rules broken in a placement that moves can mend; who leads is another matter."""
    standing = PlacementCounts.of(run.request.cluster, placement)
    found = broken_limits(standing) + broken_terms(standing)
    return [one for one in found if one.kind != "lead" and one.count]


def some_mended(run: Run) -> bool:
    """Whether hard rules of some kind, capacities among them, are broken less often than before."""
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


def mend_rules(run: Run) -> bool:
    """Mend broken rules, one move at a time; whether any move was made and left a node too full."""
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(problem.nodes.watermark.shape[0]))
    left, made, reached = np.array([run.most_moves - run.moves, 0]), np.zeros(1, np.int64), 0
    while reached < len(state.leader) and run.look("mend"):
        left[1] = RULES
        reached = mend(problem, state, scan, reached, left, made)
    return bool(made[0] > 0) and run.ratio > 1.0


def mend_leaders(run: Run) -> bool:
    """Let a replica move where a partition has none on a node that may lead.

    Returns whether any did and left a node too full.
    """
    problem, state = run.problem, run.state
    ill = _led_by_none(run)
    if len(ill) == 0:
        return False
    scan = new_scan(problem, np.zeros(len(state.load)))
    return seat_leaders(problem, state, scan, ill) > 0 and run.ratio > 1.0


def make_way_for_leaders(run: Run) -> bool:
    """Let others make way where a partition finds no room on a node that may lead.

    Returns whether any did and left a node too full.
    """
    ill = _led_by_none(run)
    if len(ill) == 0:
        return False
    seated = make_room_to_lead(
        run.problem, run.state, run.forced, ill, run.most_moves, lambda: run.look("make room")
    )
    return seated > 0 and run.ratio > 1.0


def _led_by_none(run: Run) -> NDArray[np.int64]:
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


def mend_in_pairs(run: Run) -> None:
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
    before, after = new_counts(problem), new_counts(problem)
    for begin, end in slices(len(partitions), PAIRED):
        mend_pairs(
            problem, state, run.targets, run.forced, run.dropped, partitions[begin:end], kind,
            int(kind.max(initial=-1)) + 1, looks, before, after,
        )  # fmt: skip
        if not run.look("pairs"):
            break
