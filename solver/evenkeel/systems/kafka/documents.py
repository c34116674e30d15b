"""Read Kafka's documents: JSON files, topic descriptions, log dirs, capacities.

``kafka-topics --describe`` prints a header line per topic and a line per partition, which starts
with a tab. Fields are ``Name: value``, separated by tabs (by spaces in pasted text); releases
differ in their fields, and Confluent's name observers, too.

``kafka-broker-api-versions`` prints a line per broker, followed by its API versions in parentheses
or by an error: ``-> ERROR: ...DisconnectException``. ``kafka-cluster list-endpoints`` prints a
table of the same. ``racks.py`` reads these and files of racks.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import Int32, Int64, decode_json, note_cut_off
from evenkeel.systems.kafka.cruise_control import (
    cruise_kind,
    is_cruise_text,
    is_other_answer,
    read_cruise,
)
from evenkeel.systems.kafka.findings import MOST, Findings, Line, Replicas, TopicPartition, whole
from evenkeel.systems.kafka.log_dirs import BrokerDirs, LogDirs, listed_in
from evenkeel.systems.kafka.metadata import NO_LEADER, is_metadata, lines_of_metadata
from evenkeel.systems.kafka.ongoing import is_list_of_reassigned, read_reassigned, read_started
from evenkeel.systems.kafka.racks import (
    is_answers,
    is_rack_json,
    is_rack_text,
    read_answers,
    read_rack_json,
    read_rack_text,
)
from evenkeel.systems.kafka.rows import Rows, rows_of_assignment, rows_of_description
from evenkeel.systems.kafka.tables import is_broker_table, is_load_table, read_broker_table
from evenkeel.systems.notes import last_states
from evenkeel.systems.printed import CUT, LEFT_OUT

Kind = Literal[
    "assignment", "description", "log-dirs", "capacity", "rack-json", "rack-text", "loads",
    "brokers", "answers", "reassigned", "cluster-state", "broker-load", "partition-load",
    "proposals", "metadata",
]  # fmt: skip

HEAD = 65536  # bytes that identify a document
DEFAULT_BROKER = -1  # broker id of the default capacity in a capacity file
# dimension of each resource of a capacity file, and its unit in bytes, percent and bytes/s
RESOURCES = {
    "DISK": ("disk", 1024.0 * 1024.0),
    "CPU": ("cpu", 1.0),
    "NW_IN": ("network_in", 1024.0),
    "NW_OUT": ("network_out", 1024.0),
}

# key of a CPU capacity in cores, and the percent per core
CORES, PERCENT_OF_A_CORE = "num.cores", 100.0

MOST_AMOUNT = 1e15  # largest capacity that is accepted, in MB, percent or KB/s
# a line of a description, after any prefix of a terminal, log or page
TOPIC = re.compile(
    rb"(?:^|[\s`>])Topic: ?\S+\s(?:.*\s)?"
    rb"(?:(?:PartitionCount|ReplicationFactor): ?\d|Partition: ?\d+\s.*Replicas:)",
    re.IGNORECASE,
)

# what a page puts around lines of a description, and remarks behind them
MARKUP = re.compile(r"<-.*|←.*|\\\s*$|`|</?(?:pre|code|p|br|span|div|li|td|tr|b|i)\b[^<>]*>|&nbsp;")

STRANGE = (
    "is not a reassignment, topic description, log-dirs, capacity or rack file of Kafka, "
    "a table of loads or brokers, output of kafka-broker-api-versions or kafka-cluster, or an "
    "answer of Cruise Control"
)


# titles of the two assignments that ``--generate`` prints
CURRENT, PROPOSED = (
    re.compile(rb"Current partition replica assignment"),
    re.compile(rb"Proposed partition reassignment configuration"),
)

# what comes after the current assignment, which may be of several lines
BEHIND = re.compile(rb"^\s*(?:Proposed partition|Save this to use|Successfully started)", re.M)

# what ``--execute`` prints before Kafka 2.6, which moves all of the current assignment
BEGUN = b"Successfully started reassignment of partitions"


class AssignedPartition(msgspec.Struct, omit_defaults=True, gc=False):
    """One entry of a reassignment."""

    topic: str
    partition: Int32
    replicas: list[Int32]
    log_dirs: list[str] | None = None


class Assignment(msgspec.Struct):
    """The JSON of ``kafka-reassign-partitions``."""

    partitions: list[AssignedPartition]
    version: Literal[1] = 1


class BrokerCapacity(msgspec.Struct):
    """One entry of a capacity file; the disk is a number of MB, or one per log directory."""

    brokerId: str | Int64  # noqa: N815
    capacity: dict[str, Any]


class Capacities(msgspec.Struct):
    """Cruise Control's capacity file."""

    brokerCapacities: list[BrokerCapacity]  # noqa: N815


