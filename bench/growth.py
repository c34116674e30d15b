"""How the time of the main calls grows with P, N, D and R: ``python -m bench.growth [CALL...]``.

Along each axis one size doubles and the others stay; the exponent is the slope of the line through
the logarithms. It may exceed what the docstrings of the kernels come to by ``MARGIN``, which covers
caches that overflow and logarithms; beyond that the command fails. The curves are stored as JSON.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import evenkeel as ek
from bench.support.ceph_maps import regular
from bench.table import STORED, duration
from evenkeel.model.assignment import Assignment
from evenkeel.systems.helix.crush.method import crushed
from evenkeel.systems.helix.crush.tree import HashedNames, Tree
from tests.support.instances import as_cluster, generate

FILE = STORED / "growth.json"
MARGIN = 0.3
ROUNDS = 3
ZONES, GROUPS = 10, 25
AXES = {
    "P": (8_000, 16_000, 32_000, 64_000),
    "N": (100, 200, 400, 800),
    "D": (1, 2, 4, 8),
    "R": (2, 3, 4, 6),
}
MIDDLE = {"P": 24_000, "N": 240, "D": 3, "R": 3}
# Ceph draws racks until they are all different: of ten racks that takes, for 6 replicas, 4.0 times
# as many draws as for 2
DRAWN = 1.26

Sizes = dict[str, int]
Work = Callable[[], object]


def cluster(sizes: Sizes, *, filled: bool = True) -> ek.Cluster:
    """Make a cluster just expanded, or an empty one whose nodes all live."""
    share = {} if filled else {"frac_dead": 0.0}
    instance = generate(**sizes, Z=ZONES, seed=1, **share)
    if not filled:
        instance["placement_before"][:] = -1
        instance["dead"][:] = False
    return as_cluster(instance)


def solving(
    level: float | None, *, filled: bool = True, walks: bool = False
) -> Callable[[Sizes], Work]:
    """Solve from a cluster to an audited result with its bounds."""
    # where the descent alone does not reach the level, a walk takes over for as many steps as it
    # needs: a matter of how hard the level is and not of size
    work_limit = None if walks else 0

    def of(sizes: Sizes) -> Work:
        given = cluster(sizes, filled=filled)
        return lambda: ek.solve(given, goals=ek.Goals(level=level), work_limit=work_limit)

    return of


def waged(sizes: Sizes) -> Work:
    """Place everything by WAGED, as for a first baseline."""
    random = np.random.default_rng(1)
    load = np.ceil(random.lognormal(3.0, 0.6, (sizes["P"], sizes["D"])))
    each = np.arange(sizes["N"])
    given = ek.Cluster.from_arrays(
        capacity=np.tile(np.ceil(load.sum(axis=0) * sizes["R"] / 0.6 / len(each)), (len(each), 1)),
        load=load,
        replicas=sizes["R"],
        domains={"zone": each % ZONES},
        spread={"zone": 1},
        group=np.arange(sizes["P"]) % GROUPS,
    )
    nothing = Assignment.of_rows(sizes["P"], *np.zeros((3, 0), np.int32))
    options = ek.options.Waged(current=nothing, changes=("nodes",))
    goals = ek.Goals(level=None)
    return lambda: ek.solve(given, "helix_waged", options=options, goals=goals)


def crushing(sizes: Sizes) -> Work:
    """Place a group by Helix's CRUSH-ed, names already hashed."""
    names = HashedNames.of([f"group_{p}" for p in range(sizes["P"])])
    each = range(sizes["N"])
    tree = Tree.of([f"host-{n}" for n in each], [f"zone-{n % ZONES}" for n in each])
    return lambda: crushed(names, tree, [1, sizes["R"] - 1], "group")


