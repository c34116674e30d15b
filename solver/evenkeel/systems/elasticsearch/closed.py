"""Nodes that a shard may not come to, though it may stay: what Elasticsearch's deciders refuse."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.elasticsearch.documents import Findings
from evenkeel.systems.elasticsearch.rules import AWARE, SAME_HOST
from evenkeel.systems.elasticsearch.settings import PARTIAL, DataNode, is_everywhere, is_true, words
from evenkeel.systems.elasticsearch.shards import Shard

WITHOUT_WATERMARKS = (PARTIAL, "index.routing.allocation.disk.watermark.ignore")
"""Settings of indices that no watermark is asked for."""


class Held(NamedTuple):
    """Where copies of shards are, or go."""

    first: NDArray[np.int64]
    """(P + 1,)"""

    node: NDArray[np.int64]
    """(K,), -1 for none; the primary of each shard first."""


def closed_pairs(
    found: Findings,
    shards: Sequence[Shard],
    nodes: Sequence[DataNode],
    held: Held,
    above: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return pairs of a shard and a node that it may not come to, (F, 2)."""
    parts = [
        _product(_asking(found, shards), np.flatnonzero(above)),
        _without_places(found, shards, nodes),
        _on_hosts(found, shards, nodes, held),
        _older(found, nodes, held),
    ]
    pairs = np.concatenate(parts)
    p = np.repeat(np.arange(len(shards)), np.diff(held.first))
    there = held.node >= 0
    shut = np.setdiff1d(
        pairs[:, 0] * len(nodes) + pairs[:, 1], p[there] * len(nodes) + held.node[there]
    )
    return np.stack(np.divmod(shut, max(len(nodes), 1)), 1).astype(np.int32)


def _product(partitions: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([np.repeat(partitions, len(nodes)), np.tile(nodes, len(partitions))], 1)


def _asking(found: Findings, shards: Sequence[Shard]) -> NDArray[np.int64]:
    """Return the shards that watermarks are asked for."""
    ignoring = {
        index
        for index, settings in found.indices.items()
        if any(is_true(settings, name, False) for name in WITHOUT_WATERMARKS)
    }
    return np.array([p for p, shard in enumerate(shards) if shard.of not in ignoring], np.int64)


def _without_places(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> NDArray[np.int64]:
    """Close all nodes where awareness asks for an attribute that none of them has."""
    asked = words(found.cluster.get(f"{AWARE}attributes", ("", ""))[1])
    if not found.nodes or all(any(node.values(one) for node in nodes) for one in asked):
        return np.zeros((0, 2), np.int64)
    bound = [p for p, one in enumerate(shards) if not is_everywhere(found.indices.get(one.of, {}))]
    return _product(np.array(bound, np.int64), np.arange(len(nodes)))


def _on_hosts(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], held: Held
) -> NDArray[np.int64]:
    """Close the other nodes of hosts that have a copy: not even that copy may go there."""
    none = np.zeros((0, 2), np.int64)
    if not is_true(found.cluster, SAME_HOST, False):
        return none
    hosts: dict[str, list[int]] = {}
    for n, node in enumerate(nodes):
        hosts.setdefault(node.host or node.ip, []).append(n)
    shared = {n: own for own in hosts.values() if len(own) > 1 for n in own}
    if not shared:
        return none
    found.notes.append(
        f"that {SAME_HOST} is true: Elasticsearch then refuses to move a shard to another node of "
        "its own host, too, so no such move is planned; it can while the setting is false"
    )
    pairs = []
    for p, shard in enumerate(shards):
        if is_everywhere(found.indices.get(shard.of, {})):
            continue
        for n in held.node[held.first[p] : held.first[p + 1]].tolist():
            pairs += [(p, other) for other in shared.get(n, ())]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _older(found: Findings, nodes: Sequence[DataNode], held: Held) -> NDArray[np.int64]:
    """Close nodes of an older release than that of a shard's primary."""
    versions = sorted({node.version for node in nodes if node.version})
    parts = [np.zeros((0, 2), np.int64)]
    if len(versions) < 2:
        return parts[0]
    told = [".".join(map(str, version)) for version in versions]
    found.notes.append(
        f"that nodes are of several releases, {some_of(told, printable)}: no shard goes to a node "
        "older than that of its primary"
    )
    rank = np.array(
        [versions.index(node.version) if node.version else len(versions) for node in nodes]
    )
    some = np.flatnonzero(np.diff(held.first) > 0)
    primary = held.node[held.first[some]]
    some, primary = some[primary >= 0], primary[primary >= 0]
    for level in range(1, len(versions)):
        newer = some[rank[primary] == level]
        parts.append(_product(newer, np.flatnonzero(rank < level)))
    return np.concatenate(parts)
