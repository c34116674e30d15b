"""What a system cannot be told is refused, and nothing is written."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.folders.writing import furthest_from_share
from tests.support import places
from tests.support.systems import worlds

KUBERNETES = places.DATA / "formats" / "kubernetes"


def refused(cluster, node, tmp_path, match, leader=None):
    """See that a plan to these nodes has no folder, and that none is begun."""
    leader = cluster.placement.leader if leader is None else np.array(leader, np.int16)
    plan = ek.plan(cluster, cluster.placement.replaced(np.array(node, np.int32), leader))
    with pytest.raises(ek.InvalidInput, match=match):
        ek.write_plan_folder(plan, tmp_path / "move")
    assert not any(one.name.startswith((".move", "move")) for one in tmp_path.iterdir())


def test_kubernetes_has_none_and_says_what_to_do_instead(tmp_path):
    cluster = ek.read([KUBERNETES / "nodes.json", KUBERNETES / "pods.json"])
    refused(cluster, cluster.placement.node, tmp_path, "scheduler chooses.*evictions and patches")


def test_cockroach_adds_no_replica_by_itself(tmp_path):
    text = b'range_id,voting_replicas,lease_holder\n7,"{1,2,3}",1\n8,"{1,2}",1\n9,"{4,5}",4\n'
    cluster = ek.read(text)
    first = cluster.placement.first
    node = cluster.placement.node.copy()
    free = int(first[1]) + int(np.flatnonzero(node[first[1] : first[2]] < 0)[0])
    node[free] = 2
    refused(cluster, node, tmp_path, "RELOCATE only exchanges")


def test_helix_needs_a_view_to_look_at(tmp_path):
    simple = {"REBALANCE_MODE": "SEMI_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "1"}
    lists = {"a_0": ["h1"], "a_1": ["h2"]}
    ideal = {"id": "a", "simpleFields": simple, "listFields": lists}
    cluster = ek.read(json.dumps([ideal]).encode())
    refused(cluster, [1, 1], tmp_path, "external view missing")


def test_longhorn_takes_only_names_of_kubernetes(tmp_path):
    world = worlds.longhorn(tmp_path / "system", space="it's")
    refused(world.plan().cluster, world.plan().end.node, tmp_path / "system", "not a name that Kub")


def test_the_way_back_leaves_what_was_mended(tmp_path):
    rows = [
        {"index": "i", "shard": "0", "prirep": "p", "state": "STARTED", "node": "a", "store": "1"},
        {"index": "i", "shard": "0", "prirep": "r", "state": "UNASSIGNED", "node": None},
        {"index": "j", "shard": "0", "prirep": "p", "state": "STARTED", "node": "a", "store": "1"},
        {"index": "j", "shard": "1", "prirep": "p", "state": "STARTED", "node": "b", "store": "1"},
    ]
    cluster = ek.read(json.dumps(rows).encode())
    target = cluster.placement.replaced(np.array([0, 1, 1, 0], np.int32), cluster.placement.leader)
    folder = ek.write_plan_folder(ek.plan(cluster, target), tmp_path / "move")
    back = "".join(file.read_text() for file in folder.glob("undo/waves.json"))
    assert r'"index\":\"j\"' in back
    assert r'"index\":\"i\"' not in back
    assert "stays as the plan leaves it" in (folder / "README.md").read_text()


def test_the_share_of_a_group_is_by_weight():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 8, weight=[2.0, 1.0, 1.0], group=[0] * 4 + [1] * 4,
        placement=[[0], [0], [1], [2], [0], [0], [0], [0]],
    )  # fmt: skip
    assert furthest_from_share(cluster, cluster.placement) == 2.0
    level = cluster.placement.replaced(
        np.array([0, 0, 1, 2] * 2, np.int32), cluster.placement.leader
    )
    assert furthest_from_share(cluster, level) == 0.0
