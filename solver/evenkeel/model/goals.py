"""Goals, which are tolerances of balance, and costs, which are terms of a weighted sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import GroupTable, NodeTable, check_tables
from evenkeel.model.errors import FaultList
from evenkeel.model.limits import NO_BYTES
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import MOST_IN_ALL, entries_of, items_of
from evenkeel.model.reading.keywords import known_arguments, known_fields
from evenkeel.model.reading.quantities import (
    check_number,
    check_text,
    check_truth,
    read_count,
    read_tolerance,
    read_tolerances,
    read_worth,
)
from evenkeel.model.reading.selection import find_partitions, read_groups

# a share such as 0.05, the same as a text, ``"5%"``, or None where nothing is asked
Tolerance = float | str | None


@dataclass(frozen=True, init=False)
class Goals:
    """Tolerances, met with the fewest and smallest moves.

    A dimension is level when no node stands above (1 + tolerance) x the mean, or what rules force
    where that is more. Where all replicas weigh the same that is rounded down to whole ones, never
    below the least that can be had.

    Parameters
    ----------
    level : float, str, or mapping of str to (float, str or None), optional
        Tolerance for every dimension, or by dimension name; None: do not level that dimension.
        Dimensions that a mapping leaves out are not levelled. A share, 0.05, or a text, ``"5%"``;
        above 1 a text only.
    leaders : float or str, optional
        Tolerance for the leaders of a node, in whole ones; None: do not level them. What a node
        cannot lead, as too few replicas are within its ``level``, is shared by the others. What
        leading costs is levelled by a dimension that only leaders load.
    floor : float, str, or mapping of str to (float, str or None), optional
        Tolerance below, as ``level`` is above: every accepting node holds at least (1 - floor) x
        mean utilisation, so that new nodes fill up. 0 to 1; None: no node is too empty.
    soft_yield : bool, optional
        Whether soft rules yield, the lightest first, where tolerances would else be missed. They
        yield to placing and to hard rules in any case.
    act_above : float, str, or mapping of str to (float, str or None), optional
        Nothing moves for the goals while every node is within this wider tolerance; once one is
        beyond, the goals are met. It widens ``level``, or that of the dimensions named; ``leaders``
        and ``floor``, too, where it is one for all. None: act as soon as a goal is missed.
    worth : float, str, or sequence of them, optional
        Least fall of the imbalance that is worth moving for: a share in all, 0.02 or ``"2%"``; per
        move, ``"0.01%/move"``; per amount of data moved, ``"1%/TB"``. The dimension (or leaders)
        whose imbalance falls most counts. With less than this, nothing moves for the goals.
    groups : float, str, or mapping of str to (float, str or None), optional
        Tolerance within each group, or within those that a mapping names, by name or pattern, the
        last that matches: no node holds more than (1 + tolerance) x the share of a node
        in the replicas of a group, or what rules force where that is more; in whole replicas. It is
        a soft rule: it yields to placing and to hard rules, and with ``soft_yield`` to ``level``.
    move_cost : mapping of str to float, optional
        Moves that one move of some partitions counts for, by name, pattern or group, 1 or more; 1
        for all others. These move last, without being pinned: what they cost is compared with
        answers in which they stay, as far as that is lawful.
    group_leaders : float, str, or mapping of str to (float, str or None), optional
        The same for the leaders of a group: no node leads more than (1 + tolerance) x its share by
        lead weight, in whole leaders. Met by passing leads among replicas in sync; replicas move
        only where that does not suffice.
    min_leaders : mapping of str to int, optional
        Least leaders that every node which accepts replicas and may lead has of the partitions of
        some groups, by name or pattern; where a group has too few partitions, as many as each can
        have.
    disks : float or str, optional
        Tolerance inside each node that has ``Disks``: no disk holds more than (1 + tolerance) x its
        share of the node, or what whole replicas force where that is more. Its share is that of its
        capacity. None: replicas change their disk only where it failed, is being emptied or too
        full, and what arrives is placed evenly.
    disk_move_cost : float, optional
        Price of a move between disks of a node, as a share of that of a move between nodes, 0 to 1.

    Raises
    ------
    InvalidInput
        If a tolerance is negative, not a number, or above 1 without a per cent sign, or a worth
        has none of these forms.

    Examples
    --------
    >>> Goals(level="4%").tolerance("cpu")
    0.04
    >>> Goals(level={"cpu": 0.1}).tolerance("disk") is None
    True
    >>> Goals(level=0.1, floor={"disk": 0.2}).floor_tolerance("disk")
    0.2

    Act once a node is more than 10 % above the mean, and only for 1 % less imbalance a move.

    >>> Goals(level="4%", act_above="10%", worth="1%/move").worth
    {'move': 0.01}

    Leaders by what they cost, in a dimension of its own.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[[0.0]] * 4, leader_load=[[1.0], [1.0], [2.0], [4.0]],
    ...     dimensions=["leading"], placement=[[0, 1]] * 4)
    >>> ek.solve(c, goals=Goals(level={"leading": 0.05})).levelness.loads.tolist()
    [[4.0], [4.0]]
    """

    level: float | Mapping[str, float | None] | None = field(hash=False)
    leaders: float | None
    floor: float | Mapping[str, float | None] | None = field(hash=False)
    soft_yield: bool
    act_above: float | Mapping[str, float | None] | None = field(hash=False)
    worth: Mapping[str, float] = field(hash=False)
    groups: float | Mapping[str, float | None] | None = field(hash=False)
    move_cost: Mapping[str, float] = field(hash=False)
    group_leaders: float | Mapping[str, float | None] | None = field(hash=False)
    min_leaders: Mapping[str, int] = field(hash=False)
    disks: float | None
    disk_move_cost: float

    @known_arguments
    def __init__(
        self,
        level: Tolerance | Mapping[str, Tolerance] = 0.05,
        leaders: Tolerance = None,
        floor: Tolerance | Mapping[str, Tolerance] = None,
        soft_yield: bool = False,
        act_above: Tolerance | Mapping[str, Tolerance] = None,
        worth: float | str | Sequence[float | str] | Mapping[str, float] | None = None,
        groups: Tolerance | Mapping[str, Tolerance] = None,
        move_cost: Mapping[str, float] | None = None,
        group_leaders: Tolerance | Mapping[str, Tolerance] = None,
        min_leaders: Mapping[str, int] | None = None,
        disks: Tolerance = None,
        disk_move_cost: float = 0.01,
    ) -> None:
        faults = FaultList()
        object.__setattr__(self, "level", read_tolerances(faults, "goals.level", level))
        object.__setattr__(self, "leaders", read_tolerance(faults, "goals.leaders", leaders))
        object.__setattr__(self, "floor", read_tolerances(faults, "goals.floor", floor, 1.0))
        object.__setattr__(self, "soft_yield", soft_yield)
        wider = read_tolerances(faults, "goals.act_above", act_above)
        object.__setattr__(self, "act_above", wider)
        object.__setattr__(self, "worth", read_worth(faults, "goals.worth", worth))
        for name, given in (("groups", groups), ("group_leaders", group_leaders)):
            object.__setattr__(self, name, read_tolerances(faults, f"goals.{name}", given))
        asked = entries_of(faults, "goals.min_leaders", {} if min_leaders is None else min_leaders)
        read = {name: read_count(faults, f"goals.min_leaders[{name!r}]", asked[name])
                for name in asked}  # fmt: skip
        object.__setattr__(self, "min_leaders", {name: n for name, n in read.items() if n})
        costs = entries_of(faults, "goals.move_cost", {} if move_cost is None else move_cost)
        for name, cost in costs.items():
            check_number(faults, f"goals.move_cost[{name!r}]", cost, 1.0, MOST_IN_ALL)
        object.__setattr__(self, "move_cost", costs)
        object.__setattr__(self, "disks", read_tolerance(faults, "goals.disks", disks))
        check_number(faults, "goals.disk_move_cost", disk_move_cost, greatest=1.0)
        object.__setattr__(self, "disk_move_cost", disk_move_cost)
        check_truth(faults, "goals.soft_yield", soft_yield)
        faults.raise_if_any()

    def tolerance(self, dimension: str) -> float | None:
        """Return how far above level a node may be in one dimension, by its name; None: any."""
        return _of_dimension(self.level, dimension)

    def floor_tolerance(self, dimension: str) -> float | None:
        """Return how far below the mean a node may be in one dimension, by its name; None: any."""
        return _of_dimension(self.floor, dimension)

    @property
    def repairs(self) -> "Goals":
        """The goals of a solve that moves nothing but for rules."""
        return Goals(
            level=None, soft_yield=self.soft_yield, disks=self.disks,
            disk_move_cost=self.disk_move_cost,
        )  # fmt: skip

    def widened(self, dimensions: Sequence[str]) -> "Goals":
        """Return the goals of a cluster's dimensions in which ``act_above`` is the tolerance."""
        most = None if isinstance(self.act_above, Mapping) else self.act_above

        def wider(own: float | None, other: float | None) -> float | None:
            return own if own is None or other is None else max(own, other)

        level = {
            name: wider(self.tolerance(name), _of_dimension(self.act_above, name))
            for name in dimensions
        }
        floor = {name: wider(self.floor_tolerance(name), most) for name in dimensions}
        floor = {name: one if one is None else min(one, 1.0) for name, one in floor.items()}
        groups, group_leaders = (
            {name: wider(one, most) for name, one in own.items()}
            if isinstance(own, Mapping) else wider(own, most)
            for own in (self.groups, self.group_leaders)
        )  # fmt: skip
        return replace(
            self, level=level, leaders=wider(self.leaders, most), floor=floor, groups=groups,
            group_leaders=group_leaders, act_above=None, worth={}, move_cost={},
        )  # fmt: skip


