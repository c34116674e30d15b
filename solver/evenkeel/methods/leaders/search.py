"""Local search for leaders that minimise the load or leader count of the fullest node.

A descent hands leads on one by one and in pairs; where that is of no use, an annealing walk shakes
them, towards a threshold between the bound and what was found. No step gives a node more than it
has room for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.leaders.flow import Arcs
from evenkeel.methods.leaders.room import LeaderStart, overflows
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.heartbeat import beat
from evenkeel_kernels.core.leadership import no_leads
from evenkeel_kernels.leaders.level_by_load import (
    LeaderAssignment,
    LeadRoom,
    descend,
    fullest,
    perturb,
    rebuild,
    restore,
    trade,
)

ROUNDS = 16  # thresholds tried between bound and answer
PAIRS = 1_500_000  # pairs of leads looked at in each round at most
# leads tried in each round: so many for each arc, within limits
SHAKES, FEWEST_SHAKES, MOST_SHAKES = 40, 20_000, 400_000

HOT, COLD = 0.1, 1e-5  # temperatures, as parts of the square of what an average lead adds
HALVINGS = 30  # levels tried where limits allow fewer changes than the best choice has
OUT_OF_REACH = 1e6  # level of a node without capacity that leads anything


@dataclass(frozen=True)
class Levels:
    """The task in units of each node's fair load: D dimensions that leading changes."""

    arcs: Arcs
    dimension: NDArray[np.int64]  # (D,) which
    base: NDArray[np.float64]  # (N, D) utilisation without the leaders that may change
    share: NDArray[np.float64]  # (A, D) what leading over an arc adds
    target: NDArray[np.float64]  # (N, D) fair load, in its unit
    extra: NDArray[np.float64]  # (P, D) what leading adds, in its unit


@dataclass(frozen=True)
class Bound:
    """A lower bound and where it comes from."""

    level: float
    binding: str
    price: NDArray[np.float64]


def _assignment(task: Levels, taken: NDArray[np.int64], room: LeadRoom) -> LeaderAssignment:
    """Return the counters of a choice, to be filled by ``rebuild``."""
    arcs = task.arcs
    return LeaderAssignment(
        first=arcs.first,
        node=arcs.node,
        share=np.ascontiguousarray(task.share),
        taken=taken.astype(np.int64),
        level=np.zeros(task.base.shape),
        leading=no_leads(len(task.base), arcs.count),
        room=room,
    )


class Search:
    """A search for the choice that reaches the bound, or comes as near as it can."""

    def __init__(
        self,
        task: Levels,
        bound: Bound,
        begin: LeaderStart,
        seed: int,
        watch: Watch,
        changes: int | None = None,
    ) -> None:
        self.changes = changes
        self.task, self.bound, self.watch = task, bound, watch
        self.start, self.began = begin.taken.astype(np.int64), begin.began
        self.assignment = _assignment(task, self.start.copy(), begin.room)
        drawn = np.random.SeedSequence(seed % 2**64).generate_state(1, np.uint64)
        self.random = drawn | np.uint64(1)
        self.best = self.start.copy()
        self.level = np.inf
        self.work = 0
        self._descended(self.start, self.bound.level)

    def look_near(self, bound: Bound, taken: NDArray[np.int64]) -> None:
        """Raise the bound, if this one is higher, and begin from another choice, too."""
        if bound.level > self.bound.level:
            self.bound = bound
        self._descended(taken, self.bound.level)

    def run(self) -> None:
        """Raise the threshold and look elsewhere while there is a gap; then change back."""
        low = self.bound.level
        for _ in range(ROUNDS):
            if self.level <= low * (1.0 + ROUNDING) or self.watch.reason:
                break
            # the bound itself first: it is often reached, and the search ends at once
            aim = low if low == self.bound.level else (low + self.level) / 2.0
            self._shaken(aim)
            if self.level > aim * (1.0 + ROUNDING):
                low = max(aim, low + (self.level - low) / 8.0)
        self._change_back()

    @property
    def gap(self) -> float:
        """How much above the bound the best choice is, as a part of it."""
        return self.level / self.bound.level - 1.0 if self.bound.level > 0.0 else np.inf

    def _descended(self, taken: NDArray[np.int64], aim: float) -> None:
        """Descend from a choice, singly and in pairs."""
        self.assignment.taken[:] = taken
        rebuild(self.assignment, self.task.base)
        self._descend(aim)

    def _descend(self, aim: float) -> None:
        left = np.array([PAIRS])
        while True:
            self.work += len(self.task.arcs.p)
            beat()
            descend(self.assignment, aim)
            beat()
            if trade(self.assignment, aim, left) == 0 or left[0] <= 0 or self.watch.reason:
                break
        self.work += PAIRS - int(left[0])
        self._keep()

    def _shaken(self, aim: float) -> None:
        """Walk from the best choice, and descend from there."""
        self.assignment.taken[:] = self.best
        rebuild(self.assignment, self.task.base)
        work = min(max(SHAKES * len(self.task.arcs.p), FEWEST_SHAKES), MOST_SHAKES)
        shares = np.abs(self.task.share[self.task.share < OUT_OF_REACH])
        square = max(float(shares.mean() ** 2) if shares.size else 0.0, 1e-18)
        perturb(self.assignment, aim, work, HOT * square, COLD * square, self.random)
        self.work += work
        self._descend(aim)

    def _keep(self) -> None:
        """Keep the choice if it is the best, its level added up anew, and there is room for it."""
        beat()
        rebuild(self.assignment, self.task.base)
        if overflows(self.task.arcs, self.assignment.room, self.assignment.taken):
            return
        if (level := fullest(self.assignment)) < self.level:
            self.level = level
            self.best[:] = self.assignment.taken

    def _change_back(self) -> None:
        """Of choices with the level found, take one that changes few leaders."""
        beat()
        found, least = self.best.copy(), self.level
        most = least * (1.0 + ROUNDING)
        choices = []
        for taken in (found, self.start):
            self._descended(taken, least)
            if fullest(self.assignment) <= most:
                restore(self.assignment, self.began, most)
                choices.append(self.assignment.taken.copy())
        changes = [int(np.count_nonzero(one != self.began)) for one in choices]
        self.best[:] = choices[int(np.argmin(changes))]
        if self.changes is not None and self.task.arcs.changes(self.best) > self.changes:
            self.best[:] = self._within_changes(self.best.copy(), self.changes)
        self.assignment.taken[:] = self.best
        rebuild(self.assignment, self.task.base)
        self.level = fullest(self.assignment)

    def _within_changes(self, found: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Give leads of a choice back, at the least level at which few enough remain changed."""
        self.assignment.taken[:] = best = self.start.copy()
        rebuild(self.assignment, self.task.base)
        low, high = self.level, max(self.level, fullest(self.assignment)) * (1.0 + ROUNDING)
        for _ in range(HALVINGS):
            level = (low + high) / 2.0
            self.assignment.taken[:] = found
            rebuild(self.assignment, self.task.base)
            restore(self.assignment, self.began, level)
            if self.task.arcs.changes(self.assignment.taken) <= most:
                best, high = self.assignment.taken.copy(), level
            else:
                low = level
        return best
