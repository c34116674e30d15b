"""What Ceph's files may tell and did not, for whoever takes an answer for the whole truth."""

from collections.abc import Iterator

from evenkeel.model.cluster import Cluster


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what no file told, what comes of that, and what would tell it."""
    load = cluster.partitions.load.voter
    if len(load) and (load == 1.0).all():
        yield (
            "no sizes: every placement group counts as one byte, and bytes are numbers of "
            "replicas; add what ceph pg dump -f json prints"
        )
