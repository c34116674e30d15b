"""Leaders that are behind: a replica that lags is not elected until it has caught up."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Role


def led_in_sync(
    cluster: Cluster, node: NDArray[np.int32], leader: NDArray[np.int16]
) -> NDArray[np.int16]:
    """Return the leaders of a placement, (P,), without new ones that lag behind others.

    In their place leads the replica whose node leads least for its weight, the former leader among
    equals; it is in sync, or new. Where there is none, the former leader stays if it lives and does
    not move. The same array if none lags.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]],
    ...     flags=[[Flag.CAUGHT_UP, 0, Flag.CAUGHT_UP]])
    >>> led_in_sync(c, c.placement.node, np.array([1], np.int16)).tolist()
    [0]
    """
    before, nodes = cluster.placement, cluster.nodes
    synced = (before.flags & Flag.CAUGHT_UP) != 0
    if not synced.any() or synced.all():
        return leader
    some = np.bincount(before.owner[synced], minlength=len(leader)) > 0
    row = before.owner.astype(np.int64) * (len(nodes) + 1)  # slots may have exchanged their nodes
    behind = ~synced & some[before.owner] & (before.node >= 0)
    late = np.isin(row + node, (row + before.node)[behind]) & (node >= 0)
    led = before.first[:-1] + np.maximum(leader, 0)  # behind the last replica where there is none
    wrong = np.flatnonzero(
        (leader >= 0) & np.append(late, False)[led]
        & (np.append(node, -1)[led] != before.leader_node)
    )  # fmt: skip
    if not len(wrong):
        return leader
    leader = leader.copy()
    held = np.append(node, -1)[before.first[:-1] + leader]
    counts = np.bincount(held[(leader >= 0) & (held >= 0)], minlength=len(nodes))
    for p in wrong.tolist():
        first, end = before.first[p : p + 2].tolist()
        found = [
            k for k in range(first, end)
            if node[k] >= 0 and not late[k] and before.role[k] == Role.VOTER
            and nodes.may_lead[node[k]]
        ]  # fmt: skip
        if not found:  # its system elects no other: the former leader stays, where it does
            stays = np.flatnonzero(node[first:end] == before.leader_node[p])
            if before.leader[p] >= 0 and len(stays) and nodes.alive[before.leader_node[p]]:
                leader[p] = stays[0]
            continue
        counts[node[first + leader[p]]] -= 1

        def share(k: int, was: int = first + int(before.leader[p])) -> tuple[float, bool]:
            weight = float(nodes.lead_weight[node[k]])
            return (counts[node[k]] + 1) / weight if weight > 0.0 else np.inf, k != was

        best = min(found, key=share)
        leader[p] = best - first
        counts[node[best]] += 1
    return leader
