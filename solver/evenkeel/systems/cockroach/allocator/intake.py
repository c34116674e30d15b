"""Build a cluster from the stores, ranges and zone configurations of CockroachDB."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.loads import leader_counts, node_loads, replica_counts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import LISTED_FAULTS, as_array, list_entries, shape_of
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.cockroach.allocator.leases import Requests, workload_of
from evenkeel.systems.cockroach.allocator.zone_configs import (
    HOST,
    Site,
    Tiers,
    ZoneConfig,
    attributes_of,
    configs_of,
    localities_of,
    nowhere,
    read_configs,
    rule_of,
    zone_configs_of,
)
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.leases import Workload

FORMAT = "cockroach"  # name of the system in ``cluster.native_format``
# CockroachDB's defaults
SETTINGS = kernel.Settings(
    disk_full=0.95,
    disk_rebalance=0.925,
    io_threshold=0.3,
    io_factor=1.1,
    io_enforcement=kernel.BLOCK_REBALANCE,
    recover_to_good=True,
)

# dimensions that the allocator knows, by what a cluster may call them
ROW_OF = {
    "qps": kernel.QPS,
    "queries": kernel.QPS,
    "cpu": kernel.CPU,
    "writes": kernel.WRITES,
    "write": kernel.WRITES,
    "bytes": kernel.BYTES,
    "disk": kernel.BYTES,
}

# what one of the cluster's units is in the allocator's: cores, in nanoseconds per second
UNIT = {kernel.CPU: 1e9}


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
    # tables and indexes whose zones apply to no range
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
    cluster: Cluster, placement: Placement, config: NDArray[np.int32], status: NDArray[np.int8]
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
    """What is known of each range's raft group, and which replicas have all that is committed."""
    # Of ranges without a replica marked as caught up, only those are known to lag that may never
    # answer again; where there are none of these either, nothing is known, nor is anything asked.
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


STATES = {
    "available": kernel.AVAILABLE,
    "throttled": kernel.THROTTLED,
    "suspect": kernel.SUSPECT,
    "draining": kernel.DRAINING,
    "unknown": kernel.UNKNOWN,
    "decommissioning": kernel.DECOMMISSIONING,
    "decommissioned": kernel.DEAD,
    "dead": kernel.DEAD,
}

# dimensions, in the order in which the cluster has them
LOADS = ("cpu", "qps", "writes", "bytes", "replicas")


