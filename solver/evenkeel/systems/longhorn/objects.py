"""What kubectl printed, taken apart into resources: each as it came, and as its kind has it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json, note_misfits
from evenkeel.systems.longhorn.resources import (
    SHAPES,
    NodeResource,
    ReplicaResource,
    SettingResource,
    VolumeResource,
)
from evenkeel.systems.notes import Notes

GROUP = "longhorn.io/"
API_VERSION = "longhorn.io/v1beta2"
HEAD = 4096
"""Bytes within which the first resource of a list says what it is."""

EMPTY_LIST = re.compile(rb'\s*\{\s*"apiVersion":\s*"v1",\s*"items":\s*\[\s*\],\s*"kind":\s*"List"')

Raw = dict[str, Any]

LIST: Raw = {"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}
"""A list without resources, as kubectl prints it."""

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

    head: Raw = field(default_factory=lambda: dict(LIST))
    """What stands around the resources; an ordinary list where several files were read."""

    items: list[Raw] = field(default_factory=list)
    """Every resource as it came, those of unknown kinds included."""

    nodes: list[Found[NodeResource]] = field(default_factory=list)
    volumes: list[Found[VolumeResource]] = field(default_factory=list)
    replicas: list[Found[ReplicaResource]] = field(default_factory=list)
    settings: list[Found[SettingResource]] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    """What names something that is not there."""

    misfits: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of those that do not fit their kind: what names them is not at fault."""


def recognises(document: Document) -> str:
    """Tell whether a document is a list of Longhorn's resources, if an empty one, or one of them.

    Examples
    --------
    >>> recognises(Document("a.json", b'{"apiVersion": "longhorn.io/v1beta2", "kind": "Volume"}'))
    'resources'
    """
    head = document.data[:HEAD]
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return ""
    known = b'"longhorn.io/v1' in head or EMPTY_LIST.match(head) is not None
    return "resources" if known else ""


def hint(document: Document) -> str:
    """Tell that a document seems to be such resources as YAML."""
    head = document.data[:HEAD]
    known = re.search(rb"^\s*(- )?apiVersion: (v1|longhorn\.io/)", head, re.MULTILINE)
    if known and b"longhorn.io/v1" in document.data:
        return "it seems to be Longhorn's resources as YAML: print them by kubectl get -o json"
    return ""


def gather(faults: FaultList, documents: Sequence[Document]) -> Objects:
    """Take documents apart into resources, noting those that do not fit their kind."""
    objects = Objects()
    first: dict[tuple[str, str], str] = {}
    for document in documents:
        top = decode_json(faults, document, dict[str, Any])
        if top is None:
            continue
        kind = _text(top, "kind")
        listed = kind.endswith("List")
        if listed and len(documents) == 1:
            objects.head = {**top, "items": []}
        for path, raw in _resources(faults, document, top, listed):
            objects.items.append(raw)
            # a list of one kind need not name it in each
            one = kind.removesuffix("List") if listed else ""
            told = {"apiVersion": top.get("apiVersion"), "kind": one} if one else {}
            try:
                _take(faults, objects, first, path, told | raw)
            except RecursionError:
                faults.add(path, one, "is nested too deeply")
    return objects


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
    if version != API_VERSION:
        objects.misfits.add((kind, _name_of(raw)))
        faults.add(inside(path, "apiVersion"), quoted(version), f"is not {API_VERSION}")
        return
    shape = SHAPES[kind]
    try:
        value = msgspec.convert(raw, shape)
    except msgspec.ValidationError:
        said = _without_nulls(raw)
        try:
            value = msgspec.convert(said, shape)
        except msgspec.ValidationError:
            objects.misfits.add((kind, _name_of(raw)))
            note_misfits(faults, path if ": " in path else f"{path}: ", said, shape)
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
    """Return the place of a field of a resource, which is a file or an item of the list in it.

    Examples
    --------
    >>> inside("a.json", "spec.size"), inside("a.json: items[3]", "spec.size")
    ('a.json: spec.size', 'a.json: items[3].spec.size')
    """
    return f"{path}.{place}" if ": " in path else f"{path}: {place}"
