"""The Longhorn format: read and write its resources, and write the commands of plans.

Longhorn has no operation that moves a replica, so a plan is a list of patches that a person reviews
and applies with kubectl. They repeat the steps of Longhorn's controllers by hand: a replica is
created on its disk, Longhorn builds it, and when it is healthy the old one is deleted. Meanwhile
the balancing and the data locality of the volume are suspended, so that Longhorn does not itself
choose one of its N + 1 replicas for removal. N never changes: the volume has N healthy replicas, or
as many as it had, at every step. Replicas are found by their labels, volume and disk, so that a
call may be repeated, and a rollback finds the replicas that the plan has built.

References
----------
longhorn-manager, ``controller/volume_controller.go`` (``createReplica``, ``replenishReplicas``,
``cleanupExtraHealthyReplicas``), ``scheduler/replica_scheduler.go`` (``scheduleReplicaToDisk``).
"""

import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count, groupby
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.stranded import with_left_alone, with_stranded
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.folders.carrier import (
    Answer,
    Carrier,
    Change,
    Orders,
    Wave,
    all_nodes,
    anybody,
    equals,
    stem,
)
from evenkeel.systems.folders.form import Command, Hold, Setting, literal
from evenkeel.systems.json_text import decode_json, encode_indented
from evenkeel.systems.longhorn.auto_balance.compile import rebuilt_notice, waiting_notice
from evenkeel.systems.longhorn.auto_balance.intake import (
    DEGRADED,
    FAULTED,
    Disk,
    Host,
    Replica,
    System,
    Volume,
    cluster_of,
)

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
from evenkeel.systems.longhorn.auto_balance.settings import DATA_LOCALITY, Settings
from evenkeel.systems.longhorn.objects import (
    API_VERSION,
    MEMBERS,
    PRINT,
    Condition,
    DiskSpec,
    DiskStatus,
    Found,
    NodeResource,
    Objects,
    Raw,
    ReplicaResource,
    ReplicaSpec,
    VolumeResource,
    gather,
    hint,
    recognises,
)
from evenkeel.systems.notes import MOST_NAMED
from evenkeel.systems.payload import check_names
from evenkeel.systems.registry import Format

STRICT_LOCAL = "strict-local"  # a data locality: the only replica is where the volume is attached
CORDONED = "KubernetesNodeCordoned"  # why a node that people have cordoned is not schedulable

# why a node that is not ready takes no replicas, although those on it run
RUNS = ("KubernetesNodePressure", "ManagerPodDown")

NO_NODE = "no node {}: its replicas count as lost"
NO_DISK = "no disk {}: its replicas count as lost"
NO_HEALTH = "no healthyAt of {}: replicas that run without it count as healthy"
DISCARDED = (
    "failed replicas that Longhorn discards, as they were never built, were tried too often, "
    "are to leave or are not needed: {}: they count for nothing"
)
NO_VOLUME = "no volume of the replicas {}: they count for nothing"
LAST = (
    "volumes with one healthy replica, which stays where it is until others are built, also where "
    "its node is to be emptied: {}"
)
MIGRATING = "volumes are being migrated: {}: they are left alone until they have arrived"
NO_UUID = "no diskUUID of {}: it counts as not ready"
SAME_UUID = "no diskUUID of its own of {}: it counts as not ready"
CLONED = (
    "one diskUUID on several nodes: {}: Longhorn takes them for one disk, so that no replica is "
    "built there; those that are there count"
)
NO_SETTINGS = "no settings: Longhorn's defaults are taken; add settings.longhorn.io"
ATTACHED = "no node {}, to which volumes are attached: they count as detached"
DETACHED = (
    "volumes are detached: {}: Longhorn builds replicas of them once they are attached, and a "
    "folder waits for that"
)

MOST_RETRIES = 5  # a failed replica that was built anew so often is not tried again


@dataclass(frozen=True, eq=False)
class Snapshot(System):
    """A system, and the resources that it was read from: what travels as ``cluster.native``."""

    objects: Objects = field(default_factory=Objects)


