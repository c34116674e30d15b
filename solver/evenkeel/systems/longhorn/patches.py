"""Steps from one placement to another as patches that a person reviews and applies with kubectl.

Longhorn has no operation that moves a replica. The steps here do by hand as its controllers do: a
replica is created on its disk, Longhorn builds it, and when it is healthy the old one is deleted.
Meanwhile the balancing and the data locality of the volume are suspended, so that Longhorn does not
itself choose one of its N + 1 replicas for removal. N never changes: the volume has N healthy
replicas, or as many as it had, at every step.

References
----------
longhorn-manager, ``controller/volume_controller.go`` (``createReplica``, ``replenishReplicas``,
``cleanupExtraHealthyReplicas``), ``scheduler/replica_scheduler.go`` (``scheduleReplicaToDisk``).
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count, groupby
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.systems.longhorn.cluster import Snapshot
from evenkeel.systems.longhorn.objects import API_VERSION, Found, Raw, VolumeResource

NOWHERE = -1


@dataclass(frozen=True)
class Slot:
    """A replica on a disk, which is a node of the cluster; "" and -1 where there is none."""

    replica: str = ""
    disk: int = NOWHERE


@dataclass(frozen=True)
class Change:
    """One replica that is built, and the one that goes when it is healthy; either may be none.

    ``tight`` marks a node that may lack room for both at a time.
    """

    volume: int
    old: Slot
    new: Slot
    tight: bool = False

    def undone(self, name: str) -> "Change":
        """Return the change that takes this one back: it builds where the old replica was."""
        there = self.old.disk
        back = Slot(replica_name(name, f"undo {there}"), there) if there >= 0 else Slot()
        return Change(self.volume, self.new, back)


def replica_name(volume: str, key: str) -> str:
    """Return a name as Longhorn makes them, the same for the same change of a volume.

    >>> replica_name("pvc-1", "node-1/disk-1")
    'pvc-1-r-03cb7ebb'
    """
    digits = blake2b(f"{volume} {key}".encode(), digest_size=4).hexdigest()
    return f"{volume}-r-{digits}"


def changes(cluster: Cluster, names: Sequence[str], after: Placement) -> list[Change]:
    """List what has to be built and what goes, so that there is room at every step.

    Replicas that only swap their slots do not change. What finds no room before another has left
    comes last, marked as such.
    """
    before = cluster.placement
    moved = np.flatnonzero(before.node != after.node)
    volumes, begin = np.unique(before.owner[moved], return_index=True)
    found: list[Change] = []
    for p, slots in zip(volumes.tolist(), np.split(moved, begin[1:]), strict=False):
        found += _of_volume(cluster, names, after, p, slots.tolist())
    return list(_with_room(cluster, found))


def _of_volume(
    cluster: Cluster, names: Sequence[str], after: Placement, p: int, slots: list[int]
) -> Iterator[Change]:
    """Pair the replicas of a volume that go with those that are built."""
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
    first = cluster.placement.first
    taken = set(names[first[p] : first[p + 1]])
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
        yield Change(p, old, Slot(name, disk))
    for k in leaving:
        yield Change(p, Slot(names[k], int(was[k])), Slot())


def _with_room(cluster: Cluster, found: Iterable[Change]) -> Iterator[Change]:
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


def _has_room(cluster: Cluster, held: NDArray[np.float64], one: Change) -> bool:
    if one.new.disk < 0:
        return True
    needed = held[one.new.disk] + cluster.partitions.load.voter[one.volume]
    return bool((needed <= cluster.nodes.capacity[one.new.disk]).all())


def _apply(held: NDArray[np.float64], load: NDArray[np.float64], one: Change) -> None:
    if one.new.disk >= 0:
        held[one.new.disk] += load[one.volume]
    if one.old.disk >= 0:
        held[one.old.disk] -= load[one.volume]


ANEW: Mapping[str, Any] = {
    "failedAt": "", "healthyAt": "", "lastFailedAt": "", "lastHealthyAt": "", "dataPath": "",
    "desireState": "stopped", "evictionRequested": False, "hardNodeAffinity": "",
    "logRequested": False, "migrationEngineName": "", "rebuildRetryCount": 0,
    "salvageRequested": False,
}  # fmt: skip
"""Status fields of a replica, as in one that was just created."""

HELD: Mapping[str, Sequence[str]] = {
    "replicaAutoBalance": (
        "", "ignored", "least-effort", "best-effort", "least_effort", "best_effort",
    ),
    "dataLocality": ("best-effort",),
}  # fmt: skip
"""Fields of a volume in which Longhorn would choose by itself what to delete, and with what."""

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


def steps_of(cluster: Cluster, snapshot: Snapshot, found: Sequence[Change]) -> list[Step]:
    """Spell changes out as steps; those of one volume that follow each other hold it once."""
    writer = _Writer(cluster, snapshot)
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


def manifest(cluster: Cluster, snapshot: Snapshot, change: Change, template: Raw | None) -> Raw:
    """Return a replica as Longhorn's scheduler would leave it: scheduled, and not yet built.

    It takes what replicas of a volume have in common from ``template``, another one of them.
    """
    volume = snapshot.objects.volumes[change.volume]
    host, name = snapshot.disks.host[change.new.disk], snapshot.disks.names[change.new.disk]
    node = snapshot.objects.nodes[host].value
    disks, states = node.spec.disks or {}, node.status.diskStatus or {}
    uuid, node_name = states[name].diskUUID, node.metadata.name
    own = volume.value.metadata
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


class _Writer:
    """Finds the resources that changes are about."""

    def __init__(self, cluster: Cluster, snapshot: Snapshot) -> None:
        self.cluster = cluster
        self.snapshot = snapshot
        self.templates = templates(snapshot)

    def volume(self, number: int, own: Sequence[Change]) -> Iterator[Step]:
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

    def _change(self, found: Found[VolumeResource], one: Change) -> Iterator[Step]:
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
        self,
        found: Found[VolumeResource],
        verb: Verb,
        reason: str,
        replica: str = "",
        **more: Any,
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
