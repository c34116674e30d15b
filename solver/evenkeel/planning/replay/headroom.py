"""Headroom: whether nodes and domains hold all that arrives, at any pace of the steps.

An executor begins a step once those that it depends on are done, and no clock bounds
how long they take. Then a place overflows in no execution if, and only if, all that steps
take there is covered by what is free at the beginning and by what others give back that are done
before in any case, nothing being counted twice. Were it not for some steps (Hall 1935), these and
all before them could have begun while nothing else is done.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.structure import pairs
from evenkeel.planning.replay.timeline import sort_by
from evenkeel.planning.steps import Steps


@dataclass(frozen=True, eq=False)
class Trades:
    """What steps take of places and give back, an entry per step and place; E of them.

    Parameters
    ----------
    place, step, rank : ndarray of int32, shape (E,)
        The place, the step, and the rank of its event.
    taken : ndarray of int64, shape (E,)
        What it takes, below 0 where it gives back.
    free : ndarray of int64, shape (E,)
        What of its place is free at the beginning.
    unit : ndarray of float64, shape (E,)
        What one of these counts, in the dimension's unit.
    """

    place: NDArray[np.int32]
    step: NDArray[np.int32]
    rank: NDArray[np.int32]
    taken: NDArray[np.int64]
    free: NDArray[np.int64]
    unit: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: list["Trades"]) -> "Trades":
        """Join some of them."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts])
                     for one in fields(cls)))  # fmt: skip

    def take(self, rows: NDArray[np.integer]) -> "Trades":
        """Return some entries."""
        return Trades(*(getattr(self, one.name)[rows] for one in fields(self)))

    def tight(self) -> "Trades":
        """Return the entries of places, which lie together, that do not hold all that comes."""
        opens = np.flatnonzero(np.diff(self.place, prepend=-1))
        if len(opens) == 0:
            return self
        comes = np.add.reduceat(np.maximum(self.taken, 0), opens)
        length = np.diff(np.append(opens, len(self.place)))
        full = np.repeat(comes > self.free[opens], length)
        return self.take(np.flatnonzero(full & (self.taken != 0)))


