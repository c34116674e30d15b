"""Recognise the kinds of ZNRecords that Helix keeps in ZooKeeper, and collect them.

A record does not state its kind. Its folder does, as in a dump of ZooKeeper
(``IDEALSTATES/MyDB``, ``CONFIGS/PARTICIPANT/h1_12913``), and otherwise the fields that it has.

References
----------
Apache Helix, ``ZNRecord``, ``PropertyType``, ``IdealState``, ``InstanceConfig``, ``ClusterConfig``,
``ResourceConfig``, ``StateModelDefinition``.
"""

# ruff: noqa: N815 - fields are called as Helix calls them

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.helix import pinot
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.notes import Notes, last_answers

# what a record is; "" for one that placing does not need
Kind = Literal[
    "ideal", "view", "instance", "live", "history", "cluster", "resource", "states", "table",
    "partitions", "",
]  # fmt: skip

FIELDS = re.compile(rb'"(simpleFields|mapFields|listFields)"\s*:')
# what the answer of ``/clusters/NAME/instances`` shows, which is no record
LISTING = re.compile(rb'"instances"\s*:\s*\[')

# parts of the answers of ``/resources/NAME`` and ``/instances/NAME``, and their folders
ANSWERED = {
    "idealState": "IDEALSTATES", "externalView": "EXTERNALVIEW", "resourceConfig": "RESOURCE",
    "config": "PARTICIPANT", "liveInstance": "LIVEINSTANCES",
}  # fmt: skip

ANSWER = re.compile(rb'"(idealState|externalView|resourceConfig|config|liveInstance)"\s*:\s*\{')
# what Ambry's layouts of hardware and of partitions name disks by
LAYOUT = re.compile(rb'"mountPath"\s*:')

# a ZNRecord in a log of Java: its id, simple fields, maps and lists
PRINTED = re.compile(rb"\S, ?\{[^{}\n]*\}\{(?:[^{}\n]*=\{[^{}\n]*\})*\}\{[^{}\n]*\}")

# what zkCli.sh lists of live instances, perhaps below what it logs of its connection
LIVE = re.compile(
    rb"\bls (?:-\w )?/\S*/LIVEINSTANCES/?[ \t\r]*\n(?:(?![^\n]*\b(?:ls|get) )[^\n]*\n){0,200}?"
    rb"[^\n\[]*\[([^\[\]\n]*)\][ \t\r]*$",
    re.MULTILINE,
)

# the name of a part of a resource with a BUCKET_SIZE, by its first and last partition
BUCKET = re.compile(r"(.+)_p[0-9]+-p[0-9]+")

NULL = "no value of {}: it is read as if it were not there"

HEAD = 65536  # bytes within which a record shows that it is one
# what the records of each folder are; the innermost folder that is known decides
FOLDERS: dict[str, Kind] = {
    "IDEALSTATES": "ideal", "EXTERNALVIEW": "view", "PARTICIPANT": "instance",
    "LIVEINSTANCES": "live", "CLUSTER": "cluster", "RESOURCE": "resource",
    "STATEMODELDEFS": "states", "HISTORY": "history", "PROPERTYSTORE": "", "CONTROLLER": "",
    "CURRENTSTATES": "", "MESSAGES": "", "ERRORS": "", "STATUSUPDATES": "", "CUSTOMIZEDVIEW": "",
    "TARGETEXTERNALVIEW": "", "CUSTOMIZEDSTATES": "", "TASKCURRENTSTATES": "",
    "TABLE": "table", "INSTANCE_PARTITIONS": "partitions",
}  # fmt: skip

# what the records of a file are, by the whole of its name
FILES: tuple[tuple[str, Kind], ...] = (
    (r"external[-_ ]?views?", "view"), (r"ideal[-_ ]?states?", "ideal"),
    (r"(instance|participant)[-_ ]?configs?", "instance"), (r"live[-_ ]?instances?", "live"),
    (r"cluster[-_ ]?configs?", "cluster"), (r"resource[-_ ]?configs?", "resource"),
    (r"state[-_ ]?model[-_ ]?def(inition)?s?", "states"),
)  # fmt: skip

