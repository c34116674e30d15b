"""The ``leaders`` method: the fewest leaders on the fullest node, replicas staying where they are.

Who leads what is a flow: a unit from every partition to one of its voters' nodes, and from there
through as many units as a node may lead. The least such number is found by halving; among the flows
that keep to it, the one that changes the fewest leaders is taken.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import has_leaders
from evenkeel.model.binding import bound_rules, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
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


@dataclass(frozen=True)
class _Arcs:
    """Who could lead what: replicas that may, by partition; ``p`` indexes partitions to be led."""

    replica: NDArray[np.int64]
    p: NDArray[np.int64]
    node: NDArray[np.int64]
    leads: NDArray[np.bool_]
    count: int


def leaders(request: Request) -> Outcome:
    """Choose leaders so that the node that leads most, by its weight, leads as few as possible.

    Replicas stay where they are. Preferences for leaders come first: a partition is led from the
    best choice of its rule that one of its voters is in.

    Parameters
    ----------
    request : Request
        Goals and limits are not looked at; where to start says who leads now.

    Returns
    -------
    Outcome
        With a ``LeadersProof`` in ``native``. O(log P) min-cost flows of P + K arcs.

    Raises
    ------
    InvalidInput
        If the cluster knows no leaders.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]] * 3, placement=[[0, 1], [0, 2], [0, 1]]
    ... )
    >>> ek.solve(cluster, method="leaders").levelness.leaders.tolist()
    [1, 1, 1]
    """
    cluster, start = request.cluster, request.start
    faults = FaultList()
    if not has_leaders(cluster):
        faults.add("cluster", "no leader", "leaders needs a cluster that knows who leads")
    faults.raise_if_any()
    arcs = _arcs(cluster, start.node, start.leader)
    able = cluster.nodes.may_lead
    weight = np.where(able, cluster.nodes.lead_weight, 0.0)
    share = weight * (arcs.count / weight.sum()) if weight.any() else weight
    ratios = _ratios(share, arcs)
    low, high = 0, len(ratios) - 1
    most = _most(share, float(ratios[high]))
    chosen = _flow(arcs, most)
    while low < high:
        middle = (low + high) // 2
        fewer = _most(share, float(ratios[middle]))
        tried = _flow(arcs, fewer)
        if tried is None:
            low = middle + 1
        else:
            high, chosen, most = middle, tried, fewer
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


def _arcs(cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]) -> _Arcs:
    """Find the replicas that may lead, each partition's best choices only."""
    placement = cluster.placement
    standing = np.flatnonzero((node >= 0) & (placement.role == Role.VOTER))
    standing = standing[cluster.nodes.may_lead[node[standing]]]
    owner = placement.owner[standing].astype(np.int64)
    rank = np.zeros(len(standing), np.int64)
    rules, rule_of = bound_rules(cluster)
    for q, rule in enumerate(rules):
        if rule.lead:
            by_node = np.full(len(cluster.nodes), len(rule.lead))
            for choice in range(len(rule.lead) - 1, -1, -1):
                by_node[node_mask(cluster, rule.lead[choice])] = choice
            bound = rule_of[owner] == q
            rank[bound] = by_node[node[standing[bound]]]
    best = np.full(len(cluster.partitions), np.iinfo(np.int64).max)
    np.minimum.at(best, owner, rank)
    kept = rank == best[owner]
    standing, owner = standing[kept], owner[kept]
    led, index = np.unique(owner, return_inverse=True)
    now = standing - placement.first[owner] == leader[owner]
    return _Arcs(standing, index.astype(np.int64), node[standing].astype(np.int64), now, len(led))


def _ratios(share: NDArray[np.float64], arcs: _Arcs) -> NDArray[np.float64]:
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


def _flow(arcs: _Arcs, most: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Lead every partition within the numbers, changing the fewest leaders; None if none can.

    Returns the chosen arcs, one for each partition.
    """
    from ortools.graph.python import min_cost_flow

    flow = min_cost_flow.SimpleMinCostFlow()
    nodes = np.unique(arcs.node)
    place = np.searchsorted(nodes, arcs.node)
    sink = arcs.count + len(nodes)
    tail = np.concatenate([arcs.p, arcs.count + np.arange(len(nodes))])
    head = np.concatenate([arcs.count + place, np.full(len(nodes), sink)])
    room = np.concatenate([np.ones(len(arcs.p), np.int64), most[nodes]])
    cost = np.concatenate([(~arcs.leads).astype(np.int64), np.zeros(len(nodes), np.int64)])
    added = flow.add_arcs_with_capacity_and_unit_cost(tail, head, room, cost)
    supply = np.ones(arcs.count + len(nodes) + 1, np.int64)
    supply[arcs.count :] = 0
    supply[sink] = -arcs.count
    flow.set_nodes_supplies(np.arange(len(supply)), supply)
    if flow.solve() != flow.OPTIMAL:
        return None
    chosen: NDArray[np.int64] = np.flatnonzero(flow.flows(added[: len(arcs.p)]))
    return chosen
