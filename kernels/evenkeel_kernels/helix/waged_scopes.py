"""What each of WAGED's scopes keeps of an assignment, and what it places anew.

Of the replicas of a partition in one state each is as good as the other. So a scope says which
nodes of the old assignment are kept, and how many replicas remain to be placed. Where there are
more nodes than replicas, those that come first in the old assignment's row count; rows that are
handed in stand in the order in which the original would walk them.

Rows are those of assignments: ``first (P + 1,)``, ``node (K,)`` with -1 for a node that is not
among those of the run, and ``state (K,)``. How many replicas there shall be is ``count (Q, S)`` for
partitions of each ``kind (P,)``, S states by falling priority; ``place (P, S)`` is what remains.

References
----------
Apache Helix, ``ClusterModelProvider`` and ``DelayedRebalanceOverwriteUtil``.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.problem import index


@no_alloc
def crowded(
    first: NDArray[np.int64],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
) -> bool:
    """Whether some partition has more nodes in a state than it shall have replicas in it.

    ``first (P + 1,)`` and ``state (K,)`` are an assignment, ``kind (P,)`` and ``count (Q, S)`` what
    shall be. O(K).
    """
    for p in range(kind.shape[0]):
        run, last = 0, -1
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            run = run + 1 if s == last else 1
            last = s
            if run > count[kind[p], s]:
                return True
    return False


@no_alloc
def keep_all_valid(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    anew: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep, for a baseline, what is on a node of the run, but nothing of what is ``anew (P,)``.

    ``first (P + 1,)``, ``node (K,)`` and ``state (K,)`` are the last baseline, ``kind (P,)`` and
    ``count (Q, S)`` what shall be; fills ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            place[p, s] = count[kind[p], s]
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            keep[i] = node[i] >= 0 and place[p, s] > 0 and not anew[p]
            if keep[i]:
                place[p, s] -= np.int32(1)


@no_alloc
def keep_where_active(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep, in an emergency, what is on a node of the run, and place what is on another.

    A replica without a node of either kind is left alone. ``first (P + 1,)``, ``node (K,)`` and
    ``state (K,)`` are the best possible, ``kind (P,)`` and ``count (Q, S)`` what shall be; fills
    ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            place[p, s] = 0
        run, last = 0, -1
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            run = run + 1 if s == last else 1
            last = s
            if run <= count[kind[p], s]:
                keep[i] = node[i] >= 0
                place[p, s] += np.int32(node[i] < 0)
            else:
                keep[i] = False


@no_alloc
def keep_what_agrees(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    meant_first: NDArray[np.int64],
    meant_node: NDArray[np.int32],
    meant_state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
    made: NDArray[np.int32],
) -> None:
    """Keep, in a partial run, where the best possible agrees with the baseline.

    Replica by replica, each using up the node that it matches: a node on which both have it in
    this state is kept; else one where only the baseline has it is a replica to place; else one
    where only the best possible has it is kept; else the replica is placed. Of a state there are at
    most as many replicas as the baseline has.

    ``first (P + 1,)``, ``node (K,)`` and ``state (K,)`` are the best possible, ``meant_first (P +
    1,)``, ``meant_node (B,)`` and ``meant_state (B,)`` the baseline; fills ``keep (K,)``,
    ``place (P, S)`` and ``made (P, S)``, how many replicas there are at all. ``kind (P,)`` and
    ``count (Q, S)`` say what shall be. O(K R + P S), with rows of R replicas.
    """
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            made[p, s] = 0
            place[p, s] = 0  # first: nodes that only the baseline has
        for j in range(meant_first[p], meant_first[p + 1]):
            s = index(meant_state[j])
            if made[p, s] < count[kind[p], s]:
                made[p, s] += np.int32(1)
            place[p, s] += np.int32(meant_node[j] >= 0)
        i = first[p]
        while i < first[p + 1]:
            s = index(state[i])
            end = i
            left = made[p, s]
            while end < first[p + 1] and state[end] == s:
                keep[end] = node[end] >= 0 and _is_meant(
                    meant_first, meant_node, meant_state, p, node[end], state[end]
                )
                if keep[end]:
                    place[p, s] -= np.int32(1)
                    keep[end] = left > 0
                    left -= np.int32(keep[end])
                end += 1
            left = max(left - max(place[p, s], np.int32(0)), np.int32(0))
            place[p, s] = 0
            for k in range(i, end):
                if left > 0 and node[k] >= 0 and not keep[k]:
                    keep[k] = True
                    left -= np.int32(1)
            i = end
        for s in range(count.shape[1]):
            place[p, s] = made[p, s]
        for k in range(first[p], first[p + 1]):
            if keep[k]:
                place[p, index(state[k])] -= np.int32(1)


@no_alloc
def _is_meant(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    p: int,
    on: int,
    role: int,
) -> bool:
    """Whether a baseline has partition ``p`` on a node in a state."""
    for i in range(first[p], first[p + 1]):
        if node[i] == on:
            return state[i] == role
    return False


@no_alloc
def keep_and_fill(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    wanted: NDArray[np.int32],
    least: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep all that is on a node of the run, and place what is missing for the least number active.

    State by state, the first ones first, replicas are added up to the ``count (Q, S)`` of that
    number, until as many were added as are missing. ``first (P + 1,)``, ``node (K,)`` and ``state
    (K,)`` are the best possible, in which a partition must be; ``kind (P,)`` is the partition's
    place in ``wanted (Q,)``, the replicas that it shall have, and ``least (Q,)``, of them active.
    Fills ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        q = index(kind[p])
        live = 0
        for s in range(count.shape[1]):
            place[p, s] = 0
        for i in range(first[p], first[p + 1]):
            keep[i] = node[i] >= 0
            live += int(keep[i])
            place[p, index(state[i])] += np.int32(keep[i])
        missing = least[q] - live
        known = first[p] < first[p + 1] and live < min(least[q], wanted[q])
        for s in range(count.shape[1]):
            has = place[p, s]
            place[p, s] = 0
            if known and missing > 0:
                place[p, s] = max(count[q, s] - has, np.int32(0))
                missing -= place[p, s]
