"""Cost tables: piecewise costs of nodes by load, and of groups by replicas in a domain.

A table gives the cost at every value; the search reads it like the costs it was built
with. What a node pays must be convex in its load, since only then a sum of *hinges* (so much for
each unit beyond a point) is equivalent. What a group pays may have any shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import MOST_IN_ALL, as_array, items_of, read_only, shape_of
from evenkeel.model.reading.keywords import known_fields, meant_name
from evenkeel.model.reading.quantities import check_number, check_text

RISING, FALLING = 1.0, -1.0  # sign of a hinge: load above a point costs, or load missing below it


class Hinge(NamedTuple):
    """One unit of load beyond ``at`` costs ``weight``.

    Attributes
    ----------
    sign : float
        RISING or FALLING.
    weight : float
        Cost of one unit, above 0.
    at : (N,) float64
        Load from which on a node pays; not finite where it never does.

    Examples
    --------
    >>> import numpy as np
    >>> hinge = Hinge(1.0, 10.0, at=np.array([2.0, 3.0]))
    >>> (hinge.weight * np.maximum(0.0, np.array([5.0, 1.0]) - hinge.at)).tolist()
    [30.0, 0.0]
    """

    sign: float
    weight: float
    at: NDArray[np.float64]


@known_fields
@dataclass(frozen=True, eq=False)
class NodeTable:
    """What each node pays for its load in one dimension: convex, in straight pieces.

    The cheapest load costs nothing.

    Parameters
    ----------
    dimension : str
        Its name.
    at : array_like of float, shape (k,) or (N, k)
        Loads at which the price of a unit changes, ascending, in the dimension's unit; one row for
        all nodes or one for each. A row of ``nan`` is a node that pays nothing.
    slope : array_like of float, shape (k,)
        Cost of one more unit from each of these loads on, ascending; the last one is not negative.
    below : float
        Cost of one more unit below the first of these loads; at most ``slope[0]``. Negative where
        too little load costs.

    Raises
    ------
    InvalidInput
        If shapes do not fit, loads or prices do not ascend, or a number is missing.

    Examples
    --------
    Load above 60 costs 1 a unit, above 80 it costs 5; every unit missing to 20 costs 2:

    >>> table = NodeTable("cpu", at=[20.0, 60.0, 80.0], slope=[0.0, 1.0, 5.0], below=-2.0)
    >>> table.cost(np.array([10.0, 40.0, 70.0, 90.0])).tolist()
    [20.0, 0.0, 10.0, 70.0]
    """

    dimension: str
    at: ArrayLike
    slope: ArrayLike
    below: float = 0.0
    points: NDArray[np.float64] = field(init=False, repr=False)
    prices: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        faults = FaultList()
        check_text(faults, "table.dimension", self.dimension)
        check_number(faults, "table.below", self.below, -MOST_IN_ALL, MOST_IN_ALL)
        points = _numbers(faults, "table.at", self.at)
        prices = _numbers(faults, "table.slope", self.slope)
        faults.raise_if_any()
        if prices.ndim != 1 or len(prices) == 0:
            faults.add("table.slope", prices.shape, "must be one row of at least one price")
        elif points.ndim not in (1, 2) or points.shape[-1] != len(prices):
            faults.add(
                "table.at", points.shape, f"must end in as many loads as prices: {len(prices)}"
            )
        else:
            self._check_values(faults, points, prices)
        faults.raise_if_any()
        object.__setattr__(self, "points", read_only(np.array(points)))
        object.__setattr__(self, "prices", read_only(np.array(prices)))

    def _check_values(
        self, faults: FaultList, points: NDArray[np.float64], prices: NDArray[np.float64]
    ) -> None:
        rows = points.reshape(-1, len(prices))
        partial = np.isnan(rows).any(axis=1) & ~np.isnan(rows).all(axis=1)
        falls = (np.diff(rows, axis=1) < 0.0).any(axis=1) | np.isinf(rows).any(axis=1)
        for row in np.flatnonzero(partial | falls)[:10]:
            faults.add(f"table.at[{row}]", rows[row].tolist(), "must be finite loads that ascend")
        all_prices = np.concatenate([[self.below], prices])
        if not np.isfinite(all_prices).all():
            faults.add("table.slope", all_prices.tolist(), "must be numbers")
        elif (np.diff(all_prices) < 0.0).any():
            faults.add("table.slope", all_prices.tolist(), "must ascend: the cost must be convex")
        elif prices[-1] < 0.0:
            faults.add("table.slope", prices.tolist(), "must not be negative at the end")

    def hinges(self, nodes: int) -> list[Hinge]:
        """Take the table apart.

        Parameters
        ----------
        nodes : int
            N.

        Returns
        -------
        list of Hinge
            Their costs add up to the table's.
        """
        points = np.broadcast_to(self.points, (nodes, len(self.prices)))
        found = []
        before = self.below
        if before > 0.0:  # loads are never negative, so this is a hinge at 0
            at = np.where(np.isnan(points[:, 0]), np.inf, 0.0)
            found.append(Hinge(RISING, before, at))
        for i, price in enumerate(self.prices):
            falling = min(price, 0.0) - min(before, 0.0)
            rising = max(price, 0.0) - max(before, 0.0)
            never = np.isnan(points[:, i])
            if falling > 0.0:
                found.append(Hinge(FALLING, falling, np.where(never, -np.inf, points[:, i])))
            if rising > 0.0:
                found.append(Hinge(RISING, rising, np.where(never, np.inf, points[:, i])))
            before = float(price)
        return found

    def cost(self, load: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost of each node.

        Parameters
        ----------
        load : ndarray of float64, shape (N,)
            Load of each node in the dimension.

        Returns
        -------
        ndarray of float64, shape (N,)
            Cost.
        """
        cost = np.zeros(len(load))
        for one in self.hinges(len(load)):
            cost += one.weight * np.maximum(0.0, one.sign * (load - one.at))
        return cost


