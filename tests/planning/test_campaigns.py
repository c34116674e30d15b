"""Campaigns: many random plans, judged by the replay, by exhaustive search, and by what they cost.

Those marked long are many more of the same.
"""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.steps import StepKind
from tests.naive.planning.orders import least_bytes
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.random_plans import tampered
from tests.support.plans.tight_clusters import circles, tight, tiny


def planned(seed):
    cluster, target, throttle, protocol = tight(seed)
    return cluster, ek.plan(cluster, target, throttle=throttle, protocol=protocol)


@pytest.mark.parametrize("batch", mostly_long(range(40), (0, 1)))
def test_plans_of_full_clusters_are_safe(batch):
    complete = 0
    for seed in range(batch * 50, (batch + 1) * 50):
        _, plan = planned(seed)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert found.end == "target" or plan.blocked, seed
        complete += plan.complete
    assert complete > 25


@pytest.mark.parametrize("batch", mostly_long(range(40), (0, 1)))
def test_what_is_blocked_is_blocked_in_every_order(batch):
    solved = 0
    for seed in range(batch * 25, (batch + 1) * 25):
        cluster, target = tiny(seed)
        plan = ek.plan(cluster, target)
        assert plan.check().ok, seed
        least = least_bytes(cluster, plan.target)
        assert plan.complete == (least is not None), seed
        if least is not None:
            assert plan.bytes <= least * 1.2, seed
            solved += 1
    assert solved > 10


@pytest.mark.parametrize("batch", mostly_long(range(20), (0,)))
def test_swaps_on_full_nodes_take_few_extra_bytes(batch):
    for seed in range(batch * 10, (batch + 1) * 10):
        cluster, target = circles(seed)
        plan = ek.plan(cluster, target)
        assert plan.check().ok, seed
        if len(cluster.partitions) > 6:
            continue
        least = least_bytes(cluster, plan.target)
        assert plan.complete == (least is not None), seed
        if least is not None:
            moved = cluster.placement.node != plan.target.node
            direct = cluster.partitions.load.voter[moved, 0].sum()
            assert plan.bytes - direct <= 1.2 * (least - direct), seed


@pytest.mark.parametrize("batch", mostly_long(range(40), (0, 1)))
def test_undoing_a_prefix_gives_the_placement_that_was(batch):
    back = 0
    for seed in range(batch * 25, (batch + 1) * 25):
        cluster, plan = planned(seed)
        begun = plan.prefix(int(np.random.default_rng(seed).integers(len(plan) + 1)))
        assert begun.check().ok, seed
        undone = begun.undo()
        assert undone.check().ok, seed
        back += undone.complete
        if undone.complete:
            for name in ("first", "node", "role", "flags", "leader"):
                was, now = getattr(cluster.placement, name), getattr(undone.end, name)
                assert np.array_equal(was, now), (seed, name)
    assert back > 12
