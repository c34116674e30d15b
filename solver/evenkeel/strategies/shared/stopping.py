"""When to stop: the clock, the work budget, the caller and Ctrl-C, asked between slices of work."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

StopReason = Literal["tolerance", "time", "work", "limits", "interrupted", "optimum", "exhausted"]
"""Why a strategy stopped. *exhausted*: no move that it knows would help any more."""


@dataclass(frozen=True)
class Progress:
    """What a callback is told between two slices of work."""

    stage: str
    work: int
    seconds: float
    moves: int
    cost: float


Callback = Callable[[Progress], object]
"""Called between slices; raising StopIteration stops and keeps the best so far."""


@dataclass
class Watch:
    """Decides between slices of work whether to go on.

    Examples
    --------
    >>> watch = Watch(None, 100, None)
    >>> watch.stop(Progress("level", 100, 0.0, 3, 0.5))
    'work'
    """

    time_limit: float | None
    work_limit: int | None
    callback: Callback | None
    started: float = field(default_factory=time.perf_counter)
    halted: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since the watch was made."""
        return time.perf_counter() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return float("inf") if self.time_limit is None else self.time_limit - self.seconds

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit is not None and self.seconds >= self.time_limit

    def work_left(self, done: int, slice_size: int) -> int:
        """Return how much the next slice may do."""
        if self.work_limit is None:
            return slice_size
        return max(0, min(slice_size, self.work_limit - done))

    def stop(self, progress: Progress) -> StopReason | None:
        """Tell the callback, and return why to stop, or None to go on."""
        if self.callback is not None:
            try:
                self.callback(progress)
            except StopIteration:
                return "interrupted"
        if self.out_of_time:
            return "time"
        if self.work_limit is not None and progress.work >= self.work_limit:
            return "work"
        return None
