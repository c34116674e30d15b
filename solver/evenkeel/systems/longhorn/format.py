"""The Longhorn format: recognise, read and write its resources, and carry plans out."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.longhorn.cluster import Snapshot, left_out, read
from evenkeel.systems.longhorn.objects import MEMBERS, Raw, hint, recognises
from evenkeel.systems.longhorn.patches import (
    ABOUT,
    Change,
    Slot,
    Steps,
    changes,
    manifest,
    steps_of,
    templates,
)
from evenkeel.systems.longhorn.waves import CARRIER
from evenkeel.systems.registry import Format


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the resources as they will be, and with a placement the steps there and back.

    ``plan.json`` goes with ``plan.patches.json`` (the steps, each with its reason, its resource,
    its JSON patch or manifest and its command) and ``plan.undo.json`` (the steps back, once the
    others are done; a replica that was missing stays).
    """
    snapshot = cluster.native
    if not isinstance(snapshot, Snapshot):
        value = type(snapshot).__name__
        message = "was not read from Longhorn's resources: there are none to write"
        raise InvalidInput([Fault("cluster.native", value, message)])
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


def _check(
    cluster: Cluster, snapshot: Snapshot, placement: Placement | None, found: Sequence[Change]
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


def _steps(cluster: Cluster, snapshot: Snapshot, found: Sequence[Change]) -> bytes:
    return _formatted(Steps(ABOUT, steps_of(cluster, snapshot, found)))


def _listed(snapshot: Snapshot, items: Sequence[Raw]) -> bytes:
    head = snapshot.objects.head
    return _formatted(head | {"items": items} if "items" in head else items[0])


def _formatted(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=4) + b"\n"


def _afterwards(cluster: Cluster, snapshot: Snapshot, found: Sequence[Change]) -> list[Raw]:
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
    cluster: Cluster, snapshot: Snapshot, items: list[Raw | None], found: Sequence[Change]
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
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
    members=MEMBERS,
    stranded="Longhorn builds a replica from a healthy one, and these volumes have none on a disk "
    "that is up: bring back a node that holds one, salvage the volume or restore a backup, and "
    "read again",
)
