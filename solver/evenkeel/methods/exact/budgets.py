"""Budgets as constraints: moves, data, leader changes, what enters and leaves a node or domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.exact.loads import Scale
from evenkeel.methods.exact.seats import Seats
from evenkeel.model.limits import Limits, node_counts

Join = tuple[Any, int, int]
"""How many replicas of a partition join a node, and which these are."""


def hold_budgets(seats: Seats, limits: Limits, joins: list[Join], changes: list[Any]) -> None:
    """Hold moves and leader changes to their budgets."""
    cluster, model = seats.cluster, seats.model
    if limits.moves is not None:
        model.add(sum(count for count, _, _ in joins) <= limits.moves)
    if limits.leader_changes is not None:
        model.add(sum(changes) <= limits.leader_changes)
    if limits.partition_moves is not None:
        for counts in _each(joins, 1).values():
            model.add(sum(counts) <= limits.partition_moves)
    if limits.bytes is not None:
        _hold_bytes(seats, limits.bytes, joins)
    if limits.node_in is not None:
        most = node_counts(cluster, limits.node_in).tolist()
        for n, counts in _each(joins, 2).items():
            model.add(sum(counts) <= most[n])
    if limits.node_out is not None:
        _hold_leaving(seats, node_counts(cluster, limits.node_out).tolist())
    for tier in {*limits.domain_in, *limits.domain_out}:
        domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)]
        _hold_passing(seats, domain, _of(limits.domain_in, tier), _of(limits.domain_out, tier))


def _each(joins: list[Join], which: int) -> dict[int, list[Any]]:
    """Gather the counts of each partition, 1, or of each node, 2."""
    found: dict[int, list[Any]] = {}
    for join in joins:
        found.setdefault(join[which], []).append(join[0])
    return found


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


def _hold_leaving(seats: Seats, most: list[int]) -> None:
    """Hold what leaves each living node to a number: none, where another of its partition stays."""
    model, placement = seats.model, seats.cluster.placement
    for n in np.flatnonzero(seats.cluster.nodes.serves).tolist():
        owner, count = np.unique(placement.owner[placement.node == n], return_counts=True)
        leave = []
        for p, held in zip(owner.tolist(), count.tolist(), strict=True):
            left = model.new_bool_var("")
            model.add(seats.count(p, n) + left >= 1)
            leave.append(held * left)
        model.add(sum(leave) <= most[n])


def _hold_passing(
    seats: Seats, domain: NDArray[np.int32], most_in: int | None, most_out: int | None
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
