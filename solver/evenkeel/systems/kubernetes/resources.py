"""Schemas of the nodes, pods, disruption budgets and volumes of Kubernetes.

References
----------
Kubernetes API, ``core/v1`` and ``policy/v1``.
"""

# ruff: noqa: N815 - fields are called as Kubernetes calls them

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import Int64, decode_json
from evenkeel.systems.kubectl_tables import answers_of
from evenkeel.systems.kubernetes.printed import is_table, node_of, objects_of
from evenkeel.systems.notes import Notes, Pages
from evenkeel.systems.yaml_text import OBJECTS, objects_as_json

# a name as Kubernetes takes it: nothing in it means anything to a shell, or in a path
Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")]

# the name of a node, or an empty one for none
Place = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?\Z")]

Quantity = str | Int64 | float
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Requests = dict[str, Quantity | None]
# whether nodes that a pod may not be on count to its spread: with Ignore they do
Policy = Literal["Honor", "Ignore"]


class Owner(msgspec.Struct, gc=False):
    """What made an object."""

    kind: str
    name: Name
    controller: bool = False
    apiVersion: str = ""


class Metadata(msgspec.Struct, gc=False):
    """What every object has."""

    name: Name
    namespace: Name = "default"
    labels: dict[str, str] | None = None
    ownerReferences: list[Owner] | None = None
    deletionTimestamp: str | None = None


class Requirement(msgspec.Struct, gc=False):
    """One condition on labels."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None


class Selector(msgspec.Struct, gc=False):
    """Conditions on the labels of pods, all of which must hold."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: list[Requirement] | None = None


class SpreadConstraint(msgspec.Struct, gc=False):
    """How far the pods in two domains may differ in number."""

    maxSkew: Annotated[int, Meta(ge=1, lt=2**31)]
    topologyKey: str
    whenUnsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    labelSelector: Selector | None = None
    minDomains: Count | None = None
    matchLabelKeys: list[str] | None = None
    nodeAffinityPolicy: Policy | None = None
    nodeTaintsPolicy: Policy | None = None


class PodTerm(msgspec.Struct, gc=False):
    """Pods that should, or should not, be in the same domain."""

    topologyKey: str
    labelSelector: Selector | None = None
    namespaces: list[str] | None = None
    namespaceSelector: Selector | None = None
    matchLabelKeys: list[str] | None = None
    mismatchLabelKeys: list[str] | None = None


class WeightedPodTerm(msgspec.Struct, gc=False):
    """A preferred term."""

    weight: Annotated[int, Meta(ge=1, le=100)]
    podAffinityTerm: PodTerm


class PodAntiAffinity(msgspec.Struct, gc=False):
    """Pods that should be apart."""

    requiredDuringSchedulingIgnoredDuringExecution: list[PodTerm] | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodTerm] | None = None


class NodeTerm(msgspec.Struct, gc=False):
    """Conditions on a node, all of which must hold."""

    matchExpressions: list[Requirement] | None = None
    matchFields: list[Requirement] | None = None


class NodeSelector(msgspec.Struct, gc=False):
    """Terms, one of which must hold."""

    nodeSelectorTerms: list[NodeTerm]


class NodeAffinity(msgspec.Struct, gc=False):
    """Where a pod may be, and where it would rather be."""

    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[Any] | None = None


class Affinity(msgspec.Struct, gc=False):
    """Nodes and pods that a pod wants near, or far."""

    nodeAffinity: NodeAffinity | None = None
    podAffinity: dict[str, Any] | None = None
    podAntiAffinity: PodAntiAffinity | None = None


class Resources(msgspec.Struct, gc=False):
    """What a container asks for, or a pod as a whole."""

    requests: Requests | None = None


class Port(msgspec.Struct, gc=False):
    """A port of a container; one of its host is taken on a whole node."""

    hostPort: int = 0
    protocol: str = "TCP"
    hostIP: str = ""


class Container(msgspec.Struct, gc=False):
    """A container, or one that runs before; an init container with Always runs beside."""

    name: str = ""
    resources: Resources | None = None
    ports: list[Port] | None = None
    restartPolicy: str | None = None


