"""The ``balance`` method: level to the goals or minimise a cost, with CP-SAT where search fails."""

from dataclasses import replace

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost
from evenkeel.strategies.levelling.run import levelled, searched
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.size import SMALL, size_of

AGAIN = 2
"""How often a search goes on from what it found, each time with less undone."""

SETTLED = ("tolerance", "limits", "exhausted")
"""Reasons to stop after which a small cluster is looked at once more."""


def balance(request: Request) -> Outcome:
    """Mend, place and level with the fewest moves; or, with a ``Cost``, minimise it from there."""
    if isinstance(request.goals, Cost):
        return _mended_then_minimised(request)
    cluster = request.cluster
    outcome = _searched_on(request, levelled(request))
    if size_of(cluster) > SMALL:
        return outcome
    if (
        (outcome.node < 0).any()
        or not cluster.nodes.may_hold.all()
        or not audit(cluster, cluster.placement.replaced(outcome.node, outcome.leader)).ok
    ):
        from evenkeel.strategies.exact.rescue import rescued

        outcome = rescued(request, outcome)
    if outcome.stop_reason in SETTLED:
        from evenkeel.strategies.exact.fewest import with_fewest_moves

        return with_fewest_moves(request, outcome)
    return outcome


def _searched_on(request: Request, outcome: Outcome) -> Outcome:
    """Search on from what was found on a large cluster, for as long as that leaves less undone.

    Where the nodes together lack the room for all, what was found stands.
    """
    cluster = request.cluster
    if size_of(cluster) <= SMALL or (request.bounds.level > 1.0).any():
        return outcome
    for _ in range(AGAIN):
        if outcome.stop_reason == "tolerance" and _is_led(cluster, outcome):
            break
        if outcome.stop_reason not in ("tolerance", "exhausted"):
            break
        from evenkeel.strategies.exact.ills import harms, worth

        start = cluster.placement.replaced(outcome.node, outcome.leader)
        found = searched(replace(request, start=start), work=outcome.work)
        if harms(request, found) or worth(request, found) >= worth(request, outcome):
            break
        timings = dict(outcome.timings)
        for stage, seconds in found.timings.items():
            timings[stage] = timings.get(stage, 0.0) + seconds
        outcome = replace(found, timings=timings)
    return outcome


def _is_led(cluster: Cluster, outcome: Outcome) -> bool:
    """Whether all who lead may lead where they stand."""
    leads = cluster.placement.replaced(outcome.node, outcome.leader).leader_node
    return bool(np.append(cluster.nodes.may_lead, True)[leads].all())


def _mended_then_minimised(request: Request) -> Outcome:
    """Place and mend what must be, then minimise the cost from there."""
    from evenkeel.strategies.cost.method import reassign

    mended = searched(request)
    if mended.stop_reason in ("time", "interrupted"):
        return mended
    start = request.cluster.placement.replaced(mended.node, mended.leader)
    found = reassign(replace(request, start=start))
    return replace(found, node=np.where(found.node < 0, mended.node, found.node))
