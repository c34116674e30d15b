"""The ``leaders`` method: minimise the most leaders on any node; replicas stay where they are.

Where asked for, `evenkeel.methods.leaders.by_load` minimises the load of leaders instead.

Leaders by partition are a flow: a unit from every partition to the node of one of its voters, and
from there up to the number of leaders that a node may have. Bisection finds the least such number;
among the flows within it, the one with the fewest leader changes is taken. Leaders may weigh more
than followers: where nodes have no capacity for the leaders of the flow, a search takes over.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.group_goals import lead_goals
from evenkeel.measure.loads import has_leaders
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.leaders.flow import (
    Arcs,
    Places,
    arcs_of,
    flow_within,
    least_within,
    led_over,
    stays,
)
from evenkeel.methods.leaders.room import (
    handed_on,
    initial_leaders,
    left_as_they_came,
    overflows,
    room_of,
    within_changes,
)
from evenkeel.methods.leaders.search import OUT_OF_REACH, Bound, Levels, Search
from evenkeel.methods.options import Leaders
from evenkeel.methods.shared.stopping import Clock, OutOfTime, StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import leads_in_groups
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted
from evenkeel_kernels.leaders.fewest_changes import excess


@dataclass(frozen=True)
class LeadersProof:
    """Bound on the number of leaders, for replicas that stay where they are."""

    ratio: float  # most leaders of a node over its share by lead weight, rounded up per node
    # no choice within the limits makes it less; equal to ``ratio`` wherever nodes have room
    bound: float
    most: NDArray[np.int64]  # (N,) leaders that each node may have at that ratio
    # live leaders that are replaced; no answer with ``ratio`` has fewer where nodes have room
    changes: int
    leaderless: int  # partitions that no replica can lead, or has room to


def leaders(request: Request) -> Outcome:
    """Choose leaders so that the node that leads most, by its weight, leads as few as possible."""
    # With ``options.Leaders(by="load")``, so that the fullest node is as little loaded as possible.
    # Preferences for leaders come first: a partition is led from the best choice of its rule that
    # one of its voters is in.
    faults = FaultList()
    if not has_leaders(request.cluster):
        faults.add("cluster", "no leader", "leaders needs a cluster with leaders")
    faults.raise_if_any()
    assert isinstance(request.options, Leaders)
    if request.limits.leader_changes is not None and leads_in_groups(request.goals):
        most = request.limits.leader_changes
        faults.add("limits.leader_changes", most, "balance keeps this beside goals of groups")
        faults.raise_if_any()
    if request.options.by == "load" and leads_in_groups(request.goals):
        faults.add("goals", request.goals, "leaders of groups are levelled by number: by='number'")
        faults.raise_if_any()
    if request.options.by == "load":
        from evenkeel.methods.leaders.by_load import level_loads

        return level_loads(request)
    return _fewest(request)


def _fewest(request: Request) -> Outcome:
    """Level the numbers of leaders."""
    cluster, start, watch = request.cluster, request.start, request.watch
    arcs, most, left = within_changes(request, arcs_of(cluster, start.node, start.leader))
    share = _shares(cluster, arcs)
    asked = lead_goals(cluster, request.goals)
    cells = None if asked is None else arcs.cells(cluster, asked)
    places = Places.on_nodes(arcs, np.full(len(share), arcs.count), cells)
    clock = Clock(watch)
    begin = None
    try:
        nearest = None if asked is None else flow_within(arcs, places, clock)
        if nearest is not None and excess(nearest):
            return _near(request, arcs, nearest.taken)
        bound, chosen = _least(arcs, places, share, clock, most)
        room = room_of(cluster, start, arcs)
        if chosen is not None and overflows(arcs, room, chosen):
            if asked is not None:
                return _near(request, arcs, chosen)
            begin = initial_leaders(cluster, start, arcs, room)
            if begin.left:
                arcs = begin.arcs
                places = Places.on_nodes(arcs, np.full(len(share), arcs.count))
                bound, _ = _least(arcs, places, share, clock, most)
    except OutOfTime:
        return stays(start, clock.reason)
    ratio = bound
    work = len(arcs.replica)
    stop: StopReason = "optimum"
    if begin is not None:
        search = Search(
            _numbers(share, begin.arcs),
            Bound(bound, "", np.zeros((0, 0))),
            begin,
            request.seed,
            watch,
            most,
        )
        search.run()
        arcs, left, chosen = begin.arcs, left + begin.left, search.best
        ratio, work = search.level, search.work
        stop = watch.reason or "work"
    leader = start.leader if chosen is None else led_over(start, arcs, chosen, start.leader)
    handed = Handed.of(request, leader)
    allowed = request.limits.leader_changes
    few = "" if allowed is None else f"with at most {counted(allowed, 'leader change')}, "
    leaderless = int((cluster.partitions.replicas > 0).sum()) - arcs.count
    return Outcome(
        node=start.node,
        leader=leader,
        stop_reason=stop,
        message=f"Proven: {few}no choice of leaders has fewer on the fullest node, "
        f"and none as level change fewer than {handed.on:,}{handed.since}.{handed.takeover_note()}"
        if stop == "optimum"
        else f"Nodes have no room for the most level leaders. The node that leads most leads "
        f"{quantity(ratio)} times its share, no less than {quantity(bound)}; "
        f"{handed.on:,} leaders changed{handed.since}.{handed.takeover_note()}",
        work=work,
        warnings=left_as_they_came(left),
        native=LeadersProof(ratio, bound, _most(share, ratio), handed.on, leaderless),
    )


def _near(request: Request, arcs: Arcs, wanted: NDArray[np.int64]) -> Outcome:
    """Lead over the arcs that are nearest to the goals of groups, ``wanted (P,)``, as they fit."""
    cluster, start = request.cluster, request.start
    room, taken, left = room_of(cluster, start, arcs), wanted, 0
    stop: StopReason = "optimum"
    text = "Proven: where replicas stay, no other leaders are nearer to the goals of groups;"
    if overflows(arcs, room, wanted):
        begin = initial_leaders(cluster, start, arcs, room)
        wanted = np.flatnonzero(np.isin(begin.arcs.replica, arcs.replica[wanted]))
        arcs, taken, left = begin.arcs, handed_on(begin, wanted), begin.left
        stop = "exhausted"
        text = "Nodes have no room for the leaders that are nearest to the goals of groups;"
    leader = led_over(start, arcs, taken, start.leader)
    note = Handed.of(request, leader).takeover_note()
    return Outcome(
        node=start.node,
        leader=leader,
        stop_reason=stop,
        message=f"{text} balance moves some replicas.{note}",
        warnings=left_as_they_came(left),
        work=len(arcs.replica),
    )


def _shares(cluster: Cluster, arcs: Arcs) -> NDArray[np.float64]:
    """Return how many leaders each node should have, by its lead weight."""
    weight = np.where(cluster.nodes.may_lead, cluster.nodes.lead_weight, 0.0)
    return weight * (arcs.count / weight.sum()) if weight.any() else weight


def _numbers(share: NDArray[np.float64], arcs: Arcs) -> Levels:
    """Put numbers of leaders in units of what each node's would be."""
    one = np.where(share > 0.0, 1.0 / np.maximum(share, 1e-300), OUT_OF_REACH)
    return Levels(
        arcs,
        dimension=np.zeros(1, np.int64),
        base=np.zeros((len(share), 1)),
        share=one[arcs.node][:, None],
        target=share[:, None],
        extra=np.ones((arcs.count, 1)),
    )


