"""Judge many random clusters: ``python -m tests.judge --count 1000 --seed 0``."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from math import inf
from pathlib import Path
from typing import NamedTuple

from tests.judge.case import Case, source_of
from tests.judge.clusters import FAMILIES, draw
from tests.judge.figures import table
from tests.judge.trial import SLOW, Tried, try_one, world_of

CHUNK = 10


class Job(NamedTuple):
    """Some seeds of a family, and what to do with them."""

    family: str
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    small: bool
    work: int | None
    times: tuple[int, int]


class Tally(NamedTuple):
    """What was found of one kind: how many clusters, and the smallest."""

    kind: str
    clusters: int
    size: int
    family: str
    seed: int
    method: str
    where: str


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 if anything was found."""
    os.environ["EVENKEEL_ASSERTIONS"] = "1"
    asked = _parser().parse_args(arguments)
    families = asked.family or list(FAMILIES)
    if asked.show:
        return _show(draw(families[0], asked.seed, tuple(asked.times)), asked.method[0], asked.work)
    began = time.perf_counter()
    done = _recorded(asked.record)
    jobs = [
        Job(family, tuple(seed for seed in range(low, min(low + CHUNK, asked.seed + asked.count))
                          if (family, seed) not in done),
            tuple(asked.method), asked.small, asked.work, tuple(asked.times))
        for low in range(asked.seed, asked.seed + asked.count, CHUNK)
        for family in families
    ]  # fmt: skip
    tried = []
    for one in _run(jobs, asked.processes):
        tried.append(one)
        if asked.record is not None:
            _record(asked.record, one)
        if time.perf_counter() - began > asked.seconds:
            break
    tallies = _tallied(tried)
    _report(tallies)
    for line in (
        table([one.beside for one in tried if one.beside is not None]) if asked.small else ()
    ):
        _say(line)
    _say(
        f"{len(tried)} solves, {sum(t.said.startswith('refused') for t in tried)} of them refused, "
        f"{sum(t.clusters for t in tallies)} findings; "
        f"{sum(t.solving for t in tried):.0f} CPU s of solving, "
        f"{sum(t.judging for t in tried):.0f} of judging, "
        f"{time.perf_counter() - began:.0f} s in all"
    )
    return 1 if tallies else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tallied(tried: list[Tried]) -> list[Tally]:
    """Count the clusters with each kind of finding, by family and method."""
    found: dict[tuple[str, str, str], Tally] = {}
    for one in tried:
        kinds = {f.kind: f.where for f in reversed(one.findings)}
        if one.solving > SLOW:
            kinds["slow"] = f"{one.solving:.1f} CPU s"
        for kind, where in kinds.items():
            new = Tally(kind, 1, one.size, one.family, one.seed, one.method, where)
            old = found.setdefault((kind, one.family, one.method), new)
            if old is not new:
                least = min(old, new, key=_size)
                found[kind, one.family, one.method] = least._replace(clusters=old.clusters + 1)
    return list(found.values())


def _size(tally: Tally) -> tuple[int, int]:
    return tally.size, tally.seed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="clusters of each family")
    parser.add_argument("--seed", type=int, default=0, help="the first, or the one to show")
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument(
        "--times", type=int, nargs=2, default=(1, 1), metavar=("NODES", "PARTITIONS"),
        help="so many times the nodes and partitions of each family",
    )  # fmt: skip
    parser.add_argument("--method", nargs="+", default=["balance"])
    parser.add_argument("--small", action="store_true", help="compare small ones with CP-SAT")
    parser.add_argument("--seconds", type=float, default=inf, help="when to stop and report")
    parser.add_argument("--work", type=int, help="work limit of each solve")
    parser.add_argument(
        "--record", type=Path, metavar="FILE",
        help="append a line of JSON for each solve; what is there already is not tried again",
    )  # fmt: skip
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="dump one case")
    return parser


def _recorded(file: Path | None) -> set[tuple[str, int]]:
    """Return the families and seeds that a file has."""
    if file is None or not file.exists():
        return set()
    lines = map(json.loads, file.read_text().splitlines())
    return {(line["family"], line["seed"]) for line in lines}


def _record(file: Path, one: Tried) -> None:
    """Append what came of a trial, so that a run that is cut short can go on."""
    line = {
        "family": one.family, "seed": one.seed, "method": one.method, "size": one.size,
        "solving": round(one.solving, 4), "said": one.said[:120],
        "above": None if one.beside is None else one.beside.above,
        "findings": [list(found) for found in one.findings],
    }  # fmt: skip
    with file.open("a") as lines:
        lines.write(f"{json.dumps(line)}\n")


def _run(jobs: list[Job], processes: int) -> Iterator[Tried]:
    if processes == 1:
        for job in jobs:
            yield from _chunk(job)
        return
    pool = ProcessPoolExecutor(processes)
    try:
        for found in pool.map(_chunk, jobs):
            yield from found
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _chunk(job: Job) -> list[Tried]:
    """Try the seeds of a job."""
    return [
        try_one(draw(job.family, seed, job.times), method, job.small, job.work)
        for seed in job.seeds
        for method in job.methods
    ]


def _report(tallies: list[Tally]) -> None:
    """Print a line per kind, most frequent first, with the smallest of each family."""
    by_kind: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_kind.setdefault(tally.kind, []).append(tally)
    for kind, found in sorted(by_kind.items(), key=lambda item: -sum(t.clusters for t in item[1])):
        least = min(found, key=_size)
        families = ", ".join(
            f"{t.family}{'' if t.method == 'balance' else '/' + t.method} {t.clusters} "
            f"(seed {t.seed})"
            for t in sorted(found, key=lambda t: -t.clusters)
        )
        _say(
            f"{sum(t.clusters for t in found):5} {kind}: smallest --family {least.family} "
            f"--seed {least.seed} --method {least.method} ({least.where}); {families}"
        )


def _show(case: Case, method: str, work: int | None) -> int:
    _say(source_of(case, method))
    tried = try_one(case, method, small=True, work=work)
    came = world_of(case).came
    _say(f"\n# before: {list(zip(came.rows, came.leaders, strict=True))}")
    if tried.after is not None:
        _say(f"# after:  {list(zip(tried.after.rows, tried.after.leaders, strict=True))}")
    for line in (*tried.said.splitlines(), *map(str, tried.findings)):
        _say(f"# {line}")
    return 1 if tried.findings else 0


if __name__ == "__main__":
    sys.exit(main())
