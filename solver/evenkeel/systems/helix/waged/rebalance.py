"""Run WAGED once: order the replicas to place, place them, and return the assignment."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.reading.arrays import read_only
from evenkeel.systems.helix.crush.hashed import text_order
from evenkeel.systems.helix.waged import fit
from evenkeel.systems.helix.waged.fit import (
    Estimates,
    NoResult,
    Preference,
    estimate,
    places,
    scored_keys,
    short_of,
)
from evenkeel.systems.helix.waged.model import Model, Rows, Scope, Split, Task, rows_of, split
from evenkeel_kernels.helix.waged import pack_rows


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run of which it is known what is placed, and nothing is placed yet."""

    task: Task  # what it is about
    names: NDArray[np.int32]  # (n,) nodes of the run in the order of ties
    # current, baseline: what partitions held, and were meant to hold
    current: Rows
    baseline: Rows
    found: Split  # what is kept and placed
    estimates: Estimates  # what nodes will carry

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


SPARE = np.float32(0.01)
"""Part of the whole capacity that is added to what is left, so that it is never nothing."""


def placing_order(
    model: Model,
    nodes: NDArray[np.int64],
    estimates: Estimates,
    place: NDArray[np.int32],
    held: NDArray[np.bool_],
    meant: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Order the replicas to place.

    First those of groups that the best possible has, then those of groups that the baseline has,
    then by falling priority of state, by falling share of what is left of the capacity, by a hash
    that changes with the nodes, and by name.
    """
    p, s = np.nonzero(place)
    order = np.zeros(len(p), np.int64)
    group = model.group[p]
    kind = (2 * ~held[group] + ~meant[group]).astype(np.int64) * place.shape[1] + s
    key = _falling(_impact(model, estimates)[p]) << np.uint64(32)
    key |= _rising(_salted(model, nodes)[p, s])
    filled = 0
    for one in np.unique(kind):
        members = np.flatnonzero(kind == one)
        order[filled : filled + len(members)] = members[np.argsort(key[members])]
        filled += len(members)
    _settle_ties(model, p, s, kind, key, order)
    times = place[p, s][order]
    return np.repeat(p[order], times).astype(np.int32), np.repeat(s[order], times).astype(np.uint8)


def _impact(model: Model, estimates: Estimates) -> NDArray[np.float32]:
    """Share of what is left that a replica of each partition takes, added up over the keys."""
    impact = np.zeros(len(model.kind), np.float32)
    for d in model.weight_order.tolist():
        left = np.float32(estimates.left[d]) + np.float32(estimates.capacity[d]) * SPARE
        if left != 0.0:  # else there is no capacity, and what has no weight adds nothing
            impact += model.weight[:, d].astype(np.float32) / left
    return impact


def _falling(impact: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Numbers that ascend as impacts, which are not negative, descend."""
    bits: NDArray[np.uint64] = (np.uint32(0x7FFFFFFF) - impact.view(np.uint32)).astype(np.uint64)
    return bits


def _rising(hashes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Unsigned numbers in the order of the hashes read as signed ones."""
    bits: NDArray[np.uint64] = (hashes ^ np.uint32(1 << 31)).astype(np.uint64)
    return bits


def _salted(model: Model, nodes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash of each replica and of the nodes that carry what it asks for, (P, S).

    Where no node of the run does, all of them count.
    """
    words = model.nodes.word[nodes]
    carries = model.masks[:, nodes]
    carries = carries | ~carries.any(axis=1, keepdims=True)
    salt = (carries * words).sum(axis=1, dtype=np.uint64).astype(np.uint32)
    salted = np.uint32(31) * (np.uint32(31) + model.replica_hash)
    return np.asarray(salted + salt[model.mask][:, np.newaxis], np.uint32)


def _settle_ties(
    model: Model,
    p: NDArray[np.int64],
    s: NDArray[np.int64],
    kind: NDArray[np.int64],
    key: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> None:
    """Bring those that agree in all numbers into the order of their names."""
    ordered, same_kind = key[order], kind[order]
    alike = (ordered[1:] == ordered[:-1]) & (same_kind[1:] == same_kind[:-1])
    if not alike.any():
        return
    bounds = np.flatnonzero(np.concatenate([[True], ~alike, [True]]))
    for i in np.flatnonzero(np.diff(bounds) > 1).tolist():
        run = np.sort(order[bounds[i] : bounds[i + 1]])
        names = [_name(model, int(p[k]), int(s[k])) for k in run.tolist()]
        order[bounds[i] : bounds[i + 1]] = run[text_order(names)]


def _name(model: Model, p: int, s: int) -> str:
    group = model.groups.texts[int(model.group[p])]
    state = model.kinds[int(model.kind[p])].names[s]
    return f"{group}-{model.partitions.texts[p]}-{state}"
