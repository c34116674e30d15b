"""Timeline: the order in which steps start and finish."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.steps import StepKind, Steps

BEGINNING = -1
"""Rank of the state before any step."""

RAISE, LOWER = len(StepKind), len(StepKind) + 1
"""Kinds of steps that promote or demote a replica on the node where it stays."""

KINDS = len(StepKind) + 2
"""How many kinds of steps there are, these two included."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Ranks of all starts and finishes: greater is later, and no two events share one.

    At an instant, what started earlier finishes first; then what starts there does so in the order
    of its index, and what takes no time finishes before the next one starts.
    """

    steps: Steps
    kind: NDArray[np.int8]
    start: NDArray[np.int32]
    finish: NDArray[np.int32]
    lasting: NDArray[np.bool_]

    @classmethod
    def of(cls, steps: Steps) -> "Timeline":
        """Sort the events of some steps, none of which finishes before it starts."""
        lasting = steps.finish > steps.start
        longer = np.flatnonzero(lasting)
        # equal times keep this order: finishes before starts, either by index
        times = np.concatenate([steps.finish[longer], steps.start])
        order = np.argsort(times, kind="stable")
        rank = np.empty(len(times), np.int32)
        rank[order] = np.arange(0, 2 * len(times), 2, dtype=np.int32)
        start = rank[len(longer) :]
        finish = start + 1
        finish[longer] = rank[: len(longer)]
        return cls(steps, _kinds(steps), start, finish, lasting)

    @property
    def end(self) -> int:
        """A rank after all events."""
        return 2 * (len(self.steps) + int(np.count_nonzero(self.lasting)))

    def time_at(self, step: NDArray[np.integer], rank: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the time of events given by step and rank; an event of no step is an end."""
        if len(self.steps) == 0:
            return np.zeros(len(step))
        last = float(self.steps.finish.max(initial=0.0))
        at = np.maximum(step, 0)
        by_step = np.where(rank == self.finish[at], self.steps.finish[at], self.steps.start[at])
        return np.where(step >= 0, by_step, np.where(rank > BEGINNING, last, 0.0))


def _kinds(steps: Steps) -> NDArray[np.int8]:
    """Return the kind of each step, those that change a role in place being of their own."""
    kind = steps.kind
    changes = (kind == StepKind.PROMOTE) | (kind == StepKind.DEMOTE)
    here = np.flatnonzero(changes & (steps.source == steps.target) & (steps.source >= 0))
    if len(here) == 0:
        return kind
    kind = kind.copy()
    kind[here] = np.where(kind[here] == StepKind.PROMOTE, RAISE, LOWER)
    return kind


def sort_by(place: NDArray[np.integer], places: int) -> NDArray[np.intp]:
    """Return a stable order by place; short numbers sort many times as fast."""
    return np.argsort(place.astype(np.uint16) if places < 1 << 16 else place, kind="stable")
