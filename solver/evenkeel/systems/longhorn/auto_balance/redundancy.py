"""Warnings of volumes with too few replicas, or with healthy replicas that share a host.

References
----------
Longhorn, enhancement "Automatic Replica Rebalance", story 1.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.longhorn.auto_balance.compile import system_of, waiting_until
from evenkeel.systems.longhorn.auto_balance.settings import Settings

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


MOST_NAMED = 5
MAY_RETURN = "a failed replica may return"
"""Why nothing is built yet where Longhorn waits."""


def waiting_notice(cluster: Cluster, settings: Settings) -> str:
    """Return a note of the volumes that wait for failed replicas; "" where none does."""
    system = system_of(cluster)
    until = waiting_until(system, settings)
    owner = cluster.placement.owner
    if len(until) != len(owner):
        return ""  # the slots are of another moment than the resources
    volumes = np.unique(owner[~np.isnan(until)]).tolist()
    if not volumes:
        return ""
    names = cluster.partitions.names
    return (
        f"{counted(len(volumes), 'volume')} with failed replicas that may return: Longhorn builds "
        f"others from {_time(float(np.nanmin(until)))} on "
        f"(replica-replenishment-wait-interval, {settings.replica_replenishment_wait_interval} s), "
        f"and it is taken to be {_time(system.now)}; --now sets the time: "
        f"{some_of(volumes, names.__getitem__, MOST_NAMED)}"
    )


def stay_degraded(
    cluster: Cluster, settings: Settings, node: NDArray[np.int32], why: Callable[[int], str]
) -> tuple[str, ...]:
    """Warn of volumes that have fewer serving replicas than are wanted, by the reason, or more."""
    system, was = system_of(cluster), cluster.placement
    serves = (node >= 0) & ~(system.replicas.failed & (node == was.node))
    count = np.bincount(was.owner[serves], minlength=len(system.volumes))
    by_reason: dict[str, list[int]] = {}
    for v in np.flatnonzero(count < system.volumes.replicas).tolist():
        by_reason.setdefault(why(v), []).append(v)
    names = cluster.partitions.names
    more = np.flatnonzero(count > system.volumes.replicas).tolist()
    surplus = (
        f"{counted(len(more), 'volume')} with more replicas than wanted, which Longhorn keeps "
        f"while auto-balance is disabled: {some_of(more, names.__getitem__, MOST_NAMED)}"
    )
    waiting = waiting_notice(cluster, settings) if MAY_RETURN in by_reason else ""
    return tuple(
        f"{counted(len(volumes), 'volume')} short of replicas, since {reason}: "
        f"{some_of(volumes, names.__getitem__, MOST_NAMED)}"
        for reason, volumes in by_reason.items()
        if reason != MAY_RETURN
    ) + tuple(filter(None, [waiting, surplus if more else ""]))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
