"""What Kafka's files may tell and did not, for whoever takes an answer for the whole truth."""

from collections.abc import Iterator, Sequence

import numpy as np

from evenkeel.formats.kafka.cluster import COUNT, room_for_all
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import some_of

NAMED = 8
"""Brokers that are named one by one; the rest is counted."""


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what no file told, what comes of that, and what would tell it."""
    if "rack" not in cluster.topology.tiers:
        yield (
            "no racks: replicas of a partition may share one; add a file of racks, or what "
            "kafka-broker-api-versions.sh prints"
        )
    node = cluster.placement.node
    empty = np.bincount(node[node >= 0], minlength=len(cluster.nodes)) == 0
    silent = np.flatnonzero(empty & ~cluster.nodes.serves).tolist()
    if silent:
        named = some_of(silent, cluster.nodes.names.__getitem__, NAMED)
        yield (
            f"no sign of life of brokers {named}, which hold nothing: they count as dead; "
            "where they are new, add what kafka-broker-api-versions.sh prints, or take them out of "
            "the racks and give them with --add-nodes"
        )
    if "disk" not in cluster.dimensions:
        yield (
            "no sizes: every replica counts the same, and bytes are not known; add what "
            "kafka-log-dirs.sh --describe prints"
        )
    alike = uncapped(cluster)
    if alike and (alike != [COUNT] or cluster.dimensions == (COUNT,)):
        told = " and ".join(alike)
        yield (
            f"no capacities of {told}: percentages are of what all brokers carry together, and "
            "nothing is too full; add a file of capacities"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions in which every broker has the room of all replicas: none was told."""
    load = cluster.partitions.load
    room = room_for_all(cluster.placement.first, load.voter, load.leader)
    unlimited = np.isclose(cluster.nodes.capacity, room, rtol=1e-9).all(axis=0)
    return [cluster.dimensions[d] for d in np.flatnonzero(unlimited).tolist()]
