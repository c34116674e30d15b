"""Why a step waits: for which other, which room, which throttle; and what blocks a move."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from tests.planning.test_plan import drawn, full, swapped
from tests.support.effort import mostly_long


def planned(cluster, node, **more):
    """The plan to other nodes of the replicas."""
    target = cluster.placement.replaced(np.array(node, np.int32), cluster.placement.leader)
    return ek.plan(cluster, target, **more)


def line(plan, partition, word):
    """The only line of an explanation with a word in it."""
    (found,) = [one for one in plan.explain(partition).splitlines() if word in one]
    return found.strip()


def test_a_step_waits_for_room_and_says_in_what():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0, 1.0], [9.0, 1.0], [9.0, 1.0]], load=[[1.0, 1.0]] * 2,
        dimensions=["cpu", "disk"], transient=["disk"], placement=[[0], [1]],
    )  # fmt: skip
    plan = planned(cluster, [1, 2])
    step = plan.rows()[-1].step
    assert plan.rows()[0].partition == "p1"
    assert line(plan, "p0", "waits") == (
        "waits for step 4 of p1 (remove [0] n1, until 1 s): room on n1 in disk"
    )
    assert "waits" not in plan.explain("p1")
    assert f"step {step}" in plan.explain("p0")


def test_a_step_waits_for_room_for_one_more_replica():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0], [1]], max_replicas=[1, 1, 1]
    )
    assert line(planned(cluster, [1, 2]), "p0", "waits").endswith(
        "room on n1 in number of replicas"
    )


def test_a_step_waits_for_room_that_a_domain_shares():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0], [2]],
        domains={"host": list("aabb")}, tier_capacity={"host": [[1.0], [1.0]]}, transient=["d0"],
        dimensions=["d0"],
    )  # fmt: skip
    free = cluster.replace(capacity=[[9.0]] * 4, tier_capacity={"host": [[2.0], [1.0]]})
    plan = planned(free, [3, 1])
    assert line(plan, "p0", "waits").endswith("room in host b in d0")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"node_in": 1}, "throttle of 1 copy into n3"),
        ({"copies": 1}, "throttle of 1 copy in all"),
        ({"domain_in": {"zone": 1}}, "throttle of 1 copy into zone b"),
        ({"node_bandwidth": 1.0}, "bandwidth into n3"),
    ],
)
def test_a_step_waits_for_a_throttle(limits, says):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0], [1]], bytes="disk",
        dimensions=["disk"], domains={"zone": list("aaab")},
    )  # fmt: skip
    plan = planned(cluster, [3, 3], throttle=ek.Throttle(**limits))
    assert line(plan, "p1", "waits").endswith(f": {says}")


def test_a_partition_changes_once_at_a_time():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 5, load=[[1.0]], placement=[[0, 1, 2]])
    plan = planned(cluster, [3, 4, 2], throttle=ek.Throttle(node_in=1))
    assert "one change of a partition at a time" in plan.explain("p0")


def test_what_is_blocked_names_its_circle():
    plan = ek.plan(cluster := full().replace(capacity=[[2.0], [2.0], [0.5]]), swapped(cluster))
    assert line(plan, "p0", "blocked") == (
        "blocked: [0] n0 -> n1: no room on n1 in disk; waits in a circle with p1[0], p2[0], p3[0]"
    )


def test_a_partition_that_stays_says_so():
    cluster = full()
    assert ek.plan(cluster, cluster.placement).explain("p0") == "p0:\n  stays as it is"


@pytest.mark.parametrize("seed", mostly_long(range(30), range(10)))
def test_every_step_waited_for_is_named_with_a_reason(seed):
    cluster, plan = drawn(seed)
    steps = plan.steps
    for p in range(len(cluster.partitions)):
        told = plan.explain(p)
        for i in np.flatnonzero(steps.partition == p).tolist():
            ahead = steps.before[steps.first[i] : steps.first[i + 1]]
            others = ahead[plan.change[ahead] != plan.change[i]].tolist()
            if len(others) <= 8:
                assert all(f"waits for step {k} of" in told for k in others)
        reasons = [
            one.rpartition(": ")[2] for one in told.splitlines() if " waits for step " in one
        ]
        assert all(reasons)


def test_what_could_start_earlier_is_told():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]])
    plan = planned(cluster, [1])
    late = replace(plan.steps, start=plan.steps.start + 5.0, finish=plan.steps.finish + 5.0)
    told = replace(plan, steps=late).explain("p0")
    assert told.count("nothing holds it up from 0 s on") == 1
