"""Soft rules give way, the cheapest first, where a replica would otherwise have no node."""

import numpy as np

from evenkeel.strategies.levelling.run_state import Run, seated
from evenkeel.strategies.shared.compile import compile_problem
from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first


def place_past_soft_rules(run: Run) -> None:
    """Place what only soft limits keep from having a node; the lightest limits yield first."""
    cluster = run.request.cluster
    if not run.waiting.any():
        return
    weights = {
        limit.weight for rule in cluster.rules for limit in rule.limits() if not limit.hard
    }  # fmt: skip
    for weight in sorted(weights):
        waiting = run.waiting
        if not waiting.any():
            return
        now, nodes = run.placement, run.problem.nodes
        run.problem = compile_problem(
            cluster, nodes.watermark, nodes.weight, soft_from=np.nextafter(weight, np.inf),
            limits=run.request.limits,
        )  # fmt: skip
        run.state = seated(cluster, run.problem, now, run.dropped)
        scan = new_scan(run.problem, np.zeros(nodes.watermark.shape[0]))
        order = largest_first(run.problem, waiting)
        led = run.state.leader >= 0
        best_fit(run.problem, run.state, scan, order, waiting, led, 0.5 * FAR, 0, len(order))
