"""Which answer of an API a file is, and what it says: rows of tables, nodes, and flat settings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.elasticsearch.cat_text import kind_of_text, read_text
from evenkeel.systems.elasticsearch.columns import Row
from evenkeel.systems.json_text import decode_json

Kind = Literal[
    "shards", "allocation", "nodes", "shutdown", "cluster settings", "index settings", ""
]

HEAD = 65536
"""Bytes that are looked at to tell which answer a file is."""

UNITS = {"b": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40, "pb": 50}
AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([kmgtp]?b)?", re.IGNORECASE)
MOST = 2.0**60


class Node(msgspec.Struct):
    """A node as ``_nodes`` has it."""

    name: str
    host: str = ""
    ip: str = ""
    version: str = ""
    roles: list[str] | None = None
    attributes: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Nodes(msgspec.Struct):
    """The answer of ``_nodes``, by id."""

    nodes: dict[str, Node]


class Shutdown(msgspec.Struct):
    """A node that is being shut down."""

    node_id: str
    type: Literal["REMOVE", "RESTART", "REPLACE", "SIGTERM", "remove", "restart", "replace"]


class Shutdowns(msgspec.Struct):
    """The answer of ``_nodes/shutdown``."""

    nodes: list[Shutdown]


class IndexSettings(msgspec.Struct):
    """The settings of an index."""

    settings: dict[str, Any] = {}


@dataclass
class Findings:
    """Everything that was read, with the place where it stands."""

    faults: FaultList
    kinds: set[str] = field(default_factory=set)
    """Which answers there are."""

    shards: list[Row] = field(default_factory=list)
    files: list[tuple[int, str, list[int]]] = field(default_factory=list)
    """The number of the first row of shards in each file, its name, and the lines of a text."""

    allocation: list[tuple[str, Row]] = field(default_factory=list)
    nodes: dict[str, tuple[str, Node]] = field(default_factory=dict)
    """By id."""

    shutdown: list[tuple[str, Shutdown]] = field(default_factory=list)
    cluster: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Flat names of settings, each with its place and value; what overrides has overridden."""

    started: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Settings of the cluster that nodes were started with, which all others override."""

    chosen: set[str] = field(default_factory=set)
    """Settings of the cluster that somebody has set, and are no defaults."""

    indices: dict[str, dict[str, tuple[str, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What was assumed and what is kept in part, for people: what the files tell."""

    def shard_at(self, row: int) -> str:
        """Return where a row of shards stands."""
        first, name, lines = next(one for one in reversed(self.files) if one[0] <= row)
        return f"{name}:{lines[row - first]}" if lines else f"{name}: [{row - first}]"


def recognises(document: Document) -> Kind:
    """Tell which answer a document is, if any.

    Examples
    --------
    >>> recognises(Document("a.json", b'[{"index":"i","shard":"0","prirep":"p"}]'))
    'shards'
    """
    head = document.data[:HEAD].lstrip()
    if head.startswith(b"["):
        if b'"prirep"' in head:
            return "shards"
        return "allocation" if b'"disk.' in head and b'"node"' in head else ""
    if not head.startswith(b"{"):
        return kind_of_text(head.decode("utf-8", "replace"))
    if b'"nodes"' in head and b'"shutdown_startedmillis"' in head:
        return "shutdown"
    if b'"nodes"' in head and b'"transport_address"' in head:
        return "nodes"
    if re.match(rb'\{\s*"(persistent|transient|defaults)"\s*:', head):
        return "cluster settings"
    return "index settings" if re.match(rb'\{\s*"[^"]+"\s*:\s*\{\s*"settings"', head) else ""


OTHERS = {
    rb'\s*\{[^}]{0,400}"can_allocate"|.{0,4000}"node_allocation_decisions"': "_cluster/allocation/"
    "explain tells of one shard",
    rb'.{0,4000}"relocating_shards"': "_cluster/health tells no shard",
    rb".{0,400}(heap\.percent|node\.role)": "_cat/nodes tells no shard and no attribute",
    rb"node +host +ip +attr +value": "_cat/nodeattrs tells no role",
    rb"health +status +index": "_cat/indices tells no node",
}
"""Answers that are none of ours, by what they look like."""


def hint(document: Document) -> str:
    """Tell what to give in place of another answer."""
    head = document.data[:4096]
    for looks, told in OTHERS.items():
        if re.match(looks, head, re.DOTALL):
            return (
                f"{told}: give _cat/shards, _cat/allocation, _nodes, "
                "_cluster/settings?include_defaults=true and _all/_settings?expand_wildcards=all"
            )
    return ""


