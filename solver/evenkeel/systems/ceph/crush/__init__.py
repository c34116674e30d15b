"""CRUSH and Ceph's balancers, and the conversion of a Ceph map to a cluster."""

from evenkeel.systems.ceph.crush.cluster import CephMap, cluster_of

__all__ = ["CephMap", "cluster_of"]
