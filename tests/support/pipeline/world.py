"""A small cluster with random events for the soak: nodes fail and return, loads change.

Time passes with every event, so that delay windows open and run out. The world keeps what it takes
for every partition to be placed: enough zones with nodes that are there, and room on any of them.
"""

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from evenkeel.control.clock import ManualClock
from evenkeel.control.engines.engine import Change, Engine, Scope, Task
from evenkeel.control.pipeline import Pipeline
from evenkeel.control.step import PipelineResult
from evenkeel.control.store import Kind, MemoryStore, Record
from evenkeel.control.view import Delay
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster

WINDOW = 8.0
DELAY = Delay(WINDOW)
ZONES = 5
REPLICAS, MIN_ACTIVE = 3, 2
EVENTS = ("down", "back", "gone", "added", "disabled", "enabled", "weights", "group", "nothing")
CHANCES = np.array([0.22, 0.26, 0.04, 0.05, 0.08, 0.10, 0.05, 0.02, 0.18])


class World:
    """Nodes and partitions with names, and what may happen to them."""

    def __init__(
        self, seed: int, nodes: int = 20, partitions: int = 60, capacity: float = 400.0
    ) -> None:
        self.size = np.array([capacity, capacity])
        self.least, self.most = int(nodes * 0.6), int(nodes * 1.4)
        self.rng = np.random.default_rng(seed)
        self.now = 0.0
        self.count = 0
        self.names: list[str] = []
        self.zone: list[int] = []
        self.online: list[bool] = []
        self.enabled: list[bool] = []
        self.gone: list[bool] = []
        self.since: list[float] = []
        for i in range(nodes):
            self._add_node(i % ZONES)
        self.load = self.rng.integers(2, 6, (partitions, 2)).astype(float)
        self.group = np.zeros(partitions, np.int32)

    def step(self) -> str:
        """Let one thing happen, and return its name."""
        self.now += 1.0
        event = str(self.rng.choice(EVENTS, p=CHANCES))
        getattr(self, f"_{event}")()
        return event

    def cluster(self) -> Cluster:
        """Take a snapshot; nobody knows where replicas are but the pipeline."""
        alive = np.array(self.online) & np.array(self.enabled) & ~np.array(self.gone)
        return Cluster.from_arrays(
            capacity=np.tile(self.size, (len(self.names), 1)),
            load=self.load,
            replicas=REPLICAS,
            min_active=MIN_ACTIVE,
            domains={"zone": np.array(self.zone)},
            spread={"zone": 1},
            node_names=self.names,
            group=self.group,
            alive=alive,
            gone=self.gone,
            since=np.where(alive, np.nan, self.since),
        )

    def _add_node(self, zone: int) -> None:
        self.names.append(f"n{self.count}")
        self.zone.append(zone)
        self.count += 1
        for values, value in (
            (self.online, True), (self.enabled, True), (self.gone, False), (self.since, np.nan),
        ):  # fmt: skip
            values.append(value)

    def _pick(self, wanted: list[bool]) -> int | None:
        """One of the nodes that are wanted."""
        found = np.flatnonzero(wanted)
        return int(self.rng.choice(found)) if len(found) else None

    def _spare(self) -> list[bool]:
        """Nodes that may stop serving: others of their zone and most of the cluster still do."""
        serves = [
            a and b and not c for a, b, c in zip(self.online, self.enabled, self.gone, strict=True)
        ]
        inside = np.bincount(np.array(self.zone)[serves], minlength=ZONES)
        enough = sum(serves) > self.least
        return [s and enough and inside[z] > 1 for s, z in zip(serves, self.zone, strict=True)]

    def _down(self) -> None:
        if (i := self._pick(self._spare())) is not None:
            self.online[i], self.since[i] = False, self.now

    def _back(self) -> None:
        away = [not a and not b for a, b in zip(self.online, self.gone, strict=True)]
        if (i := self._pick(away)) is not None:
            self.online[i] = True

    def _disabled(self) -> None:
        if (i := self._pick(self._spare())) is not None:
            self.enabled[i], self.since[i] = False, self.now

    def _enabled(self) -> None:
        off = [not a and not b for a, b in zip(self.enabled, self.gone, strict=True)]
        if (i := self._pick(off)) is not None:
            self.enabled[i] = True

    def _gone(self) -> None:
        """A node is said to be gone for good, or one that was leaves the cluster."""
        if (i := self._pick(self.gone)) is not None:
            for values in (
                self.names, self.zone, self.online, self.enabled, self.gone, self.since,
            ):  # fmt: skip
                del values[i]
        elif (i := self._pick(self._spare())) is not None:
            if self.rng.random() < 0.5:
                self.gone[i] = True
            else:
                self.gone[i] = True
                self._gone()  # it vanishes without a word

    def _added(self) -> None:
        if len(self.names) < self.most:
            self._add_node(int(self.rng.integers(ZONES)))

    def _weights(self) -> None:
        some = self.rng.random(len(self.load)) < 0.1
        self.load = self.load.copy()
        self.load[some] = self.rng.integers(2, 6, (int(some.sum()), 2))

    def _group(self) -> None:
        """A group comes, or the newest one goes."""
        newest = int(self.group.max())
        if newest >= 6:
            stays = self.group < newest
            self.load, self.group = self.load[stays], self.group[stays]
        else:
            more = self.rng.integers(2, 6, (6, 2)).astype(float)
            self.load = np.concatenate([self.load, more])
            self.group = np.concatenate([self.group, np.full(6, newest + 1, np.int32)])

    def _nothing(self) -> None:
        pass


