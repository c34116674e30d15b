"""Find the cheapest nodes that meet necessary loads, by an integer covering program.

CP-SAT solves the program. Each row is a need: the nodes together must hold no less than an amount,
also where any few of them may be lost. A shortage is a need that nodes do not meet, in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from itertools import accumulate
from math import gcd, lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import Kind, Need
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.topology import NODE_TIER

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

EFFORT = 2.0  # deterministic seconds for each question
# rows that are asked for at first, those with the least to spare; others once they are not met
FIRST = 24

SCALE = 1 << 30  # what a row's largest entry is scaled to, so that its others can be whole numbers
# what whole prices of all nodes may sum to, so that the solver's sums are exact
MOST_WHOLE = 1 << 52

# significant digits of prices, of which the first that stay below that are kept
DIGITS = (17, 9, 6, 4, 2)


@dataclass(frozen=True, eq=False)
class Rows:
    """Needs as rows. M rows, J kinds of nodes."""

    # (M, J) what a node of each kind holds; infinite where it holds anything
    holds: NDArray[np.float64]
    # (M, k + 1) what is lacking without new nodes, if 0 to k of those lost are new ones; a row that
    # bears no such losses says the same in each column
    lacking: NDArray[np.float64]
    spare: NDArray[np.int64]  # (M,) nodes that may be lost, k at most

    def met_by(self, count: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows so many nodes (J,) meet, losses of new nodes aside; (M,)."""
        used = count > 0
        held = np.where(used, self.holds, 0.0) @ np.where(used, count, 0).astype(np.float64)
        met: NDArray[np.bool_] = held >= self.lacking[:, 0] * (1.0 - ROUNDING)
        return met

    def unmet_by(self, count: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the rows that so many nodes (J,) do not meet, whatever is lost."""
        unmet, many = np.zeros(len(self.spare), bool), np.maximum(count, 0).astype(np.float64)
        for lost in range(self.lacking.shape[1]):
            need = np.maximum(self.lacking[:, lost], 0.0)
            each = np.minimum(self.holds, need[:, None])  # a row asks for no more than its amount
            largest = np.where(count >= lost, each, 0.0).max(1, initial=0.0)
            left = each @ many - lost * largest
            unmet |= (lost <= self.spare) & (left < need * (1.0 - 2.0 * ROUNDING)) & (need > 0.0)
        return np.flatnonzero(unmet)

    def __getitem__(self, which: NDArray[np.intp]) -> Rows:
        return Rows(self.holds[which], self.lacking[which], self.spare[which])

    def most_useful(self) -> NDArray[np.int64]:
        """Return how many nodes of each kind are of use at most: so many meet all rows alone."""
        open_rows = self.lacking.max(1, initial=0.0) > 0.0
        lacking, holds = self.lacking[open_rows].max(1, initial=0.0), self.holds[open_rows]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alone = np.where(holds > 0.0, np.ceil(lacking[:, None] / holds), 0.0)
        spare = int(self.spare.max(initial=0))
        most: NDArray[np.float64] = np.minimum(alone.max(0, initial=0.0), 2.0**31) + spare
        return most.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Cheapest:
    """What is known of the cheapest numbers of nodes."""

    count: NDArray[np.int64] | None  # (J,) nodes of each kind; None if none were found
    at_least: float  # proven: nothing that meets all rows is cheaper; ``inf`` if nothing meets them


def cheapest(
    rows: Rows,
    price: Sequence[float],
    most: NDArray[np.int64],
    *,
    even: NDArray[np.int64] | None = None,
    standing: NDArray[np.int64] | None = None,
    leaves: Sequence[NDArray[np.int64]] = (),
    budget: float = np.inf,
    too_few: Sequence[NDArray[np.int64]] = (),
    cheaper_than: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Cheapest:
    """Return the cheapest numbers of nodes, at most ``most (J,)`` each; of these an even choice."""
    # ``even (J,)`` is the domain of each kind, of which ``standing`` nodes are there already. Left
    # out is what is no more than one of ``too_few`` in every kind, or not ``cheaper_than`` other
    # numbers. With ``leaves``, what leaves with each node of a kind, the choice is that in which
    # least leaves, and no more than a ``budget`` ever does.
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_int_var(0, int(m), "") if m != 1 else model.new_bool_var("") for m in most]
    with np.errstate(divide="ignore", invalid="ignore"):
        tight = rows.lacking.max(1, initial=0.0) / (rows.holds @ most)
    asked = np.argsort(-np.nan_to_num(tight, nan=np.inf), kind="stable")[:FIRST]
    _meet(model, x, rows[asked], most)
    for few in too_few:
        larger = [model.new_bool_var("") for _ in x]
        for one, least, var in zip(larger, few.tolist(), x, strict=True):
            model.add(var >= least + 1).only_enforce_if(one)
        model.add_bool_or(larger)
    prices = whole_prices(price, most.tolist())
    cost = sum(p * var for p, var in zip(prices.each, x, strict=True))
    left = _leaving(model, x, leaves) if leaves else None
    if left is not None and np.isfinite(budget):
        model.add(left <= int(budget))
    if cheaper_than is not None:
        other = sum(p * n for p, n in zip(prices.each, cheaper_than.tolist(), strict=True))
        model.add(cost <= other - 1)
    model.minimize(cost)
    solver, status, count = _met(model, x, rows, most, seed)
    if status == cp_model.INFEASIBLE:
        return Cheapest(None, np.inf)
    at_least = prices.least(max(0, int(np.ceil(solver.best_objective_bound - 1e-6))))
    if count is None:
        return Cheapest(None, at_least)
    model.add(cost <= round(solver.objective_value))
    if left is None:
        if even is None or standing is None:  # no node may go, or none weighs anything
            return Cheapest(count, at_least)
        left = model.new_int_var(0, int(most.sum() + standing.max(initial=0)), "")
        for domain, there in enumerate(standing.tolist()):
            here = sum(var for var, at in zip(x, even, strict=True) if at == domain)
            model.add(left >= there + here)
    model.clear_hints()
    for var, value in zip(x, count.tolist(), strict=True):
        model.add_hint(var, value)
    model.minimize(left)
    _, _, chosen = _met(model, x, rows, most, seed)
    return Cheapest(count if chosen is None else chosen, at_least)


def _leaving(model: CpModel, x: Sequence[Any], leaves: Sequence[NDArray[np.int64]]) -> Any:
    """Return what leaves with the nodes of each kind that do not stay, the lightest first."""
    total: Any = 0
    for var, each in zip(x, leaves, strict=True):
        before, gone = 0, model.new_int_var(0, int(each.sum()), "")
        for first, weight in enumerate(sorted(each.tolist())):  # it is convex: no line is above it
            model.add(gone >= before + weight * (len(each) - var - first))
            before += weight
        total += gone
    return total


class WholePrices(NamedTuple):
    """Prices as whole numbers of which sums compare as those of the prices do."""

    # ``levels`` are, from the dearest down, the whole number and the price of a step; all that is
    # cheaper than a step adds up to less, so that only the order of the two counts.

    each: list[int]
    levels: list[tuple[int, Fraction]]

    def least(self, total: int) -> float:
        """Return the least price of nodes whose whole prices sum to this, or to more."""
        price = Fraction(0)
        for step, worth in self.levels:
            steps, total = divmod(total, step)
            price += steps * worth
        return float(price)


def whole_prices(price: Sequence[float], most: Sequence[int]) -> WholePrices:
    """Return prices of at most so many nodes as integers, rounded down if they are too long."""
    found = WholePrices([0] * len(price), [])
    for digits in DIGITS:
        rounded = Context(prec=digits, rounding=ROUND_DOWN)
        exact = [Fraction(rounded.create_decimal(str(float(one)))) for one in price]
        found = _without_gaps(exact, most)
        if sum(p * n for p, n in zip(found.each, most, strict=True)) < MOST_WHOLE:
            return found
    scale = max(price) / (MOST_WHOLE // (sum(most) + 1))
    return WholePrices([int(one / scale) for one in price], [(1, Fraction(scale))])


def _without_gaps(price: Sequence[Fraction], most: Sequence[int]) -> WholePrices:
    """Return prices in whole steps; where all that is cheaper is less than a step, in its order."""
    unit = lcm(*(one.denominator for one in price))
    exact = [int(one * unit) for one in price]
    order = sorted((j for j, one in enumerate(exact) if one), key=exact.__getitem__)
    steps = [*accumulate((exact[j] for j in reversed(order)), gcd)][::-1]
    each, levels = [0] * len(price), list[tuple[int, Fraction]]()
    below = whole_below = step = whole = 0
    for j, common in zip(order, steps, strict=True):
        if common > below:
            step, whole = common, whole_below + 1
            levels.insert(0, (whole, Fraction(step, unit)))
        each[j] = exact[j] // step * whole
        below += exact[j] * most[j]
        whole_below += each[j] * most[j]
    return WholePrices(each, levels)


def _meet(model: CpModel, x: Sequence[Any], rows: Rows, most: NDArray[np.int64]) -> None:
    """Add the rows, in whole numbers that ask for no more than they do: amounts rounded down."""
    at_least: dict[tuple[int, int], Any] = {}

    def reached(j: int, count: int) -> Any:
        """Return a flag that holds if there are so many nodes of a kind."""
        if most[j] == count == 1:
            return x[j]
        if (j, count) not in at_least:
            flag = at_least[j, count] = model.new_bool_var("")
            model.add(x[j] >= count).only_enforce_if(flag)
            model.add(x[j] <= count - 1).only_enforce_if(~flag)
        return at_least[j, count]

    for holds, lacking, spare in zip(rows.holds, rows.lacking, rows.spare.tolist(), strict=True):
        for lost in range(spare + 1):
            need = float(lacking[lost]) * (1.0 - ROUNDING)
            if need <= 0.0:
                continue
            each = np.minimum(holds, need)  # a row asks for no more than its amount
            scale = SCALE / need
            amounts = [int(np.ceil(one * scale)) for one in each]
            total = sum(a * var for a, var in zip(amounts, x, strict=True) if a)
            if lost == 0:
                if not any(a and m for a, m in zip(amounts, most, strict=True)):
                    total = model.new_constant(0)
                model.add(total >= int(SCALE))
                continue
            worst = model.new_int_var(min(amounts), max(amounts), "")  # of those that may be lost
            model.add(total - lost * worst >= int(SCALE))
            for j, a in enumerate(amounts):
                if a > min(amounts) and most[j] >= lost:
                    model.add(worst >= a).only_enforce_if(reached(j, lost))


def _met(
    model: CpModel, x: Sequence[Any], rows: Rows, most: NDArray[np.int64], seed: int
) -> tuple[Any, Any, NDArray[np.int64] | None]:
    """Solve, adding rows that are not met until all are; return the counts, None without any."""
    from ortools.sat.python import cp_model

    while True:
        solver, status = _solved(model, seed)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return solver, status, None
        count = np.array([solver.value(var) for var in x], np.int64)
        unmet = rows.unmet_by(count)
        if not len(unmet):
            return solver, status, count
        _meet(model, x, rows[unmet[:FIRST]], most)


def _solved(model: CpModel, seed: int) -> tuple[Any, Any]:
    """Run CP-SAT as long as it may take."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed & 0x7FFFFFFF
    solver.parameters.max_deterministic_time = EFFORT
    solver.parameters.catch_sigint_signal = False
    return solver, solver.solve(model)


# share by which a need may be met and is kept, since more may be asked for than is needed
FURTHEST = 0.65


IN_DOMAINS = ("domains", "group")  # kinds of needs of which nodes have the room of their domain


class Shortage(NamedTuple):
    """What nodes must hold for everything to have its place, and what they hold.

    Parameters
    ----------
    loss : str
        What is lost; empty for nothing.
    kind : str
        ``"load"`` of a dimension, ``"leading"`` for what leaders load alone, ``"whole replicas"``
        of at least some size, ``"replicas of a node"``, the replicas of one partition in as many
        ``"nodes"`` or ``"domains"``, or those of a ``"group"`` that is bound as a whole.
    measure : str
        The dimension, or the tier of the domains; empty for nodes and replicas.
    where : str
        The nodes that must hold it, empty for all; or the group.
    needed, held : float
        What they must hold, and what they hold.

    Examples
    --------
    >>> short = Shortage("", "load", "disk", "zone a", needed=12.0, held=10.0)
    >>> short.full, short.reason
    ('disk', 'disk in zone a has room for 10 of the 12 needed')
    >>> Shortage("", "load", "disk", "zone a", needed=12.0, held=0.0).reason
    'disk in zone a has no room: it lacks all 12 needed'
    """

    loss: str
    kind: Kind
    measure: str
    where: str
    needed: float
    held: float

    @property
    def full(self) -> str:
        """What it is that is full, in a word or two."""
        if self.kind == "domains":
            return f"domains of {self.measure}"
        if self.kind == "group":
            return f"limit on each {self.measure}"
        return self.measure or ("nodes" if self.kind == "nodes" else "replicas")

    @property
    def reason(self) -> str:
        """All of it in a sentence."""
        when = f"after the {self.loss}, " if self.loss else ""
        where = f" in {self.where}" if self.where else ""
        needed, held = quantity(self.needed), quantity(self.held)
        if self.kind == "group":
            return (
                f"{when}{needed} replicas of {self.where} need places, of which its limit on each "
                f"{self.measure} leaves {held}"
            )
        if self.kind == "domains":
            return (
                f"{when}{needed} replicas of a partition need places in different domains of "
                f"{self.measure}, which have {held}"
            )
        if self.kind == "nodes":
            there = f"{where}, which has" if where else ", of which there are"
            return f"{when}{needed} replicas of a partition need places{there} {held}"
        if self.kind == "replicas of a node":
            return f"{when}{needed} replicas need places{where or ' on nodes'}, which have {held}"
        large = {"whole replicas": " large replicas", "leading": " of leaders"}.get(self.kind, "")
        some = f"room for {held} of the" if self.held else "no room: it lacks all"
        sentence = f"{when}{self.measure}{where} has {some} {needed}{large} needed"
        lacking = self.needed - self.held
        if lacking < -ROUNDING * self.needed:  # whole replicas: fewer fit if they grow
            where = f"{self.measure}{where} has room for {held}{large}"
            return f"{when}{where}, and for fewer than the {needed} needed if loads are any larger"
        # what is short by less than the digits that are written must not read as if it were not
        if held != needed:
            return sentence
        if lacking > ROUNDING * self.needed:
            return f"{sentence}: {quantity(lacking)} too little"
        return f"{when}{self.measure}{where} is full: all its room, {held}{large}, is needed"


def rows_of(
    cluster: Cluster, needs: Iterable[Need], old: NDArray[np.intp], kinds: NDArray[np.intp]
) -> tuple[Rows, list[Shortage]]:
    """Return needs as rows, each with its words: ``old`` nodes stay, ``kinds`` stand for many."""
    needs = list(needs)
    spare = max((one.spare for one in needs), default=0)
    holds, lacking, spares, found = [], [], [], []
    seen: set[bytes] = set()
    for need in needs:
        held, each = held_by(cluster, need, old, kinds)
        smallest = np.sort(held)
        left = [
            need.amount - float(smallest[: max(len(held) - max(need.spare - lost, 0), 0)].sum())
            for lost in range(spare + 1)
        ]
        if max(left) <= -FURTHEST * need.amount:
            continue
        row = np.array([*each, *left, need.spare])
        if row.tobytes() in seen:
            continue
        seen.add(row.tobytes())
        holds.append(each)
        lacking.append(left)
        spares.append(need.spare)
        found.append(shortage_of(cluster, need, need.amount - left[0]))
    shape = len(holds), len(kinds)
    return Rows(
        np.array(holds, np.float64).reshape(shape),
        np.array(lacking, np.float64).reshape(len(holds), spare + 1),
        np.array(spares, np.int64),
    ), found


def held_by(
    cluster: Cluster, need: Need, old: NDArray[np.intp], kinds: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each ``old`` node holds, and a node of each kind; a domain counts once."""
    there, each = need.holds[old], need.holds[kinds]
    if need.kind not in IN_DOMAINS:
        return there, each
    domain = cluster.topology.domain_with_nodes[need.dimension]
    held = np.flatnonzero(there > 0.0)
    _, first = np.unique(domain[old[held]], return_index=True)
    once = np.zeros(len(old))
    once[held[first]] = there[held[first]]
    taken = np.isin(domain[kinds], domain[old[held]])
    return once, np.where(taken, 0.0, each)


def shortage_of(cluster: Cluster, need: Need, held: float) -> Shortage:
    """Return what is needed and held as one tells it."""
    tiers = (*cluster.topology.tiers, NODE_TIER)
    if need.kind in IN_DOMAINS:
        measure = tiers[need.dimension]
    else:
        measure = cluster.dimensions[need.dimension] if need.dimension >= 0 else ""
    return Shortage(need.case.name, need.kind, measure, need.where, need.amount, held)
