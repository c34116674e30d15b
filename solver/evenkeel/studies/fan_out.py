"""Fan out: the same task on many items, over any executor, with the answers in order.

Threads share what all tasks read, and each other process unpacks it once: a pool of processes
from a file, and others, such as the workers of Dask, from bytes that travel with every batch.
Batches and their answers are bytes on their way, since some executors send each array by itself.
"""

import logging
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar
from uuid import uuid4

Common = TypeVar("Common")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

# answers the first of some items, one at least; None stands for one that the task has to do
Together = Callable[[Common, Sequence[Item]], Sequence[Answer | None]]

logger = logging.getLogger("evenkeel.sweep")

# batches per worker: enough that none is idle at the end, few enough to be worth sending
BATCHES = 16

GRACE = 1.0  # seconds that workers have to hand in what they have done when all is to end
LONG = 0.02  # seconds between two calls of a callback, which may end the study
# how many times as many items are done together next, after some that took next to no time
GROWTH = 4


@dataclass(frozen=True)
class Failure:
    """An item whose task raised."""

    message: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Put an error into words."""
        return cls(f"{type(error).__name__}: {error}")


@dataclass
class Job(Generic[Common, Item, Answer]):
    """A task for every item, and what answers many ``together``, as many as take little time."""

    task: Callable[[Common, Item], Answer]
    together: Together[Common, Item, Answer] | None = None
    width: int = 1

    def answers(self, common: Common, items: Sequence[Item]) -> Iterator[Answer | Failure]:
        """Yield the answer of each item; batches are short enough for an answer soon."""
        at = 0
        while at < len(items):
            batch = items[at : at + self.width]
            began = time.perf_counter()
            found = self._together(common, batch)
            seconds = time.perf_counter() - began
            if seconds < LONG / GROWTH:
                self.width = max(self.width, len(batch) * GROWTH)
            elif seconds > LONG:
                self.width = max(1, len(batch) // 2)
            for item, answer in zip(items[at:], found, strict=False):
                yield self._alone(common, item) if answer is None else answer
            at += len(found)

    def _together(self, common: Common, items: Sequence[Item]) -> Sequence[Answer | Failure | None]:
        if self.together is None:
            return [None]
        try:
            return self.together(common, items)
        except Exception as error:
            if len(items) > 1:  # the item at fault is found when it is alone
                return self._together(common, items[:1])
            return [_failure_of(error)]

    def _alone(self, common: Common, item: Item) -> Answer | Failure:
        try:
            return self.task(common, item)
        except Exception as error:
            return _failure_of(error)


def _failure_of(error: Exception) -> Failure:
    """Put an error into words, and into the log."""
    event = {"event": "failed", "error": repr(error)}
    logger.info("failed error=%r", error, exc_info=True, extra={"evenkeel": event})
    return Failure.of(error)


class Shared(Generic[Common]):
    """A value that every task reads: threads share it, and each process unpacks it once."""

    def __init__(self, value: Common, path: str = "") -> None:
        self.value = value
        self.path = path
        self._packed: tuple[str, bytes] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:
            data = pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL)
            if self.path:
                Path(self.path).write_bytes(data)
                self._packed = self.path, b""
            else:
                from hashlib import blake2b  # not needed to import evenkeel, and slow to load

                self._packed = blake2b(data).hexdigest(), data
        return _unpacked, self._packed


# the last value that was sent to this process, by its digest or file
_received: dict[str, Shared[Any]] = {}


def _unpacked(key: str, data: bytes) -> Shared[Any]:
    if key not in _received:
        _received.clear()
        _received[key] = Shared(pickle.loads(data or Path(key).read_bytes()))
    return _received[key]


class _Sealed(Generic[Common]):
    """Many small things, one string of bytes between processes."""

    def __init__(self, value: Common) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unsealed, (pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL),)


def _unsealed(data: bytes) -> _Sealed[Any]:
    return _Sealed(pickle.loads(data))


class _Halt:
    """Tells tasks in other threads to stop; other processes get a copy that never does."""

    # the name separates tasks of one call from equal ones of another: Dask takes tasks with equal
    # arguments for the same, and one that was cancelled a moment ago would not run

    def __init__(self, name: str = "") -> None:
        self.event, self.name = Event(), name or uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        return _Halt, (self.name,)


def fan_out(
    task: Callable[[Common, Item], Answer],
    common: Common,
    items: Sequence[Item],
    executor: Executor | None = None,
    callback: Callable[[int, int], object] | None = None,
    together: Together[Common, Item, Answer] | None = None,
    ends: Callable[[Answer | Failure | None], bool] = lambda _: False,
) -> list[Answer | Failure | None]:
    """Call a task on every item, whatever becomes of the others, until an answer ``ends`` it."""
    # ``together`` answers the first of the items that it is given, one at least, and None for those
    # that the task has to do
    job = Job(task, together)
    answers: list[Answer | Failure | None] = [None] * len(items)
    done = 0

    def report(places: range) -> None:
        nonlocal done
        done += len(places)
        if callback is not None:
            callback(done, len(items))
        if any(map(ends, answers[places.start : places.stop])):
            raise StopIteration

    try:
        if executor is None:
            for i, answer in enumerate(job.answers(common, items)):
                answers[i] = answer
                report(range(i, i + 1))
        else:
            with _sharing(executor, common) as shared:
                _in_batches(job, shared, items, executor, answers, report)
    except (KeyboardInterrupt, StopIteration):
        pass
    return answers


@contextmanager
def _sharing(executor: Executor, common: Common) -> Iterator[Shared[Common]]:
    """Share a value, by a file with a pool of processes."""
    if not isinstance(executor, ThreadPoolExecutor):
        from concurrent.futures import ProcessPoolExecutor  # loads all of multiprocessing

        if isinstance(executor, ProcessPoolExecutor):
            with tempfile.TemporaryDirectory(prefix="evenkeel-") as folder:
                yield Shared(common, str(Path(folder) / "shared"))
            return
    yield Shared(common)


def _in_batches(
    job: Job[Any, Any, Any],
    shared: Shared[Any],
    items: Sequence[Any],
    executor: Executor,
    answers: list[Any],
    report: Callable[[range], None],
) -> None:
    """Hand out batches, and collect their answers as they end."""
    halt = _Halt()
    begun: dict[Future[_Sealed[list[Any]]], range] = {}
    workers = int(getattr(executor, "_max_workers", 0) or os.cpu_count() or 1)
    size = max(1, len(items) // (BATCHES * workers))
    try:
        for start in range(0, len(items), size):
            places = range(start, min(start + size, len(items)))
            batch = _Sealed(items[places.start : places.stop])
            try:
                begun[executor.submit(_batch, job, shared, batch, halt)] = places
            except RuntimeError as error:  # shut down, or broken by an earlier batch
                _fail(places, error, answers)
        for future in as_completed(begun):
            if not _collect(future, begun[future], answers):
                raise KeyboardInterrupt  # it reached a worker
            report(begun[future])
    except BaseException:
        halt.event.set()
        wait([future for future in begun if not future.cancel()], timeout=GRACE)
        for future, places in begun.items():
            if future.done():
                _collect(future, places, answers)
        raise


def _batch(
    job: Job[Any, Any, Any], shared: Shared[Any], batch: _Sealed[Sequence[Any]], halt: _Halt
) -> _Sealed[list[Any]]:
    """Do some items in a worker; fewer answers than items mean that it was interrupted."""
    answers: list[Any] = []
    try:
        if not halt.event.is_set():
            for answer in job.answers(shared.value, batch.value):
                answers.append(answer)
                if halt.event.is_set():
                    break
    except KeyboardInterrupt:
        pass
    return _Sealed(answers)


def _fail(places: range, error: BaseException, answers: list[Any]) -> None:
    """Note why a batch has no answers."""
    answers[places.start : places.stop] = [Failure.of(error)] * len(places)


def _collect(future: Future[_Sealed[list[Any]]], places: range, answers: list[Any]) -> bool:
    """Put the answers of a batch where they belong; return whether it came to its end."""
    if future.cancelled():
        return False
    error = future.exception()
    if isinstance(error, Exception):
        _fail(places, error, answers)
    if error is not None:
        return isinstance(error, Exception)
    found = future.result().value
    answers[places.start : places.start + len(found)] = found
    return len(found) == len(places)
