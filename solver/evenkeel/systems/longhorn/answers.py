"""Convert answers of Longhorn's API and kubectl's tables to resources, for decisions only."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import note_misfits
from evenkeel.systems.notes import Notes

Raw = dict[str, Any]
Row = Mapping[str, str]

DIGITS = r"^[0-9]{1,15}$"  # bytes as a text
ANSWER = re.compile(
    rb'"(?:numberOfReplicas|diskUpdate|storageMaximum)"\s*:|'
    rb"(?<!/api)/v1/(?:volumes|nodes|settings)\b"
)
# what is in the beginning of an answer, and of a table, also of columns that were chosen
TABLE = re.compile(
    rb"^(?:.*[#$>%] +)?(?=(?:[A-Z]{2,} +)*(?:NAME|REPLICA)\b)(?:"
    rb".*\b(?:ROBUSTNESS|ALLOWSCHEDULING|INSTANCEMANAGER)\b|"
    rb"(?!.*\bREADY\b).*\bNODE\b.*\r?\n(?:\S+ +)*?(?!instance-manager-)\S+-r-[0-9a-f]{8}\s)|"
    # replicas without their names
    rb"^(?:.*[#$>%] +)?(?=.*\bVOLUME\b)(?=.*\bNODE\b)(?=.*\bDISK\b)"
    rb"(?:(?:VOLUME|NODE|DISK|STATE|SIZE)\b[ \t]*){3,}\r?$",
    re.MULTILINE,
)

# the name of a replica; instance managers of old releases have such names, too
REPLICA = re.compile(r"(?!instance-manager-).+-r-[0-9a-f]{8}")

# when replicas were built, and have stopped, of which no time is known: long ago
BUILT, STOPPED = "1971-01-01T00:00:00Z", "1970-01-01T00:00:00Z"

SPEC = (
    "size", "numberOfReplicas", "replicaAutoBalance", "replicaSoftAntiAffinity",
    "replicaZoneSoftAntiAffinity", "replicaDiskSoftAntiAffinity", "dataLocality", "nodeSelector",
    "diskSelector", "dataEngine",
)  # fmt: skip

NO_PATCHES = "only what the API answers of resources: no patch is written; print them by kubectl"
NO_NODES = (
    "no nodes: those that hold no replica are unknown, and disks count as alike; add /v1/nodes"
)
# what tables lack, by the kind of a resource
LEFT_OUT = {
    "Node": "no room of disks and no tags, which tables leave out: disks count as alike",
    "Volume": (
        "no numbers of replicas, which tables leave out: volumes count as full, and each is to "
        "have as many as it has rows, or runs where it is healthy"
    ),
    "Replica": (
        "only what tables have of replicas: those that are stopped count as stopped long ago, and "
        "no patch is written; print them by -o json"
    ),
}

STATELESS = "no states of replicas in tables: those that have a node count as running"
NO_COLUMNS = "rows of tables without their columns {}: they are not counted"
NO_REPLICAS = "volumes of which tables have no replica: {}: they are not counted"


class _Engine(msgspec.Struct, rename="camel"):
    host_id: str | None = None
    actual_size: Annotated[str, Meta(pattern=r"^[0-9]{0,15}$")] | int | None = None


class _Parts(msgspec.Struct):
    """What a volume consists of; a resource has each by itself."""

    controllers: list[_Engine] | None = None
    replicas: list[dict[str, Any]] | None = None


def is_answer(document: Document, size: int) -> bool:
    """Return whether a document is an answer of the API on volumes, nodes or settings."""
    head = document.data[:size]
    return document.is_json and b'"apiVersion"' not in head and ANSWER.search(head) is not None


def is_table(document: Document, size: int) -> bool:
    """Return whether a text has tables of resources, and no resource itself."""
    has_table = not document.is_json and TABLE.search(document.data[:size]) is not None
    return has_table and b"apiVersion: longhorn.io/" not in document.data


def resources_of(faults: FaultList, name: str, answer: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the resources in an answer of the API, each with its place."""
    listed = answer.get("data")
    placed = (
        [(f"{name}: data[{i}]", one) for i, one in enumerate(listed)]
        if isinstance(listed, list)
        else [(name, answer)]
    )
    for path, one in placed:
        kind = one.get("type") if isinstance(one, dict) else None
        if not isinstance(one, dict):
            faults.add(path, quoted(one), "must be a resource")
        elif kind == "volume":
            for raw in _of_volume(faults, path, one):
                yield path, raw
        elif kind == "node":
            yield path, _resource("Node", one, one | {"diskStatus": one.get("disks")})
        elif kind == "setting":
            yield path, _resource("Setting", one, {}) | {"value": one.get("value")}


def _resource(kind: str, about: Raw, status: Raw, spec: Raw | None = None) -> Raw:
    metadata = {"name": about.get("name") or about.get("id")}
    spec = about if spec is None else spec
    named = {"apiVersion": "longhorn.io/v1beta2", "kind": kind, "metadata": metadata}
    return named | {"spec": spec, "status": status}


