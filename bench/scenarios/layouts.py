"""Layouts: clusters of scenarios from a few figures, as CockroachDB's simulator defines them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
from evenkeel.model.rules import Rule
from evenkeel.simulate.engine.world import Environment

GIB = 2.0**30
MIB = 2.0**20

# requests per second, cores, bytes written per second, bytes, and replicas
DIMENSIONS = ("qps", "cpu", "write", "disk", "replicas")

# bytes on disk for each logical byte, as the figures of CockroachDB's simulator have it
ON_DISK = 1.25

# CockroachDB's 32 MiB/s are of logical bytes. Its simulator lets receivers take any number of
# snapshots at once; two are enough for its scenarios.
ENVIRONMENT = Environment(
    snapshot=32.0 * MIB * ON_DISK, receive=2, consensus=True, gossip_interval=10.0, gossip_delay=0.5
)

# default capacities of a store; only ratios matter, but for disks
ROOM = (1e6, 8.0, 1e9, 512.0 * GIB, 1e6)


@dataclass(frozen=True)
class Stores:
    """The stores of a cluster: hosts in regions and zones, and what they can do.

    >>> Stores({"a": 1, "b": 2}, each=2).count
    6
    """

    hosts: int | Mapping[str, int]  # how many, or how many in each region
    each: int = 1  # stores on each host
    cores: float | Sequence[float] | None = None  # of each host, shared by its stores
    disk: float | Sequence[float] | None = None  # bytes of each store
    zone_of: int | None = None  # hosts in a zone; without it there are no zones

    @property
    def count(self) -> int:
        """Stores in all."""
        return self.each * len(self._regions())

    def domains(self) -> dict[str, list[str]]:
        """Return the labels of each store by tier, widest first: region and zone, if any, host."""
        regions = self._regions()
        found: dict[str, list[str]] = {}
        if isinstance(self.hosts, Mapping):
            found["region"] = self._spread(regions)
        if self.zone_of is not None:
            place: dict[str, int] = {}
            zones = []
            for region in regions:
                place[region] = place.get(region, -1) + 1
                zones.append(f"{region}-{place[region] // self.zone_of + 1}")
            found["zone"] = self._spread(zones)
        found["host"] = self._spread([f"n{i + 1}" for i in range(len(regions))])
        return found

    def capacity(self) -> NDArray[np.float64]:
        """Return what each store can do in ``DIMENSIONS``, (N, 5)."""
        rooms = np.tile(np.array(ROOM), (self.count, 1))
        if self.cores is not None:
            cores = np.broadcast_to(np.asarray(self.cores, np.float64), len(self._regions()))
            rooms[:, 1] = np.repeat(cores, self.each) / self.each
        if self.disk is not None:
            rooms[:, 3] = self.disk
        return rooms

    def _regions(self) -> list[str]:
        if isinstance(self.hosts, Mapping):
            return [name for name, count in self.hosts.items() for _ in range(count)]
        return [""] * self.hosts

    def _spread(self, labels: list[str]) -> list[str]:
        return [label for label in labels for _ in range(self.each)]


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Ranges of one kind, with the requests that they get, spread over them evenly.

    >>> Ranges(count=3, on=[([0, 1, 2], 1.0)], rate=300.0).rows(4)[0]
    [0, 1, 2]
    """

    count: int
    # stores of a range, the leaseholder first, and the weight of this choice; else ``skewed``
    on: Sequence[tuple[Sequence[int], float]] = ()
    skewed: tuple[Sequence[int], Sequence[int]] | None = None  # replicas and leases of each store
    # how many a range has at the beginning, by default; then they go round the stores
    replicas: int = 3
    non_voters: int = 0  # how many of the last of ``on`` do not vote
    wanted: int | None = None  # wanted numbers; what there is by default
    voters: int | None = None
    mebibytes: float = 8.0  # logical size of a range
    # requests per second over all of them, the part of them that read, and bytes of a write
    rate: float = 0.0
    reads: float = 0.0
    block: float = 0.0
    # seconds of CPU of a request at the leaseholder, and of a write at every replica
    request_cpu: float = 0.0
    raft_cpu: float = 0.0
    rule: int = 0  # index of their rule

    def rows(self, stores: int) -> list[list[int]]:
        """Return the stores of each range, leaseholder first."""
        if self.skewed is not None:
            return _skewed(self.count, self.replicas, *self.skewed)
        if not self.on:
            # leaders go round, and so do the distances of the others, as far as they can
            most = max(1, (stores - 1) // max(1, self.replicas - 1))
            return [
                [(i + (1 + i // stores % most) * k) % stores for k in range(self.replicas)]
                for i in range(self.count)
            ]
        total = sum(weight for _, weight in self.on)
        ends = np.round(np.cumsum([weight for _, weight in self.on]) * self.count / total)
        starts = np.concatenate([[0.0], ends[:-1]])
        counts = (ends - starts).astype(int).tolist()
        return [
            list(at) for (at, _), times in zip(self.on, counts, strict=True) for _ in range(times)
        ]

    def load(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a leaseholder and any other replica carry in ``DIMENSIONS``, (5,) each."""
        each = self.rate / self.count
        writes = each * (1.0 - self.reads)
        size = self.mebibytes * MIB * ON_DISK
        other = np.array([0.0, writes * self.raft_cpu, writes * self.block, size, 1.0])
        leads = other + np.array([each, each * self.request_cpu, 0.0, 0.0, 0.0])
        return leads, other

    @property
    def growth(self) -> float:
        """Bytes by which a replica grows per second."""
        return self.rate / self.count * (1.0 - self.reads) * self.block * ON_DISK


def _skewed(
    count: int, each: int, replicas: Sequence[int], leases: Sequence[int]
) -> list[list[int]]:
    """Deal out replicas, those with most left first, and leases among them likewise."""
    left = np.array(replicas)
    rows = []
    for _ in range(count):
        chosen = np.argsort(-left, kind="stable")[:each]
        left[chosen] -= 1
        rows.append(chosen.tolist())
    to_lead = np.array(leases)
    # those who may be led from fewest stores that still need leases choose first
    order = sorted(range(count), key=lambda i: -min(rows[i], key=lambda s: leases[s]))
    for i in order:
        first = max(rows[i], key=lambda s: (to_lead[s] / max(leases[s], 1), -s))
        to_lead[first] -= 1
        rows[i] = [first, *(s for s in rows[i] if s != first)]
    return rows


def cluster_of(
    stores: Stores, ranges: Sequence[Ranges], rules: Sequence[Rule]
) -> tuple[Cluster, Environment]:
    """Build the cluster, and what surrounds it in CockroachDB's simulator, growth included.

    >>> cluster, _ = cluster_of(Stores(3), [Ranges(count=4, mebibytes=1.0)], [Rule()])
    >>> np.asarray(cluster.placement).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    """
    faults = FaultList()
    for i, kind in enumerate(ranges):
        if kind.count < 1:
            faults.add(f"ranges[{i}].count", kind.count, "must be 1 or more")
    faults.raise_if_any()
    counts = [kind.count for kind in ranges]
    rows = [row for kind in ranges for row in kind.rows(stores.count)]
    lengths = np.array([len(row) for row in rows])
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    unheard = np.repeat([kind.non_voters for kind in ranges], counts)
    slot = np.arange(first[-1]) - np.repeat(first[:-1], lengths)
    votes = slot < np.repeat(lengths - unheard, lengths)
    leads, others = zip(*(kind.load() for kind in ranges), strict=True)
    wanted = np.repeat([-1 if k.wanted is None else k.wanted for k in ranges], counts)
    voters = np.repeat([-1 if k.voters is None else k.voters for k in ranges], counts)
    replicas = np.where(wanted < 0, lengths, wanted)
    voting = np.where(voters >= 0, voters, np.where(wanted < 0, lengths - unheard, wanted))
    cluster = Cluster.from_arrays(
        capacity=stores.capacity(),
        load=np.repeat(others, counts, axis=0),
        leader_load=np.repeat(leads, counts, axis=0),
        dimensions=DIMENSIONS,
        bytes="disk",
        domains=stores.domains(),
        node_names=[f"s{i + 1}" for i in range(stores.count)],
        placement=np.array([store for row in rows for store in row], np.int32),
        first=first,
        leader=np.zeros(len(rows), np.int16),
        role=np.where(votes, Role.VOTER, Role.NON_VOTER).astype(np.uint8),
        replicas=replicas.astype(np.int32),
        voters=voting.astype(np.int32),
        rules=list(rules),
        rule=np.repeat([kind.rule for kind in ranges], counts).astype(np.int32),
    )
    growth = np.repeat([kind.growth for kind in ranges], counts)
    return cluster, replace(ENVIRONMENT, growth=growth)
