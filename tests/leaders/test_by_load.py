"""Leaders by load: bound, answer and certificate against trying everything; the kernels' counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.model.errors import InvalidInput
from evenkeel_kernels.core.leadership import no_leads
from evenkeel_kernels.leaders import level_by_load as kernel
from evenkeel_kernels.leaders.level_by_load import LeaderAssignment, LeadRoom
from tests.naive.leaders import level_by_load as naive
from tests.support.effort import mostly_long

BY_LOAD = ek.options.Leaders(by="load")
SEEDS = st.integers(0, 2**32 - 1)
GENEROUS = settings(deadline=None, max_examples=40)


def tiny(rng, dimensions=None):
    """A cluster of up to 6 nodes and 7 partitions, small loads in whole numbers."""
    nodes, partitions = int(rng.integers(2, 7)), int(rng.integers(1, 8))
    replicas = min(nodes, int(rng.integers(1, 4)))
    dimensions = dimensions or int(rng.integers(1, 4))
    able = rng.random(nodes) > 0.15
    load = rng.integers(0, 6, (partitions, dimensions)).astype(float)
    extra = rng.integers(0, 6, load.shape)
    extra[0] += 1
    rows = [rng.choice(nodes, replicas, replace=False).tolist() for _ in range(partitions)]
    cluster = ek.Cluster.from_arrays(
        capacity=rng.integers(20, 60, (nodes, dimensions)), load=load, leader_load=load + extra,
        placement=rows, leads=able,
    )  # fmt: skip
    return cluster, able


def solved(cluster):
    return ek.solve(cluster, "leaders", goals=ek.Goals(level=None), options=BY_LOAD)


def level_of(cluster, result):
    """Level of the fullest node in the dimensions that leading changes, by the audit's loads."""
    load = cluster.partitions.load
    which = (load.leader != load.voter).any(axis=0)
    return float(result.levelness.ratio[which].max())


@pytest.mark.parametrize("seed", mostly_long(range(4), [0]))
def test_bound_and_answer_enclose_the_optimum(seed):
    rng = np.random.default_rng(seed)
    near = []
    for _ in range(40):
        cluster, able = tiny(rng)
        rows = np.asarray(cluster.placement)
        result = solved(cluster)
        proof = result.native
        assert result.comparison.moves == 0
        assert not result.regressions
        nobody = sum(not able[row].any() for row in rows)
        assert proof.leaderless >= nobody
        if nobody:
            continue
        best, changes = naive.least(cluster, able)
        assert proof.leaderless == 0 or best == np.inf
        if proof.leaderless:
            continue
        assert proof.bound <= best * (1 + 1e-8)
        assert proof.level >= best * (1 - 1e-8)
        assert proof.level == pytest.approx(level_of(cluster, result), rel=1e-9)
        near.append(proof.level / best - 1.0)
        if near[-1] < 1e-8:
            assert proof.changes >= changes
        if result.stop_reason == "optimum":
            assert proof.gap < 1e-8 > near[-1]
    assert np.mean(np.array(near) < 0.01) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_one_dimension_and_equal_leads_are_exact_with_the_fewest_changes(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        cluster, able = tiny(rng, dimensions=1)
        load = cluster.partitions.load.voter
        cluster = ek.Cluster.from_arrays(
            capacity=cluster.nodes.capacity, load=load, leader_load=load + 2.0,
            placement=np.asarray(cluster.placement), leads=able,
        )  # fmt: skip
        proof = solved(cluster).native
        if proof.leaderless:
            continue
        assert proof.gap == 0.0
        assert (round(proof.level, 9), proof.changes) == naive.least(cluster, able)


@given(SEEDS)
@GENEROUS
def test_the_certificate_gives_the_bound(seed):
    """Prices, 1 in all: whoever leads, some node is at least as full as all cost together."""
    cluster, able = tiny(np.random.default_rng(seed))
    result = solved(cluster)
    proof = result.native
    if proof.leaderless or proof.price.size == 0:
        return
    assert proof.price.min() >= 0.0
    assert proof.price.sum() == pytest.approx(1.0)
    load = cluster.partitions.load
    extra = load.leader - load.voter
    which = np.flatnonzero((extra != 0.0).any(axis=0))
    rows = np.asarray(cluster.placement)
    base = np.zeros((len(cluster.nodes), extra.shape[1]))
    for p, row in enumerate(rows):
        base[row] += load.voter[p]
    target = cluster.nodes.capacity * (
        (base.sum(axis=0) + extra.sum(axis=0)) / cluster.nodes.capacity.sum(axis=0)
    )
    cost = (proof.price * (base / target)[:, which]).sum()
    for p, row in enumerate(rows):
        cost += min((proof.price[n] * (extra[p] / target[n])[which]).sum() for n in row if able[n])
    assert cost == pytest.approx(proof.bound)


@given(SEEDS)
@GENEROUS
def test_same_seed_same_bits_and_again_changes_nobody_for_nothing(seed):
    cluster, _ = tiny(np.random.default_rng(seed))
    one, same = solved(cluster), solved(cluster)
    assert one.placement.leader.tolist() == same.placement.leader.tolist()
    again = solved(cluster.with_placement(one.placement))
    assert again.native.level <= one.native.level * (1 + 1e-8)
    if one.stop_reason == "optimum":
        assert again.native.changes == 0


def test_preferences_come_before_levelness():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 2, load=[[1.0]] * 4, leader_load=[[3.0], [4.0], [5.0], [6.0]],
        placement=[[0, 1]] * 4, domains={"zone": ["a", "b"]}, rules=[ek.Rule(lead=["zone=a"])],
        rule=[0] * 4,
    )  # fmt: skip
    result = solved(cluster)
    assert result.levelness.leaders.tolist() == [4, 0]
    assert result.native.gap == pytest.approx(0.0)


