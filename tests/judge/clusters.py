"""Families of random clusters: general ones, and kinds on which faults were found."""

import zlib
from typing import Any

import numpy as np

import evenkeel as ek
from tests.judge.case import Case, Family, build
from tests.judge.draft import TIMES, Draft
from tests.judge.world import CAUGHT_UP

Drawn = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
ATTEMPTS = 50


def _draft(rng: np.random.Generator, *, most_nodes: int = 12, most: int = 24) -> Draft:
    nodes = int(rng.integers(1, most_nodes + 1)) if rng.random() < 0.9 else int(rng.integers(1, 41))
    return Draft(rng, nodes, int(rng.integers(1, most + 1)))


def plain(rng: np.random.Generator) -> Drawn:
    """Replicas that are all there on nodes that are all up; fullness of every degree."""
    d = _draft(rng)
    d.loads(d.pick([1, 1, 2, 3, 6]))
    d.rows(d.whole(1, min(3, d.nodes)))
    d.capacities(0.2, 0.99)
    d.ask(0.0)
    return d.drawn()


def tight(rng: np.random.Generator) -> Drawn:
    """Nodes nearly full, roles that weigh differently."""
    d = _draft(rng)
    d.loads(d.pick([1, 2, 3]), roles=0.5)
    d.rows(d.whole(1, min(3, d.nodes)))
    d.capacities(0.85, 1.0)
    d.ask(0.2)
    return d.drawn()


def overfull(rng: np.random.Generator) -> Drawn:
    """More load than there is room for."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.4)
    d.rows(d.whole(1, min(3, d.nodes)), bad=0.1 if d.chance(0.4) else 0.0)
    d.capacities(0.95, 1.6)
    d.states(0.1 if d.chance(0.3) else 0.0)
    d.ask(0.2)
    return d.drawn()


def roles(rng: np.random.Generator) -> Drawn:
    """Leaders, voters and non-voters of unlike weight; leaders anywhere or nowhere."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=1.0)
    d.rows(d.whole(1, min(4, d.nodes)), mixed=0.2)
    d.voters(0.5)
    d.leaders(0.5)
    d.capacities(0.3, 0.95)
    d.states(0.15 if d.chance(0.5) else 0.0)
    d.ask(0.2)
    return d.drawn()


def ragged(rng: np.random.Generator) -> Drawn:
    """Rows of unlike length, holes, replicas that share a node, surplus ones."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, 4), mixed=0.7, bad=0.25)
    d.leaders(0.4)
    d.capacities(0.3, 0.95)
    d.states(0.15 if d.chance(0.4) else 0.0)
    d.ask(0.15)
    return d.drawn()


def states(rng: np.random.Generator) -> Drawn:
    """Nodes of every state."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, min(4, d.nodes)))
    d.capacities(0.2, 0.9)
    d.states(0.35)
    d.extras(0.1)
    d.ask(0.1)
    return d.drawn()


def zones(rng: np.random.Generator) -> Drawn:
    """Spread over zones, some of which are lost or missing."""
    d = _draft(rng, most_nodes=15)
    d.loads(d.pick([1, 2]), roles=0.2)
    d.rows(d.whole(1, 3))
    d.zones(d.whole(1, 4), racks=0.3, missing=0.2)
    d.capacities(0.2, 0.9)
    d.states(0.25 if d.chance(0.6) else 0.0)
    tier = d.pick([*d.given["domains"]])
    kinds = [{"spread": {tier: 1}}, {"min_domains": {tier: min(2, *d.wanted())}},
             {"max_domains": {tier: 2}}, {"skew": {tier: 1}}]  # fmt: skip
    d.given["rules"] = [d.pick(kinds)]
    d.ask(0.15)
    return d.drawn()


def lost_zone(rng: np.random.Generator) -> Drawn:
    """A zone of which every node is dead, or draining, while replicas are to be spread."""
    d = Draft(rng, int(rng.integers(3, 13)), int(rng.integers(1, 25)))
    d.loads(d.pick([1, 2]), roles=0.2)
    d.rows(d.whole(2, 3))
    d.zones(3)
    d.capacities(0.2, 0.8)
    lost = d.pick(["z0", "z1", "z2"])
    out = [label == lost for label in d.given["domains"]["zone"]]
    gone = d.pick([("alive", "keeps"), ("alive", "keeps"), ("keeps", "accepts"), ("alive",)])
    for name in gone:
        d.given[name] = [not o for o in out]
    if d.chance(0.4):
        n = d.whole(0, d.nodes - 1)
        for name in ("alive", "keeps"):
            d.given.setdefault(name, [True] * d.nodes)
            d.given[name][n] = False
    d.given["spread"] = {"zone": d.pick([1, 1, 2])}
    d.ask(0.15)
    return d.drawn()


def rules(rng: np.random.Generator) -> Drawn:
    """Rules of every kind, kept or broken as the dice fell."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, min(4, d.nodes)), mixed=0.15)
    d.voters(0.3)
    d.zones(d.whole(1, 4), racks=0.3, missing=0.1)
    d.capacities(0.2, 0.9)
    d.states(0.15 if d.chance(0.4) else 0.0)
    d.ruled(1.0)
    d.ask(0.15)
    return d.drawn()


def groups(rng: np.random.Generator) -> Drawn:
    """Rules that bind groups as a whole."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.2)
    d.rows(d.whole(1, min(3, d.nodes)))
    d.zones(d.whole(1, 4))
    d.capacities(0.2, 0.9)
    d.states(0.15 if d.chance(0.4) else 0.0)
    d.ruled(0.3, grouped=1.0)
    d.ask(0.15)
    return d.drawn()