def read(documents: Sequence[Document], *, now: float | None = None) -> Cluster:
    """Read a cluster from what ``kubectl get -o json`` prints of Longhorn's resources."""
    faults = FaultList()
    objects = gather(faults, documents)
    if not faults and not objects.nodes:
        names = [document.name for document in documents]
        faults.add("source", names, f"lists no Longhorn node: needs what is printed by {PRINT}")
    reader = _Reader(faults, objects)
    hosts = [reader.host(node) for node in objects.nodes]
    by_volume = reader.replicas()
    volumes = [reader.volume(one, by_volume) for one in objects.volumes]
    settings = _settings(objects)
    faults.raise_if_any()
    latest = reader.latest if now is None else now
    try:
        cluster = cluster_of(hosts, volumes, settings=settings, now=latest)
    except InvalidInput as error:
        for fault in error.faults:
            faults.add(_locate(objects, fault.path), fault.value, fault.message)
        raise InvalidInput(faults.faults) from None
    system = cluster.native
    reported: dict[str, Any] = {one.name: getattr(system, one.name) for one in fields(System)}
    cluster = replace(cluster, native=Snapshot(**reported, objects=objects))
    migrating = system.volumes.migrating
    for v in np.flatnonzero(migrating).tolist():
        objects.notes.add(MIGRATING, system.volumes.names[v])
    lost = _lost(cluster, system, reader.gone) & ~migrating
    last = _last_healthy(cluster, system)
    for v in cluster.placement.owner[last].tolist():
        objects.notes.add(LAST, system.volumes.names[v])
    flags = np.where(last, cluster.placement.flags | Flag.PINNED, cluster.placement.flags)
    cluster = cluster.with_placement(replace(cluster.placement, flags=read_only(flags)))
    return with_stranded(with_left_alone(cluster, migrating), lost)


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what resources name that is not there, and which volumes Longhorn lets wait."""
    if isinstance(cluster.native, Snapshot):
        yield from cluster.native.objects.notes
        asked = cluster.native.objects.volumes
        strict = {v for v, one in enumerate(asked) if one.value.spec.dataLocality == STRICT_LOCAL}
        unmet = np.unique(cluster.forbidden[:, 0]).tolist()
        if bound := [v for v in unmet if v in strict]:
            theirs = some_of(bound, cluster.partitions.names.__getitem__, MOST_NAMED)
            yield (
                "strict-local volumes, whose replica can be nowhere but where the volume is "
                f"attached: no eviction or drain moves it: {theirs}"
            )
        if unmet := [v for v in unmet if v not in strict]:
            theirs = some_of(unmet, cluster.partitions.names.__getitem__, MOST_NAMED)
            yield (
                "no disk with the tags, or of the kind, that volumes ask for: they get no replica "
                f"and move none: {theirs}"
            )
        if apart := np.flatnonzero(_apart_from_engine(cluster, cluster.native)).tolist():
            theirs = some_of(apart, cluster.partitions.names.__getitem__, MOST_NAMED)
            yield (
                "no replica where volumes are attached whose data locality is best-effort: "
                f"Longhorn builds one there by itself: {theirs}"
            )
        for notice in (waiting_notice, rebuilt_notice):
            if text := notice(cluster, cluster.native.settings):
                yield text


def _apart_from_engine(cluster: Cluster, system: System) -> NDArray[np.bool_]:
    """Return which attached volumes want a replica where their engine runs and lack it, (P,)."""
    placement, volumes = cluster.placement, system.volumes
    host = np.append(system.disks.host, -1)[placement.node]
    near = placement.owner[host == volumes.attached[placement.owner]]
    wished = volumes.locality == DATA_LOCALITY.index("best-effort")
    lacking = np.bincount(near, minlength=len(cluster.partitions)) == 0
    return np.asarray(wished & (volumes.attached >= 0) & lacking)


def _last_healthy(cluster: Cluster, system: System) -> NDArray[np.bool_]:
    """Tell which replicas are the only healthy ones of degraded volumes, and may stay, (K,)."""
    placement, nodes = cluster.placement, cluster.nodes
    source = ((placement.flags & Flag.HEALTHY) != 0) & at_node(nodes.serves, placement.node)
    alone = np.bincount(placement.owner[source], minlength=len(cluster.partitions)) == 1
    alone &= (system.volumes.robustness == DEGRADED) & (system.volumes.replicas > 1)
    evicted = (placement.flags & Flag.EVICTING) != 0
    may_stay = at_node(nodes.may_hold, placement.node) & ~evicted
    return np.asarray(source & alone[placement.owner] & may_stay)


def _lost(cluster: Cluster, system: System, gone: Container[str]) -> NDArray[np.bool_]:
    """Tell which volumes had healthy replicas, and have none on a disk that is up, (P,)."""
    placement, count = cluster.placement, len(cluster.partitions)
    there = placement.node >= 0
    healthy, failed = ((placement.flags & flag) != 0 for flag in (Flag.HEALTHY, Flag.ERROR))
    source = there & healthy & at_node(cluster.nodes.serves, placement.node)
    had, sources = (
        np.bincount(placement.owner[rows], minlength=count) > 0
        for rows in (there & (healthy | failed), source)
    )
    had |= np.array([name in gone for name in system.volumes.names], np.bool_)
    # one that is in use has data, whether or not the files list its replicas
    had |= (system.volumes.attached >= 0) | (system.volumes.actual > 0)
    return np.asarray((had | (system.volumes.robustness == FAULTED)) & ~sources)


@dataclass
class _Reader:
    """Turns resources into rows, and resolves references between them."""

    faults: FaultList
    objects: Objects
    latest: float = 0.0
    disk_at: dict[tuple[str, str], str] = field(default_factory=dict)
    host_of: dict[str, list[str]] = field(default_factory=dict)
    cloned: set[str] = field(default_factory=set)  # the UUIDs that disks of several nodes have
    # volumes that had replicas on nodes or disks that are gone
    gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        statuses = (one.value.status.diskStatus or {} for one in self.objects.nodes)
        count = Counter(uuid for of in statuses for uuid in {one.diskUUID for one in of.values()})
        self.cloned = {uuid for uuid, nodes in count.items() if uuid and nodes > 1}

    def host(self, found: Found[NodeResource]) -> Host:
        """Return a node with its disks."""
        node = found.value
        name, status = node.metadata.name, node.status
        conditions = self._conditions(found.at("status.conditions"), status.conditions)
        ready, schedulable = conditions.get("Ready"), conditions.get("Schedulable")
        cordoned = schedulable is not None and schedulable.reason == CORDONED
        runs = ready is not None and not _holds(ready) and ready.reason in RUNS
        of = status.diskStatus or {}
        return Host(
            name=name,
            disks=[
                self._disk(found, disk, spec, of.get(disk))
                for disk, spec in (node.spec.disks or {}).items()
            ],
            zone=status.zone,
            ready=_holds(ready) or runs,
            schedulable=(_holds(schedulable) or cordoned) and not runs,
            allow_scheduling=node.spec.allowScheduling,
            cordoned=cordoned,
            deleting=node.metadata.deletionTimestamp is not None,
            eviction_requested=node.spec.evictionRequested or status.autoEvicting,
            ready_since=nan if ready is None or runs else self._time("", ready.lastTransitionTime),
            tags=node.spec.tags or (),
        )

    def _disk(
        self, found: Found[NodeResource], name: str, spec: DiskSpec, status: DiskStatus | None
    ) -> Disk:
        """Return a disk; one that Longhorn has not looked at yet has no room."""
        host, path = found.value.metadata.name, found.at(f"status.diskStatus.{name}")
        stated = DiskStatus() if status is None else status
        ready = _holds(self._conditions(f"{path}.conditions", stated.conditions).get("Ready"))
        if stated.diskUUID:
            first = self.disk_at.setdefault((host, stated.diskUUID), name)
            if first != name:
                self.objects.notes.add(SAME_UUID, f"{host}/{name}")
                ready = False
            self.host_of.setdefault(stated.diskUUID, []).append(host)
            if stated.diskUUID in self.cloned:
                self.objects.notes.add(CLONED, f"{host}/{name}")
        elif status is not None and (ready or stated.scheduledReplica):
            self.objects.notes.add(NO_UUID, f"{host}/{name}")
            ready = False
        return Disk(
            name=name,
            maximum=stated.storageMaximum,
            available=stated.storageAvailable,
            reserved=spec.storageReserved,
            scheduled=stated.storageScheduled,
            ready=ready and status is not None,
            allow_scheduling=spec.allowScheduling and stated.diskUUID not in self.cloned,
            eviction_requested=spec.evictionRequested,
            type=spec.diskType or "filesystem",
            tags=spec.tags or (),
        )

    def replicas(self) -> Mapping[str, list[Replica]]:
        """Return the replicas by volume; those that Longhorn has not scheduled are left out."""
        by_volume: dict[str, list[Replica]] = {
            one.value.metadata.name: [] for one in self.objects.volumes
        }
        nodes = {one.value.metadata.name for one in self.objects.nodes}
        for found in self.objects.replicas:
            spec = found.value.spec
            if spec.volumeName not in by_volume:
                if ("Volume", spec.volumeName) not in self.objects.misfits:
                    self.objects.notes.add(NO_VOLUME, found.value.metadata.name)
                continue
            if not spec.nodeID or ("Node", spec.nodeID) in self.objects.misfits:
                continue
            disk = self.disk_at.get((spec.nodeID, spec.diskID))
            if disk is not None:
                replica = self._replica(found, disk)
                if replica.reusable or not replica.failed:
                    by_volume[spec.volumeName].append(replica)
                else:
                    self.objects.notes.add(DISCARDED, replica.name)
                    self.gone |= {spec.volumeName} if _was_built(spec) else set()
                continue
            self.gone.add(spec.volumeName)
            if spec.nodeID not in nodes:
                self.objects.notes.add(NO_NODE, f"{spec.nodeID} ({found.value.metadata.name})")
            else:
                there = self.host_of.get(spec.diskID)
                known = f", it is one of {there[0]}" if there else ""
                reported = f"{spec.diskID} of {spec.nodeID} ({found.value.metadata.name}{known})"
                self.objects.notes.add(NO_DISK, reported)
        return by_volume

    def _replica(self, found: Found[ReplicaResource], disk: str) -> Replica:
        one = found.value
        spec = one.spec
        failed = bool(spec.failedAt)
        runs = spec.healthyAt is None and one.status.currentState == "running" and not failed
        if runs:
            self.objects.notes.add(NO_HEALTH, one.metadata.name)
        evicting = spec.evictionRequested or one.status.evictionRequested
        tried = spec.rebuildRetryCount >= MOST_RETRIES
        return Replica(
            name=one.metadata.name,
            host=spec.nodeID,
            disk=disk,
            healthy=runs or (bool(spec.healthyAt) and not failed),
            failed=failed,
            active=spec.active,
            eviction_requested=evicting,
            reusable=failed and _was_built(spec) and not (tried or evicting),
            healthy_at=self._time(found.at("spec.healthyAt"), spec.healthyAt or ""),
            failed_at=self._time(found.at("spec.failedAt"), spec.failedAt),
        )

    def volume(
        self, found: Found[VolumeResource], by_volume: Mapping[str, list[Replica]]
    ) -> Volume:
        """Return a volume with its replicas."""
        name, spec, status = found.value.metadata.name, found.value.spec, found.value.status
        image = spec.image or spec.engineImage
        in_use = status.currentImage or image
        attached = status.currentNodeID if status.state == "attached" else ""
        known = {one.value.metadata.name for one in self.objects.nodes}
        if attached and attached not in known and ("Node", attached) not in self.objects.misfits:
            self.objects.notes.add(ATTACHED, f"{attached} ({name})")
            attached = ""
        if status.state == "detached":
            self.objects.notes.add(DETACHED, name)
        replicas = by_volume.get(name, [])
        sound = [one for one in replicas if one.healthy and one.active]
        if sum(not one.eviction_requested for one in sound) >= spec.numberOfReplicas:
            failed = [one.name for one in replicas if one.failed]
            replicas = [one for one in replicas if not one.failed]
            if failed:
                self.objects.notes.add(DISCARDED, *failed)
        return Volume(
            name=name,
            size=int(spec.size),
            replicas=replicas,
            number_of_replicas=spec.numberOfReplicas,
            actual_size=status.actualSize,
            replica_auto_balance=spec.replicaAutoBalance or "ignored",
            replica_soft_anti_affinity=spec.replicaSoftAntiAffinity or "ignored",
            replica_zone_soft_anti_affinity=spec.replicaZoneSoftAntiAffinity or "ignored",
            replica_disk_soft_anti_affinity=spec.replicaDiskSoftAntiAffinity or "ignored",
            data_locality=spec.dataLocality or "disabled",
            attached_to=attached or None,
            robustness=status.robustness or None,
            migrating=bool(spec.migrationNodeID or status.currentMigrationNodeID),
            in_sync=in_use == image and not status.expansionRequired,
            engine=f"{in_use} {spec.dataEngine or 'v1'}",
            block=spec.dataEngine == "v2",
            node_selector=(*(spec.nodeSelector or ()), *self._bound(found, by_volume)),
            disk_selector=spec.diskSelector or (),
        )

    def _bound(
        self, found: Found[VolumeResource], by_volume: Mapping[str, list[Replica]]
    ) -> tuple[str, ...]:
        """Return a tag that no node has for a volume whose only replica can be nowhere else."""
        name = found.value.metadata.name
        healthy = any(one.healthy for one in by_volume.get(name, ()))
        return (STRICT_LOCAL,) if found.value.spec.dataLocality == STRICT_LOCAL and healthy else ()

    def _conditions(
        self, path: str, given: Sequence[Condition] | Mapping[str, Condition] | None
    ) -> Mapping[str, Condition]:
        """Return conditions by type, and note the latest time among them."""
        if isinstance(given, Mapping):
            listed = [(f"{path}.{kind}", one) for kind, one in given.items()]
        else:
            listed = [(f"{path}[{i}]", one) for i, one in enumerate(given or ())]
        for at, one in listed:
            self._time(f"{at}.lastTransitionTime", one.lastTransitionTime)
        return {one.type: one for _, one in listed}

    def _time(self, path: str, text: str) -> float:
        """Return a time in seconds since 1970; NaN if none is stated."""
        if not text:
            return nan
        time = -1.0
        with suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(text).timestamp()
        if time < 0.0:
            if path:
                message = "must be a time from 1970 on, such as 2026-01-31T12:00:00Z"
                self.faults.add(path, quoted(text), message)
            return nan
        self.latest = max(self.latest, time)
        return time


def _was_built(spec: ReplicaSpec) -> bool:
    """Whether a replica ever had all data of its volume."""
    return bool(spec.healthyAt or spec.lastHealthyAt)


def _holds(condition: Condition | None) -> bool:
    """Whether a condition is met; one that is not stated is."""
    return condition is None or condition.status == "True"


def _locate(objects: Objects, path: str) -> str:
    """Turn ``volumes[3].size`` into the place of that resource."""
    known: dict[str, list[Found[Any]]] = {"hosts": [*objects.nodes], "volumes": [*objects.volumes]}
    found = re.match(r"(hosts|volumes)\[(\d+)\]", path)
    return path if found is None else known[found[1]][int(found[2])].path + path[found.end() :]


def _settings(objects: Objects) -> Settings:
    """Return the global settings, defaults for those that are empty or of no known value."""
    given = {}
    known = {one.name for one in fields(Settings)}
    if not objects.settings:
        objects.notes.add(NO_SETTINGS)
    for one in objects.settings:
        name, text = one.value.metadata.name, one.value.value
        if name.replace("-", "_") not in known:
            continue
        if text.startswith("{"):  # one for each data engine, since 1.10
            stated = decode_json(FaultList(), Document(name, text.encode()), dict[str, str]) or {}
            text = stated.get("v1", "")
            if {*stated.values()} - {text}:
                objects.notes.add("settings that differ by data engine, taken as for v1: {}", name)
        strange = FaultList()
        if re.fullmatch(r"\d{16,}", text):
            strange.add(one.at("value"), quoted(text), "is more than any setting can be")
        else:
            Settings.read(strange, "settings", {name: text})
        if text and strange:
            objects.notes.add("settings of which the default is taken: {}", f"{name} ({text!r})")
        elif text:
            given[name] = text
    return Settings.read(FaultList(), "settings", given)


NOWHERE = -1


@dataclass(frozen=True)
class Slot:
    """A replica on a disk, which is a node of the cluster; "" and -1 where there is none."""

    replica: str = ""
    disk: int = NOWHERE


@dataclass(frozen=True)
class Exchange:
    """One replica that is built, and the one that goes when it is healthy; either may be none."""

    volume: int
    old: Slot
    new: Slot
    tight: bool = False  # whether the node may lack room for both at a time

    def undone(self, name: str) -> "Exchange":
        """Return the change that takes this one back: it builds where the old replica was."""
        there = self.old.disk
        back = Slot(replica_name(name, f"undo {there}"), there) if there >= 0 else Slot()
        return Exchange(self.volume, self.new, back)


def replica_name(volume: str, key: str) -> str:
    """Return a name as Longhorn makes them, the same for the same change of a volume.

    >>> replica_name("pvc-1", "node-1/disk-1")
    'pvc-1-r-03cb7ebb'
    """
    digits = blake2b(f"{volume} {key}".encode(), digest_size=4).hexdigest()
    return f"{volume}-r-{digits}"


def changes(cluster: Cluster, names: Sequence[str], after: Placement) -> list[Exchange]:
    """List what has to be built and what goes, so that there is room at every step."""
    before = cluster.placement
    moved = np.flatnonzero(before.node != after.node)
    volumes, begin = np.unique(before.owner[moved], return_index=True)
    found, taken = list[Exchange](), set(names)
    for p, slots in zip(volumes.tolist(), np.split(moved, begin[1:]), strict=False):
        found += _of_volume(cluster, names, taken, after, p, slots.tolist())
    return list(_with_room(cluster, found))


def _of_volume(
    cluster: Cluster,
    names: Sequence[str],
    taken: set[str],
    after: Placement,
    p: int,
    slots: list[int],
) -> Iterator[Exchange]:
    """Pair the replicas of a volume that go with those that are built, which take new names."""
    was = cluster.placement.node
    leaving = [k for k in slots if was[k] >= 0]
    coming: list[tuple[int, int]] = []
    for k in slots:
        disk = int(after.node[k])
        same = next((j for j in leaving if was[j] == disk), None)
        if same is not None:
            leaving.remove(same)
        elif disk >= 0:
            coming.append((k, disk))
    for k, disk in coming:
        old = Slot()
        if leaving:
            partner = k if k in leaving else leaving[0]
            leaving.remove(partner)
            old = Slot(names[partner], int(was[partner]))
        keys = (f"{cluster.nodes.names[disk]} {i}" for i in count())
        drawn = (replica_name(cluster.partitions.names[p], key) for key in keys)
        name = next(one for one in drawn if one not in taken)
        taken.add(name)
        yield Exchange(p, old, Slot(name, disk))
    for k in leaving:
        yield Exchange(p, Slot(names[k], int(was[k])), Slot())


def _with_room(cluster: Cluster, found: Iterable[Exchange]) -> Iterator[Exchange]:
    """Put first what has room now, again and again."""
    placement, load = cluster.placement, cluster.partitions.load.voter
    held = np.zeros_like(cluster.nodes.capacity)
    there = placement.node >= 0
    np.add.at(held, placement.node[there], load[placement.owner[there]])
    waiting = list(found)
    while waiting:
        blocked = []
        for one in waiting:
            if _has_room(cluster, held, one):
                _apply(held, load, one)
                yield one
            else:
                blocked.append(one)
        if len(blocked) == len(waiting):
            yield from (replace(one, tight=True) for one in blocked)
            return
        waiting = blocked


def _has_room(cluster: Cluster, held: NDArray[np.float64], one: Exchange) -> bool:
    if one.new.disk < 0:
        return True
    needed = held[one.new.disk] + cluster.partitions.load.voter[one.volume]
    return bool((needed <= cluster.nodes.capacity[one.new.disk]).all())


def _apply(held: NDArray[np.float64], load: NDArray[np.float64], one: Exchange) -> None:
    if one.new.disk >= 0:
        held[one.new.disk] += load[one.volume]
    if one.old.disk >= 0:
        held[one.old.disk] -= load[one.volume]


# status fields of a replica, as in one that was just created
ANEW: Mapping[str, Any] = {
    "failedAt": "", "healthyAt": "", "lastFailedAt": "", "lastHealthyAt": "", "dataPath": "",
    "desireState": "stopped", "evictionRequested": False, "hardNodeAffinity": "",
    "logRequested": False, "migrationEngineName": "", "rebuildRetryCount": 0,
    "salvageRequested": False,
}  # fmt: skip

# fields of a volume in which Longhorn would choose by itself what to delete, and with what
HELD: Mapping[str, Sequence[str]] = {
    "replicaAutoBalance": (
        "", "ignored", "least-effort", "best-effort", "least_effort", "best_effort",
    ),
    "dataLocality": ("best-effort",),
}  # fmt: skip

Verb = Literal["patch", "create", "wait", "delete"]


class Target(msgspec.Struct):
    """The resource that a step is about."""

    kind: str
    namespace: str
    name: str
    apiVersion: str = API_VERSION  # noqa: N815


class Step(msgspec.Struct, omit_defaults=True):
    """One step: what it does, to what, why, and the command that does it."""

    step: int
    volume: str
    verb: Verb
    reason: str
    target: Target
    patchType: str = ""  # noqa: N815
    body: Any = None
    until: str = ""
    command: str = ""


class Steps(msgspec.Struct):
    """All steps, in the order in which they are applied."""

    about: str
    steps: list[Step]


ABOUT = (
    "Apply the steps in this order, one by one. Do not apply a delete before the wait in front of "
    "it is over. A test that fails in a patch means that the volume has changed since: start again "
    "from resources as they are then."
)


def steps_of(cluster: Cluster, snapshot: Snapshot, found: Sequence[Exchange]) -> list[Step]:
    """Spell changes out as steps; those of one volume that follow each other hold it once."""
    writer = _PatchWriter(cluster, snapshot)
    steps: list[Step] = []
    for volume, own in groupby(found, lambda one: one.volume):
        for step in writer.volume(volume, list(own)):
            step.step = len(steps) + 1
            step.command = command(step)
            steps.append(step)
    return steps


def command(step: Step) -> str:
    """Return the shell command that applies a step: one line for any POSIX shell, with kubectl.

    >>> target = Target("Replica", "longhorn-system", "pvc-1-r-0")
    >>> command(Step(1, "pvc-1", "delete", "", target))
    'kubectl -n longhorn-system delete replicas.longhorn.io pvc-1-r-0'
    """
    target = step.target
    kubectl = f"kubectl -n {shlex.quote(target.namespace)}"
    resource = f"{target.kind.lower()}s.longhorn.io {shlex.quote(target.name)}"
    if step.verb == "create":
        body = shlex.quote(msgspec.json.encode(step.body).decode())
        return f"printf %s {body} | {kubectl} create -f -"
    if step.verb == "patch":
        body = shlex.quote(msgspec.json.encode(step.body).decode())
        return f"{kubectl} patch {resource} --type=json -p {body}"
    if step.verb == "wait":
        field, _, value = step.until.partition("=")
        got = f'"$({kubectl} get {resource} -o jsonpath={shlex.quote(f"{{{field}}}")})"'
        test = f"{got} = {shlex.quote(value)}" if value else f"-n {got}"
        return f"until [ {test} ]; do sleep 5; done"
    return f"{kubectl} delete {resource}"


def manifest(cluster: Cluster, snapshot: Snapshot, change: Exchange, template: Raw | None) -> Raw:
    """Return a replica as Longhorn's scheduler would leave it: scheduled, and not yet built."""
    volume = snapshot.objects.volumes[change.volume]
    host, name = snapshot.disks.host[change.new.disk], snapshot.disks.names[change.new.disk]
    node = snapshot.objects.nodes[host].value
    disks, states = node.spec.disks or {}, node.status.diskStatus or {}
    uuid, node_name = states[name].diskUUID, node.metadata.name
    own = volume.value.metadata
    # ``template`` is another replica of the volume, if there is one
    old: Raw = template or {}
    was: Raw = {key: it for key, it in old.get("metadata", {}).items() if it is not None}
    version = volume.raw.get("apiVersion", API_VERSION)
    owner = {"apiVersion": version, "kind": "Volume", "name": own.name, "uid": own.uid}
    image = volume.value.status.currentImage or volume.value.spec.image
    labels = {"longhorndiskuuid": uuid, "longhornnode": node_name, "longhornvolume": own.name}
    spec = dict(old.get("spec", {}))
    spec |= {key: value for key, value in ANEW.items() if key in spec or template is None}
    spec |= {
        "active": True,
        "dataDirectoryName": f"{own.name}-{change.new.replica[-8:]}",
        "desireState": "stopped",
        "diskID": uuid,
        "diskPath": disks[name].path,
        "nodeID": node_name,
        "volumeName": own.name,
        "volumeSize": volume.value.spec.size,
    }
    if image and "image" in spec:
        spec["image"] = image
    return {
        "apiVersion": version,
        "kind": "Replica",
        "metadata": {
            "finalizers": was.get("finalizers", ["longhorn.io"]),
            "labels": was.get("labels", {}) | labels,
            "name": change.new.replica,
            "namespace": own.namespace,
            "ownerReferences": was.get("ownerReferences", [owner]),
        },
        "spec": spec,
    }


