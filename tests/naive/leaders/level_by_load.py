"""Who leads what, by load, in plain Python: levels counted anew, and every choice tried."""

import itertools

import numpy as np

import evenkeel as ek
from evenkeel_kernels.leaders.level_by_load import LeaderAssignment


def levels(assignment: LeaderAssignment, base: np.ndarray, taken: list[int]) -> np.ndarray:
    """Level of every node, from who leads alone."""
    level = base.copy()
    for a in taken:
        level[assignment.node[a]] += assignment.share[a]
    return level


def row_loads(assignment: LeaderAssignment) -> np.ndarray:
    """What every node and domain carries, from who leads alone."""
    room, load = assignment.room, assignment.room.base.copy()
    for p, a in enumerate(assignment.taken):
        for m in room.row[assignment.node[a]]:
            if m >= 0:
                load[m] += room.weight[p]
    return load


def overfills(assignment: LeaderAssignment, p: int, b: int) -> bool:
    """Whether something would carry more than before and than it may if ``b`` led ``p``."""
    before = row_loads(assignment)
    other = assignment.taken.copy()
    other[p] = b
    after = row_loads(assignment._replace(taken=other))
    return bool(((after > before + 1e-12) & (after > assignment.room.most)).any())


def penalty(level: np.ndarray, threshold: float) -> float:
    """Sum of the squares of what is above the threshold."""
    return float((np.maximum(level - threshold, 0.0) ** 2).sum())


def least(cluster: ek.Cluster, able: np.ndarray) -> tuple[float, int]:
    """Least level of the fullest node, and the fewest changes at it, over all there is room for."""
    # Slot 0 leads now; a slot may lead where ``able (N,)`` says so. All nodes are alive.
    rows = cluster.placement.nodes
    load = cluster.partitions.load
    extra = load.leader - load.voter
    base = np.zeros((len(cluster.nodes), extra.shape[1]))
    for p, row in enumerate(rows):
        for n in row:
            base[n] += load.voter[p]
    which = (extra != 0.0).any(axis=0)
    slots = [[s for s, n in enumerate(row) if able[n]] or [0] for row in rows]
    fair = (base.sum(axis=0) + extra.sum(axis=0)) / cluster.nodes.capacity.sum(axis=0)
    came = base.copy()
    np.add.at(came, rows[:, 0], extra)
    most = np.maximum(cluster.nodes.capacity, came) + 1e-9
    best = np.inf, 0
    for chosen in itertools.product(*slots):
        level = base.copy()
        for p, slot in enumerate(chosen):
            level[rows[p, slot]] += extra[p]
        if (level > most).any():
            continue
        fullest = float((level / (cluster.nodes.capacity * fair))[:, which].max())
        key = round(fullest, 9), sum(slot != 0 for slot in chosen)
        best = min(best, key)
    return best
