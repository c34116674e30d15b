"""The search: exact prices, rules never broken, best states that are what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.methods import cost as ending
from evenkeel.methods import cost as portfolio
from evenkeel.methods.cost import Annealing, begin_walk, minimise
from evenkeel.methods.shared.stopping import Progress, Watch
from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import check
from evenkeel_kernels.build.jit import jit
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import total_cost
from evenkeel_kernels.cost.annealing import anneal
from evenkeel_kernels.cost.cost_state import (
    CostState,
    chain_price,
    pair_price,
    penalty_with,
    tighten,
    visit,
)
from evenkeel_kernels.cost.group_violations import all_breaches, breaches
from tests.naive.core import state as naive_state
from tests.naive.cost import annealing as naive
from tests.support import places
from tests.support.random_problems import random_problem

DATA = places.DATA / "roadef"
SEEDS = st.integers(0, 2**32 - 1)
GENEROUS = settings(deadline=None, max_examples=40)


def random_walk(seed: int) -> tuple[Problem, State, CostState]:
    """A random problem ready for a search, with penalties in force."""
    _, problem, state = random_problem(seed)
    walk = begin_walk(problem, state, seed)
    tighten(problem, state, walk, np.full(len(problem.nodes.weight), 2.0), 1.0, 1.0)
    return problem, state, walk


@jit
def priced(
    problem: Problem, state: State, walk: CostState, a: int, b: int, y: int, z: int
) -> float:
    """The price of a move (``b`` -1), a swap or a chain, put together as the search does."""
    x = state.node[a]
    home, kept = problem.partitions.home, walk.kept
    need, weight, excess, cost = walk.need, walk.weight, walk.excess, walk.cost
    room, penalty_weight = walk.room, walk.penalty_weight
    if z == x:
        price = pair_price(need, weight, excess, cost, a, x, b, y, np.inf)
    else:
        price = chain_price(need, weight, excess, cost, a, x, b, y, z, np.inf)
    was_b, is_b = b >= 0 and home[b] == y, b >= 0 and home[b] == z
    penalties = penalty_with(need, room, penalty_weight, kept, y, a, home[a] == y, b, was_b)
    if z == x:
        penalties += penalty_with(need, room, penalty_weight, kept, x, b, is_b, a, home[a] == x)
    else:
        penalties += penalty_with(need, room, penalty_weight, kept, x, -1, False, a, home[a] == x)
        penalties += (
            penalty_with(need, room, penalty_weight, kept, z, b, is_b, -1, False) - walk.penalty[z]
        )
    return price + penalties - walk.penalty[x] - walk.penalty[y]


@jit
def more_breaches(problem: Problem, state: State, k: int, n: int) -> int:
    """What the search counts if replica ``k`` went to ``n``."""
    return breaches(problem, state, k, n)


def group_breaches(problem: Problem, state: State) -> int:
    """Breaches of all groups' rules, counted from scratch."""
    broken = naive.broken(problem, state)
    return broken["group"] + broken["near"]


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_prices_are_differences_of_costs_and_fines(seed):
    problem, state, walk = random_walk(seed)
    rng = np.random.default_rng(seed)
    placed = np.flatnonzero(state.node >= 0)
    for _ in range(6 if len(placed) else 0):
        a, b = rng.choice(placed, 2)
        x, y = state.node[a], int(rng.integers(len(walk.cost)))
        if x != y:
            expected = naive.price(problem, state, walk, [(a, y)])
            assert priced(problem, state, walk, int(a), -1, y, int(x)) == expected
        y = int(state.node[b])
        if x != y:
            expected = naive.price(problem, state, walk, [(a, y), (b, x)])
            assert priced(problem, state, walk, int(a), int(b), y, int(x)) == expected
        z = int(rng.integers(len(walk.cost)))
        if x != y and z not in (x, y):
            expected = naive.price(problem, state, walk, [(a, y), (b, z)])
            assert priced(problem, state, walk, int(a), int(b), y, z) == expected


