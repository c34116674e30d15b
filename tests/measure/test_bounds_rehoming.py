"""The floor without extra moves, against every way to place what is lost."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.bounds.moves import rehoming_level

pytestmark = pytest.mark.small

seeds = st.integers(0, 2**32 - 1)


def lossy(seed: int, lost: int | None = None) -> ek.Cluster:
    """Up to six nodes in up to three zones, one of them gone; whole loads; ample room or not."""
    random = np.random.default_rng(seed)
    nodes, partitions = int(random.integers(2, 7)), int(random.integers(1, 5))
    zone = random.integers(0, 3, nodes)
    gone = np.arange(nodes) == random.integers(nodes)
    load = random.integers(0, 9, (partitions, 2)).astype(float)
    placement = np.full((partitions, 2), -1)
    for p in range(partitions):
        first = int(random.integers(nodes))
        others = np.flatnonzero(zone != zone[first])
        placement[p] = first, random.choice(others) if len(others) else -1
    replicas = (placement >= 0).sum(1)
    if lost is not None:
        there = np.flatnonzero(placement.ravel() == np.flatnonzero(gone)[0])
        placement.ravel()[there[lost:]] = -1
        replicas = (placement >= 0).sum(1)
        placement = -np.sort(-placement, axis=1)
    return ek.Cluster.from_arrays(
        capacity=random.choice([12.0, 40.0], (nodes, 2)), load=load, alive=~gone, gone=gone,
        domains={"zone": zone}, spread={"zone": 1}, replicas=replicas, placement=placement,
    )  # fmt: skip


def least_full(cluster: ek.Cluster) -> float:
    """Fullest node of the best way to place what is lost; inf if there is none."""
    alive = np.flatnonzero(cluster.nodes.may_receive)
    zone, table = cluster.topology.domain[0], cluster.placement.nodes
    load, capacity = cluster.partitions.load.voter, cluster.nodes.capacity
    lost = np.argwhere((table >= 0) & ~np.append(cluster.nodes.may_hold, True)[table])
    best = np.inf
    for choice in product(alive, repeat=len(lost)):
        after = table.copy()
        after[tuple(lost.T)] = choice
        held = np.zeros_like(capacity)
        for p, row in enumerate(after):
            held[row[row >= 0]] += load[p]
        rows = [zone[row[row >= 0]].tolist() for row in after]
        if all(len(set(row)) == len(row) for row in rows) and (held <= capacity)[alive].all():
            best = min(best, float((held / capacity)[alive].max(initial=0.0)))
    return best


@given(seeds)
def test_no_way_to_place_what_is_lost_is_below_the_floor(seed: int) -> None:
    cluster = lossy(seed)
    best = least_full(cluster)
    if np.isfinite(best):
        assert rehoming_level(cluster) <= best * (1.0 + 1e-12)


@given(seeds)
def test_one_lost_replica_can_be_placed_at_the_floor(seed: int) -> None:
    cluster = lossy(seed, lost=1)
    best = least_full(cluster)
    if np.isfinite(best):
        assert rehoming_level(cluster) == pytest.approx(best)
        assert rehoming_level(cluster, 1) == pytest.approx(best)


def test_fewer_partitions_looked_at_prove_no_more() -> None:
    cluster = lossy(5)
    proven = [rehoming_level(cluster, largest) for largest in range(5)]
    assert proven == sorted(proven)
    assert proven[-1] == rehoming_level(cluster)
