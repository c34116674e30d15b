"""Read tables of replicas under the headings of the systems that print them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from evenkeel.systems.csv_text import Table
from evenkeel.systems.tables.lists import FALSE, NULLS, TRUE, row_by_replica

WORDS = {
    "group": ("group", "table_name", "tablename", "relname", "keyspace", "collection", "database"),
    "index": ("index", "shard", "last_token"),
    "partition": ("partition", "region_id", "regionid", "region_name", "tablet_id", "tabletid",
                  "shardid", "segment_id", "content"),
    "node": ("node", "store_id", "backend_id", "backendid", "datanodeid", "server", "server_name",
             "nodename", "node_name", "hostname", "replicas"),
    "role": ("role", "tablettype"),
}  # fmt: skip
"""What columns of replicas are called, in lower case, ours first."""

BESIDE = {"content": {"preferred_role"}, "replicas": {"last_token", "start_hash_code"}}
"""Columns of Greenplum, ScyllaDB and YugabyteDB that mean this only beside one of others."""

KEYSPACE, COORDINATOR = "keyspace_name", "-1"
SEGMENT_ROLES = {"p": "primary", "m": "secondary"}
"""How Greenplum calls the roles of its segments."""

FLAGGED = {"leader": ("is_leader", "leader"), "learner": ("is_learner",)}
"""Columns that are true where a replica has a role, or that name the node which has it."""

PORT = "nodeport"
KEPT = ("size_", "load_", "leader_load_", "non_voter_load_")


def titles_in(names: AbstractSet[str]) -> dict[str, str]:
    """Return the columns by our names; none if a node or its partitions have no column.

    >>> titles_in({"region_id", "store_id", "is_leader"})
    {'partition': 'region_id', 'node': 'store_id'}
    >>> titles_in({"store_id", "region_count"})
    {}
    """
    found = {
        own: here[0]
        for own, words in WORDS.items()
        if (here := [one for one in words if one in names and BESIDE.get(one, {one}) & names])
    }
    located = "node" in found and ("partition" in found or found.keys() >= {"group", "index"})
    return found if located else {}


def in_our_words(table: Table) -> tuple[Table, list[str]]:
    """Return a table under our headings, and the titles of columns that are not read."""
    found = titles_in(table.columns.keys())
    segments = found.get("partition") == "content"
    if "partition" in found:
        found.pop("index", None)
    table = row_by_replica(table, (), found["node"])
    columns = {own: table.columns[one] for own, one in found.items()}
    if PORT in table.columns:
        both = zip(columns["node"], table.columns[PORT], strict=True)
        columns["node"] = [f"{name}:{port}" for name, port in both]
    flags: dict[str, tuple[str, list[bool]]] = {}
    for role, names in FLAGGED.items():
        for one in names if "role" not in columns else ():
            having = _having_role(table.columns.get(one, ()), columns["node"])
            if having:
                flags.setdefault(role, (one, having))
    if flags:
        columns["role"] = [
            next((role for role, (_, having) in flags.items() if having[row]), "voter")
            for row in range(len(table))
        ]
    if segments:
        columns["role"] = [SEGMENT_ROLES.get(cell, cell) for cell in columns["role"]]
    if KEYSPACE in table.columns and "group" in columns:
        both = zip(table.columns[KEYSPACE], columns["group"], strict=True)
        columns["group"] = [f"{space}.{name}" for space, name in both]
    amounts = {one: cells for one, cells in table.columns.items() if one.startswith(KEPT)}
    read = {*found.values(), *amounts, PORT, KEYSPACE, *(one for one, _ in flags.values())}
    ours = not BESIDE.keys().isdisjoint(found.values())
    titles = {
        own: own if ours else table.titles.get(found.get(own, own), own)
        for own in (*columns, *amounts)
    }
    left = [title for one, title in table.titles.items() if one not in read]
    columns, lines = {**columns, **amounts}, table.lines
    if segments and COORDINATOR in columns["partition"]:
        kept = [row for row, one in enumerate(columns["partition"]) if one != COORDINATOR]
        columns = {name: [cells[row] for row in kept] for name, cells in columns.items()}
        lines = [lines[row] for row in kept]
        left.append(f"rows of the coordinator (content {COORDINATOR})")
    return Table(table.name, columns, lines, titles, notes=table.notes), left


def _having_role(cells: Sequence[str], nodes: Sequence[str]) -> list[bool]:
    """Return which replicas a column marks, or names by their nodes; none if it does neither."""
    if {cell.lower() for cell in {*cells} - NULLS} <= {*TRUE, *FALSE}:
        return [cell.lower() in TRUE for cell in cells]
    named = [cell == node for cell, node in zip(cells, nodes, strict=True)]
    return named if any(named) else []
