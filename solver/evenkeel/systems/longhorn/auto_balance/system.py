"""A Longhorn system as arrays: hosts, disks, volumes and replicas, as far as placing needs them.

A *node* of Evenkeel is a Longhorn disk, a Longhorn node is a *host*: a tier of the topology, below
the zone. A partition is a volume. Data without a place in the cluster's arrays travels in its
``native``, a ``System``; ``evenkeel.systems.longhorn.auto_balance.intake`` builds both.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names
from evenkeel.systems.longhorn.auto_balance.settings import Settings

FORMAT = "longhorn"
"""Name of the system in ``cluster.native_format``."""

IGNORED, DISABLED, LEAST_EFFORT, BEST_EFFORT = range(4)
"""Codes of a volume's auto-balance setting, as in ``settings.VOLUME_AUTO_BALANCE``."""

OWN_IGNORED, OWN_ENABLED, OWN_DISABLED = range(3)
"""Codes of a volume's anti-affinity settings, as in ``settings.VOLUME_SWITCH``."""

UNKNOWN, HEALTHY, DEGRADED, FAULTED = range(4)
"""Codes of robustness, as in ``settings.ROBUSTNESS``."""


@dataclass(frozen=True, eq=False)
class Hosts:
    """Longhorn's nodes. H hosts, E engines.

    Parameters
    ----------
    names : Names
        H names.
    zone : ndarray of int32, shape (H,)
        Zone of each; hosts without a label share one.
    zone_names : tuple of str
        What the codes mean; "" for hosts without a label.
    ready, schedulable : ndarray of bool, shape (H,)
        Conditions that the node's status states.
    allow_scheduling, cordoned, deleting, evicting : ndarray of bool, shape (H,)
        What people have asked for.
    ready_since : ndarray of float64, shape (H,)
        When it became ready, in seconds; NaN if unknown.
    engines : ndarray of bool, shape (E, H)
        Whether it can run replicas of each engine.
    tags : mapping of str to ndarray of bool, shape (H,)
        Hosts that carry each tag.
    """

    names: Names
    zone: NDArray[np.int32]
    zone_names: tuple[str, ...]
    ready: NDArray[np.bool_]
    schedulable: NDArray[np.bool_]
    allow_scheduling: NDArray[np.bool_]
    cordoned: NDArray[np.bool_]
    deleting: NDArray[np.bool_]
    evicting: NDArray[np.bool_]
    ready_since: NDArray[np.float64]
    engines: NDArray[np.bool_]
    tags: Mapping[str, NDArray[np.bool_]]

    def __len__(self) -> int:
        return len(self.zone)


@dataclass(frozen=True, eq=False)
class Disks:
    """Longhorn's disks, which are the cluster's nodes. N disks.

    Parameters
    ----------
    names : tuple of str
        N names, unique on their host; the cluster's nodes are called ``host/disk``.
    host : ndarray of int32, shape (N,)
        Host of each.
    maximum, available, reserved : ndarray of int64, shape (N,)
        Bytes in all, free now, and kept from Longhorn when the disk was set up.
    reserved_by_setting : ndarray of bool, shape (N,)
        Whether the settings define the bytes kept from Longhorn.
    scheduled : ndarray of int64, shape (N,)
        Nominal sizes of all replicas on it, bytes; those of this system's replicas included.
    ready, allow_scheduling, evicting : ndarray of bool, shape (N,)
        Condition, and what people have asked for.
    block : ndarray of bool, shape (N,)
        Whether it is a block device, for engines of that kind.
    tags : mapping of str to ndarray of bool, shape (N,)
        Disks that carry each tag.
    """

    names: tuple[str, ...]
    host: NDArray[np.int32]
    maximum: NDArray[np.int64]
    available: NDArray[np.int64]
    reserved: NDArray[np.int64]
    reserved_by_setting: NDArray[np.bool_]
    scheduled: NDArray[np.int64]
    ready: NDArray[np.bool_]
    allow_scheduling: NDArray[np.bool_]
    evicting: NDArray[np.bool_]
    block: NDArray[np.bool_]
    tags: Mapping[str, NDArray[np.bool_]]

    def __len__(self) -> int:
        return len(self.host)

    def kept(self, settings: Settings) -> NDArray[np.int64]:
        """Return what is kept from Longhorn."""
        whole, rest = np.divmod(self.maximum, 100)
        percent = settings.storage_reserved_percentage_for_default_disk
        share = whole * percent + rest * percent // 100
        return np.where(self.reserved_by_setting, share, self.reserved)


