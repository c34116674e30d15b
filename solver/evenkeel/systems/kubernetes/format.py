"""Kubernetes: read nodes and pods as kubectl prints them, write evictions and patches.

References
----------
Kubernetes API: ``Node``, ``Pod`` (topology spread constraints, affinity, tolerations),
``PodDisruptionBudget``, ``policy/v1`` ``Eviction``, ``PersistentVolume`` (node affinity).
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import Document, largest
from evenkeel.systems.json_text import encode_indented
from evenkeel.systems.kubernetes.constraints import HOST, Constraints, Selected, meets, ready
from evenkeel.systems.kubernetes.resources import (
    ASKS,
    Node,
    Objects,
    Pod,
    Volume,
    gather,
    hint,
    recognises,
)
from evenkeel.systems.kubernetes.workloads import (
    HOST_PORT,
    OPERATORS,
    PODS,
    Workload,
    amounts,
    share_of,
    sort,
    together,
)
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import Notes, noted
from evenkeel.systems.payload import check_names
from evenkeel.systems.registry import Format

Mask = NDArray[np.bool_]
# labels that bind volumes to zones and regions; two underscores separate several
ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


class Reach:
    """Looks up which nodes reach the volumes of a pod, each volume once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._nodes = [node for _, node in objects.nodes.values()]
        self._masks: dict[str, Mask] = {}
        self.missing: dict[str, None] = {}  # claims of pods that no file has

        # workloads with volumes on the disks of nodes, which stay behind
        self.local: dict[str, None] = {}

    def of_pod(self, one: Workload, pod: Pod) -> Mask:
        """Return the nodes that reach all volumes of a pod, (N,)."""
        mask = np.ones(len(self._nodes), np.bool_)
        space = pod.metadata.namespace
        for each in pod.spec.volumes or ():
            if each.emptyDir is not None or each.hostPath is not None:
                self.local[one.full_name] = None
            name = ""
            if each.persistentVolumeClaim is not None:
                name = each.persistentVolumeClaim.claimName
            elif each.ephemeral is not None:
                name = f"{pod.metadata.name}-{each.name}"
            if not name:
                continue
            claim = self._objects.claims.get((space, name))
            if claim is None:
                self.missing[f"{space}/{name}"] = None
            elif bound := claim[1].spec.volumeName:
                mask &= self._of_volume(bound)
        return mask

    def _of_volume(self, name: str) -> Mask:
        if name not in self._masks:
            found = self._objects.volumes.get(("", name))
            if found is None:
                self.missing[name] = None
            self._masks[name] = np.array(
                [found is None or _reaches(found[1], node) for node in self._nodes], np.bool_
            )
        return self._masks[name]


def _reaches(volume: Volume, node: Node) -> bool:
    """Return whether a node reaches a volume, by its affinity and labels."""
    affinity = volume.spec.nodeAffinity
    if affinity and affinity.required and not meets(affinity.required, node):
        return False
    own, labels = volume.metadata.labels or {}, node.metadata.labels or {}
    return all(labels[key] in own[key].split("__") for key in ZONES if key in own and key in labels)


def reach(objects: Objects, workloads: Sequence[Workload], place: Mapping[str, int]) -> None:
    """Set the nodes that reach the volumes of each workload's pods, and note unknown volumes."""
    looked = Reach(objects)
    astray = []
    for one in workloads:
        masks = [looked.of_pod(one, pod) for _, pod in one.pods]
        for (_, pod), mask in zip(one.pods, masks, strict=True):
            n = place.get(pod.spec.nodeName or "", -1)
            if n >= 0 and not mask[n]:
                mask[:] = False
                mask[n] = True
                astray.append(f"{pod.metadata.namespace}/{pod.metadata.name}")
        if not all(mask.all() for mask in masks):
            one.reach = masks
    if looked.missing:
        what = some_of([*looked.missing], printable, MOST_NAMED)
        objects.notes.add(
            f"no volume for {what}: its pod may go to any node; add kubectl get pv,pvc -A -o json"
        )
    if astray:
        objects.notes.add(
            f"{some_of(astray, printable, MOST_NAMED)} run on nodes that do not reach their "
            "volumes, by labels: they stay"
        )
    if looked.local:
        what = some_of([*looked.local], printable, MOST_NAMED)
        objects.notes.add(
            f"pods of {what} have volumes on the disk of their node (emptyDir, hostPath): "
            "their content is lost when a pod moves"
        )


