"""From a loss that took no search to a result, at the cost of what changed and is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from evenkeel.measure.audit import Audit
from evenkeel.measure.audit.replicas import misplaced_in_rows
from evenkeel.measure.bounds import bounds, bounds_of_levels
from evenkeel.measure.compare import compare_losses
from evenkeel.measure.levelness import levelness
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Loss, Request
from evenkeel.methods.registry import Method
from evenkeel.methods.shared.stopping import LIMITS_REACHED, Progress
from evenkeel.model.goals import Goals
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, tell_solved
from evenkeel.verdict import (
    FEWEST_MOVES,
    GOALS_MET,
    Verdict,
    budgets_used_up,
    still_broken,
)

STAGE = "losses"
"""What a callback is told of."""


class ResultOfLoss(Result):
    """A result whose measures are taken when they are first asked for: the verdict needs none."""

    _measures: Mapping[str, Callable[[], Any]]

    def __getattr__(self, name: str) -> Any:
        measures = self.__dict__.get("_measures", {})
        if name not in measures:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__[name] = found = measures[name]()
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, tuple(getattr(self, one.name) for one in fields(Result))


def answered(chosen: Method, request: Request, loss: Loss, clock: Stopwatch) -> Result:
    """Hand out where the replicas of lost nodes go.

    The loss comes with its audit: rows that lost a replica and all nodes were judged anew, by rules
    bound apart from the search, and rows that were not touched broke none before. What was found
    sound breaks nothing but by what waits for a budget, and so the audit lists that; every node is
    within its target, so the goals are met where nothing waits.
    """
    cluster, goals, before = request.cluster, request.goals, request.cluster.placement
    assert isinstance(goals, Goals)
    lost = len(loss.replica) - loss.gave_way
    node, leader = before.node.copy(), before.leader.copy()
    node[loss.replica] = loss.node
    leader[before.owner[loss.replica]] = loss.slot
    placement = before.replaced(node, leader)
    PlacementCounts.of(cluster, placement).take_over(loss.loads, loss.replicas, loss.leaders)
    went, broken = loss.replica, Audit(cluster, ())
    if loss.waits:
        stays = loss.node == before.node[went]
        broken = Audit(cluster, tuple(misplaced_in_rows(cluster, placement, went[stays])))
        went = went[~stays]
    measures: dict[str, Callable[[], Any]] = {
        "levelness": partial(levelness, cluster, placement),
        "comparison": partial(compare_losses, cluster, placement, went, loss.moved, lost),
        "bounds": partial(bounds_of_levels, cluster, goals, lost),
    }
    if loss.waits:
        measures["bounds"] = partial(bounds, cluster, goals)
        proven = None if loss.fits else bounds_of_levels(cluster, goals)
        compared = measures["comparison"]()
        measures["comparison"] = lambda: compared
        used_up = budgets_used_up(cluster, request.limits, compared, placement.node)
        said = still_broken(cluster, proven, broken, LIMITS_REACHED, "limits", used_up)
    elif loss.gave_way:
        said = Verdict("feasible", GOALS_MET, "tolerance")
    else:
        said = Verdict("optimal", FEWEST_MOVES, "tolerance")
    clock.lap(chosen.name)
    moves, watch = len(went), request.watch
    if watch.look(Progress(STAGE, moves, watch.seconds, moves, 0.0)) == "interrupted":
        said = said._replace(stop_reason="interrupted")
    tell_solved(chosen, said, clock, moves=moves, leader_changes=0, work=moves, guard=0)
    made = object.__new__(ResultOfLoss)
    made.__dict__.update(
        **said._asdict(),
        cluster=cluster,
        placement=placement,
        method=chosen.name,
        goals=goals,
        warnings=(),
        audit=broken,
        timings=clock.laps,
        work=moves,
        seed=request.seed,
        limits=request.limits,
        _measures=measures,
    )
    return made
