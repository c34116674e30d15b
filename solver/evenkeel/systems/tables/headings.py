"""Headings: the columns that tables had when they were read, so that they are written back so.

They travel in ``cluster.native`` where they are not those that are written anyway.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.systems.csv_text import Table
from evenkeel.systems.documents import Document, largest, quoted
from evenkeel.systems.node_states import NodeState
from evenkeel.systems.tables.reading import (
    CAPACITY,
    LOADS,
    NAME,
    NODE,
    OF_NODES,
    WATERMARK,
    cluster_of,
    name_column,
    strangers_in,
    tables_in,
    with_rows,
)

Headings = Mapping[str, str]
"""Title of a column in the table that was read, by its default title."""

KEY, UNCAPPED, GONE = "headings", "uncapped", "gone"
EMPTY = "empty"
"""Key of the numbers of empty cells, by capacity and load."""

NULLS = "nulls"
"""Key of the numbers of cells that had no value and were read as empty, or as usual."""

NAMED = 8
"""Nodes that are named one by one; the rest is counted."""


class Both(NamedTuple):
    """Headings of a table of nodes, and of one of replicas; empty where nothing is known."""

    nodes: Headings
    replicas: Headings


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from a table of nodes, one of replicas, and perhaps rules."""
    found = tables_in(documents)
    nodes, gone = found.nodes[0], strangers_in(*found.nodes, *found.replicas)
    found.nodes = [with_rows(nodes, gone)]
    cluster = cluster_of(found, largest(documents))
    file, unknown = ("", []) if found.rules is None else (found.rules[0], found.rules[1].uncapped)
    for name in unknown:
        if name not in cluster.dimensions:
            message = f"is not a dimension; known: {[*cluster.dimensions]}"
            found.faults.add(f"{file}: {UNCAPPED}", quoted(name), message)
    found.faults.raise_if_any()
    if gone:
        lost = np.arange(len(cluster.nodes)) >= len(nodes)
        alive, accepts, keeps, leads = (
            getattr(cluster.nodes, one) & ~lost for one in NodeState._fields
        )
        cluster = cluster.replace(alive=alive, accepts=accepts, keeps=keeps, leads=leads)
    return with_headings(cluster, nodes, found.replicas[0], unknown, gone, found.nulls)


def with_headings(
    cluster: Cluster,
    nodes: Table,
    replicas: Table,
    unknown: Sequence[str] = (),
    gone: Sequence[str] = (),
    nulls: Mapping[str, int] = MappingProxyType({}),
) -> Cluster:
    """Return a cluster that remembers the headings of its tables, if they are not the usual ones.

    These are what is always written, in any case: what more there is depends on the cluster. So it
    does the dimensions with unknown capacities, of which the table has assumed ones.
    """
    dimensions, tiers = cluster.dimensions, cluster.topology.tiers
    found = Both(_of_nodes(nodes, dimensions), _of_replicas(replicas, dimensions))
    usual = {"node", *tiers, "state", *(f"{CAPACITY}{one}" for one in dimensions)}
    named = {"group", "node", "role", *(f"load_{one}" for one in dimensions)}
    names = {"index", "partition"} & found.replicas.keys()
    as_usual = all(title == name for one in found for name, title in one.items())
    if (
        as_usual
        and usual <= found.nodes.keys()
        and named <= found.replicas.keys()
        and (len(names) == 1 and "pinned" not in found.replicas)
    ):
        payload: dict[str, Any] = {}
    else:
        payload = {KEY: {"nodes": dict(found.nodes), "replicas": dict(found.replicas)}}
    payload |= {UNCAPPED: [*unknown]} if unknown else {}
    payload |= {GONE: [*gone]} if gone else {}
    payload |= {NULLS: dict(nulls)} if nulls else {}
    payload |= _empty(nodes, replicas, dimensions)
    return cluster.replace(native=payload, native_format=NAME) if payload else cluster


