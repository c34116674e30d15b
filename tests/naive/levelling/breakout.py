"""Breaking out in plain Python: one turn, every candidate tried and the whole penalty counted."""

from collections.abc import Iterator

import numpy as np

from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.descent import penalty

Place = tuple[int, int]  # a partition and a slot


def fullest(plain: PlainState, scale: np.ndarray) -> int:
    """Node that is most above its watermarks in all dimensions together; -1 if none is."""
    over = [
        float(np.maximum(plain.load(n) * scale[:, n] - 1.0, 0.0).sum())
        for n in range(len(plain.small.zone))
    ]
    return int(np.argmax(over)) if max(over) > 0.0 else -1


def turn(plain: PlainState, scale: np.ndarray, threshold: float) -> float:
    """Make the best change at the fullest node; returns the penalty afterwards."""
    here = fullest(plain, scale)
    before = penalty(plain, scale, threshold)
    if here < 0:
        return before
    for candidates in (hand_overs(plain, here), exchanges(plain, here)):
        best, least = None, before - 1e-14
        for placement, leader in candidates:
            tried = PlainState(plain.small)
            tried.placement, tried.leader = placement, leader
            after = penalty(tried, scale, threshold)
            if after < least:
                best, least = tried, after
        if best is not None:
            plain.placement, plain.leader = best.placement, best.leader
            return least
    return before


def hand_overs(plain: PlainState, here: int) -> Iterator[tuple[list[list[int]], list[int]]]:
    """Every leadership of the node handed on to every other replica that may lead."""
    small = plain.small
    for p, row in enumerate(plain.placement):
        slot = plain.leader[p]
        if slot < 0 or row[slot] != here:
            continue
        for other, there in enumerate(row):
            if there < 0 or there == here or not small.leads[there]:
                continue
            full = plain.load(there) + small.extra[p] > small.capacity[there]
            if not ((small.extra[p] > 0.0) & full).any():
                leader = list(plain.leader)
                leader[p] = other
                yield plain.placement, leader


def exchanges(plain: PlainState, here: int) -> Iterator[tuple[list[list[int]], list[int]]]:
    """Every trade and sending of a replica on the node that leaves as many moved as there are."""
    home = plain.small.placement
    places = [(p, s) for p, row in enumerate(plain.placement) for s in range(len(row))]
    moved = [(p, s) for p, s in places if at(plain, (p, s)) not in (-1, home[p][s])]
    for k in places:
        if at(plain, k) != here:
            continue
        own = home[k[0]][k[1]] == here
        for i in moved:
            there = at(plain, i)
            left = home[i[0]][i[1]] == here
            if left == own and there not in (here, home[k[0]][k[1]]):
                yield from traded(plain, k, i)
        for n in range(len(plain.small.zone)):
            if not own and n != home[k[0]][k[1]] and plain.admits(*k, n):
                yield put(plain, {k: n}), plain.leader


def traded(plain: PlainState, k: Place, i: Place) -> Iterator[tuple[list[list[int]], list[int]]]:
    """Both in each other's place, if the rules admit it, one after the other."""
    here, there = at(plain, k), at(plain, i)
    if k[0] == i[0] or not plain.admits(*k, there):
        return
    between = PlainState(plain.small)
    between.placement, between.leader = put(plain, {k: there}), plain.leader
    if between.admits(*i, here):
        yield put(plain, {k: there, i: here}), plain.leader


def at(plain: PlainState, place: Place) -> int:
    """Node of a replica."""
    return plain.placement[place[0]][place[1]]


def put(plain: PlainState, changes: dict[Place, int]) -> list[list[int]]:
    """Return the placement with some replicas elsewhere."""
    return [
        [changes.get((p, s), n) for s, n in enumerate(row)] for p, row in enumerate(plain.placement)
    ]
