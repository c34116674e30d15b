"""Find the cheapest nodes that hold a forecast and survive given losses, with a proof."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import needs
from evenkeel.measure.compare import relocations
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import keepers, node_loads
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import MOST_IN_ALL, ROUNDING, entries_of
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import check_number, check_truth
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.rules import nodes_meeting
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.logs import log_event
from evenkeel.model.runtime.printable import counted
from evenkeel.result import Result
from evenkeel.studies.growth.fitting import Cause, Fit, Terms, cases_of, fitted, read_terms
from evenkeel.studies.growth.forecast import Factor, Forecast, read_forecast
from evenkeel.studies.growth.node_types import (
    Kind,
    NodeType,
    check_candidates,
    own_tiers,
    read_types,
    with_nodes,
)
from evenkeel.studies.growth.shortages import Cheapest, Rows, Shortage, cheapest, rows_of
from evenkeel.studies.sweep import Sweep

# what all data of a cluster are scaled to, so that those of a node can be a whole number
FINE = 1 << 30

LISTED = 3  # partitions that are named where their pins keep a node


class Leaving(NamedTuple):
    """A node that may go.

    Parameters
    ----------
    node, place : str
        Its name, and its domain of the widest tier; empty where there are no tiers.
    price : float
        What it saves.
    replicas : int
        Those on it, each of which takes a move.

    Examples
    --------
    >>> Leaving("n3", "zone a", price=1.0, replicas=40).node
    'n3'
    """

    node: str
    place: str
    price: float
    replicas: int


class Stock(NamedTuple):
    """Nodes in kinds that can stand for each other, each by itself at first. J kinds, N nodes."""

    cluster: Cluster  # whose nodes they are
    members: list[NDArray[np.intp]]  # of each kind the nodes, the one with which least leaves first
    # price, replicas, leaves: (N,) of each node; what leaves with it, in the unit of the budget
    price: NDArray[np.float64]
    replicas: NDArray[np.int64]
    leaves: NDArray[np.int64]
    budget: float  # how much may leave in all
    stays: NDArray[np.intp]  # nodes that hold replicas and cannot go
    must_stay: tuple[tuple[str, str], ...]  # the same by name, and why

    @property
    def like(self) -> NDArray[np.intp]:
        """A node of each kind."""
        return np.array([one[0] for one in self.members], np.intp)

    @property
    def limit(self) -> NDArray[np.int64]:
        """Nodes of each kind."""
        return np.array([len(one) for one in self.members], np.int64)

    @property
    def prices(self) -> list[float]:
        """Price of a node of each kind."""
        return [float(self.price[one[0]]) for one in self.members]

    @property
    def base(self) -> float:
        """Price of all that cannot go."""
        return float(self.price[self.stays].sum())

    def merged(self, holds: NDArray[np.float64]) -> tuple["Stock", NDArray[np.intp]]:
        """Return the nodes in kinds that hold alike, ``holds`` (M, J), and the first of each."""
        alike = np.column_stack([_alike(self.cluster, self.price)[self.like], holds.T])
        kinds: dict[bytes, list[int]] = {}
        for at in range(len(self.members)):
            kinds.setdefault(alike[at].tobytes(), []).append(at)
        members = [self.like[each] for each in kinds.values()]
        members = [one[np.argsort(self.leaves[one], kind="stable")] for one in members]
        return self._replace(members=members), np.array([one[0] for one in kinds.values()], np.intp)

    def leaving(self, count: NDArray[np.int64]) -> list[int]:
        """Return the nodes that go where so many of each kind stay."""
        each = zip(self.members, count.tolist(), strict=True)
        return [node for members, n in each for node in members[: len(members) - n].tolist()]

    def order(self, count: NDArray[np.int64]) -> tuple[Leaving, ...]:
        """Return the nodes that go, what saves most per move first."""
        topology, names = self.cluster.topology, self.cluster.nodes.names
        price, replicas = self.price.tolist(), self.replicas.tolist()
        saved = [p and (p / n if n else np.inf) for p, n in zip(price, replicas, strict=True)]
        goes = sorted(self.leaving(count), key=lambda n: (-saved[n], n))

        def place(node: int) -> str:
            domain = topology.domain[0][node] if topology.tiers else -1
            return f"{topology.tiers[0]} {topology.domain_name(0, domain)}" if domain >= 0 else ""

        return tuple(
            Leaving(names[n], place(n), float(self.price[n]), int(self.replicas[n])) for n in goes
        )

    def moves_at_least(self, leaving: tuple[Leaving, ...]) -> int:
        """Return how many replicas stand at least on any nodes that are worth as much."""
        asked = math.fsum(one.price for one in leaving)
        nodes = np.concatenate([np.zeros(0, np.intp), *self.members])
        nodes = nodes[self.price[nodes] > 0.0]
        price, held = self.price[nodes], self.replicas[nodes]
        with np.errstate(over="ignore"):
            first = np.argsort(held / price, kind="stable")
        before = np.concatenate([[0.0], np.cumsum(price[first])])
        share = np.clip(asked - before[:-1], 0.0, price[first]) / price[first]
        return int(np.ceil(float(share @ held[first]) * (1.0 - 1e-12)))


def read_stock(
    faults: FaultList, cluster: Cluster, prices: Mapping[str, float] | None, limits: Limits | None
) -> Stock:
    """Sort the nodes that may go into kinds; read their prices, and name those that stay."""
    nodes, placement = cluster.nodes, cluster.placement
    price = np.ones(len(nodes))
    for which, one in entries_of(faults, "prices", {} if prices is None else prices).items():
        check_number(faults, f"prices[{which!r}]", one, greatest=MOST_IN_ALL)
        chosen = find_nodes(faults, "prices", nodes, cluster.topology, [which])
        if not faults.about("prices"):
            price[chosen] = one
    here = placement.node >= 0
    replicas = np.bincount(placement.node[here], minlength=len(nodes)).astype(np.int64)
    leaves, budget = replicas, np.inf
    moved = cluster.bytes_dimension
    if limits is not None and limits.moves is not None:
        budget = limits.moves
    elif limits is not None and limits.bytes is not None and moved >= 0:
        held = node_loads(cluster, placement)[:, moved]
        scale = FINE / max(float(held.sum()), 1.0)
        leaves, budget = np.floor(held * scale).astype(np.int64), limits.bytes * scale
    reasons: dict[int, str] = {}
    pinned = here & (placement.flags & Flag.PINNED > 0)
    for node in np.unique(placement.node[pinned & nodes.may_receive[placement.node]]).tolist():
        held = np.unique(placement.owner[pinned & (placement.node == node)])
        named = ", ".join(cluster.partitions.names[p] for p in held[:LISTED].tolist())
        more = f" and {len(held) - LISTED:,} more" if len(held) > LISTED else ""
        reasons[node] = f"replicas of {named}{more} are pinned to it"
    closed = keepers(cluster)
    for node in np.flatnonzero(closed & (replicas > 0)).tolist():
        cordoned = "it accepts nothing but keeps its replicas; drain it by name"
        reasons[node] = cordoned if nodes.alive[node] else "it is down and may come back"
    free = nodes.may_receive.copy()
    free[[*reasons]] = False
    must_stay = tuple((nodes.names[n], reasons[n]) for n in sorted(reasons))
    stays = np.array(sorted(reasons), np.intp)
    members = [np.array([n], np.intp) for n in np.flatnonzero(free).tolist()]
    return Stock(cluster, members, price, replicas, leaves, budget, stays, must_stay)


def _alike(cluster: Cluster, price: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what nodes have to share to stand for each other, beside needs; a row for each."""
    nodes, topology = cluster.nodes, cluster.topology
    own = own_tiers(cluster)
    forbidden = np.zeros(len(nodes))
    at = np.unique(cluster.forbidden[:, 1])
    forbidden[at] = 1.0 + at
    texts = {term.text for rule in cluster.rules for term in rule.terms()}
    texts.update(*(rule.lead for rule in cluster.rules))
    return np.ascontiguousarray(np.column_stack([
        nodes.capacity, price, nodes.weight, nodes.lead_weight, nodes.leads, nodes.max_replicas,
        nodes.stands_for, forbidden,
        *(
            label for tier, label in zip(topology.tiers, topology.domain, strict=True)
            if tier not in own
        ),
        *(nodes_meeting([text], nodes, topology) for text in sorted(texts)),
    ]).astype(np.float64))  # fmt: skip


