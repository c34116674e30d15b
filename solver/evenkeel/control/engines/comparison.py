"""Replicas that two assignments have in common."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment


def alike(one: Assignment, other: Assignment, *, states: bool = True) -> NDArray[np.bool_]:
    """Tell which replicas of an assignment another one has on the same node.

    Examples
    --------
    >>> rows = lambda *nodes: Assignment(np.array([0, len(nodes)]), np.array(nodes, np.int32),
    ...                                  np.arange(len(nodes), dtype=np.uint8))
    >>> alike(rows(3, 1), rows(3, 0, 1)).tolist()
    [True, False]
    >>> alike(rows(3, 1), rows(3, 0, 1), states=False).tolist()
    [True, True]
    """
    # most rows are the same in both, which one pass over them shows; the others are looked up
    changed = _changed_rows(one, other)
    found = ~changed[one.owner]
    left = np.flatnonzero(~found)
    there = np.flatnonzero(changed[other.owner])
    if len(left) and len(there):
        keys = np.sort(_keys(other, there, states))
        wanted = _keys(one, left, states)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found[left] = keys[at] == wanted
    return np.asarray(found)


def _changed_rows(one: Assignment, other: Assignment) -> NDArray[np.bool_]:
    """Partitions whose replicas are not, one by one, the same; (P,)."""
    changed: NDArray[np.bool_] = np.diff(one.first) != np.diff(other.first)
    if not changed.any():
        differs = (one.node != other.node) | (one.state != other.state)
        changed[one.owner[differs]] = True
        return changed
    same = np.flatnonzero(~changed[one.owner])
    owner = one.owner[same]
    place = same - one.first[owner] + other.first[owner]
    differs = (one.node[same] != other.node[place]) | (one.state[same] != other.state[place])
    changed[owner[differs]] = True
    return changed


def _keys(one: Assignment, which: NDArray[np.int64], states: bool) -> NDArray[np.int64]:
    """One number for each partition, node and, on request, state of some replicas."""
    key = (one.owner[which].astype(np.int64) << 40) | (one.node[which].astype(np.int64) << 8)
    return key | one.state[which] if states else key
