"""What cannot be mended whole is mended as far as it goes, the most endangered first."""

import pytest

import evenkeel as ek
from tests.judge.case import build
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.support.effort import mostly_long


def test_a_partition_that_nobody_can_lead_does_not_keep_others_from_their_replicas() -> None:
    """No node may lead the single ones; CP-SAT loses no leader that there was for theirs."""
    case = draw("few_may_lead", 95001)
    cluster, goals, limits = build(case)
    result = ek.solve(cluster, goals=goals, limits=limits, seed=case.seed)
    assert len(result.unplaced) == 2
    assert not result.regressions


FOUND = [
    ("lost_zone", 90027), ("few_may_lead", 90047), ("few_may_lead", 90061), ("groups", 90002),
    ("few_may_lead", 95001), ("finer_budgets", 90016), ("finer_budgets", 200019),
    ("zones", 90048), ("anything", 90065), ("urgent_first", 300001),
]  # fmt: skip
"""Where something was left unmended, or something more endangered left for something less."""

SLOW = {("zones", 90048)}


@pytest.mark.parametrize("found", mostly_long(FOUND, {*FOUND} - SLOW), ids=str)
def test_the_judge_finds_nothing_left_undone(found: tuple[str, int]) -> None:
    tried = try_one(draw(*found), small=True)
    assert tried.findings == []


def test_a_node_that_stays_above_its_room_is_joined_by_nobody() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0]] * 3, load=[[1.0]] * 4 + [[4.0]], placement=[[0]] * 4 + [[-1]]
    )
    result = ek.solve(cluster)
    assert result.placement.node[4] == -1
    assert (result.levelness.loads <= 3.0).all()


@pytest.mark.parametrize("big", [2.0**40, 2.0**52, 2.0**60, 1e25, 1e100, 1e-30])
def test_overload_of_any_magnitude_is_one_rule_broken(big):
    """However much a node came above its capacity, that it stays so weighs as any broken rule."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[6.0 * big, 2.0 * big]] * 4, load=[[5.0 * big, 3.0 * big], [8.0 * big, big]],
        placement=[[2], [2]], alive=[False, True, True, True],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.status == "infeasible"
    assert result.audit.hard <= result.audit_before.hard
