"""Asynchronous pipeline: repairs synchronously, rebalances in the background.

A step looks at a snapshot of the cluster. If partitions sit on nodes that will not come back, it
stops the partial rebalance that may be running, places just those, and keeps the result. It starts
a partial rebalance, if none runs and there is anything to rebalance. If partitions are short of
replicas that serve, it adds some, which are not kept. Everything else happens on worker threads:
the baseline, when the cluster itself has changed, and the partial rebalance, which asks for another
step if it finds a better placement. Where nothing is wrong, a step calculates nothing.

References
----------
Apache Helix wiki, "WAGED Rebalance Pipeline Redesign"; ``WagedRebalancer``.
"""

import operator
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import TracebackType
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.background.executors import Calculator, ThreadWorkers, Workers
from evenkeel.control.background.runs import Background, Standing
from evenkeel.control.clock import Clock, SystemClock
from evenkeel.control.coverage import breaks_nothing, covered, is_short, only
from evenkeel.control.delay import Delay
from evenkeel.control.engines.engine import CalculationFailed, Cancelled, Engine, Scope, Task
from evenkeel.control.metrics import Metrics
from evenkeel.control.operations import with_shadows
from evenkeel.control.step import PipelineResult
from evenkeel.control.stores.binding import with_vanished
from evenkeel.control.stores.ledger import Ledger
from evenkeel.control.stores.store import MemoryStore, Store
from evenkeel.control.view import View, Views
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS, imported
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList

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
    >>> from evenkeel.control.background.executors import InlineWorkers
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
        options: Options | Mapping[str, float | None] | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
        workers: Workers | None = None,
        delay: Delay | None = None,
        on_trigger: Callable[[], object] | None = None,
        kills_partial: bool = True,
        overwrite_from: Literal["baseline", "best_possible"] = "baseline",
        seed: int = 0,
    ) -> None:
        _check(store, clock, workers, delay, on_trigger, overwrite_from, seed)
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

        ``on_trigger`` must not call it: it would wait for itself.

        Parameters
        ----------
        timeout : float, optional
            Seconds; as long as it takes by default.

        Returns
        -------
        bool
            Whether everything is at rest. With manual workers it may
            never be.
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
        """Stop everything that runs, and wait until it has stopped.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for each worker; as long as it takes by default.

        Returns
        -------
        bool
            Whether all workers have ended. What they calculated and had not delivered is lost;
            whatever was kept before is in the store.
        """
        return self._background.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def _check(
    store: Store | None,
    clock: Clock | None,
    workers: Workers | None,
    delay: Delay | None,
    on_trigger: Callable[[], object] | None,
    overwrite_from: str,
    seed: int,
) -> None:
    """Raise every fault of the arguments together; the engine looks at its own."""
    faults = FaultList()
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
    _last: tuple[Standing, Assignment] | None = field(default=None, init=False)

    def cover(
        self, view: View, standing: Standing, failures: list[CalculationFailed]
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
        """Let the engine fill up what is short in an assignment; None if it fails.

        New partitions are left out: they would only be moved again once there is a baseline.
        """
        task = Task(Scope.OVERWRITE, view.cluster, current, seed=self.seed, stop=self.stop)
        answer = self.calculator.calculate(task, failures)
        return None if answer is None else only(answer.assignment, known)


ENGINES = {
    "balance": "evenkeel.control.engines.balance:BalanceEngine",
    "helix_waged": "evenkeel.control.engines.waged:WagedEngine",
}
"""Where the engine of a method is, ``"module:name"``."""


def engine_of(
    method: str | Engine, options: Options | Mapping[str, float | None] | None = None
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
