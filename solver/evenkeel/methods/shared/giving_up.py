"""Choose surplus replicas to drop before a search, and keep the last replica in sync in place.

A search levels nodes, and moves a replica to the node of one that it dropped. Where the dropped one
was out of sync, or where only the system elects leaders, the move would lose the better replica. To
repair a broken rule a search moves any replica that fits, though it may be the last one in sync.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit, domain_of
from evenkeel.measure.binding import partition_scope
from evenkeel.measure.elections import ANYWHERE, electable
from evenkeel.measure.regressions import regressions
from evenkeel.measure.rows import replicas_of
from evenkeel.methods.contract import Request
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import marked, unchanged
from evenkeel.model.limits import Limits, node_counts
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only


def with_what_stays(request: Request) -> Request:
    """Return a request in which every replica of a partition that stays as it is is pinned."""
    placement = request.cluster.placement
    held = unchanged(placement)[placement.owner]
    held &= (placement.flags & Flag.PINNED) == 0
    return replace(request.pinned(held), proven=request.proven) if held.any() else request


def without_surplus(request: Request, passed: NDArray[np.int64] | None = None) -> Request:
    """Return a request in which replicas that must go have no node, and none takes their place."""
    # It concerns partitions with more replicas than wanted, of which some are out of sync or one is
    # the elected leader: the best stay, even on a node to be emptied, from which they move. Where
    # something would be worse without the one that goes first, another goes, after as many as were
    # ``passed (P,)`` over; where that is so of all, or limits keep one, the partition is pinned.
    cluster, before = request.cluster, request.cluster.placement
    concerned = _concerned(cluster)
    if not concerned.any():
        return request
    budget = _Budget(cluster, request.limits)
    gone = np.zeros(len(before.node), bool)
    passed = np.zeros(len(before), np.int64) if passed is None else passed
    held = passed >= np.diff(before.first)
    leader, elected = before.leader.copy(), electable(cluster)
    for p, going, best in _surplus(cluster, np.flatnonzero(concerned & ~held), passed):
        hands_on = before.leader_replica[p] in going
        lives = hands_on and cluster.nodes.alive[before.leader_node[p]]
        behind = len(elected) > 0 and elected[best] != ANYWHERE
        if not (lives and behind) and budget.allows(going, lives):
            gone[going] = True
            if hands_on:
                unled = behind or not cluster.nodes.may_lead[before.node[best]]
                leader[p] = -1 if unled else best - before.first[p]
        else:
            held[p] = True
    node = read_only(np.where(gone, np.int32(-1), before.node))
    after = before.replaced(node, leader)
    worse = regressions(cluster, after, audit(cluster, after)).partitions & concerned & ~held
    if worse.any():
        return without_surplus(request, passed + worse)
    flags = np.where(held[before.owner], before.flags | Flag.PINNED, before.flags)
    placement = replace(
        before, node=node, leader=read_only(leader),
        flags=read_only(flags.astype(before.flags.dtype)),
    )  # fmt: skip
    places = np.column_stack([before.owner[gone], before.node[gone]]).astype(np.int32)
    forbidden = np.unique(np.concatenate([cluster.forbidden, places]), axis=0)
    start = request.start
    if start is before:
        start = placement
    else:
        stays = np.where(gone & (start.node == before.node), np.int32(-1), start.node)
        start = start.replaced(stays, start.leader)
    return replace(
        request, cluster=replace(cluster, placement=placement, forbidden=read_only(forbidden)),
        start=start, limits=budget.left, proven=None,
    )  # fmt: skip


def with_last_in_sync(request: Request) -> Request:
    """Return a request that moves no last replica in sync where the move of another will do."""
    # it will where the replica shares a crowded domain, or its node may only not lead: that replica
    # is pinned, unless its node has to be emptied
    cluster, placement = request.cluster, request.cluster.placement
    current = _current(placement)
    serves = np.append(cluster.nodes.serves, False)[placement.node]
    if not current.any() or (current | ~serves).all():
        return request
    scope = partition_scope(cluster)
    counts = (
        np.bincount(placement.owner[serves & one], minlength=len(placement))
        for one in (current, ~current)
    )
    synced, behind = counts
    evicted = (placement.flags & (Flag.EVICTING | Flag.ERROR)) != 0
    last = serves & current & ((synced == 1) & (behind > 0))[placement.owner] & ~evicted
    last &= placement.role == Role.VOTER
    k = np.flatnonzero(last)
    p, n = placement.owner[k], placement.node[k]
    bound = np.array([bool(one.required(voters=True)) for one in scope.demands], bool)
    stays = cluster.nodes.may_hold[n] & scope.open[scope.rule[p], n] & ~bound[scope.rule[p]]
    k, p, n = k[stays], p[stays], n[stays]
    moves = ~cluster.nodes.may_lead[n]
    others, which = replicas_of(placement, p)
    for binding in scope.bindings:
        if binding.kind != "spread":
            continue
        domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(binding.tier)]
        own = domain[n]
        alike = (domain_of(domain, placement.node[others]) == own[which]) & (own[which] >= 0)
        crowd = np.bincount(which[alike], minlength=len(p))
        amount = binding.amount[p]
        moves |= (amount > 0) & (crowd > amount)
    if not moves.any():
        return request
    held = np.zeros(len(placement.node), bool)
    held[k[moves]] = True
    return replace(request.pinned(held), proven=None)


def _current(placement: Placement) -> NDArray[np.bool_]:
    return np.asarray((placement.flags & (Flag.HEALTHY | Flag.CAUGHT_UP)) != 0)


def _concerned(cluster: Cluster) -> NDArray[np.bool_]:
    """Return which partitions have too many replicas, that differ, (P,)."""
    placement, parts = cluster.placement, cluster.partitions
    none = np.zeros(len(placement), bool)
    if not placement.flags.any():
        return none
    some = placement.node >= 0
    over = np.bincount(placement.owner[some], minlength=len(placement)) > parts.replicas
    if not over.any():
        return none
    current = _current(placement)
    synced = np.bincount(placement.owner[some & current], minlength=len(placement)) > 0
    behind = np.bincount(placement.owner[some & ~current], minlength=len(placement)) > 0
    differ = (synced & behind) | marked(placement, Flag.ELECTED)
    return np.asarray(over & differ & ~unchanged(placement))


def _surplus(
    cluster: Cluster, partitions: NDArray[np.int64], passed: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Go through partitions with the replicas of each that must go, and the best to lead then."""
    # Of replicas those stay that are pinned; that live; that wait for their dead node; an elected
    # leader; in sync; on a node that is not to be emptied; that meet their rules; with the fewest
    # others in their domains; the leader; on the emptiest node; in the lowest slot: the first of
    # these that tells them apart decides. The last in sync never goes.
    placement, nodes = cluster.placement, cluster.nodes
    parts, others = cluster.partitions, (placement.role != Role.VOTER).astype(np.int64)
    some = placement.node >= 0
    kind = 2 * placement.owner.astype(np.int64) + others
    held = np.bincount(kind[some], minlength=2 * len(placement))
    wanted = np.stack([parts.voters, parts.replicas - parts.voters], 1).ravel()
    current = _current(placement)
    pinned = (placement.flags & Flag.PINNED) != 0
    elected = (placement.flags & Flag.ELECTED) != 0
    scope = partition_scope(cluster)
    tiers = [
        sorted({
            cluster.topology.tier_index(limit.tier)
            for limit in demands.limits
            if limit.tier in cluster.topology.tiers and limit.kind != "max_domains"
        })
        for demands in scope.demands
    ]  # fmt: skip
    per_unit = np.divide(
        1.0, nodes.capacity, out=np.zeros_like(nodes.capacity), where=nodes.capacity > 0.0
    )
    load = np.zeros_like(nodes.capacity)
    at = np.flatnonzero(placement.node >= 0)
    np.add.at(load, placement.node[at], cluster.partitions.load.voter[placement.owner[at]])

    def worth(k: int, stands: list[int]) -> tuple[float, ...]:
        p, n = placement.owner[k], placement.node[k]
        domain = cluster.topology.domain[tiers[scope.rule[p]]]
        crowd = sum(int((domain[:, placement.node[j]] == domain[:, n]).sum()) for j in stands)
        return (
            nodes.serves[n], nodes.serves[n] | nodes.may_hold[n], elected[k], current[k],
            nodes.may_hold[n],
            scope.open[scope.rule[p], n], -crowd, k == placement.leader_replica[p],
            -(load[n] * per_unit[n]).max(initial=0.0), -k,
        )  # fmt: skip

    for p in partitions.tolist():
        stands = [k for k in range(*placement.first[p : p + 2].tolist()) if placement.node[k] >= 0]
        spare = held[2 * p : 2 * p + 2] - wanted[2 * p : 2 * p + 2]
        going = list[int]()
        for _ in range(int(spare.sum())):
            last = parts.replicas[p] > 0 and np.count_nonzero(current[stands]) == 1
            may = [k for k in stands if not pinned[k] and spare[others[k]] > 0]
            may = [k for k in may if not (last and current[k])]
            if not may:
                break
            may.sort(key=lambda k: worth(k, stands))
            goes = may[0 if going else min(int(passed[p]), len(may) - 1)]
            stands.remove(goes)
            going.append(goes)
            spare[others[goes]] -= 1
            load[placement.node[goes]] -= cluster.partitions.load.voter[p]
        leads = max(
            stands,
            key=lambda k: (not others[k], nodes.may_lead[placement.node[k]], worth(k, stands)),
            default=int(placement.first[p]) - 1,
        )
        yield p, np.array(going, np.int64), leads


