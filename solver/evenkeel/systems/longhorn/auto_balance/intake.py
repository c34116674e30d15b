"""Validate hosts, disks, volumes and replicas of Longhorn, and build a cluster of them.

A *node* of Evenkeel is a Longhorn disk, a Longhorn node is a *host*: a tier of the topology, below
the zone. A partition is a volume. Settings are rules. Data without a place in the cluster's arrays
travels in its ``native``, a ``System``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import distinct_rows
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.longhorn.auto_balance.settings import (
    DATA_LOCALITY,
    ROBUSTNESS,
    VOLUME_AUTO_BALANCE,
    VOLUME_SWITCH,
    Settings,
    spelled,
)

FORMAT = "longhorn"  # name of the system in ``cluster.native_format``
# codes of a volume's auto-balance setting, as in ``settings.VOLUME_AUTO_BALANCE``
IGNORED, DISABLED, LEAST_EFFORT, BEST_EFFORT = range(4)

# codes of a volume's anti-affinity settings, as in ``settings.VOLUME_SWITCH``
OWN_IGNORED, OWN_ENABLED, OWN_DISABLED = range(3)

UNKNOWN, HEALTHY, DEGRADED, FAULTED = range(4)  # codes of robustness, as in ``settings.ROBUSTNESS``


def part_of(amount: NDArray[np.int64], percent: int) -> NDArray[np.int64]:
    """Return so many percent of amounts, exactly, rounded down."""
    whole, rest = np.divmod(amount, 100)
    return np.asarray(whole * percent + rest * percent // 100, np.int64)


@dataclass(frozen=True, eq=False)
class Hosts:
    """Longhorn's nodes. H hosts, E engines."""

    names: Names  # h names
    zone: NDArray[np.int32]  # (H,) zone of each; hosts without a label share one
    zone_names: tuple[str, ...]  # what the codes mean; "" for hosts without a label
    # ready, schedulable: (H,) conditions that the node's status states
    ready: NDArray[np.bool_]
    schedulable: NDArray[np.bool_]
    # allow_scheduling, cordoned, deleting, evicting: (H,) what people have asked for
    allow_scheduling: NDArray[np.bool_]
    cordoned: NDArray[np.bool_]
    deleting: NDArray[np.bool_]
    evicting: NDArray[np.bool_]
    ready_since: NDArray[np.float64]  # (H,) when it became ready, in seconds; NaN if unknown
    engines: NDArray[np.bool_]  # (E, H) whether it can run replicas of each engine
    tags: Mapping[str, NDArray[np.bool_]]  # (H,) hosts that carry each tag

    def __len__(self) -> int:
        return len(self.zone)


@dataclass(frozen=True, eq=False)
class Disks:
    """Longhorn's disks, which are the cluster's nodes. N disks."""

    # n names, unique on their host; the cluster's nodes are called ``host/disk``
    names: tuple[str, ...]
    host: NDArray[np.int32]  # (N,) host of each
    # maximum, available, reserved: (N,) bytes in all, free now, and kept from Longhorn when the
    # disk was set up
    maximum: NDArray[np.int64]
    available: NDArray[np.int64]
    reserved: NDArray[np.int64]
    # (N,) whether the settings define the bytes kept from Longhorn
    reserved_by_setting: NDArray[np.bool_]
    # (N,) nominal sizes of all replicas on it, bytes; those of this system's replicas included
    scheduled: NDArray[np.int64]
    # ready, allow_scheduling, evicting: (N,) condition, and what people have asked for
    ready: NDArray[np.bool_]
    allow_scheduling: NDArray[np.bool_]
    evicting: NDArray[np.bool_]
    block: NDArray[np.bool_]  # (N,) whether it is a block device, for engines of that kind
    tags: Mapping[str, NDArray[np.bool_]]  # (N,) disks that carry each tag

    def __len__(self) -> int:
        return len(self.host)

    def kept(self, settings: Settings) -> NDArray[np.int64]:
        """Return what is kept from Longhorn."""
        share = part_of(self.maximum, settings.storage_reserved_percentage_for_default_disk)
        return np.where(self.reserved_by_setting, share, self.reserved)


