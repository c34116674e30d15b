"""Relax soft rules, the lightest first, for placing and, where asked for, for goals."""

import numpy as np

from evenkeel.methods.levelling.level import level_pairs, place_and_level
from evenkeel.methods.levelling.repair import place
from evenkeel.methods.levelling.rule_repair import rules_broken
from evenkeel.methods.levelling.run_state import Run, placed_state
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.model.goals import Goals
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.levelling.best_fit import repairs_first
from evenkeel_kernels.levelling.repair import mend

MOST_FAILURES = 64
"""Partitions that could not be repaired within the targets before no more are tried."""


def place_past_soft_rules(run: Run) -> None:
    """Place what only soft limits keep from having a node."""
    if not run.waiting.any():
        return
    yielded = False
    for weight in soft_weights(run):
        waiting = run.waiting
        if run.stop is not None or not waiting.any():
            break
        ignore_soft_rules(run, weight)
        yielded = True
        place(run, repairs_first(run.problem, run.state, waiting, waiting), "soft rules")
    if yielded and run.stop is None:
        repair_within_targets(run)


def level_past_soft_rules(run: Run) -> None:
    """Level what only soft limits keep above its target, if they shall yield to goals."""
    goals = run.request.goals
    if not isinstance(goals, Goals) or not goals.soft_yield:
        return
    yielded = False
    for weight in soft_weights(run):
        if run.stop is not None or run.ratio <= 1.0:
            break
        ignore_soft_rules(run, weight)
        place_and_level(run)
        level_pairs(run)
        yielded = True
    if yielded:
        repair_within_targets(run)


def repair_within_targets(run: Run) -> None:
    """Enforce all soft rules again, and repair those that can hold within the targets."""
    ignore_soft_rules(run, 0.0)
    if run.ratio > 1.0:
        return
    scan = new_scan(run.problem, np.zeros(run.problem.nodes.watermark.shape[0]))
    broken = [one.partition for one in rules_broken(run, run.placement)]
    failed = 0
    for p in np.unique(np.concatenate([[-1], *broken]))[1:].tolist():
        node, leader = run.state.node.copy(), run.state.leader.copy()
        just_this = np.array([run.most_moves - run.moves, 1])
        mend(run.problem, run.state, scan, p, just_this, np.zeros(1, np.int64))
        if run.ratio > 1.0:
            run.restart_from(node, leader)
            failed += 1
        if failed == MOST_FAILURES or not run.look("soft rules"):
            return


def soft_weights(run: Run) -> list[float]:
    """Weights of the soft limits, the least first."""
    rules = run.request.cluster.rules
    return sorted({limit.weight for rule in rules for limit in rule.limits() if not limit.hard})


def ignore_soft_rules(run: Run, weight: float) -> None:
    """Compile anew without the soft limits up to a weight, and stand where it stood."""
    cluster, now, nodes = run.request.cluster, run.placement, run.problem.nodes
    run.problem = compile_problem(
        cluster, nodes.watermark, nodes.weight, soft_from=np.nextafter(weight, np.inf),
        limits=run.request.limits,
    )  # fmt: skip
    run.state = placed_state(cluster, run.problem, now, run.dropped)
