"""Small clusters in CP-SAT, from the user's input alone: what could be mended, and how cheaply.

A placement is modelled by how many voters and how many other replicas of a partition stand on each
node, and which node leads it; slots of one role are alike. Wishes (soft rules, preferred leaders)
are left out. Loads become integers, a millionth of a unit each.
"""

from collections.abc import Iterator
from math import floor, inf, isfinite
from typing import Any

from ortools.sat.python import cp_model

from tests.judge.broken import SLACK, everything, is_hard
from tests.judge.verdict import Finding, exceeded, way
from tests.judge.world import VOTER, Bound, Standing, World

SCALE = 1_000_000
MOST_CELLS = 400
"""Partitions times nodes up to which a case is small."""
SECONDS = 5.0
TOO_MANY_MOVES = 2
"""Moves above the fewest that are still no finding."""

AT_MOST = frozenset({"spread", "max_domains"})
OF_LIFE = frozenset({"on_dead", "not_kept", "unassigned", "min_active", "leader", "leaderless"})
"""What may be broken in a case whose repairs under budgets are compared by endangerment."""

Sum = Any
"""A linear expression of CP-SAT."""


class Model:
    """Every placement that breaks no hard rule; or, ``partly``, that is no worse than before."""

    def __init__(self, world: World, *, partly: bool = False) -> None:
        self.world, self.partly = world, partly
        self.cp = cp_model.CpModel()
        self.voter: list[dict[int, Any]] = []
        self.other: list[dict[int, Any]] = []
        self.leads: list[dict[int, Any]] = []
        for p in range(world.partitions):
            self._partition(p)
        for p in range(world.partitions):
            self._limits(world.rule[p], world.bounds[world.rule[p]], [p])
            self._terms(world.rule[p], [p])
        for g, q in enumerate(world.group_rule):
            self._limits(q, world.group_bounds[q] if q >= 0 else [], world.members[g])
            self._terms(q, world.members[g])
        self.load = [
            [self._load(n, d) for d in range(world.dimensions)] for n in range(world.nodes)
        ]
        self._nodes()
        self.moves = sum(
            self.on(p, n) for p in range(world.partitions) for n in self.nodes(p)
            if n not in world.came.rows[p]
        )  # fmt: skip

    def nodes(self, p: int) -> list[int]:
        """Return the nodes that a partition may stand on."""
        return list(self.voter[p])

    def on(self, p: int, n: int) -> Sum:
        """Count the replicas of a partition on a node."""
        return self.voter[p].get(n, 0) + self.other[p].get(n, 0)

    def live(self, p: int) -> Sum:
        """Count the live replicas of a partition."""
        return sum(self.on(p, n) for n in self.nodes(p) if self.world.serves[n])

    def _partition(self, p: int) -> None:
        world, cp = self.world, self.cp
        row, want = world.came.rows[p], world.wanted[p]
        voters = sum(role == VOTER for role in world.roles[p])
        stays = world.serves if self.partly else world.may_hold
        open_to = [
            n for n in range(world.nodes)
            if (world.may_receive[n] or (n in row and stays[n])) and n not in world.forbidden[p]
            and world.open[world.rule[p]][n]
        ]  # fmt: skip
        excluded = self._no_voters(world.rule[p])
        light = len(row) - voters
        self.voter.append({
            n: cp.new_int_var(0, 0 if n in excluded else voters, f"v{p},{n}") for n in open_to
        })  # fmt: skip
        self.other.append({n: cp.new_int_var(0, light, f"o{p},{n}") for n in open_to})
        self.leads.append({n: cp.new_bool_var(f"l{p},{n}") for n in open_to if world.may_lead[n]})
        cp.add(sum(self.voter[p].values()) <= voters)
        cp.add(sum(self.other[p].values()) <= light)
        total = sum(self.on(p, n) for n in open_to)
        led = sum(self.leads[p].values())
        if self.partly:
            cp.add(total <= want)
            cp.add(self.live(p) >= min(want, world.live(row)))
            old = world.came.leader_node(p)
            cp.add(led <= 1)
            if world.lawful(p, world.came.leaders[p], old):
                cp.add(led == 1)
        else:
            cp.add(total == want)
            cp.add(led == (1 if want and world.has_leaders else 0))
            cp.add(self.live(p) >= world.min_active[p])
            for n in world.pinned[p]:
                cp.add(self.on(p, n) >= 1)
        for n, leads in self.leads[p].items():
            cp.add(leads <= self.voter[p][n])

    def _no_voters(self, q: int) -> set[int]:
        if q < 0:
            return set()
        masks = [self.world.mask(text) for text in self.world.rules[q].get("voters_require", ())]
        return {n for n in range(self.world.nodes) if not all(mask[n] for mask in masks)}

    def _inside(self, members: list[int], nodes: set[int]) -> Sum:
        return sum(self.on(p, n) for p in members for n in self.nodes(p) if n in nodes)

    def _limits(self, q: int, bounds: list[Bound], members: list[int]) -> None:
        world, cp = self.world, self.cp
        if not any(world.wanted[p] for p in members):
            return
        slots = sum(len(world.came.rows[p]) for p in members)
        for kind, tier, amount, hard in bounds:
            domain = world.domain[tier]
            if not hard:
                continue
            held = {
                e: self._inside(members, {n for n, at in enumerate(domain) if at == e})
                for e in sorted(set(domain) - {-1})
            }
            if kind == "spread":
                for count in held.values():
                    cp.add(count <= amount)
            elif kind == "skew":
                for e in world.eligible(q, tier):
                    for count in held.values():
                        cp.add(count - held[e] <= amount)
            else:
                taken = {e: cp.new_bool_var("") for e in held}
                for e, count in held.items():
                    cp.add(count <= slots * taken[e])
                    cp.add(count >= taken[e])
                used = sum(taken.values())
                cp.add(used >= amount if kind == "min_domains" else used <= amount)

    def _terms(self, q: int, members: list[int]) -> None:
        world = self.world
        if q < 0 or not any(world.wanted[p] for p in members):
            return
        rule = world.rules[q]
        for kind, count in (("require", self.on), ("voters_require", self._voters)):
            for text in rule.get(kind, ()):
                mask = world.mask(text)
                for p in members:
                    for n in self.nodes(p):
                        if not mask[n]:
                            self.cp.add(count(p, n) == 0)
        for kind, count in (("place", self.on), ("voters_place", self._voters)):
            for text, least in rule.get(kind, {}).items():
                mask = world.mask(text)
                there = sum(count(p, n) for p in members for n in self.nodes(p) if mask[n])
                self.cp.add(there >= least)

    def _voters(self, p: int, n: int) -> Sum:
        return self.voter[p].get(n, 0)

    def _load(self, n: int, d: int) -> Sum:
        world = self.world
        total: Sum = 0
        for p in range(world.partitions):
            if n not in self.voter[p]:
                continue
            as_voter, as_other = whole(world.voter_load[p][d]), whole(world.light_load[p][d])
            total += as_voter * self.voter[p][n] + as_other * self.other[p][n]
            if n in self.leads[p]:
                total += (whole(world.leader_load[p][d]) - as_voter) * self.leads[p][n]
        return total

    def _nodes(self) -> None:
        world, cp = self.world, self.cp
        for n in range(world.nodes):
            for d in range(world.dimensions):
                room = world.capacity[n][d]
                if not world.carries[n] or not isfinite(room):
                    continue
                cp.add(self.load[n][d] <= most(room))
                if d in world.transient:
                    cp.add(self.load[n][d] + self._leaving(n, d) <= most(room))
            if world.max_replicas[n] >= 0 and world.carries[n]:
                cp.add(self._inside([*range(world.partitions)], {n}) <= world.max_replicas[n])
        for tier, capacity in world.tier_capacity.items():
            for e, room_of in enumerate(capacity):
                for d, room in enumerate(room_of):
                    inside = [n for n, at in enumerate(world.domain[tier]) if at == e]
                    if isfinite(room):
                        total = sum(self.load[n][d] for n in inside if world.carries[n])
                        cp.add(total <= most(room))

    def _leaving(self, n: int, d: int) -> Sum:
        world = self.world
        total: Sum = 0
        for p, row in enumerate(world.came.rows):
            for slot, at in enumerate(row):
                if at == n:
                    total += whole(world.load_of(p, slot, -1)[d]) * (1 - self._stays(p, n))
        return total

    def _stays(self, p: int, n: int) -> Sum:
        if n not in self.voter[p]:
            return 0
        stays = self.cp.new_bool_var("")
        self.cp.add(self.on(p, n) >= stays)
        self.cp.add(self.on(p, n) <= len(self.world.came.rows[p]) * stays)
        return stays

    # what is asked ------------------------------------------------------------------------------

    def within(self, target: list[list[float]], leaders: list[float]) -> None:
        """Hold loads and leaders to the targets of the goals."""
        for n in range(self.world.nodes):
            if not self.world.carries[n]:
                continue
            for d, load in enumerate(target[n]):
                if isfinite(load):
                    self.cp.add(self.load[n][d] <= most(load))
            if isfinite(leaders[n]):
                self.cp.add(sum(at[n] for at in self.leads if n in at) <= floor(leaders[n]))

    def budgets(self) -> bool:
        """Hold moves to the budgets; False where one is not modelled."""
        limits, world = self.world.case.limits, self.world
        if set(limits) - {"moves", "bytes", "node_in", "node_out"}:
            return False
        rows = world.came.rows
        everyone = range(world.partitions)
        if limits.get("moves") is not None:
            self.cp.add(self.moves <= limits["moves"])
        if limits.get("bytes") is not None:
            d, total = world.bytes, 0
            for p in everyone:
                for n in self.nodes(p):
                    if n not in rows[p]:
                        voter = whole(world.voter_load[p][d])
                        total += voter * self.voter[p][n]
                        total += whole(world.light_load[p][d]) * self.other[p][n]
                        if n in self.leads[p]:
                            total += (whole(world.leader_load[p][d]) - voter) * self.leads[p][n]
            self.cp.add(total <= most(limits["bytes"]))
        for n in range(world.nodes):
            if limits.get("node_in") is not None:
                into = sum(self.on(p, n) for p in everyone if n not in rows[p])
                self.cp.add(into <= limits["node_in"])
            if limits.get("node_out") is not None and world.serves[n]:
                out = sum(1 - self._stays(p, n) for p in everyone for at in rows[p] if at == n)
                self.cp.add(out <= limits["node_out"])
        return True

    def least(self, objective: Sum = 0) -> int | None:
        """Minimise; None if it cannot be. Raises TimeoutError where that was not found out."""
        self.cp.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = SECONDS
        solver.parameters.num_workers = 1
        status = solver.solve(self.cp)
        if status == cp_model.INFEASIBLE:
            return None
        if status != cp_model.OPTIMAL:
            raise TimeoutError
        return round(solver.objective_value)


