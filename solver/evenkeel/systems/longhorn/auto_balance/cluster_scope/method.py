"""``Longhorn(scope="cluster")``: one plan for all volumes, by space and load.

Longhorn counts the replicas of one volume at a time. Here disks are levelled by the data on them,
by what is promised on them, and by any load that the caller knows, while each volume's replicas are
spread over zones, hosts and disks as its effort asks. Least and best effort are two points of one
cost: the share of all data that is copied, plus a weight times how far the fullest disk stands
above level. The candidates are what ``balance`` reaches at falling tolerances; the cheapest stands.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.systems.longhorn.auto_balance.cluster_scope.problem import (
    SpaceProblem,
    left_alone,
    overreached,
    space_problem,
)
from evenkeel.systems.longhorn.auto_balance.cluster_scope.search import ClusterPlan, Search, pinned
from evenkeel.systems.longhorn.auto_balance.cluster_scope.volumes import Standings, standings
from evenkeel.systems.longhorn.auto_balance.degraded import stay_degraded
from evenkeel.systems.longhorn.auto_balance.redundancy import limited_redundancy
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
from evenkeel.systems.longhorn.auto_balance.system import BEST_EFFORT, LEAST_EFFORT, System
from evenkeel.systems.longhorn.auto_balance.write_back import one_by_one

EVENNESS = {LEAST_EFFORT: 0.1, BEST_EFFORT: 1.0}
"""Share of all data that it is worth to copy to bring the fullest disk down by the level itself."""

DATA = Goals(level={"bytes": 0.0})
"""What is levelled where nobody says otherwise: what is on the disks, not what is promised."""


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

    Beside volumes of best effort, those of least effort move only to mend their own spread.
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
    """Return a function that says why Longhorn's rule, or else the plan, builds no replica."""
    work = cache(lambda: AutoBalance(cluster, replace(options, scope="volume")))

    def why(volume: int) -> str:
        found = work().next_action(volume)
        return found.why if found.kind == "nothing" else "the plan has no room for another"

    return why


def _message(plan: ClusterPlan) -> str:
    told = plan.chosen
    return (
        f"Of {len(plan.points)} plans the cheapest: {told.copied:,.0f} bytes to copy, "
        f"the fullest disk {told.uneven:.1%} above level."
    )
