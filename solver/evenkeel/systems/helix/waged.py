"""The method ``helix_waged``: WAGED on a cluster, and its runs within a pipeline.

All numbers have 32 bits, integers and floats alike, as in the original: sums over the cluster
beyond 2**31 wrap to negative numbers.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import partition_scope
from evenkeel.measure.loads import has_leaders
from evenkeel.methods.contract import Outcome, Request, SimulatedState
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import list_entries, read_only, writable
from evenkeel.model.topology import NODE_TIER, Topology
from evenkeel.systems.helix.crush.tree import (
    HashedNames,
    HelixError,
    assignable,
    enabled,
    filled_capacity,
    hashed,
    map_order,
    set_orders,
    state_counts,
    text_order,
    wanted_replicas,
    zone_tier,
)
from evenkeel.systems.helix.options import Waged
from evenkeel.systems.helix.resources import states_by_group
from evenkeel_kernels.helix import waged as kernel
from evenkeel_kernels.helix.waged import (
    SHUT,
    WagedNodes,
    WagedPartitions,
    WagedState,
    WagedTerms,
    fit,
    hold,
    into_slots,
    pack_rows,
)

MOST = 2**31 - 1  # the greatest number that Helix keeps: what Java's cast makes of infinity
NO_LIMIT = MOST  # of replicas on a node, or of one group there
DASH = ord("-")


class Kind(NamedTuple):
    """What is wanted of some partitions."""

    # their state model: states by falling priority, each with a number, ``"R"`` or ``"N"``
    states: Mapping[str, int | str]
    replicas: int | str  # replicas of each, or ``"ANY_LIVEINSTANCE"``
    min_active: int | None  # least number of live replicas; None for as many as there are replicas

    @property
    def names(self) -> list[str]:
        """States by falling priority; a replica's state is a place in this list."""
        return list(self.states)


class Wanted(NamedTuple):
    """Replicas of each of Q kinds in one run, S states."""

    by_state: NDArray[np.int32]  # (Q, S) replicas in each state
    replicas: NDArray[np.int32]  # (Q,) replicas wanted, whatever the zones allow
    least: NDArray[np.int32]  # (Q,) replicas that have to be live
    least_by_state: NDArray[np.int32]  # (Q, S) replicas in each state, were there just that many


@dataclass(frozen=True, eq=False)
class Model:
    """N nodes, P partitions in G groups, D capacity keys, M node masks, Z zones, Q kinds."""

    keys: tuple[str, ...]  # d names of what has a capacity
    nodes: HashedNames  # n logical ids
    capacity: NDArray[np.int32]  # (N, D) of each node
    zone: NDArray[np.int32]  # (N,) fault zone, counted from 0
    limit: NDArray[np.int32]  # (N,) most replicas of a node; ``NO_LIMIT`` for none
    masks: NDArray[np.bool_]  # (M, N) nodes that carry what some partitions ask for
    groups: HashedNames  # g names: Helix's resources
    # (G,) most replicas of a group on one node; ``NO_LIMIT`` for none
    group_limit: NDArray[np.int32]
    partitions: HashedNames  # p names
    # group, mask, kind: (P,) of each partition: its group, its row of ``masks``, its place in
    # ``kinds``
    group: NDArray[np.int32]
    mask: NDArray[np.int32]
    kind: NDArray[np.int32]
    kinds: tuple[Kind, ...]  # what is wanted of partitions
    weight: NDArray[np.int32]  # (P, D) what a replica takes of each key, in whatever state
    disabled: NDArray[np.int32]  # (F, 2) pairs of partition and node, sorted

    @cached_property
    def states(self) -> int:
        """Most states that a partition can be in."""
        return max((len(kind.names) for kind in self.kinds), default=0)

    @cached_property
    def total_order(self) -> NDArray[np.int64]:
        """Capacity keys in the order in which totals by key are walked, (D,) int64."""
        return map_order(HashedNames.of(self.keys).hash)

    @cached_property
    def weight_order(self) -> NDArray[np.int64]:
        """Capacity keys in the order in which a replica's weights are walked, (D,) int64."""
        return map_order(HashedNames.of(self.keys).hash, filled_capacity(len(self.keys)))

    @cached_property
    def replica_hash(self) -> NDArray[np.uint32]:
        """Java's hash of ``group-partition-state``, (P, S) uint32."""
        group = self.groups.hash.view(np.uint32)[self.group]
        head = (group * np.uint32(31) + np.uint32(DASH)) * self.partitions.power
        head = (head + self.partitions.word) * np.uint32(31) + np.uint32(DASH)
        hashes = np.zeros((len(self.kind), self.states), np.uint32)
        for q, kind in enumerate(self.kinds):
            names = HashedNames.of(kind.names)
            members = self.kind == q
            tail = head[members, np.newaxis] * names.power + names.word
            hashes[members, : len(names)] = tail
        return hashes

    def wanted(self, zones: int, nodes: int) -> Wanted:
        """Count the replicas of each kind."""
        q, s = len(self.kinds), self.states
        found = Wanted(
            np.zeros((q, s), np.int32), np.zeros(q, np.int32), np.zeros(q, np.int32),
            np.zeros((q, s), np.int32),
        )  # fmt: skip
        for i, kind in enumerate(self.kinds):
            replicas = wanted_replicas(kind.replicas, nodes)
            least = replicas if kind.min_active is None else kind.min_active
            found.replicas[i], found.least[i] = replicas, least
            for counts, row in (
                (state_counts(kind.states, zones, replicas), found.by_state),
                (state_counts(kind.states, least, least), found.least_by_state),
            ):
                for j, name in enumerate(kind.names):
                    row[i, j] = counts.get(name, 0)
        return found


