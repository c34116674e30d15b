"""Audit of capacities of nodes and of domains with shared capacity."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.violations import Violations, violations
from evenkeel.measure.compare import joined
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role

TOLERANCE = 1e-11
"""Relative excess that is rounding: one unit in 4e9 is above it, the drift of sums below."""


def overloads(placed: PlacementCounts, before: Placement) -> list[Violations]:
    """Find nodes and domains that carry more than they can; dead nodes carry nothing."""
    cluster, loads = placed.cluster, placed.loads
    nodes = cluster.nodes
    serving = (nodes.alive | nodes.keeps) & ~nodes.gone
    found = _over("capacity", "node", loads, nodes.capacity, serving)
    if cluster.transient.any():
        held = held_loads(cluster, before, placed.placement)
        # a node over capacity is reported once
        steady = _exceeds(loads, nodes.capacity)
        both = np.where(steady | (held == 0.0), 0.0, loads + held)
        found += _over("transient", "node", both, nodes.capacity, serving)
    for tier, capacity in cluster.topology.tier_capacity.items():
        row = cluster.topology.tier_index(tier)
        domain = cluster.topology.domain[row]
        counted = serving & (domain >= 0)
        shared = np.zeros(capacity.shape)
        np.add.at(shared, domain[counted], loads[counted])
        every = np.ones(len(capacity), bool)
        found += _over("tier_capacity", "domain", shared, capacity, every, tier=row)
    crowded = np.where(serving & (nodes.max_replicas >= 0), placed.replicas - nodes.max_replicas, 0)
    bad = np.flatnonzero(crowded > 0)
    return found + violations("max_replicas", crowded[bad], asked=nodes.max_replicas[bad], node=bad)


def held_loads(cluster: Cluster, before: Placement, after: Placement) -> NDArray[np.float64]:
    """Return the load that leaving replicas still put on their initial nodes.

    A leader hands over before it leaves, so it weighs what a voter does. From a dead node nothing
    is copied, and nothing comes to it: what it held waits there and weighs no more than before.
    """
    load = cluster.partitions.load
    leaving = np.flatnonzero(joined(after, before))
    leaving = leaving[cluster.nodes.alive[before.node[leaving]]]
    owner = before.owner[leaving]
    weight = load.voter[owner]
    other = before.role[leaving] == Role.NON_VOTER
    weight[other] = load.non_voter[owner[other]]
    held = np.zeros(cluster.nodes.capacity.shape)
    for d in np.flatnonzero(cluster.transient):
        held[:, d] = np.bincount(before.node[leaving], weight[:, d], len(held))
    return held


def _exceeds(loads: NDArray[np.float64], capacity: NDArray[np.float64]) -> NDArray[np.bool_]:
    return loads > capacity * (1.0 + TOLERANCE)


def _over(
    kind: str,
    column: str,
    loads: NDArray[np.float64],
    capacity: NDArray[np.float64],
    counted: NDArray[np.bool_],
    tier: int = -1,
) -> list[Violations]:
    """Find the rows that count and carry more than they can, dimension by dimension."""
    where, dimension = np.nonzero(_exceeds(loads, capacity) & counted[:, None])
    excess = loads[where, dimension] - capacity[where, dimension]
    return violations(
        kind, excess, asked=capacity[where, dimension], tier=tier, dimension=dimension,
        **{column: where},
    )  # fmt: skip