def _of_volume(faults: FaultList, path: str, one: Raw) -> Iterator[Raw]:
    try:
        parts = msgspec.convert(one, _Parts)
    except msgspec.ValidationError:
        note_misfits(faults, path if ": " in path else f"{path}: ", one, _Parts)
        return
    engine = next(iter(parts.controllers or ()), _Engine())
    attached = engine.host_id or "" if one.get("state") == "attached" else ""
    state = {"state": one.get("state", ""), "robustness": one.get("robustness", "")}
    state |= {"currentNodeID": attached, "actualSize": int(engine.actual_size or 0)}
    yield _resource("Volume", one, state, {key: one[key] for key in SPEC if key in one})
    for replica in parts.replicas or ():
        failed, mode = replica.get("failedAt") or "", replica.get("mode")
        spec = {
            "volumeName": one.get("name"), "volumeSize": one.get("size"), "failedAt": failed,
            "nodeID": replica.get("hostId", ""), "diskID": replica.get("diskID", ""),
            "healthyAt": "" if mode in ("WO", "ERR") and not failed else BUILT,
        }  # fmt: skip
        runs = "running" if replica.get("running") else "stopped"
        yield _resource("Replica", replica, {"currentState": runs}, spec)


def resources_of_rows(notes: Notes, rows: Sequence[Row], stated: Container[str]) -> Iterator[Raw]:
    """Yield the resources in the rows of tables, from which ``stated`` nodes get no disks."""
    rows = [{title: cell.replace("<none>", "") for title, cell in row.items()} for row in rows]
    about = [row for row in rows if "ROBUSTNESS" in row]
    volumes = {row["NAME"]: row for row in _whole(notes, about, ("STATE",))}
    held = [
        # a node that nothing states counts as one disk where the disks are left out
        row if "DISK" in row or row.get("NODE", "") in stated else {**row, "DISK": _disk_of(row)}
        for row in rows
        if "DISK" in row or REPLICA.fullmatch(row["NAME"])
    ]
    if any("STATE" not in row for row in held):
        notes.add(STATELESS)
        held = [{"STATE": "running" if row.get("NODE") else "stopped", **row} for row in held]
    whole = _whole(notes, held, ("STATE", "NODE", "DISK"))
    replicas = [(row["NAME"].rpartition("-r-")[0], row) for row in whole]
    sizes = {name: volumes.get(name, {}).get("SIZE", "") or "1" for name, _ in replicas}
    room = sum(int(sizes[name]) for name, _ in replicas if re.match(DIGITS, sizes[name]))
    known = {row["NAME"]: row for row in rows if "ALLOWSCHEDULING" in row}
    places = {(row["NODE"], row["DISK"]) for _, row in replicas if row["NODE"] not in stated}
    yield from nodes_of(places, room, known)
    if alone := [name for name in volumes if name not in sizes]:
        notes.add(NO_REPLICAS, *alone)
    every = Counter(name for name, _ in replicas)
    running = Counter(name for name, row in replicas if row["STATE"] == "running")
    places_of = {name: row["NODE"] for name, row in replicas if row["STATE"] == "running"}
    for name, count in every.items():
        row = volumes.get(name, {"STATE": "attached" if running[name] else "detached"})
        healthy = row.get("ROBUSTNESS") == "healthy"
        state: Raw = {"actualSize": int(sizes[name])} if re.match(DIGITS, sizes[name]) else {}
        state |= {"state": row["STATE"], "robustness": row.get("ROBUSTNESS", "")}
        # where the node is left out, one that runs a replica stands for it
        node = row.get("NODE", places_of.get(name, ""))
        state["currentNodeID"] = node if row["STATE"] == "attached" else ""
        spec = {"size": sizes[name], "numberOfReplicas": running[name] if healthy else count}
        yield _resource("Volume", {"name": name}, state, spec)
    for name, row in replicas:
        of_volume = volumes.get(name, {}).get("STATE") or ("" if running[name] else "detached")
        stopped = row["STATE"] != "running" and of_volume != "detached"
        spec = {"volumeName": name, "nodeID": row["NODE"], "diskID": row["DISK"]}
        spec |= {"healthyAt": BUILT, "failedAt": STOPPED if stopped else ""}
        yield _resource("Replica", {"name": row["NAME"]}, {"currentState": row["STATE"]}, spec)


def _whole(notes: Notes, rows: Iterable[Row], needed: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a kind that have the columns that it needs."""
    for row in rows:
        lacking = [title for title in needed if title not in row]
        if lacking:
            notes.add(NO_COLUMNS, f"{', '.join(lacking)} ({row['NAME']})")
        else:
            yield row


def _disk_of(row: Row) -> str:
    """Return the only disk of the node of a row; "" where it has no node."""
    return f"disk of {row['NODE']}" if row.get("NODE") else ""


def nodes_of(
    places: Iterable[tuple[str, str]], room: int, known: Mapping[str, Row]
) -> Iterator[Raw]:
    """Yield nodes with the disks that hold replicas, all of which have the same room."""
    disks_of: dict[str, dict[str, Raw]] = {name: {} for name in known}
    for node, uuid in sorted(places):
        if node:
            disks_of.setdefault(node, {})[uuid] = {"diskUUID": uuid}
    for node, disks in disks_of.items():
        row = known.get(node, {})
        takes = row.get("ALLOWSCHEDULING") != "false"
        conditions = {
            kind: {"type": kind, "status": row.get(kind.upper()) or "True"}
            for kind in ("Ready", "Schedulable")
        }
        own = {"storageMaximum": room, "storageAvailable": room, "allowScheduling": takes}
        whole = {
            uuid: disk | own | {"conditions": conditions}
            for uuid, disk in (disks or {node: {"diskUUID": _disk_of({"NODE": node})}}).items()
        }
        about = {"name": node, "allowScheduling": takes, "disks": whole, "conditions": conditions}
        yield _resource("Node", about, about | {"diskStatus": whole})
