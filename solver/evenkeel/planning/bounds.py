"""Bounds: how long a plan takes at least, under its throttle, in whatever order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import Throttle


@dataclass(frozen=True)
class MakespanBound:
    """Seconds that no order of the same copies can beat, and why.

    Parameters
    ----------
    seconds : float
        The bound.
    term : str
        What proves it: "the longest copy", "copies into a node", "bytes out of a node", ...
    """

    seconds: float
    term: str


def makespan_bound(steps: Steps, throttle: Throttle) -> MakespanBound:
    """Return the greatest of what copies take alone, and nodes and the cluster take for theirs.

    A copy is no faster than all the bandwidth of a node; without bandwidths every copy lasts one
    second. So many copies through so few slots need as many rounds of the shortest copy at least,
    and as much time as their seconds add up to.
    """
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    if len(copies) == 0:
        return MakespanBound(0.0, "nothing is copied")
    size = steps.size[copies]
    widths = [throttle.node_bandwidth, throttle.cluster_bandwidth]
    fastest = min((one for one in widths if one is not None), default=None)
    alone = np.ones(len(copies)) if fastest is None else size / fastest
    found = [(float(alone.max()), "the longest copy")]
    everything = np.zeros(len(copies), np.int64)
    ends = (
        ("into a node", steps.target[copies], throttle.node_in, throttle.node_bandwidth),
        ("out of a node", steps.source[copies], throttle.node_out, throttle.node_bandwidth),
        ("in all", everything, throttle.copies, throttle.cluster_bandwidth),
    )
    for name, where, slots, width in ends:
        if slots is not None:
            found.append((_by_slots(where, alone, slots), f"copies {name}"))
        if width is not None:
            total = np.bincount(where + 1, size)[1:].max(initial=0.0)
            found.append((float(total) / width, f"bytes {name}"))
    chain = np.bincount(steps.partition[copies], alone) if throttle.partition_copies == 1 else alone
    found.append((float(chain.max()), "copies of a partition"))
    return MakespanBound(*max(found, key=lambda one: one[0]))


def _by_slots(where: NDArray[np.integer], alone: NDArray[np.float64], slots: int) -> float:
    """Return the least time for copies of which each place has so many at once."""
    count = np.bincount(where + 1)[1:]
    work = np.bincount(where + 1, alone)[1:]
    rounds = -(-count // slots) * float(alone.min())
    return float(np.maximum(rounds, work / slots).max(initial=0.0))
