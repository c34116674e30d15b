"""Schemas of Longhorn's resources, as kubectl prints them.

References
----------
longhorn-manager, ``k8s/pkg/apis/longhorn/v1beta2``: ``volume.go``, ``replica.go``, ``node.go``,
``setting.go``. Sizes of volumes and replicas are texts there, those of disks numbers.
"""

# ruff: noqa: N815 - fields are called as Longhorn calls them

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json, note_misfits
from evenkeel.systems.kubectl_tables import answers_of, rows_of
from evenkeel.systems.longhorn.answers import (
    DIGITS,
    LEFT_OUT,
    NO_NODES,
    NO_PATCHES,
    TABLE,
    is_answer,
    is_table,
    nodes_of,
    resources_of,
    resources_of_rows,
)
from evenkeel.systems.notes import Notes, Pages
from evenkeel.systems.yaml_text import OBJECTS, objects_as_json

Whole = Annotated[int, Meta(ge=0, lt=2**53)]  # bytes, or a number of something
Digits = Annotated[str, Meta(pattern=DIGITS)]

Name = Annotated[str, Meta(min_length=1)]
Switch = Literal["ignored", "enabled", "disabled", ""]
AutoBalance = Literal[
    "ignored", "disabled", "least-effort", "best-effort", "least_effort", "best_effort", ""
]

# parts of resources
EXCERPT = re.compile(
    rb"\b(?:nodes|volumes|replicas|settings)\.longhorn\.io\b|^[- ]*apiVersion: longhorn\.io/",
    re.MULTILINE,
)

# the command whose output is read
PRINT = (
    "kubectl -n longhorn-system get -o json "
    "nodes.longhorn.io,volumes.longhorn.io,replicas.longhorn.io,settings.longhorn.io"
)

# the resources among the files of a support bundle
MEMBERS = re.compile(
    r"(?:^|/)(?:longhorn\.io/v\w+|longhorn)/(?:nodes|volumes|replicas|settings)\.yaml$"
)


class Metadata(msgspec.Struct):
    """What every resource has: its name, and whether it is being deleted."""

    name: Name
    namespace: str = "longhorn-system"
    uid: str = ""
    deletionTimestamp: str | None = None


class Condition(msgspec.Struct):
    """Whether something is so, since when, and why; v1beta1 has them by type, not as a list."""

    type: str
    status: Literal["True", "False", "Unknown"]
    lastTransitionTime: str = ""
    reason: str = ""


class VolumeSpec(msgspec.Struct):
    """What is wanted of a volume."""

    size: Digits
    numberOfReplicas: Annotated[int, Meta(ge=0, le=1000)]  # Longhorn itself takes 1 to 20
    replicaAutoBalance: AutoBalance = ""
    replicaSoftAntiAffinity: Switch = ""
    replicaZoneSoftAntiAffinity: Switch = ""
    replicaDiskSoftAntiAffinity: Switch = ""
    dataLocality: Literal["disabled", "best-effort", "strict-local", ""] = ""
    nodeSelector: list[str] | None = None
    diskSelector: list[str] | None = None
    migrationNodeID: str = ""
    image: str = ""
    engineImage: str = ""
    dataEngine: Literal["v1", "v2", ""] = ""


class VolumeStatus(msgspec.Struct):
    """How a volume is."""

    state: str = ""
    robustness: Literal["healthy", "degraded", "faulted", "unknown", ""] = ""
    currentNodeID: str = ""
    currentMigrationNodeID: str = ""
    currentImage: str = ""
    actualSize: Whole = 0
    expansionRequired: bool = False


class VolumeResource(msgspec.Struct):
    """A volume."""

    metadata: Metadata
    spec: VolumeSpec
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)


class ReplicaSpec(msgspec.Struct):
    """Where a replica is, and what has become of it."""

    volumeName: Name
    volumeSize: Digits = "0"
    nodeID: str = ""
    diskID: str = ""
    engineName: str = ""
    image: str = ""
    active: bool = True
    # None in an excerpt that leaves it out
    healthyAt: str | None = None
    failedAt: str = ""
    lastHealthyAt: str = ""
    evictionRequested: bool = False
    rebuildRetryCount: Whole = 0


class ReplicaStatus(msgspec.Struct):
    """How a replica is; before release 1.6 its eviction stood here."""

    currentState: str = ""
    evictionRequested: bool = False


class ReplicaResource(msgspec.Struct):
    """A replica of a volume."""

    metadata: Metadata
    spec: ReplicaSpec
    status: ReplicaStatus = msgspec.field(default_factory=ReplicaStatus)


class DiskSpec(msgspec.Struct):
    """What people have asked of a disk."""

    path: str = ""
    diskType: Literal["filesystem", "block", ""] = ""
    allowScheduling: bool = False
    evictionRequested: bool = False
    storageReserved: Whole = 0
    tags: list[str] | None = None


