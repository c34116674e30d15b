"""Balance leaders without moving replicas: choose them again, then transfer single leads."""

from collections.abc import Callable, Generator, Iterator

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.problem import UNLIMITED, Problem, State
from evenkeel_kernels.levelling.leaders.chains import chain_leaders
from evenkeel_kernels.levelling.leaders.moves import (
    reinstate,
    restore_leaders,
    return_leaders,
    spread_leaders,
)
from evenkeel_kernels.levelling.leaders.rationing import ration_leaders
from evenkeel_kernels.levelling.leaders.transport import transport_leaders
from evenkeel_kernels.levelling.penalty import Targets, highest
from evenkeel_kernels.levelling.threshold_walk import mean_square

# leaders too many, times replicas, for which chains are looked for: each may look at all
MOST_CHAINED = 5e7


def binds_leaders(problem: Problem) -> bool:
    """Whether a budget asks who leads: it counts changes, or the data of leaders that moved."""
    budgets = problem.budgets
    return bool(budgets.leader_changes < UNLIMITED or budgets.data_dimension >= 0)


def level_leaders(
    problem: Problem, state: State, targets: Targets, was: NDArray[np.int16], sweeps: int
) -> Generator[int]:
    """Choose leaders so that overfull nodes cool, few of the slots ``was (P,)`` losing the lead.

    ``targets`` has the threshold of the penalty for what is handed on one by one. Yields the
    partitions looked at, slice by slice. No node ends further above its capacity, also where the
    caller stops halfway.
    """
    if highest(state, targets) <= 1.0:
        return
    before, over = state.leader.copy(), _over_capacity(problem, state)
    taken_back = False
    try:
        if not binds_leaders(problem):
            yield from transport_leaders(problem, state, targets, was)
        elif problem.budgets.leader_changes < UNLIMITED:
            yield from ration_leaders(problem, state, targets._replace(threshold=1.0), True)
        yield from _hand_over_rest(problem, state, targets._replace(threshold=1.0), sweeps)
    finally:
        taken_back = bool((_over_capacity(problem, state) > over).any())
        if taken_back:
            return_leaders(problem, state, before)
    if taken_back:
        yield from _hand_over_rest(problem, state, targets, sweeps)


def _hand_over_rest(
    problem: Problem, state: State, targets: Targets, sweeps: int
) -> Generator[int]:
    """Hand leaders on, one by one and in chains, while nodes are overfull; yields as it goes."""
    if highest(state, targets) <= 1.0:
        return
    partitions = problem.partitions
    large = mean_square(targets, partitions.leader_load - partitions.voter_load) ** 0.5
    yield from spread_leaders(problem, state, targets, 0.5 + 0.5 * targets.threshold, sweeps, large)
    most = np.divide(
        1.0,
        targets.leader_scale,
        where=targets.leader_scale > 0.0,
        out=np.full(len(targets.leader_scale), np.inf),
    )
    too_many = np.maximum(state.leaders - most, 0.0).sum()
    if too_many * len(state.node) <= MOST_CHAINED:
        chain_leaders(problem, state, targets)


def _over_capacity(problem: Problem, state: State) -> NDArray[np.float64]:
    """How far each node and each domain is above its capacity, a row per dimension."""
    capacity = problem.nodes.capacity * (1.0 + 1e-9)
    nodes = np.maximum(state.load + state.held - capacity, 0.0)
    if len(problem.domains.limited) == 0:
        return nodes
    shared = problem.domains.tier_capacity * (1.0 + 1e-9)
    return np.hstack([nodes, np.maximum(state.domain_load - shared, 0.0)])


def recall(
    problem: Problem,
    state: State,
    targets: Targets,
    was: NDArray[np.int16],
    sweeps: int,
    exchange: Callable[[], Iterator[int]],
) -> Generator[int]:
    """Choose leaders anew after a walk, so that fewer of the slots ``was (P,)`` lose the lead.

    ``state`` is level; where it would not be again, or no fewer leaders change, it stays as it is.
    What little stays above its target is for ``exchange``, which makes no further move. Yields the
    partitions looked at, slice by slice.
    """
    if binds_leaders(problem):
        return
    nodes, before, over = state.node.copy(), state.leader.copy(), _over_capacity(problem, state)
    tight = targets._replace(threshold=1.0)
    try:
        yield from transport_leaders(problem, state, tight, was, keep=True)
        yield from _hand_over_rest(problem, state, tight, sweeps)
        if highest(state, tight) > 1.0:
            yield from exchange()
        restore_leaders(problem, state, tight, was)
    finally:
        fewer = int((state.leader != was).sum()) < int((before != was).sum())
        worse = (_over_capacity(problem, state) > over).any()
        if not fewer or worse or highest(state, targets) > 1.0:
            reinstate(problem, state, nodes, before)
