"""The sweep: what a scenario costs, and that it costs no more than its solve."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import evenkeel as ek
from bench.support.contest import Contender, least_seconds
from bench.support.jobs import expanded
from evenkeel.studies.scenario import changed
from tests.support.instances import as_cluster

GOALS = ek.Goals(level=0.04)
SWEEPS = {
    "nodes": ("25,000 x 3 on 300 nodes: loss of each node", (25_000, 300, 10, 1), "node"),
    "pairs": ("5,000 x 3 on 100 nodes: loss of every two nodes", (5_000, 100, 10, 8), "node pairs"),
}
WORKERS = {
    "threads": ThreadPoolExecutor,
    "processes": lambda count: ProcessPoolExecutor(
        count, mp_context=multiprocessing.get_context("spawn")
    ),
}
LEAST_GAIN = 3.0  # how much longer it must take to solve the scenarios one by one


@cache
def balanced(name):
    """Return a cluster whose nodes all live, balanced to 1.04."""
    instance = expanded(*SWEEPS[name][1])
    cluster = as_cluster(instance | {"dead": np.zeros_like(instance["dead"])})
    return cluster.with_placement(ek.solve(cluster, goals=GOALS).placement)


@pytest.mark.benchmark(group="sweep")
@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_in_one_thread(benchmark, tell, name):
    title, _, scenarios = SWEEPS[name]
    cluster = balanced(name)
    found = benchmark.pedantic(
        lambda: ek.sweep(cluster, scenarios, goals=GOALS), rounds=1, warmup_rounds=0
    )
    seconds = benchmark.stats.stats.min
    tell(f"{title}: {seconds:.1f} s, {seconds / len(found.names) * 1e3:.2f} ms each, one thread")
    benchmark.extra_info |= {
        "title": f"{title}, repaired, balanced to 1.04 and audited, one thread",
        "scenarios": len(found.names),
        "max_over_mean": float(found.level.max()),
        "moves": int(found.moves.sum()),
        "bound": int(found.moves_at_least.sum()),
    }
    assert found.fits.all()
    assert (found.level <= 1.04 + 1e-9).all()
    assert found.moves.sum() <= 1.05 * found.moves_at_least.sum()


@pytest.mark.benchmark(group="sweep")
@pytest.mark.parametrize("who", WORKERS)
@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_by_two_workers(benchmark, tell, name, who):
    """Wall time, the start of the workers included: what it says depends on who else is there."""
    title, _, scenarios = SWEEPS[name]
    cluster = balanced(name)

    def run():
        with WORKERS[who](2) as workers:
            return ek.sweep(cluster, scenarios, workers, goals=GOALS)

    started = time.perf_counter()
    found = benchmark.pedantic(run, rounds=1, warmup_rounds=0)
    seconds = time.perf_counter() - started
    tell(f"{title}: {seconds:.1f} s of wall time, two {who}")
    benchmark.extra_info |= {"wall_seconds": seconds, "scenarios": len(found.names)}
    assert found.complete


@pytest.mark.gate
@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_of_losses_costs_a_fraction_of_their_solves(tell, name):
    """Against solving clusters that were changed beforehand; both solve the cluster as it is."""
    cluster = balanced(name)
    scenarios = [
        ek.Changes(down=[n]) for n in range(0, len(cluster.nodes), len(cluster.nodes) // 8)
    ]
    alone = [ek.Changes(name="now")]
    alone += ek.sweep(cluster, scenarios, goals=GOALS).changes
    one_by_one, together = least_seconds(
        Contender(lambda: [ek.solve(changed(cluster, one), goals=GOALS) for one in alone]),
        Contender(lambda: ek.sweep(cluster, scenarios, goals=GOALS)),
        rounds=7,
    )
    gain = one_by_one / together
    tell(f"sweep, {name}: its solves take {gain:.1f} times as long, {LEAST_GAIN:.1f} needed")
    assert gain >= LEAST_GAIN


@pytest.mark.benchmark(group="session")
@pytest.mark.parametrize("level", [0.04, None], ids=["level", "repair"])
def test_a_node_dies_in_a_session(benchmark, level):
    """Fork, lose the node, and take the audited result with its bounds."""
    session, goals = ek.Session(balanced("nodes")), ek.Goals(level=level)

    def lose():
        result = session.fork().apply(ek.Changes(down="n7")).solve(goals=goals)
        assert result.bounds.moves_level > 0  # taken when asked for
        return result

    result = benchmark(lose)
    benchmark.extra_info["title"] = f"25,000 x 3 on 300 nodes, one node dies in a session: {goals}"
    assert result.status == "optimal" and result.audit.hard == 0


def test_a_controller_waits_no_longer_than_a_bare_call(tell):
    """With limits that bind, with a callback, after new loads: 1.5 times the bare call at most."""
    cluster, goals = balanced("nodes"), ek.Goals(level=0.06)
    session = ek.Session(cluster)
    session.fork().apply(ek.Changes(down="n7")).solve(goals=goals)
    load = cluster.partitions.load.voter
    load = load * np.random.default_rng(0).uniform(0.999, 1.001, load.shape)
    renewed = session.fork().apply(ek.Changes(load=load))

    def dies(held=session, **asked):
        return Contender(
            lambda: held.fork().apply(ek.Changes(down="n7")).solve(goals=goals, **asked)
        )

    ways = {
        "at most 100 moves": dies(limits=ek.Limits(moves=100)),
        "at most 1 into a node": dies(limits=ek.Limits(node_in=1)),
        "at most 2 into a node": dies(limits=ek.Limits(node_in=2)),
        "a callback": dies(callback=lambda progress: None),
        "new loads": dies(renewed),
        "all of it": dies(renewed, limits=ek.Limits(moves=100), callback=lambda progress: None),
    }
    bare, *others = least_seconds(dies(), *ways.values(), rounds=60)
    for name, seconds in zip(ways, others, strict=True):
        tell(
            f"a node dies, {name}: {seconds * 1e3:.2f} ms, {seconds / bare:.2f} x {bare * 1e3:.2f}"
        )
    assert max(others) <= 1.5 * bare
