"""Ceph's methods through ``solve``, on the maps of the golden files and on small ones."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.ceph.crush import CephMap, cluster_of
from evenkeel.systems.ceph.crush.crush_map import Bucket, CrushMap, CrushRule, Step
from evenkeel.systems.ceph.crush.placement import Pool, raw
from tests.conformance import documents
from tests.conformance.schemas import ceph
from tests.support import places

FOLDER = places.DATA / "golden" / "ceph"
ONE = 0x10000
TYPES = {"osd": 0, "host": 1, "rack": 2, "root": 3}


def golden(name):
    """The document of a file, its map and its pool."""
    document = documents.load(next(FOLDER.glob(f"{name}*")))
    return document, ceph.crush_map(document), ceph.pool(document)


def small(racks=4, hosts=2, per_host=2, kind="rack", steps=None, shadow=False):
    """A map of equal devices, chosen over racks or hosts, and with a class of its own if asked."""
    buckets, osd, below = [], 0, []
    for r in range(racks):
        inside = []
        for h in range(hosts):
            items = [(osd + i, ONE) for i in range(per_host)]
            osd += per_host
            inside.append((-100 - len(buckets), per_host * ONE))
            buckets.append(Bucket(inside[-1][0], f"h{r}-{h}", "host", items))
        below.append((-10 - r, hosts * per_host * ONE))
        buckets.append(Bucket(-10 - r, f"r{r}", "rack", inside))
    buckets.append(Bucket(-1, "default", "root", below))
    take = -1
    if shadow:
        take = -2
        items = [(n, ONE) for n in range(0, osd, 2)]
        buckets.append(Bucket(-2, "default~ssd", "root", items))
        kind = "osd"
    chosen = steps or [Step(f"choose{'' if shadow else 'leaf'}_firstn", 0, kind)]
    rule = CrushRule(0, "r", [Step("take", take), *chosen, Step("emit")])
    return CrushMap(osd, TYPES, buckets, [rule])


def test_a_map_comes_out_as_ceph_placed_it():
    document, crush, pool = golden("a12_pgs")
    reweight = ceph.reweights(crush.devices, document)
    result = ek.solve(cluster_of(crush, pool, reweight=reweight), "ceph_crush")
    rows = [[osd for osd in row if osd >= 0] for row in result.placement.nodes.tolist()]
    assert rows == document["raw"]
    assert result.audit.hard == 0
    assert result.comparison.moves == 0


@pytest.mark.parametrize("name", ["upmap_d100un", "upmap_d4rack", "upmap_d8host5"])
def test_pairs_do_what_they_promise(name):
    document, crush, pool = golden(name)
    cluster = cluster_of(crush, pool)
    result = ek.solve(cluster, "ceph_upmap")
    items = result.native.items[pool.id]
    before = cluster.placement.nodes.tolist()
    judged = ceph.judge(document, before, items, 1.0)
    assert judged["moves"] == result.comparison.moves
    assert judged["failure_domain_violations"] == result.audit.counts["spread"] == 0
    assert result.success
    assert result.levelness.ratio[0] < result.levelness_before.ratio[0]
    in_force = cluster_of(crush, pool, items=result.native.items)
    assert np.array_equal(in_force.placement.nodes, result.placement.nodes)
    plain = ek.solve(in_force, "ceph_crush", options=ek.options.CephCrush(upmaps=False))
    assert plain.placement.nodes.tolist() == before


def test_pairs_in_force_are_built_on():
    _, crush, pool = golden("upmap_d100un")
    first = ek.solve(cluster_of(crush, pool), "ceph_upmap")
    again = ek.solve(cluster_of(crush, pool, items=first.native.items), "ceph_upmap")
    assert again.comparison.moves == 0
    assert again.native.items == first.native.items


def test_primaries_are_levelled_without_moving_data():
    _, crush, pool = golden("upmap_d8host5")
    plain = ek.solve(cluster_of(crush, pool), "ceph_upmap")
    result = ek.solve(
        cluster_of(crush, pool), "ceph_upmap", options=ek.options.Upmap(primaries=True)
    )
    assert np.array_equal(plain.placement.node, result.placement.node)
    assert result.native.read[pool.id].after < result.native.read[pool.id].before
    changes = result.native.primaries[pool.id]
    led = result.placement.leader_node
    assert all(led[pg] == osd for pg, osd in changes.items())
    assert np.count_nonzero(led != plain.placement.leader_node) == len(changes)


def test_several_pools_stand_one_behind_another():
    crush = small()
    pools = [Pool(id=3, pg_num=16, size=2, rule=0), Pool(id=5, pg_num=8, size=3, rule=0)]
    cluster = cluster_of(crush, pools)
    assert list(cluster.partitions.group_names) == ["3", "5"]
    assert cluster.partitions.names[15] == "3.f"
    result = ek.solve(cluster, "ceph_crush")
    rows = np.concatenate([raw(crush, pool).ravel() for pool in pools])
    assert np.array_equal(result.placement.node, rows)
    levelled = ek.solve(cluster, "ceph_upmap")
    assert set(levelled.native.items) == {3, 5}
    assert levelled.success


def test_nodes_that_keep_nothing_are_out_and_nodes_that_are_down_do_not_lead():
    cluster = cluster_of(small(), Pool(id=1, pg_num=64, size=3, rule=0))
    up = np.arange(16) != 5
    down = replace(cluster, nodes=replace(cluster.nodes, alive=up, accepts=up))
    waiting = ek.solve(down, "ceph_crush")
    assert np.array_equal(waiting.placement.node, cluster.placement.node)
    assert not (waiting.placement.leader_node == 5).any()
    out = replace(down, nodes=replace(down.nodes, keeps=up))
    moved = ek.solve(out, "ceph_crush")
    assert not (moved.placement.node == 5).any()
    assert moved.success


def test_erasure_coded_rows_keep_their_holes():
    steps = [Step("chooseleaf_indep", 0, "rack")]
    pool = Pool(id=1, pg_num=32, size=4, rule=0, kind="erasure")
    cluster = cluster_of(small(steps=steps, racks=3), pool)
    result = ek.solve(cluster, "ceph_crush")
    assert (result.placement.nodes == -1).sum(axis=1).tolist() == [1] * 32
    assert cluster.partitions.replicas.tolist() == [3] * 32
    assert "32 of 32 groups" in cluster.native.notes[0]
    assert result.status == "feasible"


def test_rules_become_rules():
    steps = [Step("choose_firstn", 2, "rack"), Step("chooseleaf_firstn", 2, "host")]
    nested = cluster_of(small(steps=steps), Pool(id=1, pg_num=8, size=4, rule=0))
    rule = ek.Rule(require=["root=default"], spread={"rack": 2, "host": 1}, max_domains={"rack": 2})
    assert nested.rules == (rule,)
    assert nested.topology.tiers == ("root", "rack", "host")
    assert ek.solve(nested, "ceph_crush").success
    ssd = cluster_of(small(shadow=True), Pool(id=1, pg_num=8, size=2, rule=0))
    assert ssd.rules[0].require == ["+ssd", "root=default"]
    result = ek.solve(ssd, "ceph_crush")
    assert result.success
    assert (result.placement.node % 2 == 0).all()


def test_a_device_that_is_in_no_bucket_is_gone():
    host = Bucket(-1, "h", "host", [(0, ONE), (2, ONE)])
    steps = [Step("take", -1), Step("choose_firstn", 0, "osd"), Step("emit")]
    crush = CrushMap(3, TYPES, [host], [CrushRule(0, "r", steps)])
    cluster = cluster_of(crush, Pool(id=1, pg_num=8, size=2, rule=0))
    assert cluster.nodes.gone.tolist() == [False, True, False]
    assert ek.solve(cluster, "ceph_upmap").success


def test_a_cluster_that_was_solved_otherwise_still_has_its_map():
    cluster = cluster_of(small(), Pool(id=1, pg_num=64, size=3, rule=0))
    assert isinstance(cluster.native, CephMap)
    result = ek.solve(cluster, goals=ek.Goals(level=0.05))
    assert result.success


@pytest.mark.parametrize("method", ["ceph_crush", "ceph_upmap"])
def test_what_cannot_be_used_is_named(method):
    bare = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput, match=r"cluster\.native"):
        ek.solve(bare, method)
    cluster = cluster_of(small(), Pool(id=1, pg_num=8, size=3, rule=0))
    with pytest.raises(ek.InvalidInput, match=f"options: {method} takes"):
        ek.solve(cluster, method, options=ek.options.Crush())
    with pytest.raises(ek.InvalidInput, match="limits"):
        ek.solve(cluster, method, limits=ek.Limits(moves=1))
    other = replace(cluster, native=replace(cluster.native, pools=()))
    with pytest.raises(ek.InvalidInput, match=r"cluster\.partitions"):
        ek.solve(other, method)
    with pytest.raises(ek.InvalidInput, match="reweight"):
        cluster_of(small(), Pool(id=1, pg_num=8, size=3, rule=0), reweight=[1])
    with pytest.raises(ek.InvalidInput, match="rule"):
        cluster_of(small(), Pool(id=1, pg_num=8, size=3, rule=7))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chained", [False, True])
def test_nothing_is_mapped_onto_a_device_that_is_down_and_in(seed, chained):
    crush = small(racks=4, hosts=2, per_host=3)
    draw = np.random.default_rng(seed)
    pool = Pool(1, pg_num=128, size=3 if chained else 2, rule=0)
    is_up = np.ones(crush.devices, bool)
    is_up[draw.choice(crush.devices, 3, replace=False)] = False
    cluster = cluster_of(crush, pool, is_up=is_up)
    before = cluster.placement.nodes
    result = ek.solve(cluster, "ceph_upmap")
    after = result.placement.nodes
    assert result.comparison.moves
    for n in np.flatnonzero(~is_up).tolist():
        assert ((before == n).any(axis=1) == (after == n).any(axis=1)).all()
    assert result.audit.counts["spread"] == 0
    # those that are up are level among themselves
    held = np.bincount(after[after >= 0], minlength=crush.devices)[is_up]
    assert held.max() - held.min() <= 3
    down = ", ".join(cluster.nodes.names[n] for n in np.flatnonzero(~is_up).tolist())
    assert any(f"Down and in: {down}" in one for one in result.warnings)


def test_of_devices_that_are_down_and_out_nothing_is_said():
    crush = small()
    out = np.full(crush.devices, ONE)
    is_up = np.ones(crush.devices, bool)
    out[3], is_up[3] = 0, False
    cluster = cluster_of(crush, Pool(1, pg_num=64, size=2, rule=0), reweight=out, is_up=is_up)
    result = ek.solve(cluster, "ceph_upmap")
    assert result.warnings == ()
    assert not (result.placement.node == 3).any()


def test_what_crush_had_no_time_for_stays_and_is_said():
    document, crush, pool = golden("a12_pgs")
    cluster = cluster_of(crush, pool, reweight=ceph.reweights(crush.devices, document))

    def stop(progress):
        raise StopIteration

    found = ek.solve(cluster.drain(cluster.nodes.names[0]), "ceph_crush", callback=stop)
    assert found.stop_reason == "interrupted"
    assert "stay as they are" in found.message
    assert found.comparison.moves == 0
