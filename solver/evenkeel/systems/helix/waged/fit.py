"""Choose nodes as WAGED does, in slices: arrays of one run, estimates, and reasons for failures.

All numbers have 32 bits, whole numbers and floats alike, as in the original: sums over the cluster
beyond 2**31 wrap to negative numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.tree import HelixError
from evenkeel.systems.helix.waged.model import Model, Rows, Split
from evenkeel_kernels.helix.waged import (
    SHUT,
    WagedNodes,
    WagedPartitions,
    WagedState,
    WagedTerms,
    fit,
    hold,
)

MOST = 2**31 - 1
"""What Java's cast makes of infinity."""


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


SLICE = 1_000_000
"""Pairs of replica and node between two questions whether to go on: a few milliseconds."""

MOVEMENT, CONVERGENCE, COUNT, GROUP_COUNT, TOP_USAGE, USAGE = 2.0, 0.5, 1.0, 1.0, 3.0, 6.0
"""Weights of the six terms of a score."""

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
        self,
        owner: NDArray[np.int32],
        role: NDArray[np.uint8],
        stop: Callable[[int], bool],
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


def short_of(key: str) -> WagedFailure:
    """Describe a cluster with too little capacity."""
    return WagedFailure(FAILED_TO_CALCULATE, f"all nodes together have too little {key}", key=key)


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
