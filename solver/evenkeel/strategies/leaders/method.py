"""The ``leaders`` method: the fewest leaders on the fullest node, replicas staying where they are.

By load instead of number where asked for (`evenkeel.strategies.leaders.by_load`).

Who leads what is a flow: a unit from every partition to one of its voters' nodes, and from there
through as many units as a node may lead. The least such number is found by halving; among the flows
that keep to it, the one that changes the fewest leaders is taken.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.model.errors import FaultList
from evenkeel.strategies.leaders.flow import Arcs, OutOfTime, arcs_of, least_within, stays
from evenkeel.strategies.options import Leaders
from evenkeel.strategies.registry import Outcome, Request


@dataclass(frozen=True)
class LeadersProof:
    """What is proven of the leaders, for replicas that stay where they are.

    Parameters
    ----------
    ratio : float
        Most leaders of a node over its share by lead weight, rounded up per node; no choice of
        leaders makes it less.
    most : ndarray of int64, shape (N,)
        Leaders that each node may have at that ratio.
    changes : int
        Leadership changes that this takes at least.
    leaderless : int
        Partitions that nobody can lead.
    """

    ratio: float
    most: NDArray[np.int64]
    changes: int
    leaderless: int


def leaders(request: Request) -> Outcome:
    """Choose leaders so that the node that leads most, by its weight, leads as few as possible.

    With ``options.Leaders(by="load")``, so that the fullest node is as little loaded as possible.

    Replicas stay where they are. Preferences for leaders come first: a partition is led from the
    best choice of its rule that one of its voters is in.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]] * 3, placement=[[0, 1], [0, 2], [0, 1]]
    ... )
    >>> ek.solve(cluster, method="leaders").levelness.leaders.tolist()
    [1, 1, 1]
    """
    faults = FaultList()
    if not has_leaders(request.cluster):
        faults.add("cluster", "no leader", "leaders needs a cluster that knows who leads")
    faults.raise_if_any()
    assert isinstance(request.options, Leaders)
    if request.options.by == "load":
        from evenkeel.strategies.leaders.by_load import level_loads

        return level_loads(request)
    return _fewest(request)


def _fewest(request: Request) -> Outcome:
    """Level the numbers of leaders."""
    cluster, start = request.cluster, request.start
    arcs = arcs_of(cluster, start.node, start.leader)
    able = cluster.nodes.may_lead
    weight = np.where(able, cluster.nodes.lead_weight, 0.0)
    share = weight * (arcs.count / weight.sum()) if weight.any() else weight
    ratios = _ratios(share, arcs)
    try:
        high, chosen = least_within(
            arcs, lambda at: _most(share, float(ratios[at])), len(ratios), request.watch
        )
    except OutOfTime as over:
        return stays(start, over.reason)
    most = _most(share, float(ratios[high]))
    leader = start.leader.copy()
    if chosen is not None:
        taken = arcs.replica[chosen]
        owner = start.owner[taken]
        leader[owner] = (taken - start.first[owner]).astype(np.int16)
    changes = int(np.count_nonzero(leader != start.leader))
    leaderless = int((cluster.partitions.replicas > 0).sum()) - arcs.count
    return Outcome(
        node=start.node,
        leader=leader,
        stop_reason="optimum",
        message=f"Proven: no other leaders are more level, and none as level change fewer than "
        f"{changes:,}.",
        work=len(arcs.replica),
        native=LeadersProof(float(ratios[high]), most, changes, leaderless),
    )


def _ratios(share: NDArray[np.float64], arcs: Arcs) -> NDArray[np.float64]:
    """Ratios of leaders to shares at which some node may lead one more, ascending."""
    current = np.bincount(arcs.node[arcs.leads], minlength=len(share))
    held = np.bincount(arcs.node, minlength=len(share))
    able = (share > 0.0) & (held > 0)
    if not able.any():
        return np.zeros(1)
    top = float((held[able] / share[able]).max())
    if current.sum() == arcs.count:
        top = min(top, float((current[able] / share[able]).max(initial=0.0)))
    least = arcs.count / float(share[able].sum())
    found = [np.array([top])]
    for one in np.unique(share[able]).tolist():
        counts = np.arange(int(least * one), int(np.ceil(top * one)) + 1)
        found.append(counts / one)
    every = np.unique(np.concatenate(found))
    return every[(every >= least * (1.0 - 1e-12)) & (every <= top * (1.0 + 1e-12))]


def _most(share: NDArray[np.float64], ratio: float) -> NDArray[np.int64]:
    """Leaders that each node may have at a ratio to its share."""
    return np.floor(share * ratio * (1.0 + 1e-12) + 1e-9).astype(np.int64)
