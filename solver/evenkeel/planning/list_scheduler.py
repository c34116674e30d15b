"""Assign start times to the changes of a plan under limited resources, by list scheduling."""

from dataclasses import dataclass, field

import numpy as np

from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Reals
from evenkeel.planning.changes.actions import Actions
from evenkeel_kernels.planning.schedule import Changes, run_schedule
from evenkeel_kernels.planning.schedule import Schedule as KernelSchedule

Charges = tuple[Ints32, Ints32, Reals]  # resource, change and amount, row by row


@dataclass(eq=False)
class Resources:
    """Collects what is finite, and what each of ``changes`` changes claims and gives back."""

    changes: int
    free: list[Reals] = field(default_factory=list)
    kinds: list[tuple[str, int, int]] = field(default_factory=list)
    claims: list[Charges] = field(default_factory=list)
    gifts: list[Charges] = field(default_factory=list)
    size: int = 0

    def add(self, name: str, free: Reals) -> int:
        """Add resources by the row, all of one kind; return the index of the first."""
        base = self.size
        flat = np.ascontiguousarray(free, np.float64).reshape(-1)
        self.kinds.append((name, base, free.shape[1] if free.ndim == 2 else 1))
        self.free.append(flat)
        self.size += len(flat)
        return base

    def claim(self, resource: Ints, change: Ints, amount: Reals) -> None:
        """Let changes take from resources as they start."""
        self.claims.append((resource.astype(np.int32), change.astype(np.int32), amount))

    def give(self, resource: Ints, change: Ints, amount: Reals) -> None:
        """Let changes give back to resources as they finish."""
        self.gifts.append((resource.astype(np.int32), change.astype(np.int32), amount))

    def borrow(self, resource: Ints, change: Ints, amount: Reals) -> None:
        """Let changes hold resources while they last."""
        self.claim(resource, change, amount)
        self.give(resource, change, amount)

    def rows(self, charges: list[Charges]) -> tuple[Ints64, Ints32, Reals]:
        """Return charges by change: where each one's begin, the resources, and the amounts."""
        if not charges:
            return np.zeros(self.changes + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        resource, change, amount = (np.concatenate(one) for one in zip(*charges, strict=True))
        key = change.astype(np.int64) * max(self.size, 1) + resource
        order = np.argsort(key, kind="stable")
        key, amount = key[order], amount[order]
        start = np.flatnonzero(np.diff(key, prepend=-1))
        if len(start) < len(key):
            key, amount = key[start], np.add.reduceat(amount, start)
        change, resource = np.divmod(key, max(self.size, 1))
        first = np.zeros(self.changes + 1, np.int64)
        np.cumsum(np.bincount(change, minlength=self.changes), out=first[1:])
        return first, resource.astype(np.int32), amount

    def place_of(self, resource: int) -> tuple[str, int, int]:
        """Return the kind of a resource, its row and its column."""
        name, base, width = next(one for one in reversed(self.kinds) if one[1] <= resource)
        return name, *divmod(resource - base, width)


ROUNDS, WORK = 64, 64_000  # schedules that are tried for a shorter one, and changes in all of them
# what is as close to the least is short enough, and what is further is tried from elsewhere
NEAR, FAR = 1.02, 1.04

# what a second counts by which a class before the last ends sooner, beside one of the makespan
EARLY = 0.3

# what ends after so much of a schedule is late; how far up it goes, and what is alike of that
LATE, PUSH, ALIKE = 0.9, 0.3, 0.2

# part of that by which all goes up that claims the resource for which what is late waited
ALONG = 0.3

# rounds push by half of that more or less, spread evenly, so that they do not go in circles
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Timetable:
    """When each of C changes starts, in which order, and after which others."""

    # start, finish: (C,) seconds; NaN where it never starts
    start: Reals
    finish: Reals
    wave: Ints32  # (C,) longest chain of dependencies that leads to it
    sequence: Ints32  # (S,) changes in the order in which they start
    lacks: Ints32  # (C,) resource that each waited for last, -1 none
    free: Reals  # (Q,) room that is left in the end
    # giver, taker: (A,) the taker starts when the giver has finished
    giver: Ints32
    taker: Ints32
    gift_first: Ints64  # (C + 1,)
    gift_on: Ints32  # (G,) resources to which each change gives back
    # what it was to heed, if anything, so as to end soon
    squeaky_wheel: "SqueakyWheel | None" = None


@dataclass(frozen=True)
class SqueakyWheel:
    """What a shorter schedule has to heed, and the least seconds that one takes."""

    fixed: Ints64  # (C,) class that no change leaves: all of a lower one go first
    # (C,) class that should end as soon as it can, the lower the sooner; 0 is the first
    rank: Ints64
    least: float  # what is not above this is short enough

    def completions(self, finish: Reals) -> Reals:
        """Return when each class, and all before it, has ended, (classes,)."""
        last = np.zeros(int(self.rank.max(initial=0)) + 1)
        np.maximum.at(last, self.rank, finish)
        return np.maximum.accumulate(last)

    @staticmethod
    def worth(completions: Reals) -> float:
        """Return what the ends of classes amount to, the less the better."""
        return float(completions[-1] + EARLY * completions[:-1].sum())


def _shortened(
    changes: Changes,
    made: KernelSchedule,
    free: Reals,
    by_rank: Ints32,
    squeaky_wheel: SqueakyWheel,
) -> KernelSchedule:
    """Return the best schedule found, from the one made or, if that is long, from long chains."""
    if len(by_rank) == 0 or np.isnan(made.finish).any():
        return made
    best = _moved_up(changes, made, free, by_rank, squeaky_wheel)
    reached = squeaky_wheel.completions(best.finish)
    if reached[-1] <= squeaky_wheel.least * FAR:
        return best
    longest = np.lexsort((-_tails(changes), squeaky_wheel.rank, squeaky_wheel.fixed)).astype(
        np.int32
    )
    other = _in_order(changes, free, longest)
    if np.isnan(other.finish).any():
        return best
    other = _moved_up(changes, other, free, longest, squeaky_wheel)
    return (
        other
        if squeaky_wheel.worth(squeaky_wheel.completions(other.finish))
        < squeaky_wheel.worth(reached)
        else best
    )


def _tails(changes: Changes) -> Reals:
    """Return the seconds of each change and of all that follow it in its partition, (C,)."""
    tails = changes.duration.copy()
    for c in np.flatnonzero(changes.previous >= 0)[::-1].tolist():
        tails[changes.previous[c]] += tails[c]
    return tails


def _in_order(changes: Changes, free: Reals, order: Ints32) -> KernelSchedule:
    """Return the schedule of changes that go in an order where they can."""
    again = changes._replace(rank=rank_in(order))
    made = fresh(again, free)
    run_schedule(again, made, order)
    return made


def _moved_up(
    changes: Changes,
    made: KernelSchedule,
    free: Reals,
    by_rank: Ints32,
    squeaky_wheel: SqueakyWheel,
) -> KernelSchedule:
    """Return the best of some schedules in each of which what was late before comes earlier."""
    # Squeaky wheel optimization (Joslin and Clements 1999): what ends late, and what comes before
    # it in its partition, is moved up, and all is scheduled anew. Late is what ends after its class
    # did at first, and of the last class what ends close to the makespan. A node that copies alone
    # in the end should have begun sooner: what else claims it moves up less.
    count = len(by_rank)
    key = np.empty(count)
    key[by_rank] = np.arange(count) / count
    best, current, due = made, made, squeaky_wheel.completions(made.finish)
    reached = due
    follows = np.flatnonzero(changes.previous >= 0)[::-1].tolist()
    claimant = np.repeat(np.arange(count), np.diff(changes.claim_first))
    for turn in range(min(ROUNDS, WORK // count)):
        length = float(reached[-1])
        if length <= squeaky_wheel.least * NEAR:
            break
        by = np.append(due[:-1], np.inf).clip(max=max(squeaky_wheel.least, LATE * length))
        late = np.maximum(current.finish - by[squeaky_wheel.rank], 0.0)
        far = PUSH * (0.5 + turn * GOLDEN % 1.0)
        push = np.where(late > 0.0, far * (ALIKE + late / length), 0.0)
        squeaks = np.zeros(len(free) + 1)  # the last one: late without having waited
        np.maximum.at(squeaks, current.lacks, push)
        np.maximum.at(push, claimant, ALONG * squeaks[changes.claim_on])
        for c in follows:
            push[changes.previous[c]] = max(push[changes.previous[c]], push[c])
        key -= push
        order = np.lexsort((np.arange(count), key, squeaky_wheel.fixed)).astype(np.int32)
        tried = _in_order(changes, free, order)
        if np.isnan(tried.finish).any():
            break
        current, completions = tried, squeaky_wheel.completions(tried.finish)
        if squeaky_wheel.worth(completions) < squeaky_wheel.worth(reached):
            best, reached = current, completions
    return best


def chained(actions: Actions, changes: int) -> Ints32:
    """Return the change of the same partition before each one, (C,); -1 for none."""
    previous = np.full(changes, -1, np.int32)
    new = np.flatnonzero((np.diff(actions.change) > 0) & (np.diff(actions.partition) == 0)) + 1
    previous[actions.change[new]] = actions.change[new - 1]
    return previous


def rank_in(order: Ints32) -> Ints32:
    """Return the place of each change in an order of all, (C,)."""
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


def changes_of(resources: Resources, duration: Reals, by_rank: Ints32, previous: Ints32) -> Changes:
    """Return what the kernel reads."""
    following = np.full(len(previous), -1, np.int32)
    led = np.flatnonzero(previous >= 0)
    following[previous[led]] = led
    return Changes(
        duration, rank_in(by_rank), previous, following,
        *resources.rows(resources.claims), *resources.rows(resources.gifts),
    )  # fmt: skip


def fresh(changes: Changes, free: Reals) -> KernelSchedule:
    """Return a schedule in which nothing has started."""
    count, resources, gifts = len(changes.duration), len(free), len(changes.return_on)

    def none(size: int) -> Ints32:
        return np.full(size, -1, np.int32)

    owing = np.flatnonzero(free < 0.0)
    claims_of = np.bincount(changes.claim_on, minlength=resources)[owing]
    gifts_of = np.bincount(changes.return_on, minlength=resources)[owing]
    dependencies = len(changes.claim_on) + gifts + int((claims_of * gifts_of).sum())
    return KernelSchedule(
        start=np.full(count, np.nan), finish=np.full(count, np.nan), wave=np.zeros(count, np.int32),
        sequence=none(count), lacks=none(count), free=free.copy(), pool=free.copy(),
        root=none(resources + 1), left=none(count), right=none(count), key=np.zeros(count),
        token_head=none(resources), token_tail=none(resources), token_next=none(gifts),
        token=np.zeros(gifts),
        token_of=np.repeat(np.arange(count, dtype=np.int32), np.diff(changes.return_first)),
        payer=none(resources), token_owed=none(gifts), arrow=np.zeros((2, dependencies), np.int32),
        touched=none(resources), is_touched=np.zeros(resources, bool), ready=none(count),
        counts=np.zeros(2, np.int64),
    )  # fmt: skip


def list_schedule(
    resources: Resources,
    duration: Reals,
    by_rank: Ints32,
    previous: Ints32,
    held_back: Flags,
    squeaky_wheel: SqueakyWheel | None = None,
) -> Timetable:
    """Return when each change starts, some being ``held_back``; what they claim is used up."""
    free = np.concatenate([*resources.free, np.zeros(1)])
    never = resources.add("rules", np.zeros(1))
    held = np.flatnonzero(held_back)
    resources.claim(np.full(len(held), never), held, np.ones(len(held)))
    changes = changes_of(resources, duration, by_rank, previous)
    resources.claims.clear()
    resources.gifts.clear()
    made = fresh(changes, free)
    run_schedule(changes, made, by_rank)
    if squeaky_wheel is not None:
        made = _shortened(changes, made, free, by_rank, squeaky_wheel)
    count, dependencies = made.counts.tolist()
    return Timetable(
        made.start, made.finish, made.wave, made.sequence[:count], made.lacks, made.free,
        made.arrow[0, :dependencies].copy(), made.arrow[1, :dependencies].copy(),
        changes.return_first, changes.return_on, squeaky_wheel,
    )  # fmt: skip
