"""States of nodes in tables, and the permissions of each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes
from evenkeel.systems.csv_text import Table


class NodeState(NamedTuple):
    """What a node in a state does."""

    alive: bool
    accepts: bool
    keeps: bool
    leads: bool


# by the name in a table; empty is up
NODE_STATES = {
    "up": NodeState(alive=True, accepts=True, keeps=True, leads=True),
    "cordoned": NodeState(alive=True, accepts=False, keeps=True, leads=True),
    "draining": NodeState(alive=True, accepts=False, keeps=False, leads=False),
    "down": NodeState(alive=False, accepts=False, keeps=False, leads=False),
}


def read_states(faults: FaultList, table: Table, column: str) -> list[NodeState]:
    """Return the state of each row; one that is unknown is a fault."""
    if column in table.columns:
        known = {*NODE_STATES, ""}
        message = f"is not a state; known: {[*NODE_STATES]}"
        table.each(faults, column, lambda cell: cell.lower() not in known, message)
    up = NODE_STATES["up"]
    return [NODE_STATES.get(cell.lower(), up) for cell in table.cells(column)]


def columns_of(states: Sequence[NodeState]) -> dict[str, NDArray[np.bool_]]:
    """Return states as arguments of a cluster."""
    table = np.array(states, np.bool_).reshape(-1, len(NodeState._fields))
    return {name: table[:, i] for i, name in enumerate(NodeState._fields)}


def names_of(nodes: Nodes) -> list[str]:
    """Return the name of each node's state; the nearest where there is none of exactly its kind."""
    names = {state: name for name, state in NODE_STATES.items()}
    return [
        names.get(
            NodeState(*map(bool, flags)),
            "down" if not flags[0] else "draining" if not flags[2] else "cordoned",
        )
        for flags in zip(
            *(getattr(nodes, name).tolist() for name in NodeState._fields), strict=True
        )
    ]
