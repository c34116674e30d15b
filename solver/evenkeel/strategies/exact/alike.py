"""Partitions that nothing tells apart: same loads, rules and slots, and the same places."""

from typing import Any

from evenkeel.model.cluster import Cluster


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
