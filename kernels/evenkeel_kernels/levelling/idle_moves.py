"""Undo moves that bring no node nearer to its targets, where these are out of reach.

A search that cannot reach its targets spreads the excess thinly, and goes on trying for as long as
budgets let it. A replica that went from one overfull node to another would have to move again, and
one that left a node that was not overfull need not have moved at all; if another replica has taken
its room there, that one goes where it went: one move does for two.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import move_if_admitted
from evenkeel_kernels.levelling.penalty import Targets
from evenkeel_kernels.levelling.threshold_walk import trade_if_admitted

# change of the excess that is none, in units of a target: these leave a little room themselves
ROUNDING = 1e-9


@inline_only
def excess_passing(before: float, after: float, height: float) -> float:
    """How much more of a target ratio is above 1 than before; much if it rises above ``height``."""
    if after > before and after > height:
        return FAR
    return max(0.0, after - 1.0) - max(0.0, before - 1.0)


@inline_only
def is_idle(
    problem: Problem, state: State, targets: Targets, k: int, i: int, height: float
) -> bool:
    """Whether no more is above its target, nor above ``height``, with ``k`` back at home.

    ``i`` takes the place of ``k`` and leaves its home; -1 for none. O(D).
    """
    here, home = index(state.node[k]), index(problem.partitions.home[k])
    change = 0.0
    for d in range(state.load.shape[0]):
        more = load_of(problem.partitions, state, k, d)
        if i >= 0:
            more -= load_of(problem.partitions, state, i, d)
        for sign, n in ((1.0, home), (-1.0, here)):
            before = state.load[d, n] * targets.scale[d, n]
            after = (state.load[d, n] + sign * more) * targets.scale[d, n]
            change += excess_passing(before, after, height)
    first, owner = problem.partitions.first, problem.partitions.owner
    led = index(leads_now(first, state.leader, index(owner[k]), k))
    if i >= 0:
        led -= index(leads_now(first, state.leader, index(owner[i]), i))
    if led != 0:
        for sign, n in ((1, home), (-1, here)):
            before = state.leaders[n] * targets.leader_scale[n]
            after = (state.leaders[n] + sign * led) * targets.leader_scale[n]
            change += excess_passing(before, after, height)
    return change <= ROUNDING


@no_alloc
def take_back_idle(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    height: float,
) -> int:
    """Send home all whose moves bring no node nearer to its targets, the ``forced (K,)`` apart.

    ``first``, ``member (N + 1,)``: the replicas of each node, as `evenkeel_kernels.core.by_node`
    lists them, which is not kept up to date. No node gets above the target ratio ``height``, which
    is at least 1, by it. Returns how many went home.

    Complexity: O(K D), and O(D) for each replica that has come to the home of one that has left it.
    """
    home, node = problem.partitions.home, state.node
    returned, before = 0, -1
    while returned > before:
        before = returned
        for here in range(first.shape[0] - 1):
            for at in range(first[here], first[here + 1]):
                k = index(member[at])
                back = index(home[k])
                if node[k] != here or back == here or back < 0 or forced[k]:
                    continue
                if is_idle(problem, state, targets, k, index(-1), height) and move_if_admitted(
                    problem, state, k, back
                ):
                    returned += 1
                    continue
                for other in range(first[back], first[back + 1]):
                    i = index(member[other])
                    if node[i] != back or home[i] == back or home[i] < 0 or forced[i]:
                        continue
                    if is_idle(problem, state, targets, k, i, height) and trade_if_admitted(
                        problem, state, k, i
                    ):
                        member[at], member[other] = i, k
                        returned += 1 + int(home[i] == here)
                        break
    return returned
