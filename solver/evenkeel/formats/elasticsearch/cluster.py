"""The answers put together: nodes that hold data, indices as groups, shards as partitions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenkeel.formats.documents import Document, quoted
from evenkeel.formats.elasticsearch.columns import Row
from evenkeel.formats.elasticsearch.documents import Findings, amount, gather
from evenkeel.formats.elasticsearch.rules import rules_of
from evenkeel.formats.elasticsearch.settings import SEARCH, DataNode, allowed, room, whole
from evenkeel.formats.elasticsearch.shards import Shard, ends, shards_of
from evenkeel.formats.native.arguments import build
from evenkeel.formats.sources import largest
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Amount

NAME = "elasticsearch"
COUNT = "shards"
"""The dimension that counts shards; their sizes are ``disk``, in bytes."""

CAUGHT_UP, INCOMING = int(Flag.CAUGHT_UP), int(Flag.INCOMING)


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from the answers of its APIs, of which ``_cat/shards`` must be one.

    ``spread`` replaces the rules that the awareness attributes make.

    Raises
    ------
    InvalidInput
        Naming every problem with file, place and value: truncated answers, shards on nodes that
        another file should know and does not, copies that come twice.
    """
    faults = FaultList()
    found = gather(faults, documents)
    if not (found.shards or faults):
        listed = [document.name for document in documents]
        faults.add("source", listed, "needs the answer of _cat/shards")
    nodes = _nodes(found)
    place = {node.name: n for n, node in enumerate(nodes)}
    shards = shards_of(found)
    indices = list(dict.fromkeys(shard.of for shard in shards))
    group = {index: g for g, index in enumerate(indices)}
    given: dict[str, Any] = {
        "node_names": [node.name for node in nodes],
        "partition_names": [f"{shard.of}/{shard.number}" for shard in shards],
        "group": np.array([group[shard.of] for shard in shards], np.int64),
        "group_names": indices,
        "native_format": NAME,
        "native": {"shards": found.shards, "answers": sorted(found.kinds)},
    }
    given |= _placement(found, shards, place)
    if any(node.searches for node in nodes):
        given |= _roles(found, shards)
    given |= _amounts(found, shards, nodes, place)
    given |= _states(found, nodes)
    given |= rules_of(found, shards, indices, nodes, spread)
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _nodes(found: Findings) -> list[DataNode]:
    """Return the nodes that hold data, by name: those of ``_nodes``, or else all that are named."""
    if found.nodes:
        known = {node.name: DataNode.of(key, node) for key, (_, node) in found.nodes.items()}
        return [node for _, node in sorted(known.items()) if node.holds]
    searching = _searching(found)
    named: dict[str, DataNode] = {}
    seen: set[str | None] = set()
    for row in (*(row for _, row in found.allocation), *found.shards):
        if row.get("node") in seen:
            continue
        seen.add(row.get("node"))
        for name, key, ip in ends(row):
            if name and name != "UNASSIGNED" and name not in named:
                roles = frozenset({SEARCH}) if name in searching else None
                named[name] = DataNode(name, key, row.get("host") or "", ip, roles)
    return sorted(named.values(), key=lambda node: node.name)


def _searching(found: Findings) -> set[str]:
    """Return the nodes that hold search replicas and nothing else, as those of that role do."""
    held: dict[bool, set[str]] = {True: set(), False: set()}
    for row in found.shards:
        held[row.get("prirep") == "s"].update(name for name, _, _ in ends(row))
    return held[True] - held[False]


def _placement(
    found: Findings, shards: Sequence[Shard], place: Mapping[str, int]
) -> dict[str, Any]:
    """Return the copies of each shard, those on their way to another node already there."""
    node: list[int] = []
    flags: list[int] = []
    leader, wanted = [], []
    for shard in shards:
        own: list[int] = []
        begin = len(flags)
        for i in shard.rows:
            n, flag = _copy(found, i, place)
            if n >= 0 and n in own:
                message = f"holds a copy of {shard.of}/{shard.number} already"
                found.faults.add(
                    f"{found.shard_at(i)}.node", quoted(found.shards[i]["node"]), message
                )
            own.append(n)
            flags.append(flag)
        led = bool(own) and own[0] >= 0 and found.shards[shard.rows[0]]["prirep"] == "p"
        node += own
        leader.append(0 if led else -1)
        # without its primary there is nothing to make copies of, and what is missing stays so
        if not led:
            flags[begin:] = [one | int(MARKS) for one in flags[begin:]]
        wanted.append(len(own))
    first = np.concatenate([[0], np.cumsum([len(shard.rows) for shard in shards])])
    return {
        "placement": np.array(node, np.int64),
        "first": first.astype(np.int64),
        "leader": np.array(leader, np.int64),
        "flags": np.array(flags, np.int64),
        "replicas": np.array(wanted, np.int64),
    }


