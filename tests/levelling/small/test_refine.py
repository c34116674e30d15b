"""Refining, as a solve shows it: roles traded in place, groups, floors and budgets."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.methods.levelling.run import in_their_slots
from tests.judge.clusters import draw
from tests.judge.trial import try_one


@pytest.mark.parametrize(
    ("family", "seed"),
    [("even_groups", 70006), ("voters_in_two_moves", 70000), ("from_below", 70008)],
)
def test_what_is_near_the_best_is_found(family, seed):
    tried = try_one(draw(family, seed), small=True)
    assert tried.findings == []
    assert tried.beside is not None
    assert tried.beside.reached


def test_who_stays_in_its_role_stays_in_its_slot():
    before = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[3, 1, 0], [0, 1, 2]],
        role=[[0, 0, 1]] * 2, voters=2,
    ).placement  # fmt: skip
    for asked, led, node, leader in (
        ([3, 1, 0, 1, 3, 2], [0, 0], [3, 1, 0, 3, 1, 2], [3, 1]),
        ([3, 1, 0, 2, 1, 0], [0, 2], [3, 1, 0, 2, 1, 0], [3, 0]),
        ([1, 2, 0, 0, 1, 2], [0, 0], [2, 1, 0, 0, 1, 2], [1, 0]),
    ):
        found, _ = in_their_slots(
            before, np.array(asked, np.int32), np.array(led, np.int16), np.zeros(6, bool)
        )
        assert found.node.tolist() == node
        assert found.leader_node.tolist() == leader


def test_a_replica_whose_place_a_surplus_one_left_is_the_one_that_is_dropped():
    before = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1]], replicas=1
    ).placement
    found, dropped = in_their_slots(
        before, np.array([1, -1], np.int32), np.array([0], np.int16), np.array([False, True])
    )
    assert found.node.tolist() == [-1, 1]
    assert found.leader_node.tolist() == [1]
    assert dropped.tolist() == [True, False]


def test_what_a_surplus_replica_leaves_counts_where_another_takes_its_place():
    """Refined, a replica went where a surplus one had been: its own node was left, uncounted."""
    assert try_one(draw("ragged", 851056), small=True).findings == []


def test_runs_look_for_what_budgets_allow():
    """Runs that knew no budgets found what 14 replicas that enter a node did not allow."""
    case = draw("plain", 930004)
    tried = try_one(replace(case, goals={"level": 0.3}, limits={"node_in": 14}), small=True)
    assert tried.findings == []
    assert tried.beside is not None
    assert tried.beside.above == 0


def test_a_replica_leaves_no_node_on_which_another_of_its_partition_stays():
    """Three replicas of a partition share a node; two that go were counted, and a third stayed."""
    assert try_one(draw("ragged", 800000), small=True).findings == []


def test_steps_are_left_for_fewer_moves_once_the_goals_are_reached():
    """Too large for CP-SAT to look for fewer, it was given 16 moves where 11 do."""
    assert try_one(draw("roles", 950057), small=True).findings == []


def test_who_leads_lawfully_before_does_not_end_without_a_leader():
    """Both voters are refined to a zone in which none may lead."""
    tried = try_one(draw("anything", 970436))
    assert tried.findings == []
