"""Levelling: few moves, no rule broken, counts in step, the same bits every time."""

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import State
from evenkeel_kernels.core.state import lead, settle
from evenkeel_kernels.levelling.descent import descend, relieve, send_home
from evenkeel_kernels.levelling.descent import walks as proposed_walks
from evenkeel_kernels.levelling.leaders.moves import restore_leaders, spread_leaders
from evenkeel_kernels.levelling.offload import Near, cover, is_fewest, shed_each
from evenkeel_kernels.levelling.parameters import DEFAULT
from evenkeel_kernels.levelling.penalty import highest, new_targets
from evenkeel_kernels.levelling.repair import must_relocate
from evenkeel_kernels.levelling.slices import at_once
from evenkeel_kernels.levelling.threshold_walk import (
    accept_by_threshold,
    mean_square,
    moved_replicas,
    placed_replicas,
)
from tests.naive.levelling import descent as naive
from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.repair import breaches
from tests.support.redistributed import redistribute
from tests.support.small_problems import Small, level_case, random_small

seeds = st.integers(0, 2**32 - 1)
NO_LIMIT = 1 << 40
walks = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="walks a quarter of a million steps and more"
)


def begun(small, problem, state, forced, most_moves=NO_LIMIT, seed=0):
    """Descend from where a state stands, with as many leaders on a node as may be."""
    was = state.leader.copy()
    return descend(problem, state, was, forced, no_leader_limit(small), most_moves, seed)


@no_alloc
def let_second_lead(problem, state):
    """Hand every leadership to the second slot."""
    for p in range(state.leader.shape[0]):
        lead(problem, state, p, 1)


def no_leader_limit(small: Small) -> np.ndarray:
    return np.full(len(small.zone), np.inf)


def check_counts(problem, state) -> None:
    """What was kept in step agrees with a fresh count."""
    fresh = State(
        state.node.copy(),
        state.role.copy(),
        state.leader.copy(),
        *[np.zeros_like(array) for array in state[3:]],
    )
    settle(problem, fresh)
    for kept, counted in zip(state, fresh, strict=True):
        np.testing.assert_allclose(kept, counted, rtol=1e-9, atol=1e-9)


def check_rules(small: Small, state) -> None:
    """No rule is broken further than it came in; whoever moved stands where it may."""
    replicas = len(small.placement[0])
    for p, row in enumerate(state.node.reshape(-1, replicas).tolist()):
        placed_now = sum(n >= 0 for n in row)
        assert placed_now >= sum(n >= 0 for n in small.placement[p])
        for slot, n in enumerate(row):
            if n != small.placement[p][slot]:
                assert small.accepts[n]
                assert small.allowed is None or small.allowed[p, n]
        if placed_now == sum(n >= 0 for n in small.placement[p]):
            assert breaches(small, row) <= breaches(small, small.placement[p])


@given(seeds)
def test_a_cover_covers_and_in_one_dimension_nothing_smaller_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dimensions, items = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    value = np.ascontiguousarray(np.round(rng.lognormal(0, 1, (dimensions, items)), 1))
    need = value.sum(axis=1) * rng.random(dimensions)
    weight = 1.0 / np.maximum(need, 1e-9)
    chosen = np.empty(items, np.int64)
    count = cover(
        value,
        items,
        value.max(axis=1),
        need,
        need.copy(),
        weight,
        np.empty(items),
        Near.place_for(dimensions, items),
        np.empty(dimensions),
        chosen,
        items,
    )
    least = naive.fewest(value, need - 1e-12)
    if count <= items:
        some = chosen[:count]
        assert len(set(some.tolist())) == count
        assert (value[:, some].sum(axis=1) >= need - 1e-9).all()
        assert count >= least
    if dimensions == 1:
        assert count == max(1, least)


@pytest.mark.small
@settings(max_examples=150)
@given(seeds)
def test_a_cover_takes_what_adds_most_at_every_step(seed: int) -> None:
    """Ties and items without weight included."""
    rng = np.random.default_rng(seed)
    dimensions, items = int(rng.integers(1, 5)), int(rng.integers(0, 45))
    value = rng.integers(0, rng.choice([2, 5, 50, 5000]), (dimensions, items)).astype(float)
    hard = value.sum(axis=1) * rng.choice([0.0, 0.1, 0.6, 1.1], dimensions)
    soft = hard + rng.choice([0.0, 3.0], dimensions)
    weight = rng.choice([0.0, 0.1, 1.0, 3.7], dimensions)
    limit = int(rng.integers(0, items + 1))
    expected = naive.greedy_cover(value, hard, soft, weight, limit)
    chosen = np.full(items, 7)
    count = cover(
        value, items, value.max(axis=1, initial=0.0), hard, soft, weight, np.empty(items),
        Near.place_for(dimensions, items), np.empty(dimensions), chosen, limit,
    )  # fmt: skip
    assert (count, chosen[: min(count, limit)].tolist()) == expected


