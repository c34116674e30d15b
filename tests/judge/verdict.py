"""The verdict on a result: regressions, and claims that are false.

"Worse" is judged rule by rule and partition by partition (group by group, node by node), never by
sums that net out. Four readings of the design are taken on purpose:

* A replica on a dead node serves nothing, so dropping it loses nothing; where one is dropped and
  none takes its place, rules that ask for a least number count it as if it were still there.
* A partition led by a dead node is as good as leaderless: it may end leaderless, but not led anew
  by a node that may not lead.
* A node that was within its capacity stays within it, for whatever reason it is filled, and one
  above it takes no more. Placing and mending fill nodes up to their capacity only.
* Replicas that leave dead nodes do not count against ``node_out``: nothing is copied from there.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import evenkeel as ek
from tests.judge.broken import (
    SLACK,
    Key,
    counted,
    everything,
    is_hard,
    leaving,
    of_group,
    of_nodes,
    of_partition,
    wishes,
)  # fmt: skip
from tests.judge.disks import Lying
from tests.judge.even import (
    groups_met,
    leads_without_room,
    targets_without_room,
    too_empty,
    too_full,
)
from tests.judge.world import COUNTS, Standing, World

AT_LEAST = frozenset({"min_domains", "skew", *COUNTS})  # kinds that a dropped replica may break
# kinds that are judged by live replicas and lawful leaders instead
OF_REPLICAS = frozenset({"unassigned", "leader", "leaderless", "on_dead"})

RENAMED = {"tier_capacity": "tier_capacity"}  # kinds that the library calls otherwise


class Finding(NamedTuple):
    """Something wrong with a result: of which kind, and where."""

    kind: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


def standing_of(placement: ek.Placement) -> Standing:
    """Read where a result has its replicas."""
    first, node = placement.first.tolist(), placement.node.tolist()
    rows = [node[a:b] for a, b in itertools.pairwise(first)]
    return Standing(rows, placement.leader.tolist())


def judged(world: World, result: ek.Result, *, claims_only: bool = False) -> list[Finding]:
    """Return everything wrong with a result."""
    after = standing_of(result.placement)
    found = list(claims(world, after, result))
    if not claims_only:
        found += but_wishes(world, after, worse(world, after))
        found += exceeded(world, after)
    return found


def on_the_way(world: World, result: ek.Result, protocol: str) -> Iterator[Finding]:
    """Yield what a plan of a result breaks after a wave that its end keeps, or leaves undone."""
    # What serves is judged: a replica on a dead node crowds none, though one that is pinned there
    # stays. A copy that serves before what it replaces has gone is not one too many. Between the
    # promotion of one voter and the demotion of another, nodes are not judged. What has left by
    # then weighs no more in transient dimensions; the check of the plan counts what is leaving.
    # Soft rules and preferred leaders are judged at the end only: what is lost is copied first.
    try:
        plan = result.plan(protocol=protocol)
    except ek.InvalidInput:
        return  # roles that the protocol cannot change
    if not plan.check().ok:
        yield Finding("unsafe plan", f"{protocol}: {plan.check()}")
    end, asked = standing_of(plan.end), standing_of(result.placement)
    if not plan.blocked and any(
        {*one} - {-1} != {*other} - {-1} for one, other in zip(end.rows, asked.rows, strict=True)
    ):
        yield Finding("undone plan", f"{protocol}: {asked.rows} asked, ends at {end.rows}")
    # what serves at the end may break what it keeps with replicas that stay on dead nodes
    bare = _without_ghosts(world, end, [*range(len(world.wanted))])
    accepted = {_whose(one) for each in (end, asked, bare) for one in worse(world, each)}
    for done in range(1, len(plan.waves)):
        placement = plan.after(done)
        if (placement.flags & ek.Flag.INCOMING).any():
            continue  # what does not serve yet keeps no rule
        standing = by_role(world, placement)
        if standing is None:
            continue
        serving = _without_ghosts(world, standing, [*range(len(world.wanted))])
        kept = [{*row} for row in standing.rows]
        for one in worse(world, serving):
            if one.kind in ("lost a replica that waited", "broke surplus") or (
                one.kind.endswith(" transient") or one.kind.startswith("wish dropped")
            ):
                continue
            p = int(one.where.split()[1].rstrip(":,"))
            if one.kind == "broke pinned" and {*world.pinned[p]} <= kept[p]:
                continue
            if one.kind.startswith("broke ") and ": 0 -> " not in one.where:
                continue  # what the beginning breaks is not held
            if _whose(one) not in accepted:
                yield Finding(f"on the way: {one.kind}", f"{protocol}, wave {done}: {one.where}")


def by_role(world: World, placement: ek.Placement) -> Standing | None:
    """Read replicas into slots of their roles; None where a role has more of them than slots."""
    found = standing_of(placement)
    for p, row in enumerate(found.rows):
        first, wide = int(placement.first[p]), [-1] * len(row)
        role, lead = placement.role[first : first + len(row)].tolist(), found.leaders[p]
        free = [s for s, n in enumerate(row) if n < 0 or role[s] != world.roles[p][s]]
        elsewhere = {*free}
        if found.leader_node(p) < 0:
            found.leaders[p] = -1
        for s, n in enumerate(row):
            if n < 0:
                continue
            fits = s
            if s in elsewhere:
                fits = next((f for f in free if world.roles[p][f] == role[s]), -1)
                if fits < 0:
                    return None
                free.remove(fits)
            wide[fits] = n
            if s == lead:
                found.leaders[p] = fits
        found.rows[p] = wide
    return found


def _whose(found: Finding) -> tuple[str, str]:
    return found.kind, found.where.split(":")[0]


def but_wishes(world: World, after: Standing, found: Iterator[Finding]) -> Iterator[Finding]:
    """Leave out wishes that yielded to others, to goals, or to mending what was broken."""
    came = everything(world, world.came)
    mended = bool(world.case.goals.get("soft_yield")) or any(is_hard(kind) for kind, *_ in came)
    mended = mended or wishes(world, everything(world, after)) <= wishes(world, came)
    return (f for f in found if not (mended and f.kind.startswith("wish dropped")))


# worse than before -----------------------------------------------------------------------------


def worse(world: World, after: Standing) -> Iterator[Finding]:
    """Yield what held, or was less bad, in the placement that came in."""
    came = world.came
    touched = set()
    for p, row in enumerate(after.rows):
        if row == came.rows[p] and after.leaders[p] == came.leaders[p]:
            continue
        touched.add(world.group[p])
        yield from _worse_partition(world, p, after)
        n = after.leader_node(p)
        if n in world.behind[p] and n != came.leader_node(p):
            yield Finding("led from behind", f"partition {p}: node {n}")
    for g in sorted(touched):
        was, now = dict(of_group(world, g, came)), dict(of_group(world, g, after))
        alive = dict(of_group(world, g, _without_ghosts(world, came, world.members[g])))
        ghostly = dict(of_group(world, g, _with_ghosts(world, after, world.members[g])))
        for key, amount in now.items():
            least = min(amount, ghostly.get(key, 0.0)) if key[0] in AT_LEAST else amount
            most = max(was.get(key, 0.0), alive.get(key, 0.0) if key[0] in AT_LEAST else 0.0)
            if least > most:
                yield _broken(key, most, amount)
    if touched:
        yield from _worse_nodes(world, after)


def _broken(key: Key, was: float, now: float) -> Finding:
    kind, whose, number, about = key
    verb = "broke" if is_hard(kind) else "wish dropped"
    return Finding(f"{verb} {kind}", f"{whose} {number} {about}: {was:g} -> {now:g}")


def _worse_partition(world: World, p: int, after: Standing) -> Iterator[Finding]:
    came, row = world.came, after.rows[p]
    was = dict(of_partition(world, p, came.rows[p], came.leaders[p]))
    now = dict(of_partition(world, p, row, after.leaders[p]))
    alive = _without_ghosts(world, came, [p])
    held = dict(of_partition(world, p, alive.rows[p], alive.leaders[p]))
    was |= {key: max(held[key], was.get(key, 0.0)) for key in held if key[0] in AT_LEAST}
    ghostly: dict[Key, float] | None = None
    for key, amount in now.items():
        if key[0] in OF_REPLICAS or amount <= was.get(key, 0.0):
            continue
        if key[0] in AT_LEAST:
            if ghostly is None:
                full = _with_ghosts(world, after, [p])
                ghostly = dict(of_partition(world, p, full.rows[p], full.leaders[p]))
            if ghostly.get(key, 0.0) <= was.get(key, 0.0):
                continue
        yield _broken(key, was.get(key, 0.0), amount)
    yield from _worse_replicas(world, p, after)
    yield from _worse_leader(world, p, after)


def _worse_replicas(world: World, p: int, after: Standing) -> Iterator[Finding]:
    was, now, wanted = world.came.rows[p], after.rows[p], world.wanted[p]
    lived, live = world.live(was), world.live(now)
    if live < min(lived, wanted):
        yield Finding("lost a live replica", f"partition {p}: {lived} -> {live} of {wanted}")
    elif world.held(now) < min(world.held(was), wanted):
        yield Finding("lost a replica that waited", f"partition {p}: {was} -> {now}")
    for n in set(now) - set(was):
        if n >= 0 and not world.may_receive[n]:
            yield Finding("joined a node that takes none", f"partition {p}, node {n}")


def _worse_leader(world: World, p: int, after: Standing) -> Iterator[Finding]:
    came = world.came
    old, new = came.leader_node(p), after.leader_node(p)
    lawful = world.lawful(p, came.leaders[p], old)
    if new < 0:
        if old >= 0 and (lawful or world.serves[old]) and world.wanted[p] > 0:
            yield Finding("lost its leader", f"partition {p}: was led by {old}")
    elif not world.lawful(p, after.leaders[p], new) and new != old:
        dead = old < 0 or not world.serves[old]
        if lawful or dead or world.lawful(p, came.leaders[p], new):
            yield Finding("led by who may not lead", f"partition {p}: {old} -> {new}")


def _with_ghosts(world: World, after: Standing, members: list[int]) -> Standing:
    """Return a placement in which dropped replicas of dead nodes stand where they stood."""
    rows = list(after.rows)
    for p in members:
        row = list(rows[p])
        for n in world.came.rows[p]:
            if n >= 0 and not world.serves[n] and n not in row and -1 in row:
                row[row.index(-1)] = n
        rows[p] = row
    return Standing(rows, after.leaders)


def _without_ghosts(world: World, came: Standing, members: list[int]) -> Standing:
    """Return a placement without the replicas of dead nodes: what they alone held did not hold."""
    rows = list(came.rows)
    for p in members:
        rows[p] = [n if n >= 0 and world.serves[n] else -1 for n in rows[p]]
    return Standing(rows, came.leaders)


def _worse_nodes(world: World, after: Standing) -> Iterator[Finding]:
    came = world.came
    loads, earlier = world.loads(after), world.loads(came)
    was = dict(of_nodes(world, came, earlier, None))
    for key, beyond in of_nodes(world, after, loads, leaving(world, came, after)):
        kind, whose, number, about = key
        before = was.get(key, 0.0)
        if kind == "transient":  # a node that is over capacity stays so until all moves are done
            before = max(before, was.get(("capacity", whose, number, about), 0.0))
        slack = 0.0
        if kind in ("capacity", "transient") and beyond < np.inf:
            slack = SLACK * (world.capacity[number][world.names.index(about)] + beyond)
        if before == 0.0:
            yield Finding(f"broke {kind}", f"{whose} {number} {about}: beyond by {beyond:g}")
        elif beyond > before + slack + SLACK * before:
            yield Finding(
                f"worsened {kind}", f"{whose} {number} {about}: by {before:g} -> {beyond:g}"
            )


# budgets ----------------------------------------------------------------------------------------


class Way(NamedTuple):
    """What it takes from the placement that came in to another."""

    # partition, slot and node of every replica on a node that is new to its partition
    joined: list[tuple[int, int, int]]
    # partition and node of every replica whose partition left that node
    left: list[tuple[int, int]]
    leaders: int  # partitions that another node leads now, the one that did being alive


def way(world: World, after: Standing) -> Way:
    """Count what joined, left and led."""
    joined, left, leaders = [], [], 0
    for p, row in enumerate(after.rows):
        was = world.came.rows[p]
        joined += [(p, s, n) for s, n in enumerate(row) if n >= 0 and n not in was]
        left += [(p, n) for n in was if n >= 0 and n not in row]
        old = world.came.leader_node(p)
        new, wanted = after.leader_node(p), world.wanted[p] > 0
        leaders += old >= 0 and world.alive[old] and old != new and (new >= 0 or wanted)
    return Way(joined, left, leaders)


def moved_bytes(world: World, after: Standing, made: Way) -> float:
    """Add up what the replicas that joined weigh in the dimension that moves."""
    if world.bytes < 0:
        return 0.0
    return sum(world.load_of(p, s, after.leaders[p])[world.bytes] for p, s, _ in made.joined)


def exceeded(world: World, after: Standing) -> Iterator[Finding]:
    """Yield the budgets that are exceeded."""
    limits = world.case.limits
    if not limits:
        return
    made = way(world, after)
    into = [0] * world.nodes
    out = [0] * world.nodes
    for _, _, n in made.joined:
        into[n] += 1
    for _, n in made.left:
        out[n] += world.serves[n]
    spent: dict[str, float] = {
        "moves": len(made.joined),
        "bytes": moved_bytes(world, after, made),
        "node_in": max(into, default=0),
        "node_out": max(out, default=0),
        "leader_changes": made.leaders,
        "partition_moves": max(
            (sum(p == q for q, _, _ in made.joined) for p, _, _ in made.joined), default=0
        ),
    }
    for which, moved in (("domain_in", made.joined), ("domain_out", made.left)):
        for tier, budget in limits.get(which, {}).items():
            busiest = max(_crossings(world, tier, after, which, moved).values(), default=0)
            if busiest > budget:
                yield Finding(f"exceeded {which}", f"{tier}: {busiest} of {budget}")
    for name, budget in limits.items():
        if budget is not None and name in spent and spent[name] > budget * (1.0 + SLACK):
            yield Finding(f"exceeded {name}", f"{spent[name]:g} of {budget:g}")


def _crossings(
    world: World, tier: str, after: Standing, which: str, moved: list[tuple[int, ...]]
) -> Counter[int]:
    """Count the replicas that entered, or left, each domain of a tier; those inside it did not."""
    # what was lost with its node is not copied out of the domain, as it is not out of the node
    domain = world.domain[tier]
    entering = which == "domain_in"
    count: Counter[int] = Counter()
    for p in {p for p, *_ in moved}:
        came = [n for n in world.came.rows[p] if n >= 0]
        was = Counter(domain[n] for n in came if entering or world.serves[n])
        now = Counter(domain[n] for n in after.rows[p] if n >= 0)
        count += now - was if entering else was - now
    count.pop(-1, None)
    return count


# claims -----------------------------------------------------------------------------------------


def claims(world: World, after: Standing, result: ek.Result) -> Iterator[Finding]:
    """Yield what a result says of itself, or of any placement, that is not so."""
    found = everything(world, after)
    count = counted(found)
    yield from _false_counts(world, after, result, found)
    hard = sum(amount for kind, amount in count.items() if is_hard(kind))
    reached = goals_reached(world, after, result)
    if world.disks:
        lying = Lying(world, after, result)
        yield from (Finding(kind, where) for kind, where in lying.findings())
        hard += lying.broken
        reached = None if lying.broken or lying.above else reached
    yield from _false_status(result, hard, reached, bool(world.case.limits))
    if hard == 0:
        yield from (Finding("goals met too full", told) for told in too_full(world, after, result))
    yield from (
        Finding("targets without room", f"{count:g} of {where} are forced, {most:g} allowed")
        for where, count, most in targets_without_room(world, result)
    )
    yield from (
        Finding("leader targets without room", text) for text in leads_without_room(world, result)
    )
    if world.case.goals.get("floor") is not None:
        yield from (Finding("floor", told) for told in too_empty(world, after, result))
    yield from _false_bounds(world, "after", after, result, hard == 0)
    valid = not any(is_hard(kind) for kind, *_ in everything(world, world.came))
    if valid:
        yield from _false_bounds(world, "before", world.came, result, True)


def _false_counts(
    world: World, after: Standing, result: ek.Result, found: dict[Key, float]
) -> Iterator[Finding]:
    count = counted(found)
    told = {RENAMED.get(kind, kind): n for kind, n in result.audit.counts.items()}
    for kind in sorted({*told, *count}):
        if told.get(kind, 0) != count[kind]:
            yield Finding(f"miscounted {kind}", f"{told.get(kind, 0)} told, {count[kind]} are")
    listed = {RENAMED.get(row.kind, row.kind) for row in result.violations}
    for kind in listed ^ {kind for kind, n in count.items() if n}:
        yield Finding("violations not as listed", kind)
    made = way(world, after)
    for name, is_so, says in (
        ("moves", len(made.joined), result.comparison.moves),
        ("moves listed", len(made.joined), len(result.moves)),
        ("leader changes", made.leaders, result.comparison.leader_changes),
        ("hard violations", sum(n for k, n in count.items() if is_hard(k)), result.audit.hard),
    ):
        if is_so != says:
            yield Finding(f"miscounted {name}", f"{says} told, {is_so} are")
    moved = moved_bytes(world, after, made)
    if world.bytes >= 0 and abs(moved - result.comparison.bytes_moved) > 1e-6 * max(1.0, moved):
        yield Finding("miscounted bytes", f"{result.comparison.bytes_moved} told, {moved} are")
    short = sum(
        max(0, want - world.held(row)) for want, row in zip(world.wanted, after.rows, strict=True)
    )
    try:
        listed_short = len(result.unplaced)
    except Exception as error:
        yield Finding(f"result.unplaced raised {type(error).__name__}", str(error)[:200])
        return
    told_short = re.search(r"last ([\d,]+) of the replicas", result.message)
    if told_short is not None and int(told_short[1].replace(",", "")) != listed_short:
        yield Finding("message miscounts the unplaced", f"{result.message!r}, {listed_short} are")
    if listed_short != short:
        yield Finding("unplaced not as listed", f"{listed_short} listed, {short} are")


def _false_status(
    result: ek.Result, hard: int, reached: bool | None, limited: bool
) -> Iterator[Finding]:
    said = f"{result.status}, {result.stop_reason}, {result.message!r}"
    if result.success and hard:
        yield Finding("success with rules broken", f"{hard}; {said}")
    if result.status == "partial" and not hard:
        yield Finding("partial with nothing broken", said)
    if result.status == "missed" and hard:
        yield Finding("only goals missed with rules broken", f"{hard}; {said}")
    if result.success == (result.status in ("missed", "partial", "infeasible")):
        yield Finding("success and status disagree", said)
    if result.status == "infeasible" and not hard:
        yield Finding("infeasible with nothing broken", said)
    if result.stop_reason == "limits" and not limited:
        yield Finding("stopped by limits without any", said)
    if reached is None:
        return
    if result.goals_reached != reached:
        yield Finding("goals misreported", f"reached {result.goals_reached}, in fact {reached}")
    if not reached:
        if result.stop_reason == "tolerance":
            yield Finding("tolerance without reaching the goals", said)
        if result.status == "optimal" and result.stop_reason != "optimum":
            yield Finding("optimal without reaching the goals", said)
        if result.success and result.method == "balance":
            yield Finding("success without reaching the goals", said)
        if "goals are met" in result.message:
            yield Finding("message says goals met", said)
    elif result.status == "missed" or "goals are missed" in result.message:
        yield Finding("message says goals missed", said)


def goals_reached(world: World, after: Standing, result: ek.Result) -> bool | None:
    """Whether every node is within the targets; None where that hangs on a rounding."""
    # ``too_full`` and ``too_empty`` say whether these targets are what tolerances ask for
    loads, close = world.loads(after), False
    for load, floor in zip(loads, result.bounds.floor.tolist(), strict=True):
        for held, least in zip(load, floor, strict=True):
            if held < least * (1.0 - 1e-8) - 1e-12:
                return False
            close |= held < least * (1.0 - 1e-10)
    for n in range(world.nodes):
        if not world.carries[n]:
            continue
        for d, target in enumerate(result.bounds.target[n].tolist()):
            if loads[n][d] > target * (1.0 + 1e-8) + 1e-12:
                return False
            close |= loads[n][d] > target * (1.0 + 1e-10)
    for n, led in enumerate(_led(world, after)):
        if led > float(result.bounds.leader_target[n]):
            return False
    within = groups_met(world, after)
    return None if close and within else within


def _led(world: World, after: Standing) -> list[int]:
    led = [0] * world.nodes
    for p in range(world.partitions):
        if (n := after.leader_node(p)) >= 0:
            led[n] += 1
    return led


def _false_bounds(
    world: World, when: str, standing: Standing, result: ek.Result, valid: bool
) -> Iterator[Finding]:
    """Yield the bounds that a placement is below; they are of those that break no hard rule."""
    if not valid:
        return
    proven, loads = result.bounds, world.loads(standing)
    for d, name in enumerate(world.names):
        most = 0.0
        for n in range(world.nodes):
            if world.carries[n] and loads[n][d] > 0.0:
                room = world.capacity[n][d]
                most = max(most, loads[n][d] / room if room > 0.0 else np.inf)
        if float(proven.level[d]) > most * (1.0 + 1e-7) + 1e-12:
            yield Finding("level bound above the attained", f"{when}, {name}: "
                          f"{float(proven.level[d])!r} > {most!r}")  # fmt: skip
    led = [standing.leader_node(p) for p in range(world.partitions)]
    fullest = max((led.count(n) for n in set(led) if n >= 0), default=0)
    if proven.leaders > fullest:
        yield Finding("leader bound above the attained", f"{when}: {proven.leaders} > {fullest}")
    moves = len(way(world, standing).joined)
    if proven.moves_feasible > moves:
        yield Finding("bound on mending moves too high", f"{when}: "
                      f"{proven.moves_feasible} > {moves}")  # fmt: skip
    met = groups_met(world, standing)
    filled = met and _within(
        world, proven.floor.tolist(), [[(1 + 1e-9) * x for x in row] for row in loads]
    )
    if proven.moves_level > moves and filled and _within(world, loads, proven.target.tolist()):
        yield Finding("bound on moves too high", f"{when}: {proven.moves_level} > {moves}")


def _within(world: World, loads: list[list[float]], target: list[list[float]]) -> bool:
    return all(
        load <= most
        for at, to in zip(loads, target, strict=True)
        for load, most in zip(at, to, strict=True)
    )