@dataclass(frozen=True, eq=False)
class Rooms:
    """What happens to places that do not hold all that comes, kind by kind and by dimension."""

    where_of: list[dict[str, ArrayLike]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    trades: list[Trades] = field(default_factory=list)

    def add(self, column: str, where: dict[str, ArrayLike], trades: Trades) -> None:
        """Keep what happens to places of one kind, which findings have in a column."""
        tight = trades.tight()
        if len(tight.place):
            self.columns.append(column)
            self.where_of.append(where)
            self.trades.append(tight)

    def check(self, found: Findings) -> None:
        """Find for each place the first step, by its index, that may find no room there."""
        if not self.trades:
            return
        part = np.repeat(np.arange(len(self.trades)), [len(one.place) for one in self.trades])
        every = Trades.joined(self.trades)
        _, lane = np.unique(part * np.int64(1 << 32) + every.place, return_inverse=True)
        order = np.lexsort((every.step, lane))
        for row, lacks in _short(found.timeline.steps, every.take(order), lane[order]):
            at = order[row : row + 1]
            i = int(part[at[0]])
            found.breach(
                "room", every.step[at], every.rank[at], lacks * every.unit[at],
                **self.where_of[i] | {self.columns[i]: every.place[at]},
            )  # fmt: skip


def _short(steps: Steps, trades: Trades, lane: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the first entry of each lane that lacks room, and how much; by lane and step."""
    need = _beyond_free(trades, lane)
    rows = np.flatnonzero(need > 0)
    gives = np.flatnonzero(trades.taken < 0)
    gives = gives[np.argsort(trades.rank[gives], kind="stable")]
    first, giver = direct_givers(steps, lane, trades.step, rows, gives)
    left = np.maximum(-trades.taken, 0).tolist()
    unsure: set[int] = set()
    cuts = first.tolist()
    for i, (of, lacks) in enumerate(zip(lane[rows].tolist(), need[rows].tolist(), strict=True)):
        for g in giver[cuts[i] : cuts[i + 1]]:
            used = min(left[g], lacks)
            left[g] -= used
            lacks -= used
            if lacks == 0:
                break
        if lacks:
            unsure.add(of)
    # nearly always that was all: most steps wait for the very ones that give them room
    some = np.array(sorted(unsure), np.intp)
    low, high = np.searchsorted(lane, some), np.searchsorted(lane, some, side="right")
    lanes = [range(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    found = []
    for mine, givers in givers_ahead(steps, trades.step, trades.taken, lanes):
        short = first_lacking(trades.taken[mine.start : mine.stop].tolist(),
                              int(trades.free[mine.start]), givers)  # fmt: skip
        if short is not None:
            found.append((mine.start + short[0], short[1]))
    return found


def _beyond_free(trades: Trades, lane: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return what entries take beyond what is free, that being for the first of their lane."""
    comes = np.maximum(trades.taken, 0)
    total = np.cumsum(comes)
    opens = np.flatnonzero(np.diff(lane, prepend=-1))
    length = np.diff(np.append(opens, len(lane)))
    total -= np.repeat(total[opens] - comes[opens], length)
    return np.asarray(np.clip(total - trades.free, 0, comes))


BITS = 2048
"""Entries that give back whose followers are looked for in one go."""

Ints = NDArray[np.integer]


def direct_givers(
    steps: Steps, lane: Ints, step: Ints, takes: Ints, gives: Ints
) -> tuple[NDArray[np.int64], list[int]]:
    """Return of entries that take those of their lane that give to them, in the order given.

    Entries are of a ``step (E,)`` and a ``lane (E,)``; ``takes`` and ``gives`` are some of them.
    Seen is what comes before a step in its chain, and what ends in a chain that one of these waits
    for. Where the givers of each begin comes first.
    """
    chain, many = _chains(steps), np.int64(max(len(steps), 1))
    whose, of, end = _ends_before(steps, chain, step[takes])
    key = lane[gives] * many + chain[step[gives]]
    order = np.lexsort((step[gives], key))
    distinct, number = np.unique(key, return_inverse=True)
    wanted = lane[takes[whose]] * many + of
    at = np.searchsorted(distinct, wanted)
    there = np.flatnonzero(np.append(distinct, -1)[at] == wanted)
    place = number[order] * many + step[gives][order]
    low = np.searchsorted(place, at[there] * many)
    high = np.searchsorted(place, at[there] * many + end[there], side="right")
    each, where = _spread(low, high)
    whose, giver = whose[there][each], order[where]
    by_taker = np.lexsort((giver, whose))
    first = np.searchsorted(whose[by_taker], np.arange(len(takes) + 1))
    return first, gives[giver[by_taker]].tolist()


def _chains(steps: Steps) -> NDArray[np.int32]:
    """Return a number per step, the same for steps of a partition each of which waits for the last.

    Steps of a chain wait for all that come before them there.
    """
    # short numbers: there are as many steps as anywhere
    order = sort_by(steps.partition, int(steps.partition.max(initial=0)) + 1).astype(np.int32)
    previous = np.full(len(steps), -1, np.int32)
    owner = steps.partition[order]
    same = owner[1:] == owner[:-1]
    previous[order[1:][same]] = order[:-1][same]
    linked = np.zeros(len(steps), bool)
    step, before = pairs(steps)
    linked[step[previous[step] == before]] = True
    chain = np.empty(len(steps), np.int32)
    chain[order] = np.cumsum(~linked[order], dtype=np.int32) - 1
    return chain


def _ends_before(
    steps: Steps, chain: NDArray[np.int32], of: Ints
) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """Return chains that are done up to a step before some steps: for which of those, and where.

    They are a step's own, up to before itself, and those that its own waits for until then.
    """
    many = np.int64(max(len(steps), 1))
    step, before = pairs(steps)
    across = np.flatnonzero(chain[step] != chain[before])
    into = chain[step[across]] * many + step[across]
    order = np.argsort(into, kind="stable")
    into, ends = into[order], before[across[order]]
    low = np.searchsorted(into, chain[of] * many)
    high = np.searchsorted(into, chain[of] * many + of, side="right")
    each, where = _spread(low, high)
    whose = np.concatenate([np.arange(len(of)), each])
    return (whose, np.concatenate([chain[of], chain[ends[where]]]),
            np.concatenate([of - 1, ends[where]]).astype(np.int64))  # fmt: skip


def _spread(low: Ints, high: Ints) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return all of some ranges one after another: of which range each is, and what is there."""
    length = high - low
    each = np.repeat(np.arange(len(low)), length)
    laid = np.cumsum(length) - length
    return each, np.arange(len(each)) + (low - laid)[each]


def givers_ahead(
    steps: Steps, step: Ints, taken: Ints, lanes: Sequence[range]
) -> Iterator[tuple[range, list[list[int]]]]:
    """Yield lanes with the entries, counted from their first, that give to each of theirs.

    A lane is a range of entries, each of a ``step (E,)``, which take something or, where it is
    below 0, give it back. One gives to another if it is done before it in any case.
    """
    part: list[range] = []
    count = 0
    for lane in lanes:
        gives = int(np.count_nonzero(taken[lane.start : lane.stop] < 0))
        if part and count + gives > BITS:
            yield from _givers_of(steps, step, taken, part)
            part, count = [], 0
        part.append(lane)
        count += gives
    yield from _givers_of(steps, step, taken, part)


def _givers_of(
    steps: Steps, step: Ints, taken: Ints, lanes: list[range]
) -> Iterator[tuple[range, list[list[int]]]]:
    """Follow all that gives through all dependencies, each a bit."""
    own: dict[int, int] = {}
    bits: list[list[tuple[int, int]]] = []
    takers: dict[int, int] = {}
    bit = 1
    for lane in lanes:
        bits.append([])
        for i, (s, amount) in enumerate(
            zip(step[lane.start : lane.stop].tolist(), taken[lane.start : lane.stop].tolist(),
                strict=True)
        ):  # fmt: skip
            if amount > 0:
                takers[s] = 0
            else:
                bits[-1].append((i, bit))
                own[s] = own.get(s, 0) | bit
                bit <<= 1
    done: dict[int, int] = {}
    begin, end = min(own, default=0), max(takers, default=-1)
    low = int(steps.first[begin]) if end >= begin else 0
    first, before = (steps.first[begin : end + 2] - low).tolist(), steps.before[low:].tolist()
    for s in range(begin, end + 1):
        found = 0
        for b in before[first[s - begin] : first[s - begin + 1]]:
            found |= done.get(b, 0)
        if s in takers:
            takers[s] = found
        found |= own.get(s, 0)
        if found:
            done[s] = found
    for lane, mine in zip(lanes, bits, strict=True):
        found_by = [takers.get(s, 0) for s in step[lane.start : lane.stop].tolist()]
        yield lane, [[i for i, bit in mine if found & bit] for found in found_by]


FREE = -1
"""Giver of what is free at the beginning, to all."""

Way = list[tuple[int, int]]
"""Takers, and the giver that each turns to."""


def first_lacking(
    taken: Sequence[int], free: int, givers: Sequence[Sequence[int]]
) -> tuple[int, int] | None:
    """Return the first entry that cannot have all that it takes, and how much it lacks.

    Entries below 0 give. Others take what is free, and of their ``givers``, by the shortest ways on
    which earlier ones take of other givers instead (Edmonds and Karp 1972).
    """
    left = {i: -amount for i, amount in enumerate(taken) if amount < 0} | {FREE: free}
    used: dict[int, dict[int, int]] = {g: {} for g in left}
    for i, lacks in enumerate(taken):
        while lacks > 0:
            way = _way(i, givers, left, used)
            if not way:
                return i, lacks
            last = way[-1][1]
            amount = min(lacks, left[last], *(used[g][of] for of, g in _given_up(way)))
            for of, g in _given_up(way):
                used[g][of] -= amount
            for of, g in way:
                used[g][of] = used[g].get(of, 0) + amount
            left[last] -= amount
            lacks -= amount
    return None


def _given_up(way: Way) -> Iterator[tuple[int, int]]:
    """Yield the later takers of a way, and the giver that each leaves to the one before it."""
    yield from ((of, g) for (_, g), (of, _) in pairwise(way))


def _way(
    taker: int,
    givers: Sequence[Sequence[int]],
    left: dict[int, int],
    used: dict[int, dict[int, int]],
) -> Way:
    """Return the way from a taker to a giver that has something left; empty where there is none."""
    came: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    queue = [taker]
    for one in queue:
        for g in (FREE, *givers[one]):
            if g in seen:
                continue
            seen.add(g)
            if left[g]:
                way = [(one, g)]
                while way[0][0] in came:
                    way.insert(0, came[way[0][0]])
                return way
            for other, amount in used[g].items():
                if amount and other != taker and other not in came:
                    came[other] = one, g
                    queue.append(other)
    return []
