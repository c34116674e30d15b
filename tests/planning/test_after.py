"""What is to be seen after each wave, against the replay of the waves up to it."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.planning.replay import replay
from evenkeel.planning.steps import StepKind
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.role_clusters import with_roles
from tests.support.plans.tight_clusters import tight

COPY, PROMOTE, LEAD, DEMOTE, REMOVE, SWAP, _ = StepKind


def drawn(seed):
    if seed % 2:
        cluster, target, protocol = with_roles(seed)
        return ek.plan(cluster, target, protocol=protocol)
    cluster, target, throttle, protocol = tight(seed)
    return ek.plan(cluster, target, throttle=throttle, protocol=protocol)


def begun(plan, waves):
    """The steps of the first waves alone."""
    some = sorted(i for wave in plan.waves[:waves] for i in wave.tolist())
    place = {i: at for at, i in enumerate(some)}
    rows = rows_of(plan.steps)
    return steps_of(
        [rows[i]._replace(before=tuple(place[b] for b in rows[i].before)) for i in some]
    )


@pytest.mark.parametrize("batch", mostly_long(range(3), (0,)))
def test_the_replay_of_some_waves_ends_there(batch):
    waves = 0
    for seed in range(batch * 30, (batch + 1) * 30):
        plan = drawn(seed)
        for done in range(len(plan.waves) + 1):
            seen = plan.after(done)
            asked = {"joint": plan.protocol.joint, "quorum": plan.protocol.quorum}
            found = replay(
                plan.cluster, begun(plan, done), target=seen, towards=plan.target, **asked
            )
            assert found.ok, (seed, done, str(found))
            assert found.end == "target", (seed, done)
            rest = plan.resume(seen)
            assert rest.check().ok, (seed, done)
            waves += 1
        for name in ("node", "role", "flags", "leader"):
            last = getattr(plan.after(len(plan.waves)), name)
            assert np.array_equal(last, getattr(plan.end, name)), (seed, name)
    assert waves > 60


def test_what_serves_in_a_later_wave_is_on_its_way():
    """A plan of another tool, which copies in one wave and exchanges in the next."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1], [0, 1]], leader=[1, 1]
    )
    target = cluster.placement.replaced(np.array([2, 1, 3, 1], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(copies=1))
    assert len(plan.waves) == 2
    later = plan.steps.kind != COPY
    steps = replace(plan.steps, wave=(2 * plan.steps.wave + later).astype(np.int32))
    slow = replace(plan, steps=steps)
    assert slow.check().ok
    assert [slow.after(n).node.tolist() for n in range(5)] == [
        [0, 1, 0, 1], [2, 1, 0, 1], [2, 1, 0, 1], [2, 1, 3, 1], [2, 1, 3, 1],
    ]  # fmt: skip
    flying = [(slow.after(n).flags & Flag.INCOMING) != 0 for n in range(5)]
    assert [np.flatnonzero(one).tolist() for one in flying] == [[], [0], [], [2], []]
    assert slow.progress(slow.after(1)).under_way.any()


@pytest.mark.parametrize("waves", [-1, 3, 1.5, "1"])
def test_there_are_no_other_waves(waves):
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]])
    plan = ek.plan(cluster, cluster.placement)
    assert plan.after(0).node.tolist() == [0]
    with pytest.raises(ek.InvalidInput, match="must be 0 to 0"):
        plan.after(waves)