@pytest.mark.small
@given(SEEDS)
@GENEROUS
def test_breaches_are_counted_as_they_come_and_go(seed):
    _, problem, state = random_problem(seed)
    before = group_breaches(problem, state)
    assert all_breaches(problem, state) == before
    rng = np.random.default_rng(seed)
    for k in range(len(state.node)):
        n = int(rng.integers(problem.nodes.capacity.shape[1]))
        after = group_breaches(problem, naive_state.moved_to(state, k, n))
        assert more_breaches(problem, state, k, n) == after - before


@pytest.mark.small
@given(SEEDS, st.sampled_from([0.5, 20.0]))
@GENEROUS
def test_what_breaks_a_rule_on_the_way_is_counted_and_never_the_best(seed, penalty_weight):
    problem, state, walk = random_walk(seed)
    if len(walk.item) == 0:
        return
    start = group_breaches(problem, state)
    walk.breach_penalty[0] = penalty_weight
    for _ in range(3):
        anneal(problem, state, walk, len(walk.item), 200, 5.0, 2.0)
        assert walk.breaches[0] == group_breaches(problem, state) - start
        assert walk.broken.sum() >= walk.breaches[0]
        assert walk.total[0] == total_cost(problem, state)
        assert group_breaches(problem, state._replace(node=walk.best)) <= start
    if walk.total[1] < np.inf:
        best, cost = walk.best.copy(), float(walk.total[1])
        visit(problem, state, walk, best, cost)
        assert state.node.tolist() == best.tolist()
        assert walk.total[0] == total_cost(problem, state) == cost
        assert walk.cost.tolist() == naive.node_costs(problem, state)


@pytest.mark.small
@given(SEEDS, st.sampled_from([0.01, 1.0, 100.0]))
@GENEROUS
def test_rules_hold_books_stay_right_and_the_best_is_the_best(seed, temperature):
    problem, state, walk = random_walk(seed)
    if len(walk.item) == 0:
        return
    start = state.node.copy()
    rules, crowds = naive.broken(problem, state), naive.crowded_domains(problem, state)
    first = total_cost(problem, state)
    for _ in range(3):
        anneal(problem, state, walk, len(walk.item), 200, temperature, temperature / 2)
        after = naive.broken(problem, state)
        assert all(after[kind] <= rules[kind] for kind in rules), (rules, after)
        assert naive.crowded_domains(problem, state) <= crowds
    for name, expected in naive_state.recount(problem, state).items():
        np.testing.assert_array_equal(getattr(state, name), expected, err_msg=name)
    assert walk.total[0] == total_cost(problem, state)
    assert walk.cost.tolist() == naive.node_costs(problem, state)
    assert walk.penalty.tolist() == naive.node_penalties(problem, state, walk)
    assert (state.node[~problem.partitions.movable] == start[~problem.partitions.movable]).all()
    best = state._replace(node=walk.best)
    if walk.total[1] < np.inf:
        assert walk.total[1] == naive_state.total_cost(problem, best) <= max(first, walk.total[1])
        assert not any(naive.node_penalties(problem, best, walk))
    else:
        assert (walk.best == start).all()


