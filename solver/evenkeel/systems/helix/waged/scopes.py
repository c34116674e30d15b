"""Which nodes a run is about, what it keeps, and what it places."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.reading.arrays import writable
from evenkeel.systems.helix.crush.java_order import set_orders
from evenkeel.systems.helix.waged.model import Model, Wanted
from evenkeel_kernels.helix import waged_scopes


class Scope(Enum):
    """How much is placed anew."""

    GLOBAL = "global"
    PARTIAL = "partial"
    EMERGENCY = "emergency"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, eq=False)
class Task:
    """What one run is about. n nodes, P partitions.

    Parameters
    ----------
    scope : Scope
        How much is placed anew.
    nodes : ndarray of int64, shape (n,)
        Nodes of the run, ascending; replicas on others are not kept.
    current : Assignment
        What to start from: the last baseline for a global run, else the best possible.
    baseline : Assignment or None
        What a partial run comes closer to.
    anew : ndarray of bool, shape (P,)
        Partitions that a global run places anew, whatever is kept of the others.
    """

    scope: Scope
    nodes: NDArray[np.int64]
    current: Assignment
    baseline: Assignment | None
    anew: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """An assignment on the nodes of a run. P partitions, K replicas.

    Parameters
    ----------
    first : ndarray of int64, shape (P + 1,)
        Where each partition's replicas start.
    node : ndarray of int32, shape (K,)
        Place of each replica's node in the run, -1 if it is not in it.
    state : ndarray of uint8, shape (K,)
        State of each replica, ascending in every row.
    owner : ndarray of int32, shape (K,)
        Partition of each replica.
    """

    first: NDArray[np.int64]
    node: NDArray[np.int32]
    state: NDArray[np.uint8]
    owner: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Split:
    """What a run keeps and places. P partitions, S states.

    Parameters
    ----------
    owner, node, state : ndarray, shape (K,)
        Partition, place of the node in the run, and state of what is kept: int32, int32, uint8.
    place : ndarray of int32, shape (P, S)
        Replicas to place.
    made : ndarray of int32, shape (P, S)
        Replicas that there are as far as the run knows: what expectations are made from.
    """

    owner: NDArray[np.int32]
    node: NDArray[np.int32]
    state: NDArray[np.uint8]
    place: NDArray[np.int32]
    made: NDArray[np.int32]


def rows_of(assignment: Assignment, place_of: NDArray[np.int32]) -> Rows:
    """Look at an assignment from the nodes of a run."""
    return Rows(
        writable(assignment.first),
        place_of[assignment.node],
        writable(assignment.state),
        writable(assignment.owner),
    )


def split(model: Model, task: Task, wanted: Wanted, current: Rows, baseline: Rows) -> Split:
    """Tell what is kept from what is placed."""
    made = wanted.by_state[model.kind]
    place = np.empty_like(made)
    if task.scope is not Scope.OVERWRITE and waged_scopes.crowded(
        current.first, current.state, model.kind, wanted.by_state
    ):
        current = _as_walked(model, task.current, current)
    keep = np.empty(len(current.node), np.bool_)
    rows = (current.first, current.node, current.state)
    if task.scope is Scope.GLOBAL:
        held = np.bincount(model.group[current.owner], minlength=len(model.groups)) > 0
        anew = task.anew | ~held[model.group]
        waged_scopes.keep_all_valid(*rows, model.kind, wanted.by_state, anew, keep, place)
    elif task.scope is Scope.PARTIAL:
        made = np.empty_like(place)
        meant = (baseline.first, baseline.node, baseline.state)
        waged_scopes.keep_what_agrees(*rows, *meant, model.kind, wanted.by_state, keep, place, made)
    elif task.scope is Scope.EMERGENCY:
        waged_scopes.keep_where_active(*rows, model.kind, wanted.by_state, keep, place)
    else:
        waged_scopes.keep_and_fill(
            *rows, model.kind, wanted.replicas, wanted.least, wanted.least_by_state, keep, place
        )
    return Split(current.owner[keep], current.node[keep], current.state[keep], place, made)


def _as_walked(model: Model, assignment: Assignment, rows: Rows) -> Rows:
    """Let the nodes of each state stand as in the ``HashSet`` that the original makes of them.

    That is filled from a ``HashMap`` of the whole row, and that one, here, by the nodes' names.
    """
    rank = model.nodes.rank[assignment.node]
    hashes = model.nodes.hash[assignment.node]
    by_name = np.lexsort((rank, rows.owner))
    in_map = by_name[set_orders(rows.first, hashes[by_name])]
    by_state = in_map[np.lexsort((rows.state[in_map], rows.owner[in_map]))]
    begins = np.ones(len(rows.owner), np.bool_)
    begins[1:] = (rows.owner[1:] != rows.owner[:-1]) | (rows.state[1:] != rows.state[:-1])
    runs = np.append(np.flatnonzero(begins), len(begins))
    order = by_state[set_orders(runs, hashes[by_state])]
    return Rows(rows.first, rows.node[order], rows.state, rows.owner)


def merged(current: Assignment, overwrite: Assignment) -> Assignment:
    """Lay an overwrite over the best possible.

    Examples
    --------
    >>> first, state = np.array([0, 2]), np.array([0, 1], np.uint8)
    >>> current = Assignment(first, np.array([7, 3], np.int32), state)
    >>> over = Assignment(first, np.array([3, 4], np.int32), state)
    >>> both = merged(current, over)
    >>> both.node.tolist(), both.state.tolist()
    ([3, 7, 4], [0, 0, 1])
    """
    owner = np.concatenate([overwrite.owner, current.owner])
    node = np.concatenate([overwrite.node, current.node])
    state = np.concatenate([overwrite.state, current.state])
    _, kept = np.unique(owner.astype(np.int64) << 32 | node, return_index=True)
    return Assignment.of_rows(len(current), owner[kept], node[kept], state[kept])
