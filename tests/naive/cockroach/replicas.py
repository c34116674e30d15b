"""CockroachDB's decisions about one range, spelled out store by store and draw by draw.

Everything is worked out from the stores themselves, nothing from classes of stores that are alike,
and where the original draws at random all outcomes are listed.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations, permutations, product

AVAILABLE, THROTTLED, SUSPECT, DRAINING, UNKNOWN, DECOMMISSIONING, DEAD = range(7)
CLOSE = 1e-10


@dataclass
class Store:
    host: int
    tiers: tuple = ()
    attributes: frozenset = frozenset()
    status: int = AVAILABLE
    ready: bool = True
    ranges: float = 0.0
    qps: float = 0.0
    used: float = 0.0  # fraction of its disk
    io: float = 0.0


@dataclass
class Problem:
    """``constraints``: (list of (wanted, key, value), number), for all replicas and for voters."""

    stores: list
    replicas: int = 0
    voters: int = 0
    constraints: list = field(default_factory=list)
    voter_constraints: list = field(default_factory=list)
    by_load: bool = False
    impact: float = 0.0
    io_block: bool = True


def pair(a, b):
    """Diversity of two stores."""
    x = [value for _, value in a.tiers] + [str(a.host)]
    y = [value for _, value in b.tiers] + [str(b.host)]
    least = min(len(x), len(y))
    for i in range(least):
        if x[i] != y[i]:
            return (least - i) / least
    return 0.0 if len(x) == len(y) else 1 / (least + 1)


def mean(values):
    return sum(values) / len(values) if values else 1.0


def spread(problem, held):
    """Diversity of a range whose replicas are on these stores, one of them perhaps twice."""
    return mean([pair(problem.stores[a], problem.stores[b]) for a, b in combinations(held, 2)])


def satisfies(store, conjunction):
    def holds(wanted, key, value):
        has = (key, value) in store.tiers if key else value in store.attributes
        return has == wanted

    return all(holds(*one) for one in conjunction)


def check(problem, table, total, held, change, s, r=None):
    """(valid, necessary) of store ``s``; ``held`` are the replicas that count."""
    if not table:
        return True, False
    free = 0 < sum(number for _, number in table) < total
    valid, necessary = free, False
    for conjunction, number in table:
        count = sum(satisfies(problem.stores[e], conjunction) for e in held)
        fits = satisfies(problem.stores[s], conjunction)
        left = r is not None and satisfies(problem.stores[r], conjunction)
        if change == "add" and fits:
            if count < number:
                return True, True
            valid = True
        if change == "remove" and fits:
            if count <= number:
                return True, True
            valid = True
        if change in ("rebalance", "replace") and fits:
            necessary |= count < number or (count == number and left)
            valid = True
        elif change == "replace" and left and count <= number:
            return False, False
    return valid, necessary


def asked(problem, voters, others, is_voter, change, s, r=None):
    """What both tables say: (valid, necessary, whether voters' constraints need it)."""
    held = [*voters, *others]
    valid, needed = check(problem, problem.constraints, problem.replicas, held, change, s, r)
    if not is_voter:
        return valid, needed, False
    also, by_voters = check(
        problem, problem.voter_constraints, problem.voters, voters, change, s, r
    )
    return valid and also, needed or by_voters, by_voters


def value(problem, s):
    store = problem.stores[s]
    return store.qps if problem.by_load else store.ranges


def margin(problem, m):
    return max(0.1 * m, 100.0) if problem.by_load else max(0.05 * m, 2.0)


def level(problem, s, m):
    if value(problem, s) < m - margin(problem, m):
        return 1
    return -1 if value(problem, s) >= m + margin(problem, m) else 0


def nearer(x, changed, m):
    return abs(changed - m) < abs(x - m)


def compare(c, o):
    """How much better one candidate is; candidates are dicts, what is missing is 0."""
    get = lambda one, key: one.get(key, 0)  # noqa: E731
    if not o["valid"] or not c["valid"]:
        return 600 if not o["valid"] else -600
    if get(o, "full") or get(c, "full"):
        return 500 if get(o, "full") else -500
    for key, worth in (("needed", 400), ("promotes", 350)):
        if get(c, key) != get(o, key):
            return worth if get(c, key) else -worth
    if abs(c["diversity"] - o["diversity"]) > CLOSE:
        return math.copysign(300, c["diversity"] - o["diversity"])
    if get(c, "overloaded") and get(o, "overloaded") and c["io"] != o["io"]:
        return 250 if c["io"] < o["io"] else -250
    if get(c, "overloaded") != get(o, "overloaded"):
        return -250 if get(c, "overloaded") else 250
    for key, worth in (("converges", 200), ("balance", 150)):
        steps = (get(c, key) - get(o, key)) / 10
        if steps:
            return steps + math.copysign(worth, steps)
    if get(c, "non_voter") != get(o, "non_voter"):
        return 100 if get(c, "non_voter") else -100
    a, b = get(c, "ranges"), get(o, "ranges")
    if a == b:
        return 0
    return (b - a) / b if a < b else -(a - b) / a


def drawn(candidates, sign):
    """All that may come of drawing two different ones and keeping the better (or worse) one."""
    if len(candidates) < 2:
        return list(candidates)
    kept = []
    for a, b in permutations(candidates, 2):
        one = b if sign * compare(b, a) > 0 else a
        if one not in kept:
            kept.append(one)
    return kept


def same(a, b, keys):
    return all(
        abs(a.get(key, 0) - b.get(key, 0)) <= CLOSE
        if key == "diversity"
        else a.get(key, 0) == b.get(key, 0)
        for key in keys
    )


BASICS = ("needed", "promotes", "diversity")
LADDER = (*BASICS, "converges", "balance", "non_voter")


def best(candidates, keys=LADDER):
    fit = [c for c in candidates if c["valid"] and not c.get("full") and not c.get("overloaded")]
    if not fit:
        return []
    key = lambda c: (  # noqa: E731
        bool(c.get("needed")), bool(c.get("promotes")), round(c["diversity"], 9),
        *(c.get(name, 0) for name in keys if name not in BASICS),
    )  # fmt: skip
    top = max(fit, key=key)
    return [c for c in fit if same(c, top, keys)]


def worst(candidates, keys):
    for bad in (lambda c: not c["valid"], lambda c: bool(c.get("full"))):
        some = [c for c in candidates if bad(c)]
        if some and len(some) < len(candidates):
            return some
    if not candidates:
        return []
    key = lambda c: (  # noqa: E731
        bool(c.get("needed")), round(c["diversity"], 9),
        *(c.get(name, 0) for name in keys if name not in BASICS),
    )  # fmt: skip
    bottom = min(candidates, key=key)
    return [c for c in candidates if same(c, bottom, keys)]


def to_add(problem, voters, others, is_voter, replaced=None, recovers=False):
    """(stores that tie at the top, all outcomes of the draw)."""
    change = "add" if replaced is None else "replace"
    live = [s for s, store in enumerate(problem.stores) if store.status == AVAILABLE]
    rows = []
    for s in live:
        valid, needed, _ = asked(problem, voters, others, is_voter, change, s, replaced)
        if valid and problem.stores[s].used < 0.95:
            rows.append((s, needed))
    m = mean([value(problem, s) for s, _ in rows])
    held = [e for e in (voters if is_voter else [*voters, *others]) if e != replaced]
    hosts = {problem.stores[e].host for e in held}
    candidates = [
        {
            "store": s,
            "valid": True,
            "needed": needed,
            "diversity": mean([pair(problem.stores[s], problem.stores[e]) for e in held]),
            "balance": level(problem, s, m),
            "non_voter": is_voter and s in others,
            "ranges": problem.stores[s].ranges,
        }
        for s, needed in rows
        if problem.stores[s].host not in hosts and problem.stores[s].ready
    ]
    tied = best(candidates, BASICS if recovers else LADDER)
    return sorted(c["store"] for c in tied), {c["store"] for c in drawn(tied, 1)}


def to_remove(problem, voters, others, is_voter):
    """(the worst, all outcomes of the draw)."""
    row = voters if is_voter else others
    among = voters if is_voter else [*voters, *others]
    candidates = []
    for s in row:
        if problem.stores[s].status in (DEAD, UNKNOWN, DECOMMISSIONING):
            continue
        valid, needed, _ = asked(problem, voters, others, is_voter, "remove", s)
        far = mean([pair(problem.stores[s], problem.stores[e]) for e in among if e != s])
        candidates.append({
            "store": s, "valid": valid, "needed": valid and needed,
            "full": valid and problem.stores[s].used >= 0.95, "diversity": far if valid else 0.0,
            "ranges": problem.stores[s].ranges,
        })  # fmt: skip
    candidates = worst(candidates, BASICS)
    m = mean([value(problem, c["store"]) for c in candidates])
    loads = [value(problem, c["store"]) for c in candidates]
    for i, c in enumerate(candidates):
        here = loads[i]
        c["balance"] = level(problem, c["store"], m)
        if problem.by_load:
            c["converges"] = -1 if i == loads.index(max(loads)) else 0
        else:
            c["converges"] = 0 if nearer(here, here - 1, m) else 1
    candidates = worst(candidates, (*BASICS, "converges", "balance"))
    outcomes = set()
    for a, b in (
        permutations(candidates, 2) if len(candidates) > 1 else [(c, c) for c in candidates]
    ):
        outcomes.add((b if b["ranges"] > a["ranges"] else a)["store"])
    return sorted(c["store"] for c in candidates), outcomes


def classes(problem, voters, others, is_voter):
    """Per listed replica its candidate and those of its class; and whether one must move."""
    fine = (AVAILABLE, THROTTLED) if problem.by_load else (AVAILABLE,)
    row = voters if is_voter else others
    among = voters if is_voter else [*voters, *others]
    found, must = [], False
    for r in sorted(row):
        if problem.stores[r].status not in fine:
            continue
        valid, needed, by_voters = asked(problem, voters, others, is_voter, "remove", r)
        now = {
            "store": r, "valid": valid, "needed": needed, "full": problem.stores[r].used >= 0.95,
            "diversity": spread(problem, among),
        }  # fmt: skip
        must = must or not valid or now["full"]
        rest = [e for e in among if e != r]
        fit = []
        for s, store in enumerate(problem.stores):
            if s == r or store.status not in fine or not store.ready:
                continue
            if not is_voter and s in voters:
                continue
            ok, needs, for_voters = asked(problem, voters, others, is_voter, "rebalance", s, r)
            one = {
                "store": s, "valid": ok, "needed": needs, "full": store.used >= 0.95,
                "promotes": is_voter and s in others and for_voters and not by_voters,
                "diversity": spread(problem, [*rest, s]),
            }  # fmt: skip
            if compare(one, now) >= 0:
                fit.append(one)
                must = must or compare(one, now) > 0
        found.append((now, best(fit, BASICS)))
    return found, must


def lightest(problem, now, members):
    """The store of a class to which the load of a replica would go, or None."""
    one = min(members, key=lambda c: (value(problem, c["store"]), c["store"]))
    source, least = value(problem, now["store"]), value(problem, one["store"])
    m = (sum(value(problem, c["store"]) for c in members) + source) / (len(members) + 1)
    if least > source or source <= m + margin(problem, m):
        return None
    return one["store"] if max(source - problem.impact, 0.0) - least >= 200.0 else None


def should_move(problem, now, members):
    if not members:
        return False
    if problem.by_load:
        return lightest(problem, now, members) is not None
    m = mean([problem.stores[c["store"]].ranges for c in members])
    over, under = math.ceil(m + margin(problem, m)), math.floor(m - margin(problem, m))
    here = problem.stores[now["store"]].ranges
    fewer = any(problem.stores[c["store"]].ranges < under for c in members)
    return here > over or (here > m and fewer)


def rebalance(problem, voters, others, is_voter):
    """(whether something should move, all outcomes as (target, removed); None for none)."""
    should, outcomes = scored_rebalance(problem, voters, others, is_voter)
    return should, {one and one[:2] for one in outcomes}


def scored_rebalance(problem, voters, others, is_voter):
    """The same, the outcomes with how much better the target is."""
    found, must = classes(problem, voters, others, is_voter)
    if not must and not any(should_move(problem, *one) for one in found):
        return False, {None}
    row = voters if is_voter else others
    options = []
    for now, members in found:
        if not members:
            continue
        m = mean([value(problem, c["store"]) for c in members])
        goes = lightest(problem, now, members) if problem.by_load else None
        here = value(problem, now["store"])
        if problem.by_load:
            now["converges"] = -1 if goes is not None else 0
        else:
            now["converges"] = 0 if nearer(here, here - 1, m) else 1
        now["balance"] = level(problem, now["store"], m)
        now["ranges"] = problem.stores[now["store"]].ranges
        limit = max(0.3, 1.1 * mean([problem.stores[c["store"]].io for c in members]))
        kept = []
        for c in members:
            if c["store"] in row:
                continue
            there, store = value(problem, c["store"]), problem.stores[c["store"]]
            c = dict(c, full=store.used >= 0.925, io=store.io, ranges=store.ranges)
            c["overloaded"] = problem.io_block and c["io"] >= limit
            c["balance"] = level(problem, c["store"], m)
            c["converges"] = int(
                c["store"] == goes if problem.by_load else nearer(there, there + 1, m)
            )
            if compare(c, now) > 0:
                kept.append(c)
        if kept:
            options.append((now, kept))
    return True, set(_outcomes(problem, voters, others, is_voter, options))


def _outcomes(problem, voters, others, is_voter, options):
    choices = [(i, drawn(best(kept), 1)) for i, (_, kept) in enumerate(options)]
    choices = [(i, some) for i, some in choices if some]
    if not choices:
        yield None
        return
    seen = set()
    for picked in product(*(some for _, some in choices)):
        pairs = [(i, c) for (i, _), c in zip(choices, picked, strict=True)]
        at, target = pairs[0]
        most = compare(target, options[at][0])
        for i, c in pairs[1:]:
            gain = compare(c, options[i][0])
            if gain > most + CLOSE or (gain >= most - CLOSE and compare(c, target) >= 0):
                at, target, most = i, c, gain
        if (at, target["store"]) in seen:
            continue
        seen.add((at, target["store"]))
        yield from _simulated(problem, voters, others, is_voter, options, at, target, most)


def _simulated(problem, voters, others, is_voter, options, at, target, score):
    s = target["store"]
    if target.get("promotes"):
        yield s, options[at][0]["store"], score
        return
    if is_voter:
        _, gone = to_remove(problem, sorted([*voters, s]), [e for e in others if e != s], True)
    else:
        _, gone = to_remove(problem, voters, sorted([*others, s]), False)
    if not gone:
        yield None
    for removed in gone:
        if removed != s:
            yield s, removed, score
        else:
            left = list(options)
            left[at] = (left[at][0], [c for c in left[at][1] if c["store"] != s])
            yield from _outcomes(problem, voters, others, is_voter, left)


def needed_voters(configured, hosts):
    need = min(configured, hosts)
    if need == configured:
        return need
    return min(max(need if need % 2 else need - 1, 3), configured)


def action(status, voters, others, wanted, wanted_voters, hosts, learners=0, joint=False):
    """(name, priority) of the first thing that a range needs."""
    if joint:
        return "FinalizeAtomicReplicationChange", 12002
    if learners:
        return "RemoveLearner", 12001
    need = needed_voters(wanted_voters, hosts)
    have = len(voters)
    dead = sum(status[s] == DEAD for s in voters)
    live = sum(status[s] not in (DEAD, UNKNOWN) for s in voters)
    leaving = sum(status[s] == DECOMMISSIONING for s in voters)
    if have < need:
        return "AddVoter", 10000 + need // 2 + 1 - have
    if live < have // 2 + 1:
        return "RangeUnavailable", 0
    if dead and have - leaving <= need:
        return "ReplaceDeadVoter", 12000
    if have - leaving < need:
        return "ReplaceDecommissioningVoter", 5000
    if dead:
        return "RemoveDeadVoter", 1000 + have // 2 + 1 - live
    if leaving:
        return "RemoveDecommissioningVoter", 900
    if have > need:
        return "RemoveVoter", 800 - have % 2
    need = max(min(wanted - wanted_voters, hosts - wanted_voters), 0)
    dead = any(status[s] == DEAD for s in others)
    leaving = any(status[s] == DECOMMISSIONING for s in others)
    if len(others) < need:
        return "AddNonVoter", 600
    if len(others) == need and dead:
        return "ReplaceDeadNonVoter", 700
    if len(others) == need and leaving:
        return "ReplaceDecommissioningNonVoter", 500
    if dead:
        return "RemoveDeadNonVoter", 400
    if leaving:
        return "RemoveDecommissioningNonVoter", 300
    if len(others) > need:
        return "RemoveNonVoter", 200
    return "ConsiderRebalance", 0
