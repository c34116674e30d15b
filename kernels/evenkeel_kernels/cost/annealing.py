"""Minimise a weighted sum by annealing over single moves and swaps under hard rules.

Cost first, rules last: nearly all candidates are dismissed by their price alone, which takes a few
additions, and only the rest is asked whether the rules allow it. What is applied goes through
``state.apply``, so that the counts are those of every other search.

The caller, who alone knows a clock, cuts a search into slices: all that one slice leaves to the
next is in ``State`` and ``CostState``.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, no_alloc
from evenkeel_kernels.core.feasibility import (
    affinity,
    keeps_group_limits,
    keeps_limits,
    keeps_terms,
    may_stand,
)
from evenkeel_kernels.core.leadership import keeps_leader
from evenkeel_kernels.core.problem import Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.rng import advance, scaled
from evenkeel_kernels.core.state import move, move_cost, sharing_cost
from evenkeel_kernels.cost.cost_state import (
    APPLIED,
    EVALUATED,
    NEVER,
    CostState,
    chain_price,
    keep_if_best,
    pair_price,
    penalty_with,
    refresh,
    stray,
)
from evenkeel_kernels.cost.group_violations import breaches, tied

COOLING_STEP = 256  # candidates between two changes of the temperature

SHIFT, SWAP, CHAIN = 0, 1, 2
# what eight candidates in a row are, on average
KINDS = (SHIFT, SHIFT, SHIFT, SWAP, SWAP, SWAP, SWAP, CHAIN)

DRAWS = 64  # draws at most for replicas and nodes within their reach

UNIT = 2.0**-53  # turns 53 random bits into a number between 0 and 1


@inlined
def reaches(reach: NDArray[np.uint64], reach_row: NDArray[np.int32], k: int, n: int) -> bool:
    """Whether node ``n`` is within the reach of replica ``k``.

    ``reach (R, W)``: a bit for each node, 64 to a word; ``reach_row (K,)``: row of each replica;
    ``k``, ``n``: the replica and the node. Returns false if no placement that keeps the rules has
    ``k`` there.
    """
    word = reach[reach_row[k], n >> 6]
    return bool((word >> np.uint64(n & 63)) & np.uint64(1))


@no_alloc
def fill_reach(
    problem: Problem,
    state: State,
    item: NDArray[np.int32],
    stand: NDArray[np.uint64],
    roomiest: NDArray[np.uint64],
    fits: NDArray[np.int32],
    reach: NDArray[np.uint64],
    reach_row: NDArray[np.int32],
) -> int:
    """Give a row of ``reach`` to each replica of ``item`` that cannot go anywhere, while they last.

    ``item (I,)``: replicas that may move; ``stand (M, W)``: for each mask, the nodes that accept
    and that it allows; ``roomiest (B, N + 1, W)``: for each narrow dimension, the so many nodes
    with the most room for guests; ``fits (B, I)``: on how many of them each replica of ``item``
    fits; ``reach (R, W)``: filled; row 0, of all nodes, is given; ``reach_row (K,)``: filled for
    ``item``; 0 once no row is left. Returns rows in use.
    """
    # A replica can stay where it is, can go home, and can go where its partition may stand and a
    # guest has room. Complexity: O(I W B).
    partitions = problem.partitions
    used = 1
    for i in range(item.shape[0]):
        k = item[i]
        reach_row[k] = 0
        if used == reach.shape[0]:
            continue
        p = index(partitions.owner[k])
        mask = index(partitions.mask[p])
        for w in range(reach.shape[1]):
            bits = stand[mask, w]
            for j in range(fits.shape[0]):
                bits &= roomiest[j, fits[j, i], w]
            reach[used, w] = bits
        for j in range(partitions.forbidden_first[p], partitions.forbidden_first[p + 1]):
            n = index(partitions.forbidden[j])
            reach[used, n >> 6] &= ~(np.uint64(1) << np.uint64(n & 63))
        for turn in range(2):
            n = index(partitions.home[k] if turn == 0 else state.node[k])
            if n >= 0:
                reach[used, n >> 6] |= np.uint64(1) << np.uint64(n & 63)
        anywhere = True
        for w in range(reach.shape[1]):
            anywhere = anywhere and reach[used, w] == reach[0, w]
        if not anywhere:
            reach_row[k] = used
            used += 1
    return used


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
        and keeps_leader(problem, state, k, n)
        and keeps_limits(problem, state, k, n)
        and keeps_terms(problem, state, k, n)
    )


@inlined
def suits_group(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether replica ``k`` on ``n`` leaves the rules of its group and of those tied to it met."""
    return keeps_group_limits(problem, state, k, n) and affinity(problem, state, k, n)


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
            if more > 0.0 and there + more > domains.tier_capacity[d, where]:
                return False
    return True


