"""Raise the lower bounds on moves and cost by linear programs, which takes seconds.

For ``Goals``, nodes that are too full are covered exactly, one by one, and where the cluster is
small enough a linear program over all nodes at once prices their load. For a ``Cost``, a linear
program places fractions of replicas. The optimum of HiGHS is not trusted: its multipliers are
rounded and go through weak duality here, so the bound is valid even where they are not optimal.

The replicas that leave a node must cover its excess in all dimensions at once. Prices reduce the
dimensions to one and give the least number of largest replicas; where fractions make this number
small, the search branches on one replica: it leaves, or it stays. The cases that prices decide are
the proof.

The linear program that prices load lets fractions of replicas follow and lead wherever they may,
within the targets, and with the losses that are proven node by node. It starts with the current
placement and grows by the places that its own prices make cheap (column generation); prices prove a
bound at every stage.

The linear program for a ``Cost`` shares every replica out among nodes, within capacities (both ends
of a move where a dimension is transient), with no two of a group or partition where a limit forbids
it. The cost of nodes is convex, so a row for each straight piece expresses it. Least domains, and
groups that need each other nearby, are left out: that makes the bound smaller, never wrong.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, group_scope, partition_scope
from evenkeel.measure.bounds import Bounds, bounds
from evenkeel.measure.bounds.certificate import (
    Case,
    Certificate,
    Cover,
    Losses,
    certified,
    domain_members,
    domains_and_caps,
    frozen_certificate,
    price_blocks,
    priced,
    whole_moves,
)
from evenkeel.measure.bounds.cost import CostBound
from evenkeel.measure.bounds.moves import keepable
from evenkeel.measure.costs import distances
from evenkeel.measure.loads import has_leaders, usable
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.cost_tables import RISING, NodeTable
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import check_time_limit, require
from evenkeel.model.runtime.logs import log_event

MOST_PARTITIONS = 5_000  # partitions up to which the program is tried
ROUNDS = 30  # times that it grows at most
DEAR = 20.0  # price, in moves, of an average load that finds no room
ENOUGH = 1e-4  # distance of the bound from the program's value, in moves, at which it stops growing
Prices = tuple[NDArray[np.float64], NDArray[np.float64]]


def joint_prices(
    cluster: Cluster, target: NDArray[np.float64], covers: Sequence[Cover], watch: Watch
) -> Prices | None:
    """Look for prices of load and of losses that prove many moves."""
    # G. B. Dantzig, P. Wolfe, "Decomposition principle for linear programs", Operations Research 8,
    # 1960; every stage bounds the whole by its Lagrangian
    partitions = len(cluster.partitions)
    if not 0 < partitions <= MOST_PARTITIONS or len(cluster.nodes) == 0:
        return None
    program = _MovesProgram(cluster, target, covers)
    best, best_value = None, -np.inf
    for _ in range(ROUNDS):
        if watch.out_of_time:
            break
        solved = program.solve(watch.seconds_left)
        if solved is None:
            break
        value, load_price, loss_price = solved
        proven, _ = priced(cluster, target, load_price, loss_price, program.count)
        if proven > best_value:
            best, best_value = (load_price, loss_price), proven
        if best_value >= value - ENOUGH or not program.grow(load_price, loss_price):
            break
    return best


class _MovesProgram:
    """The linear program with the places that it knows so far; one column per place and role."""

    def __init__(
        self, cluster: Cluster, target: NDArray[np.float64], covers: Sequence[Cover]
    ) -> None:
        self.cluster, self.target = cluster, target
        standing = PlacementCounts.of(cluster, cluster.placement)
        self.domain, self.cap = domains_and_caps(cluster)
        nodes, partitions = len(cluster.nodes), len(cluster.partitions)
        self.count = np.zeros(nodes)
        for cover in covers:
            self.count[cover.node] = cover.count
        kept = keepable(standing)
        self.node_rows = kept.replicas
        at = np.flatnonzero(kept.node_row)
        self.counted = np.zeros((partitions, nodes), bool)
        self.counted[standing.partition(at), kept.node_row[at] - 1] = True
        placement = cluster.placement
        stood = placement.node >= 0
        self.stands = np.zeros((partitions, nodes), bool)
        self.stands[placement.owner[stood], placement.node[stood]] = True
        self.stands &= cluster.nodes.may_hold
        self.leads = int(has_leaders(cluster))
        self.known = np.zeros((2, partitions, nodes), bool)
        self.known[0], self.known[1] = self.stands, self.stands & bool(self.leads)
        self.grow(np.zeros_like(target), np.zeros(nodes))

    def grow(self, load_price: NDArray[np.float64], loss_price: NDArray[np.float64]) -> bool:
        """Add the places that are cheapest by these prices; whether any was new."""
        before = int(self.known.sum())
        most = int(self.cluster.partitions.replicas.max(initial=0))
        for block in price_blocks(self.cluster, load_price, loss_price):
            at = block.partition
            for nodes, limited in domain_members(self.domain):
                few = 1 if limited else min(most + 1, len(nodes))
                for role, price in enumerate((block.follow, block.lead)):
                    if price is None:
                        continue
                    cheapest = nodes[np.argpartition(price[:, nodes], few - 1, axis=1)[:, :few]]
                    row, column = np.nonzero(np.isfinite(np.take_along_axis(price, cheapest, 1)))
                    self.known[role, at[row], cheapest[row, column]] = True
        return int(self.known.sum()) > before

    def _weight(self, role: NDArray[np.int64], p: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the least that a replica in each column may weigh, by dimension."""
        parts = self.cluster.partitions
        weight = np.where(role[:, None] == 1, parts.load.leader[p], parts.load.voter[p])
        mixed = (role == 0) & (parts.voters < parts.replicas)[p]
        weight[mixed] = np.minimum(weight, parts.load.non_voter[p])[mixed]
        return weight

    def _crowds(
        self, p: NDArray[np.int64], n: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return each column's crowd, places of a partition in too full a domain, and caps."""
        domains = int(self.domain.max()) + 2
        key = p * np.int64(domains) + self.domain[n] + 1
        crowded, where, size = np.unique(key, return_inverse=True, return_counts=True)
        owner = (crowded // domains).astype(np.intp)
        tight = (size > self.cap[owner]) & (crowded % domains > 0)
        # columns in no crowd have -1
        number = np.where(tight, np.cumsum(tight) - 1, -1)
        return number[where.reshape(-1)], self.cap[owner[tight]].astype(np.float64)

    def solve(
        self, seconds: float
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the value of the program as it is, and the prices of load and losses."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array, hstack, vstack

        cluster, parts = self.cluster, self.cluster.partitions
        role, p, n = np.nonzero(self.known)
        columns, partitions, nodes = len(p), len(parts), len(cluster.nodes)
        each = np.arange(columns)
        leaders = np.minimum(parts.replicas, self.leads)
        equal = coo_array(
            (np.ones(columns), (role * partitions + p, each)), shape=(2 * partitions, columns)
        )
        wanted = np.concatenate([parts.replicas - leaders, leaders]).astype(np.float64)
        weight = self._weight(role, p)
        rows, limits, scales = [], [], []
        bound = np.isfinite(self.target) & (self.target > 0.0)
        for d in range(weight.shape[1]):
            scale = float(self.target[bound[:, d], d].mean()) if bound[:, d].any() else 1.0
            held = coo_array((weight[:, d] / scale, (n, each)), shape=(nodes, columns)).tocsr()
            rows.append(held[bound[:, d]])
            limits.append(self.target[bound[:, d], d] / scale)
            scales.append(scale)
        excess = sum(len(one) for one in limits)
        losing = np.flatnonzero(self.count > 0)
        stays = self.counted[p, n]
        lost = coo_array(
            (np.ones(int(stays.sum())), (n[stays], each[stays])), shape=(nodes, columns)
        ).tocsr()
        rows.append(lost[losing])
        limits.append((self.node_rows - self.count)[losing])
        crowd, cap = self._crowds(p, n)
        shared = coo_array(
            (np.ones(int((crowd >= 0).sum())), (crowd[crowd >= 0], each[crowd >= 0])),
            shape=(len(cap), columns),
        )
        rows.append(shared.tocsr())
        limits.append(cap)
        upper = vstack(rows).tocsr()
        # load that finds no room, and replicas that find no place, are dear but never impossible
        short = coo_array(
            (-np.ones(excess), (np.arange(excess), np.arange(excess))),
            shape=(upper.shape[0], excess + 2 * partitions),
        )
        missing = coo_array(
            (
                np.ones(2 * partitions),
                (np.arange(2 * partitions), excess + np.arange(2 * partitions)),
            ),
            shape=(2 * partitions, excess + 2 * partitions),
        )
        dear = [
            np.repeat(DEAR * scales_d / max(float(parts.load.voter[:, d].mean()), 1e-300), m)
            for d, (scales_d, m) in enumerate(zip(scales, bound.sum(0), strict=True))
        ]
        price = np.concatenate(
            [(~self.stands[p, n]).astype(np.float64), *dear, np.full(2 * partitions, DEAR)]
        )
        solved = linprog(
            price,
            A_ub=hstack([upper, short]).tocsr(),
            b_ub=np.concatenate(limits),
            A_eq=hstack([equal, missing]).tocsr(),
            b_eq=wanted,
            bounds=(0, None),
            method="highs",
            options={"time_limit": max(seconds, 0.0)} if np.isfinite(seconds) else {},
        )
        if solved.status != 0:
            return None
        marginal = np.maximum(-solved.ineqlin.marginals, 0.0)
        load_price = np.zeros_like(self.target)
        start = 0
        for d, scale in enumerate(scales):
            end = start + int(bound[:, d].sum())
            load_price[bound[:, d], d] = marginal[start:end] / scale
            start = end
        loss_price = np.zeros(nodes)
        loss_price[losing] = marginal[start : start + len(losing)]
        return float(solved.fun), load_price, loss_price


MOST_PLACES = 400_000  # replicas times nodes up to which the program is tried
SAFE = 1e-11  # relative error that the sum of the bound is allowed, at the expense of the bound


def relaxed_cost(cluster: Cluster, cost: Cost, watch: Watch) -> CostBound | None:
    """Prove what a weighted sum comes to at least, by the multipliers of a linear program."""
    # A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming",
    # Mathematical Programming 99, 2004
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
        """Add rows that may come to at most ``most``, with multipliers up to ``dearest``."""
        from scipy.sparse import coo_array

        # wide enough for every column there will be, and cut to size at the end
        width = self.replicas * len(self.cluster.nodes) + self._later()
        rows = coo_array((value, (row, column)), shape=(len(most), width)).tocsr()
        # rows without a finite limit are left out
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
                most = np.maximum(most - np.bincount(self.home, self.weight[:, d], len(nodes)), 0.0)
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


logger = logging.getLogger("evenkeel.relaxation")


@known_keywords
def relaxation(
    cluster: Cluster,
    goals: Goals | Cost | None = None,
    *,
    proven: Bounds | None = None,
    time_limit: float | None = 60.0,
) -> Bounds:
    """Lift the bounds of a cluster as far as a relaxation can, with proofs to check.

    Parameters
    ----------
    cluster : Cluster
        The cluster, and where its replicas are now.
    goals : Goals or Cost, optional
        The goals; ``Goals()`` by default.
    proven : Bounds, optional
        Bounds for these goals; computed by default.
    time_limit : float or None
        Seconds, after which the bound reached is returned. None for no limit.

    Returns
    -------
    Bounds
        With ``moves_level`` and its ``certificate`` lifted, or ``cost``; never below what came.

    Raises
    ------
    InvalidInput
        If ``time_limit`` is not a number of seconds.

    References
    ----------
    A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming",
    Mathematical Programming 99, 2004: bounds from multipliers that are only nearly right.

    Examples
    --------
    What has to leave the first node finds room only where something else leaves first.

    >>> from evenkeel.model.rules import Rule
    >>> c = Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]] * 15, placement=[[0]] * 7 + [[1]] * 5 + [[2]] * 3,
    ...     tags={"x": [True, True, False], "y": [False, True, True]},
    ...     rules=[Rule(require=["+x"]), Rule(require=["+y"])], rule=[0] * 7 + [1] * 8)
    >>> found = relaxation(c, Goals(level=0.0))
    >>> bounds(c, Goals(level=0.0)).moves_level, found.moves_level, found.moves_term
    (2, 4, 'joint prices')
    """
    faults = FaultList()
    check_time_limit(faults, time_limit)
    faults.raise_if_any()
    goals = Goals() if goals is None else goals
    require_cluster(cluster)
    before = bounds(cluster, goals) if proven is None else proven
    require("proven", before, Bounds)
    watch = Watch(time_limit, None, None)
    if isinstance(goals, Cost):
        assert before.cost is not None
        found = relaxed_cost(cluster, goals, watch)
        better = found is not None and found.total > before.cost.total
        return replace(before, cost=found) if better else before
    return _lifted(cluster, before, watch)


def _lifted(cluster: Cluster, proven: Bounds, watch: Watch) -> Bounds:
    """Cover overfull nodes exactly, then price load jointly, and keep what proves most."""
    standing = PlacementCounts.of(cluster, cluster.placement)
    kept = keepable(standing)
    losses = Losses(standing, kept, proven.target)
    covers = []
    evicted = proven.level_proof
    for node, count, price in zip(
        evicted.node.tolist(), evicted.count.tolist(), evicted.price, strict=True
    ):
        cover = Cover(node, count, (Case(price),))
        if not losses.holds(cover):
            cover = Cover(node, 0, (Case(price),))
        partition, weight = losses.replicas(node)
        excess = losses.excess[node]
        covers.append(
            least_losses(node, partition, weight, excess, cover, lambda: watch.out_of_time)
        )
    best = _certificate(cluster, proven, _Prices.plain(proven), covers)
    joint = joint_prices(cluster, proven.target, covers, watch)
    if joint is not None:
        other = _certificate(cluster, proven, _Prices(*joint), covers)
        best = max(best, other, key=lambda one: one.moves)
    log_event(logger, "proved", before=proven.moves_level, moves=best.moves)
    if best.moves <= proven.moves_level:
        return proven
    certified(cluster, proven.target, best)
    return replace(proven, moves_level=best.moves, certificate=best)


@dataclass(frozen=True, eq=False)
class _Prices:
    """Prices of load (N, D) and of losses (N,)."""

    load: NDArray[np.float64]
    loss: NDArray[np.float64]

    @classmethod
    def plain(cls, proven: Bounds) -> "_Prices":
        """Prices that add up forced moves and losses, and nothing else."""
        return cls(np.zeros_like(proven.target), np.ones(len(proven.target)))


def _certificate(
    cluster: Cluster, proven: Bounds, prices: _Prices, covers: list[Cover]
) -> Certificate:
    """Return the bound that prices prove with these covers."""
    count = np.zeros(len(cluster.nodes))
    for cover in covers:
        count[cover.node] = cover.count
    value = priced(cluster, proven.target, prices.load, prices.loss, count)
    return frozen_certificate(whole_moves(value), prices.load, prices.loss, covers)


MOST_CASES = 64  # cases of one proof; where more are needed, none is given
WHOLE = 1e-7  # a share of a replica that is so close to a whole one is one
MARGIN = 1e-7  # by how much the excess has to be missed for a case to be decided


@dataclass
class _Search:
    """A search for a proof that ``count`` replicas do not cover the excess, 1 in each column."""

    share: NDArray[np.float64]  # (m, k) part of the excess that each replica covers, 1 at most
    count: int  # replicas that may leave
    out_of_time: Callable[[], bool]  # whether to give up

    def cases(self) -> list[tuple[NDArray[np.float64], list[int], list[int]]] | None:
        """Return the price, those that leave, and those that stay, of every case; or None."""
        found = []
        open_cases: list[tuple[list[int], list[int]]] = [([], [])]
        while open_cases:
            leaves, stays = open_cases.pop()
            price, fraction = self._relaxed(leaves, stays)
            if price is not None:
                found.append((price, leaves, stays))
                continue
            if fraction is None or len(found) + len(open_cases) >= MOST_CASES or self.out_of_time():
                return None
            open_cases += [(leaves, [*stays, fraction]), ([*leaves, fraction], stays)]
        return found

    def _relaxed(
        self, leaves: list[int], stays: list[int]
    ) -> tuple[NDArray[np.float64] | None, int | None]:
        """Return prices that decide a case; else a replica to split it by, None if covered."""
        from scipy.optimize import linprog

        replicas, dimensions = self.share.shape
        upper = np.ones(replicas)
        lower = np.zeros(replicas)
        lower[leaves], upper[stays] = 1.0, 0.0
        if len(leaves) > self.count:
            return np.ones(dimensions), None
        # the most that so many replicas cover of the dimension they cover least, in fractions, is a
        # linear program with as many rows as dimensions; its multipliers are the prices
        solved = linprog(
            np.append(np.zeros(replicas), -1.0),
            A_ub=np.vstack(
                [
                    np.column_stack([-self.share.T, np.ones(dimensions)]),
                    np.append(np.ones(replicas), 0.0),
                ]
            ),
            b_ub=np.append(np.zeros(dimensions), float(self.count)),
            bounds=np.column_stack([np.append(lower, 0.0), np.append(upper, 2.0)]),
            method="highs",
        )
        if solved.x is None:
            return None, None
        price = np.maximum(-solved.ineqlin.marginals[:dimensions], 0.0)
        if self._decided(price, leaves, stays):
            return price, None
        if solved.x[-1] < 1.0:
            return None, None  # too close to decide
        taken = solved.x[:-1]
        split = np.flatnonzero((taken > WHOLE) & (taken < 1.0 - WHOLE))
        whole = self.share[taken >= 1.0 - WHOLE].sum(0)
        spare = self.count - int((taken >= 1.0 - WHOLE).sum())
        if len(split) == 0 or any(
            (whole + self.share[list(some)].sum(0) >= 1.0).all()
            for some in combinations(split.tolist(), min(spare, len(split)))
        ):
            return None, None
        return None, int(split[np.argmin(np.abs(taken[split] - 0.5))])

    def _decided(self, price: NDArray[np.float64], leaves: list[int], stays: list[int]) -> bool:
        """Return whether the largest replicas by price miss the excess."""
        value = self.share @ price
        free = np.delete(value, [*leaves, *stays])
        largest = np.sort(free)[::-1][: self.count - len(leaves)].sum()
        return bool(value[leaves].sum() + largest < (1.0 - MARGIN) * price.sum())


def least_losses(
    node: int,
    partition: NDArray[np.intp],
    weight: NDArray[np.float64],
    excess: NDArray[np.float64],
    known: Cover,
    out_of_time: Callable[[], bool],
) -> Cover:
    """Prove that a node must lose more replicas than is known, as many more as can be."""
    # branch and bound with surrogate duality for knapsack constraints: F. Glover, "Surrogate
    # constraints", Operations Research 16, 1968; Martello, Toth, Knapsack Problems, 1990, section 2
    over = excess > 0.0
    if not over.any() or len(partition) == 0:
        return known
    share = weight[:, over] / excess[over]
    while known.count < len(partition) and not out_of_time():
        found = _Search(share, known.count, out_of_time).cases()
        if found is None:
            break
        cases = []
        for price, leaves, stays in found:
            full = np.zeros(len(excess))
            full[over] = price / excess[over]
            named = (tuple(int(partition[i]) for i in some) for some in (leaves, stays))
            cases.append(Case(full, *named))
        known = Cover(node, known.count + 1, tuple(cases))
    return known
