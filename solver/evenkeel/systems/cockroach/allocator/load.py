"""One decision about one hot range, for the sake of load: where it should be, and led from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evenkeel.systems.cockroach.allocator import leases
from evenkeel.systems.cockroach.allocator.follow_workload import no_workload
from evenkeel.systems.cockroach.allocator.replicas import SETTINGS, rng_state_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.constraints import room_to_analyse
from evenkeel_kernels.cockroach.leases.follow_workload import Workload
from evenkeel_kernels.cockroach.leases.stats import LeaseBook, count_leases, open_book
from evenkeel_kernels.cockroach.leases.target import LeaseSettings, room_for_contenders
from evenkeel_kernels.cockroach.load.replica_targets import (
    replicas_by_load,
    room_for_change,
    scorer_of,
)
from evenkeel_kernels.cockroach.load.tables import REPLICAS, LoadSettings, lease_by_load, mean_load
from evenkeel_kernels.cockroach.replicas.rooms import make_rooms
from evenkeel_kernels.cockroach.store_stats import room_to_tally, tally_all

QPS = LoadSettings(
    row=kernel.QPS,
    threshold=0.10,
    least=100.0,
    difference=200.0,
    lease_share=0.005,
    replica_share=0.02,
    mode=REPLICAS,
)
"""CockroachDB's defaults for queries per second."""

CPU = QPS._replace(row=kernel.CPU, least=50e6, difference=100e6)
"""CockroachDB's defaults for CPU, in nanoseconds per second."""


@dataclass(frozen=True)
class HotRange:
    """A range that carries load.

    Examples
    --------
    >>> HotRange([0, 1, 2], holder=0, load=150.0).non_voters
    ()
    """

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

    Examples
    --------
    >>> Relocation((0, 2), (), 2).holder
    2
    """

    voters: tuple[int, ...]
    non_voters: tuple[int, ...]
    holder: int


@dataclass(frozen=True, eq=False)
class StoreRebalancer:
    """Decides for one hot range at a time."""

    localities: kernel.Localities
    configs: kernel.Configs
    load: LoadSettings = QPS
    settings: kernel.Settings = field(default=SETTINGS)
    lease_settings: LeaseSettings = field(default=leases.SETTINGS)
    workload: Workload | None = None

    def lease_target(self, stores: kernel.Stores, hot: HotRange) -> int:
        """Return the store to which the lease should go."""
        workload = no_workload(self.localities) if self.workload is None else self.workload
        target, _ = lease_by_load(
            self.localities, stores, self.configs, self.lease_settings, self._book(stores),
            workload, self.load, hot.as_ranges(self.load.row),
            mean_load(stores, self.load.row), hot.number, room_for_contenders(len(hot.voters)),
        )  # fmt: skip
        return int(target)

    def relocation(
        self, stores: kernel.Stores, hot: HotRange, *, seed: int = 0
    ) -> Relocation | None:
        """Return where its replicas and its lease should be."""
        width = len(hot.voters) + len(hot.non_voters) + 2
        change = room_for_change(width)
        analysis = room_to_analyse(self.configs)
        tally = room_to_tally(len(stores.io), len(self.localities.pair))
        tally_all(self.localities, stores, self.settings, scorer_of(self.load, 0.0), tally)
        holder, _ = replicas_by_load(
            self.localities, stores, tally, self.configs, self.settings, self.lease_settings,
            self._book(stores), self.load, hot.as_ranges(self.load.row), hot.number, change,
            room_for_contenders(width), make_rooms(self.localities, analysis, width),
            rng_state_of(seed),
        )  # fmt: skip
        if holder < 0:
            return None
        after = change.after
        voters = tuple(int(s) for s in after.voter[: after.size[0]])
        others = tuple(int(s) for s in after.non_voter[: after.size[1]])
        return Relocation(voters, others, int(holder))

    def _book(self, stores: kernel.Stores) -> LeaseBook:
        book = open_book(self.localities, self.configs)
        count_leases(self.localities, stores, book)
        return book
