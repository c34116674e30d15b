"""A Ceph map over time: which devices are out or down is said by the cluster's nodes."""

from evenkeel.methods.contract import SimulatedState
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.ceph.crush.cluster import CephMap


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose map is up to date."""
    faults = FaultList()
    if not isinstance(simulated.now.native, CephMap):
        kind = type(simulated.now.native).__name__
        faults.add("cluster.native", kind, "must be a Ceph map; systems.ceph.crush.cluster_of")
    faults.raise_if_any()
    return simulated.now
