"""Kafka's documents put together: brokers are nodes, topics groups, racks a level."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import Document
from evenkeel.formats.kafka.documents import DEFAULT_BROKER, read_document
from evenkeel.formats.kafka.findings import Findings, Replicas, TopicPartition
from evenkeel.formats.native.arguments import build
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount, Rule

NAME = "kafka"
ANY = "any"
"""The log directory that the broker chooses."""

COUNT = "replicas"
"""The dimension that counts replicas; sizes are ``disk``, in bytes."""

MEASURED = ("disk", "cpu", "network_in", "network_out")


def read(
    documents: Sequence[Document],
    *,
    offline: Collection[int] | None = None,
    spread: Mapping[str, Amount] | None = None,
) -> Cluster:
    """Read a cluster from any of Kafka's documents that belong together.

    Raises
    ------
    InvalidInput
        Naming every problem with file, line or JSON path, and value: truncated files, files that
        contradict each other, brokers or partitions that another file should know and does not, and
        brokers that are up and have no rack where racks are to be kept apart: like Kafka itself,
        which assigns by racks only if all brokers have one.
    """
    found = Findings()
    for document in documents:
        read_document(found, document)
    if not found.documents and not found.faults:
        names = [document.name for document in documents]
        found.faults.add("source", names, "needs a reassignment or a topic description")
    brokers = _brokers(found, offline)
    _check_references(found, brokers)
    keys = sorted(found.partitions)
    rows = [found.partitions[key] for key in keys]
    place = {broker: n for n, broker in enumerate(brokers)}
    topics = {topic: g for g, topic in enumerate(sorted({key.topic for key in keys}))}
    alive = _alive(found, rows, brokers, offline)
    given: dict[str, Any] = {
        "node_names": [str(broker) for broker in brokers],
        "alive": alive,
        "partition_names": [str(key) for key in keys],
        "group": [topics[key.topic] for key in keys] if keys else None,
        "group_names": list(topics),
        "min_active": np.array([found.min_in_sync.get(key.topic, 0) for key in keys], np.int64),
        "native_format": NAME,
    }
    given |= _placement(rows, place)
    given |= _amounts(found, keys, brokers)
    given |= _racks(found, brokers, alive, given["replicas"], spread)
    folders = _folders(found, keys)
    if folders:
        given["native"] = {"log_dirs": folders}
    return build(found.faults, given, lambda path: f"{NAME}: {path}")


def _brokers(found: Findings, offline: Collection[int] | None) -> list[int]:
    """Return all brokers by number; capacities only say more about those that others name."""
    named = {broker for row in found.partitions.values() for broker in row.brokers}
    named |= found.racks.keys() | found.reporting.keys()
    for broker in sorted(set(offline or ()) - named):
        found.faults.add("offline", broker, "unknown broker")
    return sorted(named)


def _check_references(found: Findings, brokers: list[int]) -> None:
    """Note what one file names and another one, which should know it, does not."""
    for partition, at in found.size_paths.items():
        if found.documents and partition not in found.partitions:
            found.faults.add(at, str(partition), "is in no reassignment or description")
    complete = found.reporting.keys() - found.unreadable
    for partition, row in found.partitions.items():
        holder = next((broker for broker in row.brokers if broker in complete), None)
        if holder is not None and partition not in found.sizes:
            at = found.reporting[holder]
            found.faults.add(row.path, str(partition), f"has no size: {at} does not hold it")
    named = {*brokers, DEFAULT_BROKER}
    for broker in sorted(found.capacity.keys() - named):
        found.faults.add(found.capacity[broker][1], broker, "is a broker that no other file names")
    if found.capacity and DEFAULT_BROKER not in found.capacity:
        at = next(iter(found.capacity.values()))[1].rpartition("[")[0]
        for broker in sorted({*brokers} - found.capacity.keys()):
            found.faults.add(at, broker, "has no capacity, and there is no default (-1)")


def _alive(
    found: Findings,
    rows: Sequence[Replicas],
    brokers: Sequence[int],
    offline: Collection[int] | None,
) -> NDArray[np.bool_]:
    """Return which brokers are up: as told, or by what shows it."""
    if offline is not None:
        return ~np.isin(brokers, [*offline])
    described = [row for row in rows if row.in_sync is not None]
    if not (described or found.reporting):
        return np.ones(len(brokers), np.bool_)
    led = [row for row in described if row.leader is not None and row.leader >= 0]
    shown = {*found.reporting, *(row.leader for row in led)}
    shown |= {broker for row in led for broker in row.in_sync or ()}
    if not found.reporting:
        held = {broker for row in described for broker in row.brokers}
        shown |= {*brokers} - held
    return np.array([broker in shown for broker in brokers], np.bool_)


def _placement(rows: Sequence[Replicas], place: Mapping[int, int]) -> dict[str, Any]:
    """Return replicas in Kafka's order, with what a description says of each."""
    first = np.concatenate([[0], np.cumsum([len(row.brokers) for row in rows])]).astype(np.int64)
    node = np.array([place[broker] for row in rows for broker in row.brokers], np.int64)
    leader = [_leading_slot(row) for row in rows]
    flags = [
        Flag.CAUGHT_UP * (broker in (row.in_sync or ()))
        | Flag.INCOMING * (broker in row.adding)
        | Flag.OUTGOING * (broker in row.removing)
        for row in rows
        for broker in row.brokers
    ]
    wanted = [len({*row.brokers} - {*row.removing}) for row in rows]
    return {
        "placement": node,
        "first": first,
        "leader": np.array(leader, np.int64),
        "flags": np.array(flags, np.int64),
        "replicas": np.array(wanted, np.int64),
    }


