"""JSON of tables in other forms than an array of rows.

pandas writes columns, rows by their index, or titles beside rows, by its ``orient``; people write
several tables as one object, or one row under each name.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import msgspec

from evenkeel.systems.documents import Document
from evenkeel.systems.printed import HEAD
from evenkeel.systems.tables.answers import NESTED, is_partial, rows_in
from evenkeel.systems.tables.lists import name_of
from evenkeel.systems.tables.other_headings import LEADING, titles_in
from evenkeel.systems.tables.other_nodes import NAMES, TIERS

# how titles, several tables, and columns or rows by their names begin, and rows of lists
OBJECT = re.compile(
    rb'\s*\{\s*"[^"]*"\s*:\s*(?:\[|\{[^{}\[\]]*\}\s*[,}])|'
    rb'\s*\{\s*"schema"\s*:\s*\{\s*"fields"\s*:|'
    rb'\s*\[\s*\{[^{}\[\]]*"replicas"\s*:\s*\['
)

# names that nodes have: where those of lists are of this kind and what they list is not, each list
# is of a node
HOST = re.compile(
    r"(?:n|node|data-?node|dn|host|server|broker|worker)[-_. ]?[0-9]+"
    r"|.+:[0-9]{4,5}|[0-9]+(?:\.[0-9]+){3}"
)

# titles beside rows, as pandas, Elasticsearch's SQL, CrateDB and ClickHouse write them
TITLED = ("columns", "cols", "meta")

PARTITIONS = ("partitions", "shards")
TABLES = {"nodes", "replicas", "disks", *PARTITIONS}
# columns of which each table has one
TITLES = {"node", "nodes", "partition", "group", "id", "name"}


def as_rows(document: Document) -> tuple[Document, ...]:
    """Return the tables in a document, each as an array of rows; any other document as it is."""
    nested = NESTED.match(document.data[:HEAD])
    if not nested and not OBJECT.match(document.data[:HEAD]):
        return (document,)
    try:
        given = msgspec.json.decode(document.data, type=dict[str, Any] | list[dict[str, Any]])
        if nested:
            tables = rows_in(given)
        else:
            tables = _tables_of(given) if isinstance(given, dict) else [_with_nodes(given)]
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ):
        return (document,)
    cut = isinstance(given, dict) and is_partial(given)
    read = tuple(replace(document, data=msgspec.json.encode(rows), cut=cut) for rows in tables)
    return read or (document,)


def _tables_of(given: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return rows of tables, of titles beside rows, several tables, columns, or rows by name."""
    titles = next((given[one] for one in TITLED if isinstance(given.get(one), list)), None)
    below = next((given[one] for one in ("data", "rows") if isinstance(given.get(one), list)), None)
    if titles is not None and below is not None:
        names = [one["name"] if isinstance(one, dict) else one for one in titles]
        return [
            [
                one if isinstance(one, dict) else dict(zip(names, map(name_of, one), strict=True))
                for one in below
            ]
        ]
    if below is not None and isinstance(given.get("schema"), dict):
        unnamed = ["index"] if given["schema"].get("primaryKey") == ["index"] else []
        return [[{one: row[one] for one in row if one not in unnamed} for row in below]]
    if given.keys() <= TABLES:
        return [
            _with_nodes([*map(_by_name, rows)]) if name in PARTITIONS else list(rows)
            for name, rows in given.items()
        ]
    if all(isinstance(one, list) for one in given.values()):
        if TITLES & given.keys() or titles_in(given.keys()):
            cells = zip(*given.values(), strict=True)
            return [[dict(zip(given, row, strict=True)) for row in cells]]
        lists = msgspec.convert(given, dict[str, list[str | int]])
        apart = all(len({*row}) == len(row) for row in lists.values())
        held = {str(one) for row in lists.values() for one in row}
        if apart and all(map(HOST.fullmatch, lists)) and not any(map(HOST.fullmatch, held)):
            rows = ((one, name) for name, row in lists.items() for one in row)
            replicas = [{"partition": one, "node": name, "role": "voter"} for one, name in rows]
            return [[{"node": name} for name in lists], replicas]
        return [[{"partition": name, "nodes": row} for name, row in lists.items()]] * apart
    index = next(iter(given.values())).keys()
    if TITLES & given.keys() or _are_columns(given.keys(), index):
        alike = all(column.keys() == index for column in given.values())
        return [[{title: column[i] for title, column in given.items()} for i in index]] * alike
    headed = {title for row in given.values() for title in row}
    if {"partition", "index", "name", "id"} & headed or _are_columns(headed, given):
        return [list(given.values())]
    of = "partition" if headed & {"node", "nodes"} else "node"
    known = of == "partition" or any(title.startswith("cap_") for title in headed)
    return [[{of: name, **row} for name, row in given.items()]] * known


def _are_columns(titles: AbstractSet[str], index: Collection[str]) -> bool:
    """Return whether titles are of replicas or, where rows are counted, of nodes."""
    counted = [*index] == [*map(str, range(len(index)))] and titles & {"node", *NAMES}
    limited = any(title.startswith("cap_") for title in titles)
    return bool(titles_in(titles) or (counted and (limited or titles & TIERS)))


def _by_name(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a partition whose name is called its name."""
    name = next(
        (one for one in ("id", "name") if one in row and "partition" not in row), "partition"
    )
    return {"partition" if one == name else one: cell for one, cell in row.items()}


def _with_nodes(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose lists of replicas are ones of nodes, unless others name the leaders."""
    led = any(place in row for row in rows for place in LEADING)
    return [
        {
            "nodes" if one == "replicas" and isinstance(cell, list) and not led else one: cell
            for one, cell in row.items()
        }
        for row in rows
    ]
