"""Methods that read more of a cluster than the model says: what they read follows the events."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.measure.audit import audit
from evenkeel.methods.contract import SimulatedState
from evenkeel.methods.registry import find
from evenkeel.simulate import At, Growth, Health, NodesBecome, play
from evenkeel.simulate.engine.world import World
from evenkeel.systems import registry
from evenkeel.systems.ceph.crush import cluster_of as ceph_cluster_of
from tests.simulate.test_play import cluster_of
from tests.support import places
from tests.systems.ceph.test_methods import golden

LONGHORN = places.DATA / "longhorn" / "cluster.json"
SIX = [f"region={name}" for name in "aabbcc"]
FAST = simulate.Environment(overhead=1.0, lead_gap=0.0)


def longhorn():
    """A Longhorn system as kubectl prints it: four disks, four volumes."""
    return registry.read(LONGHORN)


def cockroach(**others):
    """Six stores in three regions, one range in each of the first ones."""
    return ek.cockroach_cluster(localities=SIX, replicas=[[0, 2, 4]] * 12, configs=[{}], **others)


def _fell(cluster, name):
    """Whether a replica served until the first disk went down."""
    replicas = cluster.native.replicas
    slot = replicas.names.index(name)
    return cluster.placement.node[slot] == 0 and not replicas.failed[slot]


def test_longhorn_hears_of_disks_that_are_down_and_volumes_that_grow():
    cluster = longhorn()
    before = cluster.native
    world = World(cluster)
    NodesBecome(nodes=[0], health=Health.UNKNOWN).happen(world)
    world.voter_load[1] *= 3.0
    world.advance(1000.0)
    told = SimulatedState(cluster, world.snapshot(), world.origin, 1000.0, world.health_since)
    after = find("longhorn").refresher()(told)
    system, at = after.native, after.placement
    assert system.disks.ready.tolist() == [False, True, True, True]
    assert system.hosts.ready.all(), "another disk of the host still answers"
    assert system.now == before.now + 1000.0
    assert system.replicas.failed[at.node == 0].all()
    fell = [
        system.replicas.names.index(n) for n in before.replicas.names if n and _fell(cluster, n)
    ]
    assert fell and system.replicas.reusable[fell].all(), "they may come back"
    assert not system.replicas.healthy[at.node == 0].any()
    assert system.volumes.actual[1] == 3 * before.volumes.actual[1]
    holds = np.isin(np.arange(4), at.node[at.owner == 1])
    grown = 2 * before.volumes.size[1] * holds
    assert (system.disks.scheduled - before.disks.scheduled).tolist() == grown.tolist()
    assert len(system.replicas.names) == len(at.node)


def test_a_longhorn_system_that_nothing_happened_to_is_the_same():
    cluster = longhorn()
    world = World(cluster)
    told = SimulatedState(cluster, world.snapshot(), world.origin, 0.0, world.health_since)
    after = find("longhorn").refresher()(told).native
    for part in ("hosts", "disks", "volumes"):
        one, other = vars(getattr(cluster.native, part)), vars(getattr(after, part))
        for name, value in one.items():
            if isinstance(value, np.ndarray):
                assert np.array_equal(value, other[name], equal_nan=value.dtype.kind == "f"), name
    held = [name for name in after.replicas.names if name]
    assert held == [name for name in cluster.native.replicas.names if name]


def test_longhorn_moves_off_a_dead_disk_and_one_that_is_evacuated():
    for event in (
        At(60.0, ek.Changes(down=["node-1/ssd-1"]), dead_after=60.0),
        At(60.0, ek.Changes(drain=["node-1/ssd-1"])),
    ):
        cluster = longhorn()
        quiet = play(cluster, [], "longhorn", environment=FAST, until=3600.0)
        history = play(cluster, [event], "longhorn", environment=FAST, until=3600.0)
        gone = cluster.nodes.names.index("node-1/ssd-1")
        assert history.replicas[-1, gone] < max(quiet.replicas[-1, gone], quiet.replicas[0, gone])
        late = [entry for entry in history.log if entry.seconds > 60.0]
        assert all(gone not in dict(entry.change.add) for entry in late)


def test_ceph_places_anew_when_a_device_is_out_and_back_when_it_returns():
    _, crush, pool = golden("a12_pgs")
    cluster = ceph_cluster_of(crush, pool)
    events = [At(60.0, ek.Changes(down="osd.0"), dead_after=60.0), At(1200.0, ek.Changes(up=0))]
    history = play(cluster, events, "ceph_crush", environment=FAST, until=2400.0)
    before = history.replicas[0, 0]
    assert before > 0
    assert history.replicas[history.seconds == 1140.0][0, 0] == 0
    assert history.replicas[-1, 0] == before
    assert history.total("failed") == 0.0


def test_cockroach_hears_of_dead_stores_new_ones_and_ranges_that_split():
    cluster = cockroach(status=["available"] * 5 + ["throttled"])
    events = [
        At(60.0, ek.Changes(down=0), dead_after=60.0),
        simulate.Split(partition=1, at=1000.0),
        At(1500.0, ek.Changes(nodes={"names": ["x"], "like": 0})),
    ]
    history = play(
        cluster, events, "cockroach", environment=replace(FAST, consensus=True), until=4000.0
    )
    assert history.replicas[-1, 0] == 0, "the dead store was left"
    assert history.replicas[-1, 6] > 0, "the new one was given some"
    assert history.replicas[-1].sum() == 3 * 13
    assert history.replicas[-1, 5] <= history.replicas[0, 5], "it stays throttled"


@pytest.mark.parametrize("method", ["longhorn", "ceph_crush", "ceph_upmap"])
def test_methods_refuse_clusters_of_others_at_once(method):
    with pytest.raises(ek.InvalidInput, match=r"cluster.native"):
        play(cluster_of(), [], method)


def test_what_a_payload_cannot_know_is_refused_at_once():
    events = [
        Growth(partitions=2),
        At(60.0, ek.Changes(nodes={"names": ["x"], "like": 0})),
        At(0.0, ek.Changes(load_factor={0: 10.0})),
    ]
    with pytest.raises(ek.InvalidInput) as raised:
        play(longhorn(), events, "longhorn")
    assert [fault.path for fault in raised.value.faults] == ["events", "events[0]"]
    with pytest.raises(ek.InvalidInput, match="one latency for all"):
        play(
            cockroach(latency=np.zeros((6, 6))),
            [At(0.0, ek.Changes(nodes={"names": ["x"], "like": 0}))],
            "cockroach",
        )


def test_hot_volumes_are_larger_for_longhorn_too():
    history = play(
        longhorn(), [At(0.0, ek.Changes(load_factor={0: 2.0}, name="hot"))], "longhorn", until=60.0
    )
    assert history.events == ((0.0, "hot"),)


def test_waged_mends_by_default_and_keeps_to_options_that_are_given():
    down = [At(60.0, ek.Changes(down=0), dead_after=60.0)]
    history = play(cluster_of(), down, "helix_waged", environment=FAST, until=3600.0)
    assert history.replicas[-1, 0] == 0
    assert history.astray("under")[-1] == 0


def test_what_comes_after_the_end_is_told():
    upgrade = simulate.RollingUpgrade(tier="zone", at=0.0, batch=1, away=100.0, pause=10.0)
    cut = play(cluster_of(), [upgrade], until=300.0, environment=FAST)
    assert len(cut.warnings) == 1 and "after the end" in cut.warnings[0]
    assert play(cluster_of(), [upgrade], environment=FAST, every=600.0).warnings == ()


def test_replicas_that_are_not_far_enough_apart_are_seen():
    together = np.tile([0, 3, 1], (30, 1))  # two in zone a
    cluster = cluster_of(placement=together)
    history = play(cluster, [], _nobody, until=60.0, environment=FAST)
    assert history.astray("violating").tolist() == [30, 30]
    assert audit(cluster, cluster.placement).counts["spread"] == 30


def _nobody(cluster, goals, seed):
    return cluster.placement


@pytest.mark.parametrize("decides", ["helix_waged", "pipeline"])
def test_loads_that_drift_are_whole_for_waged(decides):
    drift = simulate.LoadDrift(at=10.0, every=60.0, lasts=300.0)
    down = At(100.0, ek.Changes(down=0), dead_after=60.0)
    method = simulate.pipeline("helix_waged") if decides == "pipeline" else decides
    history = play(cluster_of(), [drift, down], method, environment=FAST, until=1800.0)
    assert history.warnings == ()
    assert history.replicas[-1, 0] == 0
    assert (history.load[-1] != np.floor(history.load[-1])).any(), "the world itself is not rounded"


@pytest.mark.parametrize("decides", ["helix_waged", "pipeline"])
def test_loads_that_are_not_whole_are_refused_at_once_for_waged(decides):
    method = simulate.pipeline("helix_waged") if decides == "pipeline" else decides
    with pytest.raises(ek.InvalidInput, match="scale the unit"):
        play(cluster_of(load=np.full((30, 2), 0.5)), [], method)


def test_a_replica_that_does_not_answer_stays_until_another_takes_its_place():
    cluster = cluster_of(partitions=12, capacity=1000.0)
    lost = simulate.At(0.0, ek.Changes(down="zone=a"), lasts=120.0)
    history = play(
        cluster, [lost], simulate.pipeline("helix_waged"), until=1200.0, environment=FAST
    )
    assert history.log, "what is left is levelled"
    for entry in history.log:
        assert len(entry.change.drop) <= len(entry.change.add)
    assert history.replicas[-1].sum() == 36
