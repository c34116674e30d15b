"""Decide about the replicas of one range, from one node's view of the stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.constraints import NECESSARY, VALID, room_to_analyse
from evenkeel_kernels.cockroach.replicas.add import room_to_add
from evenkeel_kernels.cockroach.replicas.queue import AllocatorContext
from evenkeel_kernels.cockroach.replicas.rebalance import Decision
from evenkeel_kernels.cockroach.replicas.rooms import make_members, make_rooms
from evenkeel_kernels.cockroach.single_decision import (
    add_alone,
    best_to_add,
    better_alone,
    check_all,
    rebalance_alone,
    remove_alone,
    should_rebalance_alone,
    worst_to_remove,
)
from evenkeel_kernels.cockroach.store_stats import room_to_tally, tally_all

SETTINGS = kernel.Settings(
    disk_full=0.95,
    disk_rebalance=0.925,
    io_threshold=0.3,
    io_factor=1.1,
    io_enforcement=kernel.BLOCK_REBALANCE,
    recover_to_good=True,
)
"""CockroachDB's defaults."""

BY_COUNT = kernel.Scorer(kernel.COUNT, kernel.RANGES, 0.05, 2.0, 0.0, 0.0)
"""Levels the number of ranges, as the replicate queue does."""

BY_QPS = kernel.Scorer(kernel.LOAD, kernel.QPS, 0.10, 100.0, 200.0, 0.0)
"""Levels queries per second."""

SCATTERED = np.uint64(0x9E3779B97F4A7C15)


def rng_state_of(seed: int) -> NDArray[np.uint64]:
    """Return a generator's state.

    Examples
    --------
    >>> bool(rng_state_of(0)[0] != rng_state_of(1)[0])
    True
    """
    mixed = (seed * int(SCATTERED) + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 29
    return np.array([mixed or 1], np.uint64)


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

    @property
    def width(self) -> int:
        """Room that a decision about it takes."""
        return len(self.voters) + len(self.non_voters) + 2

    def members(self) -> kernel.Members:
        """Lay them out for kernels."""
        members = make_members(self.width)
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

    def check(
        self, held: Replicas, change: int, leaving: int = kernel.NOWHERE, role: int = kernel.VOTER
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Ask the constraints about every store."""
        code = np.zeros(len(self.localities.pair), np.int8)
        check_all(
            self.localities, self.configs, held.config, held.members(), role, change, leaving,
            room_to_analyse(self.configs), code,
        )  # fmt: skip
        found = code[self.localities.alike]
        return found & VALID != 0, found & NECESSARY != 0

    def best_to_add(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> list[int]:
        """Return the stores that tie as the best for one more replica."""
        context = self.context(stores, held.width)
        size = best_to_add(context, held.config, held.members(), role, held.replaced, False)
        found: list[int] = context.adding.chosen[:size].tolist()
        return found

    def add(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> int:
        """Return the store for one more replica."""
        context = self.context(stores, held.width)
        return int(
            add_alone(context, held.config, held.members(), role, held.replaced, rng_state_of(seed))
        )

    def worst_to_remove(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> list[int]:
        """Return the stores of the replicas of which one would be removed."""
        context, members = self.context(stores, held.width), held.members()
        size = worst_to_remove(context, held.config, members, role, kernel.NOWHERE)
        row = members.voter if role == kernel.VOTER else members.non_voter
        found: list[int] = np.sort(row[context.rooms.remove.worst[:size]]).tolist()
        return found

    def remove(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> int:
        """Return the store whose replica is removed."""
        context = self.context(stores, held.width)
        return int(
            remove_alone(
                context, held.config, held.members(), role, kernel.NOWHERE, rng_state_of(seed)
            )
        )

    def should_rebalance(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> bool:
        """Whether a replica must move, or is on a store that is too full."""
        context = self.context(stores, held.width)
        return bool(should_rebalance_alone(context, held.config, held.members(), role))

    def rebalance(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER, seed: int = 0
    ) -> Decision:
        """Decide which replica goes where."""
        context = self.context(stores, held.width)
        return rebalance_alone(context, held.config, held.members(), role, rng_state_of(seed))

    def replacements(
        self, stores: kernel.Stores, held: Replicas, role: int = kernel.VOTER
    ) -> dict[int, list[int]]:
        """Return for each replica the best of the stores that are strictly better than it.

        Constraints, disks and diversity decide, neither counts nor loads.
        """
        context = self.context(stores, held.width)
        should_rebalance_alone(context, held.config, held.members(), role)
        found = {}
        for i in range(context.rooms.classes.size[0]):
            size = better_alone(context, i)
            if size:
                one = int(context.rooms.classes.replica[i])
                found[one] = sorted(context.rooms.rebalance.best[:size].tolist())
        return found

    def context(self, stores: kernel.Stores, width: int) -> AllocatorContext:
        """Lay out all that kernels read, and room for what they write."""
        count = len(stores.io)
        tally = room_to_tally(count, len(self.localities.pair))
        tally_all(self.localities, stores, self.settings, self.scorer, tally)
        rooms = make_rooms(self.localities, room_to_analyse(self.configs), width)
        return AllocatorContext(
            localities=self.localities,
            stores=stores,
            tally=tally,
            configs=self.configs,
            settings=self.settings,
            scorer=self.scorer,
            members=make_members(width),
            rooms=rooms,
            adding=room_to_add(rooms.rebalance.barred),
        )
