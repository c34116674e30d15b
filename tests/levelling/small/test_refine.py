"""Refining, as a solve shows it: roles traded in place, groups, floors and budgets."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.strategies.levelling.refine import in_their_slots
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
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1, 2]], role=[[0, 0, 1]], voters=2
    ).placement
    found = in_their_slots(before, np.array([1, 3, 2], np.int32), np.array([0], np.int16))
    assert found.node.tolist() == [3, 1, 2]
    assert found.leader_node.tolist() == [1]
    found = in_their_slots(before, np.array([2, 1, 0], np.int32), np.array([2], np.int16))
    assert found.node.tolist() == [2, 1, 0]
    assert found.leader_node.tolist() == [0]
