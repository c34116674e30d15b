"""Divide pods into workloads, whose pods may move, and pods that stay, with their requests."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import SHOWN, quoted
from evenkeel.systems.kubernetes.resources import (
    Container,
    ContainerStatus,
    Objects,
    Owner,
    Pod,
    PodSpec,
    PodStatus,
    Quantity,
    Requests,
)

QUANTITY = re.compile(
    r"([0-9]{1,24}(?:\.[0-9]{0,24})?|\.[0-9]{1,24})([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]{1,2})"
)
BINARY, DECIMAL = "KMGTPE", {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12,
                             "P": 15, "E": 18}  # fmt: skip
MOST = 2.0**63
PODS = "pods"  # the resource that counts pods
HOST_PORT = "host port "  # how the resources begin of which each node has one: its ports


def quantity(faults: FaultList, at: str, given: Quantity) -> float:
    """Return a quantity such as ``250m``, ``1Gi`` or ``1e3`` in its unit."""
    value = _value(given if isinstance(given, str) else f"{given}")
    if not 0.0 <= value < MOST:
        faults.add(at, quoted(given), "must be a quantity such as 250m, 1Gi or 2")
        return 0.0
    return value


@lru_cache(4096)
def _value(given: str) -> float:
    """Return a quantity; a greater one than any may be where it is none."""
    found = QUANTITY.fullmatch(given)
    value = MOST
    if found:
        number, unit = float(found[1]), found[2]
        if unit in DECIMAL:
            power = DECIMAL[unit]
            value = number * 10.0**power if power >= 0 else number / 10.0**-power
        elif unit.endswith("i"):
            value = number * 2.0 ** (10 * (BINARY.index(unit[0]) + 1))
        else:
            value = number * 10.0 ** int(unit[1:])
    return value


def amounts(faults: FaultList, at: str, given: Requests | None) -> dict[str, float]:
    """Return quantities by resource."""
    return {
        name: quantity(faults, f"{at}.{name[:SHOWN]}", value)
        for name, value in (given or {}).items()
        if value is not None and value != ""
    }


def _requests(one: Container | ContainerStatus | PodSpec | PodStatus) -> Requests | None:
    return one.resources.requests if one.resources else None


def requested(faults: FaultList, at: str, pod: Pod) -> dict[str, float]:
    """Return what a pod asks for: its containers, or the largest that runs before; and overhead."""
    spec, status = pod.spec, pod.status
    place = f"{at}: spec"
    beside: dict[str, float] = {}
    most: dict[str, float] = {}
    has = {one.name: one for one in status.containerStatuses or ()}
    has |= {one.name: one for one in status.initContainerStatuses or ()}

    def counted(
        path: str, one: Container | PodSpec, held: ContainerStatus | PodStatus | None
    ) -> dict[str, float]:
        asked = amounts(faults, f"{path}.resources.requests", _requests(one))
        if held is None or held.resources is None:
            return asked
        runs, admitted = (
            amounts(faults, f"{at}: status", given)
            for given in (_requests(held), held.allocatedResources)
        )
        # while a container is resized, the greatest of what it asks for and what it has counts
        return _greatest(_greatest({} if status.resize_refused else asked, runs), admitted)

    for i, one in enumerate(spec.initContainers or ()):
        stays = one.restartPolicy == "Always"
        own = counted(f"{place}.initContainers[{i}]", one, has.get(one.name) if stays else None)
        if stays:
            beside = _sum((beside, own))
            most = _greatest(most, beside)
        else:
            most = _greatest(most, _sum((beside, own)))
    total = _sum(
        [
            beside,
            *(
                counted(f"{place}.containers[{i}]", one, has.get(one.name))
                for i, one in enumerate(spec.containers)
            ),
        ]
    )
    # what the pod asks for as a whole, resource by resource, precedes its containers
    whole = counted(place, spec, status)
    overhead = amounts(faults, f"{place}.overhead", spec.overhead)
    ports = {
        f"{HOST_PORT}{port.hostPort}/{port.protocol} {port.hostIP}".strip(): 1.0
        for one in spec.containers
        for port in one.ports or ()
        if port.hostPort > 0
    }
    return _sum((_greatest(most, total) | whole, overhead, {PODS: 1.0}, ports))


def _sum(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def _greatest(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {
        name: max(one.get(name, 0.0), other.get(name, 0.0))
        for name in dict.fromkeys([*one, *other])
    }


def share_of(faults: FaultList, at: str, given: int | str, count: int) -> int:
    """Return a number, or a share of another, rounded up."""
    if isinstance(given, int):
        return given
    found = re.fullmatch(r"([0-9]{1,3})%|([0-9]{1,9})", given)
    if not found:
        faults.add(at, quoted(given), "must be a number, or a share such as 50%")
        return 0
    return -(-int(found[1]) * count // 100) if found[1] else int(found[2])


# owners that make another pod in the place of one that was evicted
MOVABLE = {"ReplicaSet", "StatefulSet", "ReplicationController"}

# owners, with their groups, that do so and have no template which a patch could change
OPERATORS = {
    "Cluster.postgresql.cnpg.io", "InstanceSet.workloads.kubeblocks.io",
    "StrimziPodSet.core.strimzi.io",
}  # fmt: skip

# owners whose pods are made for one node, or end by themselves
STAYING = {"DaemonSet", "Node", "Job"}

OWN_GROUPS = {"apps", "extensions"}
MOST_NAMED = 4
DONE = {"Succeeded", "Failed"}


@dataclass
class Workload:
    """The pods of one owner: one partition."""

    namespace: str
    # with its group, as in ``StatefulSet.apps.kruise.io``, if it is none of Kubernetes' own
    kind: str
    name: str
    pods: list[tuple[str, Pod]] = field(default_factory=list)
    # the greatest that any of its pods asks for
    requests: dict[str, float] = field(default_factory=dict)
    asked: list[dict[str, float]] = field(default_factory=list)  # what each pod asks for
    # the nodes that reach the volumes of each pod, (N,); empty where all nodes reach all
    reach: list[NDArray[np.bool_]] = field(default_factory=list)
    # the pod that it is, if it is one that waits for a node which reaches its volume
    waits: str = ""

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
        kind = _resource(owner) if owner else ""
        replaced = kind.partition(".")[0] in MOVABLE or kind in OPERATORS
        if owner is None or not replaced or pod.metadata.deletionTimestamp:
            if pod.spec.nodeName:
                stay.append((at, pod, own))
            if owner is not None and not replaced and owner.kind not in STAYING:
                kinds[owner.kind] = None
            continue
        name = (pod.metadata.namespace, kind, owner.name)
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
            f"pods belong to objects of kind {some_of([*kinds], printable, MOST_NAMED)}: they "
            "stay, since it is not known what would replace them"
        )
    found = [workloads[name] for name in sorted(workloads)]
    if operated := [one.full_name for one in found if one.kind in OPERATORS]:
        objects.notes.add(
            f"operators make the pods of {some_of(operated, printable, MOST_NAMED)}: these "
            "are evicted without a patch, so that the scheduler alone chooses their nodes"
        )
    if differ := [one.full_name for one in found if any(own != one.requests for own in one.asked)]:
        objects.notes.add(
            f"pods of {some_of(differ, printable, MOST_NAMED)} request different amounts: "
            "each counts as the largest, and the node of one that requests less as so much larger"
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
