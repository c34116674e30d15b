"""Covering partitions that are short of replicas that serve, at once and for the time being."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.background.calculator import Calculator
from evenkeel.control.background.runs import Standing
from evenkeel.control.coverage import breaks_nothing, covered, is_short, only
from evenkeel.control.engines.engine import CalculationFailed, Scope, Task
from evenkeel.control.view import View
from evenkeel.model.assignment import Assignment


@dataclass
class Overwrites:
    """Makes overwrites, and knows the last one."""

    calculator: Calculator
    source: Literal["baseline", "best_possible"]
    seed: int
    stop: Callable[[], bool]
    _last: tuple[Standing, Assignment] | None = field(default=None, init=False)

    def cover(
        self, view: View, standing: Standing, failures: list[CalculationFailed]
    ) -> Assignment | None:
        """Add replicas to the best possible where too few of them serve."""
        best = standing.best
        short = is_short(best, view.cluster, view.serving)
        if not short.any():
            return None
        if self._last is not None:
            last, shown = self._last
            if last.inputs == standing.inputs and last.best is standing.best:
                return shown
        shown = best.present
        has_baseline = standing.inputs[1] > 0
        if self.source == "baseline" and has_baseline:
            wanted = self._filled(view, standing.baseline.present, best.known, failures)
            if wanted is not None:
                more = covered(shown, wanted, short, view.cluster)
                if breaks_nothing(shown, more, view.cluster):
                    shown = more
                    short = is_short(replace(best, assignment=shown), view.cluster, view.serving)
        if short.any():
            added = self._filled(view, shown, best.known, failures)
            shown = shown if added is None else added
        if shown is best.present:
            return None
        self._last = standing, shown
        return shown

    def _filled(
        self,
        view: View,
        current: Assignment,
        known: NDArray[np.bool_],
        failures: list[CalculationFailed],
    ) -> Assignment | None:
        """Let the engine fill up what is short in an assignment; None if it fails.

        New partitions are left out: they would only be moved again once there is a baseline.
        """
        task = Task(Scope.OVERWRITE, view.cluster, current, seed=self.seed, stop=self.stop)
        answer = self.calculator.calculate(task, failures)
        return None if answer is None else only(answer.assignment, known)
