"""Restrict the target of a plan to what its steps can reach, and complete its leaders."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.measure.rows import earlier_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints, Ints64, Reals, Rows, read_only
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.throttle import Protocol


def still_listed(cluster: Cluster, target: Placement, unplaced: Ints64) -> tuple[Placement, Rows]:
    """Return a target in which unplaced replicas stay listed on dead nodes, and their slots."""
    # with fewer listed replicas the system would consider the partition complete
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
) -> tuple[Placement, Flags]:
    """Return a target, and the replicas that it gives up but no step takes off, (K,)."""
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
    cluster: Cluster, target: Placement, asked: Placement, unreplaced: Flags
) -> tuple[Placement, Flags]:
    """Return a target for protocols that name no replica on a dead node, and what waits, (K,)."""
    # Where a change lists all replicas of a partition, one that keeps a replica on a dead node
    # waits until that is replaced; so does the leader ``asked`` for. A replica that only is to join
    # a dead node blocks no others, and the lead returns to the preferred leader by an election
    # alone.
    start = cluster.placement
    if cluster.nodes.serves.all():
        return target, np.zeros(len(start.node), np.bool_)
    comes = np.append(~cluster.nodes.serves, False)[target.node] & (target.node != start.node)
    rest = replace(target, node=read_only(np.where(comes, start.node, target.node)))
    waits = _lists(rest, np.append(~cluster.nodes.serves, False)[rest.node] | unreplaced)
    changes = (target.node != start.node) | (target.role != start.role)
    leads = waits & (target.leader == asked.leader) & (target.leader != start.leader)
    leads &= target.leader_node >= 0
    preferred = ((start.flags & Flag.PREFERRED) != 0) & (target.node == start.node)
    returns = np.append(preferred, False)[target.leader_replica]
    changes[target.leader_replica[leads & ~returns]] = True
    leader = np.where(waits & ~leads, start.leader, target.leader)
    return replace(target, leader=read_only(leader)), waits[start.owner] & changes


def lists_lost(cluster: Cluster, target: Placement) -> Flags:
    """Return which partitions list a replica on a node that is down, or lack one, (P,)."""
    down = np.append(~cluster.nodes.serves, False)[target.node]
    return _lists(target, down | _unreplaced(cluster, target))


def _lists(target: Placement, replicas: Flags) -> Flags:
    """Return which partitions have some replicas, (P,)."""
    return np.asarray(np.bincount(target.owner[replicas], minlength=len(target)) > 0)


def _unreplaced(cluster: Cluster, target: Placement) -> Flags:
    """Return which lost replicas leave their slot empty in a partition that lacks some, (K,)."""
    start, wanted = cluster.placement, cluster.partitions.replicas
    lost = np.append(~cluster.nodes.serves, False)[start.node] & (target.node < 0)
    listed = np.bincount(target.owner[target.node >= 0], minlength=len(wanted))
    lacking = (wanted - listed)[start.owner]
    return np.asarray(lost & (earlier_of(start, lost) < lacking))


def led_where_there_is_room(cluster: Cluster, target: Placement, proposed: Ints) -> Placement:
    """Return a target whose partitions without a leader are led by the slots ``proposed (P,)``."""
    some = np.flatnonzero(proposed >= 0)
    leader = target.leader.copy()
    leader[some] = proposed[some]
    if len(some) == 0:
        return target.replaced(target.node, read_only(leader))
    load = cluster.partitions.load
    extra = load.leader[some] - load.voter[some]
    where, free = room(cluster, target)
    first = target.first[some]
    node = target.node[first + proposed[some]]
    for place in where[node].T:
        np.subtract.at(free, place, extra)
    short = np.asarray((free < 0.0).any(1))
    start = cluster.placement
    keeps = np.asarray(start.leader_node[some] == node)
    able = np.append(cluster.nodes.may_lead & cluster.nodes.serves, False)
    overloaded = short[where[node]].any(1) | ~(able[node] | keeps)
    for place in where[node[overloaded]].T:
        np.add.at(free, place, extra[overloaded])
    candidates = _candidates(cluster, target, able)
    for i in np.flatnonzero(overloaded).tolist():
        p = int(some[i])
        leader[p] = proposed[p] if keeps[i] else -1
        own = [int(proposed[p])] if able[node[i]] or keeps[i] else []
        for slot in (*own, *candidates(p)):
            place = where[target.node[first[i] + slot]]
            if (free[place] >= extra[i]).all():
                leader[p] = slot
                np.subtract.at(free, place, extra[i])
                break
        else:
            if keeps[i]:
                np.subtract.at(free, where[node[i]], extra[i])
    return target.replaced(target.node, read_only(leader))


def _candidates(cluster: Cluster, target: Placement, able: Flags) -> Callable[[int], list[int]]:
    """Return a function to the voters of a partition that may lead, those that stay first."""
    fit = able[target.node] & (target.role == Role.VOTER)
    comes = target.node != cluster.placement.node

    def of(partition: int) -> list[int]:
        row = slice(*target.first[partition : partition + 2].tolist())
        slots = np.flatnonzero(fit[row])
        return [int(slot) for slot in slots[np.argsort(comes[row][slots], kind="stable")]]

    return of


def room(cluster: Cluster, asked: Placement) -> tuple[Rows, Reals]:
    """Return places of all nodes, (N, 1 + T), and their limits less a target's loads, (M, D)."""
    # Places are nodes, and domains with a capacity; the last place is without limit. A limit is a
    # capacity, or what the beginning or the target carries where that is more.
    nodes, topology = cluster.nodes, cluster.topology
    count = len(nodes)
    start, end = (PlacementCounts.of(cluster, one).loads for one in (cluster.placement, asked))
    places, limits, loads = [np.arange(count)], [nodes.capacity], [(start, end)]
    size = count
    for tier, capacity in topology.tier_capacity.items():
        domain = topology.domain_with_nodes[topology.tier_index(tier)]
        inside = np.flatnonzero(nodes.carries & (domain >= 0))
        sums = np.zeros((2, *capacity.shape))
        for total, one in zip(sums, (start, end), strict=True):
            np.add.at(total, domain[inside], one[inside])
        place = np.full(count, -1, np.intp)
        place[inside] = size + domain[inside]
        places.append(place)
        limits.append(capacity)
        loads.append((sums[0], sums[1]))
        size += len(capacity)
    where = np.stack(places, 1).astype(np.intp)
    where[where < 0] = size
    where[~nodes.carries, 0] = size
    most = np.concatenate(limits)
    before, after = (np.concatenate(one) for one in zip(*loads, strict=True))
    most = np.maximum(most, np.maximum(before, after))
    endless = np.full((1, most.shape[1]), np.inf)
    with np.errstate(invalid="ignore"):
        free = np.concatenate([most * (1.0 + ROUNDING) - after, endless])
    return where, free


