"""Run calculations in worker threads, in the calling thread, or step by step in tests.

A job is a calculation and the delivery of its result. An executor runs one after the other; the
delivery checks whether the pipeline has changed in between.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from evenkeel.control.engines.engine import (
    Answer,
    CalculationFailed,
    Cancelled,
    Engine,
    FailureKind,
    Scope,
    Task,
)
from evenkeel.control.metrics import Metrics, log_event

logger = logging.getLogger("evenkeel.control")


def calculated(engine: Engine, task: Task, elapsed: Callable[[], float]) -> tuple[Answer, float]:
    """Return the answer of an engine and the seconds that it took; any error is a failure."""
    began = elapsed()
    log_event("calculating", logging.DEBUG, scope=task.scope.value)
    try:
        answer = engine(task)
        if not isinstance(answer, Answer):
            raise TypeError(f"an engine returns an Answer, not {type(answer).__name__}")
    except (Cancelled, CalculationFailed):
        raise
    except Exception as error:  # a worker must outlive its jobs
        raise CalculationFailed(FailureKind.UNKNOWN_FAILURE, f"{error!r}.") from error
    return answer, elapsed() - began


@dataclass(eq=False)
class Job:
    """One calculation beside the pipeline.

    Parameters
    ----------
    task : Task
        What is calculated; its ``stop`` is the job's own.
    engine : callable
        The executor.
    done : callable
        Called with the job once it is calculated, successful or not.
    elapsed : callable
        Seconds that only grow.
    answer : Answer or None
        What came of it; None if it was cancelled or failed.
    failure : CalculationFailed or None
        Why it failed.
    seconds : float
        How long it took.
    stopped : threading.Event
        Set once the job is cancelled.
    is_delivered : bool
        Whether it has been handed over, which happens once.

    Examples
    --------
    >>> import time
    >>> from evenkeel.control import CalculationFailed, FailureKind
    >>> def broken(task):
    ...     raise CalculationFailed(FailureKind.INVALID_INPUT, "No load is known.")
    >>> job = Job(Task(Scope.GLOBAL, None, None), broken, done=print, elapsed=time.monotonic)
    >>> job.calculate()
    >>> job.failure.kind.name
    'INVALID_INPUT'
    """

    task: Task
    engine: Engine
    done: Callable[["Job"], None]
    elapsed: Callable[[], float]
    answer: Answer | None = None
    failure: CalculationFailed | None = None
    seconds: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)
    is_delivered: bool = False

    @property
    def scope(self) -> Scope:
        """What is placed anew; jobs of one scope never run side by side."""
        return self.task.scope

    def cancel(self) -> None:
        """Ask the calculation to stop, without waiting for it."""
        self.stopped.set()

    def calculate(self) -> None:
        """Run the engine; never raises."""
        if self.stopped.is_set():
            return
        try:
            self.answer, self.seconds = calculated(self.engine, self.task, self.elapsed)
        except Cancelled:
            self.stopped.set()
        except CalculationFailed as failure:
            self.failure = failure

    def deliver(self) -> None:
        """Hand over what came of it, unless that was done before."""
        if not self.is_delivered:
            self.is_delivered = True
            self.done(self)


class Workers(ABC):
    """Runs jobs, those of one scope one after the other.

    Examples
    --------
    >>> from evenkeel.control import Workers
    >>> class Later(Workers):
    ...     def __init__(self):
    ...         self.jobs = []
    ...     def submit(self, job):
    ...         self.jobs.append(job)
    ...     def close(self, timeout=None):
    ...         return not self.jobs
    >>> Later().close()
    True
    """

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Take a job; it is calculated and delivered after those of its scope taken before.

        None is calculated after closing.
        """

    @abstractmethod
    def close(self, timeout: float | None = None) -> bool:
        """Cancel all jobs, wait for what runs, and return whether all other threads have ended.

        It waits so many seconds for each thread, or as long as it takes.
        """


