"""Plans as files: read back bit for bit, and whatever is wrong with one is said at once."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.observed import Cancelled
from evenkeel.planning.throttle import Windows
from evenkeel.systems.plans.reading import fingerprint
from evenkeel.systems.plans.targets import grown_by_name, observed_by_name
from evenkeel.systems.plans.writing import encoded
from tests.support.effort import mostly_long
from tests.support.fuzzing.samples import small_cluster
from tests.support.random_problems import random_cluster

ARRAYS = ("cluster", "target", "towards", "steps", "change")
PROTOCOLS = ("plain", "kafka", "cockroach", "ceph", "helix", "longhorn")


def drawn(seed):
    """A plan of a random cluster, some of it blocked."""
    rng = np.random.default_rng(seed)
    cluster = random_cluster(seed)
    node = cluster.placement.node.copy()
    moved = rng.random(len(node)) < 0.5
    node[moved] = rng.integers(0, len(cluster.nodes), int(moved.sum()))
    throttle = ek.Throttle(node_in=1, node_out=2) if seed % 2 else None
    target = cluster.placement.replaced(node, cluster.placement.leader)
    return ek.plan(cluster, target, throttle=throttle, protocol=PROTOCOLS[seed % 6])


def small():
    """Two partitions that move from one node to another, the second after the first."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0], [2.0], [2.0]], load=[[1.0], [1.0]], placement=[["a"], ["a"]],
        node_names=["a", "b", "c"], dimensions=["disk"], bytes="disk",
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([1, 1], np.int32), cluster.placement.leader)
    return ek.plan(cluster, target, throttle=ek.Throttle(copies=1, node_bandwidth=0.3))


def document(plan):
    """The document of a plan, to be changed."""
    return json.loads(encoded(plan))


def read(changed, cluster=None):
    """Read a document."""
    return ek.read_plan(json.dumps(changed).encode(), cluster)


def faults_of(changed, cluster=None):
    """The path and message of everything wrong with a document."""
    with pytest.raises(ek.InvalidInput) as caught:
        read(changed, cluster)
    return {one.path.removeprefix("<bytes>: "): one.message for one in caught.value.faults}


def same(plan, other):
    """Whether two plans are the same bit for bit."""
    arrays = [(plan.steps, other.steps), (plan.target, other.target)]
    arrays.append((plan.cluster.placement, other.cluster.placement))
    assert (plan.towards is None) == (other.towards is None)
    if plan.towards is not None:
        arrays.append((plan.towards, other.towards))
    for one, two in arrays:
        for field in fields(one):
            a, b = getattr(one, field.name), getattr(two, field.name)
            if a is None:  # of nodes without disks
                assert b is None, field.name
                continue
            assert a.dtype == b.dtype, field.name
            assert a.tobytes() == b.tobytes(), field.name
    assert np.array_equal(plan.change, other.change)
    assert plan.change.dtype == other.change.dtype
    plain = [one.name for one in fields(plan) if one.name not in ARRAYS]
    assert {name: getattr(plan, name) for name in plain} == {
        name: getattr(other, name) for name in plain
    }


@pytest.mark.parametrize("seed", mostly_long(range(60), range(20)))
def test_a_plan_is_read_back_bit_for_bit(seed, tmp_path):
    plan = drawn(seed)
    file = ek.write_plan(plan, tmp_path / "plan.json")
    back = ek.read_plan(file)
    same(plan, back)
    assert encoded(back) == encoded(plan)
    assert back.check() == plan.check()


def test_roles_flags_and_names_of_any_kind_are_kept():
    cluster = small_cluster()
    plan = ek.plan(cluster, cluster.placement)
    flags = cluster.placement.flags.copy()
    flags[0] = int(ek.Flag.PINNED | ek.Flag.HEALTHY)
    changed = replace(plan, target=replace(cluster.placement, flags=flags))
    same(changed, ek.read_plan(encoded(changed)))


