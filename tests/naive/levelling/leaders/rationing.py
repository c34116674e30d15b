"""Leaders rationed in plain Python: of all that the fullest node could hand on, the best goes."""

import numpy as np

from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.leaders.chains import chain


def ration(
    plain: PlainState, scale: np.ndarray, leader_scale: np.ndarray, by_load: bool, changes: int
) -> None:
    """Hand on from the fullest node while one is overfull; at most ``changes`` leaders change."""
    nodes = range(len(plain.small.zone))
    origin = [_leader(plain, p) for p in range(len(plain.placement))]
    led: list[list[int]] = [[p for p, at in enumerate(origin) if at == n] for n in nodes]
    most = [1.0 / one if one > 0.0 else np.inf for one in leader_scale]
    stuck: set[int] = set()

    def spent() -> int:
        return sum(_leader(plain, p) != at for p, at in enumerate(origin))

    def affords(p: int, n: int) -> bool:
        away = n != origin[p] and _leader(plain, p) == origin[p]
        return spent() + int(away) <= changes

    while True:
        ratios = [_fullness(plain, scale, leader_scale, led, n, by_load) for n in nodes]
        high = [n for n in nodes if n not in stuck and ratios[n] > 1.0]
        if not high:
            return
        top = max(high, key=lambda n: (ratios[n], -n))
        found = _choices(plain, scale, leader_scale, led, top, origin)
        found = [one for one in found if affords(one[3], _node(plain, one[3], one[4]))]
        if found:
            *_, p, slot = min(found)
            links = [(p, slot, top, _node(plain, p, slot))]
        else:
            stuck.add(top)
            if len(led[top]) * leader_scale[top] <= 1.0:
                continue
            links = chain(plain, led, most, top, affords)
            more = sum((to != origin[p]) - (giver != origin[p]) for p, _, giver, to in links)
            if not links or (more > 0 and spent() + more > changes):
                continue
            stuck.remove(top)
        for p, slot, giver, to in reversed(links):
            plain.leader[p] = slot
            led[giver].remove(p)
            led[to].insert(0, p)


def _node(plain: PlainState, p: int, slot: int) -> int:
    return plain.placement[p][slot]


def _leader(plain: PlainState, p: int) -> int:
    return _node(plain, p, plain.leader[p]) if plain.leader[p] >= 0 else -1


def _fullness(plain, scale, leader_scale, led, n, by_load) -> float:
    ratios = [len(led[n]) * leader_scale[n]]
    if by_load:
        ratios += (plain.load(n) * scale[:, n]).tolist()
    return max(ratios)


def _choices(plain, scale, leader_scale, led, top, origin) -> list[tuple]:
    """What ``top`` could hand on: gain, changes that it takes, fullness there, partition, slot."""
    small, found = plain.small, []
    for p in led[top]:
        extra = small.extra[p]
        for slot, n in enumerate(plain.placement[p]):
            if n < 0 or n == top or not small.leads[n]:
                continue
            there, here = plain.load(n), plain.load(top)
            if ((extra > 0.0) & (there + extra > small.capacity[n])).any():
                continue
            change = _over((len(led[top]) - 1) * leader_scale[top])
            change += -_over(len(led[top]) * leader_scale[top])
            change += _over((len(led[n]) + 1) * leader_scale[n])
            change += -_over(len(led[n]) * leader_scale[n])
            full = (len(led[n]) + 1) * leader_scale[n]
            for d in np.flatnonzero(extra):
                part = _over((here[d] - extra[d]) * scale[d, top]) - _over(here[d] * scale[d, top])
                part += _over((there[d] + extra[d]) * scale[d, n])
                part -= _over(there[d] * scale[d, n])
                change += part
                full = max(full, (there[d] + extra[d]) * scale[d, n])
            if change <= -1e-12:
                more = int(n != origin[p]) - int(top != origin[p])
                found.append((change, more, full, p, slot))
    return found


def _over(ratio: float) -> float:
    return max(ratio - 1.0, 0.0) * max(ratio - 1.0, 0.0)
