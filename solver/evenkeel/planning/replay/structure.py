"""Structure: whether steps name existing objects, in an order that times and waves keep."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag
from evenkeel.planning.steps import StepKind, Steps

JOINS = (StepKind.COPY, StepKind.PROMOTE, StepKind.LEAD)
"""Kinds that need a target."""

LEAVES = (StepKind.DEMOTE, StepKind.REMOVE)
"""Kinds that need a source."""


ROUNDING = 1e-9
"""Part of a size by which one that was worked out elsewhere may differ."""

FEW = 4
"""Predecessors of a step that are looked at before the search for indirect ones."""


def check_shapes(faults: FaultList, steps: Steps) -> None:
    """Note arrays of steps whose lengths do not agree: these are no steps at all."""
    count = len(steps)
    for name in ("partition", "replica", "source", "target", "size", "start", "finish", "wave"):
        shape = getattr(steps, name).shape
        if shape != (count,):
            faults.add(f"steps.{name}", shape, f"needs shape ({count},)")
    first, before = steps.first, steps.before
    if first.shape != (count + 1,):
        faults.add("steps.first", first.shape, f"needs shape ({count + 1},)")
    elif first[0] != 0 or first[-1] != len(before) or (np.diff(first) < 0).any():
        faults.add("steps.first", len(before), "does not cut the predecessors into rows")


def misnamed(cluster: Cluster, steps: Steps) -> NDArray[np.bool_]:
    """Return the steps that name what there is not, or lack an end that their kind needs; (S,)."""
    nodes, partitions = len(cluster.nodes), len(cluster.partitions)
    kind, source, target = steps.kind, steps.source, steps.target
    bad = (kind < 0) | (kind > max(StepKind))
    for node in (source, target):
        bad |= (node < -1) | (node >= nodes)
    bad |= np.isin(kind, JOINS) & (target < 0)
    bad |= np.isin(kind, LEAVES) & (source < 0)
    bad |= (kind == StepKind.SWAP) & (source < 0) & (target < 0)
    unknown = (steps.partition < 0) | (steps.partition >= partitions)
    if partitions:
        at = np.where(unknown, 0, steps.partition)
        first = cluster.placement.first
        unknown |= (steps.replica < first[at]) | (steps.replica >= first[at + 1])
    return np.asarray(bad | unknown)


def mistimed(steps: Steps) -> NDArray[np.bool_]:
    """Return the steps whose times are no times, or that finish before they start; (S,)."""
    start, finish = steps.start, steps.finish
    fine = np.isfinite(start) & np.isfinite(finish) & (start >= 0.0) & (start <= finish)
    return np.asarray(~fine)


def missized(cluster: Cluster, steps: Steps) -> NDArray[np.bool_]:
    """Return the steps whose size is none: not finite, negative, or of what copies nothing.

    Nor may it be less than the replica has, unless a part of that is there already.
    """
    size, copies = steps.size, steps.kind == StepKind.COPY
    bad = ~(np.isfinite(size) & (size >= 0.0)) | (~copies & (size != 0.0))
    if cluster.bytes_dimension >= 0:
        load, d = cluster.partitions.load, cluster.bytes_dimension
        least = np.minimum(np.minimum(load.leader[:, d], load.voter[:, d]), load.non_voter[:, d])
        whole = (cluster.placement.flags[steps.replica] & Flag.INCOMING) == 0
        bad |= copies & whole & (size < least[steps.partition] * (1.0 - ROUNDING))
    return np.asarray(bad)


def pairs(steps: Steps) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return every step that waits, beside the step that it waits for; (B,) both."""
    return np.repeat(np.arange(len(steps), dtype=np.int32), np.diff(steps.first)), steps.before


def unreached(
    steps: Steps, later: NDArray[np.int32], earlier: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return the pairs in which nothing makes the later step wait for the earlier one.

    Steps wait for lower ones alone, so a search backwards ends where it falls below the earlier.
    """
    lacks = np.zeros(len(later), bool)
    count = max(len(steps), 1)
    # most are direct, and most steps wait for few
    start, end = steps.first[later], steps.first[later + 1]
    direct = later == earlier
    for i in range(min(int((end - start).max(initial=0)), FEW)):
        at = np.minimum(start + i, len(steps.before) - 1)
        direct |= (steps.before[at] == earlier) & (start + i < end)
    which = np.flatnonzero(~direct)
    lacks[which] = True
    here = later[which].astype(np.int64)
    while len(which):
        length = steps.first[here + 1] - steps.first[here]
        laid = np.cumsum(length) - length
        each = np.repeat(np.arange(len(here)), length)
        ahead = steps.before[np.arange(len(each)) + (steps.first[here] - laid)[each]].astype(
            np.int64
        )
        which = which[each]
        lacks[which[ahead == earlier[which]]] = False
        on = lacks[which] & (ahead > earlier[which])
        # a step may be reached on many ways
        seen = np.unique(which[on] * count + ahead[on])
        which, here = np.divmod(seen, count)
    return lacks
