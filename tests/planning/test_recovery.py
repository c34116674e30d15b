"""Recovery: how long anything is short of live replicas, counted along the plan."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.planning.explain import short_until
from evenkeel.planning.replay import replay
from evenkeel.planning.steps import StepKind
from tests.naive.planning.replay import replay as plain_replay
from tests.planning.test_plan import drawn
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.tight_clusters import tight


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


@pytest.mark.parametrize("seed", mostly_long(range(40), range(20)))
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


def behind_a_barrier(seed):
    """A full cluster that has lost a node, with a plan that repairs it first."""
    cluster, target, throttle, protocol = tight(seed)
    rng = np.random.default_rng([seed, 5])
    dead = int(rng.integers(len(cluster.nodes)))
    cluster = cluster.down(cluster.nodes.names[dead])
    start = cluster.placement
    node = np.where(target.node == dead, start.node, target.node)
    for k in np.flatnonzero(node == dead).tolist():
        row = slice(*start.first[start.owner[k] : start.owner[k] + 2])
        free = np.setdiff1d(
            np.flatnonzero(cluster.nodes.may_receive), [*node[row], *start.node[row]]
        )
        node[k] = rng.choice(free) if len(free) else dead
    slow = replace(throttle or ek.Throttle(), recovery_first=True)
    target = start.replaced(node.astype(np.int32), target.leader)
    return ek.plan(cluster, target, throttle=slow, protocol=protocol)


def test_a_repair_holds_up_all_else_though_its_partition_is_blocked_later():
    """p0 waits in vain for room of p1, which is pinned; p2 waits for its repair alone."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 3 + [[0.5]] * 2 + [[9.0]], load=[[1.0], [1.0], [0.5]],
        alive=[True] * 5 + [False], placement=[[0, 5], [1, -1], [4, -1]], replicas=[2, 1, 1],
        flags=[[0, 0], [Flag.PINNED, 0], [0, 0]],
    )  # fmt: skip
    target = cluster.placement.replaced(
        np.array([1, 2, 0, -1, 3, -1], np.int32), cluster.placement.leader
    )
    plan = ek.plan(cluster, target, throttle=ek.Throttle(recovery_first=True))
    assert {one.partition for one in plan.blocked} == {"p0", "p1"}
    start = {row.partition: row.start for row in plan.rows() if row.kind == "copy"}
    assert start == {"p0": 0.0, "p2": 1.0}
    assert plan.check().ok


def test_a_repair_waits_for_a_way_that_it_would_close():
    """p0 and p1 trade nodes: p0 goes to the free one first, and what it lost is copied last."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 3 + [[9.0]], load=[[1.0]] * 2, alive=[True] * 3 + [False],
        placement=[[0, 3], [1, -1]], replicas=[2, 1],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([1, 2, 0, -1], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(recovery_first=True))
    assert plan.complete
    assert plan.check().ok


def test_a_repair_waits_at_any_distance_for_what_makes_its_room():
    """p2 leaves n1, so that p0 is repaired there and leaves n2, where p1 is repaired then."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [1.0], [1.0], [9.0], [9.0]], load=[[1.0]] * 3,
        alive=[True] * 4 + [False], placement=[[2, 4], [0, 4], [1, -1]], replicas=[2, 2, 1],
    )  # fmt: skip
    target = cluster.placement.replaced(
        np.array([1, 0, 0, 2, 3, -1], np.int32), cluster.placement.leader
    )
    plan = ek.plan(cluster, target, throttle=ek.Throttle(recovery_first=True))
    assert plan.complete
    assert plan.check().ok


def test_of_two_repairs_that_both_want_the_last_room_the_other_blocks_nothing():
    """p3, p5 and p6 would empty n0, to which p1 and p2 come back from n1."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[17, 20, 14], [12, 12, 12], [17, 16, 16]], dimensions=["d0", "d1", "d2"],
        transient=["d2"], placement=[[2], [1], [1], [0], [2], [0], [0], [0], [2]],
        load=[[2, 3, 3], [1, 1, 2], [2, 1, 3], [3, 1, 2], [3, 3, 1], [2, 1, 1], [1, 3, 2],
              [6, 9, 5], [7, 5, 7]],
    ).down("n1")  # fmt: skip
    node = np.array([0, 0, 0, 2, 0, 2, 2, 0, 2], np.int32)
    target = cluster.placement.replaced(node, cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(recovery_first=True))
    assert plan.complete
    assert plan.check().ok
    start = {row.partition: row.start for row in plan.rows() if row.kind == "copy"}
    assert start["p1"] == min(start.values())


@pytest.mark.parametrize("batch", mostly_long(range(6), (0,)))
def test_no_more_is_blocked_than_without_a_barrier(batch):
    for seed in range(batch * 20, (batch + 1) * 20):
        plan = behind_a_barrier(seed)
        free = replace(plan.throttle, recovery_first=False)
        other = ek.plan(plan.cluster, plan.towards or plan.target, throttle=free,
                        protocol=plan.protocol)  # fmt: skip
        assert len(plan.blocked) <= len(other.blocked), seed


def test_nothing_is_copied_from_where_a_replica_is_no_more():
    """A live replica goes by a third node while one that is lost is copied from it."""
    plan = behind_a_barrier(22971)
    assert len(plan) > 40
    assert plan.check().ok


@pytest.mark.parametrize("batch", mostly_long(range(6), (0,)))
def test_a_copy_that_jumps_the_barrier_is_found(batch):
    jumped = 0
    for seed in range(batch * 40, (batch + 1) * 40):
        plan = behind_a_barrier(seed)
        assert plan.check().ok, seed
        rows = rows_of(plan.steps)
        copies = [i for i, row in enumerate(rows) if row.kind == StepKind.COPY]
        if not copies or len(rows) > 80:
            continue
        i = int(np.random.default_rng(seed).choice(copies))
        rows[i] = rows[i]._replace(start=0.0, finish=rows[i].finish, before=())
        asked = {"target": plan.target, "joint": plan.protocol.joint, "throttle": plan.throttle}
        asked["quorum"] = plan.protocol.quorum
        found = {
            (one.kind, one.step) for one in replay(plan.cluster, steps_of(rows), **asked).breaches
        }
        plain = plain_replay(plan.cluster, steps_of(rows), **asked)
        some = {one for one in plain if one[0] == "recovery"}
        assert {one for one in found if one[0] == "recovery"} == some, seed
        jumped += bool(some)
    assert jumped > 2


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "helix"])
def test_no_live_replica_goes_before_what_replaces_it_serves(protocol):
    """The voter is lost, and n2 is in the zone of n0, of which a spread admits one replica."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[3, 1, 0]], replicas=[2], voters=[1],
        domains={"zone": ["a", "b", "a", "b"]}, alive=[True, True, True, False],
        rules=[ek.Rule(spread={"zone": 1})], rule=[0],
    )  # fmt: skip
    target = replace(cluster.placement, node=np.array([2, 1, -1], np.int32))
    plan = ek.plan(cluster, target, protocol=protocol)
    assert plan.complete and plan.check().ok
    for done in range(len(plan.waves) + 1):
        seen = plan.after(done)
        serves = np.isin(seen.node, [0, 1, 2]) & ((seen.flags & Flag.INCOMING) == 0)
        assert serves.sum() >= 2
