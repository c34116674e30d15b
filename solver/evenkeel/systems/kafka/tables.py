"""Read tables of partition loads, and of racks, states and capacities of brokers.

Loads: ``topic``, ``partition`` (left out or empty: the whole topic, divided evenly over its
partitions), and any of ``cpu`` in percent, ``network_in``, ``network_out`` in bytes per second and
``disk`` in bytes, of every replica. ``leader_cpu`` and so on is the load of the leader instead.
Brokers: ``broker``, and any of ``rack``, ``state`` and the same names for capacities.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.csv_text import BYTES, Table, header_of, read_table
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.kafka.findings import MOST, Findings
from evenkeel.systems.kafka.racks import add_rack
from evenkeel.systems.kafka.rows import Rows
from evenkeel.systems.node_states import read_states

# dimension by the name of a column
RESOURCES = {
    "disk": "disk", "size": "disk", "bytes": "disk", "cpu": "cpu",
    "network_in": "network_in", "nw_in": "network_in", "bytes_in": "network_in",
    "network_out": "network_out", "nw_out": "network_out", "bytes_out": "network_out",
}  # fmt: skip

LEADER = "leader_"  # prefix of a column with loads of the leader
BROKER = ("broker", "broker_id", "brokerid", "id", "node", "node_id")
ABOUT_BROKERS = {"rack", "state", *RESOURCES}
OF_LOADS = {"topic", "partition", *RESOURCES, *(f"{LEADER}{name}" for name in RESOURCES)}


def is_load_table(document: Document) -> bool:
    """Return whether a document is a table of loads."""
    names = header_of(document)
    return "topic" in names and any(one.removeprefix(LEADER) in RESOURCES for one in names)


def is_broker_table(document: Document) -> bool:
    """Return whether a document is a table of brokers."""
    names = header_of(document)
    return bool(names & {"broker", "broker_id", "brokerid"} and names & ABOUT_BROKERS)


def _unit(resource: str) -> str:
    """Return the unit of a resource."""
    return "percent" if RESOURCES[resource] == "cpu" else BYTES


def read_broker_table(found: Findings, document: Document) -> None:
    """Read racks, states and capacities by broker."""
    table = read_table(found.faults, document)
    key = next((name for name in BROKER if name in table.columns), "")
    if not key:
        return
    table.check_columns(found.faults, {key, *ABOUT_BROKERS})
    brokers = table.wholes(found.faults, key, MOST).tolist()
    states = read_states(found.faults, table, "state")
    capacities = {
        RESOURCES[name]: table.amounts(
            found.faults, name, np.nan, infinite=True, unit=_unit(name)
        ).tolist()
        for name in table.columns
        if name in RESOURCES
    }
    racks = table.cells("rack")
    seen: dict[int, str] = {}
    for row, broker in enumerate(brokers):
        at = table.at(row, key)
        if (first := seen.setdefault(broker, at)) != at:
            found.faults.add(at, broker, f"is already given at {first}")
            continue
        stated = bool(table.cells("state")[row]) if "state" in table.columns else False
        found.add_state(at, broker, states[row] if stated else None)
        add_rack(found, document, table.at(row, "rack"), broker, racks[row])
        if capacities:
            own = {name: column[row] for name, column in capacities.items()}
            found.add_capacity(at, broker, {k: v for k, v in own.items() if v == v})


def read_loads(
    found: Findings, rows: Rows, names: Sequence[str]
) -> tuple[Mapping[str, NDArray[np.float64]], Mapping[str, NDArray[np.float64]]]:
    """Return loads by dimension: of each replica of a partition, and of its leader."""
    every: dict[str, NDArray[np.float64]] = {}
    leading: dict[str, NDArray[np.float64]] = {}
    if not found.load_tables:
        return every, leading
    place = {name: p for p, name in enumerate(names)}
    topics = {topic: g for g, topic in enumerate(rows.topics)}
    sizes = np.bincount(rows.topic, minlength=len(topics))
    for document in found.load_tables:
        table = read_table(found.faults, document)
        table.check_columns(found.faults, OF_LOADS)
        at = _where(found, table, place, topics)
        for name in table.columns:
            plain = name.removeprefix(LEADER)
            if plain not in RESOURCES:
                continue
            amounts = table.amounts(found.faults, name, np.nan, unit=_unit(plain))
            into = leading if name.startswith(LEADER) else every
            loads = into.setdefault(RESOURCES[plain], np.full(len(names), np.nan))
            for row, (p, g) in enumerate(at):
                if g >= 0 and amounts[row] == amounts[row]:
                    # the rows of a topic are adjacent
                    begin = np.searchsorted(rows.topic, g)
                    loads[begin : begin + sizes[g]] = amounts[row] / sizes[g]
                elif p >= 0:
                    loads[p] = amounts[row]
    return every, leading


def _where(
    found: Findings, table: Table, place: Mapping[str, int], topics: Mapping[str, int]
) -> list[tuple[int, int]]:
    """Return the partition or the topic of each row, -1 for none."""
    faults, cells = found.faults, table.columns.get("topic", ())
    idle = {topic for topic in cells if topic not in topics}
    # a table may hold topics that the description leaves out; if it knows none, it is of another
    # cluster
    if len(idle) < len({*cells}):
        found.idle_loads |= idle
    else:
        idle = set()
    numbers = table.cells("partition")
    at: list[tuple[int, int]] = []
    seen: dict[tuple[int, int], int] = {}
    for row, topic in enumerate(cells):
        which: Any = (-1, -1)
        if numbers[row]:
            which = (place.get(f"{topic}-{numbers[row]}", -1), -1)
        else:
            which = (-1, topics.get(topic, -1))
        if which == (-1, -1) and topic not in idle:
            name = f"{topic}-{numbers[row]}" if numbers[row] else topic
            faults.add(table.at(row, "topic"), quoted(name), "is in no reassignment or description")
        elif which != (-1, -1) and seen.setdefault(which, row) != row:
            first = table.at(seen[which], "topic")
            faults.add(table.at(row, "topic"), quoted(topic), f"is already given at {first}")
        at.append(which)
    return at
