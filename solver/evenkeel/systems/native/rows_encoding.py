"""A cluster as a document of row-wise JSON."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.systems.json_text import encode_json
from evenkeel.systems.native.arguments import Arguments, RuleDocument, arguments_of
from evenkeel.systems.native.rows_documents import (
    LOADS,
    NAME,
    NODE_FIELDS,
    PARTITION_FIELDS,
    ClusterRows,
    GroupRow,
    NeedRow,
    NodeRow,
    PartitionRow,
    SharedCapacity,
)


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the content of one row-wise JSON document."""
    if placement is not None:
        cluster = cluster.with_placement(placement)
    given = arguments_of(cluster)
    tiers = (*cluster.topology.tiers, "node")
    groups = cluster.partitions.group_names
    rows = ClusterRows(
        format=NAME,
        version=1,
        dimensions=list(cluster.dimensions),
        nodes=_node_rows(cluster, given),
        partitions=_partition_rows(cluster, given),
        groups=[
            GroupRow(name, rule)
            for name, rule in zip(groups, cluster.partitions.group_rule.tolist(), strict=True)
        ],
        tiers=list(cluster.topology.tiers),
        crossing=given.get("crossing", []),
        tags=list(cluster.nodes.tags),
        attributes=list(cluster.nodes.attributes),
        tier_capacity=[
            SharedCapacity(tier, cluster.nodes.names[int(np.argmax(domain == d))], row)
            for tier, table in cluster.topology.tier_capacity.items()
            for domain in [cluster.topology.domain[cluster.topology.tier_index(tier)]]
            for d, row in enumerate(_listed(table))
        ],
        tier_distance=given["tier_distance"].tolist() if "tier_distance" in given else None,
        rules=[RuleDocument.of(rule) for rule in cluster.rules],
        transient=given.get("transient", []),
        bytes=given.get("bytes"),
        depends=[
            NeedRow(groups[a], groups[b], tiers[row]) for a, b, row in cluster.depends.tolist()
        ],
        native=given.get("native"),
        native_format=given.get("native_format", ""),
    )
    return {path: encode_json(rows)}


def _node_rows(cluster: Cluster, given: Arguments) -> list[NodeRow]:
    nodes = cluster.nodes
    count = len(nodes)
    domains = {k: _labels_listed(v) for k, v in given.get("domains", {}).items()}
    attributes = {k: _labels_listed(v) for k, v in given.get("attributes", {}).items()}
    columns = {key: given[key].tolist() for key in NODE_FIELDS if key in given}
    watermark = _listed(nodes.watermark) if "watermark" in given else [None] * count
    capacity, since = _listed(nodes.capacity), _listed(nodes.since)
    stands_for = [None if n < 0 else nodes.names[n] for n in nodes.stands_for.tolist()]
    return [
        NodeRow(
            name=nodes.names[i],
            capacity=capacity[i],
            domains={k: at[i] for k, at in domains.items() if at[i] is not None},
            watermark=watermark[i],
            since=since[i],
            stands_for=stands_for[i],
            tags=[tag for tag, at in nodes.tags.items() if at[i]],
            attributes={k: at[i] for k, at in attributes.items() if at[i] is not None},
            **{key: column[i] for key, column in columns.items()},
        )
        for i in range(count)
    ]


def _partition_rows(cluster: Cluster, given: Arguments) -> list[PartitionRow]:
    partitions, placement = cluster.partitions, cluster.placement
    node_names = [*cluster.nodes.names, None]
    group_names, names = list(partitions.group_names), list(partitions.names)
    disabled: dict[int, list[str]] = {}
    for p, n in cluster.forbidden.tolist():
        disabled.setdefault(p, []).append(cluster.nodes.names[n])
    first = placement.first.tolist()
    nodes = [node_names[n] for n in placement.node.tolist()]
    roles: Any = None
    flags: Any = None
    if "role" in given:
        role_names = [role.name.lower() for role in Role]
        roles = [role_names[r] for r in placement.role.tolist()]
    if "flags" in given:
        flags = flags_listed(placement.flags)
    columns = {key: given[key].tolist() for key in (*LOADS, *PARTITION_FIELDS) if key in given}
    if cluster.rules:
        columns["rule"] = partitions.rule.tolist()
    leader, wanted = placement.leader.tolist(), partitions.replicas.tolist()
    voters, group = partitions.voters.tolist(), partitions.group.tolist()
    attached = partitions.attached.tolist()
    return [
        PartitionRow(
            name=names[p],
            nodes=nodes[start:end],
            leader=leader[p],
            roles=None if roles is None else roles[start:end],
            flags=None if flags is None else flags[start:end],
            replicas=None if wanted[p] == end - start else wanted[p],
            voters=voters[p] if "voters" in given else None,
            group=group_names[group[p]],
            attached=node_names[attached[p]],
            forbidden=disabled.get(p),
            **{key: column[p] for key, column in columns.items()},
        )
        for p, (start, end) in enumerate(pairwise(first))
    ]


def flags_listed(flags: NDArray[np.integer]) -> list[list[str]]:
    """Return the names of the flags that are set in each mask; equal masks share a list."""
    bits = {flag.name.lower(): int(flag) for flag in Flag if flag.name}
    masks = np.unique(flags).tolist()
    named = {mask: [name for name, bit in bits.items() if bit & mask] for mask in masks}
    return [named[mask] for mask in flags.tolist()]


def _listed(array: NDArray[Any]) -> list[Any]:
    """Return numbers as nested lists in which what JSON has no word for, inf and NaN, is None."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        finite = np.isfinite(array)
        array = array.astype(object)
        array[~finite] = None
    values: list[Any] = array.tolist()
    return values


def _labels_listed(array: NDArray[Any]) -> list[Any]:
    """Return labels as a list in which a missing one ("" or -1) is None."""
    none = "" if array.dtype.kind == "U" else -1
    return [None if label == none else label for label in array.tolist()]
