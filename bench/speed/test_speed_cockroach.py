"""CockroachDB's decisions over whole clusters: all actions in one pass, the queue to its end."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.cockroach.allocator.actions import actions
from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster, fleet_of
from evenkeel.systems.cockroach.allocator.range_decider import ReplicateRun
from evenkeel.systems.cockroach.allocator.settings import Cockroach
from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig, configs_of
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log

SEED = 7
ZONES = 9


def grown(ranges, old, new):
    """Ranges with a replica in each of three regions, level over the old stores of nine zones."""
    random = np.random.default_rng(SEED)
    zone = np.argsort(random.random((ranges, 3)), axis=1) * 3 + random.integers(0, 3, (ranges, 3))
    return cockroach_cluster(
        localities=[f"region=r{s % ZONES // 3},zone=z{s % ZONES}" for s in range(old + new)],
        replicas=zone + ZONES * random.integers(0, old // ZONES, (ranges, 3)),
        configs=[{"num_replicas": 3}],
    )


def test_all_actions(benchmark):
    """1,000,000 ranges of three replicas on 1,000 stores, of which 3 in 100 are in some trouble."""
    random = np.random.default_rng(SEED)
    ranges, stores = 1_000_000, 1_000
    configs, _ = configs_of([ZoneConfig(num_replicas=3), ZoneConfig(5, 3)])
    given = {
        "first": np.arange(ranges + 1, dtype=np.int64) * 3,
        "store": random.integers(0, stores, 3 * ranges, dtype=np.int32),
        "config": random.integers(0, 2, ranges, dtype=np.int32),
        "status": np.where(random.random(stores) < 0.03, random.integers(1, 7, stores), 0),
    }
    found = benchmark.pedantic(
        actions, kwargs=given | {"configs": configs, "hosts": stores}, rounds=9, warmup_rounds=2
    )
    title = "`cockroach`: the actions of 1,000,000 ranges on 1,000 stores"
    benchmark.extra_info |= {"title": title, "seed": SEED}
    assert len(np.unique(found.action)) >= 5


def test_queue_to_quiescence(benchmark):
    """100,000 ranges of three replicas on 297 stores after 30 more have come."""
    cluster = grown(100_000, 297, 30)

    def settled(run):
        while run.step(1 << 40) or run.next_pass():
            pass
        return run

    def begun():
        return (ReplicateRun(fleet_of(cluster), room_to_log(200_000), nothing_left(100_000)),), {}

    run = benchmark.pedantic(settled, setup=begun, rounds=3, warmup_rounds=1)
    title = "`cockroach`: 100,000 ranges of 3 on 297 stores and 30 new ones, until convergence"
    benchmark.extra_info |= {"title": title, "seed": SEED, "decisions": run.decisions}
    assert run.withheld == 0
    decided = run.decisions
    run.begin()
    assert settled(run).decisions == decided


@pytest.mark.parametrize("mode", ["off", "leases and replicas"])
def test_whole_call(benchmark, mode):
    """The same by `solve`, with leases and the audit."""
    cluster = grown(100_000, 297, 30)
    options = Cockroach(mode=mode)
    result = benchmark.pedantic(
        lambda: ek.solve(cluster, "cockroach", options=options), rounds=2, warmup_rounds=1
    )
    title = f"`cockroach` by `solve`, the same cluster, store rebalancer {mode}"
    benchmark.extra_info |= {"title": title, "seed": SEED, "decisions": len(result.native.log)}
    assert result.native.converged
