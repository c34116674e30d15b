"""Fill: nodes below their floor take replicas from nodes that can spare them.

The node that is furthest below its floor is served first. Of the replicas on the fullest nodes that
can spare something, it takes the one that makes up most of what it lacks, so that few moves do; a
replica that has moved already is preferred, since moving it again costs nothing. No move takes a
node above its target or another below its floor.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.problem import Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import more_moved, move

DONORS = 8
"""Nodes that are asked for a replica, the fullest first."""

FREE, LEADING = 1.5, 0.5
"""How much more a replica counts that has moved already, and how much less one that leads."""

ROUNDING = 1e-12
"""Part of a floor that may be missing for the order in which loads were added."""


@inline_only
def lack(state: State, lowest: NDArray[np.float64], n: int) -> float:
    """Return the greatest part of its floor ``lowest (D, N)`` that node ``n`` lacks. O(D)."""
    most = 0.0
    for d in range(lowest.shape[0]):
        if lowest[d, n] > 0.0:
            most = max(most, 1.0 - state.load[d, n] / lowest[d, n])
    return most if most > ROUNDING else 0.0


@inline_only
def made_up(
    problem: Problem, state: State, lowest: NDArray[np.float64], k: int, here: int, n: int
) -> float:
    """Return what ``k`` would make up of ``lowest (D, N)`` on ``n``; 0 if forbidden. O(D)."""
    gain = 0.0
    for d in range(lowest.shape[0]):
        size = load_of(problem.partitions, state, k, d)
        if state.load[d, n] + size > problem.nodes.watermark[d, n]:
            return 0.0
        if size > 0.0 and state.load[d, here] - size < lowest[d, here]:
            return 0.0
        if lowest[d, n] > 0.0:
            gain += min(size, max(0.0, lowest[d, n] - state.load[d, n])) / lowest[d, n]
    return gain


@inline_only
def spare(
    problem: Problem, state: State, lowest: NDArray[np.float64], n: int, lacking: int
) -> float:
    """Return how far ``n`` is above ``lowest (D, N)`` where ``lacking`` is below. O(D)."""
    least = -1.0
    for d in range(lowest.shape[0]):
        if lowest[d, lacking] > state.load[d, lacking]:
            over = state.load[d, n] - lowest[d, n]
            ceiling = problem.nodes.watermark[d, n]
            least = max(least, over / ceiling if 0.0 < ceiling < np.inf else over)
    return least


@inline_only
def lacks_most(
    problem: Problem, state: State, lowest: NDArray[np.float64], stuck: NDArray[np.bool_]
) -> int:
    """Node furthest below its ``lowest (D, N)`` of those not ``stuck (N,)``, -1 for none."""
    most, worst = index(-1), 0.0
    for n in range(stuck.shape[0]):
        if stuck[n] or not problem.nodes.accepts[n]:
            continue
        missing = lack(state, lowest, n)
        if missing > worst:
            most, worst = index(n), missing
    return most


@no_alloc
def fill(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    slots: NDArray[np.int64],
    stuck: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    made: NDArray[np.int64],
    most_moves: int,
    turns: int,
) -> bool:
    """Bring nodes up to their floors with at most ``most_moves`` moves; return whether that is all.

    ``lowest (D, N)``: load that each node is to hold at least; 0 where nothing is asked; ``first``,
    ``slots (N + 1,)``: the replicas of each node as the run begins, as
    `evenkeel_kernels.core.by_node` lists them; ``stuck (N,)``: false at first; comes back True for
    nodes that nothing could fill further; ``most_leaders (N,)``: partitions that each node may
    lead; ``donor``, ``surplus (DONORS,)``: room to work in; ``made (1,)``: replicas that are away
    from where they came from now and were not before; kept up to date; ``most_moves``: budget, in
    moves away from where replicas came from; ``turns``: most moves tried until the caller is asked;
    called again, it goes on. Returns false if turns are over and there may be more to do.

    Complexity: O(N + DONORS (N + K / N) D) for each move.
    """
    for _ in range(turns):
        n = lacks_most(problem, state, lowest, stuck)
        if n < 0:
            return True
        may_lead = state.leaders[n] + 1.0 <= most_leaders[n]
        left = most_moves - made[0]
        k = best_for(problem, state, lowest, first, slots, donor, surplus, n, may_lead, left)
        if k < 0:
            stuck[n] = True
            continue
        made[0] += more_moved(problem, state, k, n)
        move(problem, state, k, n)
    return False


@inline_only
def fullest(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    n: int,
    closed: float,
    closed_at: int,
) -> int:
    """List in ``donor (M,)`` who can spare most of what ``n`` lacks of ``lowest (D, N)``.

    Those asked already are left out; ``surplus (M,)`` says how much each can spare. O(N D).
    """
    found = 0
    for other in range(problem.nodes.accepts.shape[0]):
        over = spare(problem, state, lowest, other, n)
        asked = over > closed or (over == closed and other <= closed_at)
        if other == n or over <= 0.0 or asked:
            continue
        if found < donor.shape[0]:
            found += 1
        elif over <= surplus[found - 1]:
            continue
        at = found - 1
        while at > 0 and surplus[at - 1] < over:
            surplus[at] = surplus[at - 1]
            donor[at] = donor[at - 1]
            at -= 1
        surplus[at] = over
        donor[at] = other
    return found


@inline_only
def best_for(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    slots: NDArray[np.int64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    n: int,
    may_lead: bool,
    left: int,
) -> int:
    """Return the replica that makes up most of what ``n`` lacks, -1 for none.

    ``lowest (D, N)``, ``first (N + 1,)``, ``slots (.,)``, ``donor (M,)`` and ``surplus (M,)`` are
    those of `fill`.
    """
    partitions = problem.partitions
    closed, closed_at = np.inf, index(-1)
    while True:
        found = fullest(problem, state, lowest, donor, surplus, n, closed, closed_at)
        if found == 0:
            return -1
        best, most = index(-1), 0.0
        for i in range(found):
            here = donor[i]
            for j in range(first[here], first[here + 1]):
                k = index(slots[j])
                if state.node[k] != here:
                    continue
                gain = made_up(problem, state, lowest, k, here, n)
                if leads_now(partitions.first, state.leader, index(partitions.owner[k]), k):
                    gain *= LEADING if may_lead else 0.0
                if more_moved(problem, state, k, n) <= 0:
                    gain *= FREE
                elif left < 1:
                    continue
                if gain > most and admits(problem, state, k, n):
                    best, most = k, gain
        if best >= 0:
            return best
        closed, closed_at = surplus[found - 1], donor[found - 1]