def test_slices_make_no_difference():
    ends = []
    for pieces in (1, 4):
        problem, state, walk = random_walk(15)
        for _ in range(pieces):
            anneal(problem, state, walk, len(walk.item), 1024 // pieces, 5.0, 5.0)
        ends.append((state.node.tolist(), walk.best.tolist(), walk.random[0], walk.total.tolist()))
    assert ends[0] == ends[1]


@pytest.fixture(scope="module")
def small():
    return roadef.read(DATA / "model_a1_1.txt.gz")


def test_a_small_instance_comes_near_its_proven_optimum(small):
    found = minimise(small, roadef.cost_of(small), Watch(None, 1_500_000, None))
    verdict = check(small.native, found.node)
    assert verdict.feasible
    assert verdict.cost == found.cost <= 44_306_501 * 1.0002
    assert found.stop_reason == "work"


def test_an_instance_with_every_constraint_stays_feasible():
    cluster = roadef.read(DATA / "model_a1_3.txt.gz")
    found = minimise(cluster, roadef.cost_of(cluster), Watch(None, 3_000_000, None))
    verdict = check(cluster.native, found.node)
    assert verdict.feasible
    assert verdict.cost == found.cost < 583_662_270


def test_same_seed_same_work_same_bits(small):
    cost = roadef.cost_of(small)
    runs = [minimise(small, cost, Watch(None, 200_000, None), seed) for seed in (3, 3, 4)]
    assert runs[0].node.tolist() == runs[1].node.tolist()
    assert runs[0].applied == runs[1].applied != runs[2].applied


def test_threads_make_no_difference(monkeypatch):
    cluster = roadef.read(DATA / "model_a1_3.txt.gz")
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(portfolio, "processors", lambda count=threads: count)
        found.append(minimise(cluster, roadef.cost_of(cluster), Watch(None, 5_000_001, None), 3))
    assert found[0].node.tolist() == found[1].node.tolist()
    assert found[0].work == found[1].work == 5_000_001
    assert found[0].applied == found[1].applied
    assert check(cluster.native, found[0].node).cost == found[0].cost


def test_an_error_in_one_search_reaches_the_caller(small, monkeypatch):
    def fail(self: Annealing, part: float) -> None:
        raise ArithmeticError("lost")

    monkeypatch.setattr(Annealing, "slice", fail)
    with pytest.raises(ArithmeticError, match="lost"):
        minimise(small, roadef.cost_of(small), Watch(None, 5_000_000, None))


def test_a_callback_stops_and_keeps_the_best(small):
    told: list[Progress] = []

    def enough(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 3:
            raise StopIteration

    found = minimise(small, roadef.cost_of(small), Watch(None, None, enough))
    assert found.stop_reason == "interrupted"
    assert found.cost == told[-1].cost == check(small.native, found.node).cost
    assert told[-1].work == found.work


def test_an_interrupt_keeps_the_best(small):
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    found = minimise(small, roadef.cost_of(small), Watch(None, None, interrupt))
    assert found.stop_reason == "interrupted"
    assert check(small.native, found.node).cost == found.cost


def test_no_time_is_no_change(small):
    found = minimise(small, roadef.cost_of(small), Watch(0.0, None, None))
    assert found.node.tolist() == small.placement.node.tolist()
    assert found.cost == 49_528_750


def test_nothing_to_do():
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.goals import Cost

    for arrays in (
        {"capacity": np.zeros((0, 1)), "load": np.zeros((0, 1))},
        {"capacity": [[5.0]], "load": [[1.0]], "placement": [[0]], "watermark": [[0.0]]},
    ):
        found = minimise(Cluster.from_arrays(**arrays), Cost(), Watch(None, 1000, None))
        assert found.work == 0


@pytest.mark.parametrize("processors", [1, 2])
def test_an_interrupted_ending_keeps_the_best(monkeypatch, processors):
    cluster = roadef.read(DATA / "model_a1_3.txt.gz")
    cooled = ending.Intensification._cool
    told: list[float] = []
    reached: list[float] = []

    def tell(progress: Progress) -> None:
        told.append(progress.cost)
        if progress.work > 3_500_000:
            raise KeyboardInterrupt

    def cool(self, height):
        reached.append(height)
        cooled(self, height)
        if processors == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "processors", lambda: processors)
    monkeypatch.setattr(ending, "POLISHED", 100_000)
    monkeypatch.setattr(ending.Intensification, "_cool", cool)
    found = minimise(cluster, roadef.cost_of(cluster), Watch(None, 4_000_000, tell), 3)
    assert found.stop_reason == "interrupted" and reached
    verdict = check(cluster.native, found.node)
    assert verdict.feasible
    assert verdict.cost == found.cost <= min(told)
