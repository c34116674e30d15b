"""Control: a pipeline that rebalances a cluster continually as it changes.

>>> from evenkeel.control import Delay, Pipeline
>>> pipeline = Pipeline("balance", delay=Delay(seconds=600.0))
>>> pipeline.close()
True
"""

from evenkeel.control.clock import Clock, ManualClock, SystemClock
from evenkeel.control.engines.balance import BalanceEngine
from evenkeel.control.engines.engine import (
    Answer,
    CalculationFailed,
    Cancelled,
    Change,
    Engine,
    FailureKind,
    Scope,
    Task,
)
from evenkeel.control.engines.waged import WagedEngine
from evenkeel.control.executors import InlineWorkers, ManualWorkers, ThreadWorkers, Workers
from evenkeel.control.metrics import health
from evenkeel.control.operations import Operation, with_operations
from evenkeel.control.pipeline import Pipeline
from evenkeel.control.step import PipelineResult
from evenkeel.control.store import DiskStore, MemoryStore, Store
from evenkeel.control.view import Delay

__all__ = [
    "Answer",
    "BalanceEngine",
    "CalculationFailed",
    "Cancelled",
    "Change",
    "Clock",
    "Delay",
    "DiskStore",
    "Engine",
    "FailureKind",
    "InlineWorkers",
    "ManualClock",
    "ManualWorkers",
    "MemoryStore",
    "Operation",
    "Pipeline",
    "PipelineResult",
    "Scope",
    "Store",
    "SystemClock",
    "Task",
    "ThreadWorkers",
    "WagedEngine",
    "Workers",
    "health",
    "with_operations",
]
