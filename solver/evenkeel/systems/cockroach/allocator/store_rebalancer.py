"""Decide where leases and replicas go for the sake of load: of one hot range, and of all."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.cockroach.allocator.compile import SETTINGS
from evenkeel.systems.cockroach.allocator.leases import REASONS, LeaseAllocator, rng_state_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import DecisionLog, Left, nothing_left
from evenkeel_kernels.cockroach.context import make_context, make_members, tally_all
from evenkeel_kernels.cockroach.leases import (
    MOVED,
    mean_load,
    room_for_contenders,
    transfer_leases,
)
from evenkeel_kernels.cockroach.store_rebalancer import (
    LEASE_BY_LOAD,
    LEASE_WITH_REPLICAS,
    NON_VOTER_BY_LOAD,
    VOTER_BY_LOAD,
    LoadContext,
    lease_by_load,
    rebalance_stores,
    replicas_by_load,
    room_for_hottest,
    scorer_of,
)

HOT = 128
"""Replicas that a store looks at."""

KINDS = {
    **{MOVED + reason: text for reason, text in REASONS.items()},
    LEASE_BY_LOAD: "the store carries too much load; the lease alone takes some away",
    VOTER_BY_LOAD: "the store carries too much load, and no lease alone could take it away",
    NON_VOTER_BY_LOAD: "the leaseholder's store carries too much load",
    LEASE_WITH_REPLICAS: "of the stores that hold the range now, this one carries least",
}
"""Reasons for moves of leases and replicas, by the log's numbers from 40 up."""

STATES = ("next", "in a row", "made", "withheld")


@dataclass(frozen=True)
class HotRange:
    """A range that carries load."""

    voters: Sequence[int]
    holder: int
    load: float
    non_voters: Sequence[int] = ()
    replica_load: float = 0.0
    behind: Sequence[int] = ()
    config: int = 0
    number: int = 0

    def as_ranges(self, row: int) -> kernel.Ranges:
        """Lay it out for kernels, as the only range of which anything is known."""
        stores = [*self.voters, *self.non_voters]
        width, ranges = len(stores), self.number + 1
        each, lease = (np.zeros((kernel.AMOUNTS, ranges)) for _ in range(2))
        each[kernel.RANGES], each[row, -1] = 1.0, self.replica_load
        lease[kernel.LEASES], lease[row, -1] = 1.0, self.load
        roles = [kernel.VOTER] * len(self.voters) + [kernel.NON_VOTER] * len(self.non_voters)
        held = np.full(ranges, kernel.NOWHERE, np.int16)
        if self.holder in stores:
            held[-1] = stores.index(self.holder)
        return kernel.Ranges(
            np.append(np.zeros(ranges, np.int64), width),
            np.array(stores, np.int32),
            np.array(roles, np.uint8),
            held,
            np.full(ranges, self.config, np.int32),
            each,
            lease,
            np.full(ranges, kernel.NOT_MODELLED, np.int8),
            np.zeros(width, np.bool_),
            np.array([s in self.behind for s in stores], np.bool_),
            np.zeros(ranges, np.bool_),
        )


@dataclass(frozen=True)
class Relocation:
    """Where the replicas of a range should be, all changed at once.

    >>> Relocation((0, 2), (), 2).holder
    2
    """

    voters: tuple[int, ...]
    non_voters: tuple[int, ...]
    holder: int


@dataclass(frozen=True, eq=False)
class StoreRebalancer:
    """Decides for one hot range at a time."""

    leases: LeaseAllocator
    settings: kernel.Settings = SETTINGS

    def lease_target(self, stores: kernel.Stores, hot: HotRange) -> int:
        """Return the store to which the lease should go."""
        leases = self.leases.context(stores, room_for_contenders(len(hot.voters)))
        row = self.leases.load.row
        mean = mean_load(stores, row)
        return int(lease_by_load(leases, hot.as_ranges(row), mean, hot.number)[0])

    def relocation(
        self, stores: kernel.Stores, hot: HotRange, *, seed: int = 0
    ) -> Relocation | None:
        """Return where its replicas and its lease should be."""
        ranges = hot.as_ranges(self.leases.load.row)
        context = self.context(stores, ranges)
        tally_all(context.allocator)
        holder, _ = replicas_by_load(context, ranges, hot.number, rng_state_of(seed))
        if holder < 0:
            return None
        after = context.allocator.members
        voters = tuple(int(s) for s in after.voter[: after.size[0]])
        others = tuple(int(s) for s in after.non_voter[: after.size[1]])
        return Relocation(voters, others, int(holder))

    def context(self, stores: kernel.Stores, ranges: kernel.Ranges) -> LoadContext:
        """Lay out all that kernels read, and room for what they write."""
        width = int(np.diff(ranges.first).max(initial=0)) + 2
        replicas = len(ranges.store)
        leases = self.leases
        allocator = make_context(
            leases.localities, stores, leases.configs, self.settings, scorer_of(leases.load),
            make_members(width),
        )  # fmt: skip
        return LoadContext(
            leases.context(stores, room_for_contenders(width)),
            allocator,
            make_members(width),
            room_for_hottest(HOT),
            np.zeros(len(stores.io) + 1, np.int64),
            np.zeros(replicas, np.int64),
            np.zeros(replicas, np.int64),
        )


@dataclass(eq=False)
class LoadRun:
    """Moves leases and replicas of ranges, in place, as CockroachDB's stores would in time."""

    rebalancer: StoreRebalancer
    stores: kernel.Stores  # as they are; changes are booked there
    ranges: kernel.Ranges  # as they are; changes are made there
    # where decisions are noted. When it is full, work stops until it has been emptied.
    log: DecisionLog
    left: Left  # stores that replicas have left in this run, and do not return to
    # (1,) state of the generator that draws among what ties
    rng_state: NDArray[np.uint64] = field(default_factory=lambda: rng_state_of(0))

    def __post_init__(self) -> None:
        width = int(np.diff(self.ranges.first).max(initial=0)) + 2
        if len(self.log.kind) < HOT * (2 * width + 1):
            raise ValueError(f"the log must hold {HOT * (2 * width + 1)} decisions at least")
        self._left_leases = nothing_left(len(self.ranges.lease))
        self._context = self.rebalancer.context(self.stores, self.ranges)
        self._leases, self._loads = (np.zeros(len(STATES), np.int64) for _ in range(2))
        self._made = 0

    def begin(self) -> None:
        """Look at everything again, as when others have changed it."""
        self._made = self.decisions
        self._leases = np.zeros(len(STATES), np.int64)
        self._loads = np.zeros(len(STATES), np.int64)

    def transfer(self, budget: int) -> bool:
        """Let leases move for the sake of counts, preferences, requests and overload."""
        transfer_leases(
            self.ranges,
            self._context.leases,
            self._leases,
            budget,
            self._left_leases,
            self.log,
            self.rng_state,
        )
        return bool(self._leases[1] >= len(self.ranges.lease))

    def relieve(self, budget: int) -> bool:
        """Let stores that carry too much give away leases and replicas."""
        rebalance_stores(
            self.ranges, self._context, self._loads, budget, self.left, self._left_leases, self.log,
            self.rng_state,
        )  # fmt: skip
        return bool(self._loads[1] >= len(self.stores.io))

    @property
    def decisions(self) -> int:
        """Decisions made in all."""
        return int(self._made + self._leases[2] + self._loads[2])

    @property
    def withheld(self) -> int:
        """Decisions that the last rounds did not make, since something would have gone back."""
        return int(self._leases[3] + self._loads[3])
