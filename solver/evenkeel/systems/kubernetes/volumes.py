"""Which nodes reach the volumes of pods: a pod cannot go where its volume is not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.kubernetes.conditions import meets
from evenkeel.systems.kubernetes.objects import Objects
from evenkeel.systems.kubernetes.resources import Node, Pod, Volume
from evenkeel.systems.kubernetes.workloads import Workload

Mask = NDArray[np.bool_]
MOST_TOLD = 4
ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip
"""Labels of volumes that bind them to places, several of which are parted by two underscores."""


class Reach:
    """Looks up which nodes reach the volumes of a pod, each volume once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._nodes = [node for _, node in objects.nodes.values()]
        self._masks: dict[str, Mask] = {}
        self.missing: dict[str, None] = {}
        """Claims that no file has, though pods name them."""

        self.local: dict[str, None] = {}
        """Workloads with volumes on the disks of nodes, which stay behind."""

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
            told = self._objects.volumes.get(("", name))
            if told is None:
                self.missing[name] = None
            self._masks[name] = np.array(
                [told is None or _reaches(told[1], node) for node in self._nodes], np.bool_
            )
        return self._masks[name]


def _reaches(volume: Volume, node: Node) -> bool:
    """Whether a volume can be used on a node, by its affinity and its labels."""
    affinity = volume.spec.nodeAffinity
    if affinity and affinity.required and not meets(affinity.required, node):
        return False
    own, labels = volume.metadata.labels or {}, node.metadata.labels or {}
    return all(labels[key] in own[key].split("__") for key in ZONES if key in own and key in labels)


def reach(objects: Objects, workloads: Sequence[Workload], place: Mapping[str, int]) -> None:
    """Tell each workload which nodes reach the volumes of its pods, and note what is not known.

    A pod that stands where its volume is not is taken at its word: it stays.
    """
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
        what = some_of([*looked.missing], printable, MOST_TOLD)
        objects.notes.append(
            f"no volume for {what}: its pod may go to any node; add kubectl get pv,pvc -A -o json"
        )
    if astray:
        objects.notes.append(
            f"that {some_of(astray, printable, MOST_TOLD)} run where their volumes are not, by the "
            "labels of nodes: they stay"
        )
    if looked.local:
        what = some_of([*looked.local], printable, MOST_TOLD)
        objects.notes.append(
            f"that pods of {what} have volumes on the disk of their node (emptyDir, hostPath): "
            "what is in them stays behind when a pod moves"
        )


def waiting_apart(workloads: Sequence[Workload]) -> list[Workload]:
    """Return workloads with each pod on its own that waits, and whose volume some nodes reach.

    It has to find a node that reaches that very volume, or none; nothing else of it matters yet.
    """
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