@inlined
def both_suit(
    problem: Problem, state: State, walk: CostState, a: int, b: int, y: int, z: int, accepted: float
) -> bool:
    """Whether ``a`` suits ``y`` and ``b``, if any, ``z``, and moving them may cost ``accepted``."""
    # what the groups pay is left open: it depends on both together
    moving = -walk.spare[1]
    swapped = b >= 0 and z == state.node[a]
    for turn in range(1 if b < 0 else 2):
        k = a if turn == 0 else b
        n = y if turn == 0 else z
        moving += move_cost(problem, state, k, n)
        if moving > accepted and (turn == 1 or b < 0):
            return False
        if not suits(problem, state, k, n):
            return False
        goes = -1
        if swapped:
            goes = b if turn == 0 else a
        if not domains_bear(problem, state, n, k, goes):
            return False
    return True


@inlined
def breaks_more(
    problem: Problem, state: State, walk: CostState, a: int, b: int, y: int, z: int, afford: float
) -> bool:
    """Whether moving ``a`` to ``y`` and ``b`` to ``z`` surely has penalties above ``afford``."""
    # two of one group are left open, and so are two of groups that need each other
    partitions = problem.partitions
    g = index(partitions.group[partitions.owner[a]])
    h = index(partitions.group[partitions.owner[b]])
    if g == h:
        return False
    broken = breaches(problem, state, a, y) + breaches(problem, state, b, z)
    return walk.breach_penalty[0] * broken > afford and not tied(problem, g, h)


@inlined
def note_breaches(walk: CostState, k: int, more: int) -> None:
    """Note that the group of replica ``k`` breaks rules ``more`` times more often."""
    g = walk.group[k]
    walk.broken[g] = max(walk.tied[g], walk.broken[g] + more)


@no_alloc
def settle(
    problem: Problem,
    state: State,
    walk: CostState,
    a: int,
    b: int,
    y: int,
    z: int,
    price: float,
    accepted: float,
) -> None:
    """Move ``a`` to ``y``, and ``b`` (-1: none) from there to ``z``, if rules and price allow it.

    ``price`` is what the nodes cost more, penalties included; all of it may cost ``accepted``.
    """
    x = int(state.node[a])
    partitions = problem.partitions
    soft = walk.breach_penalty[0] < NEVER
    alike = False
    if b < 0:
        if state.replicas[y] >= problem.nodes.max_replicas[y]:
            return
    else:
        p, q = partitions.owner[a], partitions.owner[b]
        if p == q:
            return
        if z != x and state.replicas[z] >= problem.nodes.max_replicas[z]:
            return
        # two of one group and role leave all counts of the group as they are
        same = partitions.group[p] == partitions.group[q] and state.role[a] == state.role[b]
        alike = same and z == x
    if not both_suit(problem, state, walk, a, b, y, z, accepted - price):
        return
    if soft and b >= 0 and not alike:
        afford = accepted - price + walk.spare[0]
        if breaks_more(problem, state, walk, a, b, y, z, afford):
            return
    before = walk.cost[x] + walk.cost[y]
    far = b >= 0 and z != x
    if far:
        before += walk.cost[z]
    moving = 0.0
    broken = first = 0
    turn = 0
    # the second is judged with the first one gone, since groups may need each other nearby; turn 2
    # takes the first one back
    while turn >= 0:
        k = b if turn == 1 else a
        n = y if turn == 0 else (z if turn == 1 else x)
        if turn < 2:
            moving += move_cost(problem, state, k, n)
            moving += sharing_cost(problem, state, k, n)
            last = turn == 1 or b < 0
            penalty = 0.0
            fits = True
            if not alike:
                if soft:
                    own = breaches(problem, state, k, n)
                    broken += own
                    if turn == 0:
                        first = own
                    penalty = walk.breach_penalty[0] * broken
                else:
                    fits = suits_group(problem, state, k, n)
            if not fits or (last and price + moving + penalty > accepted):
                if turn == 0:
                    return
                turn = 2
                continue
        move(problem, state, k, n)
        if turn == 2:
            return
        stray(walk, k)
        turn = -1 if last else 1
    for turn in range(3 if far else 2):
        n = x if turn == 0 else (y if turn == 1 else z)
        refresh(problem, state, walk, n)
        before -= walk.cost[n]
    walk.total[0] += moving - before
    walk.breaches[0] += broken
    if soft:
        note_breaches(walk, a, first)
        if b >= 0:
            note_breaches(walk, b, broken - first)
    walk.tally[APPLIED] += 1
    keep_if_best(state, walk)


