"""Read responses of Cruise Control's API: cluster state, and loads of brokers and partitions.

References
----------
linkedin/cruise-control, ``KafkaClusterState``, ``BrokerStats`` and ``PartitionLoadState``; the
weights of ``ModelParameters``, by which a follower's CPU is estimated from that of its leader.
"""

import csv
import io
import re
from typing import Any, Literal

import msgspec

from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.kafka.findings import Findings, Replicas, TopicPartition, whole
from evenkeel.systems.kafka.racks import add_rack
from evenkeel.systems.node_states import NODE_STATES

# bytes of the units of disks and networks, and CPU of a core
MB, KB, PERCENT_OF_A_CORE = 1024.0 * 1024.0, 1024.0, 100.0

# weights of bytes in and out in the CPU of a leader, and of bytes in that of a follower
LEADER_IN, LEADER_OUT, FOLLOWER_IN = 0.6, 0.1, 0.3

COLUMNS = (
    "topic", "partition", "disk", "network_in", "network_out", "leader_network_out", "cpu",
    "leader_cpu",
)  # fmt: skip

CruiseKind = Literal["cluster-state", "broker-load", "partition-load", "proposals"]

# lines of answers without ``json=true``
TEXT = re.compile(
    rb"(?:LEADER_NW_IN|FOLLOWER_NW_IN|NW_OUT) ?\(KB/s\)|^Brokers with replicas:|^Optimization has "
    rb"|^MonitorState: \{|Under Replicated, Offline, and Under MinIsr",
    re.MULTILINE,
)

DEAD = "DEAD"  # state of a broker, and what stands for the size of a failed disk


class PartitionState(msgspec.Struct, rename="kebab"):
    """One partition of a cluster state."""

    topic: str
    partition: Int32
    leader: Int32
    replicas: list[Int32]
    in_sync: list[Int32]
    offline: list[Int32] = []


class BrokerState(msgspec.Struct):
    """Log directories of brokers that answered, and those that are offline, by broker."""

    OnlineLogDirsByBrokerId: dict[str, list[str]] = {}
    OfflineLogDirsByBrokerId: dict[str, list[str]] = {}


class ClusterState(msgspec.Struct):
    """``kafka_cluster_state?json=true&verbose=true``; not verbose, ``other`` is missing."""

    KafkaPartitionState: dict[str, list[PartitionState]]
    KafkaBrokerState: BrokerState = msgspec.field(default_factory=BrokerState)


class Broker(msgspec.Struct):
    """One broker of ``load?json=true``."""

    Broker: Int32
    BrokerState: str = "ALIVE"
    Host: str = ""
    Rack: str = ""
    DiskCapacityMB: float | None = None
    NetworkInCapacity: float | None = None
    NetworkOutCapacity: float | None = None
    NumCore: float | None = None
    DiskState: dict[str, dict[str, Any]] = {}


class BrokerLoad(msgspec.Struct):
    """``load?json=true``."""

    brokers: list[Broker]


class PartitionLoad(msgspec.Struct):
    """One partition of ``partition_load?json=true``: the load of its leader."""

    topic: str
    partition: Int32
    disk: float = 0.0
    cpu: float = 0.0
    networkInbound: float = 0.0  # noqa: N815
    networkOutbound: float = 0.0  # noqa: N815


class PartitionLoads(msgspec.Struct):
    """``partition_load?json=true``."""

    records: list[PartitionLoad]


class MovedPartition(msgspec.Struct):
    """A partition by the names of a proposal."""

    topic: str
    partition: Int32


class Proposal(msgspec.Struct):
    """One change of a partition: its replicas afterwards, the leader first."""

    topicPartition: MovedPartition  # noqa: N815
    newReplicas: list[Int32]  # noqa: N815


class Proposals(msgspec.Struct):
    """``proposals?json=true``, and other answers with ``verbose=true``."""

    proposals: list[Proposal]


# keys of answers that list no replicas, and of Strimzi's summary of a rebalance
OTHERS = re.compile(
    rb'"(?:MonitorState|ExecutorState|AnalyzerState|AnomalyDetectorState|userTasks|goalSummary|'
    rb'diskUsedMB|leaderNetworkInRateKB)"\s*:'
)


def is_other_answer(head: bytes) -> bool:
    """Return whether a document begins like an answer that lists no replicas."""
    return head.lstrip().startswith(b"{") and OTHERS.search(head) is not None


def is_cruise_text(head: bytes) -> bool:
    """Return whether a document begins like an answer without ``json=true``."""
    return TEXT.search(head) is not None


def cruise_kind(head: bytes) -> CruiseKind | None:
    """Return the kind of an answer of Cruise Control by its beginning; None for anything else."""
    if b'"KafkaPartitionState"' in head or b'"KafkaBrokerState"' in head:
        return "cluster-state"
    if b'"proposals"' in head and b'"newReplicas"' in head:
        return "proposals"
    if b'"brokers"' in head and (b'"BrokerState"' in head or b'"DiskCapacityMB"' in head):
        return "broker-load"
    if b'"records"' in head and b'"networkInbound"' in head:
        return "partition-load"
    return None


