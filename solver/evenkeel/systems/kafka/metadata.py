"""Partitions as other tools than Kafka's own list them: clients, consoles, proxies, ZooKeeper.

``kcat -L`` prints sentences. Of JSON, objects are read that have the number of a partition, and
either its replicas or one of them; of text, tables with such columns. Tools name the same things
differently: ``NAMES`` lists what they use. A broker is a number, or an object with its id. Brokers
that an answer lists are up.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import note_syntax
from evenkeel.systems.kafka.findings import MOST, Findings, Line, Replicas, TopicPartition, whole
from evenkeel.systems.kafka.racks import add_rack
from evenkeel.systems.kafka.tables import RESOURCES
from evenkeel.systems.printed import HEAD, cells_in

# keys and titles of the same value in different answers, their letters in lower case
NAMES: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "topicname", "name"),
    "partition": ("partition", "partitionid", "partitionindex", "id"),
    "leader": ("leader", "leaderid"),
    "replicas": ("replicas", "replicanodes", "nodes", "replicacore"),
    "isr": ("isr", "isrs", "isrnodes", "insyncreplicas"),
    "offline": ("offlinereplicas",),
    "space": ("ns", "namespace"),
    "holder": ("brokerid", "broker", "nodeid"),
    "broker": ("brokerid", "broker", "nodeid", "id"),
    "within": ("partitions",),
    "beside": ("topics",),
    "leads": ("leader", "isleader"),
    "in sync": ("insync", "insyncs", "isinsync"),
}

BROKER = re.compile(r"\bbroker ([0-9]{1,10}) at \S+")
TOPIC = re.compile(r'(?:^|\s)"?([^"\s]+)"? with ([0-9]{1,9}) partition', re.MULTILINE)
# sentences of ``kcat -L``, and of scripts that print the same
PARTITION = re.compile(
    r"\bpartition ([0-9]{1,9})(?:,| -)? leader:? (-?[0-9]{1,10}), "
    r"replicas: \[?([0-9, ]*)\]?, isrs: \[?([0-9, ]*)",
    re.IGNORECASE,
)

# replicas in sync, or partitions as Redpanda and ZooKeeper have them
OBJECTS = re.compile(
    rb'(?is)(?=.*"(?:replica|partition))(?!.*"[a-z_]+_record")(?:'
    rb'.*"(?:isrs?|isr_?nodes|inSyncReplicas)"\s*:\s*\[|.*"(?:inSyncs?|is_in_sync)"\s*:|'
    rb'.*"ns"\s*:\s*"kafka"|.*"partitions"\s*:\s*\{\s*"\d+"\s*:\s*\[)'
)

# the titles of a table of partitions
HEADER = re.compile(
    rb"(?:^|(?<=\n))(?=[^:{}\n]*\bpartition\b|[ \t|]*ID\b)(?=[^:{}\n]*\bleader\b)"
    rb"[^:{}\n]*\breplica(?:s|-core)\b[^:{}\n]*(?:\n|$)",
    re.IGNORECASE,
)

# a line that names the topic of what follows
NAMED = re.compile(
    r"^\s*(?:Name|Topic):?\s+(\S+)(?:\s+PartitionCount\b.*)?\s*$|"
    r"\b(?:topics? describe|describe topic) ([\w.][\w.-]*)(?=\s*$|\s+-)|"
    r"\bPartitions (?:for|of) topic (\S+?):?\s*$|/brokers/topics/([^/\s]+)\s*$",
    re.IGNORECASE | re.MULTILINE,
)

LISTED = re.compile(r"[\[({]?([\d\s,;]*)[\])}]?")  # the brokers in a cell
NO_TOPIC = (
    "names no topic: put a line `Topic: NAME` above, or give what kafka-topics.sh --describe prints"
)
MISFIT = "does not fit the titles: it lacks a cell, or is on two lines, or has numbers of replicas"
CORE = re.compile(r"(?<=\d)-\d+")  # of a broker, behind its number
OTHER_SPACE = "partitions of namespaces that Kafka's tools do not move, {}: they do not count"
# cells that name no leader, in lower case
NO_LEADER = ("", "-", "-1", "none", "n/a", "<none>", "null")
UNREAD = "loads in the column {} of a listing, which are not read: give a table of loads"
NO_LEADERS = "no leaders of {}: the first broker of each list counts as leader"
DISABLED = "listed as disabled: {}; they are planned like the others"
REMARK = re.compile(r"\s(?:<-|<=|#|//)[^|\t]{0,99}$")  # behind a row, by the one who pasted it
RACKS_UNREAD = (
    "racks in a column of {}, which are not read: give a file of racks if replicas are to be in "
    "different ones"
)
ADDRESSES = "only addresses of the leaders of {}: the first broker of each list counts as leader"


class Row(NamedTuple):
    """A partition as an answer lists it; None for what it leaves out."""

    at: str  # its place in the file
    line: int  # and its line, if it is text
    topic: str  # its topic, "" for none
    number: Any  # its number
    replicas: Any  # its brokers
    isr: Any  # those in sync
    leader: Any  # the one that leads


def is_metadata(head: bytes) -> bool:
    """Return whether a document begins like the metadata of topics.

    >>> is_metadata(b'{"topic": "orders", "partitions": [{"id": 0, "replicas": [1], "isr": [1]}]}')
    True
    """
    text = _text(head)
    if OBJECTS.match(head) or (
        TOPIC.search(text) and (BROKER.search(text) or PARTITION.search(text))
    ):
        return True
    rows = _rows_of_tables(Findings(), Document("", head)) if HEADER.search(head) else iter(())
    return any(isinstance(row.replicas, list) and row.replicas for row in rows)


def lines_of_metadata(findings: Findings, document: Document) -> list[Line]:
    """Return the partitions, and read the brokers that are up."""
    head = document.data[:HEAD]
    rows = [_rows_of_json(findings, document)] if OBJECTS.match(head) else []
    rows += [_rows_of_tables(findings, document)] if HEADER.search(head) else []
    rows += [_rows_of_sentences(findings, document)] if TOPIC.search(_text(head)) else []
    return _lines(findings, document, chain(*rows))


def _rows_of_sentences(findings: Findings, document: Document) -> Iterator[Row]:
    """Yield the partitions that ``kcat -L`` prints."""
    topic, announced, listed = "", 0, 0
    for number, line in enumerate([*document.text(findings.faults).split("\n"), None], start=1):
        found = TOPIC.search(line or "")
        if (found or line is None) and listed != announced:
            message = f"lists {listed} of its {announced} partitions: the file is truncated"
            findings.faults.add(f"{document.name}:{number}", f"topic {quoted(topic)}", message)
        if line is None:
            return
        if found:
            topic, announced, listed = found[1], int(found[2]), 0
        elif found := BROKER.search(line):
            findings.add_answer(f"{document.name}:{number}", int(found[1]), up=True)
        elif (found := PARTITION.search(line)) and topic:
            listed += 1
            at, replicas, isr = f"{document.name}:{number}", _listed(found[3]), _listed(found[4])
            yield Row(at, number, topic, int(found[1]), replicas, isr, int(found[2]))


def _lines(findings: Findings, document: Document, rows: Iterable[Row]) -> list[Line]:
    """Return rows as lines; the most replicas of a topic count as its replication factor."""
    lines: list[Line] = []
    widths: dict[str, int] = {}
    for row in rows:
        replicas, in_sync = _brokers(row.replicas), _brokers(row.isr)
        if not row.topic:
            findings.faults.add(row.at, quoted(row.number), NO_TOPIC)
            break
        if not _is_id(row.number) or replicas is None or (in_sync is None is not row.isr):
            message = "needs a number, and lists of replicas and of those in sync"
            findings.faults.add(row.at, quoted(row._asdict()), message)
        else:
            leader = _broker(row.leader)
            if isinstance(leader, str):
                findings.notes.add(ADDRESSES, row.topic)
                leader = None
            leads = leader if leader is None or _is_id(leader) else -1
            held = _replicas(findings, row.at, leads, replicas, in_sync)
            lines.append((row.line, TopicPartition(row.topic, row.number), held))
            widths[row.topic] = max(widths.get(row.topic, 0), len(replicas))
    if not (lines or findings.answers or findings.faults):
        findings.faults.add(document.name, document.data[:40], "lists no topic")
    findings.factor = widths | findings.factor
    return lines


def _rows_of_tables(findings: Findings, document: Document) -> Iterator[Row]:
    """Yield the rows of tables, whose topic is a cell or in a line above."""
    topic, between, above = "", "", ""
    titles: list[str] = []
    ended = False  # by a blank line, behind which something else may stand
    for line_number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        if HEADER.match(line.encode()):
            between, above = next((mark for mark in "|\t;," if mark in line), ""), line
            titles, ended = [_letters(title) for title in _cells(line, between, line)], False
            for title in {*titles} & {*RESOURCES}:
                findings.notes.add(UNREAD, title)
            if "racks" in titles:
                findings.notes.add(RACKS_UNREAD, document.name)
            continue
        ended = ended or not line.strip()
        line = REMARK.sub("", line)
        cells = _cells(line, between, above) if titles else []
        if ended and line.strip() and len(cells) != len(titles):
            titles = []
        row = dict(zip(titles, cells, strict=False)) if len(cells) > 1 else {}
        of, listed = _value(row, "partition") or "", _value(row, "replicas") or ""
        lies = line if between and titles else listed
        if whole(of) is None and not (row and re.search(r"\d", lies)):
            if named := NAMED.search(line):
                topic, titles = next(filter(None, named.groups())), []
            continue  # titles of two lines, borders, and what stands between tables
        at = f"{document.name}:{line_number}"
        topic = _value(row, "topic") or topic
        by_core = "replicacore" in titles
        replicas, isr = _listed(CORE.sub("", listed) if by_core else listed), _in_sync(row, listed)
        leader = _value(row, "leader") or ""
        number = re.match(r"-?\d+\b(?!:)", leader)
        leads = int(number[0][:11]) if number else -1 if leader.lower() in NO_LEADER else leader
        counts = isinstance(replicas, list) and _is_id(leads) and leads not in replicas
        if len(cells) != len(titles) or whole(of) is None or (counts and len(replicas) == 1):
            findings.faults.add(at, quoted(line.strip()), MISFIT)
            continue
        if not _is_elsewhere(findings, row):
            if by_core and leads == -1:
                leads = None
                findings.notes.add(NO_LEADERS, f"{topic}-{whole(of)}")
            if row.get("disabled") == "true":
                findings.notes.add(DISABLED, f"{topic}-{whole(of)}")
            yield Row(at, line_number, topic, whole(of), replicas, isr, leads)


def _cells(line: str, between: str, above: str) -> list[str]:
    """Return the cells of a line below titles, which a mark parts, or two blanks or more."""
    if between == "|":
        return cells_in(line, above)
    if between in (",", ";"):
        return next(csv.reader([line.strip()], delimiter=between), [])
    return re.split(rf"\s*{between}\s*" if between else r"\s{2,}", line.strip())


def _listed(cell: Any) -> Any:
    """Return the brokers in a text; what has anything else as it is."""
    if not isinstance(cell, str) or not (found := LISTED.fullmatch(cell.strip())):
        return cell
    return [whole(one) for one in re.findall(r"\d+", found[1])]


def _in_sync(given: Mapping[str, Any], replicas: Any) -> Any:
    """Return the brokers in sync; where only those that are offline are listed, the others."""
    isr, offline = _listed(_value(given, "isr")), _listed(_value(given, "offline"))
    listed = _listed(replicas)
    if isr is None and offline and isinstance(offline, list) and isinstance(listed, list):
        return [one for one in listed if _broker(one) not in map(_broker, offline)]
    return isr


def _is_elsewhere(findings: Findings, given: Mapping[str, Any]) -> bool:
    """Return whether a partition is in one of Redpanda's own namespaces, and note it."""
    space = _value(given, "space")
    elsewhere = isinstance(space, str) and space != "kafka"
    if elsewhere:
        findings.notes.add(OTHER_SPACE, space)
    return elsewhere


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _rows_of_json(findings: Findings, document: Document) -> Iterator[Row]:
    """Yield the partitions in answers as JSON; the line before one may name its topic."""
    for part in document.values():
        try:
            given: Any = msgspec.json.decode(part.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            note_syntax(findings.faults, part, error)
            return
        _read_brokers(findings, document, given)
        named = NAMED.findall(_text(part.before))
        topic = next(filter(None, named[-1])) if named else ""
        apart: dict[tuple[str, Any], Row] = {}
        for row in _found(findings, given, f"{document.name}: ", topic, ""):
            if isinstance(row.replicas, dict) and _is_id(row.number):
                apart.setdefault(row[2:4], row._replace(replicas=[])).replicas.append(row.replicas)
            else:
                yield row
        for row in apart.values():
            yield _row(row.at, row.topic, row.number, row.replicas, {})
        if isinstance(given, dict):
            changes = [given.get(f"{key}_replicas") or {} for key in ("adding", "removing")]
            for number in {*changes[0], *changes[1]}:
                joins, leaves = (tuple(change.get(number, ())) for change in changes)
                findings.reassigned.setdefault(f"{topic}-{number}", (joins, leaves))


def _read_brokers(findings: Findings, document: Document, given: Any) -> None:
    """Read the brokers of an answer, which are up, and their racks."""
    listed = given.get("brokers") if isinstance(given, dict) else None
    for i, one in enumerate(listed if isinstance(listed, list) else ()):
        broker = _broker(one)
        if _is_id(broker):
            at = f"{document.name}: brokers[{i}]"
            findings.add_answer(at, broker, up=True)
            if isinstance(one, dict) and isinstance(one.get("rack"), str):
                add_rack(findings, document, f"{at}.rack", broker, one["rack"])


def _found(findings: Findings, given: Any, at: str, topic: str, key: str) -> Iterator[Row]:
    """Yield rows of the partitions in a value that was at ``key``, of a ``topic`` named before."""
    if isinstance(given, list):
        for i, one in enumerate(given):
            yield from _found(findings, one, f"{at}[{i}]", topic, key)
    elif isinstance(given, dict) and not _is_elsewhere(findings, given):
        name, number = _value(given, "topic"), _value(given, "partition")
        replicas = _listed(_value(given, "replicas"))
        topic = name if isinstance(name, str) else topic
        number = whole(key) if number is None else number
        holds = any(isinstance(_value(given, one), list | dict) for one in ("within", "beside"))
        if isinstance(replicas, list) and number is not None and not holds:
            yield _row(at, topic, number, replicas, given)
        elif number is not None and _value(given, "holder") is not None and not holds:
            yield Row(at, 0, topic, number, given, None, None)
        elif key == "partitions" and not all(map(str.isdecimal, given)):
            yield Row(at, 0, topic, number, None, None, None)
        else:
            for inside, one in given.items():
                there = f"{at}{'' if at.endswith(' ') else '.'}{inside}"
                of = topic or ("" if key == "partitions" else key)
                if whole(inside) is None:
                    yield from _found(
                        findings, one, there, topic, inside if inside != "brokers" else ""
                    )
                elif isinstance(one, dict):
                    yield from _found(findings, one, there, of, inside)
                elif key == "partitions":
                    yield Row(there, 0, of, whole(inside), one, None, None)


def _row(at: str, topic: str, number: Any, replicas: list[Any], given: Mapping[str, Any]) -> Row:
    """Return a partition, of which an object or its replicas say who leads and is in sync."""
    isr, leader = _in_sync(given, replicas), _value(given, "leader")
    marked = [one for one in replicas if isinstance(one, dict)]
    if isr is None and any(_value(one, "in sync") is not None for one in marked):
        isr = [one for one in marked if _value(one, "in sync")]
    if leader is None:
        leader = next((one for one in marked if _value(one, "leads") is True), None)
    if leader is None and isr is not None:
        leader = -1
    return Row(at, 0, topic, number, replicas, isr, leader)


def _replicas(
    findings: Findings,
    at: str,
    leader: int | None,
    replicas: tuple[int, ...],
    in_sync: tuple[int, ...] | None,
) -> Replicas:
    """Return a partition; an answer may still name a leader or ISR that left the replicas."""
    kept = None if in_sync is None else tuple(one for one in in_sync if one in replicas)
    leads = leader if leader is None or leader in replicas else -1
    return Replicas(replicas, at, findings.documents, leader=leads, in_sync=kept)


def _letters(name: str) -> str:
    """Return the letters of a key or title in lower case."""
    return re.sub("[^a-z]", "", name.lower())


def _value(given: Any, name: str) -> Any:
    """Return a value under any of its names; None for a missing one."""
    if not isinstance(given, Mapping):
        return given if name == "broker" else None
    key = _keys(tuple(given)).get(name)
    return None if key is None else given[key]


@lru_cache(256)
def _keys(keys: tuple[str, ...]) -> Mapping[str, str]:
    """Return the key of each value that an object with such keys has."""
    own = {_letters(key): key for key in keys}
    known = {name: [own[one] for one in ones if one in own] for name, ones in NAMES.items()}
    return {name: ones[0] for name, ones in known.items() if ones}


def _broker(given: Any) -> Any:
    """Return the number of a broker, which may be in an object."""
    return _value(given, "broker") if isinstance(given, dict) else given


def _brokers(given: Any) -> tuple[int, ...] | None:
    """Return the numbers of a list of brokers; None if it is no such list."""
    if not isinstance(given, list):
        return None
    numbers = [_broker(one) for one in given]
    return tuple(numbers) if all(map(_is_id, numbers)) else None


def _is_id(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MOST
