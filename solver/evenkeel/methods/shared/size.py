"""Measure the size of a cluster, with limits for longer searches and for CP-SAT."""

from evenkeel.methods.options import Exact
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList

SMALL = 2_000  # replicas x nodes of a small cluster; answers of these are refined


def size_of(cluster: Cluster) -> int:
    """Return replicas times nodes."""
    return len(cluster.placement.node) * len(cluster.nodes)


def check_size(faults: FaultList, cluster: Cluster, options: Exact) -> None:
    """Note that a cluster is larger than the options of ``exact`` allow."""
    size = size_of(cluster)
    if size > options.largest:
        message = f"replicas x nodes may be {options.largest:,}; see options.Exact"
        faults.add("cluster", size, message)
