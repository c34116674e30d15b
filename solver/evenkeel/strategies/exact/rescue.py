"""The exact way out for ``balance``: what its search left without a node, on small clusters."""

from dataclasses import replace

from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import goals_met
from evenkeel.measure.levelness import levelness
from evenkeel.strategies.exact.hopeless import is_hopeless, lacking_nodes
from evenkeel.strategies.exact.ills import Ills, endangered, is_better, missing
from evenkeel.strategies.exact.proof import Proof
from evenkeel.strategies.exact.stages import Found, Search, Stages, led
from evenkeel.strategies.options import Exact
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.replica_counts import kept
from evenkeel.strategies.shared.size import size_of
from evenkeel.strategies.shared.stopping import StopReason

EFFORT, POLISH = 0.3, 0.02
"""Deterministic seconds, the same on every machine, for placing and mending, and for the rest."""

LONGEST = 1.0
"""The same for each where the caller says how long it may take."""

PRECISION = 0.01
"""An excess over the targets this near to the least one is near enough."""


def rescued(request: Request, outcome: Outcome) -> Outcome:
    """Place and mend by CP-SAT what a search left over, if the cluster is small.

    Nothing more is tried once it is known that no more can be placed or mended in the time given.
    """
    cluster = request.cluster
    if size_of(cluster) > Exact().largest:
        return outcome
    before = Ills.of(request, outcome)
    if not before or outcome.stop_reason in ("time", "work", "interrupted"):
        return outcome
    start = cluster.placement.replaced(outcome.node, outcome.leader)
    if is_hopeless(cluster, request.limits, start, audit(cluster, start)):
        return _proven_short(request, outcome, int(lacking_nodes(cluster).sum()))
    watch = request.watch
    unhurried = watch.time_limit is not None or watch.work_limit is not None
    search = Search(1, LONGEST if unhurried else EFFORT, request.seed, watch, PRECISION)
    stages = Stages.of(cluster, request.bounds, request.limits, start, search)
    stages.place()
    better = _answered(request, outcome, stages.found)
    if better is None or not is_better(request, outcome, better):
        return _no_better(request, outcome, better, stages.found.proof)
    search.effort = search.spent + (LONGEST if unhurried else POLISH)
    stages.level_and_move()
    level = _answered(request, outcome, stages.found)
    if level is not None and is_better(request, outcome, level):
        better = level
    return _told(request, before, better, stages.found.proof)


def _answered(request: Request, outcome: Outcome, found: Found) -> Outcome | None:
    """Put an answer into an outcome; None if there is none."""
    if found.node is None or found.leader is None:
        return None
    node = kept(request.cluster, found.node)
    return replace(outcome, node=node, leader=led(request.cluster, node, found.leader))


def _no_better(request: Request, outcome: Outcome, other: Outcome | None, proof: Proof) -> Outcome:
    """Say whether it is proven that what has no node finds none."""
    if other is None or proof.status != "optimal":
        return outcome
    return _proven_short(request, outcome, missing(request, other))


def _proven_short(request: Request, outcome: Outcome, least: int) -> Outcome:
    """Say of what is short of a live replica that it must be, if ``least`` says so."""
    short = endangered(request.cluster, outcome.node)[2]
    if not short or missing(request, outcome) != least:
        return outcome
    told = f"Proven: whatever is moved, the last {short:,} of the replicas find no node."
    return replace(outcome, message=outcome.message or told)


def _told(request: Request, before: Ills, better: Outcome, proof: Proof) -> Outcome:
    """Say what was mended, and why it ends there: by the placement that is handed out."""
    cluster, after = request.cluster, Ills.of(request, better)
    placement = cluster.placement.replaced(better.node, better.leader)
    met = goals_met(levelness(cluster, placement), request.bounds)
    stop: StopReason = "tolerance" if met else "exhausted"
    if proof.status == "optimal" and (met or after):
        stop = "optimum"
    placed, mended = before.missing - after.missing, before.broken - after.broken
    told = f"CP-SAT placed {placed} of {before.missing} replicas that the search left over."
    if placed == 0:
        told = f"CP-SAT mended {mended} of {before.broken} broken rules that the search left over."
    return replace(better, stop_reason=stop, message=told)
