"""Stop criterion: clock, work budget, caller and Ctrl-C, checked between slices of work.

A time limit does not count the seconds in which kernels were compiled or loaded (``excluded``), and
the search must leave what its result takes to be judged (``reserve``).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """Progress that a callback receives between two slices of work.

    Parameters
    ----------
    phase : str
        ``"bounds"``, what the method does, and ``"audit"``: a key of ``Result.timings``, without
        the name of the method before a dot.
    work : int
        Candidates looked at so far, as the method last counted them; never less than before.
    seconds : float
        Seconds so far, of which a time limit counts all; never less than before.
    moves : int
        Replicas that have moved where the search stood when it last counted them. It may begin
        again from another placement, with fewer.
    cost : float
        What the search lowers, when it was last known: by which share of its target the fullest
        node is above that, or the cost that is asked for; 0 if the method lowers neither.
    """

    phase: str
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
    phase: str = "bounds"
    started: float = field(init=False)
    _last: Progress = field(init=False, default=Progress("bounds", 0, 0.0, 0, 0.0))
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

    @contextmanager
    def in_phase(self, phase: str) -> Iterator[None]:
        """Report that phase meanwhile."""
        before, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = before

    def look(
        self, work: int = 0, moves: int | None = None, cost: float | None = None
    ) -> StopReason | None:
        """Report to the callback what is known; return the reason to stop, except work, or None."""
        if self.callback is not None:
            last = self._last
            self._last = Progress(
                self.phase,
                max(work, last.work),
                max(self.seconds, last.seconds),
                last.moves if moves is None else moves,
                last.cost if cost is None else cost,
            )
            self._report(self.callback, self._last)
        return self.reason

    def hear(self) -> None:
        """Repeat the last report to the callback, if that was a while ago."""
        if self.callback is not None and self.clock() - self._last_at >= EVERY:
            seconds = max(self.seconds, self._last.seconds)
            self._last = replace(self._last, phase=self.phase, seconds=seconds)
            self._report(self.callback, self._last)

    def _report(self, callback: Callback, progress: Progress) -> None:
        """Call the callback until it asks to stop, and remember that it did."""
        if self.interrupted:
            return
        try:
            callback(progress)
        except StopIteration:
            self.interrupted = True
        self._last_at = self.clock()

    def stop(
        self, work: int, moves: int | None = None, cost: float | None = None
    ) -> StopReason | None:
        """Report to the callback what is known; return the reason to stop, or None."""
        reason = self.look(work, moves, cost)
        if reason is not None:
            return reason
        if self.work_limit is not None and work >= self.work_limit:
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
    >>> Clock().goes_on(100)
    True
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = Watch(None, None, None) if watch is None else watch
        self.reason: StopReason | None = None

    def goes_on(self, work: int = 0, moves: int | None = None) -> bool:
        """Return whether to go on, so much being done."""
        if self.reason is None:
            self.reason = self._watch.look(work, moves)
        return self.reason is None

    def ask(self, work: int = 0) -> None:
        """Raise ``OutOfTime`` if there is a reason to stop."""
        if not self.goes_on(work):
            raise OutOfTime
