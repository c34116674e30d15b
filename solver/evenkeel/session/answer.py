"""From a loss that took no search to a result: measured and audited at the cost of what changed."""

from evenkeel.measure.audit import Audit
from evenkeel.measure.bounds import bounds_of_levels
from evenkeel.measure.compare import compare_losses
from evenkeel.measure.levelness import levelness
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.goals import Goals
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, judged
from evenkeel.strategies.registry import Loss, Method, Outcome, Request
from evenkeel.strategies.run import Run
from evenkeel.verdict import Found


def answered(
    chosen: Method, request: Request, loss: Loss, clock: Stopwatch, *, goals_given: bool
) -> Result:
    """Hand out where the replicas of lost nodes go.

    The loss comes with its audit: rows that lost a replica and all nodes were judged anew, by rules
    bound apart from the search, and rows that were not touched broke none before. What was found
    sound breaks nothing, and so the audit has nothing to list.
    """
    cluster, goals = request.cluster, request.goals
    assert isinstance(goals, Goals)
    before = cluster.placement
    lost = len(loss.replica) - loss.gave_way
    node, leader = before.node.copy(), before.leader.copy()
    node[loss.replica] = loss.node
    leader[before.owner[loss.replica]] = loss.slot
    placement = before.replaced(node, leader)
    PlacementCounts.of(cluster, placement).take_over(loss.loads, loss.replicas, loss.leaders)
    outcome = Outcome(
        node=placement.node, leader=placement.leader, stop_reason="tolerance",
        work=len(loss.replica),
    )  # fmt: skip
    clock.lap(chosen.name)
    found = Found(
        Audit(cluster, ()),
        levelness(cluster, placement),
        compare_losses(cluster, placement, loss.replica, loss.moved, lost),
        bounds_of_levels(cluster, goals, lost),
    )
    clock.lap("bounds")
    run = Run(request, outcome, placement, found.audit, 0, {})
    return judged(chosen, run, found, clock, goals_given=goals_given)
