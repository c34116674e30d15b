"""Kubernetes' objects put together: nodes, and the workloads that pods belong to as partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import Document, quoted
from evenkeel.formats.kubernetes.conditions import ready, selects
from evenkeel.formats.kubernetes.constraints import HOST, Constraints
from evenkeel.formats.kubernetes.objects import Objects, gather
from evenkeel.formats.kubernetes.quantities import PODS, amounts, share_of
from evenkeel.formats.kubernetes.resources import Pod
from evenkeel.formats.kubernetes.workloads import Workload, sort, together
from evenkeel.formats.native.arguments import build
from evenkeel.formats.sources import largest
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.printable import printable, some_of

NAME = "kubernetes"
MOST_TOLD = 4
"""Things that pods ask for and are not kept, of those that are told."""

ALWAYS = ("cpu", "memory", PODS)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What was read, for writing: every object as it came, and which pod each replica is.

    Parameters
    ----------
    items : tuple of Raw
        Objects as JSON.
    workloads : tuple of Workload
        P workloads, with their pods in the order of the slots.
    hosts : dict of str
        The label by which affinities name each node.
    notes : tuple of str
        What pods ask for that no rule says.
    """

    items: tuple[msgspec.Raw, ...]
    workloads: tuple[Workload, ...]
    hosts: dict[str, str]
    notes: tuple[str, ...]


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from what ``kubectl get nodes,pods,pdb -A -o json`` prints.

    Pods that no controller replaces elsewhere, and those of daemon sets, stay; what they ask for
    is taken from the capacity of their nodes. Where pods may not be beside those of others, nodes
    are closed on which these stand now. What else pods ask for of pods of others, and of nodes that
    they would rather be on, is not kept: ``cluster.native.notes`` lists it.

    Raises
    ------
    InvalidInput
        Naming every problem with file, field and value: truncated files, quantities that do not
        parse, pods on nodes that are not there.
    """
    faults = FaultList()
    objects = gather(faults, documents)
    if not objects.nodes and not faults:
        listed = [document.name for document in documents]
        faults.add("source", listed, "lists no node: needs kubectl get nodes,pods -A -o json")
    nodes = objects.nodes = dict(sorted(objects.nodes.items()))
    workloads, stay = sort(objects)
    constraints = Constraints(objects, workloads, together(stay))
    rule = [constraints.rule_of(w) for w in range(len(workloads))]
    spaces = sorted({one.namespace for one in workloads})
    given: dict[str, Any] = {
        "node_names": [*objects.nodes],
        "partition_names": [f"{one.namespace}/{one.kind}/{one.name}" for one in workloads],
        "group": np.array([spaces.index(one.namespace) for one in workloads], np.int64),
        "group_names": spaces,
        "rules": constraints.rules,
        "rule": np.array(rule, np.int64),
        "forbidden": constraints.forbidden(),
        "min_active": _least(objects, workloads),
        "native_format": NAME,
        "native": Snapshot(
            tuple(objects.items),
            tuple(workloads),
            {name: (one.metadata.labels or {}).get(HOST, name) for name, (_, one) in nodes.items()},
            tuple(constraints.notes),
        ),
    }
    given |= constraints.domains()
    given |= _states(objects)
    given |= _placement(objects, workloads)
    given |= _amounts(objects, workloads, stay)
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what pods ask for that is not kept, the first of it."""
    native = cluster.native
    if isinstance(native, Snapshot) and native.notes:
        yield f"what is not kept: {some_of(native.notes, printable, MOST_TOLD)}"


def _states(objects: Objects) -> dict[str, Any]:
    """Return which nodes are ready, and which are cordoned."""
    alive, open_ = [], []
    for _, node in objects.nodes.values():
        alive.append(ready(node))
        leaving = node.spec.unschedulable or node.metadata.deletionTimestamp is not None
        open_.append(alive[-1] and not leaving)
    return {"alive": np.array(alive, np.bool_), "accepts": np.array(open_, np.bool_)}


def _placement(objects: Objects, workloads: Sequence[Workload]) -> dict[str, Any]:
    """Return the node of each pod, a slot each; nobody leads."""
    place = {name: n for n, name in enumerate(objects.nodes)}
    node, flags = [], []
    for one in workloads:
        for at, pod in one.pods:
            name = pod.spec.nodeName
            if name and name not in place:
                objects.faults.add(f"{at}: spec.nodeName", quoted(name), "is not a node")
            node.append(place.get(name or "", -1))
            flags.append(Flag.HEALTHY * (pod.status.phase == "Running"))
    width = np.array([len(one.pods) for one in workloads], np.int64)
    return {
        "placement": np.array(node, np.int64),
        "first": np.concatenate([[0], np.cumsum(width)]).astype(np.int64),
        "leader": np.full(len(workloads), -1),
        "flags": np.array(flags, np.int64),
        "replicas": width,
    }


def _amounts(
    objects: Objects,
    workloads: Sequence[Workload],
    stay: Sequence[tuple[str, Pod, dict[str, float]]],
) -> dict[str, Any]:
    """Return what pods ask for, and what nodes have for those that may move."""
    names = [*ALWAYS]
    names += sorted({name for one in workloads for name in one.requests} - {*ALWAYS})
    column = {name: d for d, name in enumerate(names)}
    capacity = np.zeros((len(objects.nodes), len(names)))
    for n, (at, node) in enumerate(objects.nodes.values()):
        given, key = node.status.allocatable, "allocatable"
        if given is None:
            given, key = node.status.capacity, "capacity"
        told = amounts(objects.faults, f"{at}: status.{key}", given)
        if PODS not in told:
            objects.faults.add(f"{at}: status.allocatable.pods", None, "is missing")
        for name in column.keys() & told.keys():
            capacity[n, column[name]] = told[name]
    place = {name: n for n, name in enumerate(objects.nodes)}
    for at, pod, own in stay:
        if (pod.spec.nodeName or "") not in place:
            objects.faults.add(f"{at}: spec.nodeName", quoted(pod.spec.nodeName), "is not a node")
            continue
        for name in column.keys() & own.keys():
            capacity[place[pod.spec.nodeName or ""], column[name]] -= own[name]
    load = np.zeros((len(workloads), len(names)))
    for p, one in enumerate(workloads):
        for name, amount in one.requests.items():
            load[p, column[name]] = amount
    return {"dimensions": names, "load": load, "capacity": np.maximum(capacity, 0.0)}


def _least(objects: Objects, workloads: Sequence[Workload]) -> NDArray[np.int64]:
    """Return how many pods of each workload must be there, by the disruption budgets."""
    least = np.zeros(len(workloads), np.int64)
    spaces: dict[str, list[int]] = {}
    for p, one in enumerate(workloads):
        spaces.setdefault(one.namespace, []).append(p)
    for at, budget in objects.budgets.values():
        spec = budget.spec
        for p in spaces.get(budget.metadata.namespace, ()):
            if not selects(spec.selector, workloads[p].labels):
                continue
            count = len(workloads[p].pods)
            there = 0
            if spec.minAvailable is not None:
                there = share_of(
                    objects.faults, f"{at}: spec.minAvailable", spec.minAvailable, count
                )
            elif spec.maxUnavailable is not None:
                away = share_of(
                    objects.faults, f"{at}: spec.maxUnavailable", spec.maxUnavailable, count
                )
                there = count - away
            least[p] = max(least[p], min(max(there, 0), count))
    return least
