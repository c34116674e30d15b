"""Pipeline that repairs a cluster synchronously and rebalances it in the background.

A step looks at a snapshot of the cluster. If partitions have replicas on nodes that will not come
back, it stops a running partial rebalance, places just those replicas, and keeps the result. It
starts a partial rebalance if none runs and there is anything to rebalance. If partitions are short
of serving replicas, it adds some, which are not kept. Everything else happens on worker threads:
the baseline, when the cluster itself has changed, and the partial rebalance, which asks for another
step if it finds a better placement. Where nothing is wrong, a step calculates nothing.

One lock guards the background runs and their results. It is held while records are compared and
written, never while an engine calculates or while ``on_trigger`` runs. Whether a result may be kept
is decided at its delivery, under the lock: the result of a cancelled job is dropped, and so is a
stale one, which depends on an older best possible or uses nodes that were lost meanwhile.

References
----------
Apache Helix wiki, "WAGED Rebalance Pipeline Redesign"; ``WagedRebalancer``.
"""

import logging
import operator
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.binding import Bound, bind, same_names, with_vanished
from evenkeel.control.clock import Clock, SystemClock
from evenkeel.control.engines.engine import (
    CalculationFailed,
    Cancelled,
    Change,
    Engine,
    FailureKind,
    Scope,
    Task,
)
from evenkeel.control.executors import Calculator, Job, ThreadWorkers, Workers, note
from evenkeel.control.metrics import (
    Metrics,
    baseline_divergence,
    breaks_nothing,
    covered,
    is_short,
    log_event,
    only,
)
from evenkeel.control.operations import successors, with_shadows
from evenkeel.control.step import PipelineResult
from evenkeel.control.store import Kind, MemoryStore, Record, Stale, Store
from evenkeel.control.view import Changes, Delay, View, Views, changes, changes_since, digests
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.later import imported


@dataclass(frozen=True, eq=False)
class _Bind:
    """A record that has been bound, and to what."""

    record: Record | None
    cluster: Cluster
    successors: NDArray[np.int32] | None
    bound: Bound