def test_a_cluster_of_another_system_does_without_its_payload():
    cluster = ek.cockroach_cluster(
        localities=["region=us", "region=eu", "region=asia"], replicas=[[0, 1]] * 4,
        leaseholder=[0] * 4, size=1.0, configs=[{"num_replicas": 2}],
    )  # fmt: skip
    node = np.array([0, 2] * 4, np.int32)
    plan = ek.plan(
        cluster, cluster.placement.replaced(node, cluster.placement.leader), protocol="cockroach"
    )
    same(plan, ek.read_plan(encoded(plan)))


def test_without_the_cluster_it_is_given_beside_the_file_and_compared():
    plan = small()
    data = encoded(plan, with_cluster=False)
    same(plan, ek.read_plan(data, plan.cluster))
    assert faults_of(json.loads(data)) == {
        "cluster": "is missing, and none was given beside the file"
    }
    other = plan.cluster.replace(capacity=[[3.0]] * 3)
    assert faults_of(json.loads(data), other) == {
        "fingerprint": "is of another cluster or another moment of it: evenkeel resume goes on "
        "from there"
    }


def test_of_another_cluster_beside_the_file_only_that_is_said_and_its_name(tmp_path):
    plan = small()
    written = json.loads(encoded(plan, with_cluster=False))
    (tmp_path / "plan.json").write_text(json.dumps(written | {"cluster_file": "cluster.npz"}))
    other = ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]] * 9, replicas=1)
    ek.write(other, tmp_path / "cluster.npz")
    with pytest.raises(ek.InvalidInput) as caught:
        ek.read_plan(tmp_path / "plan.json")
    assert len(caught.value.faults) == 1
    assert f"than {tmp_path / 'cluster.npz'} beside it: read" in str(caught.value)


def test_what_a_cluster_says_is_in_its_fingerprint():
    cluster = small_cluster()
    marks = {
        fingerprint(cluster), fingerprint(cluster.down("c")), fingerprint(cluster.drain("a")),
        fingerprint(cluster.pin("o-0")), fingerprint(cluster.replace(rules=cluster.rules[::-1])),
    }  # fmt: skip
    assert len(marks) == 5
    assert fingerprint(replace(cluster, native={"epoch": 8})) == fingerprint(cluster)


def test_what_changes_the_cluster_within_is_seen():
    changed = document(small())
    changed["cluster"]["nodes"][0]["capacity"] = [7.0]
    assert faults_of(changed) == {
        "fingerprint": "is of another cluster than the one within the file"
    }


def test_all_that_throttles_is_kept():
    plan = small()
    cluster = plan.cluster.replace(domains={"zone": ["x", "x", "y"]}, group_names=["g"])
    throttle = ek.Throttle(
        copies=3, domain_in={"zone": 2}, domain_out={"zone": 1},
        priority={"g": 2},
        windows=Windows([(0.0, 5.0), (7.0, 9.0)], every=20.0), node_bandwidth=0.3,
    )  # fmt: skip
    whole = ek.plan(cluster, plan.target, throttle=throttle)
    same(whole, ek.read_plan(encoded(whole)))
    endless = replace(whole, throttle=ek.Throttle(windows=Windows([(3.0, np.inf)])))
    same(endless, ek.read_plan(encoded(endless)))


def test_windows_that_are_none_are_refused():
    changed = document(small())
    changed["throttle"] = {"windows": {"spans": [[5.0, 1.0]]}, "copies": 1}
    assert set(faults_of(changed)) == {"windows.spans[0]", "windows.spans"}


