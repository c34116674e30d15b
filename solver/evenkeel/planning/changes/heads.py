"""Heads: who leads what a target leaves without a leader, where there is room for a lead."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.asked import room


def led_where_there_is_room(
    cluster: Cluster, target: Placement, proposed: NDArray[np.integer]
) -> Placement:
    """Return a target that nobody is to lead in part, led by the slots ``proposed (P,)`` there.

    Those have a node. Who may not lead there, or would be too much for its node or domain, leads
    nothing: another voter does, which is there already if one is, or nobody; but none takes away
    the lead from whom stays.
    """
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
    pressed = short[where[node]].any(1) | ~(able[node] | keeps)
    for place in where[node[pressed]].T:
        np.add.at(free, place, extra[pressed])
    candidates = _candidates(cluster, target, able)
    for i in np.flatnonzero(pressed).tolist():
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


def _candidates(
    cluster: Cluster, target: Placement, able: NDArray[np.bool_]
) -> Callable[[int], list[int]]:
    """Return what tells the voters of a partition that may lead, those that stay before others."""
    fit = able[target.node] & (target.role == Role.VOTER)
    comes = target.node != cluster.placement.node

    def of(partition: int) -> list[int]:
        row = slice(*target.first[partition : partition + 2].tolist())
        slots = np.flatnonzero(fit[row])
        return [int(slot) for slot in slots[np.argsort(comes[row][slots], kind="stable")]]

    return of
