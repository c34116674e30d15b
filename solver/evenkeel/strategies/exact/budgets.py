"""Budgets as constraints, and what a placement has spent of them.

Moves, data, leader changes, and what enters and leaves a node or domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import compare
from evenkeel.model.cluster import Cluster
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement
from evenkeel.strategies.exact.loads import Scale
from evenkeel.strategies.exact.seats import Seats

ROUNDING = 1e-9
"""Sums of data in another order agree within this share."""

Join = tuple[Any, int, int]
"""How many replicas of a partition join a node, and which these are."""


def hold_budgets(seats: Seats, limits: Limits, joins: list[Join], changes: list[Any]) -> None:
    """Hold moves and leader changes to their budgets."""
    cluster, model = seats.cluster, seats.model
    node = np.arange(len(cluster.nodes))
    if limits.moves is not None:
        model.add(sum(count for count, _, _ in joins) <= limits.moves)
    if limits.leader_changes is not None:
        model.add(sum(changes) <= limits.leader_changes)
    if limits.partition_moves is not None:
        for p in {p for _, p, _ in joins}:
            model.add(sum(count for count, q, _ in joins if q == p) <= limits.partition_moves)
    if limits.bytes is not None:
        _hold_bytes(seats, limits.bytes, joins)
    if limits.node_in is not None:
        for n in {n for _, _, n in joins}:
            model.add(sum(count for count, _, m in joins if m == n) <= limits.node_in)
    _hold_passing(seats, node, None, limits.node_out)
    for tier in {*limits.domain_in, *limits.domain_out}:
        domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)]
        _hold_passing(seats, domain, _of(limits.domain_in, tier), _of(limits.domain_out, tier))


def _hold_bytes(seats: Seats, most: float, joins: list[Join]) -> None:
    """Hold the data that moves, in the roles that replicas have in the end, to a budget."""
    load, d = seats.cluster.partitions.load, seats.cluster.bytes_dimension
    of = load.leader[:, d], load.voter[:, d], load.non_voter[:, d]
    scale = Scale.of(np.concatenate(of), 4.0 * float(np.maximum.reduce(of).sum()) + most)
    total: Any = 0
    for _, p, n in joins:
        leader, voter, other = (scale.up(float(weight[p])) for weight in of)
        total += voter * seats.voters[p].get(n, 0) + other * seats.others[p].get(n, 0)
        total += (leader - voter) * seats.leads[p].get(n, 0)
    seats.model.add(total <= scale.down(most))


def _of(amounts: Mapping[str, int], tier: str) -> int | None:
    return amounts.get(tier)


def _hold_passing(
    seats: Seats, domain: NDArray[np.int_], most_in: int | None, most_out: int | None
) -> None:
    """Hold what enters each domain, and what leaves its living nodes, to a number each."""
    if most_in is None and most_out is None:
        return
    cluster, model, placement = seats.cluster, seats.model, seats.cluster.placement
    source = cluster.nodes.serves
    owner = placement.owner
    for where in np.unique(domain[domain >= 0]).tolist():
        inside = domain == where
        held = owner[np.append(inside, False)[placement.node]]
        living = owner[np.append(inside & source, False)[placement.node]]
        count = len(seats.voters)
        before, alive = np.bincount(held, minlength=count), np.bincount(living, minlength=count)
        enter, leave = [], []
        for p in range(count):
            nodes = [n for n in seats.nodes(p) if inside[n]]
            after = sum(seats.count(p, n) for n in nodes)
            if most_in is not None and nodes:
                more = model.new_int_var(0, int(cluster.partitions.replicas[p]), "")
                model.add(more >= after - int(before[p]))
                enter.append(more)
            if most_out is not None and alive[p]:
                less = model.new_int_var(0, int(alive[p]), "")
                model.add(less >= int(alive[p]) - after)
                leave.append(less)
        if most_in is not None:
            model.add(sum(enter) <= most_in)
        if most_out is not None:
            model.add(sum(leave) <= most_out)


def is_within(cluster: Cluster, limits: Limits, placement: Placement) -> bool:
    """Whether a placement, counted from where everything came in, keeps to every budget."""
    made = compare(cluster, cluster.placement, placement)
    per = np.bincount(placement.owner[made.joined], minlength=1)
    spent: tuple[tuple[float | None, float], ...] = (
        (limits.moves, made.moves),
        (limits.bytes, made.bytes_moved * (1.0 - ROUNDING)),
        (limits.leader_changes, made.leader_changes),
        (limits.partition_moves, int(per.max(initial=0))),
        (limits.node_in, int(made.node_in.max(initial=0))),
        (limits.node_out, int(made.node_out[cluster.nodes.serves].max(initial=0))),
    )
    return all(most is None or amount <= most for most, amount in spent) and all(
        _crossings(cluster, tier, start, end, nodes) <= most
        for by_tier, start, end, nodes in (
            (limits.domain_in, cluster.placement, placement, np.ones(len(cluster.nodes), bool)),
            (limits.domain_out, placement, cluster.placement, cluster.nodes.serves),
        )
        for tier, most in by_tier.items()
    )


def _crossings(
    cluster: Cluster, tier: str, less: Placement, more: Placement, nodes: NDArray[np.bool_]
) -> int:
    """Replicas that one placement has more of than another, most of them in one domain.

    They are counted partition by partition; of ``more``, only those on some of the nodes.
    """
    domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)]
    shape = len(less), int(domain.max(initial=-1)) + 2
    count = np.zeros(shape, np.int64)
    for sign, one, counted in ((1, more, nodes), (-1, less, np.ones(len(nodes), bool))):
        stands = np.flatnonzero(np.append(counted, False)[one.node])
        np.add.at(count, (one.owner[stands], domain[one.node[stands]]), sign)
    return int(np.maximum(count[:, :-1], 0).sum(axis=0).max(initial=0))