def kept_apart(rng: np.random.Generator) -> Drawn:
    """Machines: single replicas of groups that a rule alone keeps apart, or together."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]))
    d.rows(1)
    if d.chance(0.4):
        d.zones(d.whole(2, 4))
    d.capacities(0.3, 0.9)
    d.states(0.15 if d.chance(0.4) else 0.0)
    groups = d.whole(1, max(1, d.partitions // 2))
    d.given["group"] = d.rng.integers(0, groups, d.partitions).tolist()
    d.given["group_names"] = [f"g{g}" for g in range(groups)]
    kind = d.pick(["spread", "spread", "max_domains"])
    tier = d.pick([*d.given.get("domains", {}), "node"])
    d.rules.append({kind: {tier: d.pick([1, 1, 2])}})
    d.given["rules"] = d.rules
    d.given["rule"] = [-1] * d.partitions
    d.given["group_rule"] = [0 if d.chance(0.8) else -1 for _ in range(groups)]
    d.ask(0.15)
    return d.drawn()


def budgets(rng: np.random.Generator) -> Drawn:
    """More to mend than a budget carries."""
    d = Draft(rng, int(rng.integers(3, 13)), int(rng.integers(2, 30)))
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, 3), bad=0.1 if d.chance(0.5) else 0.0)
    d.zones(d.whole(2, 4))
    d.capacities(0.2, 0.85)
    d.states(0.3)
    if d.chance(0.5):
        d.given["spread"] = {"zone": d.pick([1, 2])}
    d.extras(0.1)
    d.ask(1.0)
    return d.drawn()


def finer_budgets(rng: np.random.Generator) -> Drawn:
    """Budgets on copies of a partition at a time, on domains and on leader changes."""
    given, goals, _ = budgets(rng)
    d = Draft(rng, len(given["capacity"]), len(given["load"]))
    amount = d.whole(0, 3)
    by_zone = {"zone": amount}
    limits = d.pick([{"partition_moves": amount}, {"leader_changes": amount},
                     {"domain_in": by_zone}, {"domain_out": by_zone}])  # fmt: skip
    return given, goals, limits


def from_below(rng: np.random.Generator) -> Drawn:
    """Goals that also bind from below, on an expanded cluster."""
    d = Draft(rng, int(rng.integers(2, 11)), int(rng.integers(2, 30)))
    d.loads(d.pick([1, 2]), roles=0.5)
    d.rows(d.whole(1, min(3, d.nodes)))
    d.capacities(0.2, 0.8, unlike=0.1)
    d.states(0.1 if d.chance(0.3) else 0.0)
    level = d.pick([0.05, 0.1, 0.3])
    d.goals = {"level": level, "floor": level}
    return d.drawn()


def extras(rng: np.random.Generator) -> Drawn:
    """Forbidden pairs, pins, a most of replicas, capacity of a tier, transient dimensions."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, min(3, d.nodes)))
    d.zones(d.whole(1, 4))
    d.capacities(0.3, 0.9)
    d.states(0.2 if d.chance(0.5) else 0.0)
    d.extras(0.5)
    d.ask(0.15)
    return d.drawn()


def anything(rng: np.random.Generator) -> Drawn:
    """All of it at once."""
    d = _draft(rng)
    d.loads(d.pick([1, 2, 3]), roles=0.4)
    d.rows(d.whole(1, 4), mixed=0.2, bad=0.05 if d.chance(0.5) else 0.0)
    d.zones(d.whole(1, 5), racks=0.3, missing=0.15)
    d.voters(0.25)
    d.leaders(0.2)
    d.capacities(0.2, 1.2)
    d.states(0.2 if d.chance(0.6) else 0.0)
    d.ruled(0.6, grouped=0.3)
    d.extras(0.15)
    d.ask(0.3)
    return d.drawn()


# what faults were met on ------------------------------------------------------------------------


def spread_beyond_mending(rng: np.random.Generator) -> Drawn:
    """Adversary 1: more replicas than zones, a replica in each, plenty of nodes free."""
    d = Draft(rng, 1, int(rng.integers(2, 24)))
    zoned, each, replicas = d.whole(1, 3), d.whole(1, 4), 0
    replicas = d.whole(zoned + 1, zoned + 2)
    d.nodes = max(zoned * each, replicas)
    labels = [f"z{n % zoned}" for n in range(d.nodes)]
    rows = [d.rng.choice(d.nodes, replicas, replace=False).tolist() for _ in range(d.partitions)]
    d.place(rows)
    d.given |= {
        "load": [[float(d.whole(5, 12))]] * d.partitions,
        "domains": {"zone": labels},
        "capacity": [[12.0 * d.partitions]] * d.nodes,
        "spread": {"zone": 1},
    }
    d.goals = {"level": d.pick([0.0, 0.05, 0.2])}
    return d.drawn()