logger = logging.getLogger("evenkeel.size")

# how much more than is proven to be needed is asked for, attempt by attempt, until one fits
SLACKS = (0.0, 0.005, 0.02, 0.06, 0.16, 0.36, 0.64)

AGAIN = 4  # further attempts to find something cheaper than what fits

# replicas beyond which each is so small that only the room counts, not which nodes have it
MANY = 20_000

PROOFS = 12  # attempts that are proven to be in vain before more is asked for

SMALL = 2_000  # replicas x nodes up to which CP-SAT decides where the search finds no place

LARGEST = 100_000  # nodes that may join in all

LOADS = ("load", "leading", "whole replicas")  # needs of which more may be asked for than is proven

MOST_LISTED = 8  # shortages that are listed

CROWDED = 0.9  # share of its capacity above which a node is nearly full

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


class Fullest(NamedTuple):
    """The fullest node in one dimension, once everything is placed.

    Parameters
    ----------
    node : str
        Its name.
    share : float
        How full it is.
    mean : float
        How full nodes that accept replicas are on average.
    crowded : bool
        Whether it is nearly full, and ``at_most`` was to keep nothing free in the dimension.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[10.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> ek.size(c, 4.75).fullest["d0"]
    Fullest(node='n0', share=0.95, mean=0.95, crowded=True)
    """

    node: str
    share: float
    mean: float
    crowded: bool


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
        Of all of it, with ``shrink`` of the nodes that stay; ``inf`` if nothing was found.
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
    leaving : tuple of Leaving
        With ``shrink``: nodes that may go, in the order in which to drain them: what saves most per
        move first. ``cluster`` has them drained.
    must_stay : tuple of (str, str)
        With ``shrink``: nodes that cannot go whatever is placed elsewhere, and why.
    moves, moves_at_least : int
        With ``shrink``: replicas that leave nodes in ``result``, also for one where their partition
        stands, and how many are proven to for any nodes worth as much.

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
    leaving: tuple[Leaving, ...] = ()
    must_stay: tuple[tuple[str, str], ...] = ()
    moves: int = 0
    moves_at_least: int = 0

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

    @property
    def fullest(self) -> dict[str, Fullest]:
        """The fullest node at the end by dimension; empty if nothing was found."""
        if self.cluster is None:
            return {}
        cluster, takes = self.cluster, self.cluster.nodes.may_receive
        level = levelness(cluster, cluster.placement)
        shares = np.where(takes[:, None], level.table, -1.0)
        solved = cluster if self.result is None else self.result.cluster
        free = (solved.nodes.capacity == cluster.nodes.capacity).all(0)
        at, most = shares.argmax(0), shares.max(0, initial=-1.0)
        return {
            name: Fullest(
                cluster.nodes.names[int(at[d])], float(most[d]), float(level.fair[d]),
                bool(free[d] and most[d] > CROWDED),
            )
            for d, name in enumerate(cluster.dimensions)
            if takes.any() and np.isfinite(shares[:, d]).all()
        }  # fmt: skip

    def __repr__(self) -> str:
        found = f"{len(self.leaving):,} may go" if self.leaving else f"{self.count:,} nodes"
        return f"<Sizing: {self.status}, {found} for {quantity(self.price)}>"

    def __str__(self) -> str:
        lines = [f"{self.status}: {self.message}"]
        called = [f"{one.type} in {one.place}" if one.place else one.type for one in self.nodes]
        width = max(map(len, called), default=0)
        lines += [
            f"  {name:{width}}  {one.nodes:>8,}  at {quantity(one.price)} each"
            for name, one in zip(called, self.nodes, strict=True)
        ]
        if self.leaving:
            lines.append("  drain " + ", ".join(one.node for one in self.leaving))
        lines += [f"  {name} stays: {why}" for name, why in self.must_stay]
        if self.status in ("infeasible", "not found"):
            lines += [f"  {one.reason}" for one in self.shortages]
        lines += [
            f"  {name} of {one.node} is then at {one.share:.1%}; at_most=0.8 keeps a fifth free"
            for name, one in self.fullest.items() if one.crowded
        ]  # fmt: skip
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
    shrink: bool = False,
    prices: Mapping[str, float] | None = None,
    limits: Limits | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Sizing:
    """Find the cheapest nodes that hold a forecast and survive losses: more nodes, or fewer.

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
        What one can get; by default nodes like most of those that accept replicas, and like others
        where a rule requires tags or attributes that the former lack.
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
    shrink : bool, optional
        Find the nodes that may go instead, in the order in which to drain them, so that what stays
        is cheapest. A node with a pinned replica stays.
    prices : mapping of str to float, optional
        With ``shrink``: prices of nodes, by name, expression or pattern, of which the last that
        matches counts; 1 for all others.
    limits : Limits, optional
        With ``shrink``: budgets, within which as many nodes as possible are emptied.
    time_limit : float, optional
        Seconds for each solve.
    seed : int, optional
        All randomness comes from it.

    Returns
    -------
    Sizing
        What to get or to drain, its price, the price that is proven to be needed, and the cluster
        as it becomes.

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
    optimal: 4 nodes at a price of 4, and no less will do: ...
      like n0 in zone a         1  at 1 each
      like n0 in zone b         1  at 1 each
      like n0 in zone c         1  at 1 each
      like n0 in zone d         1  at 1 each
    >>> fewer = ek.size(cluster, 0.6, shrink=True)
    >>> [one.node for one in fewer.leaving], fewer.price, fewer.price_at_least, fewer.moves
    (['n3'], 3.0, 3.0, 0)
    """
    require_cluster(cluster)
    faults = FaultList()
    check_truth(faults, "shrink", shrink)
    faults.raise_if_any()
    grown = read_forecast(faults, cluster, forecast)
    terms = read_terms(
        faults, grown, survive=survive, recover=recover, at_most=at_most, after_loss=after_loss,
        goals=goals, time_limit=time_limit, seed=seed, decided=SMALL, limits=limits,
    )  # fmt: skip
    for path, given in (("prices", prices), ("limits", limits)):
        if given is not None and not shrink:
            faults.add(path, given, "is for shrink=True")
    if shrink:
        if node_types is not None:
            faults.add("node_types", node_types, "are nodes to get, where shrink lets nodes go")
        stock = read_stock(faults, grown, prices, limits)
    else:
        kinds = read_types(faults, grown, node_types)
        candidates = grown if faults else check_candidates(faults, grown, kinds)
    faults.raise_if_any()
    assert terms is not None
    began = time.perf_counter()
    if shrink:
        found = _shrunk(*_Search.of_stock(grown, stock, terms))
    else:
        found = _grown(_Search.of_types(grown, candidates, kinds, terms), kinds)
    log_event(
        logger, "sized", status=found.status, nodes=found.count, price=found.price,
        at_least=found.price_at_least, seconds=time.perf_counter() - began,
    )  # fmt: skip
    return found


