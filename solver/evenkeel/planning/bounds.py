"""Lower bounds on the makespan of a plan under its throttle, for any order of its copies.

Each piece holds some places for itself, so that two that share one come one after the other, and so
do pieces any two of which share one, though there may be none that all of them hold. That is the
clique bound of scheduling under resource constraints (Mingozzi, Maniezzo, Ricciardelli and Bianco
1998; Brucker and Knust 2012). The heaviest clique is hard to find; any of them is a bound.

That is the longest chain of dependencies: a copy begins when enough of what stood on its node has
left for it to fit. What leaves first is taken to be what can leave soonest, and what arrives in the
meantime is left out of account; so no order of the same copies can do it sooner.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import Throttle

LINKS = 8
"""Links of a chain that are followed."""

"""Part of what a node may hold that is rounding."""


def last_arrival(
    cluster: Cluster,
    target: Placement,
    steps: Steps,
    alone: NDArray[np.float64],
    exchange: NDArray[np.int32] | None,
) -> float:
    """Return when the last copy arrives at the earliest, given how long each takes ``alone``.

    Copies of the same ``exchange (S,)`` begin at once, and what they replace leaves at once.
    """
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    queues = list(_queues(cluster, target, steps, copies))
    if not queues:
        return float(alone.max(initial=0.0))
    together = np.arange(len(copies))
    if exchange is not None:
        together = np.unique(exchange[copies], return_inverse=True)[1]
    begin = np.zeros(int(together.max()) + 1)
    done = begin
    for _ in range(LINKS):
        done = np.zeros(len(begin))
        np.maximum.at(done, together, begin[together] + alone)
        later = begin.copy()
        for queue in queues:
            np.maximum.at(later, together[queue.waits], queue.admitted(done[together]))
        if np.array_equal(later, begin):
            break
        begin = later
    return float(done.max())


@dataclass(frozen=True, eq=False)
class _Queue:
    """Copies that do not fit into their nodes yet in one dimension, and what leaves those nodes.

    W copies wait, numbered among all C. L replicas leave, each when a copy is done; those whose
    copy is -1 may do so at once. A replica weighs what it does in its lightest role.
    """

    waits: NDArray[np.intp]
    node: NDArray[np.int32]
    lacks: NDArray[np.float64]
    left: NDArray[np.int32]
    frees: NDArray[np.float64]
    copy: NDArray[np.intp]

    def admitted(self, done: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when enough may have left for each copy, (W,), if copies are ``done (C,)``."""
        when = np.where(self.copy < 0, 0.0, done[self.copy])
        order = np.lexsort((when, self.left))
        when, left = when[order], self.left[order]
        freed = np.append(0.0, np.cumsum(self.frees[order]))
        first, last = (np.searchsorted(left, self.node, side) for side in ("left", "right"))
        enough = np.searchsorted(freed, freed[first] + self.lacks) - 1
        # rounding may ask for more than all that leaves
        enough = np.minimum(enough, last - 1)
        return np.where(enough >= first, when[enough], 0.0)


def _queues(
    cluster: Cluster, target: Placement, steps: Steps, copies: NDArray[np.intp]
) -> Iterator[_Queue]:
    """Yield a queue for each dimension that copies fill from their start and in which some wait."""
    placement, size = cluster.placement, cluster.partitions.load.lightest
    start, end = (PlacementCounts.of(cluster, one) for one in (placement, target))
    light = start.weighed(cluster.partitions.load.lightest_by_dimension, start.node_row)
    limit = np.maximum(np.maximum(cluster.nodes.capacity, start.loads), end.loads)
    limit[~cluster.nodes.carries] = np.inf
    under_way = (placement.flags & Flag.INCOMING) != 0
    leaves = np.flatnonzero(
        ((steps.kind == StepKind.REMOVE) | (steps.kind == StepKind.SWAP))
        & (steps.source == placement.node[steps.replica]) & (steps.source != steps.target)
    )  # fmt: skip
    replica = np.unique(steps.replica[leaves])
    copied, first = np.unique(steps.replica[copies], return_index=True)
    place = np.searchsorted(copied, replica).clip(max=len(copied) - 1)
    copy = np.where((copied[place] == replica) & ~under_way[replica], first[place], -1)
    left, partition = placement.node[replica], steps.partition[copies]
    moving = placement.owner[replica]
    for d in np.flatnonzero(cluster.transient).tolist():
        room = limit[:, d] * (1.0 + ROUNDING) - light[:, d]
        lacks = size[partition, d] - room[steps.target[copies]]
        waits = np.flatnonzero((lacks > 0.0) & ~under_way[steps.replica[copies]])
        if len(waits):
            node = steps.target[copies[waits]]
            yield _Queue(waits, node, lacks[waits], left, size[moving, d], copy)


