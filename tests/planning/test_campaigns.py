"""Campaigns: many random plans, judged by the replay, by exhaustive search, and by what they cost.

Those marked long are many more of the same.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.planning.replay import replay
from evenkeel.planning.steps import StepKind
from tests.naive.planning.orders import least_bytes
from tests.naive.planning.replay import replay as plain_replay
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.random_plans import tampered
from tests.support.plans.tight_clusters import circles, tight, tiny, tiny_rows


@cache
def planned(seed):
    cluster, target, throttle, protocol = tight(seed)
    return cluster, ek.plan(cluster, target, throttle=throttle, protocol=protocol)


def asked(plan):
    """What a replay is told of a plan."""
    protocol = plan.protocol
    return {"target": plan.target, "throttle": plan.throttle, "joint": protocol.joint,
            "quorum": protocol.quorum}  # fmt: skip


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_plans_of_full_clusters_are_safe(batch):
    complete = transient = shared = 0
    for seed in range(batch * 50, (batch + 1) * 50):
        cluster, plan = planned(seed)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert found.end == "target" or plan.blocked, seed
        assert not plain_replay(cluster, plan.steps, **asked(plan)), seed
        complete += plan.complete
        transient += bool(cluster.transient.any() and len(plan))
        shared += bool(cluster.topology.tier_capacity and len(plan))
    assert complete > 25
    # what moves counts on both ends, and disks share what a host has
    assert transient > 25
    assert shared > 0


@pytest.mark.parametrize("batch", mostly_long(range(20), (0,)))
def test_plans_beside_a_dead_node_are_safe(batch):
    """Part of what it held is given up, and part of what should go there stays or is nowhere."""
    complete = 0
    for seed in range(batch * 50, (batch + 1) * 50):
        rng = np.random.default_rng([seed, 5])
        cluster, target, throttle, protocol = tight(seed)
        dead = int(rng.integers(len(cluster.nodes)))
        cluster, start = cluster.down(cluster.nodes.names[dead]), cluster.placement.node
        node = target.node.copy()
        node[(start == dead) & (rng.random(len(node)) < rng.choice([0.0, 0.5]))] = -1
        node = np.where(node == dead, np.where(start == dead, -1, start), node)
        leader = np.where(target.replaced(node, target.leader).leader_node < 0, -1, target.leader)
        target = target.replaced(node, leader.astype(np.int16))
        plan = ek.plan(cluster, target, throttle=throttle, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert found.end == "target" or plan.blocked, seed
        if plan.towards is None:
            assert not plain_replay(cluster, plan.steps, **asked(plan)), seed
        complete += plan.complete
    assert complete > 15


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
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


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_what_is_blocked_of_several_replicas_is_blocked_in_every_order(batch):
    stuck = 0
    for seed in range(batch * 25, (batch + 1) * 25):
        cluster, target, apart, protocol = tiny_rows(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        assert plan.check().ok, seed
        least = least_bytes(cluster, plan.target, tiers=apart)
        assert plan.complete == (least is not None), seed
        if least is not None:
            assert plan.bytes <= least * 1.2, seed
        stuck += least is None
    assert stuck < 15


@pytest.mark.parametrize("batch", mostly_long(range(8), (0,)))
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


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
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


def halfway(seed):
    """A plan, and its cluster at some instant: what is being copied is flagged, a node has died."""
    rng = np.random.default_rng([seed, 9])
    cluster, plan = planned(seed)
    steps = plan.steps
    now = rng.uniform(0.0, max(plan.makespan, 1.0))
    last = np.zeros(int(plan.change.max(initial=0)) + 1)
    np.maximum.at(last, plan.change, steps.finish)
    done = last[plan.change] <= now
    placement = cluster.placement
    node, leader, flags = placement.node.copy(), placement.leader.copy(), placement.flags.copy()
    for i in np.flatnonzero(done).tolist():
        k, p = steps.replica[i], steps.partition[i]
        if steps.kind[i] == StepKind.REMOVE:
            node[k] = -1 if node[k] == steps.source[i] else node[k]
        elif steps.kind[i] == StepKind.COPY:
            node[k] = steps.target[i]
        elif steps.kind[i] == StepKind.LEAD:
            leader[p] = k - placement.first[p]
    serving = node.copy()
    for i in np.flatnonzero(~done & (steps.kind == StepKind.COPY) & (steps.start <= now)).tolist():
        node[steps.replica[i]] = steps.target[i]
        flags[steps.replica[i]] |= Flag.INCOMING
    placement = placement.replaced(node, leader)
    observed = cluster.replace(
        placement=node, leader=leader, flags=flags, first=placement.first, role=placement.role
    )
    if rng.random() < 0.7:
        observed = observed.down(observed.nodes.names[int(rng.integers(len(cluster.nodes)))])
    return rng, plan, observed, serving


def judged(resumed_plan, observed, serving, seed):
    """What is gone on with is safe, and copies nothing that is there."""
    found = resumed_plan.check()
    assert found.ok, (seed, str(found))
    steps, begin = resumed_plan.steps, resumed_plan.cluster.placement
    assert np.array_equal(begin.node, serving), seed
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    live = observed.nodes.alive

    def places(node, which=None):
        rows = zip(begin.owner.tolist(), node.tolist(), begin.role.tolist(), strict=True)
        return {row for i, row in enumerate(rows) if which is None or which[i]}

    role = begin.role[steps.replica[copies]]
    made = [*zip(steps.partition[copies].tolist(), steps.target[copies].tolist(), role.tolist(),
                 strict=True)]  # fmt: skip
    assert len(made) == len({*made}), seed
    assert not {*made} & places(begin.node), seed
    # what is on its way to where it is to be goes on at once
    coming = (observed.placement.flags & Flag.INCOMING) != 0
    useful = coming & (observed.placement.node == resumed_plan.target.node)
    useful &= live[observed.placement.node]
    going = {(int(steps.partition[i]), int(steps.target[i])) for i in copies}
    names, nodes = observed.partitions.names, observed.nodes.names
    dropped = {
        (names.index(one.partition), nodes.index(one.node)) for one in resumed_plan.cancelled
    }
    flying = observed.placement.node != serving
    for k in np.flatnonzero(coming & flying).tolist():
        one = int(begin.owner[k]), int(observed.placement.node[k])
        assert one in going or one in dropped, (seed, one)
    starts = {(int(steps.replica[i]), int(steps.target[i])): steps.start[i] for i in copies}
    late = [k for k in np.flatnonzero(useful).tolist()
            if starts.get((k, int(observed.placement.node[k])), 0.0) > 0.0]  # fmt: skip
    return len(late), int(useful.sum())


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_a_plan_is_gone_on_with_after_a_death(batch):
    late = useful = 0
    for seed in range(batch * 25, (batch + 1) * 25):
        _, plan, observed, serving = halfway(seed)
        one, every = judged(plan.resume(observed), observed, serving, seed)
        late, useful = late + one, useful + every
    assert late <= 0.1 * useful


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_a_target_that_changes_on_the_way_is_merged(batch):
    for seed in range(batch * 25, (batch + 1) * 25):
        rng, plan, observed, serving = halfway(seed)
        node = np.where(rng.random(len(serving)) < 0.5, plan.target.node, serving)
        node = np.where(observed.nodes.alive[node], node, plan.cluster.placement.node)
        target = plan.target.replaced(node.astype(np.int32), plan.target.leader)
        judged(plan.merge(target, observed=observed), observed, serving, seed)


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_a_step_that_is_tampered_with_is_found(batch):
    """Unless it does no harm, as the plain replay knows."""
    for seed in range(batch * 25, (batch + 1) * 25):
        cluster, plan = planned(seed)
        if not 0 < len(plan) <= 80:
            continue
        way, rows = tampered(
            np.random.default_rng([seed, 7]), rows_of(plan.steps), len(cluster.nodes)
        )
        steps, given = steps_of(rows), asked(plan)
        found = {one.kind for one in replay(cluster, steps, **given).breaches}
        assert found == {kind for kind, _ in plain_replay(cluster, steps, **given)}, (seed, way)


def carried_out(plan, start, finish, throttle):
    steps = replace(plan.steps, start=start, finish=finish)
    return replay(
        plan.cluster, steps, target=plan.target, throttle=throttle, joint=plan.protocol.joint,
        quorum=plan.protocol.quorum,
    )  # fmt: skip


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_whatever_the_clock_does_what_waits_for_the_arrows_is_safe(batch):
    for seed in range(batch * 50, (batch + 1) * 50):
        _, plan = planned(seed)
        steps = plan.steps
        lasts = np.random.default_rng(seed).exponential(1.0, len(steps)) + 0.01
        start = np.zeros(len(steps))
        finish = np.zeros(len(steps))
        for i in range(len(steps)):
            ahead = steps.before[steps.first[i] : steps.first[i + 1]]
            start[i] = finish[ahead].max(initial=0.0)
            finish[i] = start[i] + lasts[i] * (steps.kind[i] == StepKind.COPY)
        found = carried_out(plan, start, finish, plan.throttle)
        assert found.ok, (seed, str(found))


@pytest.mark.parametrize("batch", mostly_long(range(10), (0,)))
def test_waves_may_be_handed_out_whole(batch):
    """All copies of a wave begin before any of them has ended."""
    for seed in range(batch * 50, (batch + 1) * 50):
        _, plan = planned(seed)
        wave = 2.0 * plan.steps.wave
        start = wave + (plan.steps.kind != StepKind.COPY)
        found = carried_out(plan, start, wave + 1.0, None)
        assert found.ok, (seed, str(found))