class ThreadWorkers(Workers):
    """One thread for each scope, started when it is first needed.

    Examples
    --------
    >>> ThreadWorkers().close(1.0)
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[Scope, SimpleQueue[Job | None]] = {}
        self._threads: dict[Scope, threading.Thread] = {}
        self._jobs: set[Job] = set()
        self._closed = False

    def submit(self, job: Job) -> None:
        """Take a job."""
        with self._lock:
            is_late = self._closed
            if not is_late:
                self._jobs.add(job)
                self._queue(job.scope).put(job)
        if is_late:
            job.cancel()
            job.deliver()

    def close(self, timeout: float | None = None) -> bool:
        """Cancel all jobs and wait for the threads."""
        with self._lock:
            self._closed = True
            for job in self._jobs:
                job.cancel()
            for queue in self._queues.values():
                queue.put(None)
            threads = list(self._threads.values())
        others = [thread for thread in threads if thread is not threading.current_thread()]
        for thread in others:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in others)

    def _queue(self, scope: Scope) -> "SimpleQueue[Job | None]":
        """Return the queue of a scope, with a thread that serves it; the lock is held."""
        if scope not in self._queues:
            queue: SimpleQueue[Job | None] = SimpleQueue()
            thread = threading.Thread(
                target=self._work, args=(queue,), name=f"evenkeel-{scope.value}", daemon=True
            )
            self._queues[scope], self._threads[scope] = queue, thread
            thread.start()
        return self._queues[scope]

    def _work(self, queue: "SimpleQueue[Job | None]") -> None:
        while (job := queue.get()) is not None:
            job.calculate()
            try:
                job.deliver()
            except Exception:  # the thread must survive for the jobs that follow
                event = {"event": "delivery_failed", "scope": job.scope.value}
                logger.exception("a delivery failed", extra={"evenkeel": event})
            with self._lock:
                self._jobs.discard(job)
            del job  # a thread at rest holds no cluster


class InlineWorkers(Workers):
    """The caller itself, at once: one thread, in which everything takes its turn.

    Examples
    --------
    >>> InlineWorkers().close()
    True
    """

    def __init__(self) -> None:
        self._own = threading.local()

    def submit(self, job: Job) -> None:
        """Calculate and deliver a job, and those that follow from it, before returning."""
        queue: deque[Job] | None = getattr(self._own, "queue", None)
        if queue is not None:
            queue.append(job)
            return
        self._own.queue = queue = deque([job])
        try:
            while queue:
                queue[0].calculate()
                queue[0].deliver()
                queue.popleft()
        finally:
            self._own.queue = None
            for left in queue:  # something else has ended it
                left.cancel()
                left.deliver()

    def close(self, timeout: float | None = None) -> bool:
        """Do nothing: nothing runs."""
        return True


class ManualWorkers(Workers):
    """No thread: a test or a simulation calls for each calculation and delivery.

    Examples
    --------
    >>> workers = ManualWorkers()
    >>> workers.waiting(Scope.PARTIAL)
    0
    """

    def __init__(self) -> None:
        self._waiting: dict[Scope, deque[Job]] = {scope: deque() for scope in Scope}
        self._calculated: dict[Scope, deque[Job]] = {scope: deque() for scope in Scope}

    def submit(self, job: Job) -> None:
        """Keep a job for later."""
        self._waiting[job.scope].append(job)

    def waiting(self, scope: Scope) -> int:
        """Count the jobs of a scope not yet calculated, without cancelled ones."""
        return sum(not job.stopped.is_set() for job in self._waiting[scope])

    def calculate(self, scope: Scope) -> None:
        """Calculate the oldest job of a scope, and do not deliver it yet."""
        job = self._waiting[scope].popleft()
        job.calculate()
        self._calculated[scope].append(job)

    def deliver(self, scope: Scope) -> None:
        """Deliver the oldest job of a scope that has been calculated."""
        self._calculated[scope].popleft().deliver()

    def work(self, scope: Scope) -> None:
        """Calculate and deliver all jobs of a scope that are there now."""
        for _ in range(len(self._waiting[scope])):
            self.calculate(scope)
            self.deliver(scope)

    def close(self, timeout: float | None = None) -> bool:
        """Cancel what is there."""
        for jobs in self._waiting.values():
            for job in jobs:
                job.cancel()
        return True


# failures that are raised; after any other what was known holds
REACH_THE_CALLER = (FailureKind.INVALID_REBALANCER_STATUS, FailureKind.UNKNOWN_FAILURE)


@dataclass
class Calculator:
    """Runs an engine for a synchronous step."""

    engine: Engine
    metrics: Metrics
    elapsed: Callable[[], float]

    def calculate(self, task: Task, failures: list[CalculationFailed]) -> Answer | None:
        """Calculate."""
        try:
            answer, seconds = calculated(self.engine, task, self.elapsed)
        except CalculationFailed as failure:
            note(failure, failures, self.metrics)
            if failure.kind in REACH_THE_CALLER:
                raise
            return None
        self.metrics.calculated(task.scope, seconds, answer.placed, answer.unplaced)
        return answer


def note(failure: CalculationFailed, failures: list[CalculationFailed], metrics: Metrics) -> None:
    """Note, count and log a failure."""
    failures.append(failure)
    metrics.count("rebalance_failure_counter")
    log_event("failed", logging.WARNING, kind=failure.kind.value, message=str(failure))
