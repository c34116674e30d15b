"""CP-SAT search for the fewest moves that reach the goals of a small cluster.

Bounds prove how few moves are needed. Where the search made a few more than that, and only
there, CP-SAT looks for fewer, from what the search found: most such models are settled in
hundredths of a second.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import out_of_reach
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.exact.stages import FULL, SOME, Found, Proof, Search, Stages
from evenkeel.methods.exact.variables import (
    CutShort,
    ViolationSummary,
    endangered,
    objective_tuple,
    regresses,
)
from evenkeel.methods.levelling.run import levelled, well_led
from evenkeel.methods.shared.leading_slots import leading_slots
from evenkeel.methods.shared.replica_counts import kept
from evenkeel.methods.shared.size import size_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role

LARGEST = 1_000
"""Replicas x nodes up to which it is tried."""

FAR = 3
"""So many moves above those proven to be needed are too many."""

EFFORT, AGAIN, LEADERS, LONGEST = 0.1, 0.7, 0.02, 1.0
"""Deterministic seconds for the moves, for them where too many are left after all, for who leads
after that, and for the moves where a time limit is given."""

ROUNDS = 6
"""Refinements where moves are still too many: better and sooner than more CP-SAT."""


def with_fewest_moves(request: Request, outcome: Outcome) -> Outcome:
    """Reach the goals with fewer moves, if the cluster is small and that may well be.

    Or reach them at all, where the search has spent a budget on less, or has found nothing better,
    and no rule is proven to be in the way.
    """
    cluster = request.cluster
    if size_of(cluster) > LARGEST or ViolationSummary.of(request, outcome):
        return outcome
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    made = compare(cluster, cluster.placement, stands).moves
    missed = outcome.stop_reason != "tolerance"
    if not missed and made - request.bounds.moves_level < FAR:
        return outcome
    if missed and out_of_reach(cluster, levelness(cluster, stands), request.bounds.target):
        return outcome
    effort = LONGEST if request.watch.has_limit else EFFORT
    found = _fewest(request, stands, None if missed else made, effort)
    proven = [int(one.bound) for one in found.proof.stages if one.name == "moves"]
    better, least = _better_of(request, outcome, found), max([request.bounds.moves_level, *proven])
    if better is outcome and missed:
        return outcome
    best = _refined(request, better, least)
    stands = cluster.placement.replaced(best.node, best.leader)
    made = compare(cluster, cluster.placement, stands).moves
    if request.watch.has_limit or made - least < FAR or request.watch.reason is not None:
        return best
    other = replace(request, seed=request.seed + 1)  # the same seed would go the same way
    return _better_of(request, best, _fewest(other, stands, made, AGAIN))


def _better_of(request: Request, outcome: Outcome, found: Found) -> Outcome:
    """Return the answer found if it has a better objective, else the outcome."""
    if found.node is None or found.leader is None:
        return outcome
    node = kept(request.cluster, found.node)
    leader = leading_slots(request.cluster, node, found.leader)
    answer = replace(outcome, node=node, leader=leader)
    if outcome.stop_reason != "tolerance":
        answer = replace(answer, stop_reason="tolerance", message="")
    answer = well_led(request, answer)
    return answer if _is_worth_more(request, answer, outcome) else outcome


def _is_worth_more(request: Request, one: Outcome, other: Outcome) -> bool:
    """Return whether an answer has a better objective than another, and no regression."""
    return objective_tuple(request, one) < objective_tuple(request, other) and not regresses(
        request, one
    )


def _refined(request: Request, outcome: Outcome, least: int) -> Outcome:
    """Refine an answer far above the ``least`` moves repeatedly, each time from the best."""
    cluster, best = request.cluster, outcome
    for again in range(1 if request.watch.has_limit else ROUNDS):
        if request.watch.reason is not None:
            break
        start = cluster.placement.replaced(best.node, best.leader)
        if compare(cluster, cluster.placement, start).moves - least < FAR:
            break
        found = levelled(replace(request.resumed_from(best), seed=request.seed + again))
        better = replace(best, node=found.node, leader=found.leader)
        if _is_worth_more(request, better, best):
            best = better
    return best


def _fewest(request: Request, stands: Placement, made: int | None, effort: float) -> Found:
    """Look for the fewest moves within the targets, fewer than were ``made``; None for none.

    Where nothing within them is known yet, any is looked for first: that is found more easily.
    """
    search = Search(1, effort, request.seed, request.watch)
    try:
        stages = Stages.of(request.cluster, request.bounds, request.limits, stands, search)
    except CutShort:
        return Found(None, None, Proof("unknown"))
    _hold_what_is_reached(stages, stands)
    moves = sum(count for count, _, _ in stages.joins)
    if made is None:
        search.linearization = SOME
        stages.minimise("reached", 0 * moves, 1)
        if stages.answer is None:
            return stages.found
        stages.start_from(stands)  # it has few moves, and what reaches the goals may have many
        search.effort, search.linearization = search.spent + search.effort, FULL
        search.seed += 1
    stages.minimise("moves", moves, 1)
    last = stages.last("moves")
    if made is None or (last is not None and last.value < made):
        search.effort = search.spent + LEADERS
        stages.minimise("leader changes", stages.handed_on, 1)
        return stages.found
    return Found(None, None, stages.found.proof)


def _hold_what_is_reached(stages: Stages, reached: Placement) -> None:
    """Let all be placed and led, within the targets, and no more soft terms open than are."""
    variables = stages.variables
    few = sum(map(sum, variables.few))
    variables.model.add(sum(variables.missing) + sum(variables.unled) + few == 0)
    variables.model.add(sum(variables.no_quorum) <= endangered(variables.cluster, reached.node)[1])
    for one in stages.gauges:
        variables.model.add(one.reading <= one.most(0.0))
    for floor in stages.floors:
        variables.reasons.hold(floor.reading >= floor.least, "floor")
    for swapped, most in zip(variables.swapped, _swapped(variables.cluster, reached), strict=True):
        variables.model.add(swapped.amount <= int(most))
    if len(stages.soft_terms) > len(variables.swapped):
        stages.meet_soft_terms()


def _swapped(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Count the replicas of each partition that vote, or do not, beyond those that should."""
    partitions, count = cluster.partitions, len(cluster.partitions)
    voters = np.minimum(partitions.voters, partitions.replicas)
    votes = placement.role == Role.VOTER
    stands = np.append(cluster.nodes.may_hold, False)[placement.node]
    voting = np.bincount(placement.owner[stands & votes], minlength=count)
    others = np.bincount(placement.owner[stands & ~votes], minlength=count)
    most: NDArray[np.int64] = np.maximum(voting - voters, others - (partitions.replicas - voters))
    return np.maximum(most, 0)
