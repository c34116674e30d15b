"""Imbalance of a placement over the nodes, per dimension and in leaders."""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints64, Reals, read_only
from evenkeel.model.runtime.printable import counted


@dataclass(frozen=True, eq=False)
class Levelness:
    """Utilisation of the nodes under one placement. N nodes, D dimensions.

    Statistics are over the nodes that are alive; *fair* alone is over those that accept.

    Parameters
    ----------
    loads : ndarray of float64, shape (N, D)
        What every node carries.
    table : ndarray of float64, shape (N, D)
        Load over capacity, of every node, alive or not.
    alive : ndarray of bool, shape (N,)
        Nodes that the statistics are over.
    fair : ndarray of float64, shape (D,)
        Load placed on nodes that are alive, over the capacity of those that accept.
    most, least, deviation : ndarray of float64, shape (D,)
        Highest and lowest utilisation of a node, and their standard deviation.
    leaders : ndarray of int64, shape (N,)
        Leaders per node.
    leader_share : ndarray of float64, shape (N,)
        Leaders that each node should have by its lead weight.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> result.levelness_before.table.tolist(), result.levelness.table.tolist()
    ([[1.0], [0.0]], [[0.5], [0.5]])
    >>> result.levelness_before.ratio.tolist(), result.levelness.ratio.tolist()
    ([2.0], [1.0])
    """

    loads: Reals
    table: Reals
    alive: Flags
    fair: Reals
    most: Reals
    least: Reals
    deviation: Reals
    leaders: Ints64
    leader_share: Reals

    @property
    def ratio(self) -> Reals:
        """Highest utilisation over the fair one, (D,) float64; 1 where nothing is loaded."""
        return share_of_fair(self.most, self.fair)

    @property
    def leader_ratio(self) -> float:
        """Most leaders on a node over its share; 1 where nothing leads.

        A node that should have none is compared with the mean share of those that should.
        """
        led = self.leader_share > 0.0
        share = np.where(led, self.leader_share, self.leader_share.sum() / max(int(led.sum()), 1))
        shares = share_of_fair(self.leaders.astype(np.float64), share)
        return float(shares.max(initial=0.0)) if self.leaders.any() else 1.0


def levelness(cluster: Cluster, placement: Placement) -> Levelness:
    """Measure how level a placement is.

    Parameters
    ----------
    cluster : Cluster
        The nodes and loads.
    placement : Placement
        Where the replicas are.

    Returns
    -------
    Levelness
        Utilisation per dimension, and leaders per node.

    Examples
    --------
    >>> from evenkeel.model.cluster import Cluster
    >>> c = Cluster.from_arrays(capacity=[[4.0], [4.0]], load=[[1.0]] * 4,
    ...                         placement=[[0], [0], [0], [1]])
    >>> found = levelness(c, c.placement)
    >>> found.fair.tolist(), found.most.tolist(), found.ratio.tolist()
    ([0.5], [0.75], [1.5])
    """
    nodes = cluster.nodes
    placed = PlacementCounts.of(cluster, placement)
    loads, leaders = placed.loads, placed.leaders
    table = utilisation(loads, nodes.capacity)
    alive = nodes.serves
    seen = table[alive] if alive.any() else np.zeros((1, loads.shape[1]))
    room = nodes.capacity[nodes.may_receive].sum(0)
    weight = np.where(nodes.may_lead, nodes.lead_weight, 0.0)
    share = weight * (leaders.sum() / weight.sum()) if weight.any() else weight
    finite = np.isfinite(seen).all(0)
    deviation = np.full(loads.shape[1], np.nan)
    with np.errstate(over="ignore"):
        deviation[finite] = seen[:, finite].std(0)
    return Levelness(
        loads=read_only(loads),
        table=read_only(table),
        alive=read_only(alive),
        fair=read_only(utilisation(loads[alive].sum(0), room)),
        most=read_only(seen.max(0)),
        least=read_only(seen.min(0)),
        deviation=read_only(deviation),
        leaders=read_only(leaders),
        leader_share=read_only(share),
    )


def imbalance_fall(cluster: Cluster, goals: Goals, before: Placement, after: Placement) -> float:
    """Return by how much the imbalance falls in the dimension where it falls most."""
    # of the dimensions and leaders that goals level; where nodes are to be filled, the rise of the
    # emptiest counts as well
    ends = [levelness(cluster, one) for one in (before, after)]
    takes = cluster.nodes.may_receive
    falls = [0.0]
    for d, name in enumerate(cluster.dimensions):
        if goals.tolerance(name) is not None:
            falls.append(float(ends[0].ratio[d]) - float(ends[1].ratio[d]))
        if goals.floor_tolerance(name) is not None and takes.any():
            least = [one.table[takes, d].min() / max(one.fair[d], 1e-300) for one in ends]
            falls.append(float(least[1] - least[0]))
    if goals.leaders is not None:
        falls.append(ends[0].leader_ratio - ends[1].leader_ratio)
    return max(one for one in falls if one == one)


def mean_note(cluster: Cluster) -> str:
    """Return over which nodes the mean is, where some that are alive take no replicas; else ""."""
    alive, takes = int(cluster.nodes.serves.sum()), int(cluster.nodes.may_receive.sum())
    if takes == alive:
        return ""
    which = counted(takes, "node that takes", "nodes that take")
    return f"the mean is what the {which} replicas would carry, of {alive:,} that are alive"


def leaders_note(before: Levelness, after: Levelness, goals: Goals | Cost) -> str:
    """Return how much less even leaders became where no goal asks for more; else ``""``."""
    was, now = before.leader_ratio, after.leader_ratio
    asked = isinstance(goals, Cost) or goals.leaders is not None or goals.group_leaders is not None
    if asked or not now > was + ROUNDING:
        return ""
    return f"leaders are less even, {now:.2f} times the mean, was {was:.2f}: no goal is about them"


def share_of_fair(most: Reals, fair: Reals) -> Reals:
    """Divide actual by fair amounts, (D,) both: 0 of 0 is 1, anything else of 0 infinite."""
    ratio = np.where(most > 0.0, np.inf, 1.0)
    with np.errstate(over="ignore"):
        np.divide(most, fair, out=ratio, where=(fair > 0.0) & np.isfinite(fair))
    return ratio