ROUNDING = 1e-9
"""What differences of times lose of a second."""

Way = tuple[str, NDArray[np.integer], int | None, float | None]
"""What limits copies, where each of them is subject to it, -1 for nowhere, slots and bandwidth."""


@dataclass(frozen=True)
class MakespanBound:
    """Seconds that no order of the same copies can beat, each at the rate that it has alone."""

    seconds: float  # the bound
    term: str  # what proves it: "the longest copy", "copies into a node", "bytes out of a node", ..


@dataclass(frozen=True, eq=False)
class _Copies:
    """C copies: their rows among the steps, what limits them, and what each takes alone."""

    row: NDArray[np.intp]
    size: NDArray[np.float64]
    ways: list[Way]
    alone: NDArray[np.float64]

    @classmethod
    def of(cls, cluster: Cluster, steps: Steps, throttle: Throttle) -> "_Copies":
        """Gather the copies of some steps.

        A copy is no faster than all the bandwidth of its nodes and of its way; without bandwidths
        every copy lasts one second, or less where a part of it is there already.
        """
        row = np.flatnonzero(steps.kind == StepKind.COPY)
        size, source, target = steps.size[row], steps.source[row], steps.target[row]
        everything = np.zeros(len(row), np.int64)
        ways: list[Way] = [
            ("into a node", target, throttle.node_in, throttle.node_bandwidth),
            ("out of a node", source, throttle.node_out, throttle.node_bandwidth),
            ("in all", everything, throttle.copies, None),
        ]
        if throttle.paces:
            return cls(row, size, ways, _alone(size, ways))
        lasts = steps.finish[row] - steps.start[row]
        alone = np.where(lasts > 1.0 - ROUNDING, 1.0, lasts)
        if throttle.windows is not None:  # the share of a partial copy within them is unknown
            alone[(cluster.placement.flags[steps.replica[row]] & Flag.INCOMING) != 0] = 0.0
        return cls(row, size, ways, alone)


def makespan_bound(
    cluster: Cluster,
    target: Placement,
    steps: Steps,
    throttle: Throttle,
    in_turn: bool,
    exchange: NDArray[np.int32] | None = None,
) -> MakespanBound:
    """Return the least time from the placement that a cluster has, until all steps are done.

    It is the greater of what copies take (``copying_bound``), and the longest chain of those that
    wait for room (``last_arrival``).
    """
    copies = _Copies.of(cluster, steps, throttle)
    copying = _copying(copies, steps, throttle, in_turn, exchange)
    if len(copies.row) == 0:
        return copying
    seconds = last_arrival(cluster, target, steps, copies.alone, exchange)
    chain = _in_windows(MakespanBound(seconds, "copies that wait for room"), throttle)
    return max(copying, chain, key=lambda one: one.seconds)


def copying_bound(
    cluster: Cluster,
    steps: Steps,
    throttle: Throttle,
    in_turn: bool,
    exchange: NDArray[np.int32] | None = None,
) -> MakespanBound:
    """Return the greatest of what copies take alone, and nodes and the cluster take for theirs.

    So many copies through so few slots need as many rounds of the shortest copy at least, and as
    much time as their seconds add up to. Copies of a partition that come ``in_turn`` take the sum
    of theirs. Steps of the same ``exchange (S,)`` copy at once: two of which copies cannot share a
    node come one after the other, and so do any number of which no two can go together
    (``heaviest_clique``).
    """
    return _copying(_Copies.of(cluster, steps, throttle), steps, throttle, in_turn, exchange)


