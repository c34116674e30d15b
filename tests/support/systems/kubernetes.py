"""Objects of Kubernetes as kubectl prints them: nodes, pods of a replica set, lists."""

import json
from typing import Any

Object = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def text(value: Any) -> bytes:
    """Return a document as JSON."""
    return json.dumps(value).encode()


def listed(*items: Object) -> bytes:
    """Return objects as one list."""
    return text({"apiVersion": "v1", "kind": "List", "items": items})


def node(name: str = "a", **more: Any) -> Object:
    """Return a node with room; what else is given stands in its specification."""
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    labels = {HOST: name} | more.pop("labels", {})
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": more, "status": {"allocatable": allocatable},
    }  # fmt: skip


def pod(
    name: str = "p-1",
    on: str = "a",
    owner: str = "p",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Return a running pod of a replica set."""
    metadata = {"name": name, "namespace": "d", "labels": labels or {"app": owner}}
    metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"nodeName": on, "containers": []} | spec, "status": {"phase": "Running"},
    }  # fmt: skip


def volume(name: str, key: str = ZONE, *values: str, **labels: Any) -> Object:
    """Return a volume that nodes reach by a label of theirs, or by its own labels."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if values else {}
    metadata = {"name": name, "labels": labels.get("labels", {})}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec,
    }  # fmt: skip


def claim(name: str, of: str = "") -> Object:
    """Return a claim of a volume."""
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "d"}, "spec": {"volumeName": of},
    }  # fmt: skip


def uses(*claims: str) -> list[Object]:
    """Return the volumes of a pod that uses claims."""
    return [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
