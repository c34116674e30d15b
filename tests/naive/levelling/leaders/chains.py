"""Leadership relayed in plain Python: the shortest chain to a node with room, on lists."""

from collections.abc import Callable

import numpy as np

from tests.naive.levelling.best_fit import PlainState


def relay(plain: PlainState, most: list[float]) -> int:
    """Hand leadership on along chains until no node leads more than ``most``, or none is left."""
    small = plain.small
    nodes = range(len(small.zone))
    led: list[list[int]] = [[] for _ in nodes]
    for p, slot in enumerate(plain.leader):
        if slot >= 0 and plain.placement[p][slot] >= 0:
            led[plain.placement[p][slot]].append(p)
    changed = 0
    for top in nodes:
        while len(led[top]) > most[top]:
            links = chain(plain, led, most, top)
            if not links:
                break
            for p, slot, giver, taker in reversed(links):
                plain.leader[p] = slot
                led[giver].remove(p)
                led[taker].insert(0, p)
                changed += 1
    return changed


def chain(
    plain: PlainState,
    led: list[list[int]],
    most: list[float],
    top: int,
    affords: Callable[[int, int], bool] = lambda p, n: True,
) -> list[tuple[int, int, int, int]]:
    """Links (partition, slot, giver, taker) from ``top`` to the nearest node with room."""
    # node ``n`` may lead partition ``p`` only if that is what some budget ``affords``
    paths: dict[int, list[tuple[int, int, int, int]]] = {top: []}
    queue = [top]
    for here in queue:
        for p in led[here]:
            for slot, n in enumerate(plain.placement[p]):
                if n < 0 or n in paths or not could_take(plain, p, slot, n) or not affords(p, n):
                    continue
                paths[n] = [*paths[here], (p, slot, here, n)]
                if len(led[n]) + 1 <= most[n]:
                    return paths[n]
                queue.append(n)
    return []


def could_take(plain: PlainState, p: int, slot: int, n: int) -> bool:
    """Whether node ``n`` may lead ``p`` and stays within capacity and watermark."""
    small = plain.small
    if not small.leads[n] or slot == plain.leader[p]:
        return False
    more = small.extra[p] > 0.0
    there = plain.load(n) + small.extra[p]
    limit = np.minimum(small.capacity[n], small.watermark[n] * (1.0 + 1e-10))
    return not (more & (there > limit)).any()
