"""Moving two replicas of a partition at once, by trying every two nodes."""

import numpy as np

from tests.support.small_problems import Small


def loads(small: Small, placement: list[list[int]]) -> np.ndarray:
    """What every node carries, (N, D)."""
    total = np.zeros_like(small.capacity)
    for p, row in enumerate(placement):
        for slot, n in enumerate(row):
            if n >= 0:
                total[n] += small.load[p] + (small.extra[p] if slot == small.leader[p] else 0.0)
    return total


def penalty(small: Small, placement: list[list[int]]) -> float:
    """Sum of the squares of what is above the watermarks, in units of these."""
    over = loads(small, placement) / np.maximum(small.watermark, 1e-30) - 1.0
    return float((np.maximum(over, 0.0) ** 2).sum())


def overfull(small: Small, placement: list[list[int]], n: int) -> bool:
    """Whether a node is above one of its watermarks."""
    return bool((loads(small, placement)[n] > small.watermark[n] * (1 + 1e-10)).any())


def may(small: Small, placement: list[list[int]], p: int, slots: tuple[int, int]) -> bool:
    """Whether the rules admit where the two replicas of partition ``p`` have come to."""
    row = placement[p]
    carried = loads(small, placement)
    for slot in slots:
        n = row[slot]
        if not small.accepts[n] or not (small.allowed is None or small.allowed[p, n]):
            return False
        if slot == small.leader[p] and not small.leads[n]:
            return False
        if (carried[n] > small.capacity[n]).any() or row.count(n) > 1:
            return False
        if sum(small.zone[m] == small.zone[n] for m in row if m >= 0) > small.per_zone:
            return False
        for mask, least in zip(small.inside, small.least, strict=True):
            if mask[n]:
                continue
            inside = sum(m < 0 or mask[m] for m in row)
            if least < 0 or inside < least:
                return False
    return True


def lacks_no_more(small: Small, row: list[int], before: list[int]) -> bool:
    """Whether every term is as well met as before, by what has a node alone."""

    def lack(nodes: list[int], mask: list[bool], least: int) -> int:
        inside = sum(n >= 0 and mask[n] for n in nodes)
        outside = sum(n >= 0 and not mask[n] for n in nodes)
        return outside if least < 0 else max(0, least - inside)

    return all(
        lack(row, *term) <= lack(before, *term)
        for term in zip(small.inside, small.least, strict=True)
    )


def best_pair(small: Small, p: int, slots: tuple[int, int]) -> float:
    """The least change of the penalty that two nodes for these replicas bring; inf if none may."""
    k, j = slots
    nodes = range(len(small.zone))
    before = penalty(small, small.placement)
    best = np.inf
    for n in nodes:
        for m in nodes:
            if n == small.placement[p][k]:
                continue
            tried = [list(row) for row in small.placement]
            tried[p][k], tried[p][j] = n, m
            if may(small, tried, p, slots) and lacks_no_more(small, tried[p], small.placement[p]):
                best = min(best, penalty(small, tried) - before)
    return best
