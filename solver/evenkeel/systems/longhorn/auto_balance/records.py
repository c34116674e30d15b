"""Hosts, disks, volumes and replicas as a person or a format lists them.

``evenkeel.systems.longhorn.auto_balance.intake.cluster_of`` makes a cluster of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A disk of a host.

    Parameters
    ----------
    name : str
        Unique on its host.
    maximum : int
        Bytes in all.
    available : int, optional
        Bytes free now; all by default.
    reserved : int, optional
        Bytes kept from Longhorn; None for the share that the settings give to default disks.
    scheduled : int, optional
        Nominal sizes of all replicas on it; by default of those that are listed.
    ready, allow_scheduling, eviction_requested : bool
        Condition, and what people have asked for.
    type : {"filesystem", "block"}
        What it is.
    tags : sequence of str
        Its tags.

    Examples
    --------
    >>> Disk(name="d0", maximum=100, reserved=10, tags=["ssd"]).reserved
    10
    """

    name: str
    maximum: int
    available: int | None = None
    reserved: int | None = 0
    scheduled: int | None = None
    ready: bool = True
    allow_scheduling: bool = True
    eviction_requested: bool = False
    type: str = "filesystem"
    tags: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Host:
    """A Longhorn node.

    Parameters
    ----------
    name : str
        Its name.
    disks : sequence of Disk
        Its disks.
    zone : str
        Its zone; "" for the one zone of all hosts without a label.
    ready, schedulable : bool
        Conditions that its status states.
    allow_scheduling, cordoned, deleting, eviction_requested : bool
        What people have asked for.
    ready_since : float
        When it became ready, in seconds; NaN if unknown.
    engines : sequence of str, optional
        Engines whose replicas it can run; all by default.
    tags : sequence of str
        Its tags.

    Examples
    --------
    >>> host = Host(name="h0", disks=[Disk(name="d0", maximum=100)], zone="a")
    >>> host.zone, host.disks[0].name
    ('a', 'd0')
    """

    name: str
    disks: Sequence[Disk]
    zone: str = ""
    ready: bool = True
    schedulable: bool = True
    allow_scheduling: bool = True
    cordoned: bool = False
    deleting: bool = False
    eviction_requested: bool = False
    ready_since: float = nan
    engines: Sequence[str] | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A replica of a volume.

    Parameters
    ----------
    name : str
        Unique in the system.
    host, disk : str
        Where it is.
    healthy : bool
        Has all data, and serves.
    failed : bool
        Has failed. One that is neither healthy nor failed is being rebuilt.
    active : bool
        Belongs to the engine in use.
    eviction_requested : bool
        To be moved away; a request for its disk or host has the same effect.
    reusable : bool
        Failed, and its data can serve again.
    clone_source : bool
        Source of a linked clone.
    healthy_at, failed_at : float
        When it last became so, in seconds; NaN if unknown.

    Examples
    --------
    >>> Replica(name="r0", host="h0", disk="d0", failed=True, healthy=False).failed
    True
    """

    name: str
    host: str
    disk: str
    healthy: bool = True
    failed: bool = False
    active: bool = True
    eviction_requested: bool = False
    reusable: bool = False
    clone_source: bool = False
    healthy_at: float = nan
    failed_at: float = nan


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume.

    Parameters
    ----------
    name : str
        Its name.
    size : int
        Nominal bytes.
    replicas : sequence of Replica
        Those there are.
    number_of_replicas : int
        Those wanted.
    actual_size : int
        Bytes that a new replica has to copy.
    replica_auto_balance : {"ignored", "disabled", "least-effort", "best-effort"}
        Its own setting; hyphens and underscores are both read.
    replica_soft_anti_affinity : {"ignored", "enabled", "disabled"}
        Its own setting for hosts.
    replica_zone_soft_anti_affinity : {"ignored", "enabled", "disabled"}
        Its own setting for zones.
    replica_disk_soft_anti_affinity : {"ignored", "enabled", "disabled"}
        Its own setting for disks.
    data_locality : {"disabled", "best-effort", "strict-local"}
        Whether a replica should be where the engine runs.
    attached_to : str, optional
        Host that runs the engine; None for a detached volume.
    robustness : {"unknown", "healthy", "degraded", "faulted"}, optional
        State; by default what its replicas say.
    migrating, rebuilding : bool
        Under live migration; with a rebuild under way, as it also has by a replica being rebuilt.
    in_sync : bool
        Whether the engine is as the volume wants it.
    engine : str
        Engine image and data engine, by any name.
    block : bool
        Whether that engine wants block devices.
    node_selector, disk_selector : sequence of str
        Tags that its hosts and disks must carry.

    Examples
    --------
    >>> volume = Volume(name="v", size=10, replicas=[Replica(name="r0", host="h0", disk="d0")])
    >>> volume.number_of_replicas - len(volume.replicas)
    2
    """

    name: str
    size: int
    replicas: Sequence[Replica] = ()
    number_of_replicas: int = 3
    actual_size: int = 0
    replica_auto_balance: str = "ignored"
    replica_soft_anti_affinity: str = "ignored"
    replica_zone_soft_anti_affinity: str = "ignored"
    replica_disk_soft_anti_affinity: str = "ignored"
    data_locality: str = "disabled"
    attached_to: str | None = None
    robustness: str | None = None
    migrating: bool = False
    rebuilding: bool = False
    in_sync: bool = True
    engine: str = ""
    block: bool = False
    node_selector: Sequence[str] = ()
    disk_selector: Sequence[str] = ()