def waiting_apart(workloads: Sequence[Workload]) -> list[Workload]:
    """Return workloads, with each pending pod that has a bound volume as one of its own."""
    found = []
    for one in workloads:
        waits = [
            bool(one.reach) and not one.reach[i].all() and not pod.spec.nodeName
            for i, (_, pod) in enumerate(one.pods)
        ]
        rest = [i for i, alone in enumerate(waits) if not alone]
        if not any(waits) or len(one.pods) == 1:
            found.append(one)
            continue
        if rest:
            found.append(_part(one, rest))
        for i, alone in enumerate(waits):
            if alone:
                apart = _part(one, [i])
                apart.waits, apart.requests = one.pods[i][1].metadata.name, one.asked[i]
                found.append(apart)
    return found


def _part(one: Workload, chosen: Sequence[int]) -> Workload:
    """Return a workload with some of its pods."""
    reached = [one.reach[i] for i in chosen]
    return replace(
        one,
        pods=[one.pods[i] for i in chosen],
        asked=[one.asked[i] for i in chosen],
        reach=[] if all(mask.all() for mask in reached) else reached,
    )


NAME = "kubernetes"
MOST_NAMED = 4  # most names in a note

SEVERAL = (
    "several budgets select the pods of {}: the eviction of a pod with more than one is "
    "refused, and they stay"
)

USUAL_PODS = 110  # default number of pods per kubelet

ALWAYS = ("cpu", "memory", PODS)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The objects that were read, and the pod of each replica, for writing."""

    items: tuple[msgspec.Raw, ...]  # objects as JSON
    workloads: tuple[Workload, ...]  # p workloads, with their pods in the order of the slots
    hosts: dict[str, str]  # the label by which affinities name each node
    notes: Notes  # requests of pods that no rule keeps, assumptions, and pods that stay


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from what ``kubectl get nodes,pods,pdb,pv,pvc -A -o json`` prints."""
    faults = FaultList()
    objects = gather(faults, documents)
    if not objects.nodes and not faults:
        listed = [document.name for document in documents]
        faults.add("source", listed, "lists no node: needs kubectl get nodes,pods -A -o json")
    nodes = objects.nodes = dict(sorted(objects.nodes.items()))
    # pods that no controller replaces elsewhere, and those of daemon sets, stay; what they ask for
    # is taken from the capacity of their nodes
    workloads, stay = sort(objects)
    place = {name: n for n, name in enumerate(nodes)}
    reach(objects, workloads, place)
    workloads = waiting_apart(workloads)
    # where pods may not be beside those of others, nodes are closed on which these stand now; what
    # else pods ask for of pods of others, and of nodes that they would rather be on, is not kept
    constraints = Constraints(objects, workloads, together(stay))
    rule = [constraints.rule_of(w) for w in range(len(workloads))]
    sets = sorted({*constraints.together.values()}, key=min)
    group_rule = [constraints.rule_together(own) for own in sets]
    spaces = sorted({one.namespace for one in workloads})
    names = [" and ".join(workloads[w].full_name for w in sorted(own)) for own in sets]
    group = [
        sets.index(constraints.together[w]) + len(spaces)
        if w in constraints.together
        else spaces.index(one.namespace)
        for w, one in enumerate(workloads)
    ]
    given: dict[str, Any] = {
        "node_names": [*objects.nodes],
        "partition_names": [one.full_name for one in workloads],
        "group": np.array(group, np.int64),
        "group_names": [*spaces, *names],
        "group_rule": np.array([-1] * len(spaces) + group_rule, np.int64),
        "rules": constraints.rules,
        "rule": np.array(rule, np.int64),
        "forbidden": constraints.forbidden(),
        "native_format": NAME,
    }
    least, held = _budgeted(objects, workloads, stay)
    given |= constraints.domains()
    given |= _states(objects)
    given |= _placement(objects, workloads, place, least, held)
    given |= _amounts(objects, workloads, stay, place)
    given["native"] = Snapshot(
        () if objects.is_printed else tuple(objects.items),
        tuple(workloads),
        {name: (one.metadata.labels or {}).get(HOST, name) for name, (_, one) in nodes.items()},
        objects.notes,
    )
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def left_out(cluster: Cluster) -> Iterable[str]:
    """Return notes on requests that are not kept, and on assumptions."""
    return noted(cluster.native)


