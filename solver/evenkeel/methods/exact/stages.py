"""Stages of the CP-SAT model: place all, then balance, then move little.

The result of each stage is fixed for the next. Where the goals are out of reach, the worst node
comes first, then the sum of all excesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds
from evenkeel.methods.contract import Request
from evenkeel.methods.exact.loads import (
    SNUG,
    UNBOUND,
    Floor,
    Scale,
    Targets,
    changed_leaders,
    late_leaders,
    moved,
    weigh,
)
from evenkeel.methods.exact.rules import bind
from evenkeel.methods.exact.variables import (
    CutShort,
    Reasons,
    Slack,
    SoftTerm,
    Variables,
    add_variables,
    in_order,
    in_parts,
    order_symmetric,
    stuck,
)
from evenkeel.methods.shared.stopping import Progress, StopReason, Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.limits import Limits, node_counts
from evenkeel.model.placement import Placement, Role

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


Certainty = Literal["optimal", "feasible", "infeasible", "unknown"]
"""*optimal*: every stage is proven; *feasible*: some stage was cut short; *infeasible*: proven that
no placement exists; *unknown*: nothing was found in the time given."""


@dataclass(frozen=True)
class Stage:
    """One thing that was made as small as it can be, after those before it."""

    name: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How much less might be possible; 0 where it is proven that nothing is."""
        return self.value - self.bound


@dataclass(frozen=True)
class Proof:
    """Proof and statistics of an exact solve."""

    status: Certainty
    stages: tuple[Stage, ...] = ()
    effort: float = 0.0


def within_limits(request: Request) -> str:
    """Return the text that a proof holds within the limits; "" where none are set."""
    return "" if request.limits == Limits() else " within the limits"


Join = tuple[Any, int, int]
"""How many replicas of a partition join a node, and which these are."""


def hold_budgets(
    variables: Variables, limits: Limits, joins: list[Join], changes: list[Any]
) -> None:
    """Hold moves and leader changes to their budgets."""
    cluster, model = variables.cluster, variables.model
    if limits.moves is not None:
        model.add(sum(count for count, _, _ in joins) <= limits.moves)
    if limits.leader_changes is not None:
        model.add(sum(changes) <= limits.leader_changes)
    if limits.partition_moves is not None:
        for counts in _each(joins, 1).values():
            model.add(sum(counts) <= limits.partition_moves)
    if limits.bytes is not None:
        _hold_bytes(variables, limits.bytes, joins)
    if limits.node_in is not None:
        most = node_counts(cluster, limits.node_in).tolist()
        for n, counts in _each(joins, 2).items():
            model.add(sum(counts) <= most[n])
    if limits.node_out is not None:
        _hold_leaving(variables, node_counts(cluster, limits.node_out).tolist())
    for tier in {*limits.domain_in, *limits.domain_out}:
        domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)]
        _hold_passing(variables, domain, _of(limits.domain_in, tier), _of(limits.domain_out, tier))


def _each(joins: list[Join], which: int) -> dict[int, list[Any]]:
    """Gather the counts of each partition, 1, or of each node, 2."""
    found: dict[int, list[Any]] = {}
    for join in joins:
        found.setdefault(join[which], []).append(join[0])
    return found


def _hold_bytes(variables: Variables, most: float, joins: list[Join]) -> None:
    """Hold the data that moves, in the roles that replicas have in the end, to a budget."""
    load, d = variables.cluster.partitions.load, variables.cluster.bytes_dimension
    of = load.leader[:, d], load.voter[:, d], load.non_voter[:, d]
    scale = Scale.of(np.concatenate(of), 4.0 * float(np.maximum.reduce(of).sum()) + most)
    total: Any = 0
    for _, p, n in joins:
        leader, voter, other = (scale.up(float(weight[p])) for weight in of)
        total += voter * variables.voters[p].get(n, 0) + other * variables.others[p].get(n, 0)
        total += (leader - voter) * variables.leads[p].get(n, 0)
    variables.model.add(total <= scale.down(most))


def _of(amounts: Mapping[str, int], tier: str) -> int | None:
    return amounts.get(tier)


