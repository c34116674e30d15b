"""Trading replicas for floors: the trades of the plain twin, nothing pushed beyond, floors met."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.levelling.floors import DONORS, exchange
from tests.levelling.floors.test_fill import floors
from tests.naive.levelling.floors import exchange as naive
from tests.support.effort import mostly_long, share_of_examples
from tests.support.in_step import InStep
from tests.support.small_problems import level_case, random_small

SEEDS = st.integers(0, 2**32 - 1)
ENDLESS = 1 << 40


def traded(problem, state, lowest, most_leaders, in_vain=ENDLESS):
    """Run the kernel from where ``state`` is; how many exchanges were made."""
    nodes = state.load.shape[1]
    members, stuck, tally = (
        by_node(state.node, nodes),
        np.zeros(nodes, bool),
        np.array([0, in_vain]),
    )
    size = np.zeros((1 + int(np.diff(members[0]).max(initial=0)), len(lowest)))
    while not exchange(
        problem, state, lowest, *members, stuck, most_leaders,
        np.zeros(DONORS, np.int64), np.zeros(DONORS), size, tally, 2,
    ):  # fmt: skip
        pass
    listed = np.repeat(np.arange(nodes), np.diff(members[0]))
    assert (state.node[members[1]] == listed).all()
    return int(tally[0])


def spelled_out(problem, state, lowest, most_leaders):
    """Run the twin, which asks the rules of a state that moves along with it."""
    plain = InStep(problem, state)
    cluster = plain.cluster() | {
        "target": problem.nodes.watermark.T.tolist(), "accepts": problem.nodes.accepts.tolist(),
        "owner": problem.partitions.owner.tolist(),
    }  # fmt: skip
    trades = naive.exchange(cluster, lowest.T.tolist(), most_leaders, plain.may)
    return plain.node, len(trades)


@pytest.mark.small
@share_of_examples(0.5)
@given(SEEDS)
def test_it_makes_the_trades_of_the_plain_twin(seed):
    rng = np.random.default_rng(seed)
    small = random_small(seed)
    problem, state = small.arrays()
    _, other = small.arrays()
    lowest = floors(problem, state, seed)
    most_leaders = rng.choice([1.0, 3.0, np.inf], state.load.shape[1])
    node, trades = spelled_out(problem, other, lowest, most_leaders)
    assert traded(problem, state, lowest, most_leaders) == trades
    assert state.node.tolist() == node


@given(SEEDS)
def test_nothing_is_pushed_beyond_its_target_and_less_is_lacking(seed):
    problem, state = level_case(seed).arrays()
    lowest = floors(problem, state, seed)
    before = state.load.copy()
    held = np.bincount(state.node[state.node >= 0], minlength=before.shape[1])
    trades = traded(problem, state, lowest, np.full(before.shape[1], np.inf))
    over = state.load > np.maximum(problem.nodes.watermark, before) * (1 + 1e-9)
    assert not over.any()
    assert (np.bincount(state.node[state.node >= 0], minlength=before.shape[1]) == held).all()
    was, now = (
        (np.maximum(1.0 - load / np.maximum(lowest, 1e-9), 0.0)[lowest > 0.0] ** 2).sum()
        for load in (before, state.load)
    )
    assert now < was if trades else now == pytest.approx(was)


def test_it_gives_up_after_so_many_pairs_in_vain():
    problem, state = level_case(3).arrays()
    lowest = np.where(np.isfinite(problem.nodes.watermark), problem.nodes.watermark, 0.0)
    assert traded(problem, state, lowest, np.full(lowest.shape[1], np.inf), in_vain=0) == 0


def grown(seed: int) -> tuple[ek.Cluster, ek.Goals]:
    """Two or three dimensions of skewed loads, some new and empty nodes."""
    rng = np.random.default_rng(seed)
    nodes, dimensions = int(rng.integers(20, 101)), int(rng.integers(2, 4))
    partitions, new = nodes * int(rng.integers(10, 40)), int(rng.integers(1, nodes // 8 + 1))
    placement = [rng.choice(nodes - new, 3, replace=False).tolist() for _ in range(partitions)]
    load = np.round(rng.lognormal(0, rng.choice([0.3, 0.5, 0.8]), (partitions, dimensions)), 3)
    load += 0.01
    cluster = ek.Cluster.from_arrays(
        capacity=np.tile(load.sum(axis=0) * 3 / nodes / 0.6, (nodes, 1)),
        load=load,
        placement=placement,
    )
    level, floor = [(0.1, 0.2), (0.05, 0.1), (0.1, 0.1), (0.03, 0.05)][seed % 4]
    return cluster, ek.Goals(level=level, floor=floor)


@pytest.mark.parametrize("seed", mostly_long(range(60), range(6)))
def test_floors_in_several_dimensions_are_met_where_replicas_trade_places(seed):
    cluster, goals = grown(seed)
    result = ek.solve(cluster, goals=goals)
    assert result.success, result.message
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.comparison.moves == 0


def test_trading_keeps_within_the_budgets_of_nodes():
    cluster, goals = grown(1)
    limits = ek.Limits(node_in=9, moves=100)
    result = ek.solve(cluster, goals=goals, limits=limits)
    assert result.comparison.node_in.max() <= 9
    assert result.comparison.moves <= 100
