"""Run redistribution to its end, without a search that drives it slice by slice."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.leaders.levelling import level_leaders
from evenkeel_kernels.levelling.parameters import DEFAULT
from evenkeel_kernels.levelling.penalty import new_targets
from evenkeel_kernels.levelling.redistribution import penalty_threshold, placed_anew
from evenkeel_kernels.levelling.slices import at_once


def place_anew(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    most_moves: int,
) -> int:
    """Do what `placed_anew` does, and return how many replicas moved."""
    return at_once(placed_anew(problem, state, forced, most_leaders, most_moves))


def redistribute(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    most_moves: int,
) -> None:
    """Place anew, then level leaders."""
    was = state.leader.copy()
    place_anew(problem, state, forced, most_leaders, most_moves)
    targets = new_targets(
        problem, most_leaders, penalty_threshold(problem, state, DEFAULT.sweep_threshold)
    )
    at_once(level_leaders(problem, state, targets, was, DEFAULT.sweeps))
