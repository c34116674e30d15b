"""From the cluster to what the allocator's kernels read: stores, ranges and what is wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import leader_counts, node_loads, replica_counts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.systems.cockroach.allocator.equivalence_classes import Site, configs_of, localities_of
from evenkeel.systems.cockroach.allocator.leases import Requests, workload_of
from evenkeel.systems.cockroach.allocator.zone_configs import HOST, ZoneConfig, zone_configs_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.leases import Workload

FORMAT = "cockroach"
"""Name of the system in ``cluster.native_format``."""

SETTINGS = kernel.Settings(
    disk_full=0.95,
    disk_rebalance=0.925,
    io_threshold=0.3,
    io_factor=1.1,
    io_enforcement=kernel.BLOCK_REBALANCE,
    recover_to_good=True,
)
"""CockroachDB's defaults."""

ROW_OF = {
    "qps": kernel.QPS,
    "queries": kernel.QPS,
    "cpu": kernel.CPU,
    "writes": kernel.WRITES,
    "write": kernel.WRITES,
    "bytes": kernel.BYTES,
    "disk": kernel.BYTES,
}
"""Dimensions that the allocator knows, by what a cluster may call them."""

UNIT = {kernel.CPU: 1e9}
"""What one of the cluster's units is in the allocator's: cores, in nanoseconds per second."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Databases, tables and indexes of ranges as a dump has them, kept for writing them as read."""

    # those present, of ``database_name``, ``schema_name``, ``table_name`` and ``index_name``
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # distinct values of these
    of: NDArray[np.int32]  # (P,) which of them each range has
    database: str = ""  # database assumed for all ranges without a column for it; "" for none
    # start keys of ranges that are CockroachDB's own, by partition
    starts: Mapping[int, str] = field(default_factory=dict)
    # tables and indexes whose zones apply to no range, since no range has its table
    unapplied: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CockroachMap:
    """What CockroachDB knows beyond the model: what travels as ``cluster.native``."""

    configs: tuple[ZoneConfig, ...]  # distinct configurations
    config: NDArray[np.int32]  # (P,) configuration of each range
    status: NDArray[np.int8]  # (N,) state of each store, ``AVAILABLE`` and so on
    io: NDArray[np.float64]  # (N,) overload of each disk's bandwidth
    # where the requests for each range come from; empty if that is known of none
    requests: Sequence[Requests | None] = ()
    # (hosts, hosts) milliseconds between hosts, these in the order of ``Localities.host``
    latency: float | NDArray[np.float64] = 0.0
    tables: Tables | None = None  # what ranges belong to
    notes: tuple[str, ...] = ()  # notes about parts of a dump that are ignored or missing
    # disk, others: (N,) bytes of each disk, and how many of them are used by other than these
    # ranges
    disk: NDArray[np.float64] | None = None
    others: NDArray[np.float64] | None = None

    def grown(self, count: int) -> Self:
        """Return the same for so many stores: those that came later are up, with disks unknown."""
        more = count - len(self.status)
        if more <= 0:
            return self

        unknown, nothing = np.full(more, np.inf), np.zeros(more)
        return replace(
            self,
            status=np.append(self.status, np.full(more, kernel.AVAILABLE, np.int8)),
            io=np.append(self.io, nothing),
            disk=None if self.disk is None else np.append(self.disk, unknown),
            others=None if self.others is None else np.append(self.others, nothing),
        )

    def is_full(self, cluster: Cluster) -> NDArray[np.bool_]:
        """Tell which stores take no replica, since their disks are nearly full, (N,) bool."""
        if self.disk is None or self.others is None:
            return np.zeros(len(cluster.nodes), np.bool_)
        held = node_loads(cluster, cluster.placement)[:, cluster.bytes_dimension] + self.others
        return np.isfinite(self.disk) & (held >= SETTINGS.disk_rebalance * self.disk)


@dataclass(frozen=True, eq=False)
class Fleet:
    """A cluster as the allocator sees it. The arrays are its own and may be changed."""

    localities: kernel.Localities
    configs: kernel.Configs
    stores: kernel.Stores
    ranges: kernel.Ranges
    hosts: int

    @property
    def width(self) -> int:
        """Replicas of a range, with two to spare."""
        return int(np.diff(self.ranges.first).max(initial=0)) + 2


