"""Filling nodes up to their floors: the moves of the plain twin, and nothing pushed beyond."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.levelling.floors import DONORS, fill
from tests.naive.levelling.floors import fill as naive
from tests.support.effort import share_of_examples
from tests.support.in_step import InStep
from tests.support.small_problems import level_case, random_small

SEEDS = st.integers(0, 2**32 - 1)
ENDLESS = 1 << 40


def filled(problem, state, lowest, most_leaders, most_moves):
    """Run the kernel from where ``state`` is."""
    nodes = state.load.shape[1]
    members, stuck, made = by_node(state.node, nodes), np.zeros(nodes, bool), np.zeros(1, np.int64)
    while not fill(
        problem, state, lowest, *members, stuck, most_leaders,
        np.zeros(DONORS, np.int64), np.zeros(DONORS), made, most_moves, 2,
    ):  # fmt: skip
        pass
    return made[0]


def spelled_out(problem, state, lowest, most_leaders, most_moves):
    """Run the twin, which asks the rules of a state that moves along with it."""
    plain = InStep(problem, state)
    cluster = plain.cluster() | {
        "target": problem.nodes.watermark.T.tolist(), "accepts": problem.nodes.accepts.tolist()
    }  # fmt: skip
    made = naive.fill(cluster, lowest.T.tolist(), most_leaders, plain.may, most_moves)
    return plain.node, made


def floors(problem, state, seed):
    """Floors at some part of the mean, on the nodes that count."""
    rng = np.random.default_rng(seed)
    counted = np.isfinite(problem.nodes.watermark)
    mean = state.load.sum(axis=1) / max(1, state.load.shape[1])
    part = rng.choice([0.0, 0.5, 0.8, 1.0], state.load.shape[0])
    return np.ascontiguousarray(np.where(counted, (part * mean)[:, np.newaxis], 0.0))


@pytest.mark.small
@share_of_examples(0.5)
@given(SEEDS)
def test_it_makes_the_moves_of_the_plain_twin(seed):
    rng = np.random.default_rng(seed)
    small = random_small(seed)
    problem, state = small.arrays()
    _, other = small.arrays()
    lowest = floors(problem, state, seed)
    most_leaders = rng.choice([1.0, 3.0, np.inf], state.load.shape[1])
    most_moves = int(rng.choice([0, 1, 3, ENDLESS]))
    node, _ = spelled_out(problem, other, lowest, most_leaders, most_moves)
    filled(problem, state, lowest, most_leaders, most_moves)
    assert state.node.tolist() == node


@given(SEEDS)
def test_nothing_is_pushed_beyond_target_floor_or_budget(seed):
    rng = np.random.default_rng(seed)
    problem, state = level_case(seed).arrays()
    lowest = floors(problem, state, seed)
    before = state.load.copy()
    most_moves = int(rng.choice([0, 2, 10, ENDLESS]))
    made = filled(problem, state, lowest, np.full(state.load.shape[1], np.inf), most_moves)
    assert made == (state.node != problem.partitions.home).sum() <= most_moves
    over = state.load > np.maximum(problem.nodes.watermark, before) * (1 + 1e-9)
    under = state.load < np.minimum(lowest, before) * (1 - 1e-9)
    assert not over.any() and not under.any()


def test_an_empty_node_fills_up_in_the_fewest_moves_where_sizes_are_alike():
    small = level_case(7, partitions=60, nodes=12)
    small.load[:] = 1.0
    small.extra[:] = 0.0
    small.watermark[:] = 40.0
    small.capacity[:] = 100.0
    problem, state = small.arrays()
    lowest = np.where(np.isfinite(problem.nodes.watermark), 8.0, 0.0)
    short = np.maximum(0.0, lowest - state.load)[0].sum()
    assert filled(problem, state, lowest, np.full(12, np.inf), ENDLESS) == short > 0
    assert (state.load >= lowest).all()
