"""Swift's ring builder beside ``balance``: parts in equal numbers of replicas over zones."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evenkeel as ek
from bench.peers.contest import beside, called
from bench.peers.table import Row

TOOL = "swift-ring-builder"
ABSENT = f"Swift: {TOOL} is not here. It comes with Debian's package `swift`."
# 2 to what parts, and devices in each of four zones before those that are added
RINGS = {"Swift, 2^12 parts, 4 zones x 6 devices + 1 each": (12, 6),
         "Swift, 2^14 parts, 4 zones x 20 devices + 2": (14, 20)}  # fmt: skip

ZONES, REPLICAS = 4, 3
READ = """
import json, sys
from swift.common.ring import RingBuilder
builder = RingBuilder.load(sys.argv[1])
print(json.dumps([list(row) for row in builder._replica2part2dev]))
"""


def found() -> bool:
    """Whether the tool is here."""
    return shutil.which(TOOL) is not None


def run(folder: Path) -> Iterator[Row]:
    """Add devices to a ring; rebalance it, and level to what that reached by ``balance``."""
    for title, (power, devices) in RINGS.items():
        builder = folder / f"{power}.builder"
        random = np.random.default_rng(power)
        weights = random.integers(2, 9, ZONES * devices) * 1000
        added = max(1, devices // 10)
        new = random.integers(4, 9, ZONES * added) * 1000
        _call(builder, "create", power, REPLICAS, 0)
        _add(builder, weights, 0)
        _call(builder, "rebalance", "--seed", 1)
        before = _parts(builder)
        _add(builder, new, len(weights))
        cpu, wall = _call(builder, "rebalance", "--seed", 1)
        theirs = _parts(builder)
        capacity = np.concatenate([weights, new])[:, None].astype(float)
        cluster = ek.Cluster.from_arrays(
            dimensions=("parts",), bytes="parts", capacity=capacity * len(before),
            load=np.ones((len(before), 1)), placement=before, leader=np.full(len(before), -1),
            domains={"zone": [str(n % ZONES) for n in range(len(capacity))]},
            spread={"zone": 1},
        )  # fmt: skip
        target = cluster.placement.replaced(
            theirs.ravel().astype(np.int32), cluster.placement.leader
        )
        yield from beside(title, TOOL, (cpu, wall), cluster, target)


def _call(builder: Path, *words: object) -> tuple[float, float]:
    """Run the tool, whose exit code 1 is a warning; its CPU and wall seconds."""
    _, cpu, wall = called([TOOL, builder, *map(str, words)], worst=1)
    return cpu, wall


def _add(builder: Path, weights: NDArray[np.int64], first: int) -> None:
    rows = []
    for n, weight in enumerate(weights.tolist(), start=first):
        rows += [f"r1z{n % ZONES + 1}-10.0.{n // 250}.{n % 250 + 1}:6200/d", f"{weight}"]
    _call(builder, "add", *rows)


def _parts(builder: Path) -> NDArray[np.int64]:
    """Return the devices of each part, by the reader that comes with the tool."""
    words = ["/usr/bin/python3", "-c", READ, builder]
    printed = subprocess.run(words, check=True, capture_output=True).stdout
    return np.array(json.loads(printed), np.int64).T
