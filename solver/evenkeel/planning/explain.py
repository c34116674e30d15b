"""Explain a plan: bounds on its makespan, its steps as rows, and the waits of each step.

Lower bounds on the makespan hold for any order of the copies under the plan's throttle.

One bound is the longest chain of dependencies: a copy begins when enough of the replicas on its
node have left for it to fit. Those that can leave soonest are assumed to leave first, and arrivals
in the meantime are ignored; so no order of the same copies can finish sooner.

The other is the clique bound of scheduling under resource constraints (Mingozzi, Maniezzo,
Ricciardelli and Bianco 1998; Brucker and Knust 2012). Each piece of work holds some places for
itself, so that two pieces that share a place run one after the other, and so do pieces any two of
which share one, though there may be none that all of them hold. The heaviest clique is hard to
find; any clique is a bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints, Ints32, Ints64, Reals, Rows
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.planning.schedule import SAFE, dangers
from evenkeel.planning.steps import StepKind, Steps, roles_of
from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES, Throttle

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
    from evenkeel.planning.steps import Blocked

LINKS = 8  # links of a chain that are followed


def last_arrival(
    cluster: Cluster, target: Placement, steps: Steps, alone: Reals, exchange: Ints32 | None
) -> float:
    """Return when the last copy arrives at the earliest, given how long each takes ``alone``."""
    # copies of the same ``exchange (S,)`` begin at once, and what they replace leaves at once
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
    """W copies, of C in all, that lack room in one dimension, and L replicas that leave there."""

    # each of the L leaves when its ``copy`` is done, or at once if that is -1; it weighs what it
    # does in its lightest role

    waits: Rows
    node: Ints32
    lacks: Reals
    left: Ints32
    frees: Reals
    copy: Rows

    def admitted(self, done: Reals) -> Reals:
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


def _queues(cluster: Cluster, target: Placement, steps: Steps, copies: Rows) -> Iterator[_Queue]:
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


# what limits copies, where each of them is subject to it, -1 for nowhere, slots and bandwidth
Way = tuple[str, Ints, int | None, float | None]


@dataclass(frozen=True)
class MakespanBound:
    """Seconds that no order of the same copies can beat, each at the rate that it has alone."""

    seconds: float  # the bound
    term: str  # what proves it: "the longest copy", "copies into a node", "bytes out of a node", ..


@dataclass(frozen=True, eq=False)
class _Copies:
    """C copies: their rows among the steps, what limits them, and what each takes alone."""

    row: Rows
    size: Reals
    ways: list[Way]
    alone: Reals

    @classmethod
    def of(cls, cluster: Cluster, steps: Steps, throttle: Throttle) -> "_Copies":
        """Gather the copies of some steps."""
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
    exchange: Ints32 | None = None,
) -> MakespanBound:
    """Return the least time from the placement that a cluster has, until all steps are done."""
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
    exchange: Ints32 | None = None,
) -> MakespanBound:
    """Return the longest of: copies alone, copies of a node, of the cluster, and of a clique."""
    # So many copies through so few slots need as many rounds of the shortest copy at least, and as
    # much time as their seconds add up to. Steps of the same ``exchange (S,)`` copy at once; two
    # exchanges that share a node come one after the other. Exchanges of a partition that come
    # ``in_turn`` take the sum of their longest copies.
    return _copying(_Copies.of(cluster, steps, throttle), steps, throttle, in_turn, exchange)


def _copying(
    copies: _Copies, steps: Steps, throttle: Throttle, in_turn: bool, exchange: Ints32 | None
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
    if in_turn:
        each = np.arange(len(row)) if exchange is None else exchange[row]
        _, first, piece = np.unique(each, return_index=True, return_inverse=True)
        longest = np.zeros(len(first))
        np.maximum.at(longest, piece, alone)
        chain = np.bincount(steps.partition[row[first]], longest)
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


def _alone(size: Reals, ways: list[Way]) -> Reals:
    """Return the seconds that each copy takes if it has all of every bandwidth to itself."""
    alone = np.zeros(len(size))
    for _, where, _, width in ways:
        if width is not None:
            np.maximum(alone, np.where(where >= 0, size / width, 0.0), out=alone)
    return alone


def _by_exchange(exchange: Ints32, size: Reals, alone: Reals, nodes: list[Way]) -> float:
    """Return the least time for exchanges that hold nodes for themselves."""
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


def _by_slots(where: Ints, alone: Reals, slots: int) -> float:
    """Return the least time for copies of which each place has so many at once."""
    count = np.bincount(where + 1)[1:]
    work = np.bincount(where + 1, alone)[1:]
    rounds = -(-count // slots) * float(alone.min())
    return float(np.maximum(rounds, work / slots).max(initial=0.0))


BUSY = 24  # places that are looked at three at a time, those with the most work
STARTS = 6  # cliques of either kind that are made heavier
CLOSE = 8  # pieces of which it is worked out exactly what they would add to a clique
WORK = 2_000_000  # rows that are looked at for each clique that is made heavier, in all


@dataclass(frozen=True, eq=False)
class Pieces:
    """K pieces of work; row by row, ascending, which holds which place, each pair once."""

    seconds: Reals  # (K,) how long each takes
    # piece, place: who holds what
    piece: Ints64
    place: Ints64

    @classmethod
    def of(cls, seconds: Reals, piece: Ints64, place: Ints64) -> "Pieces":
        """Number places from 0 on, and leave out what is there twice."""
        distinct, place = np.unique(place, return_inverse=True)
        row = np.unique(piece * max(len(distinct), 1) + place)
        return cls(seconds, *np.divmod(row, max(len(distinct), 1)))

    def loads(self, some: Flags) -> Reals:
        """Return the seconds that some of the pieces hold each place."""
        seconds = np.where(some, self.seconds, 0.0)
        return np.asarray(np.bincount(self.place, seconds[self.piece]), np.float64)

    def sharing(self, one: int) -> Flags:
        """Return which pieces share a place with one of them, (K,)."""
        own = self.place[slice(*np.searchsorted(self.piece, [one, one + 1]))]
        found = np.zeros(len(self.seconds), bool)
        found[self.piece[np.isin(self.place, own)]] = True
        return found


def heaviest_clique(pieces: Pieces) -> float:
    """Return the seconds of the heaviest clique that was found."""
    # Pieces that hold one place are a clique, and so are those that hold two of any three. To the
    # heaviest of these others are added, one at a time, while they last longer than those that
    # leave because they share no place with them.
    if len(pieces.piece) == 0:
        return 0.0
    every = np.ones(len(pieces.seconds), bool)
    load = pieces.loads(every)
    busy = np.argsort(-load, kind="stable")[:BUSY]
    starts = [_holders(pieces, busy[[i]], 1) for i in range(min(STARTS, len(busy)))]
    starts += [_holders(pieces, busy[list(three)], 2) for three in _threes(pieces, busy)]
    return max(_grown(pieces, some) for some in starts)


def _holders(pieces: Pieces, places: Rows, least: int) -> Flags:
    """Return the pieces that hold so many of some places, (K,)."""
    inside = pieces.piece[np.isin(pieces.place, places)]
    return np.asarray(np.bincount(inside, minlength=len(pieces.seconds)) >= least)


def _threes(pieces: Pieces, busy: Rows) -> list[tuple[int, int, int]]:
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


def _grown(pieces: Pieces, some: Flags) -> float:
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


SHOWN = 8  # steps waited for, and moves of a circle, that are spelled out; the rest is counted
JOINS = (StepKind.COPY, StepKind.LEAD)
# kinds that bring load to their target, and that take some off their source
LEAVES = (StepKind.REMOVE, StepKind.LEAD)

Reason = tuple[bool, str]  # whether it binds at that instant, and what it is


def explained(plan: "Plan", partition: int) -> str:
    """Describe the steps of a partition, their times, dependencies and blocked moves."""
    name = plan.cluster.partitions.names[partition]
    waits = Waits(plan)
    lines = [f"{name}:"]
    for row in plan.rows_of(np.flatnonzero(plan.steps.partition == partition)):
        lines.append(
            f"  step {row.step}, {quantity(row.start)} to {quantity(row.finish)} s: {way_of(row)}"
        )
        lines += [f"    {one}" for one in waits.lines(row.step)]
    lines += [
        f"  inside its node, wave {row.wave + 1}: {row.source} -> {row.target}"
        for row in disk_rows_of(plan) if row.partition == name
    ]  # fmt: skip
    blocked = [one for one in plan.blocked if one.partition == name]
    lines += [f"  blocked: {_blocked(plan, one)}" for one in blocked]
    text = lines if len(lines) > 1 else [*lines, "  stays as it is"]
    return "\n".join(map(printable, text))


class DiskRow(NamedTuple):
    """A move inside a node that has a wave, with the names of its disks."""

    wave: int
    partition: str
    slot: int
    source: str
    target: str
    bytes: float


def disk_rows_of(plan: "Plan") -> list[DiskRow]:
    """Return the moves inside nodes in the order of their waves."""
    moves, start, disks = plan.disk_moves, plan.cluster.placement, plan.cluster.disks
    which = moves.done[np.argsort(moves.wave[moves.done], kind="stable")]
    if disks is None:
        return []
    owner = start.owner[moves.replica[which]]
    return [
        DiskRow(wave, plan.cluster.partitions.names[p], slot, disks.names[a], disks.names[b], size)
        for wave, p, slot, a, b, size in zip(
            moves.wave[which].tolist(), owner.tolist(),
            (moves.replica[which] - start.first[owner]).tolist(), moves.source[which].tolist(),
            moves.target[which].tolist(), moves.size[which].tolist(), strict=True,
        )
    ]  # fmt: skip


def way_of(row: "PlanRow") -> str:
    """Return what a step does to which slot, from where to where."""
    ends = [one for one in (row.source, row.target) if one is not None]
    if len(ends) == 2 and ends[0] == ends[1]:
        return f"{row.kind} [{row.slot}] on {ends[0]}"
    return f"{row.kind} [{row.slot}] {' -> '.join(ends)}"


def _blocked(plan: "Plan", one: "Blocked") -> str:
    """Return what a move lacks, and with which others it waits in a circle."""
    way = f"[{one.slot}] {one.way}: no {one.lacks}"
    ring = [other for other in plan.blocked if other.circle == one.circle >= 0 and other != one]
    if not ring:
        return way
    text = some_of(ring, lambda other: f"{other.partition}[{other.slot}]", SHOWN)
    return f"{way}; waits in a circle with {text}"


class Waits:
    """What the steps of one plan wait for."""

    def __init__(self, plan: "Plan") -> None:
        self.plan = plan
        self.steps = plan.steps

    def lines(self, step: int) -> list[str]:
        """Return a line per step of another change that a step waits for, the latest first."""
        steps, change = self.steps, self.plan.change
        ahead = steps.before[steps.first[step] : steps.first[step + 1]]
        others = ahead[change[ahead] != change[step]]
        others = others[np.argsort(-steps.finish[others], kind="stable")]
        lines = [
            f"waits for step {row.step} of {row.partition} "
            f"({way_of(row)}, until {quantity(row.finish)} s): {self.reason(step, row.step)}"
            for row in self.plan.rows_of(others[:SHOWN])
        ]
        if len(others) > SHOWN:
            lines.append(f"... and for {len(others) - SHOWN:,} more")
        ready = float(steps.finish[ahead].max(initial=0.0))
        if steps.start[step] > ready + ROUNDING * max(ready, 1.0):
            lines.append(self._idle(step, ready))
        return lines

    def _idle(self, step: int, ready: float) -> str:
        """Return why a step does not begin at once when all that it waits for is done."""
        windows, start = self.plan.throttle.windows, float(self.steps.start[step])
        if windows is not None and not windows.is_open(np.array([0.5 * (ready + start)]))[0]:
            return f"waits for the window of time that opens at {quantity(start)} s"
        return f"nothing holds it up from {quantity(ready)} s on"

    def reason(self, step: int, earlier: int) -> str:
        """Return what a step gets of an earlier one: what binds, else all that it may be."""
        found = list(self._reasons(step, earlier))
        binding = list(dict.fromkeys(text for binds, text in found if binds))
        text = " and ".join(binding or dict.fromkeys(text for _, text in found)) or "its rules"
        return text + self._precedence(step, earlier)

    def _precedence(self, step: int, earlier: int) -> str:
        """Return why an earlier step came before this one, where that was for its partition."""
        plan = self.plan
        mine, theirs = self.steps.partition[step], self.steps.partition[earlier]
        barred = plan.throttle.recovery_first
        if self._lacking[theirs] and not self._lacking[mine]:
            return "" if barred else "; what lacks replicas goes first"
        names, group = plan.cluster.partitions.group_names, plan.cluster.partitions.group
        a, b = names[group[mine]], names[group[theirs]]
        priority = plan.throttle.priority
        if self._lacking[theirs] == self._lacking[mine] and priority.get(b, 0) > priority.get(a, 0):
            return f"; group {b} goes first by its priority"
        return ""

    @cached_property
    def _lacking(self) -> Flags:
        """Partitions that lack live replicas as the plan begins, (P,)."""
        return dangers(self.plan.cluster) < SAFE

    def _reasons(self, step: int, earlier: int) -> Iterator[Reason]:
        partition, change = self.steps.partition, self.plan.change
        if partition[step] == partition[earlier]:
            yield True, "one change of a partition at a time"
            return
        mine, theirs = (np.flatnonzero(change == change[i]) for i in (step, earlier))
        yield from self._rooms(step, mine, theirs)
        yield from self._slots(step, mine, theirs)
        cluster = self.plan.cluster
        group = cluster.partitions.group[partition[[step, earlier]]]
        repairing = self._lacking[partition[[step, earlier]]]
        if self.plan.throttle.recovery_first and repairing[1] and not repairing[0]:
            yield True, "recovery before balance"
        if group[0] == group[1] and cluster.partitions.group_rule[group[0]] >= 0:
            yield False, f"the rule of group {cluster.partitions.group_names[int(group[0])]}"

    @cached_property
    def _began(self) -> Reals:
        """When the change of each step begins, (S,)."""
        return self._of_change(self.steps.start, np.minimum, np.inf)

    @cached_property
    def _ended(self) -> Reals:
        """When the change of each step ends, (S,)."""
        return self._of_change(self.steps.finish, np.maximum, -np.inf)

    def _of_change(self, values: Reals, best: np.ufunc, empty: float) -> Reals:
        number = np.unique(self.plan.change, return_inverse=True)[1]
        found = np.full(int(number.max(initial=-1)) + 1, empty)
        best.at(found, number, values)
        return found[number]

    def _rooms(self, step: int, mine: Rows, theirs: Rows) -> Iterator[Reason]:
        """Yield the nodes and domains that the earlier change leaves and this one joins."""
        steps, cluster = self.steps, self.plan.cluster
        joins = mine[np.isin(steps.kind[mine], JOINS)]
        leaves = theirs[np.isin(steps.kind[theirs], LEAVES)]
        joined, left = np.unique(steps.target[joins]), np.unique(steps.source[leaves])
        joined, left = joined[joined >= 0], left[left >= 0]
        for n in np.intersect1d(joined, left).tolist():
            short = self._short(step, theirs, np.array([n]), self._node_limit(n))
            yield bool(short), f"room on {cluster.nodes.names[n]}{_in(short)}"
        for tier, table in cluster.topology.tier_capacity.items():
            row = cluster.topology.tier_index(tier)
            domain = cluster.topology.domain[row]
            for d in np.intersect1d(domain[joined], domain[left]).tolist():
                if d >= 0:
                    nodes = np.flatnonzero(domain == d)
                    short = self._short(step, theirs, nodes, np.append(table[d], np.inf))
                    name = cluster.topology.domain_name(row, d)
                    yield bool(short), f"room in {tier} {name}{_in(short)}"

    def _node_limit(self, node: int) -> Reals:
        """Return what a node may carry, the number of replicas last, (D + 1,)."""
        nodes = self.plan.cluster.nodes
        most = nodes.max_replicas[node]
        return np.append(nodes.capacity[node], np.inf if most < 0 else most)

    def _short(
        self, step: int, theirs: Rows, nodes: Rows,
        limit: Reals,
    ) -> list[str]:  # fmt: skip
        """Return the dimensions that would have no room had the earlier change not ended."""
        # a change takes its room as it begins, and gives back what it leaves as it ends
        steps, cluster = self.steps, self.plan.cluster
        now = steps.start[step]
        takes, gives = self._effects(nodes)
        held = np.zeros(len(steps), bool)
        held[theirs] = True
        carried = self._carried(self.plan.cluster.placement, nodes)
        carried = carried + takes[self._began <= now].sum(0)
        carried = carried - gives[(self._ended <= now) & ~held].sum(0)
        limit = np.maximum(limit, self._carried(self.plan.end, nodes))
        over = carried > limit * (1.0 + ROUNDING)
        names = (*cluster.dimensions, "number of replicas")
        return [names[d] for d in np.flatnonzero(over).tolist()]

    def _carried(self, placement: Placement, nodes: Rows) -> Reals:
        counts = PlacementCounts.of(self.plan.cluster, placement)
        loads = counts.loads[nodes].sum(0)
        return np.append(loads, float(counts.replicas[nodes].sum()))

    def _effects(self, nodes: Rows) -> tuple[Reals, Reals]:
        """Return what each step brings to some nodes, and what it takes off them, (S, D + 1)."""
        steps, cluster = self.steps, self.plan.cluster
        load = cluster.partitions.load
        role = roles_of(cluster.placement, steps, self.plan.target)
        votes = (role == Role.VOTER)[:, None]
        p = steps.partition
        weight = np.where(votes, load.voter[p], load.non_voter[p])
        lead = (steps.kind == StepKind.LEAD)[:, None]
        weight = np.where(lead, load.leader[p] - load.voter[p], weight)
        weight = np.column_stack([weight, (~lead[:, 0]).astype(np.float64)])
        joins = np.isin(steps.kind, (StepKind.COPY, StepKind.LEAD)) & np.isin(steps.target, nodes)
        leaves = np.isin(steps.kind, (StepKind.REMOVE, StepKind.LEAD)) & np.isin(
            steps.source, nodes
        )
        takes, gives = weight * joins[:, None], weight * leaves[:, None]
        recast = np.flatnonzero(steps.in_place & np.isin(steps.target, nodes))
        more = load.voter[p[recast]] - load.non_voter[p[recast]]
        more = np.where((steps.kind[recast] == StepKind.PROMOTE)[:, None], more, -more)
        takes[recast, :-1], gives[recast, :-1] = np.maximum(more, 0.0), np.maximum(-more, 0.0)
        takes[recast, -1] = gives[recast, -1] = 0.0
        return takes, gives

    def _slots(self, step: int, mine: Rows, theirs: Rows) -> Iterator[Reason]:
        """Yield the throttles under which copies of both changes fall."""
        steps, throttle, cluster = self.steps, self.plan.throttle, self.plan.cluster
        copies = steps.kind == StepKind.COPY
        mine, theirs = mine[copies[mine]], theirs[copies[theirs]]
        if not (len(mine) and len(theirs)):
            return
        now, topology = steps.start[step], cluster.topology
        flying = copies & (steps.start <= now) & (now < steps.finish)

        def shared(where: Ints) -> list[int]:
            found: list[int] = np.intersect1d(where[mine], where[theirs]).tolist()
            return [one for one in found if one >= 0]

        def held(most: int, under_way: Flags, place: str) -> Reason:
            noun = "copy" if most == 1 else "copies"
            return int(under_way.sum()) >= most, f"throttle of {most} {noun} {place}"

        ends = (
            ("into", steps.target, throttle.node_in, throttle.domain_in),
            ("out of", steps.source, throttle.node_out, throttle.domain_out),
        )
        for way, end, most, _ in ends:
            for n in shared(end):
                name = f"{way} {cluster.nodes.names[n]}"
                if most is not None:
                    yield held(most, flying & (end == n), name)
                if throttle.node_bandwidth is not None:
                    yield True, f"bandwidth {name}"
        for way, end, _, limits in ends:
            for tier, count in limits.items():
                row = topology.tier_index(tier)
                domain = np.append(topology.domain[row], -1)
                crosses = domain[steps.target] != domain[steps.source]
                where = np.where(crosses, domain[end], -1)
                for d in shared(where):
                    name = f"{way} {tier} {topology.domain_name(row, d)}"
                    yield held(count, flying & (where == d), name)
        if throttle.copies is not None:
            yield held(throttle.copies, flying, "in all")


def _in(dimensions: list[str]) -> str:
    return f" in {', '.join(dimensions)}" if dimensions else ""


class PlanRow(NamedTuple):
    """One step of a plan with names.

    Parameters
    ----------
    step : int
        Its index.
    wave : int
        Its place in ``plan.waves``, from 0: steps of a wave may be handed out together once the
        wave before has finished. Texts and files for people count from 1.
    kind : str
        Name of a ``StepKind``, in small letters.
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    source, target : str or None
        Names of the nodes copied from or left, copied to or joined.
    bytes : float
        Bytes copied.
    start, finish : float
        Seconds from the beginning.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> first = result.plan().rows()[0]
    >>> first.kind, first.partition, first.source, first.target, first.finish
    ('copy', 'p0', 'n0', 'n1', 1.0)
    """

    step: int
    wave: int
    kind: str
    partition: str
    slot: int
    source: str | None
    target: str | None
    bytes: float
    start: float
    finish: float


def rows_of(plan: "Plan", which: Ints) -> list[PlanRow]:
    """Return some steps with names, in the order asked for."""
    steps, nodes = plan.steps, plan.cluster.nodes.names
    partitions, first = plan.cluster.partitions.names, plan.cluster.placement.first
    return [
        PlanRow(
            i, int(steps.wave[i]), StepKind(steps.kind[i]).name.lower(),
            partitions[int(steps.partition[i])],
            int(steps.replica[i] - first[steps.partition[i]]),
            nodes[int(steps.source[i])] if steps.source[i] >= 0 else None,
            nodes[int(steps.target[i])] if steps.target[i] >= 0 else None,
            float(steps.size[i]), float(steps.start[i]), float(steps.finish[i]),
        )
        for i in which.tolist()
    ]  # fmt: skip


def losses_in_words(plan: "Plan") -> str:
    """Return a sentence on rules that only the end breaks, and on copies without a live source.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]]).down("n0")
    >>> losses_in_words(ek.solve(c).plan())
    ' Of 1 partition no replica lives: what is copied first comes from elsewhere, or is empty.'
    """
    text = ""
    if plan.regressions:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in plan.regressions.items())
        text = f" Its end breaks rules that the beginning keeps: {kinds}."
    steps, start = plan.steps, plan.cluster.placement
    held = np.bincount(start.owner[start.node >= 0], minlength=len(start)) > 0
    nowhere = np.unique(steps.partition[(steps.kind == StepKind.COPY) & (steps.source < 0)])
    if count := int(np.count_nonzero(held[nowhere])):
        text += (
            f" Of {counted(count, 'partition')} no replica lives: what is copied first comes from "
            "elsewhere, or is empty."
        )
    return text


def wave_numbers(plan: "Plan") -> Ints64:
    """Return the number of each step's wave as people count, from 1 on, (S,)."""
    return np.searchsorted(np.unique(plan.steps.wave), plan.steps.wave) + 1


