"""What Kafka's files may tell and did not, for whoever takes an answer for the whole truth."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenkeel.formats.kafka.cluster import COUNT, room_for_all
from evenkeel.formats.kafka.untold import NAMED, Untold, remembered
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.figures import amount
from evenkeel.model.runtime.printable import counted, some_of

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
    yield from _of_brokers(cluster, untold)
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
    for name, brokers in untold.uncapped.items():
        yield (
            f"no capacity of {name} of brokers {_some(brokers)}: they count as having room for "
            "all that there is; tell it as that of the others"
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
            "where they are new, add what kafka-broker-api-versions.sh prints, or take them out of "
            "the racks and give them with --add-nodes"
        )
    up = [name for name in untold.up if name in index and nodes.alive[index[name]]]
    if up:
        yield (
            f"no sign of life of brokers {_some(up)}, which only join partitions or observe them: "
            "they count as up; what kafka-broker-api-versions.sh prints tells for certain"
        )
    if untold.observers:
        yield (
            f"no difference between observers and other replicas, though {untold.observers:,} "
            "observe: a reassignment does not say who does; pin their topics, or place these by "
            "Confluent's own constraints"
        )


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
