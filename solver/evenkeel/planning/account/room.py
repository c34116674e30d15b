"""Room: copies into full nodes wait for others to leave, which do so once their copies are there.

That is the longest chain of dependencies: a copy begins when enough of what stood on its node has
left for it to fit. What leaves first is taken to be what can leave soonest, and what arrives in the
meantime is left out of account; so no order of the same copies can do it sooner.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.planning.steps import StepKind, Steps

LINKS = 8
"""Links of a chain that are followed."""

ROUNDING = 1e-9
"""Part of what a node may hold that is rounding."""


def last_arrival(
    cluster: Cluster,
    target: Placement,
    steps: Steps,
    alone: NDArray[np.float64],
    exchange: NDArray[np.int32] | None,
) -> float:
    """Return when the last copy arrives at the earliest, given how long each takes ``alone``.

    Copies of the same ``exchange (S,)`` begin at once, and what they replace leaves at once.
    """
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    queues = list(_queues(cluster, target, steps, copies))
    if not queues:
        return float(alone.max(initial=0.0))
    together = np.arange(len(copies))
    if exchange is not None:
        together = np.unique(exchange[copies], return_inverse=True)[1]
    begin = np.zeros(int(together.max()) + 1)
    done = begin
    for _ in range(LINKS):
        done = np.zeros(len(begin))
        np.maximum.at(done, together, begin[together] + alone)
        later = begin.copy()
        for queue in queues:
            np.maximum.at(later, together[queue.waits], queue.admitted(done[together]))
        if np.array_equal(later, begin):
            break
        begin = later
    return float(done.max())


@dataclass(frozen=True, eq=False)
class _Queue:
    """Copies that do not fit into their nodes yet in one dimension, and what leaves those nodes.

    W copies wait, numbered among all C. L replicas leave, each when a copy is done; those whose
    copy is -1 may do so at once. A replica weighs what it does in its lightest role.
    """

    waits: NDArray[np.intp]
    node: NDArray[np.int32]
    lacks: NDArray[np.float64]
    left: NDArray[np.int32]
    frees: NDArray[np.float64]
    copy: NDArray[np.intp]

    def admitted(self, done: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when enough may have left for each copy, (W,), if copies are ``done (C,)``."""
        when = np.where(self.copy < 0, 0.0, done[self.copy])
        order = np.lexsort((when, self.left))
        when, left = when[order], self.left[order]
        freed = np.append(0.0, np.cumsum(self.frees[order]))
        first, last = (np.searchsorted(left, self.node, side) for side in ("left", "right"))
        enough = np.searchsorted(freed, freed[first] + self.lacks) - 1
        # rounding may ask for more than all that leaves
        enough = np.minimum(enough, last - 1)
        return np.where(enough >= first, when[enough], 0.0)


def _queues(
    cluster: Cluster, target: Placement, steps: Steps, copies: NDArray[np.intp]
) -> Iterator[_Queue]:
    """Yield a queue for each dimension that copies fill from their start and in which some wait."""
    placement, size = cluster.placement, cluster.partitions.load.lightest
    start, end = (PlacementCounts.of(cluster, one) for one in (placement, target))
    light = start.weighed(cluster.partitions.load.lightest_by_dimension, start.node_row)
    limit = np.maximum(np.maximum(cluster.nodes.capacity, start.loads), end.loads)
    limit[~cluster.nodes.carries] = np.inf
    under_way = (placement.flags & Flag.INCOMING) != 0
    leaves = np.flatnonzero(
        ((steps.kind == StepKind.REMOVE) | (steps.kind == StepKind.SWAP))
        & (steps.source == placement.node[steps.replica]) & (steps.source != steps.target)
    )  # fmt: skip
    replica = np.unique(steps.replica[leaves])
    copied, first = np.unique(steps.replica[copies], return_index=True)
    place = np.searchsorted(copied, replica).clip(max=len(copied) - 1)
    copy = np.where((copied[place] == replica) & ~under_way[replica], first[place], -1)
    left, partition = placement.node[replica], steps.partition[copies]
    moving = placement.owner[replica]
    for d in np.flatnonzero(cluster.transient).tolist():
        room = limit[:, d] * (1.0 + ROUNDING) - light[:, d]
        lacks = size[partition, d] - room[steps.target[copies]]
        waits = np.flatnonzero((lacks > 0.0) & ~under_way[steps.replica[copies]])
        if len(waits):
            node = steps.target[copies[waits]]
            yield _Queue(waits, node, lacks[waits], left, size[moving, d], copy)
