"""Read tables of replicas under the headings of the systems that print them."""

from collections.abc import Set as AbstractSet

from evenkeel.systems.csv_text import Table

WORDS = {
    "group": ("group", "table_name", "tablename", "keyspace", "collection", "database"),
    "index": ("index", "shard"),
    "partition": ("partition", "region_id", "regionid", "region_name", "tablet_id", "tabletid",
                  "shardid", "segment_id"),
    "node": ("node", "store_id", "backend_id", "backendid", "datanodeid", "server", "server_name",
             "nodename", "node_name", "hostname"),
    "role": ("role", "tablettype"),
}  # fmt: skip
"""What columns of replicas are called, in lower case, ours first."""

FLAGGED = {"leader": ("is_leader", "leader"), "learner": ("is_learner",)}
"""Columns that are true where a replica has a role."""

PORT = "nodeport"
TRUE = ("1", "true", "t", "yes")
KEPT = ("size_", "load_", "leader_load_", "non_voter_load_")


def titles_in(names: AbstractSet[str]) -> dict[str, str]:
    """Return the columns by our names; none if those are missing that tell what is where.

    >>> titles_in({"region_id", "store_id", "is_leader"})
    {'partition': 'region_id', 'node': 'store_id'}
    >>> titles_in({"store_id", "region_count"})
    {}
    """
    found = {
        own: next(one for one in words if one in names)
        for own, words in WORDS.items()
        if not names.isdisjoint(words)
    }
    located = "node" in found and ("partition" in found or found.keys() >= {"group", "index"})
    return found if located else {}


def in_our_words(table: Table) -> tuple[Table, list[str]]:
    """Return a table under our headings, and the titles of columns that are not read."""
    found = titles_in(table.columns.keys())
    if "partition" in found:
        found.pop("index", None)
    columns = {own: table.columns[one] for own, one in found.items()}
    if PORT in table.columns:
        both = zip(columns["node"], table.columns[PORT], strict=True)
        columns["node"] = [f"{name}:{port}" for name, port in both]
    flags = {
        role: table.columns[one]
        for role, names in FLAGGED.items()
        for one in names
        if one in table.columns and "role" not in columns
    }
    if flags:
        columns["role"] = [
            next((role for role, cells in flags.items() if cells[row].lower() in TRUE), "voter")
            for row in range(len(table))
        ]
    amounts = {one: cells for one, cells in table.columns.items() if one.startswith(KEPT)}
    read = {*found.values(), *amounts, PORT, *(n for names in FLAGGED.values() for n in names)}
    titles = {own: table.titles.get(found.get(own, own), own) for own in (*columns, *amounts)}
    left = [title for one, title in table.titles.items() if one not in read]
    return Table(table.name, {**columns, **amounts}, table.lines, titles, notes=table.notes), left