class Ledger:
    """Reads and writes a store for one pipeline; callers hold the pipeline's lock."""

    def __init__(self, store: Store, metrics: Metrics, elapsed: Callable[[], float]) -> None:
        self._store, self._metrics, self._elapsed = store, metrics, elapsed
        self._records: dict[Kind, Record | None] = {}
        self._binds: dict[Kind, _Bind] = {}
        for kind in Kind:
            self._read(kind)

    def record(self, kind: Kind) -> Record | None:
        """Return the newest record."""
        return self._records[kind]

    def version(self, kind: Kind) -> int:
        """Return the newest version."""
        record = self._records[kind]
        return record.version if record else 0

    def bound(self, kind: Kind, cluster: Cluster) -> Bound:
        """Return the newest record in the numbers of a cluster."""
        record, last = self._records[kind], self._binds.get(kind)
        swapped = successors(cluster.nodes)
        if last is not None and last.record is record and _alike(last, cluster, swapped):
            return last.bound
        bound = bind(record, cluster, adopt=kind is Kind.BEST_POSSIBLE)
        self._binds[kind] = _Bind(record, cluster, swapped, bound)
        return bound

    def as_record(
        self,
        kind: Kind,
        cluster: Cluster,
        assignment: Assignment,
        known: NDArray[np.bool_],
        digests: dict[str, str] | None = None,
    ) -> Record:
        """Make the record that would come next."""
        return Record(
            version=self.version(kind) + 1,
            assignment=assignment,
            nodes=cluster.nodes.names,
            partitions=cluster.partitions.names,
            known=read_only(known | (np.diff(assignment.first) > 0)),
            digests=digests or {},
        )

    def swapped(self, kind: Kind, cluster: Cluster) -> Record | None:
        """Make the record that names who stays after a swap instead of who left."""
        record, successor = self._records[kind], successors(cluster.nodes)
        if record is None or successor is None:
            return None
        names, held = cluster.nodes.names, np.unique(record.assignment.node).tolist()
        left = {names[i] for i in np.flatnonzero(successor != np.arange(len(successor))).tolist()}
        if not any(record.nodes[i] in left for i in held):
            return None
        bound = self.bound(kind, cluster)
        wider = with_vanished(cluster, bound.vanished)
        return self.as_record(kind, wider, bound.assignment, bound.known, dict(record.digests))

    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record."""
        began = self._elapsed()
        try:
            self._store.write(kind, record)
        except Stale:
            self._read(kind)
            raise
        self._metrics.set_gauge("state_write_latency_gauge", self._elapsed() - began)
        self._records[kind] = record

    def _read(self, kind: Kind) -> None:
        began = self._elapsed()
        self._records[kind] = self._store.read(kind)
        self._metrics.set_gauge("state_read_latency_gauge", self._elapsed() - began)


def _alike(last: _Bind, cluster: Cluster, swapped: NDArray[np.int32] | None) -> bool:
    """Whether binding to a cluster would give what it gave the last time."""
    was = last.cluster
    if not (
        same_names(was.nodes.names, cluster.nodes.names)
        and same_names(was.partitions.names, cluster.partitions.names)
    ):
        return False
    if swapped is None or last.successors is None:
        if swapped is not last.successors:
            return False
    elif not np.array_equal(swapped, last.successors):
        return False
    # where the cluster has them counts only for partitions that no record knows
    return was.placement is cluster.placement or bool(
        last.record is not None and last.bound.known.all()
    )


logger = logging.getLogger("evenkeel.control")

# version of the best possible, version of the baseline, epoch of the view
Inputs = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class ViewState:
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

    def standing(self, view: View) -> ViewState:
        """Return what is known now."""
        with self._lock:
            return self._standing(view)

    def claim(self, view: View) -> Bound | None:
        """Take the best possible for an emergency, if there is one."""
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
            Kind.BEST_POSSIBLE, running.view.cluster, running.job.answer.assignment, running.known
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

    def _standing(self, view: View) -> ViewState:
        """What is known now; the lock is held."""
        return ViewState(
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

    def _measure(self, standing: ViewState) -> None:
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


CLOSED = "the pipeline is closed"


class Pipeline:
    """Keeps a cluster's replicas where they should be, step by step.

    Any thread may run it; steps take turns. No lock is held while anything is calculated or while
    ``on_trigger`` runs. Snapshots must not be written to after they were handed in.

    Parameters
    ----------
    method : str or Engine, optional
        ``"balance"``, ``"helix_waged"``, or an engine of your own.
    options : object, optional
        Options of the method: ``options.Waged`` for ``"helix_waged"``, a mapping of the fields of
        ``BalanceEngine`` for ``"balance"``.
    store : Store, optional
        Where the baseline and the best possible are kept; in memory by default. A pipeline resumes
        from what is there.
    clock : Clock, optional
        The system's by default. Its time is compared with ``Nodes.since``.
    workers : Workers, optional
        The background executor; threads by default.
    delay : Delay, optional
        Delay windows; none by default.
    on_trigger : callable, optional
        Called without arguments when another step would find something new. It runs on the thread
        of a worker, and may run the step itself.
    kills_partial : bool, optional
        Whether an emergency stops a partial rebalance that runs, as in the redesign, or lets it
        finish in vain, as Helix does.
    overwrite_from : "baseline" or "best_possible", optional
        Where replicas are added for partitions that are short: where the baseline has them, as the
        redesign does, unless that breaks a rule; or as the best possible leaves room, as Helix
        does.
    seed : int, optional
        All randomness comes from it.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> from evenkeel.control.executors import InlineWorkers
    >>> nodes = {"capacity": [[10.0]] * 3, "load": [[1.0]] * 6, "min_active": 1}
    >>> cluster = Cluster.from_arrays(placement=[[0, 1]] * 6, **nodes)
    >>> lost = Cluster.from_arrays(placement=[[0, 1]] * 6, alive=[True, False, True], **nodes)
    >>> with Pipeline("balance", workers=InlineWorkers()) as pipeline:
    ...     before, after = pipeline.run(cluster), pipeline.run(lost)
    >>> before.emergency, after.emergency, sorted(set(after.assignment.node.tolist()))
    (False, True, [0, 2])
    """

    def __init__(
        self,
        method: str | Engine = "balance",
        *,
        options: Options | Mapping[str, float | Limits | None] | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
        workers: Workers | None = None,
        delay: Delay | None = None,
        on_trigger: Callable[[], object] | None = None,
        kills_partial: bool = True,
        overwrite_from: Literal["baseline", "best_possible"] = "baseline",
        seed: int = 0,
    ) -> None:
        faults = FaultList()  # the engine looks at its own arguments
        for name, value, kind in (
            ("store", store, Store),
            ("clock", clock, Clock),
            ("workers", workers, Workers),
            ("delay", delay, Delay),
        ):
            if value is not None:
                _check_kind(faults, name, value, kind)
        if on_trigger is not None and not callable(on_trigger):
            faults.add("on_trigger", on_trigger, "must be callable")
        if overwrite_from not in ("baseline", "best_possible"):
            faults.add("overwrite_from", overwrite_from, "must be 'baseline' or 'best_possible'")
        try:
            operator.index(seed)
        except TypeError:
            faults.add("seed", seed, "must be an integer")
        faults.raise_if_any()
        self._clock: Clock = clock or SystemClock()
        elapsed = self._clock.elapsed
        self._name = method if isinstance(method, str) else type(method).__name__
        self._engine, self._seed = engine_of(method, options), operator.index(seed)
        self._metrics = Metrics()
        self._views = Views(delay or Delay())
        hired: Workers = workers or ThreadWorkers()
        self._workers = hired
        self._turn = threading.RLock()  # steps take turns
        self._background = Background(
            self._engine,
            Ledger(store or MemoryStore(), self._metrics, elapsed),
            hired,
            self._metrics,
            elapsed,
            on_trigger,
            kills_partial,
            self._seed,
        )
        self._stop = self._background.closed.is_set
        self._calculator = Calculator(self._engine, self._metrics, elapsed)
        self._overwrites = Overwrites(self._calculator, overwrite_from, self._seed, self._stop)
        weakref.finalize(self, hired.close, 1.0)

    def run(self, cluster: Cluster) -> PipelineResult:
        """Make one step.

        Parameters
        ----------
        cluster : Cluster
            The cluster as it is now. Its placement counts for partitions that the pipeline does not
            know.

        Returns
        -------
        PipelineResult
            Where replicas should be now.

        Raises
        ------
        CalculationFailed
            Of the kinds ``INVALID_REBALANCER_STATUS`` and ``UNKNOWN_FAILURE``.
        InvalidInput
            If it is given no cluster.
        RuntimeError
            If the pipeline is closed.
        """
        require_cluster(cluster)
        with self._turn:
            if self._stop():
                raise RuntimeError(CLOSED)
            try:
                return self._step(cluster)
            except Cancelled:
                raise RuntimeError(CLOSED) from None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is calculated beside the pipeline, and no callback runs.

        ``on_trigger`` must not call it: it would wait for itself. Return whether everything is at
        rest, after so many seconds at most; with manual workers it may never be.
        """
        return self._background.wait(timeout)

    def rebalance_now(self) -> None:
        """End every delay window that is open; the next step sees it."""
        self.delay = replace(self.delay, on_demand=self._clock.now())

    @property
    def delay(self) -> Delay:
        """The delay windows; others may be set, and count from the next step on."""
        return self._views.delay

    @delay.setter
    def delay(self, delay: Delay) -> None:
        faults = FaultList()
        _check_kind(faults, "delay", delay, Delay)
        faults.raise_if_any()
        self._views.delay = delay

    @property
    def metrics(self) -> dict[str, float]:
        """Counters and gauges as they are now; ``control.metrics.Numbers`` describes them."""
        return self._metrics.snapshot()

    @property
    def name(self) -> str:
        """The method by which it places replicas."""
        return self._name

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._clock

    @property
    def workers(self) -> Workers:
        """The background executor."""
        return self._workers

    def close(self, timeout: float | None = None) -> bool:
        """Stop everything that runs, and return whether all workers have ended.

        It waits so many seconds for each worker, or as long as it takes. What they calculated and
        had not delivered is lost; whatever was kept before is in the store.
        """
        return self._background.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _step(self, cluster: Cluster) -> PipelineResult:
        began = self._clock.elapsed()
        beside = self._background
        view = self._views.observe(cluster, self._clock.now())
        failures = beside.look(view)
        beside.keep_swaps(view, failures)
        emergency = self._rescue(view, failures)
        baseline_started = beside.start_baseline()
        partial_started = beside.start_partial()
        standing = beside.standing(view)
        covered = self._overwrites.cover(view, standing, failures)
        shown = standing.best.present if covered is None else covered
        if (view.cluster.nodes.stands_for >= 0).any():
            shown = with_shadows(shown, view.cluster.nodes, self._one_leads(cluster))
        seconds = self._clock.elapsed() - began
        self._metrics.count("pipeline_counter")
        self._metrics.set_gauge("pipeline_latency_gauge", seconds)
        if emergency or covered is not None or failures:
            self._metrics.log_all()
        return PipelineResult(
            assignment=shown,
            best_version=standing.inputs[0],
            baseline_version=standing.inputs[1],
            emergency=emergency,
            overwritten=covered is not None,
            partial_started=partial_started,
            baseline_started=baseline_started,
            wake_at=view.wake_at,
            failures=tuple(failures),
            seconds=seconds,
        )

    def _one_leads(self, cluster: Cluster) -> NDArray[np.bool_]:
        """Partitions in which one replica leads at most: all, or those of ``one_leads``."""
        one_leads = getattr(self._engine, "one_leads", None)
        return (
            np.ones(len(cluster.partitions), np.bool_) if one_leads is None else one_leads(cluster)
        )

    def _rescue(self, view: View, failures: list[CalculationFailed]) -> bool:
        """Place what sits on lost nodes anew, and keep that."""
        best = self._background.claim(view)
        if best is None:
            return False
        cluster = with_vanished(view.cluster, best.vanished)
        task = Task(Scope.EMERGENCY, cluster, best.assignment, seed=self._seed, stop=self._stop)
        answer = self._calculator.calculate(task, failures)
        self._background.rescued(view, best, answer.assignment if answer else None, failures)
        return answer is not None


