"""Steps out of a file: what they name, when they are, and the order in which each may come."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.systems.documents import quoted
from evenkeel.systems.plans.documents import StepDocument

JOINS = ("copy", "promote", "lead")
"""Kinds that need a node to go to."""

LEAVES = ("demote", "remove")
"""Kinds that need a node to come from."""


@dataclass(frozen=True)
class Read:
    """S steps as they stand in the file, and what they wait for by the row of each.

    Parameters
    ----------
    rows : list of StepDocument
        The steps.
    first : ndarray of int64, shape (S + 1,)
        Where the predecessors of each begin in ``before``.
    before : ndarray of int64, shape (B,)
        Rows of the predecessors, ascending within a step.
    order : ndarray of int64, shape (S,)
        Rows such that each comes after its predecessors, otherwise as in the file.
    """

    rows: list[StepDocument]
    first: NDArray[np.int64]
    before: NDArray[np.int64]
    order: NDArray[np.int64]


def read_steps(faults: FaultList, name: str, rows: list[StepDocument]) -> Read:
    """Note what is wrong with steps in themselves: ids, times, sizes, ends, and circles."""
    place: dict[int | str, int] = {}
    for i, row in enumerate(rows):
        if place.setdefault(row.id, i) != i:
            message = f"is already the id of steps[{place[row.id]}]"
            faults.add(f"{name}: steps[{i}].id", quoted(row.id), message)
    _check_rows(faults, name, rows)
    ahead = [sorted({place.get(one, -1) for one in row.after}) for row in rows]
    for i, found in enumerate(ahead):
        if found and found[0] < 0:
            for k, one in enumerate(rows[i].after):
                if one not in place:
                    faults.add(f"{name}: steps[{i}].after[{k}]", quoted(one), "is not a step")
            ahead[i] = found[1:]
    first = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(one) for one in ahead], out=first[1:])
    before = np.fromiter(chain.from_iterable(ahead), np.int64, int(first[-1]))
    return Read(rows, first, before, _ordered(faults, name, rows, first, before))


def _check_rows(faults: FaultList, name: str, rows: list[StepDocument]) -> None:
    """Note times and sizes that are none, and ends that are missing."""
    for i, row in enumerate(rows):
        at = f"{name}: steps[{i}]"
        if row.start < 0.0:
            faults.add(f"{at}.start", row.start, "must not be negative")
        if row.finish < row.start:
            faults.add(f"{at}.finish", row.finish, f"is before its start, {row.start:g}")
        if row.bytes < 0.0:
            faults.add(f"{at}.bytes", row.bytes, "must not be negative")
        if row.wave < 0:
            faults.add(f"{at}.wave", row.wave, "must not be negative")
        if row.target is None and (row.kind in JOINS or (row.kind == "swap" and not row.source)):
            faults.add(f"{at}.to", None, f"is missing: a {row.kind} needs it")
        if row.source is None and row.kind in LEAVES:
            faults.add(f"{at}.from", None, f"is missing: a {row.kind} needs it")


def _ordered(
    faults: FaultList,
    name: str,
    rows: list[StepDocument],
    first: NDArray[np.int64],
    before: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return rows in an order in which each comes after those that it waits for.

    Each circle of steps that wait for one another is a fault.
    """
    count = len(rows)
    later = np.repeat(np.arange(count), np.diff(first))
    if not (before >= later).any():
        return np.arange(count)
    by_earlier = np.argsort(before, kind="stable")
    followers = later[by_earlier]
    begin = np.searchsorted(before[by_earlier], np.arange(count + 1)).tolist()
    waiting = np.diff(first).tolist()
    ready = [i for i in range(count) if waiting[i] == 0]
    heapify(ready)
    order = []
    while ready:
        i = heappop(ready)
        order.append(i)
        for k in followers[begin[i] : begin[i + 1]].tolist():
            waiting[k] -= 1
            if waiting[k] == 0:
                heappush(ready, k)
    if len(order) < count:
        _note_circles(faults, name, rows, first, before, waiting)
        order = list(range(count))
    return np.array(order, np.int64)