def _states(objects: Objects) -> dict[str, Any]:
    """Return the nodes that are ready, and those that take pods."""
    alive, open_ = [], []
    for _, node in objects.nodes.values():
        alive.append(ready(node))
        leaving = node.spec.unschedulable or node.metadata.deletionTimestamp is not None
        open_.append(alive[-1] and not leaving)
    return {"alive": np.array(alive, np.bool_), "accepts": np.array(open_, np.bool_)}


def _placement(
    objects: Objects,
    workloads: Sequence[Workload],
    place: Mapping[str, int],
    least: NDArray[np.int64],
    held: Collection[tuple[int, int]],
) -> dict[str, Any]:
    """Return the node of each pod, a slot each, without leaders."""
    node, flags, tied = [], [], []
    for p, one in enumerate(workloads):
        for i, (_, pod) in enumerate(one.pods):
            n = place.get(pod.spec.nodeName or "", -1)
            alone = bool(one.reach) and one.reach[i].sum() == 1
            stays = n >= 0 and (alone or (p, i) in held or least[p] == len(one.pods))
            if n >= 0 and alone and one.reach[i][n]:
                tied.append(f"{one.namespace}/{pod.metadata.name} on {pod.spec.nodeName}")
            node.append(n)
            flags.append(Flag.HEALTHY * (pod.status.phase == "Running") | Flag.PINNED * stays)
    if tied:
        objects.notes.add(
            "pods with volumes that no other node reaches: they stay "
            f"({some_of(tied, printable, MOST_NAMED)}), as pinned replicas do"
        )
    width = np.array([len(one.pods) for one in workloads], np.int64)
    return {
        "placement": np.array(node, np.int64),
        "first": np.concatenate([[0], np.cumsum(width)]).astype(np.int64),
        "leader": np.full(len(workloads), -1),
        "flags": np.array(flags, np.int64),
        "replicas": width,
        "min_active": least,
    }


def _amounts(
    objects: Objects,
    workloads: Sequence[Workload],
    stay: Sequence[tuple[str, Pod, dict[str, float]]],
    place: Mapping[str, int],
) -> dict[str, Any]:
    """Return requests as loads, and capacities of nodes for pods that may move."""
    asked = {name for one in workloads for name in one.requests} | {PODS}
    usual = [name for name in ALWAYS if name in asked or not objects.is_printed]
    names = [*usual, *sorted(asked - {*ALWAYS})]
    column = {name: d for d, name in enumerate(names)}
    capacity = np.zeros((len(objects.nodes), len(names)))
    capacity[:, [name.startswith(HOST_PORT) for name in names]] = 1.0
    names_of, silent, partly = [*objects.nodes], list[int](), list[int]()
    for n, (at, node) in enumerate(objects.nodes.values()):
        given, key = node.status.allocatable, "allocatable"
        if given is None:
            given, key = node.status.capacity, "capacity"
        listed = amounts(objects.faults, f"{at}: status.{key}", given)
        if PODS not in listed:
            silent.append(n)
            listed |= {PODS: USUAL_PODS} if listed else {}
        if listed and not ({*names} & {"cpu", "memory"}) <= listed.keys():
            partly.append(n)
        for name in column.keys() & listed.keys():
            capacity[n, column[name]] = listed[name]
    if partly:
        objects.notes.add(
            "no cpu or memory of "
            f"{some_of([names_of[n] for n in partly], printable, MOST_NAMED)}: no pod that "
            "requests it is placed there"
        )
    if silent:
        objects.notes.add(
            f"no room for pods on {some_of([names_of[n] for n in silent], printable, MOST_NAMED)}: "
            f"a node without amounts takes none, others {USUAL_PODS}"
        )
    # nodes of tables have a room that is supposed: less by one, it would not hold a whole share
    for _, pod, own in () if objects.is_printed else stay:
        for name in column.keys() & own.keys():
            capacity[place[pod.spec.nodeName or ""], column[name]] -= own[name]
    load = np.zeros((len(workloads), len(names)))
    blank = {n for n in silent if not capacity[n, : len(usual)].any()}
    capacity = np.maximum(capacity, 0.0)
    for p, one in enumerate(workloads):
        for name, amount in one.requests.items():
            load[p, column[name]] = amount
            for (_, pod), own in zip(one.pods, one.asked, strict=True):
                n = place.get(pod.spec.nodeName or "", -1)
                if n >= 0:
                    held = amount if n in blank else amount - own.get(name, 0.0)
                    capacity[n, column[name]] += held
    return {"dimensions": names, "load": load, "capacity": capacity}


