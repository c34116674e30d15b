"""Native row-wise JSON: one object per node and partition, all by name, for people and scripts.

Loads and capacities are lists in the order of ``dimensions``. ``null`` is a capacity without limit
and a replica without a node.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import Disks, DiskState
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.topology import Topology
from evenkeel.systems.documents import Document, quoted, the_only
from evenkeel.systems.json_text import Int32, Int64, decode_json, encode_json
from evenkeel.systems.native.arguments import (
    Arguments,
    RuleDocument,
    arguments_of,
    build,
    check_slots,
)
from evenkeel.systems.registry import Format

NAME: Literal["evenkeel-rows"] = "evenkeel-rows"

DiskStateName = Literal["fine", "emptying", "failed"]

FlagName = Literal[
    "pinned",
    "incoming",
    "outgoing",
    "healthy",
    "caught_up",
    "new",
    "evicting",
    "error",
    "stranded",
    "preferred",
    "left_alone",
    "elected",
    "stand_in",
    "blocks",
    "awaited",
]
RoleName = Literal["voter", "non_voter", "learner"]


class NodeRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One node."""

    name: str
    capacity: list[float | None]
    domains: dict[str, str | Int64] = {}
    watermark: list[float | None] | None = None
    alive: bool = True
    accepts: bool | None = None
    keeps: bool | None = None
    leads: bool | None = None
    gone: bool = False
    since: float | None = None
    weight: float = 1.0
    lead_weight: float = 1.0
    max_replicas: Int32 = -1
    stands_for: str | None = None
    tags: list[str] = []
    attributes: dict[str, str | Int64] = {}


class PartitionRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One partition; ``nodes`` holds a name, or null, per slot."""

    name: str
    load: list[float]
    nodes: list[str | None] = []
    leader_load: list[float] | None = None
    non_voter_load: list[float] | None = None
    leader: Int32 = 0
    roles: list[RoleName] | None = None
    flags: list[list[FlagName]] | None = None
    replicas: Int32 | None = None
    voters: Int32 | None = None
    min_active: Int32 = 0
    group: str | None = None
    rule: Int32 = -1
    attached: str | None = None
    move_cost: float = 1.0
    forbidden: list[str] | None = None
    disks: list[str | None] | None = None


class DiskRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One disk of a node; without a capacity it has no limit."""

    name: str
    node: str
    capacity: float | None = None
    state: DiskStateName = "fine"


class GroupRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One group; ``rule`` binds it as a whole."""

    name: str
    rule: Int32 = -1


class NeedRow(msgspec.Struct, forbid_unknown_fields=True):
    """A group that needs another one in every domain of a tier that it stands in."""

    group: str
    needs: str
    tier: str


class SharedCapacity(msgspec.Struct, forbid_unknown_fields=True):
    """Capacity of the domain of a tier in which a node stands."""

    tier: str
    node: str
    capacity: list[float | None]


class ClusterRows(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole document."""

    format: Literal["evenkeel-rows"]
    version: Literal[1]
    dimensions: list[str]
    nodes: list[NodeRow]
    partitions: list[PartitionRow]
    groups: list[GroupRow] = []
    tiers: list[str] = []
    crossing: list[str] = []
    tags: list[str] = []
    attributes: list[str] = []
    tier_capacity: list[SharedCapacity] = []
    tier_distance: list[float | list[float]] | None = None
    rules: list[RuleDocument] = []
    transient: list[str] = []
    bytes: str | None = None
    depends: list[NeedRow] = []
    disks: list[DiskRow] = []
    native: Any = None
    native_format: str = ""


NODE_FIELDS = (
    "alive", "accepts", "keeps", "leads", "gone", "weight", "lead_weight", "max_replicas"
)  # fmt: skip
PARTITION_FIELDS = ("min_active", "rule", "move_cost")
LOADS = ("load", "leader_load", "non_voter_load")


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
        disks=_disk_rows(cluster),
        native=given.get("native"),
        native_format=given.get("native_format", ""),
    )
    return {path: encode_json(rows)}