def _hold_leaving(variables: Variables, most: list[int]) -> None:
    """Hold what leaves each living node to a number: none, where another of its partition stays."""
    model, placement = variables.model, variables.cluster.placement
    for n in np.flatnonzero(variables.cluster.nodes.serves).tolist():
        owner, count = np.unique(placement.owner[placement.node == n], return_counts=True)
        leave = []
        for p, held in zip(owner.tolist(), count.tolist(), strict=True):
            left = model.new_bool_var("")
            model.add(variables.count(p, n) + left >= 1)
            leave.append(held * left)
        model.add(sum(leave) <= most[n])


def _hold_passing(
    variables: Variables, domain: NDArray[np.int32], most_in: int | None, most_out: int | None
) -> None:
    """Hold what enters each domain, and what leaves its living nodes, to a number each."""
    if most_in is None and most_out is None:
        return
    cluster, model, placement = variables.cluster, variables.model, variables.cluster.placement
    source = cluster.nodes.serves
    owner = placement.owner
    for where in np.unique(domain[domain >= 0]).tolist():
        inside = domain == where
        held = owner[np.append(inside, False)[placement.node]]
        living = owner[np.append(inside & source, False)[placement.node]]
        count = len(variables.voters)
        before, alive = np.bincount(held, minlength=count), np.bincount(living, minlength=count)
        enter, leave = [], []
        for p in range(count):
            nodes = [n for n in variables.nodes(p) if inside[n]]
            after = sum(variables.count(p, n) for n in nodes)
            if most_in is not None and nodes:
                more = model.new_int_var(0, int(cluster.partitions.replicas[p]), "")
                model.add(more >= after - int(before[p]))
                enter.append(more)
            if most_out is not None and alive[p]:
                less = model.new_int_var(0, int(alive[p]), "")
                model.add(less >= int(alive[p]) - after)
                leave.append(less)
        if most_in is not None:
            model.add(sum(enter) <= most_in)
        if most_out is not None:
            model.add(sum(leave) <= most_out)


GLANCE = 0.05
"""Seconds between two looks at the clock while CP-SAT runs."""

FULL, SOME = 2, 1
"""How much of a model CP-SAT puts into its linear program. All of it settles knapsacks and limits
per domain soonest; where nothing is minimised, a part of it finds a placement sooner."""

PARTS, FARTHEST = 1000, 1000
"""Resolution of excesses as a part of the target, and the most of these parts."""

NEARLY = 1e-4
"""Excesses this close, relative to the greater one where that is above 1, are compared by asking
for a strictly better one."""


@dataclass
class Search:
    """How CP-SAT is run, how long, and how near to the least excess is near enough."""

    workers: int
    effort: float
    seed: int
    watch: Watch
    precision: float = 0.0
    linearization: int = FULL
    spent: float = field(default=0.0)
    stopped: StopReason | None = None

    def minimise(self, model: CpModel, objective: Any) -> tuple[Any, Certainty]:
        """Run CP-SAT on one objective."""
        from ortools.sat.python import cp_model

        model.minimize(objective)
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = self.workers
        parameters.catch_sigint_signal = False  # it would leave Python without its own handler
        parameters.random_seed = self.seed & 0x7FFFFFFF
        parameters.linearization_level = self.linearization
        # probing costs small models more than it finds, and twins are in order already
        parameters.cp_model_probing_level = parameters.symmetry_level = 0
        parameters.max_deterministic_time = max(self.effort - self.spent, 1e-3)
        left = 0.0 if self.stopped is not None else self.watch.seconds_left
        if np.isfinite(left):
            parameters.max_time_in_seconds = max(left, 1e-3)
        status = self._solved(solver, model)
        self.spent += solver.response_proto.deterministic_time
        names: dict[Any, Certainty] = {
            cp_model.OPTIMAL: "optimal",
            cp_model.FEASIBLE: "feasible",
            cp_model.INFEASIBLE: "infeasible",
        }
        return solver, names.get(status, "unknown")

    def _solved(self, solver: Any, model: CpModel) -> Any:
        """Run CP-SAT in a thread, while the caller is asked here, and Ctrl-C arrives."""
        with ThreadPoolExecutor(1, "evenkeel-exact") as pool:
            running = pool.submit(solver.solve, model)
            try:
                while wait([running], GLANCE).not_done:
                    text = Progress("prove", 0, self.watch.seconds, 0, 0.0)
                    self.stopped = self.stopped or self.watch.look(text)
                    if self.stopped is not None:
                        solver.stop_search()
            finally:  # what interrupts the caller ends the search, too
                while not running.done():
                    solver.stop_search()
                    wait([running], GLANCE)
            return running.result()