class Scope(Enum):
    """How much is placed anew."""

    GLOBAL = "global"
    PARTIAL = "partial"
    EMERGENCY = "emergency"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, eq=False)
class Task:
    """What one run is about. n nodes, P partitions."""

    scope: Scope  # how much is placed anew
    nodes: NDArray[np.int64]  # (n,) nodes of the run, ascending; replicas on others are not kept
    # what to start from: the last baseline for a global run, else the best possible
    current: Assignment
    baseline: Assignment | None  # what a partial run comes closer to
    # (P,) partitions that a global run places anew, whatever is kept of the others
    anew: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """An assignment on the nodes of a run. P partitions, K replicas."""

    first: NDArray[np.int64]  # (P + 1,) where each partition's replicas start
    node: NDArray[np.int32]  # (K,) place of each replica's node in the run, -1 if it is not in it
    state: NDArray[np.uint8]  # (K,) state of each replica, ascending in every row
    owner: NDArray[np.int32]  # (K,) partition of each replica


@dataclass(frozen=True, eq=False)
class Split:
    """What a run keeps and places. P partitions, S states."""

    # owner, node, state: (K,) partition, place of the node in the run, and state of what is kept:
    # int32, int32, uint8
    owner: NDArray[np.int32]
    node: NDArray[np.int32]
    state: NDArray[np.uint8]
    place: NDArray[np.int32]  # (P, S) replicas to place
    # (P, S) replicas that there are as far as the run knows: what expectations are made from
    made: NDArray[np.int32]


def rows_of(assignment: Assignment, place_of: NDArray[np.int32]) -> Rows:
    """Look at an assignment from the nodes of a run."""
    return Rows(
        writable(assignment.first),
        place_of[assignment.node],
        writable(assignment.state),
        writable(assignment.owner),
    )


def split(model: Model, task: Task, wanted: Wanted, current: Rows, baseline: Rows) -> Split:
    """Tell what is kept from what is placed."""
    made = wanted.by_state[model.kind]
    place = np.empty_like(made)
    if task.scope is not Scope.OVERWRITE and kernel.crowded(
        current.first, current.state, model.kind, wanted.by_state
    ):
        current = _as_walked(model, task.current, current)
    keep = np.empty(len(current.node), np.bool_)
    rows = (current.first, current.node, current.state)
    if task.scope is Scope.GLOBAL:
        held = np.bincount(model.group[current.owner], minlength=len(model.groups)) > 0
        anew = task.anew | ~held[model.group]
        kernel.keep_all_valid(*rows, model.kind, wanted.by_state, anew, keep, place)
    elif task.scope is Scope.PARTIAL:
        made = np.empty_like(place)
        meant = (baseline.first, baseline.node, baseline.state)
        kernel.keep_what_agrees(*rows, *meant, model.kind, wanted.by_state, keep, place, made)
    elif task.scope is Scope.EMERGENCY:
        kernel.keep_where_active(*rows, model.kind, wanted.by_state, keep, place)
    else:
        kernel.keep_and_fill(
            *rows, model.kind, wanted.replicas, wanted.least, wanted.least_by_state, keep, place
        )
    return Split(current.owner[keep], current.node[keep], current.state[keep], place, made)


def _as_walked(model: Model, assignment: Assignment, rows: Rows) -> Rows:
    """Let the nodes of each state stand as in the ``HashSet`` that the original makes of them."""
    # that is filled from a ``HashMap`` of the whole row, and that one, here, by the nodes' names
    rank = model.nodes.rank[assignment.node]
    hashes = model.nodes.hash[assignment.node]
    by_name = np.lexsort((rank, rows.owner))
    in_map = by_name[set_orders(rows.first, hashes[by_name])]
    by_state = in_map[np.lexsort((rows.state[in_map], rows.owner[in_map]))]
    begins = np.ones(len(rows.owner), np.bool_)
    begins[1:] = (rows.owner[1:] != rows.owner[:-1]) | (rows.state[1:] != rows.state[:-1])
    runs = np.append(np.flatnonzero(begins), len(begins))
    order = by_state[set_orders(runs, hashes[by_state])]
    return Rows(rows.first, rows.node[order], rows.state, rows.owner)


def merged(current: Assignment, overwrite: Assignment) -> Assignment:
    """Lay an overwrite over the best possible."""
    owner = np.concatenate([overwrite.owner, current.owner])
    node = np.concatenate([overwrite.node, current.node])
    state = np.concatenate([overwrite.state, current.state])
    _, kept = np.unique(owner.astype(np.int64) << 32 | node, return_index=True)
    return Assignment.of_rows(len(current), owner[kept], node[kept], state[kept])


@dataclass(frozen=True, eq=False)
class Estimates:
    """Of one run. D capacity keys, G groups."""

    # capacity, weight: (D,) of all nodes, and of all replicas
    capacity: NDArray[np.int32]
    weight: NDArray[np.int32]
    # usage, usage_top: expected greatest usage of a node, by all replicas and by those in the top
    # state
    usage: float
    usage_top: float
    count: int  # expected replicas of a node
    group_count: NDArray[np.int64]  # (G,) expected replicas of each group on a node, at least 1
    scored: NDArray[np.int64]  # (S,) keys that the usages are the greatest over

    @property
    def left(self) -> NDArray[np.int32]:
        """Capacity that is left when all is placed, (D,) int32."""
        return self.capacity - self.weight


