"""Read a target placement from another description of the same partitions."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.newcomers import with_unknown_domains
from evenkeel.model.placement import PREFERENCES, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import meant_name
from evenkeel.systems.registry import system_of


def target_by_name(cluster: Cluster, other: Cluster) -> Placement:
    """Return where another cluster has the partitions of this one; the others stay."""
    faults = FaultList()
    start, there = cluster.placement, other.placement
    place, numbers = _numbered(faults, cluster, other)
    _refuse_unknown(faults, cluster, other, numbers)
    node, leader, role = start.node.copy(), start.leader.copy(), start.role.copy()
    disk, named = np.full(len(node), -1, np.int32), _disks_named(faults, cluster, other)
    width, has = np.diff(start.first), np.diff(there.first)
    for q, p in enumerate(numbers.tolist()):
        if p >= 0 and has[q] != width[p]:
            name = other.partitions.names[q]
            message = f"needs the {int(width[p])} slots of partition {name}"
            faults.add(f"target: partitions[{q}]", int(has[q]), message)
        elif p >= 0:
            here, row = slice(*start.first[p : p + 2]), slice(*there.first[q : q + 2])
            node[here] = place[there.node[row]]
            role[here] = there.role[row]
            disk[here] = named[row]
            leader[p] = there.leader[q]
    faults.raise_if_any()
    placed = replace(start.replaced(node, leader), role=read_only(role))
    # a list states who is to lead
    found = np.isin(np.arange(len(start)), numbers)
    handed = found & (placed.leader_node != start.preferred_node)
    flags = np.where(handed[start.owner], start.flags & ~PREFERENCES, start.flags)
    placed = replace(placed, flags=read_only(flags))
    if placed.disk is None:
        return placed
    return replace(placed, disk=read_only(np.where(disk < 0, placed.disk, disk)))


def grown_by_name(cluster: Cluster, other: Cluster) -> tuple[Cluster, list[str]]:
    """Return a cluster with the further nodes that hold replicas of another, and their names."""
    there = np.unique(other.placement.node[other.placement.node >= 0]).tolist()
    known = {*cluster.nodes.names}
    new = [n for n in there if other.nodes.names[n] not in known]
    names = [other.nodes.names[n] for n in new]
    # with no node in common the other one is of somewhere else
    if len(new) in (0, len(there)):
        return cluster, []
    capacity = np.full((len(new), len(cluster.dimensions)), np.inf)
    for d, name in enumerate(cluster.dimensions):
        if name in other.dimensions and name not in system_of(other).uncapped(other):
            capacity[:, d] = other.nodes.capacity[new, other.dimensions.index(name)]
    domains = {}
    for tier in {*cluster.topology.tiers}.intersection(other.topology.tiers):
        row = other.topology.tiers.index(tier)
        labels = (*other.topology.label_names[row], "")
        domains[tier] = [labels[code] for code in other.topology.label[row, new].tolist()]
    return with_unknown_domains(cluster, capacity, names=names, domains=domains or None), names


def observed_by_name(cluster: Cluster, now: Cluster, *, all_nodes: bool = False) -> Cluster:
    """Return a later description of a cluster in the nodes and partitions of the first one."""
    names = (cluster.nodes.names, now.nodes.names), (cluster.partitions.names, now.partitions.names)
    alike = all(list(a) == list(b) for a, b in names)
    if alike and not missing_in(cluster, now):
        return now
    faults = FaultList()
    place, numbers = _numbered(faults, cluster, now)
    ours = np.flatnonzero(numbers >= 0)
    if not len(ours):
        _refuse_unknown(faults, cluster, now, numbers)
    faults.raise_if_any()
    start, there = cluster.placement, now.placement
    both = Placement(
        np.concatenate([there.first, there.first[-1] + start.first[1:]]),
        np.concatenate([place[there.node], start.node]),
        *(
            np.concatenate([getattr(there, name), getattr(start, name)])
            for name in ("role", "flags", "leader")
        ),
    )
    if start.disk is not None and there.disk is not None:
        disk = np.concatenate([_disks_named(FaultList(), cluster, now), start.disk])
        both = replace(both, disk=disk)
    row = len(there) + np.arange(len(start))
    row[numbers[ours]] = ours
    # with ``all_nodes``, those that the later one does not name have died, too
    live = dict(zip(now.nodes.names, now.nodes.alive.tolist(), strict=True))
    died = [n for n, name in enumerate(cluster.nodes.names) if not live.get(name, not all_nodes)]
    seen = cluster.down(died).with_placement(rows_alone(both, row))
    # what only the system's own format reads is of the same rows, and newer
    return replace(seen, native=now.native, native_format=now.native_format) if alike else seen


def beside_by_name(cluster: Cluster, later: Cluster) -> tuple[Cluster, Placement]:
    """Return a cluster and where a later one has its partitions, both in as many slots."""
    seen = observed_by_name(cluster, later).placement
    width = np.maximum(np.diff(cluster.placement.first), np.diff(seen.first))
    return cluster.with_placement(_in_slots(cluster.placement, width)), _in_slots(seen, width)


def _in_slots(placement: Placement, width: NDArray[np.int64]) -> Placement:
    """Return a placement with so many slots of each partition (P,), the added ones empty."""
    first = np.concatenate([[0], np.cumsum(width)])
    at = np.arange(len(placement.node)) + np.repeat(
        first[:-1] - placement.first[:-1], np.diff(placement.first)
    )

    def spaced(given: NDArray[Any], empty: int) -> NDArray[Any]:
        made = np.full(first[-1], empty, given.dtype)
        made[at] = given
        return read_only(made)

    return Placement(
        first=read_only(first),
        node=spaced(placement.node, -1),
        role=spaced(placement.role, 0),
        flags=spaced(placement.flags, 0),
        leader=placement.leader,
        disk=None if placement.disk is None else spaced(placement.disk, -1),
    )


def _disks_named(faults: FaultList, cluster: Cluster, other: Cluster) -> NDArray[np.int32]:
    """Return a cluster's number of the disk of each replica of another, (K,); -1 if not known."""
    there, disks = other.placement, cluster.disks
    if disks is None:
        return np.full(len(there.node), -1, np.int32)
    number = {name: i for i, name in enumerate(disks.names)}
    nodes, partitions = [*other.nodes.names, ""], other.partitions.names
    if there.disk is not None and other.disks is not None:
        listed = [*other.disks.names, ""]
        names = [listed[d] for d in there.disk.tolist()]
    else:
        given = system_of(other).named_disks(other)
        pairs = zip(there.owner.tolist(), there.node.tolist(), strict=True)
        names = [given.get(partitions[p], {}).get(nodes[n], "") for p, n in pairs]
    found = np.fromiter((number.get(name, -1) for name in names), np.int32, len(names))
    with_disks = {cluster.nodes.names[n] for n in np.unique(disks.node).tolist()}
    for k in np.flatnonzero((found < 0) & (there.node >= 0)).tolist():
        if names[k] and (node := nodes[there.node[k]]) in with_disks:
            q = int(there.owner[k])
            hint = meant_name(faults, names[k], number)
            message = f"is not a disk of node {node}{hint}"
            faults.add(f"target: partitions[{q}].disk[{k - there.first[q]}]", names[k], message)
    return found


