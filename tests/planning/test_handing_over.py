"""Leads that are handed over where there is little room: they weigh in one place at a time."""

import numpy as np
import pytest

import evenkeel as ek

PROTOCOLS = ("plain", "kafka", "cockroach", "ceph", "helix", "longhorn")


def zone(nodes, placement, full, **given):
    """One partition in a zone that is full, with its followers' load of 1."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * nodes, load=[[1.0]], placement=[placement],
        domains={"zone": ["z"] * nodes}, tier_capacity={"zone": [[full]]}, spread={"zone": 9},
        **given,
    )  # fmt: skip


def to(cluster, node, leader, **given):
    target = cluster.placement.replaced(np.array(node, np.int32), np.array(leader, np.int16))
    plan = ek.plan(cluster, target, **given)
    found = plan.check()
    assert found.ok, str(found)
    return plan


def leads_of_p0(plan):
    return [row.target for row in plan.rows() if (row.kind, row.partition) == ("lead", "p0")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("lead", [2.0, 0.5])
def test_a_lead_that_stays_in_a_full_domain_takes_no_room_there(protocol, lead):
    cluster = zone(2, [0, 1], 1.0 + lead, leader_load=[[lead]], leader=[0])
    assert to(cluster, [0, 1], [1], protocol=protocol).complete


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph"])
@pytest.mark.parametrize("lead", [1.0, 2.0, 0.5])
def test_who_moves_within_a_full_domain_takes_over_there(protocol, lead):
    cluster = zone(3, [0, 1], 1.0 + lead, leader_load=[[lead]], leader=[0])
    assert to(cluster, [0, 2], [1], protocol=protocol).complete


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph"])
@pytest.mark.parametrize("lead", [1.0, 2.0])
def test_a_leader_lends_its_lead_to_move_within_a_full_domain(protocol, lead):
    """It would serve beside its old replica for an instant, if it did not."""
    cluster = zone(3, [0, 1], 1.0 + lead, leader_load=[[lead]], leader=[1])
    plan = to(cluster, [0, 2], [1], protocol=protocol)
    assert plan.complete
    assert leads_of_p0(plan) == ["n0", "n2"]


@pytest.mark.parametrize("protocol", ["kafka", "ceph"])
def test_a_whole_set_moves_within_a_full_domain(protocol):
    """Its replicas are exchanged one by one, though all are copied at once."""
    cluster = zone(5, [0, 1, 2], 3.0, leader=[2])
    plan = to(cluster, [3, 4, 2], [2], protocol=protocol)
    assert plan.complete
    assert [row.start for row in plan.rows() if row.kind == "copy"] == [0.0, 0.0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_leads_next_takes_over_once_there_is_room(protocol):
    """p0 fits beside p1 on n2 as a follower, and p1 takes the place on n1 that p0 has left."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0], [1.0], [2.0]], load=[[1.0]] * 2, leader_load=[[2.0], [1.0]],
        placement=[[0, 1], [2, -1]], leader=[0, 0], replicas=[2, 1],
    )  # fmt: skip
    plan = to(cluster, [0, 2, 1, -1], [1, 0], protocol=protocol)
    assert plan.complete
    assert plan.copies == 2


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph"])
@pytest.mark.parametrize("full", [0, 3])
def test_a_lead_is_lent_to_whoever_has_room_until_there_is_room_again(protocol, full):
    """n0 or n3 may lead p0 while it moves from n1 to n2, which p1 leaves for n1 after that."""
    capacity = [[2.0], [2.0], [2.5], [2.0]]
    capacity[full] = [1.0]
    cluster = ek.Cluster.from_arrays(
        capacity=capacity, load=[[1.0], [1.5]], leader_load=[[2.0], [1.5]],
        placement=[[1, 0, 3], [2, -1, -1]], leader=[0, 0], replicas=[3, 1],
    )  # fmt: skip
    plan = to(cluster, [2, 0, 3, 1, -1, -1], [0, 0], protocol=protocol)
    assert plan.complete
    assert leads_of_p0(plan) == [f"n{3 - full}", "n2"]


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph"])
def test_a_leader_that_stays_lends_its_lead_to_make_room(protocol):
    """p0 and p1 trade n2 and n3; p1 waits on n0, where p0 leads, and leads on in the end."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.5], [2.0], [1.5], [1.5]], load=[[1.0], [1.5]], leader_load=[[2.0], [1.5]],
        placement=[[0, 1, 2], [3, -1, -1]], leader=[0, 0], replicas=[3, 1],
    )  # fmt: skip
    plan = to(cluster, [0, 1, 3, 2, -1, -1], [0, 0], protocol=protocol)
    assert plan.complete
    assert leads_of_p0(plan) == ["n1", "n0"]


@pytest.mark.parametrize("protocol", ["plain", "kafka", "helix"])
def test_a_replica_that_lags_does_not_lead_before_it_has_moved(protocol):
    """The leader is lost, the only one in sync may not lead, and the one that lags moves to n4."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]], placement=[[0, 1, 2]], leader=[0],
        alive=[False, True, True, True, True], leads=[True, True, False, True, True],
        flags=[[ek.Flag.CAUGHT_UP, 0, ek.Flag.CAUGHT_UP]],
    )  # fmt: skip
    plan = to(cluster, [3, 4, 2], [1], protocol=protocol)
    assert plan.complete
    assert leads_of_p0(plan) == ["n4"]