def whole(load: float) -> int:
    """Return a load in millionths."""
    return round(load * SCALE)


def most(room: float) -> int:
    """Return the greatest load, in millionths, that fits."""
    return floor(room * SCALE * (1.0 + SLACK) + 1e-3)


def is_small(world: World) -> bool:
    """Whether CP-SAT is asked about a case."""
    finite = all(c != inf for at in world.capacity for c in at)
    return finite and world.partitions * world.nodes <= MOST_CELLS


def beside_the_best(world: World, after: Standing, result: Any) -> Iterator[Finding]:
    """Yield what CP-SAT does and the result does not, and what it disproves."""
    if not is_small(world):
        return
    try:
        yield from _mending(world, after, result)
        if world.case.limits or not result.success:
            yield from _endangered(world, after)
    except TimeoutError:
        return


def _mending(world: World, after: Standing, result: Any) -> Iterator[Finding]:
    moves = len(way(world, after).joined)
    valid = not any(is_hard(kind) for kind, *_ in everything(world, after))
    cut_short = result.stop_reason in ("time", "work", "interrupted")
    fewest = Model(world)
    least = fewest.least(fewest.moves)
    if valid and least is None:
        raise AssertionError("the judge's model forbids a placement that its verdict allows")
    if least is None:
        return
    if result.bounds.moves_feasible > least:
        yield Finding(
            "bound on mending moves disproved", f"{result.bounds.moves_feasible}: {least}"
        )
    if not valid:
        carried = Model(world)
        if not cut_short and carried.budgets() and carried.least(carried.moves) is not None:
            yield Finding("mendable but unmended", f"in {least} moves; {result.message!r}")
        return
    if world.case.goals.get("floor") is not None:
        return
    level = Model(world)
    level.within(result.bounds.target.tolist(), result.bounds.leader_target.tolist())
    reached = level.least(level.moves)
    if reached is None:
        return
    if result.bounds.moves_level > reached:
        yield Finding("bound on moves disproved", f"{result.bounds.moves_level}: {reached}")
    if result.goals_reached:
        if moves > reached + TOO_MANY_MOVES and not cut_short:
            yield Finding("moves far above the fewest", f"{moves} of {reached}")
        if moves > reached and result.status == "optimal":
            yield Finding("optimal with more moves than needed", f"{moves} of {reached}")
        return
    if cut_short:
        return
    level = Model(world)
    level.within(result.bounds.target.tolist(), result.bounds.leader_target.tolist())
    if level.budgets() and level.least(level.moves) is not None:
        yield Finding("goals reachable but missed", f"in {reached} moves; {result.message!r}")


