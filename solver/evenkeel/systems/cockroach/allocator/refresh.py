"""What CockroachDB knows beyond the model, over time: states of stores, and ranges that split."""

from dataclasses import replace

import numpy as np

from evenkeel.methods.contract import SimulatedState
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.cockroach.allocator.compile import CockroachMap, status_of


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose `CockroachMap` is up to date."""
    native, began, now = simulated.now.native, simulated.began, simulated.now
    if not isinstance(native, CockroachMap):
        return now
    count, known = len(now.nodes), len(native.status)
    faults = FaultList()
    if count > known and np.ndim(native.latency) > 0:
        faults.add(
            "cluster.native.latency", np.shape(native.latency),
            "covers no later hosts: give one latency for all, or all hosts from the start",
        )  # fmt: skip
    faults.raise_if_any()
    grown = native.grown(count)
    status = status_of(now)
    same = status[:known] == status_of(began)[:known]
    status[:known] = np.where(same, native.status, status[:known])
    requests = [native.requests[p] for p in simulated.origin.tolist()] if native.requests else ()
    tables = native.tables
    if tables is not None:
        origin = enumerate(simulated.origin.tolist())
        starts = {p: tables.starts[was] for p, was in origin if was in tables.starts}
        tables = replace(tables, of=tables.of[simulated.origin], starts=starts)
    return replace(
        now,
        native=replace(
            grown,
            config=native.config[simulated.origin],
            status=status,
            requests=requests,
            tables=tables,
        ),
    )