def over_the_whole(goals: Goals) -> bool:
    """Return whether goals compare answers, or groups, over all nodes at once."""
    compares = goals.act_above is not None or bool(goals.worth or goals.move_cost)
    return compares or goals.groups is not None or leads_in_groups(goals)


def leads_in_groups(goals: "Goals | Cost") -> bool:
    """Return whether goals ask who leads the partitions of single groups."""
    return isinstance(goals, Goals) and (goals.group_leaders is not None or bool(goals.min_leaders))


def group_tolerances(
    faults: FaultList, cluster: Cluster, path: str, given: float | Mapping[str, float | None] | None
) -> NDArray[np.float64]:
    """Return the tolerance within each group, (G,), inf where none binds; note names of none."""
    partitions = cluster.partitions
    one_for_all = None if isinstance(given, Mapping) else given
    found = np.full(len(partitions.group_names), np.inf if one_for_all is None else one_for_all)
    for name, one in given.items() if isinstance(given, Mapping) else ():
        members = read_groups(faults, path, partitions, name, name) if name != "*" else slice(None)
        found[partitions.group[members]] = np.inf if one is None else one
    return found


def least_leaders(faults: FaultList, cluster: Cluster, goals: Goals) -> NDArray[np.int64]:
    """Return the leaders of each group that nodes should have, (G,); note names of none."""
    partitions = cluster.partitions
    found = np.zeros(len(partitions.group_names), np.int64)
    for name, count in goals.min_leaders.items():
        members = read_groups(faults, "goals.min_leaders", partitions, name, name)
        found[partitions.group[members]] = count
    return found


