"""Reassignments, drains and decommissions that users asked for, as plans."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag


def test_all_brokers_are_replaced(public):
    case = public("kafka/replace-all-brokers")
    words = ["described.txt", "racks.txt", "--add-nodes", "more.csv"]
    drains = ["--drain", "1", "--drain", "2", "--drain", "3"]
    answer = case.run("plan", *words, *drains, "-o", "move")
    assert answer.code == 0
    assert "blocked" not in answer.text
    assert "27 copies" in answer.text
    moves = json.loads(case.written("move/waves/1.reassignment.json"))["partitions"]
    rack = {4: "a", 5: "b", 6: "c"}
    assert len(moves) == 9
    assert all(sorted(rack[n] for n in one["replicas"]) == ["a", "b", "c"] for one in moves)


def rows(nodes, placement, **given):
    """One partition with room for everything."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * nodes, load=[[1.0]], placement=[placement], leader=[0], **given
    )


def solved(cluster, protocol):
    """The answer that only places and drains, and its plan, which must be safe."""
    answer = ek.solve(cluster, goals=ek.Goals(level=None))
    plan = ek.plan(cluster, answer, protocol=protocol)
    assert plan.check().ok
    return answer, plan


def test_one_of_three_nodes_cannot_be_decommissioned(public):
    public("plans/decommission-one-of-three")
    answer, plan = solved(rows(3, [0, 1, 2]).drain("n2"), "cockroach")
    assert answer.status != "optimal"
    assert plan.copies == 0
    assert sorted(plan.end.node.tolist()) == [0, 1, 2]


@pytest.mark.parametrize(("to", "leader", "copies"), [([2, 3], 0, 2), ([2, 0], 0, 1)])
def test_both_brokers_of_a_partition_are_exchanged(public, to, leader, copies):
    public("plans/two-for-two")
    cluster = rows(4, [0, 1])
    target = cluster.placement.replaced(np.array(to, np.int32), np.array([leader], np.int16))
    plan = ek.plan(cluster, target, protocol="kafka")
    assert plan.complete
    assert plan.check().ok
    assert plan.copies == copies
    assert len(plan.waves) <= 2
    assert sum(row.kind == "lead" for row in plan.rows()) == 1
    assert plan.end.leader_node.tolist() == [2]


def test_no_list_names_a_broker_that_is_down(public):
    public("plans/list-with-a-dead-broker")
    cluster = rows(5, [0, 2, 4])
    target = cluster.placement.replaced(np.array([0, 2, 1], np.int32), np.array([0], np.int16))
    plan = ek.plan(cluster, target, protocol="kafka")
    assert plan.complete
    flags = np.array([0, 0, Flag.INCOMING], np.uint16)
    down = [True, True, False, True, True]
    seen = rows(5, [0, 2, 1], alive=down, flags=[flags])
    rest = plan.resume(seen)
    assert len(rest) == 0
    assert rest.check().ok
    assert rest.blocked
    assert [(one.partition, one.node) for one in rest.cancelled] == [("p0", "n1")]


@pytest.mark.parametrize("joined", [False, True])
def test_the_last_live_replica_is_copied_before_it_goes(public, joined):
    public("plans/last-live-replica-drains")
    alive = [False, True, True] if joined else [False, True]
    cluster = rows(2 + joined, [1, 0], alive=alive, min_active=1).drain("n1")
    _, plan = solved(cluster, "longhorn")
    assert plan.copies == joined
    lives = {n for n in plan.end.node.tolist() if n >= 0 and alive[n]}
    assert lives == ({1, 2} if joined else {1})


@pytest.mark.parametrize("joined", [False, True])
def test_a_node_drains_after_another_was_deleted(public, joined):
    public("plans/drain-beside-a-deleted-node")
    alive = [False, True, True, *[True] * joined]
    cluster = rows(3 + joined, [2, 1, 0], alive=alive).drain("n1")
    answer, plan = solved(cluster, "longhorn")
    assert answer.status in ("partial", "infeasible")
    assert plan.copies == joined
    lives = {n for n in plan.end.node.tolist() if n >= 0 and alive[n]}
    assert lives == ({1, 2, 3} if joined else {1, 2})


def observed(cluster, node, coming):
    """A cluster in which replicas are seen on nodes, some of them on their way."""
    flags = np.where(coming, np.uint16(Flag.INCOMING), np.uint16(0))
    start = cluster.placement
    return cluster.replace(
        placement=np.array(node, np.int32), flags=flags, first=start.first, role=start.role,
        leader=start.leader,
    )  # fmt: skip


