"""Read cells of tables: booleans, missing values and lists of nodes."""

import contextlib
import re
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from evenkeel.systems.csv_text import Table

TRUE, FALSE = ("true", "t", "yes", "y", "1", "x", "*"), ("false", "f", "no", "n", "0", "")
# cells that databases and scripts write where they have no value
NULLS = frozenset({"NULL", "Null", "null", "\\N", "N/A", "n/a", "None", "none", "nil", "-", "--",
                   "<none>"})  # fmt: skip

SEVERAL = re.compile(r"^\[.*\]$|^\{.*\}$|^\(.*\)$|[,;]")  # how a cell of several nodes looks
# the name of a server of HBase: its host, its port and when it started
SERVER = re.compile(r"(?![0-9]*,)[^,;]+,[0-9]{1,5},[0-9]{13}")

# a node and the number of a shard within it, as ScyllaDB lists both of each replica
PAIR = re.compile(r"""[(\[]\s*["']?([^][(),;"']+?)["']?\s*,\s*[0-9]+\s*[)\]]""")

# the number and the name of a node, as InfluxDB lists both of each replica
OWNER = re.compile(r"\{[0-9]+ +([^{}\s]+)\}")


def row_by_replica(table: Table, nodes: Collection[str], column: str = "node") -> Table:
    """Return a table with a row for each node of a cell that lists several, the first leading."""
    cells = table.columns[column]
    several = lists_in(cells, nodes)
    if not several:
        return table
    listed = [several.get(cell, [cell]) for cell in cells]
    rows = [row for row, own in enumerate(listed) for _ in own]
    columns = {title: [column[row] for row in rows] for title, column in table.columns.items()}
    columns[column] = [name for own in listed for name in own]
    lines = [table.lines[row] for row in rows]
    return Table(table.name, columns, lines, table.titles, table.delimiter, table.notes)


def lists_in(cells: Iterable[str], nodes: Collection[str]) -> dict[str, list[str]]:
    """Return the nodes of each cell that lists several."""
    return {
        cell: _listed(cell) or [""]
        for cell in {*cells} - {*nodes}
        if SEVERAL.search(cell) and not SERVER.fullmatch(cell)
    }


def name_of(cell: Any) -> Any:
    """Return the name of a node that an object tells more of, as CrateDB has it; others as is.

    >>> name_of({"id": "a7", "name": "n1"}), name_of("n1")
    ('n1', 'n1')
    """
    return cell["name"] if isinstance(cell, dict) and "name" in cell else cell


def _listed(cell: str) -> list[str]:
    with contextlib.suppress(msgspec.DecodeError, KeyError):
        return [msgspec.json.decode(cell, type=dict[str, str | None])["name"] or ""]
    with contextlib.suppress(msgspec.DecodeError):  # names in quotes may have commas
        listed = [one.strip() for one in msgspec.json.decode(cell, type=list[str])]
        return ["" if one in NULLS else one for one in listed if one]
    if paired := PAIR.findall(cell[1:-1]) or OWNER.findall(cell):
        return [*map(str.strip, paired)]
    parts = re.split("[,;]", cell.strip("[]{}()"))
    named = filter(None, (part.strip(" '\"") for part in parts))
    return ["" if part in NULLS else part for part in named]
