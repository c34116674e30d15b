"""A job: items answered one by one, or many at a time where that is quicker."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Common = TypeVar("Common")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

Together = Callable[[Common, Sequence[Item]], Sequence[Answer | None]]
"""Answers the first of some items, one at least; None stands for one that the task has to do."""

logger = logging.getLogger("evenkeel.sweep")

LONG = 0.02
"""Seconds between two calls of a callback, which may end the study."""

GROWTH = 4
"""How many times as many items are done together next, after some that took next to no time."""


@dataclass(frozen=True)
class Failure:
    """An item whose task raised."""

    message: str

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Put an error into words."""
        return cls(f"{type(error).__name__}: {error}")


@dataclass
class Pace:
    """How many items are done together next; the next batch begins after them."""

    width: int = 1

    def follow(self, width: int, seconds: float) -> None:
        """Learn from so many items that took so long."""
        if seconds < LONG / GROWTH:
            self.width = max(self.width, width * GROWTH)
        elif seconds > LONG:
            self.width = max(1, width // 2)


@dataclass(frozen=True)
class Job(Generic[Common, Item, Answer]):
    """What is to be done with every item.

    Parameters
    ----------
    task : callable
        Called with what all items have in common, and one of them.
    together : callable or None
        Answers many at a time, as far as it can.
    pace : Pace
        How many that is.
    """

    task: Callable[[Common, Item], Answer]
    together: Together[Common, Item, Answer] | None = None
    pace: Pace = field(default_factory=Pace)

    def answers(self, common: Common, items: Sequence[Item]) -> Iterator[Answer | Failure]:
        """Yield the answer of each item; batches are short enough for an answer soon."""
        at = 0
        while at < len(items):
            batch = items[at : at + self.pace.width]
            began = time.perf_counter()
            found = self._together(common, batch)
            self.pace.follow(len(batch), time.perf_counter() - began)
            for item, answer in zip(items[at:], found, strict=False):
                yield self._alone(common, item) if answer is None else answer
            at += len(found)

    def _together(self, common: Common, items: Sequence[Item]) -> Sequence[Answer | Failure | None]:
        if self.together is None:
            return [None]
        try:
            return self.together(common, items)
        except Exception as error:
            if len(items) > 1:  # whose fault it is shows when it is alone
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
