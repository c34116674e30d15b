"""Newly expanded clusters with very unequal partition sizes, and some nodes dead."""

from dataclasses import dataclass

import numpy as np

import evenkeel as ek


@dataclass(frozen=True)
class Expansion:
    """A cluster, the answer to it, and how it is to be carried out."""

    cluster: ek.Cluster
    answer: ek.Result
    throttle: ek.Throttle
    protocol: str


def just_expanded(seed: int) -> Expansion:
    """Draw nodes in three zones, a sixth of them new, and partitions with Pareto sizes."""
    rng = np.random.default_rng([seed, 7])
    nodes, partitions = int(rng.choice([12, 30, 60])), int(rng.choice([300, 1000]))
    zone = np.arange(nodes) % 3
    old = np.flatnonzero(np.arange(nodes) < nodes - max(3, nodes // 6))
    size = np.minimum(rng.pareto(1.3, partitions) + 1.0, 200.0)
    placement = np.stack([rng.choice(old[zone[old] == z], partitions) for z in range(3)], 1)
    placement = rng.permuted(placement, axis=1)
    alive = np.ones(nodes, bool)
    if nodes > 12:
        alive[rng.choice(old, int(rng.integers(0, 3)), replace=False)] = False
    held = np.bincount(placement.ravel(), np.repeat(size, 3), nodes)
    capacity = np.full((nodes, 1), max(held.sum() / 0.6 / alive.sum(), held.max() * 1.02))
    cluster = ek.Cluster.from_arrays(
        capacity=capacity, load=size[:, None], dimensions=["disk"], bytes="disk",
        placement=placement, leader=np.zeros(partitions, np.int16), alive=alive,
        domains={"zone": [f"z{z}" for z in zone]}, spread={"zone": 1}, min_active=2,
    )  # fmt: skip
    slots = [None, 1, 2, 4][rng.integers(4)]
    throttle = ek.Throttle(node_in=slots, node_out=slots, node_bandwidth=1.0)
    answer = ek.solve(cluster, goals=ek.Goals(level=0.1))
    return Expansion(cluster, answer, throttle, ("plain", "kafka")[seed % 2])