def gather(faults: FaultList, documents: Sequence[Document]) -> Findings:
    """Read all documents."""
    found = Findings(faults)
    for document in documents:
        kind = recognises(document)
        found.kinds.add(kind)
        if kind == "shards" or kind == "allocation":
            _take_table(found, document, kind)
        elif kind == "nodes":
            _take_nodes(found, document)
        elif kind == "shutdown":
            told = decode_json(faults, document, Shutdowns)
            listed = enumerate(told.nodes if told else ())
            found.shutdown += [(f"{document.name}: nodes[{i}]", one) for i, one in listed]
        elif kind == "cluster settings":
            _take_cluster(found, document)
        elif kind == "index settings":
            _take_indices(found, document)
        else:
            message = "is not an answer of _cat/shards, _cat/allocation, _nodes or _settings"
            faults.add(document.name, document.data[:40], message)
    found.chosen |= found.started.keys()
    found.cluster = found.started | found.cluster
    return found


def _take_table(found: Findings, document: Document, kind: Literal["shards", "allocation"]) -> None:
    """Read shards or what nodes have room for, whether as JSON or as text."""
    name, lines = document.name, list[int]()
    if document.data[:HEAD].lstrip().startswith(b"["):
        rows = decode_json(found.faults, document, list[Row]) or []
    else:
        rows, lines = read_text(found.faults, document, kind)
    if kind == "shards":
        found.files.append((len(found.shards), name, lines))
        found.shards += rows
    else:
        places = [f"{name}:{i}" for i in lines] or [f"{name}: [{i}]" for i in range(len(rows))]
        found.allocation += zip(places, rows, strict=True)


def _take_nodes(found: Findings, document: Document) -> None:
    told = decode_json(found.faults, document, Nodes)
    names: dict[str, str] = {node.name: at for at, node in found.nodes.values()}
    for key, node in (told.nodes if told else {}).items():
        at = f"{document.name}: nodes.{quoted(key)}"
        if key in found.nodes:
            found.faults.add(at, quoted(key), f"is already given at {found.nodes[key][0]}")
        if node.name in names:
            message = (
                f"is already the name of {names[node.name]}: commands could not tell them apart"
            )
            found.faults.add(f"{at}.name", quoted(node.name), message)
        names.setdefault(node.name, at)
        found.nodes.setdefault(key, (at, node))
        for name, value in flat(node.settings).items():
            if name.startswith("cluster.routing."):
                found.started.setdefault(name, (f"{at}.settings.{quoted(name)}", value))


def _take_cluster(found: Findings, document: Document) -> None:
    told = decode_json(found.faults, document, dict[str, Any]) or {}
    for kind in ("defaults", "persistent", "transient"):
        if not isinstance(own := told.get(kind, {}), dict):
            found.faults.add(f"{document.name}: {kind}", quoted(own), "must be settings")
            continue
        for name, value in flat(own).items():
            found.cluster[name] = (f"{document.name}: {kind}.{quoted(name)}", value)
            if kind != "defaults":
                found.chosen.add(name)


def _take_indices(found: Findings, document: Document) -> None:
    told = decode_json(found.faults, document, dict[str, IndexSettings]) or {}
    for index, one in told.items():
        at = f"{document.name}: {quoted(index)}.settings"
        if index in found.indices:
            found.faults.add(at, quoted(index), "has settings already")
        own = flat(one.settings)
        found.indices[index] = {
            name: (f"{at}.{quoted(name)}", value) for name, value in own.items()
        }


def flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings by their flat names, however they are nested.

    Examples
    --------
    >>> flat({"index": {"routing.x": "1", "y": ["2"]}})
    {'index.routing.x': '1', 'index.y': ['2']}
    """
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", settings)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            inner = [(f"{path}.{key}" if path else key, one) for key, one in value.items()]
            # what grows with the depth is a name that nobody has
            waiting += [(name, one) for name, one in reversed(inner) if len(name) < 2000]
        elif isinstance(value, list):
            found[path] = [_plain(one) for one in value]
        else:
            found[path] = _plain(value)
    return found


def _plain(value: Any) -> str:
    """Return a value of a setting as the text that it could be as well."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 2**63:
        return "more than 64 bits"
    return "" if value is None else str(quoted(value))


def amount(faults: FaultList, at: str, text: str | None) -> float:
    """Return a number of bytes that may have a unit; 0 where there is none, as -1 says, too."""
    if text is None or text in ("", "-", "-1", "-1b"):
        return 0.0
    known = AMOUNT.fullmatch(text.strip())
    number = float(known[1]) * 2.0 ** UNITS[(known[2] or "b").lower()] if known else MOST
    if number >= MOST:
        faults.add(at, quoted(text), "must be a number of bytes, such as 31100000 or 29.6mb")
        return 0.0
    return number
