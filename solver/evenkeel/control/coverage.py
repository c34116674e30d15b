"""Coverage: partitions short of serving replicas, and the replicas added for them at once.

What is added here is never kept: it goes with the next best possible.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.binding import Bound
from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import breaks_more
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.memoize import memoize

BROKEN_BY_ADDING = frozenset({
    "not_accepted", "forbidden", "require", "place", "same_node", "spread", "max_domains",
    "capacity", "tier_capacity", "max_replicas",
})  # fmt: skip
"""Hard rules that a replica too many can break."""


def needed(cluster: Cluster) -> NDArray[np.int32]:
    """Return how many replicas of each partition must serve."""
    parts = cluster.partitions
    return memoize(parts, "needed", lambda: np.minimum(parts.min_active, parts.replicas))


def is_short(bound: Bound, cluster: Cluster, serving: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which partitions have fewer replicas that serve than they must have."""
    served: NDArray[np.integer] = bound.lengths
    if bound.sits_outside(serving):
        here = bound.present
        served = np.bincount(here.owner[serving[here.node]], minlength=len(here))
    return np.asarray(bound.known & (served < needed(cluster)))


def covered(
    best: Assignment, other: Assignment, short: NDArray[np.bool_], view: Cluster
) -> Assignment:
    """Add replicas of another assignment where one is short of replicas that serve.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[[1.0]], replicas=2, min_active=1,
    ...                         alive=[False, False, True])
    >>> rows = lambda *nodes: Assignment(np.array([0, len(nodes)]), np.array(nodes, np.int32),
    ...                                  np.arange(len(nodes), dtype=np.uint8))
    >>> covered(rows(0, 1), rows(0, 2), np.array([True]), c).node.tolist()
    [0, 2, 1]
    """
    nodes = view.nodes
    serving = nodes.alive & nodes.may_hold
    need = needed(view)
    added: list[tuple[int, int, int]] = []
    led = np.zeros(len(best), np.bool_)
    tops = best.state == TOP
    led[best.owner[tops & serving[best.node]]] = True
    leads = np.zeros(len(best), np.bool_)
    leads[best.owner[tops]] = True
    for p in np.flatnonzero(short).tolist():
        row = best.node[best.first[p] : best.first[p + 1]]
        missing = int(need[p]) - int(np.count_nonzero(serving[row]))
        held = set(row.tolist())
        for k in range(int(other.first[p]), int(other.first[p + 1])):
            node = int(other.node[k])
            if missing <= 0:
                break
            if node in held or not nodes.may_receive[node]:
                continue
            state = int(other.state[k])
            if leads[p] and not led[p] and nodes.may_lead[node]:
                state, led[p] = TOP, True
            elif led[p] and state == TOP:
                state = TOP + 1
            added.append((p, node, state))
            held.add(node)
            missing -= 1
    if not added:
        return best
    owner, node_added, state_added = np.array(added, np.int64).T
    return Assignment.of_rows(
        len(best),
        np.concatenate([best.owner, owner.astype(np.int32)]),
        np.concatenate([best.node, node_added.astype(np.int32)]),
        np.concatenate([best.state, state_added.astype(np.uint8)]),
    )


def breaks_nothing(before: Assignment, after: Assignment, view: Cluster) -> bool:
    """Return whether what was added breaks no hard rule anew, nor one further than before."""
    now = audit(view, after.as_placement)
    if not any(now.counts[kind] for kind in BROKEN_BY_ADDING):
        return True
    was = audit(view, before.as_placement)
    return not breaks_more(view, was, now, BROKEN_BY_ADDING)


def only(assignment: Assignment, rows: NDArray[np.bool_]) -> Assignment:
    """Leave out the replicas of some partitions.

    >>> one = Assignment(np.array([0, 1, 2]), np.array([3, 1], np.int32), np.zeros(2, np.uint8))
    >>> only(one, np.array([False, True])).first.tolist()
    [0, 0, 1]
    """
    stays = rows[assignment.owner]
    if stays.all():
        return assignment
    node = np.where(stays, assignment.node, -1).astype(np.int32)
    return Assignment.of_rows(len(assignment), assignment.owner, node, assignment.state)
