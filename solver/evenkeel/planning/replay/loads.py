"""Loads of nodes and domains at every instant, checked against their capacities."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.audit.nodes import TOLERANCE
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.headroom import Rooms, Trades
from evenkeel.planning.replay.timeline import LOWER, RAISE, sort_by
from evenkeel.planning.replay.transitions import Begun, Needs
from evenkeel.planning.steps import StepKind

ONE = 2.0**52
"""A limit in the fixed point that loads are added up in, so that what comes and goes cancels."""

Ints = NDArray[np.int32]
Signs = NDArray[np.int8]
Moment = tuple[Ints, Ints, Signs]
"""Steps, ranks of their events, and signs."""

MOST = 64.0
"""Single loads count as so many limits at most: sums beyond 2048 limits would overflow."""


SOME = 1 << 16
"""Entries that are looked at in one go: all of some places."""

Weigh = Callable[[Ints, Signs, int], NDArray[np.float64]]
"""Takes steps, signs and a dimension; returns the load put on, negative where it is taken off."""


@dataclass(frozen=True, eq=False)
class Entries:
    """What steps put on nodes and take off again, an entry per step and end, in no order.

    Parameters
    ----------
    step, node, rank : ndarray of int32, shape (E,)
        Step, node that becomes fuller or emptier, and rank of the event.
    sign : ndarray of int8, shape (E,)
        1 where load is put on, -1 where it is taken off.
    """

    step: Ints
    node: Ints
    rank: Ints
    sign: Signs

    @classmethod
    def of(cls, parts: Sequence[tuple[NDArray[np.intp], Ints, Ints, int]]) -> "Entries":
        """Join parts of steps, nodes of all steps, ranks of all steps, and a sign."""
        return cls(
            np.concatenate([which.astype(np.int32) for which, *_ in parts]),
            np.concatenate([node[which] for which, node, *_ in parts]),
            np.concatenate([rank[which] for which, _, rank, _ in parts]),
            np.concatenate([np.full(len(which), sign, np.int8) for which, *_, sign in parts]),
        )

    def by_place(self, place_of: NDArray[np.int32], places: int) -> Iterator[tuple[Ints, Moment]]:
        """Yield places (-1 is none) and entries by place and rank, all of some places at a time."""
        place = place_of[self.node]
        place[place < 0] = places
        order = sort_by(place, places)
        opens = np.append(0, np.cumsum(np.bincount(place, minlength=places)[:places]))
        cuts = np.searchsorted(opens, np.arange(0, opens[-1], SOME), side="right") - 1
        cuts = np.unique(np.append(opens[cuts], opens[-1]))
        for low, high in pairwise(cuts.tolist()):
            some = order[low:high]
            where = place[some]
            some = some[np.argsort(where * np.int64(1 << 32) + self.rank[some])]
            yield place[some], (self.step[some], self.rank[some], self.sign[some])


def check_loads(found: Findings, needs: Needs, target: Placement | None, begun: Begun) -> None:
    """Find nodes and domains that carry more than they can, and more than either end asks of them.

    The limit of a node is its capacity, or what it carries at the beginning or in the target where
    that is more; the same goes for a domain's capacity, and for the most replicas of a node. Dead
    nodes carry nothing. Copies that have ``begun`` are carried from the beginning.
    """
    cluster = found.cluster
    rooms = Rooms()
    nodes = cluster.nodes
    serving = (nodes.alive | nodes.keeps) & ~nodes.gone
    goes_on = begun.steps(found.timeline.steps)
    entries, weigh = _entries(found, goes_on), _weigher(found, needs)
    start = PlacementCounts.of(cluster, cluster.placement)
    carried = start.loads.copy()
    np.add.at(carried, begun.node, begun.weight)
    ends = [carried]
    if target is not None:
        ends.append(_target_loads(cluster, start.loads, target))
    limit = np.maximum.reduce([nodes.capacity, *ends])
    names = cluster.dimensions
    own = np.where(serving, np.arange(len(nodes), dtype=np.int32), np.int32(-1))
    _check(found, rooms, "capacity", "node", names, entries, own, weigh, carried, limit)
    for tier, capacity in cluster.topology.tier_capacity.items():
        row = cluster.topology.tier_index(tier)
        domain = np.where(serving, cluster.topology.domain[row], -1)
        shared = [_by_domain(one, domain, len(capacity)) for one in ends]
        limit = np.maximum.reduce([capacity, *shared])
        _check(found, rooms, "tier_capacity", "domain", names, entries, domain, weigh, shared[0],
               limit, tier=row)  # fmt: skip
    if (nodes.max_replicas >= 0).any():
        most = start.replicas + np.bincount(begun.node, minlength=len(nodes))
        _check_counts(found, rooms, serving, most, target, goes_on)
    rooms.check(found)


def _check_counts(
    found: Findings,
    rooms: Rooms,
    serving: NDArray[np.bool_],
    start: NDArray[np.int64],
    target: Placement | None,
    goes_on: NDArray[np.bool_],
) -> None:
    """Find nodes with more replicas, learners and what is left included, than they take."""
    most = found.cluster.nodes.max_replicas
    limit = np.where(serving & (most >= 0), np.maximum(most, start), np.inf)
    if target is not None:
        limit = np.maximum(limit, np.bincount(target.node + 1, minlength=len(limit) + 1)[1:])
    steps, timeline = found.timeline.steps, found.timeline
    come = np.flatnonzero((steps.kind == StepKind.COPY) & ~goes_on)
    go = np.flatnonzero(steps.kind == StepKind.REMOVE)
    entries = Entries.of(
        ((come, steps.target, timeline.start, 1), (go, steps.source, timeline.finish, -1))
    )
    begin = start[:, None].astype(np.float64)
    own = np.arange(len(limit), dtype=np.int32)
    _check(found, rooms, "max_replicas", "node", ("",), entries, own,
           lambda step, sign, d: sign.astype(np.float64), begin, limit[:, None])  # fmt: skip


def _entries(found: Findings, goes_on: NDArray[np.bool_]) -> Entries:
    """List what steps put on nodes as they start, and take off as they finish.

    Copies that go on are there already.
    """
    timeline = found.timeline
    steps = timeline.steps
    kind = timeline.kind
    copy, lead = kind == StepKind.COPY, kind == StepKind.LEAD
    joins = (
        (copy & ~goes_on) | (kind == StepKind.PROMOTE) | (kind == StepKind.SWAP) | (kind >= RAISE)
    )
    leaves = (kind == StepKind.DEMOTE) | (kind == StepKind.REMOVE) | (kind == StepKind.SWAP)
    leaves |= kind >= RAISE
    # what a leader weighs more or less than a voter moves with the lead
    return Entries.of((
        (np.flatnonzero(joins & (steps.target >= 0)), steps.target, timeline.start, 1),
        (np.flatnonzero(leaves & (steps.source >= 0)), steps.source, timeline.finish, -1),
        (np.flatnonzero(lead), steps.target, timeline.finish, 1),
        (np.flatnonzero(lead & (steps.source >= 0)), steps.source, timeline.finish, -1),
    ))  # fmt: skip


def _weigher(found: Findings, needs: Needs) -> Weigh:
    """Return a function to the load that steps add or remove in a dimension."""
    cluster, steps, kinds = found.cluster, found.timeline.steps, found.timeline.kind
    load = cluster.partitions.load
    in_place = bool((kinds >= RAISE).any())

    def weigh(step: Ints, sign: Signs, d: int) -> NDArray[np.float64]:
        partition, kind = steps.partition[step], kinds[step]
        value = load.voter[partition, d]
        if load.non_voter is not load.voter:
            value = np.where(needs.light[step], load.non_voter[partition, d], value)
        moves = (kind == StepKind.COPY) | (kind == StepKind.REMOVE)
        leading = kind == StepKind.LEAD
        if cluster.transient[d]:
            counts = moves
        else:
            # only where a learner joined does it matter that the replica was nowhere
            new = needs.fresh[step]
            counts = (moves & new) | (~(moves | leading) & ~(new & (sign > 0)))
        value = np.where(counts, value, 0.0)
        led = np.flatnonzero(leading)
        before = np.where(
            needs.led[step[led]] & (sign[led] < 0),
            load.non_voter[partition[led], d], load.voter[partition[led], d],
        )  # fmt: skip
        value[led] = load.leader[partition[led], d] - before
        if in_place:
            # more as it starts, less as it has finished
            here = np.flatnonzero(kind >= RAISE)
            of = partition[here]
            more = np.where(kind[here] == LOWER, -1.0, 1.0) * sign[here]
            value[here] = np.maximum(more * (load.voter[of, d] - load.non_voter[of, d]), 0.0)
            value[here[needs.led[step[here]]]] = 0.0  # a leader weighs what it does in any role
        return np.where(sign > 0, value, -value)

    return weigh


def _target_loads(
    cluster: Cluster, loads: NDArray[np.float64], target: Placement
) -> NDArray[np.float64]:
    """Return what nodes carry in the target, from what changes alone."""
    start, first = cluster.placement, cluster.placement.first
    differs = (start.node != target.node) | (start.role != target.role)
    led = np.flatnonzero(start.leader != target.leader)
    for one in (start, target):
        here = led[one.leader[led] >= 0]
        differs[first[here] + one.leader[here]] = True
    replica = np.flatnonzero(differs)
    owner = start.owner[replica]
    slot = replica - first[owner]
    total, load = loads.copy(), cluster.partitions.load
    for placement, sign in ((start, -1.0), (target, 1.0)):
        light = placement.role[replica] == Role.NON_VOTER
        node = placement.node[replica] + 1
        leads = placement.leader[owner] == slot
        for d in range(total.shape[1]):
            value = np.where(light, load.non_voter[owner, d], load.voter[owner, d])
            value = np.where(leads, load.leader[owner, d], value)
            total[:, d] += sign * np.bincount(node, value, len(total) + 1)[1:]
    return total


def _by_domain(
    loads: NDArray[np.float64], domain: NDArray[np.int32], domains: int
) -> NDArray[np.float64]:
    """Add up the loads of the nodes of each domain."""
    columns = [np.bincount(domain + 1, loads[:, d], domains + 1)[1:] for d in range(loads.shape[1])]
    return np.stack(columns, 1)


def _check(
    found: Findings,
    rooms: Rooms,
    kind: str,
    column: str,
    names: Sequence[str],
    entries: Entries,
    place_of: NDArray[np.int32],
    weigh: Weigh,
    start: NDArray[np.float64],
    limit: NDArray[np.float64],
    **where: int,
) -> None:
    """Find events after which a place carries more than its limit, dimension by dimension.

    Keep what happens to each in ``rooms``.
    """
    for at, moment in entries.by_place(place_of, len(limit)):
        for d, name in enumerate(names):
            if np.isfinite(limit[at, d]).any():
                spot = where | {"dimension": d if name else -1}
                what = kind, name, column, spot
                load = weigh(moment[0], moment[2], d)
                _check_some(found, rooms, what, at, moment, load, start[:, d], limit[:, d])


def _check_some(
    found: Findings,
    rooms: Rooms,
    what: tuple[str, str, str, dict[str, int]],
    at: Ints,
    moment: Moment,
    load: NDArray[np.float64],
    start: NDArray[np.float64],
    limit: NDArray[np.float64],
) -> None:
    """Add up what comes and goes, in one dimension, and report what exceeds the limits."""
    kind, name, column, where = what
    # of what happens at once, only the outcome is seen
    now = moment[1] >> 1
    last = np.ones(len(at), bool)
    last[:-1] = (at[1:] != at[:-1]) | (now[1:] != now[:-1])
    seen = np.flatnonzero(last)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    length = np.diff(np.append(opens, len(at)))
    here, step, rank = at[seen], moment[0][seen], moment[1][seen]
    first = np.diff(here, prepend=-1) != 0
    change = _fixed(load, limit[at])
    begin = _fixed(start, limit)
    total = np.cumsum(change)
    base = begin[at[opens]] - (total[opens] - change[opens])
    carried = (total + np.repeat(base, length))[seen]
    fuller = carried > np.where(first, begin[here], np.roll(carried, 1))
    held = np.where(limit > 0.0, ONE, 0.0)[here]
    finite = np.isfinite(limit)
    unit = np.where(limit > 0.0, np.where(finite, limit, 0.0), 1.0)[here] / ONE
    spot: dict[str, ArrayLike] = {column: here, **where}
    bad = np.flatnonzero((carried > held * (1.0 + TOLERANCE)) & fuller)
    found.breach(
        kind, step[bad], rank[bad], ((carried - held) * unit)[bad], **spot | {column: here[bad]}
    )
    found.tight(
        kind, name, np.where(finite[here], carried - held, -np.inf), carried * unit,
        held * unit, step, rank, **spot,
    )  # fmt: skip
    free = np.rint(held * (1.0 + TOLERANCE)).astype(np.int64) - begin[here]
    # an overflow at the stated times is reported once
    free[~finite[here] | np.isin(here, here[bad])] = np.iinfo(np.int64).max
    taken = np.diff(total[seen], prepend=0)
    rooms.add(column, {**where}, Trades(here, step, rank, taken, free, unit))


def _fixed(load: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return loads as shares of their limits in fixed point; beyond a limit of 0, by sign alone."""
    share = np.divide(load, limit, out=np.sign(load), where=limit > 0.0)
    return np.rint(np.clip(share, -MOST, MOST) * ONE).astype(np.int64)
