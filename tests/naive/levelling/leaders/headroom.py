"""Drawing off in plain Python: the largest replicas, until all load could find a place."""

import numpy as np

from tests.support.small_problems import Small


def reserve_leader_headroom(
    small: Small, leader: list[int], leaving: list[list[bool]], extra: np.ndarray
) -> list[tuple[int, int]]:
    """Choose partitions and slots; ``leader`` holds who did not stand down."""
    placement, both = small.placement, small.load + small.extra
    held: list[list[tuple[int, int]]] = [[] for _ in small.zone]
    for p, row in enumerate(placement):
        for slot, n in enumerate(row):
            if n >= 0:
                held[n].append((p, slot))
    rows = range(len(placement))
    loads = [sum((both if leader[p] == slot else small.load)[p] for p, slot in one) for one in held]
    total = np.asarray(extra + sum(loads))
    could = [
        np.zeros_like(total)
        + sum(
            (both if small.leads[n] or leader[p] == slot else small.load)[p]
            for p, slot in one
            if not leaving[p][slot]
        )
        for n, one in enumerate(held)
    ]
    wanting = total.copy()
    for p in rows:
        gone = [slot for slot in range(len(placement[p])) if leaving[p][slot]]
        for slot in gone:
            wanting -= both[p] if slot == gone[0] else small.load[p]
            wanting += small.load[p] if placement[p][slot] < 0 else 0.0
    wanting -= sum(np.minimum(small.watermark[n], could[n]) for n in range(len(could)))
    wanting += np.where(wanting > 0.0, np.minimum(0.012 * total, 0.5 * wanting), 0.0)
    share = (both / np.maximum(total, 1e-30)).max(axis=1)
    chosen = []
    for p in sorted(rows, key=lambda p: -share[p]):
        if (wanting <= 1e-9 * total).all():
            break
        for slot, n in enumerate(placement[p]):
            if any(leaving[p]) or n < 0:
                continue
            if (could[n] - both[p] >= small.watermark[n] - 1e-9 * total).all():
                could[n] -= both[p]
                wanting -= both[p]
                chosen.append((p, slot))
                break
    return chosen
