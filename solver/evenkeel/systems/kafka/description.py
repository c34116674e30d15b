"""The text of ``kafka-topics --describe``, of old and new releases.

One header line per topic; one line per partition, which starts with a tab. Fields are
``Name: value``, divided by tabs (by spaces in what people paste), and releases differ in which ones
there are; Confluent's name observers, too.
"""

import re
from itertools import chain

from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.kafka.findings import MOST, Findings, Replicas, TopicPartition, whole

FIELDS = (
    "Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs", "MarkedForDeletion",
    "Partition", "Leader", "Replicas", "Isr", "Adding Replicas", "Removing Replicas", "Elr",
    "LastKnownElr", "Offline", "Observers", "LiveObservers",
)  # fmt: skip
FIELD = re.compile(rf"(?:^|(?<=\s))({'|'.join(FIELDS)}):[ \t]?")
NO_LEADER = ("none", "-1", "n/a", "")
OBSERVERS = ("Observers", "LiveObservers")
"""Fields of Confluent's: replicas that are out of sync on purpose, and those of them that live."""

WANTED = {"Topic", "Partition", "Leader", "Replicas", "Isr"}


def read_description(findings: Findings, document: Document) -> None:
    """Take in what ``kafka-topics --describe`` printed; lines without a topic are passed over."""
    findings.documents += 1
    announced: dict[str, tuple[int, str]] = {}
    seen: dict[str, int] = {}
    for number, line in enumerate(document.text(findings.faults).split("\n"), start=1):
        fields = _fields(line)
        at = f"{document.name}:{number}"
        if "Topic" not in fields:
            continue
        topic = fields["Topic"]
        if "Partition" not in fields:
            count = _whole(findings, at, "PartitionCount", fields.get("PartitionCount", ""))
            announced[topic] = (count, at)
            if "ReplicationFactor" in fields:
                factor = _whole(findings, at, "ReplicationFactor", fields["ReplicationFactor"])
                findings.factor[topic] = factor
            _read_configs(findings, at, topic, fields.get("Configs", ""))
            continue
        seen[topic] = seen.get(topic, 0) + 1
        missing = sorted(WANTED - fields.keys())
        if missing:
            findings.faults.add(
                at, quoted(line.strip()), f"is cut off: it has no {', '.join(missing)}"
            )
            continue
        _read_partition(findings, at, fields)
    for topic, (count, at) in announced.items():
        # a description that was filtered (--under-replicated-partitions) has no header lines
        if count != seen.get(topic, 0):
            found = f"announces {count} partitions, {seen.get(topic, 0)} follow"
            findings.faults.add(at, quoted(topic), f"{found}: the file is truncated or filtered")


def _fields(line: str) -> dict[str, str]:
    """Divide a line at the names of its fields."""
    parts = FIELD.split(line)
    return {name: value.strip() for name, value in zip(parts[1::2], parts[2::2], strict=True)}


def _read_configs(findings: Findings, at: str, topic: str, configs: str) -> None:
    for config in configs.split(","):
        name, _, value = config.partition("=")
        if name.strip() == "min.insync.replicas":
            findings.min_in_sync[topic] = _whole(findings, at, "min.insync.replicas", value)


def _read_partition(findings: Findings, at: str, fields: dict[str, str]) -> None:
    before = len(findings.faults.faults)
    number = _whole(findings, at, "Partition", fields["Partition"])
    leader = -1
    if fields["Leader"].lower() not in NO_LEADER:
        leader = _whole(findings, at, "Leader", fields["Leader"])
    observers = [_brokers(findings, at, name, fields.get(name, "")) for name in OBSERVERS]
    findings.observing.update(observers[-1])
    said = Replicas(
        _brokers(findings, at, "Replicas", fields["Replicas"]),
        at,
        findings.documents,
        leader=leader,
        in_sync=_brokers(findings, at, "Isr", fields["Isr"]),
        adding=_brokers(findings, at, "Adding Replicas", fields.get("Adding Replicas", "")),
        removing=_brokers(findings, at, "Removing Replicas", fields.get("Removing Replicas", "")),
        observing=tuple(dict.fromkeys(chain(*observers))),
    )
    if len(findings.faults.faults) == before:  # a line that cannot be read contradicts no other
        findings.add_partition(TopicPartition(fields["Topic"], number), said)


def _brokers(findings: Findings, at: str, name: str, text: str) -> tuple[int, ...]:
    return tuple(
        _whole(findings, at, name, part)
        for part in text.split(",")
        if part.strip() not in ("", "N/A")
    )


def _whole(findings: Findings, at: str, name: str, text: str) -> int:
    number = whole(text.strip())
    if number is None:
        findings.faults.add(at, quoted(text), f"{name} must be a whole number, at most {MOST}")
    return number or 0
