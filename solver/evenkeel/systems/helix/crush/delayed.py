"""Delayed rebalance: nodes that may soon be back keep their places.

Two placements are computed, one on the active nodes (the live ones and those still in their delay
window) and one on the live nodes alone; this module makes one of them.

References
----------
Apache Helix, ``DelayedAutoRebalancer``.
"""

import numpy as np
from numpy.typing import NDArray


def with_places_kept(
    active: NDArray[np.int32],
    on_live: NDArray[np.int32],
    live: NDArray[np.bool_],
    min_active: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Keep the lists on active nodes where enough of each list is live, and top up the others.

    Examples
    --------
    >>> active, on_live = np.array([[0, 1, 2]], np.int32), np.array([[3, 1, 2]], np.int32)
    >>> live = np.array([False, True, True, True])
    >>> with_places_kept(active, on_live, live, np.array([2], np.int32)).tolist()
    [[0, 1, 2]]
    >>> with_places_kept(active, on_live, live, np.array([3], np.int32)).tolist()
    [[3, 1, 2]]
    """
    replicas = active.shape[1]
    alive = (active >= 0) & live[active]
    short = np.count_nonzero(alive, axis=1) < min_active
    kept = active.copy()
    everything = min_active >= replicas
    kept[everything] = on_live[everything]
    for p in np.flatnonzero(short & ~everything):
        row = active[p, alive[p]].tolist()
        fresh = [node for node in on_live[p].tolist() if node >= 0 and node not in active[p]]
        row += fresh[: min_active[p] - len(row)]
        kept[p] = row + [-1] * (replicas - len(row))
    return kept
