"""The frontier: levelness against moves, none beaten by another, each with its bound."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.instances import as_cluster, golden


@pytest.fixture(scope="module")
def found():
    return ek.frontier(as_cluster(golden("medium")), points=6)


def test_points_cost_more_and_are_more_level_one_after_the_other(found):
    assert len(found.results) >= 4
    assert (np.diff(found.moves) > 0).all()
    assert (np.diff(found.level) < 0).all()
    assert found.level[-1] <= 1.002


def test_every_point_is_valid_and_above_its_bound(found):
    assert all(one.audit.hard == 0 for one in found.results)
    assert (found.moves >= found.moves_at_least).all()
    assert (found.moves <= 1.15 * found.moves_at_least).all()


def test_the_best_plan_within_a_number_of_moves_lies_between_two_points(found):
    between = int(found.moves[1] + found.moves[2]) // 2
    best = found.within(between)
    assert best.comparison.moves <= between
    level = best.levelness.ratio.max()
    assert found.level[2] - 1e-9 <= level <= found.level[1]


def test_the_ends_are_points_themselves(found):
    assert found.within(10**9) is found.results[-1]
    assert found.within(int(found.moves[0])).comparison.moves == found.moves[0]


def test_too_few_moves_for_the_repairs_is_an_error_that_says_how_many_they_take(found):
    with pytest.raises(ek.InvalidInput, match=str(int(found.moves[0]))):
        found.within(0)


def test_arguments_are_checked_together():
    cluster = ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], replicas=1)
    with pytest.raises(ek.InvalidInput) as error:
        ek.frontier(cluster, points=1, goals=ek.Goals(level={"d0": 0.1}))
    assert [fault.path for fault in error.value.faults] == ["points", "goals"]


def test_a_level_cluster_has_one_point():
    cluster = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]])
    assert ek.frontier(cluster, points=3).moves.tolist() == [0]


@pytest.mark.parametrize("seed", [31900031, 31900032, 31900052, 31900087])
def test_no_point_is_beaten_by_another_in_moves_level_and_leader_changes(seed):
    rng = np.random.default_rng(seed)
    nodes, partitions, replicas, dimensions = (
        int(rng.integers(low, high)) for low, high in ((3, 12), (5, 60), (1, 3), (1, 3))
    )
    shape = partitions, dimensions
    load = rng.uniform(0.1, 2, shape) if rng.random() < 0.6 else np.ones(shape)
    pool = max(replicas, int(nodes * 0.7))
    share = load.sum(0) * replicas / nodes / rng.choice([0.4, 0.7, 0.85])
    cluster = ek.Cluster.from_arrays(
        capacity=np.ones((nodes, dimensions)) * share, load=load,
        placement=[rng.choice(pool, replicas, replace=False).tolist() for _ in range(partitions)],
    )  # fmt: skip
    found = ek.frontier(cluster, points=5, goals=ek.Goals(level=0.0))
    changes = [one.comparison.leader_changes for one in found.results]
    points = [*zip(found.moves.tolist(), found.level.tolist(), changes, strict=True)]
    for one in points:
        for other in points:
            beats = all(a <= b for a, b in zip(other, one, strict=True))
            assert other is one or not beats


def test_points_meet_all_other_goals():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 12, placement=[[0]] * 6 + [[1]] * 6,
        group=[0, 1] * 6,
    )  # fmt: skip
    goals = ek.Goals(level=0.0, groups=0.0, act_above=1.0, worth="50%")
    for point in ek.frontier(cluster, points=3, goals=goals).results:
        held = [np.bincount(point.placement.node[g::2], minlength=4) for g in (0, 1)]
        assert max(map(max, held)) == 2


def test_a_load_where_there_is_no_capacity_has_points():
    cluster = ek.Cluster.from_arrays(
        capacity=[[0.0], [9.0], [9.0]], load=[[1.0]] * 4, placement=[[0], [1], [1], [1]],
        flags=[[1], [0], [0], [0]],
    )  # fmt: skip
    assert [point.audit.hard for point in ek.frontier(cluster, points=3).results] == [1]
