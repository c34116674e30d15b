"""What answers of Elasticsearch's APIs would tell and are not there, and what is made of that."""

from collections.abc import Iterator

from evenkeel.model.cluster import Cluster

MISSING = {
    "nodes": "no roles and attributes of nodes: any node may hold any shard; add _nodes",
    "index settings": (
        "no settings of indices: their filters and tiers are not kept; add _all/_settings"
    ),
    "cluster settings": (
        "no settings of the cluster: no awareness and no filters, and the usual watermarks; add "
        "_cluster/settings?include_defaults=true"
    ),
    "allocation": "no room of disks: they count as large enough; add _cat/allocation",
}
"""What is not known without each kind of answer."""


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield what no answer told, what comes of that, and what would tell it."""
    native = cluster.native
    if isinstance(native, dict) and isinstance(native.get("answers"), list):
        yield from (told for kind, told in MISSING.items() if kind not in native["answers"])
