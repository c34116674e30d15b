"""Ganeti's hbal beside ``balance``: instances with a primary and a secondary node each."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evenkeel as ek
from bench.peers.contest import beside, called
from bench.peers.table import Row

ABSENT = "Ganeti: hbal is not here. It comes with Debian's package `ganeti-htools`."
SIZES = {"Ganeti, 150 instances on 12 nodes + 4": (150, 12, 4),
         "Ganeti, 300 instances on 24 nodes + 6": (300, 24, 6)}  # fmt: skip
MEMORY, DISK = 262_144, 4_000_000
POLICY = "128,1,1024,1,1,1|128,1,1024,1,1,1;65536,8,1048576,16,8,12|drbd|9.0|99.0"


def found() -> bool:
    """Whether the tool is here."""
    return shutil.which("hbal") is not None


def run(folder: Path) -> Iterator[Row]:
    """Level by hbal, and to the level that it reached by ``balance``."""
    for title, (instances, old, new) in SIZES.items():
        random = np.random.default_rng(1)
        memory = random.integers(1, 17, instances) * 512
        disk = random.integers(5, 81, instances) * 1024
        placed = np.array([random.permutation(old)[:2] for _ in range(instances)])
        start, end = folder / "cluster", folder / "end"
        start.write_text(_text(memory, disk, placed, old + new))
        words = ["hbal", "-t", start, "-S", end, "-l", "100000", "-q"]
        _, *seconds = called(words)
        theirs = _placed(Path(f"{end}.balanced").read_text(), placed)
        cluster = ek.Cluster.from_arrays(
            dimensions=("memory", "disk"), bytes="disk",
            capacity=np.tile([[float(MEMORY), float(DISK)]], (old + new, 1)),
            load=np.stack([0 * memory, disk], 1).astype(float),
            leader_load=np.stack([memory, disk], 1).astype(float),
            placement=placed,
        )  # fmt: skip
        target = cluster.placement.replaced(
            theirs.ravel().astype(np.int32), 0 * cluster.placement.leader
        )
        yield from beside(title, "hbal", (seconds[0], seconds[1]), cluster, target)


def _text(
    memory: NDArray[np.int64], disk: NDArray[np.int64], placed: NDArray[np.int64], nodes: int
) -> str:
    """Return a cluster as Ganeti's tools read one."""
    used = np.bincount(placed[:, 0], memory, nodes).astype(int)
    held = sum(np.bincount(column, disk, nodes) for column in placed.T).astype(int)
    rows = [
        f"n{n}|{MEMORY}|0|{MEMORY - used[n]}|{DISK}|{DISK - held[n]}|99|"
        f"{'MN'[n > 0]}|g|1||N|0|1|1.0"
        for n in range(nodes)
    ]
    instances = [
        f"i{i}|{memory[i]}|{disk[i]}|1|running|Y|n{a}|n{b}|drbd||1|1|N"
        for i, (a, b) in enumerate(placed.tolist())
    ]
    lines = ["g|g|preferred||", "", *rows, "", *instances, "", "", f"|{POLICY}", f"g|{POLICY}"]
    return "\n".join(lines) + "\n"


def _placed(text: str, before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the primary and secondary nodes that a saved cluster has."""
    found = before.copy()
    for line in text.split("\n\n")[2].splitlines():
        cells = line.split("|")
        found[int(cells[0][1:])] = int(cells[6][1:]), int(cells[7][1:])
    return found
