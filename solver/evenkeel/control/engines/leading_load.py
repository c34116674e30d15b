"""Leading as a dimension of its own: not only the number of leaders is spread but their load.

A replica that leads takes the traffic. Where it weighs no more than its followers, as in Helix,
no other dimension shows that, and a node may lead few partitions that are all large.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.node_states import usable
from evenkeel.measure.wanted import has_leaders, wanted_load
from evenkeel.model.cluster import Cluster
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import read_only


def with_leading(cluster: Cluster) -> Cluster:
    """Return a cluster with one more dimension: what leaders weigh in the tightest one.

    Its capacity is that of the tightest dimension, so that nothing fits less than before.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[2.0]], placement=[[0, 1]])
    >>> wider = with_leading(c)
    >>> wider.dimensions, wider.partitions.load.leader.tolist()
    (('d0', 'leading d0'), [[2.0, 2.0]])
    """
    nodes, partitions = cluster.nodes, cluster.partitions
    full = utilisation(wanted_load(cluster), nodes.capacity[nodes.may_receive].sum(0))
    full = np.where(np.isfinite(full), full, 0.0)
    if not full.any() or not has_leaders(cluster):
        return cluster
    tight = int(full.argmax())
    weight = partitions.load.leader[:, tight : tight + 1]
    nothing = np.zeros_like(weight)
    following = _wider(partitions.load.voter, nothing)
    other = partitions.load.non_voter
    load = Loads(
        leader=_wider(partitions.load.leader, weight),
        voter=following,
        non_voter=following if other is partitions.load.voter else _wider(other, nothing),
    )
    shared = {
        level: _wider(capacity, np.full((len(capacity), 1), np.inf))
        for level, capacity in cluster.topology.tier_capacity.items()
    }
    name = f"leading {cluster.dimensions[tight]}"
    while name in cluster.dimensions:
        name += "'"
    return replace(
        cluster,
        nodes=replace(
            nodes,
            capacity=_wider(nodes.capacity, nodes.capacity[:, tight : tight + 1]),
            watermark=_wider(nodes.watermark, nodes.watermark[:, tight : tight + 1]),
        ),
        topology=replace(cluster.topology, tier_capacity=shared),
        partitions=replace(partitions, load=load),
        dimensions=(*cluster.dimensions, name),
        transient=read_only(np.append(cluster.transient, False)),
    )


def leading_target(cluster: Cluster, tolerance: float) -> NDArray[np.float64]:
    """Return what the leaders of each node should weigh at most."""
    nodes, partitions = cluster.nodes, cluster.partitions
    weight = partitions.load.leader[partitions.replicas > 0, -1]
    capacity = nodes.capacity[:, -1]
    able = nodes.may_lead & usable(cluster) & np.isfinite(capacity)
    room = np.where(able, capacity, 0.0)
    share = utilisation(weight.sum() * room, np.full(len(room), room.sum()))
    target = np.maximum((1.0 + tolerance) * share, share + weight.mean())
    return np.where(room > 0.0, target, np.inf)


def _wider(table: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.float64]:
    return read_only(np.hstack([table, column]))
