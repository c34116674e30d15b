"""The ``balance`` method: search for goals or minimise a cost; CP-SAT where the search fails."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.run import levelled, placed_and_led, searched
from evenkeel.methods.shared.answers import audited_answer, is_better
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost

AGAIN = 2  # how often a search goes on from what it found, each time with less undone
# reasons to stop after which a small cluster is looked at once more
SETTLED = ("tolerance", "limits", "exhausted")


def balance(request: Request) -> Outcome:
    """Repair, place and balance with the fewest moves; with a ``Cost``, minimise it from there."""
    if isinstance(request.goals, Cost):
        return _repair_then_minimise(request)
    cluster = request.cluster
    outcome = _searched_on(request, levelled(request))
    if size_of(cluster) > SMALL:
        return outcome
    if any(audited_answer(request, outcome)[1].counts.values()):
        from evenkeel.methods.exact.method import rescued

        outcome = rescued(request, outcome, levelled)
    if outcome.stop_reason in SETTLED:
        from evenkeel.methods.exact.method import with_fewest_moves

        return with_fewest_moves(request, outcome)
    return outcome


def _searched_on(request: Request, outcome: Outcome) -> Outcome:
    """Search on from what was found on a large cluster, for as long as that leaves less undone."""
    cluster = request.cluster
    if size_of(cluster) <= SMALL or (request.bounds.level > 1.0).any():
        return outcome
    for _ in range(AGAIN):
        if _is_settled(cluster, outcome):
            return outcome
        found = _less_undone(request, outcome, searched)
        if found is None:
            break
        outcome = found
    if _is_settled(cluster, outcome):
        return outcome
    return _less_undone(request, outcome, placed_and_led) or outcome


def _is_settled(cluster: Cluster, outcome: Outcome) -> bool:
    """Return whether no search would go on: all is reached and led, or its time is over."""
    if outcome.stop_reason == "tolerance":
        return _is_led(cluster, outcome)
    return outcome.stop_reason != "exhausted"


def _less_undone(
    request: Request, outcome: Outcome, search: Callable[..., Outcome]
) -> Outcome | None:
    """Return the result of a search from an answer, if it has a better objective."""
    found = search(request.resumed_from(outcome), work=outcome.work)
    if not is_better(request, found, outcome):
        return None
    timings = dict(outcome.timings)
    for phase, seconds in found.timings.items():
        timings[phase] = timings.get(phase, 0.0) + seconds
    return replace(found, timings=timings)


def _is_led(cluster: Cluster, outcome: Outcome) -> bool:
    """Return whether all leaders may lead on their nodes."""
    leads = cluster.placement.replaced(outcome.node, outcome.leader).leader_node
    return bool(np.append(cluster.nodes.may_lead, True)[leads].all())


def _repair_then_minimise(request: Request) -> Outcome:
    """Place and repair what must be, then minimise the cost from there."""
    from evenkeel.methods.cost import reassign

    repaired = searched(request)
    if repaired.stop_reason in ("time", "interrupted"):
        return repaired
    found = reassign(request.resumed_from(repaired))
    return replace(found, node=np.where(found.node < 0, repaired.node, found.node))
