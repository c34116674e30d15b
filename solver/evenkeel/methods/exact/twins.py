"""Partitions that nothing tells apart: of all ways to swap them, one is looked at.

They have the same loads, rules and slots, and the same places.
With a dozen of them CP-SAT would prove the same thing for every order. So the sum of the numbers of
their nodes rises from each of them to the next: small coefficients, whatever the loads are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement

if TYPE_CHECKING:
    from evenkeel.methods.exact.seats import Seats


def same_partitions(cluster: Cluster) -> list[list[int]]:
    """Put the partitions together that nothing tells apart.

    Examples
    --------
    >>> load = [[1.0], [2.0], [1.0]]
    >>> same_partitions(Cluster.from_arrays(capacity=[[9.0]] * 2, load=load, replicas=1))
    [[0, 2], [1]]
    """
    placement, partitions = cluster.placement, cluster.partitions
    banned: dict[int, list[int]] = {}
    for p, n in cluster.forbidden.tolist():
        banned.setdefault(p, []).append(n)
    found: dict[Any, list[int]] = {}
    for p in range(len(partitions)):
        rows = slice(placement.first[p], placement.first[p + 1])
        slots = zip(placement.node[rows], placement.role[rows], placement.flags[rows], strict=True)
        load = [
            part[p].tobytes()
            for part in (partitions.load.leader, partitions.load.voter, partitions.load.non_voter)
        ]
        columns = (partitions.replicas, partitions.voters, partitions.rule, partitions.group)
        key = (
            *load,
            *(int(column[p]) for column in columns),
            int(placement.leader_node[p]),
            tuple(sorted((int(n), int(role), int(flags)) for n, role, flags in slots)),
            tuple(banned.get(p, [])),
        )
        found.setdefault(key, []).append(p)
    return list(found.values())


def twins(seats: Seats) -> list[list[int]]:
    """Find the sets of two partitions or more that nothing tells apart."""
    return [alike for alike in seats.alike if len(alike) > 1]


def order_twins(seats: Seats) -> None:
    """Look at one order of each set of twins only."""
    for alike in twins(seats):
        seats.reasons.look()
        sums = [sum((n + 1) * seats.count(p, n) for n in seats.nodes(p)) for p in alike]
        for one, other in pairwise(sums):
            if not isinstance(one, int) and not isinstance(other, int):
                seats.model.add(one <= other)


def in_order(seats: Seats, hint: Placement) -> Placement:
    """Give twins each other's places, so that a hint keeps the order that was chosen."""
    node, leader, first = hint.node.copy(), hint.leader.copy(), hint.first
    for alike in twins(seats):
        size = int(first[alike[0] + 1] - first[alike[0]])
        role = [tuple(hint.role[first[p] : first[p] + size].tolist()) for p in alike]
        if len(set(role)) > 1:  # their slots stand in another order: leave the hint as it is
            continue
        rows = np.array([hint.node[first[p] : first[p] + size] for p in alike]).reshape(
            len(alike), size
        )
        order = np.argsort((rows + 1).sum(axis=1), kind="stable")
        for p, other in zip(alike, order.tolist(), strict=True):
            node[first[p] : first[p] + size] = rows[other]
            leader[p] = hint.leader[alike[other]]
    return hint.replaced(node, leader)
