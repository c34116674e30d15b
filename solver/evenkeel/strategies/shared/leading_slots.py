"""Which slots lead in an answer: none that may not lead gets the lead, nor loses it to nobody."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster


def leading_slots(
    cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Hand out leading slots: a cluster that knows no leaders is given none.

    Where nobody may lead, a slot goes on leading where it was, but nowhere else.
    """
    was = cluster.placement
    if not has_leaders(cluster):
        return was.leader
    may_lead = np.append(cluster.nodes.may_lead, False)
    if len(node) and leader.min() >= 0 and may_lead.take(node.take(was.first[:-1] + leader)).all():
        return leader.astype(np.int16)
    slot = was.first[:-1] + np.maximum(was.leader, 0)
    stays = was.leader >= 0
    stays[stays] = node[slot[stays]] == was.node[slot[stays]]
    unled = leader < 0
    unled[~unled] = ~may_lead[node[was.first[:-1][~unled] + leader[~unled]]]
    handed = np.where(unled & (leader != was.leader), -1, leader)
    return np.where(unled & stays, was.leader, handed).astype(np.int16)
