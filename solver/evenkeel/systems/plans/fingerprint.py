"""Fingerprint: by which a plan knows the cluster that it was made for."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Rule
from evenkeel.systems.native.arguments import RuleDocument, arguments_of


def fingerprint(cluster: Cluster) -> str:
    """Return a digest of all that a cluster says, its payload of another system apart.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    >>> fingerprint(c) == fingerprint(c.replace()) != fingerprint(c.down("n0"))
    True
    """
    digest = blake2b(digest_size=16)
    given = arguments_of(replace(cluster, native=None, native_format=""))
    # names that are counted up are the same as those that are listed
    given["node_names"] = list(cluster.nodes.names)
    given["partition_names"] = list(cluster.partitions.names)
    given["group_names"] = list(cluster.partitions.group_names)
    # nor does it matter that nothing is said of the domains of a tier that has none
    shared = given.pop("tier_capacity", {})
    given["tier_capacity"] = {tier: table for tier, table in shared.items() if len(table)}
    for name in sorted(given):
        for part in (name, *_parts(given[name])):
            digest.update(part if isinstance(part, bytes) else part.encode("utf-8", "replace"))
            digest.update(b"\1")
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[str | bytes]:
    """Yield what tells a value of an argument from others."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _parts(inner)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}"
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list) and {*map(type, value)} == {str}:
        # what is yielded one by one is divided by the same sign
        yield "\1".join(value)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _parts(inner)
    else:
        yield msgspec.json.encode(RuleDocument.of(value)) if isinstance(value, Rule) else str(value)
