"""Kubernetes: read nodes and pods as kubectl prints them, write evictions and patches.

References
----------
Kubernetes API: ``Node``, ``Pod`` (topology spread constraints, affinity, tolerations),
``PodDisruptionBudget``, ``policy/v1`` ``Eviction``, ``PersistentVolume`` (node affinity).
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.kubernetes.cluster import Snapshot, left_out, read
from evenkeel.systems.kubernetes.constraints import HOST
from evenkeel.systems.kubernetes.objects import hint, recognises
from evenkeel.systems.kubernetes.workloads import Workload
from evenkeel.systems.registry import Format

HASH = "pod-template-hash"
PATCHES = {
    "strategic": "application/strategic-merge-patch+json", "merge": "application/merge-patch+json",
}  # fmt: skip
"""Types of patches as kubectl calls them, and as the API does."""

SCRIPT = """#!/bin/sh
# Evicts pods, one after the other; disruption budgets are kept: one that allows none is waited for.
# An eviction does not choose where the new pod will be: the scheduler does. Patch the workloads
# before, so that it prefers the nodes that were planned; a patch of a template renews all its pods.
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
    if placement is None:
        return {path: _listed(snapshot)}
    moves = _moves(cluster, snapshot, placement)
    lines = [
        f"evict {shlex.quote(one['namespace'])} {shlex.quote(one['pod'])}  # {one['from']}"
        for one in moves
    ]
    script = path if path.suffix == ".sh" else path.with_suffix(".sh")
    files = {} if script == path else {path: _formatted({"evictions": moves})}
    patches = _patches(cluster, snapshot, placement, moves)
    return files | {
        script: (SCRIPT + "".join(f"{line}\n" for line in lines)).encode(),
        script.with_suffix(".patches.json"): _formatted({"patches": patches}),
    }


def _listed(snapshot: Snapshot) -> bytes:
    """Return all objects as one list; what they hold is as it came."""
    items = b",\n".join(bytes(one) for one in snapshot.items)
    head = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[\n'
    return head + items + b"\n]}\n"


def _formatted(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


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
    cluster: Cluster, snapshot: Snapshot, after: Placement, moves: Sequence[dict[str, str]]
) -> list[dict[str, Any]]:
    """Return for each workload that changes the patch that makes it prefer its planned nodes."""
    changed = {(one["namespace"], one["workload"]) for one in moves}
    found = []
    for p, one in enumerate(snapshot.workloads):
        if one.waits or (one.namespace, f"{one.kind}/{one.name}") not in changed:
            continue
        own = after.node[int(after.first[p]) : int(after.first[p + 1])]
        names = [cluster.nodes.names[n] for n in np.unique(own[own >= 0]).tolist()]
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
    left_out=left_out,
    hint=hint,
    no_carrier="has no command that moves a pod: its scheduler chooses the node of every new pod, "
    "so that no guard could hold it to a plan; write the placement instead, which gives evictions "
    "and patches to review (-o plan.sh of solve), or cordon nodes and evict by hand",
)
