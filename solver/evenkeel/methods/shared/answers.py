"""Compare outcomes of methods by violations, missing replicas, goals and moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, audit, soft_cost
from evenkeel.measure.bounds import Bounds
from evenkeel.measure.compare import compare
from evenkeel.measure.group_goals import lead_goals
from evenkeel.measure.levelness import Levelness, levelness
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import exceeded
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.replica_counts import missing_places
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Placement, Role
from evenkeel.model.runtime.memoize import memoize

# partitions so many live replicas short of ``min_active``, or more, are equally endangered
DEEPEST = 3

NO_ROOM = 1e-6  # stands for a target of nothing where a load is compared with it


class ViolationSummary(NamedTuple):
    """Violations of a placement, the worst first."""

    few: tuple[int, ...]  # partitions short of ``min_active``, those shortest first
    no_quorum: int  # partitions without a quorum
    missing: int  # replicas wanted that are neither live nor kept where they are
    broken: int  # hard rules
    soft: float  # cost of soft rules, where these do not yield to goals

    @classmethod
    def of(cls, request: Request, outcome: Outcome) -> ViolationSummary:
        """Count them in an answer."""
        audited = audited_answer(request, outcome)[1]
        soft = 0.0 if soft_rules_yield(request) else round(soft_cost(request.cluster, audited), 9)
        return cls(*endangered(request.cluster, outcome.node), audited.hard, soft)

    @property
    def danger(self) -> tuple[tuple[int, ...], int]:
        """How many partitions are short of ``min_active``, those shortest first, or of a quorum."""
        return self.few, self.no_quorum

    @property
    def is_endangered(self) -> bool:
        """Whether some partition is short of ``min_active``, or of a quorum."""
        return any(self.few) or self.no_quorum > 0


def soft_rules_yield(request: Request) -> bool:
    """Return whether goals come before soft rules."""
    return isinstance(request.goals, Goals) and request.goals.soft_yield


def leaves_less(request: Request, one: Outcome, other: Outcome) -> bool:
    """Return whether an answer leaves less undone, the most endangered first, and no regression."""
    less = ViolationSummary.of(request, one) < ViolationSummary.of(request, other)
    return less and not regresses(request, one)


def is_better(request: Request, one: Outcome, other: Outcome) -> bool:
    """Return whether an answer has a better objective than another, and no regression."""
    less = objective_tuple(request, one) < objective_tuple(request, other)
    return less and not regresses(request, one)


def endangered(cluster: Cluster, node: NDArray[np.int32]) -> tuple[tuple[int, ...], int, int]:
    """Count partitions short of ``min_active`` and of a quorum, and replicas that are missing."""
    partitions, placement = cluster.partitions, cluster.placement
    lives = np.append(cluster.nodes.serves, False)[node]
    votes = lives & (placement.role == Role.VOTER)
    count = len(partitions)
    live = np.bincount(placement.owner[lives], minlength=count)
    kept = lives | np.append(cluster.nodes.may_hold, False)[node]
    placed = np.bincount(placement.owner[kept], minlength=count)
    voting = np.bincount(placement.owner[votes], minlength=count)
    quorum = partitions.voters // 2 + 1
    short = np.where(partitions.replicas > 0, partitions.min_active - live, 0)
    return (
        tuple(int((short > depth).sum()) for depth in range(DEEPEST - 1, -1, -1)),
        int((voting < quorum)[(partitions.voters > 0) & (partitions.replicas > 0)].sum()),
        int(np.maximum(partitions.replicas - placed, 0).sum()),
    )


def audited_answer(request: Request, outcome: Outcome) -> tuple[Placement, Audit]:
    """Return an answer's placement and its audit, made once: each is asked for many times."""
    cluster = request.cluster

    def made() -> tuple[Placement, Audit]:
        placement = cluster.placement.replaced(outcome.node, outcome.leader)
        return placement, audit(cluster, placement)

    return memoize(outcome, "audited", made, cluster)


def missing(request: Request, outcome: Outcome) -> int:
    """Return the wanted replicas without a node, and the partitions without a leader."""
    cluster = request.cluster
    lacking = missing_places(cluster, outcome.node)
    unled = (outcome.leader < 0) & (lacking < cluster.partitions.replicas)
    return int(lacking.sum()) + int(unled.sum()) * has_leaders(cluster)


def regresses(request: Request, outcome: Outcome) -> bool:
    """Return whether a violation has increased, or a budget is exceeded."""
    cluster = request.cluster
    placement, audited = audited_answer(request, outcome)
    if exceeded(cluster, placement, request.limits):
        return True
    return bool(regressions(cluster, placement, audited))


def objective_tuple(
    request: Request, outcome: Outcome
) -> tuple[int, int, float, float, float, int]:
    """Return the objective: violations, cost of soft rules, distance to the goals, moves."""
    cluster = request.cluster
    placement, audited = audited_answer(request, outcome)
    excess = _excesses(levelness(cluster, placement), request.bounds)
    worst, all_of_them = float(excess.max(initial=0.0)), float(excess.sum())
    moves = compare(cluster, cluster.placement, placement).moves
    undone = missing(request, outcome), audited.hard
    asked = lead_goals(cluster, request.goals)
    off = 0 if asked is None else int(np.abs(asked.cells_of(cluster, placement).off).sum())
    soft = round(soft_cost(cluster, audited) + off, 9)
    distance = round(worst, 9), round(all_of_them, 9)
    # where soft rules yield, the distance to the goals comes before their cost
    return *undone, *((*distance, soft) if soft_rules_yield(request) else (soft, *distance)), moves


def _excesses(level: Levelness, bounds: Bounds) -> NDArray[np.float64]:
    """How far nodes are above their targets of load and leaders, or below their floors."""
    found = []
    for held, target in ((level.loads, bounds.target), (level.leaders, bounds.leader_target)):
        bound = np.isfinite(target)
        found.append(held[bound] / np.where(target > 0.0, target, NO_ROOM)[bound] - 1.0)
    asked = bounds.floor > 0.0
    found.append(1.0 - level.loads[asked] / bounds.floor[asked])
    return np.maximum(np.concatenate(found), 0.0)
