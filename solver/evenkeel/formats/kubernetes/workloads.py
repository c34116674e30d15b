"""Pods sorted: into workloads, whose pods are alike and may move, and those that stay."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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


class Selected:
    """Finds the workloads whose pods a selector selects."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        self._by_label: dict[tuple[str, str, str], set[int]] = {}
        for w, one in enumerate(workloads):
            for key, value in one.labels.items():
                self._by_label.setdefault((one.namespace, key, value), set()).add(w)

    def by(self, namespace: str, labels: dict[str, str]) -> set[int]:
        """Return the workloads of a namespace that carry all of some labels."""
        own = [self._by_label.get((namespace, *pair), set()) for pair in labels.items()]
        return set.intersection(*sorted(own, key=len)) if own else set()
