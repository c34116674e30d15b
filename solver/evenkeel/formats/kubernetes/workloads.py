"""Pods sorted: into workloads, whose pods are alike and may move, and those that stay."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from evenkeel.formats.kubernetes.objects import Objects
from evenkeel.formats.kubernetes.quantities import requested
from evenkeel.formats.kubernetes.resources import Pod

MOVABLE = {"ReplicaSet", "StatefulSet", "ReplicationController"}
"""Owners that make another pod in the place of one that was evicted."""

DONE = {"Succeeded", "Failed"}


@dataclass
class Workload:
    """The pods of one owner: one partition."""

    namespace: str
    kind: str
    name: str
    pods: list[tuple[str, Pod]] = field(default_factory=list)
    requests: dict[str, float] = field(default_factory=dict)
    """The greatest that any of its pods asks for."""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return self.pods[0][1].metadata.labels or {}

    @property
    def leaves(self) -> bool:
        """Whether its pods are being deleted."""
        return self.first.metadata.deletionTimestamp is not None

    @property
    def first(self) -> Pod:
        """One of its pods; the others are like it."""
        return self.pods[0][1]


def sort(objects: Objects) -> tuple[list[Workload], list[tuple[str, Pod, dict[str, float]]]]:
    """Return workloads by namespace, kind and name, and pods that stay, with what they ask for."""
    workloads: dict[tuple[str, str, str], Workload] = {}
    stay = []
    for key in sorted(objects.pods):
        at, pod = objects.pods[key]
        if pod.status.phase in DONE:
            continue
        own = requested(objects.faults, at, pod)
        owner = next((one for one in pod.metadata.ownerReferences or () if one.controller), None)
        if owner is None or owner.kind not in MOVABLE or pod.metadata.deletionTimestamp:
            if pod.spec.nodeName:
                stay.append((at, pod, own))
            continue
        name = (pod.metadata.namespace, owner.kind, owner.name)
        one = workloads.setdefault(name, Workload(*name))
        one.pods.append((at, pod))
        for resource, amount in own.items():
            one.requests[resource] = max(one.requests.get(resource, 0.0), amount)
    return [workloads[name] for name in sorted(workloads)], stay


def together(stay: Sequence[tuple[str, Pod, dict[str, float]]]) -> list[Workload]:
    """Return pods that stay, those together that carry the same labels and ask for the same."""
    found: dict[bytes, Workload] = {}
    for at, pod, _ in stay:
        own = pod.metadata
        key = msgspec.json.encode(
            [own.namespace, own.labels, pod.spec.affinity, own.deletionTimestamp is not None]
        )
        one = found.setdefault(key, Workload(own.namespace, "Pod", own.name))
        one.pods.append((at, pod))
    return [*found.values()]
