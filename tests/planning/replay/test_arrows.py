"""A plan is safe by its arrows alone: what waits for no room that it needs is found."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import evenkeel as ek
from tests.naive.planning.paces import overflows
from tests.naive.planning.replay import Run
from tests.naive.planning.replay import replay as plain_replay
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of
from tests.support.plans.tight_clusters import tight, tiny


def without(plan, *arrows):
    """The plan without some of its arrows."""
    steps = plan.steps
    kept = np.ones(len(steps.before), bool)
    kept[list(arrows)] = False
    waits = np.repeat(np.arange(len(steps)), np.diff(steps.first))[kept]
    first = np.append(0, np.cumsum(np.bincount(waits, minlength=len(steps))))
    return replace(plan, steps=replace(steps, first=first, before=steps.before[kept]))


def across(plan):
    """The arrows from one partition to another."""
    steps = plan.steps
    waits = np.repeat(np.arange(len(steps)), np.diff(steps.first))
    return np.flatnonzero(steps.partition[waits] != steps.partition[steps.before]).tolist()


def full(placement, capacity, target):
    cluster = ek.Cluster.from_arrays(
        capacity=[[one] for one in capacity], load=[[1.0]] * len(placement),
        placement=[[n] for n in placement], transient=["d0"],
    )  # fmt: skip
    return ek.plan(cluster, cluster.placement.replaced(np.array(target, np.int32),
                                                       cluster.placement.leader))  # fmt: skip


def test_an_arrow_that_gives_room_is_missed():
    plan = full([0, 1], [1.0] * 3, [1, 2])
    (arrow,) = across(plan)
    found = without(plan, arrow).check()
    assert [str(one) for one in found.breaches] == ["step 5, 1 s: room at node n1, d0 by 1"]
    assert plan.check().ok


def test_an_arrow_is_not_missed_where_others_lead_the_same_way():
    """All in one row: what a copy gets from a partition two before it needs no arrow of its own."""
    plan = full([0, 1, 2, 2], [2.0, 1.0, 2.0, 2.0], [2, 2, 3, 3])
    steps = plan.steps
    waits = np.repeat(np.arange(len(steps)), np.diff(steps.first))
    ends = {p: int(np.flatnonzero(steps.partition == p)[-1]) for p in range(4)}
    begins = {p: int(np.flatnonzero(steps.partition == p)[0]) for p in range(4)}
    pairs = [*zip(waits.tolist(), steps.before.tolist(), strict=True)]
    # all in one row: each partition begins when the one before it has ended
    row = sorted(range(4), key=begins.get)
    pairs = [(a, b) for a, b in pairs if steps.partition[a] == steps.partition[b]]
    pairs += [(begins[late], ends[soon]) for soon, late in pairwise(row)]
    pairs.sort()
    start = np.array([float(row.index(p)) for p in steps.partition])
    lasts = (steps.finish > steps.start) * 1.0
    start = np.where(lasts > 0.0, start, start + 1.0)
    chained = replace(
        steps, before=np.array([b for _, b in pairs], np.int32),
        first=np.searchsorted([a for a, _ in pairs], np.arange(len(steps) + 1)),
        start=start, finish=start + lasts, wave=np.arange(len(steps), dtype=np.int32),
    )  # fmt: skip
    in_a_row = replace(plan, steps=chained)
    assert in_a_row.check().ok
    assert {*without(in_a_row, *across(in_a_row)).check().counts} == {"room"}


def test_what_gives_room_gives_it_once():
    """Two come for the room of one: that both wait for the same removal is not enough."""
    plan = full([0, 0, 1, 1], [2.0, 2.0, 2.0], [1, 1, 2, 2])
    assert plan.check().ok
    steps = plan.steps
    gives = [i for i in range(len(steps)) if steps.kind[i] == 4 and steps.source[i] == 1]
    assert len(gives) == 2
    before = steps.before.copy()
    before[across(plan)] = gives[0]
    found = replace(plan, steps=replace(steps, before=before)).check()
    assert {*found.counts} == {"room"}


def trades_of(plan):
    """What is free of each place, and what each step takes of it, by the plain replay."""
    run = Run(plan.cluster, rows_of(plan.steps), plan.target, plan.throttle,
              plan.protocol.joint, plan.protocol.quorum)  # fmt: skip
    run.run()
    return [(run.free[key], run.trades[key]) for key in run.free]


@pytest.mark.parametrize("batch", mostly_long(range(5), (0,)))
def test_each_arrow_is_missed_where_some_pace_overfills_a_place(batch):
    needed = 0
    for seed in range(batch * 20, (batch + 1) * 20):
        plan = ek.plan(*tiny(seed))
        if len(plan) > 20:
            continue
        for arrow in range(len(plan.steps.before)):
            loose = without(plan, arrow)
            before = [row.before for row in rows_of(loose.steps)]
            too_full = any(overflows(free, trades, before) for free, trades in trades_of(loose))
            assert ("room" in loose.check().counts) == too_full, (seed, arrow)
            needed += too_full
    assert needed > 3


@pytest.mark.parametrize("batch", mostly_long(range(5), (0,)))
def test_arrows_that_are_lost_are_missed_as_the_plain_replay_misses_them(batch):
    lost = 0
    for seed in range(batch * 50, (batch + 1) * 50):
        cluster, target, throttle, protocol = tight(seed)
        plan = ek.plan(cluster, target, throttle=throttle, protocol=protocol)
        if not 0 < len(plan) <= 80:
            continue
        rng = np.random.default_rng([seed, 11])
        some = across(plan)
        loose = without(plan, *(a for a in some if rng.random() < 0.3))
        held = {"target": plan.target, "throttle": plan.throttle, "joint": plan.protocol.joint,
                "quorum": plan.protocol.quorum}  # fmt: skip
        expected = plain_replay(cluster, loose.steps, **held)
        found = {(one.kind, one.step) for one in loose.check().breaches}
        assert found == expected, seed
        lost += "room" in {kind for kind, _ in found}
    assert lost > 3
