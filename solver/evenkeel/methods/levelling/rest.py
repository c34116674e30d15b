"""Termination tests of the search: remaining work, excess over targets, worth of the moves."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import broken_terms
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.levelling.run_state import SearchRun
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel_kernels.core.node_scan import ROUNDING, inverse
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.penalty import Targets

NO_TARGET = 1e29  # 1 / the target of a node that may carry nothing
HIGH = 0.5  # part of the greatest excess from which on a node is as high as the highest


def at_rest(run: SearchRun) -> bool:
    """Return whether nothing must move, all leaders may lead and all nodes are within target."""
    return nothing_due(run) and run.ratio <= 1.0


def nothing_due(run: SearchRun) -> bool:
    """Return whether nothing must move, and every leader may lead."""
    if run.forced.any() or _is_worth_leading(run):
        return False
    state, partitions = run.state, run.problem.partitions
    leads = np.append(run.problem.nodes.leads, False)
    replica = partitions.first[:-1] + np.maximum(state.leader, 0)
    led = (state.leader >= 0) & (partitions.first[1:] > partitions.first[:-1])
    led[led] = leads[state.node[replica[led]]]
    return bool(led.all()) or not has_leaders(run.request.cluster)


def is_worth_it(run: SearchRun, before: float) -> bool:
    """Return whether the goals are met, or the excesses are clearly smaller than ``before``."""
    # Where goals cannot be reached, every run finds something a little better; each would move
    # replicas for it, and the next one others.
    after = excess(run.state, run.targets)
    return after == 0.0 or after < run.parameters.worth_moving * before


def count_misled(run: SearchRun) -> int:
    """Count the partitions that are led from a worse choice of their rule than could be."""
    cluster = run.request.cluster
    if not any(rule.lead for rule in cluster.rules):
        return 0
    found = broken_terms(PlacementCounts.of(cluster, run.placement))
    return sum(len(one.amount) for one in found if one.kind == "lead")


def _is_worth_leading(run: SearchRun) -> bool:
    """Return whether replicas may move since too many leaders are a worse choice of their rule."""
    misled = count_misled(run)
    if size_of(run.request.cluster) <= SMALL:
        return misled > 0
    return misled > run.parameters.leader_preference_violations * len(run.state.leader)


def excess(state: State, targets: Targets) -> float:
    """Add up how far nodes are above their targets, of load and leaders, in units of these."""
    scale = np.where(targets.scale < NO_TARGET, targets.scale, 0.0)
    leader_scale = np.where(targets.leader_scale < NO_TARGET, targets.leader_scale, 0.0)
    over = np.maximum(state.load * scale - 1.0, 0.0).sum()
    return float(over + np.maximum(state.leaders * leader_scale - 1.0, 0.0).sum())


class Height(NamedTuple):
    """How far from its targets a placement is, the worst first."""

    is_overrun: bool  # some node is beyond its capacity
    fullest: float  # of the excess above a target, in units of the least target of any node; or 1
    excess: float  # all that is above targets, in units of them


def height_of(run: SearchRun) -> Height:
    """Return how far from the targets the run is."""
    problem, load = run.problem, run.state.load
    nodes, targets = problem.nodes, run.targets
    over = load * targets.scale > 1.0
    led = float((run.state.leaders * targets.leader_scale).max(initial=1.0))
    full = float((load * inverse(evenly_full(problem)))[over].max(initial=led))
    beyond = bool((load > nodes.capacity * (1.0 + ROUNDING)).any())
    return Height(beyond, max(1.0, full), excess(run.state, targets))


def evenly_full(problem: Problem) -> NDArray[np.float64]:
    """Return the load of each node at the utilisation of the least target of any, (D, N)."""
    nodes = problem.nodes
    counts = (nodes.capacity > 0.0) & np.isfinite(nodes.capacity) & (nodes.watermark > 0.0)
    part = np.where(counts, nodes.watermark, np.inf) / np.where(counts, nodes.capacity, 1.0)
    least = part.min(axis=1, initial=np.inf)[:, None]
    even: NDArray[np.float64] = nodes.capacity * np.where(np.isfinite(least), least, 1.0)
    return even


def highest_of(state: State, targets: Targets) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the nodes about as far above their targets as the worst: loads (D, N), leaders."""
    # none where all nodes are within them
    over, led_over = state.load * targets.scale - 1.0, state.leaders * targets.leader_scale - 1.0
    high = HIGH * max(float(over.max(initial=0.0)), float(led_over.max(initial=0.0)))
    return (over >= high) & (high > 0.0), (led_over >= high) & (high > 0.0)


def let_be_the_highest(state: State, targets: Targets) -> None:
    """Set the targets of the fullest nodes to their load and leaders."""
    high, led_high = highest_of(state, targets)
    targets.scale[high] = 1.0 / state.load[high]
    targets.leader_scale[led_high] = 1.0 / state.leaders[led_high]