@known_keywords
def cockroach_cluster(
    *,
    localities: Sequence[str],
    replicas: ArrayLike,
    configs: Sequence[Mapping[str, object] | ZoneConfig],
    config: ArrayLike | None = None,
    roles: ArrayLike | None = None,
    leaseholder: ArrayLike | None = None,
    hosts: ArrayLike | None = None,
    attributes: Sequence[Sequence[str]] | None = None,
    status: Sequence[str] | None = None,
    io: ArrayLike | None = None,
    capacity: ArrayLike | None = None,
    cores: ArrayLike | None = None,
    used: ArrayLike | None = None,
    cpu: ArrayLike = 0.0,
    qps: ArrayLike = 0.0,
    writes: ArrayLike = 0.0,
    size: ArrayLike = 0.0,
    caught_up: ArrayLike | None = None,
    requests: Sequence[Mapping[str, float] | Requests | None] | None = None,
    latency: ArrayLike = 0.0,
    lost: Sequence[str] = (),
    spread: Mapping[str, Amount] | Sequence[Mapping[str, Amount]] | None = None,
    store_names: Sequence[str] | None = None,
    range_names: Sequence[str] | None = None,
) -> Cluster:
    """Build the cluster of stores and ranges.

    Configurations become rules too, so that the audit and every other method keep them.

    Parameters
    ----------
    localities : sequence of str
        One for each of S stores, such as ``"region=us,zone=a"``; "" for none.
    replicas : array_like of int32, shape (P, R)
        Stores of the replicas of each range; -1 for an empty slot.
    configs : sequence of mapping or ZoneConfig
        Zone configurations with the fields ``num_replicas``, ``num_voters``, ``constraints``,
        ``voter_constraints`` and ``lease_preferences``. Constraints are a list of texts, which hold
        for every replica, or a mapping from texts joined by commas to numbers of replicas.
    config : array_like of int32, shape (P,), optional
        Configuration of each range; the first of all by default.
    roles : array_like of uint8, shape (P, R), optional
        ``Role`` of each replica; all voters by default.
    leaseholder : array_like of int32, shape (P,), optional
        Store that holds each lease, -1 for none; that of the first voter by default.
    hosts : array_like of int32, shape (S,), optional
        Id of each store's host, what CockroachDB calls a node; each has its own by default.
    attributes : sequence of sequence of str, optional
        Of each store and its host.
    status : sequence of str, optional
        State of each store, of ``STATES``; all available by default.
    io : array_like of float64, shape (S,), optional
        Overload of each disk's bandwidth.
    capacity, cores : array_like of float64, shape (S,), optional
        Bytes of each disk and cores of each store; not known by default. What is not known is taken
        for the same on every store and more than enough: no store is ever full, and methods that
        level utilisation level loads.
    used : array_like of float64, shape (S,), optional
        Bytes of each disk that are used, by these ranges or others; NaN where that is not known. As
        CockroachDB fills no disk beyond 92.5 %, so much of its ``capacity`` is left to these
        ranges, and one that is as full already takes none.
    cpu, qps, writes, size : array_like of float64, shape () or (P,), optional
        Of each range: cores and queries per second where it is led, bytes written per second and
        bytes held by every replica.
    caught_up : array_like of bool, shape (P, R), optional
        Which replicas have all that is committed. Where this is given, those that lag get no lease,
        and none goes that the quorum needs; where it is not, raft is left out of account.
    requests : sequence of (mapping of str to float) or Requests, optional
        Where the requests for each range come from: queries per second by locality, or None where
        that is not known. Leases follow them.
    latency : array_like of float64, shape () or (hosts, hosts), optional
        Milliseconds between hosts, these by rising id.
    lost : sequence of str, optional
        Places such as ``"region=us"`` that constraints may name though no store is in them: what is
        asked there stays unmet. Any other place that no store is in is refused.
    spread : mapping of str to Amount, or sequence of them, optional
        Most replicas of a range in one domain, by tier, for the audit and other methods; or that
        for each of ``configs``. CockroachDB itself only prefers stores that are farther apart. One
        per host always holds.
    store_names, range_names : sequence of str, optional
        Counted up by default.

    Returns
    -------
    Cluster
        For ``solve(cluster, "cockroach")``; its ``native`` is a `CockroachMap`. Its dimensions are
        those of ``LOADS``: every replica counts one in the last.

    Raises
    ------
    InvalidInput
        Naming every problem, with its range or store and field.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.cockroach_cluster(
    ...     localities=["region=us", "region=us", "region=eu", "region=eu"],
    ...     replicas=[[0, 2]] * 6, configs=[{"num_replicas": 2, "constraints": {"+region=us": 1}}],
    ... )
    >>> cluster.native.configs[0].constraints[0].replicas, cluster.rules[0].place
    (1, {'region=us': 1})
    >>> ek.cockroach_cluster(localities=["region=us"], replicas=[[0]], leaseholder=[7], qps=[-1.0],
    ...            configs=[{"num_replicas": 1, "constraints": {"+zone=a": 2}}])
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: 4 problems with the input:
      configs[0].constraints: asks for more replicas than the 1 there are (got 2)
      configs[0].constraints[0]: no store has a tier 'zone'; known: ['region'] (got '+zone=a')
      leaseholder[0]: range 0 has no replica there (got 7)
      qps[0]: must not be negative or NaN (got -1.0)
    """
    faults = FaultList()
    tiers = _localities(faults, localities)
    count = len(tiers)
    carried = {tier for one in tiers for tier in one}
    away = {tier for i, one in enumerate(lost) for tier in _locality(faults, f"lost[{i}]", one)}
    read = read_configs(faults, configs, carried | away)
    state = _states(faults, status, count)
    overload = _per_store(faults, "io", io, count, np.float64, 0.0)
    held = _per_store(faults, "capacity", capacity, count, np.float64, np.inf)
    taken = _entries(faults, "used", used, count, np.float64, np.nan)
    list_entries(faults, "used", taken, taken < 0, "must not be negative")
    ids = _per_store(faults, "hosts", hosts, count, np.int32, -1)
    if hosts is None:
        ids = np.arange(count, dtype=np.int32)
    processors = _per_store(faults, "cores", cores, count, np.float64, np.inf)
    _check_hosts(faults, ids, tiers)
    tags = _tags(faults, attributes, count, attributes_of(read) | {*map(nowhere, away - carried)})
    rows = as_array(faults, "replicas", replicas, np.int32, (None, None))
    if rows.shape != shape_of(replicas):
        faults.raise_if_any()  # how many ranges there are is not known
    if rows.shape[1] == 0:
        rows = np.full((len(rows), 1), -1, np.int32)
    list_entries(
        faults, "replicas", rows, (rows < -1) | (rows >= count), f"unknown store; there are {count}"
    )
    wanted = _entries(faults, "config", config, len(rows), np.int32, 0)
    outside = (wanted < 0) | (wanted >= len(read))
    list_entries(faults, "config", wanted, outside, f"unknown configuration; there are {len(read)}")
    role = _roles(faults, roles, rows)
    flags = _flags(faults, caught_up, rows)
    leader = _leaders(faults, leaseholder, rows, role, range_names)
    loads = [
        _amounts(faults, name, given, len(rows))
        for name, given in (("cpu", cpu), ("qps", qps), ("writes", writes), ("size", size))
    ]
    origins = _origins(faults, requests, len(rows))
    delay = _latency(faults, latency, len(np.unique(ids)))
    by_config = [spread or {}] * len(read) if not isinstance(spread, Sequence) else spread
    if len(by_config) != len(read):
        faults.add("spread", len(by_config), f"needs one for each of {len(read)} configs")
    faults.raise_if_any()
    leading = np.stack([*loads, np.ones(len(rows))], axis=1)
    following = leading.copy()
    following[:, :2] = 0.0
    replicas_wanted = np.array([one.num_replicas for one in read], np.int32)[wanted]
    voters_wanted = np.array([one.voters for one in read], np.int32)[wanted]
    limits = np.full((count, len(LOADS)), np.inf)
    limits[:, LOADS.index("cpu")] = processors
    disks = _disks_of(held, taken, loads[LOADS.index("bytes")], rows)
    limits[:, LOADS.index("bytes")] = disks.most
    rows, role, flags = _widened(rows, role, flags, replicas_wanted, voters_wanted)
    shared: dict[str, Amount] = {HOST: 1} if len(np.unique(ids)) < count else {}
    rules = [
        rule_of(one, shared | dict(apart), carried)
        for one, apart in zip(read, by_config, strict=True)
    ]
    bound = any(rule != Rule() for rule in rules)
    return Cluster.from_arrays(
        capacity=_enough(limits, leading, replicas_wanted, rows),
        load=following,
        leader_load=leading,
        dimensions=LOADS,
        bytes="bytes",
        domains=_domains(tiers, ids),
        tags=tags,
        alive=~np.isin(state, (kernel.DEAD, kernel.UNKNOWN)),
        gone=None if status is None else np.array([one == "decommissioned" for one in status]),
        accepts=np.isin(state, (kernel.AVAILABLE, kernel.THROTTLED)) & ~disks.full,
        keeps=~np.isin(state, (kernel.DEAD, kernel.DECOMMISSIONING)),
        leads=np.isin(state, (kernel.AVAILABLE, kernel.THROTTLED, kernel.SUSPECT)),
        node_names=store_names,
        partition_names=range_names,
        replicas=replicas_wanted,
        voters=voters_wanted,
        placement=rows,
        role=role,
        flags=flags,
        leader=leader,
        rules=rules if bound else (),
        rule=wanted if bound else None,
        native=CockroachMap(
            tuple(read),
            wanted,
            state,
            overload,
            origins,
            delay,
            disk=disks.whole,
            others=disks.others,
        ),
        native_format=FORMAT,
    )