def mapping(sizes: Sizes) -> Work:
    """Map numbers by Ceph's CRUSH: ten racks of four hosts, N devices."""
    crush = regular(ZONES, 5, sizes["N"] // (5 * ZONES))
    seeds = np.arange(sizes["P"])
    return lambda: crush.map(0, seeds, sizes["R"])


@dataclass(frozen=True)
class Call:
    """A call, and the exponent along each axis that its kernels' docstrings come to."""

    # ``balance`` reads K replicas in D dimensions and asks all N nodes for each partition that
    # moves, whose number grows with P: at most P R D plus P N D. WAGED and Helix's CRUSH ask all
    # nodes of the zones they enter for each replica, Ceph's all items of the buckets. None where
    # nothing is stated, and nothing checked.
    make: Callable[[Sizes], Work]
    stated: dict[str, float | None]


CALLS = {
    "solve to 1.04": Call(solving(0.04, walks=True), dict.fromkeys("PNDR")),
    "the same, no walks": Call(solving(0.04), {"P": 1, "N": 1, "D": 1, "R": 1}),
    "repair only": Call(solving(None), {"P": 1, "N": 1, "D": 1, "R": 1}),
    "construct to 1.04": Call(solving(0.04, filled=False), {"P": 1, "N": 1, "D": 1, "R": 1}),
    "WAGED baseline": Call(waged, {"P": 1, "N": 1, "D": 1, "R": 1}),
    "CRUSH-ed": Call(crushing, {"P": 1, "N": 1, "R": 1}),
    "ceph_crush": Call(mapping, {"P": 1, "N": 1, "R": DRAWN}),
}


@dataclass(frozen=True)
class Curve:
    """The least CPU seconds at each size along one axis."""

    call: str
    axis: str
    sizes: list[int]
    seconds: list[float]
    exponent: float
    stated: float | None

    @property
    def ok(self) -> bool:
        """Whether it grows no faster than stated, within the margin."""
        return self.stated is None or self.exponent <= self.stated + MARGIN


def seconds_of(work: Work) -> float:
    """Least CPU seconds of the thread over some calls, after one that warms up."""
    work()
    gc.collect()
    least = np.inf
    for _ in range(ROUNDS):
        started = time.thread_time()
        work()
        least = min(least, time.thread_time() - started)
    return least


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of the straight line that fits the logarithms best."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def curve(name: str, axis: str) -> Curve:
    """Measure a call along an axis."""
    call, sizes = CALLS[name], list(AXES[axis])
    seconds = [seconds_of(call.make(MIDDLE | {axis: size})) for size in sizes]
    return Curve(name, axis, sizes, seconds, exponent(sizes, seconds), call.stated[axis])


def line(one: Curve) -> str:
    """Write a curve down."""
    points = "  ".join(
        f"{size:>6,}: {duration(seconds):>8}"
        for size, seconds in zip(one.sizes, one.seconds, strict=True)
    )
    verdict = "" if one.ok else f"  GROWS FASTER than {one.stated} + {MARGIN}"
    stated = " " * 7 if one.stated is None else f"{one.stated:7.2f}"
    return f"{one.call:18} {one.axis}  {one.exponent:6.2f} {stated}  {points}{verdict}"


def main(names: list[str]) -> int:
    """Measure, print and store; 1 if anything grows faster than stated."""
    if unknown := set(names) - set(CALLS):
        raise SystemExit(f"no such call: {', '.join(sorted(unknown))}; there are {list(CALLS)}")
    print(f"{'call':18} axis exponent stated  CPU time at each size; else {MIDDLE}")
    found = []
    for name in names or CALLS:
        for axis in CALLS[name].stated:
            found.append(curve(name, axis))
            print(line(found[-1]), flush=True)
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"load average {load} on {os.cpu_count()} processors")
    Path(FILE).parent.mkdir(exist_ok=True)
    about = {"datetime": time.strftime("%Y-%m-%dT%H:%M:%S"), "load_average": os.getloadavg()}
    FILE.write_text(json.dumps(about | {"curves": [asdict(one) for one in found]}, indent=1) + "\n")
    return int(not all(one.ok for one in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
