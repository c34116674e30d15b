"""A reference planner that moves one replica after another, each as early as possible."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.steps import StepKind, Steps


class Step(NamedTuple):
    """One step, as plain numbers."""

    kind: int
    partition: int
    replica: int
    source: int
    target: int
    size: float = 0.0
    start: float = 0.0
    finish: float = 0.0
    wave: int = 0
    before: tuple[int, ...] = ()


def steps_of(rows: list[Step]) -> Steps:
    """Return rows as arrays."""
    before = [one for row in rows for one in row.before]
    column = {name: [getattr(row, name) for row in rows] for name in Step._fields}
    ints = {
        name: np.array(column[name], np.int32)
        for name in ("partition", "replica", "source", "target", "wave")
    }
    floats = {name: np.array(column[name], np.float64) for name in ("size", "start", "finish")}
    return Steps(
        kind=np.array(column["kind"], np.int8),
        first=np.cumsum([0, *(len(row.before) for row in rows)]).astype(np.int64),
        before=np.array(before, np.int32),
        **ints,
        **floats,
    )


def rows_of(steps: Steps) -> list[Step]:
    """Return arrays as rows."""
    columns = [getattr(steps, name).tolist() for name in Step._fields[:-1]]
    first, before = steps.first.tolist(), steps.before.tolist()
    return [
        Step(*row, before=tuple(before[first[i] : first[i + 1]]))
        for i, row in enumerate(zip(*columns, strict=True))
    ]


def one_by_one(cluster: Cluster, target: Placement, *, swaps: bool = False) -> list[Step]:
    """Return steps that move one replica after another, each after all steps before it."""
    # replicas move in the order of their rows; room is not checked
    rows: list[Step] = []
    now = 0.0
    for kind, partition, replica, source, to, size in _moves(cluster, target, swaps):
        last = (len(rows) - 1,) if rows else ()
        end = now + (1.0 + size if kind == StepKind.COPY else 0.0)
        rows.append(Step(kind, partition, replica, source, to, size, now, end, len(rows), last))
        now = end
    return rows


def _moves(
    cluster: Cluster, target: Placement, swaps: bool
) -> Iterator[tuple[int, int, int, int, int, float]]:
    start = cluster.placement
    live = cluster.nodes.alive & ~cluster.nodes.gone
    for p in range(len(start)):
        first, end = int(start.first[p]), int(start.first[p + 1])
        row = [int(n) for n in start.node[first:end]]
        leader = int(start.leader[p])
        role = start.role.copy()
        if p % 2:
            yield from _roles(start, target, p, row, role)
        for k in range(first, end):
            old, new = row[k - first], int(target.node[k])
            if old == new:
                continue
            size = float(cluster.partitions.load.voter[p].max(initial=0.0))
            voter = role[k] == Role.VOTER
            joint = swaps or not voter
            leads = leader == k - first
            if new >= 0:
                read = [n for n in [old, *row] if n >= 0 and live[n]]
                yield StepKind.COPY, p, k, read[0] if read else -1, new, size
            if joint and leads:
                other = _other_voter(cluster, row, k - first, p)
                if other is not None:
                    yield StepKind.LEAD, p, first + other, old, row[other], 0.0
                    leader, leads = other, False
                else:
                    joint = not voter
            if joint:
                yield StepKind.SWAP, p, k, old, new, 0.0
            else:
                if new >= 0:
                    yield StepKind.PROMOTE, p, k, old, new, 0.0
                if leads and new >= 0:
                    yield StepKind.LEAD, p, k, old, new, 0.0
                if old >= 0:
                    yield StepKind.DEMOTE, p, k, old, new, 0.0
            if old >= 0:
                yield StepKind.REMOVE, p, k, old, -1, 0.0
            row[k - first] = new
        if p % 2 == 0:
            yield from _roles(start, target, p, row, role)
        wanted = int(target.leader[p])
        if wanted >= 0 and leader != wanted and row[wanted] >= 0:
            yield (
                StepKind.LEAD,
                p,
                first + wanted,
                row[leader] if leader >= 0 else -1,
                row[wanted],
                0.0,
            )


def _roles(
    start: Placement, target: Placement, p: int, row: list[int], role: NDArray[np.uint8]
) -> Iterator[tuple[int, int, int, int, int, float]]:
    """Yield what makes voters and non-voters of replicas where they are."""
    first, end = int(start.first[p]), int(start.first[p + 1])
    for k in range(first, end):
        node = row[k - first]
        if start.node[k] >= 0 and node >= 0 and role[k] != target.role[k]:
            rises = target.role[k] == Role.VOTER
            role[k] = target.role[k]
            yield StepKind.PROMOTE if rises else StepKind.DEMOTE, p, k, node, node, 0.0


def _other_voter(cluster: Cluster, row: list[int], slot: int, p: int) -> int | None:
    role = cluster.placement.role[int(cluster.placement.first[p]) :]
    for other, node in enumerate(row):
        may = node >= 0 and cluster.nodes.may_lead[node] and role[other] == Role.VOTER
        if may and other != slot:
            return other
    return None