def test_leads_that_weigh_nothing_stay():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0, 1], [0, 1], [1, 0]]
    )
    proof = solved(cluster).native
    assert (proof.changes, proof.level, proof.gap) == (0, 0.0, 0.0)


def test_a_lead_that_lightens():
    """A leader may weigh less than a follower: then the fullest node wants to lead."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[2.0]] * 2, leader_load=[[1.0]] * 2, placement=[[0, 1]] * 2
    )
    result = solved(cluster)
    assert result.levelness.leaders.tolist() == [1, 1]
    assert result.native.gap == pytest.approx(0.0)


def test_a_large_one_comes_near_its_bound():
    rng = np.random.default_rng(1)
    rows = np.argsort(rng.random((1500, 30)), axis=1)[:, :3]
    load = np.exp(rng.standard_normal((1500, 2)))
    base = np.zeros((30, 2))
    np.add.at(base, rows.ravel(), np.repeat(load, 3, axis=0))
    cluster = ek.Cluster.from_arrays(
        capacity=2.0 * base, load=load, leader_load=load * [2.0, 1.5], placement=rows
    )
    proof = solved(cluster).native
    assert proof.gap < 0.005
    assert 0 < proof.changes < 1500


def test_an_unknown_choice_is_refused():
    with pytest.raises(InvalidInput, match="number"):
        ek.options.Leaders(by="weight")


def random_room(rng, nodes, partitions):
    """Rooms of nodes and of the zones that they are in, some of them short; base only."""
    columns, zones = int(rng.integers(0, 3)), int(rng.integers(1, 3))
    zone = np.where(rng.random(nodes) < 0.8, nodes + rng.integers(0, zones, nodes), -1)
    base = rng.integers(0, 4, (nodes + zones, columns)) / 4.0
    return LeadRoom(
        row=np.stack([np.arange(nodes), zone], axis=1),
        weight=rng.integers(-1, 3, (partitions, columns)) / 4.0,
        base=base,
        most=base + rng.integers(0, 9, base.shape) / 4.0,
        load=base.copy(),
    )


def random_duty(seed):
    """A choice, and the levels below it."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    width = rng.integers(1, 4, partitions)
    first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    dimensions = int(rng.integers(1, 3))
    node = rng.integers(0, nodes, first[-1])
    extra = rng.integers(-1 if rng.random() < 0.3 else 0, 4, (partitions, dimensions)) / 8.0
    share = np.repeat(extra, width, axis=0) * rng.choice([1.0, 2.0], (nodes, dimensions))[node]
    base = rng.integers(0, 5, (nodes, dimensions)) / 4.0
    assignment = LeaderAssignment(
        first=first,
        node=node,
        share=share,
        taken=first[:-1] + rng.integers(0, width),
        level=np.zeros_like(base),
        leading=no_leads(nodes, partitions),
        room=random_room(rng, nodes, partitions),
    )
    kernel.rebuild(assignment, base)
    return assignment, base


