"""Newcomers: a table of nodes that join a cluster which was read from anywhere."""

from collections.abc import Mapping

import numpy as np

from evenkeel.model.changes import limited_tiers
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.csv_text import read_table
from evenkeel.systems.documents import Document, Source
from evenkeel.systems.registry import awaited_by
from evenkeel.systems.tables.reading import CAPACITY, NODE, name_column, node_columns, of_nodes


def read_newcomers(source: Source, cluster: Cluster) -> tuple[Cluster, Mapping[str, float]]:
    r"""Return a cluster with the nodes of a table after those it has, empty and up.

    Capacities that the table has no column for are those in the system's files,
    else those of the nodes there are, where these are alike; the latter are returned beside it, by
    dimension.
    """
    document = Document.load(source)
    faults = FaultList()
    table = read_table(faults, document)
    tiers = {tier.lower(): tier for tier in cluster.topology.tiers}
    table.check_columns(faults, {*of_nodes(cluster.dimensions), *tiers} - {"state"})
    if not table.titles.keys() & {*NODE}:
        faults.add(document.name, [*table.titles], f"needs a column of names, {NODE[0]}")
    alike: dict[str, float] = {}
    key = name_column(table)
    awaited = awaited_by(cluster)
    own = [awaited.get(name, {}) for name in table.cells(key)]
    known = dict[str, list[float]]()
    for d, dimension in enumerate(cluster.dimensions):
        if f"{CAPACITY}{dimension.lower()}" in table.columns:
            continue
        if own and all(dimension in one for one in own):
            known[dimension] = [one[dimension] for one in own]
            continue
        least, most = _range(cluster, d)
        if least == most:
            alike[dimension] = least
        else:
            message = f"is missing, and nodes differ: they have {least:g} to {most:g}"
            faults.add(f"{document.name}: {CAPACITY}{dimension}", None, message)
    faults.raise_if_any()
    moved = cluster.bytes_dimension
    of_bytes = cluster.dimensions[moved] if moved >= 0 else None
    given = node_columns(faults, table, cluster.dimensions, (), of_bytes)
    for name in table.columns:
        if name.startswith(CAPACITY):
            message = "is empty: write how much it has, inf for no limit, or leave the column out"
            table.each(faults, name, lambda cell: not cell, message)
    domains = {tiers[name.lower()]: column for name, column in given.get("domains", {}).items()}
    for tier in limited_tiers(cluster.rules, cluster.topology):
        labels = domains.get(tier, [""] * len(given["node_names"]))
        strays = [n for n, label in zip(given["node_names"], labels, strict=True) if not label]
        if strays:
            message = f"have none, and rules count replicas by {tier}: give each its own"
            faults.add(f"{document.name}: {tier}", strays, message)
    faults.raise_if_any()
    for dimension, capacity in (*alike.items(), *known.items()):
        given["capacity"][:, cluster.dimensions.index(dimension)] = capacity
    grown = cluster.add_nodes(
        given["capacity"],
        names=given["node_names"],
        domains=domains or None,
        tags=given.get("tags"),
        watermark=given.get("watermark"),
        weight=given.get("weight"),
        max_replicas=given.get("max_replicas"),
    )
    return grown, alike


def _range(cluster: Cluster, d: int) -> tuple[float, float]:
    """Return the least and the most that nodes which take replicas have of a dimension."""
    nodes = cluster.nodes
    open_to = nodes.alive & nodes.accepts & ~nodes.gone
    own = nodes.capacity[open_to if open_to.any() else np.ones(len(nodes), np.bool_), d]
    return float(own.min(initial=np.inf)), float(own.max(initial=0.0))