ASSIGNED = re.compile(rb'"replicas"(?!\s*:\s*\[\s*\{)|"partitions"\s*:\s*\[\s*\]')

# what JSON of partitions has that is Kafka's
OF_TOPICS = re.compile(rb'"(?:topic|version)"|"partitions"\s*:\s*\[\s*\]')

# the log directories of a broker, which are objects; a record of a broker has their names
LOG_DIRS = re.compile(rb'"logDirs"\s*:(?!\s*\[\s*")')

JSON_LINE = re.compile(rb"^[ \t]*\{.*$", re.MULTILINE)

ASKS = "what kafka-topics.sh --describe prints of all topics"
DESCRIBE = f"give {ASKS}"

# words of Kafka's tools, and of others that list its partitions
WORDS = re.compile(
    rb"\bkafka-(?:topics|reassign|log-dirs|leader)|\b(?:kafkactl|kcat|kafkacat|rpk|topicctl)\b|"
    rb"(?i:\breplicas\b.*\b(?:isrs?|in-sync replicas)\b|\"isrs?\"\s*:)|\breplica on broker\b|"
    rb"\b(?:adding|removing)Replicas\b|"
    rb"\"topics\"\s*:\s*\[\s*\{\s*\"topic\"\s*:"
)

# what ``kubectl get nodes`` prints, with columns of labels behind
NODES = re.compile(rb"\s*NAME +STATUS +ROLES +AGE +VERSION\b")

# other documents about Kafka, by their pattern
OTHERS = {
    rb"^\W*Partition: ?\d+\s+Leader:": "has lines of a description without their topic",
    rb"^NodeId\s+(?:DirectoryId\s+)?LogEndOffset|^CurrentVoters:": "is of the controllers' quorum",
    rb"^(?:GROUP +)?(?:TOPIC +PARTITION +)?CURRENT-OFFSET|^GROUP +TOPIC": "is of consumer groups",
    rb'"type"\s*:\s*"[A-Z_]+_RECORD"': "is the log of a controller, with changes of metadata",
    rb"^Partition map changes:": "is what topicmappr prints",
    rb"^ *0 topics:": "lists no topic, as for a user who may describe none",
    rb"^\[\d+(?:, ?\d+)*\]\s*$": "lists brokers without their racks",
    rb"^(?:Dynamic|All) configs for (?:broker|topic)": "lists settings",
    rb'^kind: "?Kafka|"kind"\s*:\s*"Kafka(?:Topic|NodePool|Rebalance)?"': "is Strimzi's resource",
}


# lines of two integers, and nothing else: brokers and racks that have numbers for names
PAIRS = re.compile(rb"\s*(?:[0-9]{1,10}[ \t]+[0-9]+[ \t]*(?:\r?\n\s*|\Z)){2,}")


def recognises(document: Document) -> str:
    """Return the kind of a document, "" if it is none of Kafka's."""
    kind = kind_of(document)
    # other lines of bare integers are racks only where format="kafka" is given
    if kind == "rack-text" and re.fullmatch(rb"[\d\s]*", document.data):
        return kind if PAIRS.fullmatch(document.data) else ""
    return kind or ""


