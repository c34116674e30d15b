"""Background runs of a pipeline, and the results that it keeps.

One lock guards all of it. It is held while records are compared and written, never while an engine
calculates or while ``on_trigger`` runs. Whether a result may be kept is decided where it is
delivered, under the lock: a job that was let go is not the running one any more, and a result that
rests on an older best possible, or uses nodes that were lost meanwhile, is stale.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.background.executors import Job, Workers, note
from evenkeel.control.engines.engine import (
    CalculationFailed,
    Change,
    Engine,
    FailureKind,
    Scope,
    Task,
)
from evenkeel.control.metrics import Metrics, baseline_divergence, log_event
from evenkeel.control.stores.binding import Bound, bind, with_vanished
from evenkeel.control.stores.ledger import Ledger
from evenkeel.control.stores.store import Kind, Record, Stale
from evenkeel.control.view import Changes, View, changes, changes_since, digests
from evenkeel.model.assignment import Assignment

logger = logging.getLogger("evenkeel.control")

Inputs = tuple[int, int, int]
"""Version of the best possible, version of the baseline, epoch of the view."""


@dataclass(frozen=True, eq=False)
class Standing:
    """What is known at one moment, in the numbers of one view."""

    best: Bound
    baseline: Bound
    inputs: Inputs


@dataclass(frozen=True, eq=False)
class _Running:
    """A job, and what the world was like when it was started."""

    job: Job
    inputs: Inputs
    view: View
    known: NDArray[np.bool_]


class Background:
    """Baselines and partial rebalances on workers, and the ledger that they share with steps."""

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        workers: Workers,
        metrics: Metrics,
        elapsed: Callable[[], float],
        on_trigger: Callable[[], object] | None,
        kills_partial: bool,
        seed: int,
    ) -> None:
        self._engine, self._workers, self._metrics = engine, workers, metrics
        self._elapsed, self._on_trigger = elapsed, on_trigger
        self._kills_partial, self._seed = kills_partial, seed
        self.closed = threading.Event()

        self._lock = threading.Lock()  # guards all that follows
        self._rest = threading.Condition(self._lock)
        self._ledger = ledger
        self._view: View | None = None
        self._partial: _Running | None = None
        self._global: _Running | None = None
        self._outstanding = 0
        self._failures: list[CalculationFailed] = []
        self._settled: Inputs | None = None  # a partial rebalance of these found nothing better
        self._stuck: Inputs | None = None  # an emergency of these could not place everything
        self._baseline_of: View | None = None  # the last view a baseline was calculated for
        self._baseline_failed: int | None = None  # the epoch in which it could not be
        self._is_paused = False  # the store failed: nothing starts before the next step

    def look(self, view: View) -> list[CalculationFailed]:
        """Take the newest view."""
        with self._lock:
            self._view = view
            self._is_paused = False
            failures, self._failures = self._failures, []
        return failures

    def keep_swaps(self, view: View, failures: list[CalculationFailed]) -> None:
        """Keep under its own name what a node has taken over, as soon as a swap is complete."""
        with self._lock:
            for kind in Kind:
                record = self._ledger.swapped(kind, view.cluster)
                if record is not None:
                    self._keep(kind, record, failures)

    def standing(self, view: View) -> Standing:
        """Return what is known now."""
        with self._lock:
            return self._standing(view)

    def claim(self, view: View) -> Bound | None:
        """Take the best possible for an emergency, if there is one.

        From here on no partial rebalance that runs can be kept: the first to finish wins.
        """
        with self._lock:
            best = self._ledger.bound(Kind.BEST_POSSIBLE, view.cluster)
            if not best.sits_outside(view.active) or self._stuck == self._inputs(view):
                return None
            if self._partial is not None:
                if self._kills_partial:
                    self._partial.job.cancel()
                self._partial = None
                self._metrics.count("cancelled_counter")
                log_event("cancelled", scope=Scope.PARTIAL.value)
            return best

    def rescued(
        self,
        view: View,
        best: Bound,
        assignment: Assignment | None,
        failures: list[CalculationFailed],
    ) -> None:
        """Keep what an emergency found."""
        with self._lock:
            if assignment is not None:
                placed = replace(best, assignment=assignment).present
                record = self._ledger.as_record(
                    Kind.BEST_POSSIBLE, view.cluster, placed, best.known
                )
                if best.vanished or not placed.same_as(best.assignment):
                    failure = self._keep(Kind.BEST_POSSIBLE, record, failures)
                    if failure is not None:
                        raise failure
            now = self._ledger.bound(Kind.BEST_POSSIBLE, view.cluster)
            if now.sits_outside(view.active):
                self._stuck = self._inputs(view)

    def start_partial(self) -> bool:
        """Start a partial rebalance if none runs and something has changed since the last one."""
        with self._lock:
            view = self._view
            if view is None or self._partial is not None or self._must_wait():
                return False
            inputs = self._inputs(view)
            if inputs == self._settled or self._ledger.record(Kind.BASELINE) is None:
                return False
            best = self._ledger.bound(Kind.BEST_POSSIBLE, view.cluster)
            baseline = self._ledger.bound(Kind.BASELINE, view.cluster)
            # a baseline without the replicas of nodes that vanished would ask for fewer of them
            cluster = with_vanished(view.cluster, baseline.vanished)
            task = Task(Scope.PARTIAL, cluster, best.present, baseline.assignment)
            self._partial = self._running(task, view, best, self._partial_done)
            job = self._partial.job
        self._submit(job)
        return True

    def start_baseline(self) -> bool:
        """Start a baseline if none runs and the cluster itself has changed since the last one."""
        with self._lock:
            view = self._view
            if view is None or self._global is not None or self._must_wait():
                return False
            if self._baseline_failed == view.epoch:
                return False
            due = self._due(view)
            if not due:
                self._baseline_of = self._baseline_of or view
                return False
            before = self._ledger.bound(Kind.BASELINE, view.cluster)
            task = Task(
                Scope.GLOBAL, view.cluster, before.present, changes=due.kinds, groups=due.groups
            )
            self._global = self._running(task, view, before, self._baseline_done)
            job = self._global.job
        self._submit(job)
        return True

    def _must_wait(self) -> bool:
        """Whether nothing may be started now; the lock is held."""
        return self._is_paused or self.closed.is_set()

    def _due(self, view: View) -> Changes:
        """What changed since the last baseline; the lock is held."""
        last = self._baseline_of
        if last is None:
            record = self._ledger.record(Kind.BASELINE)
            return changes_since(dict(record.digests) if record else {}, view.given)
        if last.static_epoch == view.static_epoch:
            return Changes()
        due = changes(last.given, view.given)
        was, alive = last.given.nodes.alive, view.given.nodes.alive
        came = len(was) != len(alive) or bool((alive & ~was).any())
        return replace(due, kinds=due.kinds | {Change.NODES}) if due and came else due

    def _running(
        self, task: Task, view: View, bound: Bound, done: Callable[[Job], None]
    ) -> _Running:
        """Make a job that ``wait`` waits for; the lock is held."""
        stopped = threading.Event()
        self._outstanding += 1
        job = Job(
            replace(task, seed=self._seed, stop=stopped.is_set),
            self._engine,
            lambda job: self._delivered(job, done),
            self._elapsed,
            stopped=stopped,
        )
        return _Running(job, self._inputs(view), view, bound.known)

    def _submit(self, job: Job) -> None:
        """Hand a job to the workers; no lock is held."""
        try:
            self._workers.submit(job)
        except BaseException:  # it will not be delivered, so nothing may wait for it
            job.cancel()
            job.deliver()
            raise

    def _delivered(self, job: Job, done: Callable[[Job], None]) -> None:
        """Take the result of a job, and wake those that wait for all jobs."""
        try:
            done(job)
        finally:
            with self._rest:
                self._outstanding -= 1
                self._rest.notify_all()

    def _partial_done(self, job: Job) -> None:
        """Keep what a partial rebalance found, if it is new and not overtaken."""
        with self._lock:
            running, view = self._partial, self._view
            if running is None or running.job is not job or view is None:
                return
            self._partial = None
            if job.stopped.is_set():
                return
            kept = self._keep_partial(running, view) if self._has_answer(job) else False
            if not self._is_paused:
                self._settled = running.inputs
            standing = self._standing(view)
        self._measure(standing)
        if kept:
            self._trigger()
        else:
            self.start_partial()  # if anything has changed while this one ran

    def _keep_partial(self, running: _Running, view: View) -> bool:
        """Keep a result unless it is stale or unchanged; the lock is held."""
        assert running.job.answer is not None
        record = self._ledger.as_record(
            Kind.BEST_POSSIBLE,
            running.view.cluster,
            running.job.answer.assignment,
            running.known,
        )
        now = self._ledger.bound(Kind.BEST_POSSIBLE, view.cluster)
        found = bind(record, view.cluster, adopt=True)
        overtaken = running.inputs[0] != self._ledger.version(Kind.BEST_POSSIBLE)
        if overtaken or found.is_beyond(now, view.active):
            self._count_stale(Scope.PARTIAL, running.inputs[0])
            return False
        if found.assignment.same_as(now.assignment):
            self._count_unchanged(Scope.PARTIAL)
            return False
        return self._keep(Kind.BEST_POSSIBLE, record, self._failures) is None

    def _baseline_done(self, job: Job) -> None:
        """Keep a baseline that is new, and let a partial rebalance follow it."""
        with self._lock:
            running, view = self._global, self._view
            if running is None or running.job is not job or view is None:
                return
            self._global = None
            if job.stopped.is_set():
                return
            if self._has_answer(job):
                if self._keep_baseline(running):
                    self._baseline_of = running.view
            else:
                self._baseline_failed = running.view.epoch
            standing = self._standing(view)
        self._measure(standing)
        self.start_baseline()  # if the cluster itself has changed while this one ran
        self.start_partial()

    def _keep_baseline(self, running: _Running) -> bool:
        """Keep a baseline unless it is unchanged; False if another is due. The lock is held."""
        assert running.job.answer is not None
        cluster, answer = running.view.cluster, running.job.answer
        if running.inputs[1] != self._ledger.version(Kind.BASELINE):
            self._count_stale(Scope.GLOBAL, running.inputs[1])
            return False
        last = self._ledger.record(Kind.BASELINE)
        if last is not None and answer.assignment.same_as(bind(last, cluster, adopt=False).present):
            self._count_unchanged(Scope.GLOBAL)
            return True
        record = self._ledger.as_record(
            Kind.BASELINE, cluster, answer.assignment, running.known, digests(running.view.given)
        )
        return self._keep(Kind.BASELINE, record, self._failures) is None

    def _count_stale(self, scope: Scope, version: int) -> None:
        """Count a result that came too late, of a calculation that started from a version."""
        self._metrics.count("stale_counter")
        log_event("stale", scope=scope.value, version=version)

    def _count_unchanged(self, scope: Scope) -> None:
        """Count a result that was what was known already."""
        self._metrics.count("unchanged_counter")
        log_event("unchanged", scope=scope.value)

    def _has_answer(self, job: Job) -> bool:
        """Count what came of a job; the lock is held."""
        if job.failure is not None:
            note(job.failure, self._failures, self._metrics)
        if job.answer is None:
            return False
        answer = job.answer
        self._metrics.calculated(job.scope, job.seconds, answer.placed, answer.unplaced)
        return True

    def _standing(self, view: View) -> Standing:
        """What is known now; the lock is held."""
        return Standing(
            self._ledger.bound(Kind.BEST_POSSIBLE, view.cluster),
            self._ledger.bound(Kind.BASELINE, view.cluster),
            self._inputs(view),
        )

    def _inputs(self, view: View) -> Inputs:
        """What a calculation from here on would rest on; the lock is held."""
        version = self._ledger.version
        return version(Kind.BEST_POSSIBLE), version(Kind.BASELINE), view.epoch

    def _keep(
        self, kind: Kind, record: Record, failures: list[CalculationFailed]
    ) -> CalculationFailed | None:
        """Write a record; a store that fails is noted and returned. The lock is held."""
        try:
            self._ledger.write(kind, record)
        except Exception as error:  # whatever a store of the caller's own raises
            self._is_paused = not isinstance(error, Stale)
            message = f"The {kind.value} could not be kept: {error}."
            failure = CalculationFailed(FailureKind.INVALID_REBALANCER_STATUS, message)
            failure.__cause__ = error
            note(failure, failures, self._metrics)
            return failure
        log_event("kept", kind=kind.value, version=record.version)
        return None

    def _measure(self, standing: Standing) -> None:
        """Measure how far the best possible is from the baseline; no lock is held."""
        divergence = baseline_divergence(standing.best.present, standing.baseline.present)
        self._metrics.set_gauge("baseline_divergence_gauge", divergence)
        self._metrics.log_all()

    def _trigger(self) -> None:
        """Notify the caller that another step would find something new."""
        if self._on_trigger is None or self.closed.is_set():
            return
        try:
            self._on_trigger()
        except Exception:
            if self.closed.is_set():
                return  # it has tried to run a pipeline that was closed in the meantime
            logger.exception("on_trigger failed", extra={"evenkeel": {"event": "trigger_failed"}})

    def wait(self, timeout: float | None) -> bool:
        """Wait until no job is left."""
        with self._rest:
            return self._rest.wait_for(lambda: self._outstanding == 0, timeout)

    def close(self, timeout: float | None) -> bool:
        """Stop everything, keep nothing more, and wait for the workers."""
        self.closed.set()
        with self._lock:
            for running in (self._partial, self._global):
                if running is not None:
                    running.job.cancel()
            self._partial = self._global = None
        return self._workers.close(timeout)