def _budgeted(
    objects: Objects,
    workloads: Sequence[Workload],
    stay: Sequence[tuple[str, Pod, dict[str, float]]],
) -> tuple[NDArray[np.int64], set[tuple[int, int]]]:
    """Return the least pods of each workload, and pods that no budget lets go, by slot."""
    slots = [(p, i) for p, one in enumerate(workloads) for i in range(len(one.pods))]
    pods = [pair for one in workloads for pair in one.pods] + [(at, pod) for at, pod, _ in stay]
    # pods of one workload may have labels of their own, such as the role in which they run
    selected = Selected(
        [
            Workload(pod.metadata.namespace, "Pod", pod.metadata.name, [(at, pod)])
            for at, pod in pods
        ]
    )
    least = np.zeros(len(workloads), np.int64)
    held, bound = set[tuple[int, int]](), set[tuple[int, int]]()
    fixed, awaited = [], list[str]()
    for at, budget in objects.budgets.values():
        spec, space = budget.spec, budget.metadata.namespace
        found = selected.by(space, spec.selector)
        chosen = {slots[k] for k in found if k < len(slots)}
        if not chosen or (spec.minAvailable is None and spec.maxUnavailable is None):
            continue
        if spec.minAvailable is not None:
            least_of = share_of(
                objects.faults, f"{at}: spec.minAvailable", spec.minAvailable, len(found)
            )
            away = len(found) - least_of
        else:
            given = spec.maxUnavailable or 0
            away = share_of(objects.faults, f"{at}: spec.maxUnavailable", given, len(found))
        status, always = budget.status, spec.unhealthyPodEvictionPolicy == "AlwaysAllow"
        if away <= 0:
            fixed.append(f"{space}/{budget.metadata.name}")
            held |= chosen
        elif status.disruptionsAllowed == 0 and not always:
            healthy = f"{status.currentHealthy} of {status.desiredHealthy}"
            awaited.append(f"{space}/{budget.metadata.name} ({healthy})")
        for p in sorted({p for p, _ in chosen & bound}):
            objects.notes.add(SEVERAL, workloads[p].full_name)
        held |= chosen & bound
        bound |= chosen
        for p, own in Counter(p for p, _ in chosen).items():
            if 0 < away < own:
                least[p] = max(least[p], len(workloads[p].pods) - away)
    for p, own in Counter(p for p, _ in held).items():
        if own == len(workloads[p].pods):
            least[p] = own
    if fixed:
        objects.notes.add(
            f"budgets {some_of(fixed, printable, MOST_NAMED)} allow no disruption: evictions "
            "would be refused, and these pods stay"
        )
    if awaited:
        objects.notes.add(
            f"budgets {some_of(awaited, printable, MOST_NAMED)} allow no disruption now, as "
            "too few of their pods are ready: evictions are refused until more are"
        )
    return least, held


HASH = "pod-template-hash"
# types of patches as kubectl calls them, and as the API does
PATCHES = {
    "strategic": "application/strategic-merge-patch+json", "merge": "application/merge-patch+json",
}  # fmt: skip

