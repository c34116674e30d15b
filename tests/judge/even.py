"""The sentence of the README, tested by itself: no node may be more than 5 % above the mean.

Where all replicas weigh the same, whole ones may force more: the mean rounded up, or what rules
leave no place for elsewhere. What is forced is found by trying every set of nodes. A node that
accepts nothing holds what it has at most. Where one that accepts has endless capacity there is no
mean, and only rules force anything anywhere, wherever replicas are now.
"""

import itertools
from collections.abc import Callable, Iterator
from math import ceil, floor, inf

import evenkeel as ek
from tests.judge.world import Standing, World

MOST_NODES = 8
NEARLY = 1e-9


def too_full(world: World, after: Standing, result: ek.Result) -> Iterator[str]:
    """Yield the nodes above what tolerances ask for, of a result that says that goals are met."""
    held = {n for row in world.came.rows for n in row}
    usable = [n for n in range(world.nodes)
              if world.may_receive[n] or (world.may_hold[n] and n in held)]  # fmt: skip
    if len(usable) > MOST_NODES or not result.goals_reached:
        return
    goals, loads = world.case.goals, world.loads(after)
    level = goals.get("level", 0.05)
    asked = [level.get(name) if isinstance(level, dict) else level for name in world.names]
    alike = [d for d in range(world.dimensions) if asked[d] is not None and world.unit(d) > 0.0]
    if len(alike) == 1:  # several of them may contend
        d = alike[0]
        unit = world.unit(d)
        room = {n: world.capacity[n][d] / unit for n in usable}
        for n in usable:
            if not world.alive[n]:
                room[n] = inf
        endless = any(world.may_receive[n] and room[n] == inf for n in usable)
        takes = [endless or may for may in world.may_receive]
        most = allowance(room, asked[d] or 0.0, _replicas_forced(world, usable, takes))
        for n in usable:
            count = loads[n][d] / unit
            if world.serves[n] and count > most[n] + NEARLY * count:
                yield f"{world.names[d]} of node {n}: {count:g} replicas, {most[n]:g} are allowed"
    tolerance = goals.get("leaders")
    if tolerance is None or not world.has_leaders:
        return
    able = [n for n in usable if world.may_lead[n]]
    weight = {n: float(world.lead_weight[n]) for n in able}
    most = allowance(weight, tolerance, _leaders_forced(world, able))
    for n in able:
        led = sum(after.leader_node(p) == n for p in range(world.partitions))
        if led > most[n] + NEARLY:
            yield f"node {n} leads {led}, {most[n]:g} are allowed"


def allowance(
    room: dict[int, float], tolerance: float, forced: Callable[[frozenset[int]], float]
) -> dict[int, float]:
    """Return how many a node may have, by what is forced into every set of nodes."""
    mean, whole = 0.0, 0.0
    for size in range(1, len(room) + 1):
        for some in itertools.combinations(room, size):
            count, inside = forced(frozenset(some)), [room[n] for n in some]
            if count <= 0.0 or not 0.0 < sum(inside) < inf:
                continue
            mean = max(mean, count / sum(inside))
            if count < inf:
                whole = max(whole, _whole(inside, ceil(count - NEARLY)))
    if mean == 0.0:
        return dict.fromkeys(room, inf)
    return {
        n: inf
        if inf in (whole, at)
        else max((1.0 + tolerance) * mean * at, floor(whole * at * (1.0 + NEARLY)))
        for n, at in room.items()
    }


def _whole(room: list[float], count: int) -> float:
    """Return the least level at which so many whole ones have room."""
    steps = sorted({k / at for at in room if at > 0.0 for k in range(1, count + 1)})
    for level in steps:
        if sum(floor(level * at * (1.0 + NEARLY)) for at in room) >= count:
            return level
    return inf


def _replicas_forced(
    world: World, usable: list[int], takes: list[bool]
) -> Callable[[frozenset[int]], float]:
    """Say how many replicas find no place outside a set of nodes, some of which take no more."""

    def forced(inside: frozenset[int]) -> float:
        outside = [n for n in usable if n not in inside]
        total = 0.0
        for p, want in enumerate(world.wanted):
            free = [
                n for n in outside
                if world.open[world.rule[p]][n] and n not in world.forbidden[p]
                and (takes[n] or n in world.came.rows[p])
            ]  # fmt: skip
            places = sum(inf if takes[n] else world.came.rows[p].count(n) for n in free)
            for one in world.bounds[world.rule[p]]:
                domain = [world.domain[one.tier][n] for n in free]
                if one.kind == "spread" and one.hard and min(domain, default=0) >= 0:
                    places = min(places, one.amount * len(set(domain)))
            total += max(0.0, want - places)
        room = min(_room(world, outside, takes, tier) for tier in world.domain)
        return max(total, sum(world.wanted) - room, _led_alone(world, inside, outside))

    return forced


def _room(world: World, outside: list[int], takes: list[bool], tier: str) -> float:
    """Count the replicas that nodes hold at most, and each domain of a tier by the rules."""
    of_all = [
        min((one.amount for one in world.bounds[world.rule[p]]
             if one.kind == "spread" and one.hard and one.tier == tier), default=inf)
        for p in range(world.partitions)
    ]  # fmt: skip
    held: dict[int, float] = {}
    for n in outside:
        most = inf if world.max_replicas[n] < 0 else world.max_replicas[n]
        if not takes[n]:
            most = min(most, sum(row.count(n) for row in world.came.rows))
        if world.domain[tier][n] < 0:
            return inf
        held[world.domain[tier][n]] = held.get(world.domain[tier][n], 0.0) + most
    return sum(min(most, sum(of_all)) for most in held.values())


def _led_alone(world: World, inside: frozenset[int], outside: list[int]) -> float:
    """Count the leaders that have to be inside, as nodes outside may not lead."""
    able = [n for n in (*inside, *outside) if world.may_lead[n]]
    led = sum(want > 0 for want in world.wanted) if world.has_leaders else 0
    return led if able and not any(world.may_lead[n] for n in outside) else 0


def _leaders_forced(world: World, able: list[int]) -> Callable[[frozenset[int]], float]:
    """Say how many partitions can be led in a set of nodes only."""

    def forced(inside: frozenset[int]) -> float:
        outside = [n for n in able if n not in inside]
        return sum(
            want > 0
            and not any(
                world.open[world.rule[p]][n] and (world.may_receive[n] or n in world.came.rows[p])
                for n in outside
            )
            for p, want in enumerate(world.wanted)
        )

    return forced
