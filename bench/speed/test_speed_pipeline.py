"""The pipeline's synchronous step: when nothing is wrong, and while much is going on beside it."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.control.engines.balance import BalanceEngine
from evenkeel.control.engines.waged import WagedEngine
from evenkeel.control.pipeline import Pipeline
from tests.support.pipeline.world import Soak, World

SOAKS = [
    ("helix_waged", WagedEngine(), 10_000, {}),
    ("balance", BalanceEngine(extra_moves=1.0), 2_000, {"partitions": 150}),
    ("helix_waged", WagedEngine(), 200, {"nodes": 300, "partitions": 25_000, "capacity": 4e3}),
    ("balance", BalanceEngine(), 200, {"nodes": 300, "partitions": 25_000, "capacity": 4e3}),
]


@pytest.fixture(scope="module")
def quiet():
    """Return a pipeline at rest, and its cluster: 25,000 x 3 on 300 nodes."""
    rng = np.random.default_rng(1)
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((300, 3), 1e6),
        load=rng.integers(1, 100, (25_000, 3)).astype(float),
        replicas=3,
        min_active=2,
        domains={"zone": np.arange(300) % 10},
        spread={"zone": 1},
    )
    with Pipeline("helix_waged") as pipeline:
        for _ in range(4):
            pipeline.run(cluster)
            pipeline.wait()
        yield pipeline, cluster


@pytest.mark.benchmark(group="pipeline")
@pytest.mark.parametrize("snapshot", ["same", "equal"])
def test_step_when_nothing_is_wrong(benchmark, quiet, snapshot):
    pipeline, cluster = quiet

    def another():
        if snapshot == "same":
            return (cluster,), {}
        load = {
            name: getattr(cluster.partitions.load, name).copy()
            for name in ("leader", "voter", "non_voter")
        }
        partitions = replace(cluster.partitions, load=replace(cluster.partitions.load, **load))
        nodes = replace(cluster.nodes, alive=cluster.nodes.alive.copy())
        return (replace(cluster, partitions=partitions, nodes=nodes),), {}

    result = benchmark.pedantic(pipeline.run, setup=another, rounds=50, warmup_rounds=3)
    what = "the same snapshot" if snapshot == "same" else "a snapshot with equal arrays"
    benchmark.extra_info["title"] = f"25,000 x 3 on 300 nodes: a step with nothing wrong, {what}"
    assert not result.partial_started and not result.emergency


@pytest.mark.benchmark(group="pipeline")
@pytest.mark.parametrize(("method", "engine", "events", "size"), SOAKS)
def test_step_during_a_soak(benchmark, tell, method, engine, events, size):
    """Wall time, since waiting counts; a partial runs through most of it."""

    def soak():
        with Soak(World(seed=1, **size), engine) as done:
            for _ in range(events):
                done.step()
        return done

    done = benchmark.pedantic(soak, rounds=1)
    busy = np.array(done.busy)
    nodes, partitions = size.get("nodes", 20), size.get("partitions", 60)
    for what, seconds in (("wall", done.seconds), ("CPU of its thread", done.cpu)):
        times = np.array(seconds)[busy] * 1e3
        half, most = np.percentile(times, [50, 99])
        tell(
            f"{method}, {partitions:,} x 3 on {nodes} nodes, {events:,} events, the {len(times):,} "
            f"steps while a calculation ran, {what}: "
            f"p50 {half:.2f} ms, p99 {most:.2f} ms, most {times.max():.1f} ms"
        )
    while_busy = np.array(done.seconds)[busy] * 1e3
    title = f"{method}, {partitions:,} x 3 on {nodes} nodes: a step while a calculation runs"
    p99 = float(np.percentile(while_busy, 99))
    benchmark.extra_info |= {"title": title, "seed": 1, "p99_ms": p99}
    assert done.wrong == []
