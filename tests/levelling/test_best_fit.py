"""Best fit: the same nodes as the plain search, and no rule broken."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.levelling.best_fit import best_fit, greatest_first, largest_first
from tests.naive.levelling import best_fit as naive
from tests.support.small_problems import Small, level_case, random_small

seeds = st.integers(0, 2**32 - 1)


def everything_led(small: Small) -> np.ndarray:
    return np.ones(len(small.placement), bool)


@given(seeds, st.sampled_from([0.5, 1.0, FAR / 2]))
def test_same_nodes_as_the_plain_search(seed: int, ceiling: float) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    rng = np.random.default_rng(seed)
    order = rng.permutation(state.node.shape[0])[: rng.integers(0, state.node.shape[0] + 1)]
    forced = rng.random(state.node.shape[0]) < 0.5
    most_leaders = rng.choice([1.0, 2.5, np.inf], len(small.zone))
    scan = new_scan(problem, np.zeros(state.load.shape[0]), most_leaders)
    led = everything_led(small)
    moved = best_fit(problem, state, scan, order, forced, led, ceiling, 0, order.shape[0])
    replicas = len(small.placement[0])
    slots = [(int(k) // replicas, int(k) % replicas) for k in order]
    expected = naive.best_fit(small, slots, [bool(forced[k]) for k in order], ceiling, most_leaders)
    got = state.node.reshape(-1, replicas)
    # Loads that were booked and taken out again round otherwise than a fresh sum: such near ties
    # may fall either way, so the comparison is of the scores, and of the count of those placed.
    if got.tolist() != expected:
        fresh = naive.PlainState(small)
        fresh.placement = got.tolist()
        other = naive.PlainState(small)
        other.placement = expected
        assert moved == sum(
            a != b for a, b in zip(chain(*expected), chain(*small.placement), strict=True)
        )
        for n in range(len(small.zone)):
            np.testing.assert_allclose(fresh.load(n), other.load(n), rtol=1e-9, atol=1e-9)


@given(seeds)
def test_from_empty_nothing_is_broken_and_each_placed_partition_is_led(seed: int) -> None:
    small = random_small(seed)
    small.placement = [[-1] * len(row) for row in small.placement]
    small.leader = [-1] * len(small.placement)
    problem, state = small.arrays()
    forced = np.ones(state.node.shape[0], bool)
    led = np.zeros(len(small.placement), bool)
    scan = new_scan(problem, np.zeros(state.load.shape[0]))
    order = largest_first(problem, forced)
    best_fit(problem, state, scan, order, forced, led, 1.0, 0, order.shape[0])
    replicas = len(small.placement[0])
    for p, row in enumerate(state.node.reshape(-1, replicas)):
        placed = [n for n in row if n >= 0]
        assert len(set(placed)) == len(placed)
        zones = [small.zone[n] for n in placed]
        assert all(zones.count(z) <= small.per_zone for z in zones)
        assert all(small.accepts[n] and small.allowed[p, n] for n in placed)
        if any(small.leads[n] for n in placed):
            assert small.leads[row[state.leader[p]]]
        else:
            assert state.leader[p] == -1


def test_a_stretch_at_a_time_is_the_same_as_all_at_once() -> None:
    small = level_case(3)
    small.placement = [[-1] * 3 for _ in small.placement]
    outcomes = []
    for stretch in (10**6, 9):
        problem, state = small.arrays()
        forced = np.ones(state.node.shape[0], bool)
        order = largest_first(problem, forced)
        scan = new_scan(problem, np.zeros(2))
        led = everything_led(small)
        for begin in range(0, order.shape[0], stretch):
            end = min(begin + stretch, order.shape[0])
            best_fit(problem, state, scan, order, forced, led, 1.0, begin, end)
        outcomes.append(state.node.tolist())
    assert outcomes[0] == outcomes[1]
    assert min(outcomes[0]) >= 0


@given(seeds)
def test_largest_first_sorts_partitions_and_keeps_them_together(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    chosen = np.random.default_rng(seed).random(state.node.shape[0]) < 0.6
    order = largest_first(problem, chosen)
    assert sorted(order) == np.flatnonzero(chosen).tolist()
    counted = np.isfinite(problem.nodes.watermark) & problem.nodes.accepts
    room = np.where(counted, problem.nodes.watermark, 0.0).sum(axis=1)
    share = [
        max((load / r for load, r in zip(row, room, strict=True) if r > 0), default=0.0)
        for row in small.load
    ]
    owner = problem.partitions.owner[order]
    keys = [(-share[p], p, k) for p, k in zip(owner, order, strict=True)]
    assert [k for *_, k in sorted(keys, key=lambda key: key[1:])] == sorted(order)
    for (a, p, _), (b, q, _) in pairwise(keys):
        assert a <= b + 1e-12
        assert p <= q or small.load[p].tolist() != small.load[q].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_an_empty_cluster_ends_up_flat(seed: int) -> None:
    small = level_case(seed, partitions=400, tolerance=0.05)
    small.placement = [[-1] * 3 for _ in small.placement]
    small.leader = [-1] * 400
    problem, state = small.arrays()
    forced = np.ones(state.node.shape[0], bool)
    order = largest_first(problem, forced)
    scan = new_scan(problem, np.zeros(2))
    best_fit(problem, state, scan, order, forced, ~np.ones(400, bool), 1.0, 0, order.shape[0])
    alive = np.array(small.accepts)
    used = state.load[:, alive]
    assert (used.max(axis=1) / used.mean(axis=1) < 1.05).all()


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
@pytest.mark.parametrize("kinds", [1, 7, 1_000_000])
def test_the_greatest_come_first_and_ties_by_index(count, kinds):
    values = np.random.default_rng(count).integers(0, kinds, count) * 0.1
    order = np.argsort(-values, kind="stable")
    assert greatest_first(values).tolist() == order.tolist()
