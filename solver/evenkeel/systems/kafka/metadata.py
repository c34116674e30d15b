"""Metadata of topics as Kafka's clients print it: ``kcat -L``, as text or JSON, and admin clients.

Clients name the same things differently; ``NAMES`` lists what they use. A broker is a number, or an
object with its id. Brokers that the answer lists are up.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import note_syntax
from evenkeel.systems.kafka.findings import MOST, Findings, Line, Replicas, TopicPartition
from evenkeel.systems.kafka.racks import add_rack

NAMES: Mapping[str, tuple[str, ...]] = {
    "topic": ("topic", "name", "topicName", "topic_name"),
    "partition": (
        "partition", "partitionId", "partition_id", "partitionIndex", "partition_index", "id",
    ),
    "leader": ("leader", "leaderId", "leader_id"),
    "replicas": ("replicas", "replicaNodes", "replica_nodes"),
    "isr": ("isr", "isrs", "isrNodes", "isr_nodes"),
    "broker": ("id", "nodeId", "node_id", "brokerId", "broker_id"),
}  # fmt: skip
"""Keys of the same value in the answers of different clients."""

BROKER = re.compile(r"\bbroker ([0-9]{1,10}) at \S+")
TOPIC = re.compile(r'\btopic "([^"]+)" with ([0-9]{1,9}) partitions')
PARTITION = re.compile(
    r"\bpartition ([0-9]{1,9}), leader (-?[0-9]{1,10}), replicas: ([0-9,]*), isrs: ([0-9,]*)"
)
IN_SYNC = re.compile(rb'"(isr|isrs|isrNodes|isr_nodes)"\s*:')


def is_metadata(head: bytes) -> bool:
    """Return whether a document begins like the metadata of topics.

    >>> is_metadata(b' topic "orders" with 3 partitions:')
    True
    """
    if head.lstrip().startswith((b"{", b"[")):
        return b'"partitions"' in head and IN_SYNC.search(head) is not None
    return re.search(rb'\btopic "[^"\n]+" with [0-9]+ partitions', head) is not None


def lines_of_metadata(findings: Findings, document: Document) -> list[Line]:
    """Return the partitions, and read the brokers that are up."""
    if document.data.lstrip().startswith((b"{", b"[")):
        return _of_json(findings, document)
    return _of_text(findings, document)


def _of_text(findings: Findings, document: Document) -> list[Line]:
    """Return the lines of ``kcat -L``."""
    lines: list[Line] = []
    topic, announced, listed = "", 0, 0
    widths: dict[str, int] = {}

    def check(at: str) -> None:
        if listed != announced:
            message = f"lists {listed} of its {announced} partitions: the file is truncated"
            findings.faults.add(at, f"topic {quoted(topic)}", message)

    number = 0
    for number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        at = f"{document.name}:{number}"
        if found := BROKER.search(line):
            findings.add_answer(at, int(found[1]), up=True)
        elif found := TOPIC.search(line):
            check(at)
            topic, announced, listed = found[1], int(found[2]), 0
        elif (found := PARTITION.search(line)) and topic:
            listed += 1
            replicas, in_sync = (
                tuple(int(one) for one in text.split(",") if one) for text in found.groups()[2:]
            )
            partition = TopicPartition(topic, int(found[1]))
            given = _replicas(findings, at, int(found[2]), replicas, in_sync)
            lines.append((number, partition, given))
            widths[topic] = max(widths.get(topic, 0), len(replicas))
    check(f"{document.name}:{number}")
    findings.factor = widths | findings.factor
    return lines


def _of_json(findings: Findings, document: Document) -> list[Line]:
    """Return the answer of a client as JSON."""
    lines: list[Line] = []
    try:
        given: Any = msgspec.json.decode(document.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        note_syntax(findings.faults, document, error)
        return []
    path = f"{document.name}: "
    topics = given
    if isinstance(given, dict):
        topics = given.get("topics", [given])
        path += "topics" if "topics" in given else ""
        for i, one in enumerate(given.get("brokers") or ()):
            broker = _value(one, "broker")
            if _is_id(broker):
                at = f"{document.name}: brokers[{i}]"
                findings.add_answer(at, broker, up=True)
                if isinstance(one, dict) and isinstance(one.get("rack"), str):
                    add_rack(findings, document, f"{at}.rack", broker, one["rack"])
    widths: dict[str, int] = {}
    for t, of in enumerate(topics if isinstance(topics, list) else ()):
        topic, at = _value(of, "topic"), f"{path}[{t}]"
        if not isinstance(topic, str):
            findings.faults.add(at, quoted(of), "has no name of a topic")
            continue
        for p, one in enumerate(of.get("partitions") or ()):
            where = f"{at}.partitions[{p}]"
            number, leader = _value(one, "partition"), _broker(_value(one, "leader"))
            replicas, in_sync = (_brokers(_value(one, name)) for name in ("replicas", "isr"))
            if not _is_id(number) or replicas is None or in_sync is None:
                message = "needs a number, and lists of replicas and of those in sync"
                findings.faults.add(where, quoted(one), message)
                continue
            leads = leader if _is_id(leader) else -1
            held = _replicas(findings, where, leads, replicas, in_sync)
            lines.append((len(lines), TopicPartition(topic, number), held))
            widths[topic] = max(widths.get(topic, 0), len(replicas))
    if not widths and not findings.faults:
        findings.faults.add(document.name, document.data[:40], "lists no topic")
    findings.factor = widths | findings.factor
    return lines


def _replicas(
    findings: Findings,
    at: str,
    leader: int,
    replicas: tuple[int, ...],
    in_sync: tuple[int, ...],
) -> Replicas:
    """Return a partition; an answer may still name a leader or ISR that left the replicas."""
    kept = tuple(one for one in in_sync if one in replicas)
    leads = leader if leader in replicas else -1
    return Replicas(replicas, at, findings.documents, leader=leads, in_sync=kept)


def _value(given: Any, name: str) -> Any:
    """Return a value under any of its names; None for a missing one."""
    if not isinstance(given, dict):
        return given if name == "broker" else None
    return next((given[key] for key in NAMES[name] if key in given), None)


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