class _PatchWriter:
    """Finds the resources that changes are about."""

    def __init__(self, cluster: Cluster, snapshot: Snapshot) -> None:
        self.cluster = cluster
        self.snapshot = snapshot
        self.templates = templates(snapshot)

    def volume(self, number: int, own: Sequence[Exchange]) -> Iterator[Step]:
        """Yield the steps of one volume; what has to be built comes before what only goes."""
        found = self.snapshot.objects.volumes[number]
        name = found.value.metadata.name
        held = held_fields(found, self.snapshot.settings.replica_auto_balance)
        if found.value.status.state != "attached":
            reason = "Longhorn copies data only while the volume is attached."
            yield self._step(found, "wait", reason, until=".status.state=attached")
        if held:
            reason = "Hold what would let Longhorn choose by itself which replica goes."
            yield self._patch(found, reason, [(key, old, "disabled") for key, old in held])
        for one in sorted(own, key=lambda one: one.new.disk < 0):
            yield from self._change(found, one)
        if held:
            reason = f"Let {name} go on as before."
            yield self._patch(found, reason, [(key, "disabled", old) for key, old in held])

    def _change(self, found: Found[VolumeResource], one: Exchange) -> Iterator[Step]:
        volume = found.value.metadata.name
        if one.new.disk >= 0:
            size = f"{self.snapshot.volumes.actual[one.volume]:,} bytes"
            reason = f"Build a replica of {volume} on {self._place(one.new)}: {size} to copy"
            if one.old.disk >= 0:
                reason += f", in place of {one.old.replica} on {self._place(one.old)}"
            if one.tight:
                reason += "; there may be no room for both before others have left"
            body = manifest(self.cluster, self.snapshot, one, self.templates.get(volume))
            yield self._step(found, "create", f"{reason}.", one.new.replica, body=body)
            reason = "Longhorn builds it; it is healthy when this time is set."
            yield self._step(found, "wait", reason, one.new.replica, until=".spec.healthyAt")
        if one.old.disk >= 0:
            why = "The new one is healthy." if one.new.disk >= 0 else "The volume has too many."
            yield self._step(found, "delete", why, one.old.replica)

    def _place(self, slot: Slot) -> str:
        return self.cluster.nodes.names[slot.disk]

    def _patch(
        self, found: Found[VolumeResource], reason: str, fields: Sequence[tuple[str, Any, Any]]
    ) -> Step:
        """Return a patch of a volume that fails if a field is not as it should be."""
        body: list[Raw] = []
        for key, old, new in fields:
            path = f"/spec/{key}"
            if old is None:
                body.append({"op": "add", "path": path, "value": new})
            else:
                body.append({"op": "test", "path": path, "value": old})
                last = {"op": "remove", "path": path}
                body.append(last if new is None else last | {"op": "replace", "value": new})
        kind = "application/json-patch+json"
        return self._step(found, "patch", reason, patchType=kind, body=body)

    def _step(
        self, found: Found[VolumeResource], verb: Verb, reason: str, replica: str = "", **more: Any
    ) -> Step:
        own = found.value.metadata
        kind = "Replica" if replica else "Volume"
        version = found.raw.get("apiVersion", API_VERSION)
        target = Target(kind, own.namespace, replica or own.name, version)
        return Step(0, own.name, verb, reason, target, **more)