def missing_in(cluster: Cluster, now: Cluster) -> list[str]:
    """Return the dimensions and tiers of a cluster that a later description lacks."""
    lacking = [name for name in cluster.dimensions if name not in now.dimensions]
    lacking += [tier for tier in cluster.topology.tiers if tier not in now.topology.tiers]
    known = {*system_of(cluster).uncapped(cluster), *lacking}
    return lacking + [
        f"capacities of {name}" for name in system_of(now).uncapped(now) if name not in known
    ]


def _numbered(
    faults: FaultList, cluster: Cluster, other: Cluster
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return a cluster's numbers of another's nodes, -1 behind them, and partitions; -1 if new."""
    nodes = {name: n for n, name in enumerate(cluster.nodes.names)}
    place = np.array([nodes.get(name, -2) for name in other.nodes.names] + [-1], np.int32)
    known = {name: p for p, name in enumerate(cluster.partitions.names)}
    numbers = np.array([known.get(name, -1) for name in other.partitions.names], np.int64)
    held = other.placement
    used = np.unique(held.node[(held.node >= 0) & (numbers[held.owner] >= 0)])
    for n in used[place[used] == -2].tolist():
        name = other.nodes.names[n]
        hint = meant_name(faults, name, nodes)
        message = f"is not a node of the cluster{hint}; --add-nodes adds new ones"
        faults.add(f"target: nodes[{n}]", name, message)
    return place, numbers


def _refuse_unknown(
    faults: FaultList, cluster: Cluster, other: Cluster, numbers: NDArray[np.int64]
) -> None:
    """Add a fault for each partition of another cluster that has no number in this one."""
    for q in np.flatnonzero(numbers < 0).tolist():
        name = other.partitions.names[q]
        hint = meant_name(faults, name, cluster.partitions.names)
        faults.add(f"target: partitions[{q}]", name, f"is not a partition of the cluster{hint}")
