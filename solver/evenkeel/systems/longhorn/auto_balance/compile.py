"""Compile a Longhorn system into arrays for the kernels.

Longhorn draws the names of new replicas at random. Here they are numbered, volume by volume, so
that a run that is read in again decides as the run itself would have.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import distinct_rows
from evenkeel.methods.contract import only_for
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import writable
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.longhorn.auto_balance.intake import (
    DEGRADED,
    FAULTED,
    HEALTHY,
    IGNORED,
    System,
    part_of,
    promised,
    soft,
)
from evenkeel.systems.longhorn.auto_balance.settings import (
    AUTO_BALANCE,
    DATA_LOCALITY,
    Longhorn,
    Settings,
)
from evenkeel_kernels.longhorn import state as kernel
from evenkeel_kernels.longhorn.place_replica import Room
from evenkeel_kernels.longhorn.state import Problem, State

# how new replicas are called: after their volume, with a number
NEW_NAME = re.compile(r"^(.*)-r-new(\d{5,})$")

# a rank is a place among the names that were there, above these bits; below them it is 0 for the
# name that stands there, else the place of a volume among those whose new names fall behind that
# one, and the number of the new replica of that volume
PLACE_BITS, NUMBER_BITS = 40, 16

STRETCH = 1 << 13  # volumes between two heartbeats


class ReplicaNames:
    """Names and ranks of the replicas that are there, and of those that will come.

    Parameters
    ----------
    names : sequence of str
        K names of slots; "" for an empty one.
    volumes : sequence of str
        P names.

    Examples
    --------
    >>> known = ReplicaNames(["v-r-b", "v-r-x"], ["v"])
    >>> known.rank.tolist() == [1 << 40, 2 << 40]
    True
    >>> coming = int(known.next_rank[0])
    >>> known.name(0, coming), [coming > rank for rank in known.rank.tolist()]
    ('v-r-new00001', [True, False])
    """

    def __init__(self, names: Sequence[str], volumes: Sequence[str]) -> None:
        self._names = names
        self._volumes = volumes
        self._slots = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        self.rank = np.empty(len(names), np.int64)
        self.rank[self._slots] = (np.arange(len(names), dtype=np.int64) + 1) << PLACE_BITS
        beat()
        self._made = self._numbers()
        beat()
        first = [self._new(v, 1) for v in range(len(volumes))]
        beat()
        ordered = [names[k] for k in self._slots.tolist()]
        self.next_rank = np.empty(len(volumes), np.int64)
        for turn, v in enumerate(sorted(range(len(volumes)), key=first.__getitem__)):
            if turn % STRETCH == 0:
                beat()
            place = bisect_left(ordered, first[v])
            self.next_rank[v] = (place << PLACE_BITS) + ((turn + 1) << NUMBER_BITS)

    def _numbers(self) -> dict[str, int]:
        """Return the highest number of a replica that an earlier run made, by volume."""
        highest: dict[str, int] = {}
        for name in self._names:
            if "-r-new" in name and (found := NEW_NAME.match(name)):
                highest[found[1]] = max(highest.get(found[1], 0), int(found[2]))
        return highest

    def _new(self, volume: int, number: int) -> str:
        name = self._volumes[volume]
        return f"{name}-r-new{self._made.get(name, 0) + number:05}"

    def slot(self, rank: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots of replicas in the cluster's placement.

        Parameters
        ----------
        rank : ndarray of int64, shape (n,)
            Ranks.

        Returns
        -------
        ndarray of int64, shape (n,)
            -1 for new ones.
        """
        slot = np.full(len(rank), -1, np.int64)
        known = rank & ((1 << PLACE_BITS) - 1) == 0
        slot[known] = self._slots[(rank[known] >> PLACE_BITS) - 1]
        return slot

    def name(self, volume: int, rank: int) -> str:
        """Return the name of a replica.

        Parameters
        ----------
        volume : int
            Its volume.
        rank : int
            Its rank.

        Returns
        -------
        str
            Its own, or the counted one of a new replica.
        """
        if rank & ((1 << PLACE_BITS) - 1) == 0:
            return self._names[int(self._slots[(rank >> PLACE_BITS) - 1])]
        return self._new(volume, (rank & ((1 << NUMBER_BITS) - 1)) + 1)