def in_bounds(cluster: Cluster, asked: Placement, target: Placement) -> Placement | None:
    """Return what a plan to a target is bound by if that is not the target itself."""
    other = _unlike(cluster, asked, target)
    if not other.any() or not _exceeds(cluster, asked, target):
        return None
    # what stays listed on a node that is down is what rules of its partition see
    listed = np.append(~cluster.nodes.serves, False)[target.node]
    return with_rows(target, other, asked, other[target.owner] & ~listed)


def as_far(cluster: Cluster, found: Placement, bound: Placement, target: Placement) -> Placement:
    """Return what was found on the way to a bound, as far as the target goes along with that."""
    which = _unlike(cluster, bound, target)
    return with_rows(found, which, target, which[target.owner])


def _unlike(cluster: Cluster, asked: Placement, target: Placement) -> Flags:
    """Return which partitions have live replicas or leaders that were not asked for, (P,)."""
    live = np.append(cluster.nodes.serves, False)
    differs = (asked.leader_node != target.leader_node) & live[target.leader_node]
    other = (asked.node != target.node) | (asked.role != target.role)
    differs[asked.owner[other & live[target.node]]] = True
    return np.asarray(differs)


def with_rows(placement: Placement, leaders: Flags, other: Placement, rows: Flags) -> Placement:
    """Return a placement with leaders (P,) and replicas (K,) of another."""
    return replace(
        placement,
        node=read_only(np.where(rows, other.node, placement.node)),
        role=read_only(np.where(rows, other.role, placement.role)),
        leader=read_only(np.where(leaders, other.leader, placement.leader)),
    )