def hint(document: Document) -> str:
    """Return how a document is read that seems to be meant for Kafka; "" for other documents."""
    head = document.data[:HEAD]
    for looks, reason in OTHERS.items():
        if re.search(looks, head, re.MULTILINE):
            return reason if "--describe" in reason else f"{reason}: {DESCRIBE}"
    if is_cruise_text(head):
        return "is an answer of Cruise Control as text: ask for it with json=true"
    if is_other_answer(head):
        return (
            "is an answer of Cruise Control without replicas: give kafka_cluster_state with "
            "verbose=true, load and partition_load, each with json=true"
        )
    if NODES.match(head):
        return (
            "lists nodes of Kubernetes: for its pods and volumes ask it for -o json; racks of "
            "brokers are read as lines `1 zone-a`, by the number of each broker"
        )
    about = document.name.encode() + head
    meant = document.is_json and (b"rack" in about or b'"BrokerId"' in about)
    return 'racks are read as {"1": "rack-a"}, by the number of each broker' if meant else ""


def kind_of(document: Document) -> Kind | None:
    """Return the kind of a document by its beginning, None if it is none of Kafka's.

    >>> kind_of(Document("r.json", b'{"1": "rack-a"}'))
    'rack-json'
    """
    head = document.data[:HEAD]
    if b'"brokerCapacities"' in head:
        return "capacity"
    if cruise := cruise_kind(head):
        return cruise
    if is_metadata(head):
        return "metadata"
    if any(map(_is_topic, head.split(b"\n"))):
        return "description"
    if LOG_DIRS.search(head) or (b'"brokers"' in head and b'"version"' in head):
        return "log-dirs"
    if is_list_of_reassigned(head) and not (CURRENT.search(head) and ASSIGNED.search(head)):
        return "reassigned"
    if b'"partitions"' in head and ASSIGNED.search(head) and OF_TOPICS.search(head):
        return "assignment"
    if is_rack_json(head):
        return "rack-json"
    if is_answers(head):
        return "answers"
    if is_load_table(document):
        return "loads"
    if is_broker_table(document):
        return "brokers"
    return "rack-text" if is_rack_text(head) else None


def read_beside(findings: Findings, document: Document) -> None:
    """Read what else is in the file of a placement: a session has the output of many commands."""
    data = document.data
    if b"partition reassignment" in data or b"Reassignment of partition" in data:
        read_reassigned(findings, document)
    if is_answers(data):
        read_answers(findings, document)
    if kind_of(document) == "description":  # which shows what was ordered before it
        end = data.find(b"\n", data.rfind(b"Replicas:"))
        rest = document.part(end, len(data)) if end >= 0 else Document("", b"")
        if PROPOSED.search(rest.data):
            _read_proposal(findings, rest)
        elif b'"partitions"' in rest.data and ASSIGNED.search(rest.data):
            findings.proposals.append(document.name)
        _read_begun(findings, rest)
        if b'"logDirs"' in data:
            listed = (one for one in document.values() if b'"logDirs"' in one.data)
            _read_log_dirs(findings, document, listed)
    else:
        _read_begun(findings, document)
        _read_proposal(findings, document)


def _read_begun(findings: Findings, document: Document) -> None:
    """Read the partitions that ``--execute`` began to move."""
    read_started(findings, document)
    if BEGUN in document.data:
        current = decode_json(FaultList(), _assignment_part(document), Assignment)
        for row in current.partitions if current else ():
            findings.reassigned.setdefault(f"{row.topic}-{row.partition}", ((), ()))


def _read_proposal(findings: Findings, document: Document) -> None:
    """Read what ``--generate`` prints behind the current assignment, of brokers that are up."""
    if other := PROPOSED.search(document.data):
        findings.proposals.append(document.name)
        rest = document.part(other.end(), len(document.data))
        decoded = decode_json(FaultList(), next(_json_parts(rest)), Assignment)
        for row in decoded.partitions if decoded else ():
            findings.proposed.update(row.replicas)


def _is_topic(line: bytes) -> bool:
    """Return whether a line describes a topic or partition."""
    return TOPIC.search(line) is not None


