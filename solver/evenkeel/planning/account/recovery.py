"""Recovery: how long partitions are short of live replicas while a plan is carried out."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.steps import StepKind

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


def short_until(plan: "Plan") -> NDArray[np.float64]:
    """Return when each partition has as many live replicas as are wanted, (P,); inf for never.

    A replica that was nowhere, or on a node that has died, lives again when it serves on a live
    node: as its promotion or its swap has finished.
    """
    cluster, steps = plan.cluster, plan.steps
    live = np.append(cluster.nodes.serves, False)
    start = cluster.placement
    having = np.bincount(start.owner[live[start.node]], minlength=len(start))
    lack = np.maximum(cluster.partitions.replicas - having, 0)
    until = np.where(lack > 0, np.inf, 0.0)
    serves = np.isin(steps.kind, (StepKind.PROMOTE, StepKind.SWAP)) & live[steps.target]
    serves &= ~live[start.node[steps.replica]]
    # of a replica that moves twice the first time counts
    which = np.flatnonzero(serves)
    which = which[np.lexsort((steps.finish[which], steps.replica[which]))]
    which = which[np.diff(steps.replica[which], prepend=-1) != 0]
    which = which[np.lexsort((steps.finish[which], steps.partition[which]))]
    partition = steps.partition[which]
    opens = np.flatnonzero(np.diff(partition, prepend=-1))
    count = np.diff(np.append(opens, len(which)))
    owner = partition[opens]
    mended = np.flatnonzero((lack[owner] > 0) & (count >= lack[owner]))
    last = opens[mended] + lack[owner[mended]] - 1
    until[owner[mended]] = steps.finish[which[last]]
    return until
