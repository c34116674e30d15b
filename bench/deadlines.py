"""How well ``time_limit`` is kept: ``python -m bench.deadlines [METHOD...]``.

Solves (method, size, limit) triples, up to a million partitions of three replicas, and prints how
far beyond its limit each ran, and how long the caller was not asked at a stretch. A limit may be
exceeded by ``ALLOWED`` seconds and ``SHARE`` of it; the command fails if a triple does worse.
``--count`` triples are drawn with ``--seed``, the same ones every time, and ``--part 2/4`` runs the
second quarter of them, so that a long run can be had in pieces. Kernels are compiled beforehand.

On a machine that others use, too, ``--cpu`` goes by the CPU time of this thread, for the limits as
for what is measured; a ``Cost``, which is searched by other threads, and CP-SAT are left out then.
"""

import argparse
import gc
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import evenkeel as ek
from bench.experiments.crush import Layout
from bench.support.ceph_maps import regular
from evenkeel.methods.shared.stopping import Watch
from evenkeel.simulate.generators import expansion
from evenkeel.systems.ceph.crush.cluster import cluster_of as ceph_cluster
from evenkeel.systems.ceph.crush.placement import Pool
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume
from evenkeel.systems.longhorn.auto_balance.intake import cluster_of as longhorn_cluster
from evenkeel.systems.longhorn.auto_balance.settings import Settings

ALLOWED, SHARE = 0.1, 0.05  # seconds, and part of the limit, by which a limit may be exceeded

SIZES = (100, 1_000, 10_000, 100_000, 300_000, 1_000_000)
LIMITS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)

Maker = Callable[[int], ek.Cluster]


