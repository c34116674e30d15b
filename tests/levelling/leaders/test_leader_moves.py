"""Leadership handed on and back, and room made for a replica, against plain twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import VOTER
from evenkeel_kernels.levelling.leaders.moves import lead_if_afforded, prefer, return_leaders
from evenkeel_kernels.levelling.make_room import choose_victims, node_to_clear
from evenkeel_kernels.levelling.penalty import new_targets
from tests.core.test_state import assert_books_are_right
from tests.naive.levelling import node_to_clear as plain
from tests.naive.levelling.leaders import moves as naive
from tests.support.random_problems import random_budgeted, random_problem

pytestmark = pytest.mark.small

SEEDS = st.integers(0, 2**32 - 1)
ANY = 1 << 40


@given(SEEDS, st.sampled_from([0.0, 1.0, 2.0, np.inf]))
def test_leaders_go_where_rules_prefer_them_and_nobody_gets_hot(seed, most):
    _, problem, state = random_problem(seed)
    targets = new_targets(problem, np.full(len(state.replicas), most), 0.9)
    before = state.leader.copy()
    rng = np.random.default_rng(seed)
    floor = np.where(rng.random(state.load.shape) < 0.3, rng.uniform(0.0, 4.0), 0.0)
    expected = naive.prefer(problem, state, targets, floor)
    changed = prefer(problem, state, targets, floor)
    assert state.leader.tolist() == expected
    assert changed == np.count_nonzero(state.leader != before)
    assert_books_are_right(problem, state)


@given(SEEDS)
def test_leaders_return_whatever_the_rules_say(seed):
    _, problem, state = random_problem(seed)
    rng = np.random.default_rng(seed)
    was = rng.integers(-1, np.diff(problem.partitions.first)).astype(np.int16)
    was[(state.role[problem.partitions.first[:-1] + was] != VOTER) & (was >= 0)] = -1
    return_leaders(problem, state, was)
    assert state.leader.tolist() == was.tolist()
    assert_books_are_right(problem, state)


@given(SEEDS)
def test_some_lead_where_the_budgets_afford_it(seed):
    _, problem, state = random_budgeted(seed)
    rng = np.random.default_rng(seed)
    replicas = rng.permutation(np.flatnonzero((state.node >= 0) & (state.role == VOTER)))[:8]
    leads = np.zeros(len(replicas), np.bool_)
    expected = naive.lead_if_afforded(problem, state, replicas.tolist())
    lead_if_afforded(problem, state, replicas, leads)
    assert (leads.tolist(), state.leader.tolist()) == expected
    assert_books_are_right(problem, state)


@given(SEEDS)
def test_the_node_to_clear_is_the_one_that_gives_away_least_and_that_rules_admit(seed):
    _, problem, state = random_problem(seed)
    rng = np.random.default_rng(seed)
    nodes, size = len(state.replicas), rng.integers(0, 5, len(state.leader)).astype(float)
    closed, most = rng.random(nodes) < 0.2, int(rng.choice([1, 2, ANY]))
    weight = np.zeros(len(state.load))
    if rng.random() < 0.5:  # sizes that say how much room each one makes
        weight, owners = rng.random(len(weight)), problem.partitions
        loads = owners.voter_load, owners.non_voter_load, owners.leader_load
        size = np.ceil(np.max(loads, axis=0) * weight).max(axis=1)
    first, member = by_node(state.node, nodes)
    lack, victim = np.empty(len(state.load)), np.empty(len(state.node) + 1, np.int64)
    for k in np.flatnonzero(problem.partitions.movable).tolist():
        p = problem.partitions.owner[k]
        led = state.leader.copy()

        def making_way(seen, n, k=k):
            found, scratch = np.empty_like(victim), np.empty_like(lack)
            count = choose_victims(problem, seen, size, k, n, first, member, scratch, found, most)
            return None if count < 0 else found[:count].tolist()

        expected = plain.node_to_clear(problem, state, size, k, closed, making_way)
        there, count = node_to_clear(
            problem, state, size, k, first, member, closed, weight,
            np.empty(nodes), np.empty(nodes, np.bool_), lack, victim, most,
        )  # fmt: skip
        assert (there, victim[:count].tolist(), state.leader[p]) == expected
        return_leaders(problem, state, led)
        assert_books_are_right(problem, state)
