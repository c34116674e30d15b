"""Draft: acts with all that they need and when each may start, before they become steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.planning.changes.actions import Act, Acts, under_way, ushered
from evenkeel.planning.changes.transition_table import Ends
from evenkeel.planning.list_scheduler import Hurry, Scheduled, chained, rank_in, scheduled
from evenkeel.planning.order import begun, least_seconds, ranks
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.resources.copies import Copies, charge_throttle
from evenkeel.planning.resources.groups import charge_groups, tied
from evenkeel.planning.resources.headroom import charge_space
from evenkeel.planning.resources.recovery import barred, charge_recovery, lacking
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import Throttle, Windows


def split_in_two(acts: Acts, protocol: Protocol) -> NDArray[np.bool_]:
    """Whether old and new replica of an act serve together for an instant, (M,)."""
    split = (acts.act == Act.MOVE) & acts.votes
    if protocol.joint:
        split &= acts.led & acts.leads
    return np.asarray(split)


@dataclass(frozen=True, eq=False)
class Leeway:
    """What a draft is free to do otherwise.

    Parameters
    ----------
    loose : ndarray of int32
        Partitions of which one change may come before another, whatever their numbers are.
    begins : ndarray of float64, shape (C,) or (0,)
        What begins earlier here goes first, instead of what its rank says; none for the latter.
    """

    loose: NDArray[np.int32]
    begins: NDArray[np.float64]

    def given(
        self,
        resources: Resources,
        acts: Acts,
        previous: NDArray[np.int32],
        by_rank: NDArray[np.int32],
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the change before each, and changes by rank; loose ones share their partition."""
        first = np.flatnonzero(np.diff(acts.change, prepend=-1))
        own = np.searchsorted(self.loose, acts.partition[first])
        loose = np.flatnonzero(np.isin(acts.partition[first], self.loose))
        if len(loose):
            base = resources.add("partition", np.ones(len(self.loose)))
            resources.borrow(base + own[loose], loose, np.ones(len(loose)))
            previous = previous.copy()
            previous[loose] = -1
            heir, led = _handed_over(acts)
            inside = np.isin(acts.partition[heir], self.loose)
            previous[acts.change[led[inside]]] = acts.change[heir[inside]]
        if len(self.begins):
            by_rank = np.lexsort((rank_in(by_rank), self.begins)).astype(np.int32)
        return previous, by_rank


