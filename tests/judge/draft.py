"""A draft of a cluster, to which random pieces are added until it is a case."""

import itertools
from contextvars import ContextVar
from typing import Any

import numpy as np

from tests.judge.world import COUNTS, REQUIREMENTS

# so many times the nodes, and the partitions, that a family asks for
TIMES: ContextVar[tuple[int, int]] = ContextVar("times", default=(1, 1))


class Draft:
    """A cluster in the making: N nodes, P rows, and how likely each piece is left to the pieces."""

    def __init__(self, rng: np.random.Generator, nodes: int, partitions: int) -> None:
        self.rng = rng
        of_nodes, of_partitions = TIMES.get()
        self.nodes = nodes * of_nodes
        self.partitions = partitions * of_partitions
        self.given: dict[str, Any] = {}
        self.goals: dict[str, Any] = {}
        self.limits: dict[str, Any] = {}
        self.rules: list[dict[str, Any]] = []

    def chance(self, share: float) -> bool:
        """Whether something of this likelihood happens."""
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices: Any) -> Any:
        """Draw one of some things."""
        return choices[int(self.rng.integers(len(choices)))]

    def some(self, count: int, share: float) -> list[bool]:
        """Draw a flag each."""
        return (self.rng.random(count) < share).tolist()

    # loads and rows -----------------------------------------------------------------------------

    def loads(self, dimensions: int, *, alike: float = 0.3, roles: float = 0.0) -> None:
        """Draw what replicas weigh; in some roles more or less, with some likelihood."""
        whole = self.chance(0.5)
        columns = []
        for _ in range(dimensions):
            if self.chance(alike):
                column = np.full(self.partitions, float(self.whole(1, 4)))
            else:
                column = self.rng.lognormal(1.0, self.pick([0.3, 0.8, 1.3]), self.partitions)
                if self.chance(0.1):
                    column[self.rng.random(self.partitions) < 0.3] = 0.0
            columns.append(np.ceil(column) if whole else np.round(column, 3))
        load = np.stack(columns, 1)
        self.given["load"] = load.tolist()
        if self.chance(roles):
            heavier = load * self.rng.choice([1.0, 1.5, 2.0, 4.0], (1, dimensions))
            if self.chance(0.2):
                heavier = load * self.rng.choice([0.5, 1.0, 3.0], load.shape)
            self.given["leader_load"] = heavier.tolist()
        if self.chance(roles * 0.6):
            self.given["non_voter_load"] = (load * self.pick([0.0, 0.25, 0.5, 2.0])).tolist()
        if self.chance(0.25):
            self.given["dimensions"] = [f"d{d}" for d in range(dimensions)]
            self.given["bytes"] = "d0"

    def rows(self, replicas: int, *, mixed: float = 0.0, bad: float = 0.0) -> None:
        """Deal replicas to nodes: evenly, on few of them, or by whim."""
        few = self.whole(1, self.nodes) if self.chance(0.4) else self.nodes
        weight = self.rng.random(self.nodes) ** self.pick([0.0, 1.0, 3.0]) + 1e-9
        weight[few:] = 0.0
        weight /= weight.sum()
        rows = []
        for _ in range(self.partitions):
            size = self.whole(1, replicas + 1) if self.chance(mixed) else replicas
            apart = min(size, int((weight > 0).sum()))
            row = self.rng.choice(self.nodes, apart, replace=False, p=weight).tolist()
            row += [-1] * (size - apart)
            for slot in range(size):
                if self.chance(bad):
                    row[slot] = -1 if self.chance(0.6) else self.whole(0, self.nodes - 1)
            rows.append(row)
        self.place(rows)
        if self.chance(mixed):
            self.given["replicas"] = [max(1, len(r) + self.pick([-1, 0, 0, 1])) for r in rows]
        elif self.chance(0.8):
            self.given["replicas"] = replicas

    def place(self, rows: list[list[int]]) -> None:
        """Write rows down, flat where they differ in length."""
        if len({len(row) for row in rows}) == 1:
            self.given["placement"] = rows
            self.given.pop("first", None)
        else:
            self.given["placement"] = [n for row in rows for n in row]
            self.given["first"] = np.cumsum([0, *(len(row) for row in rows)]).tolist()

    def read_rows(self) -> list[list[int]]:
        """Return the rows written down."""
        placed = self.given["placement"]
        if "first" not in self.given:
            return [list(row) for row in placed]
        first = self.given["first"]
        return [placed[a:b] for a, b in itertools.pairwise(first)]

    def wanted(self) -> list[int]:
        """Return how many replicas each partition wants."""
        wanted = self.given.get("replicas")
        if wanted is None:
            return [len(row) for row in self.read_rows()]
        return [wanted] * self.partitions if isinstance(wanted, int) else wanted

    def capacities(self, low: float, high: float, *, unlike: float = 0.4) -> None:
        """Give nodes room for what is wanted, so that they come out so full on average."""
        load = np.asarray(self.given["load"])
        lead = np.asarray(self.given.get("leader_load", load))
        wanted = np.asarray(self.wanted(), float)[:, None]
        total = (load * np.maximum(wanted - 1, 0) + lead * np.minimum(wanted, 1)).sum(0)
        share = self.rng.uniform(low, high, load.shape[1])
        shape = self.rng.choice([1.0, 1.0, 2.0, 4.0], self.nodes)
        shape = shape if self.chance(unlike) else np.ones(self.nodes)
        each = np.outer(shape / shape.sum(), np.maximum(total, 1.0) / share)
        # a node that holds not even one replica is no use
        each = np.maximum(each, np.maximum(load, lead).max(0) * (0.5 if self.chance(0.1) else 1.0))
        if self.chance(0.05):
            each[self.rng.random(each.shape) < 0.1] = self.pick([0.0, np.inf])
        self.given["capacity"] = np.round(each, 3).tolist()

    # nodes --------------------------------------------------------------------------------------

    def zones(self, count: int, *, racks: float = 0.0, missing: float = 0.0) -> None:
        """Label nodes with zones, some with racks, some with none."""
        names = [f"z{i}" for i in range(count)]
        labels = [names[i % count] for i in range(self.nodes)]
        if self.chance(0.3):
            labels = self.rng.choice(names, self.nodes).tolist()
        if self.chance(missing):
            labels = [self.pick(["", label, label]) for label in labels]
        self.given["domains"] = {"zone": labels}
        if self.chance(racks):
            self.given["domains"]["rack"] = [f"r{(i // count) % 3}" for i in range(self.nodes)]
            if self.chance(0.2):
                self.given["crossing"] = ["rack"]

    def states(self, share: float = 0.2) -> None:
        """Let some nodes die, drain, evacuate, be down for a while, be cordoned or lead nothing."""
        flags: dict[str, list[bool]] = {
            name: [True] * self.nodes for name in ("alive", "accepts", "keeps", "leads")
        }
        flags["gone"] = [False] * self.nodes
        away = {
            "dead": ("alive", "accepts", "keeps", "leads"),
            "down": ("alive", "accepts", "leads"),
            "evacuating": ("accepts", "keeps", "leads"),
            "draining": ("accepts", "leads"),
            "cordoned": ("accepts",),
            "quiet": ("leads",),
        }
        for n in range(self.nodes):
            if self.chance(share):
                for name in away[self.pick([*away, "dead"])]:
                    flags[name][n] = False
                flags["gone"][n] = not flags["alive"][n] and self.chance(0.2)
        self.given.update(
            {
                name: flag
                for name, flag in flags.items()
                if any(flag) != all(flag) or flag[0] == (name == "gone")
            }
        )
        if self.chance(0.1):
            self.given["lead_weight"] = self.rng.choice([0.0, 1.0, 2.0], self.nodes).tolist()

    def extras(self, share: float) -> None:
        """Add what few clusters have: a most of replicas, forbidden pairs, pins, tier capacity."""
        if self.chance(share):
            fair = sum(self.wanted()) / self.nodes
            self.given["max_replicas"] = [
                int(np.ceil(fair * self.rng.uniform(1.0, 2.0))) if self.chance(0.7) else -1
                for _ in range(self.nodes)
            ]
        if self.chance(share):
            pairs = max(1, self.nodes * self.partitions // 10)
            self.given["forbidden"] = [
                [self.whole(0, self.partitions - 1), self.whole(0, self.nodes - 1)]
                for _ in range(pairs)
            ]
        if self.chance(share):
            flat = sum(len(row) for row in self.read_rows())
            self.flags_shape([int(pinned) for pinned in self.some(flat, 0.15)])
        if self.chance(share) and "domains" in self.given and "zone" in self.given["domains"]:
            labels = self.given["domains"]["zone"]
            capacity = np.asarray(self.given["capacity"])
            names = sorted(set(labels) - {""})
            share_of = self.rng.uniform(0.6, 1.0)
            shared = [capacity[[x == z for x in labels]].sum(0) * share_of for z in names]
            if names:
                self.given["tier_capacity"] = {"zone": np.round(shared, 3).tolist()}
        if self.chance(share) and self.given.get("dimensions") is None:
            dimensions = len(self.given["load"][0])
            self.given["dimensions"] = [f"d{d}" for d in range(dimensions)]
            self.given["transient"] = [f"d{self.whole(0, dimensions - 1)}"]
        if self.chance(share):
            self.given["min_active"] = [self.whole(0, w) for w in self.wanted()]

    def flags_shape(self, flat: list[int]) -> None:
        """Write one value per replica down in the shape of the placement."""
        if "first" in self.given:
            self.given["flags"] = flat
        else:
            width = len(self.given["placement"][0])
            self.given["flags"] = [flat[i : i + width] for i in range(0, len(flat), width)]

    def leaders(self, share: float) -> None:
        """Let other slots lead, or none."""
        rows = self.read_rows()
        wanted = self.wanted()
        if self.chance(share):
            self.given["leader"] = [
                self.whole(-1 if self.chance(0.2) else 0, max(len(row), want) - 1)
                for row, want in zip(rows, wanted, strict=True)
            ]

    def voters(self, share: float) -> None:
        """Let the last replicas of some partitions not vote."""
        if self.chance(share):
            wanted = self.wanted()
            self.given["voters"] = [max(1, want - self.pick([0, 1, 1, 2])) for want in wanted]

    # rules --------------------------------------------------------------------------------------

    def rule(self) -> dict[str, Any]:
        """Draw a rule: one or a few of its parts."""
        least = min(want for want in self.wanted())
        zones = sorted(set(self.given.get("domains", {}).get("zone", [])) - {""})
        tiers = [*self.given.get("domains", {}), "node"]
        found: dict[str, Any] = {}
        where = [f"zone={z}" for z in zones] + [f"zone!={z}" for z in zones]
        where += ["+ssd", "-ssd"] if "tags" in self.given else []
        for _ in range(self.pick([1, 1, 1, 2, 3])):
            kind = self.pick(
                ["spread", "spread", "min_domains", "max_domains", "skew", *REQUIREMENTS, *COUNTS,
                 "lead"]
            )  # fmt: skip
            if kind in ("spread", "min_domains", "max_domains", "skew"):
                amount: Any = self.whole(1, 2 if kind != "min_domains" else max(1, least))
                if self.chance(0.15):
                    amount = (amount, "soft")
                found.setdefault(kind, {})[self.pick(tiers)] = amount
            elif not where:
                continue
            elif kind in COUNTS:
                found.setdefault(kind, {})[self.pick(where)] = self.whole(1, max(1, least - 1))
            elif kind == "lead":
                found["lead"] = [self.pick(where) for _ in range(self.whole(1, 2))]
            else:
                found[kind] = [self.pick(where)]
        return found

    def ruled(self, share: float, *, grouped: float = 0.0) -> None:
        """Bind partitions, and maybe groups, by rules."""
        if self.chance(0.3):
            self.given["tags"] = {"ssd": self.some(self.nodes, 0.5)}
            if not any(self.given["tags"]["ssd"]):
                self.given["tags"]["ssd"][0] = True
        if self.chance(grouped):
            groups = self.whole(1, max(1, self.partitions // 2))
            self.given["group"] = self.rng.integers(0, groups, self.partitions).tolist()
            self.given["group_names"] = [f"g{g}" for g in range(groups)]
        if self.chance(share):
            count = self.whole(1, 3)
            self.rules += [self.rule() for _ in range(count)]
            self.given["rules"] = self.rules
            self.given["rule"] = self.rng.integers(-1, count, self.partitions).tolist()
        if "group" in self.given and self.chance(grouped):
            groups = len(self.given["group_names"])
            rule = self.rule()
            rule.setdefault("skew", {})["zone" if "domains" in self.given else "node"] = 1
            tiers = {"min_domains", "max_domains"}
            self.rules.append({k: v for k, v in rule.items() if k not in tiers or self.chance(0.5)})
            self.given["rules"] = self.rules
            self.given.setdefault("rule", [-1] * self.partitions)
            self.given["group_rule"] = [
                len(self.rules) - 1 if self.chance(0.6) else -1 for _ in range(groups)
            ]

    # asked --------------------------------------------------------------------------------------

    def ask(self, budgets: float) -> None:
        """Draw goals and budgets."""
        dimensions = len(self.given["load"][0])
        names = [f"d{d}" for d in range(dimensions)]
        level: Any = self.pick([None, 0.0, 0.02, 0.05, 0.05, 0.1, 0.3])
        if self.chance(0.15):
            level = {name: self.pick([None, 0.05, 0.2]) for name in names if self.chance(0.7)}
        self.goals = {"level": level}
        if self.chance(0.3):
            self.goals["leaders"] = self.pick([0.0, 0.1, 0.5])
        if self.chance(budgets):
            many = sum(self.wanted())
            most = self.pick([0, 1, 3, max(1, many // 10), max(1, many // 3)])
            self.limits[self.pick(["moves", "moves", "node_in", "node_out"])] = most
            if self.chance(0.3):
                self.limits[self.pick(["moves", "node_in", "node_out"])] = self.whole(0, 5)
            if "bytes" in self.given and self.chance(0.5):
                total = float(np.asarray(self.given["load"])[:, 0].sum())
                self.limits["bytes"] = round(total * self.pick([0.02, 0.1, 0.5]), 2)

    def drawn(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what was drawn."""
        return self.given, self.goals, self.limits
