"""Filling nodes up to their floors, once nothing is above its target any more."""

import numpy as np

from evenkeel.strategies.levelling.run_state import Run
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import UNLIMITED
from evenkeel_kernels.levelling.fill import DONORS, ROUNDING, fill


def fill_to_floors(run: Run) -> None:
    """Let nodes below their floor take replicas from nodes that can spare them."""
    if run.stop is not None or floors_met(run):
        return
    nodes = run.state.load.shape[1]
    with run.timed("floors"):
        fill(
            run.problem, run.state, np.ascontiguousarray(run.request.bounds.floor.T),
            *by_node(run.state.node, nodes), np.zeros(nodes, np.bool_), run.most_leaders,
            np.zeros(DONORS, np.int64), np.zeros(DONORS), UNLIMITED,
        )  # fmt: skip


def floors_met(run: Run) -> bool:
    """Whether every node holds its floor; true where none is asked for."""
    floor = run.request.bounds.floor.T
    return bool((run.state.load >= floor * (1.0 - ROUNDING)).all())