# fields that records of one kind alone have, in the order in which they are looked for
SHOWN_BY: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("states", frozenset({"INITIAL_STATE", "STATE_PRIORITY_LIST"})),
    ("live", frozenset({"LIVE_INSTANCE", "SESSION_ID"})),
    ("history", frozenset({"LAST_OFFLINE_TIME"})),
    ("ideal", frozenset({"REBALANCE_MODE", "STATE_MODEL_DEF_REF", "IDEAL_STATE_MODE"})),
    ("resource", frozenset({"PARTITION_CAPACITY_MAP"})),
    (
        "cluster",
        frozenset(
            {
                "TOPOLOGY", "FAULT_ZONE_TYPE", "TOPOLOGY_AWARE_ENABLED", "INSTANCE_CAPACITY_KEYS",
                "DEFAULT_INSTANCE_CAPACITY_MAP", "DEFAULT_PARTITION_WEIGHT_MAP",
                "REBALANCE_PREFERENCE", "allowParticipantAutoJoin", "MAX_OFFLINE_INSTANCES_ALLOWED",
                "DELAY_REBALANCE_TIME",
            }
        ),
    ),
    (
        "instance",
        frozenset(
            {
                "HELIX_HOST", "HELIX_PORT", "HELIX_ZONE_ID", "DOMAIN", "TAG_LIST",
                "INSTANCE_CAPACITY_MAP", "HELIX_INSTANCE_OPERATIONS", "INSTANCE_WEIGHT",
            }
        ),
    ),
)  # fmt: skip

INSTANCE = re.compile(
    b"|".join(f'"{name}"'.encode() for name in sorted(dict(SHOWN_BY)["instance"]))
)


Decoded = TypeVar("Decoded")


class Record(msgspec.Struct, omit_defaults=False, gc=False):
    """One ZNRecord; every leaf is a text."""

    id: str
    simpleFields: dict[str, str] = {}
    mapFields: dict[str, dict[str, str]] = {}
    listFields: dict[str, list[str]] = {}


class Listing(msgspec.Struct):
    """The instances of a cluster, and which are live and disabled, as REST lists them."""

    instances: list[str]
    online: list[str] | None = None
    disabled: list[str] = []


@dataclass(frozen=True)
class Found:
    """A record, and where it stands: what the places of its fields begin with."""

    record: Record
    at: str

    def text(self, name: str) -> str:
        """Return a simple field; "" if there is none."""
        return self.record.simpleFields.get(name, "")

    def rows(self, name: str) -> dict[str, str]:
        """Return a map; an empty one if there is none."""
        return self.record.mapFields.get(name, {})

    def listed(self, name: str) -> list[str]:
        """Return a list; an empty one if there is none."""
        return self.record.listFields.get(name, [])

    def place(self, name: str) -> str:
        """Return where a simple field stands."""
        return f"{self.at}simpleFields.{name}"


NONE = Found(Record(""), "")  # stands for a record that is not there: it says nothing


@dataclass
class Records:
    """All records that placing needs, by kind and id, in the order of their ids."""

    ideal: dict[str, Found] = field(default_factory=dict)
    view: dict[str, Found] = field(default_factory=dict)
    instance: dict[str, Found] = field(default_factory=dict)
    live: dict[str, Found] = field(default_factory=dict)
    history: dict[str, Found] = field(default_factory=dict)
    cluster: dict[str, Found] = field(default_factory=dict)
    resource: dict[str, Found] = field(default_factory=dict)
    states: dict[str, Found] = field(default_factory=dict)
    table: dict[str, Found] = field(default_factory=dict)
    partitions: dict[str, Found] = field(default_factory=dict)
    listings: list[Listing] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    # instances that take nothing new, since it cannot be judged what they may hold
    closed: set[str] = field(default_factory=set)
    # instances that count as down, since no external view shows what is listed for them
    silent: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Found:
        """What is set for the whole cluster."""
        return next(iter(self.cluster.values()), NONE)

    def config(self, name: str) -> Found:
        """Return what is set for an instance."""
        return self.instance.get(name, NONE)

    def is_live(self, name: str) -> bool:
        """Return whether an instance is live; all are where no record lists live ones."""
        if self.instance and name not in self.instance:
            return False  # Helix knows it no more
        if name in self.silent:
            return False
        if name in self.live or not self.tells_live:
            return True
        return any(name in (one.online or ()) for one in self.listings)

    @property
    def shown(self) -> set[str]:
        """The instances that external views show."""
        views = (row for one in self.view.values() for row in one.record.mapFields.values())
        return {name for row in views for name in row}

    @property
    def tells_live(self) -> bool:
        """Whether some record or list tells which instances are live."""
        return bool(self.live) or any(one.online is not None for one in self.listings)

    def is_listed_disabled(self, name: str) -> bool:
        """Whether a list of instances has it among those that are disabled."""
        return any(name in one.disabled for one in self.listings)


def lists_instances(documents: Sequence[Document]) -> bool:
    """Return whether they name all instances: each has a config, and without one is none."""
    return any(
        _is_listing(one)
        or (named := _kind_by_name(one.name)) == "instance"
        or (named is None and INSTANCE.search(one.data) is not None)
        for one in documents
    )


