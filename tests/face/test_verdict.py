"""Honest words: the status, the reason to stop, and both in a sentence."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.runtime.figures import quantity
from evenkeel.verdict import excesses
from evenkeel.view.results import report
from tests.support.toy_methods import answering

CLUSTER = ek.Cluster.from_arrays(
    capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, dimensions=["disk"]
)
GOALS = ek.Goals(level=0.0)


def solved(nodes, cluster=CLUSTER, goals=GOALS, limits=None, **more):
    """Let a method answer these nodes."""
    with answering([[n] for n in nodes], limits=("moves", "node_in"), **more) as name:
        return ek.solve(cluster, name, goals=goals, limits=limits)


def test_goals_missed_are_no_success():
    result = solved([0, 0, 0, 0, 1, 2])
    assert (result.status, result.success, result.audit.ok) == ("missed", False, True)
    assert "disk of n0 is 100.00% above its target, the mean of 20.00% plus 0.00%" in result.message
    assert "no move within the rules" in result.message


def test_no_tolerance_is_the_reason_where_it_is_not_met():
    assert solved([0, 0, 0, 0, 1, 2], stop_reason="tolerance").stop_reason == "exhausted"
    assert solved([0, 0, 1, 1, 2, 2], stop_reason="tolerance").stop_reason == "tolerance"


def test_the_budget_that_stopped_it_is_named_with_what_the_goals_take():
    result = solved([0, 0, 0, 0, 1, 2], limits=ek.Limits(moves=2), stop_reason="exhausted")
    assert result.stop_reason == "limits"
    assert "limits.moves=2 used up" in result.message
    assert "the goals take at least 4 moves" in result.message
    assert solved([0] * 6, limits=ek.Limits(moves=2)).stop_reason == "exhausted"


@pytest.mark.parametrize(("reason", "said"), [("time", "time limit"), ("work", "work limit")])
def test_who_was_cut_short_says_so(reason, said):
    result = solved([0, 0, 0, 0, 1, 2], stop_reason=reason)
    assert (result.status, result.stop_reason) == ("missed", reason)
    assert said in result.message


def test_optimal_needs_a_proof():
    assert solved([0, 0, 1, 1, 2, 2]).status == "optimal"  # 4 moves, proven fewest
    assert solved([1, 1, 0, 0, 2, 2]).status == "optimal"
    assert solved([1, 1, 2, 2, 0, 0]).status == "optimal"
    assert solved([2, 1, 2, 1, 0, 0]).comparison.moves == 4
    assert solved([0, 1, 2, 1, 2, 0], goals=ek.Goals(level=1.0)).status == "feasible"


def test_who_works_towards_no_goals_is_judged_by_those_that_are_asked_for():
    nodes = [0, 0, 0, 0, 1, 2]
    assert solved(nodes, goals=None).status == "missed"
    with answering([[n] for n in nodes], goals=()) as name:
        assert ek.solve(CLUSTER, name).status == "feasible"
        asked = ek.solve(CLUSTER, name, goals=GOALS)
    assert asked.status == "missed"
    assert "does not work towards goals" in asked.message


def test_goals_that_nobody_asked_for_are_not_told_beside_a_proof():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0, 1]] * 5 + [[0, 2]]
    )  # fmt: skip
    result = ek.solve(cluster, "leaders")
    assert (result.status, result.goals_reached, result.goals_asked) == ("optimal", False, False)
    assert result.targets == ()
    for text in (str(result), report(result), result._repr_html_()):
        assert "not reached" not in text and "goal:" not in text and "to the goals" not in text
    asked = ek.solve(cluster, "leaders", goals=ek.Goals())
    assert asked.status == "missed" and asked.goals_asked
    assert "the goals were not reached" in str(asked)


def test_goals_by_default_bind_whoever_works_towards_them():
    stays = ek.Limits(moves=0)
    found = [ek.solve(CLUSTER, "exact", goals=one, limits=stays) for one in (None, ek.Goals())]
    assert [one.status for one in found] == ["missed"] * 2
    assert found[0].message == found[1].message


def test_what_nobody_asked_for_is_not_proven():
    """By chance it meets the goals by default, and moves nothing."""
    level = CLUSTER.replace(placement=[[0], [0], [1], [1], [2], [2]])
    with answering([[n] for n in (0, 0, 1, 1, 2, 2)], goals=()) as name:
        result = ek.solve(level, name)
        assert (result.status, result.goals_reached) == ("feasible", True)
        assert result.proved().status == "feasible"
        assert not [one for one in result.proven if one.name == "moves"]
        assert ek.solve(level, name, goals=GOALS).status == "optimal"


def test_tolerances_say_what_they_are_counted_from():
    result = solved([0, 0, 1, 1, 2, 2], goals=ek.Goals(level=0.1))
    (said,) = result.targets
    assert said.startswith("disk at most 20.00% of capacity: the mean of 20.00% plus 10.00%")
    assert said.endswith("rounded down to whole replicas")  # all weigh the same
    assert "goal: disk at most 20.00%" in str(result)
    lumps = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[6.0], [1.0]], placement=[[0], [1]], dimensions=["disk"]
    )
    told = ek.Goals(level=0.1)
    (said,) = solved([0, 1], cluster=lumps, goals=told).targets
    assert said == (
        "disk at most 66.00% of capacity: the proven floor of 60.00% (largest replica) plus 10.00%"
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [("hard", "disk at most 60.00% of capacity: the proven floor of 60.00% (spread) plus 5.00%"),
     ("soft", "disk at most 60.00% of capacity: the 60.00% that hard and soft rules force "
              "plus 5.00%")],
)  # fmt: skip
def test_what_soft_rules_force_is_called_no_proof(kind, said):
    """Each of six partitions has a replica in either zone: on n2, and three each on n0 and n1."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0, 1]] * 6, dimensions=["disk"],
        domains={"zone": ["a", "a", "b"]}, rule=[0] * 6,
        rules=[ek.Rule(spread={"zone": (1, kind)})],
    )  # fmt: skip
    goals = ek.Goals(level=0.05)
    result = ek.solve(cluster, goals=goals)
    less = ", rounded down to whole replicas, and at most 30.00% where rules force less"
    assert result.targets == (said + less,)
    (far,) = excesses(cluster, goals, result.bounds, result.levelness_before)
    assert far == (
        "disk of n0 is 100.00% above its target, its share of 30.00% under the rules plus 5.00%, "
        "rounded down to whole replicas, and 1 other node above theirs"
    )