def _copying(
    copies: _Copies,
    steps: Steps,
    throttle: Throttle,
    in_turn: bool,
    exchange: NDArray[np.int32] | None,
) -> MakespanBound:
    """Return ``copying_bound`` of copies that have been gathered."""
    row, size, alone = copies.row, copies.size, copies.alone
    if len(row) == 0:
        return MakespanBound(0.0, "nothing is copied")
    found = [(float(alone.max()), "the longest copy")]
    for name, where, slots, width in copies.ways:
        if slots is not None:
            found.append((_by_slots(where, alone, slots), f"copies {name}"))
        if width is not None:
            total = np.bincount(where + 1, size)[1:].max(initial=0.0)
            found.append((float(total) / width, f"bytes {name}"))
    chain = np.bincount(steps.partition[row], alone) if in_turn else alone
    found.append((float(chain.max()), "copies of a partition"))
    if exchange is not None:
        least = _by_exchange(exchange[row], size, alone, copies.ways[:2])
        found.append((least, "exchanges no two of which go together"))
    return _in_windows(MakespanBound(*max(found, key=lambda one: one[0])), throttle)


def _in_windows(bound: MakespanBound, throttle: Throttle) -> MakespanBound:
    """Return the bound if work goes on only while a window is open."""
    if throttle.windows is None:
        return bound
    seconds = float(throttle.windows.closing(np.array([bound.seconds]))[0])
    return MakespanBound(seconds, bound.term)


def _alone(size: NDArray[np.float64], ways: list[Way]) -> NDArray[np.float64]:
    """Return the seconds that each copy takes if it has all of every bandwidth to itself."""
    alone = np.zeros(len(size))
    for _, where, _, width in ways:
        if width is not None:
            np.maximum(alone, np.where(where >= 0, size / width, 0.0), out=alone)
    return alone


def _by_exchange(
    exchange: NDArray[np.int32],
    size: NDArray[np.float64],
    alone: NDArray[np.float64],
    nodes: list[Way],
) -> float:
    """Return the least time for exchanges that hold nodes for themselves.

    A node is held by a copy where it has one slot, or where more than half of its bandwidth is what
    the copy takes at the rate that it has alone; an exchange holds it for as long as its shortest
    copy lasts, since they all begin at once.
    """
    number, piece = np.unique(exchange, return_inverse=True)
    if len(number) == len(exchange):
        return 0.0
    shortest = np.full(len(number), np.inf)
    np.minimum.at(shortest, piece, alone)
    held, places = [], []
    for side, (_, where, slots, width) in enumerate(nodes):
        holds = np.full(len(size), slots == 1)
        if width is not None:
            holds |= 2.0 * size > (1.0 + 1e-6) * width * alone
        rows = np.flatnonzero(holds & (where >= 0) & (shortest[piece] > 0.0))
        held.append(piece[rows])
        places.append(2 * where[rows].astype(np.int64) + side)
    which, mine = np.unique(np.concatenate(held), return_inverse=True)
    return heaviest_clique(Pieces.of(shortest[which], mine, np.concatenate(places)))


