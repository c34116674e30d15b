"""Exchanging roles: who votes among the replicas that a partition has, which moves no data."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.simulate.engine.conformance import Demands, demands_of


def with_roles_exchanged(cluster: Cluster) -> Placement:
    """Return the placement with other voters where that alone meets a rule which is broken.

    References
    ----------
    CockroachDB #106559: voters and non-voters that hold each other in place.
    """
    placement = cluster.placement
    if not placement.role.any() or placement.slots is None:
        return placement
    node = placement.nodes
    held = node >= 0
    role = placement.role.reshape(node.shape).copy()
    for number, demands in enumerate(demands_of(cluster)):
        mine = np.flatnonzero(cluster.partitions.rule == number)
        votes = held & (role == Role.VOTER)
        for p in mine[demands.broken(node[mine], held[mine], votes[mine])].tolist():
            _exchange(demands, node[p], role[p], int(placement.leader[p]))
    return Placement(
        placement.first,
        placement.node,
        read_only(role.reshape(-1)),
        placement.flags,
        placement.leader,
    )


def _exchange(
    demands: Demands, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
) -> None:
    """Give one row other voters, as few as possible, its leader among them if that can be."""
    slots = np.flatnonzero(node >= 0).tolist()
    voters = [slot for slot in slots if role[slot] == Role.VOTER]

    def cost(chosen: tuple[int, ...]) -> tuple[int, int]:
        return len(set(voters) - set(chosen)), int(leader in voters and leader not in chosen)

    held = (node >= 0)[None]
    for chosen in sorted(combinations(slots, len(voters)), key=cost):
        votes = np.zeros((1, len(node)), bool)
        votes[0, list(chosen)] = True
        if not demands.broken(node[None], held, votes)[0]:
            role[slots] = Role.NON_VOTER
            role[list(chosen)] = Role.VOTER
            return
