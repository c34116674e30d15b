"""Annealing over single moves and swaps: a weighted sum is brought down, no hard rule is broken.

Cost first, rules last: nearly all candidates are dismissed by their price alone, which takes a few
additions, and only the rest is asked whether the rules allow it. What is applied goes through
``state.apply``, so that the books are those of every other search.

The caller, who alone knows a clock, cuts a search into slices: all that one slice leaves to the
next is in ``State`` and ``Walk``.
"""

import numpy as np

from evenkeel_kernels.admission import (
    keeps_group_limits,
    keeps_limits,
    keeps_near,
    keeps_terms,
    may_stand,
)
from evenkeel_kernels.jit import inlined, lean
from evenkeel_kernels.problem import Problem, State, leads_now, load_of
from evenkeel_kernels.search_walk import (
    APPLIED,
    EVALUATED,
    NEVER,
    Walk,
    fine_with,
    keep_if_best,
    refresh,
    shift_price,
    stray,
    swap_price,
)
from evenkeel_kernels.state import move, move_cost, sharing_cost

COOLING_STEP = 256
"""Candidates between two changes of the temperature."""

UNIT = 2.0**-53
"""Turns 53 random bits into a number between 0 and 1."""


@inlined
def drawn(random: np.uint64) -> np.uint64:
    """Return the next number of the generator (xorshift, 64 bits), which is its state, too."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@inlined
def below(random: np.uint64, bound: int) -> int:
    """Turn the upper half of a random number into an index below ``bound``."""
    return int(np.int64(((random >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)))


@inlined
def suits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether ``n`` may hold replica ``k`` as far as the rules of its own partition go."""
    p = problem.partitions.owner[k]
    if leads_now(problem.partitions.first, state.leader, p, k):
        rank = problem.rules.lead_rank[problem.partitions.rule[p]]
        if not problem.nodes.leads[n] or rank[n] == 255 or rank[n] > rank[state.node[k]]:
            return False
    return (
        may_stand(problem, p, n)
        and keeps_limits(problem, state, k, n)
        and keeps_terms(problem, state, k, n)
    )