class DiskStatus(msgspec.Struct):
    """How a disk is."""

    diskUUID: str = ""
    storageAvailable: Whole = 0
    storageMaximum: Whole = 0
    storageScheduled: Whole = 0
    scheduledReplica: dict[str, Whole] | None = None
    conditions: list[Condition] | dict[str, Condition] | None = None


class NodeSpec(msgspec.Struct):
    """What people have asked of a node, and its disks by name."""

    disks: dict[str, DiskSpec] | None = None
    allowScheduling: bool = False
    evictionRequested: bool = False
    tags: list[str] | None = None


class NodeStatus(msgspec.Struct):
    """How a node is, and its disks by the same names."""

    zone: str = ""
    region: str = ""
    autoEvicting: bool = False
    conditions: list[Condition] | dict[str, Condition] | None = None
    diskStatus: dict[str, DiskStatus] | None = None


class NodeResource(msgspec.Struct):
    """A node with its disks."""

    metadata: Metadata
    spec: NodeSpec
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class SettingResource(msgspec.Struct):
    """A global setting; its name is that of the resource."""

    metadata: Metadata
    value: str


# the kinds that are read; resources of other kinds are kept, and not looked at
SHAPES: dict[str, type[msgspec.Struct]] = {
    "Volume": VolumeResource,
    "Replica": ReplicaResource,
    "Node": NodeResource,
    "Setting": SettingResource,
}


GROUP = "longhorn.io/"
API_VERSION = "longhorn.io/v1beta2"
API_VERSIONS = ("longhorn.io/v1beta1", API_VERSION)
HEAD = 4096  # bytes within which the first resource of a list states its kind
NEVER = re.compile(r"(?!)")
EMPTY_LIST = re.compile(rb'\s*\{\s*"apiVersion":\s*"v1",\s*"items":\s*\[\s*\],\s*"kind":\s*"List"')

IN_YAML = re.compile(rb"^(- |  )?apiVersion: longhorn\.io/v1", re.MULTILINE)

Raw = dict[str, Any]

# a list without resources, as kubectl prints it
LIST: Raw = {"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}

TWICE = (
    "given more than once: {}: resources count before answers, answers before tables, and of "
    "either the first"
)
BESIDE = "tables beside resources or answers, which count alone"

Shape = TypeVar("Shape")


@dataclass(frozen=True)
class Found(Generic[Shape]):
    """One resource: where it stands, its number among all, all of it, and what placing needs."""

    path: str
    item: int
    raw: Raw
    value: Shape

    def at(self, place: str) -> str:
        """Return where a field of it stands."""
        return inside(self.path, place)


@dataclass
class Objects:
    """All resources that were read; those of a known kind in the order in which they came."""

    # what stands around the resources; an ordinary list where several files were read
    head: Raw = field(default_factory=lambda: dict(LIST))
    # every resource as it came, those of unknown kinds included
    items: list[Raw] = field(default_factory=list)
    nodes: list[Found[NodeResource]] = field(default_factory=list)
    volumes: list[Found[VolumeResource]] = field(default_factory=list)
    replicas: list[Found[ReplicaResource]] = field(default_factory=list)
    settings: list[Found[SettingResource]] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)  # what names something that is not there
    # whether some are of answers or tables, which leave out what a patch needs
    is_partial: bool = False
    # kind and name of those that do not fit their kind: what names them is not at fault
    misfits: set[tuple[str, str]] = field(default_factory=set)


def recognises(document: Document) -> str:
    """Tell whether a document is a list of Longhorn's resources, or one of them."""
    head = document.data[:HEAD]
    if OBJECTS.match(head):
        return "resources" if IN_YAML.search(head) else ""
    if is_answer(document, HEAD):
        return "resources"
    if not document.is_json:
        return "resources" if is_table(document, HEAD) else ""
    known = b'"longhorn.io/v1' in head or EMPTY_LIST.match(head) is not None
    return "resources" if known else ""


def hint(document: Document) -> str:
    """Return how to print resources, for parts of them."""
    if not EXCERPT.search(document.data[:HEAD]) and not TABLE.search(document.data[:HEAD]):
        return ""
    return f"seems to be of Longhorn: print its resources by {PRINT}"


