"""``Longhorn(scope="cluster")``: one plan for all volumes, by space and load.

Longhorn counts the replicas of one volume at a time. Here disks are balanced by their data, by the
space promised on them, and by any further load of the volumes, while the replicas of each volume
are spread over zones, hosts and disks as its effort requires. Least and best effort are two points
of one cost: the share of all data that is copied, plus a weight times the excess of the fullest
disk over the mean. The candidates are the results of ``balance`` at falling tolerances; the
cheapest wins.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.bounds import Bounds, bounds
from evenkeel.measure.compare import joined
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.balance import balance
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.run import searched
from evenkeel.methods.shared.stopping import Clock, OutOfTime, Progress
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.quantities import Percent
from evenkeel.systems.longhorn.auto_balance.cluster_problem import (
    LOAD,
    SpaceProblem,
    Standings,
    left_alone,
    overreached,
    space_problem,
    standings,
    zones_first,
)
from evenkeel.systems.longhorn.auto_balance.redundancy import limited_redundancy, stay_degraded
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance, one_by_one
from evenkeel.systems.longhorn.auto_balance.system import BEST_EFFORT, LEAST_EFFORT, System

SHARES = (0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02)
"""Tolerances that are tried, as parts of the imbalance after required repairs."""

PATIENCE = 2
"""Candidates in a row that cost more than the best one before no more are tried."""

HALVINGS = 4
"""Tolerances that are tried between one that copies too much and one that does not."""

WORTH = 0.005
"""By how much the cost must fall for anything to move that need not: else a plan that was carried
out would be followed by small ones for ever."""

CUT_SHORT = ("time", "work", "interrupted")


@dataclass(frozen=True)
class Point:
    """What one tolerance leads to."""

    tolerance: float | None
    copied: float
    uneven: float
    cost: float


@dataclass(frozen=True)
class ClusterPlan:
    """What a plan for all volumes was chosen from: ``result.native``."""

    points: tuple[Point, ...]
    chosen: Point
    evenness: float
    most_copied: float


@dataclass(frozen=True)
class Search:
    """The candidates of one plan."""

    request: Request
    goals: Goals
    problem: Cluster
    evenness: float
    most_copied: float
    fewer_than: float
    clock: Clock

    def cheapest(self, *, levels: bool) -> tuple[ClusterPlan, Outcome]:
        """Return the candidate of least cost; among equals the first tried, which copies least."""
        repaired, least = self._repaired()
        best, chosen = repaired, least
        points, work = [least], repaired.work
        most = self._most(least)
        if levels and repaired.stop_reason != "limits":
            try:
                for outcome, point in self._levelled(chosen.uneven, most):
                    points.append(point)
                    work += outcome.work
                    if point.copied <= most and point.cost < chosen.cost:
                        best, chosen = outcome, point
                    reported = Progress("level", work, self.request.watch.seconds, 0, chosen.cost)
                    stop = self.request.watch.stop(reported)
                    if stop is not None or outcome.stop_reason in CUT_SHORT:
                        best = replace(best, stop_reason=stop or outcome.stop_reason)
                        break
            except OutOfTime:
                best = replace(best, stop_reason=self.clock.reason or "time")
        if chosen.cost > least.cost - WORTH:
            best, chosen = replace(repaired, stop_reason=best.stop_reason), least
        plan = ClusterPlan(tuple(points), chosen, self.evenness, most)
        return plan, replace(best, work=work)

    def _most(self, repaired: Point) -> float:
        """Return the bytes that may be copied."""
        share = repaired.copied + self.most_copied * self._everything
        own = max(share, float(np.nextafter(self.fewer_than, 0.0)))
        limit = self.request.limits.bytes
        return own if limit is None else min(own, limit)

    def _levelled(self, uneven: float, most: float) -> Iterator[tuple[Outcome, Point]]:
        """Yield what falling tolerances lead to, until they cost ever more, or too many bytes."""
        limits = replace(self.request.limits, bytes=None)
        cheapest, worse, last = np.inf, 0, uneven
        for share in SHARES if uneven > 0.0 else ():
            tolerance = share * uneven
            outcome, point = self._tried(self.problem, self._start, tolerance, limits)
            yield outcome, point
            if point.copied > most:
                yield from self._between(last, tolerance, most, limits)
                return
            last = tolerance
            worse = 0 if point.cost < cheapest else worse + 1
            cheapest = min(cheapest, point.cost)
            if worse == PATIENCE:
                return

    def _between(
        self, easy: float, tight: float, most: float, limits: Limits
    ) -> Iterator[tuple[Outcome, Point]]:
        """Yield what tolerances lead to that come ever closer to using up the bytes."""
        for _ in range(HALVINGS):
            middle = 0.5 * (easy + tight)
            outcome, point = self._tried(self.problem, self._start, middle, limits)
            yield outcome, point
            if point.copied > most:
                tight = middle
            else:
                easy = middle

    def _repaired(self) -> tuple[Outcome, Point]:
        """Repair what must be repaired, or as many volumes as the limits allow.

        Volumes that lack replicas or have some under eviction come first, then those with the least
        to copy.
        """
        limits = self.request.limits
        free = replace(limits, bytes=None, moves=None)
        outcome, point = self._tried(self.problem, self._start, None, free)
        placement, volumes = self.problem.placement, len(self.problem.partitions)
        moved = self._moved(outcome.node)
        most_bytes = np.inf if limits.bytes is None else limits.bytes
        most_moves = np.inf if limits.moves is None else limits.moves
        if point.copied <= most_bytes and len(moved) <= most_moves:
            return outcome, point
        owner = placement.owner[moved]
        forced = (placement.node[moved] < 0) | self._banned(moved)
        data = np.bincount(owner, self._data[owner], volumes)
        moves = np.bincount(owner, minlength=volumes)
        urgent = np.bincount(owner, forced, volumes) > 0
        order = np.lexsort((data, ~urgent))
        order = order[moves[order] > 0]
        fits = (np.cumsum(data[order]) <= most_bytes) & (np.cumsum(moves[order]) <= most_moves)
        left = pinned(self.problem, ~np.isin(placement.owner, order[fits]))
        outcome, point = self._tried(left, self._repaired_zones(left), None, limits)
        return replace(outcome, stop_reason="limits"), point

    def _banned(self, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which replicas stand where they may not stay."""
        nodes = len(self.problem.nodes)
        placement, forbidden = self.problem.placement, self.problem.forbidden.astype(np.int64)
        pair = placement.owner[replicas].astype(np.int64) * nodes + placement.node[replicas]
        return np.isin(pair, forbidden[:, 0] * nodes + forbidden[:, 1])

    @cached_property
    def _start(self) -> Placement:
        return self._repaired_zones(self.problem)

    def _repaired_zones(self, problem: Cluster) -> Placement:
        """Return a placement with required moves to other zones; it does not balance."""
        first = replace(problem, rules=tuple(zones_first(rule) for rule in problem.rules))
        asked = self._asked(first, problem.placement, Goals(level=None), Limits())
        repaired = balance(asked)
        return problem.placement.replaced(repaired.node, repaired.leader)

    def _tried(
        self, problem: Cluster, start: Placement, tolerance: float | None, limits: Limits
    ) -> tuple[Outcome, Point]:
        self.clock.ask("plan", 0)
        goals = Goals(
            level={name: self._target_for(name, tolerance) for name in problem.dimensions}
        )
        asked = self._asked(problem, start, goals, limits)
        outcome = searched(asked)
        copied = self._copied(outcome.node)
        uneven = self._uneven(outcome.node, asked.bounds.fair)
        cost = copied / self._everything + self.evenness * uneven
        return outcome, Point(tolerance, copied, uneven, cost)

    def _asked(self, problem: Cluster, start: Placement, goals: Goals, limits: Limits) -> Request:
        return replace(
            self.request, cluster=problem, start=start, goals=goals, limits=limits, options=None,
            proven=self._bounds(problem, goals),
        )  # fmt: skip

    def _bounds(self, problem: Cluster, goals: Goals) -> Bounds:
        """Return bounds whose targets let what cannot leave a disk be no measure for others.

        A proven level counts pinned replicas, and one disk that is full of them would let all
        others be as full.
        """
        placement = problem.placement
        free = replace(placement, flags=np.zeros_like(placement.flags))
        found = bounds(problem.with_placement(free), goals)
        fixed = (placement.flags & Flag.PINNED) != 0
        level = np.where(np.isfinite(found.fair), found.fair, 0.0) * problem.nodes.capacity
        stuck = self._held(np.where(fixed, placement.node, np.int32(-1)))
        most = np.maximum(found.target, problem.nodes.capacity)
        return replace(
            found, target=np.minimum(found.target + np.maximum(stuck - level, 0.0), most)
        )

    @cached_property
    def _everything(self) -> float:
        """Bytes of all replicas wanted; 1 where there are none, to divide by."""
        return float((self._data * self.problem.partitions.replicas).sum()) or 1.0

    @property
    def _data(self) -> NDArray[np.float64]:
        return self.problem.partitions.load.voter[:, self.problem.bytes_dimension]

    def _target_for(self, name: str, tolerance: float | None) -> float | None:
        """Return the tolerance of a dimension, no tighter than the caller's own."""
        own = 0.0 if name == LOAD else self.goals.tolerance(name)
        return None if own is None or tolerance is None else Percent(max(own, tolerance))

    def _copied(self, node: NDArray[np.int32]) -> float:
        return float(self._data[self.problem.placement.owner[self._moved(node)]].sum())

    def _moved(self, node: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the slots whose disk is new to their volume."""
        before = self.problem.placement
        return np.flatnonzero(joined(before, before.replaced(node, before.leader)))

    def _uneven(self, node: NDArray[np.int32], fair: NDArray[np.float64]) -> float:
        """How far the fullest disk that is up stands above level, or above what cannot leave it."""
        problem = self.problem
        level = np.where(np.isfinite(fair), fair, 0.0) * problem.nodes.capacity
        up = problem.nodes.alive[:, None] & (level > 0.0)
        share = np.divide(1.0, level, out=np.zeros_like(level), where=up)
        fixed = (problem.placement.flags & Flag.PINNED) != 0
        use = self._held(node) * share
        least = self._held(np.where(fixed, node, np.int32(-1))) * share
        above = use - np.maximum(least, 1.0)
        wished = [self._target_for(name, 0.0) is not None for name in problem.dimensions]
        return float(above[:, wished].max(initial=0.0))

    def _held(self, node: NDArray[np.int32]) -> NDArray[np.float64]:
        """Load on each disk, (N, D)."""
        problem = self.problem
        held = np.zeros_like(problem.nodes.capacity)
        there = np.flatnonzero(node >= 0)
        np.add.at(held, node[there], problem.partitions.load.voter[problem.placement.owner[there]])
        return held


def pinned(problem: Cluster, stays: NDArray[np.bool_]) -> Cluster:
    """Return a problem with more replicas pinned."""
    placement = problem.placement
    flags = placement.flags | np.where(stays, np.uint16(Flag.PINNED), np.uint16(0))
    return problem.with_placement(replace(placement, flags=flags))


EVENNESS = {LEAST_EFFORT: 0.1, BEST_EFFORT: 1.0}
"""Share of all data that it is worth to copy to bring the fullest disk down by the level itself."""

DATA = Goals(level={"bytes": 0.0})
"""The default goal: the data on the disks, not the space promised."""


def cluster_scope(
    request: Request, options: Longhorn, system: System, settings: Settings
) -> Outcome:
    """Plan for all volumes at once; what there is no time to plan stays as it is."""
    clock = Clock(request.watch)
    try:
        return _planned(request, options, system, settings, clock)
    except OutOfTime:
        assert clock.reason is not None
        was = request.cluster.placement
        return Outcome(
            node=was.node.copy(), leader=was.leader.copy(), stop_reason=clock.reason,
            message="There was no time for a plan: everything stays as it is.",
        )  # fmt: skip


def _planned(
    request: Request, options: Longhorn, system: System, settings: Settings, clock: Clock
) -> Outcome:
    """Plan until no volume is made worse; ``OutOfTime`` where the clock ends it before."""
    goals = _checked(request, options, system)
    clock.ask("volumes", 0)
    found = standings(request.cluster, system, settings)
    clock.ask("problem", 0)
    space = space_problem(request.cluster, system, settings, found, options.load)
    problem, effort = _of_hardest_effort(space, found)
    weight = EVENNESS[effort] if options.evenness is None else options.evenness
    share, fewer_than = _allowed(request, options, clock)
    stayed = np.zeros(len(problem.partitions), np.bool_)
    while True:
        search = Search(request, goals, problem, weight, share, fewer_than, clock)
        plan, best = search.cheapest(levels=bool(found.balanced.any()))
        too_far = overreached(space, problem, best.node)
        if not too_far.any():
            break
        # first they only get what they lack; each turn more of them are left as they are
        problem = left_alone(_staying(space, found, problem, too_far), too_far & stayed)
        stayed |= too_far
    was = request.cluster.placement
    node = _nodes(request.cluster, problem, found, space.in_own_slots(best.node))
    healthy = system.replicas.healthy | (node != was.node)
    return replace(
        best,
        node=node,
        leader=was.leader.copy(),
        message=_message(plan),
        warnings=(
            *limited_redundancy(request.cluster, node, healthy),
            *stay_degraded(request.cluster, settings, node, _why_none(request.cluster, options)),
        ),
        native=plan,
    )


def _allowed(request: Request, options: Longhorn, clock: Clock) -> tuple[float, float]:
    """Return the share of all data that may be copied, or the bytes that are too many.

    By default a plan costs no more than Longhorn's own. More would not converge:
    what a plan leaves is spread as Longhorn wants it, and looks like disks never levelled.
    """
    if options.most_copied is not None:
        return options.most_copied, 0.0
    if request.limits.bytes is not None:
        return np.inf, 0.0
    return 0.0, one_by_one(request.cluster, options, clock)


def _checked(request: Request, options: Longhorn, system: System) -> Goals:
    """Raise everything that keeps the plan from being made, together; return the goals."""
    faults = FaultList()
    known = set(system.volumes.names)
    for name in options.load or ():
        if name not in known:
            faults.add("options.load", name, "unknown volume")
    faults.raise_if_any()
    assert isinstance(request.goals, Goals)
    return DATA if request.goals == Goals() else request.goals


def _of_hardest_effort(space: SpaceProblem, found: Standings) -> tuple[Cluster, int]:
    """Return the problem for the greatest effort that some volume makes, and that effort.

    Beside volumes of best effort, those of least effort move only to repair their own spread.
    """
    problem = space.cluster
    if not (found.effort[found.balanced] == BEST_EFFORT).any():
        return problem, LEAST_EFFORT
    broken = np.zeros(len(problem.partitions), np.bool_)
    for one in broken_limits(PlacementCounts.of(problem, problem.placement)):
        broken[one.partition] = True
    content = (found.effort == LEAST_EFFORT) & ~broken
    return _staying(space, found, problem, content), BEST_EFFORT


def _staying(
    space: SpaceProblem, found: Standings, problem: Cluster, volumes: NDArray[np.bool_]
) -> Cluster:
    """Pin the replicas of some volumes that are not under eviction."""
    stays = (found.counts & ~found.leaving)[space.slot] & volumes[problem.placement.owner]
    return pinned(problem, stays)


def _nodes(
    cluster: Cluster, problem: Cluster, found: Standings, node: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return a disk for each slot; what did not count stays unless its volume is whole without."""
    owner, was = cluster.placement.owner, cluster.placement.node
    placed = np.bincount(owner[node >= 0], minlength=len(problem.partitions))
    whole = found.balanced & (placed >= problem.partitions.replicas)
    return np.where((node < 0) & ~found.counts & ~whole[owner], was, node)


def _why_none(cluster: Cluster, options: Longhorn) -> Callable[[int], str]:
    """Return a function from volumes to the reasons why no replica of them is built."""
    work = cache(lambda: AutoBalance(cluster, replace(options, scope="volume")))

    def why(volume: int) -> str:
        found = work().next_action(volume)
        return found.why if found.kind == "nothing" else "the plan has no room for another"

    return why


def _message(plan: ClusterPlan) -> str:
    reported = plan.chosen
    return (
        f"Of {len(plan.points)} plans the cheapest: {reported.copied:,.0f} bytes to copy, "
        f"the fullest disk {reported.uneven:.1%} above level."
    )
