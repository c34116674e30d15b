"""A Ceph map over time: which devices are out or down is said by the cluster's nodes."""

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.strategies.ceph.cluster import CephMap
from evenkeel.strategies.registry import SimulatedState


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose map is up to date."""
    faults = FaultList()
    if not isinstance(simulated.now.native, CephMap):
        kind = type(simulated.now.native).__name__
        faults.add("cluster.native", kind, "must be a Ceph map; strategies.ceph.cluster_of")
    faults.raise_if_any()
    return simulated.now