def _disk_rows(cluster: Cluster) -> list[DiskRow]:
    disks, names = cluster.disks, cluster.nodes.names
    if disks is None:
        return []
    states: list[Any] = [DiskState(state).name.lower() for state in disks.state.tolist()]
    capacity = [None if np.isinf(most) else most for most in disks.capacity.tolist()]
    return [
        DiskRow(name, names[n], most, state)
        for name, n, most, state in zip(
            disks.names, disks.node.tolist(), capacity, states, strict=True
        )
    ]


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
    lies: list[str | None] | None = None
    if cluster.disks is not None and placement.disk is not None:
        disk_names = [*cluster.disks.names, None]
        lies = [disk_names[d] for d in placement.disk.tolist()]
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
            disks=None if lies is None else lies[start:end],
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


# where an entry of each argument of ``Cluster.from_arrays`` stands in the document
PLACES = (
    dict.fromkeys((*NODE_FIELDS, "capacity", "watermark", "stands_for"), "nodes[{0}].{key}")
    | dict.fromkeys(
        (*PARTITION_FIELDS, *LOADS, "replicas", "voters", "leader"), "partitions[{0}].{key}"
    )
    | {
        "node_names": "nodes[{0}].name",
        "partition_names": "partitions[{0}].name",
        "group_names": "groups[{0}].name",
        "group_rule": "groups[{0}].rule",
    }
)


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from one row-wise JSON document."""
    document = the_only(documents, FORMAT.name)
    faults = FaultList()
    rows = decode_json(faults, document, ClusterRows)
    if rows is None:
        raise InvalidInput(faults.faults)
    return cluster_of(faults, document, rows)


def cluster_of(faults: FaultList, document: Document, rows: ClusterRows) -> Cluster:
    """Build the cluster that the rows of a document describe, or raise everything noted."""
    given = _node_arguments(faults, document.name, rows)
    given |= _partition_arguments(faults, document.name, rows)
    given |= _disk_arguments(faults, document.name, rows)
    given |= {
        "dimensions": rows.dimensions,
        "crossing": rows.crossing,
        "tier_distance": np.zeros((0, 0)) if rows.tier_distance == [] else rows.tier_distance,
        "rules": [rule.rule() for rule in rows.rules],
        "transient": rows.transient,
        "bytes": rows.bytes,
        "native": rows.native,
        "native_format": rows.native_format,
    }
    path = f"{document.name}: partitions"
    check_slots(faults, path, given["replicas"], len(rows.partitions), document)
    return build(faults, given, lambda path: _locate(document.name, path))


def _disk_arguments(faults: FaultList, name: str, rows: ClusterRows) -> Arguments:
    """Return the disks of nodes, and on which of them replicas lie."""
    if not rows.disks:
        return {}
    place = {node.name: i for i, node in enumerate(rows.nodes)}
    nodes = _places(
        faults, "node", place, [one.node for one in rows.disks],
        lambda d: f"{name}: disks[{d}].node",
    )  # fmt: skip
    order = np.argsort(nodes, kind="stable").tolist()
    listed = [rows.disks[d] for d in order]
    index = {one.name: d for d, one in enumerate(listed)}
    lies = [
        (p, s, disk)
        for p, row in enumerate(rows.partitions)
        for s, disk in enumerate(row.disks or [None] * len(row.nodes))
    ]
    disk = _places(
        faults, "disk", index, [one for _, _, one in lies],
        lambda k: f"{name}: partitions[{lies[k][0]}].disks[{lies[k][1]}]",
    )  # fmt: skip
    try:
        disks = Disks(
            np.maximum(nodes, 0)[order],
            [np.inf if one.capacity is None else one.capacity for one in listed],
            [DiskState[one.state.upper()] for one in listed],
            [one.name for one in listed],
        )
    except InvalidInput as error:
        faults.take(error, f"{name}: ")
        return {}
    return {"disks": disks, "disk": disk}


def _columns(rows: Sequence[msgspec.Struct], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields of equal structs, one list per field."""
    return {field: list(map(attrgetter(field), rows)) for field in shape.__struct_fields__}


