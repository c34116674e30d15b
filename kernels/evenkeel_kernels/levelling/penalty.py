"""Penalty of overload: the sum of squared excesses of nodes over their watermarks.

The *target ratio* of a node is its load in units of its watermark, in each dimension, and its
leaders in units of the most it should lead. A node whose target ratio is above 1 is *overfull*. The
penalty that the searches lower is the sum of the squares of what is above ``threshold``, a little
below 1: a linear one would be as happy to pass an excess on whole as to spread it thin.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc
from evenkeel_kernels.core.node_scan import ROUNDING, inverse
from evenkeel_kernels.core.problem import (
    PartitionArrays,
    Problem,
    State,
    index,
    leads_now,
    load_of,
    squared_excess,
)


@by_reference
class Targets(NamedTuple):
    """What turns loads into target ratio."""

    scale: NDArray[np.float64]  # (D, N) 1 / watermark
    leader_scale: NDArray[np.float64]  # (N,) 1 / most leaders
    threshold: float  # target ratio above it is penalised


def new_targets(problem: Problem, most_leaders: NDArray[np.float64], threshold: float) -> Targets:
    """Return targets from the watermarks and ``most_leaders (N,)``, inf for no limit."""
    # what exceeds one by no more than a rounding error is within: the target may be exact, and what
    # a node carries a sum of many shares of it
    return Targets(
        inverse(problem.nodes.watermark * (1.0 + ROUNDING)),
        inverse(most_leaders * (1.0 + ROUNDING)),
        threshold,
    )


@inline_only
def passing(state: State, targets: Targets, d: int, here: int, there: int, load: float) -> float:
    """Change of the penalty in dimension ``d`` if ``load`` went from node ``here`` to ``there``."""
    before_here = state.load[d, here] * targets.scale[d, here]
    before_there = state.load[d, there] * targets.scale[d, there]
    after_here = (state.load[d, here] - load) * targets.scale[d, here]
    after_there = (state.load[d, there] + load) * targets.scale[d, there]
    return (
        squared_excess(after_here, targets.threshold)
        - squared_excess(before_here, targets.threshold)
        + squared_excess(after_there, targets.threshold)
        - squared_excess(before_there, targets.threshold)
    )


@inline_only
def passing_leader(state: State, targets: Targets, here: int, there: int) -> float:
    """Change of the penalty if one leader fewer stood on ``here`` and one more on ``there``."""
    scale_here, scale_there = targets.leader_scale[here], targets.leader_scale[there]
    return (
        squared_excess((state.leaders[here] - 1) * scale_here, 1.0)
        - squared_excess(state.leaders[here] * scale_here, 1.0)
        + squared_excess((state.leaders[there] + 1) * scale_there, 1.0)
        - squared_excess(state.leaders[there] * scale_there, 1.0)
    )


@inline_only
def passing_node(
    problem: Problem, state: State, targets: Targets, k: int, n: int, sign: float
) -> float:
    """Change of the penalty if node ``n`` had replica ``k`` more (``sign`` 1.0) or less (-1.0)."""
    change = 0.0
    for d in range(state.load.shape[0]):
        more = sign * load_of(problem.partitions, state, k, d)
        change += squared_excess((state.load[d, n] + more) * targets.scale[d, n], targets.threshold)
        change -= squared_excess(state.load[d, n] * targets.scale[d, n], targets.threshold)
    if leads_now(problem.partitions.first, state.leader, problem.partitions.owner[k], k):
        change += squared_excess((state.leaders[n] + sign) * targets.leader_scale[n], 1.0)
        change -= squared_excess(state.leaders[n] * targets.leader_scale[n], 1.0)
    return change


@inline_only
def passing_lead(
    partitions: PartitionArrays, state: State, targets: Targets, p: int, here: int, there: int
) -> float:
    """Change of the penalty if the leader of ``p`` stood on ``there`` instead of ``here``."""
    change = passing_leader(state, targets, here, there)
    for d in range(state.load.shape[0]):
        extra = partitions.leader_load[p, d] - partitions.voter_load[p, d]
        if extra != 0.0:
            change += passing(state, targets, d, here, there, extra)
    return change


@inline_only
def passing_replica(
    partitions: PartitionArrays, state: State, targets: Targets, k: int, here: int, there: int
) -> float:
    """Change of the penalty if replica ``k`` stood on ``there`` instead of ``here``."""
    change = 0.0
    for d in range(state.load.shape[0]):
        change += passing(state, targets, d, here, there, load_of(partitions, state, k, d))
    if leads_now(partitions.first, state.leader, index(partitions.owner[k]), k):
        change += passing_leader(state, targets, here, there)
    return change


@inline_only
def passing_pair(
    partitions: PartitionArrays,
    state: State,
    targets: Targets,
    k: int,
    i: int,
    here: int,
    there: int,
) -> float:
    """Change of the penalty if ``k`` on ``here`` and ``i`` on ``there`` traded places."""
    change = 0.0
    p, q = index(partitions.owner[k]), index(partitions.owner[i])
    k_leads = leads_now(partitions.first, state.leader, p, k)
    if k_leads != leads_now(partitions.first, state.leader, q, i):
        giver, taker = (here, there) if k_leads else (there, here)
        change = passing_leader(state, targets, giver, taker)
    for d in range(state.load.shape[0]):
        load = load_of(partitions, state, k, d) - load_of(partitions, state, i, d)
        change += passing(state, targets, d, here, there, load)
    return change


@inline_only
def is_overfull(state: State, targets: Targets, n: int) -> bool:
    """Whether node ``n`` is above a watermark, or leads more than it should."""
    for d in range(state.load.shape[0]):
        if state.load[d, n] * targets.scale[d, n] > 1.0:
            return True
    return state.leaders[n] * targets.leader_scale[n] > 1.0


def count_overfull(state: State, targets: Targets) -> int:
    """Count the overfull nodes. O(D N)."""
    overfull = (state.load * targets.scale > 1.0).any(axis=0)
    return int((overfull | (state.leaders * targets.leader_scale > 1.0)).sum())


def penalty(state: State, targets: Targets) -> float:
    """Sum up the penalty of all nodes. O(D N)."""
    over = np.maximum(state.load * targets.scale - targets.threshold, 0.0)
    leaders = np.maximum(state.leaders * targets.leader_scale - 1.0, 0.0)
    return float((over**2).sum() + (leaders**2).sum())


@no_alloc
def highest(state: State, targets: Targets) -> float:
    """Greatest target ratio anywhere: the cluster is level once it is at most 1. O(D N)."""
    most = 0.0
    for n in range(state.load.shape[1]):
        for d in range(state.load.shape[0]):
            most = max(most, state.load[d, n] * targets.scale[d, n])
        most = max(most, state.leaders[n] * targets.leader_scale[n])
    return most