class Toleration(msgspec.Struct, gc=False):
    """A taint that a pod takes."""

    key: str | None = None
    operator: Literal["Exists", "Equal", ""] | None = None
    value: str | None = None
    effect: str | None = None


class ClaimName(msgspec.Struct, gc=False):
    """The claim that a volume of a pod is."""

    claimName: str


class PodVolume(msgspec.Struct, gc=False):
    """A volume of a pod, as far as it ties the pod to places."""

    name: str = ""
    persistentVolumeClaim: ClaimName | None = None
    ephemeral: dict[str, Any] | None = None
    emptyDir: dict[str, Any] | None = None
    hostPath: dict[str, Any] | None = None


class PodSpec(msgspec.Struct, gc=False):
    """What a pod asks for."""

    nodeName: Place | None = None
    volumes: list[PodVolume] | None = None
    containers: list[Container] = []
    initContainers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Requests | None = None
    nodeSelector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topologySpreadConstraints: list[SpreadConstraint] | None = None


class Condition(msgspec.Struct, gc=False):
    """Whether something is so, and why."""

    type: str
    status: str
    reason: str | None = None


class ContainerStatus(msgspec.Struct, gc=False):
    """What a container was given: ``resources`` runs, ``allocatedResources`` was admitted."""

    name: str = ""
    resources: Resources | None = None
    allocatedResources: Requests | None = None


class PodStatus(msgspec.Struct, gc=False):
    """How a pod is, and what it was given as a whole."""

    phase: str = ""
    conditions: list[Condition] | None = None
    containerStatuses: list[ContainerStatus] | None = None
    initContainerStatuses: list[ContainerStatus] | None = None
    resources: Resources | None = None
    allocatedResources: Requests | None = None

    @property
    def resize_refused(self) -> bool:
        """Whether the node can never give what the pod asks for since it runs."""
        return any(
            one.type == "PodResizePending" and one.reason == "Infeasible"
            for one in self.conditions or ()
        )


class Pod(msgspec.Struct, gc=False):
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Taint(msgspec.Struct, gc=False):
    """What keeps pods away that do not tolerate it."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    """What people asked of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(msgspec.Struct, gc=False):
    """How a node is."""

    allocatable: Requests | None = None
    capacity: Requests | None = None
    conditions: list[Condition] | None = None


class Node(msgspec.Struct, gc=False):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class BudgetSpec(msgspec.Struct, gc=False):
    """How many pods must be there, or may be away: a number, or a share."""

    selector: Selector | None = None
    minAvailable: Count | str | None = None
    maxUnavailable: Count | str | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetStatus(msgspec.Struct, gc=False):
    """How many pods are ready, have to be, and may be away now."""

    currentHealthy: int = 0
    desiredHealthy: int = 0
    disruptionsAllowed: int | None = None


