"""Expand: from acts with a start and a finish to single steps with what each waits for."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.acts import Act, Acts
from evenkeel.planning.resources.copies import Copies
from evenkeel.planning.steps import StepKind, Steps
from evenkeel_kernels.planning.schedule import Schedule

COPIED, SETTLED, REMOVED = range(3)
"""Stages of a change: all copies, then who serves and who leads, then what is left behind."""

Row = tuple[
    NDArray[np.bool_], int, StepKind, NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]
]
"""Which acts have a step, its stage, kind, replica, source and target."""


def steps_of(
    acts: Acts,
    copies: Copies,
    split: NDArray[np.bool_],
    schedule: Schedule,
    previous: NDArray[np.int32],
) -> tuple[Steps, NDArray[np.int32]]:
    """Return the steps of all changes that were started, in the order in which they were."""
    count = int(schedule.counts[0])
    position = np.full(len(schedule.start), -1, np.int64)
    position[schedule.sequence[:count]] = np.arange(count)
    table = _rows(acts, copies, split)
    found, keys = [], []
    for i, (which, stage, kind, replica, source, target) in enumerate(table):
        act = np.flatnonzero(which & (position[acts.change] >= 0))
        place = position[acts.change[act]]
        keys.append(((place * 3 + stage) * len(acts) + act) * len(table) + i)
        found.append((
            act, np.full(len(act), kind), np.full(len(act), stage),
            *(np.broadcast_to(one, len(acts))[act] for one in (replica, source, target)),
        ))  # fmt: skip
    order = np.argsort(np.concatenate(keys), kind="stable")
    act, kinds, stages, replicas, sources, targets = (
        np.concatenate(one)[order] for one in zip(*found, strict=True)
    )
    change = acts.change[act]
    copied = stages == COPIED
    finish = schedule.finish[change]
    start = finish.copy()
    start[copied] = schedule.start[change[copied]] + copies.delay[act[copied]]
    last_one = copies.delay + copies.seconds >= (schedule.finish - schedule.start)[acts.change]
    finish[copied] = np.where(
        last_one[act[copied]], finish[copied], start[copied] + copies.seconds[act[copied]]
    )
    first, before = _arrows(change, copied, copies.delay[act] > 0.0, schedule, previous)
    steps = Steps(
        kind=kinds.astype(np.int8), partition=acts.partition[act],
        replica=replicas.astype(np.int32), source=sources.astype(np.int32),
        target=targets.astype(np.int32),
        size=np.where(copied, copies.size[act], 0.0), start=start, finish=finish,
        wave=schedule.wave[change], first=first, before=before,
    )  # fmt: skip
    return steps, change


def _rows(acts: Acts, copies: Copies, split: NDArray[np.bool_]) -> list[Row]:
    """Return the steps that an act may have, in their order."""
    kind = acts.act
    move, add, drop = kind == Act.MOVE, kind == Act.ADD, kind == Act.DROP
    none = np.full(len(acts), -1, np.int32)
    lends = acts.deputy >= 0
    takes = (kind == Act.LEAD) | (acts.leads & ~acts.led) | lends
    giver = np.where(lends, acts.deputy_node, acts.heir_node)
    promoted = split | (add & acts.votes)
    demoted = split | (drop & acts.votes)
    swapped = (move & ~split) | ((add | drop) & ~acts.votes)
    k = acts.replica
    return [
        (copies.moves, COPIED, StepKind.COPY, k, copies.source, acts.target),
        (lends, SETTLED, StepKind.LEAD, acts.deputy, acts.source, acts.deputy_node),
        (promoted, SETTLED, StepKind.PROMOTE, k, none, acts.target),
        (split & acts.led, SETTLED, StepKind.LEAD, k, acts.source, acts.target),
        (demoted, SETTLED, StepKind.DEMOTE, k, acts.source, none),
        (swapped, SETTLED, StepKind.SWAP, k, acts.source, acts.target),
        (takes, SETTLED, StepKind.LEAD, k, giver, acts.target),
        (move | drop, REMOVED, StepKind.REMOVE, k, acts.source, none),
    ]


def _arrows(
    change: NDArray[np.int32],
    copied: NDArray[np.bool_],
    delayed: NDArray[np.bool_],
    schedule: Schedule,
    previous: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return what each step waits for: the one before it in its change, and other changes' last."""
    steps = len(change)
    index = np.arange(steps)
    same = np.zeros(steps, bool)
    same[1:] = change[1:] == change[:-1]
    begins = np.full(len(schedule.start), -1, np.int64)
    ends = begins.copy()
    ends[change] = index
    begins[change[::-1]] = index[::-1]
    # in a change, copies begin together; the first step after them waits for all of them
    alone = copied & ~delayed
    chained = np.flatnonzero(same & ~alone)
    arrows = [(chained - 1, chained)]
    several = np.flatnonzero(alone & np.append(same[1:] & copied[1:], False))
    if len(several):
        settles = np.full(len(schedule.start), -1, np.int64)
        later = np.flatnonzero(~copied)[::-1]
        settles[change[later]] = later
        arrows.append((several, settles[change[several]]))
    giver, taker = schedule.arrow[:, : schedule.counts[1]].astype(np.int64)
    started = np.flatnonzero((previous >= 0) & (begins >= 0))
    giver = np.concatenate([giver, previous[started].astype(np.int64)])
    taker = np.concatenate([taker, started])
    arrows.append((ends[giver], begins[taker]))
    others = np.flatnonzero(same & alone)
    if len(others):
        # further copies of a change wait for what the first one waits for
        by_taker = np.argsort(taker, kind="stable")
        low = np.searchsorted(taker[by_taker], change[others])
        high = np.searchsorted(taker[by_taker], change[others], side="right")
        rows = np.repeat(np.arange(len(others)), high - low)
        laid = np.cumsum(high - low) - (high - low)
        at = np.arange(len(rows)) + (low - laid)[rows]
        arrows.append((ends[giver[by_taker[at]]], others[rows]))
    source, target = (np.concatenate(one) for one in zip(*arrows, strict=True))
    key = np.sort(target * steps + source)
    key = key[np.diff(key, prepend=-1) > 0]
    target, source = np.divmod(key, max(steps, 1))
    first = np.zeros(steps + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=steps), out=first[1:])
    return first, source.astype(np.int32)
