"""A Ceph map over time: which devices are out or down is said by the cluster's nodes."""

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.strategies.ceph.cluster import CephMap
from evenkeel.strategies.registry import Elapsed


def follow(elapsed: Elapsed) -> Cluster:
    """Return a cluster whose map is up to date.

    Parameters
    ----------
    elapsed : Elapsed
        What has become of it.

    Returns
    -------
    Cluster
        As it is: the methods take from its nodes which devices are down and which are out, weights
        do not change, and the pairs in force are those that the map was read with, so that
        ``ceph_upmap`` begins anew from them each time.

    Raises
    ------
    InvalidInput
        If it has no Ceph map.
    """
    faults = FaultList()
    if not isinstance(elapsed.now.native, CephMap):
        kind = type(elapsed.now.native).__name__
        faults.add("cluster.native", kind, "must be a Ceph map; strategies.ceph.cluster_of")
    faults.raise_if_any()
    return elapsed.now
