"""Count the violations of a placement: each rule per partition, group, node and domain."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.judge.world import COUNTS, NODE, REQUIREMENTS, VOTER, Bound, Standing, World

SLACK = 1e-9  # loads added up in another order agree within this share
# kind, whose ("partition", "group", "node", "domain of TIER"), its number, and the rest
Key = tuple[str, str, int, str]

# kinds that count rows and not amounts
PER_ROW = frozenset({"capacity", "transient", "tier_capacity", "lead"})


def of_partition(world: World, p: int, row: list[int], leader: int) -> Iterator[tuple[Key, float]]:
    """Yield what a partition breaks by itself."""
    placed = [n for n in row if n >= 0]
    wanted = world.wanted[p]

    def found(kind: str, amount: float, about: str = "") -> Iterator[tuple[Key, float]]:
        if amount > 0:
            yield (kind, "partition", p, about), amount

    dead = sum(not world.may_hold[n] and not world.serves[n] for n in placed)
    unkept = sum(not world.may_hold[n] and world.serves[n] for n in placed)
    yield from found("on_dead", dead)
    yield from found("not_kept", unkept)
    yield from found("unassigned", wanted - len(placed))
    yield from found("surplus", len(placed) - dead - unkept - wanted)
    yield from found("min_active", world.min_active[p] - world.live(row))
    if world.forbidden[p]:
        yield from found("forbidden", sum(n in placed for n in world.forbidden[p]))
    if world.pinned[p]:
        yield from found("pinned", sum(n not in placed for n in world.pinned[p]))
    at = row[leader] if 0 <= leader < len(row) else -1
    if at >= 0:
        yield from found("leader", not world.lawful(p, leader, at))
    elif world.has_leaders:
        yield from found("leaderless", wanted > 0)
    q, rules = world.rule[p], world.rules_of(p)
    for bound in world.bounds[q]:
        yield from found(_kind(bound), _beyond(world, rules, bound, placed, wanted > 0), bound.tier)
    if q >= 0:
        yield from _terms(world, p, q, row, at)


def _kind(bound: Bound) -> str:
    kind = "same_node" if (bound.kind, bound.tier) == ("spread", NODE) else bound.kind
    return kind if bound.hard else f"soft_{kind}"


def _beyond(
    world: World, rules: tuple[int, ...], bound: Bound, placed: list[int], wanted: bool
) -> int:
    """How far some replicas, whose nodes these rules restrict, are beyond one limit."""
    domain = world.domain[bound.tier]
    count = Counter(domain[n] for n in placed)
    count.pop(-1, None)
    if bound.kind == "spread":
        return sum(max(0, c - bound.amount) for c in count.values())
    if bound.kind == "max_domains":
        return len(count) - bound.amount
    if bound.kind == "min_domains":
        return bound.amount - len(count) if wanted else 0
    eligible = world.eligible(rules, bound.tier)
    if not eligible or not count:
        return 0
    return max(count.values()) - min(count[e] for e in eligible) - bound.amount


def _terms(world: World, p: int, q: int, row: list[int], leads: int) -> Iterator[tuple[Key, float]]:
    """Yield which replicas of a partition are where its rule does not want them."""
    rule = world.rules[q]
    voters = [n for n, role in zip(row, world.roles[p], strict=True) if role == VOTER and n >= 0]
    placed = [n for n in row if n >= 0]
    for kind, of_voters in REQUIREMENTS.items():
        those = voters if of_voters else placed
        masks = [world.mask(text) for text in rule.get(kind, ())]
        bad = sum(not all(mask[n] for mask in masks) for n in those)
        if bad:
            yield (kind, "partition", p, ""), bad
    for kind, of_voters in COUNTS.items():
        those = voters if of_voters else placed
        for text, least in rule.get(kind, {}).items():
            short = least - sum(world.wanted_on(kind, text)[n] for n in those)
            if short > 0 and world.wanted[p] > 0:
                yield (kind, "partition", p, text), short
    choices = [world.mask(text) for text in rule.get("lead", ())]
    behind = _behind(world, p, choices, row, leads)
    if behind > 0:
        yield ("lead", "partition", p, ""), behind


def _behind(world: World, p: int, choices: list[list[bool]], row: list[int], leads: int) -> int:
    """How many choices a leader is behind the best voter that could lead."""
    if not choices or leads < 0:
        return 0
    ranks = [_rank(choices, n) for slot, n in enumerate(row) if n >= 0 and world.lawful(p, slot, n)]
    return _rank(choices, leads) - min(ranks, default=len(choices))


def _rank(choices: list[list[bool]], n: int) -> int:
    return next((i for i, mask in enumerate(choices) if mask[n]), len(choices))


def of_group(world: World, g: int, standing: Standing) -> Iterator[tuple[Key, float]]:
    """Yield what a group breaks as a whole."""
    q = world.group_rule[g]
    if q < 0:
        return
    rule, wanted = world.rules[q], any(world.wanted[p] for p in world.members[g])
    placed = [n for p in world.members[g] for n in standing.rows[p] if n >= 0]
    for bound in world.group_bounds[q]:
        beyond = _beyond(world, (q,), bound, placed, wanted)
        if beyond > 0:
            yield (_kind(bound), "group", g, bound.tier), beyond
    voters = [
        n for p in world.members[g]
        for n, role in zip(standing.rows[p], world.roles[p], strict=True)
        if role == VOTER and n >= 0
    ]  # fmt: skip
    for kind, of_voters in REQUIREMENTS.items():
        those = voters if of_voters else placed
        masks = [world.mask(text) for text in rule.get(kind, ())]
        bad = sum(not all(mask[n] for mask in masks) for n in those)
        if bad:
            yield (kind, "group", g, ""), bad
    for kind, of_voters in COUNTS.items():
        those = voters if of_voters else placed
        for text, least in rule.get(kind, {}).items():
            short = least - sum(world.wanted_on(kind, text)[n] for n in those)
            if short > 0 and wanted:
                yield (kind, "group", g, text), short
    yield from _leaders_of_group(world, g, rule, standing)


def _leaders_of_group(
    world: World, g: int, rule: dict[str, list[str]], standing: Standing
) -> Iterator[tuple[Key, float]]:
    """Yield the members of a group whose leaders its rule would rather have elsewhere."""
    choices = [world.mask(text) for text in rule.get("lead", ())]
    if not choices:
        return
    for p in world.members[g]:
        if world.rule[p] >= 0 and world.rules[world.rule[p]].get("lead"):
            continue  # what a partition's own rule prefers goes before what its group's does
        behind = _behind(world, p, choices, standing.rows[p], standing.leader_node(p))
        if behind > 0:
            yield ("lead", "group", g, f"partition {p}"), behind


def of_nodes(
    world: World, standing: Standing, loads: list[list[float]], held: list[list[float]] | None
) -> Iterator[tuple[Key, float]]:
    """Yield which nodes, and domains, carry more than they can; ``held`` is what is leaving."""
    count = Counter(n for row in standing.rows for n in row)
    came = loads if held is None else world.loads(world.came)
    for n in range(world.nodes):
        if not world.carries[n]:
            continue
        for d, load in enumerate(loads[n]):
            room = world.capacity[n][d] * (1.0 + SLACK)
            if load > room:
                yield ("capacity", NODE, n, world.names[d]), load - world.capacity[n][d]
            elif (
                held is not None
                and held[n][d] > 0.0
                and load + held[n][d] > max(room, came[n][d] * (1.0 + SLACK))
            ):
                beyond = load + held[n][d] - world.capacity[n][d]
                yield ("transient", NODE, n, world.names[d]), beyond
        if 0 <= world.max_replicas[n] < count[n]:
            yield ("max_replicas", NODE, n, ""), count[n] - world.max_replicas[n]
    for tier, capacity in world.tier_capacity.items():
        for e, room_of in enumerate(capacity):
            inside = [n for n in range(world.nodes) if world.domain[tier][n] == e]
            for d, room in enumerate(room_of):
                load = sum(loads[n][d] for n in inside if world.carries[n])
                if load > room * (1.0 + SLACK):
                    yield ("tier_capacity", f"domain of {tier}", e, world.names[d]), load - room


def leaving(world: World, came: Standing, after: Standing) -> list[list[float]] | None:
    """Return what replicas that leave still weigh where they were, in transient dimensions."""
    if not world.transient:
        return None
    held = [[0.0] * world.dimensions for _ in range(world.nodes)]
    for p, row in enumerate(came.rows):
        for slot in leavers(row, after.rows[p]):
            if world.alive[row[slot]]:
                leads = after.leaders[p]
                ends = leads < 0 or after.rows[p][leads] < 0  # none leads it before it goes
                weights = [world.load_of(p, slot, one) for one in (-1, came.leaders[p])[: 1 + ends]]
                for d in world.transient:
                    held[row[slot]][d] += min(weight[d] for weight in weights)
    return held


def leavers(row: Sequence[int], after: Sequence[int]) -> list[int]:
    """Return the slots that leave: of several on a node as many as are fewer there, moved first."""
    moved = [slot >= len(after) or after[slot] != n for slot, n in enumerate(row)]
    left = Counter(after)
    found = []
    for slot in sorted(range(len(row)), key=lambda slot: (moved[slot], slot)):
        left[row[slot]] -= 1
        if row[slot] >= 0 and left[row[slot]] < 0:
            found.append(slot)
    return found


def everything(world: World, standing: Standing) -> dict[Key, float]:
    """Return all that a placement breaks, counted from the one that came in."""
    found: dict[Key, float] = {}
    for p, row in enumerate(standing.rows):
        found.update(of_partition(world, p, row, standing.leaders[p]))
        was = list(world.came.rows[p])
        closed = {n for n in row if n >= 0 and world.may_hold[n] and not world.accepts[n]}
        refused = sum(max(list(row).count(n) - was.count(n), 0) for n in closed)
        if refused:
            found["not_accepted", "partition", p, ""] = refused
    for g in range(len(world.group_rule)):
        found.update(of_group(world, g, standing))
    held = leaving(world, world.came, standing)
    found.update(of_nodes(world, standing, world.loads(standing), held))
    return found


def is_hard(kind: str) -> bool:
    """Whether a kind must not be."""
    return not kind.startswith("soft_") and kind != "lead"


def wishes(world: World, found: dict[Key, float]) -> int:
    """Add up what soft rules and preferred leaders are short of, by weight."""
    total = 0
    for (kind, whose, number, tier), amount in found.items():
        if not is_hard(kind):
            bounds = world.bounds[world.rule[number]]
            if whose == "group":
                bounds = world.group_bounds[world.group_rule[number]]
            weight = [one.weight for one in bounds if (_kind(one), one.tier) == (kind, tier)]
            total += int(amount) * (1 if kind == "lead" else weight[0])
    return total


def counted(found: dict[Key, float]) -> Counter[str]:
    """Add up what is broken by kind."""
    count: Counter[str] = Counter()
    for (kind, *_), amount in found.items():
        count[kind] += 1 if kind in PER_ROW else int(amount)
    return count
