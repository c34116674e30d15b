"""Fan out: the same task on many items, over any executor, with the answers in order."""

import logging
import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed, wait
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

Common = TypeVar("Common")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

logger = logging.getLogger("evenkeel.sweep")

BATCHES = 16
"""Batches per processor: enough that none is idle at the end, few enough to be worth sending."""

GRACE = 1.0
"""Seconds that workers have to hand in what they have done when all is to end."""


@dataclass(frozen=True)
class Failure:
    """An item whose task raised."""

    message: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Put an error into words."""
        return cls(f"{type(error).__name__}: {error}")


class Shared(Generic[Common]):
    """Something large that every task reads: threads share it, and each process unpacks it once."""

    def __init__(self, value: Common) -> None:
        self.value = value
        self._packed: tuple[str, bytes] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        from hashlib import blake2b  # not needed to import evenkeel, and slow to load

        if self._packed is None:
            data = pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL)
            self._packed = blake2b(data).hexdigest(), data
        return _unpacked, self._packed


_received: dict[str, Shared[Any]] = {}
"""The last thing that was sent to this process, by the digest of what it was packed into."""


def _unpacked(digest: str, data: bytes) -> Shared[Any]:
    if digest not in _received:
        _received.clear()
        _received[digest] = Shared(pickle.loads(data))
    return _received[digest]


class _Halt:
    """Tells tasks in other threads to stop; other processes get a copy that never does."""

    def __init__(self) -> None:
        self.event = Event()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Halt, ()


def fan_out(
    task: Callable[[Common, Item], Answer],
    common: Common,
    items: Sequence[Item],
    executor: Executor | None = None,
    callback: Callable[[int, int], object] | None = None,
) -> list[Answer | Failure | None]:
    """Call a task on every item, whatever becomes of the others.

    Examples
    --------
    >>> fan_out(lambda ten, x: ten // x, 10, [5, 0, 2])
    [2, Failure(message='ZeroDivisionError: integer division or modulo by zero'), 5]
    """
    told = callback or _nobody
    if executor is None:
        return _one_by_one(task, common, items, told)
    return _in_batches(task, common, items, executor, told)


def _nobody(done: int, total: int) -> None:
    """Listen to nothing."""


def _one_by_one(
    task: Callable[[Common, Item], Answer],
    common: Common,
    items: Sequence[Item],
    told: Callable[[int, int], object],
) -> list[Answer | Failure | None]:
    answers: list[Answer | Failure | None] = [None] * len(items)
    try:
        for i, item in enumerate(items):
            answers[i] = _tried(task, common, item)
            told(i + 1, len(items))
    except (KeyboardInterrupt, StopIteration):
        pass
    return answers


def _in_batches(
    task: Callable[[Common, Item], Answer],
    common: Common,
    items: Sequence[Item],
    executor: Executor,
    told: Callable[[int, int], object],
) -> list[Answer | Failure | None]:
    answers: list[Answer | Failure | None] = [None] * len(items)
    size = max(1, len(items) // (BATCHES * (os.cpu_count() or 1)))
    shared, halt = Shared(common), _Halt()
    begun: dict[Future[list[Answer | Failure]], range] = {}
    done = 0
    try:
        for start in range(0, len(items), size):
            places = range(start, min(start + size, len(items)))
            batch = items[places.start : places.stop]
            try:
                begun[executor.submit(_batch, task, shared, batch, halt)] = places
            except RuntimeError as error:  # shut down, or broken by an earlier batch
                for place in places:
                    answers[place] = Failure.of(error)
        for future in as_completed(begun):
            if not _collect(future, begun[future], answers):
                raise KeyboardInterrupt  # it reached a worker
            done += len(begun[future])
            told(done, len(items))
    except BaseException as error:
        halt.event.set()
        wait([future for future in begun if not future.cancel()], timeout=GRACE)
        for future, places in begun.items():
            if future.done():
                _collect(future, places, answers)
        if not isinstance(error, KeyboardInterrupt | StopIteration):
            raise
    return answers


def _batch(
    task: Callable[[Common, Item], Answer],
    shared: Shared[Common],
    batch: Sequence[Item],
    halt: _Halt,
) -> list[Answer | Failure]:
    """Do some items in a worker; fewer answers than items say that it was interrupted."""
    answers: list[Answer | Failure] = []
    try:
        for item in batch:
            if halt.event.is_set():
                break
            answers.append(_tried(task, shared.value, item))
    except KeyboardInterrupt:
        pass
    return answers


def _tried(task: Callable[[Common, Item], Answer], common: Common, item: Item) -> Answer | Failure:
    try:
        return task(common, item)
    except Exception as error:
        said = {"event": "failed", "error": repr(error)}
        logger.info("failed error=%r", error, exc_info=True, extra={"evenkeel": said})
        return Failure.of(error)


def _collect(
    future: Future[list[Answer | Failure]], places: range, answers: list[Answer | Failure | None]
) -> bool:
    """Put the answers of a batch where they belong; whether it was left to end."""
    if future.cancelled():
        return False
    error = future.exception()
    if isinstance(error, Exception):
        for place in places:
            answers[place] = Failure.of(error)
    if error is not None:
        return isinstance(error, Exception)
    found = future.result()
    answers[places.start : places.start + len(found)] = found
    return len(found) == len(places)
