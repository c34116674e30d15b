"""Random clusters of Kubernetes: nodes, pods of workloads and others, disruption budgets."""

import random
from typing import Any

Object = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def dump(draw: random.Random) -> list[Object]:
    """Return the objects of a list."""
    nodes = [f"n{n}" for n in range(draw.randint(1, 6))]
    objects = [node(draw, name) for name in nodes]
    for number in range(draw.randint(1, 4)):
        space, kind = draw.choice(["default", "shop"]), draw.choice(KINDS)
        labels = {"app": f"w{number}", "pod-template-hash": "5d8f"}
        spec = needs(draw, labels)
        for i in range(draw.randint(1, 4)):
            name = f"w{number}-{i}"
            own = spec | (needs(draw, labels) if draw.random() < 0.1 else {})
            if draw.random() < 0.2:
                own["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
                objects += volume(draw, name, space, nodes)
            objects.append(pod(draw, name, space, kind, labels, own, nodes))
        if draw.random() < 0.5:
            objects.append(budget(draw, f"w{number}", space, labels))
    if draw.random() < 0.3:
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "x": [1]}})
    draw.shuffle(objects)
    return objects


KINDS = ("ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet", "")


def node(draw: random.Random, name: str) -> Object:
    """Return a node with or without a zone."""
    labels = {HOST: name, "disk": draw.choice(["ssd", "hdd"])}
    if draw.random() < 0.8:
        labels[ZONE] = draw.choice(["z1", "z2", "z3"])
    spec: Object = {"unschedulable": True} if draw.random() < 0.2 else {}
    if draw.random() < 0.2:
        spec["taints"] = [{"key": "k", "effect": "NoSchedule", "value": "v"}]
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": {
                "cpu": draw.choice(["4", "3920m", 2]), "memory": draw.choice(["16Gi", "8e9", "1T"]),
                "pods": "110",
            },
            "conditions": [{"type": "Ready", "status": draw.choice(["True", "True", "Unknown"])}],
        },
    }  # fmt: skip


def needs(draw: random.Random, labels: dict[str, str]) -> Object:
    """Return what the pods of a workload ask for."""
    selector = {"matchLabels": {"app": labels["app"]}}
    spec: Object = {
        "containers": [{"resources": {"requests": {"cpu": draw.choice(["250m", "1", "0.1"])}}}]
    }
    if draw.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw.randint(1, 2), "topologyKey": draw.choice([ZONE, HOST, "disk"]),
                "whenUnsatisfiable": draw.choice(["DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": selector,
            }
        ]  # fmt: skip
    if draw.random() < 0.4:
        term = {"topologyKey": draw.choice([ZONE, HOST]), "labelSelector": selector}
        hard, soft = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in TIES)
        chosen = draw.choice(
            [{hard: [term]}, {soft: [{"weight": draw.randint(1, 100), "podAffinityTerm": term}]}]
        )
        spec["affinity"] = {"podAntiAffinity": chosen}
    if draw.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    if draw.random() < 0.3:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    return spec


TIES = ("required", "preferred")


def pod(
    draw: random.Random,
    name: str,
    space: str,
    kind: str,
    labels: dict[str, str],
    spec: Object,
    nodes: list[str],
) -> Object:
    """Return a pod on a node, or on none."""
    meta: Object = {"name": name, "namespace": space, "labels": labels}
    if kind:
        owner = f"{labels['app']}-{labels['pod-template-hash']}"
        meta["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    where = {"nodeName": draw.choice(nodes)} if draw.random() < 0.9 else {}
    phase = draw.choice(["Running", "Running", "Pending", "Succeeded"])
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | where,
        "status": {"phase": phase},
    }  # fmt: skip


def budget(draw: random.Random, name: str, space: str, labels: dict[str, str]) -> Object:
    """Return a disruption budget."""
    least = draw.choice([{"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": "25%"}])
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": space},
        "spec": {"selector": {"matchLabels": {"app": labels["app"]}}, **least},
    }  # fmt: skip


def volume(draw: random.Random, name: str, space: str, nodes: list[str]) -> list[Object]:
    """Return a claim, and the volume that it is bound to, which a zone or a node reaches."""
    key, value = draw.choice([(ZONE, draw.choice(["z1", "z2"])), (HOST, draw.choice(nodes))])
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return [
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": space},
            "spec": {"volumeName": f"{space}-{name}"},
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{space}-{name}"},
            "spec": {"nodeAffinity": affinity} if draw.random() < 0.9 else {},
        },
    ]  # fmt: skip
