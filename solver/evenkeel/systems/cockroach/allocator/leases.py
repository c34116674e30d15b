"""Decide about the lease of one range, from one node's view of the stores and of its requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.systems.cockroach.allocator.zone_configs import Site, Tiers, diversity
from evenkeel_kernels.cockroach import actions as action_kernel
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.cluster_rules import FIXED, ClusterRules, Rows
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
from evenkeel_kernels.cockroach.tables import Configs, Ranges
from evenkeel_kernels.core.problem import Problem

ACTIONS = (
    "Noop",
    "FinalizeAtomicReplicationChange",
    "RemoveLearner",
    "ReplaceDeadVoter",
    "AddVoter",
    "ReplaceDecommissioningVoter",
    "RemoveDeadVoter",
    "RemoveDecommissioningVoter",
    "RemoveVoter",
    "ReplaceDeadNonVoter",
    "AddNonVoter",
    "ReplaceDecommissioningNonVoter",
    "RemoveDeadNonVoter",
    "RemoveDecommissioningNonVoter",
    "RemoveNonVoter",
    "ConsiderRebalance",
    "RangeUnavailable",
)
"""CockroachDB's names of the actions, by their numbers among the kernels."""

BY_LEASE_PREFERENCE = 1001.0
"""Priority of a range whose leaseholder is not where it should be."""


@dataclass(frozen=True, eq=False)
class Actions:
    """What every range needs first."""

    action: NDArray[np.int8]  # (P,) index into ``ACTIONS``
    # (P,) the higher the more urgent; 0 where nothing is wrong, or nothing can be done
    priority: NDArray[np.float64]


class Enough(NamedTuple):
    """How many replicas, and voters among them, CockroachDB keeps of each range, (P,) each.

    Fewer than are configured where so few hosts count that they cannot all have one of their own.
    """

    replicas: NDArray[np.int32]
    voters: NDArray[np.int32]


def enough_of(configs: Configs, config: NDArray[np.int32], hosts: int) -> Enough:
    """Return what CockroachDB keeps of ranges of each ``config (P,)`` where so many hosts count.

    >>> from evenkeel.systems.cockroach.allocator.zone_configs import configs_of
    >>> from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig
    >>> configs, _ = configs_of([ZoneConfig(num_replicas=5), ZoneConfig(5, 3)])
    >>> enough = enough_of(configs, np.array([0, 1], np.int32), 4)
    >>> enough.voters.tolist(), enough.replicas.tolist()
    ([3, 3], [3, 4])
    """
    both = zip(configs.replicas.tolist(), configs.voters.tolist(), strict=True)
    kept = np.array(
        [
            (action_kernel.needed_voters(voters, hosts),
             action_kernel.needed_non_voters(replicas, voters, hosts))
            for replicas, voters in both
        ],
        np.int32,
    ).reshape(-1, 2)[config]  # fmt: skip
    return Enough(kept.sum(axis=1, dtype=np.int32), kept[:, 0].copy())


def actions(
    *,
    first: ArrayLike,
    store: ArrayLike,
    status: ArrayLike,
    configs: Configs,
    hosts: int,
    role: ArrayLike | None = None,
    config: ArrayLike | None = None,
    joint: ArrayLike | None = None,
) -> Actions:
    """Find what every range needs first, in one pass."""
    rows = np.ascontiguousarray(first, np.int64)
    stores = np.ascontiguousarray(store, np.int32)
    count = len(rows) - 1
    found = Actions(np.zeros(count, np.int8), np.zeros(count))
    action_kernel.actions(
        rows,
        stores,
        np.zeros(len(stores), np.uint8) if role is None else np.ascontiguousarray(role, np.uint8),
        np.zeros(count, np.bool_) if joint is None else np.ascontiguousarray(joint, np.bool_),
        np.zeros(count, np.int32) if config is None else np.ascontiguousarray(config, np.int32),
        np.ascontiguousarray(status, np.int8),
        configs,
        hosts,
        found.action,
        found.priority,
    )
    return found