def _given(column: Sequence[object]) -> bool:
    """Return whether any row has a value of an optional field."""
    return bool(set(map(type, column)) - {type(None)})


def _or_else(column: Sequence[Any], default: Sequence[Any]) -> list[Any]:
    """Fill what rows leave out."""
    return [d if value is None else value for value, d in zip(column, default, strict=True)]


def _node_arguments(faults: FaultList, name: str, rows: ClusterRows) -> Arguments:
    width, at = len(rows.dimensions), f"{name}: nodes"
    of = _columns(rows.nodes, NodeRow)

    def table(key: str, values: Sequence[Any]) -> NDArray[np.float64]:
        return _opened_rows(faults, lambda i: f"{at}[{i}].{key}", values, width)

    place = {node: i for i, node in enumerate(of["name"])}
    given: Arguments = {"node_names": list(of["name"])}
    for key in ("alive", "gone", "accepts", "keeps", "leads"):
        given[key] = np.array(_or_else(of[key], of["alive"]), np.bool_)
    for key in ("weight", "lead_weight", "since"):
        given[key] = np.array(of[key], np.float64)
    given["max_replicas"] = np.array(of["max_replicas"], np.int64)
    given["capacity"] = table("capacity", of["capacity"])
    if _given(of["watermark"]):
        marks = _or_else(of["watermark"], [[None] * width] * len(rows.nodes))
        given["watermark"] = table("watermark", marks)
    given["stands_for"] = _places(
        faults, "node", place, of["stands_for"], lambda i: f"{at}[{i}].stands_for"
    )
    for key, known in (("domains", rows.tiers), ("attributes", rows.attributes)):
        names = list(dict.fromkeys(chain(known, *of[key])))
        given[key] = {label: _labels_array([own.get(label) for own in of[key]]) for label in names}
        if key == "domains":
            for tier in names[len(set(known)) :]:
                faults.add(f"{name}: tiers", quoted(tier), "is listed by a node alone")
    carried = [set(own) for own in of["tags"]]
    given["tags"] = {
        tag: np.array([tag in own for own in carried], np.bool_)
        for tag in dict.fromkeys(chain(rows.tags, *of["tags"]))
    }
    given["tier_capacity"] = _tier_capacity(faults, name, rows, place, given["domains"])
    return given


def _tier_capacity(
    faults: FaultList,
    name: str,
    rows: ClusterRows,
    place: dict[str, int],
    domains: dict[str, NDArray[Any]],
) -> dict[str, NDArray[np.float64]]:
    """Find the domain of each shared capacity by the node that stands in it."""
    width = len(rows.dimensions)
    # what is wrong with the topology itself is noted when the cluster is built
    topology = Topology.read(FaultList(), domains, len(rows.nodes), rows.crossing)
    tables: dict[str, NDArray[np.float64]] = {}
    for i, shared in enumerate(rows.tier_capacity):
        at = f"{name}: tier_capacity[{i}]"
        if shared.tier not in topology.tiers:
            faults.add(f"{at}.tier", shared.tier, f"unknown tier; known: {rows.tiers}")
            continue
        row = topology.tier_index(shared.tier)
        domain = topology.domain[row, place[shared.node]] if shared.node in place else -1
        if domain < 0:
            faults.add(f"{at}.node", shared.node, f"stands in no domain of {shared.tier!r}")
            continue
        if len(shared.capacity) != width:
            faults.add(f"{at}.capacity", len(shared.capacity), f"needs {width} numbers")
            continue
        if shared.tier not in tables:
            tables[shared.tier] = np.full((topology.domain_count[row], width), np.inf)
        tables[shared.tier][domain] = [np.inf if a is None else a for a in shared.capacity]
    return tables