def _by_slots(where: NDArray[np.integer], alone: NDArray[np.float64], slots: int) -> float:
    """Return the least time for copies of which each place has so many at once."""
    count = np.bincount(where + 1)[1:]
    work = np.bincount(where + 1, alone)[1:]
    rounds = -(-count // slots) * float(alone.min())
    return float(np.maximum(rounds, work / slots).max(initial=0.0))


BUSY = 24
"""Places that are looked at three at a time, those with the most work."""

STARTS = 6
"""Cliques of either kind that are made heavier."""

CLOSE = 8
"""Pieces of which it is worked out exactly what they would add to a clique."""

WORK = 2_000_000
"""Rows that are looked at for each clique that is made heavier, in all."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """K pieces of work; row by row, ascending, which holds which place, each pair once."""

    seconds: NDArray[np.float64]  # (K,) how long each takes
    # piece, place: who holds what
    piece: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def of(
        cls, seconds: NDArray[np.float64], piece: NDArray[np.int64], place: NDArray[np.int64]
    ) -> "Pieces":
        """Number places from 0 on, and leave out what is there twice."""
        distinct, place = np.unique(place, return_inverse=True)
        row = np.unique(piece * max(len(distinct), 1) + place)
        return cls(seconds, *np.divmod(row, max(len(distinct), 1)))

    def loads(self, some: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the seconds that some of the pieces hold each place."""
        seconds = np.where(some, self.seconds, 0.0)
        return np.asarray(np.bincount(self.place, seconds[self.piece]), np.float64)

    def sharing(self, one: int) -> NDArray[np.bool_]:
        """Return which pieces share a place with one of them, (K,)."""
        own = self.place[slice(*np.searchsorted(self.piece, [one, one + 1]))]
        found = np.zeros(len(self.seconds), bool)
        found[self.piece[np.isin(self.place, own)]] = True
        return found


def heaviest_clique(pieces: Pieces) -> float:
    """Return the seconds of the heaviest clique that was found.

    Pieces that hold one place are one, and so are those that hold two of any three. From the
    heaviest of these on pieces join, one at a time, while they last longer than those do that have
    to go because they share no place with them.
    """
    if len(pieces.piece) == 0:
        return 0.0
    every = np.ones(len(pieces.seconds), bool)
    load = pieces.loads(every)
    busy = np.argsort(-load, kind="stable")[:BUSY]
    starts = [_holders(pieces, busy[[i]], 1) for i in range(min(STARTS, len(busy)))]
    starts += [_holders(pieces, busy[list(three)], 2) for three in _threes(pieces, busy)]
    return max(_grown(pieces, some) for some in starts)


def _holders(pieces: Pieces, places: NDArray[np.intp], least: int) -> NDArray[np.bool_]:
    """Return the pieces that hold so many of some places, (K,)."""
    inside = pieces.piece[np.isin(pieces.place, places)]
    return np.asarray(np.bincount(inside, minlength=len(pieces.seconds)) >= least)


def _threes(pieces: Pieces, busy: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return the three of some places of which pieces that hold two last longest, some of those."""
    count = len(busy)
    column = np.full(int(pieces.place.max()) + 1, -1)
    column[busy] = np.arange(count)
    inside = np.flatnonzero(column[pieces.place] >= 0)
    row, held = pieces.piece[inside], column[pieces.place[inside]]
    both = np.zeros((count, count))
    # how far apart two rows of one piece are at most
    for apart in range(1, int(np.bincount(row).max(initial=0))):
        at = np.flatnonzero(row[apart:] == row[:-apart])
        np.add.at(both, (held[at], held[at + apart]), pieces.seconds[row[at]])
    both += both.T
    a, b, c = np.array(list(combinations(range(count), 3)), np.intp).reshape(-1, 3).T
    # those that hold all three are counted three times: no more than a bound, but close
    weight = both[a, b] + both[b, c] + both[a, c]
    best = np.argsort(-weight, kind="stable")[:STARTS]
    return [(int(a[i]), int(b[i]), int(c[i])) for i in best]


def _grown(pieces: Pieces, some: NDArray[np.bool_]) -> float:
    """Return the seconds of a clique to which pieces have been added for as long as that helps."""
    seconds = pieces.seconds
    total = float(seconds[some].sum())
    first = np.searchsorted(pieces.piece, np.arange(len(seconds)))
    for _ in range(WORK // len(pieces.piece)):
        load = pieces.loads(some)
        # of those that share two places with it some are counted twice
        most = np.minimum(np.add.reduceat(load[pieces.place], first), total)
        gain = np.where(some, -np.inf, seconds + most - total)
        close = np.argsort(-gain, kind="stable")[:CLOSE]
        best, joined = total, some
        for one in close[gain[close] > 1e-9 * total].tolist():
            kept = some & pieces.sharing(one)
            kept[one] = True
            weight = float(seconds[kept].sum())
            if weight > best * (1.0 + 1e-12):
                best, joined = weight, kept
        if joined is some:
            break
        total, some = best, joined
    return total