@dataclass(frozen=True, eq=False)
class Volumes:
    """Longhorn's volumes, which are the cluster's partitions. P volumes."""

    names: Names  # p names
    replicas: NDArray[np.int32]  # (P,) replicas wanted
    # size, actual: (P,) nominal size, and bytes that a new replica has to copy
    size: NDArray[np.int64]
    actual: NDArray[np.int64]
    auto_balance: NDArray[np.uint8]  # (P,) IGNORED, DISABLED, LEAST_EFFORT or BEST_EFFORT
    # node_soft, zone_soft, disk_soft: (P,) the volume's own soft anti-affinity: OWN_IGNORED,
    # OWN_ENABLED or OWN_DISABLED
    node_soft: NDArray[np.uint8]
    zone_soft: NDArray[np.uint8]
    disk_soft: NDArray[np.uint8]
    locality: NDArray[np.uint8]  # (P,) index into ``settings.DATA_LOCALITY``
    attached: NDArray[np.int32]  # (P,) host that runs the engine; -1 for a detached volume
    robustness: NDArray[np.uint8]  # (P,) UNKNOWN, HEALTHY, DEGRADED or FAULTED
    # migrating, rebuilding, in_sync: (P,) under live migration; with a rebuild under way; engine as
    # the volume wants it
    migrating: NDArray[np.bool_]
    rebuilding: NDArray[np.bool_]
    in_sync: NDArray[np.bool_]
    engine: NDArray[np.int32]  # (P,) row of ``System.engine_names``
    # node_selector, disk_selector: (P,) index into ``System.selectors``
    node_selector: NDArray[np.int32]
    disk_selector: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True, eq=False)
class Replicas:
    """What is known of each replica beyond its disk, in the slots of the cluster's placement."""

    # K slots: of each volume one for every replica there is, failed ones included, and at least as
    # many as are wanted; one whose node is -1 has no meaning here
    names: tuple[str, ...]  # k names; "" for an empty slot
    healthy: NDArray[np.bool_]  # (K,) has all data, and serves
    failed: NDArray[np.bool_]  # (K,) has failed. A replica that is neither is being rebuilt.
    # (K,) belongs to the engine in use, and not to one that is being taken out of use
    active: NDArray[np.bool_]
    evicting: NDArray[np.bool_]  # (K,) to be moved away: itself, its disk or its host
    reusable: NDArray[np.bool_]  # (K,) failed, and its data can serve again
    clone_source: NDArray[np.bool_]  # (K,) source of a linked clone, which stays
    # healthy_at, failed_at: (K,) when it last became so, in seconds; NaN if unknown
    healthy_at: NDArray[np.float64]
    failed_at: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class System:
    """A Longhorn system: what travels as ``cluster.native``."""

    settings: Settings  # global settings as they are stored; options of the method override them
    hosts: Hosts  # h hosts
    disks: Disks  # n disks, the cluster's nodes in their order
    volumes: Volumes  # p volumes, the cluster's partitions in their order
    replicas: Replicas  # k slots, those of the cluster's placement
    engine_names: tuple[str, ...]  # e engines: image and data engine
    engine_block: NDArray[np.bool_]  # (E,) whether each wants block devices
    # distinct lists of tags that volumes ask for, each sorted; the empty one among them if used
    selectors: tuple[tuple[str, ...], ...]
    now: float  # time of the snapshot, in seconds


NO_ZONE = "(no zone)"  # label of the one zone that hosts without a label share
# tags of disks by which data engine they serve, where there are both
BLOCK, FILESYSTEM = "block-disk", "filesystem-disk"

# tag of hosts and disks that carry none, which a volume without selector may be bound to
UNTAGGED = "untagged"


