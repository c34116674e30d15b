"""Partitions alike: the exact method finds the best, and need not try each order."""

from types import SimpleNamespace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds import bounds
from evenkeel.methods.exact.variables import in_order, symmetric_partitions
from tests.naive.exact import brute_force as naive
from tests.support.effort import mostly_long


def alike(rng):
    """A tiny cluster whose partitions come in two sorts, from one or two places."""
    nodes = int(rng.integers(2, 5))
    zone = np.arange(nodes)
    sorts = rng.integers(1, 6, (2, 1)).astype(float)
    sort = rng.integers(0, 2, int(rng.integers(3, 6)))
    replicas = int(rng.integers(1, 3))
    homes = [rng.choice(nodes, replicas, replace=False) for _ in range(2)]
    return ek.Cluster.from_arrays(
        capacity=rng.integers(12, 40, (nodes, 1)).astype(float),
        load=sorts[sort],
        leader_load=sorts[sort] + float(rng.integers(0, 3)),
        domains={"zone": zone},
        spread={"zone": 1},
        placement=[homes[int(rng.integers(2))] for _ in sort],
    )


@pytest.mark.parametrize("seed", mostly_long(range(8), [0]))
def test_an_order_among_twins_loses_no_answer(seed):
    rng = np.random.default_rng(seed)
    tried = 0
    for _ in range(5):
        cluster, goals = alike(rng), ek.Goals(level=float(rng.choice([0.0, 0.1])))
        best = naive.best(cluster, bounds(cluster, goals))
        if best is None or len(symmetric_partitions(cluster)) == len(cluster.partitions):
            continue
        tried += 1
        result = ek.solve(cluster, method="exact", goals=goals)
        assert result.native.status == "optimal"
        loads = result.levelness.loads
        assert naive.measured(loads, result.bounds, result.comparison.moves) == best
    assert tried > 1


def test_a_dozen_partitions_alike_are_proven_with_little_effort():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0, 10.0], [11.0, 9.0], [13.0, 7.0], [9.0, 12.0], [12.0, 12.0]],
        load=[[1.3, 1.1]] * 12,
        replicas=2,
    )
    result = ek.solve(cluster, method="exact", goals=ek.Goals(level=0.0))
    assert result.native.status == "optimal"
    assert result.native.effort < 1.0


def test_only_what_nothing_tells_apart_are_twins():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 5, placement=[[0], [0], [1], [0], [0]],
        forbidden=[[3, 2]], flags=[[0], [0], [0], [0], [ek.Flag.PINNED]],
    )  # fmt: skip
    assert symmetric_partitions(cluster) == [[0, 1], [2], [3], [4]]


def test_twins_that_want_no_replica_have_no_places_to_give():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, replicas=[0, 0, 1])
    hint = in_order(SimpleNamespace(alike=[[0, 1], [2]]), cluster.placement)
    assert hint.node.tolist() == cluster.placement.node.tolist()
