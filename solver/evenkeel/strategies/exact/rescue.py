"""The exact way out for ``balance``: what its search left without a node, on small clusters."""

from collections import Counter
from dataclasses import replace

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.regressions import regressions
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.placement import Role
from evenkeel.strategies.exact.stages import Search, in_stages, led
from evenkeel.strategies.options import Exact
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.replica_counts import kept
from evenkeel.strategies.shared.size import size_of

EFFORT = 1.0
"""Deterministic seconds, which are the same on every machine."""


def rescued(request: Request, outcome: Outcome) -> Outcome:
    """Place and mend by CP-SAT what a search left over, if the cluster is small."""
    cluster = request.cluster
    if size_of(cluster) > Exact().largest:
        return outcome
    missing, broken = _missing(request, outcome), _broken(request, outcome)
    if missing == 0 and not broken:
        return outcome
    if outcome.stop_reason in ("time", "work", "interrupted"):
        return outcome
    search = Search(1, EFFORT, request.seed, request.watch)
    start = cluster.placement.replaced(outcome.node, outcome.leader)
    found = in_stages(cluster, request.bounds, request.limits, start, search)
    if found.node is None or found.leader is None:
        return outcome
    better = replace(outcome, node=kept(cluster, found.node))
    better = replace(better, leader=led(cluster, better.node, found.leader))
    left, after = _missing(request, better), _broken(request, better)
    mended = broken.total() - after.total()
    worse = left > missing or (left == missing and mended <= 0)
    if worse or not _is_better(request, outcome, better):
        short = _endangered(request, outcome)[2]
        if missing == left and short and found.proof.status == "optimal":
            told = f"Proven: whatever is moved, the last {short:,} of the replicas find no node."
            return replace(outcome, message=outcome.message or told)
        return outcome
    told = f"CP-SAT placed {missing - left} of {missing} replicas that the search left over."
    if left == missing:
        told = f"CP-SAT mended {mended} of {broken.total()} broken rules that the search left over."
    return replace(
        better,
        stop_reason="optimum" if found.proof.status == "optimal" else "exhausted",
        message=told,
    )


def _is_better(request: Request, found: Outcome, other: Outcome) -> bool:
    """Whether ``other`` is no worse than what came in, and leaves nothing more endangered."""
    cluster = request.cluster
    placement = cluster.placement.replaced(other.node, other.leader)
    if regressions(cluster, placement, audit(cluster, placement)):
        return False
    return _endangered(request, other) <= _endangered(request, found)


def _endangered(request: Request, outcome: Outcome) -> tuple[int, int, int]:
    """How much partitions are short of ``min_active``, of quorums, and of what they want."""
    cluster = request.cluster
    partitions, placement = cluster.partitions, cluster.placement
    lives = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)[outcome.node]
    votes = lives & (placement.role == Role.VOTER)
    count = len(partitions)
    live = np.bincount(placement.owner[lives], minlength=count)
    voting = np.bincount(placement.owner[votes], minlength=count)
    quorum = partitions.voters // 2 + 1
    return (
        int(np.maximum(partitions.min_active - live, 0).sum()),
        int(np.maximum(quorum - voting, 0)[partitions.voters > 0].sum()),
        int(np.maximum(partitions.replicas - live, 0).sum()),
    )


def _broken(request: Request, outcome: Outcome) -> Counter[str]:
    """How often hard rules of each kind are broken; not asked where a cluster is large."""
    cluster = request.cluster
    if size_of(cluster) > Exact().largest:
        return Counter()
    audited = audit(cluster, cluster.placement.replaced(outcome.node, outcome.leader))
    return Counter({kind: n for kind, n in audited.counts.items() if n and KINDS[kind].hard})


def _missing(request: Request, outcome: Outcome) -> int:
    """Replicas wanted that have no node which may hold them, and partitions that nobody leads."""
    cluster = request.cluster
    holds = np.append(cluster.nodes.may_hold, False)
    owner = cluster.placement.owner
    placed = np.bincount(owner[holds[outcome.node]], minlength=len(cluster.partitions))
    wanted = cluster.partitions.replicas
    unled = (outcome.leader < 0) & (placed > 0) & (wanted > 0)
    return int(np.maximum(wanted - placed, 0).sum()) + int(unled.sum()) * has_leaders(cluster)