def _leading_slot(row: Replicas) -> int:
    if row.leader is None:
        return 0 if row.brokers else -1
    return row.brokers.index(row.leader) if row.leader in row.brokers else -1


def _amounts(
    found: Findings, keys: Sequence[TopicPartition], brokers: Sequence[int]
) -> dict[str, Any]:
    """Return loads and capacities of every dimension that some file measures."""
    limits = found.capacity
    measured = {name for amounts, _ in limits.values() for name in amounts}
    measured |= {"disk"} if found.sizes else set()
    names = [COUNT, *(name for name in MEASURED if name in measured)]
    load = np.ones((len(keys), len(names)))
    load[:, 1:] = 0.0
    if "disk" in names:
        # replicas that catch up are smaller for a while: the largest tells the size
        load[:, names.index("disk")] = [
            max((size for size, _ in found.sizes.get(key, {}).values()), default=0.0)
            for key in keys
        ]
    slots = np.array([len(found.partitions[key].brokers) for key in keys], np.float64)
    # nothing limits these, yet a node can be level only against some capacity
    everything = np.maximum(slots @ load, 1.0) if len(keys) else np.ones(len(names))
    capacity = np.tile(everything, (len(brokers), 1))
    default = limits.get(DEFAULT_BROKER, ({}, ""))[0]
    for n, broker in enumerate(brokers):
        own = default | limits.get(broker, ({}, ""))[0]
        for d, name in enumerate(names):
            if name in own:
                capacity[n, d] = own[name]
    return {
        "dimensions": names,
        "load": load,
        "capacity": capacity,
        "bytes": "disk" if "disk" in names else None,
    }


def _racks(
    found: Findings,
    brokers: Sequence[int],
    alive: NDArray[np.bool_],
    wanted: NDArray[np.int64],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return racks as a tier, and the rule of each number of replicas."""
    if not found.rack_file:
        return {} if spread is None else {"spread": spread}
    racks = [found.racks.get(broker, (None, ""))[0] or "" for broker in brokers]
    given: dict[str, Any] = {"domains": {"rack": np.array(racks, object)}}
    strays = [
        broker for broker, rack, up in zip(brokers, racks, alive, strict=True) if up and not rack
    ]
    misread = any(fault.path.startswith(found.rack_file) for fault in found.faults.faults)
    if strays and not misread and (spread is None or "rack" in spread):
        message = "have no rack: name it here, or ask for another spread ({} for no rule)"
        found.faults.add(f"{found.rack_file}: brokers", strays, message)
    if spread is not None:
        return given | {"spread": spread}
    if count := len({*racks} - {""}):
        numbers = np.unique(wanted)
        given["rules"] = [Rule(spread={"rack": -(-int(n) // count)}) for n in numbers]
        given["rule"] = np.searchsorted(numbers, wanted)
    return given


def _folders(found: Findings, keys: Sequence[TopicPartition]) -> dict[str, dict[str, str]]:
    """Return the log directory of each replica that any file tells, by partition and broker."""
    folders = {}
    for key in keys:
        row, sizes = found.partitions[key], found.sizes.get(key, {})
        own = {
            str(broker): folder for broker, (_, folder) in sizes.items() if broker in row.brokers
        }
        told = zip(row.brokers, row.log_dirs or (), strict=False)
        own |= {
            str(broker): folder
            for broker, folder in told
            if folder != ANY or str(broker) not in own
        }
        if own:
            folders[str(key)] = own
    return folders
