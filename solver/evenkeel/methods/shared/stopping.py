"""Stop criterion: clock, work budget, caller and Ctrl-C, checked between slices of work.

A time limit does not count the seconds in which kernels were compiled or loaded (``excluded``), and
the search must leave what its result takes to be judged (``reserve``).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

# Why a strategy stopped. *exhausted*: no move that it knows would help any more; *worth*: moving
# for the goals was asked only where they are missed by more, or where it gains more.
StopReason = Literal[
    "tolerance", "time", "work", "limits", "interrupted", "optimum", "exhausted", "worth"
]

# message where budgets leave something undone
LIMITS_REACHED = "Limits reached: the rest was skipped."


@dataclass(frozen=True)
class Progress:
    """Progress that a callback receives between two slices of work."""

    stage: str
    work: int
    seconds: float
    moves: int
    cost: float


# called between slices; raising StopIteration stops, keeps the best so far and ends the calls
Callback = Callable[[Progress], object]

EVERY = 0.05  # seconds after which a heartbeat is reported to the callback


@dataclass
class Watch:
    """Decides between slices of work whether to go on."""

    time_limit: float | None
    work_limit: int | None
    callback: Callback | None
    halted: bool = False
    excluded: float = 0.0
    reserve: float = 0.0
    clock: Callable[[], float] = time.perf_counter
    started: float = field(init=False)
    _last: Progress = field(init=False, default=Progress("prepare", 0, 0.0, 0, 0.0))
    _last_at: float = field(init=False)
    interrupted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.started = self._last_at = self.clock()

    @property
    def has_limit(self) -> bool:
        """Whether a time limit is given; without, little is worth little time."""
        return self.time_limit is not None or self.work_limit is not None

    @property
    def seconds(self) -> float:
        """Seconds since the watch was made that count."""
        return self.clock() - self.started - self.excluded

    @property
    def seconds_left(self) -> float:
        """Seconds that are left to search in; infinite without a time limit."""
        if self.time_limit is None:
            return float("inf")
        return self.time_limit - self.reserve - self.seconds

    @property
    def out_of_time(self) -> bool:
        """Whether nothing is left of the time limit but what judging the result takes."""
        return self.seconds_left <= 0.0

    @property
    def reason(self) -> StopReason | None:
        """Return the reason to stop, except work, or None; without a call of the callback."""
        if self.interrupted:
            return "interrupted"
        return "time" if self.out_of_time else None

    def exclude(self, seconds: float) -> None:
        """Leave out what was spent on compiling or loading."""
        self.excluded += seconds

    def work_left(self, done: int, slice_size: int) -> int:
        """Return how much the next slice may do."""
        if self.work_limit is None:
            return slice_size
        return max(0, min(slice_size, self.work_limit - done))

    def look(self, progress: Progress) -> StopReason | None:
        """Report to the callback; return the reason to stop, except work, or None."""
        if self.callback is not None:
            self._last = progress
            self._report(self.callback, progress)
        return self.reason

    def hear(self) -> None:
        """Repeat the last report to the callback, if that was a while ago."""
        if self.callback is not None and self.clock() - self._last_at >= EVERY:
            self._report(self.callback, replace(self._last, seconds=self.seconds))

    def _report(self, callback: Callback, progress: Progress) -> None:
        """Call the callback until it asks to stop, and remember that it did."""
        if self.interrupted:
            return
        try:
            callback(progress)
        except StopIteration:
            self.interrupted = True
        self._last_at = self.clock()

    def stop(self, progress: Progress) -> StopReason | None:
        """Report to the callback; return the reason to stop, or None."""
        reason = self.look(progress)
        if reason is not None:
            return reason
        if self.work_limit is not None and progress.work >= self.work_limit:
            return "work"
        return None


class OutOfTime(Exception):
    """Raised where the watch stops work that has no partial result."""


class Clock:
    """Asks a watch between slices whose number has no effect, and keeps its reason to stop.

    Parameters
    ----------
    watch : Watch, optional
        The watch; without one nothing stops.

    Examples
    --------
    >>> Clock().goes_on("search", 100)
    True
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = Watch(None, None, None) if watch is None else watch
        self.reason: StopReason | None = None

    def goes_on(self, stage: str, work: int) -> bool:
        """Return whether to go on, so much being done."""
        if self.reason is None:
            progress = Progress(stage, work, self._watch.seconds, 0, 0.0)
            self.reason = self._watch.look(progress)
        return self.reason is None

    def ask(self, stage: str, work: int) -> None:
        """Raise ``OutOfTime`` if there is a reason to stop."""
        if not self.goes_on(stage, work):
            raise OutOfTime