def ranks(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each name in alphabetical order, equal ones in the order given."""
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return rank


UNSTABLE_SECONDS = 30 * 60.0  # a host that became ready so much later than all others is unstable

# why a disk takes no replicas whatever its space, by code; the first code that holds counts
BARRED = (
    "",
    "its host is not ready",
    "its host is not schedulable",
    "scheduling is off on its host",
    "its host is being deleted",
    "its host is cordoned",
    "its host is being evicted",
    "its host lacks the engine",
    "its host lacks a tag of the node selector",
    "its host is tagged, and the volume has no node selector",
    "it is not ready",
    "scheduling is off on it",
    "it is being evicted",
    "it is of another type than the engine wants",
    "it lacks a tag of the disk selector",
    "it is tagged, and the volume has no disk selector",
)

# why nothing is done to a volume, by code
IDLE = (
    "",
    "the volume is faulted",
    "the volume is detached",
    "the volume is being migrated",
    "the engine is not as the volume wants it",
    "a rebuild is under way",
    "a replica is pinned",
)


@dataclass(frozen=True, eq=False)
class Bundle:
    """A problem, its state, and what goes with them.

    Parameters
    ----------
    problem : Problem
        What does not change.
    state : State
        Buffers of the kernels; each run on it changes them.
    room : Room
        Working space.
    slot : ndarray of int64, shape (K,)
        Slot of the state for each slot of the cluster's placement.
    idle : ndarray of uint8, shape (P,)
        Code of why nothing is done to a volume; 0 for those that are acted on.
    names : ReplicaNames
        Names of replicas by rank.

    Examples
    --------
    >>> from evenkeel.systems.longhorn import auto_balance as longhorn
    >>> hosts = [longhorn.Host(name="a", disks=[longhorn.Disk(name="d", maximum=1000)])]
    >>> held = [longhorn.Replica(name="r", host="a", disk="d")]
    >>> cluster = longhorn.cluster_of(hosts, [longhorn.Volume(name="v", size=10, replicas=held)])
    >>> made = bundle(cluster, Longhorn())
    >>> made.slot.tolist(), made.idle.astype(bool).tolist()
    ([0, 1, 2], [True])
    """

    problem: Problem
    state: State
    room: Room
    slot: NDArray[np.int64]
    idle: NDArray[np.uint8]
    names: ReplicaNames


def system_of(cluster: Cluster) -> System:
    """Return the Longhorn system of a cluster."""
    faults = FaultList()
    if not isinstance(cluster.native, System):
        message = f"must be a Longhorn System: {only_for('Longhorn', cluster)}"
        faults.add("cluster.native", type(cluster.native).__name__, message)
    faults.raise_if_any()
    system: System = cluster.native
    return system


def bundle(cluster: Cluster, options: Longhorn) -> Bundle:
    """Turn a cluster into the kernels' arrays."""
    system = system_of(cluster)
    settings = system.settings.overridden(options)
    kind, barred = _classes(system, settings)
    beat()
    idle, fresh = _idle(system, cluster)
    unstable = unstable_host(system)
    problem = _problem(system, settings, options, kind, barred, idle, fresh, unstable, cluster)
    beat()
    names = ReplicaNames(system.replicas.names, system.volumes.names)
    beat()
    state, slot = _state(system, settings, cluster, unstable, names)
    beat()
    width = int(np.diff(state.first).max(initial=0))
    return Bundle(problem, state, _room(system, width), slot, idle, names)


def efforts(system: System, settings: Settings) -> NDArray[np.uint8]:
    """Return how far each volume is balanced: its own setting, unless ignored, wins."""
    own = system.volumes.auto_balance
    everywhere = AUTO_BALANCE.index(settings.replica_auto_balance)
    return np.where(own == IGNORED, everywhere, own - 1).astype(np.uint8)


def unstable_host(system: System) -> int:
    """Return the ready host that became ready more than half an hour after all others."""
    ready = np.flatnonzero(system.hosts.ready)
    since = system.hosts.ready_since[ready]
    if len(ready) < 2 or np.isnan(since).any():
        return -1
    order = np.argsort(since, kind="stable")
    apart = since[order[-1]] - since[order[-2]]
    return int(ready[order[-1]]) if apart > UNSTABLE_SECONDS else -1


def closed(system: System, settings: Settings) -> list[NDArray[np.bool_]]:
    """Return which disks take no replicas: by each of six reasons of hosts, and three of disks."""
    hosts, disks = system.hosts, system.disks
    on = disks.host
    return [
        ~hosts.ready[on],
        ~hosts.schedulable[on],
        ~hosts.allow_scheduling[on],
        hosts.deleting[on],
        (hosts.cordoned & settings.disable_scheduling_on_cordoned_node)[on],
        hosts.evicting[on],
        ~disks.ready,
        ~disks.allow_scheduling,
        disks.evicting,
    ]


def unfit(
    system: System, settings: Settings, engine: int, node_selector: int, disk_selector: int
) -> list[NDArray[np.bool_]]:
    """Return which take none of a class of volumes: by three reasons of hosts, three of disks."""
    hosts, disks = system.hosts, system.disks
    found = [~hosts.engines[engine][disks.host]]
    for tags, count, asked, bare_takes_all in (
        (
            hosts.tags, len(hosts), system.selectors[node_selector],
            settings.allow_empty_node_selector_volume,
        ),
        (
            disks.tags, len(disks), system.selectors[disk_selector],
            settings.allow_empty_disk_selector_volume,
        ),
    ):  # fmt: skip
        none = np.zeros(count, np.bool_)
        found.append(np.any([none, *(~tags.get(tag, none) for tag in asked)], axis=0))
        tagged = np.any([none, *tags.values()], axis=0)
        found.append(tagged & (not asked and not bare_takes_all))
    kind = disks.block != system.engine_block[engine]
    by_host = [found[0], found[1][disks.host], found[2][disks.host]]
    return [*by_host, kind, found[3], found[4]]


def _classes(system: System, settings: Settings) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the class of each volume, and what bars each disk from each class."""
    volumes = system.volumes
    asked = np.stack([volumes.engine, volumes.node_selector, volumes.disk_selector], axis=1)
    if len(asked) == 0:
        return np.zeros(0, np.int32), np.zeros((0, len(system.disks)), np.uint8)
    classes, kind = distinct_rows(asked.astype(np.int64))
    shut = closed(system, settings)
    barred = np.zeros((len(classes), len(system.disks)), np.uint8)
    for c, one in enumerate(classes.tolist()):
        own = unfit(system, settings, *one)
        reasons = [*shut[:6], *own[:3], *shut[6:], *own[3:]]  # as in BARRED
        for code in range(len(reasons), 0, -1):
            barred[c][reasons[code - 1]] = code
    return kind.reshape(-1).astype(np.int32), barred


def _idle(system: System, cluster: Cluster) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return why nothing is done to each volume, and which have no replicas yet."""
    volumes, placement = system.volumes, cluster.placement
    held = np.bincount(placement.owner[placement.node >= 0], minlength=len(volumes))
    free = placement.owner[(placement.flags & Flag.PINNED) == 0]
    faulted = volumes.robustness == FAULTED
    fresh = (held == 0) & ~faulted
    reasons = [
        faulted,
        (volumes.attached < 0) & ~fresh,
        volumes.migrating,
        ~volumes.in_sync,
        volumes.rebuilding,
        np.bincount(free, minlength=len(volumes)) == 0,  # a pinned volume, not a replica alone
    ]
    idle = np.zeros(len(volumes), np.uint8)
    for code in range(len(reasons), 0, -1):
        idle[reasons[code - 1]] = code
    return idle, fresh


def _problem(
    system: System,
    settings: Settings,
    options: Longhorn,
    kind: NDArray[np.int32],
    barred: NDArray[np.uint8],
    idle: NDArray[np.uint8],
    fresh: NDArray[np.bool_],
    unstable: int,
    cluster: Cluster,
) -> Problem:
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    by_host = np.argsort(disks.host, kind="stable")
    first_disk = np.searchsorted(disks.host[by_host], np.arange(len(hosts) + 1))
    local = volumes.locality != DATA_LOCALITY.index("disabled")
    return Problem(
        zone=writable(hosts.zone),
        host=writable(disks.host),
        first_disk=first_disk.astype(np.int64),
        disk=by_host.astype(np.int32),
        host_rank=ranks(hosts.names).astype(np.int32),
        disk_rank=ranks(disks.names).astype(np.int32),
        ready=writable(hosts.ready),
        barred=barred,
        maximum=writable(disks.maximum),
        reserved=disks.kept(settings),
        minimal=part_of(disks.maximum, settings.storage_minimal_available_percentage),
        promised=promised(disks.maximum, disks.kept(settings), settings),
        wanted=writable(volumes.replicas),
        size=writable(volumes.size),
        actual=writable(volumes.actual),
        effort=efforts(system, settings),
        host_soft=soft(volumes.node_soft, settings.replica_soft_anti_affinity),
        zone_soft=soft(volumes.zone_soft, settings.replica_zone_soft_anti_affinity),
        disk_soft=soft(volumes.disk_soft, settings.replica_disk_soft_anti_affinity),
        local=np.where(local, volumes.attached, -1).astype(np.int32),
        kind=kind,
        acts=idle == 0,
        whole=_whole(system, cluster, fresh),
        fresh=fresh,
        unstable=unstable,
        pressure=settings.replica_auto_balance_disk_pressure_percentage,
        zones_first=options.order == "zone-then-node",
        rebuilds=settings.concurrent_replica_rebuild_per_node_limit > 0,
    )


def _whole(system: System, cluster: Cluster, fresh: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which volumes are healthy, or will be once they have all replicas."""
    volumes, replicas = system.volumes, system.replicas
    serving = replicas.healthy & replicas.active & (cluster.placement.node >= 0)
    healthy = np.bincount(cluster.placement.owner[serving], minlength=len(volumes))
    missing = (volumes.robustness == DEGRADED) & (healthy < volumes.replicas)
    begun = fresh & (volumes.attached >= 0)
    return np.asarray((volumes.robustness == HEALTHY) | missing | begun)


def _state(
    system: System, settings: Settings, cluster: Cluster, unstable: int, names: ReplicaNames
) -> tuple[State, NDArray[np.int64]]:
    placement, volumes = cluster.placement, system.volumes
    width = np.diff(placement.first) + volumes.replicas + 1
    first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    owner = np.repeat(np.arange(len(volumes), dtype=np.int32), width)
    slot = np.arange(len(placement.node)) - placement.first[placement.owner]
    slot = slot + first[placement.owner]
    node = np.full(int(first[-1]), -1, np.int32)
    marks = np.zeros(len(node), np.uint8)
    rank = np.zeros(len(node), np.int64)
    node[slot] = placement.node
    marks[slot] = _marks(system, settings, cluster, unstable)
    rank[slot] = names.rank
    disks, nothing = len(system.disks), np.full(len(node), -1, np.int64)
    state = State(
        first=first,
        owner=owner,
        node=node,
        marks=marks,
        rank=rank,
        after=nothing,
        before=nothing.copy(),
        head=np.full(disks, -1, np.int64),
        tail=np.full(disks, -1, np.int64),
        available=system.disks.available.copy(),
        scheduled=system.disks.scheduled.copy(),
        next_rank=names.next_rank,
        work=np.zeros(1, np.int64),
    )
    kernel.link_all(state, slot[np.argsort(names.rank)])
    return state, slot


def waiting_until(system: System, settings: Settings) -> NDArray[np.float64]:
    """Return until when Longhorn waits for failed replicas that can serve again, (K,), or NaN."""
    replicas = system.replicas
    until = replicas.failed_at + settings.replica_replenishment_wait_interval
    waits = replicas.failed & replicas.reusable & (system.now < until)
    return np.where(waits, until, np.nan)


def _marks(
    system: System, settings: Settings, cluster: Cluster, unstable: int
) -> NDArray[np.uint8]:
    replicas, node = system.replicas, cluster.placement.node
    old = np.zeros(len(node), np.bool_)
    if unstable >= 0:
        there = np.append(system.disks.host, -1)[node] == unstable
        old = there & (replicas.healthy_at < system.hosts.ready_since[unstable])
    unnamed = np.array([not name for name in replicas.names], np.bool_)  # placed by another solve
    marks = np.zeros(len(node), np.int64)
    for mark, has in (
        (kernel.HEALTHY, replicas.healthy | unnamed),
        (kernel.FAILED, replicas.failed),
        (kernel.EVICTING, replicas.evicting),
        (kernel.ACTIVE, replicas.active | unnamed),
        (kernel.REUSABLE, replicas.reusable & replicas.failed),
        (kernel.WAITING, ~np.isnan(waiting_until(system, settings))),
        (kernel.SOURCE, replicas.clone_source),
        (kernel.OLD, old),
    ):
        marks |= mark * has
    return np.where(node >= 0, marks, 0).astype(np.uint8)


def _room(system: System, width: int) -> Room:
    hosts, zones, disks = len(system.hosts), len(system.hosts.zone_names), len(system.disks)
    return Room(
        host_count=np.zeros(hosts, np.int32),
        zone_count=np.zeros(zones, np.int32),
        host_all=np.zeros(hosts, np.int32),
        zone_all=np.zeros(zones, np.int32),
        host_kept=np.zeros(hosts, np.int32),
        zone_kept=np.zeros(zones, np.int32),
        takes=np.zeros(hosts, np.bool_),
        verdict=np.zeros(disks, np.uint8),
        tier=np.zeros(disks, np.uint8),
        candidate=np.zeros(disks, np.bool_),
        usable=np.zeros(disks, np.int64),
        held=np.zeros(disks, np.bool_),
        itself=np.arange(disks, dtype=np.int32),
        host_total=np.zeros(hosts, np.int64),
        host_spread=np.zeros(hosts, np.int64),
        host_fit=np.zeros(hosts, np.bool_),
        disk_total=np.zeros(disks, np.int64),
        disk_spread=np.zeros(disks, np.int64),
        disk_fit=np.zeros(disks, np.bool_),
        listed=np.zeros(width, np.bool_),
        before=np.zeros(kernel.GAINS, np.int64),
        after=np.zeros(kernel.GAINS, np.int64),
    )


LIMITED = (
    "Limited node redundancy: at least one healthy replica is running at the same node as another"
)
SHOWN = 5


def sharing_a_host(
    cluster: Cluster, node: NDArray[np.int32], healthy: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Find the volumes of which two healthy replicas stand on one host."""
    at = np.flatnonzero((node >= 0) & healthy)
    hosts = len(system_of(cluster).hosts)
    owner = cluster.placement.owner[at].astype(np.int64)
    both = np.sort(owner * max(hosts, 1) + system_of(cluster).disks.host[node[at]])
    return np.unique(both[1:][both[1:] == both[:-1]] // max(hosts, 1))


def limited_redundancy(
    cluster: Cluster, node: NDArray[np.int32], healthy: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Warn of volumes of which two healthy replicas stand on one host."""
    volumes = sharing_a_host(cluster, node, healthy)
    if len(volumes) == 0:
        return ()
    names = [cluster.partitions.names[v] for v in volumes[:SHOWN].tolist()]
    more = ", ..." if len(volumes) > SHOWN else ""
    count = "1 volume" if len(volumes) == 1 else f"{len(volumes):,} volumes"
    return (LIMITED, f"{count} with limited node redundancy: {', '.join(names)}{more}")


MOST_NAMED = 5
MAY_RETURN = "a failed replica may return"  # why nothing is built yet where Longhorn waits


def waiting_notice(cluster: Cluster, settings: Settings) -> str:
    """Return a note of the volumes that wait for failed replicas; "" where none does."""
    system = system_of(cluster)
    until = waiting_until(system, settings)
    owner = cluster.placement.owner
    if len(until) != len(owner):
        return ""  # the slots are of another moment than the resources
    volumes = np.unique(owner[~np.isnan(until)]).tolist()
    if not volumes:
        return ""
    names = cluster.partitions.names
    return (
        f"{counted(len(volumes), 'volume')} with failed replicas that may return: Longhorn builds "
        f"others from {_time(float(np.nanmin(until)))} on "
        f"(replica-replenishment-wait-interval, {settings.replica_replenishment_wait_interval} s), "
        f"and it is taken to be {_time(system.now)}; --now sets the time: "
        f"{some_of(volumes, names.__getitem__, MOST_NAMED)}"
    )


IN_PLACE = "a failed one is built anew where it is, by Longhorn itself"


def rebuilt_notice(cluster: Cluster, settings: Settings) -> str:
    """Return a note of the volumes whose failed replicas are on live disks; "" for none."""
    system, placement = system_of(cluster), cluster.placement
    until = waiting_until(system, settings)
    if len(until) != len(placement.node):
        return ""  # the slots are of another moment than the resources
    back = system.replicas.failed & np.isnan(until) & (placement.node >= 0)
    back[back] = cluster.nodes.alive[placement.node[back]]
    volumes = np.unique(placement.owner[back]).tolist()
    names = some_of(volumes, cluster.partitions.names.__getitem__, MOST_NAMED)
    number = counted(len(volumes), "volume")
    return f"{number} short of a replica, since {IN_PLACE}: {names}" if volumes else ""


def stay_degraded(
    cluster: Cluster, settings: Settings, node: NDArray[np.int32], why: Callable[[int], str]
) -> tuple[str, ...]:
    """Warn of volumes that have fewer serving replicas than are wanted, by the reason, or more."""
    system, was = system_of(cluster), cluster.placement
    leaves = system.replicas.failed | system.replicas.evicting
    serves = (node >= 0) & ~(leaves & (node == was.node))
    count = np.bincount(was.owner[serves], minlength=len(system.volumes))
    by_reason: dict[str, list[int]] = {}
    for v in np.flatnonzero(count < system.volumes.replicas).tolist():
        by_reason.setdefault(why(v), []).append(v)
    names = cluster.partitions.names
    more = np.flatnonzero(count > system.volumes.replicas).tolist()
    surplus = (
        f"{counted(len(more), 'volume')} with more replicas than wanted, which Longhorn keeps "
        f"while auto-balance is disabled: {some_of(more, names.__getitem__, MOST_NAMED)}"
    )
    waiting = waiting_notice(cluster, settings) if MAY_RETURN in by_reason else ""
    return tuple(
        f"{counted(len(volumes), 'volume')} short of replicas that may stay, since {reason}: "
        f"{some_of(volumes, names.__getitem__, MOST_NAMED)}"
        for reason, volumes in by_reason.items()
        if reason != MAY_RETURN
    ) + tuple(filter(None, [waiting, surplus if more else ""]))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
