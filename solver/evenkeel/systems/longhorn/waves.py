"""Waves as Longhorn takes them: replicas that are built, and others that go once those are healthy.

Longhorn has no word for "move": ``patches`` says what is done in its place. Replicas are found by
their labels, volume and disk, so that a call may be repeated, and the way back finds what the way
there has built.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.systems.folders.carrier import (
    Carrier,
    Change,
    Setting,
    Wave,
    all_nodes,
    anybody,
)
from evenkeel.systems.longhorn.changes import Change as Exchange
from evenkeel.systems.longhorn.changes import Seat, replica_name
from evenkeel.systems.longhorn.cluster import Snapshot
from evenkeel.systems.longhorn.objects import Raw
from evenkeel.systems.longhorn.patches import held_fields, manifest, templates

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)
"""What Kubernetes takes as a name, and as the value of a label that is one."""

SHELL = r"""
still='replicaAutoBalance and dataLocality of some volumes are still disabled'

failed() { printf '%s\n' "$1: stopped" >&2; exit 1; }

# on VOLUME DISK: the replicas of a volume on a disk, by their labels
on() {
  kubectl -n "$NAMESPACE" get replicas.longhorn.io -o name \
    -l "longhornvolume=$1,longhorndiskuuid=$2"
}

# set_volume VOLUME PATCH
set_volume() {
  kubectl -n "$NAMESPACE" patch volumes.longhorn.io "$1" --type=merge -p "$2" ||
    failed "volume $1"
}

# hold_volume VOLUME PATCH BACK: what gives it back is kept; what is kept already is not kept anew
hold_volume() {
  [ -e "$held/$1" ] || {
    mkdir -p "$held" && printf '%s\n' "$3" >"$held.part" && mv "$held.part" "$held/$1"
  } || failed "what is held of $1 could not be kept"
  set_volume "$1" "$2"
}

# give_volume VOLUME BACK
give_volume() {
  set_volume "$1" "$2"
  rm -f "$held/$1"
  rmdir "$held" 2>/dev/null || :
}

release() {
  for file in "$held"/*; do
    [ ! -e "$file" ] || (give_volume "${file##*/}" "$(cat "$file")") || return 1
  done
}

# told VOLUME FIELD
told() { kubectl -n "$NAMESPACE" get volumes.longhorn.io "$1" -o "jsonpath={.status.$2}"; }

# await VOLUME FIELD VALUE
await() {
  spent=0
  until [ "$(told "$1" "$2")" = "$3" ]; do
    nap "volume $1: $2 is not $3" || failed "volume $1 is not $3"
  done
}

# build VOLUME DISK MANIFEST
build() {
  there=$(on "$1" "$2") || failed "replicas of $1"
  [ -z "$there" ] || return 0
  await "$1" state attached
  printf %s "$3" | kubectl -n "$NAMESPACE" create -f - || failed "replica of $1"
}

# healthy VOLUME DISK
healthy() {
  spent=0
  while :; do
    there=$(on "$1" "$2") || failed "replicas of $1"
    [ -n "$there" ] || failed "replica of $1 is gone"
    state=$(kubectl -n "$NAMESPACE" get "$there" \
      -o 'jsonpath={.spec.healthyAt}/{.spec.failedAt}') || failed "$there"
    case $state in ?*/) return 0 ;; esac
    nap "volume $1: $there is not healthy" || failed "$there of volume $1 does not become healthy"
  done
}

# drop VOLUME DISK
drop() {
  there=$(on "$1" "$2") || failed "replicas of $1"
  [ -n "$there" ] || return 0
  kubectl -n "$NAMESPACE" delete "$there" || failed "$there"
}

take() {
  kubectl -n "$NAMESPACE" get -o json \
    nodes.longhorn.io,volumes.longhorn.io,replicas.longhorn.io,settings.longhorn.io \
    >"$dump/longhorn.json"
}

# shellcheck disable=SC1090 # each wave has a file of its own
apply() { (. "$1.calls.sh") </dev/null; }

