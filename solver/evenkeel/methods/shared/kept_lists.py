"""Leave partitions as they are whose new replica list the system would refuse."""

import numpy as np

from evenkeel.measure.elections import blocking, kept_lists
from evenkeel.methods.contract import Outcome, Request
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.printable import counted, some_of


def with_kept_lists(request: Request, outcome: Outcome) -> Request:
    """Return a request in which partitions stay whose list of replicas the system would refuse."""
    # their outcome keeps a replica on a dead node in a list that must name none; to give the lead
    # back to the preferred leader takes no list
    before, serves = request.cluster.placement, request.cluster.nodes.serves
    blocks = blocking(request.cluster) & ~kept_lists(request.cluster)[before.owner]
    if not blocks.any():
        return request
    node, leader, partitions = outcome.node, outcome.leader, len(before)
    lacks = np.bincount(before.owner[node >= 0], minlength=partitions) < (
        request.cluster.partitions.replicas
    )
    listed = blocks & np.where(
        node < 0, lacks[before.owner], ~np.append(serves, True)[node] & (node == before.node)
    )
    led = np.append(node, -1)[np.where(leader >= 0, before.first[:-1] + leader, -1)]
    changed = (led != before.leader_node) & np.append(serves, False)[before.leader_node]
    preferred = (before.flags & Flag.PREFERRED) != 0
    changed[before.owner[preferred & (node == led[before.owner])]] = False
    changed[before.owner[~blocks & (node != before.node)]] = True
    stays = changed & (np.bincount(before.owner[listed], minlength=partitions) > 0)
    if not stays.any():
        return request
    return request.pinned(stays[before.owner])


def kept_lists_messages(before: Cluster, after: Cluster) -> list[str]:
    """Return a note on the partitions that `with_kept_lists` has made stay."""
    stay = np.flatnonzero(kept_lists(after) & ~kept_lists(before)).tolist()
    names = before.partitions.names
    if not stay:
        return []
    which = some_of(stay, lambda p: str(names[p]), 5)
    many = len(stay) > 1
    keep, their, leads = ("keep", "their", "leaders") if many else ("keeps", "its", "leader")
    return [
        f"{counted(len(stay), 'partition')} ({which}) {keep} {their} replicas and {leads}, since a "
        f"node that is down stays in {their} list of replicas, and the system takes no such list."
    ]