def seconds_by_wave(plan: "Plan", waves: Sequence[Rows] | None = None) -> list[float]:
    """Return how long each wave takes at least, if all of it ends before the next begins."""
    # windows are left out of account; ``waves`` are the steps of each, the plan's own by default
    steps, throttle = plan.steps, replace(plan.throttle, windows=None)
    copied = steps.kind == StepKind.COPY
    found = []
    for wave in plan.waves if waves is None else waves:
        own = wave[copied[wave]]
        alone = steps.apart(own)
        given = plan.cluster, alone, throttle, not plan.protocol.whole, plan.change[own]
        found.append(copying_bound(*given).seconds)
    return found


def short_until(plan: "Plan") -> Reals:
    """Return when each partition has as many live replicas as are wanted, (P,); inf for never."""
    cluster, steps = plan.cluster, plan.steps
    live = np.append(cluster.nodes.serves, False)
    start = cluster.placement
    having = np.bincount(start.owner[live[start.node]], minlength=len(start))
    lack = np.maximum(cluster.partitions.replicas - having, 0)
    until = np.where(lack > 0, np.inf, 0.0)
    serves = np.isin(steps.kind, (StepKind.PROMOTE, StepKind.SWAP)) & live[steps.target]
    serves &= ~live[start.node[steps.replica]]
    # of a replica that moves twice the first time counts
    which = np.flatnonzero(serves)
    which = which[np.lexsort((steps.finish[which], steps.replica[which]))]
    which = which[np.diff(steps.replica[which], prepend=-1) != 0]
    which = which[np.lexsort((steps.finish[which], steps.partition[which]))]
    partition = steps.partition[which]
    opens = np.flatnonzero(np.diff(partition, prepend=-1))
    count = np.diff(np.append(opens, len(which)))
    owner = partition[opens]
    repaired = np.flatnonzero((lack[owner] > 0) & (count >= lack[owner]))
    last = opens[repaired] + lack[owner[repaired]] - 1
    until[owner[repaired]] = steps.finish[which[last]]
    return until


def held_to(plan: "Plan") -> str:
    """Return the protocol and the throttle in words."""
    throttle = plan.throttle
    parts = [f"protocol {plan.protocol.name}"]
    parts += [
        f"{name} {quantity(value)}"
        for name in (*COUNTS, *RATES)
        if (value := getattr(throttle, name)) is not None
    ]  # fmt: skip
    for name in BY_TIER:
        parts += [
            f"{name} {tier} {quantity(most)}" for tier, most in getattr(throttle, name).items()
        ]
    if throttle.windows is not None:
        parts.append("in windows of time")
    if throttle.recovery_first:
        parts.append("recovery first")
    return " · ".join(parts)
