"""Convert answers of Apache Pinot's controller to the ZNRecords behind them.

An answer on a table has no name and no settings of it: ``/tables/NAME/idealstate`` and
``/tables/NAME/externalview`` are alike, and list the states of each kind of the table. The request
tells them apart, where it was saved with the answer, or else the name of the file.

References
----------
Apache Pinot, ``TableViews``, ``PinotTableRestletResource``, ``PinotInstanceRestletResource``,
``PinotInstanceAssignmentRestletResource``, ``ZookeeperResource``.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from evenkeel.systems.documents import Document

SEGMENTS = "SegmentOnlineOfflineStateModel"
CONSUMING = "CONSUMING"  # the state of a segment that still takes rows; Pinot chooses its servers
OTHER_KINDS = ("Controller_", "Broker_", "Minion_")  # how instances that are no servers are called
# all that is known of a table's ideal state beside its states, where an answer lists these
STATED = {"REBALANCE_MODE": "CUSTOMIZED", "STATE_MODEL_DEF_REF": SEGMENTS}

# what answers on a table, on an instance, or several of the controller begin with
ANSWER = re.compile(
    rb'\s*(?:\[\s*)?\{\s*(?:"tableName"\s*:\s*"[^"]*"\s*,\s*)?'
    rb'"(?:OFFLINE|REALTIME|CONSUMING|COMPLETED|instanceName|serverToSegmentsMap)"\s*:|'
    rb'\s*\[\s*\{\s*"instances"\s*:'
)

# what the answer to a rebalance contains, if it has the servers of segments
REBALANCE = re.compile(rb'\s*\{.*"segmentAssignment"\s*:\s*\{\s*"', re.DOTALL)

# what the answer on the servers of segments contains
LISTED = re.compile(rb'"serverToSegmentsMap"\s*:')

STATELESS = (
    "no states of segments: all count as ONLINE, also those that are being consumed, whose servers "
    "Pinot chooses"
)
DECIDED = "a decision of a rebalance of Pinot: segments count where it puts them"

# what answers begin with or contain that have no states of segments
OTHERS = re.compile(
    rb'\s*\{\s*"_segmentToConsumingInfoMap"\s*:|'
    rb'\s*[\[{].*"(?:segmentAssignment|serverToSegmentsCountMap|rebalanceSummaryResult|'
    rb'segmentDebugInfos)"\s*:',
    re.DOTALL,
)

REQUEST = re.compile(r"/tables/([^/?\s\"']+)/(?:idealstate|externalview)", re.IGNORECASE)
VIEW = re.compile(r"external[-_. ]?view", re.IGNORECASE)
# what the name of a file has beside that of a table
WORDS = re.compile(
    r"[-_. ]*(?:ideal[-_ ]?states?|external[-_ ]?views?|OFFLINE|REALTIME|json)[-_. ]*",
    re.IGNORECASE,
)


def is_answer(document: Document) -> bool:
    """Return whether a document is an answer on a table or on an instance, or several of them."""
    return bool(ANSWER.match(document.data) or REBALANCE.match(document.data))


def notes_on(document: Document) -> Iterator[str]:
    """Yield what is to be noted on an answer that has less than an ideal state."""
    if LISTED.search(document.data):
        yield STATELESS
    if REBALANCE.match(document.data):
        yield DECIDED


def is_live(document: Document) -> bool:
    """Return whether a list of instances is that of the live ones, by its request or its file."""
    return "live" in f"{Path(document.name).name} {_last_request(document)}".lower()


def records_behind(document: Document) -> list[Document]:
    """Return the records behind an answer, each in its folder; others as they are.

    >>> answer = b'{"OFFLINE": {"t_0": {"Server_a": "ONLINE"}}, "REALTIME": null}'
    >>> [one.name for one in records_behind(Document("t.json", answer))]
    ['t.json/IDEALSTATES/t_OFFLINE']
    """
    if not is_answer(document):
        return [document]
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = msgspec.json.decode(document.data)
        given = value if isinstance(value, list) else [value]
        try:
            found = [it for one in given for it in _records(document, one)]
        except (AttributeError, KeyError, TypeError):
            return [document]  # it has another shape, which is reported where it is decoded
        return [
            replace(document, name=f"{document.name}{place}", data=msgspec.json.encode(one))
            for place, one in found
        ]
    return [document]


def _records(document: Document, answer: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the records behind one answer, each behind its place; a list of instances as it is."""
    if "instances" in answer:
        yield "", answer
        return
    if "instanceName" in answer:
        simple = {"HELIX_HOST": answer.get("hostName"), "HELIX_PORT": answer.get("port"),
                  "HELIX_ENABLED": answer.get("enabled")}  # fmt: skip
        yield _record(
            "PARTICIPANT", answer["instanceName"], simple, {"TAG_LIST": answer.get("tags") or []}
        )
        return
    if "serverToSegmentsMap" in answer:
        yield from _on_servers(answer["tableName"], answer["serverToSegmentsMap"])
        return
    if "segmentAssignment" in answer:
        yield from _of_rebalance(
            document, answer["instanceAssignment"] or {}, answer["segmentAssignment"]
        )
        return
    for kind, part in answer.items():
        if not part or kind == "tableName":
            continue
        if "partitionToInstancesMap" in part:
            name, lists = part["instancePartitionsName"], part["partitionToInstancesMap"]
            yield _record("INSTANCE_PARTITIONS", name, {}, lists)
        elif "tableName" in part:
            yield _record("TABLE", part["tableName"], part)
        else:
            folder = "EXTERNALVIEW" if _is_view(document) else "IDEALSTATES"
            name = answer.get("tableName") or _table(document, [*part])
            yield _record(folder, f"{name}_{kind}", STATED, states=part)


