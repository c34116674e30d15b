"""State of a cost search: the present cost of each node, and the cost change of a candidate.

A node costs ``sum(weight * max(0, excess))`` over *channels*: first the D dimensions, whose excess
is load minus watermark, then one channel per proportion and one per hinge of a cost table, whose
excess is the same kind of linear expression of the loads and whose needs may be negative. With
needs and excesses node-major and in one form, pricing a candidate is a handful of additions on
short rows, and most candidates are dismissed in the middle of them because their sum has passed
what the search would accept.

Capacity is a *penalty* on every unit above it, so that a search can pass through states that do not
fit; penalties grow where a node stays too full, and only a state without any may become the best
one. The rules of groups may be softened in the same way, at a penalty for each breach. All other
hard rules hold in every state.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.core.problem import Problem, State, following_load, index, load_of
from evenkeel_kernels.core.state import move

NEVER = np.inf  # price of a candidate that is out of the question

EVALUATED, APPLIED, IMPROVED = 0, 1, 2  # places in ``CostState.tally``


@by_reference
class CostState(NamedTuple):
    """Where a search stands. C channels: D dimensions, proportions, hinges."""

    item: NDArray[np.int32]  # (I,) replicas that may move and are somewhere
    group: NDArray[np.int32]  # (K,) group of each replica's partition
    reach: NDArray[np.uint64]  # (R, W) a bit for each node that can ever take a replica
    reach_row: NDArray[np.int32]  # (K,) row of each replica
    need: NDArray[np.float64]  # (K, C) what a replica adds to a node's excess
    kept: NDArray[np.float64]  # (K, D) what it goes on taking of its home's room once it is away
    weight: NDArray[np.float64]  # (C,) cost of one unit of excess
    excess: NDArray[np.float64]  # (N, C) load above the watermark, negative below
    room: NDArray[np.float64]  # (N, D) capacity left, replicas that left counted where transient
    cost: NDArray[np.float64]  # (N,) what the node costs now
    penalty_weight: NDArray[np.float64]  # (N, D) penalty for one unit above capacity
    penalty: NDArray[np.float64]  # (N,) penalties of the node now
    overloaded: NDArray[np.int64]  # (1,) nodes above capacity
    breaches: NDArray[np.int64]  # (1,) how often rules of groups are broken, over the start
    tied: NDArray[np.int64]  # (G,) 1 for a group that needs or is needed by another one
    broken: NDArray[np.int64]  # (G,) breaches of each group; never below 1 where tied
    breach_penalty: NDArray[np.float64]  # (1,) penalty for each; NEVER: none may be broken
    total: NDArray[np.float64]  # (2,) cost of the state now, and of the best one seen
    spare: NDArray[np.float64]  # (2,) most that a candidate can save beside loads; groups' part
    best: NDArray[np.int32]  # (K,) node of each replica in the best state
    astray: NDArray[np.int32]  # (K,) replicas that may stand elsewhere than in the best state
    is_astray: NDArray[np.bool_]  # (K,)
    astray_count: NDArray[np.int64]  # (1,)
    random: NDArray[np.uint64]  # (1,) state of the generator
    tally: NDArray[np.int64]  # (3,) candidates evaluated, applied, and new best states


@no_alloc
def begin(problem: Problem, state: State, walk: CostState) -> None:
    """Fill weights, needs and the rows of every node; totals, penalties and ``random`` are set."""
    nodes = problem.nodes
    dimensions = nodes.capacity.shape[0]
    for d in range(dimensions):
        walk.weight[d] = nodes.weight[d]
    for b in range(nodes.proportion.shape[0]):
        walk.weight[dimensions + b] = nodes.proportion[b, 1]
    hinges = dimensions + nodes.proportion.shape[0]
    for h in range(nodes.hinge.shape[0]):
        walk.weight[hinges + h] = nodes.hinge[h, 1]
    for k in range(state.node.shape[0]):
        for d in range(dimensions):
            walk.need[k, d] = load_of(problem.partitions, state, k, d)
            if nodes.transient[d]:
                walk.kept[k, d] = following_load(problem.partitions, state, k, d)
        for b in range(nodes.proportion.shape[0]):
            i, j = nodes.proportion_of[b, 0], nodes.proportion_of[b, 1]
            more = walk.need[k, j] - nodes.proportion[b, 0] * walk.need[k, i]
            walk.need[k, dimensions + b] = more
        for h in range(nodes.hinge.shape[0]):
            walk.need[k, hinges + h] = nodes.hinge[h, 0] * walk.need[k, nodes.hinge_of[h]]
        walk.best[k] = state.node[k]
    for n in range(walk.cost.shape[0]):
        refresh(problem, state, walk, n)


@inlined
def refresh(problem: Problem, state: State, walk: CostState, n: int) -> None:
    """Bring the rows of node ``n``, and the number of overloaded nodes, in step with the loads."""
    nodes = problem.nodes
    dimensions = nodes.capacity.shape[0]
    cost = 0.0
    penalty = 0.0
    for d in range(dimensions):
        walk.excess[n, d] = state.load[d, n] - nodes.watermark[d, n]
        walk.room[n, d] = nodes.capacity[d, n] - state.load[d, n] - state.held[d, n]
        penalty += walk.penalty_weight[n, d] * max(0.0, -walk.room[n, d])
    for b in range(nodes.proportion.shape[0]):
        i, j = nodes.proportion_of[b, 0], nodes.proportion_of[b, 1]
        free_i = nodes.capacity[i, n] - state.load[i, n]
        free_j = nodes.capacity[j, n] - state.load[j, n]
        walk.excess[n, dimensions + b] = nodes.proportion[b, 0] * free_i - free_j
    hinges = dimensions + nodes.proportion.shape[0]
    for h in range(nodes.hinge.shape[0]):
        beyond = state.load[nodes.hinge_of[h], n] - nodes.hinge_at[h, n]
        walk.excess[n, hinges + h] = nodes.hinge[h, 0] * beyond
    for c in range(walk.weight.shape[0]):
        cost += walk.weight[c] * max(0.0, walk.excess[n, c])
    walk.overloaded[0] += int(penalty > 0.0) - int(walk.penalty[n] > 0.0)
    walk.cost[n] = cost
    walk.penalty[n] = penalty


@no_alloc
def tighten(
    problem: Problem,
    state: State,
    walk: CostState,
    floor: NDArray[np.float64],
    up: float,
    down: float,
) -> None:
    """Raise penalties of overloaded nodes by ``up``, lower others towards ``floor`` (D,)."""
    for n in range(walk.cost.shape[0]):
        for d in range(floor.shape[0]):
            factor = up if walk.room[n, d] < 0.0 else down
            walk.penalty_weight[n, d] = max(floor[d], walk.penalty_weight[n, d] * factor)
        refresh(problem, state, walk, n)


@inlined
def pair_price(
    need: NDArray[np.float64],
    weight: NDArray[np.float64],
    excess: NDArray[np.float64],
    cost: NDArray[np.float64],
    a: int,
    x: int,
    b: int,
    y: int,
    limit: float,
) -> float:
    """Change of the cost of ``x`` and ``y`` if ``a`` on ``x`` and ``b`` on ``y`` changed places.

    ``need (K, C)``: what each replica adds to a node's excess; ``weight (C,)``: cost of one unit of
    excess; ``excess (N, C)``: load above the watermark; ``cost (N,)``: what each node costs now;
    ``a``, ``x``, ``b``, ``y``: two replicas, each with the node it is on; ``limit``: price from
    which on a candidate is not worth pricing any further. Returns the change; NEVER once it is
    above the limit.
    """
    # where ``b`` is -1, ``a`` goes to ``y`` and none comes back
    price = -cost[x] - cost[y]
    for c in range(weight.shape[0]):
        more = need[a, c] - need[b, c] if b >= 0 else need[a, c]
        price += weight[c] * (max(0.0, excess[x, c] - more) + max(0.0, excess[y, c] + more))
        if price > limit:
            return NEVER
    return price


@inlined
def chain_price(
    need: NDArray[np.float64],
    weight: NDArray[np.float64],
    excess: NDArray[np.float64],
    cost: NDArray[np.float64],
    a: int,
    x: int,
    b: int,
    y: int,
    z: int,
    limit: float,
) -> float:
    """Change of the cost of three nodes if ``a`` took the place of ``b``, which went to ``z``.

    ``need (K, C)``: what each replica adds to a node's excess; ``weight (C,)``: cost of one unit of
    excess; ``excess (N, C)``: load above the watermark; ``cost (N,)``: what each node costs now;
    ``a``, ``x``, ``b``, ``y``, ``z``: two replicas, each with the node it is on, and a third node;
    ``limit``: price from which on a candidate is not worth pricing any further. Returns the change;
    NEVER once it is above the limit.
    """
    price = -cost[x] - cost[y] - cost[z]
    for c in range(weight.shape[0]):
        more, other = need[a, c], need[b, c]
        left = max(0.0, excess[x, c] - more) + max(0.0, excess[z, c] + other)
        price += weight[c] * (left + max(0.0, excess[y, c] + (more - other)))
        if price > limit:
            return NEVER
    return price


@inlined
def penalty_with(
    need: NDArray[np.float64],
    room: NDArray[np.float64],
    penalty_weight: NDArray[np.float64],
    kept: NDArray[np.float64],
    n: int,
    comes: int,
    is_home: bool,
    goes: int,
    was_home: bool,
) -> float:
    """Penalties of node ``n`` once replica ``comes`` is there and ``goes`` is not (-1: no such).

    ``need (K, C)``: load of each replica in the first D channels; ``room (N, D)``: capacity left;
    ``penalty_weight (N, D)``: penalty for one unit above capacity; ``kept (K, D)``: what each
    replica keeps taking at home while it is away; ``n``, ``comes``: the node, and who comes;
    ``is_home``: whether the node is the home of the one that comes; ``goes``: who leaves;
    ``was_home``: whether the node is the home of the one that leaves. Returns penalties of the node
    in all dimensions.
    """
    # what one that comes home kept there is counted already, and one that leaves home keeps some
    penalty = 0.0
    for d in range(room.shape[1]):
        more = 0.0
        if comes >= 0:
            more += need[comes, d] - kept[comes, d] if is_home else need[comes, d]
        if goes >= 0:
            more -= need[goes, d] - kept[goes, d] if was_home else need[goes, d]
        penalty += penalty_weight[n, d] * max(0.0, more - room[n, d])
    return penalty


@inlined
def stray(walk: CostState, k: int) -> None:
    """Note that replica ``k`` may stand elsewhere than in the best state."""
    if not walk.is_astray[k]:
        walk.is_astray[k] = True
        walk.astray[walk.astray_count[0]] = k
        walk.astray_count[0] += 1


@inlined
def keep_if_best(state: State, walk: CostState) -> None:
    """Make the state the best one if it is; O(replicas moved since the last best one)."""
    feasible = walk.overloaded[0] == 0 and walk.breaches[0] <= 0
    if not feasible or walk.total[0] >= walk.total[1]:
        return
    walk.total[1] = walk.total[0]
    walk.tally[IMPROVED] += 1
    for i in range(walk.astray_count[0]):
        k = walk.astray[i]
        walk.best[k] = state.node[k]
        walk.is_astray[k] = False
    walk.astray_count[0] = 0


@no_alloc
def visit(
    problem: Problem, state: State, walk: CostState, node: NDArray[np.int32], cost: float
) -> None:
    """Go to the placement ``node`` (K,), which breaks no rule of a group and costs ``cost``."""
    # it becomes the best one if it is
    for k in range(node.shape[0]):
        if state.node[k] != node[k]:
            move(problem, state, k, index(node[k]))
            stray(walk, k)
    for n in range(walk.cost.shape[0]):
        refresh(problem, state, walk, n)
    walk.breaches[0] = 0
    for g in range(walk.tied.shape[0]):
        walk.broken[g] = walk.tied[g]
    walk.total[0] = cost
    keep_if_best(state, walk)
