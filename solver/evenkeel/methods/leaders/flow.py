"""Choose leaders of a fixed placement by a network flow with the fewest leader changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import lead_ranks, partition_scope
from evenkeel.measure.elections import led_from, ready, would_lead
from evenkeel.measure.group_goals import LeadCells, LeadGoals
from evenkeel.methods.contract import Outcome
from evenkeel.methods.shared.stopping import Clock, StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel_kernels.core.leadership import no_leads
from evenkeel_kernels.leaders.fewest_changes import (
    LeadFlow,
    begin_flow,
    excess,
    follow_chains,
    measure_chains,
    rank_places,
)


@dataclass(frozen=True)
class Arcs:
    """Possible leaders: eligible replicas by partition. A arcs."""

    replica: NDArray[np.int64]  # (A,) index of each replica that may lead, ascending
    p: NDArray[np.int64]  # (A,) its partition among those that a replica can lead
    node: NDArray[np.int64]  # (A,) where it stands
    leads: NDArray[np.bool_]  # (A,) whether it leads now
    count: int  # partitions that a replica can lead

    def cells(self, cluster: Cluster, asked: LeadGoals) -> LeadCells:
        """Return the pairs of a group and a node that could lead."""
        group = cluster.partitions.group[cluster.placement.owner[self.replica]]
        return asked.cells(group, self.node)

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

    def changes(self, taken: NDArray[np.int64]) -> int:
        """Count the leaders on arcs that change where partitions are led over others, (P,)."""
        began = self.began
        return int(np.count_nonzero((taken != began) & (began >= 0)))


@dataclass(frozen=True)
class Places:
    """V places where leads are counted: nodes, and groups on nodes where goals ask for that."""

    # the places of nodes come before the last, which is all of the cluster
    of: NDArray[np.int64]  # (A,) where the leader of each arc is counted first
    least: NDArray[np.int64]  # (V,) how many leads there should be
    most: NDArray[np.int64]  # (V,) and may be
    around: NDArray[np.int64]  # (V,) the place that each is in; -1 for the last

    @classmethod
    def on_nodes(
        cls, arcs: Arcs, most: NDArray[np.int64], cells: LeadCells | None = None
    ) -> "Places":
        """Return places for up to ``most (N,)`` leads on nodes, and for ``cells`` of groups."""
        of, count, nodes = arcs.node, arcs.count, len(most)
        lead: tuple[NDArray[np.int64], ...] = ((none := np.zeros(0, np.int64)), none, none)
        if cells is not None:
            of, lead = cells.which, (cells.least, cells.most, len(cells.node) + cells.node)
        inside, whole = np.zeros(nodes, np.int64), len(lead[0]) + nodes
        return cls(
            of,
            np.concatenate([lead[0], inside, [count]]),
            np.concatenate([lead[1], np.minimum(most, count), [count]]),
            np.concatenate([lead[2], inside + whole, [-1]]),
        )

    def limited(self, most: NDArray[np.int64]) -> "Places":
        """Return the same places with other numbers on nodes, ``most (N,)``."""
        above = np.concatenate([self.most[: -1 - len(most)], most, self.most[-1:]])
        return replace(self, most=np.minimum(above, self.most[-1]))


def arcs_of(cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]) -> Arcs:
    """Find the replicas that may lead, each partition's best choices only, and none that lags."""
    placement = cluster.placement
    standing = np.flatnonzero((node >= 0) & (placement.role == Role.VOTER))
    standing = standing[cluster.nodes.may_lead[node[standing]]]
    standing = standing[would_lead(cluster, node)[standing]]
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


def led_over(
    placement: Placement, arcs: Arcs, taken: NDArray[np.int64], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Return the slots that lead where partitions are led over some arcs, the others as before."""
    replica, found = arcs.replica[taken], leader.copy()
    owner = placement.owner[replica]
    found[owner] = (replica - placement.first[owner]).astype(np.int16)
    return found


STOPPED = "Stopped early: all leaders stay."


def stays(start: Placement, reason: StopReason | None) -> Outcome:
    """Leave all leaders where they are."""
    return Outcome(
        node=start.node, leader=start.leader, stop_reason=reason or "time", message=STOPPED
    )


def least_within(
    arcs: Arcs, rooms: Callable[[int], Places], count: int, clock: Clock, changes: int | None = None
) -> tuple[int, NDArray[np.int64] | None]:
    """Find the least of ``count`` rising rooms that a flow fits into, and that flow or None.

    The flow has no more than ``changes`` of leaders, if given.
    """

    def flow(at: int) -> NDArray[np.int64] | None:
        places = rooms(at)
        if int(places.most[places.around == len(places.most) - 1].sum()) < arcs.count:
            return None
        found = flow_within(arcs, places, clock)
        beyond = changes is not None and arcs.changes(found.taken) > changes
        return None if beyond or excess(found) else found.taken

    # the least is mostly among the first, so that steps begin short
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


def flow_within(arcs: Arcs, places: Places, clock: Clock) -> LeadFlow:
    """Lead every partition, within numbers as far as can be, changing the fewest leaders."""
    flow = lead_flow(arcs, places)
    begin_flow(flow)
    while left := excess(flow):
        clock.ask(arcs.count - left)
        if not measure_chains(flow):
            break
        while rank_places(flow):
            follow_chains(flow)
            clock.ask(arcs.count - excess(flow))
    return flow


def lead_flow(arcs: Arcs, places: Places) -> LeadFlow:
    """Lay out a flow, nothing of it filled in."""
    size = len(places.most)
    of_places = [np.zeros(size, np.int64) for _ in range(9)]
    passed, surplus, price, distance, stack, cursor, within, given, over = of_places
    inner, beside = np.full(size, -1), np.full(size, -1)
    for v in range(size - 2, -1, -1):
        around = places.around[v]
        beside[v], inner[around] = inner[around], v
    return LeadFlow(
        first=arcs.first,
        place=places.of,
        began=arcs.began,
        taken=np.zeros(arcs.count, np.int64),
        least=places.least,
        most=places.most,
        around=places.around,
        inner=inner,
        beside=beside,
        passed=passed,
        surplus=surplus,
        leading=no_leads(size, arcs.count),
        price=price,
        distance=distance,
        stack=stack,
        cursor=cursor,
        within=within,
        given=given,
        over=over,
        settled=np.zeros(size, bool),
    )
