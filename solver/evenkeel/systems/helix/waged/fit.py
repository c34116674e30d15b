"""The arrays of one run as the fit takes them, and the fit itself in slices."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.waged.estimates import Estimates
from evenkeel.systems.helix.waged.failures import NoResult, nowhere
from evenkeel.systems.helix.waged.model import Model
from evenkeel.systems.helix.waged.scopes import Rows, Split
from evenkeel_kernels.helix.waged_fit import (
    SHUT,
    WagedNodes,
    WagedPartitions,
    WagedState,
    WagedTerms,
    fit,
    hold,
)

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
    """A run in the middle of its fit.

    Parameters
    ----------
    model : Model
        The cluster.
    names : ndarray of int32, shape (n,)
        Node of the cluster that each node of the run is.
    nodes : WagedNodes
        Of the run, in the order of ties.
    partitions : WagedPartitions
        With what they held and were meant to hold.
    terms : WagedTerms
        Of a score.
    state : WagedState
        What is booked.
    """

    model: Model
    names: NDArray[np.int32]
    nodes: WagedNodes
    partitions: WagedPartitions
    terms: WagedTerms
    state: WagedState

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
    """Tell where each node of a cluster stands in a run.

    Examples
    --------
    >>> places(4, np.array([2, 0], np.int32)).tolist()
    [1, -1, 0, -1]
    """
    place_of = np.full(count, -1, np.int32)
    place_of[names] = np.arange(len(names), dtype=np.int32)
    return place_of
