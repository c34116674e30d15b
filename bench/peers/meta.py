"""Meta's Rebalancer beside ``balance``: the same arrays, the same audit, the level it reached."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import evenkeel as ek
from bench.peers.table import Row
from bench.support.jobs import headline, medium
from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from tests.support.instances import Instance, as_cluster

SIDE = Path(__file__).parent / "rebalancer_side.py"
PYTHON = "EVENKEEL_REBALANCER_PYTHON"
ABSENT = (
    f"Rebalancer: not here. It is the package `rebalancer`, for Python 3.12 or later; install it "
    f"with numpy into an environment of its own and name that one's Python in {PYTHON}."
)
INSTANCES = {"medium, 5,000 x 3 on 100": medium, "headline, 25,000 x 3 on 300": headline}
# how Rebalancer is set up, and the seconds that it may search
PROFILES = {"few": 60, "fewest": 60, "tolerant": 60, "level": 10}


def found() -> str | None:
    """Return the Python that has it, or None."""
    python = os.environ.get(PYTHON) or shutil.which("python3.12") or ""
    if not shutil.which(python):
        return None
    asked = subprocess.run([python, "-c", "import rebalancer, numpy"], capture_output=True)
    return None if asked.returncode else python


def run(folder: Path) -> Iterator[Row]:
    """Run every profile on every instance, each in a process of its own."""
    python = found()
    assert python is not None
    for title, make in INSTANCES.items():
        instance = make()
        source, answer = folder / "instance.npz", folder / "answer.npz"
        np.savez(source, **instance)
        for profile, seconds in PROFILES.items():
            given = [python, str(SIDE), str(source), profile, str(seconds), str(answer)]
            done = subprocess.run(given, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"Rebalancer failed on {title}:\n{done.stderr[-2000:]}")
            with np.load(answer) as arrays:
                placed, cost = arrays["placement"], json.loads(str(arrays["cost"]))
            theirs = judged(title, f"Rebalancer, {profile}", instance, placed, cost)
            yield theirs
            yield ours(title, instance, theirs.max_over_mean - 1.0)


def judged(title: str, who: str, instance: Instance, placed, cost) -> Row:
    """Audit a placement as if it were our own answer."""
    cluster = as_cluster(instance)
    before = cluster.placement
    first = np.where(placed[:, 0] >= 0, 0, -1).astype(np.int16)
    after = before.replaced(np.ascontiguousarray(placed.ravel(), np.int32), first)
    level = float(levelness(cluster, after).ratio.max())
    return Row(
        input=title,
        who=who,
        cpu=cost["cpu"],
        wall=cost["wall"],
        broken=audit(cluster, after).hard,
        moves=compare(cluster, before, after).moves,
        bound=bounds(cluster, ek.Goals(level=level - 1.0)).moves_level,
        max_over_mean=level,
        note=f"peak {cost['peak_mb']:.0f} MiB",
    )


def ours(title: str, instance: Instance, level: float) -> Row:
    """Solve to the level that the other one reached; warm, the least of three."""
    best = None
    for _ in range(4):
        started = time.perf_counter(), time.process_time()
        result = ek.solve(as_cluster(instance), goals=ek.Goals(level=level), time_limit=10)
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        if best is None or cpu < best[0]:
            best = (cpu, wall)
    return Row(
        input=title,
        who="balance, to the same level",
        cpu=best[0],
        wall=best[1],
        broken=result.audit.hard,
        moves=result.comparison.moves,
        bound=result.bounds.moves_level,
        max_over_mean=float(result.levelness.ratio.max()),
    )
