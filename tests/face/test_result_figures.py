"""The figures of a result add up to what they say."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.cluster import Cluster
from evenkeel.result import Proven
from evenkeel.result_rows import removals_of


def test_seconds_count_a_stage_within_a_stage_once():
    cluster = Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6)
    result = ek.solve(cluster)
    assert any("." in name for name in result.timings)
    whole = sum(took for name, took in result.timings.items() if "." not in name)
    assert result.seconds == result.metrics["seconds"] == whole


def test_as_many_replicas_are_listed_as_missing_as_are_lacking():
    """The row has four slots, two of them empty, and one replica more is wanted."""
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1, -1, -1], [0, 1, 2, -1]],
        replicas=3, alive=[True, True, False, False],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.unplaced_replicas.tolist() == [2, 6]
    assert result.metrics["unplaced"] == len(result.unplaced) == 2
    live = cluster.nodes.alive[np.maximum(result.placement.node, 0)] & (result.placement.node >= 0)
    lacking = cluster.partitions.replicas - np.bincount(result.placement.owner[live], minlength=2)
    assert len(result.unplaced) == lacking.sum()


def test_moves_that_reach_no_goal_are_no_fewer_than_the_fewest():
    """With less than the fewest that the goals take, nothing is known of what could be spared."""
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8, alive=[True, True, True, True]
    )
    limited = {"limits": ek.Limits(moves=1)}
    missed = ek.solve(cluster, goals=ek.Goals(level=0.0), **limited)
    broken = ek.solve(cluster.down([0]), goals=ek.Goals(level=0.0), **limited)
    assert (missed.status, broken.status) == ("missed", "partial")
    for result in (missed, broken):
        assert result.comparison.moves < result.bounds.moves_level
        assert result.gap.moves == np.inf
    assert ek.solve(cluster, goals=ek.Goals(level=0.0)).gap.moves == 0.0


def test_bounds_beside_few_leader_changes_name_the_limit():
    cluster = Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[1.0]] * 9, placement=[[0, 1, 2]] * 9
    )
    result = ek.solve(cluster, "leaders", limits=ek.Limits(leader_changes=3))
    assert result.status == "optimal" and result.gap.moves == 0.0
    assert result.gap.leaders > 0.0
    [shown] = [one for one in result.proven if one.name == "leaders"]
    assert shown.reason.endswith("without the limit on leader changes")
    assert "fewer on the fullest node" in result.message


def test_a_dimension_without_load_has_no_bound():
    cluster = Cluster.from_arrays(
        dimensions=("cpu", "disk"), capacity=[[9.0, 9.0]] * 2, load=[[0.0, 1.0]] * 4,
        placement=[[0], [1]] * 2,
    )  # fmt: skip
    result = ek.solve(cluster)
    assert [one.name for one in result.proven if "max/mean" in one.name] == ["max/mean of disk"]


@pytest.mark.parametrize(
    ("before", "after", "given_up"),
    [
        ([0, 1, 2], [2, 3, -1], [0]), ([0, 1], [0, 1], []), ([0, 1, -1], [1, 0, 2], []),
        ([0, 0], [1, -1], [1]), ([0, 0, 0], [1, -1, -1], [1, 2]), ([0, 0], [0, -1], [1]),
        ([0, 0, 1], [1, 1, -1], [1]), ([0, 1], [-1, -1], [0, 1]), ([0, 1, 2], [3, -1, -1], [1, 2]),
    ],
)  # fmt: skip
def test_as_many_replicas_are_given_up_as_are_fewer(before, after, given_up):
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[before], replicas=len(before),
        rules=[ek.Rule(spread={"node": None})], rule=[0],
    )  # fmt: skip
    removals = removals_of(cluster, cluster.placement.replaced(after, [-1]))
    assert [one.slot for one in removals] == given_up
    assert [cluster.nodes.names.index(one.source) for one in removals] == [
        before[s] for s in given_up
    ]


def test_no_gap_is_printed_where_nothing_is_proven():
    known = Proven("moves", 5.0, 4.0, 0.25, "overfull nodes")
    assert known.figures == ("5", "4", "25.00%")
    assert Proven("moves", 4.0, 0.0, 4.0, "nothing").figures == ("4", "0", "unknown")
    assert Proven("moves", 0.0, 0.0, 0.0, "nothing").figures == ("0", "0", "0.00%")
