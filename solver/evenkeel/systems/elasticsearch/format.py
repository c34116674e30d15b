"""Elasticsearch and OpenSearch: what their APIs print, in; commands of a reroute, out.

References
----------
Elasticsearch, ``_cat/shards``, ``_cat/allocation``, ``_nodes``, cluster and index settings,
``_cluster/reroute``; OpenSearch has the same.
"""

from evenkeel.systems.elasticsearch.cluster import read
from evenkeel.systems.elasticsearch.documents import hint, recognises
from evenkeel.systems.elasticsearch.notices import left_out
from evenkeel.systems.elasticsearch.output import encode
from evenkeel.systems.elasticsearch.waves import CARRIER
from evenkeel.systems.registry import Format

FORMAT = Format(
    name="elasticsearch",
    summary="Elasticsearch, OpenSearch: _cat/shards and _cat/allocation, _nodes, settings",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
    stranded="copies are made of the primary, and these shards have none: bring back a node that "
    "holds a copy, restore a snapshot, or give data up by allocate_stale_primary or "
    "allocate_empty_primary of _cluster/reroute, and read again",
)
