"""Even shares: loads of nodes balanced as far as rules permit, before any tolerance.

All that is wanted is divided by capacity. Where rules force more than the mean into some nodes,
these are level among themselves, and the others share what is left: of all divisions that rules
permit, the one whose fullest nodes are least full, then the next ones, and so on. A node that
accepts nothing carries no more than it holds. Nodes for which nothing is left, beside others of
endless room or others that hold it and accept nothing, get no fuller than where rules force least.

Source: Fujishige, Lexicographically optimal base of a polymatroid with respect to a weight vector,
1980 (sets that are forced to hold most for their size are fixed first, one after the other).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.share import MARGIN
from evenkeel.measure.loads import utilisation

WHOLE = 1e-9
"""Numbers this close to a whole number are replaced by it before rounding."""

NEARLY = 1.0 + 1e-12
"""Tolerance of rounding up to which a number counts as whole."""


class Even(NamedTuple):
    """What each of N nodes carries of one load, where all is as level as rules permit."""

    # (N,) share of its room, as if loads could be split; 0 where nothing is divided, or room has no
    # end
    level: NDArray[np.float64]
    # (N,) load in whole units, so many that all find a place: no node's target is below that
    least: NDArray[np.float64]

    def target(
        self, tolerance: float, room: NDArray[np.float64], unit: float
    ) -> NDArray[np.float64]:
        """Return the target of each node: rounded down to a unit, if any, not below the least."""
        with np.errstate(over="ignore", invalid="ignore"):
            most = np.where(room > 0.0, (1.0 + tolerance) * self.level * room, 0.0)
        return np.maximum(whole_loads(most, unit), self.least)


def even_shares(
    load: float,
    room: NDArray[np.float64],
    most: NDArray[np.float64],
    unit: float,
    parts: Sequence[tuple[NDArray[np.bool_], float]],
    fits: NDArray[np.float64],
) -> Even:
    """Divide a load evenly over nodes of some ``room (N,)``, each of which holds ``most (N,)``.

    ``parts`` are masks of nodes with the load that is forced into each. All loads are multiples of
    ``unit`` (0: of none), and ``fits (N,)`` is the load up to which whole units have room.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        even, least = _divided(load, room, most, parts), np.zeros(len(room))
        if unit > 0.0:
            least = _whole(load, room, np.minimum(most, fits), unit, parts)
    return Even(even, least)


def _divided(
    load: float,
    room: NDArray[np.float64],
    most: NDArray[np.float64],
    parts: Sequence[tuple[NDArray[np.bool_], float]],
) -> NDArray[np.float64]:
    """Return the share of its room that each node carries, as if loads could be split."""
    even, rest, lowest = np.zeros(len(room)), np.ones(len(room), bool), 0.0
    left = [one for one in parts if one[0].any()]
    while True:
        level = filled(load, room[rest], most[rest])
        full = [filled(forced, room[inside], most[inside]) for inside, forced in left]
        full = [one if one < np.inf else 0.0 for one in full]  # what has no place is in no part
        at = int(np.argmax(full)) if full else -1
        if not left or not level * (1.0 + MARGIN) < full[at]:
            if level <= MARGIN * lowest and _is_held_apart(room[rest], most[rest]):
                level = lowest
            even[rest] = level if level < np.inf else 0.0
            return np.where(room < np.inf, even, 0.0)
        (inside, amount), lowest = left[at], full[at]
        even[inside] = lowest
        rest, load = rest & ~inside, max(load - amount, 0.0)
        left = [
            (nodes & ~inside, max(forced - (amount if (nodes & inside).any() else 0.0), 0.0))
            for nodes, forced in left
            if (nodes & ~inside).any()
        ]