def _handed_over(acts: Acts) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return acts that take the lead from who changes later, and of each the act of that one."""
    takes = np.flatnonzero(acts.heir >= 0)
    act_of = np.full(int(max(acts.replica.max(initial=-1), acts.heir.max(initial=-1))) + 1, -1)
    moves = np.flatnonzero(acts.act != Act.LEAD)
    act_of[acts.replica[moves]] = moves
    gives = act_of[acts.heir[takes]]
    later = (gives >= 0) & (acts.change[gives] > acts.change[takes])
    return takes[later], gives[later]


@dataclass(frozen=True, eq=False)
class Draft:
    """C changes of M acts, scheduled; those that never start wait for one another."""

    cluster: Cluster
    target: Placement
    ends: Ends
    acts: Acts
    copies: Copies
    split: NDArray[np.bool_]
    resources: Resources
    previous: NDArray[np.int32]
    schedule: Scheduled

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        target: Placement,
        ends: Ends,
        acts: Acts,
        throttle: Throttle,
        protocol: Protocol,
        in_turn: Sequence[int] = (),
        leeway: Leeway | None = None,
    ) -> "Draft":
        """Charge acts for what they take, and start each as early as there is room.

        The changes ``in_turn`` come after all others, one after another; not after those of
        partitions that rules block, which may never come.
        """
        count = int(acts.change.max(initial=-1)) + 1
        split = split_in_two(acts, protocol)
        copies = Copies.of(cluster, ends, acts, throttle)
        resources = Resources(count)
        shifts = charge_space(resources, cluster, target, acts, split)
        charge_groups(resources, cluster, target, acts)
        charge_throttle(resources, cluster, throttle, acts, copies)
        resources.keep(acts.change[ushered(acts, under_way(acts, cluster.placement.flags))])
        hopeless = acts.change[np.isin(acts.partition, acts.partition[acts.blocked])]
        charge_turns(resources, np.array(in_turn, np.int64), hopeless)
        lasts = copies.durations(acts, count)
        if acts.recovers.any():
            free = begun(cluster, acts, count)
            free[acts.change[lacking(cluster)[acts.partition] > 0]] = True
            charge_recovery(resources, acts, free, lasts)
        chain = chained(acts, count)
        by_rank, rank = ranks(cluster, acts, copies, shifts, throttle, chain)
        del shifts
        if leeway is not None:
            chain, by_rank = leeway.given(resources, acts, chain, by_rank)
        turn = np.array(in_turn, np.int32)
        in_order = np.append(by_rank[~np.isin(by_rank, turn)], turn)
        previous, held_back = tied(cluster, target, acts, in_order, chain)
        held_back[acts.change[acts.blocked]] = True
        hurry = None
        if throttle.hurries and previous is chain:
            # what is under way goes first, and groups that were told to
            fixed = rank if throttle.priority else ~begun(cluster, acts, count) + 0
            hurry = Hurry(fixed, rank, least_seconds(acts, copies, throttle, lasts))
        schedule = scheduled(resources, lasts, by_rank, previous, held_back, hurry)
        return cls(cluster, target, ends, acts, copies, split, resources, previous, schedule)

    @property
    def stuck(self) -> NDArray[np.intp]:
        """Changes that never start, ascending."""
        return np.flatnonzero(np.isnan(self.schedule.start))

    @property
    def seconds(self) -> float:
        """When the last change that starts has finished."""
        return float(np.nanmax(self.schedule.finish, initial=0.0))

    @property
    def worth(self) -> float:
        """What the ends of its classes amount to, the less the better; inf if that is all one."""
        hurry = self.schedule.hurry
        return np.inf if hurry is None else hurry.worth(hurry.ends(self.schedule.finish))

    @property
    def left(self) -> int:
        """How many replicas do not arrive."""
        return len(np.unique(self.acts.replica[np.isin(self.acts.change, self.stuck)]))

    @property
    def bytes(self) -> float:
        """How much is copied of what starts; of copies each counts as one without bytes."""
        starts = ~np.isnan(self.schedule.start[self.acts.change]) & self.copies.moves
        sized = self.cluster.bytes_dimension >= 0
        return float(self.copies.size[starts].sum() if sized else np.count_nonzero(starts))

    def of_acts(self, acts: Acts, throttle: Throttle, protocol: Protocol) -> "Draft":
        """Return the draft with other acts, which are neither charged nor scheduled."""
        copies = Copies.of(self.cluster, self.ends, acts, throttle)
        return replace(self, acts=acts, copies=copies, split=split_in_two(acts, protocol))

    def barred(self) -> "Draft":
        """Return the draft with what lacks nothing after all repairs that need not wait for it."""
        under_way = begun(self.cluster, self.acts, len(self.previous))
        schedule = barred(self.cluster, self.acts, under_way, self.schedule, self.previous)
        return replace(self, schedule=schedule)

    def steps(self, windows: Windows | None) -> tuple[Steps, NDArray[np.int32]]:
        """Return the steps of everything that starts, and the change that each is of."""
        steps, change = steps_of(self.acts, self.copies, self.split, self.schedule, self.previous)
        if windows is not None:
            start, finish = windows.opening(steps.start), windows.closing(steps.finish)
            # what takes no time is done when the copy before it is
            start = np.where(steps.start < steps.finish, start, finish)
            steps = replace(steps, start=start, finish=finish)
        return steps, change


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
    steps, change = _laid_out(acts, copies, split, schedule)
    first, before = _arrows(change, steps.kind == StepKind.COPY, schedule, previous)
    return replace(steps, first=first, before=before), change


def _laid_out(
    acts: Acts, copies: Copies, split: NDArray[np.bool_], schedule: Scheduled
) -> tuple[Steps, NDArray[np.int32]]:
    """Return steps without dependencies, and the change of each."""
    position = np.full(len(schedule.start), -1, np.int32)
    position[schedule.sequence] = np.arange(len(schedule.sequence), dtype=np.int32)
    table = _rows(acts, copies, split)
    place = position[acts.change]
    order = np.argsort(place, kind="stable")
    cuts = np.arange(0, len(schedule.sequence) + BLOCK, BLOCK)
    cuts = np.searchsorted(place, cuts, sorter=order)
    total = sum(int(np.count_nonzero(which & (place >= 0))) for which, *_ in table)
    steps = _blank(total)
    change = np.empty(total, np.int32)
    done = 0
    for low, high in pairwise(cuts.tolist()):
        mine = order[low:high]
        at, row = _in_order(table, mine, place[mine])
        act = mine[at]
        rows = slice(done, done + len(act))
        done = rows.stop
        change[rows] = acts.change[act]
        steps.partition[rows] = acts.partition[act]
        for i, (_, _, kind, replica, source, target) in enumerate(table):
            some = np.flatnonzero(row == i)
            here, of = some + rows.start, act[some]
            steps.kind[here] = kind
            steps.replica[here], steps.source[here] = replica[of], source[of]
            steps.target[here] = target[of]
        _time(steps, rows, act, copies, schedule, change[rows])
    return steps, change


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
    seconds = copies.seconds[act]
    early = copied & (seconds < finish - start)
    steps.start[rows] = np.where(copied, start, finish)
    steps.finish[rows] = np.where(early, start + seconds, finish)
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
    chained = np.flatnonzero(same & ~copied)
    # an arrow is the step that it leads to, times the number of steps, plus the one that it is of
    arrows = [chained * steps + chained - 1]
    several = np.flatnonzero(copied & np.append(same[1:] & copied[1:], False))
    if len(several):
        settles = np.full(len(schedule.start), -1, np.int64)
        later = np.flatnonzero(~copied)[::-1]
        settles[change[later]] = later
        arrows.append(settles[change[several]] * steps + several)
    started = np.flatnonzero((previous >= 0) & (begins >= 0))
    giver = np.concatenate([schedule.giver, previous[started]])
    taker = np.concatenate([schedule.taker, started.astype(np.int32)])
    arrows.append(begins[taker] * np.int64(steps) + ends[giver])
    others = np.flatnonzero(same & copied)
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


def charge_turns(
    resources: Resources, sequence: NDArray[np.int64], hopeless: NDArray[np.integer]
) -> None:
    """Let some changes begin in their order, the first of them when all others have finished.

    Those of ``hopeless`` partitions are not waited for: they may never begin.
    """
    if len(sequence) == 0:
        return
    others = np.setdiff1d(np.arange(resources.changes), np.append(sequence, hopeless))
    base = resources.add("turn", np.zeros(len(sequence)))
    need = np.ones(len(sequence))
    need[0] = len(others)
    resources.claim(base + np.arange(len(sequence)), sequence, need)
    resources.give(np.full(len(others), base), others, np.ones(len(others)))
    resources.give(base + np.arange(1, len(sequence)), sequence[:-1], need[1:])