class _Disks(NamedTuple):
    """Disks in bytes of ranges, (S,) each: all of it, what is no range's here, and what may be."""

    whole: NDArray[np.float64]
    others: NDArray[np.float64]
    most: NDArray[np.float64]
    full: NDArray[np.bool_]


def _disks_of(
    capacity: NDArray[np.float64],
    used: NDArray[np.float64],
    size: NDArray[np.float64],
    rows: NDArray[np.int32],
) -> _Disks:
    """Return what disks hold; where ranges (P,) take less than their ``size``, all is scaled."""
    # on a disk that is packed its ranges' bytes are more than what is used of it
    at = rows >= 0
    sizes = np.broadcast_to(size[:, None], rows.shape)
    reported = np.bincount(rows[at], sizes[at], len(capacity))
    known = np.isfinite(capacity) & np.isfinite(used) & (capacity > 0.0)
    taken = np.where(known, np.maximum(used, reported), reported)
    packed = np.divide(taken, used, out=np.ones(len(used)), where=known & (used > 0.0))
    whole = np.where(known, capacity * packed, np.inf)
    others = np.where(known, taken - reported, 0.0)
    full = known & (taken >= SETTINGS.disk_rebalance * whole)
    share = np.where(full, SETTINGS.disk_full, SETTINGS.disk_rebalance)
    most = np.where(known, np.maximum(share * whole - others, 0.0), capacity)
    return _Disks(whole, others, most, full)


