"""What throttles hold to, and how close plans come to the shortest there can be."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.steps import StepKind
from tests.support.plans.tight_clusters import tight


def spread_out(**more):
    """Forty replicas of two groups on two zones of four nodes, and a target in the other zone."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[999.0]] * 8, load=[[float(i % 5 + 1)] for i in range(40)],
        placement=[[i % 4] for i in range(40)], dimensions=["disk"], bytes="disk",
        domains={"zone": list("aaaabbbb")}, group=[i // 20 for i in range(40)],
        group_names=["first", "second"], **more,
    )  # fmt: skip
    node = np.array([4 + (i + i // 4) % 4 for i in range(40)], np.int32)
    return cluster, cluster.placement.replaced(node, cluster.placement.leader)


def planned(throttle):
    cluster, target = spread_out()
    plan = ek.plan(cluster, target, throttle=throttle)
    assert plan.complete
    assert plan.check().ok, str(plan.check())
    return plan


@pytest.mark.parametrize(
    ("throttle", "term"),
    [
        (ek.Throttle(domain_bandwidth={"zone": 4.0}), "bytes into a zone"),
        (ek.Throttle(link_bandwidth={"zone": 4.0}), "bytes between two of zone"),
        (ek.Throttle(link_bandwidth={"node": 1.0}), "bytes between two of node"),
        (ek.Throttle(group_copies=2), "copies of a group"),
        (ek.Throttle(domain_bandwidth={"zone": 4.0}, node_bandwidth=4.0), "bytes into a zone"),
    ],
)
def test_limits_on_ways_and_groups_hold_and_are_reached(throttle, term):
    plan = planned(throttle)
    assert plan.bound.term == term
    assert plan.makespan <= 1.05 * plan.bound.seconds


def test_a_limit_that_is_broken_is_found():
    plan = planned(ek.Throttle(link_bandwidth={"zone": 4.0}))
    for narrower, kind in (
        (ek.Throttle(link_bandwidth={"zone": 3.0}), "link_bytes"),
        (ek.Throttle(domain_bandwidth={"zone": 3.0}), "domain_bytes"),
        (ek.Throttle(windows=ek.Windows([(0, 10)], every=20)), "window"),
    ):
        found = ek.Plan(
            plan.cluster, plan.target, plan.steps, narrower, plan.protocol, plan.change
        ).check()
        assert set(found.counts) == {kind}


def test_groups_of_high_priority_go_first():
    plan = planned(ek.Throttle(copies=1, priority={"second": 1}))
    copies = plan.steps.partition[plan.steps.kind == StepKind.COPY]
    assert (copies[:20] >= 20).all()
    free = planned(ek.Throttle(priority={"second": 1}))
    copies = free.steps.partition[free.steps.kind == StepKind.COPY]
    assert (copies[:20] >= 20).all()


def test_copies_wait_for_their_windows():
    free = planned(ek.Throttle(copies=4))
    plan = planned(ek.Throttle(copies=4, windows=ek.Windows([(0, 3), (10, 12)], every=60)))
    assert free.makespan == 10.0
    # five seconds a minute
    assert plan.makespan == plan.bound.seconds == 72.0
    late = planned(ek.Throttle(copies=4, windows=ek.Windows([(5, np.inf)])))
    assert late.steps.start.min() == 5.0
    assert late.makespan == 15.0


@pytest.mark.parametrize("seed", range(60))
def test_plans_under_any_throttle_are_safe(seed):
    rng = np.random.default_rng([seed, 4])
    cluster, target, _, protocol = tight(seed)

    def some(value):
        return value if rng.random() < 0.4 else None

    throttle = ek.Throttle(
        node_in=some(1), node_out=some(2), copies=some(3), group_copies=some(2),
        partition_copies=some(1), node_bandwidth=some(2.5), cluster_bandwidth=some(7.0),
        domain_in=some({"zone": 2}), domain_bandwidth=some({"zone": 3.0}),
        link_bandwidth=some({"rack": 1.5}), windows=some(ek.Windows([(1, 3)], every=7)),
    )  # fmt: skip
    free = ek.plan(cluster, target, protocol=protocol)
    plan = ek.plan(cluster, target, throttle=throttle, protocol=protocol)
    found = plan.check()
    assert found.ok, str(found)
    assert plan.makespan >= plan.bound.seconds * (1 - 1e-9)
    assert plan.complete or not free.complete


def test_bad_throttles_are_told_with_every_problem():
    with pytest.raises(ek.InvalidInput) as error:
        ek.Throttle(group_copies=0, link_bandwidth={"zone": 0}, priority={"a": "high"})
    assert [fault.path for fault in error.value.faults] == [
        "throttle.priority['a']", "throttle.group_copies", "throttle.link_bandwidth['zone']",
    ]  # fmt: skip
    with pytest.raises(ek.InvalidInput) as error:
        ek.Windows([(0, 5), (4, 4)])
    assert [fault.path for fault in error.value.faults] == ["windows.spans[1]", "windows.spans"]
    cluster, target = spread_out()
    with pytest.raises(ek.InvalidInput) as error:
        ek.plan(cluster, target, throttle=ek.Throttle(domain_bandwidth={"rack": 1.0},
                                                      link_bandwidth={"node": 1.0},
                                                      priority={"third": 1}))  # fmt: skip
    assert [fault.path for fault in error.value.faults] == [
        "throttle.priority", "throttle.domain_bandwidth",
    ]  # fmt: skip
