"""How long contestants take, and ``balance`` asked for the level that another one reached."""

import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import evenkeel as ek
from bench.peers.table import Row
from evenkeel.measure.audit import audit
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness


def called(words: Sequence[str | Path], worst: int = 0) -> tuple[str, float, float]:
    """Run a tool: what it printed, its CPU seconds in user mode, and its wall seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    # a code up to ``worst`` is no failure
    if done.returncode > worst:
        raise SystemExit(f"{words[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return done.stdout + done.stderr, used, time.perf_counter() - began


def least(function: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds, least of three after one that warms up."""
    turns = []
    for _ in range(4):
        started = time.thread_time(), time.perf_counter()
        function()
        turns.append((time.thread_time() - started[0], time.perf_counter() - started[1]))
    return min(turns[1:])


def beside(
    title: str, who: str, seconds: tuple[float, float], cluster: ek.Cluster, target: ek.Placement
) -> Iterator[Row]:
    """Yield the row of a contestant that reached ``target``, and that of ``balance``."""
    ratio = levelness(cluster, target).ratio
    yield Row(
        input=title, who=who, cpu=seconds[0], wall=seconds[1], broken=audit(cluster, target).hard,
        moves=compare(cluster, cluster.placement, target).moves, max_over_mean=float(ratio.max()),
    )  # fmt: skip
    goals = ek.Goals(level=dict(zip(cluster.dimensions, (ratio - 1.0).tolist(), strict=True)))
    used, took = least(partial(ek.solve, cluster, goals=goals))
    result = ek.solve(cluster, goals=goals)
    yield Row(
        input=title, who="balance, to the same level", cpu=used, wall=took,
        broken=result.audit.hard, moves=len(result.moves), bound=result.bounds.moves_level,
        max_over_mean=float(result.levelness.ratio.max()),
    )  # fmt: skip
