"""Budgets: take moves back, those first that help least, until no budget is exceeded."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import lean
from evenkeel_kernels.core.problem import Problem, State, index, load_of
from evenkeel_kernels.core.state import move, move_if_admitted
from evenkeel_kernels.levelling.penalty import Gauge, passing_replica


@lean
def price_returns(
    problem: Problem,
    state: State,
    gauge: Gauge,
    moved: NDArray[np.int64],
    price: NDArray[np.float64],
) -> None:
    """Fill ``price`` with what each ``moved`` replica would add to the penalty by going home.

    A replica without a home, or without a node, is priced at nothing. O(D) each.
    """
    for i in range(moved.shape[0]):
        k = moved[i]
        home, here = problem.partitions.home[k], state.node[k]
        price[i] = 0.0
        if home >= 0 and here >= 0:
            price[i] = passing_replica(problem.partitions, state, gauge, k, here, home)


@lean
def take_back(
    problem: Problem,
    state: State,
    order: NDArray[np.int64],
    forced: NDArray[np.bool_],
    bytes_dimension: int,
    most: NDArray[np.float64],
    spent: NDArray[np.float64],
    most_in: int,
    most_out: int,
    node_in: NDArray[np.int64],
    node_out: NDArray[np.int64],
    at_once: int,
) -> int:
    """Take back moves of ``order``, in that order, that go beyond a budget; returns how many.

    ``most (2,)`` and ``spent (2,)`` are moves and bytes; ``node_in (N,)`` and ``node_out (N,)``
    what enters and leaves each node. A ``forced (K,)`` replica is put nowhere, any other goes home
    if the rules admit it. At most ``at_once`` are taken back, so that prices can be asked again.
    O(R + D) each.
    """
    taken = 0
    for i in range(order.shape[0]):
        if taken >= at_once:
            break
        k = order[i]
        here, home = index(state.node[k]), index(problem.partitions.home[k])
        over = spent[0] > most[0] or spent[1] > most[1] or node_in[here] > most_in
        if home >= 0 and node_out[home] > most_out and not forced[k]:
            over = True
        if not over:
            continue
        load = 0.0
        if bytes_dimension >= 0:
            load = load_of(problem.partitions, state, k, bytes_dimension)
        if forced[k]:
            move(problem, state, k, index(-1))
        elif not move_if_admitted(problem, state, k, home):
            continue
        spent[0] -= 1.0
        spent[1] -= load
        node_in[here] -= 1
        if home >= 0 and not forced[k]:
            node_out[home] -= 1
        taken += 1
    return taken