def _roles(found: Findings, shards: Sequence[Shard]) -> dict[str, Any]:
    """Return which copies never lead, since all that they do is search."""
    role = [
        Role.NON_VOTER if found.shards[i]["prirep"] == "s" else Role.VOTER
        for shard in shards
        for i in shard.rows
    ]
    may_lead = [sum(found.shards[i]["prirep"] != "s" for i in shard.rows) for shard in shards]
    return {"role": np.array(role, np.uint8), "voters": np.array(may_lead, np.int64)}


def _copy(found: Findings, i: int, place: Mapping[str, int]) -> tuple[int, int]:
    """Return the node of a copy, -1 for none, and what is known of the copy."""
    row = found.shards[i]
    state, name = row.get("state"), row.get("node")
    if not name:
        if state in ("STARTED", "RELOCATING", "INITIALIZING"):
            message = f"is missing from a shard that is {state}"
            found.faults.add(f"{found.shard_at(i)}.node", None, message)
        return -1, 0
    if state == "STARTED" and name in place:
        return place[name], CAUGHT_UP
    own = ends(row)
    target = own[-1][0]
    if target not in place:
        message = "is not a node that holds data, by _nodes"
        found.faults.add(f"{found.shard_at(i)}.node", quoted(target), message)
        return -1, 0
    arrives = len(own) > 1 or state == "INITIALIZING"
    return place[target], INCOMING if arrives else CAUGHT_UP


def _amounts(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], place: Mapping[str, int]
) -> dict[str, Any]:
    """Return the sizes of shards, and what nodes have room for below the watermarks."""
    stored = [row.get("store") for row in found.shards]
    sizes = np.zeros(len(shards))
    standing: dict[str, float] = {}
    for p, shard in enumerate(shards):
        # copies that are being made are smaller for a while: the largest tells the size
        for i in shard.rows:
            text = stored[i]
            if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 19):
                size = amount(found.faults, f"{found.shard_at(i)}.store", text)
            else:
                size = float(text or 0)
            sizes[p] = max(sizes[p], size)
            name = ends(found.shards[i])[0][0]
            standing[name] = standing.get(name, 0.0) + size
    copies = [len(shard.rows) for shard in shards]
    measured = bool(found.allocation) or bool(sizes.any())
    load = np.ones((len(shards), 1 + measured))
    if measured:
        load[:, 1] = sizes
    # nothing limits these, yet a node can be level only against some capacity
    everything = np.maximum(np.array(copies, np.float64) @ load, 1.0) if shards else load.sum(0) + 1
    capacity = np.tile(everything, (len(nodes), 1))
    watermark = np.full(capacity.shape, np.inf)
    seen: dict[str, str] = {}
    for at, row in found.allocation:
        name = row.get("node") or ""
        if name in ("", "UNASSIGNED"):
            continue
        if name in seen:
            found.faults.add(f"{at}.node", quoted(name), f"is already given at {seen[name]}")
        seen.setdefault(name, at)
        if name not in place:
            if found.nodes and all(node.name != name for _, node in found.nodes.values()):
                found.faults.add(f"{at}.node", quoted(name), "is not a node, by _nodes")
            continue
        total, others = _disk(found, at, row, standing.get(name, 0.0))
        if total:
            high, low = (room(found, kind, total) for kind in ("high", "low"))
            capacity[place[name], 1] = max(high - others, 0.0)
            watermark[place[name], 1] = max(low - others, 0.0)
    return {
        "dimensions": [COUNT, "disk"][: 1 + measured],
        "load": load,
        "capacity": capacity,
        "watermark": watermark,
        "bytes": "disk" if measured else None,
    }


def _disk(found: Findings, at: str, row: Row, standing: float) -> tuple[float, float]:
    """Return how large a disk is, 0 for unknown, and how much there is no shard's.

    What is not told follows from the rest; ``standing`` is the size of the shards listed there.
    """
    told = {
        key: amount(found.faults, f"{at}.disk.{key}", row.get(f"disk.{key}"))
        for key in ("total", "used", "avail", "indices")
    }
    total = told["total"] or (told["used"] + told["avail"] if told["avail"] else 0.0)
    used = told["used"] if row.get("disk.used") else total - told["avail"]
    if not row.get("disk.avail") and not row.get("disk.used"):
        used = 0.0
    own = told["indices"] if row.get("disk.indices") else standing
    return total, max(used - own, 0.0)


def _states(found: Findings, nodes: Sequence[DataNode]) -> dict[str, Any]:
    """Return what nodes may do: filters of the cluster and shutdowns drain them."""
    leave = ~allowed(found.cluster, "cluster.routing.allocation.", nodes)
    accepts = ~leave
    place = {node.key: n for n, node in enumerate(nodes)}
    for at, one in found.shutdown:
        if one.node_id in place:
            n = place[one.node_id]
            accepts[n] = False
            leave[n] |= one.type.upper() in ("REMOVE", "REPLACE", "SIGTERM")
        elif one.node_id not in found.nodes:
            found.faults.add(f"{at}.node_id", quoted(one.node_id), "is not a node, by _nodes")
    most = whole(found.faults, found.cluster, "cluster.routing.allocation.total_shards_per_node")
    return {
        "accepts": accepts,
        "keeps": ~leave,
        "max_replicas": np.full(len(nodes), most if most > 0 else -1),
    }