@inlined
def suits_group(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether replica ``k`` on ``n`` leaves the rules of its group and of those tied to it met."""
    return keeps_group_limits(problem, state, k, n) and keeps_near(problem, state, k, n)


@inlined
def domains_bear(problem: Problem, state: State, n: int, comes: int, goes: int) -> bool:
    """Whether the domains around ``n`` have room for ``comes`` once ``goes`` (-1: none) left it."""
    domains = problem.domains
    for i in range(domains.limited.shape[0]):
        level = domains.limited[i]
        where = domains.domain[level, n]
        if where < 0 or domains.domain[level, state.node[comes]] == where:
            continue
        for d in range(state.load.shape[0]):
            more = load_of(problem.partitions, state, comes, d)
            if goes >= 0:
                more -= load_of(problem.partitions, state, goes, d)
            there = state.domain_load[d, where]
            if more > 0.0 and there + more > domains.level_capacity[d, where]:
                return False
    return True


@inlined
def both_suit(
    problem: Problem, state: State, walk: Walk, a: int, x: int, b: int, y: int, accepted: float
) -> bool:
    """Whether ``a`` suits ``y`` and ``b``, if any, ``x``, and moving them may cost ``accepted``.

    What the groups pay is left open: it depends on both together.
    """
    moving = -walk.spare[1]
    for turn in range(1 if b < 0 else 2):
        k = a if turn == 0 else b
        n = y if turn == 0 else x
        moving += move_cost(problem, state, k, n)
        if moving > accepted and (turn == 1 or b < 0):
            return False
        if not suits(problem, state, k, n):
            return False
        if not domains_bear(problem, state, n, k, b if turn == 0 else a):
            return False
    return True


@lean
def settle(
    problem: Problem,
    state: State,
    walk: Walk,
    a: int,
    b: int,
    y: int,
    price: float,
    accepted: float,
) -> None:
    """Move ``a`` to ``y``, and ``b`` (-1: none) to where ``a`` was, if rules and price allow it.

    ``price`` is what the two nodes cost more, fines included; all of it may cost ``accepted``.
    """
    x = int(state.node[a])
    partitions = problem.partitions
    alike = False
    if b < 0:
        if state.replicas[y] >= problem.nodes.max_replicas[y]:
            return
    else:
        p, q = partitions.owner[a], partitions.owner[b]
        if p == q:
            return
        # two of one group and role leave all counts of the group as they are
        alike = partitions.group[p] == partitions.group[q] and state.role[a] == state.role[b]
    if not both_suit(problem, state, walk, a, x, b, y, accepted - price):
        return
    before = walk.cost[x] + walk.cost[y]
    moving = 0.0
    turn = 0
    # the second is judged with the first one gone, since groups may need each other nearby; turn 2
    # takes the first one back
    while turn >= 0:
        k = b if turn == 1 else a
        n = y if turn == 0 else x
        if turn < 2:
            moving += move_cost(problem, state, k, n)
            moving += sharing_cost(problem, state, k, n)
            last = turn == 1 or b < 0
            dear = last and price + moving > accepted
            if dear or not (alike or suits_group(problem, state, k, n)):
                if turn == 0:
                    return
                turn = 2
                continue
        move(problem, state, k, n)
        if turn == 2:
            return
        stray(walk, k)
        turn = -1 if last else 1
    for turn in range(2):
        refresh(problem, state, walk, x if turn == 0 else y)
    walk.total[0] += walk.cost[x] + walk.cost[y] - before + moving
    walk.tally[APPLIED] += 1
    keep_if_best(state, walk)


@lean
def anneal(
    problem: Problem, state: State, walk: Walk, items: int, work: int, hot: float, cold: float
) -> None:
    """Try candidates at random while the temperature falls; a quarter of them are single moves.

    A candidate is accepted if it costs at most ``-temperature * log(u)`` more, u uniform.

    Parameters
    ----------
    problem : Problem
        What does not change.
    state : State
        Where the search stands; changed.
    walk : Walk
        Its books; changed.
    items : int
        How many of the first replicas in ``walk.item`` take part; at least 1.
    work : int
        Candidates to try.
    hot, cold : float
        Temperature at the beginning and at the end, in units of cost; both above 0.

    References
    ----------
    Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983).
    """
    need, weight, excess, room = walk.need, walk.weight, walk.excess, walk.room
    cost, fine, fined, item = walk.cost, walk.fine, walk.fined, walk.item
    node, home, transient = state.node, problem.partitions.home, problem.nodes.transient
    nodes = cost.shape[0]
    spare = walk.spare[0]
    random = walk.random[0]
    fall = (cold / hot) ** (COOLING_STEP / max(work, 1))
    temperature = hot
    for step in range(work):
        if step % COOLING_STEP == COOLING_STEP - 1:
            temperature *= fall
        random = drawn(random)
        a = int(item[below(random, items)])
        x = int(node[a])
        random = drawn(random)
        accepted = -temperature * np.log((np.float64(random >> np.uint64(11)) + 1.0) * UNIT)
        limit = accepted + spare
        random = drawn(random)
        if random & np.uint64(3) == np.uint64(0):
            b = -1
            y = below(random, nodes)
            if x == y:
                continue
            before = fined[x] + fined[y]
            price = shift_price(need, weight, excess, cost, a, x, y, limit + before)
        else:
            b = int(item[below(random, items)])
            y = int(node[b])
            if x == y:
                continue
            before = fined[x] + fined[y]
            price = swap_price(need, weight, excess, cost, a, x, b, y, limit + before)
        if price == NEVER:
            continue
        leaves, arrives = home[a] == x, home[a] == y
        returns, departs = b >= 0 and home[b] == x, b >= 0 and home[b] == y
        price -= before
        price += fine_with(need, room, fine, transient, y, a, arrives, b, departs)
        if price > limit:
            continue
        price += fine_with(need, room, fine, transient, x, b, returns, a, leaves)
        if price > limit:
            continue
        settle(problem, state, walk, a, b, y, price, accepted)
    walk.random[0] = random
    walk.tally[EVALUATED] += work
