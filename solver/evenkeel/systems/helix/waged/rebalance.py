"""One run of WAGED, from an assignment to an assignment."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.reading.arrays import read_only
from evenkeel.systems.helix.waged import fit
from evenkeel.systems.helix.waged.estimates import Estimates, estimate, scored_keys
from evenkeel.systems.helix.waged.failures import NoResult, short_of
from evenkeel.systems.helix.waged.fit import Preference, places
from evenkeel.systems.helix.waged.model import Model
from evenkeel.systems.helix.waged.order import placing_order
from evenkeel.systems.helix.waged.scopes import Rows, Scope, Split, Task, rows_of, split
from evenkeel_kernels.helix.waged_rows import pack_rows


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run of which it is known what is placed, and nothing is placed yet.

    Parameters
    ----------
    task : Task
        What it is about.
    names : ndarray of int32, shape (n,)
        Nodes of the run in the order of ties.
    current, baseline : Rows
        What partitions held, and were meant to hold.
    found : Split
        What is kept and placed.
    estimates : Estimates
        What nodes will carry.
    """

    task: Task
    names: NDArray[np.int32]
    current: Rows
    baseline: Rows
    found: Split
    estimates: Estimates

    @property
    def placed(self) -> int:
        """Replicas to place."""
        return int(self.found.place.sum())


@dataclass(frozen=True, eq=False)
class Run:
    """What came of a run."""

    assignment: Assignment | None
    placed: int
    timings: dict[str, float]


def prepare(model: Model, task: Task, scoring: tuple[str, ...] = ()) -> Prepared:
    """Find out what a run keeps and places."""
    busy = np.zeros(len(model.nodes), np.bool_)
    busy[task.current.node] = True
    order = np.lexsort((model.nodes.rank[task.nodes], busy[task.nodes]))
    names = task.nodes[order].astype(np.int32)
    place_of = places(len(model.nodes), names)
    current = rows_of(task.current, place_of)
    baseline = rows_of(task.baseline or nothing(len(model.kind)), place_of)
    zones = len(np.unique(model.zone[names]))
    found = split(model, task, model.wanted(zones, len(names)), current, baseline)
    scored = scored_keys(model, scoring)
    estimates = estimate(model, task.nodes, found.made, scored)
    return Prepared(task, names, current, baseline, found, estimates)


def rebalance(
    model: Model,
    task: Task,
    preference: Preference,
    scoring: tuple[str, ...] = (),
    stop: Callable[[int], bool] = lambda placed: False,
) -> Run:
    """Run WAGED in one of its scopes.

    References
    ----------
    Apache Helix, ``ConstraintBasedAlgorithm``, ``ClusterModelProvider`` and ``ClusterContext``.
    """
    laps = [time.perf_counter()]
    if len(task.nodes) == 0 or len(model.kind) == 0:
        return Run(nothing(len(model.kind)), 0, dict.fromkeys(("model", "sort", "fit"), 0.0))
    prepared = prepare(model, task, scoring)
    for d in model.total_order.tolist():
        if prepared.estimates.left[d] < 0:
            raise NoResult(short_of(model.keys[d]))
    laps.append(time.perf_counter())
    held, meant = _groups(model, prepared.current), _groups(model, prepared.baseline)
    owner, role = placing_order(
        model, task.nodes, prepared.estimates, prepared.found.place, held, meant
    )
    laps.append(time.perf_counter())
    begun = fit.begin(
        model, prepared.names, prepared.estimates, preference, prepared.found,
        prepared.current, prepared.baseline,
    )  # fmt: skip
    done = begun.place(owner, role, stop)
    assignment = _packed(begun) if done else None
    laps.append(time.perf_counter())
    timings = dict(zip(("model", "sort", "fit"), np.diff(laps).tolist(), strict=True))
    return Run(assignment, len(owner), timings)


def nothing(partitions: int) -> Assignment:
    """Return an assignment without replicas.

    Examples
    --------
    >>> len(nothing(3)), len(nothing(3).node)
    (3, 0)
    """
    first = np.zeros(partitions + 1, np.int64)
    return Assignment(
        read_only(first), read_only(np.zeros(0, np.int32)), read_only(np.zeros(0, np.uint8))
    )


def _groups(model: Model, rows: Rows) -> NDArray[np.bool_]:
    """Groups of which an assignment has some replica."""
    return np.bincount(model.group[rows.owner], minlength=len(model.groups)) > 0


def _packed(done: fit.Fit) -> Assignment:
    state = done.state
    count = int(state.row_size.sum())
    first = np.empty(len(state.row_size) + 1, np.int64)
    node, role = np.empty(count, np.int32), np.empty(count, np.uint8)
    pack_rows(
        done.partitions.row_first, state.row_size, state.row_node, state.row_state, done.names,
        first, node, role,
    )  # fmt: skip
    return Assignment(read_only(first), read_only(node), read_only(role))


__all__ = ["Prepared", "Run", "Scope", "nothing", "prepare", "rebalance"]
