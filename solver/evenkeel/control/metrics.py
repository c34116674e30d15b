"""Metrics of a pipeline: counters, gauges and times, as numbers and structured log records.

The module also adds replicas at once to partitions that are short of serving replicas. The added
replicas are never kept: they leave with the next best possible assignment.

References
----------
Apache Helix, ``WagedRebalancerMetricCollector``, ``InstanceMonitor`` and ``ResourceMonitor``, whose
names these have, spelled as Python does.
"""

import logging
import threading
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.binding import Bound
from evenkeel.control.engines.engine import Scope, alike
from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import breaks_more
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.runtime import logs
from evenkeel.model.runtime.memoize import memoize

BROKEN_BY_ADDING = frozenset({  # hard rules that a replica too many can break
    "not_accepted", "forbidden", "require", "place", "same_node", "spread", "max_domains",
    "capacity", "tier_capacity", "max_replicas",
})  # fmt: skip


def needed(cluster: Cluster) -> NDArray[np.int32]:
    """Return how many replicas of each partition must serve."""
    parts = cluster.partitions
    return memoize(parts, "needed", lambda: np.minimum(parts.min_active, parts.replicas))


def is_short(bound: Bound, cluster: Cluster, serving: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which partitions have fewer replicas that serve than they must have."""
    served: NDArray[np.integer] = bound.lengths
    if bound.sits_outside(serving):
        here = bound.present
        served = np.bincount(here.owner[serving[here.node]], minlength=len(here))
    return np.asarray(bound.known & (served < needed(cluster)))


def covered(
    best: Assignment, other: Assignment, short: NDArray[np.bool_], view: Cluster
) -> Assignment:
    """Add replicas of another assignment where one is short of replicas that serve.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[[1.0]], replicas=2, min_active=1,
    ...                         alive=[False, False, True])
    >>> rows = lambda *nodes: Assignment(np.array([0, len(nodes)]), np.array(nodes, np.int32),
    ...                                  np.arange(len(nodes), dtype=np.uint8))
    >>> covered(rows(0, 1), rows(0, 2), np.array([True]), c).node.tolist()
    [0, 2, 1]
    """
    nodes = view.nodes
    serving = nodes.alive & nodes.may_hold
    need = needed(view)
    added: list[tuple[int, int, int]] = []
    led = np.zeros(len(best), np.bool_)
    tops = best.state == TOP
    led[best.owner[tops & serving[best.node]]] = True
    leads = np.zeros(len(best), np.bool_)
    leads[best.owner[tops]] = True
    for p in np.flatnonzero(short).tolist():
        row = best.node[best.first[p] : best.first[p + 1]]
        missing = int(need[p]) - int(np.count_nonzero(serving[row]))
        held = set(row.tolist())
        for k in range(int(other.first[p]), int(other.first[p + 1])):
            node = int(other.node[k])
            if missing <= 0:
                break
            if node in held or not nodes.may_receive[node]:
                continue
            state = int(other.state[k])
            if leads[p] and not led[p] and nodes.may_lead[node]:
                state, led[p] = TOP, True
            elif led[p] and state == TOP:
                state = TOP + 1
            added.append((p, node, state))
            held.add(node)
            missing -= 1
    if not added:
        return best
    owner, node_added, state_added = np.array(added, np.int64).T
    return best.joined(
        Assignment.of_rows(
            len(best), owner, node_added.astype(np.int32), state_added.astype(np.uint8)
        )
    )


def breaks_nothing(before: Assignment, after: Assignment, view: Cluster) -> bool:
    """Return whether what was added breaks no hard rule anew, nor one further than before."""
    now = audit(view, after.as_placement)
    if not any(now.counts[kind] for kind in BROKEN_BY_ADDING):
        return True
    was = audit(view, before.as_placement)
    return not breaks_more(view, was, now, BROKEN_BY_ADDING)


def only(assignment: Assignment, rows: NDArray[np.bool_]) -> Assignment:
    """Leave out the replicas of some partitions.

    >>> one = Assignment(np.array([0, 1, 2]), np.array([3, 1], np.int32), np.zeros(2, np.uint8))
    >>> only(one, np.array([False, True])).first.tolist()
    [0, 0, 1]
    """
    return assignment.kept(rows[assignment.owner])


logger = logging.getLogger("evenkeel.control")
# log what happened in a pipeline: a word, and values by name
log_event = partial(logs.log_event, logger)

CALCULATIONS = {  # how the counter and the gauge of calculations begin
    Scope.GLOBAL: "global_baseline_calc",
    Scope.PARTIAL: "partial_rebalance",
    Scope.EMERGENCY: "emergency_rebalance",
    Scope.OVERWRITE: "rebalance_overwrite",
}


@dataclass
class Numbers:
    """Counters since the pipeline began, and the last value of each gauge, in seconds."""

    global_baseline_calc_counter: int = 0
    partial_rebalance_counter: int = 0
    emergency_rebalance_counter: int = 0
    rebalance_overwrite_counter: int = 0
    rebalance_failure_counter: int = 0
    cancelled_counter: int = 0
    stale_counter: int = 0
    unchanged_counter: int = 0
    pipeline_counter: int = 0
    global_baseline_calc_latency_gauge: float = 0.0
    partial_rebalance_latency_gauge: float = 0.0
    emergency_rebalance_latency_gauge: float = 0.0
    rebalance_overwrite_latency_gauge: float = 0.0
    state_read_latency_gauge: float = 0.0
    state_write_latency_gauge: float = 0.0
    pipeline_latency_gauge: float = 0.0
    baseline_divergence_gauge: float = 1.0


@dataclass
class Metrics:
    """Counts and times from any thread.

    >>> metrics = Metrics()
    >>> metrics.count("stale_counter")
    >>> metrics.snapshot()["stale_counter"]
    1
    """

    numbers: Numbers = field(default_factory=Numbers)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def count(self, name: str) -> None:
        """Add one to a counter."""
        with self._lock:
            setattr(self.numbers, name, getattr(self.numbers, name) + 1)

    def set_gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            setattr(self.numbers, name, value)

    def calculated(self, scope: Scope, seconds: float, placed: int, unplaced: int) -> None:
        """Note a calculation that has a result."""
        self.count(f"{CALCULATIONS[scope]}_counter")
        self.set_gauge(f"{CALCULATIONS[scope]}_latency_gauge", seconds)
        log_event(
            "calculated", scope=scope.value, seconds=seconds, placed=placed, unplaced=unplaced
        )  # fmt: skip

    def snapshot(self) -> dict[str, float]:
        """Return all numbers as they are now."""
        with self._lock:
            return asdict(self.numbers)

    def log_all(self) -> None:
        """Log all numbers as they are now."""
        if logger.isEnabledFor(logging.INFO):
            log_event("metrics", logging.INFO, **self.snapshot())


def baseline_divergence(best: Assignment, baseline: Assignment) -> float:
    """Return how much of the best possible is not where the baseline wants it."""
    both = (np.diff(best.first) > 0) & (np.diff(baseline.first) > 0)
    counted = both[best.owner]
    total = int(np.count_nonzero(counted))
    if total == 0:
        return 1.0
    return 1.0 - int(np.count_nonzero(alike(best, baseline)[counted])) / total


@dataclass(frozen=True)
class Health:
    """How a cluster fares under an assignment.

    Parameters
    ----------
    max_capacity_usage_gauge : float
        Highest share of a node's capacity that is used, over nodes and dimensions.
    missing_top_state_partition_gauge : int
        Partitions without a serving leader, in clusters with leaders.
    missing_replica_partition_gauge : int
        Partitions with fewer replicas that serve than they want.
    missing_min_active_replica_partition_gauge : int
        Partitions with fewer replicas that serve than they must have.
    difference_with_ideal_state_gauge : int
        Partitions that are not where they should be.
    pending_recovery_rebalance_replica_gauge : int
        Replicas that have to come up where too few serve now: fewer than ``min_active``, or, where
        that is not set, than are wanted.
    pending_load_rebalance_replica_gauge : int
        All others that have to come up.
    average_partition_weight : dict of str to float
        Load of a follower by dimension, the mean over partitions.

    Notes
    -----
    Helix's metrics of throttling have no counterpart: nothing is carried out here.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> from evenkeel.model.assignment import Assignment
    >>> found = control.health(c.down("n1"), Assignment.of_placement(c.placement))
    >>> found.max_capacity_usage_gauge, found.missing_replica_partition_gauge
    (1.0, 4)
    """

    max_capacity_usage_gauge: float
    missing_top_state_partition_gauge: int
    missing_replica_partition_gauge: int
    missing_min_active_replica_partition_gauge: int
    difference_with_ideal_state_gauge: int
    pending_recovery_rebalance_replica_gauge: int
    pending_load_rebalance_replica_gauge: int
    average_partition_weight: dict[str, float]


def health(cluster: Cluster, assignment: Assignment) -> Health:
    """Measure how a cluster fares under an assignment.

    Parameters
    ----------
    cluster : Cluster
        N nodes, P partitions; its placement is what is, the assignment what should be.
    assignment : Assignment
        Of P partitions on N nodes.

    Returns
    -------
    Health
        Plain numbers, which are logged, too.

    Raises
    ------
    InvalidInput
        If the assignment is none, or not of this cluster.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[4.0], [4.0]], load=[[1.0]], placement=[[0, 1]],
    ...                         alive=[True, False], min_active=1)
    >>> found = health(c, Assignment.of_placement(c.placement))
    >>> found.max_capacity_usage_gauge, found.missing_replica_partition_gauge
    (0.25, 1)
    """
    nodes, partitions = cluster.nodes, cluster.partitions
    count = len(partitions)
    faults = FaultList()
    if not isinstance(assignment, Assignment):
        faults.add("assignment", type(assignment).__name__, "must be an Assignment")
    elif len(assignment) != count:
        faults.add("assignment", len(assignment), f"must have {count} partitions")
    elif assignment.node.max(initial=0) >= len(nodes):
        faults.add("assignment", int(assignment.node.max()), "names nodes that there are not")
    faults.raise_if_any()
    serves = nodes.serves[assignment.node]
    tops = assignment.state == TOP
    load = np.where(
        tops[:, None], partitions.load.leader[assignment.owner],
        partitions.load.voter[assignment.owner],
    )  # fmt: skip
    usage = 0.0
    for d in range(nodes.capacity.shape[1]):
        used = np.bincount(assignment.node, load[:, d], minlength=len(nodes))
        room = nodes.capacity[:, d]
        share = np.where(used > 0.0, np.inf, 0.0)
        np.divide(used, room, out=share, where=room > 0.0)
        usage = max(usage, float(share[nodes.alive].max(initial=0.0)))
    served = np.bincount(assignment.owner[serves], minlength=count)
    led = np.bincount(assignment.owner[serves & tops], minlength=count) > 0
    now = Assignment.of_placement(cluster.placement)
    recovering, levelling = _pending(cluster, now, assignment)
    mean = partitions.load.voter.sum(axis=0) / max(count, 1)
    found = Health(
        max_capacity_usage_gauge=usage,
        missing_top_state_partition_gauge=int(np.count_nonzero(~led)) if tops.any() else 0,
        missing_replica_partition_gauge=int(np.count_nonzero(served < partitions.replicas)),
        missing_min_active_replica_partition_gauge=int(np.count_nonzero(served < needed(cluster))),
        difference_with_ideal_state_gauge=_differing(now, assignment),
        pending_recovery_rebalance_replica_gauge=recovering,
        pending_load_rebalance_replica_gauge=levelling,
        average_partition_weight=dict(zip(cluster.dimensions, mean.tolist(), strict=True)),
    )
    log_event("health", **asdict(found))
    return found


def _pending(cluster: Cluster, now: Assignment, wanted: Assignment) -> tuple[int, int]:
    """Replicas that have to come up: those that partitions need to recover, and the others."""
    nodes, partitions = cluster.nodes, cluster.partitions
    serves = nodes.serves[now.node]
    served = np.bincount(now.owner[serves], minlength=len(now))
    needs = np.where(partitions.min_active > 0, needed(cluster), partitions.replicas)
    coming = ~alike(wanted, now, states=False)
    comes = np.bincount(wanted.owner[coming], minlength=len(now))
    recovering = np.minimum(comes, np.maximum(needs - served, 0))
    return int(recovering.sum()), int((comes - recovering).sum())


def _differing(one: Assignment, other: Assignment) -> int:
    """Partitions whose replicas are not on the same nodes in the same states."""
    differs = np.zeros(len(one), np.bool_)
    differs[one.owner[~alike(one, other)]] = True
    differs[other.owner[~alike(other, one)]] = True
    return int(np.count_nonzero(differs))
