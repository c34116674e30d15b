"""Answers of Longhorn's API and tables of kubectl, as resources: enough to decide, not to patch."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenkeel.systems.documents import Document
from evenkeel.systems.notes import Notes

Raw = dict[str, Any]
Row = Mapping[str, str]

ANSWER = re.compile(
    rb'"(?:numberOfReplicas|diskUpdate|storageMaximum)"\s*:|'
    rb"(?<!/api)/v1/(?:volumes|nodes|settings)\b"
)
TABLE = re.compile(
    rb"^(?:.*[#$>%] +)?(?:NAMESPACE +)?NAME +.*\b(?:ROBUSTNESS|ALLOWSCHEDULING|INSTANCEMANAGER)\b",
    re.MULTILINE,
)
"""What is in the beginning of an answer, and of a table."""

BUILT = "1970-01-01T00:00:00Z"
"""When replicas were built of which no time is known."""

SPEC = (
    "size", "numberOfReplicas", "replicaAutoBalance", "replicaSoftAntiAffinity",
    "replicaZoneSoftAntiAffinity", "replicaDiskSoftAntiAffinity", "dataLocality", "nodeSelector",
    "diskSelector", "dataEngine",
)  # fmt: skip

NO_PATCHES = "only what the API answers of resources: no patch is written; print them by kubectl"
NO_NODES = (
    "no nodes: those that hold no replica are unknown, and disks count as alike; add /v1/nodes"
)
NO_ROOM = (
    "no room of disks, no tags and no numbers of replicas, which tables leave out: disks count as "
    "alike, volumes as full, and each is to have as many as it has rows, or runs where it is "
    "healthy; no patch is written"
)


def is_answer(document: Document, size: int) -> bool:
    """Return whether a document is an answer of the API on volumes, nodes or settings."""
    head = document.data[:size]
    return document.is_json and b'"apiVersion"' not in head and ANSWER.search(head) is not None


def is_table(document: Document, size: int) -> bool:
    """Return whether a text has tables of resources, and no resource itself."""
    has_table = not document.is_json and TABLE.search(document.data[:size]) is not None
    return has_table and b"apiVersion: longhorn.io/" not in document.data


def resources_of(notes: Notes, answer: Raw) -> Iterator[Raw]:
    """Yield the resources that an answer of the API tells."""
    notes.add(NO_PATCHES)
    listed = answer.get("data")
    for one in listed if isinstance(listed, list) else [answer]:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind == "volume":
            yield from _of_volume(one)
        elif kind == "node":
            disks = one.get("disks")
            yield _resource("Node", one, one | {"diskStatus": disks})
        elif kind == "setting":
            yield _resource("Setting", one, {}) | {"value": one.get("value")}


def _resource(kind: str, about: Raw, status: Raw, spec: Raw | None = None) -> Raw:
    metadata = {"name": about.get("name") or about.get("id")}
    spec = about if spec is None else spec
    named = {"apiVersion": "longhorn.io/v1beta2", "kind": kind, "metadata": metadata}
    return named | {"spec": spec, "status": status}


def _of_volume(one: Raw) -> Iterator[Raw]:
    engine: Raw = next(iter(one.get("controllers") or ()), {})
    attached = engine.get("hostId", "") if one.get("state") == "attached" else ""
    used = str(engine.get("actualSize") or "0")
    state = {"state": one.get("state", ""), "robustness": one.get("robustness", "")}
    state |= {"currentNodeID": attached, "actualSize": int(used) if used.isdecimal() else used}
    yield _resource("Volume", one, state, {key: one[key] for key in SPEC if key in one})
    for replica in one.get("replicas") or ():
        failed, mode = replica.get("failedAt") or "", replica.get("mode")
        spec = {
            "volumeName": one.get("name"), "volumeSize": one.get("size"), "failedAt": failed,
            "nodeID": replica.get("hostId", ""), "diskID": replica.get("diskID", ""),
            "healthyAt": "" if mode in ("WO", "ERR") and not failed else BUILT,
        }  # fmt: skip
        runs = "running" if replica.get("running") else "stopped"
        yield _resource("Replica", replica, {"currentState": runs}, spec)


def resources_of_rows(notes: Notes, rows: Sequence[Row]) -> Iterator[Raw]:
    """Yield the resources that the rows of tables tell."""
    notes.add(NO_ROOM)
    volumes = {row["NAME"]: row for row in rows if "ROBUSTNESS" in row}
    replicas = [(row["NAME"].rpartition("-r-")[0], row) for row in rows if "DISK" in row]
    sizes = {name: volumes.get(name, {}).get("SIZE", "") or "1" for name, _ in replicas}
    room = sum(int(sizes[name]) for name, _ in replicas if sizes[name].isdecimal())
    known = {row["NAME"]: row for row in rows if "ALLOWSCHEDULING" in row}
    yield from nodes_of({(row["NODE"], row["DISK"]) for _, row in replicas}, room, known)
    every = Counter(name for name, _ in replicas)
    running = Counter(name for name, row in replicas if row["STATE"] == "running")
    for name, count in every.items():
        row = volumes.get(name, {"STATE": "attached" if running[name] else "detached"})
        healthy = row.get("ROBUSTNESS") == "healthy"
        state: Raw = {"actualSize": int(sizes[name])} if sizes[name].isdecimal() else {}
        state |= {"state": row["STATE"], "robustness": row.get("ROBUSTNESS", "")}
        state["currentNodeID"] = row.get("NODE", "") if row["STATE"] == "attached" else ""
        spec = {"size": sizes[name], "numberOfReplicas": running[name] if healthy else count}
        yield _resource("Volume", {"name": name}, state, spec)
    for name, row in replicas:
        of_volume = volumes.get(name, {}).get("STATE") or ("" if running[name] else "detached")
        stopped = row["STATE"] != "running" and of_volume != "detached"
        spec = {"volumeName": name, "nodeID": row["NODE"], "diskID": row["DISK"]}
        spec |= {"healthyAt": BUILT, "failedAt": BUILT if stopped else ""}
        yield _resource("Replica", {"name": row["NAME"]}, {"currentState": row["STATE"]}, spec)


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
            for uuid, disk in (disks or {node: {"diskUUID": f"disk of {node}"}}).items()
        }
        about = {"name": node, "allowScheduling": takes, "disks": whole, "conditions": conditions}
        yield _resource("Node", about, about | {"diskStatus": whole})
