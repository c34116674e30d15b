"""Which nodes can ever take a replica, in plain Python."""

import numpy as np

from evenkeel_kernels.core.problem import Problem, State
from tests.naive.core import state as naive


def reach(problem: Problem, state: State, k: int) -> set[int]:
    """Nodes on which replica ``k`` can be in any placement that fits and keeps bans and masks."""
    nodes, partitions = problem.nodes, problem.partitions
    p = partitions.owner[k]
    banned = partitions.forbidden[partitions.forbidden_first[p] : partitions.forbidden_first[p + 1]]
    found = {int(partitions.home[k]), int(state.node[k])}
    for n in range(nodes.capacity.shape[1]):
        room = nodes.capacity[:, n].copy()
        for other, home in enumerate(partitions.home.tolist()):
            if home == n:
                there = naive.loads(problem, state, other)
                away = naive.following_loads(problem, state, other)
                room -= np.where(nodes.transient, np.minimum(there, away), 0.0)
        fits = (np.array(naive.loads(problem, state, k)) <= room).all()
        may_stand = problem.rules.allowed[partitions.mask[p], n] and n not in banned
        if fits and may_stand and nodes.accepts[n]:
            found.add(n)
    return found - {-1}
