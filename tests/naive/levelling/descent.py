"""Levelling in plain Python: the smallest cover, the penalty, and leadership handed on."""

from itertools import combinations

import numpy as np

from tests.naive.levelling.best_fit import PlainState


def fewest(values: np.ndarray, need: np.ndarray) -> int:
    """Fewest columns of ``values`` that sum to ``need``; one more than all if none do."""
    columns = range(values.shape[1])
    for count in range(values.shape[1] + 1):
        for some in combinations(columns, count):
            if (values[:, list(some)].sum(axis=1) >= need).all():
                return count
    return values.shape[1] + 1


def penalty(plain: PlainState, scale: np.ndarray, knee: float) -> float:
    """Sum over nodes and dimensions of the square of the pressure above ``knee``."""
    loads = np.array([plain.load(n) for n in range(len(plain.small.zone))]).T
    return float((np.maximum(loads * scale - knee, 0.0) ** 2).sum())


def spread_leaders(plain: PlainState, scale: np.ndarray, knee: float, trigger: float) -> int:
    """One sweep: each leader on a pressed node goes where the whole penalty becomes least."""
    small = plain.small
    changed = 0
    for p, row in enumerate(plain.placement):
        slot = plain.leader[p]
        if slot < 0 or row[slot] < 0:
            continue
        here = row[slot]
        pressed = (plain.load(here) * scale[:, here] > trigger) & (small.extra[p] > 0.0)
        if not pressed.any():
            continue
        before = penalty(plain, scale, knee)
        best, least = slot, -1e-12
        for other, there in enumerate(row):
            if there < 0 or there == here or not small.leads[there]:
                continue
            gains = small.extra[p] > 0.0
            full = plain.load(there) + small.extra[p] > small.capacity[there]
            if (gains & full).any():
                continue
            plain.leader[p] = other
            change = penalty(plain, scale, knee) - before
            plain.leader[p] = slot
            if change < least:
                best, least = other, change
        plain.leader[p] = best
        changed += int(best != slot)
    return changed
