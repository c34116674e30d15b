"""Compute targets of goals within groups, the nodes that miss them, and bounds on moves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import lead_ranks, partition_scope, read_from
from evenkeel.measure.loads import has_leaders, keepers, usable
from evenkeel.measure.room import even_share, most_held, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals, group_tolerances, leads_in_groups, least_leaders
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import (
    ROUNDING,
    Flags,
    Ints,
    Ints32,
    Ints64,
    Reals,
    Rows,
    read_only,
)
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.runtime.printable import counted
from evenkeel.model.topology import NODE_TIER

FREE = 2**62  # target of a group without a goal
LISTED = 3  # groups that are named where they miss the goal, those furthest above it first


def group_targets(cluster: Cluster, goals: Goals | Cost) -> Ints64 | None:
    """Return the replicas of each group that a node may hold, (G,); None without such a goal."""
    # (1 + tolerance) x the share of a node, or what rules force on one where that is more, rounded
    # down to whole replicas, but never below the share rounded up; ``FREE`` for other groups
    if isinstance(goals, Cost) or (groups := goals.groups) is None:
        return None
    return memoize(
        cluster.partitions, f"replicas of groups within {groups}",
        lambda: _group_targets(cluster, groups), *_counted_from(cluster),
    )  # fmt: skip


def _counted_from(cluster: Cluster) -> tuple[object, ...]:
    """Return what nodes may hold of groups follows from, beside the partitions."""
    return cluster.nodes, cluster.placement, cluster.forbidden, *read_from(cluster)


class _Kinds(NamedTuple):
    """Partitions of one group under the same rules, taken together. U kinds, N nodes."""

    of: Rows  # (P,) kind of each partition
    group: Ints64  # (U,)
    rule: Ints64  # (U,) class of the scope

    @classmethod
    def found(cls, cluster: Cluster) -> "_Kinds":
        """Find those of a cluster."""
        scope = partition_scope(cluster)
        key = cluster.partitions.group.astype(np.int64) * len(scope.open) + scope.rule
        kinds, of = np.unique(key, return_inverse=True)
        return cls(of, *np.divmod(kinds, len(scope.open)))


def _group_targets(cluster: Cluster, groups: float | Mapping[str, float | None]) -> Ints64:
    partitions, scope, kinds = cluster.partitions, partition_scope(cluster), _Kinds.found(cluster)
    count, alike = len(partitions.group_names), np.ones(len(cluster.nodes))
    most = most_held(cluster, kinds.of, len(kinds.group), cluster.nodes.capacity, alike)
    wanted = np.bincount(kinds.of, partitions.replicas, len(kinds.group))
    forced = _shares(kinds, count, most, wanted, alike)
    for q, demands in enumerate(scope.demands):
        for limit in demands.limits:
            if limit.kind != "spread" or not limit.hard or limit.tier == NODE_TIER:
                continue
            of, members = np.flatnonzero(kinds.rule == q), np.flatnonzero(scope.rule == q)
            domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(limit.tier)]
            if (domain[most[of].any(0)] < 0).any():
                continue
            inside = domain == np.arange(domain.max(initial=-1) + 1)[:, None]
            places = ((most[of] @ inside.T) > 0).sum(1)
            which = np.searchsorted(of, kinds.of[members])
            rest = partitions.replicas[members] - limit.amount * (places[which] - 1)
            held = np.bincount(which, np.maximum(rest, 0), len(of))
            for nodes in inside if held.any() else ():
                there = most[of][:, nodes]
                share = np.where(there.any(1), even_share(there, held, alike[nodes]), 0.0)
                np.maximum.at(forced, kinds.group[of], share)
    tolerance = group_tolerances(FaultList(), cluster, "", groups)
    binds = np.isfinite(tolerance)
    target: Reals = np.maximum(
        np.floor((1.0 + np.where(binds, tolerance, 0.0)) * forced * (1.0 + ROUNDING)),
        np.ceil(forced * (1.0 - ROUNDING)),
    )
    return read_only(np.where(binds, target.astype(np.int64), FREE))


def _shares(kinds: _Kinds, groups: int, most: Ints64, wanted: Ints, weight: Reals) -> Reals:
    """Return the share of each group on a node of weight 1: of all of it, or of a kind; (G,)."""
    share = np.zeros(groups)
    np.maximum.at(share, kinds.group, even_share(most, wanted, weight))
    if len(np.unique(kinds.group)) < len(kinds.group):
        in_all = np.zeros((groups, len(weight)), np.int64)
        np.add.at(in_all, kinds.group, most)
        of_groups = np.bincount(kinds.group, wanted, groups)
        share = np.maximum(share, even_share(in_all, of_groups, weight))
    return share


def group_moves(cluster: Cluster, target: Ints64) -> int:
    """Return how many replicas must at least leave nodes that hold too many of their group."""
    partitions, placement, nodes = cluster.partitions, cluster.placement, cluster.nodes
    over = np.maximum(_table(cluster, placement.node) - target[:, None], 0)
    there = np.bincount(placement.owner[placement.node >= 0], minlength=len(partitions))
    surplus = np.maximum(there - partitions.replicas, 0)  # is dropped, which is no move
    dropped = np.bincount(partitions.group, surplus, len(target)).astype(np.int64)
    stays, goes = (
        np.bincount(placement.owner[np.append(one, False)[placement.node]], minlength=len(there))
        for one in (nodes.may_hold, nodes.serves & ~nodes.may_hold)
    )
    leaving = np.clip(partitions.replicas - stays, 0, goes).sum()
    crowded = np.maximum(over[:, nodes.may_hold].sum(1) - dropped, 0).sum()
    return int(crowded + leaving)


class LeadCells(NamedTuple):
    """Pairs of a group and a node, and how many leaders there are, should and may be. C cells."""

    group: Ints64
    node: Ints64
    led: Ints64
    least: Ints64
    most: Ints64
    which: Ints64  # the cell of each leader

    @property
    def off(self) -> Ints64:
        """How many leaders there are too many, or, below 0, too few, (C,)."""
        many, few = np.maximum(self.led - self.most, 0), np.maximum(self.least - self.led, 0)
        off: Ints64 = many - few
        return off


@dataclass(frozen=True)
class LeadGoals:
    """Leaders of each group that nodes may and should have. G groups, N nodes."""

    count: Ints64  # (G,) leaders wanted
    weight: Reals  # (N,) by which nodes share them, 0 of those that may not lead
    # (G,) leaders for a weight of 1 where they are as level as rules permit, and where a node has
    # as many as it may, in parts of one; inf without a goal
    share: Reals
    above: Reals
    asked: Ints64  # (G,) least leaders asked of each node
    fewest: Ints64  # (G,) those among them that every node can have
    takers: Flags  # (G, N) nodes of which they are asked; (0, N) if of none

    def most(self, group: Ints, node: Ints) -> Ints64:
        """Return the leaders of some groups that some nodes may have, as whole numbers."""
        leads = self.weight[node] > 0.0
        weight = np.where(leads, self.weight[node], 1.0)
        most = np.maximum(
            np.floor(self.above[group] * weight * (1.0 + ROUNDING)),
            np.ceil(self.share[group] * weight * (1.0 - ROUNDING)),
        )
        # any number on nodes that may not lead: the leaders leave them anyway
        most = np.where(leads, np.maximum(most, self.fewest[group]), np.inf)
        most = np.minimum(most, self.count.max(initial=0))
        whole: Ints64 = most.astype(np.int64)
        return whole

    def least(self, group: Ints, node: Ints) -> Ints64:
        """Return the leaders of some groups that some nodes should have at least."""
        if not len(self.takers):
            return np.zeros(len(group), np.int64)
        least: Ints64 = np.where(self.takers[group, node], self.fewest[group], 0)
        return least

    def cells(self, group: Ints32, node: Ints) -> LeadCells:
        """Return the cells of leaders of some groups on some nodes, and those that should lead."""
        nodes = len(self.weight)
        must = np.flatnonzero(self.takers & (self.fewest[: len(self.takers), None] > 0))
        key = np.concatenate([group.astype(np.int64) * nodes + node, must])
        cell, which = np.unique(key, return_inverse=True)
        led = np.bincount(which[: len(group)], minlength=len(cell))
        at = cell // nodes, cell % nodes
        return LeadCells(*at, led, self.least(*at), self.most(*at), which[: len(group)])

    def cells_of(self, cluster: Cluster, placement: Placement) -> LeadCells:
        """Return the cells of a placement."""
        node = placement.leader_node
        return self.cells(cluster.partitions.group[node >= 0], node[node >= 0])


def lead_goals(cluster: Cluster, goals: Goals | Cost) -> LeadGoals | None:
    """Return what goals ask of the leaders of groups; None where they ask nothing."""
    if isinstance(goals, Cost) or not leads_in_groups(goals) or not has_leaders(cluster):
        return None
    return memoize(
        cluster.partitions, f"leaders of groups within {goals.group_leaders, goals.min_leaders}",
        lambda: _lead_goals(cluster, goals), *_counted_from(cluster),
    )  # fmt: skip


def _lead_goals(cluster: Cluster, goals: Goals) -> LeadGoals:
    partitions, nodes = cluster.partitions, cluster.nodes
    scope, groups = partition_scope(cluster), len(partitions.group_names)
    kinds = _Kinds.found(cluster)
    weight = np.where(nodes.may_lead & usable(cluster), nodes.lead_weight, 0.0)
    led = partitions.replicas > 0
    asked = least_leaders(FaultList(), cluster, goals)
    most = most_held(cluster, kinds.of, len(kinds.group), nodes.capacity, weight, each=True)
    most[:, weight == 0.0] = 0
    members = np.bincount(kinds.of[led], minlength=len(kinds.group))
    share = _shares(kinds, groups, most, members, weight)
    share = np.maximum(share, _shares_beside_kept(cluster, kinds, most, led, weight))
    count = np.bincount(kinds.group, members, groups).astype(np.int64)
    takers = np.zeros((groups if asked.any() else 0, len(nodes)), bool)
    for q, demands in enumerate(scope.demands):
        of = np.flatnonzero(kinds.rule == q)
        open_ = most[of]
        if demands.lead:
            none = len(demands.lead)
            rank = np.where(open_ > 0, lead_ranks(cluster, demands.lead), none)
            open_ = np.where(rank == rank.min(1, keepdims=True, initial=none), open_, 0)
            np.maximum.at(share, kinds.group[of], even_share(open_, members[of], weight))
        if len(takers):
            takers[kinds.group[of]] |= (open_ > 0) & nodes.may_receive
    fewest = np.minimum(asked, count // np.maximum(takers.sum(1), 1)) if len(takers) else asked
    tolerance = group_tolerances(FaultList(), cluster, "", goals.group_leaders)
    binds, is_scarce = np.isfinite(tolerance), fewest < asked
    above = share * (1.0 + np.where(binds, tolerance, 0.0))
    if len(takers):
        by, each = (takers * weight).sum(1), count.astype(np.float64)
        np.divide(each, by, out=each, where=by > 0.0)
        share = np.where(is_scarce, np.maximum(share, each), share)
    share = np.where(binds | is_scarce, share, np.inf)
    above = np.where(is_scarce, 0.0, above)
    return LeadGoals(count, weight, share, above, asked, fewest, takers)


def _shares_beside_kept(
    cluster: Cluster, kinds: _Kinds, most: Ints64, led: Flags, weight: Reals
) -> Reals:
    """Return the shares (G,) of what no node keeps that takes nothing: others have to lead it."""
    nodes, groups = cluster.nodes, len(cluster.partitions.group_names)
    keeps = keepers(cluster) & (weight > 0.0)
    if not keeps.any():
        return np.zeros(groups)
    placed = PlacementCounts.of(cluster, cluster.placement)
    stays = staying(placed, partition_scope(cluster))
    led = led & (placed.tallied(np.append(False, keeps).take(stays)) == 0)
    takers = np.where(nodes.may_receive, most, 0)
    alone = np.bincount(kinds.of[led], minlength=len(takers)) * takers.any(1)
    return _shares(kinds, groups, takers, alone, weight)


def lead_joins(cluster: Cluster, asked: LeadGoals) -> int:
    """Return how many replicas must at least join nodes for the leaders of groups to be met."""
    placement, partitions = cluster.placement, cluster.partitions
    there = np.append(asked.weight > 0.0, False)[placement.node]
    held = asked.cells(partitions.group[placement.owner[there]], placement.node[there])
    groups = len(asked.count)
    lead = np.bincount(held.group, np.minimum(held.led, held.most), groups)
    lacks = np.bincount(held.group, np.maximum(held.least - held.led, 0), groups)
    return int(np.maximum(asked.count - lead, lacks).sum())


def crowding(cluster: Cluster, target: Ints64, partition: Ints, node: Ints) -> Ints64:
    """Return how many of some replicas are beyond what each node may hold of their groups, (N,)."""
    size, group = len(cluster.nodes), cluster.partitions.group[partition].astype(np.int64)
    held = np.bincount(group * size + node, minlength=len(target) * size).reshape(-1, size)
    over: Ints64 = np.maximum(held - target[:, None], 0).sum(0)
    return over


def groups_met(cluster: Cluster, goals: Goals | Cost, placement: Placement) -> bool:
    """Return whether no node has too many replicas, or too many or few leaders, of a group."""
    target, asked = group_targets(cluster, goals), lead_goals(cluster, goals)
    if target is not None and (_table(cluster, placement.node).max(1, initial=0) > target).any():
        return False
    return asked is None or not asked.cells_of(cluster, placement).off.any()


def group_excesses(cluster: Cluster, goals: Goals | Cost, placement: Placement) -> Iterator[str]:
    """Yield for groups that miss the goal the worst node, the worst group first."""
    names, of = cluster.nodes.names, cluster.partitions.group_names
    target, asked = group_targets(cluster, goals), lead_goals(cluster, goals)
    if target is not None:
        held = _table(cluster, placement.node)
        over = held.max(1, initial=0) - target
        for g in np.argsort(-over, kind="stable")[:LISTED].tolist():
            if over[g] > 0:
                n = int(held[g].argmax())
                yield (
                    f"{names[n]} holds {int(held[g, n]):,} replicas of {of[g]} where "
                    f"{int(target[g]):,} are within the goal"
                )
    if asked is not None:
        cells = asked.cells_of(cluster, placement)
        far = cells.off
        for c in np.argsort(-np.abs(far), kind="stable")[:LISTED].tolist():
            most, least = int(cells.most[c]), int(cells.least[c])
            what = f"{most:,} are within the goal" if far[c] > 0 else f"{least:,} are asked for"
            if far[c]:
                yield (
                    f"{names[cells.node[c]]} leads {int(cells.led[c]):,} partitions of "
                    f"{of[cells.group[c]]} where {what}"
                )


def lead_texts(cluster: Cluster, goals: Goals | Cost) -> Iterator[str]:
    """Yield what goals for the leaders of groups come to on a node."""
    asked = lead_goals(cluster, goals)
    if asked is None or not isinstance(goals, Goals):
        return
    tolerance = group_tolerances(FaultList(), cluster, "", goals.group_leaders)
    if (group := np.flatnonzero(np.isfinite(tolerance))).size:
        most = asked.most(group, np.full(len(group), int(asked.weight.argmax())))
        which = chosen_by(goals.group_leaders)
        yield (
            f"leaders of a {which}group at most {from_to(most)} on a node: its share plus "
            f"{from_to(tolerance[group], '.2%')}"
        )
    if (chosen := np.flatnonzero(asked.asked)).size:
        yield f"leaders of {counted(len(chosen), 'chosen group')} at least " + (
            f"{from_to(asked.fewest[chosen])} on a node"
        )
    for g in np.flatnonzero(asked.fewest < asked.asked)[:LISTED].tolist():
        yield (
            f"{cluster.partitions.group_names[g]} has {int(asked.count[g]):,} leaders for "
            f"{int(asked.takers[g].sum()):,} nodes: at least {int(asked.fewest[g]):,} on each, "
            f"not {int(asked.asked[g]):,}"
        )


def replica_text(cluster: Cluster, goals: Goals) -> Iterator[str]:
    """Yield what goals for the replicas of groups come to on a node."""
    most = group_targets(cluster, goals)
    tolerance = group_tolerances(FaultList(), cluster, "", goals.groups)
    if most is not None and (binds := np.isfinite(tolerance)).any():
        yield (
            f"replicas of a {chosen_by(goals.groups)}group at most {from_to(most[binds])} on a "
            f"node: its share plus {from_to(tolerance[binds], '.2%')}"
        )


def chosen_by(given: object) -> str:
    """Return the word for groups that a goal names."""
    return "chosen " * isinstance(given, Mapping)


def from_to(counts: NDArray[np.number], form: str = ",") -> str:
    """Write the least and the greatest of some numbers; one where they are the same."""
    few, many = counts.min().item(), counts.max().item()
    return f"{few:{form}}" if few == many else f"{few:{form}} to {many:{form}}"


def _table(cluster: Cluster, node: Ints32) -> Ints64:
    """Count the replicas of each group on each node, (G, N)."""
    groups, size, there = len(cluster.partitions.group_names), len(cluster.nodes), node >= 0
    group = cluster.partitions.group[cluster.placement.owner[there]].astype(np.int64)
    return np.bincount(group * size + node[there], minlength=groups * size).reshape(groups, size)