def estimate(
    model: Model, nodes: NDArray[np.int64], made: NDArray[np.int32], scored: NDArray[np.int64]
) -> Estimates:
    """Estimate what nodes will carry."""
    capacity = _wrapped(model.capacity[nodes].sum(axis=0, dtype=np.int64))
    replicas = made.sum(axis=1, dtype=np.int64)
    weight = _wrapped(_weighed(replicas, model.weight))
    top = _wrapped(_weighed(made[:, 0].astype(np.int64), model.weight))
    by_group = np.bincount(model.group, replicas, len(model.groups)).astype(np.int64)
    return Estimates(
        capacity=capacity,
        weight=weight,
        usage=_greatest_share(weight[scored], capacity[scored]),
        usage_top=_greatest_share(top[scored], capacity[scored]),
        count=int(_per_node(replicas.sum(), len(nodes))),
        group_count=np.maximum(_per_node(by_group, len(nodes)), 1),
        scored=scored,
    )


def scored_keys(model: Model, preferred: tuple[str, ...]) -> NDArray[np.int64]:
    """Choose the keys that usages are computed over."""
    if preferred and preferred[0] in model.keys:
        return np.array(sorted({model.keys.index(key) for key in preferred}), np.int64)
    return np.arange(len(model.keys))


def _wrapped(total: NDArray[np.int64]) -> NDArray[np.int32]:
    """Let a sum come round as 32 bits do."""
    return total.astype(np.int32)


def _weighed(replicas: NDArray[np.int64], weight: NDArray[np.int32]) -> NDArray[np.int64]:
    """Add up the weights of so many replicas of each partition, (D,)."""
    return np.array(
        [np.dot(replicas, weight[:, d].astype(np.int64)) for d in range(weight.shape[1])], np.int64
    )


def _greatest_share(weight: NDArray[np.int32], capacity: NDArray[np.int32]) -> float:
    """Divide in 32-bit floats; a key without capacity counts as full, and no key at all too."""
    if len(capacity) == 0:
        return 1.0
    whole = np.where(capacity == 0, 1, capacity).astype(np.float32)
    share = np.where(capacity == 0, np.float32(1.0), weight.astype(np.float32) / whole)
    return float(max(np.float32(0.0), share.max()))