@cache
def no_rules() -> ClusterRules:
    """Return empty rules, the same for all ranges and never evaluated."""
    cluster = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]])
    no_one, none = cluster.placement, np.zeros(0, np.bool_)
    empty = Rows(none.astype(np.int32), none.astype(np.uint8), none.astype(np.int16), none, none)
    rules = _rules(cluster, no_one, no_one.node, empty)
    return rules._replace(wanted=np.zeros(0, np.int32))


def rules_of(
    cluster: Cluster, start: Placement, ranges: Ranges, enough: Enough | None = None
) -> ClusterRules:
    """Lay out the hard rules of a cluster, its replicas in the slots of its ``ranges``.

    Where ``enough`` is fewer than a range wants, it may go down to that.
    """
    slots = np.diff(start.first)
    at = np.arange(len(start.node)) + np.repeat(ranges.first[:-1] - start.first[:-1], slots)
    home, flags = np.full(len(ranges.store), -1, np.int32), np.zeros(len(ranges.store), np.uint16)
    home[at] = cluster.placement.node
    flags[at] = cluster.placement.flags
    wider = Placement(ranges.first, ranges.store, ranges.role, flags, ranges.lease)
    accepted = Rows(
        ranges.store.copy(),
        ranges.role.copy(),
        ranges.lease.copy(),
        ranges.up_to_date.copy(),
        ranges.behind.copy(),
    )
    rules = _rules(cluster, wider, home, accepted)
    if enough is None:
        return rules
    return rules._replace(
        wanted=np.minimum(rules.wanted, enough.replicas),
        voters=np.minimum(rules.voters, enough.voters),
    )


def _rules(
    cluster: Cluster, placed: Placement, home: NDArray[np.int32], accepted: Rows
) -> ClusterRules:
    """Compile the rules of a cluster and the state of a placement, whatever its rows' widths."""
    nodes, dimensions = cluster.nodes, len(cluster.dimensions)
    problem = compile_problem(
        cluster, np.zeros((dimensions, len(nodes))), np.zeros(dimensions), soft_from=np.inf
    )
    pinned = ((placed.flags & Flag.PINNED) > 0) & (home >= 0)
    partitions = problem.partitions._replace(
        first=placed.first.copy(), owner=placed.owner.copy(), home=home.copy(), movable=~pinned
    )
    problem = problem._replace(partitions=partitions)
    serves = nodes.serves
    carries = nodes.carries
    everywhere = np.ones(len(nodes), bool)
    state = compile_state(cluster, problem, placed, everywhere)
    touched = 2 * int(np.diff(placed.first).max(initial=0))
    size = _measures(problem, touched)
    return ClusterRules(
        problem=problem,
        state=state,
        carries=carries,
        serves=serves,
        idle=np.flatnonzero(~carries),
        wanted=cluster.partitions.replicas.astype(np.int32),
        voters=cluster.partitions.voters.astype(np.int32),
        accepted=accepted,
        living=np.where(np.append(serves, False)[placed.node], placed.node, -1).astype(np.int32),
        touched=np.zeros(touched, np.int64),
        was=np.zeros(size),
        now=np.zeros(size),
        drift=np.zeros(size),
    )


def _measures(problem: Problem, touched: int) -> int:
    """Return how many figures the action_kernel measures of one range at most."""
    tables = problem.rules
    limits, terms, group_limits, group_terms = (
        int(np.diff(first).max(initial=0))
        for first in (
            tables.limit_first, tables.term_first, tables.group_limit_first, tables.group_term_first
        )
    )  # fmt: skip
    dimensions = len(problem.nodes.capacity)
    of_node = 1 + dimensions * (1 + len(problem.domains.limited))
    return FIXED + 4 * (limits + group_limits) + terms + group_terms + 1 + touched * of_node


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


SETTINGS = LeaseSettings(
    io_threshold=0.3,
    io_factor=1.1,
    io_shed_threshold=0.4,
    io_shed_factor=1.75,
    io_enforcement=SHED,
    share=0.05,
    least=5.0,
)
"""CockroachDB's defaults."""

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
"""Texts of the reasons that decisions give as numbers."""


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
