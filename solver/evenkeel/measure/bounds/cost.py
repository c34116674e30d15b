"""Lower bound on the cost of any placement, from totals of the cluster and of its parts.

What nodes pay is convex in their load, so nothing is cheaper than to fill the cheapest room first,
whichever replicas do it. Where rules force load into a part of the cluster, that part is set
against what it is given; parts that share no node add up.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenkeel.measure.binding import Scope, partition_scope
from evenkeel.measure.bounds.even import Classes, forced_loads
from evenkeel.measure.loads import usable, wanted_load
from evenkeel.measure.room import piling
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import RISING, Hinge, NodeTable
from evenkeel.model.goals import Cost
from evenkeel.model.reading.arrays import Flags, Ints64, Reals

SAFE = 1e-12  # relative error that sums of loads are allowed, at the expense of the bound


@dataclass(frozen=True)
class CostBound:
    """No placement of all replicas within the hard rules costs less.

    Parameters
    ----------
    total : float
        The bound.
    parts : mapping of str to float
        What it is the sum of: ``"load of cpu"``, ``"cpu to disk"``, ``"moves"``; a single entry
        where the parts cannot be distinguished.
    source : str
        ``"aggregate"``, ``"domains"`` or ``"classes"``: totals of the whole cluster, or of the
        parts of it that the rules give the most to; ``"relaxation"``: a linear program.

    Examples
    --------
    >>> bound = CostBound(7.0, {"load of cpu": 5.0, "moves": 2.0}, "aggregate")
    >>> bound.term
    'load of cpu (aggregate)'
    """

    total: float
    parts: dict[str, float]
    source: str

    @property
    def term(self) -> str:
        """The binding term: the largest part, and where it comes from."""
        if self.total <= 0.0 or not self.parts:
            return "nothing"
        largest = max(self.parts, key=lambda name: self.parts[name])
        return largest if largest == self.source else f"{largest} ({self.source})"


def cost_bound(cluster: Cluster, cost: Cost, moves: int) -> CostBound:
    """Prove what a weighted sum comes to at least."""
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    holds = usable(cluster)
    wanted = wanted_load(cluster)
    parts: dict[str, float] = {}
    sources: dict[str, float] = {}
    families = list(_families(placed, scope, holds))
    for d, name in enumerate(cluster.dimensions):
        pieces = Pieces.of(cluster, cost, d, holds)
        best, source = pieces.idle + pieces.filled(holds, wanted[d], exactly=True), "aggregate"
        for label, kind, forced in families:
            each = [
                pieces.filled(holds & (label == i), float(load), exactly=False)
                for i, load in enumerate(forced[:, d])
            ]
            if (least := pieces.idle + math.fsum(each)) > best:
                best, source = least, kind
        value = best * (1.0 - SAFE)
        if value > 0.0:
            parts[f"load of {name}"] = value
            sources[source] = sources.get(source, 0.0) + value
    parts |= _proportions(cluster, cost, wanted)
    least = float(cluster.partitions.move_cost.min(initial=np.inf)) if moves else 0.0
    groups = max(1, len(cluster.partitions.group_names))
    moving = cost.moves * moves * least + cost.group_moves * -(-moves // groups)
    if moving > 0.0:
        parts["moves"] = moving
    source = max(sources, key=lambda name: sources[name]) if sources else "aggregate"
    return CostBound(math.fsum(parts.values()), parts, source)


@dataclass(frozen=True, eq=False)
class Pieces:
    """What nodes pay in one dimension, in straight pieces. N nodes, k pieces each."""

    idle: float  # what all nodes pay for carrying nothing
    # (N, k) load that each piece holds; the last one ends at the capacity
    length: Reals
    slope: Reals  # (N, k) cost of a unit there, ascending

    @classmethod
    def of(cls, cluster: Cluster, cost: Cost, d: int, holds: Flags) -> "Pieces":
        """Return the pieces of one dimension."""
        nodes, name = cluster.nodes, cluster.dimensions[d]
        weight = cost.watermark_weight(name)
        hinges = [Hinge(RISING, weight, nodes.watermark[:, d])]
        for table in cost.tables:
            if isinstance(table, NodeTable) and table.dimension == name:
                hinges += table.hinges(len(nodes))
        at = np.stack([hinge.at for hinge in hinges], axis=1)
        price = np.array([hinge.weight for hinge in hinges])
        falls = np.array([hinge.sign != RISING for hinge in hinges])
        start = np.where(np.isfinite(at) & (at > 0.0) & falls, price, 0.0)
        idle = float((start * np.where(start > 0.0, at, 0.0)).sum())
        room = np.where(holds, nodes.capacity[:, d], 0.0)[:, None]
        at = np.clip(at, 0.0, room)
        order = np.argsort(at, axis=1, kind="stable")
        at = np.take_along_axis(at, order, axis=1)
        rise = np.where(falls & (start == 0.0), 0.0, np.broadcast_to(price, start.shape))
        rise = np.cumsum(np.take_along_axis(rise, order, axis=1), axis=1)
        slope = np.concatenate([np.zeros((len(at), 1)), rise], axis=1) - start.sum(1)[:, None]
        ends = np.concatenate([np.zeros((len(at), 1)), at, room], axis=1)
        with np.errstate(invalid="ignore"):
            length = np.nan_to_num(np.diff(ends, axis=1), nan=0.0, posinf=np.inf)
        return cls(idle, length, slope)

    def filled(self, nodes: Flags, load: float, *, exactly: bool) -> float:
        """Return the cost of a load on some nodes, above their cost when idle."""
        slope, length = self.slope[nodes].reshape(-1), self.length[nodes].reshape(-1)
        order = np.argsort(slope, kind="stable")
        slope, length = slope[order], length[order]
        if not exactly:
            load = max(load, float(length[slope < 0.0].sum()))
        filled = np.diff(np.minimum(np.cumsum(length), load), prepend=0.0)
        return float((slope * np.where(filled > 0.0, filled, 0.0)).sum())


def _families(
    placed: PlacementCounts, scope: Scope, holds: Flags
) -> Iterator[tuple[Ints64, str, Reals]]:
    """Yield sets of nodes, as a number per node, and the load that each must carry."""
    if piling(placed, scope).any() and not holds.all():
        return
    classes = Classes.of(placed, scope)
    topology = placed.cluster.topology
    for binding in scope.spreads:
        if binding.tier != "node":
            domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
            forced = forced_loads(placed, scope, classes, binding.amount, domain, holds)
            if forced.any():
                yield domain.astype(np.int64), "domains", forced
    label = _components(scope.open & holds)
    count = int(label.max(initial=-1)) + 1
    if count > 1:
        forced = np.zeros((count, len(placed.cluster.dimensions)))
        weight = classes.loads(placed.lightest) * classes.wanted[:, None]
        for q, rule in enumerate(classes.rule.tolist()):
            inside = np.unique(label[scope.open[rule] & holds])
            if len(inside):
                forced[inside[0]] += weight[q]
        yield label, "classes", forced


def _components(is_open: Flags) -> Ints64:
    """Number the nodes by sets that no rule has nodes both inside and outside of; -1 for none."""
    label = np.where(is_open.any(0), np.arange(is_open.shape[1]), -1)
    for _ in range(len(is_open)):
        before = label.copy()
        for mask in is_open:
            if mask.any():
                joined = np.isin(label, np.unique(label[mask])) & (label >= 0)
                label[joined] = label[joined].min()
        if np.array_equal(before, label):
            break
    _, numbered = np.unique(label, return_inverse=True)
    found: Ints64 = numbered.reshape(-1) - int((label < 0).any())
    return found


def _proportions(cluster: Cluster, cost: Cost, wanted: Reals) -> dict[str, float]:
    """What pairs of dimensions cost that are out of proportion in total."""
    parts: dict[str, float] = {}
    capacity = cluster.nodes.capacity.sum(0)
    for pair in cost.proportion:
        of, to = cluster.dimensions.index(pair.of), cluster.dimensions.index(pair.to)
        with np.errstate(invalid="ignore"):
            one, other = pair.ratio * (capacity[of] - wanted[of]), capacity[to] - wanted[to]
            value = pair.weight * (one - other)
        if np.isfinite(value):
            value -= SAFE * pair.weight * (abs(one) + abs(other))
            if value > 0.0:
                name = f"{pair.of} to {pair.to}"
                parts[name] = parts.get(name, 0.0) + float(value)
    return parts
