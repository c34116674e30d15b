"""The pipeline on real threads: it stops what it says it stops, and never waits for anybody."""

import faulthandler
import gc
import signal
import threading
import time
import weakref

import numpy as np
import pytest

from evenkeel.control.engines.engine import Cancelled, Scope
from evenkeel.control.executors import ThreadWorkers
from evenkeel.control.pipeline import Pipeline
from tests.support.pipeline.engines import PlainEngine, cluster

CROWDED = [[0, 1]] * 6
LONG = 60.0


@pytest.fixture(autouse=True)
def watchdog():
    """Show all threads and end the process if a test hangs."""
    faulthandler.dump_traceback_later(LONG * 2, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def evenkeel_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("evenkeel-")]


class Endless(PlainEngine):
    """A partial run goes on until it is told to stop, as a kernel does between slices of work."""

    def __init__(self):
        super().__init__()
        self.running, self.stopped = threading.Event(), threading.Event()
        self.before = self._spin

    def _spin(self, task):
        if task.scope is Scope.PARTIAL:
            self.running.set()
            while not task.stop():
                time.sleep(0.001)
            self.stopped.set()
            raise Cancelled


def test_an_emergency_does_not_wait_for_the_partial_that_it_stops():
    engine = Endless()
    with Pipeline(engine) as pipeline:
        pipeline.run(cluster(CROWDED))
        assert engine.running.wait(LONG)
        assert pipeline.run(cluster(CROWDED, gone=[0])).emergency
        assert engine.stopped.wait(LONG)
        assert pipeline.metrics["cancelled_counter"] == 1


def test_a_step_returns_while_a_partial_runs():
    engine = Endless()
    with Pipeline(engine) as pipeline:
        pipeline.run(cluster(CROWDED))
        assert engine.running.wait(LONG)
        for weight in range(2, 6):
            assert (
                pipeline.run(cluster(CROWDED, weight=np.full(6, float(weight)))).best_version == 0
            )
        assert not engine.stopped.is_set()


def test_closing_stops_and_joins_everybody():
    engine = Endless()
    before = len(evenkeel_threads())
    with Pipeline(engine) as pipeline:
        pipeline.run(cluster(CROWDED))
        assert engine.running.wait(LONG)
        assert len(evenkeel_threads()) > before
    assert engine.stopped.is_set()
    assert len(evenkeel_threads()) == before
    assert pipeline.wait(LONG)
    assert pipeline.close(LONG)  # again


def test_closing_from_a_callback_waits_for_nobody_forever():
    done = threading.Event()

    def close():
        pipeline.close()
        done.set()

    pipeline = Pipeline(PlainEngine(), on_trigger=close)
    pipeline.run(cluster(CROWDED))
    assert done.wait(LONG)
    assert pipeline.wait(LONG)


def test_a_job_that_comes_after_closing_is_delivered_as_cancelled():
    workers = ThreadWorkers()
    pipeline = Pipeline(PlainEngine(), workers=workers)
    workers.close()
    pipeline.run(cluster(CROWDED))
    assert pipeline.wait(LONG)


def test_threads_are_never_more_than_scopes():
    """A thousand events start a thousand partial rebalances at most, and two threads."""
    before = len(evenkeel_threads())
    most = 0
    with Pipeline(PlainEngine()) as pipeline:
        for i in range(300):
            pipeline.run(cluster(CROWDED, weight=np.full(6, 1.0 + i), gone=[i % 2]))
            most = max(most, len(evenkeel_threads()) - before)
        assert pipeline.wait(LONG)
        counted = pipeline.metrics
    assert most <= 2
    assert counted["partial_rebalance_counter"] <= 2 * 300 + counted["global_baseline_calc_counter"]


def test_steps_from_many_threads_take_turns():
    engine = PlainEngine()
    inside = []
    overlap = []

    def before(task):
        if task.scope is Scope.EMERGENCY:
            overlap.append(len(inside))
            inside.append(1)
            time.sleep(0.001)
            inside.pop()

    engine.before = before
    with Pipeline(engine, on_trigger=lambda: pipeline.run(cluster(CROWDED))) as pipeline:
        threads = [
            threading.Thread(target=pipeline.run, args=(cluster(CROWDED, gone=[i]),))
            for i in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in threads)
        assert pipeline.wait(LONG)
    assert overlap and set(overlap) == {0}


def test_a_pipeline_that_is_let_go_of_takes_its_threads_along():
    before = len(evenkeel_threads())
    pipeline = Pipeline(PlainEngine())
    pipeline.run(cluster(CROWDED))
    assert pipeline.wait(LONG)
    gone = weakref.ref(pipeline)
    del pipeline
    gc.collect()
    assert gone() is None
    deadline = time.monotonic() + LONG
    while len(evenkeel_threads()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(evenkeel_threads()) == before


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_step_leaves_everything_in_order():
    engine = PlainEngine()

    def before(task):
        if task.scope is Scope.EMERGENCY:
            signal.raise_signal(signal.SIGINT)

    with Pipeline(engine) as pipeline:
        pipeline.run(cluster(CROWDED))
        assert pipeline.wait(LONG)
        engine.before = before
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(cluster(CROWDED, gone=[0]))
        engine.before = None
        assert pipeline.run(cluster(CROWDED, gone=[0])).emergency
        assert pipeline.wait(LONG)