def gather(faults: FaultList, documents: Sequence[Document]) -> Objects:
    """Take documents apart into resources, noting those that do not fit their kind."""
    objects, pages = Objects(), Pages()
    first: dict[tuple[str, str], str] = {}
    rows: list[dict[str, str]] = []
    answers: list[tuple[str, Raw]] = []
    for document in answers_of(objects.notes, documents, is_table, HEAD):
        if is_table(document, HEAD):
            rows += rows_of(objects.notes, document.text(faults), NEVER, ())
            continue
        converted = objects_as_json(faults, document)
        if converted is None:
            continue
        top = decode_json(faults, converted, dict[str, Any])
        if top is None:
            continue
        if is_answer(document, HEAD):
            answers += resources_of(faults, document.name, top)
            continue
        kind = _text(top, "kind")
        listed = kind.endswith("List")
        if listed and isinstance(items := top.get("items"), list):
            pages.add_chunk(kind, top.get("metadata"), len(items))
        if listed and len(documents) == 1:
            objects.head = {**top, "items": []}
        for path, raw in _resources(faults, document, top, listed):
            objects.items.append(raw)
            # a list of one kind need not name it in each
            one = kind.removesuffix("List") if listed else ""
            typed = {"apiVersion": top.get("apiVersion"), "kind": one} if one else {}
            _take(faults, objects, first, path, typed | raw)
    of_answers = dict.fromkeys(SHAPES, NO_PATCHES)
    _take_less(faults, objects, first, of_answers, answers)
    name = documents[0].name
    if rows and objects.replicas:
        objects.notes.add(BESIDE)
    elif rows:
        stated = {one.value.metadata.name for one in objects.nodes}
        found = resources_of_rows(objects.notes, rows, stated)
        _take_less(faults, objects, first, LEFT_OUT, ((name, raw) for raw in found))
        if not objects.replicas:
            named = [document.name for document in documents]
            faults.add("source", named, f"lists no replica: needs what is printed by {PRINT}")
    if objects.is_partial and objects.replicas and not objects.nodes:
        objects.notes.add(NO_NODES)
        specs = [one.value.spec for one in objects.replicas]
        room = sum(int(one.volumeSize) for one in specs)
        made = nodes_of({(one.nodeID, one.diskID) for one in specs}, room, {})
        _take_less(faults, objects, first, of_answers, ((name, raw) for raw in made))
    pages.note(objects.notes)
    return objects


def _take_less(
    faults: FaultList,
    objects: Objects,
    first: dict[tuple[str, str], str],
    lacking: Mapping[str, str],
    found: Iterable[tuple[str, Raw]],
) -> None:
    """Take resources of answers or tables unless they are there, noting what their kind lacks."""
    for path, raw in found:
        kind, name = raw["kind"], _name_of(raw)
        if (kind, name) in first:
            objects.notes.add(TWICE, f"{kind} {name}")
            continue
        objects.is_partial = True
        objects.notes.add(lacking[kind])
        objects.items.append(raw)
        _take(faults, objects, first, path, raw)


def _resources(
    faults: FaultList, document: Document, top: Raw, listed: bool
) -> Iterator[tuple[str, Raw]]:
    """Yield the resources of a document, each with its place."""
    if not listed:
        yield document.name, top
        return
    items = top.get("items")
    if not isinstance(items, list):
        faults.add(f"{document.name}: items", quoted(items), "must be a list of resources")
        return
    for i, raw in enumerate(items):
        path = f"{document.name}: items[{i}]"
        if isinstance(raw, dict):
            yield path, raw
        else:
            faults.add(path, quoted(raw), "must be a resource")


def _take(
    faults: FaultList, objects: Objects, first: dict[tuple[str, str], str], path: str, raw: Raw
) -> None:
    """Read the last resource of the items, if it is of a kind that placing needs."""
    version, kind = _text(raw, "apiVersion"), _text(raw, "kind")
    if not version.startswith(GROUP) or kind not in SHAPES:
        return
    if version not in API_VERSIONS:
        objects.misfits.add((kind, _name_of(raw)))
        message = f"is none of {', '.join(API_VERSIONS)}"
        faults.add(inside(path, "apiVersion"), quoted(version), message)
        return
    try:
        value = _fitted(faults, path, raw, SHAPES[kind])
    except RecursionError:
        faults.add(path, kind, "is nested too deeply")
        return
    if value is None:
        objects.misfits.add((kind, _name_of(raw)))
        return
    found: Found[Any] = Found(path, len(objects.items) - 1, raw, value)
    name = found.value.metadata.name
    before = first.setdefault((kind, name), path)
    if before != path:
        faults.add(found.at("metadata.name"), quoted(name), f"is already the name of {before}")
        return
    by_kind: dict[str, list[Any]] = {
        "Node": objects.nodes,
        "Volume": objects.volumes,
        "Replica": objects.replicas,
        "Setting": objects.settings,
    }
    by_kind[kind].append(found)


def _fitted(faults: FaultList, path: str, raw: Raw, shape: type[Shape]) -> Shape | None:
    """Return a resource as its kind has it; None after noting what does not fit."""
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError:
        present = _without_nulls(raw)
    try:
        return msgspec.convert(present, shape)
    except msgspec.ValidationError:
        note_misfits(faults, path if ": " in path else f"{path}: ", present, shape)
        return None


def _name_of(raw: Raw) -> str:
    """Return the name of a resource that does not fit its kind; "" if even that is missing."""
    metadata = raw.get("metadata")
    return _text(metadata, "name") if isinstance(metadata, dict) else ""


def _text(raw: Raw, key: str) -> str:
    """Return a field that should be a text; "" if it is anything else."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _without_nulls(raw: Raw) -> Raw:
    """Return a resource without fields that are null: to Kubernetes they are not there."""
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in raw.items()
        if value is not None
    }


def inside(path: str, place: str) -> str:
    """Return the place of a field of a resource, which is a file or an item of the list in it."""
    return f"{path}.{place}" if ": " in path else f"{path}: {place}"
