"""Repairs before all else where budgets bind: lost replicas, the most endangered first."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Role
from evenkeel.strategies.levelling.make_room import make_room
from evenkeel.strategies.levelling.run_state import Run
from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.levelling.best_fit import best_fit, repairs_first
from evenkeel_kernels.levelling.leaders.moves import replace_leaders
from evenkeel_kernels.levelling.slices import replica_slices


def repair(run: Run) -> None:
    """Place what waits, the most endangered partitions first, as far as the budgets go."""
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(len(state.load)))
    replace_leaders(problem, state, scan)
    if not run.forced.any():
        return
    place(run, run.waiting)
    make_room(problem, state, run.waiting, run.most_moves, lambda: run.look("make room"))
    replace_leaders(problem, state, scan)
    run.forced &= run.waiting


def place_what_fits(run: Run) -> bool:
    """Place what still waits, the most endangered first, wherever it fits; whether any did."""
    if run.stop is not None or not run.forced.any():
        return False
    return place(run, run.waiting) > 0


def place(run: Run, waiting: NDArray[np.bool_]) -> int:
    """Place those that wait, the most endangered first, each where it fits best; how many were."""
    problem, state, placed = run.problem, run.state, 0
    order = most_endangered_first(run, waiting)
    scan, led = new_scan(problem, np.zeros(len(state.load))), state.leader >= 0
    for begin, end in replica_slices(problem, order):
        placed += best_fit(problem, state, scan, order, run.forced, led, FAR, begin, end)
        if not run.look("repair"):
            break
    return placed


def most_endangered_first(run: Run, waiting: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List what is ``waiting (K,)``: the fewest live replicas against ``min_active`` first.

    Then by quorum. Each replica of a partition that is mended makes the next one less urgent. What
    still lives where it must leave comes last. What is equally urgent is in the order of
    `repairs_first`.
    """
    cluster, state = run.request.cluster, run.state
    placement, partitions = cluster.placement, cluster.partitions
    lives = np.append(cluster.nodes.serves, False).take(state.node)
    count = len(partitions)
    live = np.bincount(placement.owner[lives], minlength=count)
    votes = lives & (placement.role == Role.VOTER)
    voting = np.bincount(placement.owner[votes], minlength=count)
    order = repairs_first(run.problem, run.state, waiting, waiting)
    owner = placement.owner[order]
    lost = ~lives[order]
    rank = _earlier_lost(owner, lost)
    margin = np.where(lost, (live - partitions.min_active)[owner] + rank, 0)
    quorum = np.where(lost, (voting - partitions.voters // 2 - 1)[owner] + rank, 0)
    return order[np.lexsort((np.arange(len(order)), quorum, margin, ~lost))]


def _earlier_lost(owner: NDArray[np.int32], lost: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many lost replicas of the same partition come before each; partitions are in one run."""
    if len(owner) == 0:
        return np.zeros(0, np.int64)
    before: NDArray[np.int64] = np.cumsum(lost) - lost
    starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    length = np.diff(np.append(starts, len(owner)))
    return before - np.repeat(before[starts], length)
