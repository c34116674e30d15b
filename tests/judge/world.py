"""Parse the input of a case in plain Python, without any code of the library."""

import itertools
from typing import Any, NamedTuple

from tests.judge.case import Case

VOTER, NON_VOTER = 0, 1
PINNED, CAUGHT_UP = 1, 16
NODE = "node"

# what the nodes of all replicas must meet; whether it concerns voters only
REQUIREMENTS = {"require": False, "voters_require": True}

# numbers of replicas on nodes that meet a text; whether voters alone count
COUNTS = {"place": False, "voters_place": True}


class Bound(NamedTuple):
    """One limit of a rule: kind, tier, number, whether it must hold, and what it weighs else."""

    kind: str
    tier: str
    amount: int
    hard: bool
    weight: int = 1


class Standing(NamedTuple):
    """Where replicas are: a node per slot of each row (-1 none), and the slot that leads."""

    rows: list[list[int]]
    leaders: list[int]

    def leader_node(self, p: int) -> int:
        """Return the node that leads a partition; -1 for none."""
        slot = self.leaders[p]
        return self.rows[p][slot] if 0 <= slot < len(self.rows[p]) else -1


class World:
    """Everything that a case says, by number."""

    def __init__(self, case: Case) -> None:
        given = case.cluster
        self.case = case
        self.capacity: list[list[float]] = given["capacity"]
        self.nodes = len(self.capacity)
        self.voter_load: list[list[float]] = given["load"]
        self.leader_load = given.get("leader_load", self.voter_load)
        self.light_load = given.get("non_voter_load", self.voter_load)
        self.partitions = len(self.voter_load)
        self.dimensions = len(self.capacity[0]) if self.capacity else 0
        self.names = list(given.get("dimensions", [f"d{d}" for d in range(self.dimensions)]))
        self.transient = [self.names.index(name) for name in given.get("transient", ())]
        self.bytes = self.names.index(given["bytes"]) if "bytes" in given else -1
        self._read_disks(given)
        self._read_nodes(given)
        self._read_tiers(given)
        self._read_rows(given)
        self._read_rules(given)

    def _read_disks(self, given: dict[str, Any]) -> None:
        """Read disks; with some, a node holds no more than those of them that are fine."""
        self.disks: dict[str, list[Any]] = given.get("disks", {})
        self.capacity = [list(one) for one in self.capacity]
        for n in {*self.disks.get("node", ())}:
            each = zip(*(self.disks[x] for x in ("node", "capacity", "state")), strict=True)
            room = sum(capacity for at, capacity, state in each if at == n and state == 0)
            self.capacity[n][self.bytes] = min(self.capacity[n][self.bytes], room)

    def _read_nodes(self, given: dict[str, Any]) -> None:
        n = self.nodes
        self.alive = list(given.get("alive", [True] * n))
        self.accepts = list(given.get("accepts", self.alive))
        self.keeps = list(given.get("keeps", self.alive))
        self.leads = list(given.get("leads", self.alive))
        self.gone = list(given.get("gone", [False] * n))
        self.lead_weight = list(given.get("lead_weight", [1.0] * n))
        self.max_replicas = list(given.get("max_replicas", [-1] * n))
        every = range(n)
        self.serves = [self.alive[i] and not self.gone[i] for i in every]
        self.may_hold = [self.keeps[i] and not self.gone[i] for i in every]
        self.may_receive = [self.serves[i] and self.accepts[i] and self.keeps[i] for i in every]
        self.may_lead = [
            self.serves[i] and self.leads[i] and self.lead_weight[i] > 0 for i in every
        ]
        # a node that is down for a while keeps its load, and so do those that are up
        self.carries = [(self.alive[i] or self.keeps[i]) and not self.gone[i] for i in every]

    def _read_tiers(self, given: dict[str, Any]) -> None:
        self.labels: dict[str, list[Any]] = {}
        self.domain: dict[str, list[int]] = {}
        path: list[tuple[Any, ...]] = [()] * self.nodes
        for tier, labels in given.get("domains", {}).items():
            texts = ["" if x is None else str(x) for x in labels]
            texts = ["" if x.startswith("-") and x[1:].isdigit() else x for x in texts]
            self.labels[tier] = texts
            crosses = tier in given.get("crossing", ())
            full = [
                None if not text else ((text,) if crosses else (*path[i], (tier, text)))
                for i, text in enumerate(texts)
            ]
            number = {one: i for i, one in enumerate(sorted({f for f in full if f is not None}))}
            self.domain[tier] = [-1 if f is None else number[f] for f in full]
            if not crosses:
                path = [path[i] if f is None else f for i, f in enumerate(full)]
        self.domain[NODE] = list(range(self.nodes))
        self.tags = {tag: list(at) for tag, at in given.get("tags", {}).items()}
        self.attributes = {
            key: ["" if x is None else str(x) for x in values]
            for key, values in given.get("attributes", {}).items()
        }
        self.tier_capacity = given.get("tier_capacity", {})
        self._masks: dict[str, list[bool]] = {}

    def _read_rows(self, given: dict[str, Any]) -> None:
        placed = given.get("placement")
        if placed is None:
            rows: list[list[int]] = [[] for _ in range(self.partitions)]
        elif "first" in given:
            first = given["first"]
            rows = [list(placed[a:b]) for a, b in itertools.pairwise(first)]
        else:
            rows = [list(row) for row in placed]
        self.given_widths = [len(row) for row in rows]
        self.wanted = self._each(given.get("replicas"), self.given_widths)
        self.voters = self._each(given.get("voters"), self.wanted)
        self.min_active = self._each(given.get("min_active"), [0] * self.partitions)
        roles = self._per_slot(given.get("role"), rows)
        flags = self._per_slot(given.get("flags"), rows)
        for p, row in enumerate(rows):
            more = self.wanted[p] - len(row)
            row += [-1] * more
            roles[p] += [VOTER] * more
            flags[p] += [0] * more
            if "voters" in given and "role" not in given:
                roles[p] = [VOTER if s < self.voters[p] else NON_VOTER for s in range(len(row))]
        if "role" in given and "voters" not in given:
            self.voters = [
                min(want, sum(r == VOTER for r in roles[p][: self.given_widths[p]]))
                for p, want in enumerate(self.wanted)
            ]
        self.disk = [
            [*on, *[-1] * (len(row) - len(on))]
            for on, row in zip(given.get("disk", [[]] * len(rows)), rows, strict=True)
        ]
        leaders = given.get("leader", [0 if row else -1 for row in rows])
        self.roles = roles
        self.came = Standing(rows, list(leaders))
        self.has_leaders = any(slot >= 0 for slot in leaders)
        self.pinned = [
            [n for n, flag in zip(row, flags[p], strict=True) if n >= 0 and flag & PINNED]
            for p, row in enumerate(rows)
        ]
        self.behind = [self._behind(p, row, flags[p]) for p, row in enumerate(rows)]
        self.synced = [
            {n for n, flag in zip(row, flags[p], strict=True) if n >= 0 and flag & CAUGHT_UP}
            for p, row in enumerate(rows)
        ]
        self.forbidden: list[set[int]] = [set() for _ in rows]
        for p, n in given.get("forbidden", ()):
            self.forbidden[p].add(n)

    def _behind(self, p: int, row: list[int], flags: list[int]) -> set[int]:
        """Nodes whose replica lags and is not elected, as its partition is led, or others could."""
        slots = [s for s, n in enumerate(row) if n >= 0]
        synced = [s for s in slots if flags[s] & CAUGHT_UP]
        led = self.came.leaders[p]
        others = [s for s in synced if self.serves[row[s]] and self.roles[p][s] == VOTER]
        leads = led >= 0 and row[led] >= 0 and self.serves[row[led]]
        if not synced or not (others or leads):
            return set()
        return {row[s] for s in slots if s not in synced and s != led}

    def _each(self, value: Any, default: list[int]) -> list[int]:
        if value is None:
            return list(default)
        return [int(value)] * self.partitions if isinstance(value, int) else [int(x) for x in value]

    @staticmethod
    def _per_slot(value: Any, rows: list[list[int]]) -> list[list[int]]:
        flat: list[int] = []
        if value is None:
            return [[0] * len(row) for row in rows]
        for one in value:
            flat += one if isinstance(one, list) else [one]
        found, at = [], 0
        for row in rows:
            found.append([int(x) for x in flat[at : at + len(row)]])
            at += len(row)
        return found

    def _read_rules(self, given: dict[str, Any]) -> None:
        self.rules = list(given.get("rules", ()))
        if "spread" in given:
            self.rules = [{"spread": given["spread"]}]
        self.group = list(given.get("group", [0] * self.partitions))
        groups = len(given.get("group_names", ())) or max(self.group, default=-1) + 1
        self.group_rule = list(given.get("group_rule", [-1] * groups))
        alone = len(self.rules) == 1 and all(q < 0 for q in self.group_rule)
        self.rule = list(given.get("rule", [0 if alone else -1] * self.partitions))
        self.members: list[list[int]] = [[] for _ in self.group_rule]
        for p, g in enumerate(self.group):
            self.members[g].append(p)
        self.bounds = [self._bounds_of(one, per_node=True) for one in (*self.rules, {})]
        self.group_bounds = [self._bounds_of(one, per_node=False) for one in (*self.rules, {})]
        self.open = [self._open(one) for one in (*self.rules, {})]
        self._eligible: dict[tuple[tuple[int, ...], str], list[int]] = {}

    @staticmethod
    def _bounds_of(rule: dict[str, Any], *, per_node: bool) -> list[Bound]:
        spread = dict(rule.get("spread", {}))
        if per_node:
            spread.setdefault(NODE, 1)
        found = []
        for kind in ("spread", "min_domains", "max_domains", "skew"):
            for tier, amount in (spread if kind == "spread" else rule.get(kind, {})).items():
                if isinstance(amount, tuple):
                    most, how, *weight = amount
                    found.append(Bound(kind, tier, most, how == "hard", *map(int, weight)))
                elif amount is not None:
                    found.append(Bound(kind, tier, amount, True))
        return found

    def _open(self, rule: dict[str, Any]) -> list[bool]:
        masks = [self.mask(text) for text in rule.get("require", ())]
        return [all(mask[i] for mask in masks) for i in range(self.nodes)]

    def mask(self, text: str) -> list[bool]:
        """Return the nodes that meet an expression."""
        if text not in self._masks:
            tests = [self._test(part.strip()) for part in text.split(",")]
            self._masks[text] = [all(test[i] for test in tests) for i in range(self.nodes)]
        return self._masks[text]

    def wanted_on(self, kind: str, text: str) -> list[bool]:
        """Return the nodes on which a rule of ``COUNTS`` wants replicas."""
        assert kind in COUNTS
        return self.mask(text)

    def _test(self, part: str) -> list[bool]:
        if part[0] in "+-" and "=" not in part:
            return [carries == (part[0] == "+") for carries in self.tags[part[1:].strip()]]
        key, value = part.split("!=" if "!=" in part else "=", 1)
        key, value = key.strip(), value.strip()
        if key == NODE:
            names = self.case.cluster.get("node_names", [f"n{i}" for i in range(self.nodes)])
            held = [name == value for name in names]
        else:
            held = [x == value for x in self.labels.get(key) or self.attributes[key]]
        return [not h for h in held] if "!=" in part else held

    def eligible(self, rules: tuple[int, ...], tier: str) -> list[int]:
        """Return the domains of a tier that hold a node which rules leave open and that keeps."""
        if (rules, tier) not in self._eligible:
            domain = self.domain[tier]
            self._eligible[rules, tier] = sorted(
                {domain[i] for i in range(self.nodes)
                 if all(self.open[q][i] for q in rules) and self.may_hold[i] and domain[i] >= 0}
            )  # fmt: skip
        return self._eligible[rules, tier]

    def rules_of(self, p: int) -> tuple[int, ...]:
        """Return the rules whose demands on nodes bind a partition: its own, and its group's."""
        return self.rule[p], self.group_rule[self.group[p]]

    def load_of(self, p: int, slot: int, leader: int) -> list[float]:
        """Return what a slot of a partition weighs when such a slot leads."""
        if slot == leader:
            return self.leader_load[p]
        return self.light_load[p] if self.roles[p][slot] == NON_VOTER else self.voter_load[p]

    def loads(self, standing: Standing) -> list[list[float]]:
        """Return what each node carries."""
        found = [[0.0] * self.dimensions for _ in range(self.nodes)]
        for p, row in enumerate(standing.rows):
            leader = standing.leaders[p]
            for slot, n in enumerate(row):
                if n >= 0:
                    at = found[n]
                    for d, weight in enumerate(self.load_of(p, slot, leader)):
                        at[d] += weight
        return found

    def live(self, row: list[int]) -> int:
        """Count the replicas of a row that live."""
        return sum(n >= 0 and self.serves[n] for n in row)

    def held(self, row: list[int]) -> int:
        """Count the replicas of a row that live or may come back."""
        return sum(n >= 0 and (self.serves[n] or self.may_hold[n]) for n in row)

    def lawful(self, p: int, slot: int, n: int) -> bool:
        """Whether a slot of a partition on a node may lead."""
        return n >= 0 and self.may_lead[n] and self.roles[p][slot] == VOTER

    def unit(self, d: int) -> float:
        """Return what every replica weighs in a dimension; 0 where they differ."""
        tables = (self.voter_load, self.leader_load, self.light_load)
        weights = {row[d] for table in tables for row in table}
        return weights.pop() if len(weights) == 1 else 0.0
