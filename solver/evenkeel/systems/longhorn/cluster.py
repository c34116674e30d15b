"""Longhorn's resources put together to a cluster: disks are nodes, volumes partitions."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.intake.stranded import with_left_alone, with_stranded
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.longhorn.auto_balance.compile import waiting_notice
from evenkeel.systems.longhorn.auto_balance.intake import (
    FAULTED,
    Disk,
    Host,
    Replica,
    System,
    Volume,
    cluster_of,
)
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.objects import (
    Condition,
    DiskSpec,
    DiskStatus,
    Found,
    NodeResource,
    Objects,
    ReplicaResource,
    VolumeResource,
    gather,
)
from evenkeel.systems.notes import MOST_NAMED

STRICT_LOCAL = "strict-local"
"""A data locality: the only replica is where the volume is attached."""

CORDONED = "KubernetesNodeCordoned"
"""Why a node that people have cordoned is not schedulable."""

NO_NODE = "no node {}: its replicas count as lost"
NO_DISK = "no disk {}: its replicas count as lost"
NO_VOLUME = "no volume of the replicas {}: they count for nothing"
MIGRATING = "that volumes are being migrated: {}: they are left alone until they have arrived"
NO_UUID = "no diskUUID of {}: it counts as not ready"
SAME_UUID = "no diskUUID of its own of {}: it counts as not ready"
ATTACHED = "no node {}, to which volumes are attached: they count as detached"

MOST_RETRIES = 5
"""A failed replica that was built anew so often is not tried again."""


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
        faults.add("source", names, "lists no Longhorn node: needs nodes, volumes and replicas")
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
        if waiting := waiting_notice(cluster, cluster.native.settings):
            yield f"of {waiting}"


def _lost(cluster: Cluster, system: System, gone: Container[str]) -> NDArray[np.bool_]:
    """Tell which volumes had healthy replicas, and have none on a disk that is up, (P,).

    One that was never attached has none either, and nothing to lose.
    """
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
    gone: set[str] = field(default_factory=set)
    """Volumes that had replicas on nodes or disks that are gone."""

    def host(self, found: Found[NodeResource]) -> Host:
        """Return a node with its disks."""
        node = found.value
        name, status = node.metadata.name, node.status
        conditions = self._conditions(found.at("status.conditions"), status.conditions)
        ready, schedulable = conditions.get("Ready"), conditions.get("Schedulable")
        cordoned = schedulable is not None and schedulable.reason == CORDONED
        of = status.diskStatus or {}
        return Host(
            name=name,
            disks=[
                self._disk(found, disk, spec, of.get(disk))
                for disk, spec in (node.spec.disks or {}).items()
            ],
            zone=status.zone,
            ready=_holds(ready),
            schedulable=_holds(schedulable) or cordoned,
            allow_scheduling=node.spec.allowScheduling,
            cordoned=cordoned,
            deleting=node.metadata.deletionTimestamp is not None,
            eviction_requested=node.spec.evictionRequested or status.autoEvicting,
            ready_since=nan if ready is None else self._time("", ready.lastTransitionTime),
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
            allow_scheduling=spec.allowScheduling,
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
                by_volume[spec.volumeName].append(self._replica(found, disk))
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
        built = bool(spec.healthyAt or spec.lastHealthyAt)
        failed = bool(spec.failedAt)
        return Replica(
            name=one.metadata.name,
            host=spec.nodeID,
            disk=disk,
            healthy=bool(spec.healthyAt) and not failed,
            failed=failed,
            active=spec.active,
            eviction_requested=spec.evictionRequested or one.status.evictionRequested,
            reusable=failed and built and spec.rebuildRetryCount < MOST_RETRIES,
            healthy_at=self._time(found.at("spec.healthyAt"), spec.healthyAt),
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
        return Volume(
            name=name,
            size=int(spec.size),
            replicas=by_volume.get(name, ()),
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
