"""How benchmarks are timed and reported: one BLAS thread, CPU time, and a summary at the end.

Wall time on a shared machine says more about the neighbours. Compare minima, never means; gates
compare two of them from the same run, never seconds with a promise.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # read as numpy is first imported

reported = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let gates be shown to fail."""
    parser.addoption(
        "--slowed", action="store_true", help="do what gates guard twice: all of them must fail"
    )


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Give a function whose lines appear below the results."""
    lines = request.config.stash.setdefault(reported, [])
    return lines.append


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the reported lines."""
    lines = config.stash.get(reported, [])
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
        load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        terminalreporter.write_line(f"load average {load} on {os.cpu_count()} processors")


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: Any) -> None:
    """Note what else was going on."""
    machine_info["load_average"] = os.getloadavg()
    machine_info["processors"] = os.cpu_count()