def _on_servers(
    table: str, servers: Mapping[str, list[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the records behind a list of the segments of each server, which has no states."""
    states: dict[str, dict[str, str]] = {}
    for server, segments in servers.items():
        for segment in segments:
            states.setdefault(segment, {})[server] = "ONLINE"
    yield "", {"instances": [*servers]}
    yield _record("IDEALSTATES", table, STATED, states=states)


def _of_rebalance(
    document: Document, instances: Mapping[str, Any], segments: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the records behind the answer to a rebalance: the placement that it decided on."""
    lists = {one["instancePartitionsName"]: one["partitionToInstancesMap"]
             for one in instances.values()}  # fmt: skip
    rows = (row for one in lists.values() for row in one.values())
    yield "", {"instances": sorted({name for row in rows for name in row})}
    for name, one in lists.items():
        yield _record("INSTANCE_PARTITIONS", name, {}, one)
    kind = "OFFLINE" if instances.keys() == {"OFFLINE"} else "REALTIME"
    table = next(iter(lists), "").rpartition("_")[0] or _table(document, [*segments])
    yield _record("IDEALSTATES", f"{table}_{kind}", STATED, states=segments)


def _record(
    folder: str,
    name: str,
    simple: Mapping[str, Any],
    lists: Mapping[str, Any] | None = None,
    states: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Return a record behind its place; what is no text is JSON in a text, as Pinot keeps it."""
    texts = {
        key: one if isinstance(one, str) else msgspec.json.encode(one).decode()
        for key, one in simple.items()
        if one is not None
    }
    return f"/{folder}/{name}", {
        "id": name, "simpleFields": texts, "listFields": lists or {}, "mapFields": states or {}
    }  # fmt: skip


def _last_request(document: Document) -> str:
    """Return the last line before an answer, which asks for it."""
    return document.before.decode("utf-8", "replace").rstrip().rpartition("\n")[2]


def _is_view(document: Document) -> bool:
    request = REQUEST.search(_last_request(document))
    return VIEW.search(request[0] if request else Path(document.name).name) is not None


def _table(document: Document, segments: list[str]) -> str:
    """Return the name of a table: by the request, by the file, or else by how segments begin."""
    if request := REQUEST.search(_last_request(document)):
        name = unquote(request[1])
    else:
        name = WORDS.sub("", Path(document.name).name)
        pairs = zip(min(segments), max(segments), strict=False)
        shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if not shared.startswith(f"{name}_"):
            name = shared.partition("__")[0]
            name = name if "__" in shared else name.rpartition("_")[0] or name
    return re.sub("_(?:OFFLINE|REALTIME)$", "", name)


def as_answer(record: dict[str, Any]) -> dict[str, Any]:
    """Return an ideal state as it was read: as an answer, if its settings are not known."""
    if record["simpleFields"] != STATED:
        return record
    name, _, kind = record["id"].rpartition("_")
    return {"tableName": name, kind: record["mapFields"]}