settle() { :; }
"""

SETTINGS = (Setting("NAMESPACE", "longhorn-system", "namespace of Longhorn"),)

NOTES = (
    "It needs `kubectl`, and who may patch volumes and create and delete replicas of Longhorn.",
    "A replica is created on its disk as Longhorn's scheduler would leave it, and the one that it "
    "replaces is deleted only when it is healthy; `numberOfReplicas` is not changed. This was made "
    "from longhorn-manager's sources and not tried on a live cluster: try it on one volume first.",
    "While a wave is on its way its volumes have `replicaAutoBalance` and `dataLocality` disabled; "
    "then they are as they were. Who stops in the middle of a wave and does not go on gives them "
    "back by `sh run.sh release`.",
    "A volume that is detached is waited for: Longhorn copies data only while it is attached.",
)


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
    """Return the calls of each wave: all that is built, then, volume by volume, what goes.

    Raises
    ------
    InvalidInput
        If the cluster was not read from Longhorn's resources, a disk has no UUID, a volume would
        have two replicas on a disk or none at all, or a name is none of Kubernetes.
    """
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
    return [{"calls.sh": "".join(f"{x}\n" for x in writer.calls(wave)).encode()} for wave in waves]


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
            told = (states[snapshot.hosts.names[host]].diskStatus or {}).get(disk)
            self.uuid.append(told.diskUUID if told is not None else "")
        self.held: dict[int, list[tuple[str, Any]]] = {}

    def check(self, change: Change) -> None:
        """Note what keeps a change from being made."""
        name = change.name
        texts = [name, _namespace(self.snapshot)]
        for n in (*change.joins, *change.leaves):
            if not self.uuid[n]:
                message = "has no diskUUID: its replicas cannot be told"
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
                message = "has two replicas on a disk: mend that first, or pin the volume"
                self.faults.add(name, [self.cluster.nodes.names[n] for n in held], message)
        own = self.snapshot.objects.volumes[change.partition].value.metadata
        if own.namespace != _namespace(self.snapshot):
            self.faults.add(name, own.namespace, "is another namespace than that of the others")

    def calls(self, wave: Wave) -> Iterator[str]:
        """Yield the calls of a wave."""
        volumes = self.snapshot.objects.volumes
        auto = self.snapshot.settings.replica_auto_balance
        held = {one.partition: held_fields(volumes[one.partition], auto) for one in wave}
        for one in wave:
            if held[one.partition]:
                off = _spec({key: "disabled" for key, _ in held[one.partition]})
                yield f"hold_volume {_quoted(one.name, off, _spec(dict(held[one.partition])))}"
            for n in one.joins:
                yield f"build {_quoted(one.name, self.uuid[n], self._manifest(one, n))}"
        for one in wave:
            for n in one.joins:
                yield f"healthy {_quoted(one.name, self.uuid[n])}"
            if len(one.leaves) > len(one.joins):
                yield f"await {_quoted(one.name, 'robustness', 'healthy')}"
            for n in one.leaves:
                yield f"drop {_quoted(one.name, self.uuid[n])}"
            if held[one.partition]:
                back = _spec(dict(held[one.partition]))
                yield f"give_volume {_quoted(one.name, back)}"

    def _manifest(self, change: Change, n: int) -> str:
        """Return the new replica of a volume on a disk as JSON."""
        p, first = change.partition, self.cluster.placement.first
        names = self.snapshot.replicas.names
        taken = {*names[first[p] : first[p + 1]]}
        drawn = (replica_name(change.name, f"{self.cluster.nodes.names[n]} {i}") for i in count())
        name = next(one for one in drawn if one not in taken)
        exchange = Exchange(p, Seat(), Seat(name, n))
        body = manifest(self.cluster, self.snapshot, exchange, self.templates.get(change.name))
        return msgspec.json.encode(body).decode()


def _quoted(*texts: str) -> str:
    return " ".join(map(shlex.quote, texts))


def _spec(fields: Mapping[str, Any]) -> str:
    """Return the patch that sets fields of a volume; those that are None are taken away."""
    return msgspec.json.encode({"spec": fields}).decode()


def _namespace(snapshot: Snapshot) -> str:
    """Return the namespace of the first volume."""
    spaces = (one.value.metadata.namespace for one in snapshot.objects.volumes)
    return next(spaces, "longhorn-system")


def given(plan: "Plan") -> Mapping[str, str]:
    """Return the namespace."""
    return {"NAMESPACE": _namespace(plan.cluster.native)}


CARRIER = Carrier(
    files, SHELL, SETTINGS, NOTES, anybody, lists_nodes=all_nodes, given=given, gives_up=False
)
