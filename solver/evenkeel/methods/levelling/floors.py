"""Filling nodes up to their floors, once nothing is above its target any more."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds
from evenkeel.methods.levelling.run_state import Run
from evenkeel.model.reading.arrays import writable
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.problem import UNLIMITED, Problem
from evenkeel_kernels.levelling.floors.exchange import exchange
from evenkeel_kernels.levelling.floors.fill import DONORS, ROUNDING, fill
from evenkeel_kernels.levelling.slices import looks_in_slice

ROUNDS = 8
"""How often nodes are filled and then trade replicas."""

PAIRS = 50_000_000
"""Pairs of replicas looked at for exchanges, unless the caller says how long they may take."""


def fill_to_floors(run: Run) -> None:
    """Let nodes below their floor take replicas that others can spare, or trade them for others."""
    if run.stop is not None or floors_met(run):
        return
    tally = np.array([0, UNLIMITED if run.has_limit else PAIRS], np.int64)
    with run.timed("floors"):
        for _ in range(ROUNDS):
            before = int(tally[0])
            _fill(run)
            if run.stop is None and not floors_met(run):
                _exchange(run, tally)
            if run.stop is not None or tally[0] == before:
                break


def floors_met(run: Run) -> bool:
    """Whether every node holds its floor; true where none is asked for."""
    floor = floors_of(run)
    # what leaves a node may leave a rounding below nothing there
    return bool(((run.state.load >= floor) | (floor <= 0.0)).all())


def floors_of(run: Run) -> NDArray[np.float64]:
    """Return what each node is to hold at least, up to a rounding, (D, N)."""
    return np.ascontiguousarray(run.request.bounds.floor.T) * (1.0 - ROUNDING)


def lowest_of(bounds: Bounds, problem: Problem) -> NDArray[np.float64]:
    """Return what nodes may be brought down to, (D, N): their floors, where any is asked for.

    What only keeps is brought down to the mean of all: floors are counted from it, and would rise
    with what leaves it beyond that.
    """
    floor = np.array(bounds.floor.T, order="C")  # not a view that is read only
    if not floor.any():
        return floor
    even, capacity = bounds.even.T, problem.nodes.capacity
    even = np.where((even > 0.0) & (capacity < np.inf), even, np.inf) * np.maximum(capacity, 1e-300)
    even = np.minimum(even, problem.nodes.watermark)
    return np.where(problem.nodes.accepts, floor, even)


class _Asked(NamedTuple):
    """What is asked of the nodes, and what stands on them, as the kernels take both."""

    lowest: NDArray[np.float64]  # (D, N)
    first: NDArray[np.int64]  # (N + 1,)
    member: NDArray[np.int64]  # (K,)
    stuck: NDArray[np.bool_]  # (N,) none at first
    most_leaders: NDArray[np.float64]  # (N,)
    donor: NDArray[np.int64]  # (DONORS,) room to work in, as the next
    surplus: NDArray[np.float64]  # (DONORS,)

    @classmethod
    def of(cls, run: Run) -> "_Asked":
        """Take it from where a run stands."""
        nodes = run.state.load.shape[1]
        return cls(
            lowest_of(run.request.bounds, run.problem),
            *scattered_by_node(run.problem.partitions, run.state.node, run.state.leader, nodes),
            np.zeros(nodes, np.bool_),
            writable(run.most_leaders),
            np.zeros(DONORS, np.int64),
            np.zeros(DONORS),
        )


def _fill(run: Run) -> None:
    """Let nodes take replicas, one at a time, until that fills none any further."""
    asked, made = _Asked.of(run), np.zeros(1, np.int64)
    turns = max(1, looks_in_slice(run.problem) // DONORS)
    while not fill(run.problem, run.state, *asked, made, UNLIMITED, turns):
        if not run.look("floors"):
            break


def _exchange(run: Run, tally: NDArray[np.int64]) -> None:
    """Let nodes trade replicas until that brings none nearer; ``tally`` is that of `exchange`."""
    asked = _Asked.of(run)
    size = np.zeros((1 + int(np.diff(asked.first).max(initial=0)), len(asked.lowest)))
    while not exchange(run.problem, run.state, *asked, size, tally, 1):
        if not run.look("floors"):
            break