def _partition_arguments(faults: FaultList, name: str, rows: ClusterRows) -> Arguments:
    width, at = len(rows.dimensions), f"{name}: partitions"
    of = _columns(rows.partitions, PartitionRow)

    def table(key: str, values: Sequence[Any]) -> NDArray[np.float64]:
        return _opened_rows(faults, lambda i: f"{at}[{i}].{key}", values, width)

    place = {node.name: i for i, node in enumerate(rows.nodes)}
    given: Arguments = {"partition_names": list(of["name"])}
    given["load"] = table("load", of["load"])
    for key in ("leader_load", "non_voter_load"):
        if _given(of[key]):
            given[key] = table(key, _or_else(of[key], of["load"]))
    given["min_active"] = np.array(of["min_active"], np.int64)
    given["rule"] = np.array(of["rule"], np.int64)
    given["move_cost"] = np.array(of["move_cost"], np.float64)
    widths = list(map(len, of["nodes"]))
    given["first"] = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    given["placement"] = _replica_nodes(faults, at, of["nodes"], place)
    leads = np.array(of["leader"], np.int64)
    given["leader"] = np.where((leads == 0) & (np.array(widths, np.int64) == 0), -1, leads)
    wanted = _or_else(of["replicas"], widths)
    given["replicas"] = np.array(wanted, np.int64)
    if _given(of["voters"]):
        given["voters"] = np.array(_or_else(of["voters"], wanted), np.int64)
    given |= _replica_arguments(faults, at, of, widths)
    given["attached"] = _places(
        faults, "node", place, of["attached"], lambda p: f"{at}[{p}].attached"
    )
    disabled = [(p, i, n) for p, own in enumerate(of["forbidden"]) for i, n in enumerate(own or ())]
    nodes = _places(
        faults, "node", place, [node for _, _, node in disabled],
        lambda k: f"{at}[{disabled[k][0]}].forbidden[{disabled[k][1]}]",
    )  # fmt: skip
    pairs = np.stack([np.array([p for p, _, _ in disabled], np.int64), nodes], axis=1)
    given["forbidden"] = pairs[nodes >= 0]
    return given | _group_arguments(faults, name, rows, of["group"])


def _replica_nodes(
    faults: FaultList, path: str, slots: Sequence[list[str | None]], place: dict[str, int]
) -> NDArray[np.int64]:
    """Return the node of every replica, row after row, noting names that no node bears."""
    unplaced: dict[str | None, int] = {None: -1}
    index = unplaced | place
    found = [index.get(node, -2) for node in chain.from_iterable(slots)]
    if -2 in found:
        for p, row in enumerate(slots):
            for slot, node in enumerate(row):
                if node not in index:
                    faults.add(
                        f"{path}[{p}].nodes[{slot}]", quoted(node), "is not the name of a node"
                    )
    return np.maximum(np.array(found, np.int64), -1)


def _replica_arguments(
    faults: FaultList, path: str, of: dict[str, Any], widths: list[int]
) -> Arguments:
    """Return roles and flags where any partition speaks of them."""
    given: Arguments = {}
    codes: dict[str, Any] = {role.name.lower(): int(role) for role in Role}
    bits = {flag.name.lower(): int(flag) for flag in Flag if flag.name}
    for key, argument, default in (("roles", "role", "voter"), ("flags", "flags", [])):
        if not _given(of[key]):
            continue
        rows = _or_else(of[key], [[default] * n for n in widths])
        for p, (row, n) in enumerate(zip(rows, widths, strict=True)):
            if len(row) != n:
                faults.add(f"{path}[{p}].{key}", len(row), f"needs {n} entries")
                rows[p] = [default] * n
        values = chain.from_iterable(rows)
        if key == "roles":
            given[argument] = np.array([codes[role] for role in values], np.int64)
        else:
            marks = [sum(bits[flag] for flag in set(own)) for own in values]
            given[argument] = np.array(marks, np.int64)
    return given


