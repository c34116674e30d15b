"""The recorder: takes the samples of a simulation and counts what happened between them."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.simulate.engine.changes import Change
from evenkeel.simulate.engine.conformance import Conformance
from evenkeel.simulate.engine.health import Health
from evenkeel.simulate.engine.history import TOTALS, Entry, History
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.scenarios.scenario import Scenario


class Recorder:
    """Collects what a ``History`` holds."""

    def __init__(self, scenario: Scenario, world: World) -> None:
        self._scenario = scenario
        self._world = world
        self._conformance = Conformance(scenario.cluster)
        self._shortfall = Shortfall(world)
        self._totals = dict.fromkeys(TOTALS, 0.0)
        self._moves = np.zeros(len(world.health), np.int64)
        self._left: set[tuple[int, int]] = set()
        self._log: list[Entry] = []
        self._events: list[tuple[float, str]] = []
        self._warnings: list[str] = []
        self._rows: list[tuple[object, ...]] = []

    def event(self, what: str, leader_nodes: NDArray[np.int32]) -> None:
        """Note that something happened from outside: from here on a replica may return."""
        if what:
            self._events.append((self._world.seconds, what))
        self._left.clear()
        self._shortfall.look()
        leads = self._world.leader_nodes()
        fell = (leader_nodes >= 0) & (leads[: len(leader_nodes)] != leader_nodes)
        self._totals["failovers"] += int(fell.sum())

    def warn(self, what: str) -> None:
        """Note what a person should look into, once."""
        if what not in self._warnings:
            self._warnings.append(what)

    def left(self, partition: int, node: int) -> bool:
        """Return whether a replica has left a node since the last event."""
        return (partition, node) in self._left

    def all_left(self) -> list[tuple[int, int]]:
        """Return what has left which node since the last event."""
        return sorted(self._left)

    def made(self, change: Change, leader_was: int) -> None:
        """Count and log a change that was made."""
        self._log.append(Entry(self._world.seconds, change, "made"))
        partition = change.partition
        self._totals["moves"] += change.moves
        self._totals["bytes"] += change.moves * self._world.size(partition)
        if change.only_leads and change.lead not in (-1, leader_was):
            self._totals["leader_changes"] += 1
        for node, _ in change.add:
            self._totals["thrash"] += self.left(partition, node)
            self._moves[node] += 1
        for node in change.drop:
            self._left.add((partition, node))
            self._moves[node] += 1
        self._shortfall.look_at(partition)

    def not_made(self, change: Change, outcome: Literal["failed", "expired"]) -> None:
        """Count and log a change that was not made."""
        self._log.append(Entry(self._world.seconds, change, outcome))
        self._totals[outcome] += 1

    def sample(self) -> None:
        """Take a sample."""
        world = self._world
        world.refresh()
        self._totals["below_min_active"] = self._shortfall.total
        alive, accepts, leads = world.states()
        self._rows.append(
            (
                world.seconds,
                world.load.copy(),
                world.capacity.copy(),
                world.replicas.copy(),
                world.leaders.copy(),
                self._moves.copy(),
                world.health != Health.ABSENT,
                alive,
                accepts,
                leads,
                self._conformance.count(world),
                np.array([self._totals[name] for name in TOTALS]),
            )
        )

    def history(self, method: str, *, interrupted: bool) -> History:
        """Return what was collected."""
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        seconds, load, capacity, replicas, leaders, moves, present = columns[:7]
        alive, accepts, leads, conformance, totals = columns[7:]
        return History(
            scenario=self._scenario,
            method=method,
            seconds=seconds,
            load=load,
            capacity=capacity,
            replicas=replicas,
            leaders=leaders,
            moves=moves,
            present=present,
            alive=alive,
            accepts=accepts,
            leads=leads,
            conformance=conformance,
            totals=totals,
            below_min_active=self._shortfall.seconds(),
            partitions=tuple(self._world.names),
            log=tuple(self._log),
            events=tuple(self._events),
            warnings=tuple(self._warnings),
            interrupted=interrupted,
        )


class Shortfall:
    """Keeps account of partitions with fewer live replicas than their ``min_active``.

    Time is counted exactly, from one change to the next, and not by samples.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._below = np.zeros(0, bool)
        self._since = np.zeros(0)
        self._seconds = np.zeros(0)
        self._count = 0
        self._total = 0.0
        self._until = world.seconds
        self.look()

    @property
    def total(self) -> float:
        """Seconds so far, added up over partitions."""
        return self._total + self._count * (self._world.seconds - self._until)

    def seconds(self) -> NDArray[np.float64]:
        """Return for how long each partition was below its min-active."""
        open_for = np.where(self._below, self._world.seconds - self._since, 0.0)
        return self._seconds + open_for

    def look(self) -> None:
        """Look at all partitions, after nodes or wishes have changed, or partitions were added."""
        world = self._world
        live = ((world.node >= 0) & world.serves()[world.node]).sum(1)
        below = live < world.least_active()
        new = len(below) - len(self._below)
        if new:
            self._below = np.concatenate([self._below, np.zeros(new, bool)])
            self._since = np.concatenate([self._since, np.zeros(new)])
            self._seconds = np.concatenate([self._seconds, np.zeros(new)])
        for partition in np.flatnonzero(below != self._below).tolist():
            self._turn(partition, bool(below[partition]))

    def look_at(self, partition: int) -> None:
        """Look at a partition whose replicas have changed."""
        world = self._world
        at = world.node[partition]
        live = int(((at >= 0) & world.serves()[at]).sum())
        below = live < int(world.cluster.partitions.min_active[world.origin[partition]])
        if below != self._below[partition]:
            self._turn(partition, below)

    def _turn(self, partition: int, below: bool) -> None:
        now = self._world.seconds
        self._total, self._until = self.total, now
        if below:
            self._since[partition] = now
        else:
            self._seconds[partition] += now - self._since[partition]
        self._below[partition] = below
        self._count += 1 if below else -1
