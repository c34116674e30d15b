"""Two replicas at once: found wherever trying every two nodes finds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.levelling.rule_repair import new_counts
from evenkeel_kernels.levelling.pair_moves import move_in_tandem
from evenkeel_kernels.levelling.penalty import new_targets
from tests.naive.levelling import pair_moves as naive
from tests.support.cockroach.clusters import two_at_once
from tests.support.small_problems import random_small

seeds = st.integers(0, 2**32 - 1)


def tried(small, replica, moves=2, looks=10**6):
    """The pairs that moved, and the state afterwards; every node is a kind of its own."""
    problem, state = small.arrays()
    nodes = len(small.zone)
    targets = new_targets(problem, np.full(nodes, np.inf), 1.0)
    left = np.array([moves, looks], np.int64)
    made = move_in_tandem(
        problem, state, targets, np.array(replica, np.int64), np.arange(nodes), nodes, left,
        new_counts(problem), 0, len(replica),
    )  # fmt: skip
    return made, problem, state


@pytest.mark.small
@settings(max_examples=150)
@given(seeds)
def test_moves_a_pair_just_where_some_two_nodes_are_better(seed):
    small = random_small(seed)
    rng = np.random.default_rng(seed)
    p = int(rng.integers(len(small.placement)))
    row = small.placement[p]
    k = int(rng.integers(len(row)))
    made, _, state = tried(small, [int(p * len(row) + k)])
    gains = []
    if row[k] >= 0 and naive.overfull(small, small.placement, row[k]):
        others = [j for j in range(len(row)) if j != k and row[j] >= 0]
        gains = [naive.best_pair(small, p, (k, j)) for j in others]
    if any(abs(gain + 1e-9) < 1e-8 for gain in gains):
        return  # too near to rounding to say
    assert made == int(any(gain < -1e-9 for gain in gains))
    after = [list(r) for r in state.node.reshape(-1, len(row)).tolist()]
    change = naive.penalty(small, after) - naive.penalty(small, small.placement)
    first = next((gain for gain in gains if gain < -1e-9), 0.0)
    assert change == pytest.approx(first, rel=1e-6, abs=1e-9)
    assert sum(a != b for a, b in zip(after, small.placement, strict=True)) == made
    np.testing.assert_allclose(state.load.T, naive.loads(small, after), rtol=1e-9, atol=1e-9)


@given(seeds)
def test_neither_moves_nor_looks_beyond_what_is_left(seed):
    small = random_small(seed)
    replicas = list(range(sum(map(len, small.placement))))
    for moves, looks in ((1, 10**6), (10**6, 0)):
        made, _, state = tried(small, replicas, moves, looks)
        assert made == 0
        assert state.node.tolist() == [n for row in small.placement for n in row]


@pytest.mark.parametrize("seed", range(4))
def test_balance_leaves_what_one_move_at_a_time_cannot(seed):
    cluster = two_at_once(count=16 + 4 * seed, seed=seed)
    result = ek.solve(cluster, goals=ek.Goals(level=0.15))
    assert result.stop_reason == "tolerance"
    assert result.audit.hard == 0
    assert result.levelness.ratio.max() <= 1.15 + 1e-9
    moved = result.placement.nodes != cluster.placement.nodes
    assert (moved[:, 0] == moved[:, 1]).all()  # no range moved one replica only
    again = ek.solve(cluster.with_placement(result.placement), goals=ek.Goals(level=0.15))
    assert again.comparison.moves == 0


def test_few_moves_allowed_are_enough_for_a_few_pairs():
    cluster = two_at_once()
    result = ek.solve(cluster, goals=ek.Goals(level=0.05), limits=ek.Limits(moves=5))
    assert 0 < result.comparison.moves <= 5
    assert result.audit.hard == 0


def test_where_goals_cannot_be_reached_the_next_run_moves_nothing():
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 4,
        load=[[9.0], [5.0], [4.0], [4.0], [3.0], [3.0], [3.0]],
        replicas=1,
        placement=[[0]] * 7,
    )
    goals = ek.Goals(level=0.0)
    result = ek.solve(cluster, goals=goals)
    again = ek.solve(cluster.with_placement(result.placement), goals=goals, seed=5)
    assert again.comparison.moves == 0


def test_a_pair_of_which_a_third_was_dropped_keeps_its_terms():
    # each partition wants a replica in zone a, whose nodes hold six of the seven
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.054]] * 12, load=[[2.0]] * 7, replicas=2,
        domains={"zone": [*"abcdeabcdeab"]},
        rules=[ek.Rule(place={"zone=a": 1})],
        placement=[[10, 0, 7], [6, 0, 2], [5, 2, 8], [11, 0, 6], [9, 5, 4], [0, 1, 4], [9, 10, 7]],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.3))
    assert not result.regressions
    assert result.audit.counts["place"] == result.audit.counts["surplus"] == 0