SCRIPT = """#!/bin/sh
# Evicts pods, one after the other; disruption budgets are kept: one that allows none is waited for.
# An eviction does not choose where the new pod will be: the scheduler does. Patch the workloads
# before, so that it prefers the nodes that were planned; a patch of a template renews all its pods.
# Nodes that are to take no pods are cordoned; kubectl uncordon opens them again.
set -eu
evict() {
  body='{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'"$2"'","namespace":"'"$1"'"}}'
  path="/api/v1/namespaces/$1/pods/$2/eviction"
  tries=0
  until printf %s "$body" | kubectl create --raw "$path" -f -; do
    kubectl -n "$1" get pod "$2" >/dev/null 2>&1 || return 0
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { echo "$1/$2 could not be evicted" >&2; exit 1; }
    sleep 5
  done
  kubectl -n "$1" wait --for=delete "pod/$2" --timeout=10m
}
"""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return evictions, and beside them patches of the workloads and a script; else all objects."""
    snapshot = cluster.native
    if not isinstance(snapshot, Snapshot):
        message = "was not read from Kubernetes: there are no pods to evict"
        raise InvalidInput([Fault("cluster.native", type(snapshot).__name__, message)])
    if not snapshot.items:
        message = "was read from tables of kubectl, without the rules of pods: give -o json"
        raise InvalidInput([Fault("cluster.native", len(snapshot.workloads), message)])
    if placement is None:
        return {path: _listed(snapshot)}
    # which nodes reach the volumes of a pod is known by their places
    placed = any(one.reach for one in snapshot.workloads)
    check_names(
        cluster,
        partitions=[one.full_name for one in snapshot.workloads],
        nodes=[*snapshot.hosts] if placed else snapshot.hosts,
    )
    moves = _moves(cluster, snapshot, placement)
    closed = cluster.nodes.alive & ~cluster.nodes.accepts
    closed &= np.isin(cluster.nodes.names, [one["from"] for one in moves])
    cordoned = [cluster.nodes.names[n] for n in np.flatnonzero(closed).tolist()]
    lines = [f"kubectl cordon {shlex.quote(name)}" for name in cordoned] + [
        f"evict {shlex.quote(one['namespace'])} {shlex.quote(one['pod'])}  # {one['from']}"
        for one in moves
    ]
    script = path if path.suffix == ".sh" else path.with_suffix(".sh")
    files = (
        {}
        if script == path
        else {path: encode_indented({"cordon": cordoned, "evictions": moves}, 1)}
    )
    patches = _patches(cluster, snapshot, placement, moves, closed)
    return files | {
        script: (SCRIPT + "".join(f"{line}\n" for line in lines)).encode(),
        script.with_suffix(".patches.json"): encode_indented({"patches": patches}, 1),
    }


def _listed(snapshot: Snapshot) -> bytes:
    """Return all objects as one list; what they hold is as it came."""
    items = b",\n".join(bytes(one) for one in snapshot.items)
    head = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[\n'
    return head + items + b"\n]}\n"


def _moves(cluster: Cluster, snapshot: Snapshot, after: Placement) -> list[dict[str, str]]:
    """Return the pods to evict; those that only change their slots with others stay."""
    before, names = cluster.placement, cluster.nodes.names
    found = []
    for p in np.unique(before.owner[before.node != after.node]).tolist():
        slots = range(int(before.first[p]), int(before.first[p + 1]))
        coming = [int(after.node[k]) for k in slots]
        leaving = []
        for k in slots:
            if int(before.node[k]) in coming:
                coming.remove(int(before.node[k]))
            else:
                leaving.append(k)
        one, first = snapshot.workloads[p], int(before.first[p])
        for k, target in _matched(one, first, leaving, coming):
            if target < 0 or before.node[k] < 0:
                continue  # nothing to evict, or no target: it stays
            pod = one.pods[k - first][1].metadata
            found.append(
                {
                    "namespace": pod.namespace, "pod": pod.name,
                    "workload": f"{one.kind}/{one.name}",
                    "from": names[int(before.node[k])], "to": names[target],
                }
            )  # fmt: skip
    return found


def _matched(
    one: Workload, first: int, leaving: Sequence[int], coming: Sequence[int]
) -> list[tuple[int, int]]:
    """Return which node each slot goes to: one that reaches its volumes, those with few first."""
    if not one.reach:
        return [*zip(leaving, coming, strict=True)]
    left, found = [*coming], {}
    for k in sorted(leaving, key=lambda k: int(one.reach[k - first].sum())):
        mask = one.reach[k - first]
        found[k] = next((n for n in left if n >= 0 and mask[n]), left[0])
        left.remove(found[k])
    return [(k, found[k]) for k in leaving]


def _patches(
    cluster: Cluster,
    snapshot: Snapshot,
    after: Placement,
    moves: Sequence[dict[str, str]],
    closed: NDArray[np.bool_],
) -> list[dict[str, Any]]:
    """Return for each workload that changes the patch that makes it prefer its planned nodes."""
    scope = partition_scope(cluster)
    changed = {(one["namespace"], one["workload"]) for one in moves}
    found = []
    for p, one in enumerate(snapshot.workloads):
        if one.waits or one.kind in OPERATORS:
            continue
        if (one.namespace, f"{one.kind}/{one.name}") not in changed:
            continue
        own = after.node[int(after.first[p]) : int(after.first[p + 1])]
        planned = np.unique(own[own >= 0])
        might = cluster.nodes.alive & scope.open[scope.rule[p]] & ~closed  # what is cordoned is out
        might &= np.logical_or.reduce(one.reach) if one.reach else True
        # to prefer all nodes that its pods may be on would renew them and say nothing
        if np.isin(np.flatnonzero(might), planned).all():
            continue
        names = [cluster.nodes.names[n] for n in planned.tolist()]
        wanted = [snapshot.hosts.get(node, node) for node in names]
        term = {
            "weight": 100,
            "preference": {"matchExpressions": [{"key": HOST, "operator": "In", "values": wanted}]},
        }
        kind, name = _template_owner(one)
        old = _preferred(one)
        body, undo = _body([*old, term]), _body(old)
        resource = f"{kind.lower()}/{name}"
        way = "merge" if "." in kind else "strategic"  # which only Kubernetes' own objects know
        command = (
            f"kubectl -n {shlex.quote(one.namespace)} patch {shlex.quote(resource)} "
            f"--type={way} -p {shlex.quote(msgspec.json.encode(body).decode())}"
        )
        found.append(
            {
                "namespace": one.namespace, "kind": kind, "name": name,
                "patchType": PATCHES[way],
                "body": body, "undo": undo, "command": command,
            }
        )  # fmt: skip
    return found


def _body(preferred: Sequence[Any]) -> dict[str, Any]:
    near = {"preferredDuringSchedulingIgnoredDuringExecution": list(preferred) or None}
    return {"spec": {"template": {"spec": {"affinity": {"nodeAffinity": near}}}}}


def _preferred(one: Workload) -> list[Any]:
    """Return the nodes that pods prefer already."""
    affinity = one.first.spec.affinity
    near = affinity.nodeAffinity if affinity else None
    listed = near.preferredDuringSchedulingIgnoredDuringExecution if near else None
    return listed or []


def _template_owner(one: Workload) -> tuple[str, str]:
    """Return the owner of the pod template: of a deployment's replica set, the deployment."""
    digest = one.labels.get(HASH, "")
    if one.kind == "ReplicaSet" and digest and one.name.endswith(f"-{digest}"):
        return "Deployment", one.name.removesuffix(f"-{digest}")
    return one.kind, one.name


FORMAT = Format(
    name="kubernetes",
    summary="Kubernetes: nodes, pods, budgets and volumes as kubectl get -o json prints them",
    suffixes=(".json", ".sh"),
    recognises=recognises,
    read=read,
    encode=encode,
    enforces=True,
    left_out=left_out,
    asks=ASKS,
    hint=hint,
    no_carrier="has no command that moves a pod: its scheduler chooses the node of every new pod, "
    "so that no guard could hold it to a plan; write the placement instead, which gives evictions "
    "and patches to review (-o plan.sh of solve), or cordon nodes and evict by hand",
)
