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
from evenkeel.systems.kafka.reassignment import encode
from evenkeel.systems.kafka.untold import NAMED, Untold, remembered
from evenkeel.systems.kafka.waves import CARRIER
from evenkeel.systems.registry import Format

LISTED = "list the log dirs of all brokers, after the topics are described"
"""What tells the sizes that are missing."""


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what no file told, what comes of that, and what would tell it."""
    if "rack" not in cluster.topology.tiers:
        yield (
            "no racks: replicas of a partition may share one; add a file of racks, or what "
            "kafka-broker-api-versions.sh prints"
        )
    untold = remembered(cluster)
    if untold.filtered:
        yield (
            "no lines of topics, and partitions are missing: the listing is filtered, as by "
            "--under-replicated-partitions. What it leaves out is not counted, and a broker that "
            "shows no life in it may be up: describe all topics"
        )
    yield from _of_reassignments(untold)
    yield from _of_leads(cluster)
    yield from _of_brokers(cluster, untold)
    yield from _of_log_dirs(untold)
    if "disk" not in cluster.dimensions:
        yield (
            "no sizes: every replica counts the same, and bytes are not known; add what "
            "kafka-log-dirs.sh --describe prints"
        )
    for name, count in untold.unmeasured.items():
        what, told = (
            (name, "add them to the table of loads") if name != "disk" else ("size", LISTED)
        )
        yield (
            f"no {what} of {count:,} of {counted(len(cluster.partitions), 'partition')}: it counts "
            f"as 0; {told}"
        )
    yield from _of_topics(untold)
    alike = uncapped(cluster)
    if alike and (alike != [COUNT] or cluster.dimensions == (COUNT,)):
        told = " and ".join(alike)
        yield (
            f"no capacities of {told}: percentages are of what all brokers carry together, and "
            "nothing is too full; add a file of capacities"
        )
    if awaited := [name for name in untold.awaited if name not in cluster.nodes.names]:
        yield (
            f"nothing of brokers {_some(awaited)} but capacities: they are not counted; where they "
            "join, give them with --add-nodes"
        )
    for name, brokers in untold.uncapped.items():
        yield (
            f"no capacity of {name} of brokers {_some(brokers)}: they count as having room for "
            "all that there is; tell it as that of the others"
        )


def _of_leads(cluster: Cluster) -> Iterator[str]:
    """Yield which partitions another than the first of their lists leads for now."""
    placement, names = cluster.placement, cluster.partitions.names
    first = np.flatnonzero((placement.flags & Flag.PREFERRED) != 0)
    owner = placement.owner[first]
    waits = owner[placement.leader_node[owner] != placement.node[first]]
    if len(waits):
        named = _some([names[p] for p in waits[:NAMED].tolist()], len(waits))
        yield (
            f"no lead of the first broker in the list of {counted(len(waits), 'partition')} "
            f"({named}), though it is in sync: Kafka hands it back, by itself or by one election "
            "(kafka-leader-election.sh), and answers count that as a leader change"
        )


def _of_brokers(cluster: Cluster, untold: Untold) -> Iterator[str]:
    """Yield which brokers were taken to be up or down, where that still stands."""
    nodes, node = cluster.nodes, cluster.placement.node
    index = {name: n for n, name in enumerate(nodes.names)}
    empty = np.bincount(node[node >= 0], minlength=len(nodes)) == 0
    down = [name for name in untold.down if name in index and not nodes.alive[index[name]]]
    silent = [name for name in down if not empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which lead nothing and are in sync with "
            "no leader: they count as dead; what kafka-broker-api-versions.sh prints tells for "
            "certain"
        )
    silent = [name for name in down if empty[index[name]]]
    if silent:
        yield (
            f"no sign of life of brokers {_some(silent)}, which hold nothing: they count as dead; "
            "where they are controllers, that is right; where they are new, add what "
            "kafka-broker-api-versions.sh prints, or take them out of the racks and give them with "
            "--add-nodes"
        )
    up = [name for name in untold.up if name in index and nodes.alive[index[name]]]
    if up:
        yield (
            f"no sign of life of brokers {_some(up)}, which only join partitions, observe them or "
            "hold nothing that is listed: they count as up; what kafka-broker-api-versions.sh "
            "prints tells for certain"
        )
    if untold.controllers:
        yield (
            f"nothing placed on {_some(untold.controllers)}: their properties say that they are "
            "controllers and no brokers"
        )
    if untold.observers:
        yield (
            f"no difference between observers and other replicas, though {untold.observers:,} "
            "observe: a reassignment does not say who does; pin their topics, or place these by "
            "Confluent's own constraints"
        )


def _of_reassignments(untold: Untold) -> Iterator[str]:
    """Yield what is being reassigned, and which lists are too long."""
    if untold.reassigned:
        yield (
            f"no end of a reassignment of {counted(untold.reassigned_count, 'partition')} yet "
            f"({_some(untold.reassigned, untold.reassigned_count)}): each counts where that will "
            "leave it, and is in no order that is written; until it has ended, "
            "kafka-reassign-partitions.sh --execute refuses another one without --additional, and "
            "--list shows how it goes"
        )
    if untold.endless:
        yield (
            f"no end of the reassignment of {_some(untold.endless)} while the broker is down that "
            "is to join: cancel it, kafka-reassign-partitions.sh --cancel, and describe again"
        )
    if untold.longer:
        yield (
            "no replication factor that allows for the replicas of "
            f"{counted(untold.longer_count, 'partition')} "
            f"({_some(untold.longer, untold.longer_count)}): those that are in sync stay, others "
            "are dropped, not replaced"
        )


def _of_log_dirs(untold: Untold) -> Iterator[str]:
    """Yield which log directories could not be read, and what was in them."""
    for broker, errors in untold.failed.items():
        lost = untold.offline.get(broker, [])
        held = f"{counted(len(lost), 'replica')}{f' ({_some(lost)})' if lost else ''}"
        yield (
            f"no access to log directory {_errors(errors)} on broker {broker}: {held} of it, in "
            "none of its others and not in sync, must move, and it takes no more"
        )
    for broker, errors in untold.unread.items():
        yield (
            f"no list of log directory {_errors(errors)} on broker {broker}: sizes may be missing"
        )


def _errors(errors: Mapping[str, str]) -> str:
    """Name log directories with the reason, without the package of a class."""
    return _some([
        f"{folder or 'of no name'} ({error.split(':')[0].rpartition('.')[2]})"
        for folder, error in errors.items()
    ])  # fmt: skip


def _of_topics(untold: Untold) -> Iterator[str]:
    """Yield what other files hold of topics that are described nowhere."""
    named = _some(untold.topics, untold.topic_count)
    if untold.topics:
        yield (
            f"no description of topics that log dirs hold ({named}): they stay where they are"
            + (f", and capacities of disk are less by {_bytes(untold.taken_off)}"
               if untold.taken_off else "")
            + (f", and {_bytes(untold.uncounted)} are not counted, for want of capacities"
               if untold.uncounted else "")
            + "; describe all topics, or add the others' description"
        )  # fmt: skip
    if untold.loads:
        named = _some(untold.loads, untold.load_count)
        yield f"no description of topics that have loads ({named}): these are not counted"


def _bytes(held: Mapping[str, float]) -> str:
    """Write the bytes of all brokers together, and of the most laden of them."""
    order = sorted(held, key=lambda name: -held[name])
    each = [f"{amount(held[name])}B on {name}" for name in order]
    return f"{amount(sum(held.values()))}B ({_some(each)})"


def _some(names: Sequence[str], count: int | None = None) -> str:
    """Write the first of some names; there may be more than were remembered."""
    return some_of(names, str, NAMED, count)


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions in which every broker has the room of all replicas: none was told."""
    load = cluster.partitions.load
    room = room_for_all(cluster.placement.first, load.voter, load.leader)
    unlimited = np.isclose(cluster.nodes.capacity, room, rtol=1e-9).all(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(unlimited).tolist()]


def awaited(cluster: Cluster) -> Mapping[str, Mapping[str, float]]:
    """Return the capacities of brokers that only a file of capacities names."""
    return remembered(cluster).awaited


FORMAT = Format(
    name="kafka",
    summary="Kafka: reassignment, topic description, log dirs, racks and capacities",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    keeps_mended=True,
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
