"""Gates for whole pieces of the other systems' work, and for the rest of ours.

Each is timed against sorting and counting arrays of one size, which stands for nothing but the
speed of the machine, or against the reference named there.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from bench.gates.test_gates import gate  # noqa: F401  a fixture
from bench.scenarios.cockroach import SCENARIOS
from bench.speed.test_speed_cockroach import grown
from bench.speed.test_speed_crush import STATES, STRATEGIES, named
from bench.speed.test_speed_longhorn import joined
from bench.speed.test_speed_waged import SIZES, baseline, cluster_of, crossed, run, without_some
from bench.support import references
from bench.support.ceph_maps import regular
from bench.support.contest import Contender
from bench.support.full_evaluation import probe
from bench.support.jobs import JOBS, medium
from bench.support.reassignments import generated, opened
from evenkeel import simulate
from evenkeel.control.pipeline import Pipeline
from evenkeel.methods.cost import minimise
from evenkeel.methods.shared.stopping import Watch
from evenkeel.systems import roadef
from evenkeel.systems.ceph.crush.method import balance
from evenkeel.systems.ceph.crush.placement import Pool
from evenkeel.systems.cockroach.allocator.actions import actions
from evenkeel.systems.cockroach.allocator.intake import fleet_of
from evenkeel.systems.cockroach.allocator.range_decider import ReplicateRun
from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig, configs_of
from evenkeel.systems.helix.waged import nothing
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
from tests.support.instances import as_cluster
from tests.support.longhorn.skewed import skewed

pytestmark = pytest.mark.gate

MODEL = Path(__file__).parents[2] / "tests/data/roadef/model_a1_3.txt.gz"
WORK, EVALUATIONS = 500_000, 100_000
STEPS = 200  # steps of a pipeline, which are too short to be timed one by one


@cache
def yardstick():
    """What everything here is timed against."""
    random = np.random.default_rng(1)
    load, node = random.random((75_000, 3)), random.integers(0, 300, 75_000)
    return Contender(lambda: references.yardstick(load, node, 300))


@pytest.mark.parametrize("name", ["medium", "construct", "large"])
def test_whole_call(gate, name):  # noqa: F811
    job = JOBS[name]
    job.instance()
    gate(name, Contender(job.run), yardstick(), rounds=5)


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy(gate, name):  # noqa: F811
    partitions, nodes, zones, down, strategy = STRATEGIES[name]
    given = (*named(partitions, nodes, zones, down), STATES)
    gate(name, Contender(lambda: strategy(*given)), yardstick())


def test_ceph_mappings(gate):  # noqa: F811
    crush, seeds = regular(5, 4, 5), np.arange(100_000)
    gate("ceph_crush", Contender(lambda: crush.map(0, seeds, 3)), yardstick())


def test_ceph_upmap(gate):  # noqa: F811
    crush, pool = regular(5, 4, 5, "host", 4), Pool(1, 4_096, 3, 0)
    gate("ceph_upmap", Contender(lambda: balance(crush, pool)), yardstick())


def test_waged_global(gate):  # noqa: F811
    partitions, nodes = SIZES[0]
    cluster = cluster_of(partitions, nodes)
    options = {"current": nothing(partitions), "changes": ("nodes",)}
    gate("waged_global", Contender(lambda: run(cluster, **options)), yardstick(), rounds=5)


def test_waged_emergency(gate):  # noqa: F811
    partitions, nodes = SIZES[1]
    meant, cluster = baseline(partitions, nodes), without_some(partitions, nodes)
    options = {"scope": "emergency", "current": meant, "baseline": meant}
    gate("waged_emergency", Contender(lambda: run(cluster, **options)), yardstick())


def test_waged_partial(gate):  # noqa: F811
    """Where three partitions in five are elsewhere."""
    partitions, nodes = SIZES[0]
    cluster, meant = cluster_of(partitions, nodes), baseline(partitions, nodes)
    away = run(cluster_of(partitions, nodes, 2), current=nothing(partitions), changes=("nodes",))
    some = np.random.default_rng(4).random(partitions) < 0.6
    options = {"scope": "partial", "current": crossed(meant, away.native, some), "baseline": meant}
    gate("waged_partial", Contender(lambda: run(cluster, **options)), yardstick())


def test_pipeline_step(gate):  # noqa: F811
    """When nothing is wrong."""
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((300, 3), 1e6),
        load=np.ones((25_000, 3)),
        replicas=3,
        domains={"zone": np.arange(300) % 10},
        spread={"zone": 1},
    )
    with Pipeline("helix_waged") as pipeline:
        for _ in range(4):
            pipeline.run(cluster)
            pipeline.wait()

        def steps():
            for _ in range(STEPS):
                pipeline.run(cluster)

        gate("pipeline_step", Contender(steps), yardstick())


def test_cockroach_queue(gate):  # noqa: F811
    """To quiescence."""
    cluster = grown(10_000, 99, 10)

    def settled(queue):
        while queue.step(1 << 40) or queue.next_pass():
            pass

    def begun():
        return (ReplicateRun(fleet_of(cluster), room_to_log(20_000), nothing_left(10_000)),)

    gate("cockroach_queue", Contender(settled, begun), yardstick(), rounds=5)


def test_cockroach_actions(gate):  # noqa: F811
    random = np.random.default_rng(1)
    ranges, stores = 250_000, 1_000
    configs, _ = configs_of([ZoneConfig(num_replicas=3), ZoneConfig(5, 3)])
    given = {
        "first": np.arange(ranges + 1, dtype=np.int64) * 3,
        "store": random.integers(0, stores, 3 * ranges, dtype=np.int32),
        "config": random.integers(0, 2, ranges, dtype=np.int32),
        "status": np.where(random.random(stores) < 0.03, random.integers(1, 7, stores), 0),
        "configs": configs,
        "hosts": stores,
    }
    gate("cockroach_actions", Contender(lambda: actions(**given)), yardstick())


def test_cockroach_whole_call(gate):  # noqa: F811
    """Replicas, leases and load, to quiescence, and the audit."""
    cluster = grown(10_000, 99, 10)
    options = ek.options.Cockroach(mode="leases and replicas")
    call = Contender(lambda: ek.solve(cluster, "cockroach", options=options))
    gate("cockroach", call, yardstick(), rounds=5)


def test_longhorn_cluster_scope(gate):  # noqa: F811
    """One plan for all volumes."""
    cluster = skewed()
    options = ek.options.Longhorn(scope="cluster", replica_auto_balance="best-effort")
    call = Contender(lambda: ek.solve(cluster, "longhorn", options=options))
    gate("longhorn_cluster", call, yardstick(), rounds=5)


def test_leaders(gate):  # noqa: F811
    """Who leads, by flow."""
    cluster = as_cluster(medium())
    gate("leaders", Contender(lambda: ek.solve(cluster, "leaders")), yardstick(), rounds=5)


def test_reassignment(gate):  # noqa: F811
    """The walk over a weighted sum with all five constraints of the ROADEF challenge."""
    cluster = roadef.read(MODEL)
    goals = roadef.cost_of(cluster)
    call = Contender(lambda: ek.solve(cluster, goals=goals, work_limit=WORK))
    gate("reassignment", call, yardstick(), rounds=5)


def test_full_evaluations(gate):  # noqa: F811
    """Nothing left out, against pricing and fitting as many swaps at once."""
    # an instance that fits into a processor's own cache: what neighbours do to a shared one would
    # come between ours, which goes from table to table, and the reference, which does not
    compiled, found = opened(generated("b_1")), np.zeros(4, np.int64)
    gate(
        "evaluation",
        Contender(lambda: probe(*compiled, EVALUATIONS, found)),
        Contender(lambda: references.price_swaps(compiled.state, compiled.walk, EVALUATIONS)),
        rounds=15,
    )


def test_reassignment_set_up(gate):  # noqa: F811
    """From a large cluster to the first candidate."""
    cluster = generated("b_9")
    goals = roadef.cost_of(cluster)
    call = Contender(lambda: minimise(cluster, goals, Watch(None, 1, None)))
    gate("reassignment_set_up", call, yardstick())


def test_simulation(gate):  # noqa: F811
    """A scenario from beginning to end, range by range."""
    scenario = SCENARIOS["rebalancing"]()
    call = Contender(lambda: simulate.run(scenario, "cockroach"))
    gate("simulation", call, yardstick(), rounds=3)


def test_longhorn_to_rest(gate):  # noqa: F811
    cluster = joined("new_zone")
    gate("longhorn", Contender(AutoBalance.run, lambda: (AutoBalance(cluster),)), yardstick())
