"""Audit of replicas: missing ones, forbidden nodes, and leaders."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.violations import Violations, violations
from evenkeel.measure.compare import joined
from evenkeel.measure.rows import at_node, replicas_of, stands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role


def misplaced_replicas(placed: PlacementCounts, before: Placement) -> list[Violations]:
    """Find replicas that are missing, too many, or where they may not be."""
    cluster, placement = placed.cluster, placed.placement
    nodes = cluster.nodes
    serves = nodes.serves
    found = []
    for kind, banned in (
        ("on_dead", ~nodes.may_hold & ~serves),
        ("not_kept", ~nodes.may_hold & serves),
    ):
        if placed.replicas[banned].any():
            bad = placed.where(banned)
            found += violations(
                kind, np.ones(len(bad)), partition=placed.partition(bad),
                node=placed.node_row[bad] - 1,
            )  # fmt: skip
    closed = nodes.may_hold & ~nodes.accepts
    if placed.replicas[closed].any():
        bad = np.flatnonzero(joined(before, placement) & at_node(closed, placement.node))
        found += violations(
            "not_accepted", np.ones(len(bad)), partition=placement.owner[bad],
            node=placement.node[bad],
        )  # fmt: skip
    found += _wrong_number(placed)
    if cluster.partitions.min_active.any():
        short = cluster.partitions.min_active - placed.per_partition(serves)
        bad = np.flatnonzero(short > 0)
        found += violations("min_active", short[bad], partition=bad)
    if len(cluster.forbidden):
        partition, node = cluster.forbidden.T
        hit = stands(placement, partition, node)
        found += violations(
            "forbidden", np.ones(int(hit.sum())), partition=partition[hit], node=node[hit]
        )
    if before.flags.any():
        pinned = np.flatnonzero(((before.flags & Flag.PINNED) != 0) & (before.node >= 0))
        owner, node = before.owner[pinned], before.node[pinned]
        left = ~stands(placement, owner, node)
        found += violations(
            "pinned", np.ones(int(left.sum())), partition=owner[left], node=node[left]
        )
    return found


def misplaced_in_rows(
    cluster: Cluster, placement: Placement, replicas: NDArray[np.int64]
) -> list[Violations]:
    """Find the same, and leaderless partitions, if only ``replicas (n,)`` are on dead nodes.

    Rows without them break nothing, and rows with them nothing else.
    """
    serves = cluster.nodes.serves
    waits = np.sort(replicas)
    owner = placement.owner[waits]
    found = violations("on_dead", np.ones(len(waits)), partition=owner, node=placement.node[waits])
    partitions = owner[np.append(True, owner[1:] != owner[:-1])]
    least = cluster.partitions.min_active[partitions]
    if least.any():
        row, which = replicas_of(placement, partitions)
        live = np.bincount(which[at_node(serves, placement.node[row])], minlength=len(partitions))
        bad = least > live
        found += violations("min_active", (least - live)[bad], partition=partitions[bad])
    bad = (cluster.partitions.replicas[partitions] > 0) & (placement.leader[partitions] < 0)
    if bad.any() and has_leaders(cluster):
        found += violations("leaderless", np.ones(int(bad.sum())), partition=partitions[bad])
    return found


def misplaced_leaders(placed: PlacementCounts) -> list[Violations]:
    """Find partitions without a leader, and leaders that may not lead.

    A cluster in which no partition names a leading slot has no leaders, and is asked for none.
    """
    cluster, placement = placed.cluster, placed.placement
    found = []
    wanted = cluster.partitions.replicas > 0
    at = placement.leader_node
    if placed.leaders.sum() < len(wanted) and has_leaders(cluster):
        bad = np.flatnonzero(wanted & (at < 0))
        found += violations("leaderless", np.ones(len(bad)), partition=bad)
    unfit = np.zeros(len(at), bool)
    banned = ~cluster.nodes.may_lead
    if placed.leaders[banned].any():
        unfit |= at_node(banned, at)
    if placement.role.any():
        led = np.flatnonzero(at >= 0)
        unfit[led] |= placement.role[placement.leader_replica[led]] != Role.VOTER
    bad = np.flatnonzero(unfit)
    return found + violations("leader", np.ones(len(bad)), partition=bad, node=at[bad])


def _wrong_number(placed: PlacementCounts) -> list[Violations]:
    """Find partitions with fewer replicas than wanted, or with more that may stay."""
    placement = placed.placement
    wanted = placed.cluster.partitions.replicas
    full = placed.uniform and placed.replicas.sum() == len(placement.node)
    if full and (wanted == placement.slots).all():
        return []
    short = wanted - placed.tallied(placed.node_row > 0)
    bad = np.flatnonzero(short > 0)
    found = violations("unassigned", short[bad], partition=bad)
    over = placed.holding - wanted
    bad = np.flatnonzero(over > 0)
    return found + violations("surplus", over[bad], partition=bad)
