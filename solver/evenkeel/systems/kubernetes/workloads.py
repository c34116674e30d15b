"""Workloads of movable pods, and pods that stay."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.kubernetes.objects import Objects
from evenkeel.systems.kubernetes.quantities import requested
from evenkeel.systems.kubernetes.resources import Owner, Pod, PodSpec

MOVABLE = {"ReplicaSet", "StatefulSet", "ReplicationController"}
"""Owners that make another pod in the place of one that was evicted."""

STAYING = {"DaemonSet", "Node", "Job"}
"""Owners whose pods are made for one node, or end by themselves."""

OWN_GROUPS = {"apps", "extensions"}
MOST_NAMED = 4
DONE = {"Succeeded", "Failed"}


@dataclass
class Workload:
    """The pods of one owner: one partition."""

    namespace: str
    kind: str
    """With its group, as in ``StatefulSet.apps.kruise.io``, if it is none of Kubernetes' own."""

    name: str
    pods: list[tuple[str, Pod]] = field(default_factory=list)
    requests: dict[str, float] = field(default_factory=dict)
    """The greatest that any of its pods asks for."""

    asked: list[dict[str, float]] = field(default_factory=list)
    """What each pod asks for."""

    reach: list[NDArray[np.bool_]] = field(default_factory=list)
    """The nodes that reach the volumes of each pod, (N,); empty where all nodes reach all."""

    waits: str = ""
    """The pod that it is, if it is one that waits for a node which reaches its volume."""

    @property
    def full_name(self) -> str:
        """Its namespace, kind and name."""
        return "/".join([self.namespace, self.kind, self.name, *[self.waits][: bool(self.waits)]])

    @property
    def specs(self) -> list[PodSpec]:
        """What its pods ask of nodes, those that ask for the same once."""
        asked = {
            msgspec.json.encode(
                [
                    pod.spec.nodeSelector, pod.spec.affinity, pod.spec.tolerations,
                    pod.spec.topologySpreadConstraints,
                ]
            ): pod.spec
            for _, pod in reversed(self.pods)
        }  # fmt: skip
        return [*asked.values()][::-1]

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
    strange: list[str] = []
    kinds: dict[str, None] = {}
    for key in sorted(objects.pods):
        at, pod = objects.pods[key]
        if pod.status.phase in DONE:
            continue
        own = requested(objects.faults, at, pod)
        if pod.spec.nodeName and pod.spec.nodeName not in objects.nodes:
            strange.append(f"{pod.metadata.namespace}/{pod.metadata.name} on {pod.spec.nodeName}")
            continue
        owner = next((one for one in pod.metadata.ownerReferences or () if one.controller), None)
        if owner is None or owner.kind not in MOVABLE or pod.metadata.deletionTimestamp:
            if pod.spec.nodeName:
                stay.append((at, pod, own))
            if owner is not None and owner.kind not in MOVABLE | STAYING:
                kinds[owner.kind] = None
            continue
        name = (pod.metadata.namespace, _resource(owner), owner.name)
        one = workloads.setdefault(name, Workload(*name))
        one.pods.append((at, pod))
        one.asked.append(own)
        for resource, amount in own.items():
            one.requests[resource] = max(one.requests.get(resource, 0.0), amount)
    spaces = {space for space, _ in objects.pods}
    if len(spaces) == 1 and spaces != {"kube-system"}:
        objects.notes.add(
            f"pods of namespace {printable(*spaces)} only: requests of pods in others are not "
            "counted; list pods with -A"
        )
    if strange:
        objects.notes.add(
            f"pods on nodes that are not listed: {some_of(strange, printable, MOST_NAMED)}; they "
            "are ignored"
        )
    if kinds:
        objects.notes.add(
            f"that pods belong to objects of kind {some_of([*kinds], printable, MOST_NAMED)}: they "
            "stay, since it is not known what would replace them"
        )
    found = [workloads[name] for name in sorted(workloads)]
    if differ := [one.full_name for one in found if any(own != one.requests for own in one.asked)]:
        objects.notes.add(
            f"that pods of {some_of(differ, printable, MOST_NAMED)} request different amounts: "
            "each counts as it is on its node, and as the largest on others"
        )
    return found, stay


def _resource(owner: Owner) -> str:
    """Return the kind of an owner, with its group if it is none of Kubernetes' own."""
    group, slash, _ = owner.apiVersion.partition("/")
    return f"{owner.kind}.{group}" if slash and group not in OWN_GROUPS else owner.kind


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
