"""Recovery first: no other change begins before partitions have their live replicas again."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.list_scheduler import Resources, Timetable

RECOVERY = "recovery"
"""Kind of the resource that is free once everything has what it lacked."""


def lacking(cluster: Cluster) -> NDArray[np.int64]:
    """Return how many live replicas partitions lack, (P,); 0 or less where none."""
    live = cluster.nodes.serves
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    wanted = np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.asarray(wanted - having, np.int64)


def repairs(cluster: Cluster, actions: Actions) -> NDArray[np.bool_]:
    """Return the actions, (M,), by which partitions get what they lack, and those before them.

    What a partition goes through once it lacks nothing any more is no repair.
    """
    live = np.append(cluster.nodes.serves, False)
    lack = lacking(cluster)
    comes = np.isin(actions.action, (Action.MOVE, Action.ADD)) & live[actions.target]
    comes &= ~live[cluster.placement.node[actions.replica]]
    which = np.flatnonzero(comes & (lack > 0)[actions.partition])
    # a replica that goes by a third node comes once
    which = which[np.sort(np.unique(actions.replica[which], return_index=True)[1])]
    opens = np.flatnonzero(np.diff(actions.partition[which], prepend=-1))
    place = np.arange(len(which)) - np.repeat(opens, np.diff(np.append(opens, len(which))))
    last = np.full(len(lack), -1)
    needed = which[place < lack[actions.partition[which]]]
    last[actions.partition[needed]] = needed
    return np.asarray(np.arange(len(actions)) <= last[actions.partition])


def charge_recovery(
    resources: Resources, actions: Actions, free: NDArray[np.bool_], duration: NDArray[np.float64]
) -> None:
    """Let no change begin before those that recover have finished, but for those ``free (C,)``.

    The shortest of those is the last: it waits for them, and all others for it alone, so that there
    are no more dependencies than changes.
    """
    recovers = np.zeros(resources.changes, bool)
    repairing = np.flatnonzero(actions.recovers & ~actions.blocked)
    recovers[actions.change[repairing]] = True
    others = np.flatnonzero(~recovers & ~free)
    if not (recovers.any() and len(others)):
        return
    last = np.unique(
        actions.change[repairing[np.diff(actions.partition[repairing], append=-1) != 0]]
    )
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
    actions: Actions,
    begun: NDArray[np.bool_],
    timetable: Timetable,
    previous: NDArray[np.int32],
) -> Timetable:
    """Return a schedule in which all that lacks nothing waits for repairs that wait for none of it.

    Repairs that found no room by themselves hold nothing up as the plan is drafted; of those, some
    may get it from other repairs, or by a detour. As no other dependency leads to them, all
    else may come after them; the last of them waits for the others, and all else for it.
    """
    count = len(timetable.start)
    starts = ~np.isnan(timetable.start)
    lacks = np.zeros(count, bool)
    lacks[actions.change[lacking(cluster)[actions.partition] > 0]] = True
    repairing = np.zeros(count, bool)
    repairing[actions.change[repairs(cluster, actions)]] = True
    repairing &= starts
    others = ~lacks & starts & ~begun
    first = float(timetable.start[others].min(initial=np.inf))
    if not (timetable.finish[repairing] > first).any():
        return timetable
    led = np.flatnonzero((previous >= 0) & starts)
    giver = np.concatenate([timetable.giver, previous[led]])
    taker = np.concatenate([timetable.taker, led.astype(np.int32)])
    own = _alone(~lacks, timetable.sequence, giver, taker)
    waited = timetable.sequence[(repairing & own)[timetable.sequence]]
    if not (timetable.finish[waited] > first).any():
        return timetable
    last, held = waited[-1], np.flatnonzero(others)
    more = np.concatenate([waited[:-1], np.full(len(held), last, np.int32)])
    then = np.concatenate([np.full(len(waited) - 1, last, np.int32), held.astype(np.int32)])
    order = timetable.sequence[np.argsort(~own[timetable.sequence], kind="stable")]
    return _later(
        replace(
            timetable, sequence=order,
            giver=np.concatenate([timetable.giver, more]).astype(np.int32),
            taker=np.concatenate([timetable.taker, then]).astype(np.int32),
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


def _later(timetable: Timetable, previous: NDArray[np.int32]) -> Timetable:
    """Return a schedule, of which the sequence keeps to the dependencies, with starts that do."""
    led = np.flatnonzero(previous >= 0)
    giver = np.concatenate([timetable.giver, previous[led]])
    taker = np.concatenate([timetable.taker, led.astype(np.int32)])
    first, ahead = _rows(giver, taker, len(previous))
    start, finish, wave = timetable.start.copy(), timetable.finish.copy(), timetable.wave.copy()
    for c in timetable.sequence.tolist():
        mine = ahead[first[c] : first[c + 1]]
        if len(mine):
            begins = max(float(start[c]), float(finish[mine].max()))
            finish[c] += begins - start[c]
            start[c], wave[c] = begins, wave[mine].max() + 1
    sequence = timetable.sequence[np.argsort(start[timetable.sequence], kind="stable")]
    return replace(timetable, start=start, finish=finish, wave=wave, sequence=sequence)


def _rows(
    giver: NDArray[np.int32], taker: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the givers of each taker begin, (C + 1,), and the givers."""
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(taker, minlength=count), out=first[1:])
    return first, giver[np.argsort(taker, kind="stable")]
