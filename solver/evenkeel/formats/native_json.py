"""Native columnar JSON: one list per array, nodes and partitions by number.

Numbers that JSON has no word for are ``null``: a capacity or watermark without limit, a time or a
label that is not known, a dimension that holds nothing.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import Document, decode_json, the_only
from evenkeel.formats.json_values import (
    distances,
    encoded,
    labels_array,
    labels_listed,
    listed,
    opened_rows,
)
from evenkeel.formats.native_arrays import Arguments, RuleDocument, arguments_of, build
from evenkeel.formats.registry import Format
from evenkeel.model.atomic import write_atomically
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.placement import Placement

NAME: Literal["evenkeel-columns"] = "evenkeel-columns"

Column = list[float]
OpenColumn = list[float | None]
Labels = list[str | int | None]


class NodeColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Nodes; every list has ``count`` entries, capacities one list per dimension."""

    count: int
    capacity: dict[str, OpenColumn] = {}
    names: list[str] | None = None
    domains: dict[str, Labels] = {}
    watermark: dict[str, OpenColumn] | None = None
    alive: list[bool] | None = None
    accepts: list[bool] | None = None
    keeps: list[bool] | None = None
    leads: list[bool] | None = None
    gone: list[bool] | None = None
    since: OpenColumn | None = None
    weight: Column | None = None
    lead_weight: Column | None = None
    max_replicas: list[int] | None = None
    stands_for: list[int] | None = None
    tags: dict[str, list[bool]] = {}
    attributes: dict[str, Labels] = {}


class PartitionColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Partitions; every list has ``count`` entries, loads one list per dimension."""

    count: int
    load: dict[str, Column] = {}
    leader_load: dict[str, Column] | None = None
    non_voter_load: dict[str, Column] | None = None
    names: list[str] | None = None
    replicas: list[int] | None = None
    voters: list[int] | None = None
    min_active: list[int] | None = None
    group: list[int] | None = None
    rule: list[int] | None = None
    attached: list[int] | None = None
    move_cost: Column | None = None


class PlacementColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Replicas, row after row: ``slots`` in every row, or rows that start at ``first``."""

    slots: int = 0
    first: list[int] | None = None
    nodes: list[int] = []
    leader: list[int] | None = None
    roles: list[int] | None = None
    flags: list[int] | None = None


class GroupColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Groups as a whole."""

    names: list[str] | None = None
    rule: list[int] | None = None


class ClusterColumns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole document."""

    format: Literal["evenkeel-columns"]
    version: Literal[1]
    dimensions: list[str]
    nodes: NodeColumns
    partitions: PartitionColumns
    placement: PlacementColumns = msgspec.field(default_factory=PlacementColumns)
    groups: GroupColumns = msgspec.field(default_factory=GroupColumns)
    rules: list[RuleDocument] = []
    crossing: list[str] = []
    level_capacity: dict[str, list[OpenColumn]] = {}
    level_distance: list[float | Column] | None = None
    transient: list[str] = []
    bytes: str | None = None
    forbidden: list[tuple[int, int]] = []
    depends: list[tuple[int, int, str]] = []
    native: Any = None
    native_format: str = ""


