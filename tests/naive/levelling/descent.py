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


def greedy_cover(
    value: np.ndarray, hard: np.ndarray, soft: np.ndarray, weight: np.ndarray, limit: int
) -> tuple[int, list[int]]:
    """Columns taken one by one, each that which adds most; how many, ``limit`` + 1 if short."""
    # the last one need only cover what is left, and then be no larger than it must
    rest, chosen = soft.copy(), []
    counts = [d for d in range(len(soft)) if weight[d] > 0.0]
    while len(chosen) < limit:
        free = [i for i in range(value.shape[1]) if i not in chosen]
        adds = {
            i: sum(weight[d] * min(value[d, i], rest[d]) for d in counts if rest[d] > 0.0)
            for i in free
        }
        lacks = hard - soft + rest
        last = {}
        for i in free:
            if adds[i] > 0.0 and (value[:, i] >= lacks).all():
                last[i] = adds[i]
                for d, wanted in enumerate(rest):
                    last[i] -= weight[d] * max(0.0, value[d, i] - max(wanted, 0.0))
        if last:
            return len(chosen) + 1, [*chosen, max(last, key=lambda i: (last[i], -i))]
        best = max(free, key=lambda i: (adds[i], -i), default=-1)
        if best < 0 or adds[best] == 0.0:
            break
        chosen.append(best)
        rest = rest - value[:, best]
    return limit + 1, chosen + [-1] * (limit - len(chosen))


def penalty(plain: PlainState, scale: np.ndarray, threshold: float) -> float:
    """Sum over nodes and dimensions of the square of the target ratio above ``threshold``."""
    loads = np.array([plain.load(n) for n in range(len(plain.small.zone))]).T
    return float((np.maximum(loads * scale - threshold, 0.0) ** 2).sum())


def spread_leaders(plain: PlainState, scale: np.ndarray, threshold: float, trigger: float) -> int:
    """One sweep: each leader on a overfull node goes where the whole penalty becomes least."""
    small = plain.small
    changed = 0
    for p, row in enumerate(plain.placement):
        slot = plain.leader[p]
        if slot < 0 or row[slot] < 0:
            continue
        here = row[slot]
        overfull = (plain.load(here) * scale[:, here] > trigger) & (small.extra[p] > 0.0)
        if not overfull.any():
            continue
        before = penalty(plain, scale, threshold)
        best, least = slot, -1e-12
        for other, there in enumerate(row):
            if there < 0 or there == here or not small.leads[there]:
                continue
            gains = small.extra[p] > 0.0
            full = plain.load(there) + small.extra[p] > small.capacity[there]
            if (gains & full).any():
                continue
            plain.leader[p] = other
            change = penalty(plain, scale, threshold) - before
            plain.leader[p] = slot
            if change < least:
                best, least = other, change
        plain.leader[p] = best
        changed += int(best != slot)
    return changed
