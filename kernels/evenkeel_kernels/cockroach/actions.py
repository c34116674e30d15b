"""Compute the allocator action that each range needs first, and its priority.

References
----------
CockroachDB, ``allocator.go``: ``computeAction``, ``GetNeededVoters``,
``FilterUnremovableReplicas`` and the table of priorities.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, no_alloc
from evenkeel_kernels.cockroach.tables import (
    DECOMMISSIONING,
    LEARNER,
    VOTER,
    Configs,
    Flags,
    Floats,
    Ints,
    Longs,
    is_dead,
    is_live,
)


@inlined
def quorum(n: int) -> int:
    """Return how many of ``n`` voters decide."""
    return n // 2 + 1


@no_alloc
def removable(up_to_date: Flags, n: int, newest: int, free: Flags) -> None:
    """Fill ``free (n,)`` with whether each of ``n`` replicas can be removed.

    ``up_to_date (n,)`` says which have all that is committed. The ``newest``, a place or -1, counts
    as one that has, and cannot be removed. Without a quorum of such, nothing can; where one of them
    could be missed, everything; else those that lag. O(n).
    """
    up = 0
    for i in range(n):
        if up_to_date[i] or i == newest:
            up += 1
    some = up >= quorum(n)
    spare = up > quorum(n - 1)
    for i in range(n):
        free[i] = some and i != newest and (spare or not up_to_date[i])


(
    NOTHING,
    FINALIZE,
    REMOVE_LEARNER,
    REPLACE_DEAD_VOTER,
    ADD_VOTER,
    REPLACE_DECOMMISSIONING_VOTER,
    REMOVE_DEAD_VOTER,
    REMOVE_DECOMMISSIONING_VOTER,
    REMOVE_VOTER,
    REPLACE_DEAD_NON_VOTER,
    ADD_NON_VOTER,
    REPLACE_DECOMMISSIONING_NON_VOTER,
    REMOVE_DEAD_NON_VOTER,
    REMOVE_DECOMMISSIONING_NON_VOTER,
    REMOVE_NON_VOTER,
    CONSIDER_REBALANCE,
    UNAVAILABLE,
) = range(17)


@inlined
def needed_voters(configured: int, hosts: int) -> int:
    """Return how many voters a range should have: fewer, and odd, where hosts are few. O(1)."""
    need = min(configured, hosts)
    if need == configured:
        return configured
    if need % 2 == 0:
        need -= 1
    return min(max(need, 3), configured)


@inlined
def needed_non_voters(replicas: int, voters: int, hosts: int) -> int:
    """Return how many non-voters a range should have, of ``voters`` configured ones. O(1)."""
    return max(min(replicas - voters, hosts - voters), 0)


@inlined
def action_for(
    joint: bool,
    learners: int,
    have: int,
    live: int,
    dead: int,
    leaving: int,
    need: int,
    others: int,
    others_dead: int,
    others_leaving: int,
    others_need: int,
) -> tuple[int, float]:
    """Return a range's action and its priority; the first that applies. O(1)."""
    # it has so many voters, live and dead ones, ones on stores that are decommissioned, and needs
    # so many; likewise ``others``, which are non-voters
    if joint:
        return FINALIZE, 12002.0
    if learners > 0:
        return REMOVE_LEARNER, 12001.0
    if have < need:
        return ADD_VOTER, 10000.0 + (quorum(need) - have)
    if live < quorum(have):
        return UNAVAILABLE, 0.0
    staying = have - leaving
    if dead > 0 and staying <= need:
        return REPLACE_DEAD_VOTER, 12000.0
    if staying < need:
        return REPLACE_DECOMMISSIONING_VOTER, 5000.0
    if dead > 0:
        return REMOVE_DEAD_VOTER, 1000.0 + (quorum(have) - live)
    if leaving > 0:
        return REMOVE_DECOMMISSIONING_VOTER, 900.0
    if have > need:
        return REMOVE_VOTER, 800.0 - have % 2
    if others < others_need:
        return ADD_NON_VOTER, 600.0
    if others == others_need and others_dead > 0:
        return REPLACE_DEAD_NON_VOTER, 700.0
    if others == others_need and others_leaving > 0:
        return REPLACE_DECOMMISSIONING_NON_VOTER, 500.0
    if others_dead > 0:
        return REMOVE_DEAD_NON_VOTER, 400.0
    if others_leaving > 0:
        return REMOVE_DECOMMISSIONING_NON_VOTER, 300.0
    if others > others_need:
        return REMOVE_NON_VOTER, 200.0
    return CONSIDER_REBALANCE, 0.0


@inlined
def action_of(
    first: Longs,
    store: Ints,
    role: NDArray[np.uint8],
    joint: Flags,
    config: Ints,
    status: NDArray[np.int8],
    configs: Configs,
    hosts: int,
    p: int,
) -> tuple[int, float]:
    """Return the action of range ``p`` and its priority.

    ``first (P + 1,)``, ``store (K,)``, ``role (K,)``, ``joint (P,)`` and ``config (P,)`` are those
    of ``Ranges``, ``status (S,)`` that of ``Stores``; ``hosts`` count, dead ones included and
    decommissioned ones not. O(W).
    """
    have, live, dead, leaving, learners = 0, 0, 0, 0, 0
    others, others_dead, others_leaving = 0, 0, 0
    for k in range(first[p], first[p + 1]):
        if store[k] < 0:
            continue
        state = status[store[k]]
        is_leaving = state == DECOMMISSIONING
        if role[k] == VOTER:
            have += 1
            live += is_live(state)
            dead += is_dead(state)
            leaving += is_leaving
        elif role[k] == LEARNER:
            learners += 1
        else:
            others += 1
            others_dead += is_dead(state)
            others_leaving += is_leaving
    q = config[p]
    need = needed_voters(configs.voters[q], hosts)
    others_need = needed_non_voters(configs.replicas[q], configs.voters[q], hosts)
    return action_for(
        joint[p],
        learners,
        have,
        live,
        dead,
        leaving,
        need,
        others,
        others_dead,
        others_leaving,
        others_need,
    )


@no_alloc
def actions(
    first: Longs,
    store: Ints,
    role: NDArray[np.uint8],
    joint: Flags,
    config: Ints,
    status: NDArray[np.int8],
    configs: Configs,
    hosts: int,
    action: NDArray[np.int8],
    priority: Floats,
) -> None:
    """Fill ``action (P,)`` and ``priority (P,)`` for every range. O(K).

    ``first (P + 1,)``, ``store (K,)``, ``role (K,)``, ``joint (P,)``, ``config (P,)`` and
    ``status (S,)`` are as for one range.
    """
    for p in range(config.size):
        action[p], priority[p] = action_of(
            first, store, role, joint, config, status, configs, hosts, p
        )
