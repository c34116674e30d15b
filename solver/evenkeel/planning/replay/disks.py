"""Replay of the moves between disks: what each disk holds in every wave."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.disks import sizes
from evenkeel.model.placement import Placement
from evenkeel.planning.replay.certificate import Breach

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.planning.disk_moves import DiskMoves

ROUNDING = 1e-9
"""Share of a capacity that a sum of sizes may be above it."""


def check_disks(
    cluster: "Cluster", end: Placement, moves: "DiskMoves", at_once: int | None, time: float
) -> Iterator[Breach]:
    """Yield what moves between disks break: room that is not there, or too many at once."""
    disks, start = cluster.disks, cluster.placement
    if disks is None or start.disk is None or end.disk is None:
        return
    held, weight = sizes(cluster, start), sizes(cluster, end)
    at, size = start.disk.copy(), held.copy()
    first = _loads(at, size, len(disks))
    most = np.maximum(disks.capacity, first) * (1.0 + ROUNDING)
    for number in range(moves.waves + 1):
        own = np.flatnonzero(moves.wave == number)
        coming = moves.target[own]
        if number == moves.early:  # copies between nodes come here
            came = end.node != start.node
            at, size = np.where(came, end.disk, at), np.where(came, weight, size)
            coming = np.append(coming, at[came & (at >= 0)])
        load = _loads(at, size, len(disks))
        load += np.bincount(moves.target[own], moves.size[own], len(disks))
        full = (load > most) & (np.bincount(coming, minlength=len(disks)) > 0)
        for d in np.flatnonzero(full).tolist():
            above = float(load[d] - disks.capacity[d])
            yield Breach(-1, time, "disk_capacity", disks.names[d], above)
        busy = np.bincount(disks.node[moves.source[own]], minlength=len(cluster.nodes))
        for n in np.flatnonzero(busy > (len(own) if at_once is None else at_once)).tolist():
            above = float(busy[n] - (at_once or 0))
            yield Breach(-1, time, "disk_moves", cluster.nodes.names[n], above)
        at = at.copy()
        at[moves.replica[own]] = moves.target[own]


def _loads(at: NDArray[np.int32], size: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return what each disk holds, (M,)."""
    lies = at >= 0
    return np.bincount(at[lies], size[lies], count).astype(float)
