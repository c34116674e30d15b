"""Candidates looked at in full: prices are differences of costs, and no breach is overlooked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.experiments.reassignment_instances import SHAPES, reassignment
from bench.support import full_evaluation as evaluation
from bench.support.full_evaluation import AFFINITY_BROKEN, CLASHING, MISPLACED, OVERFULL
from evenkeel.methods.cost import begin_walk
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import check
from evenkeel_kernels.build.jit import jit
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import total_cost
from evenkeel_kernels.cost.cost_state import CostState, pair_price, tighten
from tests.naive.core import state as naive
from tests.naive.cost import annealing as naive_search
from tests.support.random_problems import random_problem

SEEDS = st.integers(0, 2**32 - 1)
GENEROUS = settings(deadline=None, max_examples=30)


@jit
def looked_at(
    problem: Problem, state: State, walk: CostState, a: int, b: int, y: int
) -> tuple[float, int]:
    """The whole price of a move (``b`` -1) or a swap, and what it breaks."""
    x = np.int64(state.node[a])
    price = pair_price(walk.need, walk.weight, walk.excess, walk.cost, a, x, b, y, np.inf)
    price += evaluation.moving_price(problem, state, a, b, y)
    return price, evaluation.broken_by(problem, state, walk, a, b, y)


def opened(problem: Problem, state: State, seed: int) -> CostState:
    """What it costs, with a penalty of 1 everywhere."""
    walk = begin_walk(problem, state, seed)
    tighten(problem, state, walk, np.ones(len(problem.nodes.weight)), 1.0, 1.0)
    return walk


def candidates(problem: Problem, state: State, walk: CostState, seed: int):
    """Some moves and swaps."""
    rng = np.random.default_rng(seed)
    for _ in range(8 if len(walk.item) else 0):
        a, b = (int(k) for k in rng.choice(walk.item, 2))
        y = int(rng.integers(len(walk.cost)))
        if y != state.node[a]:
            yield a, -1, y
        owner = problem.partitions.owner
        if state.node[a] != state.node[b] and owner[a] != owner[b]:
            yield a, b, int(state.node[b])


def done(state: State, a: int, b: int, y: int) -> State:
    """The state after a candidate, its counts left as they were."""
    after = naive.moved_to(state, a, y)
    return after if b < 0 else naive.moved_to(after, b, int(state.node[a]))


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_a_price_is_the_difference_of_two_costs(seed):
    _, problem, state = random_problem(seed)
    walk = opened(problem, state, seed)
    for a, b, y in candidates(problem, state, walk, seed):
        price, _ = looked_at(problem, state, walk, a, b, y)
        after = naive.total_cost(problem, done(state, a, b, y))
        assert price == after - naive.total_cost(problem, state)


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_every_breach_is_found_by_itself(seed):
    _, problem, state = random_problem(seed)
    walk = opened(problem, state, seed)
    for a, b, y in candidates(problem, state, walk, seed):
        _, broken = looked_at(problem, state, walk, a, b, y)
        x, after = int(state.node[a]), done(state, a, b, y)
        counts = naive.recount(problem, after)
        over = counts["load"] + counts["held"] > problem.nodes.capacity
        crowded = b < 0 and counts["replicas"][y] > problem.nodes.max_replicas[y]
        assert bool(broken & OVERFULL) == bool(over[:, [x, y]].any() or crowded)
        group, owner = problem.partitions.group, problem.partitions.owner
        if b >= 0 and group[owner[a]] == group[owner[b]]:
            if state.role[a] == state.role[b]:
                assert not broken & (CLASHING | AFFINITY_BROKEN)
            continue
        first = naive.moved_to(state, a, y)
        steps = [(state, first, a, y)] + ([(first, after, b, x)] if b >= 0 else [])
        assert bool(broken & CLASHING) != all(naive.group_holds(problem, *s) for s in steps)
        assert bool(broken & AFFINITY_BROKEN) != all(naive.near_holds(problem, *s) for s in steps)


@given(SEEDS)
@GENEROUS
def test_what_breaks_nothing_breaks_nothing(seed):
    _, problem, state = random_problem(seed)
    walk = opened(problem, state, seed)
    before = naive_search.broken(problem, state)
    for a, b, y in candidates(problem, state, walk, seed):
        _, broken = looked_at(problem, state, walk, a, b, y)
        after = naive_search.broken(problem, done(state, a, b, y))
        if not broken & (MISPLACED | CLASHING | AFFINITY_BROKEN):
            assert all(after[kind] <= before[kind] for kind in before)
        elif broken == MISPLACED and b < 0:
            assert not naive.admits(problem, state, a, y)


def test_on_an_instance_the_judge_agrees():
    shape = SHAPES["b_1"]
    cluster = roadef.cluster_of(reassignment(shape, 3))
    model, cost = roadef.native_of(cluster), roadef.cost_of(cluster)
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    state = compile_state(cluster, problem)
    walk = opened(problem, state, 0)
    now = check(model, model.initial).cost
    assert total_cost(problem, state) == now
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(50):
        a, b = (int(k) for k in rng.integers(0, shape.processes, 2))
        y = int(state.node[b])
        if state.node[a] == y:
            continue
        price, broken = looked_at(problem, state, walk, a, b, y)
        verdict = check(model, done(state, a, b, y).node)
        assert verdict.cost - now == price
        assert verdict.feasible == (broken == 0)
        seen.add(broken)
    assert {0, OVERFULL, OVERFULL | CLASHING} < seen


def test_a_probe_changes_nothing_and_counts():
    _, problem, state = random_problem(5)
    walk = opened(problem, state, 5)
    before = [array.copy() for array in (*state, *walk)]
    found = np.zeros(4, np.int64)
    total = evaluation.probe(problem, state, walk, 2_000, found)
    after = [*state, *walk]
    names = [*State._fields, *CostState._fields]
    for name, old, new in zip(names, before, after, strict=True):
        assert name == "random" or (old == new).all(), name
    assert walk.random[0] != before[names.index("random")][0]
    assert (found >= 0).all()
    assert (found <= 2_000).all()
    assert np.isfinite(total)