def test_floors_are_told_like_other_tolerances():
    result = ek.solve(CLUSTER, goals=ek.Goals(level=None, floor=0.3))
    (said,) = result.targets
    assert said == (
        "disk at least 14.00% of capacity on nodes that take replicas: the mean of 20.00% less "
        "30.00%, rounded down to whole replicas"
    )
    assert f"goal: {said}" in str(result)
    both = ek.solve(CLUSTER, goals=ek.Goals(level=0.1, floor={"disk": 0.3}))
    assert both.targets[1:] == result.targets
    assert not ek.solve(CLUSTER, goals=ek.Goals(level=None, floor=1.0)).targets


def test_a_floor_names_what_rules_leave_for_nodes():
    """n1 holds one of each, and so more than its share: less is left for n0 than the mean."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[80.0], [40.0], [80.0]], load=[[3.0]] * 8, leader_load=[[6.0]] * 8,
        dimensions=["cpu"], accepts=[True, False, False], placement=[[0, 1, 2]] * 8,
    )  # fmt: skip
    found = ek.solve(cluster, goals=ek.Goals(level=None, floor=0.0))
    assert found.bounds.floor[0, 0] == pytest.approx(36.0)
    assert found.targets == (
        "cpu at least 48.00% of capacity, 45.00% where rules leave less, on nodes that take "
        "replicas: the mean of 48.00% less 0.00%",
    )


def test_what_only_soft_rules_miss_is_told():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 2, load=[[1.0]], placement=[[0, 1]], rule=[0],
        domains={"zone": ["a", "a"]}, rules=[ek.Rule(spread={"zone": (1, "soft")})],
    )  # fmt: skip
    assert "hard violations 0 -> 0, soft 1 -> 1, unplaced 0" in str(ek.solve(cluster))
    assert "soft" not in str(solved([0, 0, 1, 1, 2, 2]))


def test_a_mean_above_the_fullest_node_is_explained():
    """What a drained node still holds counts for the mean of the others, and it does not itself."""
    cluster = CLUSTER.replace(accepts=[False, False, True])
    result = solved([0, 0, 0, 0, 2, 2], cluster=cluster, goals=None)
    assert result.levelness.ratio[0] < 1.0
    assert "the mean is what the 1 node that takes replicas would carry, of 3" in str(result)
    assert "the mean is" not in str(solved([0, 0, 1, 1, 2, 2]))


@pytest.mark.parametrize(
    ("goals", "noted"),
    [(ek.Goals(level=0.1), True), (ek.Goals(level=0.1, leaders=0.0), False),
     (ek.Goals(level=None), False), (ek.Cost(), False)],
)  # fmt: skip
def test_leaders_that_become_less_even_are_noted_where_no_goal_is_about_them(goals, noted):
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0]] * 3, load=[[5.0], [1.0], [1.0]] * 2, placement=[[0], [1], [2]] * 2
    )
    found = ek.solve(cluster, goals=goals)
    assert ("leaders are less even, 2.00 times the mean, was 1.00" in str(found)) == noted


def test_as_many_are_unplaced_as_are_missing():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, -1, -1, -1], [0, 1, 2, -1]],
        replicas=[2, 3],
    )  # fmt: skip
    with answering([[0, -1, -1, -1], [0, 1, 2, -1]]) as name:
        result = ek.solve(cluster, name)
    assert [(one.partition, one.slot) for one in result.unplaced] == [("p0", 1)]
    assert result.metrics["unplaced"] == 1


def test_what_waits_on_a_node_that_is_down_and_keeps_it_is_not_unplaced():
    """Within its delay window a node is waited for: what stands there has a node."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, keeps=[True] * 4,
        placement=[[0, 1], [1, 2], [2, 3], [3, 0]], alive=[False, True, True, True],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert (result.status, result.comparison.moves) == ("optimal", 0)
    assert len(result.unplaced) == result.metrics["unplaced"] == 0
    assert "unplaced 0, 2 wait on nodes that are down" in str(result)
    assert "wait on" not in str(ek.solve(cluster.up("n0")))


