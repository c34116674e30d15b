"""The replica of the fuller node moves, in place of one that was moved to repair a rule."""

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.methods.levelling.rule_repair import kinds_of
from evenkeel_kernels.levelling.repair import send_siblings
from tests.levelling.test_descent import check_counts
from tests.levelling.test_idle_moves import SEEDS, shuffled
from tests.naive.levelling import repair as naive
from tests.support.small_problems import level_case, random_small


def penalty_of(state, targets):
    """The excess above the targets, squared."""
    over = np.maximum(state.load * targets.scale - targets.threshold, 0.0)
    return float((over * over).sum())


@pytest.mark.small
@given(SEEDS)
def test_as_many_move_no_rule_breaks_more_and_the_excess_falls(seed):
    small = random_small(seed) if seed % 2 else level_case(seed, tolerance=0.02)
    problem, state, targets, forced = shuffled(small, seed)
    width = len(small.placement[0])
    node, leader = state.node.copy(), state.leader.copy()
    home, excess = problem.partitions.home, penalty_of(state, targets)
    broken = [naive.breaches(small, row) for row in node.reshape(-1, width).tolist()]
    made = send_siblings(problem, state, targets, forced, kinds_of(problem))
    check_counts(problem, state)
    changed = np.flatnonzero(state.node != node)
    assert (made > 0) == (len(changed) > 0)
    assert ((state.node != home).sum(), (state.leader != leader).sum()) == ((node != home).sum(), 0)
    leads = problem.partitions.first[:-1] + leader
    assert not np.isin(changed, leads[leader >= 0]).any() and not forced[changed].any()
    after = [naive.breaches(small, row) for row in state.node.reshape(-1, width).tolist()]
    assert all(now <= was for now, was in zip(after, broken, strict=True))
    for row, was in zip(state.node.reshape(-1, width), node.reshape(-1, width), strict=True):
        assert (np.count_nonzero(row != was)) <= 2 * made
    if made:
        assert penalty_of(state, targets) < excess


@pytest.mark.parametrize("level", [0.02, 0.1, 0.2])
def test_a_repaired_spread_empties_the_fuller_node(level):
    """Two replicas of each partition are in zone a, the first of them on the emptier node."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[5000.0]] * 4, load=[[float(1 + p % 3)] for p in range(360)],
        placement=[[2, 0, 1]] * 240 + [[1]] * 120, domains={"zone": [*"aabc"]}, spread={"zone": 1},
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=level))
    assert result.goals_reached and result.audit.counts["spread"] == 0
    assert result.comparison.moves == 240  # one of each partition, by the rule alone
