"""Leaders that a fixed placement allows, and the network flow that changes the fewest of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import lead_ranks, partition_scope
from evenkeel.methods.contract import Outcome
from evenkeel.methods.shared.compile import led_from, ready
from evenkeel.methods.shared.stopping import Clock, StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel_kernels.core.leader_lists import Leading
from evenkeel_kernels.leaders.fewest_changes import (
    LeadFlow,
    begin_flow,
    excess,
    follow_chains,
    measure_chains,
    rank_nodes,
)


@dataclass(frozen=True)
class Arcs:
    """Possible leaders: eligible replicas by partition. A arcs."""

    replica: NDArray[np.int64]  # (A,) index of each replica that may lead, ascending
    p: NDArray[np.int64]  # (A,) its partition among those that a replica can lead
    node: NDArray[np.int64]  # (A,) where it stands
    leads: NDArray[np.bool_]  # (A,) whether it leads now
    count: int  # partitions that a replica can lead

    @property
    def first(self) -> NDArray[np.int64]:
        """Where the arcs of each partition begin, and where the last ends, (P + 1,)."""
        return np.searchsorted(self.p, np.arange(self.count + 1)).astype(np.int64)

    @property
    def began(self) -> NDArray[np.int64]:
        """The arc of each partition's current leader, (P,); -1 for none."""
        began = np.full(self.count, -1)
        began[self.p[self.leads]] = np.flatnonzero(self.leads)
        return began


def arcs_of(cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]) -> Arcs:
    """Find the replicas that may lead, each partition's best choices only, and none that lags.

    Where the leader is lost, replicas that could lead at once, if there are any.
    """
    placement = cluster.placement
    standing = np.flatnonzero((node >= 0) & (placement.role == Role.VOTER))
    standing = standing[cluster.nodes.may_lead[node[standing]]]
    at_hand = ready(cluster) | (node != placement.node)
    at_hand |= leader[placement.owner] == np.arange(len(node)) - placement.first[placement.owner]
    standing = standing[at_hand[standing]]
    owner = placement.owner[standing].astype(np.int64)
    rank = np.zeros(len(standing), np.int64)
    scope = partition_scope(cluster)
    for q, rule in enumerate(scope.demands):
        if rule.lead:
            bound = scope.rule[owner] == q
            rank[bound] = lead_ranks(cluster, rule.lead)[node[standing[bound]]]
    beat()
    if rank.any():
        best = np.full(len(cluster.partitions), np.iinfo(np.int64).max)
        np.minimum.at(best, owner, rank)
        kept = rank == best[owner]
        standing, owner = standing[kept], owner[kept]
    lost = led_from(cluster) < 0
    if lost.any():
        at_once = lost[owner] & ready(cluster)[standing]
        some = np.bincount(owner[at_once], minlength=len(lost)) > 0
        kept = at_once | ~some[owner]
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


def least_within(
    arcs: Arcs, rooms: Callable[[int], NDArray[np.int64]], count: int, clock: Clock
) -> tuple[int, NDArray[np.int64] | None]:
    """Find the least of ``count`` rising rooms that a flow fits into, and that flow.

    The least is mostly among the first, so that steps begin short. None if the last is too small.
    """

    def flow(at: int) -> NDArray[np.int64] | None:
        return flow_within(arcs, rooms(at), clock)

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


def flow_within(arcs: Arcs, most: NDArray[np.int64], clock: Clock) -> NDArray[np.int64] | None:
    """Lead every partition within numbers, changing the fewest leaders."""
    if int(most.sum()) < arcs.count:
        return None
    flow = lead_flow(arcs, most)
    begin_flow(flow)
    while left := excess(flow):
        clock.ask("flow", arcs.count - left)
        if not measure_chains(flow):
            return None
        while rank_nodes(flow):
            follow_chains(flow)
            clock.ask("flow", arcs.count - excess(flow))
    return flow.taken


def lead_flow(arcs: Arcs, most: NDArray[np.int64]) -> LeadFlow:
    """Lay out a flow, nothing of it filled in."""
    count, nodes = arcs.count, len(most)
    of_nodes = [np.zeros(nodes, np.int64) for _ in range(8)]
    led, first, price, distance, stack, cursor, given, over = of_nodes
    return LeadFlow(
        first=arcs.first,
        node=arcs.node,
        began=arcs.began,
        taken=np.zeros(count, np.int64),
        most=most,
        leading=Leading(led, first, np.full(count, -1), np.full(count, -1)),
        price=price,
        distance=distance,
        stack=stack,
        cursor=cursor,
        given=given,
        over=over,
        settled=np.zeros(nodes, bool),
    )
