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
