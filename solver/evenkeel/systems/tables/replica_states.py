"""Read the states of single replicas: one that is out of service counts as lost."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenkeel.systems.csv_text import Table
from evenkeel.systems.tables.lists import NULLS, TRUE

STATED = ("status", "state", "replica_state", "routing_state", "replicastatus")
# columns of a replica's state, and those that are true where it is broken
BROKEN = ("isbad", "is_bad")

OUT = {"down", "dead", "offline", "bad", "error", "failed", "lost", "missing", "unassigned",
       "unavailable", "recovery_failed", "not_serving", "unhealthy"}  # fmt: skip
# what a state says, in lower case, of replicas that are out of service and of others
IN = {"", "up", "ok", "normal", "online", "active", "alive", "started", "running", "serving",
      "healthy", "clone", "schema_change", "rollup", "pending", "recovering", "relocating",
      "initializing", "version_error", "schema_error", "adding", "removing", "readonly",
      "unknown", "ready", "inbuild", "standby"}  # fmt: skip

# how Greenplum writes states: a column of other letters means something else
LETTERS = {"u": "up", "d": "down"}


class OutOfService(NamedTuple):
    """What is out of service by a column of states."""

    titles: list[str]
    replicas: list[str]  # each with its node, but for those on nodes of which all are
    nodes: list[str]  # nodes of which all replicas are, where no table says how the nodes are


def without_lost(table: Table, nodes: Table) -> tuple[Table, OutOfService]:
    """Return a table whose replicas out of service have no node, and which these are."""
    columns = table.columns
    states = _states(columns)
    names = ("partition",) if "partition" in columns else ("group", "index")
    keys = [columns[one] for one in names if states and one in columns]
    # tables with one replica of each partition, or with lists of them, have no lost ones
    if len({*zip(*keys, strict=True)}) in {0, len(table)} or len({*table.lines}) < len(table):
        return table, OutOfService([], [], [])
    out = [any(row) for row in zip(*states.values(), strict=True)]
    on = columns["node"]
    # a node without other replicas counts as down, and they stay there
    serving = {node for node, lost in zip(on, out, strict=True) if not lost}
    down = [] if "state" in nodes.columns or not any(out) else [*dict.fromkeys(on)]
    down = [node for node in down if node and node not in serving]
    lost = [row for row, gone in enumerate(out) if gone and on[row] and on[row] not in down]
    kept = {one: cells for one, cells in columns.items() if one not in states}
    called = {row: "-".join(cells[row] for cells in keys) for row in lost}
    kept["node"] = ["" if row in called else node for row, node in enumerate(on)]
    titles = [table.titles[one] for one, cells in states.items() if any(cells)]
    found = OutOfService(titles, [f"{name} on {on[row]}" for row, name in called.items()], down)
    left = {one: title for one, title in table.titles.items() if one in kept}
    made = Table(table.name, kept, table.lines, left, table.delimiter, table.notes)
    return made, found


def _states(columns: Mapping[str, Sequence[str]]) -> dict[str, list[bool]]:
    """Return which replicas each column says are out of service, of columns that are understood."""
    found = {}
    for one in (*STATED, *BROKEN):
        cells = ["" if cell in NULLS else cell.lower() for cell in columns.get(one, ())]
        cells = [LETTERS[cell] for cell in cells] if {*cells} <= LETTERS.keys() else cells
        out = [cell in (TRUE if one in BROKEN else OUT) for cell in cells]
        if cells and (any(out) or one in BROKEN or {*cells} <= IN):
            found[one] = out
    return found
