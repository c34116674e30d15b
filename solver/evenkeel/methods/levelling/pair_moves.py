"""Leaving what single moves cannot leave: two replicas of a partition move at once.

References
----------
cockroachdb/cockroach, issue 88829: a better placement that takes two moves through a worse one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.pair_moves import COUNTS, move_in_tandem
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import Targets, highest


def move_pairs(
    problem: Problem,
    state: State,
    targets: Targets,
    most_moves: int,
    may_go_on: Callable[[], bool],
    parameters: Parameters = DEFAULT,
) -> int:
    """Move pairs of replicas off overfull nodes for as long as that helps; returns the looks."""
    kind = kinds_of(problem)
    kinds = int(kind.max(initial=-1)) + 1
    left = np.array([most_moves, parameters.pair_looks], np.int64)
    before, after = new_counts(problem), new_counts(problem)
    made = 1
    while made and highest(state, targets) > 1.0:
        made = 0
        replica = _on_hot_nodes(problem, state, targets)
        for begin in range(0, len(replica), parameters.pair_stretch):
            end = min(begin + parameters.pair_stretch, len(replica))
            made += move_in_tandem(
                problem, state, targets, replica, kind, kinds, left, before, after, begin, end
            )
            if left[0] < 2 or left[1] <= 0 or not may_go_on():
                return parameters.pair_looks - int(left[1])
    return parameters.pair_looks - int(left[1])


def new_counts(problem: Problem) -> NDArray[np.int64]:
    """Return room for what is remembered of the limits and terms of any one rule."""
    rules = problem.rules
    rows = np.diff(rules.limit_first) + np.diff(rules.term_first)
    return np.zeros((max(int(rows.max(initial=0)), 1), COUNTS), np.int64)


def kinds_of(problem: Problem) -> NDArray[np.int64]:
    """Which nodes no rule tells apart, (N,): same domains, same masks, same rank as a leader."""
    rules = problem.rules
    columns = [
        problem.domains.domain[:-1],
        rules.allowed,
        rules.term_mask,
        rules.lead_rank,
        problem.nodes.accepts[None],
        problem.nodes.leads[None],
    ]
    table = np.concatenate([column.astype(np.int64) for column in columns])
    return np.unique(table, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _on_hot_nodes(problem: Problem, state: State, targets: Targets) -> NDArray[np.int64]:
    """The replicas on overfull nodes, the fullest node's first, and of these the largest."""
    ratio = (state.load * targets.scale).max(axis=0)
    ratio = np.maximum(ratio, state.leaders * targets.leader_scale)
    first, member = by_node(state.node, len(ratio))
    rows = []
    for n in np.argsort(-ratio, kind="stable").tolist():
        if ratio[n] <= 1.0:
            break
        row = member[first[n] : first[n + 1]]
        load = problem.partitions.voter_load[problem.partitions.owner[row]]
        size = (load * targets.scale[:, n]).max(axis=1)
        rows.append(row[np.argsort(-size, kind="stable")])
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)