@given(seeds)
def test_leaders_go_where_the_whole_penalty_is_least(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 0.9)
    plain = PlainState(small)
    expected = naive.spread_leaders(plain, targets.scale, 0.9, 0.95)
    got = at_once(spread_leaders(problem, state, targets, 0.95, 1, 0.0))
    check_counts(problem, state)
    if state.leader.tolist() != plain.leader:  # near ties may fall either way
        kept = PlainState(small)
        kept.leader = state.leader.tolist()
        assert naive.penalty(kept, targets.scale, 0.9) == pytest.approx(
            naive.penalty(plain, targets.scale, 0.9), rel=1e-6
        )
    else:
        assert got == expected


@given(seeds)
def test_relief_lowers_the_penalty_and_keeps_the_rules(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 0.9)
    scan = new_scan(problem, np.zeros(state.load.shape[0]))
    before = naive.penalty(PlainState(small), targets.scale, 0.9)
    members = by_node(state.node, len(small.zone))
    done, reached = np.zeros(2, np.int64), 0
    while reached < len(small.zone):
        reached = relieve(problem, state, targets, scan, *members, NO_LIMIT, done, reached, 3)
    made = done[0]
    check_counts(problem, state)
    check_rules(small, state)
    after = PlainState(small)
    after.placement = state.node.reshape(-1, len(small.placement[0])).tolist()
    if made:
        now = naive.penalty(after, targets.scale, 0.9)
        # beside what a watermark of nothing costs, the rest is lost in rounding
        assert now < before or (before > 1e30 and now <= before)
    assert made >= (state.node != problem.partitions.home).sum()


@given(seeds, st.integers(0, 2000))
def test_rearranging_moves_no_more_replicas_and_can_be_cut_in_two(seed: int, cut: int) -> None:
    small = random_small(seed)
    forced = must_relocate(*small.arrays(), np.array(small.accepts))
    ends = []
    for cuts in ((2000,), (cut, 2000)):
        problem, state = small.arrays()
        redistribute(problem, state, forced, no_leader_limit(small), NO_LIMIT)
        targets = new_targets(problem, no_leader_limit(small), 0.95)
        moved = moved_replicas(problem, state)
        count = moved.shape[0]
        random = np.array([seed + 1], np.uint64)
        threshold = mean_square(targets, small.extra)
        spare = np.zeros(1, np.int64)
        step = 0
        for end in cuts:
            step = accept_by_threshold(
                problem, state, targets, moved, threshold, step, end, 2000, np.inf, spare, random
            )
            level = highest(state, targets) <= 1.0
        check_counts(problem, state)
        check_rules(small, state)
        assert moved_replicas(problem, state).shape[0] == count
        assert sorted(moved) == moved_replicas(problem, state).tolist()
        ends.append((state.node.tolist(), state.leader.tolist()))
    assert level or ends[0] == ends[1]  # what is level at the cut walks no further


@pytest.mark.small
@given(seeds)
def test_the_mean_square_is_of_the_pressure_on_an_average_node_that_counts(seed: int) -> None:
    small = random_small(seed)
    problem, _ = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 0.9)
    load = np.array(small.load)
    total = 0.0
    for d, scales in enumerate(targets.scale.tolist()):
        counted = [scale for scale in scales if 0.0 < scale < 1e29]
        average = sum(counted) / max(1, len(counted))
        total += sum((weight * average) ** 2 for weight in load[:, d].tolist())
    assert mean_square(targets, load) == pytest.approx(total / max(1, len(load)))


