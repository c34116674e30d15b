"""What a search keeps beside the state, in plain Python."""

import numpy as np

from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.cost.cost_state import CostState
from tests.naive.core import state as naive


def node_costs(problem: Problem, state: State) -> list[float]:
    """Cost of every node, movement apart."""
    counts = naive.recount(problem, state)["load"]
    nodes = problem.nodes
    costs = []
    for n in range(counts.shape[1]):
        cost = 0.0
        for d, weight in enumerate(nodes.weight.tolist()):
            cost += weight * max(0.0, counts[d, n] - nodes.watermark[d, n])
        for (i, j), (ratio, weight) in zip(
            nodes.proportion_of.tolist(), nodes.proportion.tolist(), strict=True
        ):
            free = nodes.capacity[:, n] - counts[:, n]
            cost += weight * max(0.0, ratio * free[i] - free[j])
        for h, (sign, weight) in enumerate(nodes.hinge.tolist()):
            beyond = counts[nodes.hinge_of[h], n] - nodes.hinge_at[h, n]
            cost += weight * max(0.0, sign * beyond)
        costs.append(cost)
    return costs


def node_penalties(problem: Problem, state: State, walk: CostState) -> list[float]:
    """Penalties of every node: what is used, or held for what left, above capacity."""
    counts = naive.recount(problem, state)
    over = counts["load"] + counts["held"] - problem.nodes.capacity
    return (walk.penalty_weight.T * np.maximum(over, 0.0)).sum(axis=0).tolist()


def price(problem: Problem, state: State, walk: CostState, moves: list[tuple[int, int]]) -> float:
    """What costs and penalties of all nodes change by if some replicas moved, movement apart."""
    after = state
    for k, n in moves:
        after = naive.moved_to(after, k, n)
    before = sum(node_costs(problem, state)) + sum(node_penalties(problem, state, walk))
    return sum(node_costs(problem, after)) + sum(node_penalties(problem, after, walk)) - before


def broken(problem: Problem, state: State) -> dict[str, int]:
    """By how much each kind of rule is broken, room apart."""
    rules, partitions = problem.rules, problem.partitions
    found = {"limits": 0, "terms": 0, "group": 0, "near": 0, "bans": 0}
    for p in range(len(state.leader)):
        q = partitions.rule[p]
        replicas = naive.row(problem, p)
        for level, most, fewest, widest, skew in rules.limit[
            rules.limit_first[q] : rules.limit_first[q + 1]
        ].tolist():
            count = naive.domains_of(problem, state, level, replicas)
            found["limits"] += _limit_breach(count, most, fewest, widest)
            if skew >= 0:
                found["limits"] += max(0, naive.spread_of(problem, p, level, count) - skew)
        for term in rules.term[rules.term_first[q] : rules.term_first[q + 1]]:
            wanted = len(replicas) if term[0] < 0 else term[0]
            found["terms"] += max(0, wanted - naive.inside(problem, state, term, replicas))
        banned = partitions.forbidden[
            partitions.forbidden_first[p] : partitions.forbidden_first[p + 1]
        ]
        found["bans"] += sum(
            state.node[k] in banned or not rules.allowed[partitions.mask[p], state.node[k]]
            for k in replicas
            if state.node[k] >= 0
        )
    for g in range(len(rules.group_limit_first) - 1):
        replicas = naive.members(problem, g)
        for level, most, fewest, widest, _ in rules.group_limit[
            rules.group_limit_first[g] : rules.group_limit_first[g + 1]
        ].tolist():
            count = naive.domains_of(problem, state, level, replicas)
            found["group"] += _limit_breach(count, most, fewest, widest)
        for term in rules.group_term[rules.group_term_first[g] : rules.group_term_first[g + 1]]:
            found["group"] += max(0, term[0] - naive.inside(problem, state, term, replicas))
    for one, other, level in naive.needs(problem):
        have = naive.domains_of(problem, state, level, naive.members(problem, one))
        need = naive.domains_of(problem, state, level, naive.members(problem, other))
        found["near"] += sum(number for where, number in have.items() if need[where] == 0)
    return found


def _limit_breach(count: dict[int, int], most: int, fewest: int, widest: int) -> int:
    breach = sum(max(0, number - most) for number in count.values()) if most >= 0 else 0
    breach += max(0, fewest - len(count)) if fewest >= 0 else 0
    return breach + (max(0, len(count) - widest) if widest >= 0 else 0)


def crowded_domains(problem: Problem, state: State) -> int:
    """Domains above their own capacity, and nodes above their number of replicas."""
    counts = naive.recount(problem, state)
    limits = problem.domains
    over = 0
    for level in limits.limited.tolist():
        span = slice(limits.domain_offset[level], limits.domain_offset[level + 1])
        above = counts["domain_load"][:, span] > limits.tier_capacity[:, span]
        over += int(above.any(axis=0).sum())
    return over + int((counts["replicas"] > problem.nodes.max_replicas).sum())