@dataclass
class Found:
    """What the stages end with."""

    # (K,) node of each replica in the cluster's slots; None if nothing was found
    node: NDArray[np.int32] | None
    leader: NDArray[np.int16] | None  # (P,) slot that leads
    proof: Proof  # how certain it is


def in_stages(
    cluster: Cluster, bounds: Bounds, limits: Limits, hint: Placement, search: Search
) -> Found:
    """Place as many replicas as can be, then level, then move as little as possible."""
    try:
        stages = Stages.of(cluster, bounds, limits, hint, search)
    except CutShort:
        return Found(None, None, Proof("unknown"))
    stages.place()
    stages.level_and_move()
    return stages.found


@dataclass
class Stages:
    """A model of a cluster, the stages so far, and the best answer."""

    variables: Variables
    search: Search
    soft_terms: list[SoftTerm]
    gauges: list[Targets]
    floors: list[Floor]
    joins: list[Join]
    changes: list[Any]
    late: list[Any]
    stages: list[Stage] = field(default_factory=list)
    certain: Certainty = "optimal"
    answer: tuple[NDArray[np.int32], NDArray[np.int16]] | None = None
    _solver: Any = None

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        bounds: Bounds,
        limits: Limits,
        hint: Placement,
        search: Search,
        slack: Callable[[Cluster, CpModel], Slack] = Slack.none,
    ) -> Stages:
        """Model a cluster, its rules and its budgets, and start from a placement.

        ``slack`` sets how far rules may be broken. The time to load CP-SAT is left out of the
        time limit, as what compiling takes. Raises ``CutShort`` if the time is over before the
        model is made.
        """
        began = search.watch.clock()
        from ortools.sat.python import cp_model

        search.watch.exclude(search.watch.clock() - began)
        model = cp_model.CpModel()
        reasons = Reasons(model, watch=search.watch)
        variables = add_variables(cluster, model, reasons, slack(cluster, model), may_miss=True)
        soft_terms = [*bind(variables), *variables.swapped]
        gauges, floors = weigh(variables, bounds)
        order_symmetric(variables)
        joins, changes = moved(variables), changed_leaders(variables)
        hold_budgets(variables, limits, joins, changes)
        stages = cls(
            variables, search, soft_terms, gauges, floors, joins, changes, late_leaders(variables)
        )
        stages.start_from(hint)
        reasons.watch = None  # from here on CP-SAT is stopped
        return stages

    def start_from(self, placement: Placement) -> None:
        """Let the next stage start from a placement; it starts from the best answer else."""
        _hint(self.variables, in_order(self.variables, placement))

    @property
    def found(self) -> Found:
        """What there is by now."""
        proof = Proof(self.certain, tuple(self.stages), self.search.spent)
        node, leader = (None, None) if self.answer is None else self.answer
        return Found(node, leader, proof)

    def last(self, name: str) -> Stage | None:
        """Return the last stage, if it is of that name."""
        return self.stages[-1] if self.stages and self.stages[-1].name == name else None

    def place(self) -> None:
        """Place and lead the most; then endanger the fewest; then meet the most soft terms."""
        danger, most = self.danger
        unmet, most_unmet = self.unmet
        soft = 1 + most_unmet
        many = 1 + 1000 * soft * most
        missing = sum(self.variables.missing) + sum(self.variables.unled)
        self.minimise("missing", many * missing + soft * danger + unmet, many)

    def endanger_least(self) -> None:
        """Leave the fewest short of ``min_active``, then the fewest partitions without a quorum."""
        self.minimise("endangered", self.danger[0], 1)

    def endanger_no_more(self, few: tuple[int, ...], no_quorum: int) -> None:
        """Endanger no more than so many: those furthest below ``min_active`` first, and quorums."""
        danger, most, weight = self.danger[0], no_quorum, 1 + len(self.variables.no_quorum)
        for short, count in zip(self.variables.few, reversed(few), strict=False):
            most, weight = most + weight * count, weight * (1 + len(short))
        self.variables.model.add(danger <= most)

    @property
    def danger(self) -> tuple[Any, int]:
        """Those furthest below ``min_active`` first, lost quorums last; and the most it can be."""
        total, most = sum(self.variables.no_quorum), 1 + len(self.variables.no_quorum)
        for few in self.variables.few:
            total, most = total + most * sum(few), most * (1 + len(few))
        return total, most

    @property
    def unmet(self) -> tuple[Any, int]:
        """Weighted sum of unmet soft terms, and its upper limit."""
        parts = in_parts([soft.weight for soft in self.soft_terms])
        both = list(zip(parts, self.soft_terms, strict=True))
        return sum(n * one.amount for n, one in both), sum(n * one.most for n, one in both)

    def meet_soft_terms(self) -> None:
        """Leave the fewest soft terms unmet, by weight."""
        self.minimise("wishes", self.unmet[0], 1)

    def repair(self) -> None:
        """Place the most, then break the fewest rules, then the fewest soft terms."""
        variables = self.variables
        unmet, most_unmet = self.unmet
        soft = 1 + most_unmet
        broken = sum(variables.unled) + sum(variables.slack.broken)
        many = soft * (1 + len(variables.unled) + sum(variables.slack.came.values()))
        lacking = many * sum(variables.missing) + soft * broken + unmet
        self.minimise("missing", lacking, many)

    def place_all(self) -> None:
        """Place and lead all, however many soft terms that costs."""
        variables = self.variables
        variables.model.add(sum(variables.missing) + sum(variables.unled) == 0)
        self.minimise("missing", 0 * sum(variables.missing), 1)

    @property
    def proves_some(self) -> bool:
        """Whether it is proven that something must be endangered, missing or broken."""
        return self.certain == "optimal" or any(one.bound > 0.0 for one in self.stages)

    def level_and_move(self) -> None:
        """Balance, then minimise moves and leader changes, with all placed."""
        self.level()
        each = 1 + len(self.changes) + len(self.late)
        moves = sum(count for count, _, _ in self.joins)
        self.minimise("moves", each * moves + self.handed_on, each)

    @property
    def handed_on(self) -> Any:
        """Leader changes, except those of leaders that are lost."""
        return sum(self.changes) + sum(self.late)

    def minimise(self, name: str, objective: Any, parts: int) -> None:
        """Make something small, and hold it there; it is counted in so many parts of one."""
        if self.certain in ("infeasible", "unknown"):
            return
        if isinstance(objective, int):
            self.stages.append(Stage(name, objective / parts, objective / parts))
            return
        solver, status = self.search.minimise(self.variables.model, objective)
        if status in ("infeasible", "unknown"):
            self.certain = status if self.answer is None else "feasible"
            return
        if status == "feasible":
            self.certain = "feasible"
        value = round(solver.objective_value)
        bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        self.stages.append(Stage(name, value / parts, bound / parts))
        self._keep(solver)
        self.variables.model.add(objective <= value)

    def level(self) -> None:
        """Bring the greatest excess down, by asking whether all nodes can be below some value.

        An excess as an unknown of its own would be multiplied with every target, and products of
        such size are beyond what the solver handles safely.
        """
        gauges = [one for one in self.gauges if one.target > 0.0]
        empty = [one for one in self.gauges if one.target <= 0.0]
        if self.answer is None or self.certain in ("infeasible", "unknown") or not self.gauges:
            return
        if not self._is_loaded_beyond_nothing():
            for one in empty:
                self.variables.model.add(one.reading <= 0)
        elif self._try(empty, [0] * len(empty)) is None:
            self.certain = "feasible"
        low, high = 0.0, max(self._excess(gauges), 0.0)
        proven = high <= 0.0
        if not proven and self._try(gauges, [one.most(0.0) for one in gauges]) is True:
            low = high = 0.0
            proven = True
        while not proven:
            apart = (high - low) / max(high, 1.0)  # of what is huge a float has no more digits
            if apart < self.search.precision:
                self.certain = "feasible"
                break
            close = apart < NEARLY
            beaten = self._try(
                gauges,
                [one.less(high) if close else one.most((low + high) / 2.0) for one in gauges],
            )
            if beaten is None:
                self.certain = "feasible"
                break
            if beaten:
                high = max(self._excess(gauges), 0.0)
                proven = high <= low
            elif close:
                low, proven = high, True
            else:
                low = (low + high) / 2.0
        for one in self.gauges:
            reached = int(self._solver.value(one.reading))
            self.variables.model.add(one.reading <= max(one.most(high + SNUG), reached))
        self.stages.append(Stage("level", high, low))
        if high > 0.0 or self._is_loaded_beyond_nothing():
            self._level_the_others()

    def _level_the_others(self) -> None:
        """Where the worst node stays above its target, bring all together as near as can be."""
        model, above = self.variables.model, []
        for one in self.gauges:
            step = max(1, int(min(one.target, UNBOUND) / PARTS))
            reached = max(0, -(-(self._solver.value(one.reading) - one.most(0.0)) // step))
            steps = model.new_int_var(0, max(reached, PARTS * FARTHEST), "")
            model.add(step * steps >= one.reading - one.most(0.0))
            above.append(steps)
        self.minimise("others", sum(above), PARTS)

    def _try(self, gauges: list[Targets], most: list[int]) -> bool | None:
        """Return whether all nodes can carry so little, and keep the answer; None without time."""
        model = self.variables.model
        wanted = model.new_bool_var("")
        for one, limit in zip(gauges, most, strict=True):
            model.add(one.reading <= limit).only_enforce_if(wanted)
        solver, status = self.search.minimise(model, 1 - wanted)
        reached = status in ("optimal", "feasible") and bool(solver.value(wanted))
        if reached:
            self._keep(solver)
        model.add(wanted == int(reached))
        return True if reached else False if status == "optimal" else None

    def _excess(self, gauges: list[Targets]) -> float:
        """How far above its target the worst node is in the best answer."""
        return max(
            (self._solver.value(one.reading) / (one.target * (1.0 + SNUG)) - 1.0 for one in gauges),
            default=0.0,
        )

    def _is_loaded_beyond_nothing(self) -> bool:
        """Return whether a node whose target is 0 carries load in the best answer."""
        return any(one.target <= 0.0 < self._solver.value(one.reading) for one in self.gauges)

    def _keep(self, solver: Any) -> None:
        self.answer = _read(self.variables, solver)
        self._solver = solver
        _hint(self.variables, self.variables.cluster.placement.replaced(*self.answer))


def _hint(variables: Variables, hint: Placement) -> None:
    """Start from a placement."""
    variables.model.clear_hints()
    held: dict[tuple[int, int, bool], int] = {}
    for k in np.flatnonzero(hint.node >= 0).tolist():
        key = int(hint.owner[k]), int(hint.node[k]), bool(hint.role[k] == Role.VOTER)
        held[key] = held.get(key, 0) + 1
    led = hint.leader_node
    for p in range(len(variables.voters)):
        for n, count in variables.voters[p].items():
            variables.model.add_hint(count, held.get((p, n, True), 0))
        for n, count in variables.others[p].items():
            variables.model.add_hint(count, held.get((p, n, False), 0))
        for n, lead in variables.leads[p].items():
            variables.model.add_hint(lead, int(led[p]) == n)


def _read(variables: Variables, solver: Any) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """Put an answer into the cluster's slots: a replica that stays keeps its slot."""
    placement, may_hold = variables.cluster.placement, variables.cluster.nodes.may_hold
    node = np.full(len(placement.node), -1, np.int32)
    leader = np.full(len(placement), -1, np.int16)
    for p in range(len(placement)):
        rows = np.arange(placement.first[p], placement.first[p + 1])
        votes = placement.role[rows] == Role.VOTER
        for slots, counts in (
            (rows[votes], variables.voters[p]),
            (rows[~votes], variables.others[p]),
        ):
            left = {n: solver.value(count) for n, count in counts.items()}
            free = []
            for k in slots.tolist():
                n = int(placement.node[k])
                if stuck(variables.cluster, k):
                    node[k] = n
                elif left.get(n, 0) > 0:
                    node[k] = n
                    left[n] -= 1
                else:
                    free.append(k)
            # a slot that lost its replica is filled before one that waits for another node, and
            # that one before a slot that never had any
            held = placement.node[free]
            rank = np.where(held < 0, 2, 0)
            rank[held >= 0] = ~may_hold[held[held >= 0]]
            free = [free[i] for i in np.argsort(rank, kind="stable").tolist()]
            joining = [n for n, count in left.items() for _ in range(count)]
            for k, n in zip(free, joining, strict=False):
                node[k] = n
        leads = [n for n, lead in variables.leads[p].items() if solver.value(lead)]
        if leads:
            at = np.flatnonzero(votes & (node[rows] == leads[0]))
            was = placement.leader[p]
            leader[p] = (
                was if was in at or len(at) == 0 else at[0]
            )  # none: a leader that may not lead
    return node, leader
