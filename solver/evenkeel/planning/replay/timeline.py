"""Check that the steps of a plan are well formed, and order their starts and finishes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints, Ints32, Reals, Rows
from evenkeel.planning.steps import StepKind, Steps

BEGINNING = -1  # rank of the state before any step

# kinds of steps that promote or demote a replica on the node where it stays
RAISE, LOWER = len(StepKind), len(StepKind) + 1

KINDS = len(StepKind) + 2  # how many kinds of steps there are, these two included


@dataclass(frozen=True, eq=False)
class Timeline:
    """Ranks of all starts and finishes: greater is later, and no two events share one."""

    # At an instant, what started earlier finishes first; then steps start in the order of their
    # index, and what takes no time finishes before the next one starts.

    steps: Steps
    kind: NDArray[np.int8]
    start: Ints32
    finish: Ints32
    lasting: Flags

    @classmethod
    def of(cls, steps: Steps) -> "Timeline":
        """Sort the events of some steps, none of which finishes before it starts."""
        lasting = steps.finish > steps.start
        longer = np.flatnonzero(lasting)
        # equal times keep this order: finishes before starts, either by index
        times = np.concatenate([steps.finish[longer], steps.start])
        order = np.argsort(times, kind="stable")
        rank = np.empty(len(times), np.int32)
        rank[order] = np.arange(0, 2 * len(times), 2, dtype=np.int32)
        start = rank[len(longer) :]
        finish = start + 1
        finish[longer] = rank[: len(longer)]
        return cls(steps, _kinds(steps), start, finish, lasting)

    @property
    def end(self) -> int:
        """A rank after all events."""
        return 2 * (len(self.steps) + int(np.count_nonzero(self.lasting)))

    def time_at(self, step: Ints, rank: Ints) -> Reals:
        """Return the time of events given by step and rank; an event of no step is an end."""
        if len(self.steps) == 0:
            return np.zeros(len(step))
        last = float(self.steps.finish.max(initial=0.0))
        at = np.maximum(step, 0)
        by_step = np.where(rank == self.finish[at], self.steps.finish[at], self.steps.start[at])
        return np.where(step >= 0, by_step, np.where(rank > BEGINNING, last, 0.0))


def _kinds(steps: Steps) -> NDArray[np.int8]:
    """Return the kind of each step, those that change a role in place being of their own."""
    kind = steps.kind
    changes = (kind == StepKind.PROMOTE) | (kind == StepKind.DEMOTE)
    here = np.flatnonzero(changes & (steps.source == steps.target) & (steps.source >= 0))
    if len(here) == 0:
        return kind
    kind = kind.copy()
    kind[here] = np.where(kind[here] == StepKind.PROMOTE, RAISE, LOWER)
    return kind


def sort_by(place: Ints, places: int) -> Rows:
    """Return a stable order by place; short numbers sort many times as fast."""
    return np.argsort(place.astype(np.uint16) if places < 1 << 16 else place, kind="stable")


JOINS = (StepKind.COPY, StepKind.PROMOTE, StepKind.LEAD, StepKind.ORDER)  # kinds that need a target

LEAVES = (StepKind.DEMOTE, StepKind.REMOVE)  # kinds that need a source


FEW = 4  # predecessors of a step that are looked at before the search for indirect ones


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


def misnamed(cluster: Cluster, steps: Steps) -> Flags:
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


def mistimed(steps: Steps) -> Flags:
    """Return the steps whose times are no times, or that finish before they start; (S,)."""
    start, finish = steps.start, steps.finish
    fine = np.isfinite(start) & np.isfinite(finish) & (start >= 0.0) & (start <= finish)
    return np.asarray(~fine)


def missized(cluster: Cluster, steps: Steps) -> Flags:
    """Return the steps whose size is none: not finite, negative, or of what copies nothing."""
    size, copies = steps.size, steps.kind == StepKind.COPY
    bad = ~(np.isfinite(size) & (size >= 0.0)) | (~copies & (size != 0.0))
    if cluster.bytes_dimension >= 0:
        load, d = cluster.partitions.load, cluster.bytes_dimension
        least = np.minimum(np.minimum(load.leader[:, d], load.voter[:, d]), load.non_voter[:, d])
        whole = (cluster.placement.flags[steps.replica] & Flag.INCOMING) == 0
        bad |= copies & whole & (size < least[steps.partition] * (1.0 - ROUNDING))
    return np.asarray(bad)


def pairs(steps: Steps) -> tuple[Ints32, Ints32]:
    """Return every step that waits, beside the step that it waits for; (B,) both."""
    return np.repeat(np.arange(len(steps), dtype=np.int32), np.diff(steps.first)), steps.before


def unreached(steps: Steps, later: Ints32, earlier: Ints32) -> Flags:
    """Return the pairs in which nothing makes the later step wait for the earlier one."""
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
