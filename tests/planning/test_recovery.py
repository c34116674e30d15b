"""Recovery: how long anything is short of live replicas, counted along the plan."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.account.recovery import short_until
from evenkeel.planning.steps import StepKind
from tests.planning.test_plan import drawn


def lost_one(copies=1):
    """Three partitions of two replicas, each of which has lost one."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 3, placement=[[0, 3], [1, 3], [2, 3]],
        alive=[True, True, True, False],
    )  # fmt: skip
    node = np.array([0, 1, 1, 2, 2, 0], np.int32)
    target = cluster.placement.replaced(node, cluster.placement.leader)
    return ek.plan(cluster, target, throttle=ek.Throttle(copies=copies))


def test_each_partition_is_short_until_its_copy_serves():
    plan = lost_one()
    assert sorted(short_until(plan).tolist()) == [1.0, 2.0, 3.0]
    assert plan.short_for == 3.0
    assert lost_one(copies=3).short_for == 1.0


def test_what_lives_is_never_short_though_it_moves():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1]])
    target = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    assert ek.plan(cluster, target).short_for == 0.0


def test_what_stays_lost_is_short_for_ever():
    plan = lost_one()
    assert ek.plan(plan.cluster, plan.cluster.placement).short_for == np.inf


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_is_seen_after_every_step(seed):
    cluster, plan = drawn(seed)
    live = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)
    steps = plan.steps
    serving = live[cluster.placement.node].astype(int)
    owner = cluster.placement.owner
    until = np.full(len(cluster.partitions), np.inf)
    wanted = cluster.partitions.replicas

    def note(when):
        have = np.bincount(owner, serving, len(wanted))
        until[(have >= wanted) & np.isinf(until)] = when

    note(0.0)
    was_lost = ~live[cluster.placement.node]
    for i in np.argsort(steps.finish, kind="stable").tolist():
        k, kind = steps.replica[i], steps.kind[i]
        if kind in (StepKind.PROMOTE, StepKind.SWAP) and live[steps.target[i]] and was_lost[k]:
            serving[k] = 1
        note(steps.finish[i])
    assert short_until(plan).tolist() == until.tolist()
