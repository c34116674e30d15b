"""Place a replica that fits nowhere by displacing others, which move elsewhere.

Smaller replicas are displaced first. A node loses, of the replicas smaller than the new one, those
whose removal makes room: one alone that does, the smallest, or else, one after the other, those
that cover most of what is missing. The node is chosen that loses least in all. Since the displaced
ones are smaller, this ends; where all replicas weigh the same, no other is smaller.

So a replica may also take over the place of any other, whatever that weighs, but only if the other
moves to a node that has room for it.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.core.feasibility import admits, may_stand
from evenkeel_kernels.core.node_scan import FAR
from evenkeel_kernels.core.problem import VOTER, Problem, State, following_load, index, load_of
from evenkeel_kernels.core.state import apply, move, transfer_leader
from evenkeel_kernels.levelling.leaders.moves import stands_alone

SURELY = 1.0 - 1e-9  # part of a sum that it reaches in any order of its terms

# where none makes way for one replica, none is sought for another so many times as large
ALIKE = 0.5


@inline_only
def missing_room(problem: Problem, state: State, k: int, n: int, lack: NDArray[np.float64]) -> int:
    """Fill ``lack (D,)`` with the load by which ``k`` does not fit on ``n``; returns replicas."""
    nodes = problem.nodes
    for d in range(lack.shape[0]):
        load = state.load[d, n] + state.held[d, n] + load_of(problem.partitions, state, k, d)
        if nodes.transient[d] and problem.partitions.home[k] == n:
            load -= following_load(problem.partitions, state, k, d)
        lack[d] = load - nodes.capacity[d, n]
    return state.replicas[n] + 1 - nodes.max_replicas[n]


@inline_only
def frees(problem: Problem, state: State, i: int, n: int, d: int) -> float:
    """Room in dimension ``d`` that the going of replica ``i`` makes on its node ``n``."""
    if problem.nodes.transient[d] and problem.partitions.home[i] == n:
        held = following_load(problem.partitions, state, i, d)
        return load_of(problem.partitions, state, i, d) - held
    return load_of(problem.partitions, state, i, d)


@no_alloc
def choose_victims(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    k: int,
    n: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    lack: NDArray[np.float64],
    victim: NDArray[np.int64],
    most: int,
) -> int:
    """Fill ``victim`` with the replicas of ``n`` that make way for ``k``; returns how many, or -1.

    There are at most ``most`` of them. ``size (P,)`` says which partitions are smaller,
    ``first (N + 1,)`` and ``member`` list the replicas of each node, and ``lack (D,)`` is scratch.

    Complexity: O(replicas D) for each one chosen.
    """
    partitions = problem.partitions
    dimensions = lack.shape[0]
    p = index(partitions.owner[k])
    too_many = missing_room(problem, state, k, n, lack)
    count = 0
    while True:
        short = 0
        for d in range(dimensions):
            short += int(lack[d] > 0.0)
        if short == 0 and too_many <= count:
            return count
        if max(index(1), too_many - count) > most - count:
            return -1
        alone = index(-1)
        best = index(-1)
        greatest = 0.0
        for at in range(first[n], first[n + 1]):
            i = member[at]
            o = index(partitions.owner[i])
            if state.node[i] != n or not partitions.movable[i] or size[o] >= size[p]:
                continue
            taken = False
            for c in range(count):
                taken = taken or victim[c] == i
            if taken:
                continue
            enough = too_many <= count + 1
            worth = 1e-9 if too_many > count else 0.0
            for d in range(dimensions):
                if lack[d] > 0.0:
                    freed = frees(problem, state, i, n, d)
                    enough = enough and freed >= lack[d]
                    worth += min(freed, lack[d]) / lack[d]
            if enough and (alone < 0 or size[o] < size[partitions.owner[alone]]):
                alone = i
            if worth > greatest:
                greatest = worth
                best = i
        if alone >= 0:
            best = alone
        elif greatest * (most - count) < SURELY * short:  # none of them covers more
            return -1
        if best < 0:
            return -1
        victim[count] = best
        count += 1
        for d in range(dimensions):
            lack[d] -= frees(problem, state, best, n, d)


@no_alloc
def node_to_clear(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    k: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    closed: NDArray[np.bool_],
    weight: NDArray[np.float64],
    score: NDArray[np.float64],
    known: NDArray[np.bool_],
    lack: NDArray[np.float64],
    victim: NDArray[np.int64],
    most: int,
) -> tuple[int, int]:
    """Choose the node, not ``closed (N,)``, that ``k`` would be on if others made way for it.

    Returns it and how many of ``victim`` these are; -1 and 0 if there is none. ``size``, ``first``,
    ``member``, ``lack`` and ``most`` are those of `choose_victims`; ``score (N,)`` and
    ``known (N,)`` are scratch. No replica moves. A partition of this replica alone that has no
    leader is led by ``k`` then, unless leading weighs less than following.

    Who makes way on a node is chosen only once it may be the one: until then its score is that of
    the load it lacks, each dimension ``weight (D,)`` heavy. No replica may have a lesser ``size``
    than its load has so.

    Complexity: O(N D), and O(replicas D) for each victim of a node that may be the one.
    """
    partitions = problem.partitions
    p = index(partitions.owner[k])
    leads = state.leader[p] < 0 and state.role[k] == VOTER and stands_alone(problem, state, p)
    for d in range(lack.shape[0]):  # it has to fit before it leads, too
        leads = leads and partitions.leader_load[p, d] >= partitions.voter_load[p, d]
    if leads:
        transfer_leader(problem, state, p, k - partitions.first[p])
    for n in range(score.shape[0]):
        score[n] = FAR
        known[n] = False
        if closed[n] or n == state.node[k] or not may_stand(problem, p, n):
            continue
        missing_room(problem, state, k, n, lack)
        score[n] = 0.0
        for d in range(lack.shape[0]):
            if lack[d] > 0.0:
                score[n] = max(score[n], SURELY * lack[d] * weight[d])
        if score[n] > most * size[p]:  # all that make way are smaller than what comes
            score[n] = FAR
    while True:
        there = index(0)
        for n in range(score.shape[0]):
            if score[n] < score[there]:
                there = n
        if score[there] < FAR and not known[there]:
            count = choose_victims(
                problem, state, size, k, there, first, member, lack, victim, most
            )
            known[there] = True
            score[there] = 0.0 if count >= 0 else FAR
            for c in range(count):
                score[there] += size[partitions.owner[victim[c]]]
            continue
        if score[there] >= FAR:
            if leads:
                transfer_leader(problem, state, p, index(-1))
            return index(-1), index(0)
        count = choose_victims(problem, state, size, k, there, first, member, lack, victim, most)
        # whether the rules admit it is asked while the others are away
        admitted = False
        for turn in range(2):
            for c in range(count):
                apply(problem, state, victim[c], index(-1) if turn == 0 else there)
            if turn == 0:
                admitted = admits(problem, state, k, there)
        if admitted:
            return there, index(count)
        score[there] = FAR


@device_function
def makes_way(
    problem: Problem, state: State, i: int, n: int, too_many: int, lack: NDArray[np.float64]
) -> bool:
    """Whether the going of ``i`` alone makes the room on ``n`` that ``lack (D,)`` says."""
    if state.node[i] != n or not problem.partitions.movable[i] or too_many > 1:
        return False
    for d in range(lack.shape[0]):
        if lack[d] > 0.0 and frees(problem, state, i, n, d) < lack[d]:
            return False
    return True


@device_function
def takes_over(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    k: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    roomy: NDArray[np.int32],
    lack: NDArray[np.float64],
    in_vain: NDArray[np.float64],
) -> bool:
    """Put ``k`` where the smallest replica was that can go to a roomy node; whether there is one.

    ``size (P,)``, ``first (N + 1,)``, ``member``, ``roomy``, ``lack (D,)`` and ``in_vain (N,)`` are
    those of `take_over_each`. The first node on which ``k`` may be is taken.
    """
    partitions = problem.partitions
    p = index(partitions.owner[k])
    for n in range(state.replicas.shape[0]):
        if n == state.node[k] or size[p] >= ALIKE * in_vain[n] or not may_stand(problem, p, n):
            continue
        too_many = missing_room(problem, state, k, n, lack)
        asked = admitted = False
        best, best_to = index(-1), index(-1)
        for at in range(first[n], first[n + 1]):
            i = member[at]
            o = index(partitions.owner[i])
            if o == p or not makes_way(problem, state, i, n, too_many, lack):
                continue
            if not asked:  # whether rules admit ``k`` does not depend on who makes way
                asked = True
                move(problem, state, i, index(-1))
                admitted = admits(problem, state, k, n)
                move(problem, state, i, n)
                if not admitted:
                    break
            if best >= 0 and size[o] >= size[partitions.owner[best]]:
                continue
            for j in range(roomy.shape[0]):
                m = index(roomy[j])
                if m != n and admits(problem, state, i, m):
                    best, best_to = index(i), m
                    break
        if best < 0:
            if admitted:
                in_vain[n] = size[p]
            continue
        move(problem, state, best, best_to)
        if admits(problem, state, k, n):
            move(problem, state, k, n)
            return True
        move(problem, state, best, n)
    return False


@no_alloc
def take_over_each(
    problem: Problem,
    state: State,
    size: NDArray[np.float64],
    order: NDArray[np.int64],
    begin: int,
    end: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    roomy: NDArray[np.int32],
    lack: NDArray[np.float64],
    in_vain: NDArray[np.float64],
    most: int,
    failures: int,
) -> int:
    """Place ``order[begin:end]`` where others make way; returns how many failed in a row at last.

    No more than ``most`` find a place, and it ends after ``failures`` in a row. ``size (P,)`` says
    how large replicas are, ``first (N + 1,)`` and ``member`` list those of each node, as they were
    at some time, ``roomy`` the nodes to go to, in the order of preference; ``lack (D,)`` is
    scratch. ``in_vain (N,)``, inf at first, says for which size none was found to make way on a
    node: none is sought there for what is about as large.

    Complexity: O(K roomy) checks for each one that finds no place.
    """
    failed = 0
    for at in range(begin, end):
        if failed == failures or most <= 0:
            break
        if takes_over(problem, state, size, index(order[at]), first, member, roomy, lack, in_vain):
            failed = 0
            most -= 1
        else:
            failed += 1
    return failed