def _note_circles(
    faults: FaultList,
    name: str,
    rows: list[StepDocument],
    first: NDArray[np.int64],
    before: NDArray[np.int64],
    waiting: list[int],
) -> None:
    """Note one circle in each chain of steps that never come: every one waits for another."""
    seen = [0] * len(rows)
    for begin in (i for i, lacks in enumerate(waiting) if lacks):
        path, i = [], begin
        while not seen[i]:
            seen[i] = begin + 1
            path.append(i)
            i = next(k for k in before[first[i] : first[i + 1]].tolist() if waiting[k])
        if seen[i] == begin + 1:
            circle = [rows[k].id for k in path[path.index(i) :]]
            told = " after ".join(str(quoted(one)) for one in [*circle[:8], circle[0]])
            more = f", of {len(circle)} steps" if len(circle) > 8 else ""
            faults.add(
                f"{name}: steps[{i}].after",
                quoted(rows[i].id),
                f"waits for itself in a circle: {told}{more}",
            )


def arranged(
    faults: FaultList, name: str, read: Read, cluster: Cluster
) -> tuple[Steps, NDArray[np.int32]]:
    """Return the steps with what they name looked up in the cluster, and the change of each."""
    rows = read.rows
    nodes: dict[str | None, int] = {None: -1}
    nodes |= {one: n for n, one in enumerate(cluster.nodes.names)}
    numbers = {one: p for p, one in enumerate(cluster.partitions.names)}
    partition = np.array([numbers.get(row.partition, -1) for row in rows], np.int32)
    ends = [
        np.array([nodes.get(getattr(row, end), -2) for row in rows], np.int32)
        for end in ("source", "target")
    ]
    slot = np.array([row.replica for row in rows], np.int64)
    at = np.maximum(partition, 0)
    width = np.append(np.diff(cluster.placement.first), 0)
    outside = (partition >= 0) & ((slot < 0) | (slot >= width[at]))
    for i in np.flatnonzero((partition < 0) | outside | (ends[0] < -1) | (ends[1] < -1)).tolist():
        row, path = rows[i], f"{name}: steps[{i}]"
        if partition[i] < 0:
            message = "is not a partition of the cluster"
            faults.add(f"{path}.partition", quoted(row.partition), message)
        if outside[i]:
            message = f"is none of the {int(width[at[i]])} slots of the partition"
            faults.add(f"{path}.replica", row.replica, message)
        for key, end, told in (("from", ends[0], row.source), ("to", ends[1], row.target)):
            if end[i] < -1:
                faults.add(f"{path}.{key}", quoted(told), "is not a node of the cluster")
    if faults:
        return Steps.none(), np.zeros(0, np.int32)
    order = read.order
    position = np.empty(len(rows), np.int64)
    position[order] = np.arange(len(rows))
    later = position[np.repeat(np.arange(len(rows)), np.diff(read.first))]
    pair = np.sort(later * max(len(rows), 1) + position[read.before])
    first = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.bincount(later, minlength=len(rows)), out=first[1:])
    kinds = {kind.name.lower(): int(kind) for kind in StepKind}
    replica = cluster.placement.first[partition] + slot
    start, finish, size = (
        np.array([getattr(row, column) for row in rows], np.float64)[order]
        for column in ("start", "finish", "bytes")
    )
    steps = Steps(
        kind=np.array([kinds[row.kind] for row in rows], np.int8)[order],
        partition=partition[order], replica=replica.astype(np.int32)[order],
        source=ends[0][order], target=ends[1][order], size=size, start=start, finish=finish,
        wave=np.array([row.wave for row in rows], np.int32)[order],
        first=first, before=(pair % max(len(rows), 1)).astype(np.int32),
    )  # fmt: skip
    return steps, _changes([rows[i] for i in order.tolist()], steps)


def _changes(rows: list[StepDocument], steps: Steps) -> NDArray[np.int32]:
    """Return which steps belong together: as they say, or else what a prefix must not divide.

    Where they do not say, no partition is left in the middle between two changes.
    """
    told = [row.change for row in rows]
    said = [one for one in told if one is not None]
    if len(said) == len(rows):
        return np.array(said, np.int32)
    last = np.zeros(int(steps.partition.max(initial=-1)) + 1, np.int64)
    last[steps.partition] = np.arange(len(rows))
    reaches = np.maximum.accumulate(last[steps.partition])
    begins = np.append(True, reaches[:-1] < np.arange(1, len(rows)))[: len(rows)]
    return np.cumsum(begins).astype(np.int32) - np.int32(1)
