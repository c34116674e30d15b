"""One decision about one hot range, for the sake of load: where it should be, and led from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evenkeel.strategies.cockroach import leases
from evenkeel.strategies.cockroach.decisions import SETTINGS, dice_of
from evenkeel.strategies.cockroach.follow_workload import no_workload
from evenkeel_kernels import allocator as kernel
from evenkeel_kernels.allocator_constraints import room_to_analyse
from evenkeel_kernels.allocator_rebalance import make_rooms
from evenkeel_kernels.allocator_tally import room_to_tally, tally_all
from evenkeel_kernels.lease_book import LeaseBook, count_leases, open_book
from evenkeel_kernels.lease_choice import LeaseSettings, room_for_contenders
from evenkeel_kernels.lease_workload import Workload
from evenkeel_kernels.store_load import REPLICAS, LoadSettings, lease_by_load, mean_load
from evenkeel_kernels.store_load_replicas import replicas_by_load, room_for_change, scorer_of

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

    Parameters
    ----------
    voters : sequence of int
        Their stores.
    holder : int
        Store of the leaseholder.
    load : float
        What the leaseholder carries on top of what each replica does.
    non_voters : sequence of int
        Their stores.
    replica_load : float
        What each replica carries.
    behind : sequence of int
        Stores of replicas that may not take the lease: they lag, or nothing is known of them.
    config : int
        What is wanted: a row of ``Configs``.
    number : int
        Which range it is, in the workload.

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
        """Lay it out for kernels, as the only range of which anything is known.

        Parameters
        ----------
        row : int
            What the load is: a row of ``Stores.amount``.

        Returns
        -------
        Ranges
            As many as it takes to give the range its number.
        """
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

    Parameters
    ----------
    voters, non_voters : tuple of int
        Their stores, ascending.
    holder : int
        Store that should lead; it is one of the voters.

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
    """Decides for one hot range at a time.

    Parameters
    ----------
    localities : Localities
        Where stores are and what they satisfy.
    configs : Configs
        What is wanted.
    load : LoadSettings, optional
        What is levelled, and how far; by default queries per second.
    settings : Settings, optional
        Thresholds of the allocator; CockroachDB's by default.
    lease_settings : LeaseSettings, optional
        Thresholds for leases; CockroachDB's by default.
    workload : Workload, optional
        Where requests come from.

    Examples
    --------
    >>> from evenkeel.strategies.cockroach.decisions import stores_like
    >>> from evenkeel.strategies.cockroach.store_classes import Site, configs_of, localities_of
    >>> from evenkeel.strategies.cockroach.zone_configs import ZoneConfig
    >>> configs, conjunctions = configs_of([ZoneConfig()])
    >>> places = localities_of([Site(i) for i in range(5)], conjunctions)
    >>> stores = stores_like(5, qps=[12000, 10000, 8000, 200, 100])
    >>> hot = HotRange([0, 1, 2], holder=0, load=1000.0)
    >>> rebalancer = StoreRebalancer(places, configs)
    >>> rebalancer.lease_target(stores, hot)
    2
    >>> rebalancer.relocation(stores, hot)
    Relocation(voters=(2, 3, 4), non_voters=(), holder=4)
    """

    localities: kernel.Localities
    configs: kernel.Configs
    load: LoadSettings = QPS
    settings: kernel.Settings = field(default=SETTINGS)
    lease_settings: LeaseSettings = field(default=leases.SETTINGS)
    workload: Workload | None = None

    def lease_target(self, stores: kernel.Stores, hot: HotRange) -> int:
        """Return the store to which the lease should go.

        Parameters
        ----------
        stores : Stores
            As they are known.
        hot : HotRange
            The range.

        Returns
        -------
        int
            -1 if it stays.
        """
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
        """Return where its replicas and its lease should be.

        Parameters
        ----------
        stores : Stores
            As they are known.
        hot : HotRange
            The range.
        seed : int, optional
            Draws among what ties.

        Returns
        -------
        Relocation or None
            None if all stays.
        """
        width = len(hot.voters) + len(hot.non_voters) + 2
        change = room_for_change(width)
        analysis = room_to_analyse(self.configs)
        tally = room_to_tally(len(stores.io), len(self.localities.pair))
        tally_all(self.localities, stores, self.settings, scorer_of(self.load, 0.0), tally)
        holder, _ = replicas_by_load(
            self.localities, stores, tally, self.configs, self.settings, self.lease_settings,
            self._book(stores), self.load, hot.as_ranges(self.load.row), hot.number, change,
            room_for_contenders(width), make_rooms(self.localities, analysis, width),
            dice_of(seed),
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