def _endangered(world: World, after: Standing) -> Iterator[Finding]:
    """Compare what a result leaves in danger, within budgets, with the least that CP-SAT can."""
    if not _comparable(world) or any(exceeded(world, after)):
        return
    goals = _dangers(world)
    model = Model(world, partly=True)
    if not model.budgets():
        return
    for name, of_model, of_result in goals:
        objective = of_model(model)
        best, own = model.least(objective), of_result(after)
        if best is None or best > own:
            return  # the result is better than this model allows: it is worse in another way
        if best < own:
            yield Finding(f"more {name} than need be", f"{own}, at least {best}")
            return
        model.cp.add(objective <= best)


def _comparable(world: World) -> bool:
    broken = everything(world, world.came)
    bounds = [b for q in (*world.rule, -1) for b in world.bounds[q]]
    return (
        all(not is_hard(kind) or kind in OF_LIFE for kind, *_ in broken)
        and all(b.kind in AT_MOST for b in bounds if b.hard)
        and all(not rule.get("place") and not rule.get("voters_place") for rule in world.rules)
        and all(q < 0 for q in world.group_rule)
        and not any(world.pinned)
        and all(world.serves[n] or not world.may_hold[n] for n in range(world.nodes))
    )


def _dangers(world: World) -> list[tuple[str, Any, Any]]:
    """Return measures of danger, worst first: a name, and how to count it in model and result."""
    found: list[tuple[str, Any, Any]] = []
    every = [p for p in range(world.partitions) if world.wanted[p]]

    def fewer(least: dict[int, int]) -> tuple[Any, Any]:
        def of_model(model: Model) -> Sum:
            total: Sum = 0
            for p, want in least.items():
                if want > 0:
                    short = model.cp.new_bool_var("")
                    model.cp.add(model.live(p) + want * short >= want)
                    total += short
            return total

        def of_result(after: Standing) -> int:
            return sum(world.live(after.rows[p]) < want for p, want in least.items())

        return of_model, of_result

    for deficit in range(max(world.min_active, default=0), 0, -1):
        least = {p: world.min_active[p] - deficit + 1 for p in every}
        found.append((f"partitions {deficit} below min_active", *fewer(least)))
    quorum = {p: world.voters[p] // 2 + 1 for p in every if world.voters[p] == world.wanted[p]}
    found.append(("partitions without quorum", *fewer(quorum)))
    found.append((
        "replicas missing",
        lambda model: sum(world.wanted[p] - model.live(p) for p in every),
        lambda after: sum(max(0, world.wanted[p] - world.live(after.rows[p])) for p in every),
    ))  # fmt: skip
    return found
