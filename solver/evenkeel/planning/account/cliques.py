"""Cliques: work of which no two pieces can be done at once takes the sum of what each takes.

Each piece holds some places for itself, so that two that share one come one after the other, and so
do pieces any two of which share one, though there may be none that all of them hold. That is the
clique bound of scheduling under resource constraints (Mingozzi, Maniezzo, Ricciardelli and Bianco
1998; Brucker and Knust 2012). The heaviest clique is hard to find; any of them is a bound.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

BUSY = 24
"""Places that are looked at three at a time, those with the most work."""

STARTS = 6
"""Cliques of either kind that are made heavier."""

CLOSE = 8
"""Pieces of which it is worked out exactly what they would add to a clique."""

WORK = 2_000_000
"""Rows that are looked at for each clique that is made heavier, in all."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """K pieces of work; row by row, ascending, which holds which place, each pair once.

    Parameters
    ----------
    seconds : ndarray of float64, shape (K,)
        How long each takes.
    piece, place : ndarray of int64
        Who holds what.
    """

    seconds: NDArray[np.float64]
    piece: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def of(
        cls, seconds: NDArray[np.float64], piece: NDArray[np.int64], place: NDArray[np.int64]
    ) -> "Pieces":
        """Number places from 0 on, and leave out what is there twice."""
        distinct, place = np.unique(place, return_inverse=True)
        row = np.unique(piece * max(len(distinct), 1) + place)
        return cls(seconds, *np.divmod(row, max(len(distinct), 1)))

    def loads(self, some: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the seconds that some of the pieces hold each place."""
        seconds = np.where(some, self.seconds, 0.0)
        return np.asarray(np.bincount(self.place, seconds[self.piece]), np.float64)

    def sharing(self, one: int) -> NDArray[np.bool_]:
        """Return which pieces share a place with one of them, (K,)."""
        own = self.place[slice(*np.searchsorted(self.piece, [one, one + 1]))]
        found = np.zeros(len(self.seconds), bool)
        found[self.piece[np.isin(self.place, own)]] = True
        return found


def heaviest_clique(pieces: Pieces) -> float:
    """Return the seconds of the heaviest clique that was found.

    Pieces that hold one place are one, and so are those that hold two of any three. From the
    heaviest of these on pieces join, one at a time, while they last longer than those do that have
    to go because they share no place with them.
    """
    if len(pieces.piece) == 0:
        return 0.0
    every = np.ones(len(pieces.seconds), bool)
    load = pieces.loads(every)
    busy = np.argsort(-load, kind="stable")[:BUSY]
    starts = [_holders(pieces, busy[[i]], 1) for i in range(min(STARTS, len(busy)))]
    starts += [_holders(pieces, busy[list(three)], 2) for three in _threes(pieces, busy)]
    return max(_grown(pieces, some) for some in starts)


def _holders(pieces: Pieces, places: NDArray[np.intp], least: int) -> NDArray[np.bool_]:
    """Return the pieces that hold so many of some places, (K,)."""
    inside = pieces.piece[np.isin(pieces.place, places)]
    return np.asarray(np.bincount(inside, minlength=len(pieces.seconds)) >= least)


def _threes(pieces: Pieces, busy: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return the three of some places of which pieces that hold two last longest, some of those."""
    count = len(busy)
    column = np.full(int(pieces.place.max()) + 1, -1)
    column[busy] = np.arange(count)
    inside = np.flatnonzero(column[pieces.place] >= 0)
    row, held = pieces.piece[inside], column[pieces.place[inside]]
    both = np.zeros((count, count))
    # how far apart two rows of one piece are at most
    for apart in range(1, int(np.bincount(row).max(initial=0))):
        at = np.flatnonzero(row[apart:] == row[:-apart])
        np.add.at(both, (held[at], held[at + apart]), pieces.seconds[row[at]])
    both += both.T
    a, b, c = np.array(list(combinations(range(count), 3)), np.intp).reshape(-1, 3).T
    # those that hold all three are counted three times: no more than a bound, but close
    weight = both[a, b] + both[b, c] + both[a, c]
    best = np.argsort(-weight, kind="stable")[:STARTS]
    return [(int(a[i]), int(b[i]), int(c[i])) for i in best]


def _grown(pieces: Pieces, some: NDArray[np.bool_]) -> float:
    """Return the seconds of a clique to which pieces have been added for as long as that helps."""
    seconds = pieces.seconds
    total = float(seconds[some].sum())
    first = np.searchsorted(pieces.piece, np.arange(len(seconds)))
    for _ in range(WORK // len(pieces.piece)):
        load = pieces.loads(some)
        # of those that share two places with it some are counted twice
        most = np.minimum(np.add.reduceat(load[pieces.place], first), total)
        gain = np.where(some, -np.inf, seconds + most - total)
        close = np.argsort(-gain, kind="stable")[:CLOSE]
        best, joined = total, some
        for one in close[gain[close] > 1e-9 * total].tolist():
            kept = some & pieces.sharing(one)
            kept[one] = True
            weight = float(seconds[kept].sum())
            if weight > best * (1.0 + 1e-12):
                best, joined = weight, kept
        if joined is some:
            break
        total, some = best, joined
    return total