def assert_room_is_kept(assignment, over):
    """Loads are what leads add up to, and nothing is too full but what was."""
    load = naive.row_loads(assignment)
    assert np.allclose(assignment.room.load, load)
    assert (load <= assignment.room.most + 1e-12)[~over].all()


@pytest.mark.small
@given(SEEDS, st.sampled_from([0.5, 1.0, 1.5]))
@GENEROUS
def test_searches_lower_the_penalty_and_keep_their_counts(seed, threshold):
    assignment, base = random_duty(seed)
    over = naive.row_loads(assignment) > assignment.room.most
    for step in range(4):
        before = naive.penalty(naive.levels(assignment, base, assignment.taken.tolist()), threshold)
        if step % 2 == 0:
            kernel.descend(assignment, threshold)
        else:
            kernel.trade(assignment, threshold, np.array([1000]))
        level = naive.levels(assignment, base, assignment.taken.tolist())
        assert naive.penalty(level, threshold) <= before
        assert np.allclose(assignment.level, level)
        assert_room_is_kept(assignment, over)
        assert kernel.fullest(assignment) == pytest.approx(level.max())
        assert (
            assignment.leading.led.tolist()
            == np.bincount(assignment.node[assignment.taken], minlength=len(base)).tolist()
        )
    kernel.perturb(assignment, threshold, 50, 0.1, 0.001, np.array([seed + 1], np.uint64))
    assert np.allclose(assignment.level, naive.levels(assignment, base, assignment.taken.tolist()))
    assert_room_is_kept(assignment, over)
    owner = np.repeat(np.arange(len(assignment.taken)), np.diff(assignment.first))
    assert (owner[assignment.taken] == np.arange(len(assignment.taken))).all()


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_a_descent_ends_where_no_lead_lowers_the_penalty(seed):
    assignment, base = random_duty(seed)
    kernel.descend(assignment, 1.0)
    taken = assignment.taken.tolist()
    least = naive.penalty(naive.levels(assignment, base, taken), 1.0)
    full = (naive.levels(assignment, base, taken) > 1.0).any(axis=1)
    for p, a in enumerate(taken):
        for b in (
            range(assignment.first[p], assignment.first[p + 1]) if full[assignment.node[a]] else ()
        ):
            other = [*taken[:p], b, *taken[p + 1 :]]
            if naive.overfills(assignment, p, b):
                continue
            assert naive.penalty(naive.levels(assignment, base, other), 1.0) >= least - 1e-12


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_going_back_passes_no_limit(seed):
    assignment, base = random_duty(seed)
    began = assignment.first[:-1].copy()
    most = kernel.fullest(assignment)
    over = naive.row_loads(assignment) > assignment.room.most
    apart = np.count_nonzero(assignment.taken != began)
    restored = kernel.restore(assignment, began, most)
    assert np.count_nonzero(assignment.taken != began) == apart - restored
    assert naive.levels(assignment, base, assignment.taken.tolist()).max() <= most + 1e-12
    assert_room_is_kept(assignment, over)
