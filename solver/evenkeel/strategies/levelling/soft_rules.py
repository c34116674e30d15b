"""Soft rules give way where a replica would otherwise have no node."""

import numpy as np

from evenkeel.model.rules import Rule
from evenkeel.strategies.levelling.run_state import Run
from evenkeel.strategies.shared.compile import compile_problem, compile_state
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first


def place_past_soft_rules(run: Run) -> None:
    """Place what only soft limits keep from having a node."""
    waiting = run.forced & (run.state.node < 0)
    cluster = run.request.cluster
    if not waiting.any() or not any(_is_soft(rule) for rule in cluster.rules):
        return
    now, nodes = run.placement, run.problem.nodes
    run.problem = compile_problem(cluster, nodes.watermark, nodes.weight, soft=False)
    run.state = compile_state(cluster, run.problem, now)
    scan = new_scan(run.problem, np.zeros(nodes.watermark.shape[0]))
    order = largest_first(run.problem, waiting)
    may_wait = run.state.leader >= 0
    best_fit(run.problem, run.state, scan, order, waiting, may_wait, 1.0, 0, len(order))


def _is_soft(rule: Rule) -> bool:
    return any(not limit.hard for limit in rule.limits())
