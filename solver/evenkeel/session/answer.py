"""From a loss that took no search to a result, at the cost of what changed and is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from evenkeel.measure.audit import Audit
from evenkeel.measure.bounds import bounds_of_levels
from evenkeel.measure.compare import compare_losses
from evenkeel.measure.levelness import levelness
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.goals import Goals
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, tell_solved
from evenkeel.strategies.registry import Loss, Method, Request
from evenkeel.verdict import FEWEST_MOVES, GOALS_MET, Verdict


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
    sound breaks nothing, and so the audit has nothing to list; every node is within its target, so
    the goals are met.
    """
    cluster, goals = request.cluster, request.goals
    assert isinstance(goals, Goals)
    before = cluster.placement
    moves = len(loss.replica)
    lost = moves - loss.gave_way
    node, leader = before.node.copy(), before.leader.copy()
    node[loss.replica] = loss.node
    leader[before.owner[loss.replica]] = loss.slot
    placement = before.replaced(node, leader)
    PlacementCounts.of(cluster, placement).take_over(loss.loads, loss.replicas, loss.leaders)
    if loss.gave_way:
        said = Verdict("feasible", GOALS_MET, "tolerance")
    else:
        said = Verdict("optimal", FEWEST_MOVES, "tolerance")
    clock.lap(chosen.name)
    tell_solved(chosen, said, clock, moves=moves, leader_changes=0, work=moves, guard=0)
    made = object.__new__(ResultOfLoss)
    made.__dict__.update(
        **said._asdict(),
        cluster=cluster,
        placement=placement,
        method=chosen.name,
        goals=goals,
        warnings=(),
        audit=Audit(cluster, ()),
        timings=clock.laps,
        work=moves,
        seed=request.seed,
        limits=request.limits,
        _measures={
            "levelness": partial(levelness, cluster, placement),
            "comparison": partial(
                compare_losses, cluster, placement, loss.replica, loss.moved, lost
            ),
            "bounds": partial(bounds_of_levels, cluster, goals, lost),
        },
    )
    return made
