"""How large a cluster is, for what only small ones are given."""

from evenkeel.model.cluster import Cluster


def size_of(cluster: Cluster) -> int:
    """Return replicas times nodes."""
    return len(cluster.placement.node) * len(cluster.nodes)