@dataclass
class _Search:
    """The search for nodes: what is needed, what was too few, and the best that fits."""

    trial: Callable[[NDArray[np.int64]], Cluster]
    prices: list[float]
    terms: Terms
    rows: Rows
    shortages: list[Shortage]
    limit: NDArray[np.int64]
    most: NDArray[np.int64]  # more of one kind than the needs that were counted can use is left out
    choice: Mapping[str, Any]
    monotone: bool
    at_least: float = 0.0
    too_few: list[NDArray[np.int64]] = field(default_factory=list)
    impossible: list[NDArray[np.int64]] = field(default_factory=list)
    best: tuple[NDArray[np.int64], Fit] | None = None
    # where the last trial ended that did not fit, from which relief goes on: what fitted has no
    # room for what has to leave; None where trials differ in their nodes
    start: Placement | None = None
    why: str = ""
    cause: Cause = ""

    @classmethod
    def of_types(
        cls, grown: Cluster, candidates: Cluster, kinds: list[Kind], terms: Terms
    ) -> "_Search":
        """Count what is needed of nodes that one can get."""
        needed = (one for case in cases_of(candidates, terms) for one in needs(candidates, case))
        topology, old = candidates.topology, len(grown.nodes)
        every = np.arange(len(candidates.nodes))
        rows, shortages = rows_of(candidates, needed, every[:old], every[old:])
        useful = rows.most_useful() * 2 + 8
        limit = np.array([LARGEST if one.most is None else one.most for one in kinds], np.int64)
        domain = topology.domain_with_nodes[0]
        if not topology.tiers:
            domain = np.zeros(len(candidates.nodes), np.int32)
        there = domain[:old][grown.nodes.may_receive & (domain[:old] >= 0)]
        standing = np.bincount(there, minlength=int(domain.max(initial=0)) + 1)
        return cls(
            lambda count: with_nodes(grown, kinds, count.tolist()),
            [one.price for one in kinds], terms, rows, shortages, limit,
            np.minimum(limit, useful).astype(np.int64),
            {"even": domain[old:].astype(np.int64), "standing": standing.astype(np.int64)},
            _more_is_no_worse(grown),
        )  # fmt: skip

    @classmethod
    def of_stock(cls, grown: Cluster, stock: Stock, terms: Terms) -> tuple["_Search", Stock]:
        """Count what is needed of the nodes there are, and put them into kinds."""
        needed = (one for case in cases_of(grown, terms) for one in needs(grown, case))
        rows, shortages = rows_of(grown, needed, stock.stays, stock.like)
        stock, first = stock.merged(rows.holds)
        rows, limit = replace(rows, holds=rows.holds[:, first]), stock.limit
        search = cls(
            lambda count: grown.drain(stock.leaving(count)) if (count < limit).any() else grown,
            stock.prices, terms, rows, shortages, limit, limit.copy(),
            {"leaves": [stock.leaves[one] for one in stock.members], "budget": stock.budget},
            _more_is_no_worse(grown) and terms.limits is None, start=grown.placement,
        )  # fmt: skip
        return search, stock

    def run(self) -> bool:
        """Try the cheapest that may be enough, then what is a little more, then what is between."""
        proven = self._cheapest(0.0, [])
        self.at_least = proven.at_least
        if not np.isfinite(proven.at_least):
            return False
        reached = self._first_that_fits()
        if reached is not None:
            self._cheaper(*reached)
        return True

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
            if "leaves" in self.choice and (found.count is None or slack == SLACKS[-1]):
                return (below, slack) if self._fits(self.limit) else None
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
        asked, many = (low + high) / 2.0, self.start is not None and len(self.start.node) > MANY
        for _ in range(AGAIN):
            if self._price_of_best <= self.at_least * (1.0 + ROUNDING):
                return
            assert self.best is not None
            found = self._cheapest(asked, self.too_few, self.best[0])
            if found.count is None:
                if asked == low or (low > 0.0 and many):
                    return
                high, asked = asked, low
                continue
            if self._fits(found.count):
                high = asked
            else:
                low = asked
            asked = (low + high) / 2.0

    def _cheapest(
        self,
        slack: float,
        too_few: list[NDArray[np.int64]],
        cheaper_than: NDArray[np.int64] | None = None,
    ) -> Cheapest:
        """Return the cheapest that meets the needs, and so much more of each load."""
        more = [slack * one.needed * (one.kind in LOADS) for one in self.shortages]
        lacking = self.rows.lacking + np.array(more).reshape(-1, 1)
        return cheapest(
            replace(self.rows, lacking=lacking), self.prices, self.most, **self.choice,
            too_few=too_few, cheaper_than=cheaper_than, seed=self.terms.seed,
        )  # fmt: skip

    def _fits(self, count: NDArray[np.int64]) -> bool:
        """Try whether so many nodes are enough, and note what came of it."""
        start = self.start if (count < self.limit).any() else None
        fit = fitted(self.trial(count), self.terms, start)
        log_event(
            logger, "tried", logging.DEBUG, nodes=int(count.sum()), price=self._price(count),
            fits=not fit.cause, why=fit.why,
        )  # fmt: skip
        if not fit.cause:
            self.best = count, fit
            return True
        self.why, self.cause = fit.why, fit.cause
        self.start = self.start and fit.result.placement
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
            price * (count + 1)
            for price, count, limit in zip(
                self.prices, self.most.tolist(), self.limit.tolist(), strict=True
            )
            if count < limit
        ]
        return min(beyond, default=np.inf)

    def _price(self, count: NDArray[np.int64]) -> float:
        return math.fsum(n * price for n, price in zip(count.tolist(), self.prices, strict=True))

    @property
    def _price_of_best(self) -> float:
        return np.inf if self.best is None else self._price(self.best[0])

    @property
    def lacking(self) -> tuple[Shortage, ...]:
        """The worst of what is lacking without any node of these kinds."""
        return _worst([
            one for one, left in zip(self.shortages, self.rows.lacking[:, 0], strict=True)
            if left > ROUNDING * one.needed
        ])  # fmt: skip

    def why_no_fewer(self, count: NDArray[np.int64]) -> str:
        """Return the need that most nodes leave unmet if they go as well; empty if none does."""
        fewer = [count - (np.arange(len(count)) == j) for j in np.flatnonzero(count).tolist()]
        unmet = [self.rows.unmet_by(one) for one in fewer]
        found = np.bincount(np.concatenate([np.zeros(0, np.intp), *unmet]), minlength=1)
        if not found.any():
            return ""
        row = int(found.argmax())
        left = next(one for one, rows in zip(fewer, unmet, strict=True) if row in rows)
        need, lacking = self.shortages[row], float(self.rows.lacking[row, 0])
        holds = np.minimum(self.rows.holds[row], need.needed)
        lost = float(self.rows.spare[row]) * float(holds[left > 0].max(initial=0.0))
        held = need.needed - lacking + float(holds @ left) - lost
        return f"with one node fewer, {need._replace(held=max(held, 0.0)).reason}"

    def not_found(self, none: str, **kept: Any) -> Sizing:
        """Tell that nothing was found, or which needs all nodes together do not meet."""
        if np.isfinite(self.at_least):
            message = f"nothing was found that fits: {self.why}"
            return Sizing(
                "not found", message, (), np.inf, self.at_least, self.lacking, None, None, None,
                **kept,
            )  # fmt: skip
        met = self.rows.met_by(self.most)
        held = np.where(self.most > 0, self.rows.holds, 0.0) @ self.most.astype(np.float64)
        worst = _worst([
            one._replace(held=one.needed - lacking + more)
            for one, lacking, more, ok in zip(
                self.shortages, self.rows.lacking[:, 0].tolist(), held.tolist(), met, strict=True
            ) if not ok
        ])  # fmt: skip
        why = worst[0].reason if worst else self.why
        message = f"{none}: {why}" if why else none
        return Sizing("infeasible", message, (), np.inf, np.inf, worst, None, None, None, **kept)

    def found(self, message: Callable[[str, str], str], base: float = 0.0, **kept: Any) -> Sizing:
        """Tell what was found, beside nodes of a price that are there in any case."""
        assert self.best is not None
        count, fit = self.best
        price, at_least = self._price_of_best + base, self.at_least + base
        optimal = price <= at_least * (1.0 + ROUNDING)
        if optimal:
            at_least = price
        saying = (
            f"and {'no less will do' if optimal else f'at least {quantity(at_least)} is needed'}"
        )
        if why := self.why_no_fewer(count):
            saying += f": {why}"
        return Sizing(
            "optimal" if optimal else "feasible", message(quantity(price), saying),
            price=price, price_at_least=at_least, shortages=self.lacking,
            cluster=self.trial(count).with_placement(fit.result.placement), result=fit.result,
            losses=fit.losses, **kept,
        )  # fmt: skip


