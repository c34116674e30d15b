"""Ceph's strategies, and the way from a Ceph map to a cluster."""

from evenkeel.systems.ceph.crush.cluster import CephMap, cluster_of

__all__ = ["CephMap", "cluster_of"]
