"""Newcomers: a table of nodes that join a cluster which was read from anywhere."""

from evenkeel.formats.csv_text import read_table
from evenkeel.formats.documents import Document, Source
from evenkeel.formats.tables.reading import CAPACITY, NODE, node_columns, of_nodes
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList


def read_newcomers(source: Source, cluster: Cluster) -> Cluster:
    r"""Return a cluster with the nodes of a table after those it has, empty and up.

    Raises
    ------
    InvalidInput
        Naming every problem with file, line, column and value.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> cluster = Cluster.from_arrays(capacity=[[9.0]], load=[], dimensions=["cpu"])
    >>> read_newcomers(b"node,cap_cpu\nbig,64\n", cluster).nodes.capacity.tolist()
    [[9.0], [64.0]]
    """
    document = Document.load(source)
    faults = FaultList()
    table = read_table(faults, document)
    tiers = {tier.lower(): tier for tier in cluster.topology.tiers}
    table.check_columns(faults, {*of_nodes(cluster.dimensions), *tiers} - {"state"})
    if not table.titles.keys() & {*NODE}:
        faults.add(document.name, [*table.titles], f"needs a column of names, {NODE[0]}")
    for dimension in cluster.dimensions:
        if f"{CAPACITY}{dimension.lower()}" not in table.columns:
            faults.add(f"{document.name}: {CAPACITY}{dimension}", None, "is missing")
    faults.raise_if_any()
    given = node_columns(faults, table, cluster.dimensions, ())
    faults.raise_if_any()
    domains = {tiers[name.lower()]: column for name, column in given.get("domains", {}).items()}
    return cluster.add_nodes(
        given["capacity"],
        names=given["node_names"],
        domains=domains or None,
        tags=given.get("tags"),
        watermark=given.get("watermark"),
        weight=given.get("weight"),
        max_replicas=given.get("max_replicas"),
    )
