"""The answers put together: nodes that hold data, indices as groups, shards as partitions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evenkeel.formats.documents import Document, quoted
from evenkeel.formats.elasticsearch.columns import Row
from evenkeel.formats.elasticsearch.documents import Findings, amount, gather
from evenkeel.formats.elasticsearch.settings import (
    DataNode,
    allowed,
    is_true,
    of_kind,
    room,
    whole,
    words,
)
from evenkeel.formats.expressions import word
from evenkeel.formats.native.arguments import build
from evenkeel.formats.sources import largest
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount, Rule

NAME = "elasticsearch"
COUNT = "shards"
"""The dimension that counts shards; their sizes are ``disk``, in bytes."""

AWARE = "cluster.routing.allocation.awareness."
RELOCATING = re.compile(r"(.*) -> (\S*) (\S*) (.*)", re.DOTALL)
KINDS = frozenset("prs")
"""Primary, replica, and a replica that only searches."""

CAUGHT_UP, INCOMING = int(Flag.CAUGHT_UP), int(Flag.INCOMING)


class Shard(NamedTuple):
    """The copies of one shard, the primary first, by their rows in the table."""

    of: str
    """Its index."""

    number: int
    rows: list[int]


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
    shards = _shards(found)
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
    given |= _amounts(found, shards, nodes, place)
    given |= _states(found, nodes)
    given |= _rules(found, shards, indices, nodes, spread)
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _nodes(found: Findings) -> list[DataNode]:
    """Return the nodes that hold data, by name: those of ``_nodes``, or else all that are named."""
    if found.nodes:
        known = {node.name: DataNode.of(key, node) for key, (_, node) in found.nodes.items()}
        return [node for _, node in sorted(known.items()) if node.holds]
    named: dict[str, DataNode] = {}
    seen: set[str | None] = set()
    for row in (*(row for _, row in found.allocation), *found.shards):
        if row.get("node") in seen:
            continue
        seen.add(row.get("node"))
        for name, key, ip in _ends(row):
            if name and name != "UNASSIGNED" and name not in named:
                named[name] = DataNode(name, key, row.get("host") or "", ip)
    return sorted(named.values(), key=lambda node: node.name)


def _ends(row: Row) -> list[tuple[str, str, str]]:
    """Return name, id and address of the node that holds a shard, and of the one it moves to."""
    text, key, address = row.get("node") or "", row.get("id") or "", row.get("ip") or ""
    # who asked for no column of states told none
    moving = RELOCATING.fullmatch(text) if row.get("state") in (None, "RELOCATING") else None
    if moving is None:
        return [(text, key, address)]
    return [(moving[1], key, address), (moving[4], moving[3], moving[2])]


def _shards(found: Findings) -> list[Shard]:
    """Return all shards by index and number, the primary of each first."""
    shards: dict[tuple[str, int], Shard] = {}
    for i, row in enumerate(found.shards):
        index, text, kind = row.get("index"), row.get("shard") or "", row.get("prirep")
        if not index:
            found.faults.add(f"{found.shard_at(i)}.index", None, "is missing")
        elif not (text.isascii() and text.isdecimal() and len(text) <= 9):
            message = "must be the number of a shard"
            found.faults.add(f"{found.shard_at(i)}.shard", quoted(text), message)
        elif kind not in KINDS:
            found.faults.add(f"{found.shard_at(i)}.prirep", quoted(kind), "must be p, r or s")
        else:
            key = (index, int(text))
            one = shards.get(key)
            if one is None:
                shards[key] = Shard(*key, [i])
            elif kind == "p" and found.shards[one.rows[0]]["prirep"] != "p":
                one.rows.insert(0, i)
            else:
                one.rows.append(i)
                if kind == "p":
                    first = found.shard_at(one.rows[0])
                    message = f"is a second primary: {first} is one already"
                    found.faults.add(f"{found.shard_at(i)}.prirep", "p", message)
    return [shards[key] for key in sorted(shards)]


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
    ends = _ends(row)
    target = ends[-1][0]
    if target not in place:
        message = "is not a node that holds data, by _nodes"
        found.faults.add(f"{found.shard_at(i)}.node", quoted(target), message)
        return -1, 0
    arrives = len(ends) > 1 or state == "INITIALIZING"
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
            name = _ends(found.shards[i])[0][0]
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


def _rules(
    found: Findings,
    shards: Sequence[Shard],
    indices: Sequence[str],
    nodes: Sequence[DataNode],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return a rule for each set of nodes that an index may use and each number of copies."""
    domains, values = _awareness(found, nodes)
    if spread is None and is_true(
        found.cluster, "cluster.routing.allocation.same_shard.host", False
    ):
        domains["host"] = [node.host or node.ip for node in nodes]
        values["host"] = 0
    masks = {}
    aware = np.ones(len(nodes), np.bool_)
    for tier, labels in domains.items():
        if tier in values and values[tier] > 0:
            aware &= np.array([bool(label) for label in labels], np.bool_)
    tags: dict[bytes, str] = {np.ones(len(nodes), np.bool_).tobytes(): ""}
    elsewhere = _standing_elsewhere(found, shards, nodes)
    for index in {*indices}:
        settings = found.indices.get(index, {})
        mask = aware & allowed(settings, "index.routing.allocation.", nodes)
        mask &= of_kind(settings, nodes, default=index not in elsewhere)
        masks[index] = mask.tobytes()
    for index in indices:
        tags.setdefault(masks[index], f"nodes of {word(index)}")
    keys: dict[tuple[str, int], int] = {}
    rule = []
    for shard in shards:
        key = (tags[masks[shard.of]], len(shard.rows))
        rule.append(keys.setdefault(key, len(keys)))
    rules = []
    for tag, copies in keys:
        apart = {tier: -(-copies // count) if count else 1 for tier, count in values.items()}
        require = [f"+{tag}"] if tag else []
        rules.append(Rule(require=require, spread=apart if spread is None else dict(spread)))
    name = "index.routing.allocation.total_shards_per_node"
    most = [whole(found.faults, found.indices.get(index, {}), name) for index in indices]
    group_rule = np.full(len(indices), -1)
    for limit in sorted({one for one in most if one > 0}):
        group_rule[np.array(most) == limit] = len(rules)
        rules.append(Rule(spread={"node": limit}))
    carried = {tag: np.frombuffer(mask, np.bool_) for mask, tag in tags.items() if tag}
    return {
        "domains": domains, "tags": carried, "rules": rules, "group_rule": group_rule,
        "rule": np.array(rule, np.int64),
    }  # fmt: skip


def _standing_elsewhere(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> set[str]:
    """Return the indices that have a copy on a node that is not for frozen ones alone, or none."""
    frozen = {node.name for node in nodes if node.only_frozen}
    homes: dict[str, set[str]] = {}
    for shard in shards:
        named = {name for i in shard.rows for name, _, _ in _ends(found.shards[i])}
        homes.setdefault(shard.of, set()).update(named)
    return {index for index, named in homes.items() if not named or named - frozen}


def _awareness(
    found: Findings, nodes: Sequence[DataNode]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the label of each node per awareness attribute, and how many values each has."""
    domains: dict[str, list[str]] = {}
    values: dict[str, int] = {}
    at, told = found.cluster.get(f"{AWARE}attributes", ("", ""))
    for attribute in dict.fromkeys(words(told)):
        labels = [next(iter(node.values(attribute)), "") for node in nodes]
        if not any(labels):
            found.faults.add(at, quoted(attribute), "is an attribute that no node has: read _nodes")
            continue
        tier = f"{attribute} attribute" if attribute in ("node", "host") else attribute
        domains[tier] = labels
        forced = words(found.cluster.get(f"{AWARE}force.{attribute}.values", ("", ""))[1])
        values[tier] = len({*labels, *forced} - {""})
    return domains, values