@walks
@given(seeds)
def test_a_descent_keeps_every_rule_at_every_piece(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    for pieces, _ in enumerate(begun(small, problem, state, forced, seed=seed)):
        check_rules(small, state)
        if pieces == 3:
            break
    check_counts(problem, state)


@walks
@pytest.mark.parametrize("seed", range(6))
def test_an_expanded_cluster_gets_level_with_few_moves(seed: int) -> None:
    small = level_case(seed, partitions=400, nodes=24, tolerance=0.05)
    problem, state = small.arrays()
    alive = np.array(small.accepts)
    forced = must_relocate(problem, state, alive)
    stages = list(begun(small, problem, state, forced))
    assert stages[-1].stage == "level"
    assert (state.load[:, alive] <= problem.nodes.watermark[:, alive] * (1 + 1e-9)).all()
    check_counts(problem, state)
    check_rules(small, state)
    moves = int((state.node != problem.partitions.home).sum())
    bound = int(forced.sum())
    for n in np.flatnonzero(alive):
        held = np.sort(small.load[problem.partitions.owner[problem.partitions.home == n], 1])[::-1]
        excess = held.sum() - problem.nodes.watermark[1, n]
        bound += int(np.searchsorted(np.cumsum(held), excess) + 1) if excess > 0 else 0
    assert bound <= moves <= 1.1 * bound


@walks
def test_the_same_seed_gives_the_same_bits_and_no_leader_limit_is_passed() -> None:
    small = level_case(5, partitions=300, nodes=20, tolerance=0.04)
    most = np.full(20, np.ceil(1.1 * 300 / 19))
    ends = []
    for _ in range(2):
        problem, state = small.arrays()
        forced = must_relocate(problem, state, np.array(small.accepts))
        stages = list(descend(problem, state, state.leader.copy(), forced, most, NO_LIMIT, 7))
        ends.append((state.node.tolist(), state.leader.tolist(), stages))
    assert ends[0] == ends[1]
    assert ends[0][2][-1].stage == "level"
    assert (state.leaders <= most).all()


@walks
def test_a_budget_of_moves_is_kept_and_repairs_do_not_count_against_it() -> None:
    small = level_case(4, partitions=300, nodes=20, tolerance=0.02)
    for budget in (0, 5):
        problem, state = small.arrays()
        forced = must_relocate(problem, state, np.array(small.accepts))
        for pieces, _ in enumerate(begun(small, problem, state, forced, budget)):
            if pieces == 6:
                break
        moved = state.node != problem.partitions.home
        assert moved[forced].all()
        assert (moved & ~forced).sum() <= budget


def test_relief_that_relieves_nothing_is_not_tried_for_ever() -> None:
    small = level_case(4, partitions=DEFAULT.few_replicas, nodes=24)
    problem, state = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 1.0)
    reliefs = 0
    early = replace(DEFAULT, reliefs_at_once=0)
    for walk in proposed_walks(problem, state, targets, early):  # they are not taken
        if walk.looks > 0:
            break
        reliefs += walk.rounds
    assert reliefs == DEFAULT.fruitless_reliefs < DEFAULT.reliefs


def test_a_level_cluster_is_left_alone() -> None:
    small = level_case(6, tolerance=10.0)
    small.capacity[:] = np.inf
    small.accepts = small.leads = [True] * 12
    small.watermark[:] = 1e9
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    stages = list(begun(small, problem, state, forced))
    assert [s.stage for s in stages] == ["redistribute", "level"]
    assert (state.node == problem.partitions.home).all()
    assert state.leader.tolist() == small.leader


@walks
@pytest.mark.parametrize("seed", range(4))
def test_few_alike_replicas_get_level_though_no_single_move_would_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [[int(n) for n in rng.permutation(6)[:3]] for _ in range(10)]
    small = level_case(seed, partitions=10, nodes=6)
    small.zone, small.per_zone, small.placement = [0] * 6, 3, rows
    small.accepts = small.leads = [True] * 6
    small.load[:] = 1.0
    small.extra[:] = [1.0, 0.0]
    small.capacity[:] = np.inf
    small.watermark[:] = [7.0, 5.0]
    problem, state = small.arrays()
    stages = list(begun(small, problem, state, np.zeros(30, bool)))
    assert stages[-1].stage == "level"
    assert (state.load.max(axis=1) <= [7.0, 5.0]).all()
    check_counts(problem, state)
    check_rules(small, state)
    again = small.arrays()[1]._replace(node=state.node.copy(), leader=state.leader.copy())
    for array in again[3:]:
        array[...] = 0
    settle(problem, again)
    problem.partitions.home[:] = state.node
    list(begun(small, problem, again, np.zeros(30, bool), seed=1))
    assert again.node.tolist() == state.node.tolist()
    assert again.leader.tolist() == state.leader.tolist()


