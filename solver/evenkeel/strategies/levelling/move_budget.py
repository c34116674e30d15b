"""Keeping within ``Limits``: moves that help least are taken back, repairs last of all."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.limits import Limits
from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first
from evenkeel_kernels.levelling.move_budget import price_returns, take_back
from evenkeel_kernels.levelling.penalty import Gauge

ROUNDS = 16
"""Prices are asked anew after each sixteenth of what has to go back."""

NO_LIMIT = 2**62


def is_limited(limits: Limits) -> bool:
    """Whether any budget is set."""
    return limits != Limits()


def keep_within(
    problem: Problem,
    state: State,
    gauge: Gauge,
    limits: Limits,
    forced: NDArray[np.bool_],
    bytes_dimension: int,
) -> bool:
    """Take moves back until no budget is exceeded."""
    home = problem.partitions.home
    any_taken = False
    for repairs in (False, True):
        while True:
            moved = np.flatnonzero((state.node >= 0) & (state.node != home))
            spent, node_in, node_out = _spent(problem, state, forced, moved, bytes_dimension)
            excess = _excess(limits, spent, node_in, node_out)
            if excess == 0:
                return any_taken
            candidates = moved[forced[moved] == repairs]
            price = np.empty(len(candidates))
            price_returns(problem, state, gauge, candidates, price)
            order = candidates[np.argsort(price, kind="stable")]
            taken = take_back(
                problem, state, order, forced, bytes_dimension,
                np.array([_limit(limits.moves), _limit(limits.bytes)], np.float64), spent,
                _limit(limits.node_in), _limit(limits.node_out), node_in, node_out,
                max(1, excess // ROUNDS),
            )  # fmt: skip
            any_taken = any_taken or taken > 0
            if taken == 0:
                if not repairs:
                    _start_over(problem, state, forced)
                    any_taken = True
                break
    return any_taken


def _limit(value: float | None) -> int:
    return NO_LIMIT if value is None else int(value)


def _spent(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    moved: NDArray[np.int64],
    bytes_dimension: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """What the moves cost: moves and bytes in all, and replicas into and out of each node."""
    nodes = len(state.replicas)
    owner = problem.partitions.owner[moved]
    bytes_moved = 0.0
    if bytes_dimension >= 0:
        leads = problem.partitions.first[owner] + state.leader[owner] == moved
        voter = np.where(state.role[moved] == 1, 0.0, 1.0)
        load = problem.partitions.voter_load[owner, bytes_dimension] * voter
        load += problem.partitions.non_voter_load[owner, bytes_dimension] * (1.0 - voter)
        load = np.where(leads, problem.partitions.leader_load[owner, bytes_dimension], load)
        bytes_moved = float(load.sum())
    left = moved[~forced[moved]]
    came_from = problem.partitions.home[left]
    return (
        np.array([float(len(moved)), bytes_moved]),
        np.bincount(state.node[moved], minlength=nodes),
        np.bincount(came_from[came_from >= 0], minlength=nodes),
    )


def _excess(
    limits: Limits,
    spent: NDArray[np.float64],
    node_in: NDArray[np.int64],
    node_out: NDArray[np.int64],
) -> int:
    """About how many moves have to go back; 0 if no budget is exceeded."""
    excess = max(0, int(spent[0]) - _limit(limits.moves))
    excess += int(np.maximum(node_in - _limit(limits.node_in), 0).sum())
    excess += int(np.maximum(node_out - _limit(limits.node_out), 0).sum())
    if limits.bytes is not None and spent[1] > limits.bytes:
        share = (spent[1] - limits.bytes) / spent[1]
        excess += max(1, int(share * spent[0]))
    return excess


def _start_over(problem: Problem, state: State, forced: NDArray[np.bool_]) -> None:
    """Put everything back where it was, and place anew only what must move.

    Room that a move made may have been taken since, so that undoing moves alone could break rules.
    """
    moved = np.flatnonzero((state.node >= 0) & (state.node != problem.partitions.home))
    repairs, others = moved[forced[moved]], moved[~forced[moved]]
    relocate(problem, state, repairs, np.full(len(repairs), -1, np.int32))
    relocate(problem, state, others, problem.partitions.home[others])
    scan = new_scan(problem, np.zeros(len(state.load)))
    order = largest_first(problem, forced)
    led = np.ones(len(state.leader), np.bool_)
    best_fit(problem, state, scan, order, forced, led, FAR, 0, len(order))