def read_document(findings: Findings, document: Document) -> None:
    """Read one document, or report that it is none of Kafka's."""
    kind = kind_of(document)
    if kind == "assignment":
        _read_assignment(findings, document)
    elif kind in ("description", "metadata"):
        findings.documents += 1
        lines = lines_of_metadata(findings, document) if kind == "metadata" else []
        if any(map(_is_topic, document.data.split(b"\n"))):
            lines += _lines_of_description(findings, document, lines)
        findings.add_lines(lines)
    elif kind == "reassigned":
        read_reassigned(findings, document)
    elif kind == "log-dirs":
        _read_log_dirs(findings, document, _json_parts(document))
    elif kind == "capacity":
        _read_capacity(findings, document)
    elif kind == "rack-json":
        read_rack_json(findings, document)
    elif kind == "rack-text":
        read_rack_text(findings, document)
    elif kind == "loads":
        findings.load_tables.append(document)
    elif kind == "brokers":
        read_broker_table(findings, document)
    elif kind == "answers":
        read_answers(findings, document)
    elif kind in ("cluster-state", "broker-load", "partition-load", "proposals"):
        read_cruise(findings, document, kind)
    elif not note_cut_off(findings.faults, document):
        findings.faults.add(document.name, document.data[:40], hint(document) or STRANGE)


def _json_parts(document: Document) -> Iterator[Document]:
    """Yield the JSON of a document: lines that tools print one by one, or all from the first."""
    # a tool that is run for several brokers prints a line for each
    begun = False
    for found in () if _is_array(document) else JSON_LINE.finditer(document.data):
        whole = found[0].rstrip().endswith(b"}")
        if whole or not begun:
            yield document.part(found.start(), found.end() if whole else len(document.data))
        if not whole:
            return
        begun = True
    if not begun:
        yield document


def _is_array(document: Document) -> bool:
    """Return whether a document is a JSON array, as ``jq`` prints what it takes out."""
    return re.match(rb"\s*\[\s*[{\]]", document.data) is not None


def _assignment_part(document: Document) -> Document:
    """Return the reassignment of a document; of ``--generate`` output, the current one."""
    now = CURRENT.search(document.data)
    if not now:
        return next(_json_parts(document))
    behind = BEHIND.search(document.data, now.end())
    end = behind.start() if behind else len(document.data)
    return next(_json_parts(document.part(now.end(), end)))


def regular_rows(document: Document) -> Rows | None:
    """Return the rows of a regular reassignment or description; None if it is irregular."""
    if kind_of(document) == "description":
        return rows_of_description(document)
    if kind_of(document) != "assignment":
        return None
    decoded = decode_json(FaultList(), _assignment_part(document), Assignment)
    return None if decoded is None else rows_of_assignment(decoded.partitions, document.name)


def _read_assignment(findings: Findings, document: Document) -> None:
    """Read a reassignment entry by entry."""
    decoded = decode_json(findings.faults, _assignment_part(document), Assignment)
    findings.documents += 1
    for i, row in enumerate(decoded.partitions if decoded else ()):
        at = f"{document.name}: partitions[{i}]"
        _check_whole(findings, f"{at}.partition", row.partition)
        for slot, broker in enumerate(row.replicas):
            _check_whole(findings, f"{at}.replicas[{slot}]", broker)
        folders = row.log_dirs
        if folders is not None and len(folders) != len(row.replicas):
            wanted = f"needs {len(row.replicas)} entries, one per replica"
            findings.faults.add(f"{at}.log_dirs", folders, wanted)
        findings.add_partition(
            TopicPartition(row.topic, row.partition),
            Replicas(
                tuple(row.replicas),
                f"{at}.replicas",
                findings.documents,
                None if folders is None else tuple(folders),
            ),
        )


def _brokers_of_log_dirs(faults: FaultList, part: Document) -> list[BrokerDirs]:
    """Return the brokers of an answer, or of several or of brokers alone, as ``jq`` prints them."""
    answers: list[LogDirs | None]
    alone = b'"brokers"' not in part.data[:HEAD]
    if _is_array(part):
        if alone:
            return decode_json(faults, part, list[BrokerDirs]) or []
        answers = [*(decode_json(faults, part, list[LogDirs]) or [])]
    elif alone:
        broker = decode_json(faults, part, BrokerDirs)
        return [] if broker is None else [broker]
    else:
        answers = [decode_json(faults, part, LogDirs)]
    return [one for answer in answers if answer is not None for one in answer.brokers]


