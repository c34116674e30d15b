"""Partitions of few states: blocked is only what no order of allowed steps admits."""

import numpy as np
import pytest

import evenkeel as ek
from tests.naive.planning.few_states import has_order
from tests.naive.planning.joint import Joint
from tests.support.effort import mostly_long
from tests.support.plans.crowded import crowded, drained
from tests.support.plans.replaced import PROTOCOLS, all_go, hardware, mixed
from tests.support.plans.resized import resized


@pytest.mark.parametrize("batch", mostly_long(range(20), (0,)))
def test_what_is_blocked_of_a_partition_has_no_order(batch):
    complete = 0
    for seed in range(batch * 100, (batch + 1) * 100):
        cluster, target, protocol = all_go(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert found.end == "target" or plan.blocked, seed
        if not plan.complete:
            assert not has_order(cluster, plan.target, plan.protocol), seed
        complete += plan.complete
    assert complete > 80


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_a_partition_that_gets_more_replicas_or_fewer_is_blocked_where_it_has_no_order(batch):
    """Roles that trade nodes are among them; what can be done can be undone."""
    complete = 0
    for seed in range(batch * 100, (batch + 1) * 100):
        cluster, target, protocol = resized(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        if not plan.complete:
            assert not has_order(cluster, plan.target, protocol, hops=True), seed
            continue
        assert found.end == "target", seed
        back, half = plan.undo(), plan.prefix(len(plan) // 2)
        assert back.check().ok, seed
        assert back.complete or not cluster.nodes.alive.all(), seed
        assert plan.resume(half.end).check().ok, seed
        complete += 1
    assert complete > 90


def over_three_zones(*placement):
    """A partition that survives the loss of a zone with three replicas and with five, not four."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]], placement=[placement], leader=[0],
        domains={"zone": [*"aabbcc"]}, spread={"zone": 2}, dimensions=["disk"], bytes="disk",
    )  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("more", [True, False])
def test_replicas_whose_number_may_not_be_even_come_and_go_in_pairs(protocol, more):
    ends = [0, 2, 4, -1, -1], [0, 2, 4, 1, 3]
    start, then = ends if more else ends[::-1]
    cluster = over_three_zones(*start)
    target = cluster.placement.replaced(np.array(then, np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, protocol=protocol, throttle=ek.Throttle(node_out=1))
    assert plan.complete
    assert plan.check().end == "target"
    assert plan.bound.seconds <= plan.makespan
    back = plan.undo()
    assert back.complete
    assert back.check().end == "target"
    for count in range(len(plan) + 1):
        begun = plan.prefix(count)
        assert begun.check().ok
        rest = plan.resume(begun.end)
        assert rest.complete
        assert rest.check().end == "target"


@pytest.mark.parametrize("more", [True, False])
def test_a_pair_is_blocked_where_members_change_one_by_one(more):
    ends = [0, 2, 4, -1, -1], [0, 2, 4, 1, 3]
    start, then = ends if more else ends[::-1]
    cluster = over_three_zones(*start)
    target = cluster.placement.replaced(np.array(then, np.int32), cluster.placement.leader)
    protocol = ek.Protocol("one by one", joint=False)
    plan = ek.plan(cluster, target, protocol=protocol)
    assert not has_order(cluster, target, protocol, hops=True)
    assert {one.slot for one in plan.blocked} == {3, 4}
    assert "order that its rules admit" in plan.blocked[0].lacks


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_voter_and_a_non_voter_that_trade_zones_trade_roles(protocol):
    """Neither may join the zone of the other, and there is no third one."""

    def placed(*nodes):
        return ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]], placement=[nodes], role=[[0, 1]], leader=[0],
            voters=1, domains={"zone": [*"aabb"]}, spread={"zone": 1},
        )  # fmt: skip

    cluster, target = placed(0, 2), placed(3, 1).placement
    plan = ek.plan(cluster, target, protocol=protocol)
    assert plan.complete
    assert plan.check().end == "target"
    assert plan.copies == 2
    assert plan.end.leader_node.tolist() == [3]
    back = plan.undo()
    assert back.complete
    assert back.check().ok
    assert np.array_equal(back.end.node, cluster.placement.node)
    assert np.array_equal(back.end.role, cluster.placement.role)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("placement", [[0, 1, 2], [2, 1, 0], [0, 1, 5]])
def test_three_replicas_leave_nodes_that_all_drain(protocol, placement):
    """Each for the new node of its zone; nobody that stays could lead meanwhile."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 6, load=[[1.0]], placement=[placement],
        domains={"zone": [*"abcabc"]}, spread={"zone": 1},
    ).drain(["n0", "n1", "n2"])  # fmt: skip
    plan = ek.plan(cluster, ek.solve(cluster, goals=ek.Goals(level=None)), protocol=protocol)
    assert plan.complete
    assert plan.check().ok
    assert sorted(plan.end.node.tolist()) == [3, 4, 5]
    assert plan.copies == np.count_nonzero(np.array(placement) < 3)


@pytest.mark.parametrize("batch", mostly_long(range(25), (0,)))
def test_hardware_is_replaced_in_full_clusters(batch):
    """Who takes the place of a node has its room, so that an order always exists."""
    for seed in range(batch * 200, (batch + 1) * 200):
        cluster, target, protocol = hardware(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert plan.complete, seed
        assert found.end == "target", seed


@pytest.mark.parametrize("draw", [crowded, drained, mixed])
@pytest.mark.parametrize("batch", mostly_long(range(20), (0,)))
def test_what_is_blocked_of_several_partitions_has_no_order(draw, batch):
    """Neither for room nor by rules of groups, third nodes included."""
    stuck = unknown = 0
    for seed in range(batch * 100, (batch + 1) * 100):
        cluster, target, protocol = draw(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        if plan.complete:
            assert found.end == "target", seed
            continue
        order = Joint(cluster, plan.target, plan.protocol).has_order()
        assert not order, seed
        stuck, unknown = stuck + 1, unknown + (order is None)
    assert stuck < 25
    assert unknown < 3
