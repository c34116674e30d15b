"""Small problems for the kernels, built from plain lists; numpy only, no model."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.problem import (
    UNLIMITED,
    BudgetArrays,
    DomainArrays,
    MoveArrays,
    NodeArrays,
    PartitionArrays,
    Problem,
    RuleArrays,
    State,
)
from evenkeel_kernels.core.state import settle


@dataclass
class Small:
    """A cluster in plain lists: loads (P, D), capacities (N, D), a list of nodes a partition."""

    zone: list[int]
    capacity: NDArray[np.float64]
    load: NDArray[np.float64]
    extra: NDArray[np.float64]
    placement: list[list[int]]
    leader: list[int]
    watermark: NDArray[np.float64]
    accepts: list[bool]
    leads: list[bool]
    per_zone: int = 1
    allowed: NDArray[np.bool_] | None = None  # (P, N)
    inside: list[list[bool]] = field(default_factory=list)  # one mask of nodes a term
    least: list[int] = field(default_factory=list)  # replicas inside each of them, -1 all

    def arrays(self) -> tuple[Problem, State]:
        """Return what the kernels take."""
        n_nodes, dimensions = self.capacity.shape
        n_partitions = len(self.placement)
        sizes = [len(row) for row in self.placement]
        first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        replicas = int(first[-1])
        home = np.array([n for row in self.placement for n in row], np.int32)
        lives = np.append(self.accepts, False)[home]
        led = np.array(self.leader) >= 0
        at = np.minimum(first[:-1] + np.maximum(self.leader, 0), replicas - 1)
        zones = max(self.zone) + 1
        zone = np.array(self.zone, np.int32)
        members = np.concatenate((np.argsort(zone, kind="stable"), np.arange(n_nodes)))
        ends = np.concatenate((np.bincount(zone, minlength=zones), np.ones(n_nodes, int)))
        allowed = (
            np.ones((n_partitions, n_nodes), bool) if self.allowed is None else self.allowed.copy()
        )
        capacity = np.ascontiguousarray(self.capacity.T, dtype=float)
        none64 = np.zeros(0, np.int64)
        none32 = np.zeros(0, np.int32)
        pairs = np.zeros((0, 2), np.int32)
        problem = Problem(
            nodes=NodeArrays(
                capacity=capacity,
                inverse=1.0 / np.maximum(capacity, 1e-30),
                watermark=np.ascontiguousarray(self.watermark.T, dtype=float),
                weight=np.ones(dimensions),
                transient=np.zeros(dimensions, bool),
                accepts=np.array(self.accepts, bool),
                leads=np.array(self.leads, bool),
                max_replicas=np.full(n_nodes, 2**31 - 1, np.int32),
                proportion_of=pairs.copy(),
                proportion=np.zeros((0, 2)),
                hinge_of=none32.copy(),
                hinge=np.zeros((0, 2)),
                hinge_at=np.zeros((0, n_nodes)),
            ),
            partitions=PartitionArrays(
                first=first,
                owner=np.repeat(np.arange(n_partitions, dtype=np.int32), sizes),
                movable=np.ones(replicas, bool),
                home=home,
                ready=lives,
                led_from=np.where(led & lives[at], home[at], -1).astype(np.int32),
                electable=np.zeros(0, np.uint8),
                leader_load=self.load + self.extra,
                voter_load=self.load.copy(),
                non_voter_load=self.load.copy(),
                group=np.zeros(n_partitions, np.int32),
                rule=np.zeros(n_partitions, np.int32),
                mask=np.arange(n_partitions, dtype=np.int32),
                forbidden_first=np.zeros(n_partitions + 1, np.int64),
                forbidden=none32.copy(),
            ),
            domains=DomainArrays(
                domain=np.stack((zone, zones + np.arange(n_nodes, dtype=np.int32))),
                domain_offset=np.array([0, zones, zones + n_nodes], np.int64),
                member_first=np.concatenate(([0], np.cumsum(ends))).astype(np.int64),
                member=members.astype(np.int32),
                limited=none32.copy(),
                tier_capacity=np.full((dimensions, zones + n_nodes), np.inf),
            ),
            rules=RuleArrays(
                allowed=allowed,
                limit_first=np.array([0, 2], np.int64),
                limit=np.array([[0, self.per_zone, -1, -1, -1], [1, 1, -1, -1, -1]], np.int32),
                term_first=np.array([0, len(self.inside)], np.int64),
                term=np.array(
                    [(least, 0, i) for i, least in enumerate(self.least)], np.int32
                ).reshape(-1, 3),
                term_mask=np.array(self.inside, bool).reshape(-1, n_nodes),
                lead_rank=np.zeros((1, n_nodes), np.uint8),
                group_limit_first=np.zeros(2, np.int64),
                group_limit=np.zeros((0, 5), np.int32),
                group_base=none64.copy(),
                price_of=pairs.copy(),
                price=np.zeros((0, 2)),
                group_term_first=np.zeros(2, np.int64),
                group_term=np.zeros((0, 3), np.int32),
                needs_first=np.zeros(2, np.int64),
                needs=pairs.copy(),
                needed_first=np.zeros(2, np.int64),
                needed=pairs.copy(),
                near_base=np.full((1, 2), -1, np.int64),
                group_open=np.zeros(0, bool),
            ),
            moves=MoveArrays(np.ones(n_partitions), 0.0, 0.0, np.zeros(2), np.zeros((0, 0))),
            budgets=BudgetArrays(
                False,
                UNLIMITED,
                np.inf,
                -1,
                UNLIMITED,
                UNLIMITED,
                none32.copy(),
                none64.copy(),
                none64.copy(),
                np.ones(n_nodes, bool),
            ),
        )
        state = State(
            node=home.copy(),
            role=np.zeros(replicas, np.uint8),
            leader=np.array(self.leader, np.int16),
            load=np.zeros((dimensions, n_nodes)),
            held=np.zeros((dimensions, n_nodes)),
            replicas=np.zeros(n_nodes, np.int32),
            leaders=np.zeros(n_nodes, np.int32),
            domain_load=np.zeros((dimensions, zones + n_nodes)),
            group_count=none32.copy(),
            group_domains=none32.copy(),
            group_inside=none32.copy(),
            near_count=none32.copy(),
            near_absent=none32.copy(),
            near_relying=none32.copy(),
            moved=np.zeros(1, np.int32),
            moved_histogram=np.zeros(replicas + 2, np.int32),
            moved_most=np.zeros(1, np.int32),
            spent=np.zeros(3),
            moved_of=none64.copy(),
            came=none64.copy(),
            went=none64.copy(),
        )
        settle(problem, state)
        return problem, state


def budgeted(problem: Problem, state: State, seed: int) -> tuple[Problem, State]:
    """Return the same with budgets of moves, of data, and of what enters and leaves each node."""
    rng = np.random.default_rng(seed)
    nodes, domains = len(state.replicas), len(problem.domains.member_first) - 1

    def some(most: int) -> int:
        return int(rng.integers(0, most)) if rng.random() < 0.5 else UNLIMITED

    budgets = problem.budgets._replace(
        binds=True,
        moves=some(6),
        data=float(rng.integers(0, 20)) if rng.random() < 0.3 else np.inf,
        data_dimension=0,
        of_partition=some(3),
        tiers=np.array([1], np.int32),
        into=np.full(domains, some(3)),
        out_of=np.full(domains, some(3)),
        source=rng.random(nodes) < 0.8,
    )
    problem = problem._replace(budgets=budgets)
    for counted in state._fields:
        if counted not in ("node", "role", "leader"):
            getattr(state, counted)[...] = 0
    state = state._replace(
        moved_of=np.zeros(len(state.leader), np.int64),
        came=np.zeros(domains, np.int64),
        went=np.zeros(domains, np.int64),
    )
    settle(problem, state)
    return problem, state


def random_small(seed: int) -> Small:
    """Draw a cluster with whatever goes wrong: one node, one zone, ties, zeros, dead nodes."""
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(1, 9))
    zones = int(rng.integers(1, 5))
    dimensions = int(rng.integers(1, 4))
    n_partitions = int(rng.integers(1, 25))
    zone = [int(z) for z in rng.integers(0, zones, n_nodes)]
    whole = rng.random() < 0.3
    load = rng.lognormal(0.0, 1.0, (n_partitions, dimensions))
    load = np.round(load) if whole else load
    extra = load * rng.choice([0.0, 0.5, 1.0], dimensions)
    capacity = np.repeat(rng.choice([1.0, 2.0], (n_nodes, 1)), dimensions, axis=1)
    replicas = int(rng.integers(1, 4))
    total = load.sum(0) * replicas + extra.sum(0)
    capacity *= np.maximum(total, 1e-3) / capacity.sum(0) * rng.choice([0.8, 1.5, 3.0])
    if rng.random() < 0.2:
        capacity[rng.integers(n_nodes)] = rng.choice([0.0, np.inf])
    alive = rng.random(n_nodes) < 0.85
    placement = [
        [int(n) for n in rng.choice(np.arange(-1, n_nodes), replicas)] for _ in range(n_partitions)
    ]
    fair = total / np.where(np.isfinite(capacity), capacity, 0.0).sum(0).clip(1e-9)
    with np.errstate(invalid="ignore"):  # no load on a node without a limit
        watermark = np.fmin(capacity, capacity * fair * rng.choice([1.0, 1.1]))
    watermark[~alive] = np.inf
    allowed = rng.random((n_partitions, n_nodes)) < rng.choice([0.7, 1.0])
    terms = int(rng.integers(0, 2))
    return Small(
        zone=zone,
        capacity=capacity,
        load=load,
        extra=extra,
        placement=placement,
        leader=[int(s) for s in rng.integers(-1, replicas, n_partitions)],
        watermark=np.nan_to_num(watermark, nan=np.inf, posinf=np.inf),
        accepts=[bool(a) for a in alive],
        leads=[bool(a) for a in alive & (rng.random(n_nodes) < 0.9)],
        per_zone=int(rng.integers(1, 3)),
        allowed=allowed,
        inside=[[bool(x) for x in rng.random(n_nodes) < 0.6] for _ in range(terms)],
        least=[int(rng.integers(-1, 3)) for _ in range(terms)],
    )


def level_case(seed: int, partitions: int = 60, nodes: int = 12, tolerance: float = 0.1) -> Small:
    """Draw an expanded cluster: three zones or more, a sixth of its nodes new, one dead."""
    rng = np.random.default_rng(seed)
    zone = [n % 4 for n in range(nodes)]
    load = rng.lognormal(0.0, 0.5, (partitions, 2))
    extra = load * np.array([1.0, 0.0])
    old = nodes - max(1, nodes // 6)
    placement = []
    for _ in range(partitions):
        zones = rng.permutation(4)[:3]
        placement.append([int(rng.choice([n for n in range(old) if n % 4 == z])) for z in zones])
    alive = np.ones(nodes, bool)
    alive[int(rng.integers(old))] = False
    total = load.sum(0) * 3 + extra.sum(0)
    capacity = np.tile(total / alive.sum() * 1.5, (nodes, 1))
    watermark = np.tile(total / alive.sum() * (1.0 + tolerance), (nodes, 1))
    watermark[~alive] = np.inf
    return Small(
        zone=zone,
        capacity=capacity,
        load=load,
        extra=extra,
        placement=placement,
        leader=[0] * partitions,
        watermark=watermark,
        accepts=[bool(a) for a in alive],
        leads=[bool(a) for a in alive],
    )


def tiny_case(seed: int) -> Small:
    """Draw at most four replicas on at most four nodes: all of its placements can be looked at."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 5))
    replicas = int(rng.integers(1, 3))
    partitions = int(rng.integers(1, 4 // replicas + 1))
    zone = [int(z) for z in rng.integers(0, int(rng.integers(1, nodes + 1)), nodes)]
    load = rng.choice([0.0, 1.0, 2.0, 3.0], (partitions, 2))
    extra = load * rng.choice([0.0, 1.0])
    fair = (load.sum(0) * replicas + extra.sum(0)) / nodes
    capacity = np.tile(fair * rng.choice([1.2, 2.0, 4.0]) + 0.5, (nodes, 1))
    accepts = rng.random(nodes) < 0.9
    return Small(
        zone=zone,
        capacity=capacity,
        load=load,
        extra=extra,
        placement=[
            [int(n) for n in rng.choice(np.arange(-1, nodes), replicas)] for _ in range(partitions)
        ],
        leader=[int(s) for s in rng.integers(-1, replicas, partitions)],
        watermark=np.minimum(capacity, np.tile(fair * rng.choice([1.05, 1.5]) + 0.1, (nodes, 1))),
        accepts=[bool(a) for a in accepts],
        leads=[bool(a) for a in accepts & (rng.random(nodes) < 0.9)],
    )
