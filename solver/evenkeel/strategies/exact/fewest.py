"""The fewest moves that reach the goals of a small cluster, where a search may have made too many.

A search says how few moves are proven to be needed. Where it made a few more than that, and only
there, CP-SAT looks for fewer, from what the search found: most such models are settled in
hundredths of a second.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.needs import out_of_reach
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.strategies.exact.ills import Ills, endangered, harms, worth
from evenkeel.strategies.exact.stages import FULL, SOME, Found, Search, Stages, led
from evenkeel.strategies.levelling.run import levelled
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.replica_counts import kept
from evenkeel.strategies.shared.size import size_of

LARGEST = 1_000
"""Replicas x nodes up to which it is tried."""

FAR = 3
"""So many moves above those proven to be needed are too many."""

EFFORT, AGAIN, LEADERS, LONGEST = 0.3, 0.25, 0.02, 1.0
"""Deterministic seconds for the moves, for them once more if so many are still in doubt, for who
leads after that, and for the moves where the caller says how long it may take."""


def with_fewest_moves(request: Request, outcome: Outcome) -> Outcome:
    """Reach the goals with fewer moves, if the cluster is small and that may well be.

    Or reach them at all, where the search has spent a budget on less, or has found nothing better,
    and no rule is proven to be in the way.
    """
    cluster = request.cluster
    if size_of(cluster) > LARGEST or Ills.of(request, outcome):
        return outcome
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    made = compare(cluster, cluster.placement, stands).moves
    missed = outcome.stop_reason != "tolerance"
    if not missed and made - request.bounds.moves_level < FAR:
        return outcome
    if missed and out_of_reach(cluster, levelness(cluster, stands), request.bounds.target):
        return outcome
    found = _fewest(request, stands, None if missed else made)
    if found is None or found.node is None or found.leader is None:
        return outcome
    node = kept(cluster, found.node)
    better = replace(outcome, node=node, leader=led(cluster, node, found.leader))
    if missed:
        better = replace(better, stop_reason="tolerance", message="")
    if not _is_worth_more(request, better, outcome):
        return outcome
    gaps = [stage.gap for stage in found.proof.stages if stage.name == "moves"]
    return _refined(request, better) if min(gaps, default=np.inf) >= FAR else better


def _is_worth_more(request: Request, one: Outcome, other: Outcome) -> bool:
    """Whether an answer leaves less to be wished than another, and harms nothing."""
    return worth(request, one) < worth(request, other) and not harms(request, one)


def _refined(request: Request, outcome: Outcome) -> Outcome:
    """Refine what CP-SAT, out of effort, ended with: from there fewer moves may do."""
    start = request.cluster.placement.replaced(outcome.node, outcome.leader)
    found = levelled(replace(request, start=start))
    better = replace(outcome, node=found.node, leader=found.leader)
    return better if _is_worth_more(request, better, outcome) else outcome


def _fewest(request: Request, stands: Placement, made: int | None) -> Found | None:
    """Look for the fewest moves within the targets, fewer than were ``made``; None for none.

    Where nothing within them is known yet, any is looked for first: that is found more easily.
    """
    watch = request.watch
    unhurried = watch.time_limit is not None or watch.work_limit is not None
    search = Search(1, LONGEST if unhurried else EFFORT, request.seed, watch)
    stages = Stages.of(request.cluster, request.bounds, request.limits, stands, search)
    _hold_what_is_reached(stages, stands)
    moves = sum(count for count, _, _ in stages.joins)
    if made is None:
        search.linearization = SOME
        stages.minimise("reached", 0 * moves, 1)
        if stages.answer is None:
            return None
        stages.start_from(stands)  # it has few moves, and what reaches the goals may have many
        search.effort, search.linearization = search.spent + search.effort, FULL
        search.seed += 1
    stages.minimise("moves", moves, 1)
    last = stages.last("moves")
    if last is not None and last.gap >= FAR and not unhurried:
        search.effort, search.seed = search.spent + AGAIN, search.seed + 1
        stages.minimise("moves", moves, 1)
        last = stages.last("moves")
    if made is not None and (last is None or last.value >= made):
        return None
    search.effort = search.spent + LEADERS
    stages.minimise("leader changes", sum(stages.changes), 1)
    return stages.found


def _hold_what_is_reached(stages: Stages, reached: Placement) -> None:
    """Let all be placed and led, within the targets, and no more wishes open than are."""
    seats = stages.seats
    few = sum(map(sum, seats.few))
    seats.model.add(sum(seats.missing) + sum(seats.unled) + few == 0)
    seats.model.add(sum(seats.no_quorum) <= endangered(seats.cluster, reached.node)[1])
    for one in stages.gauges:
        seats.model.add(one.reading <= one.most(0.0))
    for floor in stages.floors:
        seats.reasons.hold(floor.reading >= floor.least, "floor")
    for swapped, most in zip(seats.swapped, _swapped(seats.cluster, reached), strict=True):
        seats.model.add(swapped <= int(most))
    if len(stages.wishes) > len(seats.swapped):
        stages.minimise("wishes", sum(stages.wishes), 1)


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
