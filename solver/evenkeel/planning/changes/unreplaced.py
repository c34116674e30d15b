"""Unreplaced: lost replicas whose place nobody takes stay listed, until somebody does."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import earlier_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.asked import with_rows


def with_unreplaced(cluster: Cluster, target: Placement) -> tuple[Placement, NDArray[np.bool_]]:
    """Return a target, and the replicas that it takes off a partition that lacks some, (K,).

    What is lost is gone; but a system that is told to list fewer replicas takes the partition for
    whole. One that is stranded stays as it is: what it would be copied from is down.
    """
    start, held = cluster.placement, stranded(cluster.placement)
    if held.any():
        target = with_rows(target, held, start, held[start.owner])
    if cluster.nodes.serves.all():
        return target, np.zeros(len(start.node), np.bool_)
    unreplaced = _unreplaced(cluster, target)
    role = np.where(unreplaced, start.role, target.role)
    listed = np.append(unreplaced, False)[start.leader_replica] & (target.leader_node < 0)
    leader = np.where(listed, start.leader, target.leader)
    return replace(target, role=read_only(role), leader=read_only(leader)), unreplaced


def unlisted(
    cluster: Cluster, target: Placement, asked: Placement
) -> tuple[Placement, NDArray[np.bool_]]:
    """Return a target for who can name no replica on a node that is down, and what waits, (K,).

    Where a change names all replicas of a partition, one that goes on listing such a replica, since
    nobody takes its place, waits until somebody does; so does who was ``asked`` to lead it, as the
    list says who that is. What only is to join such a node does not hold up the others.
    """
    start = cluster.placement
    if cluster.nodes.serves.all():
        return target, np.zeros(len(start.node), np.bool_)
    comes = np.append(~cluster.nodes.serves, False)[target.node] & (target.node != start.node)
    rest = replace(target, node=read_only(np.where(comes, start.node, target.node)))
    waits = lists_lost(cluster, rest)
    changes = (target.node != start.node) | (target.role != start.role)
    leads = waits & (target.leader == asked.leader) & (target.leader != start.leader)
    leads &= target.leader_node >= 0
    changes[target.leader_replica[leads]] = True
    leader = np.where(waits & ~leads, start.leader, target.leader)
    return replace(target, leader=read_only(leader)), waits[start.owner] & changes


def lists_lost(cluster: Cluster, target: Placement) -> NDArray[np.bool_]:
    """Tell which partitions list a replica on a node that is down, or would but for lack, (P,)."""
    down = np.append(~cluster.nodes.serves, False)[target.node] | _unreplaced(cluster, target)
    return np.asarray(np.bincount(target.owner[down], minlength=len(target)) > 0)


def _unreplaced(cluster: Cluster, target: Placement) -> NDArray[np.bool_]:
    """Tell which lost replicas leave their slot empty in a partition that lacks some, (K,)."""
    start, wanted = cluster.placement, cluster.partitions.replicas
    lost = np.append(~cluster.nodes.serves, False)[start.node] & (target.node < 0)
    listed = np.bincount(target.owner[target.node >= 0], minlength=len(wanted))
    lacking = (wanted - listed)[start.owner]
    return np.asarray(lost & (earlier_of(start, lost) < lacking))
