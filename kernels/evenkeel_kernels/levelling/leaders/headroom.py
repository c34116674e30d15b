"""What else must move where leadership alone cannot fill the emptier nodes, or relieve the fuller.

A node can carry no more than what its replicas weigh as leaders. Where leading adds to every
dimension, an emptier node can be short of that while the fuller ones, none of them above its
watermark once leaders have stood down, lead more than they have room for: no handing on of
leadership helps, and only replicas that move do. The largest make the fewest moves.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.problem import VOTER, Problem, State, index, load_of

MARGIN, MOST_MARGIN = 0.012, 0.5  # what moves beyond what finds no place, since leaders are not
# free to go anywhere: a part of the load, but at most a part of what finds none

ROUNDING = 1e-9
"""Part of all load that sums of loads may be off by; less than that decides nothing."""


def reserve_leader_headroom(
    problem: Problem, state: State, leaving: NDArray[np.bool_], extra: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Choose the largest replicas, until what moves can fill the nodes that would be too empty.

    ``leaving (K,)`` leave anyway; ``extra (D,)`` is what the leaders that have stood down will
    add. At most one replica of a partition is chosen, and none of one that has another leaving:
    only one of them can lead where it goes.

    Complexity: O(K D + K log K).
    """
    partitions = problem.partitions
    share = partitions.leader_load / np.maximum(state.load.sum(axis=1) + extra, 1e-30)
    heaviest = np.argsort(-share.max(axis=1, initial=0.0), kind="stable")
    could = np.zeros(state.load.shape)
    moving = np.zeros(state.leader.shape[0], np.bool_)
    wanting, total = np.zeros(state.load.shape[0]), np.zeros(state.load.shape[0])
    pool = np.empty(state.leader.shape[0], np.int64)
    count = draw_off_each(
        problem, state, leaving, extra, heaviest, could, moving, wanting, total, pool
    )
    return pool[:count]


def lone_leaders_beyond(
    problem: Problem,
    state: State,
    leaving: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Choose leaders on nodes that lead more than ``most_leaders (N,)``, though others stood down.

    Nobody could take over from those that still lead, so that replicas have to move: the smallest
    of those that are not ``leaving (K,)`` anyway, as they fit best elsewhere. O(P log P).
    """
    partitions = problem.partitions
    led = np.flatnonzero(state.leader >= 0)
    replica = partitions.first[led] + state.leader[led]
    replica = replica[~leaving[replica] & (state.node[replica] >= 0)]
    beyond = np.bincount(state.node[replica], minlength=len(most_leaders)) - np.floor(
        most_leaders * (1.0 + ROUNDING)
    )
    replica = replica[partitions.movable[replica] & (beyond[state.node[replica]] > 0.0)]
    share = partitions.leader_load / np.maximum(state.load.sum(axis=1), 1e-30)
    size, node = share.max(axis=1, initial=0.0)[partitions.owner[replica]], state.node[replica]
    order = np.lexsort((size, node))
    begin = np.searchsorted(node[order], node[order])
    return replica[order[np.arange(len(order)) - begin < beyond[node[order]]]]


@no_alloc
def draw_off_each(
    problem: Problem,
    state: State,
    leaving: NDArray[np.bool_],
    extra: NDArray[np.float64],
    heaviest: NDArray[np.int64],
    could: NDArray[np.float64],
    moving: NDArray[np.bool_],
    wanting: NDArray[np.float64],
    total: NDArray[np.float64],
    pool: NDArray[np.int64],
) -> int:
    """Fill ``pool (P,)`` for `reserve_leader_headroom`; returns how many.

    ``leaving`` and ``extra`` as there; ``heaviest (P,)`` lists the partitions, the largest first.
    ``could (D, N)``, ``moving (P,)`` and ``wanting (D,)`` start out as zero: what each node would
    carry if all it keeps led, which partitions have a replica leaving, and the load that finds no
    place yet. ``total (D,)`` becomes all load.
    """
    partitions, watermark = problem.partitions, problem.nodes.watermark
    dimensions, n_nodes = state.load.shape
    for d in range(dimensions):
        wanting[d] = extra[d]
        for n in range(n_nodes):
            wanting[d] += state.load[d, n]
        total[d] = wanting[d]
    for p in range(moving.shape[0]):
        for k in range(partitions.first[p], partitions.first[p + 1]):
            if leaving[k]:
                for d in range(dimensions):
                    load = partitions.voter_load[p, d]
                    if not moving[p]:
                        load = partitions.leader_load[p, d]
                    wanting[d] -= load if state.node[k] >= 0 else load - partitions.voter_load[p, d]
                moving[p] = True
            elif state.node[k] >= 0:
                leads = state.role[k] == VOTER and problem.nodes.leads[state.node[k]]
                for d in range(dimensions):
                    load = load_of(partitions, state, k, d)
                    could[d, state.node[k]] += partitions.leader_load[p, d] if leads else load
    for d in range(dimensions):
        for n in range(n_nodes):
            wanting[d] -= min(watermark[d, n], could[d, n])
        if wanting[d] > 0.0:
            wanting[d] += min(MARGIN * total[d], MOST_MARGIN * wanting[d])
    count = index(0)
    for p in heaviest:
        short = False
        for d in range(dimensions):
            short = short or wanting[d] > ROUNDING * total[d]
        if not short:
            break
        for k in range(partitions.first[p], partitions.first[p + 1]):
            n = state.node[k]
            if moving[p] or n < 0 or not partitions.movable[k] or state.role[k] != VOTER:
                continue
            full = True
            for d in range(dimensions):
                keeps = could[d, n] - partitions.leader_load[p, d]
                full = full and keeps >= watermark[d, n] - ROUNDING * total[d]
            if not full:
                continue
            for d in range(dimensions):
                could[d, n] -= partitions.leader_load[p, d]
                wanting[d] -= partitions.leader_load[p, d]
            moving[p] = True
            pool[count] = k
            count += 1
    return count
