"""Breaking out: the best change at the fullest node, no move more, no rule broken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.breakout import (
    CHANGED,
    LOOKED,
    TURN,
    break_out,
    gave_up,
    new_breakout,
)
from evenkeel_kernels.levelling.penalty import Targets, highest, new_targets
from evenkeel_kernels.levelling.repair import must_relocate
from evenkeel_kernels.levelling.threshold_walk import moved_replicas
from tests.levelling.test_descent import NO_LIMIT, check_counts, check_rules, no_leader_limit
from tests.naive.levelling import breakout as naive
from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.descent import penalty
from tests.support.redistributed import place_anew, redistribute
from tests.support.small_problems import Small, level_case, random_small

seeds = st.integers(0, 2**32 - 1)


def redistributed(small: Small) -> tuple[Problem, State, Targets]:
    """Place what must move, so that something has moved; leaders are not levelled yet."""
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    place_anew(problem, state, forced, no_leader_limit(small), NO_LIMIT)
    return problem, state, new_targets(problem, no_leader_limit(small), 0.95)


def plain_state(small: Small, state: State) -> PlainState:
    """Keep the same state in plain lists."""
    plain = PlainState(small)
    plain.placement = state.node.reshape(-1, len(small.placement[0])).tolist()
    plain.leader = state.leader.tolist()
    return plain


@pytest.mark.small
@settings(max_examples=20)
@given(seeds)
def test_a_turn_makes_the_best_change_at_the_hottest_node(seed: int) -> None:
    small = random_small(seed)
    problem, state, targets = redistributed(small)
    plain = plain_state(small, state)
    before, led = penalty(plain, targets.scale, targets.threshold), state.leader.tolist()
    none_overfull = naive.fullest(plain, targets.scale) < 0
    expected = naive.turn(plain, targets.scale, targets.threshold)
    moved = moved_replicas(problem, state)
    breakout = new_breakout(state, moved)
    homes = by_node(problem.partitions.home, len(small.zone))
    assert break_out(problem, state, targets, moved, *homes, breakout, 1) == none_overfull
    after = penalty(plain_state(small, state), targets.scale, targets.threshold)
    # a trade must relieve the node itself; the twin also tries those that relieve the other
    slack = 1e-9 * before + 1e-13
    assert expected * (1 - 1e-9) - slack <= after <= before + slack
    if state.leader.tolist() != led:
        assert after == pytest.approx(expected, rel=1e-9, abs=slack)
    check_counts(problem, state)
    check_rules(small, state)


@given(seeds, st.integers(1, 3000))
def test_nothing_more_moves_and_it_can_be_cut_in_two(seed: int, cut: int) -> None:
    small = random_small(seed)
    ends = []
    for cuts in ((3000,), (cut, 3000)):
        problem, state, targets = redistributed(small)
        moved = moved_replicas(problem, state)
        count = len(moved)
        breakout = new_breakout(state, moved)
        homes = by_node(problem.partitions.home, len(small.zone))
        for most in cuts:
            break_out(problem, state, targets, moved, *homes, breakout, most)
        check_counts(problem, state)
        check_rules(small, state)
        assert sorted(moved) == moved_replicas(problem, state).tolist()
        assert len(moved) == count
        ends.append((state.node.tolist(), state.leader.tolist(), breakout.tally.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(3))
def test_what_chance_would_hardly_find_gets_level(seed: int) -> None:
    small = level_case(seed, partitions=400, nodes=24, tolerance=0.03)
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    redistribute(problem, state, forced, no_leader_limit(small), NO_LIMIT)
    targets = new_targets(problem, no_leader_limit(small), 0.95)
    assert highest(state, targets) > 1.0
    moved = moved_replicas(problem, state)
    breakout = new_breakout(state, moved)
    homes = by_node(problem.partitions.home, 24)
    assert break_out(problem, state, targets, moved, *homes, breakout, 2_000_000)
    assert highest(state, targets) <= 1.0
    assert breakout.tally[LOOKED] < 2_000_000
    check_rules(small, state)


def test_what_cannot_be_level_is_given_up() -> None:
    """Two nodes, one replica: wherever it stands is too full."""
    small = Small(
        zone=[0, 0], capacity=np.full((2, 1), 99.0), load=np.array([[4.0]]), extra=np.zeros((1, 1)),
        placement=[[0]], leader=[0], watermark=np.ones((2, 1)), accepts=[True, True],
        leads=[True, True],
    )  # fmt: skip
    problem, state = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 0.95)
    moved = moved_replicas(problem, state)
    breakout = new_breakout(state, moved)
    homes = by_node(problem.partitions.home, 2)
    assert not break_out(problem, state, targets, moved, *homes, breakout, 1_000_000)
    assert gave_up(breakout)
    assert breakout.tally[CHANGED] == 0
    assert breakout.tally[TURN] == breakout.tally[LOOKED] < 100
    assert (breakout.weight[0, 0] > 1.0) and (breakout.weight[0, 1] == 1.0)
