"""How large a cluster the exact method takes."""

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.strategies.options import Exact
from evenkeel.strategies.shared.size import size_of


def check_size(faults: FaultList, cluster: Cluster, options: Exact) -> None:
    """Note that a cluster is larger than its options allow."""
    size = size_of(cluster)
    if size > options.largest:
        message = f"replicas x nodes may be {options.largest:,}; see options.Exact"
        faults.add("cluster", size, message)
