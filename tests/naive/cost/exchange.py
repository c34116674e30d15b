"""Several moves at once, in plain Python: what they cost, and the best there are of each kind."""

import itertools

import numpy as np

from evenkeel_kernels.core.problem import Problem, State
from tests.naive.core import state as naive
from tests.naive.cost import annealing as search

Moves = list[tuple[int, int]]


def open_problem(problem: Problem) -> Problem:
    """The problem without what groups pay, which is no sum over replicas."""
    return problem._replace(
        moves=problem.moves._replace(group_weight=0.0),
        rules=problem.rules._replace(price_of=np.full_like(problem.rules.price_of, -1)),
    )


def after(state: State, moves: Moves) -> State:
    """The state once all moves are made, its counts left as they were."""
    for k, n in moves:
        state = naive.moved_to(state, k, n)
    return state


def change(problem: Problem, state: State, moves: Moves) -> float:
    """Change of the whole cost."""
    return naive.total_cost(problem, after(state, moves)) - naive.total_cost(problem, state)


def has_room(problem: Problem, state: State, moves: Moves) -> bool:
    """Whether no node that takes more than before is above its capacity, or its replicas."""
    before, now = naive.recount(problem, state), naive.recount(problem, after(state, moves))
    used, was = now["load"] + now["held"], before["load"] + before["held"]
    over = (used > problem.nodes.capacity) & (used > was)
    crowded = (now["replicas"] > problem.nodes.max_replicas) & (
        now["replicas"] > before["replicas"]
    )
    return not over.any() and not crowded.any()


def suits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether the rules, room apart, admit a move."""
    roomy = problem._replace(
        nodes=problem.nodes._replace(
            capacity=np.full_like(problem.nodes.capacity, np.inf),
            max_replicas=np.full_like(problem.nodes.max_replicas, 2**31 - 1),
        ),
        domains=problem.domains._replace(limited=problem.domains.limited[:0]),
    )
    return naive.admits(roomy, state, k, n)


def alike(problem: Problem, state: State, a: int, b: int) -> bool:
    """Whether two replicas are of one group and role, and of two partitions."""
    p, q = problem.partitions.owner[a], problem.partitions.owner[b]
    group = problem.partitions.group
    return bool(p != q and group[p] == group[q] and state.role[a] == state.role[b])


def arc(problem: Problem, state: State, k: int, b: int, n: int) -> float:
    """What changes on ``n`` if ``k`` comes and ``b`` (-1: nobody) goes; inf where it may not."""
    if state.node[k] == n:
        return np.inf
    if not suits(problem, state, k, n) and not (b >= 0 and alike(problem, state, k, b)):
        return np.inf
    moves = [(k, n)] + ([(b, int(state.node[k]))] if b >= 0 else [])
    # only node n is judged: what the others do is for the next arc
    counts = naive.recount(problem, after(state, moves))
    was = naive.recount(problem, state)
    used = (counts["load"] + counts["held"])[:, n]
    before = (was["load"] + was["held"])[:, n]
    if ((used > problem.nodes.capacity[:, n]) & (used > before)).any():
        return np.inf
    if b < 0 and was["replicas"][n] >= problem.nodes.max_replicas[n]:
        return np.inf
    costs = search.node_costs(problem, after(state, moves))[n]
    moved = movement(problem, after(state, [(k, n)])) - movement(problem, state)
    return costs - search.node_costs(problem, state)[n] + moved


def movement(problem: Problem, state: State) -> float:
    """What movement costs."""
    return naive.total_cost(problem, state) - sum(search.node_costs(problem, state))


def leaving(problem: Problem, state: State, k: int) -> float:
    """What changes on the node of ``k`` if it leaves and nobody comes."""
    here = int(state.node[k])
    gone = search.node_costs(problem, naive.moved_to(state, k, -1))[here]
    return gone - search.node_costs(problem, state)[here]


def best_chain(problem: Problem, state: State, replicas: list[int], s: int) -> float:
    """Price of the best chain or cycle of up to three replicas that begins with ``s``, or 0."""
    nodes = range(len(state.replicas))
    at = state.node
    free = {}
    for k in replicas:
        prices = [arc(problem, state, k, -1, n) for n in nodes]
        free[k] = (min(prices), int(np.argmin(prices)))
    x = int(at[s])
    lose = leaving(problem, state, s)
    found = [0.0, lose + free[s][0]]
    for j in replicas:
        first = arc(problem, state, s, j, int(at[j]))
        if first == np.inf:
            continue
        found.append(first + arc(problem, state, j, s, x))
        if free[j][1] != x:
            found.append(first + free[j][0] + lose)
        for c in replicas:
            if at[c] in (x, at[j]):
                continue
            second = first + arc(problem, state, j, c, int(at[c]))
            found.append(second + arc(problem, state, c, s, x))
            if free[c][1] not in (x, int(at[j])):
                found.append(second + free[c][0] + lose)
    return min(found)


def best_division(problem: Problem, state: State, x: int, y: int, items: list[Moves]) -> float:
    """Change of the cost by the best choice of items to move, or 0; all choices are tried."""
    least = 0.0
    for chosen in itertools.product((False, True), repeat=len(items)):
        moves = [move for item, goes in zip(items, chosen, strict=True) if goes for move in item]
        if has_room(problem, state, moves):
            least = min(least, change(problem, state, moves))
    return least


def items_of(problem: Problem, state: State, x: int, y: int) -> list[Moves]:
    """What may go to the other of two nodes: a replica, or two alike that change places."""
    here = [int(k) for k in np.flatnonzero((state.node == x) | (state.node == y))]
    here = [k for k in here if problem.partitions.movable[k]]
    other = {k: y if state.node[k] == x else x for k in here}
    single = [k for k in here if suits(problem, state, k, other[k])]
    items = [[(k, other[k])] for k in single]
    used: set[int] = set()
    for a in here:
        if a in single or state.node[a] != x:
            continue
        for b in here:
            fits = b not in single and b not in used and state.node[b] == y
            if fits and alike(problem, state, a, b) and own_rules(problem, state, a, b):
                used.add(b)
                items.append([(a, y), (b, x)])
                break
    return items


def own_rules(problem: Problem, state: State, a: int, b: int) -> bool:
    """Whether two may change places as far as the rules of their own partitions go."""
    none = np.zeros_like(problem.rules.group_limit_first)
    rules = problem.rules._replace(
        group_limit_first=none, group_term_first=none, needs_first=none, needed_first=none
    )
    alone = problem._replace(rules=rules)
    x, y = int(state.node[a]), int(state.node[b])
    return suits(alone, state, a, y) and suits(alone, state, b, x)