def _least(
    arcs: Arcs, places: Places, share: NDArray[np.float64], clock: Clock, changes: int | None
) -> tuple[float, NDArray[np.int64] | None]:
    """Return the least ratio of leaders to shares within ``changes``, and the flow at it."""
    ratios = _ratios(share, arcs, is_free=len(places.most) > len(share) + 1)
    high, chosen = least_within(
        arcs,
        lambda at: places.limited(_most(share, float(ratios[at]))),
        len(ratios),
        clock,
        changes,
    )
    return float(ratios[high]), chosen


def _ratios(
    share: NDArray[np.float64], arcs: Arcs, *, is_free: bool = False
) -> NDArray[np.float64]:
    """Ratios of leaders to shares at which some node may lead one more, ascending."""
    # up to the one now, unless all are ``is_free``
    current = np.bincount(arcs.node[arcs.leads], minlength=len(share))
    held = np.bincount(arcs.node, minlength=len(share))
    able = (share > 0.0) & (held > 0)
    if not able.any():
        return np.zeros(1)
    top = float((held[able] / share[able]).max())
    if current.sum() == arcs.count and not is_free:
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


class Handed(NamedTuple):
    """How many partitions are led by another node than where the search began."""

    since: str  # where it began, in words; "" for the placement that came in
    on: int  # those whose leader lived: what results and limits count as changes
    over: int  # partitions whose leader is lost, or that had none, and that have one now

    @classmethod
    def of(cls, request: Request, leader: NDArray[np.int16]) -> "Handed":
        """Count them for ``leader`` (P,), slots that lead, replicas staying where they are."""
        start = request.start
        was, led = start.leader_node, start.replaced(start.node, leader).leader_node
        other, cluster = led != was, request.cluster
        lived = np.append(cluster.nodes.alive, False)[was]
        elected = (start.flags & Flag.PREFERRED) != 0
        elected &= (start.node == was[start.owner]) & (start is cluster.placement)
        since = "" if start is cluster.placement else " of where the search began"
        if elected.any():
            count = counted(int(elected.sum()), "preferred leader")
            since = f" after the election of {count}"
        return cls(since, int((other & lived).sum()), int((other & ~lived & (led >= 0)).sum()))

    def takeover_note(self) -> str:
        """Return a sentence on the lost leaders that were replaced; "" for none."""
        if not self.over:
            return ""
        return f" {counted(self.over, 'partition')} had no leader that lives."