class WatchedStore(MemoryStore):
    """Remembers every version that was written, in the order of writing."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[Kind, list[int]] = {kind: [] for kind in Kind}

    def write(self, kind: Kind, record: Record) -> None:
        super().write(kind, record)
        self.versions[kind].append(record.version)


def faults_of(world: World, cluster: Cluster, result: PipelineResult) -> list[str]:
    """What is wrong with a step's answer: lost replicas, and partitions short of serving ones."""
    held = result.assignment
    nodes = cluster.nodes
    serving = nodes.alive & ~nodes.gone
    waited_for = ~serving & ~nodes.gone & (nodes.since + WINDOW > world.now)
    count = len(cluster.partitions)
    kept = np.bincount(held.owner[(serving | waited_for)[held.node]], minlength=count)
    served = np.bincount(held.owner[serving[held.node]], minlength=count)
    known = np.diff(held.first) > 0
    pairs = np.sort(held.owner.astype(np.int64) << 32 | held.node)
    twice = (pairs[1:] == pairs[:-1]).any()
    found = []
    if (kept[known] < REPLICAS).any():
        found.append(f"{int((kept[known] < REPLICAS).sum())} partitions lost replicas")
    if (served[known] < MIN_ACTIVE).any():
        found.append(f"{int((served[known] < MIN_ACTIVE).sum())} partitions are below min-active")
    if twice:
        found.append("a partition is on a node twice")
    return found


def level(cluster: Cluster, held: Assignment) -> float:
    """The fullest node that serves, in its fullest dimension, over the fullest dimension's mean."""
    serving = cluster.nodes.may_receive
    load = cluster.partitions.load.voter[held.owner]
    use = np.stack([np.bincount(held.node, d, minlength=len(serving)) for d in load.T], axis=1)
    share = (use / cluster.nodes.capacity)[serving]
    return float(share.max() / share.mean(axis=0).max())


def fresh(engine: Engine, cluster: Cluster) -> Assignment:
    """What an engine places from nothing on the nodes that serve."""
    nodes = cluster.nodes
    gone = replace(cluster, nodes=replace(nodes, gone=~nodes.may_receive))
    none = np.zeros(0, np.int32)
    empty = Assignment.of_rows(len(cluster.partitions), none, none, none.astype(np.uint8))
    return engine(Task(Scope.GLOBAL, gone, empty, changes=frozenset(Change))).assignment


@dataclass
class Soak:
    """A pipeline with real threads in a world in which things happen."""

    world: World
    engine: Engine
    clock: ManualClock = field(default_factory=ManualClock)
    store: WatchedStore = field(default_factory=WatchedStore)
    seconds: list[float] = field(default_factory=list)  # how long each step took
    cpu: list[float] = field(default_factory=list)  # how long its own thread worked
    # whether something was calculated beside it as each step began
    busy: list[bool] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    # how often each event, emergency and overwrite happened
    happened: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> Self:
        self.pipeline = Pipeline(
            self.engine, store=self.store, clock=self.clock, delay=DELAY
        ).__enter__()
        self.rest()
        return self

    def __exit__(self, *error: object) -> None:
        self.pipeline.__exit__(None, None, None)

    def step(self) -> None:
        """Let one thing happen, run the pipeline, and look at its answer at once."""
        event = self.world.step()
        self.clock.advance(1.0)
        cluster = self.world.cluster()
        self.busy.append(not self.pipeline.wait(0.0))
        began, worked = time.perf_counter(), time.thread_time()
        result = self.pipeline.run(cluster)
        self.cpu.append(time.thread_time() - worked)
        self.seconds.append(time.perf_counter() - began)
        self.happened[event] += 1
        self.happened["emergency"] += result.emergency
        self.happened["overwrite"] += result.overwritten
        self.failures += [str(failure) for failure in result.failures]
        faults = faults_of(self.world, cluster, result)
        self.wrong += [f"{len(self.seconds)} ({event}): {fault}" for fault in faults]

    def rest(self) -> tuple[Cluster, Assignment]:
        """Let all windows pass, and run until nothing is calculated any more."""
        self.world.now += WINDOW + 1.0
        self.clock.advance(WINDOW + 1.0)
        cluster = self.world.cluster()
        for _ in range(100):
            result = self.pipeline.run(cluster)
            is_quiet = not result.partial_started and not result.baseline_started
            if not self.pipeline.wait(60.0):
                raise TimeoutError("a worker hangs")
            if is_quiet and result.best_version == self.pipeline.run(cluster).best_version:
                return cluster, result.assignment
        raise TimeoutError("the pipeline never comes to rest")