def as_cluster(system: System, first: NDArray[np.int64], node: NDArray[np.int32]) -> Cluster:
    """Build the cluster of a system."""
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    on = disks.host
    alive = hosts.ready[on] & disks.ready
    open_hosts = hosts.schedulable & hosts.allow_scheduling & ~hosts.deleting
    if system.settings.disable_scheduling_on_cordoned_node:
        open_hosts = open_hosts & ~hosts.cordoned
    tags = _node_tags(system)
    rules, rule, met = _rules(system, tags)
    capacity, watermark = _capacity(system, first, node)
    zones = [hosts.zone_names[z] or NO_ZONE for z in hosts.zone[on].tolist()]
    first_disk = np.full(len(hosts) + 1, -1, np.int32)
    first_disk[on[::-1]] = np.arange(len(disks), dtype=np.int32)[::-1]
    return Cluster.from_arrays(
        capacity=capacity,
        watermark=watermark,
        load=np.stack([volumes.actual, volumes.size], axis=1).astype(np.float64),
        dimensions=("bytes", "nominal"),
        bytes="bytes",
        domains={"zone": zones, "host": [hosts.names[h] for h in on.tolist()]},
        node_names=[
            f"{hosts.names[h]}/{name}" for h, name in zip(on.tolist(), disks.names, strict=True)
        ],
        tags=tags,
        alive=alive,
        accepts=alive & open_hosts[on] & disks.allow_scheduling,
        keeps=~(hosts.evicting[on] | disks.evicting) & (alive | _may_return(system, node)),
        since=hosts.ready_since[on],
        partition_names=list(volumes.names),
        replicas=volumes.replicas,
        attached=first_disk[volumes.attached],
        placement=node,
        first=first,
        flags=_replica_flags(system),
        leader=np.full(len(volumes), -1, np.int16),
        rules=rules,
        rule=rule,
        forbidden=_forbidden(np.flatnonzero(~met[rule]), first, node, len(disks)),
        native=system,
        native_format=FORMAT,
    )


