"""Relaxations on request: bounds that take seconds instead of milliseconds, each with its proof.

For ``Goals``, nodes that are too full are covered exactly, one by one, and where the cluster is
small enough a linear program over all nodes at once prices their load. For a ``Cost``, a linear
program places fractions of replicas. Whatever HiGHS answers is not believed: its multipliers are
rounded and put through weak duality here, so the bound is sound even where they are not optimal.
"""

import logging
from dataclasses import dataclass, replace

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
from evenkeel.methods.relaxation.node_cover import least_losses
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
        What is asked for; ``Goals()`` by default.
    proven : Bounds, optional
        What is proven of these goals already; computed if it is not given.
    time_limit : float or None
        Seconds; what is proven when they are over is returned. None for as long as it takes.

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
    shed = proven.level_proof
    for node, count, price in zip(
        shed.node.tolist(),
        shed.count.tolist(),
        shed.price,
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
    """Return what prices prove with these covers."""
    count = np.zeros(len(cluster.nodes))
    for cover in covers:
        count[cover.node] = cover.count
    value = priced(cluster, proven.target, prices.load, prices.loss, count)
    return frozen_certificate(whole_moves(value), prices.load, prices.loss, covers)
