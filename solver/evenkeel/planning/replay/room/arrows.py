"""Arrows: which steps are done before which others, at whatever pace."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.replay.structure import pairs
from evenkeel.planning.replay.timeline import sort_by
from evenkeel.planning.steps import Steps

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
    """Follow all that gives through all arrows, each a bit."""
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
