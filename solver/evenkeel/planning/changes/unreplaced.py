"""Unreplaced: lost replicas whose place nobody takes are taken off, or stay listed."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import earlier_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.asked import with_rows
from evenkeel.planning.protocols import Protocol


def still_listed(
    cluster: Cluster, target: Placement, unplaced: NDArray[np.int64]
) -> tuple[Placement, NDArray[np.intp]]:
    """Return a target in which what found no node stays on nodes that are down, and which it is.

    Nobody gives that up: who lists fewer replicas takes a partition for whole.
    """
    start, serves = cluster.placement, np.append(cluster.nodes.serves, True)
    node, role, leader = target.node.copy(), target.role.copy(), target.leader.copy()
    listed: list[int] = []
    for p in np.unique(target.owner[unplaced]).tolist():
        rows = np.arange(start.first[p], start.first[p + 1])
        lost = rows[~serves[start.node[rows]] & ~np.isin(start.node[rows], target.node[rows])]
        empty = rows[(target.node[rows] < 0) & np.isin(rows, unplaced)]
        for k, was in zip(empty.tolist(), lost.tolist(), strict=False):
            node[k], role[k] = start.node[was], start.role[was]
            if target.leader_node[p] < 0 and was == start.leader_replica[p]:
                leader[p] = k - rows[0]
            listed.append(was)
    node, role, leader = read_only(node), read_only(role), read_only(leader)
    return replace(target, node=node, role=role, leader=leader), np.array(listed, np.intp)


def with_unreplaced(
    cluster: Cluster, target: Placement, protocol: Protocol
) -> tuple[Placement, NDArray[np.bool_]]:
    """Return a target, and the replicas that it gives up but no step takes off, (K,).

    Those are all that partitions lack if the protocol has no step for that, or if they would list
    nobody who lives. One that is stranded stays as it is: what it would be copied from is down.
    """
    start, held = cluster.placement, stranded(cluster.placement)
    if held.any():
        target = with_rows(target, held, start, held[start.owner])
    if cluster.nodes.serves.all():
        return target, np.zeros(len(start.node), np.bool_)
    unreplaced = _unreplaced(cluster, target)
    if protocol.shrinks:
        lives = cluster.nodes.serves[target.node] & (target.node >= 0)
        left = np.bincount(target.owner[lives], minlength=len(target))
        unreplaced &= left[start.owner] == 0
    role = np.where(unreplaced, start.role, target.role)
    listed = np.append(unreplaced, False)[start.leader_replica] & (target.leader_node < 0)
    leader = np.where(listed, start.leader, target.leader)
    return replace(target, role=read_only(role), leader=read_only(leader)), unreplaced


def unlisted(
    cluster: Cluster, target: Placement, asked: Placement, unreplaced: NDArray[np.bool_]
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
    waits = _lists(rest, np.append(~cluster.nodes.serves, False)[rest.node] | unreplaced)
    changes = (target.node != start.node) | (target.role != start.role)
    leads = waits & (target.leader == asked.leader) & (target.leader != start.leader)
    leads &= target.leader_node >= 0
    changes[target.leader_replica[leads]] = True
    leader = np.where(waits & ~leads, start.leader, target.leader)
    return replace(target, leader=read_only(leader)), waits[start.owner] & changes


def lists_lost(cluster: Cluster, target: Placement) -> NDArray[np.bool_]:
    """Tell which partitions list a replica on a node that is down, or would but for lack, (P,)."""
    down = np.append(~cluster.nodes.serves, False)[target.node]
    return _lists(target, down | _unreplaced(cluster, target))


def _lists(target: Placement, replicas: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which partitions have some replicas, (P,)."""
    return np.asarray(np.bincount(target.owner[replicas], minlength=len(target)) > 0)


def _unreplaced(cluster: Cluster, target: Placement) -> NDArray[np.bool_]:
    """Tell which lost replicas leave their slot empty in a partition that lacks some, (K,)."""
    start, wanted = cluster.placement, cluster.partitions.replicas
    lost = np.append(~cluster.nodes.serves, False)[start.node] & (target.node < 0)
    listed = np.bincount(target.owner[target.node >= 0], minlength=len(wanted))
    lacking = (wanted - listed)[start.owner]
    return np.asarray(lost & (earlier_of(start, lost) < lacking))
