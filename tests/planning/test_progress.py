"""Progress: told from the placement that is seen, not from what was handed out."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.planning.steps import StepKind
from tests.planning.test_plan import drawn, full, swapped
from tests.support.effort import mostly_long


@pytest.mark.parametrize("seed", mostly_long(range(60), range(20)))
def test_what_a_prefix_did_is_done_and_nothing_else(seed):
    _, plan = drawn(seed)
    rng = np.random.default_rng(seed)
    begun = plan.prefix(int(rng.integers(0, len(plan) + 1)))
    told = plan.progress(begun.end)
    # who led, lent it and leads again looks as before
    leads = plan.steps.kind == StepKind.LEAD
    alone = ~np.isin(plan.change, plan.change[~leads])
    sure = ~(leads & alone)
    expected = np.arange(len(plan)) < len(begun)
    assert np.array_equal(told.done[sure], expected[sure])
    assert not told.astray
    assert not told.under_way.any()
    assert told.bytes_done == pytest.approx(begun.bytes)
    assert len(str(told).splitlines()) >= 1


@pytest.mark.parametrize("seed", mostly_long(range(30), range(10)))
def test_all_is_done_at_the_end_and_nothing_in_the_beginning(seed):
    cluster, plan = drawn(seed)
    assert plan.progress(plan.end).finished
    assert plan.progress(plan.end).left == 0.0
    told = plan.progress(cluster)
    assert not told.done.any()
    assert told.left <= plan.makespan + 1e-9


def test_a_replica_that_is_copied_is_under_way():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster))
    copy = plan.rows()[0]
    node, flags = cluster.placement.node.copy(), cluster.placement.flags.copy()
    node[0], flags[0] = cluster.nodes.names.index(copy.target), int(Flag.INCOMING)
    seen = replace(cluster.placement, node=node, flags=flags)
    told = plan.progress(seen)
    assert np.flatnonzero(told.under_way).tolist() == [0]
    assert not told.done.any()
    assert "under way: copy [0] n0 -> n2 of p0" in str(told)


def test_what_is_next_waits_for_nothing_any_more():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster), throttle=ek.Throttle(copies=1))
    for k in range(len(plan)):
        begun = plan.prefix(k)
        told = plan.progress(begun.end)
        steps = plan.steps
        for i in told.ready.tolist():
            assert told.done[steps.before[steps.first[i] : steps.first[i + 1]]].all()
        assert len(told.ready)


def test_what_is_left_is_told_at_both_paces():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    target = cluster.placement.replaced(np.full(4, 1, np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(copies=1))
    told = plan.progress(plan.prefix(len(plan) // 4).end, elapsed=5.0)
    assert (told.left, told.left_so_far) == (3.0, 15.0)
    assert "3 s left at the plan's pace, 15 s at the pace so far" in str(told)
    assert plan.progress(cluster, elapsed=5.0).left_so_far is None


def test_a_replica_off_the_plan_is_named():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster, rows=2).replaced(
        np.array([1, 0, 1, 0], np.int32), cluster.placement.leader))  # fmt: skip
    moved = plan.rows()[0]
    node = cluster.placement.node.copy()
    k = int(plan.steps.replica[0])
    node[k] = -1
    told = plan.progress(cluster.placement.replaced(node, cluster.placement.leader))
    assert told.astray == (f"{moved.partition}[0] on no node",)
    assert "off the plan" in str(told)


def test_other_partitions_are_refused():
    cluster = full()
    other = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput, match="observed"):
        ek.plan(cluster, swapped(cluster)).progress(other)


def test_what_would_go_to_a_node_that_died_is_not_next():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0], [0]], leader=[0, 0]
    )
    node = np.array([1, 2], np.int32)
    plan = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))
    for now, nodes in ((cluster, ["n1", "n2"]), (cluster.down("n2"), ["n1"])):
        assert [one.target for one in plan.rows_of(plan.progress(now).ready)] == nodes


def test_once_a_node_has_died_nothing_is_said_of_what_the_plan_would_do_next():
    cluster = full()
    plan = ek.plan(cluster, swapped(cluster), throttle=ek.Throttle(copies=1))
    told = plan.progress(cluster.down("n2"))
    assert told.died == ["n2"]
    assert "died since: n2" in str(told)
    assert "next:" not in str(told) and "left at" not in str(told)
