"""Who could lead what where replicas are, and the flow through it that changes the fewest."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.binding import bound_rules, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.strategies.registry import Outcome
from evenkeel.strategies.shared.stopping import Progress, StopReason, Watch

SECONDS_PER_ARC = 1.2e-5
"""What a flow takes on a slow day, by the number of its arcs."""


@dataclass(frozen=True)
class Arcs:
    """Who could lead what: replicas that may, by partition. A arcs.

    Parameters
    ----------
    replica : ndarray of int64, shape (A,)
        Index of each replica that may lead, ascending.
    p : ndarray of int64, shape (A,)
        Its partition among those that somebody can lead.
    node : ndarray of int64, shape (A,)
        Where it stands.
    leads : ndarray of bool, shape (A,)
        Whether it leads now.
    count : int
        Partitions that somebody can lead.
    """

    replica: NDArray[np.int64]
    p: NDArray[np.int64]
    node: NDArray[np.int64]
    leads: NDArray[np.bool_]
    count: int


def arcs_of(cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]) -> Arcs:
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
    beat()
    if rank.any():
        best = np.full(len(cluster.partitions), np.iinfo(np.int64).max)
        np.minimum.at(best, owner, rank)
        kept = rank == best[owner]
        standing, owner = standing[kept], owner[kept]
    # owners ascend, as slots do
    begins = np.diff(owner, prepend=-1) != 0
    beat()
    now = standing - placement.first[owner] == leader[owner]
    beat()
    return Arcs(
        standing,
        np.cumsum(begins) - 1,
        node[standing].astype(np.int64),
        now,
        int(np.count_nonzero(begins)),
    )


NO_TIME = "There is no time to level leaders: all of them stay."


def stays(start: Placement, reason: StopReason | None) -> Outcome:
    """Leave all leaders where they are."""
    return Outcome(
        node=start.node, leader=start.leader, stop_reason=reason or "time", message=NO_TIME
    )


class OutOfTime(Exception):
    """There is no time for another flow, which cannot be stopped once it has begun."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


def least_within(
    arcs: Arcs, rooms: Callable[[int], NDArray[np.int64]], count: int, watch: Watch
) -> tuple[int, NDArray[np.int64] | None]:
    """Find the least of ``count`` rising rooms that a flow fits into, and that flow.

    The least is mostly among the first, so that steps begin short. None if the last is too small.
    """

    def flow(at: int) -> NDArray[np.int64] | None:
        reason = watch.look(Progress("flow", at * len(arcs.p), watch.seconds, 0, 0.0))
        if reason is None and watch.seconds_left < SECONDS_PER_ARC * len(arcs.p):
            reason = "time"
        if reason is not None:
            raise OutOfTime(reason)
        return flow_within(arcs, rooms(at))

    low, at, step = 0, 0, 1
    while (chosen := flow(at)) is None and at < count - 1:
        low = at + 1
        at = min(at + step, count - 1)
        step *= 2
    high = at
    while low < high:
        middle = (low + high) // 2
        if (tried := flow(middle)) is None:
            low = middle + 1
        else:
            high, chosen = middle, tried
    return high, chosen


def flow_within(arcs: Arcs, most: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Lead every partition within numbers, changing the fewest leaders."""
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
