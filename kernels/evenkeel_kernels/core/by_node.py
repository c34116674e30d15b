"""The replicas of each node, as one list with an offset per node."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit


@jit
def by_node(node: NDArray[np.int32], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the replicas of each node, ascending: ``first (N + 1,)`` and ``member (.,)``. O(K)."""
    first = np.zeros(n_nodes + 1, np.int64)
    for n in node:
        if n >= 0:
            first[n + 1] += 1
    for n in range(n_nodes):
        first[n + 1] += first[n]
    at = first[:-1].copy()
    member = np.empty(first[n_nodes], np.int64)
    for k in range(node.shape[0]):
        n = node[k]
        if n >= 0:
            member[at[n]] = k
            at[n] += 1
    return first, member
