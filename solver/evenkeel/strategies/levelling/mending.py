"""Mending rules that are broken between replicas: two in one zone, too few voters in a region."""

import numpy as np

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.audit.terms import broken_terms
from evenkeel.measure.tally import PlacementCounts
from evenkeel.strategies.levelling.run_state import Run
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.levelling.repair import mend


def rules_broken(run: Run) -> bool:
    """Whether rules are broken that moves can mend; who leads is another matter."""
    standing = PlacementCounts.of(run.request.cluster, run.request.start)
    found = broken_limits(standing) + broken_terms(standing)
    return any(one.count for one in found if one.kind != "lead")


def mend_rules(run: Run) -> bool:
    """Mend broken rules, one move at a time; whether any move was made and left a node too full."""
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(problem.nodes.watermark.shape[0]))
    if mend(problem, state, scan, 0, len(state.leader), run.most_moves - run.moves) == 0:
        return False
    return run.pressure > 1.0
