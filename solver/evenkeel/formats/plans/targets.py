"""A target out of a file: where another description of a cluster has the same partitions."""

from dataclasses import replace

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only


def target_by_name(cluster: Cluster, other: Cluster) -> Placement:
    """Return where another cluster has the partitions of this one; the others stay.

    Raises
    ------
    InvalidInput
        If it has partitions, or nodes that hold any, that this one has not.
    """
    faults = FaultList()
    start, there = cluster.placement, other.placement
    nodes = {name: n for n, name in enumerate(cluster.nodes.names)}
    numbers = {name: p for p, name in enumerate(cluster.partitions.names)}
    place = np.array([nodes.get(name, -2) for name in other.nodes.names] + [-1], np.int32)
    used = np.unique(there.node[there.node >= 0])
    for n in used[place[used] == -2].tolist():
        faults.add(f"target: nodes[{n}]", other.nodes.names[n], "is not a node of the cluster")
    node, leader, role = start.node.copy(), start.leader.copy(), start.role.copy()
    width, has = np.diff(start.first), np.diff(there.first)
    for q, name in enumerate(other.partitions.names):
        p = numbers.get(name, -1)
        at = f"target: partitions[{q}]"
        if p < 0:
            faults.add(at, name, "is not a partition of the cluster")
        elif has[q] != width[p]:
            faults.add(at, int(has[q]), f"needs the {int(width[p])} slots of partition {name}")
        else:
            here, row = slice(*start.first[p : p + 2]), slice(*there.first[q : q + 2])
            node[here] = place[there.node[row]]
            role[here] = there.role[row]
            leader[p] = there.leader[q]
    faults.raise_if_any()
    return replace(start.replaced(node, leader), role=read_only(role))


def observed_by_name(cluster: Cluster, now: Cluster) -> Cluster:
    """Return a later description of a cluster in the nodes, partitions and slots of the first one.

    One that names the same is taken as it is; of another count where replicas are and who has died.

    Raises
    ------
    InvalidInput
        If it has partitions, or nodes that hold any, that the first one has not.
    """
    names = (cluster.nodes.names, now.nodes.names), (cluster.partitions.names, now.partitions.names)
    if all(list(a) == list(b) for a, b in names) and np.array_equal(
        cluster.placement.first, now.placement.first
    ):
        return now
    seen = cluster.with_placement(target_by_name(cluster, now))
    there = {name: n for n, name in enumerate(cluster.nodes.names)}
    died = [now.nodes.names[n] for n in np.flatnonzero(~now.nodes.alive).tolist()]
    return seen.down([there[name] for name in died if name in there])
