"""What the ``nats`` tool prints for people, as JSON: reports and descriptions of streams.

In a report, ``*`` marks the leader of a stream, and ``!`` peers that are offline or outdated: one
that is marked in every row counts as offline. A description has a line for each peer. The report on
servers lists the peers of JetStream.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.quantities import read_bytes
from evenkeel.systems.csv_text import HEAD, Table, read_table
from evenkeel.systems.documents import Document

BORDER, ROWS = r"[ \t]*[|│][ \t]*", r"(?:[ \t]*[|│├+╞][^\n]*(?:\n|\Z))*"
STREAMS = re.compile(
    rf"^{BORDER}Stream\b[^\n]*\b(?:Replicas|Cluster)\b[^\n]*\n{ROWS}",
    re.MULTILINE,
)
PEERS = re.compile(
    rf"^{BORDER}(?:Connection )?Name\b[^\n]*\bLeader\b[^\n]*\bCurrent\b[^\n]*\n{ROWS}",
    re.MULTILINE,
)
"""The tables of streams, and of peers of JetStream, from their titles on."""

INFORMATION = re.compile(
    r"^Information for (Stream|Key-Value Store Bucket|Object Store Bucket|Consumer) (\S+)",
    re.MULTILINE,
)
PREFIX = {"Stream": "", "Key-Value Store Bucket": "KV_", "Object Store Bucket": "OBJ_"}
CLUSTER = re.compile(r"^[ \t]*Cluster Information:[ \t]*\n((?:[ \t]*\n|[ \t]+\S[^\n]*\n?)*)", re.M)
FIELD = re.compile(r"^[ \t]*([A-Z][A-Za-z ]*?):[ \t]+(\S.*)$", re.MULTILINE)
"""The beginning of a description, the streams by their kind, its part on peers, and a line."""


YES, NO = {"true", "yes"}, {"false", "no"}
CURRENT, OUTDATED, OFFLINE = {"current": True}, {"current": False}, {"offline": True}
"""The states of peers."""


def in_json(document: Document) -> tuple[Document, ...]:
    """Return the reports and descriptions in a text as JSON; any other document as it is."""
    head = document.data[:HEAD].decode("utf-8", "replace")
    if document.is_json or not any(one.search(head) for one in (STREAMS, PEERS, INFORMATION)):
        return (document,)
    faults = FaultList()
    text = document.data.decode("utf-8", "replace")
    answers: list[Any] = [[*_of_reports(faults, text), *_of_descriptions(faults, text)]]
    peers = (Document("", found[0].encode()) for found in PEERS.finditer(text))
    answers += [_of_peers(read_table(faults, one)) for one in peers]
    read = tuple(replace(document, data=msgspec.json.encode(one)) for one in answers if one)
    return (document,) if faults or not read else read


def _of_reports(faults: FaultList, text: str) -> Iterator[dict[str, Any]]:
    """Yield the streams of reports."""
    named = {one.strip() for found in STREAMS.finditer(text) for one in re.split("[|│,]", found[0])}
    for found in STREAMS.finditer(text):
        table = read_table(faults, Document("", found[0].encode()))
        peers = table.cells("replicas" if "replicas" in table.columns else "cluster")
        cells = zip(*map(table.cells, ("stream", "storage", "bytes")), peers, strict=True)
        for name, storage, held, listed in cells:
            marks = [one.strip() for one in listed.split(",") if one.strip()]
            if not marks:
                continue  # a stream of one replica, whose server old releases do not print
            leader = next((one.strip("*!") for one in marks if "*" in one), "")
            followers = {
                name.rstrip("!"): CURRENT
                if not name.endswith("!")
                else (OUTDATED if named & {name[:-1], f"{name[:-1]}*"} else OFFLINE)
                for name in marks
                if "*" not in name
            }
            yield _stream(
                name, len(marks), storage, read_bytes(faults, "", held), leader, followers
            )


def _of_descriptions(faults: FaultList, text: str) -> Iterator[dict[str, Any]]:
    """Yield the streams that are described."""
    parts = INFORMATION.split(text)
    for kind, name, lines in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        group = CLUSTER.search(lines)
        if kind not in PREFIX or group is None:
            continue
        fields = FIELD.findall(group[1])
        of = dict(FIELD.findall(lines.replace(group[0], ""))) | dict(reversed(fields))
        followers = {
            peer.split(",")[0].strip(): OFFLINE
            if "OFFLINE" in peer
            else (CURRENT if ", current" in peer else OUTDATED)
            for field, peer in fields
            if field == "Replica"
        }
        leader = of.get("Leader", "").split()
        if leader or followers:
            held = read_bytes(faults, "", of.get("Bytes", "0 B"))
            count = int(of["Replicas"]) if of.get("Replicas", "").isdecimal() else 0
            own = leader[0] if leader and leader[0] != "none" else ""
            storage = of.get("Storage") or of.get("Retention") or "File"
            yield _stream(
                PREFIX[kind] + name, count or len(followers) + 1, storage, held, own, followers
            )


def _of_peers(table: Table) -> dict[str, Any]:
    """Return what the leader of JetStream knows of its peers."""
    leads, current, online = (table.cells(name) for name in ("leader", "current", "online"))
    names = "name" if "name" in table.columns else "connection name"
    peers = {
        name: {"name": name, "current": now in YES, "offline": up in NO}
        for name, now, up in zip(table.cells(names), current, online, strict=True)
    }
    leader = next((n for n, led in zip(peers, leads, strict=True) if led == "yes"), "")
    others = [one for name, one in peers.items() if name != leader]
    group = {"leader": leader, "replicas": others}
    return {"server_id": leader, "server_name": leader, "meta_cluster": group}


def _stream(
    name: str,
    count: int,
    storage: str,
    held: float | None,
    leader: str,
    followers: Mapping[str, Mapping[str, bool]],
) -> dict[str, Any]:
    """Return a stream as the API describes it."""
    kind = "memory" if storage.lower().startswith("memory") else "file"
    return {
        "config": {"name": name, "num_replicas": count, "storage": kind},
        "state": {"bytes": int(held or 0)},
        "cluster": {
            "leader": leader,
            "replicas": [{"name": one, **state} for one, state in followers.items()],
        },
    }
