"""Reduce the skew of a group: move replicas from its fullest to its emptiest domains.

One step seldom lowers a skew, since several domains share the most or the fewest, so no step is
asked to. Each goes to a domain that holds at least two fewer, or leaves one that does not count for
the fewest, so that no step undoes another. Where none is admitted, two replicas move at once, by
way of a third domain. Replicas that wait for a node go first, likewise. Steps are undone after
which neither fewer replicas wait nor the skew is lower.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits, beyond_group_limit
from evenkeel_kernels.core.problem import SKEW, Problem, State, index, is_away, leads_now
from evenkeel_kernels.core.state import move
from evenkeel_kernels.levelling.repair import is_waiting

WAITS = 1 << 30  # count of replicas where one comes from that waits: more than anywhere


@inline_only
def place_of(problem: Problem, i: int, n: int) -> int:
    """Where the count of group limit ``i`` for the domain of node ``n`` is; -1 for none."""
    domains, level = problem.domains, index(problem.rules.group_limit[i, 0])
    if n < 0 or domains.domain[level, n] < 0:
        return index(-1)
    return index(problem.rules.group_base[i] + domains.domain[level, n]) - index(
        domains.domain_offset[level]
    )


@inline_only
def use_of(problem: Problem, state: State, n: int) -> float:
    """Return the greatest share of a capacity of node ``n`` that is used."""
    use = 0.0
    for d in range(state.load.shape[0]):
        use = max(use, state.load[d, n] * problem.nodes.inverse[d, n])
    return use


@device_function
def send_down(
    problem: Problem,
    state: State,
    i: int,
    forced: NDArray[np.bool_],
    member: NDArray[np.int64],
    least: int,
    most: int,
    apart: int,
    to: int,
    journal: NDArray[np.int64],
) -> bool:
    """Send one of ``member (M,)`` from a domain with at least ``least`` replicas of the group.

    It leaves the fullest node that one may leave for the node used least of those that admit it, in
    a domain with at most ``most``, and ``apart`` fewer than there are where it is, or in that whose
    count is at ``to`` if this is not -1. What waits, as ``forced (K,)`` says, and what came from
    elsewhere goes first, then what follows, then what leads. ``journal (2,)`` becomes the replica
    and the node that it left.
    """
    rules, first, count = problem.rules, problem.partitions.first, state.group_count
    for turn in range(3):
        chosen, goes_to, highest = index(-1), index(-1), -1.0
        for at in range(member.shape[0]):
            k = index(member[at])
            here = index(state.node[k])
            source = place_of(problem, i, here)
            held = index(count[source]) if source >= 0 else index(-1)
            if is_waiting(problem, state, forced, k):
                held = index(WAITS)
            if held < least or source == to >= 0:
                continue
            leads = leads_now(first, state.leader, index(problem.partitions.owner[k]), k)
            kind = 1 + int(leads)
            if held == WAITS or is_away(problem, k, here) > 0:
                kind = 0
            if kind != turn or not problem.partitions.movable[k]:
                continue
            height = use_of(problem, state, here) if here >= 0 else 0.0
            if height <= highest:
                continue
            fewer = held - apart + int(source >= 0 and not rules.group_open[source])
            best, lowest = index(-1), np.inf
            for n in range(state.load.shape[1]):
                goal = place_of(problem, i, index(n))
                if goal < 0 or not rules.group_open[goal]:
                    continue
                if goal != to if to >= 0 else count[goal] > min(most, fewer):
                    continue
                use = use_of(problem, state, index(n))
                if use < lowest and admits(problem, state, k, index(n)):
                    best, lowest = index(n), use
            if best >= 0:
                chosen, goes_to, highest = k, best, height
        if chosen >= 0:
            journal[0], journal[1] = chosen, index(state.node[chosen])
            move(problem, state, chosen, goes_to)
            return True
    return False


@device_function
def step_down(
    problem: Problem,
    state: State,
    i: int,
    forced: NDArray[np.bool_],
    member: NDArray[np.int64],
    most: int,
    fewest: int,
    journal: NDArray[np.int64],
) -> int:
    """Bring two counts of group limit ``i`` nearer; returns the moves that it took, 0 to 2.

    Of ``member (M,)`` those that are ``forced (K,)`` to go come first. ``journal (2, 2)`` becomes
    the replicas and the nodes that they left.
    """
    no = index(-1)
    for least, greatest in ((most, fewest), (most, most), (index(0), fewest)):
        if send_down(problem, state, i, forced, member, least, greatest, 2, no, journal[0]):
            return 1
    for at in range(member.shape[0] if most - fewest > 1 else 0):
        between = place_of(problem, i, index(state.node[member[at]]))
        if between < 0 or not fewest < state.group_count[between] < most:
            continue
        if send_down(problem, state, i, forced, member[at : at + 1], 0, fewest, 1, no, journal[0]):
            if send_down(problem, state, i, forced, member, most, 0, 0, between, journal[1]):
                return 2
            move(problem, state, index(journal[0, 0]), index(journal[0, 1]))
    return 0


@no_alloc
def even_out(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    begin: int,
    end: int,
    journal: NDArray[np.int64],
) -> int:
    """Lower the skews of the groups ``begin`` to ``end`` to what is allowed; returns the moves.

    ``forced (K,)`` must get another node than their first. ``first (G + 1,)`` and ``member (K,)``
    list the replicas of each group. ``journal (J, 2)`` is scratch, for the moves until a skew
    falls: two for each domain are enough; where it ends, so does the repair of a group.

    Complexity: O(K N) for each step.
    """
    rules, offset = problem.rules, problem.domains.domain_offset
    made = 0
    for g in range(begin, end):
        replicas = member[first[g] : first[g + 1]]
        for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
            allowed = index(rules.group_limit[i, SKEW])
            level, base = index(rules.group_limit[i, 0]), index(rules.group_base[i])
            length, lowest = 0, index(1 << 60)
            while allowed >= 0:
                undone = beyond_group_limit(problem, state, i, index(SKEW), index(-1), index(-1))
                waiting = 0
                for at in range(replicas.shape[0]):
                    waiting += int(is_waiting(problem, state, forced, index(replicas[at])))
                undone += waiting * (1 << 20)
                if undone < lowest:
                    made, length, lowest = made + length, 0, undone
                if undone == 0 or length + 2 > journal.shape[0]:
                    break
                most, fewest = index(0), index(1 << 30)
                for at in range(base, base + offset[level + 1] - offset[level]):
                    most = max(most, index(state.group_count[at]))
                    if rules.group_open[at]:
                        fewest = min(fewest, index(state.group_count[at]))
                moves = 0
                for top in (index(WAITS), most):
                    if moves == 0 and (waiting > 0 or top == most):
                        moves = step_down(
                            problem, state, i, forced, replicas, top, fewest, journal[length:]
                        )
                if moves == 0:
                    break
                length += moves
            for at in range(length - 1, -1, -1):
                move(problem, state, index(journal[at, 0]), index(journal[at, 1]))
    return made