def _empty(nodes: Table, replicas: Table, dimensions: Sequence[str]) -> dict[str, Any]:
    """Return which capacities and loads of tables were left empty though they have the column."""
    key = name_column(nodes)
    limits, loads = {}, {}
    for one in dimensions:
        none = np.flatnonzero(nodes.empty(f"{CAPACITY}{one.lower()}")).tolist()
        if none:
            limits[one] = [nodes.columns[key][row] for row in none]
        for title in (f"{prefix}{one.lower()}" for prefix in LOADS["load"]):
            if title in replicas.columns and (count := int(replicas.empty(title).sum())):
                loads[one] = count
    found = {"capacities": limits, "loads": loads}
    return {EMPTY: {name: part for name, part in found.items() if part}} if limits or loads else {}


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimensions with assumed capacities."""
    found: Sequence[str] = cluster.native.get(UNCAPPED, ()) if _remembers(cluster) else ()
    return found


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing input and its effect."""
    if unknown := uncapped(cluster):
        yield (
            f"no capacities of {' and '.join(unknown)}: those of the table are assumed, and "
            f"percentages are of them; write the true ones, and take {UNCAPPED} out of the rules"
        )
    if gone := cluster.native.get(GONE, ()) if _remembers(cluster) else ():
        yield (
            f"no node {some_of(gone, printable, NAMED)}, which replicas are on: it counts as down, "
            "and what it holds is placed anew"
        )
    empty = cluster.native.get(EMPTY, {}) if _remembers(cluster) else {}
    for name, nodes in empty.get("capacities", {}).items():
        if name not in cluster.dimensions:
            continue
        limitless = np.isinf(cluster.nodes.capacity[:, cluster.dimensions.index(name)])
        still = {one for one, inf in zip(cluster.nodes.names, limitless, strict=True) if inf}
        if left := [one for one in nodes if one in still]:
            yield (
                f"no capacity of {name} of nodes {some_of(left, str, NAMED)}: an empty cell is no "
                "limit, and no share of one counts; write how much there is, or inf"
            )
    for title, count in (cluster.native.get(NULLS, {}) if _remembers(cluster) else {}).items():
        yield (
            f"no value of {quoted(title)} in {counted(count, 'row')}: it is read as if the cell "
            "were empty or the column missing"
        )
    for name, count in empty.get("loads", {}).items():
        yield f"no load of {name} in {counted(count, 'row')} of replicas: it counts as 0"


def _remembers(cluster: Cluster) -> bool:
    return cluster.native_format == NAME and isinstance(cluster.native, dict)


def headings_of(cluster: Cluster) -> Both:
    """Return the headings that a cluster remembers."""
    if not _remembers(cluster):
        return Both({}, {})
    known = cluster.native.get(KEY, {})
    return Both(known.get("nodes", {}), known.get("replicas", {}))


def titled(columns: Mapping[str, Sequence[Any]], headings: Headings) -> dict[str, Sequence[Any]]:
    """Return columns by their titles, in the order in which they stood; others come after them."""
    order = [name for name in headings if name in columns]
    order += [name for name in columns if name not in headings]
    return {headings.get(name, name): columns[name] for name in order}


def _of_nodes(table: Table, dimensions: Sequence[str]) -> dict[str, str]:
    amounts = {
        f"{prefix}{one.lower()}": f"{prefix}{one}"
        for prefix in (CAPACITY, WATERMARK)
        for one in dimensions
    }
    key = name_column(table)
    known = {one: one for one in OF_NODES - {*NODE}} | amounts | {key: "node"}
    return {known.get(name, title): title for name, title in table.titles.items()}


def _of_replicas(table: Table, dimensions: Sequence[str]) -> dict[str, str]:
    loads = {
        f"{prefix}{one.lower()}": f"{argument}_{one}"
        for argument, prefixes in LOADS.items()
        for prefix in prefixes
        for one in dimensions
    }
    return {loads.get(name, name): title for name, title in table.titles.items()}
