"""Model small clusters in CP-SAT from the user's input alone, to find their best placements.

A placement is modelled by how many voters and how many other replicas of a partition stand on
each node, and which node leads it; slots of one role are alike. What soft rules and preferred
leaders are short of is summed up by weight (`Model.wishes`). Loads are integers, a millionth of a
unit each; in a dimension of very large or small loads the unit is the power of two next to the
largest.
"""

from math import ceil, floor, frexp, isfinite, ldexp
from typing import Any

from ortools.sat.python import cp_model

from tests.judge.broken import SLACK
from tests.judge.even import GroupGoal
from tests.judge.world import COUNTS, REQUIREMENTS, VOTER, Bound, Standing, World

SCALE = 1_000_000
# binary exponents of the largest load at which it is counted in its own unit
ORDINARY = range(-6, 21)
EXACT = 1e-9  # share by which a load may miss a whole number of integers
ENDLESS = 2**53  # room that no load fills
EFFORT = 2.0  # deterministic seconds for each question
Sum = Any  # a linear expression of CP-SAT


class Undecided(Exception):
    """CP-SAT did not find out within its effort, or cannot count so fine a load."""


class Model:
    """Every placement that breaks no hard rule; or, ``partly``, that is no worse than before."""

    def __init__(self, world: World, *, partly: bool = False) -> None:
        self.world, self.partly = world, partly
        self.cp = cp_model.CpModel()
        self.scale = [_scale(world, d) for d in range(world.dimensions)]
        self.voter: list[dict[int, Any]] = []
        self.other: list[dict[int, Any]] = []
        self.leads: list[dict[int, Any]] = []
        self.clings: list[dict[int, Any]] = []
        self.wishes: Sum = 0
        for p in range(world.partitions):
            self._partition(p)
        for p in range(world.partitions):
            self._limits(world.rules_of(p), world.bounds[world.rule[p]], [p])
            self._terms(world.rule[p], [p])
        for g, q in enumerate(world.group_rule):
            self._limits((q,), world.group_bounds[q] if q >= 0 else [], world.members[g])
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
        led_by = [n for n in open_to if world.may_lead[n] and n not in world.behind[p]]
        self.leads.append({n: cp.new_bool_var(f"l{p},{n}") for n in led_by})
        self.clings.append({})
        cp.add(sum(self.voter[p].values()) <= voters)
        cp.add(sum(self.other[p].values()) <= light)
        total = sum(self.on(p, n) for n in open_to)
        led = sum(self.leads[p].values())
        if self.partly:
            cp.add(total <= want)
            cp.add(self.live(p) >= min(want, world.live(row)))
            led += self._clings(p, open_to)
            old = world.came.leader_node(p)
            cp.add(led <= 1)
            if (
                want
                and old >= 0
                and (world.serves[old] or world.lawful(p, world.came.leaders[p], old))
            ):
                cp.add(led == 1)
        else:
            cp.add(total == want)
            cp.add(led == (1 if want and world.has_leaders else 0))
            cp.add(self.live(p) >= world.min_active[p])
            for n in world.pinned[p]:
                cp.add(self.on(p, n) >= 1)
        for n, leads in self.leads[p].items():
            cp.add(leads <= self.voter[p][n])

    def _clings(self, p: int, open_to: list[int]) -> Sum:
        """Let who lives and leads, though it may not, go on where it stands."""
        world, old = self.world, self.world.came.leader_node(p)
        lawful = world.lawful(p, world.came.leaders[p], old)
        if lawful or old not in open_to or not world.serves[old]:
            return 0
        clings = self.cp.new_bool_var(f"c{p},{old}")
        self.cp.add(clings <= self._as_came(p)[old])
        self.clings[p][old] = clings
        return clings

    def _as_came(self, p: int) -> dict[int, Any]:
        """Return the counts of replicas of the role that led a partition, by node."""
        votes = self.world.roles[p][self.world.came.leaders[p]] == VOTER
        return self.voter[p] if votes else self.other[p]

    def _no_voters(self, q: int) -> set[int]:
        if q < 0:
            return set()
        masks = [self.world.mask(text) for text in self.world.rules[q].get("voters_require", ())]
        return {n for n in range(self.world.nodes) if not all(mask[n] for mask in masks)}

    def _inside(self, members: list[int], nodes: set[int]) -> Sum:
        return sum(self.on(p, n) for p in members for n in self.nodes(p) if n in nodes)

    def _limits(self, rules: tuple[int, ...], bounds: list[Bound], members: list[int]) -> None:
        world, cp = self.world, self.cp
        if not any(world.wanted[p] for p in members):
            return
        slots = sum(len(world.came.rows[p]) for p in members)
        for kind, tier, amount, hard, weight in bounds:
            domain = world.domain[tier]
            held = {
                e: self._inside(members, {n for n, at in enumerate(domain) if at == e})
                for e in sorted(set(domain) - {-1})
            }
            if kind == "spread":
                for count in held.values():
                    cp.add(count <= amount + self._slack(hard, slots, weight))
            elif kind == "skew":
                slack = self._slack(hard, slots, weight)
                for e in world.eligible(rules, tier):
                    for count in held.values():
                        cp.add(count - held[e] <= amount + slack)
            else:
                taken = {e: cp.new_bool_var("") for e in held}
                for e, count in held.items():
                    cp.add(count <= slots * taken[e])
                    cp.add(count >= taken[e])
                used, slack = sum(taken.values()), self._slack(hard, slots + amount, weight)
                if kind == "min_domains":
                    cp.add(used >= amount - slack)
                else:
                    cp.add(used <= amount + slack)

    def _slack(self, hard: bool, most: int, weight: int) -> Sum:
        """Return how far a limit may be exceeded, which counts among the wishes."""
        if hard:
            return 0
        slack = self.cp.new_int_var(0, most, "")
        self.wishes += weight * slack
        return slack

    def _terms(self, q: int, members: list[int]) -> None:
        world = self.world
        if q < 0 or not any(world.wanted[p] for p in members):
            return
        rule = world.rules[q]
        for kind, of_voters in REQUIREMENTS.items():
            count = self._voters if of_voters else self.on
            for text in rule.get(kind, ()):
                mask = world.mask(text)
                for p in members:
                    for n in self.nodes(p):
                        if not mask[n]:
                            self.cp.add(count(p, n) == 0)
        for kind, of_voters in COUNTS.items():
            count = self._voters if of_voters else self.on
            for text, least in rule.get(kind, {}).items():
                mask = world.wanted_on(kind, text)
                there = sum(count(p, n) for p in members for n in self.nodes(p) if mask[n])
                self.cp.add(there >= least)
        for p in members:
            self._lead(p, [world.mask(text) for text in rule.get("lead", ())])

    def _lead(self, p: int, choices: list[list[bool]]) -> None:
        """Count the choices that a leader is behind the best voter that could lead."""
        first: set[int] = set()
        for mask in choices:
            first |= {n for n in self.leads[p] if mask[n]}
            behind = self.cp.new_bool_var("")
            for n in first:
                for other in self.leads[p].keys() - first:
                    most = len(self.world.came.rows[p])
                    self.cp.add(self.voter[p][n] <= most * (1 + behind - self.leads[p][other]))
            self.wishes += behind

    def _voters(self, p: int, n: int) -> Sum:
        return self.voter[p].get(n, 0)

    def _load(self, n: int, d: int) -> Sum:
        world, scale = self.world, self.scale[d]
        total: Sum = 0
        for p in range(world.partitions):
            if n not in self.voter[p]:
                continue
            as_voter = whole(world.voter_load[p][d], scale)
            as_other = whole(world.light_load[p][d], scale)
            total += as_voter * self.voter[p][n] + as_other * self.other[p][n]
            if n in self.leads[p]:
                total += (whole(world.leader_load[p][d], scale) - as_voter) * self.leads[p][n]
            if n in self.clings[p]:
                without = as_voter if self._as_came(p) is self.voter[p] else as_other
                total += (whole(world.leader_load[p][d], scale) - without) * self.clings[p][n]
        return total

    def _nodes(self) -> None:
        world, cp = self.world, self.cp
        came = world.loads(world.came)
        for n in range(world.nodes):
            for d in range(world.dimensions):
                room = world.capacity[n][d]
                if not world.carries[n] or not isfinite(room):
                    continue
                cp.add(self.load[n][d] <= most(room, self.scale[d]))
                if d in world.transient and world.alive[n]:
                    there = most(max(room, came[n][d]), self.scale[d])
                    cp.add(self.load[n][d] + self._leaving(n, d) <= there)
            if world.max_replicas[n] >= 0 and world.carries[n]:
                cp.add(self._inside([*range(world.partitions)], {n}) <= world.max_replicas[n])
        for tier, capacity in world.tier_capacity.items():
            for e, room_of in enumerate(capacity):
                for d, room in enumerate(room_of):
                    inside = [n for n, at in enumerate(world.domain[tier]) if at == e]
                    if isfinite(room):
                        total = sum(self.load[n][d] for n in inside if world.carries[n])
                        cp.add(total <= most(room, self.scale[d]))

    def _leaving(self, n: int, d: int) -> Sum:
        world = self.world
        total: Sum = 0
        for p, row in enumerate(world.came.rows):
            there = [slot for slot, at in enumerate(row) if at == n]
            for before, slot in enumerate(there):
                total += whole(world.load_of(p, slot, -1)[d], self.scale[d]) * (
                    1 - self._stays(p, n, before)
                )
        return total

    def _stays(self, p: int, n: int, before: int = 0) -> Sum:
        """Whether more than ``before`` of a partition's replicas are on a node."""
        if n not in self.voter[p]:
            return 0
        stays = self.cp.new_bool_var("")
        self.cp.add(self.on(p, n) >= (before + 1) * stays)
        self.cp.add(self.on(p, n) <= before + len(self.world.came.rows[p]) * stays)
        return stays

    # what is asked ------------------------------------------------------------------------------

    def within(self, bounds: Any) -> None:
        """Hold loads and leaders to the targets of the goals."""
        target, leaders = bounds.target.tolist(), bounds.leader_target.tolist()
        for n, least in enumerate(bounds.floor.tolist()):
            for d, load in enumerate(least):
                if load > 0.0:
                    self.cp.add(self.load[n][d] >= fewest(load, self.scale[d]))
        for n in range(self.world.nodes):
            if not self.world.carries[n]:
                continue
            for d, load in enumerate(target[n]):
                if isfinite(load):
                    self.cp.add(self.load[n][d] <= most(load, self.scale[d]))
            if isfinite(leaders[n]):
                self.cp.add(sum(at[n] for at in self.leads if n in at) <= floor(leaders[n]))

    def within_groups(self, goals: list[GroupGoal]) -> None:
        """Hold replicas and leaders of each group to the goals within groups."""
        for goal in goals:
            for n in range(self.world.nodes):
                led = sum(self.leads[p].get(n, 0) for p in goal.members)
                self.cp.add(led >= goal.least[n])
                if isfinite(goal.led[n]):
                    self.cp.add(led <= int(goal.led[n]))
                if isfinite(goal.held):
                    self.cp.add(sum(self.on(p, n) for p in goal.members) <= int(goal.held))

    def hold_voters(self, standing: Standing) -> None:
        """Let no partition have fewer of the voters that it wants than it has in a standing."""
        for p, row in enumerate(standing.rows):
            roles = zip(row, self.world.roles[p], strict=True)
            voters = sum(n >= 0 and role == VOTER for n, role in roles)
            self.cp.add(sum(self.voter[p].values()) >= min(voters, self.world.voters[p]))

    def hold_budgets(self) -> None:
        """Hold moves and leader changes to the budgets."""
        limits, world, cp = self.world.case.limits, self.world, self.cp
        rows, everyone = world.came.rows, range(world.partitions)
        if limits.get("moves") is not None:
            cp.add(self.moves <= limits["moves"])
        if limits.get("bytes") is not None:
            cp.add(self._moved_bytes() <= most(limits["bytes"], self.scale[world.bytes]))
        if limits.get("leader_changes") is not None:
            cp.add(self.leader_changes <= limits["leader_changes"])
        for p in everyone if limits.get("partition_moves") is not None else ():
            joining = sum(self.on(p, n) for n in self.nodes(p) if n not in rows[p])
            cp.add(joining <= limits["partition_moves"])
        for n in range(world.nodes):
            if limits.get("node_in") is not None:
                into = sum(self.on(p, n) for p in everyone if n not in rows[p])
                cp.add(into <= limits["node_in"])
            if limits.get("node_out") is not None and world.serves[n]:
                out = sum(1 - self._stays(p, n) for p in everyone for at in rows[p] if at == n)
                cp.add(out <= limits["node_out"])
        for tier, amount in limits.get("domain_in", {}).items():
            self._hold_crossings(tier, amount, enter=True)
        for tier, amount in limits.get("domain_out", {}).items():
            self._hold_crossings(tier, amount, enter=False)

    @property
    def leader_changes(self) -> Sum:
        """Count the partitions that another node leads, the one that did being alive."""
        total: Sum = 0
        for p in range(self.world.partitions):
            old = self.world.came.leader_node(p)
            if old >= 0 and self.world.alive[old]:
                total += 1 - self.leads[p].get(old, 0) - self.clings[p].get(old, 0)
        return total

    def _moved_bytes(self) -> Sum:
        world, d = self.world, self.world.bytes
        scale, total = self.scale[d], 0
        for p in range(world.partitions):
            for n in self.nodes(p):
                if n not in world.came.rows[p]:
                    voter = whole(world.voter_load[p][d], scale)
                    total += voter * self.voter[p][n]
                    total += whole(world.light_load[p][d], scale) * self.other[p][n]
                    if n in self.leads[p]:
                        total += (whole(world.leader_load[p][d], scale) - voter) * self.leads[p][n]
        return total

    def _hold_crossings(self, tier: str, amount: int, *, enter: bool) -> None:
        """Hold what enters, or leaves, each domain; what its lost nodes held did not leave it."""
        world, domain = self.world, self.world.domain[tier]
        for e in sorted(set(domain) - {-1}):
            inside = {n for n, at in enumerate(domain) if at == e}
            total: Sum = 0
            for p, row in enumerate(world.came.rows):
                was = sum(n in inside and (enter or world.serves[n]) for n in row)
                crossing = self.cp.new_int_var(0, len(row), "")
                now = self._inside([p], inside)
                self.cp.add(crossing >= (now - was if enter else was - now))
                total += crossing
            self.cp.add(total <= amount)

    def hint(self, standing: Standing) -> None:
        """Start from a placement."""
        self.cp.clear_hints()
        for p, row in enumerate(standing.rows):
            roles = self.world.roles[p]
            led = standing.leader_node(p)
            for n in self.nodes(p):
                held = [role for at, role in zip(row, roles, strict=True) if at == n]
                voting = held.count(VOTER)
                self.cp.add_hint(self.voter[p][n], voting)
                self.cp.add_hint(self.other[p][n], len(held) - voting)
            for n, leads in self.leads[p].items():
                self.cp.add_hint(leads, n == led)

    def least(self, objective: Sum = 0) -> int | None:
        """Minimise; None if it cannot be. Raises Undecided where that was not found out."""
        self.cp.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = EFFORT
        solver.parameters.num_workers = 1
        status = solver.solve(self.cp)
        if status == cp_model.INFEASIBLE:
            return None
        if status != cp_model.OPTIMAL:
            raise Undecided
        return round(solver.objective_value)


def _scale(world: World, d: int) -> float:
    """Return how many integers a unit of a dimension is."""
    tables = (world.voter_load, world.leader_load, world.light_load)
    exponent = frexp(max((row[d] for table in tables for row in table), default=0.0))[1]
    return ldexp(SCALE, 0 if exponent in ORDINARY else -exponent)


def whole(load: float, scale: float) -> int:
    """Return a load as an integer."""
    count = load * scale
    if abs(count - round(count)) > EXACT * max(count, 1.0):
        raise Undecided
    return round(count)


def most(room: float, scale: float) -> int:
    """Return the greatest load, as an integer, that fits."""
    return floor(min(room * scale * (1.0 + SLACK) + 1e-3, ENDLESS))


def fewest(load: float, scale: float) -> int:
    """Return the least load, as an integer, that counts as so much."""
    return ceil(load * scale * (1.0 - SLACK) - 1e-3)