# states of instances by partition and resource, with no record around them
ASSIGNMENT = re.compile(
    rb'\s*(?:\{\s*"[^"]*"\s*:\s*){3}"(?:MASTER|SLAVE|LEADER|STANDBY|FOLLOWER|ONLINE)"'
)

# a file with all records of a cluster, as its first release wrote it
VIEW = re.compile(rb'^\s*\{\s*"(?:clusterPropertyLists|memberInstanceMap)"\s*:')


def recognises(document: Document) -> str:
    """Tell whether a document holds ZNRecords."""
    head = document.data[:HEAD].lstrip()
    known = document.is_json and FIELDS.search(head) and not VIEW.search(head)
    if known or is_empty(document):
        return "records"
    if pinot.is_answer(document):
        return "answers of Pinot's controller"
    if _is_ls(document):
        return "live instances"
    return "instances" if _is_listing(document) else ""


def _is_ls(document: Document) -> bool:
    """Return whether a document has a list of live instances of zkCli.sh, and no record."""
    return b"{" not in document.data and LIVE.search(document.data) is not None


def hint(document: Document) -> str:
    """Return how to get the records behind an answer of Pinot's controller; "" for others."""
    if pinot.OTHERS.match(document.data[:HEAD]):
        return (
            "it seems to be an answer of Pinot's controller without the states of segments: give "
            "those of /tables/NAME/idealstate, /tables/NAME and /instances, or the records that "
            "/zk/get?path=/CLUSTER/IDEALSTATES/TABLE_OFFLINE prints"
        )
    if LAYOUT.search(document.data[:HEAD]):
        return (
            "is a static layout of Ambry's: give what Helix has of the cluster, its ideal states, "
            "participants and live instances, as zkCli.sh prints them, or two tables, of nodes and "
            "of replicas, as docs/systems/tables.md describes them"
        )
    if VIEW.search(document.data[:HEAD]):
        return (
            "is a view of a cluster, which no release since the first writes: give its ideal "
            "states and instances as records, as zkCli.sh prints them"
        )
    if ASSIGNMENT.match(document.data[:HEAD]):
        return (
            "is an assignment alone, such as REST's partitionAssignment answers: give ideal states "
            "as records; as a target, those in which it stands as mapFields"
        )
    if PRINTED.search(document.data[:HEAD]):
        return "it seems to be a log with ZNRecords: they are read as JSON, as zkCli.sh prints them"
    return ""


def is_empty(document: Document) -> bool:
    """Return whether a document is a list without records, as is written where nothing changes."""
    return document.data.split() in ([b"[]"], [b"[", b"]"])


def _is_listing(document: Document) -> bool:
    head = document.data[:HEAD].lstrip()
    return head.startswith(b"{") and not FIELDS.search(head) and LISTING.search(head) is not None


def gather(faults: FaultList, documents: Sequence[Document]) -> Records:
    """Read all records that placing needs."""
    records = Records()
    around = [
        text
        for one in documents
        for text in (one.before, one.after, one.data if _is_ls(one) else b"")
    ]
    documents = [one for one in documents if not _is_ls(one)]
    held = last_answers(records.notes, documents)
    for note in (note for one in held for note in pinot.notes_on(one)):
        records.notes.add(note)
    for document in (part for one in held for part in _parts(one)):
        if _is_listing(document):
            listing = _decoded(faults, records.notes, document, Listing)
            if listing is not None:
                if listing.online is None:  # of Pinot
                    some = [n for n in listing.instances if not n.startswith(pinot.OTHER_KINDS)]
                    listing = Listing(some, some if pinot.is_live(document) else None)
                records.listings.append(listing)
            continue
        named = _kind_by_name(document.name)
        if named == "":
            continue
        for found in _records_of(faults, records.notes, document):
            _add(faults, records, found, named)
    if live := [found[1] for text in around for found in LIVE.finditer(text)]:
        names = [name.strip() for name in live[-1].decode("utf-8", "replace").split(",")]
        records.listings.append(Listing(names := [*filter(None, names)], names))
    _join_buckets(records.ideal)
    _join_buckets(records.view)
    for one in fields(Records):
        if one.name in ("listings", "notes", "closed", "silent"):
            continue
        own: dict[str, Found] = getattr(records, one.name)
        setattr(records, one.name, dict(sorted(own.items())))
    return records


def _join_buckets(own: dict[str, Found]) -> None:
    """Put the partitions of a large resource, which ZooKeeper has in buckets, into one record."""
    for name, found in [*own.items()]:
        bucket = BUCKET.fullmatch(name)
        if bucket and found.text("BUCKET_SIZE") not in ("", "0"):
            part, whole = own.pop(name).record, bucket[1]
            joined = own.setdefault(whole, Found(Record(whole, part.simpleFields), found.at)).record
            joined.mapFields |= part.mapFields
            joined.listFields |= part.listFields


