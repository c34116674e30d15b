"""Clocks: the system clock, and one that a test or a simulation sets."""

import time
from abc import ABC, abstractmethod


class Clock(ABC):
    """A source of the current time.

    Examples
    --------
    >>> from evenkeel.control import Clock
    >>> class Fixed(Clock):
    ...     def now(self):
    ...         return 3_600.0
    ...     def elapsed(self):
    ...         return 0.0
    >>> Fixed().now()
    3600.0
    """

    @abstractmethod
    def now(self) -> float:
        """Return the time of day, in the unit of ``Nodes.since`` and from its origin."""

    @abstractmethod
    def elapsed(self) -> float:
        """Return seconds since some moment that only ever grow, for latencies."""


class SystemClock(Clock):
    """The machine's own clock: seconds since 1970.

    Examples
    --------
    >>> clock = SystemClock()
    >>> clock.elapsed() <= clock.elapsed()
    True
    """

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def elapsed(self) -> float:
        """Return the seconds since some moment."""
        return time.perf_counter()


class ManualClock(Clock):
    """A clock that stands still until it is advanced.

    Parameters
    ----------
    start : float
        What it shows at first.

    Examples
    --------
    >>> clock = ManualClock(10.0)
    >>> clock.advance(2.5)
    >>> clock.now(), clock.elapsed()
    (12.5, 12.5)
    """

    def __init__(self, start: float = 0.0) -> None:
        self._time = start

    def advance(self, seconds: float) -> None:
        """Go on.

        Parameters
        ----------
        seconds : float
            At least 0.

        Raises
        ------
        ValueError
            If time would decrease.
        """
        if seconds < 0.0:
            raise ValueError(f"time must not decrease: {seconds!r}")
        self._time += seconds

    def now(self) -> float:
        """Return the time it shows."""
        return self._time

    def elapsed(self) -> float:
        """Return the time it shows."""
        return self._time
