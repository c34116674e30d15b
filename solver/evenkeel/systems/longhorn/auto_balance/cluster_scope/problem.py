"""A Longhorn system as a problem of space: what a plan for all volumes hands to ``balance``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.compare import joined
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.longhorn.auto_balance.cluster_scope.rules import hard_only, rules_of
from evenkeel.systems.longhorn.auto_balance.cluster_scope.volumes import Standings
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.auto_balance.system import System
from evenkeel.systems.longhorn.auto_balance.to_cluster import NO_ZONE, promised

DATA, PROMISED, LOAD = "bytes", "nominal", "load"
"""Dimensions: data to copy, nominal size, and what the caller says a replica costs otherwise."""


@dataclass(frozen=True, eq=False)
class SpaceProblem:
    """A problem of space, and where its slots come from.

    Parameters
    ----------
    cluster : Cluster
        The problem. Of a volume's replicas those come first that share their disk or host with
        another one, and of these the ones on fuller disks: what is mended by moving any of several
        replicas is mended by moving the first.
    slot : ndarray of int64, shape (K,)
        Slot of the system's own cluster that each of its slots stands for.
    may : ndarray of bool, shape (classes, N)
        Disks that new replicas of each class of volumes may be put on.
    like : ndarray of int64, shape (P,)
        Class of each volume.
    """

    cluster: Cluster
    slot: NDArray[np.int64]
    may: NDArray[np.bool_]
    like: NDArray[np.int64]

    def in_own_slots(self, node: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return disks of this problem's slots in the slots of the system's own cluster."""
        own = np.empty_like(node)
        own[self.slot] = node
        return own


def space_problem(
    cluster: Cluster,
    system: System,
    settings: Settings,
    found: Standings,
    load: Mapping[str, float] | None = None,
) -> SpaceProblem:
    """Build the cluster in which disks have the room that Longhorn would use, and no more."""
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    node = np.where(found.counts, cluster.placement.node, np.int32(-1))
    owner = cluster.placement.owner
    weight = np.stack([volumes.actual, volumes.size], axis=1).astype(np.float64)
    there = np.flatnonzero(node >= 0)
    held = np.zeros((len(disks), 2))
    np.add.at(held, node[there], weight[owner[there]])
    capacity = _room(system, settings, held)
    beat()
    dimensions = [DATA, PROMISED]
    if load:
        cost = np.array([float(load.get(name, 0.0)) for name in volumes.names])
        weight = np.column_stack([weight, cost])
        everything = float((cost * found.wanted).sum()) or 1.0
        capacity = np.column_stack([capacity, np.full(len(disks), everything)])
        dimensions.append(LOAD)
    on = disks.host
    alive = hosts.ready[on] & disks.ready
    receives = alive & receiving(system, settings)
    made = rules_of(system, settings, found.effort, found.wanted, receives, owner, node)
    beat()
    zones = [hosts.zone_names[z] or NO_ZONE for z in hosts.zone[on].tolist()]
    banned = np.stack([owner[found.leaving], node[found.leaving]], axis=1)
    slot = _sharing_first(system, owner, node, held[:, 0] / np.maximum(capacity[:, 0], 1.0))
    beat()
    problem = Cluster.from_arrays(
        capacity=capacity,
        load=weight,
        dimensions=dimensions,
        bytes=DATA,
        transient=dimensions[:2],
        domains={"zone": zones, "host": [hosts.names[h] for h in on.tolist()]},
        tags=made.tags,
        node_names=list(cluster.nodes.names),
        partition_names=list(volumes.names),
        alive=alive,
        accepts=receives,
        keeps=np.ones(len(disks), np.bool_),
        replicas=found.wanted,
        placement=node[slot],
        first=cluster.placement.first,
        flags=np.where(found.pinned[slot], np.uint16(Flag.PINNED), np.uint16(0)),
        leader=np.full(len(volumes), -1, np.int16),
        forbidden=banned,
        rules=made.rules,
        rule=made.rule,
    )
    return SpaceProblem(problem, slot, made.may, made.like)