@dataclass(frozen=True, eq=False)
class Volumes:
    """Longhorn's volumes, which are the cluster's partitions. P volumes.

    Parameters
    ----------
    names : Names
        P names.
    replicas : ndarray of int32, shape (P,)
        Replicas wanted.
    size, actual : ndarray of int64, shape (P,)
        Nominal size, and bytes that a new replica has to copy.
    auto_balance : ndarray of uint8, shape (P,)
        IGNORED, DISABLED, LEAST_EFFORT or BEST_EFFORT.
    node_soft, zone_soft, disk_soft : ndarray of uint8, shape (P,)
        The volume's own soft anti-affinity: OWN_IGNORED, OWN_ENABLED or OWN_DISABLED.
    locality : ndarray of uint8, shape (P,)
        Index into ``settings.DATA_LOCALITY``.
    attached : ndarray of int32, shape (P,)
        Host that runs the engine; -1 for a detached volume.
    robustness : ndarray of uint8, shape (P,)
        UNKNOWN, HEALTHY, DEGRADED or FAULTED.
    migrating, rebuilding, in_sync : ndarray of bool, shape (P,)
        Under live migration; with a rebuild under way; engine as the volume wants it.
    engine : ndarray of int32, shape (P,)
        Row of ``System.engine_names``.
    node_selector, disk_selector : ndarray of int32, shape (P,)
        Index into ``System.selectors``.
    """

    names: Names
    replicas: NDArray[np.int32]
    size: NDArray[np.int64]
    actual: NDArray[np.int64]
    auto_balance: NDArray[np.uint8]
    node_soft: NDArray[np.uint8]
    zone_soft: NDArray[np.uint8]
    disk_soft: NDArray[np.uint8]
    locality: NDArray[np.uint8]
    attached: NDArray[np.int32]
    robustness: NDArray[np.uint8]
    migrating: NDArray[np.bool_]
    rebuilding: NDArray[np.bool_]
    in_sync: NDArray[np.bool_]
    engine: NDArray[np.int32]
    node_selector: NDArray[np.int32]
    disk_selector: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True, eq=False)
class Replicas:
    """What is known of each replica beyond its disk, in the slots of the cluster's placement.

    K slots. A volume's row has a slot for every replica there is, failed ones included, and at
    least as many as are wanted; a slot whose node is -1 holds none, and has no meaning here.

    Parameters
    ----------
    names : tuple of str
        K names; "" for an empty slot.
    healthy : ndarray of bool, shape (K,)
        Has all data, and serves.
    failed : ndarray of bool, shape (K,)
        Has failed. A replica that is neither is being rebuilt.
    active : ndarray of bool, shape (K,)
        Belongs to the engine in use, and not to one that is being taken out of use.
    evicting : ndarray of bool, shape (K,)
        To be moved away: itself, its disk or its host.
    reusable : ndarray of bool, shape (K,)
        Failed, and its data can serve again.
    clone_source : ndarray of bool, shape (K,)
        Source of a linked clone, which stays.
    healthy_at, failed_at : ndarray of float64, shape (K,)
        When it last became so, in seconds; NaN if unknown.
    """

    names: tuple[str, ...]
    healthy: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    active: NDArray[np.bool_]
    evicting: NDArray[np.bool_]
    reusable: NDArray[np.bool_]
    clone_source: NDArray[np.bool_]
    healthy_at: NDArray[np.float64]
    failed_at: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class System:
    """A Longhorn system: what travels as ``cluster.native``.

    Parameters
    ----------
    settings : Settings
        Global settings as they are stored; options of the method override them.
    hosts : Hosts
        H hosts.
    disks : Disks
        N disks, the cluster's nodes in their order.
    volumes : Volumes
        P volumes, the cluster's partitions in their order.
    replicas : Replicas
        K slots, those of the cluster's placement.
    engine_names : tuple of str
        E engines: image and data engine.
    engine_block : ndarray of bool, shape (E,)
        Whether each wants block devices.
    selectors : tuple of tuple of str
        Distinct lists of tags that volumes ask for, each sorted; the empty one among them if used.
    now : float
        Time of the snapshot, in seconds.
    """

    settings: Settings
    hosts: Hosts
    disks: Disks
    volumes: Volumes
    replicas: Replicas
    engine_names: tuple[str, ...]
    engine_block: NDArray[np.bool_]
    selectors: tuple[tuple[str, ...], ...]
    now: float
