"""Moves between disks of a node: urgent ones before the copies of a plan, others after them."""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.disks import sizes
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, Ints32, Ints64, Reals, Rows, read_only


@dataclass(frozen=True, eq=False)
class DiskMoves:
    """Replicas that change their disk on the node on which they stay. D moves.

    A replica takes room on both disks until its wave has ended.

    Parameters
    ----------
    replica : ndarray of int64, shape (D,)
        Index of the replica.
    source, target : ndarray of int32, shape (D,)
        Disk that it leaves, and disk to which it goes.
    size : ndarray of float64, shape (D,)
        What it weighs.
    wave : ndarray of int32, shape (D,)
        Number of the wave, from 0 on; -1 of a move that no order has room for, or of a partition
        that still lists a node that is down where its system refuses that.
    early : int
        Waves that go before the copies between nodes, since these need the room.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[20.0]], load=[[1.0]] * 4, dimensions=["disk"], bytes="disk",
    ...     placement=[[0]] * 4, disks=ek.Disks([0, 0], [10.0] * 2), disk=[[0]] * 4)
    >>> plan = ek.solve(c, goals=ek.Goals(disks=0.0)).plan(throttle=ek.Throttle(disk_moves=1))
    >>> plan.disk_moves.target.tolist(), plan.disk_moves.wave.tolist()
    ([1, 1], [0, 1])
    """

    replica: Ints64
    source: Ints32
    target: Ints32
    size: Reals
    wave: Ints32
    early: int = 0

    def __len__(self) -> int:
        return len(self.replica)

    @property
    def waves(self) -> int:
        """Number of waves."""
        return int(self.wave.max(initial=-1)) + 1

    @property
    def blocked(self) -> Rows:
        """Moves that are left out."""
        return np.flatnonzero(self.wave < 0)

    @property
    def bytes(self) -> float:
        """What those weigh that have a wave."""
        return float(self.size[self.done].sum())

    @property
    def done(self) -> Rows:
        """Moves that have a wave."""
        return np.flatnonzero(self.wave >= 0)


_NONE = read_only(np.zeros(0, np.int32))
NO_MOVES = DiskMoves(  # what plans without disks move between them
    read_only(np.zeros(0, np.int64)), _NONE, _NONE, read_only(np.zeros(0)), _NONE
)  # fmt: skip


def disk_moves(
    cluster: Cluster,
    end: Placement,
    target: Placement,
    at_once: int | None,
    *,
    names_all: bool = False,
) -> DiskMoves:
    """Return the moves between disks of a node on the way to a target, at most so many at once."""
    # ``end`` is where the copies between nodes lead. A move goes before them where its disk would
    # not have room for what they bring. With ``names_all``, nothing moves of a partition while it
    # lists a replica on a node that is down.
    start, disks = cluster.placement, cluster.disks
    if disks is None or start.disk is None or target.disk is None or end.disk is None:
        return NO_MOVES
    stays = (end.node == start.node) & (end.node == target.node) & (start.node >= 0)
    replica = np.flatnonzero(
        stays & (start.disk >= 0) & (target.disk >= 0) & (start.disk != target.disk)
    )
    source, into = start.disk[replica], target.disk[replica]
    held = sizes(cluster, start)
    weight = sizes(cluster, end)
    count, room = len(disks), disks.capacity * (1.0 + ROUNDING)
    lies = start.disk >= 0
    load = np.bincount(start.disk[lies], held[lies], count).astype(float)
    came = (end.node != start.node) & (end.disk >= 0)
    arriving = np.bincount(end.disk[came], weight[came], count)
    left = lies & (end.node != start.node)
    size = held[replica]
    wave = np.full(len(replica), -1, np.int32)
    movable = np.ones((2, len(start)), np.bool_)
    if names_all:
        for able, one in zip(movable, (start, end), strict=True):
            able[one.owner[(one.node >= 0) & ~cluster.nodes.alive[one.node]]] = False
    first, last = movable[:, start.owner[replica]]
    urgent = np.flatnonzero((load + arriving > room)[source] & first)
    moves, node = DiskMoves(replica, source, into, size, wave), disks.node[source]
    early = _schedule(moves, node, urgent, load, room, at_once, 0)
    load += arriving - np.bincount(start.disk[left], held[left], count)
    rest = np.flatnonzero((wave < 0) & last)
    _schedule(moves, node, rest, load, room, at_once, early)
    return DiskMoves(
        read_only(replica), read_only(source), read_only(into), read_only(size), read_only(wave),
        early,
    )  # fmt: skip


def _schedule(
    moves: DiskMoves, node: Ints32, which: Rows, load: Reals, room: Reals, at_once: int | None,
    first: int,
) -> int:  # fmt: skip
    """Give some moves on nodes waves from the first on; return the number after the last one."""
    rest, number = which.tolist(), first
    while rest:
        coming, busy = load.copy(), dict[int, int]()
        begun, later = [], []
        for i in rest:
            n, d = int(node[i]), int(moves.target[i])
            fits = coming[d] + moves.size[i] <= room[d]
            if fits and (at_once is None or busy.get(n, 0) < at_once):
                coming[d] += moves.size[i]
                busy[n] = busy.get(n, 0) + 1
                begun.append(i)
            else:
                later.append(i)
        if not begun:
            break
        moves.wave[begun] = number
        load[:] = coming
        np.subtract.at(load, moves.source[begun], moves.size[begun])
        rest, number = later, number + 1
    return number
