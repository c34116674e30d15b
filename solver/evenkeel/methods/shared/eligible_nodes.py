"""Which nodes each replica can ever go to, and so which replicas a search need not look at."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.eligible_nodes import fill_reach
from evenkeel_kernels.core.problem import Problem, State

MOST_BYTES = 1 << 28
"""Memory for the rows, and as much while they are made. Dimensions and replicas for which it does
not suffice are left out: such replicas are taken to fit, or to reach every node."""


def reach_of(
    problem: Problem,
    state: State,
    need: NDArray[np.float64],
    kept: NDArray[np.float64],
    item: NDArray[np.int32],
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the nodes that each replica can be on in any placement that keeps the rules.

    ``need (K, D or more)`` is what it takes where it is, ``kept (K, D)`` what at home while away.
    """
    space, narrow = guest_room(problem, need, kept)
    nodes = len(space)
    every = packed(np.ones((1, nodes), bool))
    words = every.shape[1]
    narrow = narrow[: max(0, MOST_BYTES // (8 * words * (nodes + 1)) - 1)]
    rows = max(1, min(len(item) + 1, MOST_BYTES // (8 * words)))
    reach, row = np.zeros((rows, words), np.uint64), np.zeros(len(state.node), np.int32)
    reach[0] = every
    roomiest = np.zeros((len(narrow), nodes + 1, words), np.uint64)
    fits = np.zeros((len(narrow), len(item)), np.int32)
    for j, d in enumerate(narrow):
        order = np.argsort(-space[:, d], kind="stable")
        each = packed(np.arange(nodes) == order[:, None])
        np.bitwise_or.accumulate(each, axis=0, out=roomiest[j, 1:])
        fits[j] = np.searchsorted(-space[order, d], -need[item, d], side="right")
    stand = packed(problem.rules.allowed & problem.nodes.accepts)
    used = fill_reach(problem, state, item, stand, roomiest, fits, reach, row)
    reach = reach[:used].copy()
    options = np.bitwise_count(reach).sum(axis=1, dtype=np.int64)
    return reach, row, options[row[item]]


def packed(which: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack the nodes of each row into bits."""
    words = which.shape[1] // 64 + 1
    bytes_of = np.zeros((len(which), 8 * words), np.uint8)
    bits = np.packbits(which, axis=1, bitorder="little")
    bytes_of[:, : bits.shape[1]] = bits
    return bytes_of.view("<u8").astype(np.uint64)


def guest_room(
    problem: Problem, need: NDArray[np.float64], kept: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what a replica from elsewhere can need on each node in any placement that fits."""
    home = problem.partitions.home
    placed = np.flatnonzero(home >= 0)
    space = np.array(problem.nodes.capacity.T, order="C")
    lacking = np.zeros(space.shape[1], np.int64)
    for d in range(space.shape[1]):
        if problem.nodes.transient[d]:
            least = np.minimum(need[placed, d], kept[placed, d])
            space[:, d] -= np.bincount(home[placed], least, len(space))
        lacking[d] = np.searchsorted(np.sort(space[:, d]), need[:, d], side="left").sum()
    order = np.argsort(-lacking, kind="stable")
    return space, order[lacking[order] > 0]
