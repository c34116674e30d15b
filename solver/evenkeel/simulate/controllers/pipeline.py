"""A pipeline as controller: its published assignments are executed change by change."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.clock import ManualClock
from evenkeel.control.engines.engine import Scope
from evenkeel.control.executors import InlineWorkers, ManualWorkers
from evenkeel.control.pipeline import Pipeline
from evenkeel.methods.contract import SimulatedState
from evenkeel.methods.registry import METHODS
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.engine.world import Change, World

# steps of a pipeline at one moment: each asks for the next one as long as it finds something
MOST_STEPS = 8


def pipeline(method: str = "balance", **given: object) -> Pipeline:
    """Make a pipeline that lives in simulated time: it calculates at once, on one thread.

    Parameters
    ----------
    method : str or Engine
        As ``Pipeline`` takes it.
    **given : object
        What else ``Pipeline`` takes: ``options``, ``delay``, ``kills_partial``, ...

    Returns
    -------
    Pipeline
        For one run; it remembers what it has seen.

    Examples
    --------
    >>> with pipeline("balance") as made:
    ...     made.name, made.clock.now()
    ('balance', 0.0)
    """
    arguments = {"clock": ManualClock(), "workers": InlineWorkers()} | given
    return Pipeline(method, **arguments)  # type: ignore[arg-type]


def check_pipeline(faults: FaultList, path: str, given: Pipeline) -> None:
    """Note why a pipeline cannot be in a loop."""
    if not isinstance(given.clock, ManualClock):
        kind = type(given.clock).__name__
        faults.add(f"{path}.clock", kind, "must be a ManualClock: the simulation turns it")
    if not isinstance(given.workers, InlineWorkers | ManualWorkers):
        kind = type(given.workers).__name__
        faults.add(
            f"{path}.workers", kind, "must be InlineWorkers or ManualWorkers: threads have no order"
        )


class Publishing(Controller):
    """Shows a pipeline the cluster, and turns what it publishes into changes."""

    def __init__(self, made: Pipeline) -> None:
        self._pipeline = made
        method = METHODS.get(made.name)
        self._follow = method.refresher() if method is not None else None
        self._began = made.clock.now()
        self._seen = -1
        self._next = 0.0
        self._shown: Assignment | None = None
        self._upset = False
        self._postponed: set[int] = set()
        self._freed: set[int] = set()

    def wake(self, stage: Stage) -> float:
        """Run the pipeline where it may find something, and ask for what it published."""
        world = stage.world
        if world.version != self._seen or world.seconds >= self._next:
            self._next = self._run(stage)
        elif self._upset:
            self._carry_out(stage)
        elif self._freed:
            self._submit(stage, sorted(self._freed))
        return self._next

    def ended(self, number: int, change: Change, made: bool) -> None:
        """Note that a change has ended; its partition may want another, and it may have failed."""
        self._upset = self._upset or not made
        if change.partition in self._postponed:
            self._freed.add(change.partition)

    def _run(self, stage: Stage) -> float:
        """Run the pipeline until it is at rest, and return when to run it again."""
        world = stage.world
        self._seen = world.version
        clock = self._pipeline.clock
        assert isinstance(clock, ManualClock)
        clock.advance(self._began + world.seconds - clock.now())
        workers = self._pipeline.workers
        if isinstance(workers, ManualWorkers):
            for scope in Scope:
                workers.work(scope)
        cluster = as_reported(world.snapshot())
        if self._follow is not None:
            cluster = self._follow(
                SimulatedState(
                    world.cluster, cluster, world.origin, world.seconds, world.health_since
                )
            )
        busy = True
        for _ in range(MOST_STEPS):
            result = self._pipeline.run(cluster)
            for failure in result.failures:
                stage.recorder.warn(str(failure))
            busy = result.partial_started or result.baseline_started
            if not busy or isinstance(workers, ManualWorkers):
                break
        if self._shown is None or not result.assignment.same_as(self._shown) or self._upset:
            self._shown = result.assignment
            self._carry_out(stage)
        if isinstance(workers, ManualWorkers):
            busy = busy or any(workers.waiting(scope) for scope in Scope)
        again = math.inf if result.wake_at is None else result.wake_at - self._began
        if busy or world.growth.any() or result.failures:
            again = min(again, world.seconds + stage.scenario.environment.pace)
        return max(again, world.seconds + 0.001)

    def _carry_out(self, stage: Stage) -> None:
        """Ask for what was published, and take back what was asked for before and waits."""
        assert self._shown is not None
        self._upset = False
        self._postponed = set()
        stage.traffic.withdraw(lambda change: True)
        self._submit(stage, _different(stage.world, self._shown).tolist())

    def _submit(self, stage: Stage, partitions: list[int]) -> None:
        """Ask for what some partitions need; those that are busy have their turn afterwards."""
        assert self._shown is not None
        self._freed = set()
        self._postponed.difference_update(partitions)
        for change in changes_towards(stage.world, self._shown, partitions):
            if stage.submit(change) < 0:
                self._postponed.add(change.partition)


def as_reported(cluster: Cluster) -> Cluster:
    """Return a cluster as reported to a pipeline: a node that is down does not state ``keeps``."""
    nodes = cluster.nodes
    since = read_only(np.full(len(nodes), np.nan))
    return replace(
        cluster, nodes=replace(nodes, keeps=read_only(nodes.keeps & nodes.alive), since=since)
    )


def changes_towards(world: World, wanted: Assignment, partitions: list[int]) -> list[Change]:
    """Return what leads from where everything is to an assignment, partition by partition."""
    serves = world.serves()
    return [
        change
        for partition in partitions
        if (change := _change(world, wanted, partition, serves)) is not None
        and world.can_change(partition)
    ]


def _different(world: World, wanted: Assignment) -> NDArray[np.int64]:
    """Partitions that have other nodes, or another leader, than they should."""
    rows = np.diff(wanted.first)
    width = max(world.node.shape[1], int(rows.max(initial=0)))
    there = np.full((len(world), width), -1, np.int32)
    there[:, : world.node.shape[1]] = world.node
    due = np.full((len(world), width), -1, np.int32)
    due[wanted.owner, np.arange(len(wanted.node)) - wanted.first[wanted.owner]] = wanted.node
    leads = np.full(len(world), -1, np.int32)
    top = wanted.state == TOP
    leads[wanted.owner[top]] = wanted.node[top]
    differs = (np.sort(there, axis=1) != np.sort(due, axis=1)).any(1)
    if world.led:
        differs |= (leads >= 0) & world.serves()[leads] & (leads != world.leader_nodes())
    return np.flatnonzero(differs)


def _change(
    world: World, wanted: Assignment, partition: int, serves: NDArray[np.bool_]
) -> Change | None:
    """What a partition needs; None if there is nothing that can be done now."""
    row = slice(int(wanted.first[partition]), int(wanted.first[partition + 1]))
    due = wanted.node[row].tolist()
    at = world.node[partition]
    there = at[at >= 0].tolist()
    coming = [node for node in due if node not in there]
    add = [node for node in coming if serves[node]]
    lost = [node for node in there if node not in due]
    dead = [node for node in lost if not serves[node]]
    spare = [node for node in lost if serves[node]]
    drop = dead + spare[len(coming) - len(add) :]
    # what is short of a place may come back with its node: it goes when another has taken it over
    short = int(world.wanted[partition]) - (len(there) + len(add) - len(drop))
    drop = drop[: len(drop) - max(short, 0)] if short < len(drop) else []
    lead = -1
    if world.led and due and wanted.state[row.start] == TOP and serves[due[0]]:
        lead = int(due[0])
    if not add and not drop:
        now = world.leader_node(partition)
        if lead in (-1, now):
            return None
        return Change(partition, lead=lead, reason="leadership", urgency=1.0)
    if not {*there, *add} - {*drop}:
        return None
    live = sum(bool(serves[node]) for node in there)
    repairs = bool(dead) or live < int(world.wanted[partition])
    return Change(
        partition,
        add=tuple((node, Role.VOTER) for node in add),
        drop=tuple(drop),
        lead=lead,
        reason="repair" if repairs else "level",
        urgency=2.0 if repairs else 0.0,
    )