def _group_arguments(
    faults: FaultList, name: str, rows: ClusterRows, used: Sequence[str | None]
) -> Arguments:
    """Return groups by number; without a list of them, every name used is one."""
    names = [row.name for row in rows.groups]
    if not names:
        names = [group for group in dict.fromkeys(used) if group is not None]
    if not names and used:
        return {}
    place = {group: i for i, group in enumerate(names)}
    given: Arguments = {"group_names": names}
    groups = _places(faults, "group", place, used, lambda p: f"{name}: partitions[{p}].group")
    given["group"] = np.maximum(groups, 0)
    if len(names) > 1 and None in used:
        for p, group in enumerate(used):
            if group is None:
                faults.add(f"{name}: partitions[{p}].group", None, "is missing")
    if rows.groups:
        given["group_rule"] = np.array([row.rule for row in rows.groups], np.int64)
    ends = [end for row in rows.depends for end in (row.group, row.needs)]
    found = _places(
        faults, "group", place, ends,
        lambda k: f"{name}: depends[{k // 2}].{('group', 'needs')[k % 2]}",
    )  # fmt: skip
    given["depends"] = [
        (a, b, row.tier)
        for (a, b), row in zip(found.reshape(-1, 2).tolist(), rows.depends, strict=True)
        if a >= 0 and b >= 0
    ]
    return given


def _places(
    faults: FaultList,
    what: str,
    place: dict[str, int],
    names: Sequence[str | None],
    path: Callable[[int], str],
) -> NDArray[np.int64]:
    """Look names up; None is -1, and so is a name that nothing bears, after a fault."""
    unplaced: dict[str | None, int] = {None: -1}
    index = unplaced | place
    found = [index.get(name, -2) for name in names]
    if -2 in found:
        for i, at in enumerate(found):
            if at == -2:
                faults.add(path(i), quoted(names[i]), f"is not the name of a {what}")
    return np.maximum(np.array(found, np.int64), -1)


def _locate(name: str, path: str) -> str:
    """Turn ``load[17, 2]`` into ``cluster.json: partitions[17].load[2]``."""
    found = re.fullmatch(r"(\w+)\[(\d+)(?:, (\d+))?\]", path)
    if found is None or found[1] not in PLACES:
        return f"{name}: {path}"
    place = PLACES[found[1]].format(found[2], key=found[1])
    return f"{name}: {place}" + (f"[{found[3]}]" if found[3] else "")


def _labels_array(labels: Sequence[str | int | None]) -> NDArray[Any]:
    """Return labels, one per node, as integers if none is a text, else as texts."""
    if set(map(type, labels)) - {type(None)} == {int}:
        return np.array([-1 if label is None else label for label in labels], np.int64)
    # objects: an array of text is as wide as its longest
    return np.array(["" if label is None else str(label) for label in labels], object)


def _opened_rows(
    faults: FaultList, path: Callable[[int], str], rows: Sequence[Sequence[Any]], width: int
) -> NDArray[np.float64]:
    """Return rows of numbers, None for no limit, as a table, noting rows of a wrong length."""
    if set(map(len, rows)) - {width}:
        for i, row in enumerate(rows):
            if len(row) != width:
                faults.add(path(i), len(row), f"needs {width} numbers")
        rows = [row if len(row) == width else [0.0] * width for row in rows]
    # numpy reads None as NaN
    table = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width)
    table[np.isnan(table)] = np.inf
    return table.reshape(len(rows), width)


def _recognises(document: Document) -> str:
    return "rows" if b'"evenkeel-rows"' in document.data[:4096] else ""


FORMAT = Format(
    name="native-rows",
    summary="row-wise JSON, everything by name",
    suffixes=(".rows.json", ".json"),
    recognises=_recognises,
    read=read,
    encode=encode,
)
