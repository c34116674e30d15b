"""The queue over whole clusters: everything mended, no thrash, and at rest when it says so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.systems.cockroach.allocator.actions import ACTIONS
from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster, fleet_of
from evenkeel.systems.cockroach.allocator.leases import rng_state_of
from evenkeel.systems.cockroach.allocator.range_decider import ReplicateRun
from evenkeel.systems.cockroach.allocator.settings import Cockroach
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
from evenkeel_kernels.cockroach.context import make_members
from evenkeel_kernels.cockroach.replicate_queue import decide_alone
from tests.naive.cockroach import queue as naive
from tests.support.cockroach.problems import compiled, problems

QUEUE_ALONE = Cockroach(mode="off")


def grown(seed, *, ranges=3000, old=27, new=9, zones=9, dead=()):
    """Ranges with a replica in each of three regions, level over the old stores of nine zones."""
    random = np.random.default_rng(seed)
    count = old + new
    regions = np.argsort(random.random((ranges, 3)), axis=1) * 3
    zone = regions + random.integers(0, 3, (ranges, 3))
    rows = zone + zones * random.integers(0, old // zones, (ranges, 3))
    return cockroach_cluster(
        localities=[f"region=r{s % zones // 3},zone=z{s % zones}" for s in range(count)],
        replicas=rows,
        configs=[{"num_replicas": 3}],
        status=["dead" if s in dead else "available" for s in range(count)],
    )


def thrash(log):
    """Replicas that came back to a store that their range had left."""
    gone, back = set(), 0
    for p, source, target in zip(log.range, log.source, log.target, strict=True):
        back += target >= 0 and (p, target) in gone
        gone.add((p, source))
    return back


@pytest.mark.parametrize("seed", range(3))
def test_new_stores_are_filled_without_thrash_and_then_all_is_quiet(seed):
    cluster = grown(seed)
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE, seed=seed)
    run = result.native
    assert run.converged
    assert len(run.log) > 0
    assert thrash(run.log) == 0
    counts = np.bincount(np.asarray(result.placement).ravel(), minlength=36)
    mean = counts.mean()
    assert counts.min() >= mean - max(0.05 * mean, 2) - 2
    regions = np.sort(np.asarray(result.placement) % 9 // 3, axis=1)
    assert (regions == [0, 1, 2]).all()
    again = ek.solve(
        cluster.with_placement(result.placement), "cockroach", options=QUEUE_ALONE, seed=seed + 1
    )
    assert len(again.native.log) == 0


def test_the_same_seed_gives_the_same_decisions():
    cluster = grown(5, ranges=600)
    one, other = (ek.solve(cluster, "cockroach", seed=3).native.log for _ in range(2))
    for name in ("kind", "range", "source", "target", "score"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert not np.array_equal(ek.solve(cluster, "cockroach", seed=4).native.log.target, one.target)


def test_dead_stores_are_left_and_the_reason_is_told():
    cluster = grown(1, ranges=900, dead=(0, 9))
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE)
    placed = np.asarray(result.placement)
    assert not np.isin(placed, [0, 9]).any()
    assert (placed >= 0).all()
    told = list(result.native.log.lines(cluster))
    assert any("ReplaceDeadVoter n0 -> " in line for line in told)
    assert any("nearer to the mean" in line for line in told)
    lost = (np.asarray(cluster.placement) == 0).any(axis=1)
    assert (result.native.log.range[: lost.sum()] < len(lost)).all()


def test_repairs_come_in_the_order_of_their_priorities():
    cluster = cockroach_cluster(
        localities=[""] * 8,
        replicas=[[0, 1, 2, 3], [0, 1, 7, -1], [1, 2, -1, -1], [0, 1, 6, -1]],
        configs=[{"num_replicas": 3}],
        status=["available"] * 6 + ["decommissioning", "dead"],
    )
    log = ek.solve(cluster, "cockroach", options=QUEUE_ALONE).native.log
    mended = [(int(p), log.action(i)) for i, p in enumerate(log.range)][:4]
    assert mended == [
        (1, "ReplaceDeadVoter"),
        (2, "AddVoter"),
        (3, "ReplaceDecommissioningVoter"),
        (0, "RemoveVoter"),
    ]


def test_a_range_without_a_quorum_waits_and_is_named():
    cluster = cockroach_cluster(
        localities=[""] * 5,
        replicas=[[0, 1, 2], [2, 3, 4]],
        configs=[{"num_replicas": 3}],
        status=["dead", "dead", "available", "available", "available"],
    )
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE)
    assert result.native.stuck.tolist() == [0]
    assert np.asarray(result.placement)[0].tolist() == [0, 1, 2]
    assert any("cannot be done" in text for text in result.warnings)


def test_a_non_voter_becomes_the_voter_that_constraints_need():
    cluster = cockroach_cluster(
        localities=["dc=a", "dc=a", "dc=b", "dc=b", "dc=c", "dc=c"],
        replicas=[[2, 4, 0, 1]],
        roles=[[0, 0, 1, 1]],
        configs=[{"num_replicas": 4, "num_voters": 2, "voter_constraints": {"+dc=a": 2}}],
    )
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE)
    row = np.asarray(result.placement)[0]
    voters = {int(n) for n, role in zip(row, result.placement.role, strict=True) if role == 0}
    assert voters == {0, 1}


def test_a_store_moves_to_its_sister_but_never_to_another_s_host():
    """Two stores on each of three hosts: only the pairs of one host can change places."""
    count = 300
    cluster = cockroach_cluster(
        localities=[""] * 6, hosts=[1, 1, 2, 2, 3, 3], replicas=[[0, 2, 4]] * count,
        configs=[{"num_replicas": 3}],
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE)
    placed = np.asarray(result.placement)
    assert (np.sort(placed // 2, axis=1) == [0, 1, 2]).all()
    assert np.bincount(placed.ravel(), minlength=6).min() > 0.9 * count / 2


def test_a_full_disk_is_emptied_to_below_its_limit_and_no_other_filled():
    cluster = cockroach_cluster(
        localities=[""] * 4,
        replicas=[[0, 1, 2]] * 95,
        configs=[{"num_replicas": 3}],
        size=1.0,
        capacity=[98.0, 1000.0, 1000.0, 1000.0],
    )
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE)
    counts = np.bincount(np.asarray(result.placement).ravel(), minlength=4)
    assert counts[0] < 0.95 * 98.0
    assert thrash(result.native.log) == 0


@pytest.mark.small
def test_work_goes_on_where_it_stopped():
    cluster = grown(2, ranges=60, old=9, new=9)
    whole, sliced = (
        ReplicateRun(fleet_of(cluster), room_to_log(5000), nothing_left(60)) for _ in range(2)
    )
    while whole.step(10_000) or whole.next_pass():
        pass
    while sliced.step(7) or sliced.next_pass():
        pass
    assert np.array_equal(whole.fleet.ranges.store, sliced.fleet.ranges.store)
    assert whole.decisions == sliced.decisions > 0
    assert whole.fleet.stores.amount[kernel.RANGES].sum() == 180


@pytest.mark.small
def test_what_is_booked_is_what_is_there():
    cluster = grown(3, ranges=60, old=9, new=9, dead=(2,))
    run = ReplicateRun(fleet_of(cluster), room_to_log(5000), nothing_left(60))
    while run.step(1000) or run.next_pass():
        pass
    here = run.fleet.ranges.store
    counts = np.bincount(here[here >= 0], minlength=18)
    assert run.fleet.stores.amount[kernel.RANGES].tolist() == counts.tolist()
    slots = run.fleet.ranges.first[:-1] + run.fleet.ranges.lease
    leases = np.bincount(here[slots], minlength=18)
    assert run.fleet.stores.amount[kernel.LEASES].tolist() == leases.tolist()


def test_budgets_are_refused():
    with pytest.raises(ek.InvalidInput, match="cockroach cannot keep this"):
        ek.solve(grown(0, ranges=9), "cockroach", limits=ek.Limits(moves=3))


@pytest.mark.parametrize("seed", range(12))
def test_complete_ranges_in_trouble_come_to_rest_without_thrash(seed):
    """Some stores are dead or leaving; localities are of unequal depth."""
    random = np.random.default_rng(seed)
    stores, ranges, replicas = int(random.integers(6, 25)), 150, int(random.integers(1, 5))
    used = int(random.integers(max(replicas, stores // 2), stores))
    states = ["available"] * 6 + ["dead", "decommissioning", "draining", "suspect"]
    cluster = cockroach_cluster(
        localities=[
            f"region=r{random.integers(0, 3)}"
            + (f",zone=z{s % 4}" if random.random() < 0.8 else "")
            for s in range(stores)
        ],
        replicas=np.argsort(random.random((ranges, used)), axis=1)[:, :replicas],
        configs=[{"num_replicas": replicas}],
        status=random.choice(states, stores).tolist(),
    )
    result = ek.solve(cluster, "cockroach", options=QUEUE_ALONE, seed=seed)
    assert thrash(result.native.log) == 0
    if result.native.converged:
        settled = cluster.with_placement(result.placement)
        again = ek.solve(settled, "cockroach", options=QUEUE_ALONE, seed=seed)
        assert len(again.native.log) == 0


@st.composite
def ranges_in_need(draw):
    """A range that lacks replicas, has too many, learners, or a past, somewhere in a cluster."""
    problem, voters, others = draw(problems())
    everywhere = range(len(problem.stores))
    roles = dict.fromkeys(voters, naive.VOTER) | dict.fromkeys(others, naive.NON_VOTER)
    for s in draw(st.sets(st.sampled_from(everywhere), max_size=2)):
        change = draw(st.sampled_from([None, naive.VOTER, naive.NON_VOTER, naive.LEARNER]))
        roles.pop(s, None)
        if change is not None:
            roles[s] = change
    return problem, naive.Range(
        slots=draw(st.permutations(sorted(roles.items()))),
        left=draw(st.lists(st.sampled_from(everywhere), max_size=naive.REMEMBERED, unique=True)),
        size=draw(st.sampled_from([0.0, 0.0, 5.0, 60.0])),
        joint=draw(st.integers(0, 9)) == 0,
    )


@pytest.mark.small
@settings(max_examples=75)
@given(ranges_in_need())
def test_a_decision_is_one_of_those_that_may_come_of_the_draws(case):
    problem, one = case
    allocator, view = compiled(problem)
    view.amount[kernel.BYTES] = [100.0 * store.used for store in problem.stores]
    count, width = len(one.slots), len(one.slots) + 2
    ranges = kernel.Ranges(
        first=np.array([0, count]),
        store=np.array([s for s, _ in one.slots], np.int32),
        role=np.array([role for _, role in one.slots], np.uint8),
        lease=np.full(1, -1, np.int16),
        config=np.zeros(1, np.int32),
        replica_load=np.zeros((kernel.AMOUNTS, 1)),
        lease_load=np.zeros((kernel.AMOUNTS, 1)),
        raft=np.full(1, kernel.NOT_MODELLED, np.int8),
        up_to_date=np.ones(count, bool),
        behind=np.zeros(count, bool),
        joint=np.array([one.joint]),
    )
    ranges.replica_load[kernel.BYTES] = one.size
    left = nothing_left(1)
    left.store[0, : len(one.left)] = one.left
    counts = [s.host for s in problem.stores if s.status != kernel.DECOMMISSIONING]
    expected = naive.decide(problem, one)
    for seed in range(12):
        step = decide_alone(
            ranges,
            allocator.context(view, make_members(width)),
            len(set(counts)),
            0,
            left,
            rng_state_of(seed),
        )
        named = (step.came, ACTIONS[step.action], step.role, step.target, step.removed)
        assert named in expected


@pytest.mark.parametrize("name", ["bytes", "footprint"])
def test_a_disk_is_too_full_whatever_the_dimension_of_bytes_is_called(name):
    stores = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 4,
        load=[[48.0]] * 2 + [[1.0]] * 6,
        dimensions=[name],
        bytes=name,
        placement=[[n] for n in (2, 2, 0, 0, 1, 1, 3, 3)],
        replicas=1,
        leader=[0] * 8,
    )
    assert len(ek.solve(stores, "cockroach").moves) == 1
