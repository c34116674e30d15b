"""Waves ordered where some of them are done already: whether there is room on the way all the same.

So it is where a plan that was broken off is undone: the way back begins at the plan's end, and what
the plan has not moved yet is where the way back would bring it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Wave
from evenkeel.systems.folders.outside import load_of
from evenkeel.systems.plans.reading import plan_of

ROUNDING = 1.0 + 1e-9
"""Above a capacity by this a node is still within it: sums are added up in another order here."""


class Step(NamedTuple):
    """What a wave does to a partition: how far it then is on its way, and its nodes."""

    place: int
    nodes: Collection[int]


def has_room(
    plan: Document,
    held: Mapping[str, Collection[int]],
    places: Mapping[str, float],
    waves: Sequence[Mapping[str, Step]],
) -> bool:
    """Whether no node ever exceeds its capacity when waves are ordered one after the other.

    ``held`` are the nodes that each partition takes room on now, ``places`` how far each has come.
    A wave is ordered as a whole unless all of it is done; what joins is there before what leaves.

    Raises
    ------
    InvalidInput
        If the plan cannot be read.
    """
    cluster = plan_of(plan).cluster
    if cluster.topology.tier_capacity:
        return False
    most, capacity = load_of(cluster), cluster.nodes.capacity * ROUNDING
    names, placement = cluster.partitions.names, cluster.placement
    index = {name: p for p, name in enumerate(names)}
    load = np.zeros_like(cluster.nodes.capacity)
    others = np.array([name not in held for name in names], np.bool_)
    kept = others[placement.owner] & (placement.node >= 0)
    np.add.at(load, placement.node[kept], most[placement.owner[kept]])
    now, at = {name: frozenset(nodes) for name, nodes in held.items()}, dict(places)
    for name, nodes in now.items():
        load[[*nodes]] += most[index[name]]
    for wave in waves:
        if all(at[name] >= step.place for name, step in wave.items()):
            continue
        comes, goes = np.zeros_like(load), np.zeros_like(load)
        for name, step in wave.items():
            after = frozenset(step.nodes)
            comes[[*(after - now[name])]] += most[index[name]]
            goes[[*(now[name] - after)]] += most[index[name]]
            now[name], at[name] = after, step.place
        if ((load + comes > capacity) & (comes > 0.0)).any():
            return False
        load += comes - goes
    return True


def has_room_for_both(cluster: Cluster, waves: Sequence[Wave]) -> bool:
    """Return whether every node has room for all that any wave puts there beside all that is there.

    Any mixture of partitions before and after their waves then is within capacity.
    """
    if cluster.topology.tier_capacity:
        return False
    placement, most = cluster.placement, load_of(cluster)
    joins = [(n, one.partition) for wave in waves for one in wave for n in one.joins]
    held = np.flatnonzero(placement.node >= 0)
    node, partition = np.array(joins, np.int64).reshape(-1, 2).T
    node = np.concatenate([placement.node[held], node])
    partition = np.concatenate([placement.owner[held], partition])
    return all(
        (np.bincount(node, most[partition, d], len(room)) <= room).all()
        for d, room in enumerate(cluster.nodes.capacity.T)
    )