def move_costs(faults: FaultList, cluster: Cluster, goals: Goals) -> NDArray[np.float64]:
    """Return how many moves one of each partition counts for, (P,); note names of none."""
    partitions = cluster.partitions
    found = np.ones(len(partitions))
    for name, cost in goals.move_cost.items():
        is_group = name in partitions.group_names and name not in partitions.names
        which = f"group={name}" if is_group else name
        found[find_partitions(faults, "goals.move_cost", partitions, [which])] = cost
    return found


def _of_dimension(given: float | Mapping[str, float | None] | None, dimension: str) -> float | None:
    return given.get(dimension) if isinstance(given, Mapping) else given


def check_goals(faults: FaultList, cluster: Cluster, goals: Goals) -> None:
    """Note dimensions that goals name and the cluster does not have, or has no capacities of."""
    known = list(cluster.dimensions)
    endless = np.isinf(cluster.nodes.capacity).min(axis=0, initial=True)
    named = (("level", goals.level), ("floor", goals.floor), ("act_above", goals.act_above))
    for path, given in named:
        for name, asked in given.items() if isinstance(given, Mapping) else ():
            if name not in known:
                faults.add(f"goals.{path}", name, f"unknown dimension; known: {known}")
            elif asked is not None and len(cluster.nodes) and endless[known.index(name)]:
                message = "no node has a capacity of it, and percentages are of capacities"
                faults.add(f"goals.{path}", name, message)
    move_costs(faults, cluster, goals)
    least_leaders(faults, cluster, goals)
    for name in ("groups", "group_leaders"):
        group_tolerances(faults, cluster, f"goals.{name}", getattr(goals, name))
    if goals.leaders is not None:
        check_all_led(faults, cluster, "goals.leaders", goals.leaders)
    if goals.disks is not None and cluster.disks is None:
        faults.add("goals.disks", goals.disks, "needs a cluster whose nodes have disks")
    if goals.worth.get("byte") and cluster.bytes_dimension < 0:
        faults.add("goals.worth", goals.worth, NO_BYTES)


