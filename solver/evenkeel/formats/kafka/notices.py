"""What Kafka's files may tell and did not, for whoever takes an answer for the whole truth."""

from collections.abc import Iterator

import numpy as np

from evenkeel.formats.kafka.cluster import COUNT
from evenkeel.model.cluster import Cluster


def left_out(cluster: Cluster) -> list[str]:
    """Return what no file told, what comes of that, and what would tell it."""
    return [*_missing(cluster)]


def _missing(cluster: Cluster) -> Iterator[str]:
    if "rack" not in cluster.topology.tiers:
        yield (
            "no racks: replicas of a partition may share one; add a file of racks, or what "
            "kafka-broker-api-versions.sh prints"
        )
    if "disk" not in cluster.dimensions:
        yield (
            "no sizes: every replica counts the same, and bytes are not known; add what "
            "kafka-log-dirs.sh --describe prints"
        )
    alike = [name for d, name in enumerate(cluster.dimensions) if _of_all(cluster, d)]
    if alike and (alike != [COUNT] or cluster.dimensions == (COUNT,)):
        told = " and ".join(alike)
        yield (
            f"no capacities of {told}: percentages are of what all brokers carry together, and "
            "nothing is too full; add a file of capacities"
        )


def _of_all(cluster: Cluster, d: int) -> bool:
    """Whether each broker has room for all there is, as the reader takes it where none is told."""
    of_role = cluster.partitions.load
    most = np.maximum(of_role.leader[:, d], of_role.voter[:, d])
    everything = max(float(np.diff(cluster.placement.first) @ most), 1.0)
    capacity = cluster.nodes.capacity[:, d]
    return bool(np.isclose(capacity, everything, rtol=1e-9).all())
