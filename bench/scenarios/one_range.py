"""Decide about the replicas of one range: which is added, removed or moved, as notes ask.

What kernels call among themselves has no way in from Python. Here are ways in, each compiled when
it is first used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.systems.cockroach.allocator.intake import SETTINGS
from evenkeel.systems.cockroach.allocator.leases import rng_state_of
from evenkeel.systems.cockroach.allocator.range_decider import BY_COUNT
from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.add_remove import (
    add_target,
    candidates_to_add,
    candidates_to_remove,
    remove_target,
)
from evenkeel_kernels.cockroach.constraints import (
    NECESSARY,
    VALID,
    analyse,
    both,
    check,
    every,
    of_voters,
)
from evenkeel_kernels.cockroach.context import (
    AllocatorContext,
    make_context,
    make_members,
    tally_all,
)
from evenkeel_kernels.cockroach.rebalance import Decision, members_of, rebalance, should_rebalance
from evenkeel_kernels.cockroach.tables import CLOSE, VOTER, place_of

BY_QPS = kernel.Scorer(kernel.LOAD, kernel.QPS, 0.10, 100.0, 200.0)  # levels queries per second


class Amounts(TypedDict, total=False):
    """What may be known of stores, of each or of all alike."""

    ranges: ArrayLike
    leases: ArrayLike
    qps: ArrayLike
    cpu: ArrayLike
    writes: ArrayLike
    used: ArrayLike
    capacity: ArrayLike
    available: ArrayLike
    io: ArrayLike


AMOUNTS = tuple(Amounts.__annotations__)


def stores_like(
    count: int,
    *,
    status: ArrayLike | None = None,
    ready: ArrayLike | None = None,
    **known: Unpack[Amounts],
) -> kernel.Stores:
    """Describe stores as they are known; what is not given is 0."""
    state = np.zeros(count, np.int8)
    if status is not None:
        state[:] = status
    amount = np.zeros((kernel.AMOUNTS, count))
    rest = np.zeros((3, count))
    given: ArrayLike
    for name, given in known.items():  # type: ignore[assignment]
        row = AMOUNTS.index(name)
        (amount if row < len(amount) else rest)[row % len(amount)] = given
    fit = np.array(state == kernel.AVAILABLE if ready is None else ready, np.bool_)
    return kernel.Stores(state, fit, amount, *(np.ascontiguousarray(one) for one in rest))


@dataclass(frozen=True)
class Replicas:
    """Where one range is."""

    voters: Sequence[int]
    non_voters: Sequence[int] = ()
    config: int = 0
    replaced: int = kernel.NOWHERE
    up_to_date: Sequence[bool] | None = None

    def members(self) -> kernel.Members:
        """Lay them out for kernels."""
        members = make_members(len(self.voters) + len(self.non_voters) + 2)
        order = np.argsort(self.voters, kind="stable")
        members.voter[: len(order)] = np.asarray(self.voters, np.int64)[order]
        members.non_voter[: len(self.non_voters)] = sorted(self.non_voters)
        members.size[:2] = len(self.voters), len(self.non_voters)
        if self.up_to_date is not None:
            members.up_to_date[: len(order)] = np.asarray(self.up_to_date, np.bool_)[order]
            members.size[2] = kernel.LEADING
        return members


@dataclass(frozen=True, eq=False)
class Allocator:
    """Decides for one range at a time, of one configuration."""

    localities: kernel.Localities
    configs: kernel.Configs
    settings: kernel.Settings = SETTINGS
    scorer: kernel.Scorer = BY_COUNT
    impact: float = 0.0

    def check(
        self, held: Replicas, change: int, leaving: int = kernel.NOWHERE, role: int = kernel.VOTER
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Ask the constraints about every store."""
        code = np.zeros(len(self.localities.pair), np.int8)
        context = self.context(stores_like(len(self.localities.host)), held.members())
        check_all(context, held.config, role, change, leaving, code)
        found = code[self.localities.alike]
        return found & VALID != 0, found & NECESSARY != 0

    def best_to_add(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> list[int]:
        """Return the stores that tie as the best for one more replica."""
        context = self.context(stores, held.members())
        size = best_to_add(context, held.config, role, held.replaced, False)
        found: list[int] = context.adding.chosen[:size].tolist()
        return found

    def add(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> int:
        """Return the store for one more replica."""
        context = self.context(stores, held.members())
        return int(add_alone(context, held.config, role, held.replaced, rng_state_of(seed)))

    def worst_to_remove(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> list[int]:
        """Return the stores of the replicas of which one would be removed."""
        members = held.members()
        context = self.context(stores, members)
        size = worst_to_remove(context, held.config, role, kernel.NOWHERE)
        row = members.voter if role == kernel.VOTER else members.non_voter
        found: list[int] = np.sort(row[context.removing.worst[:size]]).tolist()
        return found

    def remove(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> int:
        """Return the store whose replica is removed."""
        context = self.context(stores, held.members())
        return int(remove_alone(context, held.config, role, kernel.NOWHERE, rng_state_of(seed)))

    def should_rebalance(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> bool:
        """Whether a replica must move, or is on a store that is too full."""
        context = self.context(stores, held.members())
        return bool(should_rebalance_alone(context, held.config, role))

    def rebalance(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> Decision:
        """Decide which replica goes where."""
        context = self.context(stores, held.members())
        return rebalance_alone(context, held.config, role, rng_state_of(seed))

    def replacements(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> dict[int, list[int]]:
        """Return for each replica the best of the stores that are strictly better than it."""
        # constraints, disks and diversity decide, neither counts nor loads
        context = self.context(stores, held.members())
        should_rebalance_alone(context, held.config, role)
        found = {}
        for i in range(context.classes.size[0]):
            size = better_alone(context, i)
            if size:
                one = int(context.classes.replica[i])
                found[one] = sorted(context.rebalancing.best[:size].tolist())
        return found

    def context(self, stores: kernel.Stores, members: kernel.Members) -> AllocatorContext:
        """Lay out all that kernels read, and room for what they write."""
        context = make_context(
            self.localities, stores, self.configs, self.settings, self.scorer, members
        )
        context.impact[0] = self.impact
        tally_all(context)
        return context


@no_alloc
def check_all(
    context: AllocatorContext, q: int, role: int, change: int, leaving: int, code: NDArray[np.int8]
) -> None:
    """Fill ``code (C,)`` with what the constraints say of each class of stores."""
    # the ``change`` is ADD and so on, of a VOTER or a NON_VOTER; the store ``leaving`` matters to
    # the last two
    localities = context.localities
    analyse(context, q)
    b = localities.alike[leaving] if leaving >= 0 else 0
    # O(C E)
    for a in range(code.size):
        found = check(localities, every(context, q), change, a, b)
        if role == VOTER:
            found = both(found, check(localities, of_voters(context, q), change, a, b))
        code[a] = found


@no_alloc
def best_to_add(context: AllocatorContext, q: int, role: int, replaced: int, recovers: bool) -> int:
    """As `candidates_to_add`, into ``context.adding``; returns how many. O(S (E + W))."""
    return candidates_to_add(context, q, role, replaced, recovers)[0]


@no_alloc
def add_alone(
    context: AllocatorContext, q: int, role: int, replaced: int, rng_state: NDArray[np.uint64]
) -> int:
    """As `add_target`, with ``rng_state (1,)``. O(S (E + W))."""
    return add_target(context, q, role, replaced, rng_state)


@no_alloc
def worst_to_remove(context: AllocatorContext, q: int, role: int, newest: int) -> int:
    """As `candidates_to_remove`, into ``context.removing``; returns how many. O(W (W + E))."""
    return candidates_to_remove(context, q, role, newest)


@no_alloc
def remove_alone(
    context: AllocatorContext, q: int, role: int, newest: int, rng_state: NDArray[np.uint64]
) -> int:
    """As `remove_target`, with ``rng_state (1,)``. O(W (W + E))."""
    return remove_target(context, q, role, newest, rng_state)


@no_alloc
def should_rebalance_alone(context: AllocatorContext, q: int, role: int) -> bool:
    """As `should_rebalance`; the classes it finds stay in ``context.classes``."""
    return should_rebalance(context, q, role)


@no_alloc
def better_alone(context: AllocatorContext, i: int) -> int:
    """As `better_of`, of the classes found last, into ``context.rebalancing.best``."""
    return better_of(context, i)


@no_alloc
def rebalance_alone(
    context: AllocatorContext, q: int, role: int, rng_state: NDArray[np.uint64]
) -> Decision:
    """As `rebalance`, with ``rng_state (1,)``."""
    return rebalance(context, q, role, rng_state)


@device_function
def better_of(context: AllocatorContext, i: int) -> int:
    """List the class of replica ``i`` in ``context.rebalancing.best``; returns how many."""
    # none, unless they are strictly better by constraints, disk and diversity; classes are those
    # found last; stores that hold a replica are left out; O(S X)
    room = context.classes
    if not room.listed[i] or room.number[i] == 0:
        return 0
    better = not room.valid[i] or room.full[i]
    if not better and room.target_necessary[i] == room.necessary[i]:
        farther = room.target_diversity[i] > room.current[0] + CLOSE
        better = room.voter_necessary[i] or farther
    elif not better:
        better = room.target_necessary[i]
    if not better:
        return 0
    size = members_of(context, i, context.rebalancing.best)
    at = 0
    for j in range(size):
        s = context.rebalancing.best[j]
        if place_of(room.replica, room.size[0], s) < 0:
            context.rebalancing.best[at] = s
            at += 1
    return at
