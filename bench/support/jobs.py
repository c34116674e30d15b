"""The jobs that benchmarks measure, from user arrays to audited results with bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import evenkeel as ek
from tests.support.instances import Instance, as_cluster, generate, golden


@dataclass(frozen=True)
class Job:
    """One row of the table of figures."""

    title: str  # what is done to what
    seed: int  # of the instance
    instance: Callable[[], Instance]  # returns the arrays, the same ones every time
    options: Mapping[str, Any]  # what ``solve`` is asked for
    rounds: int = field(default=20, kw_only=True)  # how often it is timed

    def run(self) -> ek.Result:
        """Take the arrays, make the cluster, solve."""
        return ek.solve(as_cluster(self.instance()), **self.options)


@cache
def expanded(partitions: int, nodes: int, zones: int, seed: int, replicas: int = 3) -> Instance:
    """Return a cluster just expanded, damaged and over-full in places."""
    return generate(P=partitions, N=nodes, Z=zones, R=replicas, seed=seed)


@cache
def empty(partitions: int, nodes: int, zones: int, seed: int) -> Instance:
    """Return a cluster whose nodes all live and hold nothing yet."""
    instance = dict(generate(P=partitions, N=nodes, Z=zones, seed=seed))
    instance["placement_before"] = np.full_like(instance["placement_before"], -1)
    instance["dead"] = np.zeros_like(instance["dead"])
    return instance


@cache
def medium() -> Instance:
    """Return the stored medium instance."""
    return golden("medium")


def headline(seed: int = 1) -> Instance:
    """Return the cluster that the promises are about: 25,000 x 3 on 300 nodes in 10 zones."""
    return expanded(25_000, 300, 10, seed)


def summary(result: ek.Result) -> dict[str, Any]:
    """Give the figures of a result that tell whether it is any good, as plain numbers."""
    moves, bound = result.comparison.moves, result.bounds.moves_level
    return {
        "moves": moves,
        "bound": bound,
        "ratio": round(moves / max(bound, 1), 4),
        "leader_changes": result.comparison.leader_changes,
        "max_over_mean": round(float(result.levelness.ratio.max()), 5),
        "hard_violations": result.audit.hard,
        "stop_reason": result.stop_reason,
    }


JOBS = {
    "headline": Job(
        "25,000 x 3 on 300 nodes, just expanded, 3 % dead: repair and balance to 1.04",
        1, headline, {"goals": ek.Goals(level=0.04)},
    ),
    "headline_repair": Job(
        "the same, repair only",
        1, headline, {"goals": ek.Goals(level=None)},
    ),
    "headline_tight": Job(
        "the same, balance to 1.002",
        1, headline, {"goals": ek.Goals(level=0.002), "time_limit": 1}, rounds=5,
    ),
    "headline_groups": Job(
        "the same, balance to 1.04, and replicas of each group to 1.2 of their share",
        1, headline, {"goals": ek.Goals(level=0.04, groups=0.2)},
    ),
    "medium": Job(
        "5,000 x 3 on 100 nodes, just expanded: balance to 1.04",
        8, medium, {"goals": ek.Goals(level=0.04)},
    ),
    "construct": Job(
        "25,000 x 3 on 1,000 empty nodes: place all, balance to 1.002",
        1, lambda: empty(25_000, 1_000, 10, 1), {"goals": ek.Goals(level=0.002)}, rounds=10,
    ),
    "large": Job(
        "100,000 x 3 on 1,000 nodes, just expanded: balance to 1.04",
        1, lambda: expanded(100_000, 1_000, 10, 1), {"goals": ek.Goals(level=0.04)}, rounds=5,
    ),
}  # fmt: skip

# too large to be run over and over
HUGE = Job(
    "1,000,000 x 3 on 10,000 nodes, just expanded: balance to 1.04",
    1, lambda: expanded(1_000_000, 10_000, 10, 1), {"goals": ek.Goals(level=0.04)}, rounds=1,
)  # fmt: skip

# hard rules are broken whatever is done
OVERFULL = Job(
    "5,000 x 3 on 60 nodes that together lack room for all: place what fits",
    1, lambda: generate(P=5_000, N=60, Z=6, seed=1, util=1.3), {"goals": ek.Goals(level=0.04)},
)  # fmt: skip
