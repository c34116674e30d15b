"""Convert Helix's instance operations to the node flags that methods read.

References
----------
Apache Helix, ``InstanceConstants.InstanceOperation``.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.changes import Changes
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import as_array
from evenkeel.model.runtime.memoize import memoize


class Operation(Enum):
    """What a node is to do.

    Examples
    --------
    >>> [one.name for one in Operation]
    ['ENABLE', 'DISABLE', 'EVACUATE', 'SWAP_IN', 'UNKNOWN']
    """

    ENABLE = "ENABLE"
    """Serve."""
    DISABLE = "DISABLE"
    """Serve nothing; it keeps its places as long as one that is down does."""
    EVACUATE = "EVACUATE"
    """Serve until everything is somewhere else."""
    SWAP_IN = "SWAP_IN"
    """Hold what the node holds for which it stands, to take its place."""
    UNKNOWN = "UNKNOWN"
    """Unknown: everything on it is dropped."""


# states by operation: a node that is not assignable and not there is not waited for: gone
STATES_OF = {
    # of a node that is online, and of one that is not
    Operation.ENABLE: ("up", "down"),
    Operation.DISABLE: ("down", "down"),
    Operation.EVACUATE: ("drain", "gone"),
    Operation.SWAP_IN: ("drain", "gone"),
    Operation.UNKNOWN: ("gone", "gone"),
}


def with_operations(
    cluster: Cluster, operations: Sequence[Operation | str], online: ArrayLike
) -> Cluster:
    """Return a cluster whose nodes have the flags of their operations.

    Parameters
    ----------
    cluster : Cluster
        N nodes; ``since`` should hold when a node went offline or was disabled, whichever was
        first.
    operations : sequence of Operation or str
        One for each node.
    online : array_like of bool, shape (N,)
        Whether the node is there.

    Returns
    -------
    Cluster
        With other flags.

    Raises
    ------
    InvalidInput
        Naming every operation there is none of, and every swap-in that stands for no node.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 2, load=[])
    >>> changed = with_operations(c, ["ENABLE", "EVACUATE"], [True, True])
    >>> changed.nodes.alive.tolist(), changed.nodes.keeps.tolist()
    ([True, True], [True, False])
    """
    faults = FaultList()
    nodes = cluster.nodes
    there = as_array(faults, "online", online, np.bool_, (len(nodes),))
    read = []
    if len(operations) != len(nodes):
        faults.add("operations", len(operations), f"needs one for each of {len(nodes)} nodes")
    for i, given in enumerate(operations):
        try:
            read.append(Operation(given))
        except ValueError:
            known = ", ".join(one.value for one in Operation)
            faults.add(f"operations[{i}]", given, f"is none of {known}")
            continue
        if read[-1] is Operation.SWAP_IN and i < len(nodes) and nodes.stands_for[i] < 0:
            faults.add(
                f"operations[{i}]", read[-1].value, "needs stands_for: the node that it replaces"
            )
    faults.raise_if_any()
    states = [STATES_OF[one][0 if up else 1] for one, up in zip(read, there, strict=True)]
    down, drain, gone = (
        np.array([one == state for one in states], bool) for state in ("down", "drain", "gone")
    )
    all_up = cluster.up(np.ones(len(nodes), bool))
    return all_up.apply(Changes(down=down, drain=drain, gone=gone))


def successors(nodes: Nodes) -> NDArray[np.int32] | None:
    """Return who holds what each node held, now that swaps are complete.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 2, load=[], stands_for=[-1, 0])
    >>> successors(with_operations(c, ["UNKNOWN", "ENABLE"], [True, True]).nodes)
    array([1, 1], dtype=int32)
    >>> successors(c.nodes) is None
    True
    """
    return memoize(nodes, "successors", lambda: _successors(nodes))


def _successors(nodes: Nodes) -> NDArray[np.int32] | None:
    """Compute the result of `successors`."""
    if not (nodes.stands_for >= 0).any():
        return None
    holds = nodes.may_hold
    done = np.flatnonzero((nodes.stands_for >= 0) & nodes.alive & holds)
    done = done[~holds[nodes.stands_for[done]]]
    if len(done) == 0:
        return None
    successor = np.arange(len(nodes), dtype=np.int32)
    successor[nodes.stands_for[done]] = done
    return successor


def with_shadows(assignment: Assignment, nodes: Nodes, one_leads: NDArray[np.bool_]) -> Assignment:
    """Let nodes that are being swapped in hold what those hold whose place they will take.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 2, load=[], stands_for=[-1, 0])
    >>> nodes = with_operations(c, ["ENABLE", "SWAP_IN"], [True, True]).nodes
    >>> placed = Assignment(np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.uint8))
    >>> shown = with_shadows(placed, nodes, np.array([True]))
    >>> shown.node.tolist(), shown.state.tolist()
    ([0, 1], [0, 1])
    """
    coming = np.flatnonzero((nodes.stands_for >= 0) & nodes.alive & ~nodes.keeps & ~nodes.gone)
    if len(coming) == 0:
        return assignment
    shadow = np.full(len(nodes), -1, np.int32)
    shadow[nodes.stands_for[coming]] = coming
    second = (assignment.state == TOP) & one_leads[assignment.owner]
    state = np.where(second, np.uint8(TOP + 1), assignment.state)
    return assignment.joined(
        Assignment.of_rows(len(assignment), assignment.owner, shadow[assignment.node], state)
    )
