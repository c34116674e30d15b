"""Read a cluster from API answers: data nodes, indices as groups, shards as partitions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Amount
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import Document, largest, quoted
from evenkeel.systems.elasticsearch.disks import disks_of
from evenkeel.systems.elasticsearch.documents import Findings, gather
from evenkeel.systems.elasticsearch.factors import ENABLE
from evenkeel.systems.elasticsearch.rules import AWARE, SAME_HOST, rules_of
from evenkeel.systems.elasticsearch.settings import (
    EXPAND,
    PARTIAL,
    SEARCH,
    DataNode,
    allowed,
    is_everywhere,
    is_true,
    roles_of,
    whole,
    words,
)
from evenkeel.systems.elasticsearch.shards import Shard, ends, shards_of
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import noted

NAME = "elasticsearch"
SMALL = 2**20
"""Bytes below which no disk is."""

SIZES = ("disk.total", "disk.avail")
CAUGHT_UP, INCOMING = int(Flag.CAUGHT_UP), int(Flag.INCOMING)


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from the answers of its APIs, of which ``_cat/shards`` must be one.

    ``spread`` replaces the rules that the awareness attributes make.
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
    }
    given |= _placement(found, shards, nodes, place)
    if any(node.searches for node in nodes):
        given |= _roles(found, shards)
    disks = disks_of(found, shards, nodes, place)
    given |= disks.given
    given |= _states(found, nodes)
    given |= rules_of(found, shards, indices, nodes, spread)
    held = Held(given["first"], given["placement"])
    given["forbidden"] = closed_pairs(found, shards, nodes, held, disks.above)
    note_settings(found)
    given["native"] = {
        "shards": found.shards, "answers": sorted(found.kinds), "notes": [*found.notes],
        "started": sorted(found.started),
        "enable": {
            index: str(settings[ENABLE][1])
            for index, settings in found.indices.items() if ENABLE in settings
        },
        "expanding": sorted(
            index for index, settings in found.indices.items()
            if str(settings.get(EXPAND, ("", "false"))[1]).lower() != "false"
        ),
    }  # fmt: skip
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _nodes(found: Findings) -> list[DataNode]:
    """Return the data nodes, by name: those of ``_nodes``, or else all that other files name.

    Shards on other nodes show files of different times, or partial ones: such nodes are closed,
    and their shards stay.
    """
    if found.nodes:
        known = {node.name: DataNode.of(key, node) for key, (_, node) in found.nodes.items()}
        holding = {name: node for name, node in known.items() if node.holds}
        strange = {
            name: DataNode(name, key, ip=ip, strange=True)
            for row in found.shards
            for name, key, ip in ends(row)
            if name and name not in holding
        }
        if strange:
            found.notes.add(
                f"that shards are on {some_of([*strange], printable)}, which hold no data by "
                "_nodes: they stay there, and no other shard goes there; list both at one time"
            )
        return [node for _, node in sorted((holding | strange).items())]
    searching = _searching(found)
    busy = {name for row in found.shards for name, _, _ in ends(row)}
    empty, named = _without_disk(found, busy), dict[str, DataNode]()
    seen: set[str | None] = set()
    for row in (*(row for _, row in found.allocation), *found.shards):
        if row.get("node") in seen:
            continue
        seen.add(row.get("node"))
        for name, key, ip in ends(row):
            if name and name not in {"UNASSIGNED", *empty} and name not in named:
                roles = frozenset({SEARCH}) if name in searching else roles_of(row)
                node = DataNode(name, key, row.get("host") or "", ip, roles)
                if node.holds or name in busy:
                    named[name] = node if node.holds else replace(node, roles=None)
    if empty:
        found.notes.add(
            f"no disk and no shard of {some_of(empty, printable)}: they count as nodes "
            "without data, such as client nodes; add _nodes, which has their roles"
        )
    return sorted(named.values(), key=lambda node: node.name)


def _without_disk(found: Findings, busy: Collection[str]) -> list[str]:
    """Return the nodes in a table of disks that have neither a disk nor shards."""
    sized = {row.get("node"): any(row.get(key) for key in SIZES) for _, row in found.allocation}
    empty = [name for name, size in sized.items() if name and not size and name not in busy]
    return [name for name in empty if name != "UNASSIGNED"] if any(sized.values()) else []


def _searching(found: Findings) -> set[str]:
    """Return the nodes that hold search replicas only, as nodes with that role do."""
    held: dict[bool, set[str]] = {True: set(), False: set()}
    for row in found.shards:
        held[row.get("prirep") == "s"].update(name for name, _, _ in ends(row))
    return held[True] - held[False]


def _placement(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], place: Mapping[str, int]
) -> dict[str, Any]:
    """Return the copies of each shard, relocating ones at their target."""
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
            flags.append(flag | int(Flag.PINNED) * (n >= 0 and nodes[n].strange))
        led = bool(own) and own[0] >= 0 and found.shards[shard.rows[0]]["prirep"] == "p"
        node += own
        leader.append(0 if led else -1)
        # without a primary there is no source for copies, and missing ones stay missing
        if led:
            flags[begin] |= int(Flag.ELECTED)
        else:
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
    """Return the roles of copies: search replicas never lead."""
    role = [
        Role.NON_VOTER if found.shards[i]["prirep"] == "s" else Role.VOTER
        for shard in shards
        for i in shard.rows
    ]
    may_lead = [sum(found.shards[i]["prirep"] != "s" for i in shard.rows) for shard in shards]
    return {"role": np.array(role, np.uint8), "voters": np.array(may_lead, np.int64)}


def _copy(found: Findings, i: int, place: Mapping[str, int]) -> tuple[int, int]:
    """Return the node of a copy, -1 for none, and its flags."""
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
        message = "is not the name of a node"
        found.faults.add(f"{found.shard_at(i)}.node", quoted(target), message)
        return -1, 0
    arrives = len(own) > 1 or state == "INITIALIZING"
    return place[target], INCOMING if arrives else CAUGHT_UP


def _states(found: Findings, nodes: Sequence[DataNode]) -> dict[str, Any]:
    """Return the states of nodes: cluster filters and shutdowns drain them."""
    leave = ~allowed(found.cluster, "cluster.routing.allocation.", nodes)
    strange = np.array([node.strange for node in nodes], np.bool_)
    leave &= ~strange
    accepts = ~leave & ~strange
    place = {node.key: n for n, node in enumerate(nodes)}
    for _, one in found.shutdown:
        if one.node_id in place:
            n = place[one.node_id]
            accepts[n] = False
            leave[n] |= one.type.upper() in ("REMOVE", "REPLACE", "SIGTERM")
        elif one.node_id not in found.nodes:
            found.notes.add(
                f"that {printable(one.node_id)} is shut down, which is not a node here: ignored"
            )
    most = whole(found.faults, found.cluster, "cluster.routing.allocation.total_shards_per_node")
    return {
        "accepts": accepts,
        "keeps": ~leave,
        "max_replicas": np.full(len(nodes), most if most > 0 else -1),
    }


WITHOUT_WATERMARKS = (PARTIAL, "index.routing.allocation.disk.watermark.ignore")
"""Settings of indices that ignore watermarks."""


class Held(NamedTuple):
    """Nodes of copies, at their target if they relocate."""

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
    """Return pairs of a shard and a node that is closed to it, (F, 2)."""
    parts = [
        _product(_bound_by_watermarks(found, shards), np.flatnonzero(above)),
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


def _bound_by_watermarks(found: Findings, shards: Sequence[Shard]) -> NDArray[np.int64]:
    """Return the shards that watermarks bind."""
    ignoring = {
        index
        for index, settings in found.indices.items()
        if any(is_true(settings, name, False) for name in WITHOUT_WATERMARKS)
    }
    return np.array([p for p, shard in enumerate(shards) if shard.of not in ignoring], np.int64)


def _without_places(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> NDArray[np.int64]:
    """Close all nodes if awareness requires an attribute that no node has."""
    asked = words(found.cluster.get(f"{AWARE}attributes", ("", ""))[1])
    if not found.nodes or all(any(node.values(one) for node in nodes) for one in asked):
        return np.zeros((0, 2), np.int64)
    bound = [p for p, one in enumerate(shards) if not is_everywhere(found.indices.get(one.of, {}))]
    return _product(np.array(bound, np.int64), np.arange(len(nodes)))


def _on_hosts(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], held: Held
) -> NDArray[np.int64]:
    """Close the other nodes of a host with a copy, even to that copy."""
    none = np.zeros((0, 2), np.int64)
    if not is_true(found.cluster, SAME_HOST, False):
        return none
    hosts: dict[str, list[int]] = {}
    for n, node in enumerate(nodes):
        hosts.setdefault(node.host or node.ip, []).append(n)
    shared = {n: own for own in hosts.values() if len(own) > 1 for n in own}
    if not shared:
        return none
    found.notes.add(
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
    releases = [".".join(map(str, version)) for version in versions]
    found.notes.add(
        f"that nodes are of several releases, {some_of(releases, printable)}: no shard goes to a "
        "node older than that of its primary"
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


FILTER = re.compile(r"(cluster|index)\.routing\.allocation\.(require|include|exclude)\.")
UNKEPT = re.compile(
    r"(cluster|index)\.routing\.allocation\.(total_primary_shards_per_node|write_load_decider\.enabled"
    r"|search\.replica\.dedicated\.include\.)"
)
IDLE = {"-1", "", "false", "disabled"}
"""Values of settings without effect."""

NOT_ALL = {
    "cluster.routing.allocation.enable": "Elasticsearch allocates no other shards by itself; it "
    "still carries out the written commands",
    "cluster.routing.rebalance.enable": "the script of a plan sets it to none; give it back as it "
    "is now",
}
"""Settings that restrict allocation unless they are ``all``, and the effect."""

MISSING = {
    "nodes": "no roles and attributes of nodes: any node may hold any shard; add _nodes",
    "index settings": (
        "no settings of indices: their filters and tiers are not kept, and --replicas does not "
        "know which of them index.auto_expand_replicas gives another number of copies; add "
        "_all/_settings?expand_wildcards=all"
    ),
    "cluster settings": (
        "no settings of the cluster: no awareness and no filters, and the usual watermarks; add "
        "_cluster/settings?include_defaults=true"
    ),
    "allocation": "no room of disks: they count as large enough; add _cat/allocation",
}
"""Note on each kind of missing answer."""

STARTED = (
    "no settings of the cluster but those that its nodes were started with, which others may "
    "override; add _cluster/settings?include_defaults=true"
)


def note_settings(found: Findings) -> None:
    """Note settings and states that restrict allocation and are no rule."""
    for name, meaning in NOT_ALL.items():
        value = str(found.cluster.get(name, ("", "all"))[1]).lower()
        if value not in ("all", ""):
            found.notes.add(f"that {name} is {printable(value)}: {meaning}")
        own = f"index.{name.removeprefix('cluster.')}"
        held = [
            index
            for index, settings in found.indices.items()
            if str(settings.get(own, ("", "all"))[1]).lower() not in ("all", "")
        ]
        if held:
            found.notes.add(f"that {own} is not all of {some_of(held, printable, 4)}: {meaning}")
    named = dict.fromkeys(row.get("index") or "" for row in found.shards)
    missing = [index for index in named if index and index not in found.indices]
    if missing and "index settings" in found.kinds:
        found.notes.add(
            f"no settings of {some_of(missing, printable, 4)}: filters and tiers of these are not "
            "kept; hidden indices need _all/_settings?expand_wildcards=all"
        )
    listed = _set_to(found, FILTER, lambda value: isinstance(value, list))
    unkept = _set_to(found, UNKEPT, lambda value: str(value) not in IDLE)
    if unkept:
        found.notes.add(
            f"that {some_of(unkept, printable, 4)} is set and not kept: commands against it "
            "may be written, and are refused"
        )
    if listed:
        found.notes.add(
            f"lists in {some_of(listed, printable, 4)}: kept, but OpenSearch and early releases of "
            "Elasticsearch match a text only; write names separated by commas"
        )
    totals = [row.get("disk.total") or "" for _, row in found.allocation]
    most = max((float(text) for text in totals if text.isdecimal()), default=0.0)
    if 0.0 < most < SMALL:
        found.notes.add(
            f"disks of at most {most:,.0f} bytes, as where _cat/allocation is asked for in another "
            "unit (bytes=gb): ask for bytes=b everywhere"
        )
    if fewer := _filtered(found):
        found.notes.add(
            f"no rows of all copies of {some_of(fewer, printable, 4)}: a shard of an index has a "
            "primary, and as many copies as the others, even where they are unassigned. The "
            "listing is filtered or cut off, and what it leaves out is not counted: list all"
        )
    failed = [
        f"{row.get('index')}/{row.get('shard')}"
        for row in found.shards
        if row.get("unassigned.reason") == "ALLOCATION_FAILED"
    ]
    if failed:
        found.notes.add(
            f"that the allocation of {some_of(failed, printable, 4)} failed: after several times "
            "Elasticsearch refuses it until POST _cluster/reroute?retry_failed=true"
        )


def _filtered(found: Findings) -> list[str]:
    """Return the shards that have no row of a primary, or fewer rows than others of their index."""
    rows = Counter((row.get("index"), row.get("shard")) for row in found.shards)
    led = {(row.get("index"), row.get("shard")) for row in found.shards if row.get("prirep") == "p"}
    most: dict[str | None, int] = {}
    for (index, _), count in rows.items():
        most[index] = max(most.get(index, 0), count)
    return [
        f"{index}/{shard}"
        for (index, shard), count in rows.items()
        if (index, shard) not in led or count < most[index]
    ]


def _set_to(found: Findings, names: re.Pattern[str], counts: Callable[[object], bool]) -> list[str]:
    """Return the settings of such names whose values count, each once."""
    return [
        *dict.fromkeys(
            name
            for settings in (found.cluster, *found.indices.values())
            for name, (_, value) in settings.items()
            if names.match(name) and counts(value)
        )
    ]


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing answers and assumptions, each with its effect and what to add."""
    native = cluster.native
    if isinstance(native, dict) and isinstance(native.get("answers"), list):
        for kind, note in MISSING.items():
            if kind not in native["answers"]:
                yield STARTED if kind == "cluster settings" and native.get("started") else note
        yield from noted(native)
