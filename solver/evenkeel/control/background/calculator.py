"""Calculating on the caller's own thread: what is counted, and which failures the caller sees."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from evenkeel.control.engines.engine import (
    Answer,
    CalculationFailed,
    Cancelled,
    Engine,
    FailureKind,
    Task,
    answered,
)
from evenkeel.control.metrics import Metrics, log_event

REACH_THE_CALLER = (FailureKind.INVALID_REBALANCER_STATUS, FailureKind.UNKNOWN_FAILURE)
"""Failures that are raised; after any other what was known holds."""


@dataclass
class Calculator:
    """Runs an engine for a synchronous step."""

    engine: Engine
    metrics: Metrics
    elapsed: Callable[[], float]

    def calculate(self, task: Task, failures: list[CalculationFailed]) -> Answer | None:
        """Calculate."""
        began = self.elapsed()
        log_event("calculating", logging.DEBUG, scope=task.scope.value)
        try:
            answer = answered(self.engine, task)
        except CalculationFailed as failure:
            note(failure, failures, self.metrics)
            if failure.kind in REACH_THE_CALLER:
                raise
            return None
        except Cancelled:
            raise
        except Exception as error:
            unknown = CalculationFailed(FailureKind.UNKNOWN_FAILURE, f"{error!r}.")
            note(unknown, failures, self.metrics)
            raise unknown from error
        self.metrics.calculated(task.scope, self.elapsed() - began, answer.placed, answer.unplaced)
        return answer


def note(failure: CalculationFailed, failures: list[CalculationFailed], metrics: Metrics) -> None:
    """Note, count and log a failure."""
    failures.append(failure)
    metrics.count("rebalance_failure_counter")
    log_event("failed", logging.WARNING, kind=failure.kind.value, message=str(failure))
