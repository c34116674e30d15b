"""List the replicas of each node as a CSR array, in ascending or in permuted order."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, jit
from evenkeel_kernels.core.problem import PartitionArrays

GOLDEN = 0.6180339887498949  # the part of a list after which the next replica is looked at


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


@jit
def scattered_by_node(
    partitions: PartitionArrays, node: NDArray[np.int32], leader: NDArray[np.int16], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the replicas of each node as `by_node` does, in an order that scatters neighbours. O(K).

    Of replicas that serve alike a search takes the first, and neighbours belong to one group, those
    of one partition stand at like places of several lists. So a list is gone through by a stride
    near its golden section, coprime to its length, from one place further on each node: what leaves
    comes from all groups, and seldom leave several replicas of one partition. Who leads by
    ``leader (P,)`` comes after all who follow.
    """
    # Knuth, The Art of Computer Programming, volume 3, section 6.4: Fibonacci hashing
    first, member = by_node(node, n_nodes)
    most, led = 0, np.zeros(n_nodes, np.int64)
    for n in range(n_nodes):
        most = max(most, first[n + 1] - first[n])
    ascending = np.empty(most, np.int64)  # of one node
    leads = np.zeros(node.shape[0], np.int8)
    for p in range(leader.shape[0]):
        k = partitions.first[p] + leader[p]
        if leader[p] >= 0 and node[k] >= 0:
            leads[k] = 1
            led[node[k]] += 1
    for n in range(n_nodes):
        begin, held = first[n], first[n + 1] - first[n]
        stride = max(1, int(GOLDEN * held))
        while not coprime(stride, held):
            stride -= 1
        for i in range(held):  # a slice would keep numba's error and its path in the kernel
            ascending[i] = member[begin + i]
        at = n % max(1, held)
        following, leading = begin, first[n + 1] - led[n]
        for _ in range(held):
            k = ascending[at]
            at += stride
            at -= held * int(at >= held)
            # neither of the two can be foretold, and a wrong guess takes longer than both
            member[following + leads[k] * (leading - following)] = k
            leading += leads[k]
            following += 1 - leads[k]
    return first, member


@inlined
def coprime(a: int, b: int) -> bool:
    """Whether nothing but 1 divides both."""
    while b > 0:
        a, b = b, a % b
    return a == 1
