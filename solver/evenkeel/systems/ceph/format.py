"""The Ceph format: read the output of its tools, write commands for them.

References
----------
Ceph, ``ceph osd dump``, ``osd tree``, ``osd df``, ``pg dump`` and ``osd crush dump`` with
``-f json``; ``crushtool --decompile``; ``osdmaptool --upmap``.
"""

from collections.abc import Iterator, Sequence

from evenkeel.measure.audit import audit
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.systems.ceph.cluster import read
from evenkeel.systems.ceph.commands import encode
from evenkeel.systems.ceph.crush.cluster import FORMAT as NAME
from evenkeel.systems.ceph.documents import kind_of
from evenkeel.systems.ceph.waves import CARRIER
from evenkeel.systems.notes import noted
from evenkeel.systems.registry import Format


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield the missing inputs, their effect, and the commands that print them."""
    yield from noted(cluster.native)
    if uncapped(cluster):
        yield (
            "no sizes: every placement group counts as one byte, and bytes are numbers of "
            "replicas; add what ceph pg dump -f json prints"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimension, bytes, where no sizes are known: capacities follow the weights."""
    load = cluster.partitions.load.voter
    return cluster.dimensions if len(load) and (load == 1.0).all() else ()


def usual(cluster: Cluster) -> dict[str, str]:
    """Return Ceph's own method where groups are only to be levelled, nothing repaired."""
    nodes, placement = cluster.nodes, cluster.placement
    settled = nodes.may_receive[placement.node].all() and not (placement.flags & Flag.PINNED).any()
    if (placement.node < 0).any() or not settled or audit(cluster, placement).hard:
        return {}
    return {"method": "ceph_upmap"}


FORMAT = Format(
    name=NAME,
    summary="Ceph: osd tree and osd df as JSON; osd dump, pg dump and the CRUSH map as JSON or "
    "text; pg-upmap-items commands",
    suffixes=(".sh",),
    recognises=kind_of,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    uncapped=uncapped,
    usual=usual,
    stranded="too few devices that hold their data are up for these placement groups to serve: "
    "bring one back (ceph pg PGID query names those it waits for), and read again",
)
