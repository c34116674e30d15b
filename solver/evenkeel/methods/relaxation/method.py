"""Relaxations on request: bounds that take seconds instead of milliseconds, each with its proof.

For ``Goals``, nodes that are too full are covered exactly, one by one, and where the cluster is
small enough a linear program over all nodes at once prices their load. For a ``Cost``, a linear
program places fractions of replicas. The optimum of HiGHS is not trusted: its multipliers are
rounded and go through weak duality here, so the bound is valid even where they are not optimal.

The replicas that leave a node must cover its excess in all dimensions at once. Prices reduce the
dimensions to one and give the least number of largest replicas; where fractions make this number
small, the search branches on one replica: it leaves, or it stays. The cases that prices decide are
the proof.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds, bounds
from evenkeel.measure.bounds.certificate import (
    Case,
    Certificate,
    Cover,
    Losses,
    certified,
    frozen_certificate,
)
from evenkeel.measure.bounds.moves import keepable
from evenkeel.measure.bounds.prices import priced, whole_moves
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.relaxation.cost_lp import relaxed_cost
from evenkeel.methods.relaxation.moves_lp import joint_prices
from evenkeel.methods.shared.stopping import Watch
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import check_time_limit
from evenkeel.model.runtime.logs import log_event

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
        evicted.node.tolist(),
        evicted.count.tolist(),
        evicted.price,
        strict=True,
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


MOST_CASES = 64
"""Cases of one proof; where more are needed, none is given."""

WHOLE = 1e-7
"""A share of a replica that is so close to a whole one is one."""

MARGIN = 1e-7
"""By how much the excess has to be missed for a case to be decided."""


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
        """Return prices that decide a case; else a replica to split it by, None if it is covered.

        The most that so many replicas cover of the dimension they cover least, in fractions, is a
        linear program with as many rows as dimensions; its multipliers are the prices.
        """
        from scipy.optimize import linprog

        replicas, dimensions = self.share.shape
        upper = np.ones(replicas)
        lower = np.zeros(replicas)
        lower[leaves], upper[stays] = 1.0, 0.0
        if len(leaves) > self.count:
            return np.ones(dimensions), None
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
    """Prove that a node must lose more replicas than is known, as many more as can be.

    Branch and bound with surrogate duality for knapsack constraints: F. Glover, "Surrogate
    constraints", Operations Research 16, 1968; Martello, Toth, Knapsack Problems, 1990, section 2.
    """
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
