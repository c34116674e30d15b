"""Partitions whose every replica must go: blocked is only what no order of allowed steps admits."""

import numpy as np
import pytest

import evenkeel as ek
from tests.naive.planning.few_states import has_order
from tests.naive.planning.joint import Joint
from tests.support.effort import mostly_long
from tests.support.plans.crowded import crowded, drained
from tests.support.plans.replaced import PROTOCOLS, all_go, hardware, mixed


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