def _may_return(system: System, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the disks that are down and that Longhorn waits for, (N,); all if unknown."""
    replicas, disks = system.replicas, system.disks
    failed = (node >= 0) & replicas.failed & replicas.reusable
    latest = np.full(len(disks), -np.inf)
    np.maximum.at(latest, node[failed], np.nan_to_num(replicas.failed_at[failed], nan=np.inf))
    # a disk without replicas that can serve again is as long down as its host
    since = np.where(latest > -np.inf, latest, system.hosts.ready_since[disks.host])
    over = since + system.settings.replica_replenishment_wait_interval <= system.now
    return ~np.asarray(over)


def _forbidden(
    volumes: NDArray[np.int64], first: NDArray[np.int64], node: NDArray[np.int32], disks: int
) -> NDArray[np.int64]:
    """Return the disks that have none of some volumes, as pairs: they may get none, (F, 2)."""
    pairs = [np.zeros((0, 2), np.int64)]
    for v in volumes.tolist():
        free = np.setdiff1d(np.arange(disks), node[first[v] : first[v + 1]])
        pairs.append(np.column_stack([np.full(len(free), v), free]))
    return np.concatenate(pairs)


def soft(own: NDArray[np.uint8], everywhere: bool) -> NDArray[np.bool_]:
    """Tell for which volumes a kind of anti-affinity is soft."""
    return np.where(own == OWN_IGNORED, everywhere, own == OWN_ENABLED)


def promised(
    maximum: NDArray[np.int64], reserved: NDArray[np.int64], settings: Settings
) -> NDArray[np.int64]:
    """Return what may be promised on disks."""
    return part_of(maximum - reserved, settings.storage_over_provisioning_percentage)


def _capacity(
    system: System, first: NDArray[np.int64], node: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what this system's replicas may take up, (N, 2), and where it begins to cost."""
    disks, volumes = system.disks, system.volumes
    held = np.flatnonzero(node >= 0)
    owner = np.repeat(np.arange(len(volumes)), np.diff(first))[held]
    own = np.zeros((2, len(disks)), np.int64)
    np.add.at(own[0], node[held], volumes.actual[owner])
    np.add.at(own[1], node[held], volumes.size[owner])
    left = promised(disks.maximum, disks.kept(system.settings), system.settings)
    left -= disks.scheduled - own[1]
    free = disks.maximum // 100 * system.settings.storage_minimal_available_percentage
    there = np.maximum(own[0] + disks.available - free, 0)
    at_ease = np.stack([there, np.maximum(left, 0)], axis=1).astype(np.float64)
    # the minimum available binds new replicas: what is there already may stay
    capacity = np.stack([np.maximum(there, own[0]), at_ease[:, 1]], axis=1).astype(np.float64)
    return capacity, at_ease


def _replica_flags(system: System) -> NDArray[np.uint16]:
    replicas = system.replicas
    flags = replicas.healthy * Flag.HEALTHY + replicas.evicting * Flag.EVICTING
    return np.asarray(flags + replicas.failed * Flag.ERROR, np.uint16)


def _node_tags(system: System) -> Mapping[str, NDArray[np.bool_]]:
    """Name the tags of hosts ``host:tag`` and those of disks ``disk:tag``, wanted ones included."""
    on, found = system.disks.host, {}
    asked = {tag for tags in system.selectors for tag in tags}
    for kind, tags in (("host", system.hosts.tags), ("disk", system.disks.tags)):
        none = np.zeros(len(system.hosts) if kind == "host" else len(system.disks), np.bool_)
        untagged = ~none
        for tag in sorted(asked | set(tags)):
            carried = tags.get(tag, none)
            untagged &= ~carried
            found[f"{kind}:{tag}"] = carried[on] if kind == "host" else carried
        found[f"{kind}-{UNTAGGED}"] = untagged[on] if kind == "host" else untagged
    if _kinds_differ(system):
        found |= {BLOCK: system.disks.block, FILESYSTEM: ~system.disks.block}
    return found


def _kinds_differ(system: System) -> bool:
    """Tell whether some disks, or volumes, are of the second data engine, on block devices."""
    return bool(system.disks.block.any() or system.engine_block.any())


def _rules(
    system: System, tags: Mapping[str, NDArray[np.bool_]]
) -> tuple[list[Rule], NDArray[np.int32], NDArray[np.bool_]]:
    """Return the distinct rules of the volumes, each volume's, and which some disk could keep."""
    settings, volumes = system.settings, system.volumes
    columns = np.stack(
        [
            soft(volumes.zone_soft, settings.replica_zone_soft_anti_affinity),
            soft(volumes.node_soft, settings.replica_soft_anti_affinity),
            soft(volumes.disk_soft, settings.replica_disk_soft_anti_affinity),
            volumes.node_selector,
            volumes.disk_selector,
            system.engine_block[volumes.engine],
        ],
        axis=1,
    ).astype(np.int64)
    if len(columns) == 0:
        return [], np.zeros(0, np.int32), np.ones(0, np.bool_)
    distinct, rule = distinct_rows(columns)
    found = [_rule(system, tags, row) for row in distinct.tolist()]
    met = np.array([some for _, some in found], np.bool_)
    return [one for one, _ in found], rule.astype(np.int32), met


def _rule(
    system: System, tags: Mapping[str, NDArray[np.bool_]], row: list[int]
) -> tuple[Rule, bool]:
    """Say what binds a volume, and whether some disk has all the tags that it asks for."""
    zone, host, disk, by_host, by_disk, block = row
    settings = system.settings
    zones = np.unique(system.hosts.zone)
    spread: dict[str, Amount] = {
        level: (1, "soft") if is_soft else 1
        for level, is_soft in (("zone", zone), ("host", host), ("node", disk))
        if level != "zone" or not is_soft or len(zones) > 1  # the only zone has all of them anyway
    }
    require = []
    for kind, chosen, empty_may_all in (
        ("host", by_host, settings.allow_empty_node_selector_volume),
        ("disk", by_disk, settings.allow_empty_disk_selector_volume),
    ):
        asked = system.selectors[chosen]
        require += [f"{kind}:{tag}" for tag in asked]
        if not asked and not empty_may_all:
            require.append(f"{kind}-{UNTAGGED}")
    if _kinds_differ(system):
        require.append(BLOCK if block else FILESYSTEM)
    met = np.all([np.ones(len(system.disks), np.bool_), *(tags[tag] for tag in require)], axis=0)
    some = bool(met.any())
    return Rule(require=[f"+{tag}" for tag in require] if some else (), spread=spread), some


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
        State; by default it follows from its replicas.
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


MOST_BYTES = 2**53  # above every size, so that sums stay exact
KINDS = ("filesystem", "block")  # types of disks


def cluster_of(
    hosts: Sequence[Host],
    volumes: Sequence[Volume],
    *,
    settings: Settings | None = None,
    now: float = 0.0,
) -> Cluster:
    """Build the cluster of a Longhorn system.

    Parameters
    ----------
    hosts : sequence of Host
        With their disks, which become the nodes ``host/disk`` in this order.
    volumes : sequence of Volume
        With their replicas, which fill the slots of their rows in this order.
    settings : Settings, optional
        Global settings; Longhorn's defaults without them.
    now : float
        Time of the snapshot, in seconds, as all times in it.

    Returns
    -------
    Cluster
        With dimensions ``bytes`` (actual) and ``nominal``, levels ``zone`` and ``host``, and a
        ``System`` as its ``native``. No replica leads. Volumes' anti-affinity, selectors and
        settings are rules of it.

    Raises
    ------
    InvalidInput
        Naming every problem, with its path and value.

    Examples
    --------
    >>> from evenkeel.systems.longhorn.auto_balance.intake import Disk
    >>> hosts = [Host(name=n, disks=[Disk(name="d", maximum=100)]) for n in ("a", "b")]
    >>> volume = Volume(name="v", size=10, replicas=[Replica(name="r", host="a", disk="d")])
    >>> cluster_of(hosts, [volume])
    <Cluster: 2 nodes, 1 partition, 3 replicas wanted, 2 dimensions>
    """
    faults = FaultList()
    reader = _Reader(faults, hosts, volumes, Settings() if settings is None else settings)
    reader.check()
    faults.raise_if_any()
    return reader.cluster(now)


@dataclass
class _Reader:
    """Looks names up, and turns rows into columns."""

    faults: FaultList
    hosts: Sequence[Host]
    volumes: Sequence[Volume]
    settings: Settings
    host_at: dict[str, int] = field(default_factory=dict)
    disk_at: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for h, host in enumerate(self.hosts):
            self.host_at.setdefault(host.name, h)
            for disk in host.disks:
                self.disk_at.setdefault((host.name, disk.name), len(self.disk_at))

    def check(self) -> None:
        """Note everything wrong with the rows."""
        self._check_unique("hosts", [host.name for host in self.hosts])
        self._check_unique("volumes", [volume.name for volume in self.volumes])
        for h, host in enumerate(self.hosts):
            if not isinstance(host.zone, str):
                self.faults.add(f"hosts[{h}].zone", host.zone, 'must be a text, "" for none')
            self._check_unique(f"hosts[{h}].disks", [disk.name for disk in host.disks])
            for d, disk in enumerate(host.disks):
                path = f"hosts[{h}].disks[{d}]"
                for name in ("maximum", "available", "reserved", "scheduled"):
                    self._check_bytes(f"{path}.{name}", getattr(disk, name))
                if disk.type not in KINDS:
                    self.faults.add(f"{path}.type", disk.type, f"must be one of {KINDS}")
        seen: set[str] = set()
        for v, volume in enumerate(self.volumes):
            self._check_volume(f"volumes[{v}]", volume)
            for r, replica in enumerate(volume.replicas):
                path = f"volumes[{v}].replicas[{r}]"
                if (replica.host, replica.disk) not in self.disk_at:
                    where = f"{replica.host}/{replica.disk}"
                    self.faults.add(f"{path}.disk", where, "unknown disk")
                if replica.name in seen:
                    self.faults.add(f"{path}.name", replica.name, "is another replica's name")
                if replica.healthy and replica.failed:
                    self.faults.add(f"{path}.failed", True, "is marked healthy, too")
                seen.add(replica.name)

    def _check_volume(self, path: str, volume: Volume) -> None:
        for name, known in (
            ("replica_auto_balance", VOLUME_AUTO_BALANCE),
            ("replica_soft_anti_affinity", VOLUME_SWITCH),
            ("replica_zone_soft_anti_affinity", VOLUME_SWITCH),
            ("replica_disk_soft_anti_affinity", VOLUME_SWITCH),
            ("data_locality", DATA_LOCALITY),
            ("robustness", (None, *ROBUSTNESS)),
        ):
            value = getattr(volume, name)
            if spelled(value) not in known:
                self.faults.add(f"{path}.{name}", value, f"must be one of {known}")
        if volume.attached_to is not None and volume.attached_to not in self.host_at:
            self.faults.add(f"{path}.attached_to", volume.attached_to, "unknown host")
        self._check_bytes(f"{path}.size", volume.size)
        self._check_bytes(f"{path}.actual_size", volume.actual_size)
        if not _is_count(volume.number_of_replicas, 2**15):
            value = volume.number_of_replicas
            self.faults.add(f"{path}.number_of_replicas", value, "must be 0 to 32767")

    def _check_unique(self, path: str, names: Sequence[str]) -> None:
        Names.read(self.faults, path, names, len(names), "")

    def _check_bytes(self, path: str, value: int | None) -> None:
        if value is not None and not _is_count(value, MOST_BYTES):
            self.faults.add(path, value, "must be a whole number, 0 or more, and below 2^53")

    def cluster(self, now: float) -> Cluster:
        """Build the cluster of rows that are right."""
        zones = sorted({host.zone for host in self.hosts})
        engines = sorted({volume.engine for volume in self.volumes})
        lists = {tuple(sorted(v.node_selector)) for v in self.volumes}
        selectors = sorted(lists | {tuple(sorted(v.disk_selector)) for v in self.volumes})
        rows = [max(len(v.replicas), v.number_of_replicas) for v in self.volumes]
        first = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)]).astype(np.int64)
        node = np.full(int(first[-1]), -1, np.int32)
        for start, volume in zip(first, self.volumes, strict=False):
            for r, replica in enumerate(volume.replicas):
                node[start + r] = self.disk_at[replica.host, replica.disk]
        volume_rows = self._volumes(engines, selectors)
        system = System(
            settings=self.settings,
            hosts=self._hosts(zones, engines),
            disks=self._disks(first, node, volume_rows.size),
            volumes=volume_rows,
            replicas=self._replicas(first),
            engine_names=tuple(engines),
            engine_block=_bools({v.engine for v in self.volumes if v.block}, engines),
            selectors=tuple(selectors),
            now=now,
        )
        return as_cluster(system, first, node)

    def _hosts(self, zones: Sequence[str], engines: Sequence[str]) -> Hosts:
        hosts = self.hosts
        code = {zone: z for z, zone in enumerate(zones)}
        runs = [[h.engines is None or e in h.engines for h in hosts] for e in engines]
        return Hosts(
            names=Names([host.name for host in hosts], len(hosts), ""),
            zone=read_only(np.array([code[host.zone] for host in hosts], np.int32)),
            zone_names=tuple(zones),
            ready=_flags(h.ready for h in hosts),
            schedulable=_flags(h.schedulable for h in hosts),
            allow_scheduling=_flags(h.allow_scheduling for h in hosts),
            cordoned=_flags(h.cordoned for h in hosts),
            deleting=_flags(h.deleting for h in hosts),
            evicting=_flags(h.eviction_requested for h in hosts),
            ready_since=read_only(np.array([h.ready_since for h in hosts], np.float64)),
            engines=read_only(np.array(runs, np.bool_).reshape(len(engines), len(hosts))),
            tags=_tags([host.tags for host in hosts]),
        )

    def _disks(
        self, first: NDArray[np.int64], node: NDArray[np.int32], size: NDArray[np.int64]
    ) -> Disks:
        disks = [disk for host in self.hosts for disk in host.disks]
        owner = np.repeat(np.arange(len(size)), np.diff(first))
        listed = np.zeros(len(disks), np.int64)
        held = node >= 0
        np.add.at(listed, node[held], size[owner[held]])
        maximum = [d.maximum for d in disks]
        free = [d.maximum if d.available is None else d.available for d in disks]
        scheduled = [d.scheduled for d in disks]
        given = np.array([-1 if b is None else b for b in scheduled], np.int64)
        on = [h for h, host in enumerate(self.hosts) for _ in host.disks]
        return Disks(
            names=tuple(disk.name for disk in disks),
            host=read_only(np.array(on, np.int32)),
            maximum=read_only(np.array(maximum, np.int64)),
            available=read_only(np.array(free, np.int64)),
            reserved=read_only(np.array([d.reserved or 0 for d in disks], np.int64)),
            reserved_by_setting=_flags(d.reserved is None for d in disks),
            scheduled=read_only(np.where(given < 0, listed, given)),
            ready=_flags(d.ready for d in disks),
            allow_scheduling=_flags(d.allow_scheduling for d in disks),
            evicting=_flags(d.eviction_requested for d in disks),
            block=_flags(d.type == "block" for d in disks),
            tags=_tags([disk.tags for disk in disks]),
        )

    def _volumes(self, engines: Sequence[str], selectors: Sequence[tuple[str, ...]]) -> Volumes:
        volumes = self.volumes

        def codes(name: str, known: Sequence[str]) -> NDArray[np.uint8]:
            at = {value: i for i, value in enumerate(known)}
            listed = [at[spelled(getattr(volume, name))] for volume in volumes]
            return read_only(np.array(listed, np.uint8))

        def places(listed: Iterable[int]) -> NDArray[np.int32]:
            return read_only(np.array(list(listed), np.int32))

        def bytes_of(name: str) -> NDArray[np.int64]:
            return read_only(np.array([getattr(v, name) for v in volumes], np.int64))

        chosen = {tags: s for s, tags in enumerate(selectors)}
        image = {name: e for e, name in enumerate(engines)}
        robustness = [v.robustness or _robustness(v) for v in volumes]
        being_built = [
            v.rebuilding or any(not (r.healthy or r.failed) for r in v.replicas) for v in volumes
        ]
        return Volumes(
            names=Names([volume.name for volume in volumes], len(volumes), ""),
            replicas=places(v.number_of_replicas for v in volumes),
            size=bytes_of("size"),
            actual=bytes_of("actual_size"),
            auto_balance=codes("replica_auto_balance", VOLUME_AUTO_BALANCE),
            node_soft=codes("replica_soft_anti_affinity", VOLUME_SWITCH),
            zone_soft=codes("replica_zone_soft_anti_affinity", VOLUME_SWITCH),
            disk_soft=codes("replica_disk_soft_anti_affinity", VOLUME_SWITCH),
            locality=codes("data_locality", DATA_LOCALITY),
            attached=places(self.host_at.get(v.attached_to or "", -1) for v in volumes),
            robustness=read_only(np.array([ROBUSTNESS.index(r) for r in robustness], np.uint8)),
            migrating=_flags(v.migrating for v in volumes),
            rebuilding=_flags(being_built),
            in_sync=_flags(v.in_sync for v in volumes),
            engine=places(image[v.engine] for v in volumes),
            node_selector=places(chosen[tuple(sorted(v.node_selector))] for v in volumes),
            disk_selector=places(chosen[tuple(sorted(v.disk_selector))] for v in volumes),
        )

    def _replicas(self, first: NDArray[np.int64]) -> Replicas:
        slots: list[Replica | None] = [None] * int(first[-1])
        for start, volume in zip(first, self.volumes, strict=False):
            slots[start : start + len(volume.replicas)] = volume.replicas
        leaving = {
            (host.name, disk.name)
            for host in self.hosts
            for disk in host.disks
            if host.eviction_requested or disk.eviction_requested
        }

        def has(name: str) -> NDArray[np.bool_]:
            return _flags(r is not None and getattr(r, name) for r in slots)

        def time(name: str) -> NDArray[np.float64]:
            return read_only(np.array([nan if r is None else getattr(r, name) for r in slots]))

        return Replicas(
            names=tuple("" if r is None else r.name for r in slots),
            healthy=has("healthy"),
            failed=has("failed"),
            active=has("active"),
            evicting=_flags(
                r is not None and (r.eviction_requested or (r.host, r.disk) in leaving)
                for r in slots
            ),
            reusable=has("reusable"),
            clone_source=has("clone_source"),
            healthy_at=time("healthy_at"),
            failed_at=time("failed_at"),
        )


def _is_count(value: Any, below: int) -> bool:
    """Whether a value is a whole number, 0 or more: the arrays would cut the rest off silently."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(number and 0 <= value < below and value == int(value))


def _robustness(volume: Volume) -> str:
    healthy = sum(replica.healthy for replica in volume.replicas)
    if healthy >= volume.number_of_replicas:
        return "healthy"
    if healthy:
        return "degraded"
    return "faulted" if volume.replicas else "unknown"


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return read_only(np.array(list(values), np.bool_))


def _bools(wanted: set[str], names: Sequence[str]) -> NDArray[np.bool_]:
    return _flags(name in wanted for name in names)


def _tags(rows: Sequence[Sequence[str]]) -> Mapping[str, NDArray[np.bool_]]:
    names = sorted({tag for row in rows for tag in row})
    return {name: _flags(name in row for row in rows) for name in names}
