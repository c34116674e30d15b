"""How benchmarks are timed: CPU time of the thread, one BLAS thread, kernels compiled beforehand.

Wall time on a shared machine says more about the neighbours. Compare minima, never means; gates
compare two of them from the same run, never seconds with a promise.
"""

import os
import time
from collections.abc import Callable

import pytest

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # read as numpy is first imported


@pytest.fixture
def least_seconds() -> Callable[..., float]:
    """Give a function that times another: least CPU seconds of several calls, after one more."""

    def timed(function: Callable[[], object], rounds: int = 7) -> float:
        function()
        seconds = []
        for _ in range(rounds):
            start = time.thread_time()
            function()
            seconds.append(time.thread_time() - start)
        return min(seconds)

    return timed