def _check_kind(faults: FaultList, name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        faults.add(name, value, f"must be a {kind.__name__} of evenkeel.control")


@dataclass
class Overwrites:
    """Makes overwrites, and knows the last one."""

    calculator: Calculator
    source: Literal["baseline", "best_possible"]
    seed: int
    stop: Callable[[], bool]
    _last: tuple[ViewState, Assignment] | None = field(default=None, init=False)

    def cover(
        self, view: View, standing: ViewState, failures: list[CalculationFailed]
    ) -> Assignment | None:
        """Add replicas to the best possible where too few of them serve."""
        best = standing.best
        short = is_short(best, view.cluster, view.serving)
        if not short.any():
            return None
        if self._last is not None:
            last, shown = self._last
            if last.inputs == standing.inputs and last.best is standing.best:
                return shown
        shown = best.present
        has_baseline = standing.inputs[1] > 0
        if self.source == "baseline" and has_baseline:
            wanted = self._filled(view, standing.baseline.present, best.known, failures)
            if wanted is not None:
                more = covered(shown, wanted, short, view.cluster)
                if breaks_nothing(shown, more, view.cluster):
                    shown = more
                    short = is_short(replace(best, assignment=shown), view.cluster, view.serving)
        if short.any():
            added = self._filled(view, shown, best.known, failures)
            shown = shown if added is None else added
        if shown is best.present:
            return None
        self._last = standing, shown
        return shown

    def _filled(
        self,
        view: View,
        current: Assignment,
        known: NDArray[np.bool_],
        failures: list[CalculationFailed],
    ) -> Assignment | None:
        """Let the engine fill up what is short in an assignment; None if it fails."""
        task = Task(Scope.OVERWRITE, view.cluster, current, seed=self.seed, stop=self.stop)
        answer = self.calculator.calculate(task, failures)
        return None if answer is None else only(answer.assignment, known)


ENGINES = {  # where the engine of a method is, ``"module:name"``
    "balance": "evenkeel.control.engines.balance:BalanceEngine",
    "helix_waged": "evenkeel.control.engines.waged:WagedEngine",
}


def engine_of(
    method: str | Engine, options: Options | Mapping[str, float | Limits | None] | None = None
) -> Engine:
    """Return the engine of a method, or the one that is given."""
    faults = FaultList()
    if callable(method) and not isinstance(method, type):
        if options is not None:
            faults.add("options", options, "belong to an engine that is given by name")
        faults.raise_if_any()
        return method
    if not isinstance(method, str) or method not in ENGINES:
        known = ", ".join(sorted(ENGINES))
        faults.add("method", method, f"unknown method of a pipeline; there are: {known}")
        faults.raise_if_any()
    assert isinstance(method, str)
    kind: type = imported(ENGINES[method])
    if options is None:
        return _made(kind)
    own = METHODS[method].options_class()
    if own is not None and type(options) is not own:
        faults.add("options", options, f"{method} takes evenkeel.options.{own.__name__}")
    elif own is None and not isinstance(options, Mapping):
        faults.add("options", options, f"must be a mapping of the fields of {kind.__name__}")
    elif isinstance(options, Mapping):
        known_fields = [one.name for one in fields(kind)]
        for given in options:
            if given not in known_fields:
                faults.add(
                    "options", given, f"unknown field of {kind.__name__}; known: {known_fields}"
                )
    faults.raise_if_any()
    return _made(kind, **options) if isinstance(options, Mapping) else _made(kind, options)


def _made(kind: type, *given: object, **named: object) -> Engine:
    """Make an engine of a kind."""
    engine: Engine = kind(*given, **named)
    return engine