@pytest.mark.parametrize("dies", ["n2", "n1"])
def test_a_broker_that_takes_replicas_dies_on_the_way(public, dies):
    public("plans/destination-dies-on-the-way")
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]] * 2, placement=[[0, 1], [3, 4]], leader=[1, 0],
        alive=[False, True, True, True, True],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([2, 1, 3, 2], np.int32), [1, 0])
    if dies == "n2":  # the other partition does not go there
        target = cluster.placement.replaced(np.array([2, 1, 3, 1], np.int32), [1, 0])
    plan = ek.plan(cluster, target, protocol="kafka")
    assert plan.complete
    seen = observed(cluster, [2, 1, 3, 4], [True, False, False, False]).down([dies])
    rest = plan.resume(seen)
    assert rest.check().ok
    assert {one.partition for one in rest.blocked} == {"p0"}
    copies = {(row.partition, row.target) for row in rest.rows() if row.kind == "copy"}
    assert copies == {("p1", "n1" if dies == "n2" else "n2")}
    if dies == "n2":
        assert [(one.partition, one.node) for one in rest.cancelled] == [("p0", "n2")]


def test_two_of_three_nodes_are_excluded_at_once(public):
    public("plans/two-of-three-nodes-excluded")
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[1.0]] * 5, node_names=["node-1", "node-2", "node-6"],
        placement=[[0, 2], [1, 2], [1, 2], [0, 1], [1, 2]], leader=[0] * 5,
    ).drain(["node-1", "node-2"])  # fmt: skip
    answer, plan = solved(cluster, "plain")
    rows = plan.end.node.reshape(5, 2)
    assert all(2 in row for row in rows.tolist())
    assert (rows >= 0).all()
    assert plan.copies == 1
    assert answer.status in ("partial", "infeasible")
    assert "5" in answer.message


@pytest.mark.parametrize("joined", [False, True])
def test_members_on_nodes_that_were_removed_are_taken_off_first(public, joined):
    public("plans/members-on-forgotten-nodes")
    cluster = rows(6, [0, 1, 2, 3, 4], alive=[True] * 3 + [False] * 2 + [True], replicas=5)
    node = np.array([0, 1, 2, 5 if joined else -1, -1], np.int32)
    plan = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))
    assert plan.check().ok
    assert plan.complete
    assert plan.copies == joined
    steps = [(row.kind, row.source) for row in plan.rows()]
    assert {source for kind, source in steps if kind == "remove"} == {"n3", "n4"}
    if joined:  # n3's place is taken as it goes; n4 is off before
        votes = [kind for kind, _ in steps].index("swap")
        assert steps.index(("remove", "n4")) < votes


def test_three_of_six_nodes_are_decommissioned_together(public):
    public("plans/six-nodes-to-three")
    placement = [[0, 1, 2], [0, 1, 3], [2, 4, 5], [3, 4, 5], [1, 2, 0]]
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 5, placement=placement, leader=[0] * 5
    ).drain(["n0", "n1", "n2"])
    answer, plan = solved(cluster, "cockroach")
    assert answer.success
    assert plan.complete
    assert (np.sort(plan.end.node.reshape(5, 3)) == [3, 4, 5]).all()
    assert plan.copies == 9
    assert sum(row.kind == "remove" for row in plan.rows()) == 9


@pytest.mark.parametrize("to", [[3, 1, 2], [3, 4, 2]])
def test_no_list_names_a_broker_that_is_down_and_stays(public, to):
    public("plans/unhealthy-broker-stays")
    cluster = rows(5, [0, 1, 2], alive=[True, True, False, True, True], replicas=3)
    there = cluster.placement.replaced(np.array(to, np.int32), [0])
    plan = ek.plan(cluster, there, protocol="kafka")
    assert (len(plan), plan.check().ok) == (0, True)
    assert {one.partition for one in plan.blocked} == {"p0"}
    given_up = cluster.placement.replaced(np.array([3, 1, 4], np.int32), [0])
    plan = ek.plan(cluster, given_up, protocol="kafka")
    assert plan.check().ok
    assert plan.complete


def test_nothing_goes_back_to_brokers_that_died(public):
    public("plans/back-to-brokers-that-died")
    cluster = rows(4, [2, 3], alive=[False, False, True, True])
    plan = ek.plan(
        cluster, cluster.placement.replaced(np.array([0, 1], np.int32), [0]), protocol="kafka"
    )
    assert plan.check().ok
    assert plan.end.node.tolist() == [2, 3]
    assert plan.end.leader_node.tolist() == [2]
    assert {one.target for one in plan.blocked} == {"n0", "n1"}


@pytest.mark.parametrize(("others", "orders"), [(0, 1), (1, 0)])
def test_a_leader_that_is_not_the_first_of_its_list_is_put_there(public, others, orders, tmp_path):
    case = public("kafka/order-after-cancel")
    part = json.loads(case.path("rollback.json").read_text())
    part["partitions"] = part["partitions"][others:]
    (tmp_path / "part.json").write_text(json.dumps(part))
    answer = case.run("plan", "described.txt", "--target", str(tmp_path / "part.json"))
    assert answer.code == 0 and f"{1 + orders} step" in answer.text
    assert ("  order " in answer.out) == bool(orders)
