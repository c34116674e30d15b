"""What the ``nats`` tool prints for people, as JSON: reports and descriptions of streams.

In a report, ``*`` marks the leader of a stream, and ``!`` peers that are offline or outdated: one
that is marked in every row counts as offline. A description has a line for each peer. The report on
servers lists the peers of JetStream, and their clusters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.quantities import read_bytes
from evenkeel.systems.csv_text import Table, table_of
from evenkeel.systems.documents import Document
from evenkeel.systems.printed import tables_in

# the beginning of a description, the streams by their kind, its part on peers, and a line
INFORMATION = re.compile(
    r"^Information for (Stream|Key-Value Store Bucket|Object Store Bucket|Consumer) (\S+)",
    re.MULTILINE,
)
LISTED = "io.nats.jetstream.api.v1.stream_list_response"
PREFIX = {"Stream": "", "Key-Value Store Bucket": "KV_", "Object Store Bucket": "OBJ_"}
CLUSTER = re.compile(r"^[ \t]*Cluster Information:[ \t]*\n((?:[ \t]*\n|[ \t]+\S[^\n]*\n?)*)", re.M)
FIELD = re.compile(r"^[ \t]*([A-Z][A-Za-z ]*?):[ \t]+(\S.*)$", re.MULTILINE)

# the title of a table with names of streams alone, and its lines
SILENT = re.compile(r"Inaccessible Streams[ \t|│]*\n((?:[ \t]*[^\w\s][^\n]*(?:\n|\Z))*)")

LEADERLESS = "No cluster meta leader found"  # what the report on servers warns of below its tables

YES, NO = {"true", "yes"}, {"false", "no"}
# the states of peers
CURRENT, OUTDATED, OFFLINE = {"current": True}, {"current": False}, {"offline": True}


def in_json(document: Document) -> tuple[Document, ...]:
    """Return the reports and descriptions in a text as JSON; any other document as it is."""
    if document.is_json:
        return (document,)
    faults = FaultList()
    text = document.data.decode("utf-8", "replace")
    printed = [
        tables_in(text, known)
        for known in (_are_streams, _are_peers, {"server", "cluster", "streams"}.issubset)
    ]
    cut = any(one.cut for tables in printed for one in tables)
    streams, peers, servers = ([table_of(faults, "", one) for one in tables] for tables in printed)
    of_servers = {
        # the totals below the last server are further lines of its cells
        name: (cluster, int(count.split("\n")[0].replace(",", "")))
        for one in servers
        for name, cluster, count in zip(
            *map(one.cells, ("server", "cluster", "streams")), strict=True
        )
        if name
    }
    clusters = {name.rstrip("*"): cluster for name, (cluster, _) in of_servers.items()}
    counted = {name.rstrip("*"): count for name, (_, count) in of_servers.items()}
    answers: list[Any] = [[*_of_reports(faults, streams), *_of_descriptions(faults, text)]]
    answers += (_of_peers(one, clusters) | {"counted": counted} for one in peers)
    if not peers:
        leader = next((one.rstrip("*") for one in of_servers if one.endswith("*")), "")
        # without a warning, each of them is alone
        answers += (
            _answer(name, cluster, {"leader": leader or ("" if LEADERLESS in text else name)})
            | {"counted": {name: counted[name]}}
            for name, cluster in clusters.items()
        )
    silent = [one.strip() for lines in SILENT.findall(text) for one in re.split(r"[|│\n]", lines)]
    if silent := [one for one in silent if re.search(r"\w", one)]:
        answers.append({"type": LISTED, "streams": None, "missing": silent})
    read = tuple(
        replace(document, data=msgspec.json.encode(one), cut=cut) for one in answers if one
    )
    less = any(one.notes for one in streams + peers)
    return (document,) if faults or less or not read else (*document.beside_text(), *read)


def _are_streams(titles: frozenset[str]) -> bool:
    return "stream" in titles and not titles.isdisjoint({"replicas", "cluster"})


def _are_peers(titles: frozenset[str]) -> bool:
    return titles >= {"leader", "current"} and not titles.isdisjoint({"name", "connection name"})


def _of_reports(faults: FaultList, tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """Yield the streams of reports; a server with ``!`` in every row is offline."""
    rows = [
        (*cells[:3], [one.strip() for one in cells[3].split(",") if one.strip()])
        for table in tables
        for cells in zip(
            *map(table.cells, ("stream", "storage", "bytes")),
            table.cells("replicas" if "replicas" in table.columns else "cluster"),
            strict=True,
        )
    ]
    named = {one for *_, marks in rows for one in marks}
    for name, storage, held, marks in rows:
        leader = next((one.strip("*!") for one in marks if "*" in one), "")
        followers = {
            name.rstrip("!"): CURRENT
            if not name.endswith("!")
            else (OUTDATED if named & {name[:-1], f"{name[:-1]}*"} else OFFLINE)
            for name in marks
            if "*" not in name
        }
        yield _stream(name, len(marks), storage, read_bytes(faults, "", held), leader, followers)


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


def _of_peers(table: Table, clusters: Mapping[str, str]) -> dict[str, Any]:
    """Return what the leader of JetStream knows of its peers, and their clusters."""
    leads, current, online = (table.cells(name) for name in ("leader", "current", "online"))
    names = "name" if "name" in table.columns else "connection name"
    peers = {
        name: {
            "name": name, "current": now in YES, "offline": up in NO,
            "cluster": clusters.get(name, ""),
        }
        for name, now, up in zip(table.cells(names), current, online, strict=True)
    }  # fmt: skip
    leader = next((n for n, led in zip(peers, leads, strict=True) if led == "yes"), "")
    others = [one for name, one in peers.items() if name != leader]
    return _answer(leader, clusters.get(leader, ""), {"leader": leader, "replicas": others})


def _answer(name: str, cluster: str, group: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server answers of itself, and of the peers of JetStream."""
    own = {"server_id": name, "server_name": name, "cluster": {"name": cluster}}
    return {**own, "meta_cluster": group}


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