def _whole(
    load: float,
    room: NDArray[np.float64],
    most: NDArray[np.float64],
    unit: float,
    parts: Sequence[tuple[NDArray[np.bool_], float]],
) -> NDArray[np.float64]:
    """Return the units of each node, so that all units have a node.

    What a part has room for beyond what is forced into it is room for the rest, though not the
    other way round: what is forced into a part without room for it finds no place.
    """
    slots = room / unit
    most = np.floor(most / unit * NEARLY + WHOLE)
    least, rest, lowest = np.zeros(len(room)), np.ones(len(room), bool), 0.0
    count = whole_units(load, unit)
    left = [(nodes, whole_units(forced, unit)) for nodes, forced in parts if nodes.any()]
    while True:
        level = whole_level(slots[rest], count, most[rest])
        full = [whole_level(slots[inside], forced, most[inside]) for inside, forced in left]
        at = int(np.argmax(full)) if full else -1
        is_last = not left or not level * NEARLY < full[at]
        if is_last and level == 0.0 and _is_held_apart(slots[rest], most[rest]):
            level = lowest
        inside, level = (rest, level) if is_last else (left[at][0], full[at])
        if level == np.inf:
            least[inside] = slots[inside]
        elif level > 0.0:
            least[inside] = np.floor(level * slots[inside] * NEARLY)
        if is_last:
            return np.where(slots < np.inf, least, 0.0) * unit
        lowest = level
        taken = np.where(inside, np.minimum(least, most), 0.0)
        lost = max(left[at][1] - int(taken.sum()), 0)
        rest, count = rest & ~inside, max(count - int(taken.sum()) - lost, 0)
        left = [
            (
                nodes & ~inside,
                max(forced - int(taken[nodes].sum()) - (0 if (inside & ~nodes).any() else lost), 0),
            )
            for nodes, forced in left
            if (nodes & ~inside).any()
        ]


def filled(load: float, room: NDArray[np.float64], most: NDArray[np.float64]) -> float:
    """Return the level at which nodes hold a load, none more than its ``most (N,)``."""
    free = ~((room == np.inf) & (most < np.inf))  # without end, and so never at a level
    left = load - float(most[~free].sum())
    while True:
        level = float(utilisation(np.array(max(left, 0.0)), np.array(room[free].sum())))
        with np.errstate(invalid="ignore"):
            full = free & (most < level * room * (1.0 - MARGIN))
        if not full.any():
            return level
        free &= ~full
        left = load - float(most[~free].sum())


def _is_held_apart(room: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
    """Return whether nodes of endless room, or that are down and keep, may hold what the rest do.

    The latter have no room, yet hold at most ``most (N,)``.
    """
    return bool(room.sum() == np.inf or ((room == 0.0) & (most > 0.0) & (most < np.inf)).any())


def left_over(load: float, amount: float) -> float:
    """Return what is left of a load, 0 where that is no more than rounding."""
    left = load - amount
    return left if left > MARGIN * load else 0.0


def whole_loads(load: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    """Round loads down to whole units; 0 for none."""
    return np.floor(load / unit * NEARLY + WHOLE) * unit if unit > 0.0 else load


def whole_units(amount: float, unit: float) -> int:
    """Return how many units there are in an amount."""
    return int(np.ceil(amount / unit * (1.0 - 1e-12) - WHOLE))


def whole_level(
    room: NDArray[np.float64], count: int, most: NDArray[np.float64] | None = None
) -> float:
    """Return the least t for which the sum of floor(t x room), each at most ``most``, reaches it.

    Infinite where there is none, 0 where room has no end.
    """
    if most is None or not (most < np.inf).any():
        return _whole_level(room, count)
    free, level = ~((room == np.inf) & (most < np.inf)), 0.0
    while True:
        level = max(level, _whole_level(room[free], max(count - int(most[~free].sum()), 0)))
        full = free & (most < (np.floor(level * room * NEARLY) if level < np.inf else np.inf))
        if not full.any():
            return level
        free &= ~full


def _whole_level(room: NDArray[np.float64], count: int) -> float:
    """Return the least t for which the sum of floor(t x room) reaches a count."""
    room = room[room > 0.0]
    if count == 0 or room.sum() == np.inf:
        return 0.0
    if len(room) == 0:
        return np.inf
    start = count / room.sum()
    held = np.floor(start * room * NEARLY)
    short = count - int(held.sum())
    if short <= 0:
        return float(start)
    upper = np.partition((held + 1.0) / room, short - 1)[short - 1]
    steps = np.maximum(np.floor(upper * room * NEARLY) - held, 0.0).astype(np.int64)
    bin_of = np.repeat(np.arange(len(room)), steps)
    nth = np.arange(len(bin_of)) - np.repeat(np.cumsum(steps) - steps, steps) + 1
    events = (held[bin_of] + nth) / room[bin_of]
    return float(np.partition(events, short - 1)[short - 1])
