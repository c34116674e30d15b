"""What throttles hold to, and how close plans come to the shortest there can be."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.replay import replay
from evenkeel.planning.steps import StepKind
from evenkeel.planning.throttle import Windows
from tests.support.effort import mostly_long
from tests.support.plans.skewed_sizes import just_expanded
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
        (ek.Throttle(node_bandwidth=1.0), "bytes into a node"),
        (ek.Throttle(node_in=2), "copies into a node"),
        (ek.Throttle(copies=2), "copies in all"),
    ],
)
def test_limits_hold_and_are_reached(throttle, term):
    plan = planned(throttle)
    assert plan.bound.term == term
    assert plan.makespan <= 1.05 * plan.bound.seconds


def test_a_limit_that_is_broken_is_found():
    plan = planned(ek.Throttle(node_bandwidth=4.0))
    for narrower, kind in (
        (ek.Throttle(copies=3), "copies"),
        (ek.Throttle(domain_in={"zone": 3}), "domain_in"),
        (ek.Throttle(windows=ek.Windows([(0, 1)], every=20)), "window"),
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


@pytest.mark.parametrize("seed", mostly_long(range(60), range(20)))
def test_plans_under_any_throttle_are_safe(seed):
    rng = np.random.default_rng([seed, 4])
    cluster, target, _, protocol = tight(seed)

    def some(value):
        return value if rng.random() < 0.4 else None

    throttle = ek.Throttle(
        node_in=some(1), node_out=some(2), copies=some(3), node_bandwidth=some(2.5),
        domain_in=some({"zone": 2}), domain_out=some({"rack": 1}),
        windows=some(ek.Windows([(1, 3)], every=7)),
    )  # fmt: skip
    free = ek.plan(cluster, target, protocol=protocol)
    plan = ek.plan(cluster, target, throttle=throttle, protocol=protocol)
    found = plan.check()
    assert found.ok, str(found)
    assert plan.makespan >= plan.bound.seconds * (1 - 1e-9)
    assert plan.complete or not free.complete


def test_bad_throttles_are_told_with_every_problem():
    with pytest.raises(ek.InvalidInput) as error:
        ek.Throttle(copies=0, domain_in={"zone": 0}, priority={"a": "high"})
    assert [fault.path for fault in error.value.faults] == [
        "throttle.priority['a']", "throttle.copies", "throttle.domain_in['zone']",
    ]  # fmt: skip
    with pytest.raises(ek.InvalidInput) as error:
        ek.Windows([(0, 5), (4, 4)])
    assert [fault.path for fault in error.value.faults] == ["windows.spans[1]", "windows.spans"]
    cluster, target = spread_out()
    with pytest.raises(ek.InvalidInput) as error:
        ek.plan(cluster, target, throttle=ek.Throttle(domain_in={"rack": 1}, priority={"third": 1}))
    assert [fault.path for fault in error.value.faults] == [
        "throttle.priority", "throttle.domain_in",
    ]  # fmt: skip


def short_of_some(**throttle):
    """Eight partitions on full and empty nodes; two of them have lost a replica."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 8, alive=[True] * 5 + [False],
        placement=[[0, 5], [0, 5], *([0, 1],) * 6],
    )  # fmt: skip
    node = np.array([[0, 2], [0, 3], *([4, 1],) * 4, [2, 1], [3, 1]], np.int32)
    target = cluster.placement.replaced(node.reshape(-1), cluster.placement.leader)
    return ek.plan(cluster, target, throttle=ek.Throttle(**throttle))


def test_recovery_first_is_a_barrier_if_it_is_asked_for():
    copies = [row for row in short_of_some().rows() if row.kind == "copy"]
    assert {row.start for row in copies} == {0.0}
    barred = short_of_some(recovery_first=True)
    assert barred.check().ok
    assert barred.complete
    copies = [row for row in barred.rows() if row.kind == "copy"]
    begun = [row.start for row in copies if row.partition not in ("p0", "p1")]
    assert min(begun) >= barred.short_for
    assert "recovery before balance" in barred.explain("p4")


def test_the_check_finds_what_begins_before_the_recovery_has_ended():
    plan = short_of_some()
    held = replay(plan.cluster, plan.steps, target=plan.target,
                  throttle=ek.Throttle(recovery_first=True))  # fmt: skip
    assert held.counts == {"recovery": 6}


def test_a_repair_that_waits_for_room_holds_nothing_up():
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 4 + [[9.0]], load=[[1.0]] * 3, alive=[True, True, True, True, False],
        placement=[[0, 4], [1, -1], [2, -1]], replicas=[2, 1, 1],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([0, 1, 3, -1, 2, -1], np.int32),
                                        cluster.placement.leader)  # fmt: skip
    plan = ek.plan(cluster, target, throttle=ek.Throttle(recovery_first=True))
    assert plan.complete
    assert plan.check().ok


def test_explain_says_which_group_went_first():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0]] * 2, group=["calm", "busy"]
    )
    target = cluster.placement.replaced(np.ones(2, np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(copies=1, priority={"busy": 2.0}))
    assert "group busy goes first by its priority" in plan.explain("p0")


def test_explain_says_which_window_a_step_waits_for():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0]] * 2)
    target = cluster.placement.replaced(np.ones(2, np.int32), cluster.placement.leader)
    held = ek.Throttle(copies=1, windows=Windows([(5.0, 6.0)], every=60.0))
    plan = ek.plan(cluster, target, throttle=held)
    told = plan.explain("p0") + plan.explain("p1")
    assert "waits for the window of time that opens at 5 s" in told
    assert "waits for the window of time that opens at 65 s" in told