class Budget(msgspec.Struct, gc=False):
    """A disruption budget."""

    metadata: Metadata
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class VolumeAffinity(msgspec.Struct, gc=False):
    """Nodes that reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(msgspec.Struct, gc=False):
    """What a volume is."""

    nodeAffinity: VolumeAffinity | None = None


class Volume(msgspec.Struct, gc=False):
    """A persistent volume."""

    metadata: Metadata
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)


class ClaimSpec(msgspec.Struct, gc=False):
    """The volume that a claim is bound to; none before it is."""

    volumeName: str = ""


class Claim(msgspec.Struct, gc=False):
    """A claim of a persistent volume."""

    metadata: Metadata
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


# the kinds that are read; objects of other kinds are kept, and not looked at
SHAPES: dict[str, type[msgspec.Struct]] = {
    "Node": Node, "Pod": Pod, "PodDisruptionBudget": Budget, "PersistentVolume": Volume,
    "PersistentVolumeClaim": Claim,
}  # fmt: skip


HEAD = 65536
KIND = re.compile(
    rb'"kind"\s*:\s*"(Node|Pod|PodDisruptionBudget|PersistentVolume|PersistentVolumeClaim)(List)?"'
)
IN_YAML = re.compile(
    rb"^(- |  )?kind: (Node|Pod|PodDisruptionBudget|PersistentVolume|PersistentVolumeClaim)"
    rb"(List)?\s",
    re.MULTILINE,
)
# tables for people and their rows, what kubectl describes, and nodes as other APIs answer
TABLE = re.compile(
    rb"^(NAMESPACE +)?NAME +(READY +(UP-TO-DATE|STATUS|AGE)|STATUS +ROLES|MIN +AVAILABLE|CAPACITY|"
    rb"VOLUME|STATUS +VOLUME|DESIRED)|^Name: +\S+\r?\n(Namespace|Roles|Labels|Priority): |"
    rb"^(\S+ +)?\S+ +[0-9]+/[0-9]+ +(Running|Pending|Completed|Terminating|Error|Init:|\w+BackOff)|"
    rb"^Events:\s+Type +Reason|^NAME +CPU\(cores\)|"
    rb'"allocatable"\s*:\s*\{|^[^\n]{0,200}[$#>] ?(?:sudo )?(?:kubectl|oc) ',
    re.MULTILINE,
)

# objects that tell no place of a pod
OTHER_KINDS = re.compile(
    rb"\bkind\"?\s*:\s*\"?(?:Deployment|StatefulSet|DaemonSet|ReplicaSet|Event|Service)(?:List)?\b"
)

# how objects begin in archives of programs in Go, which list kinds before
KINDLESS = re.compile(
    rb'\s*\{\s*"metadata"\s*:\s*\{\s*"(?:name|generateName|annotations|creationTimestamp|labels)"\s*:'
)

NO_NODES = (
    "no nodes: those without pods are unknown, the others count as ready; add kubectl get nodes"
)

ASKS = "kubectl get nodes,pods,pdb -A -o json"
VERSIONS = {"v1", "policy/v1", "policy/v1beta1"}


class Listing(msgspec.Struct, gc=False):
    """A list of objects, or one object, of which only the kind is looked at."""

    kind: str = ""
    apiVersion: str = "v1"
    items: list[msgspec.Raw] | None = None


class Top(Listing, gc=False):
    """The same of what a file holds."""

    metadata: dict[str, Any] | None = None


@dataclass
class Objects:
    """Everything that was read, with its place in the files."""

    faults: FaultList
    # every object as it came, those of unknown kinds included
    items: list[msgspec.Raw] = field(default_factory=list)
    nodes: dict[str, tuple[str, Node]] = field(default_factory=dict)
    pods: dict[tuple[str, str], tuple[str, Pod]] = field(default_factory=dict)
    budgets: dict[tuple[str, str], tuple[str, Budget]] = field(default_factory=dict)
    # by an empty namespace and the name: volumes are in none
    volumes: dict[tuple[str, str], tuple[str, Volume]] = field(default_factory=dict)
    claims: dict[tuple[str, str], tuple[str, Claim]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)  # assumptions, for people
    is_printed: bool = False  # whether some of them are of tables, which leave most of each out


# a list of nothing, as of volumes in a cluster without any
EMPTY = re.compile(
    rb'"items"\s*:\s*\[\s*\](?=[^\[]*"kind"\s*:\s*"List")|"List"[^\[]*"items"\s*:\s*\[\s*\]'
)


def recognises(document: Document) -> str:
    """Return "objects" for nodes, pods, disruption budgets or volumes; "" for other documents."""
    head = document.data[:HEAD]
    if OBJECTS.match(head):
        return "objects" if IN_YAML.search(head) and b" longhorn.io/v1" not in head else ""
    if is_table(document, HEAD):
        return "objects"
    if not document.is_json or b'"longhorn.io/v1' in head:
        return ""
    known = KIND.search(head) or EMPTY.search(document.data[:HEAD])
    return "objects" if b'"apiVersion"' in head and known else ""


def hint(document: Document) -> str:
    """Return how to print objects, for tables of them; "" for other documents."""
    if KINDLESS.match(document.data[:HEAD]):
        return f"is an object without its kind: give {ASKS}"
    if OTHER_KINDS.search(document.data[:HEAD]) and b"Pod" not in document.data[:HEAD]:
        return f"lists no node and no pod: give {ASKS}"
    if TABLE.search(document.data[:HEAD]):
        return "names no node of a pod: ask kubectl for -o json"
    return ""


def gather(faults: FaultList, documents: Sequence[Document]) -> Objects:
    """Split documents into objects, and report those that do not fit their kind."""
    found, pages = Objects(faults), Pages()
    for given in answers_of(found.notes, documents, is_table, HEAD):
        if not given.data.isascii():
            before = len(faults.faults)
            given.text(faults)
            if len(faults.faults) > before:
                continue
        if is_table(given, HEAD):
            found.is_printed = True
            for one in objects_of(found.notes, given):
                _take(found, given.name, msgspec.Raw(msgspec.json.encode(one)), "")
            continue
        document = objects_as_json(faults, given)
        if document is None:
            continue
        top = decode_json(faults, document, Top)
        if top is None:
            continue
        if top.items is None and top.kind.endswith("List"):
            continue  # Go writes an empty list as null
        if top.items is None and top.kind not in SHAPES:
            faults.add(f"{document.name}: items", None, "is missing from the list")
            continue
        listed = [msgspec.Raw(document.data)] if top.items is None else top.items
        kind = top.kind.removesuffix("List")
        if top.items is not None:
            pages.add_chunk(top.kind, top.metadata, len(listed))
        for i, raw in enumerate(listed):
            at = document.name if top.items is None else f"{document.name}: items[{i}]"
            found.items.append(raw)
            _take(found, at, raw, kind)
    pages.note(found.notes)
    if found.is_printed and not found.pods:
        names = [document.name for document in documents]
        faults.add("source", names, "lists no pod: add kubectl get pods -A -o wide, or -o json")
    if found.is_printed and not found.nodes:
        found.notes.add(NO_NODES)
        for name in {one.spec.nodeName or "" for _, one in found.pods.values()} - {""}:
            node = node_of(found.notes, {"NAME": name, "STATUS": "Ready"})
            _take(found, "", msgspec.Raw(msgspec.json.encode(node)), "")
    return found


def _take(found: Objects, at: str, raw: msgspec.Raw, usual: str) -> None:
    """Read one object, if it is of a kind that placing needs."""
    document = Document(at, bytes(raw))
    decoded = decode_json(found.faults, document, Listing)
    if decoded is None:
        return
    kind = decoded.kind or usual
    if kind not in SHAPES or decoded.apiVersion not in VERSIONS:
        return
    value: Any = _without_nulls(found.faults, document, SHAPES[kind])
    if value is None:
        return
    key: Any = (value.metadata.namespace, value.metadata.name)
    by_kind: dict[str, dict[Any, Any]] = {
        "Node": found.nodes, "Pod": found.pods, "PodDisruptionBudget": found.budgets,
        "PersistentVolume": found.volumes, "PersistentVolumeClaim": found.claims,
    }  # fmt: skip
    by_key = by_kind[kind]
    if kind == "Node":
        key = value.metadata.name
    elif kind == "PersistentVolume":
        key = ("", value.metadata.name)
    first, before = by_key.setdefault(key, (at, value))
    if before is not value:
        name = quoted(value.metadata.name)
        found.faults.add(f"{at}: metadata.name", name, f"is already given at {first}")


def _without_nulls(faults: FaultList, document: Document, shape: type[Any]) -> Any:
    """Decode an object; to Kubernetes fields that are null are not there."""
    try:
        return msgspec.json.decode(document.data, type=shape)
    except (msgspec.MsgspecError, RecursionError):
        raw = decode_json(FaultList(), document, dict[str, Any])
    if raw is None:
        return decode_json(faults, document, shape)
    try:
        return decode_json(
            faults, Document(document.name, msgspec.json.encode(_stripped(raw))), shape
        )
    except RecursionError:
        faults.add(document.name, "", "is nested too deeply")
        return None


def _stripped(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _stripped(value) if isinstance(value, dict) else value
        for key, value in raw.items()
        if value is not None
    }
