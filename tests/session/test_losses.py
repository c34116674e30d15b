"""Losses that take no search: proven best, audited in full, and put back bit by bit."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.methods.levelling.losses import standing
from evenkeel.model.placement import Role
from evenkeel.studies.scenario import survival
from evenkeel_kernels.levelling.losses.play import play_losses, play_series
from tests.naive.levelling.losses.plain import PlainLoss, has_to_be_made_room_for, is_proven_best
from tests.session.ready_clusters import cluster_to_the_brim, ready_cluster
from tests.support.effort import share_of_examples

seeds = st.integers(0, 2**32 - 1)
GOALS = [ek.Goals(level=None), ek.Goals(level=0.3), ek.Goals(level=0.05, leaders=0.5)]
BRIM = ek.Goals(level=0.1)
LOST = st.sets(st.integers(0, 13), min_size=1, max_size=3)


def placed(cluster, loss):
    """The placement that a loss comes to."""
    before = cluster.placement
    node, leader = before.node.copy(), before.leader.copy()
    node[loss.replica] = loss.node
    leader[before.owner[loss.replica]] = loss.slot
    return before.replaced(node, leader)


def same_bits(one, other):
    """Whether two arrays, or losses, are the same bit by bit."""
    if one is None or other is None:
        return one is other
    return all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, other, strict=True)
    )


@share_of_examples(0.5)
@given(seeds, LOST, st.sampled_from(GOALS))
def test_a_loss_is_what_independent_counts_say(seed, lost, goals):
    cluster = ready_cluster(seed)
    ready = standing(cluster)
    lost = sorted(n for n in lost if n < len(cluster.nodes))
    loss = None if ready is None else ready.lose(np.array(lost, np.int32), goals)
    if loss is None:
        return
    now = cluster.down(lost)
    after = placed(cluster, loss)
    assert is_proven_best(now, after, goals, len(loss.replica), one_more=loss.gave_way == 1)
    assert loss.gave_way == 0 or has_to_be_made_room_for(now, lost, goals)
    assert set(loss.replica[: len(loss.replica) - loss.gave_way].tolist()) == {
        k for k, n in enumerate(cluster.placement.node.tolist()) if n in lost
    }
    found = levelness(now, after)
    np.testing.assert_allclose(loss.loads, found.loads, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(loss.most, found.most, rtol=1e-12)
    np.testing.assert_allclose(loss.fair, found.fair, rtol=1e-12)
    assert np.array_equal(loss.leaders, found.leaders)
    danger = survival(now, now.placement)
    for name in ("lost", "under_min_active", "without_quorum"):
        assert np.array_equal(getattr(loss, name), getattr(danger, name)), name


def test_random_clusters_do_stand_ready_and_most_losses_take_no_search():
    ready = [standing(ready_cluster(seed)) for seed in range(25)]
    there = [one for one in ready if one is not None]
    found = [one.lose(np.array([1], np.int32), ek.Goals(level=None)) for one in there]
    assert len(there) > 12
    assert sum(loss is not None for loss in found) > 0.6 * len(there)


@pytest.mark.parametrize("heavier", [1.0, 2.0])
def test_who_lives_leads_what_a_lost_node_led_not_a_copy_yet_to_be_made(heavier):
    rng = np.random.default_rng(3)
    load = rng.lognormal(0.0, 0.5, (600, 1))
    rows = np.argsort(rng.random((600, 30)), axis=1)[:, :3]
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((30, 1), load.sum() / 4.0), load=load, leader_load=heavier * load,
        placement=rows,
    )  # fmt: skip
    ready = standing(cluster)
    assert ready is not None
    for n in (0, 1, 0):
        loss = ready.lose(np.array([n], np.int32), ek.Goals(level=None))
        assert loss is not None
        leads = placed(cluster, loss).leader_node
        orphans = np.flatnonzero(rows[:, 0] == n)
        assert (leads[orphans][:, None] == rows[orphans][:, 1:]).any(axis=1).all()


def is_last_to_lead(plain, order, k):
    """Whether nobody leads the partition of ``k`` unless ``k`` does, placed in this order."""
    cluster = plain.cluster
    placement, may = cluster.placement, cluster.nodes.may_lead
    mates = np.flatnonzero(placement.owner == placement.owner[k])
    later = order[order.index(k) + 1 :]
    voters = [j for j in mates.tolist() if j != k and placement.role[j] == Role.VOTER]
    return placement.role[k] == Role.VOTER and not any(
        j in later or (plain.node[j] >= 0 and may[plain.node[j]]) for j in voters
    )


@share_of_examples(0.3)
@given(seeds, st.integers(0, 13))
@example(1205, 0)  # one node may not lead, and somebody has to
def test_each_replica_goes_where_no_node_is_less_full_with_it(seed, n):
    """Every choice of ``play_losses`` against all nodes, each tried by the full audit."""
    cluster = ready_cluster(seed)
    ready = standing(cluster)
    if ready is None or n >= len(cluster.nodes):
        return
    goals = ek.Goals(level=None)
    loss = ready.lose(np.array([n], np.int32), goals)
    if loss is None or loss.gave_way:
        return
    now = cluster.down(n)
    target = bounds(now, goals).target
    plain, may = PlainLoss(now, [n]), now.nodes.may_receive
    load, placement = now.partitions.load, now.placement
    with np.errstate(divide="ignore", invalid="ignore"):
        for k, chosen in zip(loss.replica[:12].tolist(), loss.node[:12].tolist(), strict=True):
            p = placement.owner[k]
            orphan = placement.leader[p] >= 0 and plain.leader[p] < 0
            weight = load.leader[p] if orphan and placement.role[k] == 0 else plain.weight(k)
            full = ((plain.loads() + weight) / np.maximum(target, 1e-30)).max(1)
            open_ = [m for m in np.flatnonzero(may).tolist() if not plain.breaks(k, m)]
            assert chosen in open_
            if orphan and is_last_to_lead(plain, loss.replica.tolist(), k):
                open_ = [m for m in open_ if now.nodes.may_lead[m]] or open_
            assert full[chosen] <= full[open_].min() * (1 + 1e-6) + 1e-9
            plain.node[k] = chosen
            last = k == max(loss.replica[placement.owner[loss.replica] == p])
            if last:
                plain.leader[p] = int(loss.slot[loss.replica.tolist().index(k)])


def test_what_is_told_does_not_depend_on_what_was_played_before():
    cluster = next(
        one for one in map(ready_cluster, range(50)) if standing(one) and len(one.nodes) > 8
    )
    nodes = range(len(cluster.nodes))
    alone = [standing(cluster).lose(np.array([n], np.int32), GOALS[1]) for n in nodes]
    ready = standing(cluster)
    for _ in range(3):
        for n in (*nodes, *reversed(nodes)):
            assert same_bits(ready.lose(np.array([n], np.int32), GOALS[1]), alone[n])
            ready.lose(np.array([n, (n + 1) % len(nodes)], np.int32), GOALS[2])
    with ThreadPoolExecutor(4) as threads:
        side_by_side = threads.map(lambda n: ready.lose(np.array([n], np.int32), GOALS[1]), nodes)
        assert all(map(same_bits, side_by_side, alone))


@share_of_examples(0.3)
@given(seeds, LOST)
def test_everything_is_put_back(seed, lost):
    ready = standing(ready_cluster(seed))
    if ready is None:
        return
    lost = np.array(sorted(n for n in lost if n < len(ready.cluster.nodes)), np.int32)
    with ready.workspaces.one() as workspace:  # the one that is lent next, too
        pass
    arrays = {
        f"{part}.{name}": array
        for part in ("state", "scan")
        for name, array in getattr(workspace, part)._asdict().items()
        if isinstance(array, np.ndarray) and name not in ("scale", "score", "bits", "size")
    }
    arrays |= {"led": workspace.report.led, "forced": workspace.report.forced,
               "accepts": workspace.problem.nodes.accepts,
               "leads": workspace.problem.nodes.leads,
               "allowed": workspace.problem.rules.allowed,
               "gone": workspace.report.lost}  # fmt: skip
    before = {name: array.copy() for name, array in arrays.items()}
    ready.lose(lost, ek.Goals(level=0.1))
    for name, array in arrays.items():
        assert array.tobytes() == before[name].tobytes(), name


@pytest.mark.small
def test_a_loss_by_hand():
    """Four nodes in two zones, one replica in each; the leader that is lost leads where it goes."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 4, load=[[1.0]] * 4, leader_load=[[2.0]] * 4,
        placement=[[0, 2], [0, 3], [1, 2], [1, 3]], leader=[0, 1, 0, 0],
        domains={"zone": [*"aabb"]}, spread={"zone": 1},
    )  # fmt: skip
    loss = standing(cluster).lose(np.array([0], np.int32), ek.Goals(level=None))
    assert loss.replica.tolist() == [0, 2]
    assert loss.node.tolist() == [1, 1]
    assert loss.loads.tolist() == [[0.0], [7.0], [2.0], [3.0]] or loss.slot.tolist() == [1, 1]
    assert loss.lost.tolist() == [] and loss.without_quorum.tolist() == [0, 1]
    assert callable(play_losses)


