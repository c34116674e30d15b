"""Compare two checkouts in turns on one machine: ``python -m bench.beside OLD [NEW [ROUNDS]]``.

Each checkout solves, plans and checks in a process of its own. A row has the ratio of the least CPU
times of the thread, new over old, and the moves and leader changes of both.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
WORKER = """
import json, sys, time
import evenkeel as ek
from tests.support.instances import as_cluster, generate

SHAPES = {"": (25_000, 300, 10), "large ": (100_000, 1_000, 10), "small ": (2_000, 50, 5),
          "middle ": (10_000, 150, 10)}
GOALS = {"level 0.04": dict(level=0.04), "level 0.01": dict(level=0.01),
         "level 0.002": dict(level=0.002), "repair": dict(level=None),
         "leaders 0.1": dict(level=0.04, leaders=0.1)}
instances = {name: generate(*shape) for name, shape in SHAPES.items()}
made = ek.solve(as_cluster(instances[""]), goals=ek.Goals(level=0.04))
plan = made.plan()

def solve(shape, goal):
    return ek.solve(as_cluster(instances[shape]), goals=ek.Goals(**GOALS[goal]))

for line in sys.stdin:
    name = line.strip()
    began = time.thread_time()
    if name == "plan":
        made.plan()
    elif name == "check":
        plan.check()
    else:
        shape = next(one for one in ("large ", "small ", "middle ", "") if name.startswith(one))
        made_now = solve(shape, name.removeprefix(shape))
    seconds = time.thread_time() - began
    counts = [] if name in ("plan", "check") else [
        made_now.comparison.moves, made_now.bounds.moves_level, made_now.comparison.leader_changes
    ]
    print(json.dumps([seconds, counts]), flush=True)
"""
JOBS = ("level 0.04", "repair", "leaders 0.1", "level 0.01", "level 0.002", "plan", "check",
        "small level 0.04", "middle level 0.04", "large level 0.04")  # fmt: skip


def started(tree: Path) -> "subprocess.Popen[str]":
    """Start the process of a checkout."""
    paths = os.pathsep.join(str(tree / name) for name in ("solver", "kernels", "."))
    return subprocess.Popen(
        [sys.executable, "-c", WORKER], cwd=tree, env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def answer(process: "subprocess.Popen[str]", job: str) -> tuple[float, list[int]]:
    """Return the seconds of a job, and its moves, their bound and leader changes."""
    assert process.stdin and process.stdout
    print(job, file=process.stdin, flush=True)
    found: tuple[float, list[int]] = msgspec.json.decode(
        process.stdout.readline(), type=tuple[float, list[int]]
    )
    return found


def main(old: str, new: str = str(ROOT), rounds: str = "7") -> None:
    """Print the table."""
    sides = [started(Path(one).resolve()) for one in (old, new)]
    print("| job | new / old | old, ms | new, ms | old | new: moves, bound, leader changes |")
    print("|---|---:|---:|---:|---|---|")
    for job in JOBS:
        for side in sides:
            answer(side, job)  # compiles
        turns = [[answer(side, job) for side in sides] for _ in range(int(rounds))]
        least: list[float] = [min(turn[k][0] for turn in turns) for k in (0, 1)]
        counts: list[Any] = [turns[0][k][1] for k in (0, 1)]
        print(f"| {job} | {least[1] / least[0]:.2f} | {1e3 * least[0]:.1f} | {1e3 * least[1]:.1f} "
              f"| {counts[0]} | {counts[1]} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