def skewed(seed):
    """Twenty nodes give eight new ones replicas of very unlike sizes, as many bytes to each."""
    rng = np.random.default_rng([seed, 12])
    size = np.minimum(rng.pareto(1.5, 160) + 1.0, 30.0)
    node = np.stack([rng.permutation(20)[:3] for _ in range(160)])
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((28, 1), 2.0 * size.sum()), load=size[:, None], dimensions=["disk"],
        bytes="disk", placement=node,
    )  # fmt: skip
    then, received = node.copy(), np.zeros(8)
    for p in np.argsort(-size).tolist():
        for slot, n in enumerate(np.argsort(received)[: rng.integers(0, 3)].tolist()):
            then[p, slot] = 20 + n
            received[n] += size[p]
    target = cluster.placement.replaced(then.reshape(-1).astype(np.int32), cluster.placement.leader)
    return ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=1.0))


def test_what_was_late_comes_earlier_and_no_plan_is_longer_for_it(monkeypatch):
    tried = [skewed(seed) for seed in range(8)]
    monkeypatch.setattr("evenkeel.planning.list_scheduler.ROUNDS", 0)
    once = [skewed(seed) for seed in range(8)]
    assert all(plan.check().ok and plan.complete for plan in tried)
    assert all(a.makespan <= b.makespan for a, b in zip(tried, once, strict=True))
    assert sum(a.makespan < b.makespan for a, b in zip(tried, once, strict=True)) > 1
    assert max(plan.makespan / plan.bound.seconds for plan in tried) < 1.15


@pytest.mark.parametrize("limited", ["node_in", "node_out"])
def test_an_end_without_a_limit_holds_up_no_search_for_a_shorter_plan(limited):
    """One node gives all, or takes all, as many at once as there are; the other ends decide."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 6, load=[[1.0]] * 12, placement=[[0, 1]] * 12
    )
    here = cluster.down("n1")
    target = ek.solve(here, goals=ek.Goals(level=0.05)).placement
    if limited == "node_out":
        here, target = cluster.with_placement(target), cluster.placement
    plan = ek.plan(here, target, throttle=ek.Throttle(**{limited: 2}), protocol="kafka")
    assert plan.check().ok
    assert plan.makespan == plan.bound.seconds == 3.0


def test_expansions_and_repairs_of_unlike_sizes_come_close_to_the_bound(monkeypatch):
    def carried_out(seed):
        case = just_expanded(seed)
        more = {"throttle": case.throttle, "protocol": case.protocol}
        return ek.plan(case.cluster, case.answer, **more)

    tried = [carried_out(seed) for seed in range(24)]
    monkeypatch.setattr("evenkeel.planning.list_scheduler.ROUNDS", 0)
    once = [carried_out(seed) for seed in range(24)]
    assert all(plan.check().ok and plan.complete for plan in tried)
    assert np.mean([plan.makespan / plan.bound.seconds for plan in tried]) < 1.05
    # what is gained is not paid for by who is short of replicas
    assert sum(plan.short_for for plan in tried) < 1.1 * sum(plan.short_for for plan in once)


def test_replicas_that_change_places_within_their_zones_are_copied_at_once():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]], dimensions=["disk"], bytes="disk",
        domains={"zone": list("abcabc")}, spread={"zone": 1}, placement=[[0, 1, 2]],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([3, 4, 5], np.int32), cluster.placement.leader)
    throttle = ek.Throttle(node_bandwidth=1.0)
    plan = ek.plan(cluster, target, throttle=throttle, protocol="kafka")
    assert plan.check().ok
    assert plan.makespan == plan.bound.seconds == 1.0
    # in another's zone a new one would be the second there
    target = cluster.placement.replaced(np.array([4, 5, 3], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=throttle, protocol="kafka")
    assert plan.check().ok, str(plan.check())


@pytest.mark.parametrize(
    ("spans", "every", "says"),
    [
        (5, None, r"windows\.spans: must be pairs"),
        ("ab", None, r"windows\.spans: must be pairs"),
        ([1], None, r"windows\.spans\[0\]: must be a pair"),
        ([(0,), ("a", "b"), (0, float("nan"))], None, r"windows\.spans\[2\]: must be a pair"),
        ([(0, 1)], "x", r"windows\.every: must be a number"),
        ([(0, 1)], float("nan"), r"windows\.every: must be a number"),
    ],
)
def test_spans_that_are_none_are_told(spans, every, says):
    with pytest.raises(ek.InvalidInput, match=says):
        Windows(spans, every)


@pytest.mark.parametrize("name", ["node_in", "node_out", "copies"])
def test_a_limit_that_no_float_holds_is_told(name):
    with pytest.raises(ek.InvalidInput, match=rf"throttle\.{name}: is larger than"):
        ek.Throttle(**{name: 10**30})


@pytest.mark.parametrize("width", [0.3966729148937345, 4.103697148161308])
@pytest.mark.parametrize("protocol", ["kafka", "ceph"])
def test_copies_of_a_partition_follow_each_other_to_the_bit(width, protocol):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 10, load=[[1.0]] * 2, bytes="d0", placement=[[0, 1, 2]] * 2
    )
    target = cluster.placement.replaced(np.array([3, 4, 5] * 2, np.int32), cluster.placement.leader)
    throttle = ek.Throttle(node_bandwidth=width)
    assert ek.plan(cluster, target, throttle=throttle, protocol=protocol).check().ok