class _Budget:
    """What limits let leave nodes and domains."""

    def __init__(self, cluster: Cluster, limits: Limits) -> None:
        self.cluster, self.limits = cluster, limits
        self.node: NDArray[np.int64] | None = None
        if limits.node_out is not None:
            self.node = node_counts(cluster, limits.node_out).copy()
        self.changes = limits.leader_changes
        topology = cluster.topology
        self.domain = {
            tier: np.full(int(topology.domain_count[topology.tier_index(tier)]), most)
            for tier, most in limits.domain_out.items()
        }

    def allows(self, going: NDArray[np.int64], hands_on: bool) -> bool:
        """Take off replicas that leave, a leader if one ``hands_on``; False where they may not."""
        lives = self.cluster.nodes.serves
        at = self.cluster.placement.node[going]
        at = at[lives[at]]
        spent = [] if self.node is None else [(self.node, at)]
        for tier, left in self.domain.items():
            domain = self.cluster.topology.domain[self.cluster.topology.tier_index(tier), at]
            spent.append((left, domain[domain >= 0]))
        took = [(left, np.bincount(which, minlength=len(left))) for left, which in spent]
        if any((left < more).any() for left, more in took) or (hands_on and self.changes == 0):
            return False
        self.changes = None if self.changes is None else self.changes - hands_on
        for left, more in took:
            left -= more
        return True

    @property
    def left(self) -> Limits:
        """Limits that what is left is within: of domains, what is left of the least."""
        node = self.limits.node_out if self.node is None else tuple(self.node.tolist())
        domain = {tier: int(left.min()) for tier, left in self.domain.items()}
        return replace(self.limits, node_out=node, domain_out=domain, leader_changes=self.changes)
