"""Compute the cost of a placement under a weighted sum, term by term."""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel.model.goals import Cost
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import Ints, Ints32, Reals


@dataclass(frozen=True)
class CostParts:
    """Where the cost of a placement comes from."""

    watermark: float  # load above the watermarks
    proportion: float  # free capacity out of proportion
    tables: tuple[float, ...]  # each table of the ``Cost``, in order
    # moves, group_moves, distance: replicas that stand elsewhere than in the cluster's own
    # placement, the group with most of them, and how far they went
    moves: float
    group_moves: float
    distance: float

    @property
    def total(self) -> float:
        """All of it."""
        loads = self.watermark + self.proportion + sum(self.tables)
        return loads + self.moves + self.group_moves + self.distance


def cost_of(cluster: Cluster, placement: Placement, cost: Cost) -> CostParts:
    """Count what a placement costs, in O(K + N D + length of the tables)."""
    placed = PlacementCounts.of(cluster, placement)
    loads, nodes = placed.loads, cluster.nodes
    above = np.maximum(0.0, loads - nodes.watermark).sum(axis=0)
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    free = nodes.capacity - loads
    proportion = 0.0
    for pair in cost.proportion:
        of, to = cluster.dimensions.index(pair.of), cluster.dimensions.index(pair.to)
        missing = np.maximum(0.0, pair.ratio * free[:, of] - free[:, to])
        proportion += pair.weight * float(missing.sum())
    before = cluster.placement.node
    moved = placement.node != before
    owner = placement.owner[moved]
    most = int(np.bincount(cluster.partitions.group[owner], minlength=1).max())
    return CostParts(
        watermark=float(above @ weight),
        proportion=proportion,
        tables=tuple(_of_table(placed, table) for table in cost.tables),
        moves=cost.moves * float(cluster.partitions.move_cost[owner].sum()),
        group_moves=cost.group_moves * most,
        distance=cost.distance * _distance(cluster, before[moved], placement.node[moved]),
    )


def _of_table(placed: PlacementCounts, table: NodeTable | GroupTable) -> float:
    cluster = placed.cluster
    if isinstance(table, NodeTable):
        dimension = cluster.dimensions.index(table.dimension)
        return float(table.cost(placed.loads[:, dimension]).sum())
    tier = cluster.topology.tier_index(table.tier)
    domains = int(cluster.topology.domain_count[tier])
    placement, members = placed.placement, table.members(cluster)
    group = cluster.partitions.group[placement.owner]
    domain = np.append(cluster.topology.domain_with_nodes[tier], -1)[placement.node]
    there = domain >= 0
    groups = len(cluster.partitions.group_names)
    flat = group[there].astype(np.int64) * domains + domain[there]
    count = np.bincount(flat, minlength=groups * domains).reshape(groups, domains)
    each = np.broadcast_to(np.arange(domains), (len(members), domains))
    return float(table.of(count[members], each).sum())


def distances(cluster: Cluster) -> Reals:
    """Return how far every node is from every other."""
    nodes = np.arange(len(cluster.nodes))
    here, there = np.meshgrid(nodes, nodes, indexing="ij")
    return _between(cluster, here, there)


def _distance(cluster: Cluster, here: Ints32, there: Ints32) -> float:
    """Distances between pairs of nodes, added up; nowhere is not far from anywhere."""
    known = (here >= 0) & (there >= 0)
    return float(_between(cluster, here[known], there[known]).sum())


def _between(cluster: Cluster, here: Ints, there: Ints) -> Reals:
    """Distance of each pair of nodes: given, or by the widest tier that differs."""
    given = cluster.topology.tier_distance
    if given.ndim == 2:
        pairs: Reals = given[here, there]
        return pairs
    far = np.full(here.shape, given[-1])
    for tier in range(len(cluster.topology) - 1, -1, -1):
        domain = cluster.topology.domain[tier]
        far = np.where(domain[here] != domain[there], given[tier], far)
    return far