def check_all_led(faults: FaultList, cluster: Cluster, path: str, given: object) -> None:
    """Note what levels leaders over all partitions where some have none."""
    if (cluster.placement.flags & Flag.STAND_IN).any():
        message = (
            "would count first replicas of partitions without leaders: group_leaders "
            "(--group-leaders 20%) levels the leaders of each group"
        )
        faults.add(path, given, message)


@known_fields
@dataclass(frozen=True)
class Proportion:
    """Two dimensions whose free capacity should keep a ratio: charge ratio x free(a) - free(b).

    Parameters
    ----------
    of, to : str
        Dimensions a and b.
    ratio : float
        How much of b should be free for each unit of a.
    weight : float
        Cost of each missing unit of b.

    Raises
    ------
    InvalidInput
        If a dimension is no text, or a number is negative, none or infinite.

    Examples
    --------
    >>> Proportion("cpu", "disk", ratio=2.0, weight=10.0).to
    'disk'
    """

    of: str
    to: str
    ratio: float
    weight: float

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("of", "to"):
            check_text(faults, f"proportion.{name}", getattr(self, name))
        for name in ("ratio", "weight"):
            check_number(faults, f"proportion.{name}", getattr(self, name), greatest=MOST_IN_ALL)
        faults.raise_if_any()


@known_fields
@dataclass(frozen=True)
class Cost:
    """A weighted sum to minimise instead of tolerances to meet.

    Parameters
    ----------
    watermark : float or mapping of str to float
        Cost of one unit of load above a node's watermark, for all dimensions or by name.
    proportion : sequence of Proportion
        Pairs of dimensions to keep in proportion on every node.
    moves : float
        Times the move cost of every partition whose replica moved.
    group_moves : float
        Times the largest number of moved replicas of one group.
    distance : float
        Times the distance between each replica's old and new node.
    tables : sequence of NodeTable or GroupTable
        Goals of one's own: what nodes pay for load, and groups for sharing a domain.

    Raises
    ------
    InvalidInput
        If a price is negative, no number or infinite, or a list holds something else.

    References
    ----------
    ROADEF/EURO challenge 2012, problem statement, objective.

    Examples
    --------
    >>> Cost(watermark=10.0, moves=1.0).watermark_weight("cpu")
    10.0
    """

    watermark: float | Mapping[str, float] = 1.0
    proportion: Sequence[Proportion] = ()
    moves: float = 0.0
    group_moves: float = 0.0
    distance: float = 0.0
    tables: Sequence[NodeTable | GroupTable] = ()

    def __post_init__(self) -> None:
        faults = FaultList()
        priced = {"goals.watermark": self.watermark}
        if isinstance(self.watermark, Mapping):
            priced = {f"goals.watermark[{name!r}]": one for name, one in self.watermark.items()}
        for at, price in priced.items():
            check_number(faults, at, price, greatest=MOST_IN_ALL)
        for name in ("moves", "group_moves", "distance"):
            check_number(faults, f"goals.{name}", getattr(self, name), greatest=MOST_IN_ALL)
        for i, one in enumerate(items_of(faults, "goals.proportion", self.proportion)):
            if not isinstance(one, Proportion):
                faults.add(f"goals.proportion[{i}]", one, "must be a Proportion")
        for i, one in enumerate(items_of(faults, "goals.tables", self.tables)):
            if not isinstance(one, NodeTable | GroupTable):
                faults.add(f"goals.tables[{i}]", one, "must be a NodeTable or a GroupTable")
        faults.raise_if_any()

    def watermark_weight(self, dimension: str) -> float:
        """Return the cost of one unit above the watermark in one dimension.

        Parameters
        ----------
        dimension : str
            Its name.

        Returns
        -------
        float
            0 for a dimension that a mapping leaves out.
        """
        if isinstance(self.watermark, Mapping):
            return float(self.watermark.get(dimension, 0.0))
        return float(self.watermark)


def check_cost(faults: FaultList, cluster: Cluster, cost: Cost) -> None:
    """Note what a cost names that the cluster does not have."""
    known = f"unknown dimension; known: {list(cluster.dimensions)}"
    for name in cost.watermark if isinstance(cost.watermark, Mapping) else ():
        if name not in cluster.dimensions:
            faults.add("goals.watermark", name, known)
    for pair in cost.proportion:
        for name in (pair.of, pair.to):
            if name not in cluster.dimensions:
                faults.add("goals.proportion", name, known)
    check_tables(faults, cluster, cost.tables)