def expanded_short_leaders(rng: np.random.Generator) -> Drawn:
    """Adversary 2: half of the nodes are new, a replica is missing everywhere, leading is heavy."""
    d = Draft(rng, int(rng.integers(3, 13)), int(rng.integers(4, 16)))
    old = max(2, d.nodes // 2)
    rows = [[*d.rng.choice(old, 2, replace=False).tolist(), -1] for _ in range(d.partitions)]
    d.place(rows)
    load = np.round(d.rng.uniform(1.0, 3.0, (d.partitions, 1)), 2)
    d.given |= {"load": load.tolist(), "leader_load": (2 * load).tolist(), "replicas": 3}
    d.capacities(0.4, 0.7, unlike=0.0)
    if d.chance(0.5):
        dead = set(d.rng.choice(d.nodes, 1 + d.nodes // 10, replace=False).tolist())
        d.given["alive"] = d.given["keeps"] = [n not in dead for n in range(d.nodes)]
    d.goals = {"level": d.pick([None, 0.05, 0.1])}
    d.limits = {"moves": d.pick([0, 1, 5, d.partitions // 4])}
    if d.chance(0.3):
        d.limits["node_in"] = d.whole(0, 5)
    return d.drawn()


def role_weights_tight(rng: np.random.Generator) -> Drawn:
    """Adversary 3: tiny, tight, leading weighs more or less than following."""
    d = Draft(rng, int(rng.integers(2, 6)), int(rng.integers(2, 8)))
    load = d.rng.integers(1, 6, (d.partitions, 1)).astype(float)
    lead = d.rng.integers(1, 9, (d.partitions, 1)).astype(float)
    d.given |= {"load": load.tolist(), "leader_load": lead.tolist()}
    d.rows(2 if d.nodes > 1 else 1, mixed=0.3, bad=0.1 if d.chance(0.3) else 0.0)
    d.given["capacity"] = [[float(d.whole(4, 14))] for _ in range(d.nodes)]
    d.goals = {"level": d.pick([None, 0.05])}
    return d.drawn()


def even_groups(rng: np.random.Generator) -> Drawn:
    """Adversary 4: groups dealt evenly over zones, bound by a skew, loads that are not even."""
    d = Draft(rng, 3 * int(rng.integers(1, 4)), 0)
    count, size = d.whole(1, 6), 3 * d.whole(1, 3)
    d.partitions = count * size
    d.given |= {
        "load": np.round(d.rng.lognormal(0.0, 0.6, (d.partitions, 1)), 2).tolist(),
        "domains": {"zone": [f"z{n % 3}" for n in range(d.nodes)]},
        "group": [p // size for p in range(d.partitions)],
        "rules": [{"skew": {"zone": d.pick([1, 1, 2])}}],
        "group_rule": [0] * count,
    }
    d.place([[(p % 3) + 3 * d.whole(0, d.nodes // 3 - 1)] for p in range(d.partitions)])
    d.capacities(0.3, 0.9, unlike=0.0)
    d.goals = {"level": d.pick([0.0, 0.05, 0.1])}
    return d.drawn()


def few_may_lead(rng: np.random.Generator) -> Drawn:
    """Adversary 5: few nodes, fewer may lead, rows half empty."""
    d = Draft(rng, int(rng.integers(2, 6)), int(rng.integers(2, 10)))
    d.loads(1, roles=0.3)
    rows = [[n if d.chance(0.6) else -1 for n in d.rng.integers(0, d.nodes, d.whole(1, 3))]
            for _ in range(d.partitions)]  # fmt: skip
    d.place([[int(n) for n in row] for row in rows])
    d.given["leads"] = d.some(d.nodes, 0.4)
    if d.chance(0.3):
        d.leaders(1.0)
    d.capacities(0.2, 0.9)
    d.ask(0.1)
    return d.drawn()


def surplus_and_rules(rng: np.random.Generator) -> Drawn:
    """Adversary 6: a replica too many, two of them in one zone."""
    d = Draft(rng, int(rng.integers(4, 13)), int(rng.integers(2, 24)))
    zoned = min(d.whole(3, 5), d.nodes)
    d.given["domains"] = {"zone": [f"z{n % zoned}" for n in range(d.nodes)]}
    wanted = d.whole(2, min(3, d.nodes - 1))
    d.loads(1, roles=0.2)
    d.place([d.rng.choice(d.nodes, wanted + 1, replace=False).tolist()
             for _ in range(d.partitions)])  # fmt: skip
    d.given["replicas"] = wanted
    d.given["rules"] = [
        d.pick([{"spread": {"zone": 1}}, {"min_domains": {"zone": min(wanted, zoned)}},
                {"place": {"zone=z0": 1}}, {"max_domains": {"zone": 2}}])
    ]  # fmt: skip
    d.capacities(0.3, 0.7, unlike=0.1)
    d.goals = {"level": d.pick([None, 0.1, 0.3])}
    return d.drawn()


def cut_short(rng: np.random.Generator) -> Drawn:
    """Replicas too many or behind, led anywhere, a rule, a budget, and a search that stops."""
    given, goals, _ = surplus_and_rules(rng)
    d = Draft(rng, len(given["capacity"]), len(given["load"]))
    d.given, d.goals = given, goals
    slots = sum(len(row) for row in d.read_rows())
    d.given["replicas"] = [d.whole(0, len(row)) for row in d.read_rows()]
    d.leaders(0.5)
    if d.chance(0.5):
        d.flags_shape([24 * int(current) for current in d.some(slots, 0.6)])
    d.states(0.3 if d.chance(0.5) else 0.0)
    d.given.pop("keeps", None)
    d.given["rule"] = [d.whole(-1, 0) for _ in range(d.partitions)]
    if d.chance(0.7):
        d.limits = {d.pick(["node_out", "leader_changes", "moves"]): d.whole(0, 2)}
    return d.drawn()


def single_replicas_unled(rng: np.random.Generator) -> Drawn:
    """Adversary 7: one replica each, a share of the nodes may not lead, just enough room."""
    d = Draft(rng, int(rng.integers(2, 13)), int(rng.integers(4, 40)))
    d.loads(1, alike=0.5)
    d.rows(1)
    able = [not quiet for quiet in d.some(d.nodes, 0.3)]
    able[0] = True
    d.given["leads"] = able
    total = sum(row[0] for row in d.given["load"])
    room = total * d.pick([1.08, 1.3, 2.0]) / sum(able)
    heaviest = max(row[0] for row in d.given["load"])
    d.given["capacity"] = [[round(max(room, heaviest), 3)]] * d.nodes
    d.goals = {"level": d.pick([None, 0.05])}
    return d.drawn()


def node_in_budget(rng: np.random.Generator) -> Drawn:
    """Users' blocker 2: a node is dead, a budget on each node, zones in turn."""
    d = Draft(rng, int(rng.integers(4, 14)), int(rng.integers(4, 40)))
    d.given["domains"] = {"zone": [f"z{n % 3}" for n in range(d.nodes)]}
    replicas = d.whole(1, 3)
    if d.chance(0.5):
        d.given["spread"] = {"zone": 1}
    rows = []
    for _ in range(d.partitions):
        row = [int(d.pick([n for n in range(d.nodes) if n % 3 == z])) for z in range(replicas)]
        rows.append([row[i] for i in d.rng.permutation(replicas)])
    d.place(rows)
    d.loads(1, alike=0.7)
    d.capacities(0.2, 0.6, unlike=0.0)
    d.given["alive"] = [False] + [True] * (d.nodes - 1)
    d.goals = {"level": d.pick([None, 0.05, 0.2])}
    d.limits = {d.pick(["node_in", "node_in", "moves", "node_out"]): d.whole(1, 6)}
    return d.drawn()


def drain_beside_dead(rng: np.random.Generator) -> Drawn:
    """Users' blocker 3: a zone drains while a node of another is dead, one replica per zone."""
    d = Draft(rng, 3 * int(rng.integers(2, 5)), int(rng.integers(3, 30)))
    zone = [n // (d.nodes // 3) for n in range(d.nodes)]
    d.given["domains"] = {"zone": ["abc"[z] for z in zone]}
    d.given["spread"] = {"zone": 1}
    d.place([[int(d.pick([n for n in range(d.nodes) if zone[n] == z]))
              for z in d.rng.permutation(3)] for _ in range(d.partitions)])  # fmt: skip
    d.loads(1, alike=0.8)
    d.capacities(0.2, 0.6, unlike=0.0)
    d.given["alive"] = [n != d.nodes - 1 for n in range(d.nodes)]
    draining = [zone[n] == 1 for n in range(d.nodes)]
    d.given["accepts"] = [a and not x for a, x in zip(d.given["alive"], draining, strict=True)]
    d.given["keeps"] = list(d.given["accepts"])
    if d.chance(0.3):
        d.given["keeps"] = list(d.given["alive"])
    d.goals = {"level": d.pick([None, 0.1, 0.3])}
    return d.drawn()


def all_drain(rng: np.random.Generator) -> Drawn:
    """All old nodes drain, or all but a few, beside as many new ones: partitions go as a whole."""
    zones, each = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    old = zones * each
    d = Draft(rng, 2 * old, int(rng.integers(1, 20)))
    d.nodes = 2 * old
    d.given["domains"] = {"zone": [f"z{n % zones}" for n in range(d.nodes)]}
    width = d.whole(1, zones)
    at = [[n for n in range(old) if n % zones == z] for z in range(zones)]
    d.place([[int(d.pick(at[z])) for z in d.rng.permutation(zones)[:width]]
             for _ in range(d.partitions)])  # fmt: skip
    d.given["replicas"] = width
    d.loads(d.pick([1, 2]), alike=0.5, roles=0.2)
    d.capacities(0.1, 0.4, unlike=0.0)
    stays = set(d.rng.choice(old, d.pick([0, 0, 1]), replace=False).tolist())
    leaves = [n < old and n not in stays for n in range(d.nodes)]
    d.given["accepts"] = [not out for out in leaves]
    d.given["keeps"] = list(d.given["accepts"])
    d.given["leads"] = list(d.given["accepts"])
    if d.chance(0.2):
        d.given["alive"] = [n != 0 for n in range(d.nodes)]
    kinds = [{"spread": {"zone": 1}}, {"min_domains": {"zone": width}}, {"skew": {"zone": 1}}, {}]
    d.given["rules"], d.given["rule"] = [d.pick(kinds)], [0] * d.partitions
    d.goals = {"level": d.pick([None, None, 0.3])}
    return d.drawn()


def voters_in_two_moves(rng: np.random.Generator) -> Drawn:
    """Users' blocker 8: five replicas of which three vote, voters bound to regions."""
    d = Draft(rng, 3 * int(rng.integers(2, 5)), int(rng.integers(1, 20)))
    region = [n % 3 for n in range(d.nodes)]
    d.given["domains"] = {"region": [f"r{r}" for r in region]}
    d.loads(d.pick([1, 2]), roles=0.3)
    d.place([d.rng.choice(d.nodes, 5, replace=False).tolist() for _ in range(d.partitions)])
    d.given["voters"] = 3
    rule: dict[str, Any] = {"place": {"region=r0": 1, "region=r1": 1, "region=r2": 1}}
    rule["voters_place"] = {"region=r0": d.whole(1, 2)}
    if d.chance(0.6):
        rule["lead"] = ["region=r0"]
    if d.chance(0.3):
        rule["spread"] = {"region": 2}
    d.given["rules"] = [rule]
    d.capacities(0.2, 0.6, unlike=0.0)
    d.goals = {"level": d.pick([None, 0.1])}
    return d.drawn()


def readme(rng: np.random.Generator) -> Drawn:
    """README's example: nine nodes, the last dead, rows in turn."""
    d = Draft(rng, 9, int(rng.integers(4, 41)))
    d.nodes = 9
    d.given |= {
        "dimensions": ["cpu", "disk"],
        "capacity": [[100.0, 100.0]] * 9,
        "domains": {"zone": [*"aaabbbccc"]},
        "alive": [True] * 8 + [False],
        "load": [[2.0, 4.0]] * d.partitions,
        "leader_load": [[5.0, 4.0]] * d.partitions,
        "placement": [[[0, 3, 8], [1, 4, 7]][p % 2] for p in range(d.partitions)],
        "spread": {"zone": 1},
    }
    d.goals = {"level": d.pick([0.1, 0.2, 0.3]), "leaders": d.pick([None, 0.1, 0.2])}
    return d.drawn()


def missing_racks(rng: np.random.Generator) -> Drawn:
    """Users' finding 5: racks that some nodes, or all but a few, do not name."""
    d = Draft(rng, int(rng.integers(3, 13)), int(rng.integers(2, 24)))
    d.loads(1)
    d.rows(d.whole(2, 3))
    d.given["domains"] = {"rack": [f"r{n % 3}" if d.chance(0.6) else "" for n in range(d.nodes)]}
    d.capacities(0.2, 0.9)
    d.states(0.15)
    d.given["spread"] = {"rack": 1}
    d.ask(0.1)
    return d.drawn()


def urgent_first(rng: np.random.Generator) -> Drawn:
    """Users' finding 7: many dead nodes, a least of live replicas, a budget too small for all."""
    d = Draft(rng, int(rng.integers(4, 13)), int(rng.integers(4, 30)))
    d.loads(1, alike=0.8)
    d.rows(min(3, d.nodes))
    d.capacities(0.2, 0.6, unlike=0.0)
    dead = set(d.rng.choice(d.nodes, d.whole(1, max(1, d.nodes // 2)), replace=False).tolist())
    d.given["alive"] = [n not in dead for n in range(d.nodes)]
    d.given["min_active"] = d.whole(1, 2)
    d.goals = {"level": d.pick([None, 0.2])}
    d.limits = {"moves": d.whole(1, d.partitions)}
    return d.drawn()


def whole_loads(rng: np.random.Generator) -> Drawn:
    """Replicas that all weigh the same, few on each node; domains and tagged parts of any size."""
    d = Draft(rng, int(rng.integers(2, 9)), int(rng.integers(2, 31)))
    d.given["load"] = [[d.pick([1.0, 0.1, 7.5, 2.0**40])]] * d.partitions
    d.rows(d.whole(1, min(3, d.nodes)))
    d.capacities(0.2, 0.8, unlike=0.3)
    if d.chance(0.6):
        d.zones(d.whole(2, 3))
        if d.chance(0.7):
            d.given["spread"] = {"zone": 1}
    if d.chance(0.2):
        d.given["accepts"] = d.some(d.nodes, 0.6)
    if d.chance(0.2) and "spread" not in d.given:
        d.given["tags"] = {"ssd": d.some(d.nodes, 0.5)}
        d.given["rules"] = [{"require": ["+ssd"]}]
        d.given["rule"] = [d.pick([-1, 0]) for _ in range(d.partitions)]
    if d.chance(0.1):
        d.given["max_replicas"] = [d.pick([-1, -1, 2, 4]) for _ in range(d.nodes)]
    d.goals = {"level": d.pick([0.0, 0.01, 0.05, 0.1, 0.3, 0.6])}
    if d.chance(0.4):
        d.goals["leaders"] = d.pick([0.0, 0.05, 0.2])
    if d.chance(0.1):  # without a mean, but for what rules force
        for n in range(d.nodes):
            if d.chance(0.4):
                d.given["capacity"][n] = [np.inf]
    if d.chance(0.1):
        d.given["alive"] = [not away for away in d.some(d.nodes, 0.2)]
        d.given["keeps"] = [True] * d.nodes
    return d.drawn()


def holders(rng: np.random.Generator) -> Drawn:
    """Whole loads beside nodes that hold replicas and may not receive, each for its own reason."""
    given, goals, limits = whole_loads(rng)
    _close(rng, given, ["dead", "cordoned", "draining", "full", "pinned", "endless", "keeper"])
    return given, goals, limits


def leaders_beside(rng: np.random.Generator) -> Drawn:
    """Goals for leaders beside nodes that take nothing, lead nothing, are full or endless."""
    given, goals, limits = whole_loads(rng)
    _close(rng, given, CLOSED)
    goals["leaders"] = float(rng.choice([0.0, 0.05, 0.2, 0.5]))
    if rng.random() < 0.3:
        goals["level"] = None
    if rng.random() < 0.3:
        goals["floor"] = float(rng.choice([0.05, 0.3]))
    if rng.random() < 0.2:
        goals["min_leaders"] = {"*": 1}
    return given, goals, limits


def groups_beside(rng: np.random.Generator) -> Drawn:
    """Goals within groups beside the same nodes."""
    given, goals, limits = within_groups(rng)
    _close(rng, given, CLOSED)
    if rng.random() < 0.4:
        given["group"] = [g // 4 for g in given["group"]]
        goals["group_leaders"] = float(rng.choice([0.0, 0.2]))
    return given, goals, limits


def disks_beside(rng: np.random.Generator) -> Drawn:
    """Goals for the disks inside nodes, beside the same nodes; some have none, or closed ones."""
    given, goals, limits = leaders_beside(rng)
    nodes, rows = len(given["capacity"]), given["placement"]
    given |= {"dimensions": ["d0"], "bytes": "d0"}
    node, capacity, of = [], [], {n: [-1] for n in range(nodes)}
    for n, count in enumerate(rng.integers(0, 4, nodes).tolist()):
        of[n] = [len(node) + i for i in range(count)] or [-1]
        each = given["capacity"][n][0] / max(count, 1)
        endless = bool(rng.random() < 0.15)
        node += [n] * count
        capacity += [np.inf if endless else each * rng.choice([0.8, 1.0, 1.5])] * count
    states = rng.choice([0, 1, 2], len(node), p=[0.85, 0.1, 0.05]).tolist()
    given["disks"] = {"node": node, "capacity": [float(c) for c in capacity], "state": states}
    given["disk"] = [
        [int(of[n][int(len(of[n]) * rng.random() ** 2)]) if n >= 0 else -1 for n in row]
        for row in rows
    ]
    if rng.random() < 0.8:
        goals["disks"] = float(rng.choice([0.0, 0.1, 0.3]))
    if rng.random() < 0.1:
        limits["disk_moves"] = int(rng.integers(0, 4))
    return given, goals, limits


# why a node is not to take, or to lead, as much as others
CLOSED = ["dead", "cordoned", "cordoned", "draining", "full", "filled", "endless", "quiet",
          "weightless", "pinned"]  # fmt: skip


def _close(rng: np.random.Generator, given: dict[str, Any], reasons: list[str]) -> None:
    """Let some nodes take, or lead, nothing more, each for one of some reasons."""
    nodes, rows = len(given["capacity"]), given["placement"]
    flags: dict[str, list[bool]] = {name: [True] * nodes for name in ("alive", "accepts", "keeps")}
    pins: set[int] = set()
    for n in range(nodes):
        if rng.random() >= 0.4:
            continue
        match rng.choice(reasons):
            case "dead":
                flags["alive"][n] = flags["accepts"][n] = False
            case "cordoned":
                flags["accepts"][n] = False
            case "draining":
                flags["accepts"][n] = flags["keeps"][n] = False
            case "full":
                held = sum(row.count(n) for row in rows)
                given.setdefault("max_replicas", [-1] * nodes)[n] = held
            case "filled":
                load = [one for one, row in zip(given["load"], rows, strict=True) if n in row]
                given["capacity"][n] = [sum(each) for each in zip(*load, strict=True)] or [
                    0.0 for _ in given["capacity"][n]
                ]
            case "endless":
                given["capacity"][n] = [np.inf for _ in given["capacity"][n]]
            case "keeper":
                given["capacity"][n] = [np.inf for _ in given["capacity"][n]]
                flags["accepts"][n] = False
            case "quiet":
                given.setdefault("leads", [True] * nodes)[n] = False
            case "weightless":
                given.setdefault("lead_weight", [1.0] * nodes)[n] = float(rng.choice([0.0, 2.0]))
            case "pinned":
                pins.add(n)
    if pins:
        given["flags"] = [[int(n in pins and rng.random() < 0.5) for n in row] for row in rows]
    given |= flags


def exclusions(rng: np.random.Generator) -> Drawn:
    """Nodes that joined are to be filled, and others may take nothing."""
    d = Draft(rng, int(rng.integers(3, 11)), int(rng.integers(6, 40)))
    d.loads(d.pick([1, 1, 2]), alike=0.6)
    old = d.whole(2, d.nodes - 1)
    width = d.whole(1, min(2, old))
    d.place([rng.choice(old, width, replace=False).tolist() for _ in range(d.partitions)])
    d.given["replicas"] = width
    d.capacities(0.2, 0.6, unlike=0.3)
    d.given["accepts"] = [n >= old for n in range(d.nodes)]
    tolerance = d.pick([0.05, 0.1, 0.3])
    d.goals = {"level": d.pick([None, tolerance]), "floor": tolerance}
    return d.drawn()


def excluded_below(rng: np.random.Generator) -> Drawn:
    """Floors, while some nodes, old or new, are excluded, and all else that may come together."""
    d = Draft(rng, int(rng.integers(3, 11)), int(rng.integers(6, 40)))
    d.loads(d.pick([1, 1, 2]), alike=0.5, roles=0.3)
    old = d.whole(2, d.nodes)
    width = d.whole(1, min(3, old))
    d.place([rng.choice(old, width, replace=False).tolist() for _ in range(d.partitions)])
    d.given["replicas"] = width
    d.capacities(0.2, 0.8, unlike=0.4)
    out = d.some(d.nodes, d.pick([0.2, 0.5]))
    d.given["accepts"] = [not away for away in out]
    if d.chance(0.25):
        d.given["alive"] = [not lost for lost in d.some(d.nodes, 0.2)]
        d.given["keeps"] = d.pick([list(d.given["alive"]), [True] * d.nodes])
        d.given["accepts"] = [
            up and open_ for up, open_ in zip(d.given["alive"], d.given["accepts"], strict=True)
        ]
    if d.chance(0.4):
        d.zones(d.whole(2, 4))
        if d.chance(0.6):
            d.given["spread"] = {"zone": d.pick([1, 1, 2])}
    if d.chance(0.2):
        d.extras(0.5)
    if d.chance(0.3):
        d.ask(1.0)
    floor = d.pick([0.0, 0.05, 0.1, 0.3, 0.6])
    if d.chance(0.2) and len(d.given["load"][0]) > 1:
        floor = {"d1": floor}
    d.goals = {"level": d.pick([None, 0.05, 0.3])} | d.goals | {"floor": floor}
    return d.drawn()


def within_groups(rng: np.random.Generator) -> Drawn:
    """Goals for the replicas and leaders of each group, some of which have no partitions."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(d.whole(1, min(3, d.nodes)))
    if d.chance(0.3):
        d.zones(d.whole(2, 4))
        d.given["spread"] = {"zone": d.pick([1, 2])}
    d.capacities(0.2, 0.8)
    d.states(0.15 if d.chance(0.3) else 0.0)
    d.leaders(0.2)
    step = d.pick([1, 2])
    d.given["group"] = [step * d.whole(0, 4) for _ in range(d.partitions)]
    d.ask(0.2)
    asked = {
        "groups": d.pick([0.0, 0.1, 0.2, 0.5]), "group_leaders": d.pick([0.0, 0.2, 0.5]),
        "min_leaders": {"*": d.pick([1, 1, 2])},
    }  # fmt: skip
    d.goals |= {name: goal for name, goal in asked.items() if d.chance(0.6)}
    return d.drawn()


def groups_without_room(rng: np.random.Generator) -> Drawn:
    """Goals within groups, while nodes have no room for them: closed, full, small."""
    d = Draft(rng, int(rng.integers(3, 10)), int(rng.integers(4, 30)))
    d.loads(d.pick([1, 1, 2]), alike=0.7, roles=0.2)
    d.rows(d.whole(1, min(3, d.nodes - 1)))
    d.capacities(0.2, 0.8, unlike=0.2)
    if d.chance(0.3):
        d.leaders(1.0)
    d.given["group"] = [d.whole(0, 2) for _ in range(d.partitions)]
    shut = [n for n, out in enumerate(d.some(d.nodes, d.pick([0.15, 0.4]))) if out]
    held = [{n for n in row if n >= 0} for row in d.read_rows()]
    match d.pick(["cordoned", "draining", "closed", "closed", "small", "few"]):
        case "cordoned":
            d.given["accepts"] = [n not in shut for n in range(d.nodes)]
        case "draining":
            d.given["keeps"] = d.given["accepts"] = [n not in shut for n in range(d.nodes)]
        case "closed":
            share = d.pick([1.0, 0.7])
            d.given["forbidden"] = [[p, n] for n in shut for p, on in enumerate(held)
                                    if n not in on and d.chance(share)]  # fmt: skip
        case "small":
            least = [min(row) for row in zip(*d.given["load"], strict=True)]
            for n in shut:
                d.given["capacity"][n] = [d.pick([0.0, 0.5, 1.0, 2.5]) * one for one in least]
        case "few":
            d.given["max_replicas"] = [d.whole(0, 2) if n in shut else -1 for n in range(d.nodes)]
    asked = {
        "groups": d.pick([0.0, 0.1, 0.2, 0.5]), "group_leaders": d.pick([0.0, 0.2, 0.5]),
        "min_leaders": {"*": d.pick([1, 1, 2])}, "leaders": d.pick([0.0, 0.1]),
    }  # fmt: skip
    chances = {"groups": 0.8, "group_leaders": 0.4, "min_leaders": 0.2, "leaders": 0.3}
    d.goals = {"level": None if d.chance(0.7) else 0.3}
    d.goals |= {name: goal for name, goal in asked.items() if d.chance(chances[name])}
    return d.drawn()


def soft_rules(rng: np.random.Generator) -> Drawn:
    """Soft limits of unlike weight on few nodes, which cannot all hold more often than not."""
    d = Draft(rng, int(rng.integers(3, 6)), int(rng.integers(1, 5)))
    d.loads(d.pick([1, 1, 2]), alike=0.5, roles=0.2)
    d.rows(d.whole(1, 3))
    d.given["domains"] = {
        tier: [d.pick("abc") for _ in range(d.nodes)] for tier in ("zone", "rack")
    }
    d.given["crossing"] = ["rack"]
    d.capacities(0.1, 0.8)

    def soft(*kinds: str) -> dict[str, Any]:
        rule: dict[str, Any] = {}
        for _ in range(d.whole(2, 3)):
            limit = d.whole(1, 2), "soft", d.pick([1.0, 1.0, 2.0, 5.0])
            rule.setdefault(d.pick(kinds), {})[d.pick(["zone", "rack"])] = limit
        return rule

    d.given["rules"] = [soft("spread", "min_domains", "max_domains", "skew") for _ in range(2)]
    d.given["rule"] = [d.whole(0, 1) for _ in range(d.partitions)]
    if d.chance(0.5):
        d.given["rules"].append(soft("spread", "max_domains", "skew"))
        d.given["group"], d.given["group_rule"] = [0] * d.partitions, [2]
    d.ask(0.1)
    return d.drawn()


def soft_rules_yield(rng: np.random.Generator) -> Drawn:
    """Soft limits as above, which yield to goals."""
    cluster, goals, limits = soft_rules(rng)
    level = rng.choice([0.0, 0.05, 0.2]) if goals["level"] is None else goals["level"]
    return cluster, {**goals, "level": level, "soft_yield": True}, limits


def lagging(rng: np.random.Generator) -> Drawn:
    """Replicas that lag behind others, which are not to lead where they are."""
    d = _draft(rng)
    d.loads(d.pick([1, 2]), roles=0.3)
    d.rows(min(d.whole(2, 4), d.nodes))
    d.capacities(0.2, 0.8)
    d.states(0.15 if d.chance(0.3) else 0.0)
    synced = d.some(sum(len(row) for row in d.read_rows()), d.pick([0.5, 0.7, 0.9]))
    d.flags_shape([CAUGHT_UP * int(one) for one in synced])
    d.ask(0.2)
    d.goals |= {"leaders": d.pick([0.0, 0.1, 0.3])}
    return d.drawn()


def some_behind(rng: np.random.Generator) -> Drawn:
    """A cluster of another family, of which some replicas lag behind others."""
    drawn = FAMILIES[str(rng.choice([name for name in FAMILIES if name not in ALONE]))](rng)
    d = Draft(rng, len(drawn[0]["capacity"]), len(drawn[0]["load"]))
    d.given, d.goals, d.limits = drawn
    if "flags" not in d.given:
        share = d.pick([0.3, 0.5, 0.7, 0.9])
        d.flags_shape(
            [CAUGHT_UP * (n >= 0 and d.chance(share)) for row in d.read_rows() for n in row]
        )
    return d.drawn()


def on_every_node(rng: np.random.Generator) -> Drawn:
    """Partitions with as many replicas as there are nodes, beside others of any size."""
    d = Draft(rng, int(rng.integers(2, 6)), int(rng.integers(2, 9)))
    d.loads(d.pick([1, 2]), roles=0.2)
    sizes = [d.pick([d.nodes, d.nodes, 1, 2]) for _ in range(d.partitions)]
    d.place([d.rng.choice(d.nodes, size, replace=False).tolist() for size in sizes])
    d.capacities(0.2, 0.8, unlike=0.3)
    if d.chance(0.2):
        d.given["tags"] = {"ssd": d.some(d.nodes, 0.6)}
        d.given["rules"] = [{"require": ["+ssd"]}]
        d.given["rule"] = [d.pick([-1, 0]) for _ in range(d.partitions)]
    if d.chance(0.2):
        d.given["accepts"] = d.some(d.nodes, 0.8)
    d.goals = {"level": d.pick([0.0, 0.05, 0.2])}
    return d.drawn()


def placed_voters(rng: np.random.Generator) -> Drawn:
    """Replicas or voters wanted on some nodes where voters have to be on some, not all the same."""
    d = Draft(rng, int(rng.integers(2, 9)), int(rng.integers(2, 21)))
    d.given["load"] = [[d.pick([1.0, 0.1, 7.5])]] * d.partitions
    d.rows(d.whole(1, min(3, d.nodes)))
    d.voters(0.6)
    d.capacities(0.2, 0.8, unlike=0.3)
    d.zones(d.whole(2, 3))
    d.given["tags"] = {"ssd": [True, *d.some(d.nodes - 1, 0.5)]}
    zones = sorted({*d.given["domains"]["zone"]})
    where = ["+ssd", "-ssd", *(f"zone{sign}{z}" for z in zones for sign in ("=", "!="))]
    rule: dict[str, Any] = {"voters_require": [d.pick(where)]}
    rule[d.pick(["place", "voters_place"])] = {d.pick(where): d.whole(1, min(d.wanted()))}
    d.given["rules"] = [rule]
    d.given["rule"] = [d.pick([-1, 0]) for _ in range(d.partitions)]
    if d.chance(0.3):
        d.given |= {"group": [0] * d.partitions, "group_rule": [0], "rule": [-1] * d.partitions}
    d.goals = {"level": d.pick([0.0, 0.05, 0.1, 0.3])}
    if d.chance(0.4):
        d.goals["leaders"] = d.pick([0.0, 0.05, 0.2])
    return d.drawn()


ALONE = ("cut_short", "some_behind")  # families that no other one draws from

STOPS = 8  # calls of a callback below which searches of ``cut_short`` stop

FAMILIES: dict[str, Family] = {
    each.__name__: each
    for each in (
        plain, tight, overfull, roles, ragged, states, zones, lost_zone, rules, groups, kept_apart,
        budgets, finer_budgets, from_below, extras, anything, spread_beyond_mending,
        expanded_short_leaders, role_weights_tight,
        even_groups, few_may_lead, surplus_and_rules, cut_short, single_replicas_unled,
        node_in_budget, drain_beside_dead, voters_in_two_moves, readme, missing_racks,
        urgent_first, whole_loads, holders, leaders_beside, groups_beside, disks_beside,
        exclusions, excluded_below, all_drain,
        within_groups, groups_without_room, lagging, some_behind, on_every_node, soft_rules,
        soft_rules_yield, placed_voters,
    )
}  # fmt: skip


def draw(family: str, seed: int, times: tuple[int, int] = (1, 1)) -> Case:
    """Draw a case that the library accepts; the same for the same family and seed."""
    # ``times`` as many nodes, and as many partitions, as the family has make it a larger one
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([zlib.crc32(family.encode()), seed, attempt])
        before = TIMES.set(times)
        cluster, goals, limits = FAMILIES[family](rng)
        TIMES.reset(before)
        calls = seed % STOPS if family == "cut_short" else None
        case = Case(family, seed, cluster, goals, limits, calls)
        try:
            build(case)
        except ek.InvalidInput:
            continue
        return case
    raise AssertionError(f"{family} drew nothing valid for seed {seed}")