def _localities(faults: FaultList, given: Sequence[str]) -> list[Tiers]:
    if isinstance(given, str):
        faults.add("localities", given, "needs a list with the locality of each store")
        return [()]
    return [_locality(faults, f"localities[{s}]", text) for s, text in enumerate(given)]


def _locality(faults: FaultList, path: str, text: object) -> Tiers:
    """Read ``region=us,zone=a``."""
    if not isinstance(text, str):
        faults.add(path, text, "must be a string such as 'region=us,zone=a'")
        return ()
    found: dict[str, str] = {}
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        key, sign, value = part.partition("=")
        if not key or not value or not sign or "=" in value or key == HOST:
            faults.add(path, text, f"{part!r} is not a tier such as region=us")
            return ()
        if key in found:
            faults.add(path, text, f"has the tier {key!r} twice")
        found[key] = value
    return tuple(found.items())


def _entries(
    faults: FaultList,
    path: str,
    given: ArrayLike | None,
    count: int,
    dtype: type[np.generic],
    default: float,
) -> NDArray[Any]:
    """Read one number for each."""
    if given is None:
        return np.full(count, default, dtype)
    return as_array(faults, path, given, dtype, (count,))


def _per_store(
    faults: FaultList,
    path: str,
    given: ArrayLike | None,
    count: int,
    dtype: type[np.generic],
    default: float,
) -> NDArray[Any]:
    """Read one amount for each store."""
    found = _entries(faults, path, given, count, dtype, default)
    if given is not None:
        list_entries(faults, path, found, ~(found >= 0), "must not be negative or NaN")
    return found


