"""Leaders that stay: of partitions that list a dead node, where the system refuses such a list."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag


def led_within_lists(
    cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Return the leaders of a placement, (P,), without those that no list of replicas can elect.

    A partition keeps its leader if one of its replicas that blocks the list has found no other
    node. To give the lead back to the preferred leader takes no list. The same array if all stand.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]], leader=[1],
    ...     alive=[False, True, True], flags=[[Flag.BLOCKS, 0, 0]])
    >>> led_within_lists(c, np.array([-1, 1, 2], np.int32), np.array([2], np.int16)).tolist()
    [1]
    """
    before, serves = cluster.placement, cluster.nodes.serves
    blocks = (before.flags & Flag.BLOCKS) != 0
    if not blocks.any():
        return leader
    lacks = np.bincount(before.owner[node >= 0], minlength=len(leader)) < (
        cluster.partitions.replicas
    )
    listed = blocks & np.where(
        node < 0, lacks[before.owner], ~np.append(serves, True)[node] & (node == before.node)
    )
    held = np.bincount(before.owner[listed], minlength=len(leader)) > 0
    led = np.append(node, -1)[np.where(leader >= 0, before.first[:-1] + leader, -1)]
    held &= (led != before.leader_node) & np.append(serves, False)[before.leader_node]
    preferred = (before.flags & Flag.PREFERRED) != 0
    held[before.owner[preferred & (node == led[before.owner])]] = False
    stays = np.flatnonzero(held[before.owner] & (node == before.leader_node[before.owner]))
    if not len(stays):
        return leader
    leader = leader.copy()
    owner = before.owner[stays]
    leader[owner] = stays - before.first[owner]
    return leader