@no_alloc
def anneal(
    problem: Problem, state: State, walk: CostState, items: int, work: int, hot: float, cold: float
) -> None:
    """Try candidates at random while the temperature falls: moves, swaps, and chains of two moves.

    ``items``: how many of the first replicas in ``walk.item`` take part; at least 1; ``work``:
    candidates to try; ``hot``, ``cold``: temperature at the beginning and at the end, in units of
    cost; both above 0.
    """
    # In a chain one replica takes the place of another, which goes home or anywhere. Only nodes
    # within the reach of a replica are drawn for it. A candidate is accepted if it costs at most
    # ``-temperature * log(u)`` more, u uniform.
    # Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983)
    need, weight, excess, room = walk.need, walk.weight, walk.excess, walk.room
    cost, penalty_weight, penalty, item = walk.cost, walk.penalty_weight, walk.penalty, walk.item
    reach, reach_row, group, broken = walk.reach, walk.reach_row, walk.group, walk.broken
    node, home, kept = state.node, problem.partitions.home, walk.kept
    nodes = cost.shape[0]
    spare = walk.spare[0]
    repaired = 2.0 * walk.breach_penalty[0] if walk.breach_penalty[0] < NEVER else 0.0
    random = walk.random[0]
    fall = (cold / hot) ** (COOLING_STEP / max(work, 1))
    temperature = hot
    for step in range(work):
        if step % COOLING_STEP == COOLING_STEP - 1:
            temperature *= fall
        random = advance(random)
        accepted = -temperature * np.log((np.float64(random >> np.uint64(11)) + 1.0) * UNIT)
        kind = KINDS[random & np.uint64(7)]
        a = b = x = y = -1
        for _ in range(DRAWS):
            random = advance(random)
            a = int(item[scaled(random, items)])
            x = int(node[a])
            random = advance(random)
            if kind == SHIFT:
                n = scaled(random, nodes)
            else:
                b = int(item[scaled(random, items)])
                n = int(node[b])
            if n == x or not reaches(reach, reach_row, a, n):
                continue
            if kind != SWAP or reaches(reach, reach_row, b, x):
                y = n
                break
        if y < 0:
            continue
        z = x
        limit = accepted + spare
        if walk.breaches[0] > 0 and (broken[group[a]] > 0 or (b >= 0 and broken[group[b]] > 0)):
            limit += repaired
        before = penalty[x] + penalty[y]
        if kind != CHAIN:
            price = pair_price(need, weight, excess, cost, a, x, b, y, limit + before)
        else:
            random = advance(random)
            z = int(home[b])
            if z < 0 or z == y or random & np.uint64(3) == np.uint64(0):
                z = y
                for _ in range(DRAWS):
                    random = advance(random)
                    n = scaled(random, nodes)
                    if n != x and n != y and reaches(reach, reach_row, b, n):
                        z = n
                        break
            if z == x or z == y:
                continue
            before += penalty[z]
            price = chain_price(need, weight, excess, cost, a, x, b, y, z, limit + before)
        if price == NEVER:
            continue
        leaves, arrives = home[a] == x, home[a] == y
        returns, departs = b >= 0 and home[b] == z, b >= 0 and home[b] == y
        price -= before
        price += penalty_with(need, room, penalty_weight, kept, y, a, arrives, b, departs)
        if price > limit:
            continue
        if z == x:
            price += penalty_with(need, room, penalty_weight, kept, x, b, returns, a, leaves)
        else:
            price += penalty_with(need, room, penalty_weight, kept, z, b, returns, -1, False)
            if price > limit:
                continue
            price += penalty_with(need, room, penalty_weight, kept, x, -1, False, a, leaves)
        if price > limit:
            continue
        settle(problem, state, walk, a, b, y, z, price, accepted)
    walk.random[0] = random
    walk.tally[EVALUATED] += work
