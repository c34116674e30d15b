"""Beyond limits: who had better leave nodes with too many replicas, and domains with too much load.

What a node carries beyond its capacity is shed by the search for levelness; these two limits it
only keeps. Whoever finds no other place stays.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.problem import Problem, State


def beyond_limits(problem: Problem, state: State, forced: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which replicas leave so that the others are within both limits, (K,) bool.

    Those that are ``forced (K,)`` leave in any case.
    """
    leaving = np.zeros(len(forced), bool)
    limited = problem.domains.limited
    if len(limited) == 0 and (state.replicas <= problem.nodes.max_replicas).all():
        return leaving
    nodes, free = len(state.replicas), problem.partitions.movable & ~forced
    held = np.bincount(state.node[~forced & (state.node >= 0)], minlength=nodes)
    over = np.flatnonzero(held > problem.nodes.max_replicas)
    if len(over) == 0 and len(limited) == 0:
        return leaving
    first, member = scattered_by_node(problem.partitions, state.node, state.leader, nodes)
    for n in over.tolist():
        there = member[first[n] : first[n + 1]]
        leaving[there[free[there]][: held[n] - problem.nodes.max_replicas[n]]] = True
    for level in limited.tolist():
        _leave_domains(problem, state, level, first, member, free, leaving)
    return leaving


def _leave_domains(
    problem: Problem,
    state: State,
    level: int,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    free: NDArray[np.bool_],
    leaving: NDArray[np.bool_],
) -> None:
    """Mark the followers that leave the domains of a level, the largest first."""
    partitions, domains = problem.partitions, problem.domains
    for domain in range(domains.domain_offset[level], domains.domain_offset[level + 1]):
        excess = state.domain_load[:, domain] - domains.tier_capacity[:, domain]
        if (excess <= 0.0).all():
            continue
        inside = domains.member[domains.member_first[domain] : domains.member_first[domain + 1]]
        there = np.concatenate([member[first[n] : first[n + 1]] for n in inside.tolist()])
        gone = there[leaving[there] | ~free[there]]
        excess = excess - partitions.voter_load[partitions.owner[gone]].sum(axis=0)
        there = there[free[there] & ~leaving[there] & ~_leads(problem, state, there)]
        load = partitions.voter_load[partitions.owner[there]]
        order = np.argsort(-load[:, int(np.argmax(excess))], kind="stable")
        short = (np.cumsum(load[order], axis=0) - load[order] < excess).any(axis=1)
        leaving[there[order[short]]] = True


def _leads(problem: Problem, state: State, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of some replicas leads its partition."""
    p = problem.partitions.owner[replicas]
    return np.asarray(replicas == problem.partitions.first[p] + state.leader[p])
