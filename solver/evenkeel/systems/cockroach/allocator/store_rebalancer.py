"""Leases and loads of a whole cluster, range after range, until neither has a better place."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.cockroach.allocator import leases
from evenkeel.systems.cockroach.allocator.cluster_rules import no_rules
from evenkeel.systems.cockroach.allocator.follow_workload import no_workload
from evenkeel.systems.cockroach.allocator.replicas import SETTINGS, rng_state_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules
from evenkeel_kernels.cockroach.constraints import room_to_analyse
from evenkeel_kernels.cockroach.decision_log import DecisionLog, Left, nothing_left
from evenkeel_kernels.cockroach.leases.follow_workload import Workload
from evenkeel_kernels.cockroach.leases.queue import MOVED, LeaseDesk, transfer_leases
from evenkeel_kernels.cockroach.leases.stats import open_book
from evenkeel_kernels.cockroach.leases.target import LeaseSettings, room_for_contenders
from evenkeel_kernels.cockroach.load.replica_targets import room_for_change
from evenkeel_kernels.cockroach.load.store_rebalancer import (
    LEASE_BY_LOAD,
    LEASE_WITH_REPLICAS,
    NON_VOTER_BY_LOAD,
    VOTER_BY_LOAD,
    LoadDesk,
    rebalance_stores,
)
from evenkeel_kernels.cockroach.load.tables import LoadSettings, room_for_hottest
from evenkeel_kernels.cockroach.replicas.rooms import make_rooms
from evenkeel_kernels.cockroach.store_stats import room_to_tally

HOT = 128
"""Replicas that a store looks at."""

KINDS = {
    **{MOVED + reason: text for reason, text in leases.REASONS.items()},
    LEASE_BY_LOAD: "the store carries too much load; the lease alone takes some away",
    VOTER_BY_LOAD: "the store carries too much load, and no lease alone could take it away",
    NON_VOTER_BY_LOAD: "the leaseholder's store carries too much load",
    LEASE_WITH_REPLICAS: "of the stores that hold the range now, this one carries least",
}
"""Reasons for moves of leases and replicas, by the log's numbers from 40 up."""

STATES = ("next", "in a row", "made", "withheld")


@dataclass(eq=False)
class LoadRun:
    """Moves leases and replicas of ranges, in place, as CockroachDB's stores would in time.

    Parameters
    ----------
    localities : Localities
        Where stores are and what they satisfy.
    configs : Configs
        What is wanted.
    stores : Stores
        As they are; changes are booked there.
    ranges : Ranges
        As they are; changes are made there.
    load : LoadSettings
        The balanced quantity, and its tolerance.
    log : DecisionLog
        Where decisions are noted. When it is full, work stops until it has been emptied.
    left : Left
        Stores that replicas have left in this run, and do not return to.
    settings : Settings, optional
        Thresholds of the allocator; CockroachDB's by default.
    lease_settings : LeaseSettings, optional
        Thresholds for leases; CockroachDB's by default.
    workload : Workload, optional
        Where requests come from.
    rng_state : ndarray of uint64, shape (1,), optional
        State of the generator that draws among what ties.
    rules : ClusterRules, optional
        What the cluster asks beyond what CockroachDB knows; nothing by default.

    Raises
    ------
    ValueError
        If the log could not hold what one store may decide: `HOT` times five more than twice a
        range's slots.
    """

    localities: kernel.Localities
    configs: kernel.Configs
    stores: kernel.Stores
    ranges: kernel.Ranges
    load: LoadSettings
    log: DecisionLog
    left: Left
    settings: kernel.Settings = field(default=SETTINGS)
    lease_settings: LeaseSettings = field(default=leases.SETTINGS)
    workload: Workload | None = None
    rng_state: NDArray[np.uint64] = field(default_factory=lambda: rng_state_of(0))
    rules: ClusterRules = field(default_factory=no_rules)

    def __post_init__(self) -> None:
        many = len(self.stores.io)
        width = int(np.diff(self.ranges.first).max(initial=0)) + 2
        replicas = len(self.ranges.store)
        if len(self.log.kind) < HOT * (2 * width + 1):
            raise ValueError(f"the log must hold {HOT * (2 * width + 1)} decisions at least")
        self._left_leases = nothing_left(len(self.ranges.lease))
        self._asked = LeaseDesk(
            self.localities, self.stores, self.configs,
            no_workload(self.localities) if self.workload is None else self.workload,
            self.lease_settings, self.load, open_book(self.localities, self.configs),
            room_for_contenders(width), self.rules,
        )  # fmt: skip
        self._context = LoadDesk(
            self._asked, self.settings, room_to_tally(many, len(self.localities.pair)),
            make_rooms(self.localities, room_to_analyse(self.configs), width),
            room_for_change(width), room_for_hottest(HOT), np.zeros(many + 1, np.int64),
            np.zeros(replicas, np.int64), np.zeros(replicas, np.int64),
        )  # fmt: skip
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
            self._asked,
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