def test_the_beginning_of_a_plan_keeps_what_it_is_the_beginning_of():
    plan = small()
    begun = plan.prefix(len(plan) // 2)
    assert begun.towards is not None
    back = ek.read_plan(encoded(begun))
    same(begun, back)
    assert np.array_equal(back.towards.node, plan.target.node)
    dropped = replace(plan, cancelled=(Cancelled("p0", 0, "c"),))
    same(dropped, ek.read_plan(encoded(dropped)))


def test_steps_of_another_tool_come_in_any_order_by_any_names():
    plan = small()
    changed = document(plan)
    for key in ("fingerprint", "target", "throttle"):
        del changed[key]
    changed["protocol"] = {"name": "plain"}
    for step in changed["steps"]:
        step["id"] = f"s{step['id']}"
        step["after"] = [f"s{one}" for one in step.get("after", [])]
        del step["change"]
    changed["steps"].reverse()
    back = read(changed)
    assert [row[1:] for row in back.rows()] == [row[1:] for row in plan.rows()]
    assert np.array_equal(back.target.node, plan.target.node)
    assert back.check().ok
    assert [len(back.prefix(k)) for k in range(7)] == [len(plan.prefix(k)) for k in range(7)]


def test_an_unsafe_step_of_another_tool_is_found_by_the_check():
    changed = document(small())
    changed["steps"][1]["start"] = changed["steps"][1]["finish"] = 0.0
    assert read(changed).check().breach.step == 1


def test_where_a_plan_leads_that_nobody_declared_is_checked_too():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [1.0]], load=[[1.0]] * 2, placement=[["a"], ["a"]], node_names=["a", "b"]
    )
    target = cluster.placement.replaced(np.array([1, 1], np.int32), cluster.placement.leader)
    asked = document(ek.plan(cluster, target))
    assert read(asked).check().ok, "who asks for an overfull node has it"
    del asked["target"]
    found = read(asked)
    assert found.check().counts == {"capacity": 1}
    same(found, ek.read_plan(encoded(found)))
    assert "target" not in document(found)


def test_everything_wrong_is_said_at_once():
    changed = document(small())
    steps = changed["steps"]
    steps[0] |= {"partition": "px", "to": "zz", "start": -1.0}
    steps[1] |= {"replica": 3, "wave": -1, "after": [0, 77]}
    steps[2] |= {"id": 1, "finish": -5.0, "bytes": -2.0}
    steps[3] |= {"kind": "promote", "to": None, "after": [1]}
    changed["target"] = [
        {"partition": "p0", "nodes": ["b", "b"], "leader": 4},
        {"partition": "p0", "nodes": ["b"], "leader": 0},
        {"partition": "p1", "nodes": ["x"], "leader": 0},
    ]
    changed["throttle"] = {"copies": 0, "domain_in": {"rack": 1}}
    changed["protocol"] = {"name": "mine"}
    found = faults_of(changed)
    assert set(found) == {
        "steps[0].partition", "steps[0].to", "steps[0].start", "steps[1].replica", "steps[1].wave",
        "steps[1].after[1]", "steps[2].id", "steps[2].finish", "steps[2].bytes", "steps[3].to",
        "target[0].nodes", "target[0].leader", "target[1].partition", "target[2].nodes[0]",
        "throttle.copies", "protocol.name",
    }  # fmt: skip


def test_every_circle_is_named():
    changed = document(small())
    ids = [step["id"] for step in changed["steps"]]
    changed["steps"][0]["after"] = [ids[2]]
    changed["steps"][4]["after"] = [ids[4]]
    assert faults_of(changed) == {
        "steps[0].after": "waits for itself in a cycle: 0 after 2 after 1 after 0",
        "steps[4].after": "waits for itself in a cycle: 4 after 4",
    }


@pytest.mark.parametrize("told", ["1e999", "NaN", "Infinity", '"soon"', "null", "1" + "0" * 400])
def test_times_that_are_none_are_refused(told):
    text = json.dumps(document(small())).replace('"start": 0.0', f'"start": {told}', 1)
    with pytest.raises(ek.InvalidInput) as caught:
        ek.read_plan(text.encode())
    assert caught.value.faults[0].path.startswith("<bytes>")


def test_a_target_of_other_partitions_is_refused():
    changed = document(small())
    changed["target"] = [{"partition": f"q{i}", "nodes": ["b"], "leader": 0} for i in range(3)]
    assert faults_of(changed) == {
        f"target[{i}].partition": "is not a partition of the cluster" for i in range(3)
    }


