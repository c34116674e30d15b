"""The guard: whatever a method does, its result is no worse than what came in."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.regressions import baselines_of, regressions
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement

ROUNDS = 3
"""How often partitions are put back before everything is."""


class Guarded(NamedTuple):
    """What the guard lets pass: a placement, its audit, and how often it had to strike."""

    placement: Placement
    audit: Audit
    strikes: int
    reason: str


def guarded(
    cluster: Cluster, placement: Placement, enough: NDArray[np.int32] | None = None
) -> Guarded:
    """Put back the partitions that became worse than before; all of them, if need be.

    None is worse for having ``enough (P,)`` live replicas, where it wants more.
    """
    before = cache(lambda: baselines_of(cluster))
    audited = audit(cluster, placement)
    found = regressions(cluster, placement, audited, before, enough)
    if not found:
        return Guarded(placement, audited, 0, "")
    strikes = found.count
    said = ", ".join(f"{count:,} {kind}" for kind, count in found.counts.items())
    restored = np.zeros(len(placement), bool)
    for _ in range(ROUNDS):
        again = found.partitions & ~restored
        if not again.any():
            break
        restored |= again
        placement = _put_back(cluster.placement, placement, again)
        audited = audit(cluster, placement)
        found = regressions(cluster, placement, audited, before, enough)
        if not found:
            reason = f"{int(restored.sum()):,} partitions stay as they came; else worse: {said}."
            return Guarded(placement, audited, strikes, reason)
    reason = f"Everything stays as it came; what was found would be worse: {said}."
    return Guarded(cluster.placement, before()[0], strikes, reason)


def _put_back(before: Placement, after: Placement, which: NDArray[np.bool_]) -> Placement:
    """Return a placement with some partitions as they were before."""
    rows = which[after.owner]
    return after.replaced(
        np.where(rows, before.node, after.node), np.where(which, before.leader, after.leader)
    )
