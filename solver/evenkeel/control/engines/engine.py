"""Define the interface between a control pipeline and its algorithm, the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster


class Scope(Enum):
    """How much of a cluster is placed anew.

    Examples
    --------
    >>> [one.name for one in Scope]
    ['GLOBAL', 'PARTIAL', 'EMERGENCY', 'OVERWRITE']
    """

    GLOBAL = "global"
    """The baseline: where everything would be if nothing were in the way."""
    PARTIAL = "partial"
    """The best possible: what differs from the baseline, from where everything is."""
    EMERGENCY = "emergency"
    """Only what sits on nodes that will not come back."""
    OVERWRITE = "overwrite"
    """Only what partitions short of live replicas need at once, on nodes that serve now."""


class Change(Enum):
    """What changed since the last baseline.

    Examples
    --------
    >>> [one.name for one in Change]
    ['CLUSTER', 'NODES', 'GROUPS']
    """

    CLUSTER = "cluster"
    NODES = "nodes"
    GROUPS = "groups"


class FailureKind(Enum):
    """Why a calculation has no result, by the names that Helix gives the kinds.

    Examples
    --------
    >>> FailureKind.INVALID_INPUT.value
    'INVALID_INPUT'
    """

    INVALID_CLUSTER_STATUS = "INVALID_CLUSTER_STATUS"
    INVALID_REBALANCER_STATUS = "INVALID_REBALANCER_STATUS"
    FAILED_TO_CALCULATE = "FAILED_TO_CALCULATE"
    INVALID_INPUT = "INVALID_INPUT"
    UNKNOWN_FAILURE = "UNKNOWN_FAILURE"


class CalculationFailed(RuntimeError):
    """A calculation has no result; what was known before still holds.

    Parameters
    ----------
    kind : FailureKind
        What kind of failure it is.
    message : str
        What a person should know.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> def broken(task):
    ...     raise control.CalculationFailed(control.FailureKind.INVALID_INPUT, "No load is known.")
    >>> with control.Pipeline(broken, workers=control.InlineWorkers()) as pipeline:
    ...     first, second = pipeline.run(c), pipeline.run(c)
    >>> [failure.kind.name for failure in first.failures + second.failures]
    ['INVALID_INPUT']
    """

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(f"{message} Failure Type: {kind.value}")
        self.kind = kind


class Cancelled(Exception):
    """A calculation was cancelled; it leaves nothing behind.

    Examples
    --------
    >>> try:
    ...     raise Cancelled("stopped")
    ... except Cancelled as error:
    ...     print(error)
    stopped
    """


@dataclass(frozen=True)
class Task:
    """One calculation.

    Parameters
    ----------
    scope : Scope
        How much is placed anew.
    cluster : Cluster
        The snapshot; node flags state which nodes serve, keep replicas, or are gone, delay
        windows and operations included: what ``Nodes.may_hold`` leaves out is lost for good.
    current : Assignment
        What to start from: for the baseline the previous one, for an overwrite what is to be
        filled up, for every other scope the best possible.
    baseline : Assignment or None
        For a partial run what to come closer to; None in the other scopes.
    changes : frozenset of Change
        For the baseline: what changed since the last one.
    groups : tuple of int
        For the baseline: the groups that are new or have partitions that changed since.
    seed : int
        All randomness comes from it.
    stop : callable
        Asked between slices of work; once it returns True the engine raises ``Cancelled``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> from evenkeel.model.assignment import Assignment
    >>> task = control.Task(control.Scope.GLOBAL, c, Assignment.of_placement(c.placement), seed=7)
    >>> task.scope.name, len(task.cluster.nodes), task.stop()
    ('GLOBAL', 3, False)
    """

    scope: Scope
    cluster: Cluster
    current: Assignment
    baseline: Assignment | None = None
    changes: frozenset[Change] = frozenset()
    groups: tuple[int, ...] = ()
    seed: int = 0
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Answer:
    """What came of a calculation.

    Parameters
    ----------
    assignment : Assignment
        Everything that is held afterwards, kept and placed; for an overwrite what was added
        included, to be merged by the engine itself.
    placed : int
        Replicas that were placed anew.
    unplaced : int
        Replicas that found no node.
    timings : mapping of str to float
        Seconds per step: model, sort, fit.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> def as_it_is(task):
    ...     return control.Answer(task.current)
    >>> with control.Pipeline(as_it_is, workers=control.InlineWorkers()) as pipeline:
    ...     pipeline.run(c).moves_from(c.placement)
    0
    """

    assignment: Assignment
    placed: int = 0
    unplaced: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)


Engine = Callable[[Task], Answer]
"""An algorithm in all four scopes; it raises ``CalculationFailed`` where it has no result, and
``Cancelled`` once it was cancelled. Where more than one replica of a partition may be in the top
state, its method ``one_leads`` takes a cluster and returns (P,) bool."""


def alike(one: Assignment, other: Assignment, *, states: bool = True) -> NDArray[np.bool_]:
    """Return which replicas of an assignment another one has on the same node."""
    # most rows are the same in both, which one pass over them shows; the others are looked up
    changed = _changed_rows(one, other)
    found = ~changed[one.owner]
    left = np.flatnonzero(~found)
    there = np.flatnonzero(changed[other.owner])
    if len(left) and len(there):
        keys = np.sort(_keys(other, there, states))
        wanted = _keys(one, left, states)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found[left] = keys[at] == wanted
    return np.asarray(found)


def _changed_rows(one: Assignment, other: Assignment) -> NDArray[np.bool_]:
    """Partitions whose replicas are not, one by one, the same; (P,)."""
    changed: NDArray[np.bool_] = np.diff(one.first) != np.diff(other.first)
    if not changed.any():
        differs = (one.node != other.node) | (one.state != other.state)
        changed[one.owner[differs]] = True
        return changed
    same = np.flatnonzero(~changed[one.owner])
    owner = one.owner[same]
    place = same - one.first[owner] + other.first[owner]
    differs = (one.node[same] != other.node[place]) | (one.state[same] != other.state[place])
    changed[owner[differs]] = True
    return changed


def _keys(one: Assignment, which: NDArray[np.int64], states: bool) -> NDArray[np.int64]:
    """One number for each partition, node and, on request, state of some replicas."""
    key = (one.owner[which].astype(np.int64) << 40) | (one.node[which].astype(np.int64) << 8)
    return key | one.state[which] if states else key
