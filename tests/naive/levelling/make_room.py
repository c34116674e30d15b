"""Displacing in plain Python: who makes way for a replica that fits nowhere."""

import numpy as np

from tests.naive.levelling.best_fit import PlainState

Replica = tuple[int, int]


def victims(plain: PlainState, size: np.ndarray, comes: Replica, n: int) -> list[Replica] | None:
    """Replicas (partition, slot) that leave ``n``, in the order in which they are chosen."""
    small = plain.small
    p, slot = comes
    lack = plain.load(n) + plain.size(p, slot) - small.capacity[n]
    chosen: list[Replica] = []
    while (lack > 0.0).any():
        there = [
            (o, s)
            for o, row in enumerate(plain.placement)
            for s, at in enumerate(row)
            if at == n and size[o] < size[p] and (o, s) not in chosen
        ]
        alone = [one for one in there if (plain.size(*one)[lack > 0.0] >= lack[lack > 0.0]).all()]
        worth = [
            sum(min(w, need) / need for w, need in zip(plain.size(*one), lack, strict=True)
                if need > 0.0)
            for one in there
        ]  # fmt: skip
        if alone:
            best = min(alone, key=lambda one: size[one[0]])
        elif max(worth, default=0.0) > 0.0:
            best = there[worth.index(max(worth))]
        else:
            return None
        chosen.append(best)
        lack = lack - plain.size(*best)
    return chosen
