"""Best fit in plain Python: every node tried for every replica."""

import numpy as np

from tests.naive.core.node_scan import preference
from tests.support.small_problems import Small


class PlainState:
    """Loads and places of a `Small`, recomputed from the lists every time they are asked for."""

    def __init__(self, small: Small) -> None:
        self.small = small
        self.placement = [list(row) for row in small.placement]
        self.leader = list(small.leader)

    def size(self, p: int, slot: int) -> np.ndarray:
        """Load of a replica in the role that it has."""
        extra = self.small.extra[p] if slot == self.leader[p] else 0.0
        return self.small.load[p] + extra

    def load(self, n: int) -> np.ndarray:
        """Load of node ``n``, added up in the order of the replicas."""
        total = np.zeros(self.small.load.shape[1])
        for p, row in enumerate(self.placement):
            for slot, at in enumerate(row):
                if at == n:
                    total += self.size(p, slot)
        return total

    def led_from(self, n: int) -> int:
        """How many partitions node ``n`` leads."""
        return sum(
            slot >= 0 and row[slot] == n
            for row, slot in zip(self.placement, self.leader, strict=True)
        )

    def admits(self, p: int, slot: int, n: int) -> bool:
        """Whether the rules let that replica move to ``n``."""
        small, row = self.small, self.placement[p]
        here = row[slot]
        if n == here or not small.accepts[n]:
            return False
        if small.allowed is not None and not small.allowed[p, n]:
            return False
        if slot == self.leader[p] and not small.leads[n]:
            return False
        if (self.load(n) + self.size(p, slot) > small.capacity[n]).any():
            return False
        others = [at for s, at in enumerate(row) if s != slot and at >= 0]
        if n in others:
            return False
        same = here >= 0 and small.zone[here] == small.zone[n]
        in_zone = sum(small.zone[at] == small.zone[n] for at in others)
        if not same and in_zone >= small.per_zone:
            return False
        for inside, least in zip(small.inside, small.least, strict=True):
            if inside[n]:
                continue
            there = sum(inside[at] for at in others)
            if least < 0:
                return False
            if here < 0:
                open_slots = sum(at < 0 for s, at in enumerate(row) if s != slot)
                if there + open_slots < least:
                    return False
            elif inside[here] and there < least:
                return False
        return True


def best_fit(
    small: Small,
    order: list[tuple[int, int]],
    forced: list[bool],
    ceiling: float,
    most_leaders: np.ndarray,
) -> list[list[int]]:
    """Return the placement after moving the replicas (partition, slot) of ``order`` in turn."""
    plain = PlainState(small)
    n_nodes = len(small.zone)
    for (p, slot), must in zip(order, forced, strict=True):
        k = sum(map(len, small.placement[:p])) + slot
        best = None
        for n in range(n_nodes):
            if not plain.admits(p, slot, n):
                continue
            used = (plain.load(n) + plain.size(p, slot)) * (
                1.0 / np.maximum(small.watermark[n], 1e-30)
            )
            score = float(used.max())
            if slot == plain.leader[p]:
                score = max(score, (plain.led_from(n) + 1) / (most_leaders[n] * (1.0 + 1e-10)))
            if not must and score > ceiling:
                continue
            key = (preference(score, n, k, n_nodes), n)
            best = key if best is None else min(best, key)
        if best is not None:
            plain.placement[p][slot] = best[1]
    return plain.placement
