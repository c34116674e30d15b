"""Reach: what no placement has is never drawn, and what some placement has is never left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.methods import cost as reaching
from evenkeel.methods.cost import begin_walk
from evenkeel_kernels.cost.annealing import anneal, reaches
from tests.naive.core import eligible_nodes as naive
from tests.naive.core import state as naive_state
from tests.naive.cost.annealing import node_penalties
from tests.support.random_problems import random_problem

SEEDS = st.integers(0, 2**32 - 1)
GENEROUS = settings(deadline=None, max_examples=60)


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_reach_is_where_a_guest_fits_and_may_stand(seed):
    _, problem, state = random_problem(seed)
    walk = begin_walk(problem, state, seed)
    item = np.flatnonzero(problem.partitions.movable & (state.node >= 0)).astype(np.int32)
    expected = {k: naive.reach(problem, state, k) for k in item.tolist()}
    nodes = problem.nodes.capacity.shape[1]
    for k in item.tolist():
        found = {n for n in range(nodes) if reaches(walk.reach, walk.reach_row, k, n)}
        assert found == expected[k]
    assert set(walk.item.tolist()) == {k for k, where in expected.items() if len(where) > 1}


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_no_placement_that_fits_is_out_of_reach(seed):
    _, problem, state = random_problem(seed)
    walk = begin_walk(problem, state, seed)
    everywhere = np.zeros_like(walk.reach_row)
    walked = walk._replace(reach=np.full_like(walk.reach[:1], ~np.uint64(0)), reach_row=everywhere)
    for _ in range(5):
        if len(walk.item) == 0:
            return
        anneal(problem, state, walked, len(walk.item), 100, 10.0, 10.0)
        if any(
            node_penalties(
                problem, state, walk._replace(penalty_weight=np.ones_like(walk.penalty_weight))
            )
        ):
            continue
        for k, n in enumerate(state.node.tolist()):
            assert n < 0 or k not in walk.item or reaches(walk.reach, walk.reach_row, k, n)


@pytest.mark.small
def test_who_finds_no_row_left_reaches_every_node(monkeypatch):
    _, problem, state = random_problem(3)
    need = np.array([naive_state.loads(problem, state, k) for k in range(len(state.node))])
    item = np.flatnonzero(state.node >= 0).astype(np.int32)
    monkeypatch.setattr(reaching, "MOST_BYTES", 0)
    reach, row, options = reaching.reach_of(problem, state, need, need, item)
    assert len(reach) == 1
    assert not row.any()
    assert (options == problem.nodes.capacity.shape[1]).all()
