"""Rows: reaching the replicas of some partitions in a flat placement."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Placement


def replicas_of(
    placement: Placement, partitions: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the replicas of some partitions, and for each the place of its partition among them.

    Parameters
    ----------
    placement : Placement
        Where the replicas are.
    partitions : ndarray of int, shape (n,)
        Some partitions.

    Returns
    -------
    tuple of ndarray of int64, shape (m,)
        Indices of replicas, row after row; and indices into ``partitions``.

    Examples
    --------
    >>> from evenkeel.model.cluster import Cluster
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0, 1]] * 3)
    >>> [a.tolist() for a in replicas_of(c.placement, np.array([2, 0]))]
    [[4, 5, 0, 1], [0, 0, 1, 1]]
    """
    start = placement.first[partitions]
    length = placement.first[partitions + 1] - start
    which = np.repeat(np.arange(len(partitions)), length)
    # where each row would start if the rows were laid end to end
    laid = np.cumsum(length) - length
    return np.arange(len(which)) + (start - laid)[which], which


def stands(
    placement: Placement, partition: NDArray[np.integer], node: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Return whether each partition has a replica on each node, pair by pair.

    Parameters
    ----------
    placement : Placement
        Where the replicas are.
    partition, node : ndarray of int, shape (n,)
        The pairs.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the partition stands on the node.
    """
    found = np.zeros(len(partition), bool)
    start, end = placement.first[partition], placement.first[partition + 1]
    longest = int((end - start).max(initial=0))
    for slot in range(longest):
        at = np.minimum(start + slot, len(placement.node) - 1)
        found |= (placement.node[at] == node) & (start + slot < end)
    return found


def at_node(value: NDArray[np.bool_], node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return a flag of each node given; False for no node.

    Parameters
    ----------
    value : ndarray of bool, shape (N,)
        A flag per node.
    node : ndarray of int32
        Nodes, -1 for none.

    Returns
    -------
    ndarray of bool
        Of the shape of ``node``.
    """
    # node -1 reads the last entry
    return np.append(value, False).take(node)
