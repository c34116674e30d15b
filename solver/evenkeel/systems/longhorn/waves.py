"""Waves as Longhorn takes them: replicas that are built, and others that go once those are healthy.

Longhorn has no word for "move": ``patches`` says what is done in its place. Replicas are found by
their labels, volume and disk, so that a call may be repeated, and the way back finds what the way
there has built.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
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
from evenkeel.systems.longhorn.cluster import Snapshot
from evenkeel.systems.longhorn.objects import Raw
from evenkeel.systems.longhorn.patches import Change as Exchange
from evenkeel.systems.longhorn.patches import Slot, held_fields, manifest, replica_name, templates

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