def _exceeds(cluster: Cluster, asked: Placement, target: Placement) -> bool:
    """Whether a target may break a limit that another keeps."""
    grouped = (cluster.partitions.group_rule >= 0).any() or len(cluster.depends)
    if grouped and (asked.node != target.node).any():
        return True
    counts = [PlacementCounts.of(cluster, one) for one in (cluster.placement, asked, target)]
    start, end, now = (one.replicas for one in counts)
    most = cluster.nodes.max_replicas
    bound = cluster.nodes.carries & (most >= 0)
    if (bound & (now > np.maximum(most, np.maximum(start, end)))).any():
        return True
    where, free = room(cluster, asked)
    more = counts[2].loads - counts[1].loads
    for place in where.T:
        np.subtract.at(free, place, more)
    return bool((free < 0.0).any())


def out_of_reach(cluster: Cluster, target: Placement, waits: Flags, protocol: Protocol) -> Flags:
    """Return which replicas cannot join their node, (K,): it is down, or they wait, or for such."""
    # those of a partition wait together where the rest alone would break a rule that both ends
    # keep, or leave less after the loss of a domain than both do
    start = cluster.placement
    joins = (target.node != start.node) & (target.node >= 0)
    lost: Flags = waits | joins & ~np.append(cluster.nodes.serves, False)[target.node]
    transitions = cache(lambda: [audit(cluster, _serving(cluster, one)) for one in (start, target)])
    while lost.any():
        rest = within_reach(cluster, target, lost)
        serves = _serving(cluster, rest)
        found = regressions(cluster, serves, audit(cluster, serves), transitions)
        waits = np.zeros(len(start), bool)
        waits[start.owner[lost]] = True
        waits[waits] = found.partitions[waits] | _lacks(cluster, target, rest, waits, protocol)
        more = waits[start.owner] & ((rest.node != start.node) | (rest.role != start.role))
        if not more.any():
            break
        lost = lost | more
    return lost


def _serving(cluster: Cluster, placement: Placement) -> Placement:
    """Return a placement without what is on nodes that are down."""
    serves = np.append(cluster.nodes.serves, False)[placement.node]
    return replace(placement, node=read_only(np.where(serves, placement.node, np.int32(-1))))


def _lacks(
    cluster: Cluster, target: Placement, rest: Placement, which: Flags, protocol: Protocol
) -> Flags:
    """Return which of some partitions lack live replicas that both ends have, (n,)."""
    transitions = TransitionTable.between(
        cluster.placement, target, np.flatnonzero(which).astype(np.int32)
    )
    inside = transitions.replica >= 0
    node = np.where(inside, rest.node[transitions.replica], np.int32(-1))
    role = np.where(inside, rest.role[transitions.replica], np.uint8(0))
    return Safety(cluster, transitions, protocol).lacks(np.arange(len(transitions)), node, role)


def within_reach(cluster: Cluster, target: Placement, lost: Flags) -> Placement:
    """Return a target in which replicas that cannot join their node stay, and lead no more."""
    if not lost.any():
        return target
    return with_rows(target, _led_by(target, lost), cluster.placement, lost)


def in_full(target: Placement, lost: Flags, reached: Placement) -> Placement:
    """Return what was reached with the rest of the target, in the same slots."""
    if not lost.any():
        return reached
    return with_rows(reached, _led_by(target, lost), target, lost)


def _led_by(target: Placement, replicas: Flags) -> Flags:
    """Return which partitions some replicas lead, (P,)."""
    return np.append(replicas, False)[target.leader_replica]
