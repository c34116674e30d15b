"""Sizing: the cheapest nodes that hold a forecast and survive what may be lost, with a proof."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import needs
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.logs import log_event
from evenkeel.result import Result
from evenkeel.studies.growth.fewest_nodes import Cheapest, Rows, cheapest
from evenkeel.studies.growth.fitting import Cause, Fit, Terms, cases_of, fitted
from evenkeel.studies.growth.forecast import Factor, Forecast, read_forecast
from evenkeel.studies.growth.node_types import (
    Kind,
    NodeType,
    check_candidates,
    read_types,
    with_nodes,
)
from evenkeel.studies.growth.shortages import Shortage, rows_of
from evenkeel.studies.growth.terms import read_terms
from evenkeel.studies.swept import Sweep

logger = logging.getLogger("evenkeel.size")

SLACKS = (0.0, 0.0, 0.01, 0.04, 0.12, 0.3, 0.64)
"""How much more than is proven to be needed is asked for, attempt by attempt, until one fits."""

AGAIN = 4
"""Further attempts to find something cheaper than what fits."""

PROOFS = 12
"""Attempts that are proven to be in vain before more is asked for."""

SMALL = 2_000
"""Replicas x nodes up to which CP-SAT decides where the search finds no place."""

LARGEST = 100_000
"""Nodes that may join in all."""

LOADS = ("load", "leading", "whole replicas")
"""Needs of which more may be asked for than is proven."""

MOST_LISTED = 8
"""Shortages that are listed."""

NEARLY = 1e-9
"""Share by which prices and sums may differ by rounding."""

SizingStatus = Literal["optimal", "feasible", "infeasible", "not found"]


class Purchase(NamedTuple):
    """So many nodes of one type in one place.

    Parameters
    ----------
    type, place : str
        Which, and where; the place is empty where there are no tiers.
    nodes : int
        How many.
    price : float
        Of each.

    Examples
    --------
    >>> Purchase("big", "a", nodes=3, price=2.0).nodes
    3
    """

    type: str
    place: str
    nodes: int
    price: float


@dataclass(frozen=True, eq=False)
class Sizing:
    """Which nodes a forecast takes.

    Parameters
    ----------
    status : str
        ``"optimal"``: it fits, and proven that nothing cheaper does. ``"feasible"``: it fits; the
        gap says what might be saved. ``"infeasible"``: proven that no number of nodes of these
        types is enough. ``"not found"``: nothing was found that fits.
    message : str
        The status in a sentence, with the reason.
    nodes : tuple of Purchase
        What to get, by type and place; empty if nothing is needed or nothing was found.
    price : float
        Of all of it; ``inf`` if nothing was found.
    price_at_least : float
        Proven: nothing cheaper holds the forecast; ``inf`` if nothing does.
    shortages : tuple of Shortage
        What is lacking without new nodes, at most the worst of each measure and loss; or, if it is
        infeasible, what is lacking with as many new nodes as there may be.
    cluster : Cluster or None
        With the forecast's loads, the new nodes, and everything in its place.
    result : Result or None
        Of the solve that placed it: audited, from the placement as it is now, with capacities
        as full as they may be (``at_most``).
    losses : Sweep or None
        What becomes of each loss; None if none was asked for.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 3, load=[[2.0]] * 5, domains={"zone": [*"abc"]},
    ...     placement=[[0, 1, 2]] * 5, spread={"zone": 1})
    >>> found = ek.size(cluster, 1.4)
    >>> found.status, found.price, found.price_at_least, found.gap
    ('optimal', 3.0, 3.0, 0.0)
    >>> found.shortages[0].reason
    'd0 has room for 9 of the 15 large replicas needed'
    """

    status: SizingStatus
    message: str
    nodes: tuple[Purchase, ...]
    price: float
    price_at_least: float
    shortages: tuple[Shortage, ...]
    cluster: Cluster | None
    result: Result | None
    losses: Sweep | None

    @property
    def count(self) -> int:
        """New nodes in all."""
        return sum(one.nodes for one in self.nodes)

    @property
    def gap(self) -> float:
        """What might be saved at most, over the price that is proven; 0 if it is optimal."""
        if not np.isfinite(self.price):
            return np.inf
        saved = self.price - self.price_at_least
        if saved <= 0.0:
            return 0.0
        return saved / self.price_at_least if self.price_at_least > 0.0 else np.inf

    def __repr__(self) -> str:
        return f"<Sizing: {self.status}, {self.count:,} nodes for {quantity(self.price)}>"

    def __str__(self) -> str:
        lines = [f"{self.status}: {self.message}"]
        called = [f"{one.type} in {one.place}" if one.place else one.type for one in self.nodes]
        width = max(map(len, called), default=0)
        lines += [
            f"  {name:{width}}  {one.nodes:>8,}  at {quantity(one.price)} each"
            for name, one in zip(called, self.nodes, strict=True)
        ]
        if self.status in ("infeasible", "not found"):
            lines += [f"  {one.reason}" for one in self.shortages]
        return "\n".join(lines)


@known_keywords
def size(
    cluster: Cluster,
    forecast: Forecast | Factor | Cluster | None = None,
    node_types: Sequence[NodeType] | None = None,
    *,
    survive: str | Sequence[str] = (),
    recover: bool = True,
    at_most: Factor = 1.0,
    after_loss: Factor = 1.0,
    goals: Goals | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Sizing:
    """Find the cheapest nodes that, with those there are, hold a forecast and survive losses.

    What no placement can do without is counted first: per dimension, for every set of domains that
    rules leave replicas no place outside of, in whole replicas, and after every loss. CP-SAT finds
    the cheapest nodes that meet all of that, which proves the bound. Whether they are enough is
    then tried: the grown cluster is solved, audited, and swept for the losses. Where it does not
    fit, the next best are tried, and the gap is reported.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    forecast : Forecast, float, mapping of str to float, or Cluster, optional
        How it grows: a factor on all loads, one by dimension, more of it as a ``Forecast``; or the
        cluster as it will be. As it is, by default.
    node_types : sequence of NodeType, optional
        What one can get; nodes like most of those that accept replicas, by default.
    survive : str or sequence of str, optional
        What may be lost, as ``sweep`` names it: ``"zone"``, ``"node"``, ``"node pairs"``.
    recover : bool, optional
        Whether all that is lost has to find another place within the rules; else no partition may
        be lost or without a quorum, and leaders have to fit.
    at_most, after_loss : float or mapping of str to float, optional
        Share of its capacity that a node is filled to at most, for all dimensions or by name;
        always, and after a loss.
    goals : Goals, optional
        Tolerances that the placement has to meet, too.
    time_limit : float, optional
        Seconds for each solve.
    seed : int, optional
        All randomness comes from it.

    Returns
    -------
    Sizing
        What to get, its price, the price that is proven to be needed, and the grown cluster.

    Raises
    ------
    InvalidInput
        Naming every problem, with its path and value.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 4, load=[[2.0]] * 6, domains={"zone": [*"abcd"]},
    ...     placement=[[0, 1, 2]] * 6, spread={"zone": 1})
    >>> print(ek.size(cluster, 1.5, survive="zone"))
    optimal: 4 nodes for 4, and no less will do
      like n0 in zone a         1  at 1 each
      like n0 in zone b         1  at 1 each
      like n0 in zone c         1  at 1 each
      like n0 in zone d         1  at 1 each
    """
    require_cluster(cluster)
    faults = FaultList()
    grown = read_forecast(faults, cluster, forecast)
    kinds = read_types(faults, grown, node_types)
    terms = read_terms(
        faults, grown, survive=survive, recover=recover, at_most=at_most, after_loss=after_loss,
        goals=goals, time_limit=time_limit, seed=seed, decided=SMALL,
    )  # fmt: skip
    candidates = grown if faults else check_candidates(faults, grown, kinds)
    faults.raise_if_any()
    assert terms is not None
    began = time.perf_counter()
    found = _Search.of(grown, candidates, kinds, terms).run()
    log_event(
        logger, "sized", status=found.status, nodes=found.count, price=found.price,
        at_least=found.price_at_least, seconds=time.perf_counter() - began,
    )  # fmt: skip
    return found


@dataclass
class _Search:
    """The search for nodes: what is needed, what was too few, and the best that fits."""

    grown: Cluster
    kinds: list[Kind]
    terms: Terms
    rows: Rows
    shortages: list[Shortage]
    limit: NDArray[np.int64]
    most: NDArray[np.int64]  # more of one kind than the needs that were counted can use is left out
    even: NDArray[np.int64]
    standing: NDArray[np.int64]
    monotone: bool
    at_least: float = 0.0
    too_few: list[NDArray[np.int64]] = field(default_factory=list)
    impossible: list[NDArray[np.int64]] = field(default_factory=list)
    best: tuple[NDArray[np.int64], Fit] | None = None
    why: str = ""
    cause: Cause = ""

    @classmethod
    def of(cls, grown: Cluster, candidates: Cluster, kinds: list[Kind], terms: Terms) -> "_Search":
        """Count what is needed."""
        needed = (one for case in cases_of(candidates, terms) for one in needs(candidates, case))
        rows, shortages = rows_of(candidates, needed, len(kinds))
        useful = rows.most_useful() * 2 + 8
        limit = np.array([LARGEST if one.most is None else one.most for one in kinds], np.int64)
        topology, old = candidates.topology, len(grown.nodes)
        domain = topology.domain_with_nodes[0]
        if not topology.tiers:
            domain = np.zeros(len(candidates.nodes), np.int32)
        there = domain[:old][grown.nodes.may_receive & (domain[:old] >= 0)]
        standing = np.bincount(there, minlength=int(domain.max(initial=0)) + 1)
        keeps = grown.nodes.may_hold & ~grown.nodes.may_receive
        return cls(
            grown, kinds, terms, rows, shortages, limit,
            np.minimum(limit, useful).astype(np.int64),
            domain[old:].astype(np.int64), standing.astype(np.int64),
            monotone=not keeps.any() and not any(rule.skew for rule in grown.rules),
        )  # fmt: skip

    def run(self) -> Sizing:
        """Try the cheapest that may be enough, then what is a little more, then what is between."""
        proven = self._cheapest(0.0, [])
        self.at_least = proven.at_least
        if not np.isfinite(proven.at_least):
            return self._infeasible()
        reached = self._first_that_fits()
        if reached is not None:
            self._cheaper(*reached)
        return self._found()

    def _first_that_fits(self) -> tuple[float, float] | None:
        """Ask for more until something fits; return how much was too little, and enough."""
        below = 0.0
        slacks = iter(SLACKS)
        slack = next(slacks)
        while True:
            found = self._cheapest(slack, self.too_few)
            if found.count is None and (self.most < self.limit).any():
                self._allow_more(self.most < self.limit)
                continue
            if found.count is None or found.count.sum() > LARGEST:
                self.why = self.why or f"it takes more than {LARGEST:,} nodes"
                return None
            if self._fits(found.count):
                return below, slack
            if self.cause == "rules":
                return None
            if slack == 0.0 and len(self.impossible) == len(self.too_few) < PROOFS:
                continue  # what is proven lifts the bound
            below, slack = slack, next(slacks, np.inf)
            if slack == np.inf:
                return None

    def _cheaper(self, low: float, high: float) -> None:
        """Look for what is cheaper between what was asked for in vain and what fits."""
        asked = low
        for _ in range(AGAIN):
            if self._price_of_best <= self.at_least * (1.0 + NEARLY):
                return
            found = self._cheapest(asked, self.too_few, below=self._price_of_best)
            if found.count is None and asked == low:
                return
            if found.count is None or self._fits(found.count):
                high = asked
            else:
                low = asked
            asked = (low + high) / 2.0

    def _cheapest(
        self, slack: float, too_few: list[NDArray[np.int64]], below: float = np.inf
    ) -> Cheapest:
        """Return the cheapest that meets the needs, and so much more of each load."""
        more = [slack * one.needed * (one.kind in LOADS) for one in self.shortages]
        lacking = self.rows.lacking + np.array(more).reshape(-1, 1)
        return cheapest(
            replace(self.rows, lacking=lacking), [one.price for one in self.kinds], self.most,
            even=self.even, standing=self.standing, too_few=too_few, below=below,
            seed=self.terms.seed,
        )  # fmt: skip

    def _fits(self, count: NDArray[np.int64]) -> bool:
        """Try whether so many nodes are enough, and note what came of it."""
        larger = with_nodes(self.grown, self.kinds, count.tolist())
        fit = fitted(larger, self.terms)
        log_event(
            logger, "tried", logging.DEBUG, nodes=int(count.sum()), price=self._price(count),
            fits=not fit.cause, why=fit.why,
        )  # fmt: skip
        if not fit.cause:
            self.best = count, fit
            return True
        self.why, self.cause = fit.why, fit.cause
        self.too_few.append(count)
        if fit.cause == "impossible" and self.monotone:
            self.impossible.append(count)
            self._allow_more(count >= self.most)
            lifted = self._cheapest(0.0, self.impossible).at_least
            self.at_least = max(self.at_least, min(lifted, self._price_beyond))
        return False

    def _allow_more(self, which: NDArray[np.bool_]) -> None:
        """Look at more nodes of some kinds: what was tried lacked what the needs do not count."""
        more = np.minimum(2 * self.most + 1, self.limit)
        self.most = np.where(which, more, self.most)

    @property
    def _price_beyond(self) -> float:
        """What it costs at least to have more nodes of a kind than are looked at."""
        beyond = [
            one.price * (count + 1)
            for one, count, limit in zip(
                self.kinds, self.most.tolist(), self.limit.tolist(), strict=True
            )
            if count < limit
        ]
        return min(beyond, default=np.inf)

    def _price(self, count: NDArray[np.int64]) -> float:
        return float(sum(n * one.price for n, one in zip(count.tolist(), self.kinds, strict=True)))

    @property
    def _price_of_best(self) -> float:
        return np.inf if self.best is None else self._price(self.best[0])

    def _found(self) -> Sizing:
        """Tell what was found."""
        lacking = [
            one for one, left in zip(self.shortages, self.rows.lacking[:, 0], strict=True)
            if left > NEARLY * one.needed
        ]  # fmt: skip
        worst = _worst(lacking)
        if self.best is None:
            status: SizingStatus = "not found" if np.isfinite(self.at_least) else "infeasible"
            message = f"nothing was found that fits: {self.why}"
            return Sizing(status, message, (), np.inf, self.at_least, worst, None, None, None)
        count, fit = self.best
        price = self._price(count)
        optimal = price <= self.at_least * (1.0 + NEARLY)
        total = int(count.sum())
        nodes = f"{total:,} node{'s' * (total != 1)} for {quantity(price)}"
        saying = (
            "and no less will do" if optimal else f"at least {quantity(self.at_least)} is needed"
        )
        if total == 0:
            nodes, saying = "it fits as it is", "no node is needed"
        larger = with_nodes(self.grown, self.kinds, count.tolist())
        return Sizing(
            "optimal" if optimal else "feasible", f"{nodes}, {saying}",
            tuple(
                Purchase(one.type, one.place, n, one.price)
                for one, n in zip(self.kinds, count.tolist(), strict=True) if n
            ),
            price, price if optimal else self.at_least, worst,
            larger.with_placement(fit.result.placement), fit.result, fit.losses,
        )  # fmt: skip

    def _infeasible(self) -> Sizing:
        """Tell which needs all nodes together do not meet."""
        met = self.rows.met_by(self.most)
        held = np.where(self.most > 0, self.rows.holds, 0.0) @ self.most.astype(np.float64)
        worst = _worst([
            one._replace(held=one.needed - lacking + more)
            for one, lacking, more, ok in zip(
                self.shortages, self.rows.lacking[:, 0].tolist(), held.tolist(), met, strict=True
            ) if not ok
        ])  # fmt: skip
        message = "no number of these nodes is enough"
        if worst:
            message += f": {worst[0].reason}"
        return Sizing("infeasible", message, (), np.inf, np.inf, worst, None, None, None)


def _worst(shortages: list[Shortage]) -> tuple[Shortage, ...]:
    """Return the worst shortage of each measure and loss, the worst first, as many as one reads."""
    order = sorted(shortages, key=lambda one: (one.held + NEARLY) / (one.needed + NEARLY))
    first: dict[tuple[str, str], Shortage] = {}
    for one in order:
        first.setdefault((one.loss, one.full), one)
    return tuple(first.values())[:MOST_LISTED]
