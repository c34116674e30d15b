"""Small clusters, an engine that counts its calls, and workers driven by a clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.clock import ManualClock
from evenkeel.control.engines.engine import Answer, CalculationFailed, Scope, Task
from evenkeel.control.executors import Job, Workers
from evenkeel.control.metrics import needed
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster


def cluster(
    placement: Sequence[Sequence[int]],
    nodes: int = 6,
    *,
    down: Sequence[int] = (),
    gone: Sequence[int] = (),
    min_active: int = 0,
    names: Sequence[str] | None = None,
    **others: Any,
) -> Cluster:
    """A cluster whose partitions all weigh the same."""
    alive = np.ones(nodes, np.bool_)
    alive[[*down, *gone]] = False
    lost = np.zeros(nodes, np.bool_)
    lost[list(gone)] = True
    given: dict[str, Any] = {
        "capacity": np.full((nodes, 1), 100.0),
        "load": np.ones((len(placement), 1)),
        "placement": np.array(placement, np.int32),
        "node_names": names,
    }
    return Cluster.from_arrays(alive=alive, gone=lost, min_active=min_active, **(given | others))


def rows(assignment: Assignment) -> list[list[int]]:
    """Nodes of each partition, by state and then by number."""
    first = assignment.first.tolist()
    return [assignment.node[a:b].tolist() for a, b in pairwise(first)]


def assignment(table: Sequence[Sequence[int]]) -> Assignment:
    """An assignment in which the first of each row leads."""
    owner = np.repeat(np.arange(len(table)), [len(row) for row in table])
    node = np.array([node for row in table for node in row], np.int32)
    state = np.array([min(i, 1) for row in table for i in range(len(row))], np.uint8)
    return Assignment.of_rows(len(table), owner, node, state)


@dataclass
class PlainEngine:
    """Places with plain loops: on the node with the fewest replicas, ties by number."""

    calls: list[Task] = field(default_factory=list)  # every task there was, in order
    # called with a task before it is calculated; may let time pass or raise
    before: Callable[[Task], None] | None = None
    # whether a partial run moves one replica from the fullest node to the emptiest one
    levels: bool = True

    def count(self, scope: Scope) -> int:
        """How many tasks of a scope there were."""
        return sum(task.scope is scope for task in self.calls)

    def __call__(self, task: Task) -> Answer:
        self.calls.append(task)
        if self.before is not None:
            self.before(task)
        nodes, table = task.cluster.nodes, rows(task.current)
        held = np.bincount(task.current.node, minlength=len(nodes))
        if task.scope is Scope.GLOBAL:
            wanted = task.cluster.partitions.replicas.tolist()
            held[:] = 0
            return Answer(assignment([self._more([], n, held, ~nodes.gone) for n in wanted]))
        if task.scope is Scope.EMERGENCY:
            for p, row in enumerate(table):
                stays = [node for node in row if nodes.may_hold[node]]
                table[p] = self._more(stays, len(row), held, nodes.may_receive)
        elif task.scope is Scope.OVERWRITE:
            serving = nodes.alive & nodes.may_hold
            for p, (row, need) in enumerate(zip(table, needed(task.cluster).tolist(), strict=True)):
                short = need - sum(bool(serving[node]) for node in row)
                table[p] = self._more(row, len(row) + max(short, 0), held, nodes.may_receive)
        elif self.levels:
            self._level(table, held, nodes.may_receive)
        found = assignment(table)
        return Answer(found, placed=int(len(found.node) > 0))

    def _more(
        self, row: list[int], length: int, held: NDArray[Any], allowed: NDArray[np.bool_]
    ) -> list[int]:
        row = list(row)
        while len(row) < length:
            free = [n for n in np.flatnonzero(allowed).tolist() if n not in row]
            if not free:
                break
            row.append(min(free, key=lambda node: (held[node], node)))
            held[row[-1]] += 1
        return row

    def _level(
        self, table: list[list[int]], held: NDArray[Any], allowed: NDArray[np.bool_]
    ) -> None:
        there = np.flatnonzero(allowed).tolist()
        fullest = max(there, key=lambda node: (held[node], -node))
        emptiest = min(there, key=lambda node: (held[node], node))
        if held[fullest] - held[emptiest] < 2:
            return
        for row in table:
            if fullest in row and emptiest not in row:
                row[row.index(fullest)] = emptiest
                return


def fails(scope: Scope, error: BaseException) -> Callable[[Task], None]:
    """Raise in one scope."""

    def before(task: Task) -> None:
        if task.scope is scope:
            raise error

    return before


@dataclass
class TimedWorkers(Workers):
    """Workers whose jobs take so many units of time; results come when the clock gets there."""

    clock: ManualClock
    takes: dict[Scope, float]  # how long a job of each scope takes
    jobs: list[tuple[float, Job]] = field(default_factory=list)
    started: list[tuple[float, Scope]] = field(default_factory=list)
    killed: list[tuple[float, Scope]] = field(default_factory=list)
    finished: list[tuple[float, Scope]] = field(default_factory=list)

    def submit(self, job: Job) -> None:
        self.started.append((self.clock.now(), job.scope))
        self.jobs.append((self.clock.now() + self.takes.get(job.scope, 0.0), job))

    def run_until(self, moment: float) -> None:
        """Let time pass; whatever is due is calculated and delivered in its order."""
        while due := [entry for entry in self.jobs if entry[0] <= moment]:
            first = min(due, key=lambda entry: entry[0])
            self.jobs.remove(first)
            self.clock.advance(max(0.0, first[0] - self.clock.now()))
            first[1].calculate()
            if first[1].stopped.is_set():
                continue
            self.finished.append((self.clock.now(), first[1].scope))
            first[1].deliver()
        self.clock.advance(max(0.0, moment - self.clock.now()))

    def note_killed(self) -> None:
        """Note which jobs have been cancelled until now."""
        for entry in [entry for entry in self.jobs if entry[1].stopped.is_set()]:
            self.jobs.remove(entry)
            self.killed.append((self.clock.now(), entry[1].scope))

    def close(self, timeout: float | None = None) -> bool:
        return True


def failure(kind: Any, message: str = "No node.") -> CalculationFailed:
    """A failure of a kind."""
    return CalculationFailed(kind, message)
