"""The best placement of a tiny cluster, by trying every one."""

import itertools

import numpy as np


def best(cluster, bounds):
    """Least `measured` of all placements that fit; None if none does."""
    # knows capacities, one zone level with one replica each, dead nodes, and free leaders
    zone = cluster.topology.domain[0]
    load, leader_load = cluster.partitions.load.voter, cluster.partitions.load.leader
    may = [bool(ok) for ok in cluster.nodes.may_receive]
    placement = cluster.placement
    choices = []
    for p in range(len(cluster.partitions)):
        row = placement.node[placement.first[p] : placement.first[p + 1]].tolist()
        found = []
        for nodes in itertools.combinations(range(len(may)), int(cluster.partitions.replicas[p])):
            if len({int(zone[n]) for n in nodes}) < len(nodes) or not all(may[n] for n in nodes):
                continue
            for leader in nodes:
                on = np.zeros((len(may), load.shape[1]))
                for n in nodes:
                    on[n] += leader_load[p] if n == leader else load[p]
                found.append((on, sum(n not in row for n in nodes)))
        choices.append(found)
    found = []

    def go_on(p, total, moves):
        if (total > cluster.nodes.capacity).any():
            return
        if p == len(choices):
            found.append(measured(total, bounds, moves))
            return
        for on, joining in choices[p]:
            go_on(p + 1, total + on, moves + joining)

    go_on(0, np.zeros((len(may), load.shape[1])), 0)
    return min(found, default=None)


def measured(loads, bounds, moves):
    """Return how far the worst node is above its target, all together, and the moves."""
    # the worst to eight decimals of its target; together by thousandths, each rounded up
    with np.errstate(invalid="ignore"):
        over = np.where(loads > 0.0, loads / np.maximum(bounds.target, 1e-300) - 1.0, 0.0)
    over = np.maximum(over, 0.0)
    together = int(np.ceil(over * 1e3 - 1e-6).sum())
    return round(float(over.max(initial=0.0)), 8), together, moves