def test_times_that_are_not_finite_are_not_written(tmp_path):
    plan = small()
    finish = plan.steps.finish.copy()
    finish[-1] = np.inf
    with pytest.raises(ek.InvalidInput, match=r"steps.finish\[9\]"):
        ek.write_plan(replace(plan, steps=replace(plan.steps, finish=finish)), tmp_path / "p.json")
    assert not list(tmp_path.iterdir())


def test_a_plan_is_no_cluster(tmp_path):
    file = ek.write_plan(small(), tmp_path / "plan.json")
    with pytest.raises(ek.InvalidInput, match="is a plan: read_plan reads it"):
        ek.read(file)


def test_what_is_seen_among_other_names_keeps_its_slots():
    plan = small()
    now = ek.Cluster.from_arrays(
        capacity=[[2.0]] * 4, load=[[1.0]], placement=[["a", "b"]], leader=[1],
        node_names=["new", "b", "a", "c"], partition_names=["p1"], alive=[True, True, True, False],
    )  # fmt: skip
    seen = observed_by_name(plan.cluster, now)
    assert seen.placement.first.tolist() == [0, 1, 3]
    assert seen.placement.node.tolist() == [0, 0, 1]
    assert seen.placement.leader.tolist() == [plan.cluster.placement.leader[0], 1]
    assert seen.nodes.alive.tolist() == [True, True, False]
    rest = plan.resume(seen)
    assert rest.end.node.tolist() == plan.target.node.tolist()
    with pytest.raises(ek.InvalidInput, match="is not a partition of the cluster"):
        observed_by_name(plan.cluster, now.replace(partition_names=["p9"]))


def test_what_is_new_is_left_out_with_its_nodes():
    plan = small()
    now = ek.Cluster.from_arrays(
        capacity=[[2.0]] * 4, load=[[1.0]] * 2, placement=[["c", "new"], ["a", "b"]],
        node_names=["new", "b", "a", "c"], partition_names=["p9", "p1"],
    )  # fmt: skip
    seen = observed_by_name(plan.cluster, now)
    assert len(seen.partitions) == 2 and len(seen.nodes) == 3
    assert seen.placement.node.tolist() == [0, 0, 1]
    moved = now.replace(placement=[["c", "a"], ["new", "b"]])
    with pytest.raises(ek.InvalidInput, match="is not a node of the cluster"):
        observed_by_name(plan.cluster, moved)


def test_nodes_that_join_bring_their_domains_and_capacities():
    def cluster(names, zones, rows, **more):
        return ek.Cluster.from_arrays(
            capacity=[[10.0 + n] for n in range(len(names))], load=[[1.0]] * len(rows),
            node_names=names, domains={"zone": zones, "rack": [f"r{n}" for n in names]},
            placement=rows, spread={"zone": 1}, **more,
        )  # fmt: skip

    before = cluster(["a", "b"], ["x", "y"], [["a", "b"]])
    # codes of labels differ: zones come in another order, and one is missing
    after = cluster(["k", "a", "m"], ["z", "x", ""], [["a", "k"], ["m", "a"]])
    grown, names = grown_by_name(before, after)
    assert names == ["k", "m"]
    zone, rack = (grown.topology.tiers.index(tier) for tier in ("zone", "rack"))
    labels = grown.topology.label_names[zone]
    assert [labels[code] for code in grown.topology.label[zone, :3].tolist()] == ["x", "y", "z"]
    assert grown.topology.label[zone, 3] == -1 or labels[grown.topology.label[zone, 3]] != "z"
    racks = grown.topology.label_names[rack]
    assert [racks[code] for code in grown.topology.label[rack].tolist()] == ["ra", "rb", "rk", "rm"]
    assert grown.nodes.capacity[:, 0].tolist() == [10.0, 11.0, 10.0, 12.0]