def nodes_for(partitions: int) -> int:
    """Return nodes in step with partitions: 300 for 25,000, 10,000 for a million."""
    return min(10_000, max(20, partitions // 100))


@cache
def expanded(partitions: int) -> ek.Cluster:
    """Make a cluster just expanded, with dead and over-full nodes."""
    return expansion(partitions=partitions, nodes=nodes_for(partitions), zones=10)


@cache
def zoned(partitions: int) -> ek.Cluster:
    """Make equal nodes in five zones, and groups of a thousand partitions or fewer."""
    each = min(1_000, partitions)
    zone = max(2, min(2_000, nodes_for(partitions)) // 5)
    return Layout((zone,) * 5, partitions // each, each).cluster()


@cache
def devices(partitions: int) -> ek.Cluster:
    """Make a Ceph map with one pool."""
    hosts = max(1, min(2_000, nodes_for(partitions)) // 50)
    return ceph_cluster(regular(10, hosts, 5, "host", 4), [Pool(1, partitions, 3, 0)])


@cache
def volumes(partitions: int) -> ek.Cluster:
    """Make volumes on hosts of four disks of which a fiftieth has just joined."""
    rng = np.random.default_rng(0)
    count = max(6, min(2_000, nodes_for(partitions)) // 4)
    disks = [Disk(name=f"disk-{d}", maximum=10**15) for d in range(4)]
    hosts = [Host(name=f"host-{h}", zone=f"z{h % 3}", disks=disks) for h in range(count)]
    old = count - max(1, count // 50)
    found = []
    for v, on in enumerate(rng.integers(0, old, (partitions, 3)).tolist()):
        copies = [
            Replica(name=f"v{v}-{r}", host=f"host-{h}", disk="disk-0") for r, h in enumerate(on)
        ]
        found.append(
            Volume(name=f"v{v}", size=10**9, actual_size=10**9, replicas=copies,
                   attached_to=copies[0].host)
        )  # fmt: skip
    settings = Settings(replica_auto_balance="best-effort", replica_soft_anti_affinity=True)
    return longhorn_cluster(hosts, found, settings=settings)


class Case(NamedTuple):
    """A method, what it is asked, and of which clusters of at most how many partitions."""

    method: str
    name: str
    cluster: Maker
    largest: int = SIZES[-1]
    asked: dict[str, Any] = {}


def asking(method: str, name: str, cluster: Maker, largest: int = SIZES[-1], **asked: Any) -> Case:
    """Make a case."""
    return Case(method, name, cluster, largest, asked)


LEVEL, EXACT = ek.Goals(level=0.04), ek.Goals(level=0.001, leaders=0.001)
NONE = ek.Goals(level=None)
CASES = (
    asking("balance", "level 0.04", expanded, goals=LEVEL),
    asking("balance", "level and leaders 0.001", expanded, goals=EXACT),
    asking("balance", "leaders 0.001", expanded, goals=ek.Goals(level=None, leaders=0.001)),
    asking("balance", "repair", expanded, goals=NONE),
    asking("balance", "1,000 moves", expanded, goals=LEVEL, limits=ek.Limits(moves=1_000)),
    asking("balance", "a cost", expanded, 100_000, goals=ek.Cost()),
    asking("exact", "", expanded, 1_000, goals=LEVEL, options=ek.options.Exact(largest=1 << 40)),
    asking("leaders", "by number", expanded, goals=NONE),
    asking("leaders", "by load", expanded, goals=NONE, options=ek.options.Leaders(by="load")),
    asking("helix_crush", "", zoned, goals=NONE),
    asking("helix_multiround", "", zoned, goals=NONE),
    asking("helix_multiround", "repaired", zoned, goals=NONE,
           options=ek.options.MultiRound(repaired=True)),
    asking("helix_crushed", "", zoned, goals=NONE),
    asking("helix_crushed", "repaired", zoned, goals=NONE,
           options=ek.options.Crushed(repaired=True)),
    asking("helix_auto", "", zoned, goals=NONE),
    asking("helix_waged", "", zoned, goals=NONE),
    asking("ceph_crush", "", devices, goals=NONE),
    asking("ceph_upmap", "", devices, goals=NONE),
    asking("cockroach", "", expanded, goals=LEVEL),
    asking("longhorn", "volume by volume", volumes, 100_000, goals=NONE),
    asking("longhorn", "cluster", volumes, 100_000, goals=NONE,
           options=ek.options.Longhorn(scope="cluster")),
)  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """How a triple went: seconds in all, and the longest without a question to the caller."""

    case: Case
    partitions: int
    limit: float
    seconds: float
    silence: float
    stop: str
    parts: dict[str, float]

    @property
    def over(self) -> float:
        """Seconds beyond what is allowed; 0 or less if the limit was kept."""
        return self.seconds - self.limit - ALLOWED - SHARE * self.limit


def triples(methods: Sequence[str], most: int) -> list[tuple[Case, int, float]]:
    """List every case at every size and limit, size by size, so that a cluster is made once."""
    return [
        (case, size, limit)
        for size, case, limit in itertools.product(SIZES, CASES, LIMITS)
        if size <= min(case.largest, most) and (not methods or case.method in methods)
    ]


def drawn(all_of: list[Any], count: int, seed: int) -> list[Any]:
    """Draw so many at random, in their order."""
    if count >= len(all_of):
        return all_of
    chosen = np.random.default_rng(seed).choice(len(all_of), count, replace=False)
    return [all_of[i] for i in sorted(chosen.tolist())]


def kept(
    case: Case, partitions: int, limit: float, clock: Callable[[], float] = time.perf_counter
) -> Kept:
    """Solve within a limit and take the time, both by a clock."""
    cluster = case.cluster(partitions)
    looks = []
    gc.collect()
    began = clock()
    with patch("evenkeel.solving.Watch", partial(Watch, clock=clock)):
        result = ek.solve(
            cluster, case.method, time_limit=limit, **case.asked,
            callback=lambda _: looks.append(clock()),
        )  # fmt: skip
    ended = clock()
    silence = float(np.diff([began, *looks, ended]).max())
    return Kept(case, partitions, limit, ended - began, silence, result.stop_reason,
                dict(result.timings))  # fmt: skip


def line(one: Kept) -> str:
    """Write a triple down."""
    slow = ", ".join(
        f"{name} {took:.2f}" for name, took in one.parts.items() if took > max(0.05, ALLOWED / 2)
    )
    verdict = f"OVER by {one.over:.2f}" if one.over > 0.0 else ""
    return (
        f"{one.case.method:16} {one.case.name:24} {one.partitions:>9,} {one.limit:5.2f} s: "
        f"{one.seconds:6.2f} s, silent {one.silence:5.2f}, {one.stop:11} {verdict:15} {slow}"
    )


def measured(methods: Sequence[str], asked: argparse.Namespace) -> Iterator[Kept]:
    """Run the triples of the part that was asked for."""
    part, parts = (int(number) for number in asked.part.split("/"))
    listed = triples(methods, asked.most)
    if asked.cpu:
        listed = [one for one in listed if one[0].name != "a cost" and one[0].method != "exact"]
    chosen = drawn(listed, asked.count, asked.seed)
    chosen = chosen[(part - 1) * len(chosen) // parts : part * len(chosen) // parts]
    ek.warmup(methods=sorted({case.method for case, *_ in chosen}))
    seen: set[str] = set()
    for case, partitions, limit in chosen:
        if f"{case}" not in seen:  # what no rehearsal reached is compiled here
            seen.add(f"{case}")
            for size in SIZES[:2]:
                ek.solve(case.cluster(size), case.method, time_limit=60.0, **case.asked)
        yield kept(case, partitions, limit, time.thread_time if asked.cpu else time.perf_counter)


def main(argv: Sequence[str] | None = None) -> int:
    """Print how the triples went; 1 if a limit was not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.deadlines", description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="all by default")
    parser.add_argument("--count", type=int, default=500, metavar="N", help="triples (500)")
    parser.add_argument("--most", type=int, default=SIZES[-1], metavar="P", help="partitions")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="this part of the triples")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw")
    parser.add_argument("--cpu", action="store_true", help="by the thread's CPU time")
    found = []
    asked = parser.parse_args(argv)
    for one in measured(asked.methods, asked):
        found.append(one)
        print(line(one), flush=True)
    over = [one for one in found if one.over > 0.0]
    worst = max((one.over for one in over), default=0.0)
    silent = max((one.silence for one in found), default=0.0)
    print(
        f"{len(found)} triples, {len(over)} exceeded by more than {ALLOWED:g} s + {SHARE:.0%}, "
        f"the worst by {worst:.2f} s more; silent for {silent:.2f} s at most"
    )
    return int(bool(over))


if __name__ == "__main__":
    raise SystemExit(main())
