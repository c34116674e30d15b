"""Bounds: how long a plan takes at least, under its throttle, in whatever order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.planning.account.cliques import Pieces, heaviest_clique
from evenkeel.planning.account.room import last_arrival
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import Throttle

ROUNDING = 1e-9
"""What differences of times lose of a second."""

Way = tuple[str, NDArray[np.integer], int | None, float | None]
"""What limits copies, where each of them is subject to it, -1 for nowhere, slots and bandwidth."""


@dataclass(frozen=True)
class MakespanBound:
    """Seconds that no order of the same copies can beat, each at the rate that it has alone.

    Parameters
    ----------
    seconds : float
        The bound.
    term : str
        What proves it: "the longest copy", "copies into a node", "bytes out of a node", ...
    """

    seconds: float
    term: str


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
        group = cluster.partitions.group[steps.partition[row]]
        ways: list[Way] = [
            ("into a node", target, throttle.node_in, throttle.node_bandwidth),
            ("out of a node", source, throttle.node_out, throttle.node_bandwidth),
            ("in all", everything, throttle.copies, throttle.cluster_bandwidth),
            ("of a group", group, throttle.group_copies, None),
            *_by_domain(cluster, source, target, throttle),
        ]
        if throttle.paces:
            return cls(row, size, ways, _alone(size, ways))
        lasts = steps.finish[row] - steps.start[row]
        alone = np.where(lasts > 1.0 - ROUNDING, 1.0, lasts)
        if throttle.windows is not None:  # of a part, nobody knows how long it ran within them
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
    at_once = None if throttle.partition_copies is not None else exchange
    seconds = last_arrival(cluster, target, steps, copies.alone, at_once)
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
    in_turn |= throttle.partition_copies == 1
    chain = np.bincount(steps.partition[row], alone) if in_turn else alone
    found.append((float(chain.max()), "copies of a partition"))
    if exchange is not None and throttle.partition_copies is None:
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


def _by_domain(
    cluster: Cluster, source: NDArray[np.int32], target: NDArray[np.int32], throttle: Throttle
) -> list[Way]:
    """Return the ways of copies between domains whose bandwidths are limited, -1 for others."""
    found: list[Way] = []
    for by_tier, linked in ((throttle.domain_bandwidth, False), (throttle.link_bandwidth, True)):
        for tier, width in by_tier.items():
            row = cluster.topology.tier_index(tier)
            domain = np.append(cluster.topology.domain_with_nodes[row], -1).astype(np.int64)
            origin, to = domain[source], domain[target]
            away = origin != to
            if linked:
                pair = np.where(away & (origin >= 0) & (to >= 0), origin * len(domain) + to, -1)
                used, link = np.unique(pair, return_inverse=True)
                link = np.where(used[link] >= 0, link, -1)
                found.append((f"between two of {tier}", link, None, width))
            else:
                found.append((f"into a {tier}", np.where(away, to, -1), None, width))
                found.append((f"out of a {tier}", np.where(away, origin, -1), None, width))
    return found


def _by_slots(where: NDArray[np.integer], alone: NDArray[np.float64], slots: int) -> float:
    """Return the least time for copies of which each place has so many at once."""
    count = np.bincount(where + 1)[1:]
    work = np.bincount(where + 1, alone)[1:]
    rounds = -(-count // slots) * float(alone.min())
    return float(np.maximum(rounds, work / slots).max(initial=0.0))