@pytest.mark.small
def test_one_gives_way_where_a_replica_fits_nowhere_by_hand():
    """Nowhere is room for 6 until a 3 has left; the 5 could make room, too, but goes nowhere."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 4, load=[[6.0], [3.0], [3.0], [3.0], [3.0], [5.0]], leader=[-1] * 6,
        placement=[[0], [1], [1], [2], [2], [3]],
    )  # fmt: skip
    loss = standing(cluster).lose(np.array([0], np.int32), ek.Goals(level=None))
    assert loss.replica.tolist() == [0, 4] and loss.node.tolist() == [2, 3]
    assert loss.gave_way == 1 and loss.moved.tolist() == [9.0]
    assert loss.loads.tolist() == [[0.0], [6.0], [9.0], [8.0]]
    assert loss.replicas.tolist() == [0, 2, 2, 2]
    result = ek.Session(cluster).apply(ek.Changes(down=0)).solve(goals=ek.Goals(level=None))
    assert result.status == "feasible" and result.success
    assert (result.comparison.moves, result.comparison.forced) == (2, 1)


@share_of_examples(0.5)
@given(seeds, st.sets(st.integers(0, 5), min_size=1, max_size=2))
def test_where_one_gives_way_nothing_does_with_fewer_moves(seed, lost):
    """By the plain proof and, where it finds a placement, by CP-SAT."""
    cluster, lost = cluster_to_the_brim(seed), sorted(lost)
    loss = standing(cluster).lose(np.array(lost, np.int32), BRIM)
    if loss is None:
        return
    now = cluster.down(lost)
    moves, one_more = len(loss.replica), loss.gave_way == 1
    assert is_proven_best(now, placed(cluster, loss), BRIM, moves, one_more=one_more)
    if one_more:
        assert has_to_be_made_room_for(now, lost, BRIM)
        best = ek.solve(now, "exact", goals=BRIM, time_limit=5.0)
        assert best.comparison.moves >= moves or not best.goals_reached


def test_at_the_brim_one_often_gives_way():
    found = [
        standing(cluster_to_the_brim(seed)).lose(np.array([seed % 6], np.int32), BRIM)
        for seed in range(120)
    ]
    assert sum(loss is not None and loss.gave_way for loss in found) > 3


@share_of_examples(0.3)
@given(seeds, LOST, st.sampled_from(GOALS))
def test_results_measure_as_everything_else_does(seed, lost, goals):
    """Field by field what `audit`, `bounds`, `compare` and `levelness` say of a placement."""
    cluster = ready_cluster(seed)
    lost = sorted(n for n in lost if n < len(cluster.nodes))
    session = ek.Session(cluster).apply(ek.Changes(down=lost))
    result = session.solve(goals=goals)
    now = cluster.down(lost)
    after = now.placement.replaced(result.placement.node, result.placement.leader)
    assert result.audit.counts == audit(now, after).counts
    for one, other in (
        (result.bounds, bounds(now, goals)),
        (result.comparison, compare(now, now.placement, after)),
        (result.levelness, levelness(now, after)),
    ):
        for field in fields(one):
            left, right = getattr(one, field.name), getattr(other, field.name)
            if isinstance(left, np.ndarray):
                assert left.dtype == right.dtype and left.shape == right.shape, field.name
                np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9, err_msg=field.name)
            elif field.name.endswith("proof"):
                assert left.moves == right.moves
            else:
                assert left == pytest.approx(right), field.name


def told_of(series, i):
    """What a series tells of one loss, as ``lose`` tells it; None if that takes a search."""
    if series.moves[i] < 0:
        return None
    ends = np.append(0, series.ends.reshape(-1))[3 * i : 3 * i + 4].tolist()
    lists = [series.endangered[a:b] for a, b in pairwise(ends)]
    figures = [one[i] for one in (series.most, series.fair, series.moved)]
    return [series.moves[i], series.gave_way[i], *lists, *figures]


def told_alone(loss):
    """The same of a loss that was played by itself."""
    if loss is None:
        return None
    lists = [loss.lost, loss.under_min_active, loss.without_quorum]
    counts = [np.int64(len(loss.replica)), np.int64(loss.gave_way)]
    return [*counts, *lists, loss.most, loss.fair, loss.moved]


@share_of_examples(0.3)
@given(seeds, st.lists(LOST, max_size=6), st.sampled_from(GOALS), st.booleans())
def test_a_series_is_its_losses_one_by_one(seed, losses, goals, is_cramped):
    """Bit by bit, in any order, and however little room there is for partitions in danger."""
    ready = standing(ready_cluster(seed))
    if ready is None:
        return
    nodes = len(ready.cluster.nodes)
    left = [np.array(sorted(n for n in one if n < nodes), np.int32) for one in losses]
    alone = [told_alone(ready.lose(one, goals)) for one in left]
    with ready.workspaces.one() as workspace:
        assert len(workspace.endangered) == 3 * len(ready.cluster.placement.node)
    if is_cramped:
        most = max((sum(map(len, one[2:5])) for one in alone if one is not None), default=0)
        ready.workspaces._free = [replace(workspace, endangered=workspace.endangered[:most])]
    found = []
    while left:
        series = ready.lose_each(left, goals)
        played = len(series.moves)
        assert 0 < played <= len(left)
        found += [told_of(series, i) for i in range(played)]
        left = left[played:]
    assert len(found) == len(alone)
    assert all(map(same_bits, found, alone))


@pytest.mark.small
def test_a_series_by_hand():
    """Three nodes, two replicas each of three partitions: any may be lost, but no two of them."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 3, placement=[[0, 1], [1, 2], [2, 0]]
    )
    losses = [np.array(one, np.int32) for one in ([0], [0, 1], [2], [])]
    series = standing(cluster).lose_each(losses, ek.Goals(level=None))
    assert series.moves.tolist() == [2, -1, 2, 0]
    assert series.most.tolist() == [[0.75], [0.0], [0.75], [0.5]]
    assert series.moved.tolist() == [[2.0], [0.0], [2.0], [0.0]]
    assert series.ends.tolist() == [[0, 0, 2], [2, 2, 2], [2, 2, 4], [4, 4, 4]]
    assert series.endangered.tolist() == [0, 2, 1, 2]
    assert standing(cluster).lose_each(losses, ek.Cost()) is None
    assert callable(play_series)


@pytest.mark.small
def test_what_found_no_place_goes_first_in_a_second_attempt_by_hand():
    """4 would go to node 1, which is emptier, and then the second 3 fits nowhere."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[4.0], [3.0], [3.0], [4.0], [6.0]], leader=[-1] * 5,
        placement=[[0], [0], [0], [1], [2]],
    )  # fmt: skip
    loss = standing(cluster).lose(np.array([0], np.int32), ek.Goals(level=None))
    assert loss.gave_way == 0
    assert dict(zip(loss.replica.tolist(), loss.node.tolist(), strict=True)) == {0: 2, 1: 1, 2: 1}
    assert loss.loads.tolist() == [[0.0], [10.0], [10.0]]