def fleet_of(cluster: Cluster, placement: Placement | None = None) -> Fleet:
    """Lay a cluster out for the allocator."""
    native = cluster.native if isinstance(cluster.native, CockroachMap) else None
    native = native and native.grown(len(cluster.nodes))
    placement = cluster.placement if placement is None else placement
    if native is None:
        wanted, config = zone_configs_of(cluster)
    else:
        wanted, config = list(native.configs), native.config
    configs, conjunctions = configs_of(wanted)
    localities = localities_of(sites_of(cluster), conjunctions)
    status = status_of(cluster) if native is None else _states_now(cluster, native.status)
    stores = _stores(cluster, placement, status)
    if native is not None:
        stores.io[:] = native.io
        if native.disk is not None and native.others is not None:
            known = np.isfinite(native.disk)
            stores.capacity[known] = native.disk[known]
            stores.amount[kernel.BYTES] += native.others
            free = stores.capacity - stores.amount[kernel.BYTES]
            stores.available[known] = np.maximum(free[known], 0.0)
    counts = (status != kernel.DECOMMISSIONING) & ~cluster.nodes.gone
    return Fleet(
        localities,
        configs,
        stores,
        _ranges(cluster, placement, config, status),
        len(np.unique(localities.host[counts])),
    )


def known_workload(cluster: Cluster, fleet: Fleet, eagerness: float) -> Workload | None:
    """Say where requests come from, if that is known and leases are to follow them."""
    native = cluster.native
    if not isinstance(native, CockroachMap) or not eagerness:
        return None
    if not native.requests or len(native.requests) != len(fleet.ranges.config):
        return None
    if (
        np.ndim(native.latency)
        and len(np.asarray(native.latency)) != len(fleet.localities.host_first) - 1
    ):
        return None  # the latencies of later hosts are unknown
    return workload_of(
        sites_of(cluster),
        fleet.localities,
        native.requests,
        latency=native.latency,
        eagerness=eagerness,
    )


def sites_of(cluster: Cluster) -> list[Site]:
    """Return what never changes about the stores of a cluster."""
    topology, nodes = cluster.topology, cluster.nodes
    tiers = [i for i, tier in enumerate(topology.tiers) if tier != HOST]
    carried: list[set[str]] = [{f"node={name}"} for name in nodes.names]
    for tag, has in nodes.tags.items():
        for n in np.flatnonzero(has):
            carried[n].add(tag)
    labels = dict(nodes.attributes)
    if HOST in topology.tiers:
        row = topology.tiers.index(HOST)
        labels[HOST] = (topology.label[row], topology.label_names[row])
    for key, (codes, meaning) in labels.items():
        for n in np.flatnonzero(codes >= 0):
            carried[n].add(f"{key}={meaning[codes[n]]}")
    hosts = _hosts(cluster)
    return [
        Site(
            hosts[n],
            tuple(
                (topology.tiers[i], topology.label_names[i][topology.label[i, n]])
                for i in tiers
                if topology.label[i, n] >= 0
            ),
            frozenset(carried[n]),
        )
        for n in range(len(nodes))
    ]


def _hosts(cluster: Cluster) -> list[int]:
    """Ids of hosts: numbers where the labels of the tier are numbers, else counted up."""
    topology = cluster.topology
    if HOST not in topology.tiers:
        return list(range(len(cluster.nodes)))
    row = topology.tiers.index(HOST)
    domain, meaning = topology.domain[row], topology.label_names[row]
    crowd = int(domain.max(initial=-1)) + 1
    alone = np.where(domain >= 0, domain, crowd + np.arange(len(domain)))
    if len(meaning) == crowd and all(name.isdigit() for name in meaning) and (domain >= 0).all():
        return [int(meaning[code]) for code in topology.label[row]]
    numbers: list[int] = alone.tolist()
    return numbers


def status_of(cluster: Cluster) -> NDArray[np.int8]:
    """Return the states of stores, by what nodes may do."""
    nodes = cluster.nodes
    status = np.full(len(nodes), kernel.AVAILABLE, np.int8)
    status[~nodes.accepts] = kernel.SUSPECT
    status[~nodes.accepts & ~nodes.leads] = kernel.DRAINING
    status[~nodes.keeps] = kernel.DECOMMISSIONING
    status[~nodes.alive] = kernel.UNKNOWN
    status[(~nodes.alive & ~nodes.keeps) | nodes.gone] = kernel.DEAD
    return status