@given(seeds)
def test_an_open_walk_spends_no_more_moves_than_it_may(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    targets = new_targets(problem, no_leader_limit(small), 0.9)
    replicas = placed_replicas(problem, state)
    data = mean_square(targets, small.load)
    spare = np.array([2], np.int64)
    random = np.array([seed + 1], np.uint64)
    if not replicas.size:
        return
    accept_by_threshold(
        problem, state, targets, replicas, data, 0, 3000, 3000, 0.01 * data, spare, random
    )
    check_counts(problem, state)
    check_rules(small, state)
    away = int(((state.node != problem.partitions.home) & (state.node >= 0)).sum())
    assert spare[0] == 2 - away >= 0


def test_leaders_come_back_where_the_level_holds() -> None:
    small = level_case(8, tolerance=10.0)
    small.capacity[:] = np.inf
    small.accepts = small.leads = [True] * 12
    small.watermark[:] = 1e9
    small.watermark[3] = 0.0
    problem, state = small.arrays()
    was = state.leader.copy()
    let_second_lead(problem, state)
    targets = new_targets(problem, no_leader_limit(small), 1.0)
    restore_leaders(problem, state, targets, was)
    for p, row in enumerate(small.placement):
        assert state.leader[p] == (1 if row[0] == 3 else 0)
    check_counts(problem, state)


def test_moves_that_the_level_does_not_need_are_taken_back() -> None:
    small = level_case(8, tolerance=10.0)
    small.capacity[:] = np.inf
    small.accepts = small.leads = [True] * 12
    small.watermark[:] = 1e9
    problem, state = small.arrays()
    state.node[:] = [(n + 4) % 12 for n in state.node]
    for array in state[3:]:
        array[...] = 0
    settle(problem, state)
    targets = new_targets(problem, no_leader_limit(small), 1.0)
    forced, floor = np.zeros(180, bool), np.zeros_like(state.load)
    assert send_home(problem, state, targets, forced, state.load.copy()) == 0
    assert send_home(problem, state, targets, forced, floor) == 180
    assert highest(state, targets) <= 1.0
    check_counts(problem, state)


@no_alloc
def no_fewer(
    value: NDArray[np.float64],
    items: int,
    peak: NDArray[np.float64],
    hard: NDArray[np.float64],
    near: Near,
    count: int,
) -> bool:
    return is_fewest(value, items, peak, hard, near, count)


@pytest.mark.small
@given(seeds)
def test_a_cover_is_the_fewest_if_the_largest_of_some_dimension_are_no_fewer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dimensions, items = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    value = rng.choice([0.0, 1e-4, 0.1, 0.3, 1.0, 2.5], (dimensions, items))
    hard = rng.choice([0.0, 0.3, 0.4, 1.0, 3.0], dimensions)
    near, peak = Near.place_for(dimensions, items), value.max(axis=1)
    for count in range(1, items + 1):
        largest = np.sort(value, axis=1)[:, ::-1][:, : count - 1].sum(axis=1)
        found = no_fewer(value, items, peak, hard, near, count)
        assert found == bool((largest < hard * (1.0 - 1e-9)).any())


@pytest.mark.small
def test_a_node_that_is_full_of_what_must_stay_reads_nothing_it_has_not_chosen():
    """What cannot move weighs, what can weighs nothing: no choice helps, and none is looked at."""
    given = Small(
        zone=[0], capacity=np.full((1, 2), 99.0), load=np.array([[9.0, 9.0], [0.0, 0.0]]),
        extra=np.zeros((2, 2)), placement=[[0], [0]], leader=[-1, -1],
        watermark=np.ones((1, 2)), accepts=[True], leads=[True],
    )  # fmt: skip
    problem, state = given.arrays()
    problem.partitions.movable[0] = False
    first, member = by_node(state.node, 1)
    never = np.full(2, 1 << 40)  # a place that is in no array
    count = shed_each(
        problem, state, np.zeros(2, bool), np.zeros(2), 0.0, first, member, np.empty(2, np.int64),
        np.empty((2, 2)), np.empty(2), Near.place_for(2, 2), never, np.empty((7, 2)),
        np.empty(2, np.int64), 0, 1,
    )  # fmt: skip
    assert count == 0
