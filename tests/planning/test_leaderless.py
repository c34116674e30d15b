"""Targets that leave partitions without a leader: a plan gives leads only where there is room."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from tests.support.effort import mostly_long
from tests.support.plans.tight_clusters import tight


def loads(cluster, placement):
    """Add up what nodes carry, one replica at a time."""
    load = cluster.partitions.load
    total = np.zeros(cluster.nodes.capacity.shape)
    for k, n in enumerate(placement.node.tolist()):
        p = int(placement.owner[k])
        if n >= 0:
            leads = placement.leader[p] == k - placement.first[p]
            value = load.non_voter if placement.role[k] == 1 else load.voter
            total[n] += (load.leader if leads else value)[p]
    return total


def limits(cluster, asked):
    """Return what nodes, and domains, may carry: a capacity, or what either end does."""
    ends = [loads(cluster, one) for one in (cluster.placement, asked)]
    carries = (cluster.nodes.alive | cluster.nodes.keeps) & ~cluster.nodes.gone
    most = np.maximum.reduce([cluster.nodes.capacity, *ends])
    return np.where(carries[:, None], most, np.inf)


def lost_leader(room):
    """p0 has lost its leader; its new copy has no room to lead, and what stays has so much."""
    return ek.Cluster.from_arrays(
        capacity=[[room], [9.0], [2.0]], load=[[1.0]], leader_load=[[3.0]],
        placement=[[1, 0]], leader=[0], alive=[True, False, True],
    )  # fmt: skip


@pytest.mark.parametrize(("room", "leads"), [(3.0, 0), (2.0, -1)])
def test_a_new_copy_does_not_lead_where_it_has_no_room(room, leads):
    cluster = lost_leader(room)
    target = cluster.placement.replaced(np.array([2, 0], np.int32), [-1])
    plan = ek.plan(cluster, target)
    assert plan.complete
    assert plan.check().ok
    assert plan.end.leader_node.tolist() == [leads]
    assert plan.end.node.tolist() == [2, 0]
    assert plan.resume(plan.prefix(0).end).end.leader_node.tolist() == [leads]


def test_a_leader_that_stays_hands_over_where_it_has_no_room_to_lead_on():
    """n0 takes p1 only if p0, which the target lets nobody lead, is not led there."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0], [4.0], [4.0]], load=[[1.0], [2.0]], leader_load=[[3.0], [2.0]],
        placement=[[0, 1], [2, -1]], leader=[0, 0], replicas=[2, 1],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([0, 1, 0, -1], np.int32), [-1, 0])
    plan = ek.plan(cluster, target)
    assert plan.complete
    assert plan.end.leader_node.tolist() == [1, 0]
    assert plan.check().ok


def test_what_stays_behind_makes_no_room():
    """Kafka names all of p0, so that it stays while n3 is down; then p1 cannot take its place."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0], [1.0], [1.0], [1.0]], load=[[1.0], [1.0]],
        placement=[[0, 3], [1, -1]], leader=[0, 0], replicas=[2, 1], alive=[True] * 3 + [False],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([2, 3, 0, -1], np.int32), [0, 0])
    plan = ek.plan(cluster, target, protocol="kafka")
    assert (loads(cluster, plan.end) <= limits(cluster, target)).all()
    assert plan.check().ok
    assert {one.partition for one in plan.blocked} == {"p0", "p1"}
    resumed_plan = plan.resume(plan.end)
    assert (loads(cluster, resumed_plan.end) <= limits(cluster, target)).all()
    assert resumed_plan.check().ok


def without_leaders(seed):
    """A full cluster that has lost a node or two, and a target that nobody leads in part."""
    rng = np.random.default_rng([seed, 21])
    cluster, target, throttle, protocol = tight(seed)
    start = cluster.placement
    load = cluster.partitions.load.voter
    cluster = replace_leader_load(cluster, load * rng.choice([0.5, 1.0, 2.0, 3.0], load.shape))
    dead = rng.permutation(len(cluster.nodes))[: int(rng.integers(0, 3))]
    for n in dead.tolist():
        cluster = cluster.down(cluster.nodes.names[n])
    leader = np.where(rng.random(len(start)) < 0.5, -1, target.leader)
    target = start.replaced(target.node, leader)
    if rng.random() < 0.5:
        lost = np.isin(start.node, dead) & (rng.random(len(start.node)) < 0.5)
        target = target.replaced(np.where(lost, -1, target.node), leader)
    return cluster, target, throttle, protocol


def replace_leader_load(cluster, leader_load):
    load = cluster.partitions.load
    given = replace(cluster.partitions, load=replace(load, leader=leader_load))
    return replace(cluster, partitions=given)


@pytest.mark.parametrize(
    "seeds", mostly_long([range(10), *(range(b, b + 50) for b in range(0, 150, 50))], [range(10)])
)
def test_nothing_carries_more_than_either_end_does(seeds):
    led = 0
    for seed in seeds:
        cluster, target, throttle, protocol = without_leaders(seed)
        most = limits(cluster, target) * (1.0 + 1e-9)
        plan = ek.plan(cluster, target, throttle=throttle, protocol=protocol)
        assert plan.check().ok, seed
        for way in (plan, plan.resume(plan.prefix(len(plan) // 2).end)):
            assert way.check().ok, seed
            assert (loads(cluster, way.towards or way.target) <= most).all(), seed
            for count in range(len(way) + 1):
                assert (loads(cluster, way.prefix(count).end) <= most).all(), (seed, count)
        undone = plan.undo()
        assert undone.check().ok, seed
        assert (loads(cluster, undone.end) <= np.maximum(most, loads(cluster, plan.end))).all()
        led += int(np.count_nonzero((target.leader < 0) & (plan.end.leader_node >= 0)))
    assert led > 0.4 * len(seeds)


def test_a_new_copy_does_not_lead_where_none_may():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], placement=[[1, 0]], leader=[0],
        alive=[True, False, True], leads=[False, True, False],
    )  # fmt: skip
    plan = ek.plan(cluster, cluster.placement.replaced(np.array([2, 0], np.int32), [-1]))
    assert plan.complete
    assert plan.check().ok
    assert plan.end.leader_node.tolist() == [-1]


def test_what_is_lost_and_not_replaced_stays_listed_and_is_told():
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]], alive=[True, False]
    )
    plan = ek.plan(cluster, cluster.placement.replaced(np.array([0, -1], np.int32), [0, -1]))
    assert (len(plan), plan.complete, plan.check().ok) == (0, False, True)
    assert [one.target for one in plan.blocked] == [None]
    assert "stays listed" in plan.blocked[0].lacks
    given_up = plan.resume(plan.target)
    assert (len(given_up), given_up.complete) == (0, True)
