"""Kafka: what its tools print, put together to a cluster, and the files that its tools take.

References
----------
Apache Kafka, tools ``kafka-reassign-partitions``, ``kafka-topics --describe``, ``kafka-log-dirs``
and ``kafka-leader-election``; Cruise Control, capacity file.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.figures import amount
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.kafka.cluster import COUNT, read, room_for_all
from evenkeel.systems.kafka.documents import hint, recognises
from evenkeel.systems.kafka.missing import NAMED, Missing, remembered
from evenkeel.systems.kafka.reassignment import encode
from evenkeel.systems.kafka.waves import CARRIER
from evenkeel.systems.registry import Format

LISTED = "list the log dirs of all brokers, after the topics are described"
"""How to get the missing sizes."""


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input, each with its effect and what to add."""
    if "rack" not in cluster.topology.tiers:
        yield (
            "no racks: replicas of a partition may share one; add a file of racks, or what "
            "kafka-broker-api-versions.sh prints"
        )
    missing = remembered(cluster)
    if missing.filtered:
        yield (
            "no lines of topics, and partitions are missing: the listing is filtered, as by "
            "--under-replicated-partitions. What it leaves out is not counted, and a broker that "
            "shows no life in it may be up: describe all topics"
        )
    yield from _of_reassignments(missing)
    yield from _of_orders(missing)
    yield from _of_leads(cluster)
    yield from _of_brokers(cluster, missing)
    yield from _of_log_dirs(missing)
    if "disk" not in cluster.dimensions:
        yield (
            "no sizes: every replica counts the same, and bytes are not known; add what "
            "kafka-log-dirs.sh --describe prints"
        )
    for name, count in missing.unmeasured.items():
        what, remedy = (
            (name, "add them to the table of loads") if name != "disk" else ("size", LISTED)
        )
        yield (
            f"no {what} of {count:,} of {counted(len(cluster.partitions), 'partition')}: it counts "
            f"as 0; {remedy}"
        )
    yield from _of_topics(missing)
    alike = uncapped(cluster)
    if alike and (alike != [COUNT] or cluster.dimensions == (COUNT,)):
        names = " and ".join(alike)
        yield (
            f"no capacities of {names}: percentages are of the load of all brokers together, and "
            "no broker counts as too full; add a file of capacities"
        )
    if awaited := [name for name in missing.awaited if name not in cluster.nodes.names]:
        yield (
            f"nothing of brokers {_some(awaited)} but capacities: they count only where "
            "--add-nodes names them"
        )
    for name, brokers in missing.uncapped.items():
        yield (
            f"no capacity of {name} of brokers {_some(brokers)}: they count as "
            "large enough for everything; add it to the file of capacities"
        )


def _of_leads(cluster: Cluster) -> Iterator[str]:
    """Yield a note on partitions that are not led by their preferred, in-sync replica."""
    placement, names = cluster.placement, cluster.partitions.names
    first = np.flatnonzero((placement.flags & Flag.PREFERRED) != 0)
    owner = placement.owner[first]
    waits = owner[placement.leader_node[owner] != placement.node[first]]
    if len(waits):
        named = _some([names[p] for p in waits[:NAMED].tolist()], len(waits))
        yield (
            f"no lead of the preferred broker in {counted(len(waits), 'partition')} "
            f"({named}), though it is in sync: Kafka restores it, by itself or by an election "
            "(kafka-leader-election.sh), and results count that as a leader change"
        )


def _of_brokers(cluster: Cluster, missing: Missing) -> Iterator[str]:
    """Yield notes on brokers whose state was inferred, and on controllers and observers."""
    nodes, node = cluster.nodes, cluster.placement.node
    index = {name: n for n, name in enumerate(nodes.names)}
    empty = np.bincount(node[node >= 0], minlength=len(nodes)) == 0
    down = [name for name in missing.down if name in index and not nodes.alive[index[name]]]
    silent = [name for name in down if not empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which lead nothing and are in sync with "
            "no leader: they count as dead; to be certain, add what "
            "kafka-broker-api-versions.sh prints"
        )
    silent = [name for name in down if empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which hold nothing: they count as dead; "
            "where they are controllers, that is right; where they are new, add what "
            "kafka-broker-api-versions.sh prints, or take them out of the racks and give them with "
            "--add-nodes"
        )
    up = [name for name in missing.up if name in index and nodes.alive[index[name]]]
    if up:
        yield (
            f"no sign of life of brokers {_some(up)}, which only join partitions, observe them or "
            "hold nothing that is listed: they count as up; to be certain, add what "
            "kafka-broker-api-versions.sh prints"
        )
    if missing.controllers:
        yield (
            f"nothing placed on {_some(missing.controllers)}: their properties say that they are "
            "controllers and no brokers"
        )
    if missing.observers:
        yield (
            f"no difference between replicas and observers, though there are "
            f"{missing.observers:,}: a reassignment cannot name them; pin their "
            "topics, or place these by Confluent's own constraints"
        )


