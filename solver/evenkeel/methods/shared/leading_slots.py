"""Leading slots of an answer: never elect an ineligible leader, or remove the only one."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role


def leading_slots(
    cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Return leading slots; a cluster without leaders keeps none.

    Where no replica may lead, the node that led goes on by the voter that it has then, if any.
    """
    was = cluster.placement
    if not has_leaders(cluster):
        return was.leader
    may_lead = np.append(cluster.nodes.may_lead, False)
    if len(node) and leader.min() >= 0 and may_lead.take(node.take(was.first[:-1] + leader)).all():
        return leader.astype(np.int16)
    at = was.replaced(node, leader).leader_node
    unled = ~may_lead[at]
    handed = np.where(unled & (at != was.leader_node), -1, leader)
    # of the voters on that node the slot that led comes first, and so is written last
    replicas = np.flatnonzero(unled[was.owner] & (was.role == Role.VOTER))
    replicas = replicas[
        (node[replicas] >= 0) & (node[replicas] == was.leader_node[was.owner[replicas]])
    ]
    slot = replicas - was.first[was.owner[replicas]]
    order = np.argsort(slot == was.leader[was.owner[replicas]], kind="stable")
    handed[was.owner[replicas[order]]] = slot[order]
    return handed.astype(np.int16)
