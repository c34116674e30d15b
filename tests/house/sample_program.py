"""A program as a user would write it: it runs, and is typed without a hole (`test_typing.py`)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import evenkeel as ek
from evenkeel.control import Delay, Pipeline


def snapshot(loads: NDArray[np.float64], zones: list[str]) -> ek.Cluster:
    """A cluster whose partitions stand on the first nodes."""
    return ek.Cluster.from_arrays(
        capacity=np.full((len(zones), loads.shape[1]), 100.0),
        load=loads,
        dimensions=("cpu", "disk"),
        domains={"zone": zones},
        placement=[[0, 1]] * len(loads),
        rules=[ek.Rule(spread={"zone": 1})],
    )


def levelled(cluster: ek.Cluster) -> ek.Result:
    """The cluster, level to a tenth."""
    goals = ek.Goals(level={"cpu": 0.1, "disk": "10%"}, leaders=0.2)
    limits = ek.Limits(node_in={"n0": 20}, node_out=[20] * len(cluster.nodes))
    return ek.solve(cluster, "balance", goals=goals, limits=limits, time_limit=10.0)


def figures(result: ek.Result) -> Mapping[str, float]:
    """What a dashboard shows."""
    moved: int = result.comparison.moves
    least: int = result.bounds.moves_level
    blocked = [one.partition for one in result.unplaced]
    hot: tuple[str, ...] = tuple(row.node for row in result.violations)
    return {"moves": moved, "least": least, "unplaced": len(blocked), "broken": len(hot)}


def carried_out(cluster: ek.Cluster, result: ek.Result) -> list[tuple[str, str | None]]:
    """The steps, by partition and target."""
    plan: ek.Plan = ek.plan(cluster, result, throttle=ek.Throttle(node_in=2))
    assert plan.check().ok
    return [(row.partition, row.target) for row in plan.rows()]


def watched(cluster: ek.Cluster) -> bool:
    """Whether a pipeline has nothing urgent to do."""
    with Pipeline("balance", delay=Delay(seconds=60.0)) as pipeline:
        return not pipeline.run(cluster).emergency


def main() -> Mapping[str, float]:
    """All of it."""
    cluster = snapshot(np.ones((20, 2)), [*"abab"])
    result = levelled(cluster)
    lost: ek.Sweep = ek.sweep(
        cluster, ["node", ek.Changes(name="growth", load_factor={"cpu": 1.5})]
    )
    fits: NDArray[np.bool_] = lost.fits
    steps = carried_out(cluster, result)
    calm = watched(cluster.with_placement(result.placement))
    return {**figures(result), "fits": int(fits.sum()), "steps": len(steps), "calm": calm}
