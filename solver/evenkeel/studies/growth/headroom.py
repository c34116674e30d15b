"""Find the largest growth of loads that fits on a cluster, with a proven upper bound."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.even import whole_level
from evenkeel.measure.bounds.needs import Case, Need, needs
from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import ROUNDING, items_of
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import is_real
from evenkeel.model.runtime.figures import number
from evenkeel.model.runtime.logs import log_event
from evenkeel.model.runtime.table import Column, Table
from evenkeel.studies.growth.fitting import Terms, cases_of, fitted, read_terms
from evenkeel.studies.growth.forecast import Factor, grown_by
from evenkeel.studies.growth.shortages import held_by, shortage_of

logger = logging.getLogger("evenkeel.headroom")

ALL = "all"  # what grows if all dimensions do
SMALL = 200  # replicas x nodes up to which CP-SAT decides where the search finds no place
LEAST = 1e-3  # share of the bound below which nothing is tried any more


class Reach(NamedTuple):
    """How far loads may grow, in one way, until a cluster is full.

    Parameters
    ----------
    grows : str
        The dimension whose loads are multiplied; ``"all"`` for every one.
    loss : str
        What the cluster has to bear then; empty for nothing.
    at_least : float
        A factor at which everything was placed, audited, and survived; 0 if none was found, NaN if
        none was looked for.
    at_most : float
        Proven: at no greater factor everything has its place; ``inf`` if nothing limits it, 0 if it
        has none at any factor.
    full : str
        What is full then: a dimension, nodes, replicas, or domains of a tier; empty for nothing.
    where : str
        The nodes that are full, such as ``"zone a"``; empty for all.
    reason : str
        Why, at that factor, in a sentence.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0], [1]] * 2)
    >>> far = ek.headroom(c).reaches[0]
    >>> far.grows, far.at_least, far.at_most, far.full
    ('all', 1.999999998, 2.0, 'd0')
    """

    grows: str
    loss: str
    at_least: float
    at_most: float
    full: str
    where: str
    reason: str

    @property
    def fits(self) -> bool:
        """Whether loads fit as they are; what exactly fills the cluster fits."""
        return not self.at_least < 1.0 - 10.0 * ROUNDING


class Filling(NamedTuple):
    """How full a domain is now, in one dimension.

    Parameters
    ----------
    domain, dimension : str
        Of the widest tier; all nodes where there are no tiers.
    load, capacity : float
        What its accepting nodes carry, and can.
    utilisation : float
        The one over the other.
    at_most : float
        Proven: at no greater factor on all loads what rules leave no other place for fits into it;
        ``inf`` if everything may stand elsewhere.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0], [1]] * 2)
    >>> full = ek.headroom(c).domains[0]
    >>> full.dimension, full.load, full.capacity, full.utilisation
    ('d0', 4.0, 8.0, 0.5)
    """

    domain: str
    dimension: str
    load: float
    capacity: float
    utilisation: float
    at_most: float


@dataclass(frozen=True, eq=False)
class Headroom:
    """How far loads may grow until a cluster is full.

    Parameters
    ----------
    reaches : tuple of Reach
        For growth in all dimensions and in each, without a loss and with each kind of them.
    losses : tuple of Reach
        For growth in all dimensions, the proven factor of every single loss, the least first.
    domains : tuple of Filling
        How full each domain of the widest tier is, by dimension.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 4, load=[[1.0]] * 8, domains={"zone": [*"abcd"]},
    ...     placement=[[0, 1, 2]] * 8, spread={"zone": 1})
    >>> found = ek.headroom(cluster, survive="zone")
    >>> [(one.loss, round(one.at_least, 6), round(one.at_most, 6)) for one in found.reaches]
    [('', 1.666667, 1.666667), ('zone', 1.25, 1.25)]
    >>> found.losses[0].reason
    'after the loss of zone a, d0 is full: all its room, 30, is needed'
    """

    reaches: tuple[Reach, ...]
    losses: tuple[Reach, ...]
    domains: tuple[Filling, ...]

    @known_keywords
    def reach(self, grows: str = ALL, loss: str = "") -> Reach:
        """Return how far loads may grow in one way.

        Parameters
        ----------
        grows : str, optional
            A dimension, or ``"all"``.
        loss : str, optional
            What has to be borne, as it was asked.

        Returns
        -------
        Reach
            Proven and reached.

        Raises
        ------
        InvalidInput
            If that was not asked.
        """
        faults = FaultList()
        texts = isinstance(grows, str) and isinstance(loss, str)
        found = [one for one in self.reaches if texts and (one.grows, one.loss) == (grows, loss)]
        if not found:
            known = [(one.grows, one.loss) for one in self.reaches]
            faults.add("grows, loss", (grows, loss), f"was not asked; there are {known}")
        faults.raise_if_any()
        return found[0]

    def __repr__(self) -> str:
        if not self.reaches:
            return "<Headroom: nothing asked>"
        least = min(one.at_least for one in self.reaches)
        return f"<Headroom: loads may grow {number(least)} times, whatever grows and is lost>"

    def __str__(self) -> str:
        reaches, none = self.reaches, "none"
        return str(
            Table(
                [
                    Column("grows", [one.grows for one in reaches]),
                    Column("loses", [one.loss or "nothing" for one in reaches]),
                    *(
                        Column(
                            name.replace("_", " "),
                            [getattr(one, name) if one.at_most > 0.0 else none for one in reaches],
                            number,
                        )
                        for name in ("at_least", "at_most")
                    ),
                    Column(
                        "then full",
                        [", ".join(filter(None, (one.full, one.where))) for one in reaches],
                    ),
                ]
            )
        )


@known_keywords
def headroom(
    cluster: Cluster,
    *,
    survive: str | Sequence[str] = (),
    recover: bool = True,
    at_most: Factor = 1.0,
    after_loss: Factor = 1.0,
    grows: Sequence[str] | None = None,
    precision: float = 0.005,
    time_limit: float | None = None,
    seed: int = 0,
) -> Headroom:
    """Find how far loads may grow until a cluster is full, everything placed anew where that helps.

    The greatest factor is bounded by what every set of nodes must hold (``size`` says how), and
    looked for from there down by real solves, each audited and swept for what may be lost.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    survive : str or sequence of str, optional
        Losses to be borne, each by itself, as ``sweep`` names them: ``"zone"``, ``"node"``.
    recover : bool, optional
        Whether all that is lost has to find another place within the rules; else no partition may
        be lost or without a quorum, and leaders have to fit.
    at_most, after_loss : float or mapping of str to float, optional
        Share of its capacity that a node is filled to at most, for all dimensions or by name;
        always, and after a loss.
    grows : sequence of str, optional
        What grows: ``"all"``, or dimensions, each while the others stay; all of these by default.
    precision : float, optional
        The search ends once a factor fits and one greater by this share does not.
    time_limit : float, optional
        Seconds for each solve.
    seed : int, optional
        All randomness comes from it.

    Returns
    -------
    Headroom
        Factors, proven and reached, and what is full at them.

    Raises
    ------
    InvalidInput
        Naming every problem, with its path and value.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     dimensions=("cpu", "disk"), capacity=[[10.0, 20.0]] * 4, load=[[1.0, 1.0]] * 8,
    ...     placement=[[0, 1]] * 8)
    >>> print(ek.headroom(cluster, survive="node"))
    grows  loses    at least  at most  then full
    all    nothing    2.5000   2.5000  cpu
    all    node       1.6667   1.6667  cpu
    cpu    nothing    2.5000   2.5000  cpu
    cpu    node       1.6667   1.6667  cpu
    disk   nothing    5.0000   5.0000  disk
    disk   node       3.3333   3.3333  disk
    """
    require_cluster(cluster)
    faults = FaultList()
    terms = read_terms(
        faults, cluster, survive=survive, recover=recover, at_most=at_most, after_loss=after_loss,
        goals=None, time_limit=time_limit, seed=seed, decided=SMALL,
    )  # fmt: skip
    ways = _ways(faults, cluster, grows)
    if not is_real(precision) or not 1e-6 <= precision < 1.0:
        faults.add("precision", precision, "must be a share, at least 1e-6 and below 1")
    faults.raise_if_any()
    assert terms is not None
    began = time.perf_counter()
    usual = _bounds(cluster, terms._replace(survive=()), ways)
    reaches, losses = [], []
    for text in ("", *terms.survive):
        asked = terms._replace(survive=(text,) if text else ())
        of_loss = _bounds(cluster, asked, ways) if text else usual
        losses += [one for one in of_loss if one.grows == ALL and one.loss]
        for grows_now, growing in ways.items():
            tightest = min(
                (one for one in of_loss if one.grows == grows_now), key=lambda one: one.at_most
            )
            reached = _reached(cluster, asked, growing, tightest.at_most, precision)
            reaches.append(tightest._replace(loss=text, at_least=reached))
    order = [*ways]
    reaches.sort(key=lambda one: order.index(one.grows))
    losses.sort(key=lambda one: one.at_most)
    log_event(
        logger, "measured", reaches=[(one.grows, one.loss, one.at_least) for one in reaches],
        seconds=time.perf_counter() - began,
    )  # fmt: skip
    return Headroom(tuple(reaches), tuple(losses), _fillings(cluster, terms))


def _ways(
    faults: FaultList, cluster: Cluster, grows: Sequence[str] | None
) -> dict[str, NDArray[np.bool_]]:
    """Return which dimensions grow, (D,), by the name of each way."""
    dimensions = cluster.dimensions
    if grows is None:
        grows = [ALL, *dimensions] if len(dimensions) > 1 else [ALL]
    ways = {}
    named = [grows] if isinstance(grows, str) else items_of(faults, "grows", grows)
    for i, name in enumerate(named):
        if not isinstance(name, str) or (name != ALL and name not in dimensions):
            faults.add(f"grows[{i}]", name, f"must be {ALL!r} or one of {[*dimensions]}")
        else:
            ways[name] = np.array([name in (ALL, one) for one in dimensions])
    return ways


def _bounds(cluster: Cluster, terms: Terms, ways: dict[str, NDArray[np.bool_]]) -> list[Reach]:
    """Return the proven factor of every way to grow, in every case."""
    found: dict[tuple[str, str], tuple[float, Need | None]] = {}
    for case in cases_of(cluster, terms):
        for name in ways:
            found[name, case.name] = np.inf, None
        for need in needs(cluster, case):
            for name, growing in ways.items():
                factor = _factor(cluster, need, growing)
                if factor < found[name, case.name][0]:
                    found[name, case.name] = factor, need
    return [
        _reach(cluster, name, case, factor, need, ways[name])
        for (name, case), (factor, need) in found.items()
    ]


def _factor(cluster: Cluster, need: Need, growing: NDArray[np.bool_]) -> float:
    """Return the greatest factor at which a need can be met; 0 if none can, inf if any."""
    sized = need.kind in ("load", "leading", "whole replicas")
    if not sized or not growing[need.dimension]:
        every = np.arange(len(cluster.nodes))
        held, _ = held_by(cluster, need, every, every[:0])
        largest = np.sort(held)[::-1][: need.spare]
        left = held.sum() - largest.sum() if np.isfinite(held).all() else np.inf
        return np.inf if left >= need.amount * (1.0 - ROUNDING) else 0.0
    asked = need.amount - float(need.kept.sum())
    room = np.sort(need.room)[::-1][need.spare :]
    if asked <= ROUNDING * need.amount or (len(room) and not np.isfinite(room[0])):
        return np.inf
    if need.whole:
        level = whole_level(room, round(asked))
        return 1.0 / level if level > 0.0 else np.inf
    return float(room.sum()) / asked


def _reach(
    cluster: Cluster,
    name: str,
    case: str,
    factor: float,
    need: Need | None,
    growing: NDArray[np.bool_],
) -> Reach:
    """Put a bound into words: what is full at that factor."""
    if need is None:
        return Reach(name, case, np.nan, factor, "", "", "nothing limits it")
    grown = need
    if 0.0 < factor < np.inf and need.dimension >= 0 and growing[need.dimension % len(growing)]:
        if need.whole:
            grown = replace(need, room=need.room / factor)
        elif need.kind in ("load", "leading"):
            grown = replace(need, amount=need.amount * factor, kept=need.kept * factor)
    every = np.arange(len(cluster.nodes))
    held, _ = held_by(cluster, grown, every, every[:0])
    short = shortage_of(cluster, grown, float(np.sort(held)[::-1][grown.spare :].sum()))
    return Reach(name, case, np.nan, factor, short.full, short.where, short.reason)


def _reached(
    cluster: Cluster, terms: Terms, growing: NDArray[np.bool_], at_most: float, precision: float
) -> float:
    """Return the greatest factor found at which everything fits, from the bound down."""
    if not 0.0 < at_most < np.inf:
        return at_most

    def fits(factor: float) -> bool:
        grown = grown_by(FaultList(), "", cluster, np.where(growing, factor, 1.0)[None])
        return not fitted(grown, terms).cause

    return _greatest(fits, at_most * (1.0 - ROUNDING), precision)


def _greatest(fits: Callable[[float], bool], high: float, precision: float) -> float:
    """Return the greatest number that fits, from one down that hardly will be exceeded."""
    if fits(high):
        return high
    step, least = precision, LEAST * high
    top, low = high, high * (1.0 - step)
    while not fits(low):
        step *= 2.0
        top, low = low, high * (1.0 - step)
        if low < least:
            return 0.0
    while top > low * (1.0 + precision):
        middle = (top + low) / 2.0
        if fits(middle):
            low = middle
        else:
            top = middle
    return low


def _fillings(cluster: Cluster, terms: Terms) -> tuple[Filling, ...]:
    """Return how full each domain of the widest tier is."""
    topology, nodes = cluster.topology, cluster.nodes
    placed = PlacementCounts.of(cluster, cluster.placement)
    tier = topology.tiers[0] if topology.tiers else ""
    domain = topology.domain[0] if tier else np.zeros(len(nodes), np.int32)
    forced: dict[tuple[str, int], float] = {}
    for need in needs(cluster, Case("", np.zeros(len(nodes), bool), terms.at_most)):
        if need.kind in ("load", "whole replicas"):
            key = need.where, need.dimension
            factor = _factor(cluster, need, np.ones(len(cluster.dimensions), bool))
            forced[key] = min(forced.get(key, np.inf), factor)
    rows = []
    for at in np.unique(domain[domain >= 0]).tolist():
        inside = (domain == at) & nodes.may_receive
        where = f"{tier} {topology.domain_name(0, at)}" if tier else ""
        load = placed.loads[inside].sum(0)
        room = nodes.capacity[inside].sum(0)
        share = utilisation(load, room)
        rows += [
            Filling(where, name, float(load[d]), float(room[d]), float(share[d]),
                    forced.get((where, d), np.inf))
            for d, name in enumerate(cluster.dimensions)
        ]  # fmt: skip
    return tuple(rows)
