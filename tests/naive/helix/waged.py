"""WAGED replica by replica and node by node, in plain Python."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from evenkeel.model.assignment import Assignment
from evenkeel.systems.helix.crush.tree import state_counts, wanted_replicas
from evenkeel.systems.helix.waged import Model, Preference, Scope, Task
from tests.naive.core.jenkins_hash import JavaMap, java_hash, signed, utf16

f32 = np.float32
Replica = tuple[int, int]  # partition and state


@dataclass
class Result:
    """What came of a run; of a failure the key that is short, or the replica and the reasons."""

    rows: list[set[tuple[int, int]]] = field(default_factory=list)
    placed: int = 0
    usage: float = 0.0
    usage_top: float = 0.0
    count: int = 0
    short: str = ""
    stuck: Replica | None = None
    reasons: dict[int, str] = field(default_factory=dict)


@cache
def halves(over: int, under: int) -> tuple[float, float]:
    """The exponential of a fraction: its first bits and the rest."""
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(over) / under).exp()
        near = float(exact)
        if near > 1e290:
            near *= 2.0**-100
            high = (near + near * 2.0**30 - near * 2.0**30) * 2.0**100
        else:
            high = near + near * 2.0**30 - near * 2.0**30
        return high, float(exact - Decimal(high))


def exponential(x: float) -> float:
    """As ``FastMath.exp`` evaluates it."""
    if x >= 710.0:
        return math.inf
    whole = int(x) - (x < 0)
    part = int((x - whole) * 1024.0)
    rest = x - (whole + part / 1024.0)
    z = 0.04168701738764507
    for c in (0.1666666505023083, 0.5000000000042687, 1.0, -3.940510424527919e-20):
        z = z * rest + c
    (a, b), (c, d) = halves(whole, 1), halves(part, 1024)
    low = a * d + b * c + b * d
    high = a * c
    return (low + high) * z + low + high


def sigmoid(usage: float) -> float:
    """Near 1 below what is expected, near 0 above."""
    if math.isnan(usage):
        return usage
    return 1.0 / (1.0 + exponential((usage - 1.0) * 44.0))


def relative(usage: float, expected: float) -> float:
    """A usage by what is expected; 0 where nothing is."""
    return usage / expected if expected else 0.0


def compared(score: float) -> tuple[bool, float]:
    """What scores compare by: to Java what is no number is above all numbers."""
    return math.isnan(score), 0.0 if math.isnan(score) else score


def divided(over: Any, under: Any) -> Any:
    """A quotient of 32-bit floats, infinite or no number where the divisor is 0."""
    with np.errstate(all="ignore"):
        return f32(over) / f32(under)


def wrapped(total: int) -> int:
    """A sum in 32 bits."""
    return signed(total & 0xFFFFFFFF)


def walked(names: Iterable[str]) -> list[str]:
    """Keys of a ``HashMap`` into which names were put one after another."""
    some = JavaMap(java_hash)
    for name in names:
        some[name] = None
    return list(some)


class Old:
    """An assignment: by partition and state the nodes, in the order of the original's sets."""

    def __init__(self, model: Model, assignment: Assignment | None) -> None:
        names = model.nodes.texts
        self.state: list[dict[int, int]] = [{} for _ in range(len(model.kind))]
        for p, row in enumerate(self.state):
            if assignment is not None:
                some = slice(assignment.first[p], assignment.first[p + 1])
                pairs = zip(assignment.node[some], assignment.state[some], strict=True)
                row.update((int(n), int(s)) for n, s in pairs)
        self.sets: list[dict[int, list[int]]] = []
        for row in self.state:
            place = {names[n]: n for n in row}
            in_map = walked(sorted(place, key=utf16))
            sets = {}
            for state in set(row.values()):
                some = [name for name in in_map if row[place[name]] == state]
                sets[state] = [place[name] for name in walked(some)]
            self.sets.append(sets)

    def copies(self) -> list[dict[int, list[int]]]:
        """The sets, to take nodes out of."""
        return [{s: list(nodes) for s, nodes in sets.items()} for sets in self.sets]


