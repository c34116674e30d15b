"""Refining what the search found, where replicas are few."""

from evenkeel.measure.audit import Audit, audit
from evenkeel.model.placement import Placement
from evenkeel.strategies.levelling.run_state import Run, leaders_of, seated
from evenkeel.strategies.levelling.small_clusters import (
    BRIEF_STEPS,
    BRIEF_WAYS,
    LARGEST,
    Refining,
)
from evenkeel.strategies.shared.size import size_of
from evenkeel_kernels.core.problem import UNLIMITED


def refine_small(run: Run) -> bool:
    """Refine what was found on a small cluster; whether what stands now comes from that."""
    request, cluster = run.request, run.request.cluster
    if run.stop is not None or size_of(cluster) > LARGEST or run.problem.budgets.binds:
        return False
    before = run.work
    brief = not run.may_take_long
    refining = Refining(
        cluster, run.problem, seated(cluster, run.problem, run.placement, run.dropped),
        (request.start.node.copy(), request.start.leader.copy()), run.forced,
        run.most_leaders, int(request.bounds.moves_level), request.seed,
        BRIEF_STEPS if brief else UNLIMITED, BRIEF_WAYS if brief else UNLIMITED,
        lambda done, level: run.tell("refine", before + done, level),
    )  # fmt: skip
    if not refining.found():
        return False
    better = cluster.placement.replaced(refining.best.node, refining.best.leader)
    kinds = _audited(run, run.placement).counts
    if any(n > kinds[kind] for kind, n in _audited(run, better).counts.items()):
        return False
    run.restart_from(better.node, better.leader)
    return True


def _audited(run: Run, placement: Placement) -> Audit:
    """Audit a placement with the leaders that it would be handed out with."""
    leader = leaders_of(run, placement.node, placement.leader)
    return audit(run.request.cluster, placement.replaced(placement.node, leader))
