"""How large a cluster is for an exact answer."""

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.strategies.options import Exact


def size_of(cluster: Cluster) -> int:
    """Return what the effort grows with.

    Parameters
    ----------
    cluster : Cluster
        The cluster.

    Returns
    -------
    int
        Replicas times nodes.
    """
    return len(cluster.placement.node) * len(cluster.nodes)


def check_size(faults: FaultList, cluster: Cluster, options: Exact) -> None:
    """Note that a cluster is larger than its options allow.

    Parameters
    ----------
    faults : FaultList
        Where it is noted.
    cluster : Cluster
        The cluster.
    options : Exact
        With the largest size.
    """
    size = size_of(cluster)
    if size > options.largest:
        message = f"replicas x nodes may be {options.largest:,}; see options.Exact"
        faults.add("cluster", size, message)
