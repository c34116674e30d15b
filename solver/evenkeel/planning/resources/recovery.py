"""Recovery: nothing else begins before what lacks live replicas has them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.actions import Act, Acts
from evenkeel.planning.list_scheduler import Scheduled
from evenkeel.planning.resources.table import Resources

RECOVERY = "recovery"
"""Kind of the resource that is free once everything has what it lacked."""


def lacking(cluster: Cluster) -> NDArray[np.int64]:
    """Return how many live replicas partitions lack, (P,); 0 or less where none."""
    live = cluster.nodes.serves
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    wanted = np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.asarray(wanted - having, np.int64)


def repairs(cluster: Cluster, acts: Acts) -> NDArray[np.bool_]:
    """Return the acts, (M,), by which partitions get what they lack, and those before them.

    What a partition goes through once it lacks nothing any more is no repair.
    """
    live = np.append(cluster.nodes.serves, False)
    lack = lacking(cluster)
    comes = np.isin(acts.act, (Act.MOVE, Act.ADD)) & live[acts.target]
    comes &= ~live[cluster.placement.node[acts.replica]]
    which = np.flatnonzero(comes & (lack > 0)[acts.partition])
    # a replica that goes by a third node comes once
    which = which[np.sort(np.unique(acts.replica[which], return_index=True)[1])]
    opens = np.flatnonzero(np.diff(acts.partition[which], prepend=-1))
    place = np.arange(len(which)) - np.repeat(opens, np.diff(np.append(opens, len(which))))
    last = np.full(len(lack), -1)
    needed = which[place < lack[acts.partition[which]]]
    last[acts.partition[needed]] = needed
    return np.asarray(np.arange(len(acts)) <= last[acts.partition])


def charge_recovery(
    resources: Resources, acts: Acts, free: NDArray[np.bool_], duration: NDArray[np.float64]
) -> None:
    """Let no change begin before those that recover have finished, but for those ``free (C,)``.

    The shortest of those is the last: it waits for them, and all others for it alone, so that there
    are no more arrows than changes.
    """
    recovers = np.zeros(resources.changes, bool)
    mends = np.flatnonzero(acts.recovers & ~acts.blocked)
    recovers[acts.change[mends]] = True
    others = np.flatnonzero(~recovers & ~free)
    if not (recovers.any() and len(others)):
        return
    last = np.unique(acts.change[mends[np.diff(acts.partition[mends], append=-1) != 0]])
    last = last[[np.argmin(duration[last])]]
    before = np.setdiff1d(np.flatnonzero(recovers), last)
    base = resources.add(RECOVERY, np.zeros(2))
    if len(before):
        resources.give(np.full(len(before), base), before, np.ones(len(before)))
        resources.claim(np.array([base]), last, np.array([float(len(before))]))
    resources.give(np.array([base + 1]), last, np.array([float(len(others))]))
    resources.claim(np.full(len(others), base + 1), others, np.ones(len(others)))


def barred(
    cluster: Cluster,
    acts: Acts,
    begun: NDArray[np.bool_],
    schedule: Scheduled,
    previous: NDArray[np.int32],
) -> Scheduled:
    """Return a schedule in which all that lacks nothing waits for repairs that wait for none of it.

    Repairs that found no room by themselves hold nothing up as the plan is drafted; of those, some
    may get it from other repairs, or by a detour. As arrows lead from nothing else to them, all
    else may come after them; the last of them waits for the others, and all else for it.
    """
    count = len(schedule.start)
    starts = ~np.isnan(schedule.start)
    lacks = np.zeros(count, bool)
    lacks[acts.change[lacking(cluster)[acts.partition] > 0]] = True
    mends = np.zeros(count, bool)
    mends[acts.change[repairs(cluster, acts)]] = True
    mends &= starts
    others = ~lacks & starts & ~begun
    first = float(schedule.start[others].min(initial=np.inf))
    if not (schedule.finish[mends] > first).any():
        return schedule
    led = np.flatnonzero((previous >= 0) & starts)
    giver = np.concatenate([schedule.giver, previous[led]])
    taker = np.concatenate([schedule.taker, led.astype(np.int32)])
    own = _alone(~lacks, schedule.sequence, giver, taker)
    waited = schedule.sequence[(mends & own)[schedule.sequence]]
    if not (schedule.finish[waited] > first).any():
        return schedule
    last, held = waited[-1], np.flatnonzero(others)
    more = np.concatenate([waited[:-1], np.full(len(held), last, np.int32)])
    then = np.concatenate([np.full(len(waited) - 1, last, np.int32), held.astype(np.int32)])
    order = schedule.sequence[np.argsort(~own[schedule.sequence], kind="stable")]
    return _later(
        replace(
            schedule, sequence=order,
            giver=np.concatenate([schedule.giver, more]).astype(np.int32),
            taker=np.concatenate([schedule.taker, then]).astype(np.int32),
        ),
        previous,
    )  # fmt: skip


def _alone(
    some: NDArray[np.bool_],
    sequence: NDArray[np.int32],
    giver: NDArray[np.int32],
    taker: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Return the changes, (C,), that are none of some, and wait for none of them in any way."""
    own = ~some
    first, ahead = _rows(giver, taker, len(some))
    for c in sequence.tolist():
        if own[c] and first[c] < first[c + 1]:
            own[c] = own[ahead[first[c] : first[c + 1]]].all()
    return own


def _later(schedule: Scheduled, previous: NDArray[np.int32]) -> Scheduled:
    """Return a schedule, of which the sequence keeps to the arrows, with starts that do."""
    led = np.flatnonzero(previous >= 0)
    giver = np.concatenate([schedule.giver, previous[led]])
    taker = np.concatenate([schedule.taker, led.astype(np.int32)])
    first, ahead = _rows(giver, taker, len(previous))
    start, finish, wave = schedule.start.copy(), schedule.finish.copy(), schedule.wave.copy()
    for c in schedule.sequence.tolist():
        mine = ahead[first[c] : first[c + 1]]
        if len(mine):
            begins = max(float(start[c]), float(finish[mine].max()))
            finish[c] += begins - start[c]
            start[c], wave[c] = begins, wave[mine].max() + 1
    sequence = schedule.sequence[np.argsort(start[schedule.sequence], kind="stable")]
    return replace(schedule, start=start, finish=finish, wave=wave, sequence=sequence)


def _rows(
    giver: NDArray[np.int32], taker: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the givers of each taker begin, (C + 1,), and the givers."""
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(taker, minlength=count), out=first[1:])
    return first, giver[np.argsort(taker, kind="stable")]
