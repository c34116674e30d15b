"""Elasticsearch and OpenSearch: what their APIs print, in; commands of a reroute, out.

References
----------
Elasticsearch, ``_cat/shards``, ``_cat/allocation``, ``_nodes``, cluster and index settings,
``_cluster/reroute``; OpenSearch has the same.
"""

from evenkeel.formats.elasticsearch.cluster import read
from evenkeel.formats.elasticsearch.documents import hint, recognises
from evenkeel.formats.elasticsearch.notices import left_out
from evenkeel.formats.elasticsearch.output import encode
from evenkeel.formats.elasticsearch.waves import CARRIER
from evenkeel.formats.registry import Format

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
