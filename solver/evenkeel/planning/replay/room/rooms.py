"""Rooms: whether places hold what comes at whatever pace steps are carried out.

Whoever carries a plan out begins a step once those that it waits for are done, and no clock tells
how long they take. Then a place overflows in no course of things if, and only if, all that steps
take there is covered by what is free at the beginning and by what others give back that are done
before in any case, nothing being counted twice. Were it not for some steps (Hall 1935), these and
all before them could have begun while nothing else is done.
"""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.room.arrows import direct_givers, givers_ahead
from evenkeel.planning.replay.room.flow import first_lacking
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

    told: list[dict[str, ArrayLike]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    trades: list[Trades] = field(default_factory=list)

    def add(self, column: str, where: dict[str, ArrayLike], trades: Trades) -> None:
        """Keep what happens to places of one kind, which findings have in a column."""
        tight = trades.tight()
        if len(tight.place):
            self.columns.append(column)
            self.told.append(where)
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
                **self.told[i] | {self.columns[i]: every.place[at]},
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