def _read_log_dirs(findings: Findings, document: Document, parts: Iterable[Document]) -> None:
    given = (
        (document.origin, f"log directories of broker {one.broker}", "", one)
        for part in parts for one in _brokers_of_log_dirs(findings.faults, part)
    )  # fmt: skip
    brokers = last_states(findings.notes, given)
    for b, broker in enumerate(brokers):
        at = f"{document.name}: brokers[{b}]"
        _check_whole(findings, f"{at}.broker", broker.broker)
        if broker.broker in findings.reporting:
            first = findings.reporting[broker.broker]
            findings.faults.add(f"{at}.broker", broker.broker, f"is already given at {first}")
        findings.reporting.setdefault(broker.broker, at)
        errors = {one.logDir: one.error for one in broker.logDirs if one.error is not None}
        if errors:
            findings.unreadable.setdefault(broker.broker, {}).update(errors)
    findings.listed_replicas.append(listed_in(findings, document.name, brokers))


def _read_capacity(findings: Findings, document: Document) -> None:
    decoded = decode_json(findings.faults, document, Capacities)
    for i, row in enumerate(decoded.brokerCapacities if decoded else ()):
        at = f"{document.name}: brokerCapacities[{i}]"
        text = str(row.brokerId)
        broker = DEFAULT_BROKER if text == "-1" else whole(text)
        if broker is None:
            findings.faults.add(f"{at}.brokerId", quoted(text), "must be a broker id, or -1")
            continue
        amounts = {}
        for name, given in row.capacity.items():
            if name in RESOURCES:
                dimension, unit = RESOURCES[name]
                path = f"{at}.capacity.{name}"
                if name == "DISK" and isinstance(given, dict):
                    findings.dir_capacity[broker] = {
                        folder: unit * _amount(findings, f"{path}.{quoted(folder)}", one)
                        for folder, one in given.items()
                    }
                    amounts[dimension] = sum(findings.dir_capacity[broker].values())
                    continue
                amounts[dimension] = unit * _amounts(findings, path, given)
        findings.add_capacity(at, broker, amounts)


def _amounts(findings: Findings, at: str, given: Any) -> float:
    """Return an amount, which may be one of cores."""
    if isinstance(given, dict) and at.endswith(".CPU") and [*given] == [CORES]:
        return PERCENT_OF_A_CORE * _amount(findings, f"{at}.{CORES}", given[CORES])
    return _amount(findings, at, given)


def _amount(findings: Findings, at: str, given: Any) -> float:
    """Return a number, which may be quoted."""
    try:
        amount = float(given)
    except (TypeError, ValueError, OverflowError):
        amount = -1.0
    if not 0.0 <= amount <= MOST_AMOUNT:
        findings.faults.add(at, quoted(given), f"must be a number from 0 to {MOST_AMOUNT:g}")
        return 0.0
    return amount


def _check_whole(findings: Findings, at: str, number: int) -> None:
    if number < 0:
        findings.faults.add(at, number, "must be 0 or more")


FIELDS = (
    "Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs", "MarkedForDeletion",
    "Partition", "Leader", "Replicas", "Isr", "Adding Replicas", "Removing Replicas", "Elr",
    "LastKnownElr", "Offline", "Observers", "LiveObservers",
)  # fmt: skip
FIELD = re.compile(rf"(?:^|(?<=\s))({'|'.join(FIELDS)}):[ \t]?", re.IGNORECASE)
# names of fields; Kafka 0.8.0 prints them in lower case
NAMES = {name.lower(): name for name in FIELDS}

# Confluent's fields: replicas that never join the ISR, and the live ones among them
OBSERVERS = ("Observers", "LiveObservers")

WANTED = {"Topic", "Partition", "Leader", "Replicas", "Isr"}


