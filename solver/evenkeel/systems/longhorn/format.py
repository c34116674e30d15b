"""The Longhorn format: recognise, read and write its resources, and carry plans out.

Longhorn has no word for "move": ``patches`` says what is done in its place. Replicas are found by
their labels, volume and disk, so that a call may be repeated, and the way back finds what the way
there has built.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
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
from evenkeel.systems.longhorn.cluster import Snapshot, left_out, read
from evenkeel.systems.longhorn.objects import MEMBERS, Raw, hint, recognises
from evenkeel.systems.longhorn.patches import (
    ABOUT,
    Slot,
    Steps,
    changes,
    held_fields,
    manifest,
    replica_name,
    steps_of,
    templates,
)
from evenkeel.systems.longhorn.patches import (
    Change as Exchange,
)
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)
"""What Kubernetes takes as a name, and as the value of a label that is one."""

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
    snapshot = cluster.native
    if not isinstance(snapshot, Snapshot):
        value, message = type(snapshot).__name__, "was not read from Longhorn's resources"
        raise InvalidInput([Fault("cluster.native", value, message)])
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
        self.templates: Mapping[str, Raw] = templates(snapshot)
        states = {one.value.metadata.name: one.value.status for one in snapshot.objects.nodes}
        self.uuid = []
        for disk, host in zip(snapshot.disks.names, snapshot.disks.host.tolist(), strict=True):
            state = (states[snapshot.hosts.names[host]].diskStatus or {}).get(disk)
            self.uuid.append(state.diskUUID if state is not None else "")
        self.held: dict[int, list[tuple[str, Any]]] = {}

    def check(self, change: Change) -> None:
        """Note what keeps a change from being made."""
        name = change.name
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
            if len({*held}) < len(held):
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
        now = self.snapshot.objects.volumes[volume].value.spec.numberOfReplicas
        ends = now, int(self.cluster.partitions.replicas[volume])
        return min(max(sum(n >= 0 for n in nodes), min(ends)), max(ends))

    def _manifest(self, change: Change, n: int) -> bytes:
        """Return the new replica of a volume on a disk as JSON."""
        p, first = change.partition, self.cluster.placement.first
        names = self.snapshot.replicas.names
        taken = {*names[first[p] : first[p + 1]]}
        drawn = (replica_name(change.name, f"{self.cluster.nodes.names[n]} {i}") for i in count())
        name = next(one for one in drawn if one not in taken)
        exchange = Exchange(p, Slot(), Slot(name, n))
        body = manifest(self.cluster, self.snapshot, exchange, self.templates.get(change.name))
        return msgspec.json.encode(body)


def _namespace(snapshot: Snapshot) -> str:
    """Return the namespace of the first volume."""
    spaces = (one.value.metadata.namespace for one in snapshot.objects.volumes)
    return next(spaces, "longhorn-system")


def gives_up(cluster: Cluster) -> NDArray[np.bool_]:
    """Return the volumes that give replicas up again: those of which another number is wanted."""
    now = [one.value.spec.numberOfReplicas for one in cluster.native.objects.volumes]
    return np.not_equal(np.array(now, np.int32), cluster.partitions.replicas, dtype=np.bool_)


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the namespace."""
    return {"NAMESPACE": _namespace(plan.cluster.native)}


CHECKS = {
    "there": there, "built": built, "attached": equals("attached"), "healthy": equals("healthy"),
}  # fmt: skip

CARRIER = Carrier(
    orders, look, CHECKS, SETTINGS, NOTES, still=STILL, leader=anybody, lists_nodes=all_nodes,
    given=given, gives_up=gives_up,
)  # fmt: skip


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
    return _formatted(Steps(ABOUT, steps_of(cluster, snapshot, found)))


def _listed(snapshot: Snapshot, items: Sequence[Raw]) -> bytes:
    head = snapshot.objects.head
    return _formatted(head | {"items": items} if "items" in head else items[0])


def _formatted(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=4) + b"\n"


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
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
    members=MEMBERS,
    stranded="Longhorn builds a replica from a healthy one, and these volumes have none on a disk "
    "that is up: bring back a node that holds one, salvage the volume or restore a backup, and "
    "read again",
)
