"""The cases, races and timelines that the redesign of WAGED's pipeline is described by.

References
----------
Apache Helix wiki, "WAGED Rebalance Pipeline Redesign": "Thread Sequencing", "Note", "Architecture".
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from evenkeel.control.clock import ManualClock
from evenkeel.control.engines.engine import Scope, Task
from evenkeel.control.executors import InlineWorkers, ManualWorkers
from evenkeel.control.pipeline import Pipeline
from evenkeel.control.store import Kind, MemoryStore
from evenkeel.control.view import Delay
from tests.support.pipeline.engines import PlainEngine, TimedWorkers, cluster, rows

CROWDED = [[0, 1]] * 6


@dataclass
class Rig:
    """A pipeline, told when its workers work; everything has been calculated once."""

    kills_partial: bool = True
    engine: PlainEngine = field(default_factory=PlainEngine)
    workers: ManualWorkers = field(default_factory=ManualWorkers)
    store: MemoryStore = field(default_factory=MemoryStore)
    triggered: int = 0

    def __post_init__(self):
        self.pipeline = Pipeline(
            self.engine,
            workers=self.workers,
            store=self.store,
            clock=ManualClock(),
            on_trigger=self._trigger,
            kills_partial=self.kills_partial,
        )
        self.run()
        self.workers.work(Scope.GLOBAL)
        assert self.workers.waiting(Scope.PARTIAL) == 1

    def _trigger(self):
        self.triggered += 1

    def run(self, **state):
        return self.pipeline.run(cluster(CROWDED, **state))

    def version(self):
        record = self.store.read(Kind.BEST_POSSIBLE)
        return record.version if record else 0

    def last(self, scope) -> Task:
        return [task for task in self.engine.calls if task.scope is scope][-1]


@pytest.fixture
def rig():
    return Rig()


class TestCases:
    def test_partial_then_partial(self, rig):
        """Events come while one runs: it finishes in peace, and the next one starts from it."""
        for weight in (2.0, 3.0):
            result = rig.run(weight=np.full(6, weight))
            assert not result.emergency and not result.partial_started
        assert rig.workers.waiting(Scope.PARTIAL) == 1  # the first one, still
        rig.workers.work(Scope.PARTIAL)
        assert (rig.version(), rig.triggered) == (1, 1)
        first = rig.store.read(Kind.BEST_POSSIBLE).assignment
        assert rig.run().partial_started
        rig.workers.work(Scope.PARTIAL)
        assert rig.last(Scope.PARTIAL).current.same_as(first)
        assert rig.version() == 2

    def test_partial_then_emergency(self, rig):
        """The running one is killed; what it would have said is never kept."""
        running = rig.workers._waiting[Scope.PARTIAL][0]
        result = rig.run(gone=[0])
        assert result.emergency and running.stopped.is_set()
        assert running.task.stop()
        assert result.partial_started and rig.workers.waiting(Scope.PARTIAL) == 1
        kept = rig.store.read(Kind.BEST_POSSIBLE)
        assert kept.version == 1
        rig.workers.calculate(Scope.PARTIAL)
        rig.workers.deliver(Scope.PARTIAL)
        assert running.answer is None and rig.version() == 1
        rig.workers.work(Scope.PARTIAL)
        assert rig.last(Scope.PARTIAL).current.same_as(kept.assignment)

    def test_emergency_then_emergency(self, rig):
        """Each is based on the one before; partial rebalances start and are killed at once."""
        for count, gone in enumerate(([0], [0, 1], [0, 1, 2]), 1):
            before = rig.store.read(Kind.BEST_POSSIBLE)
            result = rig.run(gone=gone)
            assert result.emergency and result.partial_started
            assert rig.version() == count
            assert rig.workers.waiting(Scope.PARTIAL) == 1
            if before is not None:
                assert rig.last(Scope.EMERGENCY).current.same_as(before.assignment)
        assert rig.engine.count(Scope.PARTIAL) == 0
        assert all(len(row) == 2 for row in rows(result.assignment))

    def test_emergency_then_partial(self, rig):
        """The cluster is well again: the partial rebalance that is there finishes in peace."""
        rig.run(gone=[0])
        result = rig.run(gone=[0], weight=np.full(6, 2.0))
        assert not result.emergency and not result.partial_started
        rig.workers.work(Scope.PARTIAL)
        assert rig.version() == 2 and rig.triggered == 1

    def test_the_codes_way_lets_it_finish_in_vain(self):
        rig = Rig(kills_partial=False)
        running = rig.workers._waiting[Scope.PARTIAL][0]
        rig.run(gone=[0])
        assert not running.stopped.is_set()
        rig.workers.calculate(Scope.PARTIAL)
        rig.workers.deliver(Scope.PARTIAL)
        assert running.answer is not None
        assert rig.version() == 1


class TestRaces:
    def test_the_step_came_first(self, rig):
        """The partial rebalance has its result and has not delivered it: it may not any more."""
        rig.workers.calculate(Scope.PARTIAL)
        assert rig.run(gone=[0]).emergency
        kept = rig.store.read(Kind.BEST_POSSIBLE)
        rig.workers.deliver(Scope.PARTIAL)
        assert rig.store.read(Kind.BEST_POSSIBLE) is kept
        assert rig.triggered == 0

    def test_the_result_came_first(self, rig):
        """It is kept, and the emergency starts from it."""
        rig.workers.work(Scope.PARTIAL)
        found = rig.store.read(Kind.BEST_POSSIBLE)
        assert rig.run(gone=[0]).emergency
        assert rig.last(Scope.EMERGENCY).current.same_as(found.assignment)
        assert rig.version() == 2

    def test_the_result_comes_while_the_emergency_calculates(self, rig):
        rig.workers.calculate(Scope.PARTIAL)

        def deliver(task):
            if task.scope is Scope.EMERGENCY:
                rig.workers.deliver(Scope.PARTIAL)

        rig.engine.before = deliver
        assert rig.run(gone=[0]).emergency
        assert rig.version() == 1
        assert 0 not in rig.store.read(Kind.BEST_POSSIBLE).assignment.node

    def test_a_result_on_nodes_lost_meanwhile_is_stale(self, rig):
        """Nothing sat on node 2 when it was lost, but what runs is about to use it."""
        rig.workers.calculate(Scope.PARTIAL)
        assert not rig.run(gone=[2]).emergency
        rig.workers.deliver(Scope.PARTIAL)
        assert rig.version() == 0
        assert rig.pipeline.metrics["stale_counter"] == 1
        rig.workers.work(Scope.PARTIAL)  # the next one had been started by itself
        assert rig.version() == 1
        assert 2 not in rig.store.read(Kind.BEST_POSSIBLE).assignment.node

    def test_events_that_a_fruitless_one_did_not_see_are_not_lost(self, rig):
        rig.engine.levels = False
        rig.workers.calculate(Scope.PARTIAL)
        assert not rig.run(weight=np.full(6, 2.0)).partial_started
        rig.workers.deliver(Scope.PARTIAL)
        assert rig.triggered == 0
        assert rig.workers.waiting(Scope.PARTIAL) == 1
        rig.workers.work(Scope.PARTIAL)
        assert rig.workers.waiting(Scope.PARTIAL) == 0


class Restless(PlainEngine):
    """A partial run always finds something: another node for the first partition."""

    def __init__(self):
        super().__init__(levels=False)
        self.is_awake = False

    def _level(self, table, held, allowed):
        if self.is_awake:
            free = [n for n in np.flatnonzero(allowed).tolist() if n not in table[0]]
            table[0] = [table[0][0], free[held[free].argmin()]]

    def __call__(self, task):
        self.levels = self.is_awake
        return super().__call__(task)


def rested(workers, clock, engine, **settings):
    """A pipeline that has nothing left to do; things begin to happen from now on."""
    pipeline = Pipeline(engine, workers=workers, clock=clock, delay=Delay(100.0), **settings)
    for _ in range(3):
        pipeline.run(cluster(CROWDED))
        if isinstance(workers, TimedWorkers):
            workers.run_until(clock.now() + 2.0)
    engine.is_awake = True
    return pipeline


class TestTimelines:
    def test_before_the_redesign(self):
        """Everything on one thread, two units each: steps begin at 0, 2 and 4, events queue."""
        clock, engine = ManualClock(), Restless()
        pipeline = rested(InlineWorkers(), clock, engine)
        engine.before = lambda task: clock.advance(2.0) if task.scope is Scope.PARTIAL else None
        steps = []
        queue = [0.0, 1.0, 2.0, 3.0, 4.0]  # an event at every unit of time
        while queue:
            clock.advance(max(0.0, queue[0] - clock.now()))
            began = clock.now()
            result = pipeline.run(cluster(CROWDED, down=[len(steps) % 2 + 4]))
            steps.append((began, clock.now(), result.best_version))
            # what has come by the time a step begins is taken up by it
            queue = [moment for moment in queue if moment > began]
        assert steps == [(0.0, 2.0, 1), (2.0, 4.0, 2), (4.0, 6.0, 3)]
        assert engine.count(Scope.EMERGENCY) == 0

    def test_after_the_redesign(self):
        """Nodes are lost at 0 and 1, something else happens at 2; five units of time."""
        clock, engine = ManualClock(), Restless()
        workers = TimedWorkers(clock, {Scope.PARTIAL: 2.0})
        pipeline = rested(workers, clock, engine, on_trigger=lambda: step(None, "trigger"))
        start = clock.now()
        workers.started.clear()
        workers.finished.clear()
        seen, steps, emergencies = [], [], []

        def before(task):
            if task.scope is Scope.EMERGENCY:
                workers.note_killed()
                emergencies.append(clock.now() - start)
                clock.advance(1.0)

        def step(snapshot, why):
            seen.append(snapshot or seen[-1])
            began = clock.now() - start
            result = pipeline.run(seen[-1])
            ended = clock.now() - start
            steps.append((why, began, ended, result.emergency, result.best_version))

        engine.before = before
        for moment, state in (
            (0.0, {"gone": [0]}),
            (1.0, {"gone": [0, 1]}),
            (2.0, {"gone": [0, 1], "down": [5]}),
        ):
            workers.run_until(max(start + moment, clock.now()))
            step(cluster(CROWDED, **state), "event")
        workers.run_until(start + 4.0)

        assert steps == [
            ("event", 0.0, 1.0, True, 1),  # best possible (n), by an emergency
            ("event", 1.0, 2.0, True, 2),  # best possible (n+1), by another
            ("event", 2.0, 2.0, False, 2),  # nothing to do: the previous one, at once
            ("trigger", 4.0, 4.0, False, 3),  # by the partial rebalance that has finished
        ]
        assert emergencies == [0.0, 1.0]

        def moments(entries):
            return [moment - start for moment, scope in entries if scope is Scope.PARTIAL]

        assert moments(workers.started) == [1.0, 2.0, 4.0]
        assert moments(workers.killed) == [1.0]
        assert moments(workers.finished) == [4.0]