def _amounts(faults: FaultList, path: str, given: ArrayLike, count: int) -> NDArray[np.float64]:
    """Read one amount for each range."""
    if np.ndim(given) == 0:
        given = np.full(count, given)
    found: NDArray[np.float64] = as_array(faults, path, given, np.float64, (count,))
    list_entries(faults, path, found, ~(found >= 0.0), "must not be negative or NaN")
    return found


def _roles(
    faults: FaultList, given: ArrayLike | None, rows: NDArray[np.int32]
) -> NDArray[np.uint8]:
    if given is None:
        return np.zeros(rows.shape, np.uint8)
    found: NDArray[np.uint8] = as_array(faults, "roles", given, np.uint8, rows.shape)
    list_entries(faults, "roles", found, found > Role.LEARNER, "unknown role; 0, 1 or 2")
    return found


def _enough(
    limits: NDArray[np.float64],
    load: NDArray[np.float64],
    replicas: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Fill in capacities of which none is known: much more than all replicas need together."""
    total = plenty(load, np.maximum(replicas, (rows >= 0).sum(axis=1)))
    unknown = np.isinf(limits).all(axis=0) & (total > 0.0)
    return np.where(unknown, total, limits)


def plenty(load: NDArray[np.float64], count: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return much more than so many replicas of each range need together, (D,)."""
    total: NDArray[np.float64] = 8.0 * (load * count[:, None]).sum(axis=0)
    return total


def _flags(
    faults: FaultList, given: ArrayLike | None, rows: NDArray[np.int32]
) -> NDArray[np.uint16]:
    """Return the replicas that are caught up, as far as known."""
    if given is None:
        return np.zeros(rows.shape, np.uint16)
    reported: NDArray[np.bool_] = as_array(faults, "caught_up", given, np.bool_, rows.shape)
    return np.where(reported & (rows >= 0), Flag.CAUGHT_UP, 0).astype(np.uint16)


def _leaders(
    faults: FaultList,
    given: ArrayLike | None,
    rows: NDArray[np.int32],
    role: NDArray[np.uint8],
    names: Sequence[str] | None,
) -> NDArray[np.int16]:
    """Slots of the leaseholders; a store without a voter of the range holds no lease."""
    votes = (rows >= 0) & (role == Role.VOTER)
    if given is None:
        return np.where(votes.any(axis=1), votes.argmax(axis=1), -1).astype(np.int16)
    store = as_array(faults, "leaseholder", given, np.int32, (len(rows),))
    there = (rows == store[:, None]) & (rows >= 0)
    may = there & votes
    bad = np.flatnonzero((store < -1) | ((store >= 0) & ~may.any(axis=1)))
    for p in bad[:LISTED_FAULTS].tolist():
        name = names[p] if names is not None and p < len(names) else p
        what = "its replica there is not a voter" if there[p].any() else "has no replica there"
        message = f"range {name}: {what}" if there[p].any() else f"range {name} {what}"
        faults.add(f"leaseholder[{p}]", int(store[p]), message)
    if len(bad) > LISTED_FAULTS:
        faults.add("leaseholder", f"{len(bad) - LISTED_FAULTS} more entries", "no voter is there")
    return np.where(may.any(axis=1), may.argmax(axis=1), -1).astype(np.int16)


def _origins(
    faults: FaultList, given: Sequence[Mapping[str, float] | Requests | None] | None, count: int
) -> list[Requests | None]:
    """Read where requests come from."""
    if given is None:
        return []
    if len(given) != count:
        faults.add(
            "requests", len(given), f"needs one mapping, or None, for each of {count} ranges"
        )
    found: list[Requests | None] = []
    for p, one in enumerate(given):
        if one is None or isinstance(one, Requests):
            found.append(one)
        elif isinstance(one, Mapping):
            found.append(
                Requests(
                    {_locality(faults, f"requests[{p}]", at): rate for at, rate in one.items()}
                )
            )
            for at, rate in one.items():
                if not rate >= 0.0:
                    faults.add(f"requests[{p}][{at!r}]", rate, "must not be negative or NaN")
        else:
            faults.add(f"requests[{p}]", one, "needs a mapping of localities to rates, or None")
    return found


def _latency(faults: FaultList, given: ArrayLike, hosts: int) -> NDArray[np.float64]:
    """Read milliseconds between hosts."""
    shape = () if np.ndim(given) == 0 else (hosts, hosts)
    found: NDArray[np.float64] = as_array(faults, "latency", given, np.float64, shape)
    list_entries(faults, "latency", found, ~(found >= 0.0), "must not be negative or NaN")
    return found


def _states(faults: FaultList, given: Sequence[str] | None, count: int) -> NDArray[np.int8]:
    if given is None:
        return np.zeros(count, np.int8)
    if len(given) != count:
        faults.add("status", len(given), f"needs one state for each of {count} stores")
        return np.zeros(count, np.int8)
    for s, name in enumerate(given):
        if name not in STATES:
            faults.add(f"status[{s}]", name, f"is none of {', '.join(STATES)}")
    return np.array([STATES.get(name, 0) for name in given], np.int8)


def _check_hosts(faults: FaultList, ids: NDArray[np.int32], tiers: Sequence[Tiers]) -> None:
    """A locality is the host's: its stores share it."""
    first: dict[int, int] = {}
    for s, host in enumerate(ids.tolist()):
        other = first.setdefault(host, s)
        if tiers[other] != tiers[s]:
            faults.add(
                f"localities[{s}]", tiers[s], f"differs from that of store {other}, same host"
            )


def _domains(tiers: Sequence[Tiers], ids: NDArray[np.int32]) -> dict[str, list[str]]:
    """Labels of every tier, in the order in which most localities have them, and of the host."""
    names: dict[str, None] = {}
    for one in sorted(tiers, key=len, reverse=True):
        for key, _ in one:
            names.setdefault(key)
    labels = {name: [dict(one).get(name, "") for one in tiers] for name in names}
    return labels | {HOST: [str(host) for host in ids.tolist()]}


def _tags(
    faults: FaultList, given: Sequence[Sequence[str]] | None, count: int, asked: set[str]
) -> dict[str, NDArray[np.bool_]]:
    """Return the stores with each attribute; an attribute only in rules has none."""
    tags = {name: np.zeros(count, np.bool_) for name in sorted(asked)}
    if given is not None and len(given) != count:
        faults.add("attributes", len(given), f"needs one list for each of {count} stores")
        return tags
    for s, listed in enumerate(given or ()):
        if isinstance(listed, str):
            faults.add(f"attributes[{s}]", listed, "needs a list of attributes")
            continue
        for name in listed:
            tags.setdefault(name, np.zeros(count, np.bool_))[s] = True
    return tags


def _widened(
    rows: NDArray[np.int32],
    role: NDArray[np.uint8],
    flags: NDArray[np.uint16],
    replicas: NDArray[np.int32],
    voters: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint16]]:
    """Add empty slots, so that every range has one for each voter and non-voter it should have."""
    # slots keep their roles, so a range with too many voters needs more slots than replicas
    there = rows >= 0
    voting = (there & (role == Role.VOTER)).sum(axis=1)
    others = (there & (role == Role.NON_VOTER)).sum(axis=1)
    short = np.maximum(voters - voting, 0)
    needed = short + np.maximum(replicas - voters - others, 0)
    missing = int((needed - (~there).sum(axis=1)).max(initial=0))
    wider = ((0, 0), (0, max(missing, 0)))
    rows = np.pad(rows, wider, constant_values=-1)
    role, flags = np.pad(role, wider), np.pad(flags, wider)
    for slot in range(rows.shape[1]):
        empty = rows[:, slot] < 0
        votes = empty & (short > 0)
        role[empty, slot] = Role.NON_VOTER
        role[votes, slot] = Role.VOTER
        short = short - votes
    return rows, role, flags
