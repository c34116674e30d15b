"""Check the documented meaning of tolerances: no node is more than 5 % above the mean.

Where all replicas weigh the same, whole ones may force more: the mean rounded up, or what rules
leave no place for elsewhere. What is forced is found by trying every set of nodes. A node that
accepts nothing holds what it has at most, and a partition keeps one elsewhere to be led. Where one
that accepts has endless capacity there is no mean, but only what is forced.

Nor may one that accepts replicas be further below the mean than a floor says, where no rule speaks
of domains or nodes: that is the mean of all that accept replicas or hold some.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

import evenkeel as ek
from tests.judge.world import COUNTS, NODE, REQUIREMENTS, Bound, Standing, World

MOST_NODES = 8
NEARLY = 1e-9


def _usable(world: World) -> list[int]:
    """Return the nodes that may hold replicas: those that accept them, or have some and keep."""
    held = {n for row in world.came.rows for n in row}
    return [n for n in range(world.nodes)
            if world.may_receive[n] or (world.may_hold[n] and n in held)]  # fmt: skip


def _leading(world: World) -> list[int]:
    """Return those of them that may lead."""
    return [n for n in _usable(world) if world.may_lead[n]]


def too_full(world: World, after: Standing, result: ek.Result) -> Iterator[str]:
    """Yield the nodes above what tolerances ask for, of a result that says that goals are met."""
    usable = _usable(world)
    if len(usable) > MOST_NODES or not (result.goals_reached and result.audit.ok):
        return
    goals, loads = world.case.goals, world.loads(after)
    level = goals.get("level", 0.05)
    asked = [level.get(name) if isinstance(level, dict) else level for name in world.names]
    alike = [d for d in range(world.dimensions) if asked[d] is not None and world.unit(d) > 0.0]
    soft = any(one.kind == "spread" and not one.hard
               for one in itertools.chain(*world.bounds, *world.group_bounds))  # fmt: skip
    if len(alike) == 1 and not soft:  # several may contend; what soft spreads leave is not counted
        d = alike[0]
        unit = world.unit(d)
        room = {n: world.capacity[n][d] / unit if world.alive[n] else inf for n in usable}
        own = {n: world.capacity[n][d] / unit * (1.0 + NEARLY) // 1.0 for n in usable}
        forced = _replicas_forced(world, own)
        counts = {n: loads[n][d] / unit for n in usable if world.serves[n]}
        if _is_plainly_within(room, asked[d] or 0.0, forced, counts):
            counts = {}
        most = allowance(room, asked[d] or 0.0, forced) if counts else {}
        for n, count in counts.items():
            if count > most[n] + NEARLY * count:
                yield f"{world.names[d]} of node {n}: {count:g} replicas, {most[n]:g} are allowed"
    tolerance = goals.get("leaders")
    if tolerance is None or not world.has_leaders:
        return
    able = _leading(world)
    weight = {n: float(world.lead_weight[n]) for n in able}
    forced = _leaders_forced(world, able, result)
    at = [after.leader_node(p) for p in range(world.partitions)]
    counts = {n: float(at.count(n)) for n in able}
    if _is_plainly_within(weight, tolerance, forced, counts):
        return
    most = allowance(weight, tolerance, forced)
    for n, led in counts.items():
        if led > most[n] + NEARLY:
            yield f"node {n} leads {led:g}, {most[n]:g} are allowed"


def targets_without_room(world: World, result: ek.Result) -> Iterator[tuple[str, float, float]]:
    """Yield sets of nodes into which more is forced than their targets allow, and both."""
    # no placement meets such goals, of which a result says no more than that they are missed
    usable = _usable(world)
    level = world.case.goals.get("level", 0.05)
    asked = [level.get(name) if isinstance(level, dict) else level for name in world.names]
    alike = [d for d in range(world.dimensions) if asked[d] is not None and world.unit(d) > 0.0]
    ruled = any((COUNTS | REQUIREMENTS).keys() & rule.keys() for rule in world.rules)
    plain = all(world.may_receive[n] for n in usable) and result.audit.ok and ruled
    if len(usable) > MOST_NODES or len(alike) != 1 or not plain:
        return
    d = alike[0]
    own = {n: world.capacity[n][d] / world.unit(d) * (1.0 + NEARLY) // 1.0 for n in usable}
    forced = _replicas_forced(world, own)
    target = np.floor(result.bounds.target[:, d] / world.unit(d) * (1.0 + NEARLY))
    for size in range(1, len(usable) + 1):
        for some in itertools.combinations(usable, size):
            count, most = forced(frozenset(some)), float(sum(target[n] for n in some))
            if most < min(count, sum(own[n] for n in some)):
                yield world.names[d] + " of nodes " + ", ".join(map(str, some)), count, most


def too_empty(world: World, after: Standing, result: ek.Result) -> Iterator[str]:
    """Yield nodes below what floors ask for, and floors that ask for more than was asked."""
    # the latter of any result, the former of one that says that goals are met
    asked = world.case.goals.get("floor")
    loads, floors, targets = world.loads(after), result.bounds.floor, result.bounds.target
    for d, name in enumerate(world.names):
        tolerance = asked.get(name) if isinstance(asked, dict) else asked
        if tolerance is None:
            if floors[:, d].any():
                yield f"{name}: a floor that nobody asked for"
            continue
        means = _means(world, d)
        for n in range(world.nodes):
            room = world.capacity[n][d] if max(means) > 0.0 else 0.0
            most = (1.0 - tolerance) * max(means) * room if world.may_receive[n] else 0.0
            if floors[n][d] > most * (1.0 + NEARLY):
                yield f"{name} of node {n}: floor {floors[n][d]:g}, {most:g} is asked"
            if not result.goals_reached or not world.may_receive[n] or _is_ruled(world):
                continue
            least = min((1.0 - tolerance) * min(means) * room, _standing(world, n, d),
                        float(targets[n][d]))  # fmt: skip
            if (unit := world.unit(d)) > 0.0:
                least = floor(least / unit * (1.0 + NEARLY)) * unit
            if loads[n][d] < least * (1.0 - 1e-8):
                yield f"{name} of node {n}: {loads[n][d]:g}, at least {least:g} is asked"


class GroupGoal(NamedTuple):
    """Replicas and leaders of some partitions that each node may have, and should lead."""

    members: list[int]
    held: float
    led: list[float]
    least: list[int]


def group_goals(world: World) -> list[GroupGoal] | None:
    """Return what goals within groups ask; None where rules may force more."""
    goals = world.case.goals
    groups, leaders = goals.get("groups"), goals.get("group_leaders")
    chosen = goals.get("min_leaders", {})
    if groups is None and leaders is None and not chosen:
        return []
    everyone = range(world.nodes)
    able = [n for n in everyone if world.may_lead[n]]
    plain = not any(bound.tier != NODE for bounds in world.bounds for bound in bounds)
    if not plain or not able or len({world.lead_weight[n] for n in able}) > 1 or any(world.pinned):
        return None
    found = []
    for g, members in enumerate(world.members):
        asked = max((k for name, k in chosen.items() if fnmatchcase(f"g{g}", name)), default=0)
        wanted = sum(world.wanted[p] for p in members)
        leads = sum(world.wanted[p] > 0 for p in members) if world.has_leaders else 0
        room = [_room(world, members, n, world.capacity[n]) for n in everyone]
        takers = [n for n in able if world.may_receive[n] and room[n]]
        least, tolerance = min(asked, leads // max(len(takers), 1)), leaders
        if least < asked and leaders is None:
            tolerance = 0.0  # too few for all: none has two more than another
        share = max(
            _share(leads, [room[n] for n in able]), _share_beside_kept(world, members, able)
        )
        if least < asked:
            share = max(share, leads / max(len(takers), 1))
        most = inf if tolerance is None else max(least, _most(share, tolerance))
        found.append(
            GroupGoal(
                members,
                inf if groups is None else _most(_share(wanted, room), groups),
                [most if n in able and leads else inf for n in everyone],
                [least * (n in takers) for n in everyone],
            )
        )
    return found


def _share_beside_kept(world: World, members: list[int], able: list[int]) -> float:
    """Return the share of what no node may lead that takes nothing."""
    takers = [n for n in able if world.may_receive[n]]
    alone = sum(
        world.wanted[p] > 0 and not any(_may_lead(world, p, n) for n in able if n not in takers)
        for p in members if world.has_leaders
    )  # fmt: skip
    room = [_room(world, members, n, world.capacity[n]) for n in takers]
    return _share(alone, room) if any(room) else 0.0


def _room(world: World, members: list[int], n: int, most: list[float]) -> int:
    """Return how many replicas of some partitions a node may hold within so much of each load."""
    takes, keeps = world.may_receive[n], world.may_hold[n]
    lightest = [
        [min(table[p][d] for table in (world.voter_load, world.leader_load, world.light_load))
         for d in range(world.dimensions)]
        for p in range(world.partitions)
    ]  # fmt: skip
    pinned = [p for p in range(world.partitions) if n in world.pinned[p]]
    stays = {p for p in members if p in pinned}
    free = [
        p for p in members
        if world.wanted[p] and n not in world.forbidden[p] and p not in stays
        and (takes or (keeps and n in world.came.rows[p]))
    ]  # fmt: skip
    room = len(stays) + len(free)
    if takes and world.max_replicas[n] >= 0:
        room = min(room, world.max_replicas[n])
    for d, load in enumerate(most):
        left = load * (1.0 + NEARLY) - sum(lightest[p][d] for p in pinned)
        totals = itertools.accumulate(sorted(lightest[p][d] for p in free))
        room = min(room, len(stays) + sum(total <= left for total in totals))
    return room


def _share(count: int, room: list[int]) -> float:
    """Return the even share of nodes that may hold any, none holding more than it has room for."""
    free = sorted(most for most in room if most)
    share = count / max(len(free), 1)
    while sum(free) >= count and free and free[0] < share * (1.0 - NEARLY):
        count -= free.pop(0)
        share = count / max(len(free), 1)
    return share


def groups_met(world: World, after: Standing) -> bool | None:
    """Whether goals within groups are met; None where that is not known."""
    asked = group_goals(world)
    if asked is None:
        return None
    for goal in asked:
        held = Counter(n for p in goal.members for n in after.rows[p])
        led = Counter(after.leader_node(p) for p in goal.members)
        for n in range(world.nodes):
            if held[n] > goal.held or not goal.least[n] <= led[n] <= goal.led[n]:
                return False
    return True


def _most(share: float, tolerance: float) -> int:
    """Return the whole replicas within a tolerance above a share, or the share rounded up."""
    return max(floor((1.0 + tolerance) * share * (1.0 + NEARLY)), ceil(share * (1.0 - NEARLY)))


def _is_ruled(world: World) -> bool:
    """Whether rules may leave less for a node than the mean."""
    bounds = [*itertools.chain(*world.bounds, *world.group_bounds)]
    terms = any(rule.keys() - {"spread", "min_domains", "max_domains", "skew"}
                for rule in world.rules)  # fmt: skip
    able = [may for n, may in enumerate(world.may_lead) if world.may_receive[n]]
    everywhere = max(world.wanted, default=0) >= sum(world.may_hold)  # one of each on every node
    return (
        terms
        or everywhere
        or any(one.tier != NODE for one in bounds)
        or bool(world.tier_capacity)
        or (world.has_leaders and not all(able))
    )


def _means(world: World, d: int) -> tuple[float, float]:
    """Return the mean of a load over nodes that accept, and over all that accept or hold some."""
    heaviest = [max(table[p][d] for table in (world.voter_load, world.leader_load,
                                              world.light_load))
                for p in range(world.partitions)]  # fmt: skip
    total = sum(
        led * world.leader_load[p][d] + voting * world.voter_load[p][d]
        + (want - led - voting) * world.light_load[p][d]
        for p, want in enumerate(world.wanted)
        for led in [min(want, int(world.has_leaders))]
        for voting in [max(world.voters[p] - led, 0)]
    )  # fmt: skip
    held = [sum(row.count(n) * heaviest[p] for p, row in enumerate(world.came.rows))
            for n in range(world.nodes)]  # fmt: skip
    over = sum(world.capacity[n][d] for n in range(world.nodes) if world.may_receive[n])
    if not 0.0 < over < inf:
        return 0.0, 0.0
    room, left = over, total
    for n in range(world.nodes):
        if world.may_hold[n] and not world.may_receive[n]:
            if not world.alive[n]:
                left -= held[n]
            elif held[n] > 0.0:
                room += world.capacity[n][d]
    return total / over, max(left, 0.0) / room


def _standing(world: World, n: int, d: int) -> float:
    """Return the load of all replicas that may stand on a node at once."""
    # each in a role that some replica of the partition has
    each = sorted((
        max(table[p][d] for table, many in (
            (world.leader_load, led), (world.voter_load, world.voters[p] - led),
            (world.light_load, want - world.voters[p]),
        ) if many > 0)
        for p, want in enumerate(world.wanted) if want and n not in world.forbidden[p]
        for led in [int(world.has_leaders)]
    ), reverse=True)  # fmt: skip
    return sum(each[: world.max_replicas[n]] if world.max_replicas[n] >= 0 else each)


def _is_plainly_within(
    room: dict[int, float], tolerance: float, forced: Callable[[frozenset[int]], float],
    counts: dict[int, float],
) -> bool:  # fmt: skip
    """Whether all are within the tolerance above the mean of all nodes, which is always allowed."""
    inside = sum(room.values())
    mean = max(forced(frozenset(room)), 0.0) / inside if 0.0 < inside < inf else 0.0
    return mean > 0.0 and all(
        count <= (1.0 + tolerance) * mean * room[n] for n, count in counts.items()
    )


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


def _replicas_forced(world: World, own: dict[int, float]) -> Callable[[frozenset[int]], float]:
    """Say how many replicas find no place outside a set of nodes, by their ``own`` capacities."""
    # that is what rules leave no place for outside, or outside of what is limited as well, but for
    # what has room there
    most: dict[int, float] = {}
    for n in own:
        holds = inf if world.max_replicas[n] < 0 else world.max_replicas[n]
        if not world.may_receive[n]:
            holds = min(holds, sum(row.count(n) for row in world.came.rows))
        if not world.alive[n]:  # what is beyond its capacity has to leave
            holds = min(holds, own[n])
        if holds < inf:
            most[n] = holds
    found: dict[frozenset[int], float] = {}
    kinds: dict[object, list[int]] = {}
    for p, want in enumerate(world.wanted):
        held = tuple(sorted(n for n in world.came.rows[p] if n in own and not world.may_receive[n]))
        key = want, world.voters[p], world.rules_of(p), frozenset(world.forbidden[p]), held
        kinds.setdefault(key, []).append(p)
    alike = [
        (members[0], len(members), _rows_of_terms(world, members[0])) for members in kinds.values()
    ]

    def alone(inside: frozenset[int]) -> float:
        if inside not in found:
            outside = [n for n in own if n not in inside]
            found[inside] = max(
                sum(many * _alone(world, p, outside, rows) for p, many, rows in alike),
                sum(max(0.0, sum(world.wanted[p] for p in world.members[g])
                             - _group_places(world, g, outside))
                    for g in range(len(world.members))),
            )  # fmt: skip
        return found[inside]

    def forced(inside: frozenset[int]) -> float:
        limited = [n for n in most if n not in inside]
        return max(
            alone(inside.union(some)) - sum(most[n] for n in some)
            for size in range(len(limited) + 1)
            for some in itertools.combinations(limited, size)
        )

    return forced


def _alone(world: World, p: int, outside: list[int], rows: list[tuple[int, ...]]) -> float:
    """Count the replicas of a partition that some nodes may not hold; one of all has to lead."""
    # nor do they hold more than in any of the ``rows`` that terms allow, if any
    rule, row = world.rule[p], world.came.rows[p]
    held = {
        n: inf if world.may_receive[n] else row.count(n) for n in outside
        if world.open[rule][n] and n not in world.forbidden[p]
        and (world.may_receive[n] or n in row)
    }  # fmt: skip
    led = world.has_leaders and not any(world.may_lead[n] for n in held)
    bounds, wanted = world.bounds[rule], world.wanted[p]
    places = min(
        _within_spread(world, bounds, held),
        _within_domains(world, bounds, world.rules_of(p), held, wanted),
    )
    there = {*outside}
    asked = min((sum(n not in there for n in row) for row in rows), default=0)
    return max(world.wanted[p] - places, 1.0 if led and world.wanted[p] else 0.0, float(asked))


def _rows_of_terms(world: World, p: int) -> list[tuple[int, ...]]:
    """Return the rows of a partition that terms allow; none where it has no such rule."""
    rules = [world.rules[q] for q in world.rules_of(p) if q >= 0]
    if not any((COUNTS | REQUIREMENTS).keys() & rule.keys() for rule in rules):
        return []
    bounds = [one.amount for one in world.bounds[world.rule[p]]
              if one.kind == "spread" and one.tier == NODE and one.hard]  # fmt: skip
    each = min(bounds, default=world.wanted[p])

    def open_to(*kinds: str) -> list[int]:
        masks = [
            world.mask(text) for rule in rules for kind in kinds for text in rule.get(kind, ())
        ]
        return [n for n in _usable(world) if all(mask[n] for mask in masks)]

    counted = world.rules[world.rule[p]] if world.rule[p] >= 0 else {}
    terms = [
        (world.wanted_on(kind, text), least, of_voters)
        for kind, of_voters in COUNTS.items() for text, least in counted.get(kind, {}).items()
    ]  # fmt: skip
    voting = {*open_to(*REQUIREMENTS)}

    def allows(row: tuple[int, ...]) -> bool:
        votes = [[n for n in some if n in voting]
                 for some in set(itertools.combinations(row, world.voters[p]))]  # fmt: skip
        return all(row.count(n) <= each for n in row) and any(
            len(some) == world.voters[p]
            and all(sum(on[n] for n in (some if of_voters else row)) >= least
                    for on, least, of_voters in terms)
            for some in votes
        )  # fmt: skip

    rows = itertools.combinations_with_replacement(open_to("require"), world.wanted[p])
    return [row for row in rows if allows(row)]


def _group_places(world: World, g: int, outside: list[int]) -> float:
    """Count the replicas of a group that nodes may hold."""
    rule, rows = world.group_rule[g], [world.came.rows[p] for p in world.members[g]]
    held = {
        n: inf if world.may_receive[n] else sum(row.count(n) for row in rows)
        for n in outside if world.open[rule][n]
    }  # fmt: skip
    bounds, wanted = world.group_bounds[rule], sum(world.wanted[p] for p in world.members[g])
    return min(
        _within_spread(world, bounds, held), _within_domains(world, bounds, (rule,), held, wanted)
    )


def _within_spread(world: World, bounds: list[Bound], held: dict[int, float]) -> float:
    """Count what nodes hold at most where so many may be in a domain."""
    spread = {one.tier: one.amount for one in bounds if one.kind == "spread" and one.hard}
    held = {n: min(most, spread.get(NODE, inf)) for n, most in held.items()}
    places = sum(held.values())
    for tier, amount in spread.items():
        inside: dict[int, float] = {}
        for n, most in held.items():
            inside[world.domain[tier][n]] = inside.get(world.domain[tier][n], 0.0) + most
        beside = inside.pop(-1, 0.0)  # nodes outside every domain take any number
        places = min(places, beside + sum(min(amount, there) for there in inside.values()))
    return places


def _within_domains(
    world: World, bounds: list[Bound], rules: tuple[int, ...], held: dict[int, float], wanted: int
) -> float:
    """Count what nodes hold at most where all domains have about as many, or several have some."""
    places = float(wanted)
    for one in bounds:
        domain = world.domain[one.tier]
        if one.kind == "min_domains" and one.hard:
            there = len({domain[n] for n, most in held.items() if most} - {-1})
            places = min(places, wanted - max(min(one.amount, wanted) - there, 0))
        eligible = world.eligible(rules, one.tier) if one.kind == "skew" and one.hard else []
        if not eligible:
            continue
        inside = dict.fromkeys(eligible, 0.0)
        for n, most in held.items():
            inside[domain[n]] = inside.get(domain[n], 0.0) + most
        places = min(places, max(
            sum(min(inside[e], least) for e in eligible)
            + min(wanted - least * len(eligible),
                  sum(inf if e < 0 else min(one.amount, max(most - least, 0.0)) if e in eligible
                      else min(least + one.amount, most) for e, most in inside.items()))
            for least in range(wanted // len(eligible) + 1)
        ))  # fmt: skip
    return places


def _leaders_forced(
    world: World, able: list[int], result: ek.Result
) -> Callable[[frozenset[int]], float]:
    """Say how many partitions can be led in a set of nodes only, within the targets of loads."""
    most = _most_led(world, able, _room_to_lead(world, able, result.bounds.target.tolist()))
    everywhere = most(frozenset(able))
    return lambda inside: everywhere - most(frozenset(able) - inside)


def _room_to_lead(world: World, able: list[int], most: list[list[float]]) -> dict[int, float]:
    """Return how many partitions nodes may hold within so much of each load."""
    return {n: float(_room(world, [*range(world.partitions)], n, most[n])) for n in able}


def _most_led(
    world: World, able: list[int], room: Mapping[int, float]
) -> Callable[[frozenset[int]], float]:
    """Say how many partitions nodes can lead, none more than it has room for."""
    # of some nodes, those without room for all lead as many as they can, and the others what they
    # may: the least of that over all choices of the former (Hall; Ford and Fulkerson)
    leaders = Counter(
        frozenset(n for n in able if _may_lead(world, p, n))
        for p, want in enumerate(world.wanted) if want
    )  # fmt: skip

    def most(some: frozenset[int]) -> float:
        return min(
            sum(room[n] for n in full)
            + sum(count for may, count in leaders.items() if may & some - {*full})
            for size in range(len(some) + 1)
            for full in itertools.combinations(some, size)
        )

    return cache(most)


def _may_lead(world: World, p: int, n: int) -> bool:
    """Whether a partition may be led from a node that may lead."""
    wanted_of_voters = [
        text for q in world.rules_of(p) if q >= 0
        for kind in REQUIREMENTS for text in world.rules[q].get(kind, ())
    ]  # fmt: skip
    keeps = n in world.came.rows[p] and n not in world.forbidden[p]
    return (world.may_receive[n] or keeps) and all(world.mask(text)[n] for text in wanted_of_voters)


def leads_without_room(world: World, result: ek.Result) -> Iterator[str]:
    """Yield whether fewer can be led within the targets than within those of loads alone."""
    able = _leading(world)
    if len(able) > MOST_NODES or world.case.goals.get("leaders") is None or not world.has_leaders:
        return
    room = _room_to_lead(world, able, result.bounds.target.tolist())
    target = result.bounds.leader_target.tolist()
    within = {n: min(most, target[n] // 1.0) for n, most in room.items()}
    could, can = (_most_led(world, able, most)(frozenset(able)) for most in (room, within))
    if can < could:
        yield f"{could:g} partitions can be led, {can:g} within {target}"
