"""Read and write the table of disks inside nodes, and the disks of replicas.

The column is ``disk``, ``log_dir`` or ``volume``. A ``log_dir`` or ``volume`` is of its node, and
the cluster calls it ``NODE:NAME``; so it does a ``disk`` if two nodes have one of the same name.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.disks import Disks, DiskState, disk_of
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.csv_text import Table
from evenkeel.systems.documents import quoted

CAPACITY = "capacity"
OF_NODE = ("log_dir", "volume")
TITLES = ("disk", *OF_NODE)
STATES = {"": DiskState.FINE} | {one.name.lower(): one for one in DiskState}


def disk_column(names: Collection[str]) -> str:
    """Return the column that names disks, "" if there is none."""
    return next((name for name in TITLES if name in names), "")


def is_of_disks(names: Collection[str]) -> bool:
    """Tell whether these are the columns of a table of disks."""
    return "node" in names and CAPACITY in names and bool(disk_column(names))


def read_disks(faults: FaultList, table: Table, nodes: Sequence[str]) -> Disks | None:
    """Return the disks of a table in the order of their nodes; note what does not fit."""
    column = disk_column(table.columns)
    table.check_columns(faults, {"node", column, CAPACITY, "state"})
    known = {name: n for n, name in enumerate(nodes)}
    message = "is not a node of the other table"
    table.each(faults, "node", lambda cell: cell not in known, message)
    states = [cell.lower() for cell in table.cells("state")]
    if "state" in table.columns:
        message = f"is not a state of a disk: {', '.join(filter(None, STATES))}"
        table.each(faults, "state", lambda cell: cell.lower() not in STATES, message)
    capacity = table.amounts(faults, CAPACITY, np.inf, infinite=True)
    cells = table.columns[column]
    rows: dict[tuple[str, str], int] = {}
    for row, key in enumerate(zip(table.columns["node"], cells, strict=True)):
        if not key[1]:
            faults.add(table.at(row, column), "", "is empty")
        elif rows.setdefault(key, row) != row:
            message = f"is already given at {table.at(rows[key], column)}"
            faults.add(table.at(row, column), quoted(key[1]), message)
    if faults:
        return None
    apart = column in OF_NODE or len({*cells}) < len(cells)
    names = [f"{node}:{cell}" if apart else cell for node, cell in rows]
    node = np.array([known[one] for one in table.columns["node"]], np.int32)
    order = np.argsort(node, kind="stable")
    codes = [int(STATES[states[row]]) for row in order.tolist()]
    try:
        return Disks(node[order], capacity[order], codes, [names[row] for row in order.tolist()])
    except InvalidInput as error:
        faults.take(error, f"{table.name}: ")
        return None


def read_lying(
    faults: FaultList, replicas: Table, disks: Disks, nodes: Sequence[str]
) -> tuple[NDArray[np.int32] | None, list[str]]:
    """Return the disk of each row of replicas, and nodes without disks of which rows name some."""
    # None without a column of disks; -1 where a disk is not known
    column = disk_column(replicas.columns)
    if not column:
        return None, []
    place: dict[tuple[str, str], int] = {}
    for d, (n, name) in enumerate(zip(disks.node.tolist(), disks.names, strict=True)):
        place[nodes[n], name] = d
        place.setdefault((nodes[n], name.removeprefix(f"{nodes[n]}:")), d)
    bare = {*nodes} - {nodes[n] for n in disks.node.tolist()} | {""}
    found = np.full(len(replicas), -1, np.int32)
    strays: dict[str, None] = {}
    for row, key in enumerate(zip(replicas.columns["node"], replicas.columns[column], strict=True)):
        if key in place:
            found[row] = place[key]
        elif key[0] in bare and key[1]:
            strays[key[0]] = None
        elif key[1]:
            faults.add(replicas.at(row, column), quoted(key[1]), f"is no disk of {quoted(key[0])}")
    return found, [*filter(None, strays)]


def disk_cells(disks: Disks, nodes: Sequence[str], heading: str) -> tuple[str, list[str]]:
    """Return a title of disks, ``heading`` where it fits, and the cell of each disk, (M,)."""
    prefixes = [f"{nodes[n]}:" for n in disks.node.tolist()]
    pairs = list(zip(disks.names, prefixes, strict=True))
    short = [name.removeprefix(prefix) for name, prefix in pairs]
    apart = all(name.startswith(prefix) and name != prefix for name, prefix in pairs)
    if apart and heading.lower() in OF_NODE:
        return heading, short
    title = heading if heading.lower() == "disk" else "disk"
    return title, short if apart and len({*short}) < len(short) else list(disks.names)


def columns_of(
    disks: Disks, cells: Sequence[str], nodes: Sequence[str], headings: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """Return the columns of the table of disks."""
    columns: dict[str, Sequence[Any]] = {
        "node": [nodes[n] for n in disks.node.tolist()],
        "disk": cells,
        CAPACITY: disks.capacity.tolist(),
    }
    if not headings or "state" in headings or not disks.usable.all():
        columns["state"] = [DiskState(one).name.lower() for one in disks.state.tolist()]
    return columns


def lying_cells(disks: Disks, cells: Sequence[str], placement: Placement) -> list[str]:
    """Return the cell of the disk of each replica, (K,); "" where it is not known."""
    return [cells[d] if d >= 0 else "" for d in disk_of(disks, placement).tolist()]