def _more_is_no_worse(cluster: Cluster) -> bool:
    """Whether what does not fit on some nodes does not fit on fewer of them either."""
    keeps = keepers(cluster)
    return not keeps.any() and not any(rule.skew for rule in cluster.rules)


def _grown(search: _Search, kinds: list[Kind]) -> Sizing:
    """Return which nodes to get."""
    if not search.run() or search.best is None:
        return search.not_found("no number of these nodes is enough")
    count, _ = search.best
    total = int(count.sum())

    def message(price: str, saying: str) -> str:
        if total == 0:
            return "it fits as it is, no node is needed"
        return f"{counted(total, 'node')} at a price of {price}, {saying}"

    nodes = tuple(
        Purchase(one.type, one.place, n, one.price)
        for one, n in zip(kinds, count.tolist(), strict=True) if n
    )  # fmt: skip
    return search.found(message, nodes=nodes)


def _shrunk(search: _Search, stock: Stock) -> Sizing:
    """Return which nodes may go."""
    if not search.run() or search.best is None:
        none = "it does not fit as it is, so that no node may go"
        return search.not_found(none, must_stay=stock.must_stay)
    count, fit = search.best
    leaving = stock.order(count)

    def message(price: str, saying: str) -> str:
        goes = f"{counted(len(leaving), 'node')} may go" if leaving else "no node may go"
        return (
            f"{goes}, {len(stock.stays) + int(count.sum()):,} stay at a price of {price}, {saying}"
        )

    return search.found(
        message, stock.base, nodes=(), leaving=leaving, must_stay=stock.must_stay,
        moves=relocations(fit.result.cluster.placement, fit.result.placement),
        moves_at_least=stock.moves_at_least(leaving),
    )  # fmt: skip


def _worst(shortages: list[Shortage]) -> tuple[Shortage, ...]:
    """Return the worst shortage of each measure and loss, the worst first, as many as one reads."""
    order = sorted(shortages, key=lambda one: (one.held + ROUNDING) / (one.needed + ROUNDING))
    first: dict[tuple[str, str], Shortage] = {}
    for one in order:
        first.setdefault((one.loss, one.full), one)
    return tuple(first.values())[:MOST_LISTED]
