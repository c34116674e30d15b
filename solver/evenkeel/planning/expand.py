"""Expand: from acts with a start and a finish to single steps with what each waits for."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.acts import Act, Acts
from evenkeel.planning.resources.copies import Copies
from evenkeel.planning.scheduling import Scheduled
from evenkeel.planning.steps import StepKind, Steps

COPIED, SETTLED, REMOVED = range(3)
"""Stages of a change: all copies, then who serves and who leads, then what is left behind."""

Row = tuple[
    NDArray[np.bool_], int, StepKind, NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]
]
"""Which acts have a step, its stage, kind, replica, source and target."""


BLOCK = 1 << 15
"""Changes of which the steps are laid out in one go."""


def steps_of(
    acts: Acts,
    copies: Copies,
    split: NDArray[np.bool_],
    schedule: Scheduled,
    previous: NDArray[np.int32],
) -> tuple[Steps, NDArray[np.int32]]:
    """Return the steps of all changes that were started, in the order in which they were."""
    steps, change, delayed = _laid_out(acts, copies, split, schedule)
    first, before = _arrows(change, steps.kind == StepKind.COPY, delayed, schedule, previous)
    return replace(steps, first=first, before=before), change


def _laid_out(
    acts: Acts, copies: Copies, split: NDArray[np.bool_], schedule: Scheduled
) -> tuple[Steps, NDArray[np.int32], NDArray[np.bool_]]:
    """Return steps that wait for nothing yet, the change of each, and whether its copy does."""
    position = np.full(len(schedule.start), -1, np.int32)
    position[schedule.sequence] = np.arange(len(schedule.sequence), dtype=np.int32)
    table = _rows(acts, copies, split)
    place = position[acts.change]
    order = np.argsort(place, kind="stable")
    cuts = np.arange(0, len(schedule.sequence) + BLOCK, BLOCK)
    cuts = np.searchsorted(place, cuts, sorter=order)
    total = sum(int(np.count_nonzero(which & (place >= 0))) for which, *_ in table)
    steps = _blank(total)
    change, delayed = np.empty(total, np.int32), np.empty(total, bool)
    done = 0
    for low, high in pairwise(cuts.tolist()):
        mine = order[low:high]
        at, row = _in_order(table, mine, place[mine])
        act = mine[at]
        rows = slice(done, done + len(act))
        done = rows.stop
        change[rows] = acts.change[act]
        delayed[rows] = copies.delay[act] > 0.0
        steps.partition[rows] = acts.partition[act]
        for i, (_, _, kind, replica, source, target) in enumerate(table):
            some = np.flatnonzero(row == i)
            here, of = some + rows.start, act[some]
            steps.kind[here] = kind
            steps.replica[here], steps.source[here] = replica[of], source[of]
            steps.target[here] = target[of]
        _time(steps, rows, act, copies, schedule, change[rows])
    return steps, change, delayed


def _blank(count: int) -> Steps:
    """Return steps to be filled in."""

    def ints() -> NDArray[np.int32]:
        return np.empty(count, np.int32)

    def reals() -> NDArray[np.float64]:
        return np.empty(count)

    return Steps(
        np.empty(count, np.int8), ints(), ints(), ints(), ints(), reals(), reals(), reals(), ints(),
        np.zeros(1, np.int64), np.zeros(0, np.int32),
    )  # fmt: skip


def _in_order(
    table: list[Row], mine: NDArray[np.intp], place: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return steps of some acts as positions of the acts and rows of the table, in their order."""
    keys = []
    for i, (which, stage, *_) in enumerate(table):
        at = np.flatnonzero(which[mine])
        keys.append(((place[at].astype(np.int64) * 3 + stage) * len(mine) + at) * len(table) + i)
    key = np.sort(np.concatenate(keys))
    return (key // len(table)) % max(len(mine), 1), key % len(table)


def _time(
    steps: Steps,
    rows: slice,
    act: NDArray[np.intp],
    copies: Copies,
    schedule: Scheduled,
    change: NDArray[np.int32],
) -> None:
    """Fill in sizes, times and waves of some steps."""
    copied = steps.kind[rows] == StepKind.COPY
    start, finish = schedule.start[change], schedule.finish[change]
    delay, seconds = copies.delay[act], copies.seconds[act]
    began = np.where(copied, start + delay, finish)
    early = copied & (delay + seconds < finish - start)
    steps.start[rows] = began
    # added up as delays are: what waits for it begins at the same bit
    steps.finish[rows] = np.where(early, start + (delay + seconds), finish)
    steps.size[rows] = np.where(copied, copies.size[act], 0.0)
    steps.wave[rows] = schedule.wave[change]


def _rows(acts: Acts, copies: Copies, split: NDArray[np.bool_]) -> list[Row]:
    """Return the steps that an act may have, in their order."""
    kind = acts.act
    move, add, drop = kind == Act.MOVE, kind == Act.ADD, kind == Act.DROP
    none = np.full(len(acts), -1, np.int32)
    takes = (kind == Act.LEAD) | (acts.leads & ~acts.led)
    promoted = split | (add & acts.votes)
    raised, lowered = (kind == Act.ROLE) & acts.votes, (kind == Act.ROLE) & ~acts.votes
    demoted = split | (drop & acts.votes)
    swapped = (move & ~split) | ((add | drop) & ~acts.votes)
    k = acts.replica
    return [
        (copies.moves, COPIED, StepKind.COPY, k, copies.source, acts.target),
        (promoted, SETTLED, StepKind.PROMOTE, k, none, acts.target),
        (raised, SETTLED, StepKind.PROMOTE, k, acts.source, acts.target),
        (split & acts.led & acts.leads, SETTLED, StepKind.LEAD, k, acts.source, acts.target),
        (demoted, SETTLED, StepKind.DEMOTE, k, acts.source, none),
        (swapped, SETTLED, StepKind.SWAP, k, acts.source, acts.target),
        (takes, SETTLED, StepKind.LEAD, k, acts.heir_node, acts.target),
        (lowered, SETTLED, StepKind.DEMOTE, k, acts.source, acts.target),
        (move | drop, REMOVED, StepKind.REMOVE, k, acts.source, none),
    ]


def _arrows(
    change: NDArray[np.int32],
    copied: NDArray[np.bool_],
    delayed: NDArray[np.bool_],
    schedule: Scheduled,
    previous: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return what each step waits for: the one before it in its change, and other changes' last."""
    steps = len(change)
    index = np.arange(steps, dtype=np.int32)
    same = np.zeros(steps, bool)
    same[1:] = change[1:] == change[:-1]
    begins = np.full(len(schedule.start), -1, np.int32)
    ends = begins.copy()
    ends[change] = index
    begins[change[::-1]] = index[::-1]
    # in a change, copies begin together; the first step after them waits for all of them
    alone = copied & ~delayed
    chained = np.flatnonzero(same & ~alone)
    # an arrow is the step that it leads to, times the number of steps, plus the one that it is of
    arrows = [chained * steps + chained - 1]
    several = np.flatnonzero(alone & np.append(same[1:] & copied[1:], False))
    if len(several):
        settles = np.full(len(schedule.start), -1, np.int64)
        later = np.flatnonzero(~copied)[::-1]
        settles[change[later]] = later
        arrows.append(settles[change[several]] * steps + several)
    started = np.flatnonzero((previous >= 0) & (begins >= 0))
    giver = np.concatenate([schedule.giver, previous[started]])
    taker = np.concatenate([schedule.taker, started.astype(np.int32)])
    arrows.append(begins[taker] * np.int64(steps) + ends[giver])
    others = np.flatnonzero(same & alone)
    if len(others):
        # further copies of a change wait for what the first one waits for
        by_taker = np.argsort(taker, kind="stable")
        low = np.searchsorted(taker[by_taker], change[others])
        high = np.searchsorted(taker[by_taker], change[others], side="right")
        rows = np.repeat(np.arange(len(others)), high - low)
        laid = np.cumsum(high - low) - (high - low)
        at = np.arange(len(rows)) + (low - laid)[rows]
        arrows.append(others[rows] * steps + ends[giver[by_taker[at]]])
    key = np.concatenate(arrows)
    arrows.clear()
    key.sort()
    new = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    key = key[new]
    before = (key % max(steps, 1)).astype(np.int32)
    key //= max(steps, 1)
    first = np.zeros(steps + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=steps), out=first[1:])
    return first, before
