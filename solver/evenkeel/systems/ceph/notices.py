"""What Ceph's files left open and what is left alone, for those who take an answer for all."""

from collections.abc import Iterator, Sequence

from evenkeel.model.cluster import Cluster
from evenkeel.systems.notes import noted


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what no file told, what comes of that, and what would tell it."""
    yield from noted(cluster.native)
    if uncapped(cluster):
        yield (
            "no sizes: every placement group counts as one byte, and bytes are numbers of "
            "replicas; add what ceph pg dump -f json prints"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimension, bytes, where no sizes were told: devices have room by their weight."""
    load = cluster.partitions.load.voter
    return cluster.dimensions if len(load) and (load == 1.0).all() else ()
