"""Kernels by themselves, at sizes that show how they grow in P, N and D."""

import numpy as np
import pytest

from bench.support.compiled_clusters import (
    before_shedding,
    before_walking,
    compiled_empty,
    compiled_expansion,
    filling,
    redistributed,
)
from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.state import settle
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first
from evenkeel_kernels.levelling.offload import select_evictions
from evenkeel_kernels.levelling.threshold_walk import accept_by_threshold

SIZES = [
    (25_000, 300, 3), (5_000, 300, 3), (100_000, 300, 3), (25_000, 100, 3), (25_000, 1_000, 3),
    (25_000, 300, 1), (25_000, 300, 8),
]  # fmt: skip
FILLING_SIZES = [(p // 10, n, d) for p, n, d in SIZES]
STEPS = 250_000

sized = pytest.mark.parametrize(("partitions", "nodes", "dimensions"), SIZES)


@no_alloc
def count_admitted(problem, state, replicas, nodes):
    """Count how many of the pairs (replica, node) the rules admit."""
    count = 0
    for i in range(replicas.shape[0]):
        count += int(admits(problem, state, replicas[i], nodes[i]))
    return count


@sized
@pytest.mark.benchmark(group="settle")
def test_settle(benchmark, partitions, nodes, dimensions):
    compiled = compiled_expansion(partitions, nodes, dimensions)
    benchmark.pedantic(
        lambda state: settle(compiled.problem, state),
        setup=lambda: ((compiled.blank(),), {}),
        rounds=20, warmup_rounds=1,
    )  # fmt: skip
    benchmark.extra_info["items"] = compiled.replicas


@pytest.mark.parametrize(("partitions", "nodes", "dimensions"), FILLING_SIZES)
@pytest.mark.benchmark(group="best fit")
def test_best_fit(benchmark, partitions, nodes, dimensions):
    compiled = compiled_empty(partitions, nodes, dimensions)
    order = largest_first(compiled.problem, compiled.forced)
    moved = benchmark.pedantic(
        lambda state, *given: best_fit(compiled.problem, state, *given, 1.0, 0, len(order)),
        setup=lambda: (filling(compiled, order), {}),
        rounds=10, warmup_rounds=1,
    )  # fmt: skip
    benchmark.extra_info["items"] = moved
    assert moved == len(order)


@sized
@pytest.mark.benchmark(group="shed")
def test_shed(benchmark, partitions, nodes, dimensions):
    compiled = compiled_expansion(partitions, nodes, dimensions)

    def run(state, ease, first, member):
        return select_evictions(
            compiled.problem, state, compiled.forced, ease.share, ease.firm, first, member, 0, nodes
        )

    given = benchmark.pedantic(
        run, setup=lambda: (before_shedding(compiled), {}), rounds=20, warmup_rounds=1
    )
    benchmark.extra_info["items"] = len(given)
    assert 0 < len(given) < compiled.replicas


@sized
@pytest.mark.benchmark(group="walk")
def test_walk(benchmark, partitions, nodes, dimensions):
    compiled = redistributed(partitions, nodes, dimensions)

    def run(state, targets, moved, threshold, random):
        return accept_by_threshold(
            compiled.problem, state, targets, moved,
            threshold, 0, STEPS, STEPS, np.inf, np.zeros(1, np.int64), random,
        )  # fmt: skip

    steps = benchmark.pedantic(
        run, setup=lambda: (before_walking(compiled), {}), rounds=7, warmup_rounds=1
    )
    benchmark.extra_info["items"] = steps
    assert steps == STEPS


@sized
@pytest.mark.benchmark(group="admits")
def test_admits(benchmark, partitions, nodes, dimensions):
    compiled = compiled_expansion(partitions, nodes, dimensions)
    random = np.random.default_rng(1)
    replicas = random.integers(0, compiled.replicas, STEPS)
    wanted_nodes = random.integers(0, nodes, STEPS)
    count = benchmark.pedantic(
        count_admitted,
        (compiled.problem, compiled.state, replicas, wanted_nodes),
        rounds=10,
        warmup_rounds=1,
    )
    benchmark.extra_info["items"] = STEPS
    assert 0 < count < STEPS
