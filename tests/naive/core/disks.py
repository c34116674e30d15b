"""The disks of one node in plain Python: every placement of its replicas is tried."""

from itertools import product


def fewest_moves(
    size: list[float], home: list[int], fixed: list[bool], usable: list[bool], target: list[float]
) -> int | None:
    """Return the fewest moves inside a node that keep every disk to its target; None: none do."""
    disks, best = range(len(usable)), None
    for where in product(disks, repeat=len(size)):
        if any(fixed[i] and d != home[i] for i, d in enumerate(where)):
            continue
        if any(not usable[d] and not fixed[i] for i, d in enumerate(where)):
            continue
        load = [0.0] * len(usable)
        for i, d in enumerate(where):
            load[d] += size[i]
        if any(usable[d] and load[d] > target[d] * (1 + 1e-9) for d in disks):
            continue
        moves = sum(h >= 0 and d != h for h, d in zip(home, where, strict=True))
        if best is None or moves < best:
            best = moves
    return best