def _lines_of_description(
    findings: Findings, document: Document, others: Iterable[Line]
) -> list[Line]:
    """Return the partitions that ``kafka-topics --describe`` prints; other lines are ignored."""
    # ``others`` are those that stand below its headers in another form
    lines: list[Line] = []
    announced: dict[str, tuple[int, str]] = {}
    seen: dict[str, set[str]] = {}
    for _, partition, _ in others:
        seen.setdefault(partition.topic, set()).add(str(partition.number))
    topic, fields = "", dict[str, str]()
    for number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        at = f"{document.name}:{number}"
        if fields and line.strip() in CUT:
            findings.notes.add(LEFT_OUT, at)
        fields = _fields(line)
        if "Topic" not in fields and not (topic and {"Partition", "Replicas"} <= fields.keys()):
            continue
        topic = fields.setdefault("Topic", topic)
        if fields.get("MarkedForDeletion") == "true":
            findings.deleted.add(topic)
        if "Partition" not in fields:
            if "PartitionCount" in fields:
                count = _whole(findings, at, "PartitionCount", fields["PartitionCount"])
                announced[topic] = (count, at)
            if "ReplicationFactor" in fields:
                factor = _whole(findings, at, "ReplicationFactor", fields["ReplicationFactor"])
                findings.factor[topic] = factor
            _read_configs(findings, at, topic, fields.get("Configs", ""))
            continue
        seen.setdefault(topic, set()).add(fields["Partition"])
        missing = sorted(WANTED - fields.keys())
        if missing:
            findings.faults.add(
                at, quoted(line.strip()), f"is cut off: it has no {', '.join(missing)}"
            )
        elif topic not in findings.deleted:
            lines += _partition(findings, number, at, fields)
    for topic, (count, at) in announced.items():
        # a filtered description (--under-replicated-partitions) has no header lines
        if count != (listed := len(seen.get(topic, ()))):
            found = f"announces {count} partitions, {listed} follow"
            message = f"{found}: the file is cut, filtered, or of another tool: {DESCRIBE}"
            findings.faults.add(at, quoted(topic), message)
    return lines


def _fields(line: str) -> dict[str, str]:
    """Split a line at the names of its fields."""
    parts = FIELD.split(MARKUP.sub("", line))
    return {
        NAMES[name.lower()]: value.strip()
        for name, value in zip(parts[1::2], parts[2::2], strict=True)
    }


def _read_configs(findings: Findings, at: str, topic: str, configs: str) -> None:
    for config in configs.split(","):
        name, _, value = config.partition("=")
        if name.strip() == "min.insync.replicas":
            findings.min_in_sync[topic] = _whole(findings, at, "min.insync.replicas", value)


def _partition(findings: Findings, line: int, at: str, fields: dict[str, str]) -> list[Line]:
    """Return a line on a partition; none if it is unreadable, and so not compared with others."""
    before = len(findings.faults.faults)
    number = _whole(findings, at, "Partition", fields["Partition"])
    leader = -1
    if fields["Leader"].lower() not in NO_LEADER:
        leader = _whole(findings, at, "Leader", fields["Leader"])
    observers = [_brokers(findings, at, name, fields.get(name, "")) for name in OBSERVERS]
    findings.observing.update(observers[-1])
    replicas = Replicas(
        _brokers(findings, at, "Replicas", fields["Replicas"]),
        at,
        findings.documents,
        leader=leader,
        in_sync=_brokers(findings, at, "Isr", fields["Isr"]),
        adding=_brokers(findings, at, "Adding Replicas", fields.get("Adding Replicas", "")),
        removing=_brokers(findings, at, "Removing Replicas", fields.get("Removing Replicas", "")),
        observing=tuple(dict.fromkeys(chain(*observers))),
    )
    readable = len(findings.faults.faults) == before
    return [(line, TopicPartition(fields["Topic"], number), replicas)] if readable else []


def _brokers(findings: Findings, at: str, name: str, text: str) -> tuple[int, ...]:
    return tuple(
        _whole(findings, at, name, part)
        for part in text.split(",")
        if text.strip() and part.strip() != "N/A"
    )


def _whole(findings: Findings, at: str, name: str, text: str) -> int:
    number = whole(text.strip())
    if number is None:
        findings.faults.add(at, quoted(text), f"{name} must be a whole number, at most {MOST}")
    return number or 0