def run(model: Model, task: Task, preference: Preference, scoring: tuple[str, ...] = ()) -> Result:
    """Run WAGED."""
    return Run(model, task, preference, scoring).result()


class Run:
    """A run with its counts, all of them dictionaries and lists of Python numbers."""

    def __init__(
        self, model: Model, task: Task, preference: Preference, scoring: tuple[str, ...]
    ) -> None:
        self.model, self.task = model, task
        self.nodes = [int(n) for n in task.nodes]
        self.keys = range(len(model.keys))
        self.group = [int(g) for g in model.group]
        self.weight = [[int(w) for w in row] for row in model.weight]
        self.capacity = [[int(c) for c in row] for row in model.capacity]
        self.old, self.meant = Old(model, task.current), Old(model, task.baseline)
        self.factor = [float(w) for w in preference.weights]
        self.scored = list(self.keys)
        if scoring and scoring[0] in model.keys:
            self.scored = sorted({model.keys.index(key) for key in scoring})
        self.kept: list[tuple[int, int, int]] = []
        self.wanted: list[Replica] = []
        self.made: list[Replica] = []
        self.count: Counter[int] = Counter()
        self.group_count: Counter[tuple[int, int]] = Counter()
        self.left = {n: list(self.capacity[n]) for n in self.nodes}
        self.left_top = {n: list(self.capacity[n]) for n in self.nodes}
        self.rows: list[dict[int, int]] = [{} for _ in self.group]

    def result(self) -> Result:
        """Go through all steps."""
        if not self.nodes:
            return Result([set() for _ in self.group])
        self.divide()
        found = self.expect()
        for n, p, s in self.kept:
            self.book(n, p, s)
        for name in walked(self.model.keys):
            d = self.model.keys.index(name)
            if wrapped(self.capacity_sum[d] - self.weight_sum[d]) < 0:
                found.short = name
                return found
        self.busy = {n for row in self.old.state for n in row}
        for p, s in self.ordered():
            reasons = {n: self.refusal(n, p) for n in self.nodes}
            fit = [n for n in self.nodes if not reasons[n]]
            if not fit:
                found.stuck, found.reasons = (p, s), reasons
                return found
            scores = {n: self.score(n, p, s) for n in fit}
            best = max(map(compared, scores.values()))
            ties = [n for n, score in scores.items() if compared(score) == best]
            self.book(min(ties, key=lambda n: (n in self.busy, self.name(n))), p, s)
        found.rows = [set(row.items()) for row in self.rows]
        return found

    def name(self, n: int) -> list[int]:
        """What nodes are compared by."""
        return utf16(self.model.nodes.texts[n])

    def divide(self) -> None:
        """Find out what is kept and what is placed."""
        zones = len({int(self.model.zone[n]) for n in self.nodes})
        inside = set(self.nodes)
        old, meant = self.old.copies(), self.meant.copies()
        all_meant = [{s: len(nodes) for s, nodes in sets.items()} for sets in meant]
        for sets in meant:
            for s in sets:
                sets[s] = [n for n in sets[s] if n in inside]
        known = {self.group[p] for p, row in enumerate(self.old.state) if row}
        for p in range(len(self.group)):
            kind = self.model.kinds[int(self.model.kind[p])]
            replicas = wanted_replicas(kind.replicas, len(self.nodes))
            least = replicas if kind.min_active is None else kind.min_active
            counts = state_counts(kind.states, zones, replicas)
            for s, state in enumerate(kind.names):
                there = old[p].get(s, [])
                ideal = meant[p].get(s, [])
                if self.task.scope is Scope.PARTIAL:
                    counts[state] = min(counts.get(state, 0), all_meant[p].get(s, 0))
                    there = [n for n in there if n in inside]
                elif self.task.scope is Scope.GLOBAL:
                    there = [n for n in there if n in inside]
                for _ in range(counts.get(state, 0)):
                    self.made.append((p, s))
                    if self.task.scope is Scope.GLOBAL:
                        anew = bool(self.task.anew[p]) or self.group[p] not in known
                        self.take(there if not anew else [], p, s)
                    elif self.task.scope is Scope.PARTIAL:
                        self.compare(there, ideal, p, s)
                    elif self.task.scope is Scope.EMERGENCY and there:
                        n = there.pop(0)
                        if n in inside:
                            self.kept.append((n, p, s))
                        else:
                            self.wanted.append((p, s))
            if self.task.scope is Scope.OVERWRITE:
                self.fill_up(p, replicas, least)

    def take(self, there: list[int], p: int, s: int) -> None:
        """Keep a replica on the next node, or place it."""
        if there:
            self.kept.append((there.pop(0), p, s))
        else:
            self.wanted.append((p, s))

    def compare(self, there: list[int], ideal: list[int], p: int, s: int) -> None:
        """Keep or place a replica by comparing the best possible with the baseline."""
        common = [n for n in there if n in ideal]
        if common:
            there.remove(common[0])
            ideal.remove(common[0])
            self.kept.append((common[0], p, s))
        elif ideal:
            ideal.pop(0)
            self.wanted.append((p, s))
        else:
            self.take(there, p, s)

    def fill_up(self, p: int, replicas: int, least: int) -> None:
        """Keep what is live, and place what is missing for the least number active."""
        kind = self.model.kinds[int(self.model.kind[p])]
        live = {n: s for n, s in self.old.state[p].items() if n in set(self.nodes)}
        self.kept += [(n, p, s) for n, s in live.items()]
        if not self.old.state[p] or len(live) >= min(least, replicas):
            return
        missing = least - len(live)
        counts = state_counts(kind.states, least, least)
        for s, state in enumerate(kind.names):
            if missing <= 0:
                break
            more = counts.get(state, 0) - sum(one == s for one in live.values())
            self.wanted += [(p, s)] * max(more, 0)
            missing -= max(more, 0)

    def expect(self) -> Result:
        """What nodes will carry."""
        n = len(self.nodes)
        total, top = [0] * len(self.keys), [0] * len(self.keys)
        by_group = Counter(self.group[p] for p, _ in self.made)
        for p, s in self.made:
            for d in self.keys:
                total[d] = wrapped(total[d] + self.weight[p][d])
                top[d] = wrapped(top[d] + (self.weight[p][d] if s == 0 else 0))
        self.capacity_sum = [
            wrapped(sum(self.capacity[m][d] for m in self.nodes)) for d in self.keys
        ]
        self.weight_sum = total

        def greatest(sums: list[int]) -> float:
            found = [
                divided(sums[d], self.capacity_sum[d]) if self.capacity_sum[d] else f32(1)
                for d in self.scored
            ]
            return float(max([f32(0), *found])) if found else 1.0

        self.usage, self.usage_top = greatest(total), greatest(top)
        self.expected = math.floor(f32(len(self.made)) / f32(n))
        self.expected_of = {
            g: max(1, math.floor(f32(count) / f32(n))) for g, count in by_group.items()
        }
        return Result([], len(self.wanted), self.usage, self.usage_top, self.expected)

    def ordered(self) -> list[Replica]:
        """The replicas to place, in order."""
        held = {self.group[p] for p, row in enumerate(self.old.state) if row}
        meant = {self.group[p] for p, row in enumerate(self.meant.state) if row}
        order = walked_weights(self.model.keys)

        def key(replica: Replica) -> tuple[Any, ...]:
            p, s = replica
            g = self.group[p]
            impact = f32(0)
            for name in order:
                d = self.model.keys.index(name)
                left = f32(wrapped(self.capacity_sum[d] - self.weight_sum[d]))
                left = left + f32(self.capacity_sum[d]) * f32(0.01)
                if self.weight[p][d]:
                    impact = impact + f32(self.weight[p][d]) / left
            kind = self.model.kinds[int(self.model.kind[p])]
            text = f"{self.model.groups.texts[g]}-{self.model.partitions.texts[p]}-{kind.names[s]}"
            mask = self.model.masks[int(self.model.mask[p])]
            some = [n for n in self.nodes if mask[n]] or self.nodes
            salt = sum(java_hash(self.model.nodes.texts[n]) for n in some)
            hashed = wrapped(31 * (31 + java_hash(text)) + salt)
            return g not in held, g not in meant, s, -float(impact), hashed, utf16(text)

        return sorted(self.wanted, key=key)

    def refusal(self, n: int, p: int) -> str:
        """Which hard constraint says no first; "" if none does."""
        g = self.group[p]
        if any(self.model.zone[m] == self.model.zone[n] for m in self.rows[p]):
            return "ZONE"
        if any(self.left[n][d] < self.weight[p][d] for d in self.keys):
            return "CAPACITY"
        if [p, n] in self.model.disabled.tolist():
            return "DISABLED"
        if self.count[n] >= self.model.limit[n]:
            return "LIMIT"
        if self.group_count[g, n] >= self.model.group_limit[g]:
            return "LIMIT"
        if not self.model.masks[int(self.model.mask[p])][n]:
            return "TAG"
        return ""

    def score(self, n: int, p: int, s: int) -> float:
        """Sum of the six terms, in their order."""
        g = self.group[p]
        known = bool(self.old.state[p])
        held = stay(self.old.state[p], n, s)
        meant = stay(self.meant.state[p], n, s)
        top = relative(self.projected(self.left_top, n, p), self.usage_top) if s == 0 else 0.0
        terms: list[Callable[[], float]] = [
            lambda: held if known else meant,
            lambda: meant if known else 0.0,
            lambda: sigmoid(relative(self.count[n], self.expected)),
            lambda: sigmoid(relative(self.group_count[g, n], self.expected_of.get(g, 1))),
            lambda: sigmoid(top),
            lambda: sigmoid(relative(self.projected(self.left, n, p), self.usage)),
        ]
        total = 0.0
        for factor, term in zip(self.factor, terms, strict=True):
            if factor:
                total += factor * term()
        return total

    def projected(self, left: dict[int, list[int]], n: int, p: int) -> float:
        """Greatest usage of a node with one more replica, in 32-bit floats."""
        most = f32(0)
        for d in self.scored:
            capacity = f32(self.capacity[n][d])
            used = capacity - f32(left[n][d]) + f32(self.weight[p][d])
            most = np.maximum(most, divided(used, capacity))  # carries what is no number on
        return float(most)

    def book(self, n: int, p: int, s: int) -> None:
        """Give a node a replica."""
        assert n not in self.rows[p]
        self.rows[p][n] = s
        self.count[n] += 1
        self.group_count[self.group[p], n] += 1
        for d in self.keys:
            self.left[n][d] = wrapped(self.left[n][d] - self.weight[p][d])
            if s == 0:
                self.left_top[n][d] = wrapped(self.left_top[n][d] - self.weight[p][d])


def walked_weights(keys: Iterable[str]) -> list[str]:
    """Keys of an empty ``HashMap`` into which a whole map was put."""
    names = list(keys)
    some = JavaMap(java_hash)
    some.capacity = 1
    while some.capacity < int(len(names) / 0.75 + 1):
        some.capacity *= 2
    for name in names:
        some[name] = None
    return list(some)


def stay(row: dict[int, int], n: int, s: int) -> float:
    """Value of a node that held the partition."""
    if n not in row:
        return 0.0
    return 1.0 if row[n] == s else 0.5


def into_slots(
    before: list[int], led: int, row: list[tuple[int, int]]
) -> tuple[list[int], int, int]:
    """Slots of one partition, the one that leads, and how many replicas had none."""
    nodes = [n for n, _ in row]
    after = [n if n in nodes and n not in before[:k] else -1 for k, n in enumerate(before)]
    rest = [n for n in nodes if n not in after]
    for k in range(len(after)):
        if after[k] < 0 and rest:
            after[k] = rest.pop(0)
    top = [k for k, n in enumerate(after) if n >= 0 and (n, 0) in row]
    leader = led if led in top else next(iter(top), -1)
    return after, leader, len(rest)
