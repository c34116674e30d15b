"""Loads of all nodes under a placement."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement


def node_loads(cluster: Cluster, placement: Placement) -> NDArray[np.float64]:
    """Return the load that each node carries, by the roles of its replicas, (N, D) float64.

    The replica in the leading slot weighs ``load.leader``, a non-voter ``load.non_voter``, any
    other ``load.voter``; an empty slot weighs nothing.
    """
    return PlacementCounts.of(cluster, placement).loads


def replica_counts(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Return how many replicas stand on each node, (N,) int64."""
    return PlacementCounts.of(cluster, placement).replicas


def leader_counts(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Return how many partitions each node leads, (N,) int64."""
    return PlacementCounts.of(cluster, placement).leaders


def utilisation(loads: NDArray[np.float64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide loads by capacities: nothing on nothing is 0, something on nothing is infinite."""
    empty = np.where(loads > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(loads, capacity, out=empty, where=capacity > 0.0)


def weighted_sum(count: NDArray[np.integer], load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up rows, each so many times, in an order that no number of threads can change."""
    times = count.astype(np.float64)
    return np.array([np.einsum("n,n->", times, load[:, d]) for d in range(load.shape[1])])
