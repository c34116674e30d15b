"""References in plain NumPy: the same work as kernels, as baselines for their speed."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.node_scan import SPREADING
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.cost.cost_state import CostState

BLOCK = 5_000


def best_fit(
    problem: Problem, order: NDArray[np.int64], zone: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Put each replica of ``order`` where the greatest utilisation stays least: loads (D, N)."""
    limit = problem.nodes.watermark
    nodes = np.arange(len(zone))
    last = (1 << (len(zone) - 1).bit_length()) - 1
    load = np.zeros_like(limit)
    taken = np.zeros((len(problem.partitions.first) - 1, zone.max() + 1), bool)
    owner, size = problem.partitions.owner, problem.partitions.voter_load
    # one replica of a partition per zone, one vectorised scan of all nodes for every replica; of
    # equals each replica takes what it prefers
    for k in order:
        p = owner[k]
        score = ((load + size[p][:, np.newaxis]) / limit).max(axis=0)
        score[taken[p][zone]] = np.inf
        n = ((score.view(np.int64) & ~last) | (nodes ^ (k * SPREADING >> 32 & last))).argmin()
        load[:, n] += size[p]
        taken[p, zone[n]] = True
    return load


def node_loads(problem: Problem, state: State) -> NDArray[np.float64]:
    """Load of every node, (D, N): a weighted count for each slot and dimension."""
    partitions = problem.partitions
    dimensions, nodes = state.load.shape
    rows = state.node.reshape(len(state.leader), -1)
    load = np.zeros((dimensions, nodes))
    for slot in range(rows.shape[1]):
        here = rows[:, slot] >= 0
        leads = (state.leader == slot)[:, np.newaxis]
        each = np.where(leads, partitions.leader_load, partitions.voter_load)[here]
        for d in range(dimensions):
            load[d] += np.bincount(rows[here, slot], each[:, d], nodes)
    return load


def price_leader_changes(
    problem: Problem, state: State, scale: NDArray[np.float64], threshold: float, count: int
) -> float:
    """Price as many random changes of leader as a walk takes steps, making none: the best price."""
    random = np.random.default_rng(1)
    partitions = problem.partitions
    extra = partitions.leader_load - partitions.voter_load
    best = 0.0
    # a block is small enough that its arrays stay in the cache
    for _ in range(count // BLOCK):
        p = random.integers(0, len(state.leader), BLOCK)
        here = state.node[partitions.first[p] + state.leader[p]]
        there = state.node[partitions.first[p] + random.integers(0, 3, BLOCK)]
        change = np.zeros(BLOCK)
        for d in range(len(state.load)):
            for node, more in ((here, -extra[p, d]), (there, extra[p, d])):
                before = state.load[d, node] * scale[d, node] - threshold
                after = before + more * scale[d, node]
                change += np.maximum(after, 0.0) ** 2 - np.maximum(before, 0.0) ** 2
        best = min(best, change.min())
    return best


def yardstick(load: NDArray[np.float64], node: NDArray[np.integer], nodes: int) -> float:
    """Sort the loads of all replicas and add them up by node, over and over; (K, D) and (K,)."""
    # it stands for nothing but the speed of the machine at this size of input
    total = 0.0
    for _ in range(3):
        for d in range(load.shape[1]):
            order = np.argsort(load[:, d], kind="stable")
            total += np.bincount(node[order], load[order, d], nodes).max()
    return total


def price_swaps(state: State, walk: CostState, steps: int) -> NDArray[np.float64]:
    """Price as many swaps of random replicas, and see whether they fit: (steps,)."""
    a, b = np.random.default_rng(1).choice(walk.item, (2, steps))
    x, y = state.node[a], state.node[b]
    more = walk.need[a] - walk.need[b]
    over = np.maximum(walk.excess[x] - more, 0.0) + np.maximum(walk.excess[y] + more, 0.0)
    price = over @ walk.weight - walk.cost[x] - walk.cost[y]
    loads = more[:, : walk.room.shape[1]]
    fits = (walk.room[x] + loads >= 0.0).all(axis=1) & (walk.room[y] - loads >= 0.0).all(axis=1)
    # those that do not fit cost infinitely much
    return np.where(fits, price, np.inf)
