"""Select the replicas to move off nodes that hold more of a group than its limit.

As many leave as are too many: those that weigh least, which find room most easily under the limits
of their group. What a node has too much of besides is for `evenkeel_kernels.levelling.offload`. Who
leads stays as far as others can leave.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.problem import MOST, Problem, State, index, leads_now, load_of


def limits_groups_on_nodes(problem: Problem) -> bool:
    """Whether some group has a limit of replicas on a node."""
    limit, last = problem.rules.group_limit, problem.domains.domain.shape[0] - 1
    return bool(((limit[:, 0] == last) & (limit[:, MOST] >= 0)).any())


def crowded_replicas(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    was: NDArray[np.int16],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return ``forced (K,)``, which leave in any case, with those that are too many of a group.

    ``first`` and ``member`` list the replicas of each node; the slots ``was (P,)`` lead.
    """
    leaving = forced.copy()
    if limits_groups_on_nodes(problem):
        head = np.full(problem.rules.group_limit_first.shape[0] - 1, -1)
        scale = 1.0 / np.maximum(problem.nodes.watermark, 1e-30)
        following = np.zeros(len(forced), np.int64)
        crowd_out(problem, state, scale, was, first, member, head, following, leaving)
    return leaving


@no_alloc
def crowd_out(
    problem: Problem,
    state: State,
    scale: NDArray[np.float64],
    was: NDArray[np.int16],
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    head: NDArray[np.int64],
    following: NDArray[np.int64],
    leaving: NDArray[np.bool_],
) -> None:
    """Fill ``leaving (K,)`` for `crowded_replicas`, of which who leaves in any case is marked.

    ``was``, ``first`` and ``member`` as there; ``scale (D, N)`` is 1 / watermark. ``head (G,)``,
    -1, and ``following (K,)`` are scratch.

    Complexity: O(K), and O(D) for each replica of a group on a node and each of them that leaves.
    """
    partitions, rules = problem.partitions, problem.rules
    last = problem.domains.domain.shape[0] - 1  # of the nodes
    for n in range(state.load.shape[1]):
        for i in range(first[n], first[n + 1]):
            k = index(member[i])
            g = partitions.group[partitions.owner[k]]
            following[k] = head[g]
            head[g] = k
        for i in range(first[n], first[n + 1]):
            g = partitions.group[partitions.owner[member[i]]]
            k = index(head[g])
            head[g] = -1
            if k < 0:
                continue  # its group has had its turn
            beyond = index(0)
            for row in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
                most = rules.group_limit[row, MOST]
                if rules.group_limit[row, 0] == last and most >= 0:
                    held = index(state.group_count[rules.group_base[row] + n])
                    beyond = max(beyond, held - most)
            begin = k
            while k >= 0:
                beyond -= int(leaving[k])
                k = index(following[k])
            for _ in range(beyond):
                best, lightest, leads = index(-1), 0.0, True
                k = begin
                while k >= 0:
                    if not leaving[k] and partitions.movable[k]:
                        led = leads_now(partitions.first, was, index(partitions.owner[k]), k)
                        size = 0.0
                        for d in range(scale.shape[0]):
                            size += load_of(partitions, state, k, d) * scale[d, n]
                        if best < 0 or led < leads or (led == leads and size < lightest):
                            best, lightest, leads = k, size, led
                    k = index(following[k])
                if best >= 0:
                    leaving[best] = True
