"""The warning that Longhorn's user interface gives where replicas share a host.

References
----------
Longhorn, enhancement "Automatic Replica Rebalance", story 1.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.compile import system_of

LIMITED = (
    "Limited node redundancy: at least one healthy replica is running at the same node as another"
)
SHOWN = 5


def sharing_a_host(
    cluster: Cluster, node: NDArray[np.int32], healthy: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Find the volumes of which two healthy replicas stand on one host."""
    at = np.flatnonzero((node >= 0) & healthy)
    hosts = len(system_of(cluster).hosts)
    owner = cluster.placement.owner[at].astype(np.int64)
    both = np.sort(owner * max(hosts, 1) + system_of(cluster).disks.host[node[at]])
    return np.unique(both[1:][both[1:] == both[:-1]] // max(hosts, 1))


def limited_redundancy(
    cluster: Cluster, node: NDArray[np.int32], healthy: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Warn of volumes of which two healthy replicas stand on one host."""
    volumes = sharing_a_host(cluster, node, healthy)
    if len(volumes) == 0:
        return ()
    names = [cluster.partitions.names[v] for v in volumes[:SHOWN].tolist()]
    more = ", ..." if len(volumes) > SHOWN else ""
    count = "1 volume" if len(volumes) == 1 else f"{len(volumes):,} volumes"
    return (LIMITED, f"{count} with limited node redundancy: {', '.join(names)}{more}")
