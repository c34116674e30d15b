"""Which replicas count in a plan for all volumes, which may move, and how many are wanted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.compile import waiting_until
from evenkeel.systems.longhorn.auto_balance.settings import AUTO_BALANCE, DATA_LOCALITY, Settings
from evenkeel.systems.longhorn.auto_balance.system import (
    DEGRADED,
    DISABLED,
    HEALTHY,
    IGNORED,
    System,
)


@dataclass(frozen=True, eq=False)
class Standings:
    """What of a system a plan may touch. P volumes, K slots.

    Parameters
    ----------
    effort : ndarray of uint8, shape (P,)
        DISABLED, LEAST_EFFORT or BEST_EFFORT: the volume's own setting, or else the global one.
    balanced : ndarray of bool, shape (P,)
        Volumes whose replicas may move for the sake of balance.
    repaired : ndarray of bool, shape (P,)
        Volumes that may be given replicas at all: attached, with a healthy replica, at rest.
    counts : ndarray of bool, shape (K,)
        Replicas that count: on a disk, active and not failed, or failed a moment ago and likely to
        return.
    leaving : ndarray of bool, shape (K,)
        Replicas under eviction that may be moved.
    pinned : ndarray of bool, shape (K,)
        Replicas that stay where they are.
    wanted : ndarray of int32, shape (P,)
        Replicas that each volume should have; no more than it has where it may not be given any.
    """

    effort: NDArray[np.uint8]
    balanced: NDArray[np.bool_]
    repaired: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    leaving: NDArray[np.bool_]
    pinned: NDArray[np.bool_]
    wanted: NDArray[np.int32]


def standings(cluster: Cluster, system: System, settings: Settings) -> Standings:
    """Sort out what a plan may touch, by the conditions under which Longhorn itself acts.

    References
    ----------
    longhorn-manager, ``controller/volume_controller.go``: ``replenishReplicas``,
    ``getReplicaCountForAutoBalance...``, ``getHealthyAndActiveReplicaCount``.
    """
    volumes, replicas, placement = system.volumes, system.replicas, cluster.placement
    owner, there = placement.owner, placement.node >= 0
    effort = efforts(system, settings)
    at_rest = (volumes.attached >= 0) & ~volumes.migrating & volumes.in_sync & ~volumes.rebuilding
    if settings.concurrent_replica_rebuild_per_node_limit == 0:
        at_rest = np.zeros_like(at_rest)
    whole = at_rest & (volumes.robustness == HEALTHY)
    repaired = whole | (at_rest & (volumes.robustness == DEGRADED))
    returning = ~np.isnan(waiting_until(system, settings))
    running = there & replicas.active & ~replicas.failed
    serving = np.bincount(owner[running], minlength=len(volumes))
    returning &= there & replicas.active & (serving < volumes.replicas)[owner]
    counts = running | returning
    held = np.bincount(owner[counts], minlength=len(volumes)).astype(np.int32)
    leaving = running & replicas.evicting & repaired[owner] & ~replicas.clone_source
    balanced = whole & (effort != DISABLED)
    pinned = counts & ~leaving & (~balanced[owner] | replicas.clone_source | returning)
    pinned |= counts & _local(cluster, system) & ~leaving
    # cleaning up is part of balancing, filling up is not
    wanted = np.where(repaired, volumes.replicas, held)
    wanted = np.where(repaired & ~balanced, np.maximum(wanted, held), wanted)
    return Standings(
        effort, balanced, repaired, counts, leaving, pinned, wanted.astype(np.int32)
    )  # fmt: skip


def efforts(system: System, settings: Settings) -> NDArray[np.uint8]:
    """Return how far each volume is balanced."""
    everywhere = np.uint8(DISABLED + AUTO_BALANCE.index(settings.replica_auto_balance))
    own = system.volumes.auto_balance
    return np.where(own == IGNORED, everywhere, own)


def _local(cluster: Cluster, system: System) -> NDArray[np.bool_]:
    """Return the replicas that data locality keeps where the engine runs, (K,) bool."""
    placement, volumes = cluster.placement, system.volumes
    host = np.append(system.disks.host, -1)[placement.node]
    owner = placement.owner
    wished = volumes.locality != DATA_LOCALITY.index("disabled")
    near = wished[owner] & (host >= 0) & (host == volumes.attached[owner])
    near &= system.replicas.healthy
    found = np.flatnonzero(near)
    _, first = np.unique(owner[found], return_index=True)
    kept = np.zeros(len(near), np.bool_)
    kept[found[first]] = True
    return kept
