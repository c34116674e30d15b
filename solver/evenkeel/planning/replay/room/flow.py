"""Flow: whether those who take can have all of it, from what is free and from those who give."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

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
