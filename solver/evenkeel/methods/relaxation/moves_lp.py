"""Prices of load from a linear program: the nodes whose headroom costs moves.

The program lets fractions of replicas follow and lead wherever they may, within the targets, and
with the losses that are proven node by node. It starts with where replicas are and grows by the
places that its own prices make cheap (column generation); prices prove a bound at every stage.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.certificate import Cover
from evenkeel.measure.bounds.moves import keepable
from evenkeel.measure.bounds.prices import domain_members, domains_and_caps, price_blocks, priced
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.cluster import Cluster

MOST_PARTITIONS = 5_000
"""Partitions up to which the program is tried."""

ROUNDS = 30
"""Times that it grows at most."""

DEAR = 20.0
"""Price, in moves, of an average load that finds no room."""

ENOUGH = 1e-4
"""Distance of the bound from the program's value, in moves, at which it stops growing."""

Prices = tuple[NDArray[np.float64], NDArray[np.float64]]


def joint_prices(
    cluster: Cluster,
    target: NDArray[np.float64],
    covers: Sequence[Cover],
    watch: Watch,
) -> Prices | None:
    """Look for prices of load and of losses that prove many moves.

    G. B. Dantzig, P. Wolfe, "Decomposition principle for linear programs", Operations Research 8,
    1960; every stage bounds the whole by its Lagrangian.
    """
    partitions = len(cluster.partitions)
    if not 0 < partitions <= MOST_PARTITIONS or len(cluster.nodes) == 0:
        return None
    program = _Program(cluster, target, covers)
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


class _Program:
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
        """Return each column's crowd, a partition's places in a domain that has too many, and caps.

        Columns in no crowd have -1.
        """
        domains = int(self.domain.max()) + 2
        key = p * np.int64(domains) + self.domain[n] + 1
        crowded, where, size = np.unique(key, return_inverse=True, return_counts=True)
        owner = (crowded // domains).astype(np.intp)
        tight = (size > self.cap[owner]) & (crowded % domains > 0)
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
