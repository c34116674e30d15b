"""Fan out: the same task on many items, over any executor, with the answers in order."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack
from threading import Event
from typing import Any, NamedTuple, TypeVar

from evenkeel.model.runtime.logs import log_event
from evenkeel.studies.job import Failure, Job, Together
from evenkeel.studies.workers import Sharing, Workers

Common = TypeVar("Common")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

logger = logging.getLogger("evenkeel.sweep")

BATCHES = 16
"""Batches per worker: enough that none is idle at the end, few enough to be worth sending."""

GRACE = 1.0
"""Seconds that workers have to hand in what they have done when all is to end."""


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
    together: Together[Common, Item, Answer] | None = None,
) -> list[Answer | Failure | None]:
    """Call a task on every item, whatever becomes of the others.

    What is done ``together`` is left out: it answers the first items that it is given, one at
    least, and None for what is the task's.

    Examples
    --------
    >>> fan_out(lambda ten, x: ten // x, 10, [5, 0, 2])
    [2, Failure(message='ZeroDivisionError: integer division or modulo by zero'), 5]
    """
    report = callback or _no_report
    job = Job(task, together)
    if executor is None:
        return _one_by_one(job, common, items, report)
    return _in_batches(job, common, items, executor, report)


def _no_report(done: int, total: int) -> None:
    """Listen to nothing."""


def _one_by_one(
    job: Job[Common, Item, Answer],
    common: Common,
    items: Sequence[Item],
    report: Callable[[int, int], object],
) -> list[Answer | Failure | None]:
    answers: list[Answer | Failure | None] = [None] * len(items)
    try:
        for i, answer in enumerate(job.answers(common, items)):
            answers[i] = answer
            report(i + 1, len(items))
    except (KeyboardInterrupt, StopIteration):
        pass
    return answers


def _in_batches(
    job: Job[Common, Item, Answer],
    common: Common,
    items: Sequence[Item],
    executor: Executor,
    report: Callable[[int, int], object],
) -> list[Answer | Failure | None]:
    """Hand out batches, and those again that were lost with a worker that is replaced."""
    answers: list[Answer | Failure | None] = [None] * len(items)
    reported = 0

    def tell_of(places: range) -> None:
        nonlocal reported
        reported += len(places)
        report(reported, len(items))

    try:
        workers = Workers(executor)
        left = _batches(len(items), workers.count)
        for turn in range(workers.tries):
            last = turn == workers.tries - 1
            with ExitStack() as stack:
                try:
                    shared = stack.enter_context(workers.sharing(common))
                except Exception as error:  # no worker is there, or it went while this was sent
                    if last:
                        _fail(left, error, answers)
                    continue
                left = _turn(_Turn(workers, job, shared, items, last), left, answers, tell_of)
            if not left:
                break
            log_event(logger, "again", batches=len(left))
    except (KeyboardInterrupt, StopIteration):
        pass
    return answers


class _Turn(NamedTuple):
    """One time of handing out batches; what is lost in the last one has failed."""

    workers: Workers
    job: Job[Any, Any, Any]
    shared: Any
    items: Sequence[Any]
    last: bool


def _turn(
    turn: _Turn,
    batches: Sequence[range],
    answers: list[Any],
    tell_of: Callable[[range], None],
) -> list[range]:
    """Hand batches out and collect what comes of them; those that were lost."""
    halt = _Halt()
    begun: dict[Future[Any], range] = {}
    lost: list[range] = []
    try:
        for places in batches:
            batch = turn.items[places.start : places.stop]
            try:
                future = turn.workers.submit(_batch, turn.job, turn.shared, batch, halt)
                begun[future] = places
            except RuntimeError as error:  # shut down, or broken by an earlier batch
                _fail([places], error, answers)
        for future in _ended(turn, begun):
            places = begun[future]
            if not turn.last and _is_lost(future):
                lost.append(places)
                continue
            if future.cancelled():  # not by us: the worker lost what was shared
                _fail([places], CancelledError("lost with its worker"), answers)
            elif not _collect(turn.workers, future, places, answers):
                raise KeyboardInterrupt  # it reached a worker
            tell_of(places)
    except BaseException:
        halt.event.set()
        wait([future for future in begun if not future.cancel()], timeout=GRACE)
        for future, places in begun.items():
            if future.done():
                _collect(turn.workers, future, places, answers)
        raise
    return lost


def _ended(turn: _Turn, begun: Collection[Future[Any]]) -> Iterator[Future[Any]]:
    """Hand out batches as they end; the rest as cancelled, once what they read is lost.

    Dask's executor never ends the future of a result that was lost on its way here.
    """
    left = set(begun)
    while left:
        done, left = wait(left, timeout=turn.workers.patience, return_when=FIRST_COMPLETED)
        yield from done
        if left and turn.workers.lost(turn.shared):
            for future in left:
                future.cancel()
            yield from left
            return


def _fail(batches: Sequence[range], error: BaseException, answers: list[Any]) -> None:
    """Note why batches have no answers."""
    for places in batches:
        answers[places.start : places.stop] = [Failure.of(error)] * len(places)


def _is_lost(future: Future[Any]) -> bool:
    """Whether a batch came to nothing by no fault of its items, whose errors are answers."""
    return future.cancelled() or isinstance(future.exception(), Exception)


def _batches(count: int, workers: int) -> list[range]:
    """Cut so many items into batches for so many workers."""
    size = max(1, count // (BATCHES * workers))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _batch(
    job: Job[Common, Item, Answer],
    shared: Sharing[Common],
    batch: Sequence[Item],
    halt: _Halt,
) -> list[Answer | Failure]:
    """Do some items in a worker; fewer answers than items say that it was interrupted."""
    answers: list[Answer | Failure] = []
    if halt.event.is_set():
        return answers
    try:
        for answer in job.answers(shared.value, batch):
            answers.append(answer)
            if halt.event.is_set():
                break
    except KeyboardInterrupt:
        pass
    return answers


def _collect(
    workers: Workers, future: Future[Any], places: range, answers: list[Answer | Failure | None]
) -> bool:
    """Put the answers of a batch where they belong; whether it was left to end."""
    if future.cancelled():
        return False
    error = future.exception()
    if isinstance(error, Exception):
        _fail([places], error, answers)
    if error is not None:
        return isinstance(error, Exception)
    found: list[Answer | Failure] = workers.answer(future)
    answers[places.start : places.start + len(found)] = found
    return len(found) == len(places)