def templates(snapshot: Snapshot) -> Mapping[str, Raw]:
    """Return one replica per volume to take after, a healthy one if there is any, by its name."""
    found: dict[str, Raw] = {}
    healthy: set[str] = set()
    for one in snapshot.objects.replicas:
        spec = one.value.spec
        better = bool(spec.healthyAt) and not spec.failedAt and spec.active
        if spec.volumeName not in found or (better and spec.volumeName not in healthy):
            found[spec.volumeName] = one.raw
            healthy |= {spec.volumeName} if better else set()
    return found


def held_fields(found: Found[VolumeResource], everywhere: str) -> list[tuple[str, Any]]:
    """Return the fields of a volume that must be held, each with its value, None for none."""
    spec = found.raw["spec"]
    held = [(key, spec.get(key)) for key, own in HELD.items() if (spec.get(key) or "") in own]
    if everywhere == "disabled":
        held = [one for one in held if one[1] not in (None, "", "ignored")]
    return held


# what Kubernetes takes as a name, and as the value of a label that is one
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)

STILL = "replicaAutoBalance and dataLocality of some volumes are still disabled"

SETTINGS = (Setting("NAMESPACE", "longhorn-system", "namespace of Longhorn"),)

NOTES = (
    "It needs `kubectl`, and who may patch volumes and create and delete replicas of Longhorn.",
    "A replica is created on its disk as Longhorn's scheduler would leave it, and the one that it "
    "replaces is deleted only when it is healthy; `numberOfReplicas` is set where another number "
    "is wanted, once what joins is healthy and before anything goes. This was made from "
    "longhorn-manager's sources and not tried on a live cluster: try it on one volume first.",
    "While a wave is on its way its volumes have `replicaAutoBalance` and `dataLocality` disabled; "
    "then they are as they were. A run that failed in the middle of a wave gives them "
    "back by `sh run.sh --release`.",
    "A volume that is detached is waited for: Longhorn copies data only while it is attached.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the calls of each wave: all that is built, then, volume by volume, what goes."""
    snapshot = _snapshot_of(cluster)
    faults = FaultList()
    writer = _Writer(faults, cluster, snapshot)
    for wave in waves:
        for one in wave:
            writer.check(one)
    faults.raise_if_any()
    return [
        writer.orders(wave, stem(number, len(waves))) for number, wave in enumerate(waves, start=1)
    ]


def _kubectl(*words: str, about: str = "", file: str = "", check: str = "") -> Command:
    run = ["kubectl", "-n", "${NAMESPACE}", *words]
    return Command([*run], about, file, check=check)


def _on(volume: str, disk: str) -> tuple[str, ...]:
    """Return the replicas of a volume on a disk, by their labels."""
    return "replicas.longhorn.io", "-l", f"longhornvolume={volume},longhorndiskuuid={disk}"


def _set(volume: str, fields: Mapping[str, Any]) -> Command:
    """Return what sets fields of a volume; those that are None are taken away."""
    patch = msgspec.json.encode({"spec": fields}).decode()
    return _kubectl("patch", "volumes.longhorn.io", volume, "--type=merge", "-p", literal(patch))


def _awaited(volume: str, name: str, value: str) -> Command:
    """Return what waits until a field of a volume has a value."""
    path, about = f"jsonpath={{.status.{name}}}", f"volume {volume}: {name} is to be {value}"
    command = _kubectl("get", "volumes.longhorn.io", volume, "-o", path, about=about, check=value)
    command.waits = True
    return command


def look(plan: "Plan") -> list[Command]:
    """Return what lists Longhorn's resources."""
    kinds = ",".join(f"{kind}.longhorn.io" for kind in ("nodes", "volumes", "replicas", "settings"))
    command = _kubectl("get", "-o", "json", kinds)
    command.save = "longhorn.json"
    return [command]


def there(output: str) -> Answer:
    """Return whether anything is listed."""
    return Answer(bool(output.strip()), "")


def built(output: str) -> Answer:
    """Return whether a replica has ``healthyAt`` and no ``failedAt``."""
    healthy, _, failed = output.strip().partition("/")
    done = bool(healthy) and not failed
    return Answer(done, "" if done else f"healthyAt/failedAt is {output.strip()!r}")


class _Writer:
    """Finds the resources that changes are about."""

    def __init__(self, faults: FaultList, cluster: Cluster, snapshot: Snapshot) -> None:
        self.faults = faults
        self.cluster = cluster
        self.snapshot = snapshot
        self.listed = listed(cluster)
        self.templates: Mapping[str, Raw] = templates(snapshot)
        states = {one.value.metadata.name: one.value.status for one in snapshot.objects.nodes}
        self.uuid = []
        for disk, host in zip(snapshot.disks.names, snapshot.disks.host.tolist(), strict=True):
            state = (states[snapshot.hosts.names[host]].diskStatus or {}).get(disk)
            self.uuid.append(state.diskUUID if state is not None else "")
        self.held: dict[int, list[tuple[str, Any]]] = {}
        replicas = [one.value for one in snapshot.objects.replicas if one.value.spec.failedAt]
        self.failed = {
            (one.spec.volumeName, one.spec.diskID): one.metadata.name for one in replicas
        }

    def check(self, change: Change) -> None:
        """Note what keeps a change from being made."""
        name = change.name
        for n in change.joins:
            if failed := self.failed.get((name, self.uuid[n])):
                message = (
                    "has failed, and another replica is to be built on its disk: delete it, or "
                    "wait until Longhorn does, and read again"
                )
                self.faults.add(name, failed, message)
        texts = [name, _namespace(self.snapshot)]
        for n in (*change.joins, *change.leaves):
            if not self.uuid[n]:
                message = "has no diskUUID: its replicas cannot be identified"
                self.faults.add(self.cluster.nodes.names[n], "", message)
            else:
                texts.append(self.uuid[n])
        for text in texts:
            if not NAME.fullmatch(text):
                self.faults.add(name, text, "is not a name that Kubernetes takes")
        if all(n < 0 for n in change.after):
            self.faults.add(name, [], "would be left without replicas")
        for side in (change.before, change.after):
            held = [n for n in side if n >= 0]
            if len({self.uuid[n] or n for n in held}) < len(held):
                message = "has two replicas on a disk: repair that first, or pin the volume"
                self.faults.add(name, [self.cluster.nodes.names[n] for n in held], message)
        own = self.snapshot.objects.volumes[change.partition].value.metadata
        if own.namespace != _namespace(self.snapshot):
            self.faults.add(name, own.namespace, "is another namespace than that of the others")

    def orders(self, wave: Wave, name: str) -> Orders:
        """Return the calls of a wave, and the manifests of replicas, whose names begin alike."""
        found = Orders([], {})
        for command in self.calls(wave, name, found.files):
            found.commands.append(command)
        return found

    def calls(self, wave: Wave, stem: str, files: dict[str, bytes]) -> Iterator[Command]:
        """Yield the calls of a wave."""
        volumes = self.snapshot.objects.volumes
        auto = self.snapshot.settings.replica_auto_balance
        held = {one.partition: held_fields(volumes[one.partition], auto) for one in wave}
        for one in wave:
            if held[one.partition]:
                off = _set(one.name, {key: "disabled" for key, _ in held[one.partition]})
                off.hold = Hold(one.name, [_set(one.name, dict(held[one.partition]))])
                yield off
            for n in one.joins:
                file = f"{stem}{len(files) + 1}.replica.json"
                files[file] = self._manifest(one, n)
                on = _kubectl("get", *_on(one.name, self.uuid[n]), "-o", "name", check="there")
                attached = _awaited(one.name, "state", "attached")
                build = _kubectl("create", "-f", "${FILE}", file=file)
                attached.unless = build.unless = on
                yield from (attached, build)
        for one in wave:
            for n in one.joins:
                command = _kubectl(
                    "get", *_on(one.name, self.uuid[n]), "-o",
                    "jsonpath={.items[*].spec.healthyAt}/{.items[*].spec.failedAt}",
                    about=f"volume {one.name}: its replica on {self.uuid[n]} is to be healthy",
                    check="built",
                )  # fmt: skip
                command.waits = True
                yield command
            wanted = [self.wanted(one.partition, side) for side in (one.before, one.after)]
            if wanted[0] != wanted[1]:
                yield _set(one.name, {"numberOfReplicas": wanted[1]})
            if len(one.leaves) > len(one.joins):
                yield _awaited(one.name, "robustness", "healthy")
            for n in one.leaves:
                yield _kubectl("delete", *_on(one.name, self.uuid[n]))
            if held[one.partition]:
                yield Command(release=one.name)

    def wanted(self, volume: int, nodes: Sequence[int]) -> int:
        """Return ``numberOfReplicas`` on the way to what is wanted of a volume, so held."""
        ends = [int(of[volume]) for of in (self.listed, self.cluster.partitions.replicas)]
        return min(max(sum(n >= 0 for n in nodes), min(ends)), max(ends))

    def _manifest(self, change: Change, n: int) -> bytes:
        """Return the new replica of a volume on a disk as JSON."""
        p, taken = change.partition, {*self.snapshot.replicas.names}
        drawn = (replica_name(change.name, f"{self.cluster.nodes.names[n]} {i}") for i in count())
        name = next(one for one in drawn if one not in taken)
        exchange = Exchange(p, Slot(), Slot(name, n))
        body = manifest(self.cluster, self.snapshot, exchange, self.templates.get(change.name))
        return msgspec.json.encode(body)


def _namespace(snapshot: Snapshot) -> str:
    """Return the namespace of the first volume."""
    spaces = (one.value.metadata.namespace for one in snapshot.objects.volumes)
    return next(spaces, "longhorn-system")


def listed(cluster: Cluster) -> NDArray[np.int32]:
    """Return ``numberOfReplicas`` of each volume, (P,)."""
    return np.array(
        [one.value.spec.numberOfReplicas for one in _snapshot_of(cluster).objects.volumes], np.int32
    )


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the namespace."""
    return {"NAMESPACE": _namespace(plan.cluster.native)}


CHECKS = {
    "there": there, "built": built, "attached": equals("attached"), "healthy": equals("healthy"),
}  # fmt: skip

CARRIER = Carrier(
    orders=orders, look=look, checks=CHECKS, settings=SETTINGS, notes=NOTES, still=STILL,
    leader=anybody, lists_nodes=all_nodes, given=given, listed=listed,
)  # fmt: skip


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the resources as they will be, and with a placement the steps there and back."""
    snapshot = _snapshot_of(cluster)
    _refuse_other_numbers(cluster, snapshot)
    found = [] if placement is None else changes(cluster, snapshot.replicas.names, placement)
    _check(cluster, snapshot, placement, found)
    try:
        files = {path: _listed(snapshot, _afterwards(cluster, snapshot, found))}
    except (OverflowError, RecursionError) as error:
        # fields that placing does not need are kept as they came, whatever they hold
        message = f"holds what cannot be written again: {error}"
        raise InvalidInput([Fault("cluster.native", type(error).__name__, message)]) from None
    if placement is not None:
        names = cluster.partitions.names
        # what was missing is not taken away again
        gone = [one for one in reversed(found) if one.old.disk >= 0]
        back = [one.undone(names[one.volume]) for one in gone]
        files[path.with_suffix(".undo.json")] = _steps(cluster, snapshot, back)
        files[path.with_suffix(".patches.json")] = _steps(cluster, snapshot, found)
    return files


def _snapshot_of(cluster: Cluster) -> Snapshot:
    """Return the resources that were read; raise where volumes or disks are others by now."""
    snapshot = cluster.native
    if not isinstance(snapshot, Snapshot):
        value = type(snapshot).__name__
        message = "was not read from Longhorn's resources: there are none to write"
        raise InvalidInput([Fault("cluster.native", value, message)])
    if snapshot.objects.is_partial:
        message = f"was read from answers or tables, which a patch needs more than: give {PRINT}"
        raise InvalidInput([Fault("cluster.native", len(snapshot.objects.items), message)])
    hosts, disks = snapshot.hosts.names, snapshot.disks
    on = zip(disks.host.tolist(), disks.names, strict=True)
    names = [f"{hosts[host]}/{name}" for host, name in on]
    check_names(cluster, partitions=[*snapshot.volumes.names], nodes=names)
    return snapshot


def _refuse_other_numbers(cluster: Cluster, snapshot: Snapshot) -> None:
    """Raise for volumes of which other numbers of replicas are wanted than Longhorn has."""
    names, others = (
        cluster.partitions.names,
        np.flatnonzero(cluster.partitions.replicas != snapshot.volumes.replicas),
    )
    if len(others):
        message = (
            "has another number of replicas than the numberOfReplicas that Longhorn keeps: only a "
            "folder sets it (evenkeel plan ... --protocol longhorn -o FOLDER)"
        )
        named = some_of(others.tolist(), lambda p: str(names[p]), 5)
        raise InvalidInput([Fault("cluster.partitions.replicas", named, message)])


def _check(
    cluster: Cluster, snapshot: Snapshot, placement: Placement | None, found: Sequence[Exchange]
) -> None:
    """Raise everything that keeps the changes from being made, together."""
    faults = FaultList()
    states = {one.value.metadata.name: one.value.status for one in snapshot.objects.nodes}
    for one in found:
        if one.new.disk < 0:
            continue
        name = cluster.nodes.names[one.new.disk]
        host = snapshot.hosts.names[int(snapshot.disks.host[one.new.disk])]
        disk_status = (states[host].diskStatus or {}).get(snapshot.disks.names[one.new.disk])
        if disk_status is None or not disk_status.diskUUID:
            faults.add(name, "", "has no diskUUID: no replica can be built there")
    if placement is not None:
        kept = np.bincount(placement.owner[placement.node >= 0], minlength=len(placement))
        had = cluster.placement.owner[cluster.placement.node >= 0]
        emptied = (kept == 0) & (np.bincount(had, minlength=len(kept)) > 0)
        for p in np.flatnonzero(emptied).tolist():
            faults.add(cluster.partitions.names[p], [], "would be left without replicas")
    faults.raise_if_any()


def _steps(cluster: Cluster, snapshot: Snapshot, found: Sequence[Exchange]) -> bytes:
    return encode_indented(Steps(ABOUT, steps_of(cluster, snapshot, found)), 4)


def _listed(snapshot: Snapshot, items: Sequence[Raw]) -> bytes:
    head = snapshot.objects.head
    return encode_indented(head | {"items": items} if "items" in head else items[0], 4)


def _afterwards(cluster: Cluster, snapshot: Snapshot, found: Sequence[Exchange]) -> list[Raw]:
    """Return the resources when all changes are made: those that nothing touches are as before."""
    objects = snapshot.objects
    items: list[Raw | None] = list(objects.items)
    at = {one.value.metadata.name: one.item for one in objects.replicas}
    alike = templates(snapshot)
    built = datetime.fromtimestamp(snapshot.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    added: list[Raw] = []
    for one in found:
        place = None
        if one.old.disk >= 0:
            _book(snapshot, items, one.volume, one.old, -1)
            place = at[one.old.replica]
            items[place] = None
        if one.new.disk >= 0:
            _book(snapshot, items, one.volume, one.new, 1)
            raw = manifest(cluster, snapshot, one, alike.get(cluster.partitions.names[one.volume]))
            raw["spec"] |= {"desireState": "running", "healthyAt": built}
            raw["status"] = {"currentState": "running"}
            if place is None:
                added.append(raw)
            else:
                items[place] = raw
    _heal(cluster, snapshot, items, found)
    return [raw for raw in items if raw is not None] + added


def _heal(
    cluster: Cluster, snapshot: Snapshot, items: list[Raw | None], found: Sequence[Exchange]
) -> None:
    """Say of degraded volumes that they are healthy, once they have what they want."""
    own = snapshot.replicas
    count = np.bincount(cluster.placement.owner[own.healthy], minlength=len(snapshot.volumes))
    names = {name for name, well in zip(own.names, own.healthy, strict=True) if well}
    for one in found:
        count[one.volume] += (one.new.disk >= 0) - (one.old.replica in names)
    for p in sorted({one.volume for one in found}):
        volume = snapshot.objects.volumes[p]
        whole = count[p] >= snapshot.volumes.replicas[p]
        if whole and volume.value.status.robustness == "degraded":
            raw = deepcopy(snapshot.objects.items[volume.item])
            raw["status"]["robustness"] = "healthy"
            items[volume.item] = raw


def _book(
    snapshot: Snapshot, items: list[Raw | None], volume: int, slot: Slot, sign: Literal[1, -1]
) -> None:
    """Enter a replica that joins a disk, or strike out one that leaves it."""
    at = snapshot.objects.nodes[int(snapshot.disks.host[slot.disk])].item
    node = items[at]
    assert node is not None, "nodes stay"
    if node is snapshot.objects.items[at]:
        node = items[at] = deepcopy(node)
    disk_status = node["status"]["diskStatus"][snapshot.disks.names[slot.disk]]
    size, actual = int(snapshot.volumes.size[volume]), int(snapshot.volumes.actual[volume])
    disk_status["storageScheduled"] = max(
        (disk_status.get("storageScheduled") or 0) + sign * size, 0
    )
    disk_status["storageAvailable"] = max(
        (disk_status.get("storageAvailable") or 0) - sign * actual, 0
    )
    listed = dict(disk_status.get("scheduledReplica") or {})
    listed.pop(slot.replica, None)
    disk_status["scheduledReplica"] = listed | ({slot.replica: size} if sign > 0 else {})


FORMAT = Format(
    name="longhorn",
    summary="Longhorn: volumes, replicas, nodes and settings as kubectl get -o json prints them",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    enforces=True,
    carrier=CARRIER,
    left_out=left_out,
    asks=PRINT,
    hint=hint,
    members=MEMBERS,
    stranded="Longhorn builds a replica from a healthy one, and these volumes have none on a disk "
    "that is up: bring back a node that holds one, salvage the volume or restore a backup, and "
    "read again",
)
