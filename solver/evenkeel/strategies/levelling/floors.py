"""Filling nodes up to their floors, once nothing is above its target any more."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.strategies.levelling.run_state import Run
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.problem import UNLIMITED
from evenkeel_kernels.levelling.fill import DONORS, ROUNDING, fill
from evenkeel_kernels.levelling.slices import looks_in_slice


def fill_to_floors(run: Run) -> None:
    """Let nodes below their floor take replicas from nodes that can spare them."""
    if run.stop is not None or floors_met(run):
        return
    nodes = run.state.load.shape[1]
    floor = np.ascontiguousarray(run.request.bounds.floor.T)
    members, stuck = (
        scattered_by_node(run.problem.partitions, run.state.node, run.state.leader, nodes),
        np.zeros(nodes, np.bool_),
    )
    donor, surplus, made = np.zeros(DONORS, np.int64), np.zeros(DONORS), np.zeros(1, np.int64)
    turns = max(1, looks_in_slice(run.problem) // DONORS)
    with run.timed("floors"):
        while not fill(
            run.problem, run.state, floor, *members, stuck, run.most_leaders, donor, surplus,
            made, UNLIMITED, turns,
        ):  # fmt: skip
            if not run.look("floors"):
                break


def floors_met(run: Run) -> bool:
    """Whether every node holds its floor; true where none is asked for."""
    floor = floors_of(run)
    # what leaves a node may leave a rounding below nothing there
    return bool(((run.state.load >= floor) | (floor <= 0.0)).all())


def floors_of(run: Run) -> NDArray[np.float64]:
    """Return what each node is to hold at least, up to a rounding, (D, N)."""
    return np.ascontiguousarray(run.request.bounds.floor.T) * (1.0 - ROUNDING)
