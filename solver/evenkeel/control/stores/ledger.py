"""The stored baseline and best possible assignment, in the numbers of the current cluster."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.metrics import Metrics
from evenkeel.control.names import same_names
from evenkeel.control.operations import successors
from evenkeel.control.stores.binding import Bound, bind, with_vanished
from evenkeel.control.stores.store import Kind, Record, Stale, Store
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import read_only


@dataclass(frozen=True, eq=False)
class _Bind:
    """A record that has been bound, and to what."""

    record: Record | None
    cluster: Cluster
    successors: NDArray[np.int32] | None
    bound: Bound


class Ledger:
    """Reads and writes a store for one pipeline; callers hold the pipeline's lock."""

    def __init__(self, store: Store, metrics: Metrics, elapsed: Callable[[], float]) -> None:
        self._store, self._metrics, self._elapsed = store, metrics, elapsed
        self._records: dict[Kind, Record | None] = {}
        self._binds: dict[Kind, _Bind] = {}
        for kind in Kind:
            self._read(kind)

    def record(self, kind: Kind) -> Record | None:
        """Return the newest record."""
        return self._records[kind]

    def version(self, kind: Kind) -> int:
        """Return the newest version."""
        record = self._records[kind]
        return record.version if record else 0

    def bound(self, kind: Kind, cluster: Cluster) -> Bound:
        """Return the newest record in the numbers of a cluster."""
        record, last = self._records[kind], self._binds.get(kind)
        swapped = successors(cluster.nodes)
        if last is not None and last.record is record and _alike(last, cluster, swapped):
            return last.bound
        bound = bind(record, cluster, adopt=kind is Kind.BEST_POSSIBLE)
        self._binds[kind] = _Bind(record, cluster, swapped, bound)
        return bound

    def as_record(
        self,
        kind: Kind,
        cluster: Cluster,
        assignment: Assignment,
        known: NDArray[np.bool_],
        digests: dict[str, str] | None = None,
    ) -> Record:
        """Make the record that would come next."""
        return Record(
            version=self.version(kind) + 1,
            assignment=assignment,
            nodes=cluster.nodes.names,
            partitions=cluster.partitions.names,
            known=read_only(known | (np.diff(assignment.first) > 0)),
            digests=digests or {},
        )

    def swapped(self, kind: Kind, cluster: Cluster) -> Record | None:
        """Make the record that names who stays after a swap instead of who left.

        Once it is kept, the node that left may be missing from a snapshot.
        """
        record, successor = self._records[kind], successors(cluster.nodes)
        if record is None or successor is None:
            return None
        names, held = cluster.nodes.names, np.unique(record.assignment.node).tolist()
        left = {names[i] for i in np.flatnonzero(successor != np.arange(len(successor))).tolist()}
        if not any(record.nodes[i] in left for i in held):
            return None
        bound = self.bound(kind, cluster)
        wider = with_vanished(cluster, bound.vanished)
        return self.as_record(kind, wider, bound.assignment, bound.known, dict(record.digests))

    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record."""
        began = self._elapsed()
        try:
            self._store.write(kind, record)
        except Stale:
            self._read(kind)
            raise
        self._metrics.set_gauge("state_write_latency_gauge", self._elapsed() - began)
        self._records[kind] = record

    def _read(self, kind: Kind) -> None:
        began = self._elapsed()
        self._records[kind] = self._store.read(kind)
        self._metrics.set_gauge("state_read_latency_gauge", self._elapsed() - began)


def _alike(last: _Bind, cluster: Cluster, swapped: NDArray[np.int32] | None) -> bool:
    """Whether binding to a cluster would give what it gave the last time."""
    was = last.cluster
    if not (
        same_names(was.nodes.names, cluster.nodes.names)
        and same_names(was.partitions.names, cluster.partitions.names)
    ):
        return False
    if swapped is None or last.successors is None:
        if swapped is not last.successors:
            return False
    elif not np.array_equal(swapped, last.successors):
        return False
    # where the cluster has them counts only for partitions that no record knows
    return was.placement is cluster.placement or bool(
        last.record is not None and last.bound.known.all()
    )