def _sharing_first(
    system: System, owner: NDArray[np.int32], node: NDArray[np.int32], use: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the slots, within each volume in the order in which they had better move."""
    there = node >= 0
    host = np.where(there, system.disks.host[node], -1) if len(use) else node
    fullness = np.where(there, use[node], -1.0) if len(use) else np.zeros(len(node))
    together = [_alike(owner, place, there) for place in (node, host)]
    return np.lexsort((-fullness, *(~shared for shared in reversed(together)), owner))


def _alike(
    owner: NDArray[np.int32], place: NDArray[np.int32], there: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the replicas that share their place with another one of their volume, (K,) bool."""
    key = owner.astype(np.int64) * (int(place.max(initial=0)) + 2) + place + 1
    _, back, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(there & (count[back] > 1), np.bool_)


def overreached(
    space: SpaceProblem, problem: Cluster, node: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Find the volumes of which a new replica stands where Longhorn would not put it.

    That happens where another replica was to leave and then found no place, and where one of
    several that share a domain against a hard rule moves within it: to the search that is no worse,
    while the scheduler looks only at where the new replica would stand.
    """
    before = problem.placement
    after = before.replaced(node, before.leader)
    came = np.flatnonzero(joined(before, after))
    owner = before.owner[came]
    found = np.zeros(len(problem.partitions), np.bool_)
    found[owner[~space.may[space.like[owner], node[came]]]] = True
    found[owner[_crowded(problem, after, came)]] = True
    return found


def _crowded(
    problem: Cluster, placement: Placement, replicas: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of some replicas share a domain with more than hard rules allow, (n,) bool."""
    strict = replace(problem, rules=tuple(hard_only(rule) for rule in problem.rules))
    owner, node = placement.owner[replicas].astype(np.int64), placement.node[replicas]
    domain, width = problem.topology.domain_with_nodes, len(problem.nodes)
    crowded = np.zeros(len(replicas), np.bool_)
    for one in broken_limits(PlacementCounts.of(strict, placement)):
        for row in np.unique(one.tier):
            at = one.tier == row
            full = one.partition[at].astype(np.int64) * width + one.domain[at]
            crowded |= np.isin(owner * width + domain[row, node], full)
    return crowded


def left_alone(problem: Cluster, volumes: NDArray[np.bool_]) -> Cluster:
    """Return a problem in which some volumes stay as they are."""
    placement, partitions = problem.placement, problem.partitions
    flags = np.where(volumes[placement.owner], placement.flags | Flag.PINNED, placement.flags)
    held = np.bincount(placement.owner[placement.node >= 0], minlength=len(partitions))
    wanted = read_only(np.where(volumes, held, partitions.replicas).astype(np.int32))
    return replace(
        problem,
        placement=replace(placement, flags=read_only(flags.astype(np.uint16))),
        partitions=replace(partitions, replicas=wanted, voters=wanted),
        forbidden=read_only(problem.forbidden[~volumes[problem.forbidden[:, 0]]]),
    )


def receiving(system: System, settings: Settings) -> NDArray[np.bool_]:
    """Return the disks that Longhorn's scheduler looks at, space and tags apart."""
    hosts, disks = system.hosts, system.disks
    host = hosts.ready & hosts.schedulable & hosts.allow_scheduling & ~hosts.deleting
    host = host & ~hosts.evicting
    if settings.disable_scheduling_on_cordoned_node:
        host = host & ~hosts.cordoned
    disk = disks.ready & disks.allow_scheduling & ~disks.evicting
    return host[disks.host] & disk & (disks.maximum > 0) & (disks.available > 0)


def _room(system: System, settings: Settings, held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what this system's replicas may take up on each disk, (N, 2).

    The rules bind whoever schedules: what is on a disk already may stay, and so a disk that is
    beyond them is full, and not broken.
    """
    disks = system.disks
    whole, rest = np.divmod(disks.maximum, 100)
    minimal = settings.storage_minimal_available_percentage
    kept_free = whole * minimal + rest * minimal // 100
    free = disks.available - kept_free - 1  # more than that must stay free
    open_promise = promised(disks.maximum, disks.kept(settings), settings) - disks.scheduled
    room = np.stack([free, open_promise], axis=1).astype(np.float64)
    return held + np.maximum(room, 0.0)
