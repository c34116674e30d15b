"""Find moves that cannot be undone: the node that the replica left cannot take it back."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined
from evenkeel.measure.rows import stands
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.printable import counted, some_of


def one_way(cluster: Cluster, then: Placement) -> NDArray[np.bool_]:
    """Return the partitions of which a replica leaves a node that cannot take it back, (P,) bool.

    >>> c = Cluster.from_arrays(
    ...     capacity=[[1.0]] * 3, load=[[1.0]] * 2, placement=[[0], [1]], alive=[False, True, True])
    >>> one_way(c, c.placement.replaced(np.array([2, 2], np.int32), c.placement.leader)).tolist()
    [True, False]
    """
    now, nodes = cluster.placement, cluster.nodes
    found = left_disabled(cluster, then)
    left = np.flatnonzero(joined(then, now))
    found[now.owner[left[~nodes.serves[now.node[left]]]]] = True
    return found


def left_disabled(cluster: Cluster, then: Placement) -> NDArray[np.bool_]:
    """Return the partitions of which a replica leaves a node on which it is disabled, (P,) bool."""
    found = np.zeros(len(then), np.bool_)
    p, n = cluster.forbidden.T
    found[p[stands(cluster.placement, p, n) & ~stands(then, p, n)]] = True
    return found


def describe_one_way(cluster: Cluster, then: Placement) -> str:
    """Return a note on what a rollback file leaves out; "" if it has all."""
    nodes, irreversible = cluster.nodes, one_way(cluster, then)
    changed = np.unique(
        then.owner[joined(cluster.placement, then) | joined(then, cluster.placement)]
    )
    left = int(irreversible[changed].sum())
    if not left:
        return ""
    now, closed = cluster.placement, ~nodes.serves
    closed[cluster.forbidden[:, 1]] = True
    gone = np.unique(now.node[joined(then, now) & irreversible[now.owner]])
    down = some_of(gone[closed[gone]].tolist(), nodes.names.__getitem__)
    return (
        f"{left:,} of {counted(len(changed), 'partition')}, or a part of them: nothing is copied "
        f"back to what is down or may not hold it ({down}), and what took the place stays"
    )
