"""Loads: what nodes and domains carry at every instant, against what they can carry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.audit.nodes import TOLERANCE
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.steps import StepKind

ONE = 2.0**52
"""A limit in the fixed point that loads are added up in, so that what comes and goes cancels."""

MOST = 64.0
"""Single loads count as so many limits at most: sums beyond 2048 limits would overflow."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What steps put on nodes and take off again, an entry per step and end.

    Parameters
    ----------
    step, rank : ndarray of int64, shape (E,)
        Step, and rank of its event: by node, and by rank on each.
    node : ndarray of int32, shape (E,)
        Node that becomes fuller or emptier.
    weight : callable
        Takes a dimension and returns the load put on, (E,), negative where it is taken off.
    """

    step: NDArray[np.int64]
    rank: NDArray[np.int64]
    node: NDArray[np.int32]
    weight: Callable[[int], NDArray[np.float64]]


def check_loads(found: Findings, fresh: NDArray[np.bool_], target: Placement | None) -> None:
    """Find nodes and domains that carry more than they can, and more than either end asks of them.

    The limit of a node is its capacity, or what it carries at the beginning or in the target where
    that is more; the same goes for a domain's capacity, and for the most replicas of a node. Dead
    nodes carry nothing.
    """
    cluster = found.cluster
    nodes = cluster.nodes
    serving = (nodes.alive | nodes.keeps) & ~nodes.gone
    weights = _weights(found, fresh, serving)
    start = PlacementCounts.of(cluster, cluster.placement)
    ends = [start.loads]
    if target is not None:
        ends.append(_target_loads(cluster, start.loads, target))
    limit = np.maximum.reduce([nodes.capacity, *ends])
    names = cluster.dimensions
    _check(found, "capacity", "node", names, weights, weights.node, start.loads, limit)
    for tier, capacity in cluster.topology.tier_capacity.items():
        row = cluster.topology.tier_index(tier)
        domain = np.where(serving, cluster.topology.domain[row], -1)
        shared = [_by_domain(one, domain, len(capacity)) for one in ends]
        limit = np.maximum.reduce([capacity, *shared])
        _check(found, "tier_capacity", "domain", names, weights, domain[weights.node], shared[0],
               limit, tier=row)  # fmt: skip
    if (nodes.max_replicas >= 0).any():
        _check_counts(found, serving, start.replicas, target)


def _check_counts(
    found: Findings,
    serving: NDArray[np.bool_],
    start: NDArray[np.int64],
    target: Placement | None,
) -> None:
    """Find nodes with more replicas, learners and what is left included, than they take."""
    most = found.cluster.nodes.max_replicas
    limit = np.where(serving & (most >= 0), np.maximum(most, start), np.inf)
    if target is not None:
        limit = np.maximum(limit, np.bincount(target.node + 1, minlength=len(limit) + 1)[1:])
    steps, timeline = found.timeline.steps, found.timeline
    come = np.flatnonzero(steps.kind == StepKind.COPY)
    go = np.flatnonzero(steps.kind == StepKind.REMOVE)
    step = np.concatenate([come, go])
    rank = np.concatenate([timeline.start[come], timeline.finish[go]])
    sign = np.concatenate([np.ones(len(come)), np.full(len(go), -1.0)])
    node = np.concatenate([steps.target[come], steps.source[go]])
    order = np.lexsort((rank, node))
    counts = sign[order]
    weights = Weights(step[order], rank[order], node[order], lambda _: counts)
    begin = start[:, None].astype(np.float64)
    _check(found, "max_replicas", "node", ("",), weights, weights.node, begin, limit[:, None])


def _weights(found: Findings, fresh: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Weights:
    """List what steps put on nodes that count, as they start, and take off as they finish."""
    timeline, cluster = found.timeline, found.cluster
    steps = timeline.steps
    kind = steps.kind
    copy, lead = kind == StepKind.COPY, kind == StepKind.LEAD
    joins = copy | (kind == StepKind.PROMOTE) | (kind == StepKind.SWAP)
    leaves = (kind == StepKind.DEMOTE) | (kind == StepKind.REMOVE) | (kind == StepKind.SWAP)
    both = np.arange(len(steps))
    # what a leader weighs more or less than a voter moves with the lead
    parts = (
        (both[joins & (steps.target >= 0)], steps.target, timeline.start, 1.0),
        (both[leaves & (steps.source >= 0)], steps.source, timeline.finish, -1.0),
        (both[lead], steps.target, timeline.finish, 1.0),
        (both[lead & (steps.source >= 0)], steps.source, timeline.finish, -1.0),
    )
    step = np.concatenate([which for which, *_ in parts])
    node = np.concatenate([end[which] for which, end, *_ in parts])
    rank = np.concatenate([when[which] for which, _, when, _ in parts])
    sign = np.concatenate([np.full(len(which), sign) for which, *_, sign in parts])
    keep = np.flatnonzero(counted[node])
    order = keep[np.argsort(node[keep] * np.int64(timeline.end + 2) + rank[keep])]
    step, node, rank, sign = step[order], node[order], rank[order], sign[order]
    load, partition = cluster.partitions.load, steps.partition[step]
    light = cluster.placement.role[steps.replica[step]] == Role.NON_VOTER
    own = kind[step]
    transient_step = (own == StepKind.COPY) | (own == StepKind.REMOVE)
    at_serving = (own == StepKind.PROMOTE) | (own == StepKind.DEMOTE) | (own == StepKind.SWAP)
    new = fresh[step]
    # only where a learner joined does it matter that the replica was nowhere
    new_joins, leading = new & (sign > 0), lead[step]

    def weight(d: int) -> NDArray[np.float64]:
        value = np.where(light, load.non_voter[partition, d], load.voter[partition, d])
        extra = load.leader[partition, d] - load.voter[partition, d]
        if cluster.transient[d]:
            counts = transient_step
        else:
            counts = (transient_step & new) | (at_serving & ~new_joins)
        return sign * np.where(leading, extra, np.where(counts, value, 0.0))

    return Weights(step, rank, node, weight)


def _target_loads(
    cluster: Cluster, loads: NDArray[np.float64], target: Placement
) -> NDArray[np.float64]:
    """Return what nodes carry in the target, from what changes alone."""
    start = cluster.placement
    changed = np.zeros(len(start), bool)
    changed[start.owner[np.flatnonzero(start.node != target.node)]] = True
    changed |= start.leader != target.leader
    partition = np.flatnonzero(changed)
    total = loads.copy()
    first = start.first[partition]
    load = cluster.partitions.load
    for slot in range(int(np.diff(start.first).max(initial=0))):
        has = np.flatnonzero(start.first[partition + 1] - first > slot)
        replica, owner = first[has] + slot, partition[has]
        light = start.role[replica] == Role.NON_VOTER
        for placement, sign in ((start, -1.0), (target, 1.0)):
            node = placement.node[replica] + 1
            leads = placement.leader[owner] == slot
            for d in range(total.shape[1]):
                value = np.where(light, load.non_voter[owner, d], load.voter[owner, d])
                value = sign * np.where(leads, load.leader[owner, d], value)
                total[:, d] += np.bincount(node, value, len(total) + 1)[1:]
    return total


def _by_domain(
    loads: NDArray[np.float64], domain: NDArray[np.int32], domains: int
) -> NDArray[np.float64]:
    """Add up the loads of the nodes of each domain."""
    columns = [np.bincount(domain + 1, loads[:, d], domains + 1)[1:] for d in range(loads.shape[1])]
    return np.stack(columns, 1)


def _check(
    found: Findings,
    kind: str,
    column: str,
    names: Sequence[str],
    weights: Weights,
    place: NDArray[np.int32],
    start: NDArray[np.float64],
    limit: NDArray[np.float64],
    **where: int,
) -> None:
    """Find events after which a place carries more than its limit, dimension by dimension."""
    order = _by_place(weights, place)
    at = place[order]
    moment = weights.rank[order] >> 1
    # of what happens at once, only the outcome is seen
    last = np.ones(len(at), bool)
    last[:-1] = (at[1:] != at[:-1]) | (moment[1:] != moment[:-1])
    seen = np.flatnonzero(last)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    length = np.diff(np.append(opens, len(at)))
    here, step, rank = at[seen], weights.step[order][seen], weights.rank[order][seen]
    first = np.diff(here, prepend=-1) != 0
    for d, name in enumerate(names):
        each = limit[:, d]
        finite = np.isfinite(each)
        if not finite[here].any():
            continue
        weight = weights.weight(d)
        change = _fixed(weight if isinstance(order, slice) else weight[order], each[at])
        begin = _fixed(start[:, d], each)
        total = np.cumsum(change)
        base = begin[at[opens]] - (total[opens] - change[opens])
        carried = (total + np.repeat(base, length))[seen]
        fuller = carried > np.where(first, begin[here], np.roll(carried, 1))
        held = np.where(each > 0.0, ONE, 0.0)[here]
        unit = np.where(each > 0.0, np.where(finite, each, 0.0), 1.0)[here] / ONE
        spot: dict[str, ArrayLike] = {column: here, "dimension": d if name else -1, **where}
        bad = np.flatnonzero((carried > held * (1.0 + TOLERANCE)) & fuller)
        found.breach(
            kind, step[bad], rank[bad], ((carried - held) * unit)[bad],
            **spot | {column: here[bad]},
        )  # fmt: skip
        found.tight(
            kind, name, np.where(finite[here], carried - held, -np.inf), carried * unit,
            held * unit, step, rank, **spot,
        )  # fmt: skip


def _by_place(weights: Weights, place: NDArray[np.int32]) -> slice | NDArray[np.intp]:
    """Return the order of events by place and rank; that of nodes they have already."""
    if place is weights.node:
        return slice(None)
    every = np.flatnonzero(place >= 0)
    return every[np.lexsort((weights.rank[every], place[every]))]


def sort_by(place: NDArray[np.integer], places: int) -> NDArray[np.intp]:
    """Return a stable order by place; short numbers sort many times as fast."""
    return np.argsort(place.astype(np.uint16) if places <= 1 << 16 else place, kind="stable")


def _fixed(load: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return loads as shares of their limits in fixed point; beyond a limit of 0, by sign alone."""
    share = np.divide(load, limit, out=np.sign(load), where=limit > 0.0)
    return np.rint(np.clip(share, -MOST, MOST) * ONE).astype(np.int64)
