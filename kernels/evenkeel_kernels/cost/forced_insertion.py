"""Big replicas rearranged: one is forced onto a node, and what it displaces finds other homes.

No move out of a node that is full of large replicas helps by itself, since none has room for one.
So room is made: the forced one comes first, and those that were there before leave one by one, each
time the one, and to the node, that costs least, until nothing more is gained. The whole is kept if
it lowers the cost.

References
----------
Team S41 in the ROADEF/EURO challenge 2012, which called it big process rearrangement.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.cost.annealing import suits, suits_group
from evenkeel_kernels.cost.compound_move import (
    LEAST_GAIN,
    CompoundMove,
    add_move,
    beside_load,
    make_moves,
)
from evenkeel_kernels.cost.cost_state import CostState
from evenkeel_kernels.cost.ejection_chains import arriving


@by_reference
class Forced(NamedTuple):
    """The node onto which a replica is forced, as it would be; C channels, D dimensions."""

    excess: NDArray[np.float64]  # (C,)
    room: NDArray[np.float64]  # (D,)
    used: NDArray[np.bool_]  # (N,) nodes that take part already


def new_forced(nodes: int, channels: int, dimensions: int) -> Forced:
    """Scratch for `displace`.

    ``nodes``, ``channels``, ``dimensions``: of the cost state.
    """
    return Forced(np.zeros(channels), np.zeros(dimensions), np.zeros(nodes, bool))


@inline_only
def pass_by(problem: Problem, walk: CostState, forced: Forced, y: int, k: int, sign: float) -> None:
    """Book replica ``k`` as come to node ``y`` (``sign`` 1.0) or gone from it (-1.0)."""
    for c in range(forced.excess.shape[0]):
        forced.excess[c] += sign * walk.need[k, c]
    for d in range(forced.room.shape[0]):
        kept = walk.kept[k, d] if problem.partitions.home[k] == y else 0.0
        forced.room[d] -= sign * (walk.need[k, d] - kept)


@inline_only
def cost_less(walk: CostState, forced: Forced, b: int) -> float:
    """Cost of the forced node if replica ``b`` (-1: none) left it."""
    cost = 0.0
    for c in range(forced.excess.shape[0]):
        more = forced.excess[c]
        if b >= 0:
            more -= walk.need[b, c]
        cost += walk.weight[c] * max(0.0, more)
    return cost


@inline_only
def lack_less(problem: Problem, walk: CostState, forced: Forced, y: int, b: int) -> float:
    """Room that the forced node would lack, in parts of what is lacking, if ``b`` left it."""
    lack = 0.0
    for d in range(forced.room.shape[0]):
        if forced.room[d] >= 0.0:
            continue
        more = -forced.room[d]
        if b >= 0:
            more -= walk.need[b, d] - (walk.kept[b, d] if problem.partitions.home[b] == y else 0.0)
        lack += max(0.0, more) / -forced.room[d]
    return lack


@device_function
def next_to_leave(
    problem: Problem,
    state: State,
    walk: CostState,
    forced: Forced,
    joint: CompoundMove,
    y: int,
    member: NDArray[np.int64],
) -> tuple[int, int, float, int]:
    """Find who of ``member (.,)`` should leave node ``y`` next, and where to.

    While room is lacking, each that leaves must make some, and the price is shared out over what it
    makes; then only what lowers the cost counts. Returns (replica or -1, node, price, work).
    """
    now = cost_less(walk, forced, index(-1))
    lacking = lack_less(problem, walk, forced, y, index(-1))
    best_k, best_n, best, least = index(-1), index(-1), 0.0, 0.0
    work = 0
    for i in range(member.shape[0]):
        b = member[i]
        if state.node[b] != y or not problem.partitions.movable[b]:
            continue
        going = False
        for j in range(joint.number[0]):
            going |= joint.replica[j] == b
        made = lacking - lack_less(problem, walk, forced, y, b)
        if going or (lacking > 0.0 and made <= 0.0):
            continue
        gone = cost_less(walk, forced, b) - now
        for n in range(forced.used.shape[0]):
            work += 1
            if forced.used[n] or state.replicas[n] >= problem.nodes.max_replicas[n]:
                continue
            price = (
                gone + arriving(problem, walk, n, b, index(-1)) + beside_load(problem, state, b, n)
            )
            worth = price
            if lacking > 0.0:
                worth = price / made if price > 0.0 else price * made
                if best_k >= 0 and worth >= least:
                    continue
            elif worth >= least:
                continue
            if price < np.inf and suits(problem, state, b, n) and suits_group(problem, state, b, n):
                best_k, best_n, best, least = b, n, price, worth
    return best_k, best_n, best, work


@no_alloc
def displace(
    problem: Problem,
    state: State,
    walk: CostState,
    forced: Forced,
    joint: CompoundMove,
    k: int,
    y: int,
    member: NDArray[np.int64],
) -> tuple[float, int]:
    """Force replica ``k`` onto node ``y`` and find homes for what it displaces.

    ``k``: a replica that stands elsewhere and may move; ``y``: a node; ``member (.,)``: replicas on
    that node, and perhaps others, which are passed over. Returns change of the cost, at most 0;
    nodes looked at, at least 1.

    Complexity: O(R N (C + D)) for each replica that leaves, R the replicas on the node.
    """
    x = index(state.node[k])
    for n in range(forced.used.shape[0]):
        forced.used[n] = n == x or n == y
    for c in range(forced.excess.shape[0]):
        forced.excess[c] = walk.excess[y, c]
    for d in range(forced.room.shape[0]):
        forced.room[d] = walk.room[y, d]
    pass_by(problem, walk, forced, y, k, 1.0)
    joint.number[0] = 0
    add_move(joint, k, y)
    change = arriving(problem, walk, x, index(-1), k) + beside_load(problem, state, k, y)
    change += cost_less(walk, forced, index(-1)) - walk.cost[y]
    work = 1
    while joint.number[0] < joint.replica.shape[0]:
        b, n, price, looked = next_to_leave(problem, state, walk, forced, joint, y, member)
        work += looked
        if b < 0:
            break
        add_move(joint, b, n)
        pass_by(problem, walk, forced, y, b, -1.0)
        forced.used[n] = True
        change += price
    lacking = lack_less(problem, walk, forced, y, index(-1)) > 0.0
    if lacking or change >= -LEAST_GAIN * max(1.0, abs(walk.total[0])):
        return 0.0, work
    return make_moves(problem, state, walk, joint), work


@no_alloc
def displace_each(
    problem: Problem,
    state: State,
    walk: CostState,
    forced: Forced,
    joint: CompoundMove,
    trial: NDArray[np.int64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    begin: int,
    work: int,
) -> tuple[int, int, int]:
    """Force many replicas onto nodes, one after the other.

    ``trial (Q, 2)``: replicas and the nodes to force them onto; passed over where that is where
    they are; ``first (N + 1,)``: where the replicas of each node begin in ``member``; ``member
    (.,)``: replicas of the nodes as they were at the start; ``begin``: trial to begin with;
    ``work``: nodes looked at after which no other trial is begun. Returns trial to begin with next;
    Q when all are done; nodes looked at; trials that lowered the cost.
    """
    done, made = 0, 0
    for q in range(begin, trial.shape[0]):
        if done >= work:
            return q, done, made
        k, y = trial[q, 0], trial[q, 1]
        if state.node[k] == y or not suits(problem, state, k, y):
            done += 1
            continue
        row = member[first[y] : first[y + 1]]
        change, looked = displace(problem, state, walk, forced, joint, k, y, row)
        done += looked
        made += int(change < 0.0)
    return trial.shape[0], done, made