def test_what_found_no_node_is_explained_where_no_node_is_in_a_zone():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]], load=[[1.0]], placement=[[0, -1]], replicas=2, domains={"zone": [""]},
        tier_capacity={"zone": np.zeros((0, 1))}, rules=[ek.Rule(spread={"zone": 1})], rule=[0],
    )  # fmt: skip
    (replica,) = ek.solve(cluster).unplaced
    assert replica.partition == "p0"


def test_what_is_left_when_time_is_over_is_not_said_to_fit_nowhere():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 9, placement=[[0, 1]] * 9
    ).down("n0")  # fmt: skip
    result = ek.solve(cluster, time_limit=0.0)
    assert result.stop_reason == "time" and result.audit.hard
    assert "the time limit was reached" in result.message or "no time" in result.message
    assert "What fits" not in result.message


def test_figures_of_the_text_have_units_and_no_infinity_after_a_drain() -> None:
    for name, unit in (("bytes", "B"), ("disk", " of disk")):
        cluster = ek.Cluster.from_arrays(
            capacity=[[4e12]] * 8, load=[[2e10 * (1 + i % 5)] for i in range(200)],
            placement=[[i % 4, (i + 1) % 4] for i in range(200)], dimensions=[name], bytes=name,
        )  # fmt: skip
        result = ek.solve(cluster.drain("n1"), goals=ek.Goals(level=None), time_limit=30.0)
        text = report(result)
        moved = quantity(result.comparison.bytes_moved)
        assert f"{moved}{unit.partition(' ')[0]}" in text
        assert f", {moved}{unit} in " in str(result.plan())
        assert "∞" not in text
        assert not result.warnings


def test_a_level_without_a_mean_is_said_to_have_none() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[np.inf], [10.0], [10.0]], load=[[1.0]] * 6, placement=[[1]] * 6
    )
    text = str(ek.solve(cluster, goals=ek.Goals(level=0.1)))
    assert "endless capacity leaves no mean" in text and "inf" not in text