def _states_now(cluster: Cluster, reported: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the states of stores as ``reported (N,)`` except where nodes changed since."""
    nodes = cluster.nodes
    same = nodes.alive == ~np.isin(reported, (kernel.DEAD, kernel.UNKNOWN))
    same &= nodes.keeps == ~np.isin(reported, (kernel.DEAD, kernel.DECOMMISSIONING))
    same &= ~nodes.accepts | np.isin(reported, (kernel.AVAILABLE, kernel.THROTTLED))
    return np.where(same & ~nodes.gone, reported, status_of(cluster))


def _stores(cluster: Cluster, placement: Placement, status: NDArray[np.int8]) -> kernel.Stores:
    count = len(cluster.nodes)
    amount = np.zeros((kernel.AMOUNTS, count))
    amount[kernel.RANGES] = replica_counts(cluster, placement)
    amount[kernel.LEASES] = leader_counts(cluster, placement)
    loads = node_loads(cluster, placement)
    capacity = np.zeros(count)
    for row, d in _dimensions(cluster).items():
        amount[row] = loads[:, d] * UNIT.get(row, 1.0)
        if row == kernel.BYTES:
            given = cluster.nodes.capacity[:, d]
            capacity = np.where(np.isfinite(given), given, 0.0)
    return kernel.Stores(
        status.copy(),
        status == kernel.AVAILABLE,
        amount,
        capacity,
        np.maximum(capacity - amount[kernel.BYTES], 0.0),
        np.zeros(count),
    )


def _dimensions(cluster: Cluster) -> dict[int, int]:
    """Dimension of each row of amounts that the cluster has; of several, the first."""
    found: dict[int, int] = {}
    for d, name in enumerate(cluster.dimensions):
        if name in ROW_OF:
            found.setdefault(ROW_OF[name], d)
    if cluster.bytes_dimension >= 0:
        found[kernel.BYTES] = cluster.bytes_dimension
    return found


def _ranges(
    cluster: Cluster,
    placement: Placement,
    config: NDArray[np.int32],
    status: NDArray[np.int8],
) -> kernel.Ranges:
    partitions, count = cluster.partitions, len(placement)
    slots = np.diff(placement.first)
    room = np.maximum(slots, partitions.replicas) + 1
    first = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    store = np.full(first[-1], -1, np.int32)
    role = np.zeros(first[-1], np.uint8)
    at = np.arange(len(placement.node)) + np.repeat(first[:-1] - placement.first[:-1], slots)
    store[at] = placement.node
    role[at] = placement.role
    replica_load = np.zeros((kernel.AMOUNTS, count))
    lease_load = np.zeros((kernel.AMOUNTS, count))
    replica_load[kernel.RANGES] = 1.0
    lease_load[kernel.LEASES] = 1.0
    for row, d in _dimensions(cluster).items():
        unit = UNIT.get(row, 1.0)
        replica_load[row] = partitions.load.voter[:, d] * unit
        lease_load[row] = partitions.load.leader[:, d] * unit - replica_load[row]
    lease = placement.leader.copy()
    lease[placement.leader_node < 0] = -1
    raft, up_to_date = _raft(placement, lease, status, at, len(store))
    return kernel.Ranges(
        first=first,
        store=store,
        role=role,
        lease=lease,
        config=np.ascontiguousarray(config),
        replica_load=replica_load,
        lease_load=lease_load,
        raft=raft,
        up_to_date=up_to_date,
        behind=~up_to_date,
        joint=np.zeros(count, np.bool_),
    )


def _raft(
    placement: Placement,
    lease: NDArray[np.int16],
    status: NDArray[np.int8],
    at: NDArray[np.int64],
    slots: int,
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """What is known of each range's raft group, and which replicas have all that is committed.

    Of ranges of which no replica is marked as caught up, only those are known to lag that may never
    answer again; where there are none of these either, nothing is known, nor is anything asked.
    """
    raft = np.full(len(placement), kernel.NOT_MODELLED, np.int8)
    up_to_date = np.ones(slots, np.bool_)
    there = placement.node >= 0
    silent = there & (status[placement.node] == kernel.UNKNOWN)
    caught_up = (placement.flags & Flag.CAUGHT_UP) > 0
    if silent.any() or caught_up.any():
        owner, count = placement.owner, len(placement)
        reported = np.bincount(owner[caught_up], minlength=count) > 0
        raft[np.bincount(owner[silent], minlength=count) > 0] = kernel.LEADING
        raft[reported] = np.where(lease[reported] >= 0, kernel.LEADING, kernel.LEADERLESS)
        up_to_date[at[silent | (reported[owner] & there & ~caught_up)]] = False
    return raft, up_to_date
