"""What was decided, in order, and why: the record that CockroachDB itself does not keep."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.cockroach.allocator.actions import ACTIONS
from evenkeel.systems.cockroach.allocator.store_rebalancer import KINDS
from evenkeel_kernels.cockroach import scores
from evenkeel_kernels.cockroach.decision_log import DecisionLog
from evenkeel_kernels.cockroach.leases.queue import MOVED
from evenkeel_kernels.cockroach.leases.target import BY_REQUEST
from evenkeel_kernels.cockroach.load.store_rebalancer import NON_VOTER_BY_LOAD, VOTER_BY_LOAD
from evenkeel_kernels.cockroach.replicas.actions import CONSIDER_REBALANCE

REASONS = {
    scores.BY_VALIDITY: "the constraints forbid the store it was on",
    scores.BY_DISK: "the disk it was on is full",
    scores.BY_NEED: "the constraints need a replica there",
    scores.BY_VOTERS: "the constraints need a voter there",
    scores.BY_DIVERSITY: "replicas are farther apart",
    scores.BY_IO: "the disk there is less overloaded",
    scores.BY_CONVERGENCE: "both stores come nearer to the mean number of ranges",
    scores.BY_BALANCE: "the store has fewer ranges than most, or the other one more",
    scores.BY_NON_VOTER: "the store holds a non-voter already",
    0.0: "the store has fewer ranges",
}
"""Why a replica was moved, by the least score that says so."""

REPAIRS = {
    "Finalize": "a change of replicas was left unfinished",
    "RemoveLearner": "a change of replicas was left unfinished",
    "ReplaceDead": "the store it was on is dead",
    "RemoveDead": "the store it was on is dead",
    "ReplaceDecommissioning": "the store it was on is being decommissioned",
    "RemoveDecommissioning": "the store it was on is being decommissioned",
    "Add": "the range has too few replicas",
    "Remove": "the range has too many replicas",
}
"""Why a replica came or went, by how the action begins; the first that fits holds."""


@dataclass(frozen=True, eq=False)
class RangeLog:
    """Decisions in the order in which they were made: L of them. Arrays are read-only.

    Parameters
    ----------
    kind : ndarray of int8, shape (L,)
        Index into ``ACTIONS``; from 40 up, a lease or load: ``store_rebalancer_run.KINDS``.
    range : ndarray of int32, shape (L,)
        Partition.
    source, target : ndarray of int32, shape (L,)
        Node that lost the replica or lease, and node that got it; -1 for none.
    score : ndarray of float64, shape (L,)
        By how much the target was better.

    Examples
    --------
    >>> log = RangeLog(*(np.array([v]) for v in (15, 0, 2, 3, 300.0)))
    >>> len(log), log.reason(0)
    (1, 'replicas are farther apart')
    """

    kind: NDArray[np.int8]
    range: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.kind)

    def action(self, i: int) -> str:
        """Return what was done."""
        kind = int(self.kind[i])
        if kind in (CONSIDER_REBALANCE, VOTER_BY_LOAD, NON_VOTER_BY_LOAD):
            return "Rebalance"
        return ACTIONS[kind] if kind < len(ACTIONS) else "TransferLease"

    def reason(self, i: int) -> str:
        """Return why it was done."""
        kind = int(self.kind[i])
        if kind == CONSIDER_REBALANCE:
            return REASONS[max(least for least in REASONS if least <= max(self.score[i], 0.0))]
        if kind < len(ACTIONS):
            return next(why for name, why in REPAIRS.items() if ACTIONS[kind].startswith(name))
        if kind == MOVED + BY_REQUEST and self.source[i] < 0:
            return "nobody held the lease"
        return KINDS[kind]

    def lines(self, cluster: Cluster) -> Iterator[str]:
        """Tell every decision in names, one line each."""
        partitions, nodes = cluster.partitions.names, cluster.nodes.names
        for i in range(len(self)):
            source, target = int(self.source[i]), int(self.target[i])
            ends = [nodes[n] if n >= 0 else "-" for n in (source, target)]
            name = partitions[int(self.range[i])]
            yield f"{name}: {self.action(i)} {ends[0]} -> {ends[1]}: {self.reason(i)}"


class Writer:
    """Gathers what logs of limited room hold, time after time."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def drain(self, log: DecisionLog) -> None:
        """Take over what a log holds, and empty it."""
        size = int(log.size[0])
        if size:
            columns = (log.kind, log.range, log.source, log.target, log.score)
            self._parts.append(tuple(column[:size].copy() for column in columns))
            log.size[0] = 0

    def finished(self) -> RangeLog:
        """Return everything that was gathered."""
        none = np.zeros(0, np.int32)
        first = (np.zeros(0, np.int8), none, none, none, np.zeros(0))
        columns: list[NDArray[Any]] = [
            np.concatenate(parts) for parts in zip(first, *self._parts, strict=True)
        ]
        for column in columns:
            column.flags.writeable = False
        return RangeLog(*columns)