def _per_node(count: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Share replicas out, rounded down, in 32-bit floats; over no nodes, as Java's casts do it."""
    if nodes == 0:
        return np.where(count > 0, MOST, 0)
    share: NDArray[np.int64] = np.floor(np.float32(count) / np.float32(nodes)).astype(np.int64)
    return share


# pairs of replica and node between two questions whether to go on: a few milliseconds
SLICE = 1_000_000

# weights of the six terms of a score
MOVEMENT, CONVERGENCE, COUNT, GROUP_COUNT, TOP_USAGE, USAGE = 2.0, 0.5, 1.0, 1.0, 3.0, 6.0

FORCED_CONVERGENCE = 100_000.0


@dataclass(frozen=True)
class Preference:
    """What matters more."""

    evenness: int = 1
    less_movement: int = 1
    force_converge: bool = False

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each term of a score, (6,) float64: products of 32-bit floats."""
        base = np.array([MOVEMENT, CONVERGENCE, COUNT, GROUP_COUNT, TOP_USAGE, USAGE], np.float32)
        factor = np.full(6, self.evenness, np.float32)
        factor[0] = self.less_movement
        weights = (base * factor).astype(np.float64)
        if self.force_converge:
            weights[1] = FORCED_CONVERGENCE
        return weights


@dataclass(frozen=True, eq=False)
class Fit:
    """A run in the middle of its fit."""

    model: Model  # the cluster
    names: NDArray[np.int32]  # (n,) node of the cluster that each node of the run is
    nodes: WagedNodes  # of the run, in the order of ties
    partitions: WagedPartitions  # with what they held and were meant to hold
    terms: WagedTerms  # of a score
    state: WagedState  # what is booked

    def place(
        self, owner: NDArray[np.int32], role: NDArray[np.uint8], stop: Callable[[int], bool]
    ) -> bool:
        """Place replicas in the order given."""
        step = max(1, SLICE // max(len(self.names), 1))
        for begin in range(0, len(owner), step):
            if stop(begin):
                return False
            end = min(begin + step, len(owner))
            given = (self.nodes, self.partitions, self.terms, self.state)
            done = fit(*given, owner, role, begin, end)
            if done < end:
                p, s = int(owner[done]), int(role[done])
                raise NoResult(nowhere(self.model, self.names, *given, p, s))
        return True


def begin(
    model: Model,
    names: NDArray[np.int32],
    estimates: Estimates,
    preference: Preference,
    found: Split,
    current: Rows,
    baseline: Rows,
) -> Fit:
    """Make the arrays of a run, and book what is kept."""
    room = np.zeros(len(model.kind) + 1, np.int64)
    held = np.bincount(found.owner, minlength=len(model.kind))
    np.cumsum(held + found.place.sum(axis=1), out=room[1:])
    nodes = _nodes(model, names, estimates)
    partitions = WagedPartitions(
        model.weight,
        model.group,
        model.mask,
        *_disabled(model, names),
        current.first,
        current.node,
        current.state,
        baseline.first,
        baseline.node,
        baseline.state,
        room,
    )
    terms = WagedTerms(
        preference.weights,
        estimates.usage or np.inf,
        estimates.usage_top or np.inf,
        float(estimates.count) or np.inf,
        estimates.group_count.astype(np.float64),
        model.group_limit,
        estimates.scored,
    )
    state = _state(model, names, int(room[-1]))
    hold(nodes, partitions, terms, state, found.owner, found.node, found.state)
    return Fit(model, names, nodes, partitions, terms, state)


def _nodes(model: Model, names: NDArray[np.int32], estimates: Estimates) -> WagedNodes:
    capacity = np.ascontiguousarray(model.capacity[names].T)
    _, zone = np.unique(model.zone[names], return_inverse=True)
    first = np.zeros(int(zone.max(initial=-1)) + 2, np.int64)
    np.cumsum(np.bincount(zone, minlength=len(first) - 1), out=first[1:])
    return WagedNodes(
        capacity.astype(np.float32),
        zone.astype(np.int32),
        first,
        np.argsort(zone, kind="stable").astype(np.int32),
        model.limit[names],
        np.flatnonzero((capacity[estimates.scored] == 0).any(axis=0)).astype(np.int32),
    )


def _disabled(
    model: Model, names: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Pairs of the run, by partition."""
    first = np.zeros(len(model.kind) + 1, np.int64)
    place_of = places(len(model.nodes), names)
    node = place_of[model.disabled[:, 1]]
    inside = node >= 0
    owner = model.disabled[inside, 0]
    np.cumsum(np.bincount(owner, minlength=len(model.kind)), out=first[1:])
    return first, node[inside]


def _state(model: Model, names: NDArray[np.int32], room: int) -> WagedState:
    n, groups = len(names), len(model.groups)
    left = np.ascontiguousarray(model.capacity[names].T)
    score = np.empty(n)
    return WagedState(
        left=left,
        left_top=left.copy(),
        used=np.empty(left.shape, np.float32),
        used_top=np.empty(left.shape, np.float32),
        replicas=np.zeros(n, np.int32),
        group_count=np.zeros((groups, n), np.int32),
        count_score=np.empty(n),
        group_score=np.empty((groups, n)),
        scanned=np.zeros(groups, np.bool_),
        closed=np.ascontiguousarray(np.where(model.masks[:, names], np.float32(0.0), SHUT)),
        row_node=np.empty(room, np.int32),
        row_state=np.empty(room, np.uint8),
        row_size=np.zeros(len(model.kind), np.int32),
        usage=np.empty(n, np.float32),
        usage_top=np.empty(n, np.float32),
        score=score,
        bits=score.view(np.int64),
    )


def places(count: int, names: NDArray[np.int32]) -> NDArray[np.int32]:
    """Tell where each node of a cluster stands in a run."""
    place_of = np.full(count, -1, np.int32)
    place_of[names] = np.arange(len(names), dtype=np.int32)
    return place_of


FAILED_TO_CALCULATE = "FAILED_TO_CALCULATE"


class Reason(Enum):
    """Hard constraints, in the order in which they are asked; the first that fails counts."""

    ZONE = "its fault zone holds a replica of the partition"
    CAPACITY = "too little capacity is left"
    DISABLED = "the partition is disabled there"
    LIMIT = "it holds as many replicas as it may"
    TAG = "it lacks a tag that the group asks for"


@dataclass(frozen=True)
class WagedFailure:
    """No result, and why."""

    kind: str
    message: str
    key: str = ""
    partition: int = -1
    state: int = -1
    reasons: Mapping[int, Reason] = field(default_factory=dict)


class NoResult(HelixError):
    """A run ended in a failure."""

    def __init__(self, failure: WagedFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def nowhere(
    model: Model,
    names: NDArray[np.int32],
    nodes: WagedNodes,
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    p: int,
    role: int,
) -> WagedFailure:
    """Describe a replica for which there is no node."""
    first = int(partitions.row_first[p])
    held = nodes.zone[state.row_node[first : first + int(state.row_size[p])]]
    group = int(partitions.group[p])
    begin, end = partitions.disabled_first[p : p + 2].tolist()
    disabled = np.isin(np.arange(len(names)), partitions.disabled[begin:end])
    full = state.replicas >= nodes.limit
    full = full | (state.group_count[group] >= terms.group_limit[group])
    says_no = {
        Reason.ZONE: np.isin(nodes.zone, held),
        Reason.CAPACITY: (state.left < partitions.weight[p][:, np.newaxis]).any(axis=0),
        Reason.DISABLED: disabled,
        Reason.LIMIT: full,
        Reason.TAG: ~model.masks[int(partitions.mask[p])][names],
    }
    reasons = {
        int(names[n]): next(reason for reason, no in says_no.items() if no[n])
        for n in range(len(names))
    }
    return WagedFailure(
        FAILED_TO_CALCULATE, _message(model, p, role, reasons), partition=p, state=role,
        reasons=reasons,
    )  # fmt: skip


def _message(model: Model, p: int, role: int, reasons: Mapping[int, Reason]) -> str:
    """Name the replica, and what every node was refused for."""
    state = model.kinds[int(model.kind[p])].names[role]
    found = {reason: [n for n, one in reasons.items() if one is reason] for reason in Reason}
    parts = []
    for reason, nodes in found.items():
        if nodes:
            shown = ", ".join(sorted(model.nodes.texts[n] for n in nodes[:5]))
            more = f" and {len(nodes) - 5} more" if len(nodes) > 5 else ""
            parts.append(f"{shown}{more}: {reason.value}")
    listed = "; ".join(parts) or "there is no node"
    return f"partition {model.partitions.texts[p]!r} has no node for its {state} ({listed})"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run of which it is known what is placed, and nothing is placed yet."""

    task: Task  # what it is about
    names: NDArray[np.int32]  # (n,) nodes of the run in the order of ties
    # current, baseline: what partitions held, and were meant to hold
    current: Rows
    baseline: Rows
    found: Split  # what is kept and placed
    estimates: Estimates  # what nodes will carry

    @property
    def placed(self) -> int:
        """Replicas to place."""
        return int(self.found.place.sum())


@dataclass(frozen=True, eq=False)
class WagedRun:
    """What came of a run."""

    assignment: Assignment | None
    placed: int
    timings: dict[str, float]


def prepare(model: Model, task: Task, scoring: tuple[str, ...] = ()) -> Prepared:
    """Find out what a run keeps and places."""
    busy = np.zeros(len(model.nodes), np.bool_)
    busy[task.current.node] = True
    order = np.lexsort((model.nodes.rank[task.nodes], busy[task.nodes]))
    names = task.nodes[order].astype(np.int32)
    place_of = places(len(model.nodes), names)
    current = rows_of(task.current, place_of)
    baseline = rows_of(task.baseline or nothing(len(model.kind)), place_of)
    zones = len(np.unique(model.zone[names]))
    found = split(model, task, model.wanted(zones, len(names)), current, baseline)
    scored = scored_keys(model, scoring)
    estimates = estimate(model, task.nodes, found.made, scored)
    return Prepared(task, names, current, baseline, found, estimates)


def short_of(model: Model, prepared: Prepared, d: int) -> WagedFailure:
    """Describe a cluster with too little capacity, perhaps only because sums wrap."""
    key, replicas = model.keys[d], prepared.found.made.sum(axis=1, dtype=np.int64)
    there = model.capacity[prepared.task.nodes, d].sum(dtype=np.int64)
    wraps = there >= _weighed(replicas, model.weight)[d]
    how = ", as Helix adds up in 32 bits, in which such sums come out negative" * bool(wraps)
    return WagedFailure(
        FAILED_TO_CALCULATE, f"all nodes together have too little {key}{how}", key=key
    )


def rebalance(
    model: Model,
    task: Task,
    preference: Preference,
    scoring: tuple[str, ...] = (),
    stop: Callable[[int], bool] = lambda placed: False,
) -> WagedRun:
    """Run WAGED in one of its scopes."""
    # Apache Helix, ``ConstraintBasedAlgorithm``, ``ClusterModelProvider`` and ``ClusterContext``
    laps = [time.perf_counter()]
    if len(task.nodes) == 0 or len(model.kind) == 0:
        return WagedRun(nothing(len(model.kind)), 0, dict.fromkeys(("model", "sort", "fit"), 0.0))
    prepared = prepare(model, task, scoring)
    for d in model.total_order.tolist():
        if prepared.estimates.left[d] < 0:
            raise NoResult(short_of(model, prepared, d))
    laps.append(time.perf_counter())
    held, meant = _groups(model, prepared.current), _groups(model, prepared.baseline)
    owner, role = placing_order(
        model, task.nodes, prepared.estimates, prepared.found.place, held, meant
    )
    laps.append(time.perf_counter())
    begun = begin(
        model, prepared.names, prepared.estimates, preference, prepared.found,
        prepared.current, prepared.baseline,
    )  # fmt: skip
    done = begun.place(owner, role, stop)
    assignment = _packed(begun) if done else None
    laps.append(time.perf_counter())
    timings = dict(zip(("model", "sort", "fit"), np.diff(laps).tolist(), strict=True))
    return WagedRun(assignment, len(owner), timings)


def nothing(partitions: int) -> Assignment:
    """Return an assignment without replicas."""
    first = np.zeros(partitions + 1, np.int64)
    return Assignment(
        read_only(first), read_only(np.zeros(0, np.int32)), read_only(np.zeros(0, np.uint8))
    )


def _groups(model: Model, rows: Rows) -> NDArray[np.bool_]:
    """Groups of which an assignment has some replica."""
    return np.bincount(model.group[rows.owner], minlength=len(model.groups)) > 0


def _packed(done: Fit) -> Assignment:
    state = done.state
    count = int(state.row_size.sum())
    first = np.empty(len(state.row_size) + 1, np.int64)
    node, role = np.empty(count, np.int32), np.empty(count, np.uint8)
    pack_rows(
        done.partitions.row_first, state.row_size, state.row_node, state.row_state, done.names,
        first, node, role,
    )  # fmt: skip
    return Assignment(read_only(first), read_only(node), read_only(role))


# part of the whole capacity that is added to what is left, so that it is never nothing
SPARE = np.float32(0.01)


def placing_order(
    model: Model,
    nodes: NDArray[np.int64],
    estimates: Estimates,
    place: NDArray[np.int32],
    held: NDArray[np.bool_],
    meant: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Order the replicas to place."""
    # First those of groups that the best possible has, then those of groups that the baseline has,
    # then by falling priority of state, by falling share of what is left of the capacity, by a hash
    # that changes with the nodes, and by name.
    p, s = np.nonzero(place)
    order = np.zeros(len(p), np.int64)
    group = model.group[p]
    kind = (2 * ~held[group] + ~meant[group]).astype(np.int64) * place.shape[1] + s
    key = _falling(_impact(model, estimates)[p]) << np.uint64(32)
    key |= _rising(_salted(model, nodes)[p, s])
    filled = 0
    for one in np.unique(kind):
        members = np.flatnonzero(kind == one)
        order[filled : filled + len(members)] = members[np.argsort(key[members])]
        filled += len(members)
    _settle_ties(model, p, s, kind, key, order)
    times = place[p, s][order]
    return np.repeat(p[order], times).astype(np.int32), np.repeat(s[order], times).astype(np.uint8)


def _impact(model: Model, estimates: Estimates) -> NDArray[np.float32]:
    """Share of what is left that a replica of each partition takes, added up over the keys."""
    impact = np.zeros(len(model.kind), np.float32)
    for d in model.weight_order.tolist():
        left = np.float32(estimates.left[d]) + np.float32(estimates.capacity[d]) * SPARE
        if left != 0.0:  # else there is no capacity, and what has no weight adds nothing
            impact += model.weight[:, d].astype(np.float32) / left
    return impact


def _falling(impact: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Numbers that ascend as impacts, which are not negative, descend."""
    bits: NDArray[np.uint64] = (np.uint32(0x7FFFFFFF) - impact.view(np.uint32)).astype(np.uint64)
    return bits


def _rising(hashes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Unsigned numbers in the order of the hashes read as signed ones."""
    bits: NDArray[np.uint64] = (hashes ^ np.uint32(1 << 31)).astype(np.uint64)
    return bits


def _salted(model: Model, nodes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash of each replica and of the nodes that carry what it asks for, (P, S)."""
    words = model.nodes.word[nodes]
    carries = model.masks[:, nodes]
    carries = carries | ~carries.any(axis=1, keepdims=True)
    salt = (carries * words).sum(axis=1, dtype=np.uint64).astype(np.uint32)
    salted = np.uint32(31) * (np.uint32(31) + model.replica_hash)
    return np.asarray(salted + salt[model.mask][:, np.newaxis], np.uint32)


def _settle_ties(
    model: Model,
    p: NDArray[np.int64],
    s: NDArray[np.int64],
    kind: NDArray[np.int64],
    key: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> None:
    """Bring those that agree in all numbers into the order of their names."""
    ordered, same_kind = key[order], kind[order]
    alike = (ordered[1:] == ordered[:-1]) & (same_kind[1:] == same_kind[:-1])
    if not alike.any():
        return
    bounds = np.flatnonzero(np.concatenate([[True], ~alike, [True]]))
    for i in np.flatnonzero(np.diff(bounds) > 1).tolist():
        run = np.sort(order[bounds[i] : bounds[i + 1]])
        names = [_name(model, int(p[k]), int(s[k])) for k in run.tolist()]
        order[bounds[i] : bounds[i + 1]] = run[text_order(names)]


def _name(model: Model, p: int, s: int) -> str:
    group = model.groups.texts[int(model.group[p])]
    state = model.kinds[int(model.kind[p])].names[s]
    return f"{group}-{model.partitions.texts[p]}-{state}"


COUNTED_ON = (
    "a baseline (scope='global', the default) counts on dead nodes to come back; "
    "options.Waged(scope='emergency') places anew what they hold, and a node that is gone for good "
    "should be marked gone"
)


def helix_waged(request: Request) -> Outcome:
    """Run WAGED in one of its scopes."""
    # Apache Helix, ``WagedRebalancer``
    begun = time.perf_counter()
    options = request.options
    assert isinstance(options, Waged)
    model = model_of(request.cluster, options)
    task = _task(request, options, model)
    preference = Preference(options.evenness, options.less_movement, options.force_converge)
    stopper = _Stopper(request, len(task.nodes))
    bound = time.perf_counter() - begun
    try:
        run = rebalance(model, task, preference, tuple(options.scoring_keys), stopper.asked)
    except NoResult as reason:
        return _unchanged(request, "exhausted", reason.failure)
    if run.assignment is None:
        return _unchanged(request, stopper.reason or "interrupted", None)
    assignment = run.assignment
    if task.scope is Scope.OVERWRITE and options.merge:
        assignment = merged(task.current, assignment)
    outcome = _outcome(request, run, task.scope, assignment)
    timings = {**run.timings, "model": run.timings["model"] + bound}
    return replace(outcome, work=run.placed * len(task.nodes), timings=timings)


class _Stopper:
    """Asks the watch of a request, and keeps its reason to stop."""

    def __init__(self, request: Request, nodes: int) -> None:
        self._watch = request.watch
        self._nodes = nodes
        self.reason: StopReason | None = None

    def asked(self, placed: int) -> bool:
        """Whether to stop after so many replicas."""
        self.reason = self._watch.stop(placed * self._nodes, placed)
        return self.reason is not None


def _task(request: Request, options: Waged, model: Model) -> Task:
    """Bind the options to the cluster."""
    faults = FaultList()
    names = request.cluster.partitions.group_names
    changed = np.zeros(len(names), np.bool_)
    for name in options.changed_groups or ():
        if name in names:
            changed[names.index(name)] = True
        else:
            faults.add("options.changed_groups", name, "unknown group")
    for key in options.scoring_keys:
        if key not in model.keys:
            faults.add("options.scoring_keys", key, f"unknown dimension; known: {list(model.keys)}")
    start = request.start if options.current is None else options.current
    current = _assignment(faults, "options.current", start, model)
    baseline = None
    if options.baseline is not None:
        baseline = _assignment(faults, "options.baseline", options.baseline, model)
    faults.raise_if_any()
    anew = changed[model.group]
    everything = {"cluster", "nodes"} | ({"groups"} if options.changed_groups is None else set())
    if everything & set(options.changes):
        anew = np.ones(len(model.kind), np.bool_)
    scope = Scope(options.scope)
    nodes = run_nodes(request.cluster.nodes, scope)
    return Task(scope, nodes, current, baseline if scope is Scope.PARTIAL else None, anew)


def _assignment(
    faults: FaultList, path: str, given: Assignment | Placement, model: Model
) -> Assignment:
    """Take an assignment in, or a placement as one."""
    found = _once_per_node(given, model) if isinstance(given, Placement) else given
    if len(found) != len(model.kind):
        faults.add(path, len(found), f"must have {len(model.kind)} partitions")
    elif len(found.node):
        if found.node.min() < 0 or found.node.max() >= len(model.nodes):
            faults.add(path, int(found.node.max()), "names nodes that there are not")
        if found.state.max() >= model.states:
            faults.add(path, int(found.state.max()), f"must have states below {model.states}")
    return found


def _once_per_node(placement: Placement, model: Model) -> Assignment:
    """Read a placement; of several replicas on one node the leader counts, or else one of them."""
    found = Assignment.of_placement(placement)
    if len(found) == len(model.kind) and any(len(kind.names) == 1 for kind in model.kinds):
        single = np.array([len(kind.names) == 1 for kind in model.kinds])[model.kind]
        state = np.where(single[found.owner], np.uint8(TOP), found.state)
        found = Assignment.of_rows(len(found), found.owner, found.node, state)
    pairs = found.owner.astype(np.int64) << 32 | found.node
    distinct, kept = np.unique(pairs, return_index=True)
    if len(distinct) == len(pairs):
        return found
    return Assignment.of_rows(len(found), found.owner[kept], found.node[kept], found.state[kept])


def _unchanged(request: Request, reason: StopReason, failure: WagedFailure | None) -> Outcome:
    """Leave everything as it came."""
    report = "" if failure is None else f"Everything stays as it is: {failure.message}."
    return Outcome(
        node=np.array(request.start.node),
        leader=np.array(request.start.leader),
        stop_reason=reason,
        message=report,
        warnings=(failure.message,) if failure is not None else (),
        native=failure,
    )


def _outcome(request: Request, run: WagedRun, scope: Scope, assignment: Assignment) -> Outcome:
    """Put an assignment into the slots of the cluster."""
    start = request.start
    node = np.empty(len(start.node), np.int32)
    leader = np.empty(len(start), np.int16)
    spilled = into_slots(
        writable(start.first), writable(start.node), writable(start.leader),
        writable(assignment.first), writable(assignment.node), writable(assignment.state),
        node, leader,
    )  # fmt: skip
    if not has_leaders(request.cluster):
        leader[:] = -1
    node, leader = request.keep_pinned(node, leader)
    warnings = [f"{spilled} replicas have no slot; native has them"] if spilled else []
    dead = ~request.cluster.nodes.may_hold[assignment.node]
    left = int(np.count_nonzero(dead)) if scope is Scope.GLOBAL else 0
    warnings += [COUNTED_ON] if left else []
    return Outcome(
        node=node,
        leader=leader,
        stop_reason="exhausted",
        message=f"{run.placed:,} replicas placed{f'; {left:,} are on dead nodes' if left else ''}.",
        warnings=tuple(warnings),
        native=assignment,
    )


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose loads are whole numbers.

    >>> import numpy as np
    >>> from dataclasses import replace
    >>> c = Cluster.from_arrays(capacity=[[9.0]], load=[[3.0]], replicas=1)
    >>> drifted = replace(c.partitions, load=Loads(*[np.array([[3.4]])] * 3))
    >>> now = replace(c, partitions=drifted)
    >>> state = SimulatedState(c, now, np.zeros(1, int), 60.0, np.zeros(1))
    >>> refresh_payload(state).partitions.load.voter.tolist()
    [[3.0]]
    """
    given = simulated.began.partitions.load.voter
    faults = FaultList()
    wrong = "must be a whole number for helix_waged, which counts in nothing else: scale the unit"
    list_entries(faults, "load", given, given != np.floor(given), wrong)
    faults.raise_if_any()
    load = simulated.now.partitions.load
    whole = Loads(_rounded(load.leader), _rounded(load.voter), _rounded(load.non_voter))
    return replace(simulated.now, partitions=replace(simulated.now.partitions, load=whole))


def _rounded(load: NDArray[np.float64]) -> NDArray[np.float64]:
    return read_only(np.rint(load))


def model_of(cluster: Cluster, options: Waged) -> Model:
    """Return what does not change from run to run, made once for the same arrays."""
    nodes = cluster.nodes
    parts = (
        nodes.names, nodes.capacity, nodes.tags, nodes.attributes, nodes.max_replicas,
        cluster.topology, cluster.partitions, cluster.rules, cluster.forbidden,
    )  # fmt: skip
    most = options.max_per_group
    limits = tuple(most.items()) if isinstance(most, Mapping) else most
    models = states_by_group(cluster, options)
    others = tuple((name, *states.items()) for name, states in models.items())
    asked = (tuple(options.states.items()), others, options.replicas, options.zone, limits)
    made_from = replace(
        options, current=None, baseline=None, scope="global", group_states=models
    )  # what is kept is small
    return _cached(_Parts(cluster, made_from, parts, asked))


def run_nodes(nodes: Nodes, scope: Scope) -> NDArray[np.int64]:
    """Tell which nodes a run is about."""
    usable = assignable(nodes)
    if scope is Scope.OVERWRITE:
        usable = usable & enabled(nodes)
    elif scope is not Scope.GLOBAL:
        usable = usable & (enabled(nodes) | nodes.may_hold)
    return np.flatnonzero(usable)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a model is made of; the same if its parts are the same objects."""

    cluster: Cluster
    options: Waged
    parts: tuple[object, ...]
    asked: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Parts):
            return NotImplemented
        same = all(mine is theirs for mine, theirs in zip(self.parts, other.parts, strict=True))
        return same and self.asked == other.asked

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.parts)))


@lru_cache(maxsize=2)
def _cached(given: _Parts) -> Model:
    return _model(given.cluster, given.options)


def _model(cluster: Cluster, options: Waged) -> Model:
    faults = FaultList()
    scope = partition_scope(cluster)
    tiers = (
        {zone_tier(cluster, one) for one in scope.demands}
        if options.zone is None
        else {options.zone}
    )
    known = [*cluster.topology.tiers, NODE_TIER]
    if len(tiers) > 1:
        message = "must name the tier of the fault zones: rules spread over different ones"
        faults.add("options.zone", sorted(tiers), message)
    elif not tiers <= set(known):
        faults.add("options.zone", options.zone, f"unknown tier; known: {known}")
    capacity = _whole(faults, "capacity", cluster.nodes.capacity)
    weight = _whole(faults, "load", cluster.partitions.load.voter)
    if not np.array_equal(cluster.partitions.load.leader, cluster.partitions.load.voter):
        faults.add(
            "leader_load", "another load", "must be the load: a replica's weight has no role"
        )
    group_limit = _group_limit(faults, cluster.partitions.group_names, options.max_per_group)
    states = state_models(faults, cluster, options)
    faults.raise_if_any()
    kinds, kind = _kinds(cluster, options, *states)
    limit = cluster.nodes.max_replicas
    return Model(
        keys=cluster.dimensions,
        nodes=hashed(cluster.nodes.names),
        capacity=capacity,
        zone=_zones(cluster.topology, tiers.pop(), len(cluster.nodes)),
        limit=np.where(limit < 0, NO_LIMIT, limit).astype(np.int32),
        masks=scope.open,
        groups=hashed(cluster.partitions.group_names),
        group_limit=group_limit,
        partitions=hashed(cluster.partitions.names),
        group=writable(cluster.partitions.group),
        mask=np.array(scope.rule, np.int32),
        kind=kind,
        kinds=kinds,
        weight=weight,
        disabled=writable(cluster.forbidden),
    )


def _group_limit(
    faults: FaultList, names: Names, most: int | Mapping[str, int] | None
) -> NDArray[np.int32]:
    """Replicas of each group that a node may hold, (G,)."""
    found = np.full(len(names), NO_LIMIT, np.int32)
    if isinstance(most, Mapping):
        for name, one in most.items():
            if name in names:
                found[names.index(name)] = one
            else:
                faults.add("options.max_per_group", name, "unknown group")
    elif most is not None:
        found[:] = most
    return found


def _whole(faults: FaultList, path: str, given: NDArray[np.float64]) -> NDArray[np.int32]:
    """Take numbers as 32-bit integers, which is what Helix counts in."""
    bad = ~(given <= MOST) | (given != np.floor(given))
    list_entries(faults, path, given, bad, "must be a whole number below 2**31")
    return np.where(bad, 0.0, given).astype(np.int32)


def state_models(
    faults: FaultList, cluster: Cluster, options: Waged
) -> tuple[list[Mapping[str, int | str]], NDArray[np.int32]]:
    """Return the state models that there are, and which one each partition has.

    >>> c = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]] * 2, group=[0, 1],
    ...                         group_names=["a", "b"], replicas=1)
    >>> state_models(FaultList(), c, Waged(group_states={"b": {"ONLINE": "R"}}))[1]
    array([0, 1], dtype=int32)
    """
    names = cluster.partitions.group_names
    models = [options.states]
    which = np.zeros(len(names), np.int32)
    for name, states in states_by_group(cluster, options).items():
        if name in names:
            which[names.index(name)] = len(models)
            models.append(states)
        else:
            faults.add("options.group_states", name, "unknown group")
    return models, which[cluster.partitions.group]


def _kinds(
    cluster: Cluster,
    options: Waged,
    models: list[Mapping[str, int | str]],
    model: NDArray[np.int32],
) -> tuple[tuple[Kind, ...], NDArray[np.int32]]:
    """Kinds of partitions, by state model, and how many replicas they want and have to live."""
    partitions = cluster.partitions
    pairs = partitions.replicas.astype(np.int64) << 32 | partitions.min_active
    distinct, pair_of = np.unique(pairs, return_inverse=True)
    both, kind = np.unique(pair_of * len(models) + model, return_inverse=True)
    kinds = []
    for one in both.tolist():
        pair = int(distinct[one // len(models)])
        replicas, least = pair >> 32, pair & (2**32 - 1)
        kinds.append(Kind(models[one % len(models)], options.replicas or replicas, least))
    return tuple(kinds), kind.astype(np.int32)


def _zones(topology: Topology, tier: str, nodes: int) -> NDArray[np.int32]:
    """Fault zone of each node: all its labels down to the tier; a missing one is a label too."""
    if tier == NODE_TIER:
        return np.arange(nodes, dtype=np.int32)
    last = topology.tier_index(tier)
    rows = [last]
    if tier not in topology.crossing:
        rows = [row for row in range(last + 1) if topology.tiers[row] not in topology.crossing]
    _, zone = np.unique(topology.label[rows], axis=1, return_inverse=True)
    return np.ravel(zone).astype(np.int32)
