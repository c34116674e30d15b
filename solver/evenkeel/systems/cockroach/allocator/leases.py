"""Decide about the lease of one range, from one node's view of the stores."""

from collections.abc import Sequence
from dataclasses import dataclass

from evenkeel.systems.cockroach.allocator.follow_workload import no_workload
from evenkeel.systems.cockroach.allocator.replicas import rng_state_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.leases import target as choice
from evenkeel_kernels.cockroach.leases.follow_workload import Workload
from evenkeel_kernels.cockroach.leases.stats import LeaseBook, count_leases, open_book

SETTINGS = choice.LeaseSettings(
    io_threshold=0.3,
    io_factor=1.1,
    io_shed_threshold=0.4,
    io_shed_factor=1.75,
    io_enforcement=choice.SHED,
    share=0.05,
    least=5.0,
)
"""CockroachDB's defaults."""

REASONS = {
    choice.BALANCED: "no other replica is a better place",
    choice.NO_TARGET: "no other replica may hold it",
    choice.TOO_EARLY: "too little is known as yet of where requests come from",
    choice.BY_COUNT: "the store holds too many leases",
    choice.BY_WORKLOAD: "requests come from near the other replica",
    choice.BY_PREFERENCE: "another replica satisfies a lease preference that this one does not",
    choice.BY_OVERLOAD: "the store's disk is overloaded",
    choice.BY_REQUEST: "the store is being drained, or loses the replica",
}
"""Texts of the reasons that decisions give as numbers."""


@dataclass(frozen=True)
class Lease:
    """Who holds the lease of one range, and who else might.

    Examples
    --------
    >>> Lease([0, 1, 2], holder=1).config
    0
    """

    voters: Sequence[int]
    holder: int
    config: int = 0
    behind: Sequence[int] = ()
    leaderless: bool = False
    number: int = 0

    def contenders(self) -> choice.Contenders:
        """Lay the voters out for kernels."""
        room = choice.room_for_contenders(max(len(self.voters), 1))
        room.store[: len(self.voters)] = self.voters
        for i, s in enumerate(self.voters):
            room.behind[i] = s in self.behind and s != self.holder
        room.size[0] = len(self.voters)
        return room


@dataclass(frozen=True)
class Transfer:
    """A decision about a lease.

    Examples
    --------
    >>> Transfer(-1, choice.NO_TARGET).text
    'no other replica may hold it'
    """

    target: int
    reason: int

    @property
    def text(self) -> str:
        """The reason in words."""
        return REASONS[self.reason]


@dataclass(frozen=True, eq=False)
class LeaseAllocator:
    """Decides where leases should be, for one range at a time."""

    localities: kernel.Localities
    configs: kernel.Configs
    settings: choice.LeaseSettings = SETTINGS
    workload: Workload | None = None

    def target(
        self, stores: kernel.Stores, lease: Lease, *, asked: bool = False, seed: int = 0
    ) -> Transfer:
        """Decide who should hold a lease."""
        contenders = lease.contenders()
        place, reason = choice.lease_target(
            self.localities, stores, self.configs, self._workload(), self.settings,
            self.book(stores), lease.config, lease.number, self._raft(lease), lease.holder, asked,
            contenders, rng_state_of(seed),
        )  # fmt: skip
        return Transfer(int(contenders.store[place]) if place >= 0 else -1, int(reason))

    def should_transfer(self, stores: kernel.Stores, lease: Lease) -> bool:
        """Whether it is worth while to look for another holder."""
        reason = choice.should_transfer(
            self.localities, stores, self.configs, self._workload(), self.settings,
            self.book(stores), lease.config, lease.number, self._raft(lease), lease.holder,
            lease.contenders(),
        )  # fmt: skip
        return bool(reason >= choice.BY_COUNT)

    def book(self, stores: kernel.Stores) -> LeaseBook:
        """Count leases and overload."""
        book = open_book(self.localities, self.configs)
        count_leases(self.localities, stores, book)
        return book

    def _workload(self) -> Workload:
        return no_workload(self.localities) if self.workload is None else self.workload

    def _raft(self, lease: Lease) -> int:
        return kernel.LEADERLESS if lease.leaderless else kernel.NOT_MODELLED
