"""Rearrange moved replicas and leaders by threshold accepting, to reduce overload.

Once a replica moves, its new node is free to choose. Threshold accepting walks over the choices: a
transfer of leadership, another node for a moved replica, an exchange of two moved replicas. A
change is made if the penalty of `evenkeel_kernels.levelling.penalty` rises by less than a threshold
that falls to 0. Every rule holds at every step.

A *closed* walk moves the replicas that it is given, and no others. It does not change which
replicas of a node move: those that do are its largest, and of all that could go in their stead
nearly all are smaller, so that chance soon leaves a node too full that had just become level;
`evenkeel_kernels.levelling.breakout` chooses such changes with care. In an *open* walk any replica
may leave its initial node, at a price that counts as a rise of the penalty and is refunded when it
returns.

References
----------
G. Dueck, T. Scheuer, "Threshold accepting", Journal of Computational Physics 90 (1990): the
acceptance rule. G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003): the
generator, triple (13, 7, 17).
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.rng import draw
from evenkeel_kernels.core.state import move, move_if_admitted, transfer_leader
from evenkeel_kernels.levelling.penalty import (
    Targets,
    highest,
    passing_lead,
    passing_pair,
    passing_replica,
)

CHECK_EVERY = 4096
LEAD, SEND, TRADE = 60, 70, 80  # per cent of the proposals, cumulative; the rest trade, too, or,
# in an open walk, return home


@device_function
def trade_if_admitted(problem: Problem, state: State, k: int, i: int) -> bool:
    """Let ``k`` go where ``i`` is, and ``i`` where ``k`` was, if the rules admit both."""
    here, there = index(state.node[k]), index(state.node[i])
    if not move_if_admitted(problem, state, k, there):
        return False
    if move_if_admitted(problem, state, i, here):
        return True
    move(problem, state, k, here)
    return False


def moved_replicas(problem: Problem, state: State) -> NDArray[np.int64]:
    """List the replicas that have a node other than the one they came from. O(K)."""
    return np.flatnonzero((state.node >= 0) & (state.node != problem.partitions.home))


def placed_replicas(problem: Problem, state: State) -> NDArray[np.int64]:
    """List the replicas that have a node and may leave it. O(K)."""
    return np.flatnonzero((state.node >= 0) & problem.partitions.movable)


def mean_square(targets: Targets, load: NDArray[np.float64]) -> float:
    """Return the mean square target ratio of the rows of ``load (P, D)`` on an average node."""
    # the unit of thresholds. O(P D + N D).
    counts = (targets.scale > 0.0) & (targets.scale < 1e29)
    nodes = np.maximum(counts.sum(axis=1), 1)
    scale = np.where(counts, targets.scale, 0.0).sum(axis=1) / nodes
    return squares(load, scale) / max(1, load.shape[0])


@no_alloc
def squares(load: NDArray[np.float64], scale: NDArray[np.float64]) -> float:
    """Sum up the squares of ``load (P, D)``, each dimension in units of 1 / ``scale (D,)``.

    Complexity: O(P D).
    """
    total = 0.0
    for p in range(load.shape[0]):
        for d in range(load.shape[1]):
            ratio = load[p, d] * scale[d]
            total += ratio * ratio
    return total


@no_alloc
def accept_by_threshold(
    problem: Problem,
    state: State,
    targets: Targets,
    moved: NDArray[np.int64],
    threshold: float,
    begin: int,
    end: int,
    steps: int,
    move_penalty: float,
    spare: NDArray[np.int64],
    random: NDArray[np.uint64],
) -> int:
    """Take the steps ``begin`` to ``end`` of a walk of ``steps``, or until the cluster is level.

    ``moved`` lists the moved replicas or, in an open walk, all that may move. ``threshold`` is what
    the penalty may rise by at the start; it falls with the square of what is left of the walk.
    ``move_penalty`` is the price of leaving home, inf in a closed walk; ``spare (1,)`` the replicas
    that may still leave, and is kept up to date. ``random (1,)`` is the state of the generator.
    Returns the step reached: going on from there, with what came back, makes the same walk as one
    call.

    Complexity: O(D) for each step, and O(R * levels + D) for one that is taken.
    """
    partitions = problem.partitions
    n_nodes = state.load.shape[1]
    n_partitions = state.leader.shape[0]
    count = moved.shape[0]
    is_open = move_penalty < FAR
    step = begin
    allowed = 0.0
    while step < end:
        if step % CHECK_EVERY == 0 or step == begin:
            if highest(state, targets) <= 1.0:
                break
            left = 1.0 - (step - step % CHECK_EVERY) / steps
            allowed = threshold * left * left
        step += 1
        kind = draw(random, 100)
        if kind < LEAD or count == 0:
            p = draw(random, n_partitions)
            slot = state.leader[p]
            replicas = partitions.first[p + 1] - partitions.first[p]
            if slot < 0 or replicas < 2:
                continue
            other = draw(random, replicas - 1)
            other += int(other >= slot)
            here = state.node[partitions.first[p] + slot]
            there = state.node[partitions.first[p] + other]
            if here < 0 or there < 0 or here == there:
                continue
            change = passing_lead(partitions, state, targets, p, here, there)
            if change != 0.0 and change < allowed and admits_leader(problem, state, p, other):
                transfer_leader(problem, state, p, other)
        else:
            k, i = moved[draw(random, count)], index(-1)
            here, home = index(state.node[k]), index(partitions.home[k])
            if kind < SEND or (is_open and kind >= TRADE):
                n = draw(random, n_nodes) if kind < SEND else home
                if n == here or n < 0:
                    continue
                more = int(here == home) - int(n == home)
                change = passing_replica(partitions, state, targets, k, here, n)
            else:
                i = moved[draw(random, count)]
                n = index(state.node[i])
                if here == n or partitions.owner[k] == partitions.owner[i]:
                    continue
                other = index(partitions.home[i])
                more = int(here == home) - int(n == home) + int(n == other) - int(here == other)
                change = passing_pair(partitions, state, targets, k, i, here, n)
            if more != 0:
                change += move_penalty * more
            if (
                (is_open or change != 0.0)
                and -FAR < change < allowed
                and more <= spare[0]
                and (
                    trade_if_admitted(problem, state, k, i)
                    if i >= 0
                    else move_if_admitted(problem, state, k, n)
                )
            ):
                spare[0] -= more
    return step