def read_cruise(found: Findings, document: Document, kind: CruiseKind) -> None:
    """Read one answer of Cruise Control."""
    if kind == "cluster-state":
        _read_cluster_state(found, document)
    elif kind == "broker-load":
        _read_broker_load(found, document)
    elif kind == "proposals":
        _read_proposals(found, document)
    else:
        _read_partition_load(found, document)


def _read_cluster_state(found: Findings, document: Document) -> None:
    state = decode_json(found.faults, document, ClusterState)
    if state is None:
        return
    lists = state.KafkaPartitionState
    if "other" not in lists:
        message = "lists only partitions in trouble: ask for it with verbose=true"
        found.faults.add(f"{document.name}: KafkaPartitionState", [*lists], message)
        return
    found.documents += 1
    seen: set[TopicPartition] = set()
    for name, rows in lists.items():
        for i, row in enumerate(rows):
            key = TopicPartition(row.topic, row.partition)
            if key not in seen:  # what is offline is under-replicated, too, and listed twice
                at = f"{document.name}: KafkaPartitionState.{name}[{i}]"
                given = Replicas(
                    tuple(row.replicas), at, found.documents, leader=row.leader,
                    in_sync=tuple(row.in_sync),
                )  # fmt: skip
                found.add_partition(key, given)
            seen.add(key)
    for part in lists["other"]:
        found.factor.setdefault(part.topic, len(part.replicas))
    troubled: dict[str, int] = {}
    for part in (one for rows in lists.values() for one in rows):
        troubled[part.topic] = max(troubled.get(part.topic, 0), len(part.replicas))
    found.factor = troubled | found.factor
    for text, folders in state.KafkaBrokerState.OnlineLogDirsByBrokerId.items():
        broker = whole(text)
        if broker is not None and folders:
            found.add_answer(f"{document.name}: OnlineLogDirsByBrokerId.{text}", broker, up=True)
    for text, folders in state.KafkaBrokerState.OfflineLogDirsByBrokerId.items():
        broker = whole(text)
        if broker is not None and folders:
            errors = dict.fromkeys(folders, "offline log directory: KafkaStorageException")
            found.unreadable.setdefault(broker, {}).update(errors)


def _read_broker_load(found: Findings, document: Document) -> None:
    load = decode_json(found.faults, document, BrokerLoad)
    brokers = load.brokers if load else []
    # without racks, Cruise Control takes hosts for them
    racks = any(one.Rack not in ("", one.Host) for one in brokers)
    for i, one in enumerate(brokers):
        at = f"{document.name}: brokers[{i}]"
        if one.Broker < 0:
            found.faults.add(f"{at}.Broker", one.Broker, "must be 0 or more")
            continue
        state = NODE_STATES["down" if one.BrokerState == DEAD else "up"]
        if one.BrokerState == "DEMOTED":
            state = state._replace(leads=False)
            found.demoted.add(one.Broker)
        failed = [folder for folder, disk in one.DiskState.items() if disk.get("DiskMB") == DEAD]
        if failed:
            errors = dict.fromkeys(failed, "dead disk: KafkaStorageException")
            found.unreadable.setdefault(one.Broker, {}).update(errors)
        elif one.BrokerState == "BAD_DISKS":
            found.bad_disks.add(one.Broker)
        found.add_state(at, one.Broker, state)
        if racks:
            add_rack(found, document, f"{at}.Rack", one.Broker, one.Rack)
        amounts = {
            "disk": (one.DiskCapacityMB, MB), "network_in": (one.NetworkInCapacity, KB),
            "network_out": (one.NetworkOutCapacity, KB), "cpu": (one.NumCore, PERCENT_OF_A_CORE),
        }  # fmt: skip
        found.unlimited |= {
            name for name, (amount, _) in amounts.items() if amount is not None and amount < 0.0
        }
        capacity = {
            name: amount * unit
            for name, (amount, unit) in amounts.items()
            if amount is not None and amount > 0.0  # -1 stands for none
        }
        if capacity:
            found.add_capacity(at, one.Broker, capacity)


def _read_proposals(found: Findings, document: Document) -> None:
    """Read a proposal as a target: the replicas of the partitions that change."""
    decoded = decode_json(found.faults, document, Proposals)
    if found.partitions:
        message = "proposes changes of the other files: give it as --target of plan or check"
        found.faults.add(document.name, document.data[:40], message)
        return
    found.documents += 1
    for i, one in enumerate(decoded.proposals if decoded else ()):
        at = f"{document.name}: proposals[{i}].newReplicas"
        key = TopicPartition(one.topicPartition.topic, one.topicPartition.partition)
        found.add_partition(key, Replicas(tuple(one.newReplicas), at, found.documents))


def _read_partition_load(found: Findings, document: Document) -> None:
    """Read loads of leaders as a table of loads, which is read when all partitions are known."""
    load = decode_json(found.faults, document, PartitionLoads)
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for one in load.records if load else ():
        weight = LEADER_IN * one.networkInbound + LEADER_OUT * one.networkOutbound
        share = FOLLOWER_IN * one.networkInbound / weight if weight > 0.0 else 0.0
        row: tuple[Any, ...] = (
            one.topic, one.partition, MB * one.disk, KB * one.networkInbound, 0.0,
            KB * one.networkOutbound, one.cpu * min(share, 1.0), one.cpu,
        )  # fmt: skip
        table.writerow(row)
    if load:
        found.load_tables.append(Document(document.name, text.getvalue().encode()))