def _parts(document: Document) -> list[Document]:
    """Return the records of an answer on one resource, table or instance; others as they are.

    >>> answer = b'{"idealState": {"id": "DB", "simpleFields": {}}, "externalView": null}'
    >>> [one.name for one in _parts(Document("db.json", answer))]
    ['db.json/IDEALSTATES/idealState']
    """
    if not ANSWER.search(document.data[:HEAD]):
        return pinot.records_behind(document)
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        inside = msgspec.json.decode(document.data, type=dict[str, msgspec.Raw])
        if "simpleFields" not in inside:
            return [
                replace(document, name=f"{document.name}/{ANSWERED[key]}/{key}", data=bytes(raw))
                for key, raw in inside.items()
                if key in ANSWERED and bytes(raw) != b"null"
            ]
    return [document]


def _records_of(faults: FaultList, notes: Notes, document: Document) -> list[Found]:
    """Return the one record of a document, or those of a list."""
    if document.data[:HEAD].lstrip().startswith(b"["):
        listed = _decoded(faults, notes, document, list[Record]) or []
        return [Found(one, f"{document.name}: [{i}].") for i, one in enumerate(listed)]
    one = _decoded(faults, notes, document, Record)
    return [] if one is None else [Found(one, f"{document.name}: ")]


def _decoded(
    faults: FaultList, notes: Notes, document: Document, shape: type[Decoded]
) -> Decoded | None:
    """Decode records; values that are null are left out, numbers and truths read as their text."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return msgspec.json.decode(document.data, type=shape)
        except msgspec.ValidationError:  # or what follows is damaged, too
            value = msgspec.json.decode(document.data)
            if isinstance(value, (dict, list)):
                value = _plain_texts(notes, document.name, value)
                document = replace(document, data=msgspec.json.encode(value))
    return decode_json(faults, document, shape)


def _plain_texts(notes: Notes, place: str, value: Any) -> Any:
    """Return what was decoded from JSON without nulls, and with a text for each plain value."""
    if isinstance(value, dict):
        inner = {key: (_inside(place, key), one) for key, one in value.items()}
    elif isinstance(value, list):
        inner = {i: (f"{place}[{i}]", one) for i, one in enumerate(value)}
    elif isinstance(value, str):
        return value
    else:
        return str(value).lower() if isinstance(value, bool) else f"{value:.17g}"
    for at, one in inner.values():
        if one is None:
            notes.add(NULL, at)
    kept = {
        key: _plain_texts(notes, at, one) for key, (at, one) in inner.items() if one is not None
    }
    return kept if isinstance(value, dict) else [*kept.values()]


def _inside(place: str, key: str) -> str:
    return f"{place}{'.' if ': ' in place else ': '}{key}"


def _kind_by_name(name: str) -> Kind | None:
    """Return the kind of a file's records by its folder or name; None if unknown."""
    *folders, file = re.split(r"[/\\]", name)
    stem = file.removesuffix(".json")
    for one in reversed([*folders, stem]):
        if one in FOLDERS:
            return FOLDERS[one]
    return next((kind for form, kind in FILES if re.fullmatch(form, stem, re.IGNORECASE)), None)


def _kind_by_fields(records: Records, found: Found) -> Kind | None:
    """Return the kind of a record by its fields; None if unknown."""
    record = found.record
    there = record.simpleFields.keys() | record.listFields.keys() | record.mapFields.keys()
    kind = next((kind for kind, names in SHOWN_BY if names & there), None)
    first = records.ideal.get(record.id)
    if kind == "ideal" and first is not None and record.id not in records.view:
        # an external view repeats the settings of its resource, and has no lists
        if not record.listFields:
            return "view"
        if not first.record.listFields:
            records.view[record.id] = records.ideal.pop(record.id)
    if kind is None and record.mapFields and not record.listFields:
        return "view"
    return kind


def _add(faults: FaultList, records: Records, found: Found, named: Kind | None) -> None:
    kind = named or _kind_by_fields(records, found)
    at, name = f"{found.at}id", found.record.id
    if kind is None:
        folders = ", ".join(name for name, kind in FOLDERS.items() if kind)
        message = f"does not show what it is: put it into a folder named as in ZooKeeper: {folders}"
        faults.add(at, quoted(name), message)
    elif not name:
        faults.add(at, name, "is missing")
    else:
        first = getattr(records, kind).setdefault(name, found)
        if first is not found:
            faults.add(at, quoted(name), f"is already the id of {first.at.rstrip(': .')}")
