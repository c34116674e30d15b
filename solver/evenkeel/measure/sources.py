"""Sources: the node that each replica which joins a partition takes the place of."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined
from evenkeel.measure.rows import replicas_of
from evenkeel.model.placement import Placement


def sources(before: Placement, after: Placement) -> NDArray[np.int64]:
    """Return the node that each replica of ``after`` takes the place of, (K,); -1 for none.

    Only who is on a node that is new to its partition takes a place: that of the node that left its
    slot, or else of the one that left its partition in the same turn. To stand in another slot is
    no move, whatever stood there before.

    Examples
    --------
    >>> from evenkeel.model.cluster import Cluster
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 6, load=[[1.0]], placement=[[5, 3, 1]])
    >>> after = c.placement.replaced(np.array([3, 2, 1], np.int32), c.placement.leader)
    >>> sources(c.placement, after).tolist()
    [-1, 5, -1]
    """
    joins, leaves = joined(before, after), joined(after, before)
    found = np.full(len(after.node), -1, np.int64)
    went = np.flatnonzero(leaves)
    if np.array_equal(before.first, after.first):
        same = joins & leaves
        found[same] = before.node[same]
        went = went[~joins[went]]
        # of a node that a partition was on more than once, one replica may leave and one stay
        more = np.flatnonzero(joins & (found < 0) & (before.node >= 0))
        owner, node = after.owner[more], before.node[more]
        spare = _times(before, owner, node) > _times(after, owner, node)
        found[more[spare]] = node[spare]
    rest = np.flatnonzero(joins & (found < 0))
    # the n-th arrival of a partition that is left takes the place of its n-th departure
    most = len(after.node) + len(before.node)
    arrival, departure = _turns(after.owner[rest], most), _turns(before.owner[went], most)
    at = np.minimum(np.searchsorted(departure, arrival), max(len(went) - 1, 0))
    if len(went):
        found[rest] = np.where(departure[at] == arrival, before.node[went[at]], -1)
    return found


def _times(
    placement: Placement, partition: NDArray[np.int32], node: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Count how often each partition stands on each node, pair by pair."""
    replicas, pair = replicas_of(placement, partition)
    same = placement.node[replicas] == node[pair]
    return np.bincount(pair[same], minlength=len(partition))


def _turns(owner: NDArray[np.int32], most: int) -> NDArray[np.int64]:
    """Number the entries of each partition, ``most`` apart; they stand in order of partition."""
    turn = np.arange(len(owner)) - np.searchsorted(owner, owner)
    return owner.astype(np.int64) * most + turn