def _of_reassignments(missing: Missing) -> Iterator[str]:
    """Yield notes on running reassignments, and on surplus replicas."""
    if missing.reassigned:
        yield (
            f"a running reassignment of {counted(missing.reassigned_count, 'partition')} "
            f"({_some(missing.reassigned, missing.reassigned_count)}): each counts as at "
            "its target, and no file written here changes it; until it has ended, "
            "kafka-reassign-partitions.sh --execute refuses another one without --additional, and "
            "--list shows its progress"
        )
    if missing.endless:
        yield (
            f"no end of the reassignment of {_some(missing.endless)} while a joining broker is "
            "down: cancel it (kafka-reassign-partitions.sh --cancel), and describe again"
        )
    if missing.longer:
        yield (
            "more replicas than the replication factor in "
            f"{counted(missing.longer_count, 'partition')} "
            f"({_some(missing.longer, missing.longer_count)}): those that are in sync stay, others "
            "are dropped, not replaced"
        )


def _of_orders(missing: Missing) -> Iterator[str]:
    """Yield notes on deleted topics, proposals, and demoted brokers."""
    if missing.deleted:
        yield (
            f"a mark of deletion on topics {_some(missing.deleted)}: Kafka reassigns none of their "
            "partitions, and they are not counted"
        )
    if missing.proposals:
        yield (
            f"a proposed assignment beside the current one ({_some(missing.proposals)}): the "
            "current one is read; save the other as a file of its own, and give it as --target"
        )
    if missing.demoted:
        yield (
            f"a demotion of brokers {_some(missing.demoted)}: they keep replicas, and lead none "
            "but of partitions that no other replica can lead, which stay"
        )
    if missing.unlimited:
        yield (
            f"no capacities of {' and '.join(missing.unlimited)}, for which load has -1: these are "
            "not counted; add a file of capacities"
        )


def _of_log_dirs(missing: Missing) -> Iterator[str]:
    """Yield notes on unreadable log directories and their replicas."""
    for broker, errors in missing.failed.items():
        lost = missing.offline.get(broker, [])
        held = f"{counted(len(lost), 'replica')}{f' ({_some(lost)})' if lost else ''}"
        yield (
            f"no access to log directory {_errors(errors)} on broker {broker}: {held} of it, in "
            "none of its others and not in sync, must move, and it takes no more"
        )
    for broker, errors in missing.unread.items():
        yield (
            f"no list of log directory {_errors(errors)} on broker {broker}: sizes may be missing"
        )


def _errors(errors: Mapping[str, str]) -> str:
    """Write log directories with their errors, without the package of a Java class."""
    return _some([
        f"{folder or 'of no name'} ({error.split(':')[0].rpartition('.')[2]})"
        for folder, error in errors.items()
    ])  # fmt: skip


def _of_topics(missing: Missing) -> Iterator[str]:
    """Yield notes on topics that no file describes."""
    named = _some(missing.topics, missing.topic_count)
    if missing.topics:
        yield (
            f"no description of topics that log dirs hold ({named}): they stay where they are"
            + (f", and capacities of disk are less by {_bytes(missing.taken_off)}"
               if missing.taken_off else "")
            + (f", and {_bytes(missing.uncounted)} are not counted, for want of capacities"
               if missing.uncounted else "")
            + "; describe all topics, or add the others' description"
        )  # fmt: skip
    if missing.beyond:
        yield (
            "fewer replicas than min.insync.replicas in topics "
            f"{_some(missing.beyond, missing.beyond_count)}: Kafka asks for no more than there are"
        )
    if missing.loads:
        named = _some(missing.loads, missing.load_count)
        yield f"no description of topics that have loads ({named}): these are not counted"


def _bytes(held: Mapping[str, float]) -> str:
    """Write the bytes of all brokers together, and of those with the most."""
    order = sorted(held, key=lambda name: -held[name])
    each = [f"{amount(held[name])}B on {name}" for name in order]
    return f"{amount(sum(held.values()))}B ({_some(each)})"


def _some(names: Sequence[str], count: int | None = None) -> str:
    """Write the first names, and the number of others, of ``count`` in all."""
    return some_of(names, str, NAMED, count)


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions without given capacities: each broker has room for all replicas."""
    load = cluster.partitions.load
    room = room_for_all(cluster.placement.first, load.voter, load.leader)
    unlimited = np.isclose(cluster.nodes.capacity, room, rtol=1e-9).all(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(unlimited).tolist()]


def awaited(cluster: Cluster) -> Mapping[str, Mapping[str, float]]:
    """Return the capacities of brokers that only a file of capacities names."""
    return remembered(cluster).awaited


USUAL = {"level": 0.05, "leaders": 0.1}
"""Leaders serve clients, and a transfer moves no data: they are levelled as well."""

FORMAT = Format(
    name="kafka",
    summary="Kafka: reassignment, topic description, log dirs, racks and capacities",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_repairs=True,
    usual=lambda cluster: USUAL,
    left_out=left_out,
    uncapped=uncapped,
    awaited=awaited,
    stranded=(
        "Kafka copies from the leader, and no broker that is up is in sync: bring back one that "
        "was, or elect another at the loss of data (kafka-leader-election.sh --election-type "
        "unclean), and read again"
    ),
    hint=hint,
)
