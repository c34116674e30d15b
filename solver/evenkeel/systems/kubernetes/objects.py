"""Objects in the output of kubectl, raw and decoded by kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.kubernetes.resources import SHAPES, Budget, Claim, Node, Pod, Volume
from evenkeel.systems.notes import Notes
from evenkeel.systems.yaml_text import OBJECTS, objects_as_json

HEAD = 65536
KIND = re.compile(
    rb'"kind"\s*:\s*"(Node|Pod|PodDisruptionBudget|PersistentVolume|PersistentVolumeClaim)(List)?"'
)
IN_YAML = re.compile(
    rb"^(- |  )?kind: (Node|Pod|PodDisruptionBudget|PersistentVolume|PersistentVolumeClaim)"
    rb"(List)?\s",
    re.MULTILINE,
)
TABLE = re.compile(
    rb"^(NAMESPACE +)?NAME +(READY +(UP-TO-DATE|STATUS|AGE)|STATUS +ROLES|MIN +AVAILABLE|CAPACITY|"
    rb"VOLUME|STATUS +VOLUME|DESIRED)|^Name: +\S+\r?\n(Namespace|Roles|Labels|Priority): ",
    re.MULTILINE,
)
"""How tables for people begin, and what kubectl describes."""

VERSIONS = {"v1", "policy/v1", "policy/v1beta1"}


class Listing(msgspec.Struct, gc=False):
    """A list of objects, or one object, of which only the kind is looked at."""

    kind: str = ""
    apiVersion: str = "v1"  # noqa: N815
    items: list[msgspec.Raw] | None = None


@dataclass
class Objects:
    """Everything that was read, with its place in the files."""

    faults: FaultList
    items: list[msgspec.Raw] = field(default_factory=list)
    """Every object as it came, those of unknown kinds included."""

    nodes: dict[str, tuple[str, Node]] = field(default_factory=dict)
    pods: dict[tuple[str, str], tuple[str, Pod]] = field(default_factory=dict)
    budgets: dict[tuple[str, str], tuple[str, Budget]] = field(default_factory=dict)
    volumes: dict[tuple[str, str], tuple[str, Volume]] = field(default_factory=dict)
    """By an empty namespace and the name: volumes are in none."""

    claims: dict[tuple[str, str], tuple[str, Claim]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    """Assumptions, for people."""


def recognises(document: Document) -> str:
    """Return "objects" for nodes, pods, disruption budgets or volumes; "" for other documents."""
    head = document.data[:HEAD]
    if OBJECTS.match(head):
        return "objects" if IN_YAML.search(head) and b" longhorn.io/v1" not in head else ""
    if not head.lstrip().startswith((b"{", b"[")) or b'"longhorn.io/v1' in head:
        return ""
    return "objects" if b'"apiVersion"' in head and KIND.search(head) else ""


def hint(document: Document) -> str:
    """Return how to print objects, for tables of them; "" for other documents."""
    if TABLE.search(document.data[:HEAD]):
        return "what kubectl prints is read as JSON or YAML: ask it for -o json"
    return ""


def gather(faults: FaultList, documents: Sequence[Document]) -> Objects:
    """Split documents into objects, and report those that do not fit their kind."""
    found = Objects(faults)
    for given in documents:
        if not given.data.isascii():
            before = len(faults.faults)
            given.text(faults)
            if len(faults.faults) > before:
                continue
        document = objects_as_json(faults, given)
        if document is None:
            continue
        top = decode_json(faults, document, Listing)
        if top is None:
            continue
        if top.items is None and top.kind.endswith("List"):
            continue  # Go writes an empty list as null
        if top.items is None and top.kind not in SHAPES:
            faults.add(f"{document.name}: items", None, "is missing from the list")
            continue
        listed = [msgspec.Raw(document.data)] if top.items is None else top.items
        kind = top.kind.removesuffix("List")
        for i, raw in enumerate(listed):
            at = document.name if top.items is None else f"{document.name}: items[{i}]"
            found.items.append(raw)
            _take(found, at, raw, kind)
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
