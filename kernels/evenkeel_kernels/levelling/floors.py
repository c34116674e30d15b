"""Fill nodes below their floor with replicas of nodes that can spare them, by moves or exchanges.

The node that is furthest below its floor is served first. Of the replicas on the fullest nodes that
can spare something, it takes the one that makes up most of what it lacks, so that few moves do; a
replica that has moved already is preferred, since moving it again costs nothing. No move takes a
node above its target or another below its floor.

Where no single replica fills a node up to its floor, two replicas are exchanged. In several
dimensions a node may be at its target in one and below its floor in another: it can take nothing
then, but give one replica for another that has more of what it lacks. The nodes that can spare most
are tried first. What another node lacks after an exchange counts like what this one does, as its
square, so that a large lack may be divided among several nodes, which then trade on. No exchange
takes a node above its target.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import more_moved, move

DONORS = 8  # nodes that are asked for a replica, the fullest first

# how much more a replica counts that has moved already, and how much less one that leads
FREE, LEADING = 1.5, 0.5

ROUNDING = 1e-12  # part of a floor that may be missing for the order in which loads were added

# part of its lack, squared, of which an exchange must rid a node: else they would hardly end
LEAST_GAIN = 0.01

# how much less an exchange counts for each replica that moves by it and has not moved before
MOVING = 0.7

# part of its lack, squared, of which to rid a node is good enough to ask no further nodes: a little
# less than all of it, with two replicas that have not moved before
ENOUGH = 0.45

PAIRS = 2_000_000  # pairs of replicas looked at for one exchange before a node is given up


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


@inline_only
def lacking(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    n: int,
    size: NDArray[np.float64],
    gone: int,
    sign: float,
) -> float:
    """Sum the squares of the parts of ``lowest (D, N)`` that ``n`` lacks after an exchange.

    The last row of ``size (., D)`` is what comes and the row ``gone`` what leaves (``sign`` 1.0),
    or the other way round (-1.0); 0.0 for neither. ``FAR`` beyond its target. O(D).
    """
    total = 0.0
    come = size.shape[0] - 1
    for d in range(lowest.shape[0]):
        more = sign * (size[come, d] - size[gone, d])
        after = state.load[d, n] + more
        if more > 0.0 and after > problem.nodes.watermark[d, n]:
            return FAR
        if lowest[d, n] > 0.0:
            part = 1.0 - after / lowest[d, n]
            if part > ROUNDING:
                total += part * part
    return total


@device_function
def admits_second(problem: Problem, state: State, k: int, i: int) -> bool:
    """Whether ``i`` may go where ``k`` is once ``k`` has gone where ``i`` is."""
    here = index(state.node[k])
    move(problem, state, k, index(state.node[i]))
    admitted = admits(problem, state, i, here)
    move(problem, state, k, here)
    return admitted


@inline_only
def leaders_fit(
    problem: Problem, state: State, most_leaders: NDArray[np.float64], k: int, i: int
) -> bool:
    """Whether ``k`` and ``i`` may trade places for all that nodes lead, ``most_leaders (N,)``."""
    partitions = problem.partitions
    k_leads = leads_now(partitions.first, state.leader, index(partitions.owner[k]), k)
    if k_leads == leads_now(partitions.first, state.leader, index(partitions.owner[i]), i):
        return True
    taker = state.node[i] if k_leads else state.node[k]
    return state.leaders[taker] + 1.0 <= most_leaders[taker]


@no_alloc
def exchange(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    stuck: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    size: NDArray[np.float64],
    tally: NDArray[np.int64],
    turns: int,
) -> bool:
    """Let nodes below their floors trade replicas with others; return whether that is all.

    ``lowest (D, N)``: load that each node is to hold at least; 0 where nothing is asked; ``first``,
    ``member (N + 1,)``: the replicas of each node, as `evenkeel_kernels.core.by_node` lists them,
    kept up to date; ``stuck (N,)``: false at first; comes back True for nodes that no exchange
    brings nearer; ``most_leaders (N,)``: partitions that each node may lead; ``donor``, ``surplus
    (M,)`` and ``size (., D)``: room to work in, for the nodes asked at once, and for one replica
    more than any node holds; ``tally (2,)``: counts the exchanges, and how many pairs of replicas
    may still be looked at; ``turns``: most exchanges tried until the caller is asked;
    called again, it goes on. Returns false if turns are over and there may be more to do.

    Complexity: O(N D + M (K / N)^2 D) for each exchange, and N / M times that for each node that is
    stuck, but no more than PAIRS D.
    """
    for _ in range(turns):
        n = lacks_most(problem, state, lowest, stuck)
        if n < 0 or tally[1] <= 0:
            return True
        mine, other, looked = best_trade(
            problem, state, lowest, first, member, most_leaders, donor, surplus, size, n
        )
        tally[1] -= looked
        if mine < 0:
            stuck[n] = True
            continue
        i, k = index(member[mine]), index(member[other])
        here = index(state.node[k])
        move(problem, state, k, n)
        move(problem, state, i, here)
        member[mine], member[other] = k, i
        tally[0] += 1
    return False


@inline_only
def best_trade(
    problem: Problem,
    state: State,
    lowest: NDArray[np.float64],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    most_leaders: NDArray[np.float64],
    donor: NDArray[np.int64],
    surplus: NDArray[np.float64],
    size: NDArray[np.float64],
    n: int,
) -> tuple[int, int, int]:
    """Return where in ``member`` two replicas are that had better trade places, the first on ``n``.

    -1 for none; and how many pairs were looked at. ``lowest (D, N)``, ``first (N + 1,)``, ``member
    (.,)``, ``most_leaders (N,)``, ``donor (M,)``, ``surplus (M,)`` and ``size (., D)`` are those of
    `exchange`.
    """
    partitions = problem.partitions
    begin, end, last = index(first[n]), index(first[n + 1]), index(size.shape[0] - 1)
    for row in range(end - begin):
        for d in range(lowest.shape[0]):
            size[row, d] = load_of(partitions, state, index(member[begin + row]), d)
    lacks = lacking(problem, state, lowest, n, size, last, 0.0)
    closed, closed_at = np.inf, index(-1)
    mine, other, most, looked = index(-1), index(-1), 0.0, index(0)
    while mine < 0 and looked < PAIRS:
        found = fullest(problem, state, lowest, donor, surplus, n, closed, closed_at)
        if found == 0:
            break
        for turn in range(found):
            if most > ENOUGH * lacks:
                break
            here = index(donor[turn])
            lacks_there = lacking(problem, state, lowest, here, size, last, 0.0)
            for at in range(first[here], first[here + 1]):
                k = index(member[at])
                if not admits(problem, state, k, n):
                    continue
                looked += end - begin
                for d in range(lowest.shape[0]):
                    size[last, d] = load_of(partitions, state, k, d)
                for row in range(end - begin):
                    gain = lacks - lacking(problem, state, lowest, n, size, row, 1.0)
                    if gain <= LEAST_GAIN * lacks or gain <= most:
                        continue
                    gain += lacks_there - lacking(problem, state, lowest, here, size, row, -1.0)
                    if gain <= LEAST_GAIN * lacks:
                        continue
                    i = index(member[begin + row])
                    more = more_moved(problem, state, k, n) + more_moved(problem, state, i, here)
                    for _ in range(more):
                        gain *= MOVING
                    if (
                        gain > most
                        and partitions.owner[k] != partitions.owner[i]
                        and leaders_fit(problem, state, most_leaders, k, i)
                        and admits_second(problem, state, k, i)
                    ):
                        mine, other, most = begin + row, index(at), gain
        closed, closed_at = surplus[found - 1], donor[found - 1]
    return mine, other, looked