NODE_LISTS = (
    "alive", "accepts", "keeps", "leads", "gone", "since", "weight", "lead_weight", "max_replicas",
    "stands_for",
)  # fmt: skip
PARTITION_LISTS = (
    "replicas", "voters", "min_active", "group", "rule", "attached", "move_cost"
)  # fmt: skip
NODE_TABLES = ("capacity", "watermark")
PARTITION_TABLES = ("load", "leader_load", "non_voter_load")
PLACES = (
    dict.fromkeys(NODE_LISTS + NODE_TABLES + ("domains", "tags", "attributes"), "nodes.{}")
    | dict.fromkeys(PARTITION_LISTS + PARTITION_TABLES, "partitions.{}")
    | {
        "node_names": "nodes.names",
        "partition_names": "partitions.names",
        "group_names": "groups.names",
        "group_rule": "groups.rule",
        "placement": "placement.nodes",
        "first": "placement.first",
        "leader": "placement.leader",
        "role": "placement.roles",
        "flags": "placement.flags",
    }
)
"""Where each argument of ``Cluster.from_arrays`` stands in the document."""


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from one columnar JSON document.

    Parameters
    ----------
    documents : sequence of Document
        The one file.

    Returns
    -------
    Cluster
        Validated.

    Raises
    ------
    InvalidInput
        Naming every problem with its JSON path and value.
    """
    document = the_only(documents, FORMAT.name)
    faults = FaultList()
    columns = decode_json(faults, document, ClusterColumns)
    if columns is None:
        raise InvalidInput(faults.faults)
    given = _arguments(faults, document.name, columns)
    faults.raise_if_any()
    return build(faults, given, lambda path: _locate(document.name, columns.dimensions, path))


def write(cluster: Cluster, placement: Placement | None, path: Path) -> tuple[Path, ...]:
    """Write a cluster as one columnar JSON document.

    Parameters
    ----------
    cluster : Cluster
        What to write.
    placement : Placement or None
        Where replicas are, if not where the cluster has them.
    path : Path
        The file.

    Returns
    -------
    tuple of Path
        The file written.

    Raises
    ------
    InvalidInput
        If a payload or a name cannot be written; nothing is written then.
    """
    given = arguments_of(cluster if placement is None else cluster.with_placement(placement))
    return (write_atomically(path, encoded(_columns(cluster, given))),)


def _columns(cluster: Cluster, given: Arguments) -> ClusterColumns:
    names = list(cluster.dimensions)

    def by_dimension(table: NDArray[Any]) -> dict[str, list[Any]]:
        return {name: listed(table[:, d]) for d, name in enumerate(names)}

    node: dict[str, Any] = {key: listed(given[key]) for key in NODE_LISTS if key in given}
    node |= {key: by_dimension(given[key]) for key in NODE_TABLES if key in given}
    row: dict[str, Any] = {key: listed(given[key]) for key in PARTITION_LISTS if key in given}
    row |= {key: by_dimension(given[key]) for key in PARTITION_TABLES if key in given}
    placement = cluster.placement if "placement" in given else None
    replicas = {
        "roles": given.get("role"), "flags": given.get("flags"), "leader": given.get("leader"),
        "first": given.get("first"), "nodes": given.get("placement"),
    }  # fmt: skip
    distance = given.get("level_distance")
    return ClusterColumns(
        format=NAME,
        version=1,
        dimensions=names,
        nodes=NodeColumns(
            count=len(cluster.nodes),
            names=given.get("node_names"),
            domains={k: labels_listed(v) for k, v in given.get("domains", {}).items()},
            tags={k: v.tolist() for k, v in given.get("tags", {}).items()},
            attributes={k: labels_listed(v) for k, v in given.get("attributes", {}).items()},
            **node,
        ),
        partitions=PartitionColumns(
            count=len(cluster.partitions), names=given.get("partition_names"), **row
        ),
        placement=PlacementColumns(
            slots=0 if placement is None else given["placement"].shape[-1] * ("first" not in given),
            **{key: at.ravel().tolist() for key, at in replicas.items() if at is not None},
        ),
        groups=GroupColumns(
            names=given.get("group_names"),
            rule=given["group_rule"].tolist() if "group_rule" in given else None,
        ),
        rules=[RuleDocument.of(rule) for rule in given.get("rules", ())],
        crossing=given.get("crossing", []),
        level_capacity={k: listed(v) for k, v in given.get("level_capacity", {}).items()},
        level_distance=None if distance is None else distance.tolist(),
        transient=given.get("transient", []),
        bytes=given.get("bytes"),
        forbidden=[tuple(pair) for pair in cluster.forbidden.tolist()],
        depends=given.get("depends", []),
        native=given.get("native"),
        native_format=given.get("native_format", ""),
    )


def _arguments(faults: FaultList, name: str, document: ClusterColumns) -> Arguments:
    nodes, partitions, placement = document.nodes, document.partitions, document.placement
    given: Arguments = {"dimensions": document.dimensions}
    for owner, part, tables, lists in (
        (nodes, "nodes", NODE_TABLES, NODE_LISTS),
        (partitions, "partitions", PARTITION_TABLES, PARTITION_LISTS),
    ):
        if owner.count < 0:
            faults.add(f"{name}: {part}.count", owner.count, "must be 0 or more")
            continue
        missing = np.inf if part == "nodes" else np.nan
        for key in tables:
            if (columns := getattr(owner, key)) is not None:
                at = f"{name}: {part}.{key}"
                given[key] = _table(faults, at, columns, owner.count, document, missing)
        for key in lists:
            if (column := getattr(owner, key)) is not None:
                given[key] = np.array(column, np.float64) if key == "since" else np.array(column)
                if not column:
                    given[key] = np.zeros(0, np.int32)
    given["domains"] = {level: labels_array(at) for level, at in nodes.domains.items()}
    given["attributes"] = {key: labels_array(at) for key, at in nodes.attributes.items()}
    given["tags"] = {tag: np.array(at, np.bool_) for tag, at in nodes.tags.items()}
    given["node_names"] = nodes.names
    given["partition_names"] = partitions.names
    given["group_names"] = document.groups.names
    given["group_rule"] = document.groups.rule or None
    given["rules"] = [rule.rule() for rule in document.rules]
    width = len(document.dimensions)
    given["level_capacity"] = {
        level: opened_rows(faults, f"{name}: level_capacity.{level}", rows, width, np.inf)
        for level, rows in document.level_capacity.items()
    }
    given["forbidden"] = np.array(document.forbidden, np.int64).reshape(-1, 2)
    given["level_distance"] = distances(document.level_distance)
    for key in ("crossing", "transient", "bytes", "depends"):
        given[key] = getattr(document, key)
    given |= {"native": document.native, "native_format": document.native_format}
    count = max(partitions.count, 0)
    if placement.first is not None or placement.slots or placement.nodes:
        first = np.arange(count + 1) * placement.slots
        given["first"] = first if placement.first is None else np.array(placement.first, np.int64)
        given["placement"] = np.array(placement.nodes, np.int64)
    for key, at in (("leader", "leader"), ("role", "roles"), ("flags", "flags")):
        if (column := getattr(placement, at)) is not None:
            given[key] = np.array(column, np.int64)
    return given


def _table(
    faults: FaultList,
    path: str,
    columns: dict[str, Any],
    count: int,
    document: ClusterColumns,
    missing: float,
) -> NDArray[np.float64]:
    """Put one list per dimension side by side, noting those that are missing, unknown or short."""
    table = np.full((count, len(document.dimensions)), 0.0)
    for name in columns.keys() - {*document.dimensions}:
        faults.add(f"{path}.{name}", name, f"is no dimension; known: {document.dimensions}")
    for d, name in enumerate(document.dimensions):
        if name not in columns:
            faults.add(f"{path}.{name}", None, "is missing")
        elif len(columns[name]) != count:
            faults.add(f"{path}.{name}", len(columns[name]), f"needs {count} entries")
        else:
            table[:, d] = columns[name]
    if missing == np.inf:
        table[np.isnan(table)] = np.inf
    return table


def _locate(name: str, dimensions: Sequence[str], path: str) -> str:
    """Turn ``load[17, 2]`` into ``cluster.json: partitions.load.disk[17]``."""
    argument, rest = re.fullmatch(r"(\w+)(.*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
    rest = re.sub(r"^\['(.*?)'\]", r".\1", rest)
    if argument in NODE_TABLES + PARTITION_TABLES and (cell := re.match(r"\[(\d+), (\d+)\]", rest)):
        rest = f".{dimensions[int(cell[2])]}[{cell[1]}]"
    return f"{name}: {PLACES.get(argument, argument).format(argument)}{rest}"


def _recognises(document: Document) -> bool:
    return b'"evenkeel-columns"' in document.data[:4096]


FORMAT = Format(
    name="native-json",
    summary="columnar JSON, one list per array",
    suffixes=(".json",),
    recognises=_recognises,
    read=read,
    write=write,
)
