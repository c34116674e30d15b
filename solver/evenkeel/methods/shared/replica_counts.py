"""Wanted and actual numbers of replicas: slots to fill, and surplus replicas."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import has_leaders
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.runtime.memoize import memoize


def slots_kept(
    before: Placement, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Return whose node each slot takes for replicas with their old node to keep it, (K,).

    And the slots that lead then, on the same nodes.
    """
    order, first = np.arange(len(node)), before.first
    for p in np.unique(before.owner[(node != before.node) & (before.node >= 0)]).tolist():
        row = range(int(first[p]), int(first[p + 1]))
        for k in row:
            here = before.node[k]
            for i in row if node[order[k]] != here >= 0 else ():
                if node[order[i]] == here != before.node[i] and before.role[i] == before.role[k]:
                    order[i], order[k] = order[k], order[i]
    slot = np.argsort(order) - first[before.owner]
    leader, led = leader.copy(), np.flatnonzero(leader >= 0)
    leader[led] = slot[first[led] + leader[led]]
    return order, leader


def leading_slots(
    cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Return leading slots; a cluster without leaders keeps none."""
    # where no replica may lead, the node that led goes on by the slot that led, or by a voter that
    # it has then
    was = cluster.placement
    if not has_leaders(cluster):
        return was.leader
    may_lead = np.append(cluster.nodes.may_lead, False)
    if (
        len(node) and leader.min() >= 0
        and may_lead.take(node.take(was.first[:-1] + leader)).all()
    ):  # fmt: skip
        return leader.astype(np.int16)
    at = was.replaced(node, leader).leader_node
    unled = ~may_lead[at]
    handed = np.where(unled & (at != was.leader_node), -1, leader)
    # of the voters on that node the slot that led comes first, and so is written last
    led = np.arange(len(node)) == was.leader_replica[was.owner]
    replicas = np.flatnonzero(unled[was.owner] & (led | (was.role == Role.VOTER)))
    replicas = replicas[
        (node[replicas] >= 0) & (node[replicas] == was.leader_node[was.owner[replicas]])
    ]
    slot = replicas - was.first[was.owner[replicas]]
    order = np.argsort(slot == was.leader[was.owner[replicas]], kind="stable")
    handed[was.owner[replicas[order]]] = slot[order]
    return handed.astype(np.int16)


def serving(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the nodes of replicas that count: those on nodes that keep what they have."""
    holds = np.append(cluster.nodes.may_hold, False)
    return node if holds[:-1].all() else np.where(holds.take(node), node, np.int32(-1))


def kept(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int32]:
    """Leave what found no node where it was, while its partition is short."""
    if not (node < 0).any():
        return node
    owner = cluster.placement.owner
    # a replica pinned to a dead node serves no requests
    lives = np.append(cluster.nodes.alive, False).take(node)
    placed = np.bincount(owner[lives], minlength=len(cluster.partitions))
    short = placed < cluster.partitions.replicas
    return np.where((node < 0) & short[owner], cluster.placement.node, node).astype(np.int32)


def missing_places(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count the replicas wanted of each partition that have no node which may hold them, (P,)."""
    holding = cluster.placement.owner[at_node(cluster.nodes.may_hold, node)]
    placed = np.bincount(holding, minlength=len(cluster.partitions))
    missing: NDArray[np.int64] = np.maximum(cluster.partitions.replicas - placed, 0)
    return missing


def waits_in_place_of_another(
    cluster: Cluster, node: NDArray[np.int32], dropped: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """List those ``dropped (K,)`` that wait for their dead nodes, of partitions that are short."""
    placement, nodes = cluster.placement, cluster.nodes
    waits = at_node(nodes.may_hold & ~nodes.alive, placement.node)
    found = np.flatnonzero(dropped & waits & (node < 0))
    owner = placement.owner[found]
    short = missing_places(cluster, node)
    return found[_rank_in_run(owner) < short[owner]]


def wants_its_rows(cluster: Cluster) -> bool:
    """Return whether every partition wants as many replicas as it has slots, all of them voters."""
    placement, parts = cluster.placement, cluster.partitions

    def compare() -> bool:
        slots = np.diff(placement.first)
        alike = (slots == parts.replicas).all() and (parts.voters == parts.replicas).all()
        return bool(alike) and not placement.role.any()

    return memoize(placement, "wants its rows", compare, parts)


def slots_to_fill(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Choose the empty slots that must get a node so that each partition has what it wants."""
    # Voters and other replicas are counted apart. Slots whose replica still lives come before those
    # whose replica was lost, these before slots that never had one, then lower slots before higher.
    placement = cluster.placement
    empty = np.flatnonzero(node < 0)
    pinned = ((placement.flags[empty] & Flag.PINNED) != 0) & (placement.node[empty] >= 0)
    empty = empty[~pinned]
    chosen = np.zeros(len(node), bool)
    if wants_its_rows(cluster):
        chosen[empty] = True
        return chosen
    if len(empty) == 0:
        return chosen
    kind = _kind(cluster, empty)
    missing = _wanted(cluster, kind) - _present(cluster, node)[kind]
    never = placement.node[empty] < 0
    lives = at_node(cluster.nodes.serves, placement.node[empty])
    order = np.arange(len(empty))
    if never.any() != never.all() or lives.any() or (kind[1:] < kind[:-1]).any():
        order = np.lexsort((empty, never, ~lives, kind))
    rank = _rank_in_run(kind[order])
    fill = order[rank < missing[order]]
    chosen[empty[fill]] = True
    return chosen


def within_wanted(
    cluster: Cluster, node: NDArray[np.int32], filling: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Leave out the last of the slots to fill with which a partition has more than it wants."""
    if wants_its_rows(cluster):
        return filling
    slots = np.flatnonzero(filling)
    owner = cluster.placement.owner[slots]
    present = _present(cluster, node)
    room = cluster.partitions.replicas - present[0::2] - present[1::2]
    within = np.zeros(len(filling), bool)
    within[slots[_rank_in_run(owner) < room[owner]]] = True
    return within


def surplus_replicas(
    cluster: Cluster,
    node: NDArray[np.int32],
    candidates: NDArray[np.int64],
    utilization: NDArray[np.float64],
    breaches: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Choose one of the ``candidates`` to drop of each partition."""
    # The first of these decides: out of service, neither caught up nor healthy, of a role that has
    # too many, whose going leaves the fewest ``breaches (K,)``, no leader, on the fullest node, the
    # highest slot.
    placement = cluster.placement
    owner = placement.owner[candidates]
    kind = _kind(cluster, candidates)
    role_over = _present(cluster, node)[kind] > _wanted(cluster, kind)
    leads = placement.leader_replica[owner] == candidates
    at = node[candidates]
    lives = cluster.nodes.alive[at]
    current = (placement.flags[candidates] & (Flag.HEALTHY | Flag.CAUGHT_UP)) != 0
    order = np.lexsort(
        (
            -candidates, -utilization[at], leads, breaches[candidates], ~role_over, current, lives,
            owner,
        )
    )  # fmt: skip
    return np.sort(candidates[order[_rank_in_run(owner[order]) == 0]])


def may_be_dropped(
    cluster: Cluster, node: NDArray[np.int32], filling: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the replicas, none of them pinned, of partitions with more than they want."""
    if wants_its_rows(cluster):
        return np.zeros(0, np.int64)
    placement, wanted = cluster.placement, cluster.partitions.replicas
    present = _present(cluster, node)
    over = present[0::2] + present[1::2] - wanted
    slots = np.flatnonzero(filling)
    then = over + np.bincount(placement.owner[slots], minlength=len(over))
    if len(over) == 0 or then.max() <= 0:
        return np.zeros(0, np.int64)
    free = (node >= 0) & ((placement.flags & Flag.PINNED) == 0)
    found = np.flatnonzero(free & (then > 0)[placement.owner])
    kind = _kind(cluster, found)
    return found[(over > 0)[placement.owner[found]] | (present[kind] > _wanted(cluster, kind))]


def may_be_spared(
    cluster: Cluster, node: NDArray[np.int32], leaving: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return whether each leaving replica, in order, may be dropped without losing a live one."""
    if len(leaving) == 0:
        return np.zeros(0, bool)
    owner = cluster.placement.owner
    serves = at_node(cluster.nodes.serves, node)
    live = np.bincount(owner[serves], minlength=len(cluster.partitions))
    lives = serves[leaving]
    spared = np.ones(len(leaving), bool)
    of = owner[leaving[lives]]
    # of those that live, the last ones go
    rank = _rank_in_run(of[::-1])[::-1]
    spared[lives] = rank < (live - cluster.partitions.replicas)[of]
    return spared


def _kind(cluster: Cluster, replicas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Twice the partition, plus 1 for replicas that do not vote."""
    placement = cluster.placement
    votes = placement.role[replicas] == Role.VOTER
    kind: NDArray[np.int64] = 2 * placement.owner[replicas].astype(np.int64) + ~votes
    return kind


def _present(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return replicas with a node per kind, by counting missing ones: most slots are filled."""
    placement = cluster.placement
    kinds = 2 * len(cluster.partitions)
    slots = np.zeros(kinds, np.int64)
    slots[0::2] = np.diff(placement.first)
    if placement.role.any():
        slots = np.bincount(_kind(cluster, np.arange(len(node))), minlength=kinds)
    empty: NDArray[np.int64] = np.bincount(
        _kind(cluster, np.flatnonzero(node < 0)), minlength=kinds
    )
    return slots - empty


def _wanted(cluster: Cluster, kind: NDArray[np.int64]) -> NDArray[np.int64]:
    partition = kind // 2
    voters = cluster.partitions.voters[partition].astype(np.int64)
    return np.where(kind % 2 == 0, voters, cluster.partitions.replicas[partition] - voters)


def _rank_in_run(keys: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Place of each entry within its run of equal keys."""
    if len(keys) == 0:
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    lengths = np.diff(np.append(starts, len(keys)))
    return np.arange(len(keys)) - np.repeat(starts, lengths)
