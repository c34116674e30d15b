"""Least cost of a placement with divisible replicas: a linear program, safely bounded.

Every replica is shared out among nodes, within capacities (both ends of a move where a dimension is
transient), with no two of a group or partition where a limit forbids it. What nodes pay is convex,
so a row for each straight piece expresses it. Least domains, and groups that need each other
nearby, are left out: that makes the bound smaller, never wrong.
"""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, group_scope, partition_scope
from evenkeel.measure.bounds.cost import CostBound
from evenkeel.measure.costs import distances
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import usable
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import RISING, NodeTable
from evenkeel.model.goals import Cost
from evenkeel.model.runtime.logs import log_event

logger = logging.getLogger("evenkeel.relaxation")

MOST_PLACES = 400_000
"""Replicas times nodes up to which the program is tried."""

SAFE = 1e-11
"""Relative error that the sum of the bound is allowed, at the expense of the bound."""


def relaxed_cost(cluster: Cluster, cost: Cost, watch: Watch) -> CostBound | None:
    """Prove what a weighted sum comes to at least, by the multipliers of a linear program.

    A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming",
    Mathematical Programming 99, 2004.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    placement, nodes = cluster.placement, len(cluster.nodes)
    replicas = len(placement.node)
    whole = np.array_equal(np.diff(placement.first), cluster.partitions.replicas)
    if not whole or (placement.node < 0).any() or not 0 < replicas * nodes <= MOST_PLACES:
        return None
    program = _Program(cluster, cost)
    program.capacities()
    program.limits()
    program.payments()
    program.movement()
    upper = vstack(program.rows).tocsr() if program.rows else csr_array((0, program.columns))
    upper.resize((upper.shape[0], program.columns))
    limit = np.concatenate([*program.most, np.zeros(0)])
    each = np.arange(replicas * nodes)
    equal = csr_array(
        (np.ones(len(each)), (each // nodes, each)), shape=(replicas, program.columns)
    )
    price, top = np.concatenate(program.price), np.concatenate(program.top)
    left = watch.seconds_left
    solved = linprog(
        price, A_ub=upper, b_ub=limit, A_eq=equal, b_eq=np.ones(replicas),
        bounds=np.column_stack([np.zeros(len(top)), top]), method="highs-ipm",
        options={"time_limit": max(left, 0.0)} if np.isfinite(left) else {},
    )  # fmt: skip
    if solved.ineqlin is None or solved.ineqlin.marginals is None or solved.status not in (0, 1):
        return None
    dearest = np.concatenate([*program.dearest, np.zeros(0)])
    # no more than is charged for a unit, so that what is paid is worth its price exactly
    by_limit = np.clip(np.asarray(solved.ineqlin.marginals, np.float64), -dearest, 0.0)
    by_replica = np.asarray(solved.eqlin.marginals, np.float64)
    if len(by_limit) != len(limit) or not np.isfinite(by_limit.sum() + by_replica.sum()):
        return None
    # what any multipliers prove: columns at whichever end of their range is cheaper
    rest = price - upper.T @ by_limit - equal.T @ by_replica
    # one replica is on one node in all, so of its places only the cheapest counts
    places = rest[: replicas * nodes].reshape(replicas, nodes)
    chosen = np.where(top[: replicas * nodes].reshape(replicas, nodes) > 0.0, places, np.inf).min(1)
    others = np.minimum(rest[replicas * nodes :], 0.0) * top[replicas * nodes :]
    proven = limit @ by_limit + by_replica.sum() + chosen.sum() + others.sum()
    size = np.abs(limit * by_limit).sum() + np.abs(by_replica).sum() + np.abs(chosen).sum()
    total = float(proven - SAFE * (size + np.abs(others).sum()))
    log_event(logger, "relaxed", value=solved.fun, proven=total)
    if not np.isfinite(total) or total <= 0.0:
        return None
    return CostBound(total, {"relaxation": total}, "relaxation")


@dataclass
class _Program:
    """Rows and columns as they come: first a column per replica and node, then what is paid."""

    cluster: Cluster
    cost: Cost

    def __post_init__(self) -> None:
        cluster, placement = self.cluster, self.cluster.placement
        standing = PlacementCounts.of(cluster, placement)
        nodes = len(cluster.nodes)
        parts = cluster.partitions
        self.replicas = len(placement.node)
        self.home = placement.node
        leads = np.zeros(self.replicas, bool)
        leads[placement.leader_replica[placement.leader >= 0]] = True
        # roles may change, leaders not: whichever is lighter, so that nothing is overstated
        lighter = standing.lightest[placement.owner]
        same = (parts.load.voter == parts.load.leader).all() and (
            (parts.load.voter == parts.load.non_voter).all()
        )
        self.weight = lighter if not same else parts.load.voter[placement.owner]
        scope = partition_scope(cluster)
        may = usable(cluster) & scope.open[scope.rule[placement.owner]]
        may &= cluster.nodes.may_receive | (np.arange(nodes) == self.home[:, None])
        for p, n in cluster.forbidden.tolist():
            may[placement.owner == p, n] = False
        self.may = may
        far = distances(cluster)[self.home] * self.cost.distance
        moved = np.arange(nodes) != self.home[:, None]
        price = moved * (self.cost.moves * parts.move_cost[placement.owner])[:, None] + far
        self.price = [price.reshape(-1)]
        self.top = [may.astype(np.float64).reshape(-1)]
        self.columns = self.replicas * nodes
        self.rows: list[object] = []
        self.most: list[NDArray[np.float64]] = []
        self.dearest: list[NDArray[np.float64]] = []

    def add(
        self,
        row: NDArray[np.intp],
        column: NDArray[np.intp],
        value: NDArray[np.float64],
        most: NDArray[np.float64],
        dearest: float = np.inf,
    ) -> None:
        """Add rows that may come to so much at most, and whose multipliers to no more than that.

        Rows without a finite limit are left out.
        """
        from scipy.sparse import coo_array

        # wide enough for every column there will be, and cut to size at the end
        width = self.replicas * len(self.cluster.nodes) + self._later()
        rows = coo_array((value, (row, column)), shape=(len(most), width)).tocsr()
        finite = np.isfinite(most)
        self.rows.append(rows[finite])
        self.most.append(most[finite])
        self.dearest.append(np.full(int(finite.sum()), dearest))

    def _later(self) -> int:
        """Columns for payments: one per node and piece, and one for the most moved group."""
        tables = [one for one in self.cost.tables if isinstance(one, NodeTable)]
        hinges = sum(len(one.hinges(len(self.cluster.nodes))) for one in tables)
        pieces = len(self.cluster.dimensions) + len(self.cost.proportion) + hinges
        return pieces * len(self.cluster.nodes) + 1

    def _columns(self, price: NDArray[np.float64], top: NDArray[np.float64]) -> NDArray[np.intp]:
        """Add columns, and return which they are."""
        first = self.columns
        self.price.append(price)
        self.top.append(top)
        self.columns += len(price)
        return np.arange(first, self.columns)

    def capacities(self) -> None:
        """Keep every node within its capacity, with what leaves it where that counts twice."""
        nodes = self.cluster.nodes
        replica, node = np.nonzero(self.may)
        column = replica * len(nodes) + node
        for d in range(len(self.cluster.dimensions)):
            weight = self.weight[replica, d]
            most = nodes.capacity[:, d].copy()
            value = weight
            if self.cluster.transient[d]:
                most -= np.bincount(self.home, self.weight[:, d], len(nodes))
                value = np.where(self.home[replica] == node, 0.0, weight)
            self.add(node, column, value, most)

    def limits(self) -> None:
        """Keep partitions and groups within their spread limits."""
        owner = self.cluster.placement.owner
        group = self.cluster.partitions.group[owner]
        for scope, member in (
            (partition_scope(self.cluster), owner),
            (group_scope(self.cluster), group),
        ):
            for binding in scope.bindings:
                if binding.kind != "spread" or not binding.hard:
                    continue
                topology = self.cluster.topology
                domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
                size = np.bincount(member, minlength=len(binding.amount))
                tight = (binding.amount != NONE) & (size > binding.amount)
                replica, node = np.nonzero(self.may & tight[member][:, None] & (domain >= 0))
                domains = int(domain.max(initial=-1)) + 1
                key = member[replica].astype(np.int64) * domains + domain[node]
                found, row = np.unique(key, return_inverse=True)
                most = binding.amount[found // max(domains, 1)].astype(np.float64)
                column = replica * len(self.cluster.nodes) + node
                self.add(row.reshape(-1), column, np.ones(len(column)), most)

    def payments(self) -> None:
        """Charge nodes for load above their watermarks, for proportions, and by tables."""
        cluster, nodes = self.cluster, self.cluster.nodes
        full = self.weight.sum(0)
        for d, name in enumerate(cluster.dimensions):
            weight = self.cost.watermark_weight(name)
            if weight > 0.0:
                self._paid({d: 1.0}, nodes.watermark[:, d], weight, full[d])
        for table in self.cost.tables:
            if isinstance(table, NodeTable):
                d = cluster.dimensions.index(table.dimension)
                for hinge in table.hinges(len(nodes)):
                    rises = hinge.sign == RISING
                    most = (
                        full[d]
                        if rises
                        else float(np.abs(hinge.at[np.isfinite(hinge.at)]).max(initial=0.0))
                    )
                    sign = 1.0 if rises else -1.0
                    self._paid({d: sign}, sign * hinge.at, hinge.weight, most)
        for pair in self.cost.proportion:
            of, to = cluster.dimensions.index(pair.of), cluster.dimensions.index(pair.to)
            free = pair.ratio * nodes.capacity[:, of] - nodes.capacity[:, to]
            most = float(np.abs(free).max(initial=0.0) + full[to])
            self._paid({of: -pair.ratio, to: 1.0}, -free, pair.weight, most)

    def _paid(
        self, sign: dict[int, float], beyond: NDArray[np.float64], weight: float, most: float
    ) -> None:
        """Charge for a sum of loads beyond a point, node by node."""
        nodes = len(self.cluster.nodes)
        paid = self._columns(np.full(nodes, weight), np.full(nodes, most))
        replica, node = np.nonzero(self.may)
        value = sum(by * self.weight[replica, d] for d, by in sign.items())
        row = np.concatenate([node, np.arange(nodes)])
        column = np.concatenate([replica * nodes + node, paid])
        self.add(row, column, np.concatenate([value, -np.ones(nodes)]), beyond, weight)

    def movement(self) -> None:
        """Charge for the group of which most replicas move."""
        if self.cost.group_moves <= 0.0:
            return
        group = self.cluster.partitions.group[self.cluster.placement.owner]
        groups = int(group.max()) + 1
        size = np.bincount(group, minlength=groups).astype(np.float64)
        most = self._columns(np.array([self.cost.group_moves]), np.array([size.max()]))
        home = np.arange(self.replicas) * len(self.cluster.nodes) + self.home
        # moved = size - stayed, at most the column
        row = np.concatenate([group, np.arange(groups)])
        column = np.concatenate([home, np.repeat(most, groups)])
        self.add(row, column, -np.ones(len(row)), -size)
