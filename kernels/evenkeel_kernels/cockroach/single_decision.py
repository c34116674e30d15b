"""Decisions one by one, as Python asks for them.

What kernels call among themselves has no way in from Python, which would take longer to compile
than the decisions. These are the ways in, each compiled when it is first used.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.cockroach.constraints import (
    Analysis,
    analyse,
    both,
    check,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.decision_log import Left
from evenkeel_kernels.cockroach.replicas.add import add_target, candidates_to_add
from evenkeel_kernels.cockroach.replicas.queue import AllocatorContext, Step, decide
from evenkeel_kernels.cockroach.replicas.rebalance import (
    Decision,
    better_of,
    rebalance,
    should_rebalance,
)
from evenkeel_kernels.cockroach.replicas.remove import candidates_to_remove, remove_target
from evenkeel_kernels.cockroach.tables import (
    VOTER,
    Configs,
    Localities,
    Members,
    Ranges,
)


@no_alloc
def check_all(
    localities: Localities,
    configs: Configs,
    q: int,
    members: Members,
    role: int,
    change: int,
    leaving: int,
    analysis: Analysis,
    code: NDArray[np.int8],
) -> None:
    """Fill ``code (C,)`` with what the constraints say of each class of stores.

    The ``change`` is ADD and so on, of a VOTER or a NON_VOTER; the store ``leaving`` matters to the
    last two. O(C E).
    """
    analyse(localities, configs, q, members, analysis)
    b = localities.alike[leaving] if leaving >= 0 else 0
    for a in range(code.size):
        found = check(localities, every(configs, q, analysis), change, a, b)
        if role == VOTER:
            found = both(found, check(localities, of_voters(configs, q, analysis), change, a, b))
        code[a] = found


@no_alloc
def best_to_add(
    context: AllocatorContext, q: int, members: Members, role: int, replaced: int, recovers: bool
) -> int:
    """As `candidates_to_add`, into ``context.adding``; returns how many. O(S (E + W))."""
    size, _ = candidates_to_add(
        context.localities, context.stores, context.configs, context.settings, context.scorer, q,
        members, role,
        replaced, context.rooms.analysis, context.adding, recovers,
    )  # fmt: skip
    return size


@no_alloc
def add_alone(
    context: AllocatorContext,
    q: int,
    members: Members,
    role: int,
    replaced: int,
    rng_state: NDArray[np.uint64],
) -> int:
    """As `add_target`, with ``rng_state (1,)``. O(S (E + W))."""
    return add_target(
        context.localities, context.stores, context.configs, context.settings, context.scorer, q,
        members, role,
        replaced, context.rooms.analysis, context.adding, rng_state,
    )  # fmt: skip


@no_alloc
def worst_to_remove(
    context: AllocatorContext, q: int, members: Members, role: int, newest: int
) -> int:
    """As `candidates_to_remove`, into ``context.rooms.remove``; returns how many. O(W (W + E))."""
    return candidates_to_remove(
        context.localities, context.stores, context.configs, context.settings, context.scorer, q,
        members, role,
        newest, context.rooms.analysis, context.rooms.remove,
    )  # fmt: skip


@no_alloc
def remove_alone(
    context: AllocatorContext,
    q: int,
    members: Members,
    role: int,
    newest: int,
    rng_state: NDArray[np.uint64],
) -> int:
    """As `remove_target`, with ``rng_state (1,)``. O(W (W + E))."""
    return remove_target(
        context.localities, context.stores, context.configs, context.settings, context.scorer, q,
        members, role,
        newest, context.rooms.analysis, context.rooms.remove, rng_state,
    )  # fmt: skip


@no_alloc
def should_rebalance_alone(context: AllocatorContext, q: int, members: Members, role: int) -> bool:
    """As `should_rebalance`; the classes it finds stay in ``context.rooms``."""
    return should_rebalance(
        context.localities, context.stores, context.tally, context.configs, context.settings,
        context.scorer, q,
        members, role, context.rooms,
    )  # fmt: skip


@no_alloc
def better_alone(context: AllocatorContext, i: int) -> int:
    """As `better_of`, of the classes found last, into ``context.rooms``."""
    return better_of(context.localities, context.tally, context.rooms, i)


@no_alloc
def rebalance_alone(
    context: AllocatorContext, q: int, members: Members, role: int, rng_state: NDArray[np.uint64]
) -> Decision:
    """As `rebalance`, with ``rng_state (1,)``."""
    return rebalance(
        context.localities, context.stores, context.tally, context.configs, context.settings,
        context.scorer, q,
        members, role, context.rooms, rng_state,
    )  # fmt: skip


@no_alloc
def decide_alone(
    ranges: Ranges,
    context: AllocatorContext,
    hosts: int,
    p: int,
    left: Left,
    rng_state: NDArray[np.uint64],
) -> Step:
    """As `decide`, with ``rng_state (1,)``, whatever a move scores."""
    return decide(ranges, context, hosts, p, 0.0, left, rng_state)
