"""Curve: over-utilisation of the cluster against the bytes that a plan has copied."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.figures import quantity
from evenkeel.planning.outcome import roles_of
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """What a plan has reached when so much is copied. M changes, in the order in which they begin.

    Parameters
    ----------
    bytes : ndarray of float64, shape (M + 1,)
        Copied so far, in the unit of the cluster's ``bytes`` dimension; copies without one.
    over : ndarray of float64, shape (M + 1,)
        By how much nodes are above the cluster's mean utilisation, added up over nodes and
        dimensions.
    excess : ndarray of float64, shape (M + 1,)
        By how much nodes are above their capacity, added up in the same way.

    Examples
    --------
    >>> Curve(np.array([0.0, 2.0]), np.array([0.5, 0.0]), np.zeros(2)).area
    1.0
    """

    bytes: NDArray[np.float64]
    over: NDArray[np.float64]
    excess: NDArray[np.float64]

    def __repr__(self) -> str:
        return (
            f"<Curve: {len(self.bytes) - 1:,} changes copy {quantity(self.bytes[-1])}; "
            f"above the mean {self.over[0]:.4g} -> {self.over[-1]:.4g}, "
            f"above capacity {self.excess[0]:.4g} -> {self.excess[-1]:.4g}>"
        )

    @property
    def area(self) -> float:
        """Over-utilisation times the bytes for which it lasts: the less, the sooner it falls."""
        return float((np.diff(self.bytes) * self.over[:-1]).sum())


def curve_of(cluster: Cluster, target: Placement, steps: Steps, change: NDArray[np.int32]) -> Curve:
    """Follow the loads of nodes from change to change."""
    node, amount, of = _shifts(cluster, target, steps)
    rank = np.cumsum(np.diff(change, prepend=change[:1]) != 0)
    count = int(rank[-1]) + 1 if len(rank) else 0
    position = rank[of]
    capacity = cluster.nodes.capacity
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    accepting = cluster.nodes.may_hold
    room = capacity[accepting].sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nan_to_num(loads.sum(0) / room, posinf=0.0)
    over, excess = np.zeros(count + 1), np.zeros(count + 1)
    for d in range(len(cluster.dimensions)):
        able = np.isfinite(capacity[:, d]) & (capacity[:, d] > 0.0)
        for total, limit in ((over, mean[d]), (excess, 1.0)):
            total += _above(loads[:, d], capacity[:, d], limit, able, node, amount[:, d], position,
                            count)  # fmt: skip
    copied = steps.size if cluster.bytes_dimension >= 0 else steps.kind == StepKind.COPY
    each = np.bincount(rank, copied, count)
    return Curve(np.append(0.0, np.cumsum(each)), over, excess)


def _shifts(
    cluster: Cluster, target: Placement, steps: Steps
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.intp]]:
    """Return nodes that become fuller or emptier, by how much, (E, D), and through which step."""
    load, kind = cluster.partitions.load, steps.kind
    light = roles_of(cluster.placement, steps, target) == Role.NON_VOTER
    own = np.where(light[:, None], load.non_voter[steps.partition], load.voter[steps.partition])
    extra = load.leader[steps.partition] - load.voter[steps.partition]
    parts: list[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.intp]]] = []
    recast = np.flatnonzero(steps.in_place)
    if len(recast):
        of = steps.partition[recast]
        more = load.voter[of] - load.non_voter[of]
        rises = (steps.kind[recast] == StepKind.PROMOTE)[:, None]
        parts.append((steps.target[recast], np.where(rises, more, -more), recast))
    for kinds, node, sign, weight in (
        (StepKind.COPY, steps.target, 1.0, own), (StepKind.REMOVE, steps.source, -1.0, own),
        (StepKind.LEAD, steps.target, 1.0, extra), (StepKind.LEAD, steps.source, -1.0, extra),
    ):  # fmt: skip
        some = np.flatnonzero((kind == kinds) & (node >= 0))
        parts.append((node[some], sign * weight[some], some))
    node, amount = (np.concatenate([one[i] for one in parts]) for i in (0, 1))
    return node.astype(np.int32), amount, np.concatenate([one[2] for one in parts])


def _above(
    load: NDArray[np.float64],
    capacity: NDArray[np.float64],
    limit: float,
    able: NDArray[np.bool_],
    node: NDArray[np.int32],
    amount: NDArray[np.float64],
    position: NDArray[np.intp],
    count: int,
) -> NDArray[np.float64]:
    """Return by how much nodes are above a utilisation before any change, and after each."""
    some = np.flatnonzero(able[node])
    some = some[np.lexsort((position[some], node[some]))]
    at, when, change = node[some], position[some], amount[some]
    total = np.cumsum(change)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    base = load[at[opens]] - (total[opens] - change[opens])
    length = np.diff(np.append(opens, len(at)))
    used = (total + np.repeat(base, length)) / capacity[at]
    above = np.maximum(used - limit, 0.0)
    first = np.maximum(utilisation(load[:, None], capacity[:, None])[:, 0] - limit, 0.0)
    first[~able] = 0.0
    before = np.roll(above, 1)
    before[opens] = first[at[opens]]
    steps = np.bincount(when + 1, above - before, count + 1)
    steps[0] = first.sum()
    return np.cumsum(steps)
