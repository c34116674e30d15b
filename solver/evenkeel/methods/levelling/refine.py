"""Refining what the search found, where replicas are few."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import exceeded
from evenkeel.methods.levelling.floors import floors_of
from evenkeel.methods.levelling.rest import height_of
from evenkeel.methods.levelling.run_state import Run, seated
from evenkeel.methods.shared.leading_slots import leading_slots
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.problem import UNLIMITED
from evenkeel_kernels.levelling.repair import must_relocate


def refine_small(run: Run) -> bool:
    """Refine what was found on a small cluster; whether what stands now comes from that.

    They count more of the budgets than the way from before takes: that is what is asked in the end.
    """
    request, cluster = run.request, run.request.cluster
    binds = run.problem.budgets.binds
    if run.stop is not None or size_of(cluster) > SMALL or (binds and run.waiting.any()):
        return False
    from evenkeel.methods.levelling.small_clusters import (
        BRIEF_PATIENCE,
        BRIEF_STEPS,
        BRIEF_STEPS_PER_PLACE,
        BRIEF_WAYS,
        Refining,
    )

    before, was = run.work, _audited(run, run.placement)
    harmed = bool(regressions(cluster, run.placement, was))

    def is_sound(node: NDArray[np.int32], leader: NDArray[np.int16]) -> bool:
        placement = cluster.placement.replaced(node, leader)
        found = _audited(run, placement)
        if any(n > was.counts[kind] for kind, n in found.counts.items()):
            return False
        return harmed or not regressions(cluster, placement, found)

    steps, patience, ways = UNLIMITED, UNLIMITED, UNLIMITED
    if not run.has_limit:
        steps = min(BRIEF_STEPS, BRIEF_STEPS_PER_PLACE * size_of(cluster))
        patience, ways = BRIEF_PATIENCE, BRIEF_WAYS
    refining = Refining(
        cluster, run.problem, seated(cluster, run.problem, run.placement, run.dropped),
        (np.where(run.dropped, -1, request.start.node), request.start.leader.copy()), _forced(run),
        run.dropped, run.most_leaders, floors_of(run), int(request.bounds.moves_level),
        request.seed, steps, patience, ways, is_sound,
        lambda done, level: run.tell("refine", before + done, level),
    )  # fmt: skip
    if not refining.found():
        return False
    better, dropped = in_their_slots(
        cluster.placement, refining.best.node, refining.best.leader, run.dropped
    )
    if not is_sound(better.node, better.leader) or exceeded(cluster, better, request.limits):
        return False
    height, stood = height_of(run), (run.state.node, run.state.leader, run.dropped)
    run.dropped = dropped
    run.restart_from(better.node, better.leader)
    if binds and height_of(run)[:2] > height[:2]:
        run.dropped = stood[2]
        run.restart_from(*stood[:2])
        return False
    return True


def _forced(run: Run) -> NDArray[np.bool_]:
    """Return what must not be where it came from, (K,), wherever the search began."""
    request, cluster = run.request, run.request.cluster
    if request.start is cluster.placement:
        return run.due
    came = seated(cluster, run.problem, cluster.placement, run.dropped)
    homeless = must_relocate(run.problem, came, cluster.nodes.may_hold)
    return run.due | (homeless & (request.start.node >= 0) & ~run.dropped)


def in_their_slots(
    before: Placement,
    node: NDArray[np.int32],
    leader: NDArray[np.int16],
    dropped: NDArray[np.bool_],
) -> tuple[Placement, NDArray[np.bool_]]:
    """Return a placement in which who stays on a node in its role stays in its slot.

    And which replicas are ``dropped (K,)`` then: where another took its place, it is that one.
    """
    node, leader, dropped = node.copy(), leader.copy(), dropped.copy()
    for p in np.unique(before.owner[(node != before.node) & (before.node >= 0)]).tolist():
        first, end = int(before.first[p]), int(before.first[p + 1])
        for k in range(first, end):
            here = before.node[k]
            for i in range(first, end) if node[k] != here >= 0 else ():
                if node[i] == here != before.node[i] and before.role[i] == before.role[k]:
                    node[i], node[k] = node[k], node[i]
                    dropped[i], dropped[k] = dropped[k], dropped[i]
                    if leader[p] in (i - first, k - first):
                        leader[p] = i + k - 2 * first - leader[p]
    return before.replaced(node, leader), dropped


def _audited(run: Run, placement: Placement) -> Audit:
    """Audit a placement with the leaders that it would be handed out with."""
    leader = leading_slots(run.request.cluster, placement.node, placement.leader)
    return audit(run.request.cluster, placement.replaced(placement.node, leader))