@known_fields
@dataclass(frozen=True, eq=False)
class GroupTable:
    """What each group pays in each domain of a tier, by how many of its replicas are there.

    Parameters
    ----------
    tier : str
        A tier of the topology, or ``"node"``.
    cost : array_like of float, shape (m,) or (domains, m)
        Cost of 0, 1, 2 ... replicas of one group in one domain, m at least 2; beyond the last entry
        each replica costs as much as the last one did. One row for all domains of the tier or one
        for each, in the order of the cluster's domains. Any shape of curve.
    groups : sequence of str, optional
        Names of the groups that pay; all of them by default.

    Raises
    ------
    InvalidInput
        If ``cost`` has another shape, or holds a value that is not a number.

    Examples
    --------
    The third replica of a group in a zone costs 5, as does each one after it:

    >>> table = GroupTable("zone", cost=[0.0, 0.0, 0.0, 5.0])
    >>> table.of(np.array([0, 2, 3, 5]), np.zeros(4, int)).tolist()
    [0.0, 0.0, 5.0, 15.0]
    """

    tier: str
    cost: ArrayLike
    groups: Sequence[str] | None = None
    rows: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        faults = FaultList()
        check_text(faults, "table.tier", self.tier)
        rows = _numbers(faults, "table.cost", self.cost)
        groups = () if self.groups is None else items_of(faults, "table.groups", self.groups)
        for i, name in enumerate(groups):
            check_text(faults, f"table.groups[{i}]", name)
        faults.raise_if_any()
        if rows.ndim not in (1, 2) or rows.shape[-1] < 2 or rows.shape[0] == 0:
            faults.add("table.cost", rows.shape, "must be rows of at least two costs")
        elif not np.isfinite(rows).all():
            faults.add("table.cost", rows.tolist(), "must be numbers")
        faults.raise_if_any()
        object.__setattr__(self, "rows", read_only(np.atleast_2d(rows).copy()))

    def of(self, count: NDArray[np.integer], domain: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the cost of so many replicas of a group in a domain.

        Parameters
        ----------
        count : ndarray of int, any shape
            Replicas.
        domain : ndarray of int, same shape
            Domain of the tier, numbered from 0.

        Returns
        -------
        ndarray of float64, same shape
            Costs.
        """
        row = domain if len(self.rows) > 1 else np.zeros_like(domain)
        last = self.rows.shape[1] - 1
        known = np.minimum(count, last)
        cost: NDArray[np.float64] = self.rows[row, known]
        each = self.rows[row, last] - self.rows[row, last - 1]
        cost += each * (count - known)
        return cost

    def members(self, cluster: Cluster) -> NDArray[np.int64]:
        """Return the groups that pay.

        Parameters
        ----------
        cluster : Cluster
            It knows all of ``groups``.

        Returns
        -------
        ndarray of int64, shape (n,)
            Indices, ascending.
        """
        names = cluster.partitions.group_names
        if self.groups is None:
            return np.arange(len(names))
        place = {name: i for i, name in enumerate(names)}
        return np.array(sorted({place[name] for name in self.groups}), np.int64)


def _numbers(faults: FaultList, path: str, given: ArrayLike) -> NDArray[np.float64]:
    """Take in numbers of any shape."""
    shape: tuple[None, ...] = (None,) * len(shape_of(given))
    return as_array(faults, path, given, np.float64, shape)


def check_tables(
    faults: FaultList, cluster: Cluster, tables: Sequence[NodeTable | GroupTable]
) -> None:
    """Note what the tables of a cost name that the cluster does not have."""
    for i, table in enumerate(tables):
        path = f"goals.tables[{i}]"
        if isinstance(table, NodeTable):
            if table.dimension not in cluster.dimensions:
                known = list(cluster.dimensions)
                faults.add(
                    f"{path}.dimension", table.dimension, f"unknown dimension; known: {known}"
                )
            if table.points.ndim == 2 and len(table.points) != len(cluster.nodes):
                wanted = f"must have a row for each of {len(cluster.nodes)} nodes"
                faults.add(f"{path}.at", table.points.shape, wanted)
        else:
            _check_groups(faults, cluster, table, path)


def _check_groups(faults: FaultList, cluster: Cluster, table: GroupTable, path: str) -> None:
    known = [*cluster.topology.tiers, "node"]
    if table.tier not in known:
        faults.add(f"{path}.tier", table.tier, f"unknown tier; known: {known}")
    else:
        domains = int(cluster.topology.domain_count[cluster.topology.tier_index(table.tier)])
        if len(table.rows) not in (1, domains):
            wanted = f"must have one row, or one for each of {domains} domains"
            faults.add(f"{path}.cost", table.rows.shape, wanted)
    names = set(cluster.partitions.group_names)
    for name in table.groups or ():
        if name not in names:
            faults.add(f"{path}.groups", name, f"unknown group{meant_name(faults, name, names)}")
