"""Choose the leaseholder of one range, from one node's view of stores and requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.systems.cockroach.allocator.actions import no_rules
from evenkeel.systems.cockroach.allocator.zone_configs import Site, Tiers, diversity
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules
from evenkeel_kernels.cockroach.leases import (
    BALANCED,
    BY_COUNT,
    BY_OVERLOAD,
    BY_PREFERENCE,
    BY_REQUEST,
    BY_WORKLOAD,
    NO_TARGET,
    REPLICAS,
    SHED,
    TOO_EARLY,
    Contenders,
    LeaseContext,
    LeaseSettings,
    LoadSettings,
    Workload,
    count_leases,
    lease_reason,
    lease_target,
    open_book,
    room_for_contenders,
)

SCATTERED = np.uint64(0x9E3779B97F4A7C15)


def rng_state_of(seed: int) -> NDArray[np.uint64]:
    """Return a generator's state."""
    mixed = (seed * int(SCATTERED) + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 29
    return np.array([mixed or 1], np.uint64)


@dataclass(frozen=True)
class Requests:
    """Where the requests for one range came from.

    Parameters
    ----------
    rate : mapping of tuple of (str, str) to float
        Requests per second from each locality.
    seconds : float
        What the statistics cover. Below 30 no lease moves for their sake, nor for that of counts.

    Examples
    --------
    >>> Requests({(("region", "us"),): 12.5}).seconds
    inf
    """

    rate: Mapping[Tiers, float]
    seconds: float = float("inf")


def workload_of(
    sites: Sequence[Site],
    localities: kernel.Localities,
    requests: Sequence[Requests | None],
    *,
    latency: ArrayLike = 0.0,
    eagerness: float = 1.0,
) -> Workload:
    """Lay out for kernels where requests come from."""
    number: dict[Tiers, int] = {}
    first, origin, rate, seconds = [0], [], [], []
    for one in requests:
        for tiers, per_second in one.rate.items() if one is not None else ():
            origin.append(number.setdefault(tiers, len(number)))
            rate.append(per_second)
        first.append(len(origin))
        seconds.append(-1.0 if one is None else one.seconds)
    near = np.zeros((len(number), len(localities.pair)))
    located = np.zeros(len(localities.pair), np.bool_)
    for a, begin in enumerate(localities.class_first[:-1]):
        site = sites[localities.class_store[begin]]
        located[a] = bool(site.locality)
        for tiers, o in number.items():
            values = [value for _, value in tiers]
            near[o, a] = 1.0 - diversity(site.values[:-1], values)
    hosts = len(localities.host_first) - 1
    return Workload(
        np.array(first, np.int64),
        np.array(origin, np.int32),
        np.array(rate, np.float64),
        np.array(seconds, np.float64),
        near,
        located,
        np.ascontiguousarray(np.broadcast_to(np.asarray(latency, np.float64), (hosts, hosts))),
        float(eagerness),
    )


def no_workload(localities: kernel.Localities) -> Workload:
    """Return that nothing is known of where requests come from.

    >>> from evenkeel.systems.cockroach.allocator.zone_configs import localities_of
    >>> len(no_workload(localities_of([Site(1)], [])).seconds)
    0
    """
    classes = len(localities.pair)
    return Workload(
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, classes)),
        np.zeros(classes, np.bool_),
        np.zeros((1, 1)),
        1.0,
    )


# CockroachDB's defaults
SETTINGS = LeaseSettings(
    io_threshold=0.3,
    io_factor=1.1,
    io_shed_threshold=0.4,
    io_shed_factor=1.75,
    io_enforcement=SHED,
    share=0.05,
    least=5.0,
)

REASONS = {
    BALANCED: "no other replica is a better place",
    NO_TARGET: "no other replica may hold it",
    TOO_EARLY: "too little is known as yet of where requests come from",
    BY_COUNT: "the store holds too many leases",
    BY_WORKLOAD: "requests come from near the other replica",
    BY_PREFERENCE: "another replica satisfies a lease preference that this one does not",
    BY_OVERLOAD: "the store's disk is overloaded",
    BY_REQUEST: "the store is being drained, or loses the replica",
}


@dataclass(frozen=True)
class Lease:
    """Who holds the lease of one range, and who else might."""

    voters: Sequence[int]
    holder: int
    config: int = 0
    behind: Sequence[int] = ()
    leaderless: bool = False
    number: int = 0

    @property
    def raft(self) -> int:
        """What is known of its raft group."""
        return kernel.LEADERLESS if self.leaderless else kernel.NOT_MODELLED

    def contenders(self) -> Contenders:
        """Lay the voters out for kernels."""
        room = room_for_contenders(max(len(self.voters), 1))
        room.store[: len(self.voters)] = self.voters
        for i, s in enumerate(self.voters):
            room.behind[i] = s in self.behind and s != self.holder
        room.size[0] = len(self.voters)
        return room


@dataclass(frozen=True)
class Transfer:
    """A decision about a lease.

    >>> Transfer(-1, NO_TARGET).text
    'no other replica may hold it'
    """

    target: int
    reason: int

    @property
    def text(self) -> str:
        """The reason in words."""
        return REASONS[self.reason]


# CockroachDB's defaults for queries per second
QPS = LoadSettings(
    row=kernel.QPS,
    threshold=0.10,
    least=100.0,
    difference=200.0,
    lease_share=0.005,
    replica_share=0.02,
    mode=REPLICAS,
)

# CockroachDB's defaults for CPU, in nanoseconds per second
CPU = QPS._replace(row=kernel.CPU, least=50e6, difference=100e6)


@dataclass(frozen=True, eq=False)
class LeaseAllocator:
    """Decides where leases should be, for one range at a time."""

    localities: kernel.Localities
    configs: kernel.Configs
    settings: LeaseSettings = SETTINGS
    workload: Workload | None = None
    load: LoadSettings = QPS
    rules: ClusterRules = field(default_factory=no_rules)

    def target(
        self, stores: kernel.Stores, lease: Lease, *, asked: bool = False, seed: int = 0
    ) -> Transfer:
        """Decide who should hold a lease."""
        context = self.context(stores, lease.contenders())
        place, reason = lease_target(
            context, lease.config, lease.number, lease.raft, lease.holder, asked, rng_state_of(seed)
        )
        return Transfer(int(context.contenders.store[place]) if place >= 0 else -1, int(reason))

    def should_transfer(self, stores: kernel.Stores, lease: Lease) -> bool:
        """Whether it is worth while to look for another holder."""
        context = self.context(stores, lease.contenders())
        _, reason = lease_reason(
            context, lease.config, lease.number, lease.raft, lease.holder, False
        )
        return bool(reason >= BY_COUNT)

    def context(self, stores: kernel.Stores, contenders: Contenders) -> LeaseContext:
        """Lay out all that kernels read, with leases and overload counted."""
        context = LeaseContext(
            self.localities,
            stores,
            self.configs,
            no_workload(self.localities) if self.workload is None else self.workload,
            self.settings,
            self.load,
            open_book(self.localities, self.configs),
            contenders,
            self.rules,
        )
        count_leases(context)
        return context
