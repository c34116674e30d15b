"""Check loads of nodes and domains against capacities at every instant, at any pace.

An executor begins a step once those that it depends on are done, and no clock bounds how long they
take. Then a place overflows in no execution if, and only if, the total that steps take there is
covered by what is free at the beginning and by what others give back that are done before in any
case, nothing being counted twice. If some steps were not covered (Hall 1935), these and all before
them could have begun while nothing else is done.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.audit import TOLERANCE
from evenkeel.measure.disks import sizes
from evenkeel.measure.rows import at_node, stands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import (
    ROUNDING,
    Columns,
    Flags,
    Ints,
    Ints32,
    Ints64,
    Reals,
    Rows,
)
from evenkeel.planning.replay.certificate import Breach, FoundBreaches
from evenkeel.planning.replay.timeline import BEGINNING, KINDS, LOWER, RAISE, pairs, sort_by
from evenkeel.planning.replay.trajectory import JOINED, VACATED, ReplicaState, Trajectory
from evenkeel.planning.steps import StepKind, Steps

if TYPE_CHECKING:
    from evenkeel.planning.disk_moves import DiskMoves


@dataclass(frozen=True, eq=False)
class Begun:
    """Replicas of which a copy is under way, ascending, their nodes, and their weight there."""

    # the weight is the load in transient dimensions, and of a replica that was nowhere in all

    replica: Ints64
    node: Ints32
    weight: Reals

    def steps(self, steps: Steps) -> Flags:
        """Return the steps that go on with one of the copies, (S,)."""
        copies = steps.kind == StepKind.COPY
        if len(self.replica) == 0:
            return np.zeros(len(steps), bool)
        at = np.minimum(np.searchsorted(self.replica, steps.replica), len(self.replica) - 1)
        same = (self.replica[at] == steps.replica) & (self.node[at] == steps.target)
        return np.asarray(copies & same)


def under_way(cluster: Cluster, in_flight: Ints32 | None) -> Begun:
    """Return the copies that are under way where replicas are on, or on their way to, nodes."""
    start = cluster.placement
    node = start.node if in_flight is None else in_flight
    replica = np.flatnonzero((node != start.node) & (node >= 0))
    partition, load = start.owner[replica], cluster.partitions.load
    light = (start.role[replica] == Role.NON_VOTER)[:, None]
    weight = np.where(light, load.non_voter[partition], load.voter[partition])
    fresh = (start.node[replica] < 0)[:, None]
    return Begun(replica, node[replica], np.where(cluster.transient | fresh, weight, 0.0))


def check_begun(found: FoundBreaches, begun: Begun) -> None:
    """Find copies under way that no step goes on with, and changes that come before they settle."""
    if len(begun.replica) == 0:
        return
    timeline, steps, start = found.timeline, found.timeline.steps, found.cluster.placement
    on = np.flatnonzero(begun.steps(steps))
    left = np.setdiff1d(begun.replica, steps.replica[on])
    at = np.searchsorted(begun.replica, left)
    none = np.full(len(left), -1)
    found.breach("in_flight", none, np.full(len(left), BEGINNING), partition=start.owner[left],
                 node=begun.node[at])  # fmt: skip
    changes = np.isin(timeline.kind, CHANGES)
    row = np.minimum(np.searchsorted(begun.replica, steps.replica), len(begun.replica) - 1)
    mine = begun.replica[row] == steps.replica
    comes = np.isin(timeline.kind, (StepKind.PROMOTE, StepKind.SWAP))
    joins = np.flatnonzero(comes & mine & (steps.target == begun.node[row]))
    # until the last copy under way of each partition has become a member
    until = np.zeros(len(start))
    np.maximum.at(until, steps.partition[joins], steps.start[joins])
    early = np.flatnonzero(changes & ~mine & (steps.start < until[steps.partition]))
    found.breach("in_flight", early, timeline.start[early], partition=steps.partition[early])


NEEDED_TO_JOIN: dict[int, tuple[ReplicaState, ...]] = {
    StepKind.COPY: (ReplicaState.EMPTY,),
    StepKind.PROMOTE: (ReplicaState.CAUGHT_UP,),
    StepKind.SWAP: (ReplicaState.CAUGHT_UP,),
    RAISE: (ReplicaState.SERVING,),
    LOWER: (ReplicaState.SERVING,),
}
# what a step may find on its target, and on its source, as it starts
NEEDED_TO_LEAVE: dict[int, tuple[ReplicaState, ...]] = {
    StepKind.DEMOTE: (ReplicaState.SERVING,),
    StepKind.SWAP: (ReplicaState.SERVING,),
    StepKind.REMOVE: (ReplicaState.LEFT, ReplicaState.CAUGHT_UP),
}

# kinds that change who is a member, and as what
CHANGES = (StepKind.PROMOTE, StepKind.DEMOTE, StepKind.SWAP, RAISE, LOWER)

CAN_BE_READ = (  # what can be copied from
    ReplicaState.CAUGHT_UP,
    ReplicaState.PROMOTING,
    ReplicaState.SERVING,
    ReplicaState.DEMOTING,
)


@dataclass(frozen=True, eq=False)
class Needs:
    """Which steps build on which, and of which replicas they are."""

    # (S,) copies of a replica that was nowhere, and what is done with their learners later
    fresh: Flags
    light: Flags  # (S,) steps of replicas that are non-voters as they start
    # (S,) hand-overs from a leader that is no voter, and roles that change while the replica leads
    led: Flags
    # later, earlier, rank: steps, those that each builds on, and the rank of its start
    later: list[Ints32] = field(default_factory=list)
    earlier: list[Ints32] = field(default_factory=list)
    rank: list[Ints32] = field(default_factory=list)

    def note(self, trajectory: Trajectory, event: Rows, column: Ints) -> None:
        """Note that events build on what happened in other columns, unless in the beginning."""
        earlier = trajectory.step[column]
        real = np.flatnonzero(earlier >= 0)
        at = trajectory.at[event[real]]
        self.later.append(trajectory.step[at].astype(np.int32))
        self.earlier.append(earlier[real].astype(np.int32))
        self.rank.append(trajectory.rank[at].astype(np.int32))


def check_replica_states(found: FoundBreaches, trajectory: Trajectory, needs: Needs) -> None:
    """Find steps whose target or source is not what they need, and where it became what it is."""
    steps = found.timeline.steps
    for column, end, needed, made in (
        (trajectory.joined, steps.target, NEEDED_TO_JOIN, JOINED),
        (trajectory.vacated, steps.source, NEEDED_TO_LEAVE, VACATED),
    ):
        fits = np.zeros((2, KINDS, len(ReplicaState)), bool)
        for kind, states in needed.items():
            fits[0, kind, list(states)] = True
            fits[1, kind, made[kind][0]] = True
        event = np.flatnonzero(fits[0].any(1)[trajectory.kind])
        step = trajectory.step[trajectory.at[event]]
        event = event[end[step] >= 0]
        at = trajectory.at[event]
        col = column[event]
        before = np.where(col >= 0, trajectory.state[col, at - 1], ReplicaState.EMPTY)
        phase = (~trajectory.begins[event]).astype(np.intp)
        bad = ~fits[phase, trajectory.kind[event], before]
        step = trajectory.step[at]
        found.breach(
            "precondition", step[bad], trajectory.rank[at[bad]],
            partition=trajectory.partition[at[bad]],
            node=end[step[bad]],
        )  # fmt: skip
        event, col = event[(phase == 0) & (col >= 0)], col[(phase == 0) & (col >= 0)]
        needs.note(trajectory, event, trajectory.since[col, trajectory.at[event] - 1])


def check_roles(found: FoundBreaches, trajectory: Trajectory, needs: Needs) -> None:
    """Find steps that exchange what is no voter, or change the role of what is of another one."""
    if not trajectory.role.any() and not (trajectory.kind >= RAISE).any():
        return
    steps = found.timeline.steps
    event = np.flatnonzero(trajectory.begins)
    at = trajectory.at[event]
    step = trajectory.step[at]
    slot = steps.replica[step] - found.cluster.placement.first[trajectory.partition[at]]
    role, kind = trajectory.role[slot, at - 1], trajectory.kind[event]
    needs.light[step] = role == Role.NON_VOTER
    voters_only = (kind == StepKind.PROMOTE) | (kind == StepKind.DEMOTE) | (kind == LOWER)
    bad = (voters_only & (role != Role.VOTER)) | ((kind == RAISE) & (role != Role.NON_VOTER))
    found.breach(
        "role", step[bad], trajectory.rank[at[bad]], partition=trajectory.partition[at[bad]]
    )
    event = np.flatnonzero((trajectory.kind >= RAISE) & (trajectory.joined >= 0))
    at = trajectory.at[event]
    other = trajectory.slot[:, at] == trajectory.slot[trajectory.joined[event], at]
    other &= trajectory.state[:, at - 1] != ReplicaState.EMPTY
    other[trajectory.joined[event], np.arange(len(event))] = False
    bad = other.any(0)
    found.breach(
        "precondition", trajectory.step[at[bad]], trajectory.rank[at[bad]],
        partition=trajectory.partition[at[bad]], node=steps.target[trajectory.step[at[bad]]],
    )  # fmt: skip


def check_copies(found: FoundBreaches, trajectory: Trajectory, needs: Needs, live: Flags) -> None:
    """Find copies from nodes that have nothing to read from start to finish."""
    steps = found.timeline.steps
    event = np.flatnonzero(trajectory.event((StepKind.COPY,)))
    at = trajectory.at[event]
    step = trajectory.step[at]
    source = steps.source[step]
    slot = trajectory.slot[trajectory.joined[event], at]
    readable = np.zeros(len(event), bool)
    anywhere = np.zeros(len(event), bool)
    nowhere = np.ones(len(event), bool)
    read_since = np.full(len(event), -1, np.int64)
    can = np.isin(np.arange(len(ReplicaState)), CAN_BE_READ)
    for c in range(len(trajectory.node)):
        node, state = trajectory.node[c, at - 1], trajectory.state[c, at - 1]
        alive = can[state] & at_node(live, node)
        anywhere |= alive
        here = alive & (node == source)
        readable |= here
        read_since = np.where(here, trajectory.since[c, at - 1], read_since)
        nowhere &= (state == ReplicaState.EMPTY) | (trajectory.slot[c, at] != slot)
    begins = trajectory.begins[event]
    needs.fresh[step[nowhere & begins]] = True
    bad = np.flatnonzero(np.where(source >= 0, ~readable, anywhere & begins))
    found.breach(
        "source", step[bad], trajectory.rank[at[bad]], partition=trajectory.partition[at[bad]],
        node=source[bad],
    )  # fmt: skip
    from_replica = np.flatnonzero(begins & (read_since >= 0))
    needs.note(trajectory, event[from_replica], read_since[from_replica])


def mark_fresh(found: FoundBreaches, trajectory: Trajectory, needs: Needs) -> None:
    """Mark the steps that promote, swap or remove a learner of a replica that was nowhere."""
    for column, kinds in (
        (trajectory.joined, (StepKind.PROMOTE, StepKind.SWAP)),
        (trajectory.vacated, (StepKind.REMOVE,)),
    ):
        event = np.flatnonzero(trajectory.event(kinds) & trajectory.begins & (column >= 0))
        at, col = trajectory.at[event], column[event]
        learner = trajectory.state[col, at - 1] == ReplicaState.CAUGHT_UP
        at, col = at[learner], col[learner]
        needs.fresh[trajectory.step[at]] = needs.fresh[
            trajectory.step[trajectory.since[col, at - 1]]
        ]


def check_changes(found: FoundBreaches, trajectory: Trajectory, needs: Needs) -> None:
    """Find membership changes that start while another of the partition is unsettled."""
    event = np.flatnonzero(trajectory.event(CHANGES))
    at, kind = trajectory.at[event], trajectory.kind[event]
    begins, ends = trajectory.begins[event], trajectory.ends[event]
    stays = (kind == StepKind.PROMOTE) | (kind >= RAISE)
    column = np.where(stays, trajectory.joined[event], trajectory.vacated[event])
    twin = np.full(len(event), -1, np.int64)
    own = trajectory.slot[np.maximum(column, 0), at]
    for c in range(len(trajectory.node)):
        other = (trajectory.slot[c, at] == own) & (
            trajectory.state[c, at - 1] == ReplicaState.SERVING
        )
        twin = np.where(other & (c != column) & (column >= 0), c, twin)
    closes = begins & (kind == StepKind.DEMOTE) & (twin >= 0)
    opens = ends & (kind == StepKind.PROMOTE) & (twin >= 0)
    needs.note(trajectory, event[closes], trajectory.since[twin[closes], at[closes] - 1])
    change = begins.astype(np.int64) - ends - closes + opens
    delta = np.zeros(len(trajectory.step), np.int64)
    delta[at] = change
    unsettled = np.cumsum(delta)
    base = np.repeat(unsettled[trajectory.initial] - delta[trajectory.initial], trajectory.final
                     - trajectory.initial + 1)  # fmt: skip
    unsettled -= base
    # what starts and finishes at once counts while it does
    now = unsettled[at - 1] + begins - closes
    bad = np.flatnonzero(begins & (now > 1))
    found.breach(
        "change", trajectory.step[at[bad]], trajectory.rank[at[bad]], now[bad] - 1,
        partition=trajectory.partition[at[bad]],
    )  # fmt: skip
    first = np.flatnonzero(begins)
    found.tight(
        "change", "", now[first] - 1, now[first], 1, trajectory.step[at[first]],
        trajectory.rank[at[first]], partition=trajectory.partition[at[first]],
    )  # fmt: skip
    follows = np.flatnonzero(
        begins[1:] & (trajectory.partition[at[1:]] == trajectory.partition[at[:-1]])
    )
    needs.note(trajectory, event[follows + 1], at[follows])


def check_arrivals(found: FoundBreaches, target: Placement | None) -> None:
    """Find copies to nodes that receive none, or that are forbidden to the partition."""
    steps, cluster = found.timeline.steps, found.cluster
    nodes = cluster.nodes
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    partition, node = steps.partition[copies], steps.target[copies]
    wanted = np.zeros(len(copies), bool) if target is None else stands(target, partition, node)
    dead = ~nodes.serves[node]
    _breach(found, "not_accepted", copies[dead | (~nodes.may_receive[node] & ~wanted)])
    if len(cluster.forbidden):
        forbidden = cluster.forbidden.astype(np.int64) @ np.array([len(nodes), 1])
        pair = partition.astype(np.int64) * len(nodes) + node
        _breach(found, "forbidden", copies[np.isin(pair, forbidden) & ~wanted])


def check_pins(found: FoundBreaches, target: Placement | None) -> None:
    """Find pinned replicas that leave their nodes, unless the target takes them from there."""
    steps, start = found.timeline.steps, found.cluster.placement
    if not start.flags.any():
        return
    leaves = np.isin(found.timeline.kind, (StepKind.DEMOTE, StepKind.SWAP, StepKind.REMOVE))
    pinned = (start.flags[steps.replica] & Flag.PINNED) != 0
    at_home = (start.node[steps.replica] == steps.source) & (steps.source >= 0)
    which = np.flatnonzero(leaves & pinned & at_home)
    if target is not None:
        which = which[stands(target, steps.partition[which], steps.source[which])]
    _breach(found, "pinned", which, leaving=True)


def _breach(found: FoundBreaches, kind: str, step: Rows, *, leaving: bool = False) -> None:
    steps = found.timeline.steps
    node = steps.source if leaving else steps.target
    found.breach(
        kind, step, found.timeline.start[step], partition=steps.partition[step], node=node[step]
    )


LEAVING = (StepKind.DEMOTE, StepKind.REMOVE, StepKind.SWAP, LOWER)


def check_leaders(
    found: FoundBreaches,
    trajectory: Trajectory,
    needs: Needs,
    live: Flags,
    target: Placement | None,
) -> Ints32:
    """Check hand-overs of leaders, and return the last leading nodes, -1 for none."""
    # a leader on a dead node leads nothing: its replica may leave, and any other may take over
    steps, cluster = found.timeline.steps, found.cluster
    column, since = _leading(found, trajectory)
    lead = np.flatnonzero(trajectory.event((StepKind.LEAD,)))
    at = trajectory.at[lead]
    step, to = trajectory.step[at], trajectory.joined[lead]
    partition = trajectory.partition[at]
    state = np.where(to >= 0, trajectory.state[to, at - 1], ReplicaState.EMPTY)
    fit = (state == ReplicaState.SERVING) & trajectory.votes[to, at - 1]
    may = cluster.nodes.may_lead
    if target is not None:
        # where the target itself wants a leader that may not lead, the plan has no choice
        wanted = target.leader_node[partition] == steps.target[step]
        fit &= may[steps.target[step]] | (wanted & live[steps.target[step]])
    else:
        fit &= may[steps.target[step]]
    led = column[at - 1]
    needs.led[step[trajectory.begins[lead] & (led >= 0) & ~trajectory.votes[led, at - 1]]] = True
    leader = np.where(led >= 0, trajectory.node[led, at - 1], -1)
    alive = at_node(live, leader)
    fit &= (steps.source[step] == leader) | (~alive & (steps.source[step] < 0))
    fit &= ~alive | (leader != steps.target[step])
    bad = np.flatnonzero(~fit)
    found.breach(
        "leader", step[bad], trajectory.rank[at[bad]], partition=partition[bad],
        node=steps.target[step[bad]],
    )  # fmt: skip
    begun = np.flatnonzero(trajectory.begins[lead])
    needs.note(trajectory, lead[begun], since[at[begun] - 1])
    seen = np.flatnonzero(trajectory.begins[lead] & (to >= 0))
    needs.note(trajectory, lead[seen], trajectory.since[to[seen], at[seen] - 1])
    recast = np.flatnonzero(
        (trajectory.kind >= RAISE) & (trajectory.joined >= 0) & trajectory.begins
    )
    recast = recast[trajectory.joined[recast] == column[trajectory.at[recast] - 1]]
    needs.led[trajectory.step[trajectory.at[recast]]] = True
    _check_leaving(found, trajectory, needs, live, column, since)
    final = column[trajectory.final]
    serves = (final >= 0) & (trajectory.state[final, trajectory.final] == ReplicaState.SERVING)
    return np.where(serves, trajectory.node[final, trajectory.final], np.int32(-1))


def _check_leaving(
    found: FoundBreaches,
    trajectory: Trajectory,
    needs: Needs,
    live: Flags,
    column: Ints64,
    since: Ints64,
) -> None:
    """Find live leaders that are demoted, where they are or not, swapped or removed."""
    steps = found.timeline.steps
    left = np.where(trajectory.kind == LOWER, trajectory.joined, trajectory.vacated)
    gone = np.flatnonzero(trajectory.event(LEAVING) & trajectory.begins & (left >= 0))
    at, col = trajectory.at[gone], left[gone]
    step = trajectory.step[at]
    leads = (column[at - 1] == col) & live[steps.source[step]]
    leads &= trajectory.state[col, at - 1] == ReplicaState.SERVING
    bad = np.flatnonzero(leads)
    found.breach(
        "leader", step[bad], trajectory.rank[at[bad]], partition=trajectory.partition[at[bad]],
        node=steps.source[step[bad]],
    )  # fmt: skip
    handed = since[at - 1]
    was_lead = trajectory.step[handed]
    here = np.flatnonzero(
        (was_lead >= 0) & (steps.source[np.maximum(was_lead, 0)] == steps.source[step])
        & (trajectory.state[col, at - 1] == ReplicaState.SERVING)
    )  # fmt: skip
    needs.note(trajectory, gone[here], handed[here])


def _leading(found: FoundBreaches, trajectory: Trajectory) -> tuple[Ints64, Ints64]:
    """Return the row of the leader in each state, and the event that made it the leader."""
    cluster = found.cluster
    slot = cluster.placement.leader[trajectory.partition[trajectory.initial]].astype(np.int64)
    value = np.zeros(len(trajectory.step), np.int64)
    since = np.zeros(len(trajectory.step), np.int64)
    value[trajectory.initial], since[trajectory.initial] = slot, trajectory.initial
    handed = np.flatnonzero(trajectory.event((StepKind.LEAD,)) & trajectory.ends)
    at = trajectory.at[handed]
    value[at], since[at] = trajectory.joined[handed], at
    np.maximum.accumulate(since, out=since)
    return value[since], since


@dataclass(frozen=True, eq=False)
class Trades(Columns):
    """What steps take of places and give back, an entry per step and place; E of them."""

    # place, step, rank: (E,) the place, the step, and the rank of its event
    place: Ints
    step: Ints
    rank: Ints
    taken: Ints64  # (E,) what it takes, below 0 where it gives back
    free: Ints64  # (E,) what of its place is free at the beginning
    unit: Reals  # (E,) what one of these counts, in the dimension's unit

    def tight(self) -> "Trades":
        """Return the entries of places, which lie together, that do not hold all that comes."""
        opens = np.flatnonzero(np.diff(self.place, prepend=-1))
        if len(opens) == 0:
            return self
        comes = np.add.reduceat(np.maximum(self.taken, 0), opens)
        length = np.diff(np.append(opens, len(self.place)))
        full = np.repeat(comes > self.free[opens], length)
        return self.take(np.flatnonzero(full & (self.taken != 0)))


@dataclass(frozen=True, eq=False)
class Rooms:
    """What happens to places that do not hold all that comes, kind by kind and by dimension."""

    where_of: list[dict[str, ArrayLike]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    trades: list[Trades] = field(default_factory=list)

    def add(self, column: str, where: dict[str, ArrayLike], trades: Trades) -> None:
        """Keep what happens to places of one kind, which findings have in a column."""
        tight = trades.tight()
        if len(tight.place):
            self.columns.append(column)
            self.where_of.append(where)
            self.trades.append(tight)

    def check(self, found: FoundBreaches) -> None:
        """Find for each place the first step, by its index, that may find no room there."""
        if not self.trades:
            return
        part = np.repeat(np.arange(len(self.trades)), [len(one.place) for one in self.trades])
        every = Trades.joined(self.trades)
        _, lane = np.unique(part * np.int64(1 << 32) + every.place, return_inverse=True)
        order = np.lexsort((every.step, lane))
        for row, lacks in _short(found.timeline.steps, every.take(order), lane[order]):
            at = order[row : row + 1]
            i = int(part[at[0]])
            found.breach(
                "room", every.step[at], every.rank[at], lacks * every.unit[at],
                **self.where_of[i] | {self.columns[i]: every.place[at]},
            )  # fmt: skip


def _short(steps: Steps, trades: Trades, lane: Rows) -> list[tuple[int, int]]:
    """Return the first entry of each lane that lacks room, and how much; by lane and step."""
    need = _beyond_free(trades, lane)
    rows = np.flatnonzero(need > 0)
    gives = np.flatnonzero(trades.taken < 0)
    gives = gives[np.argsort(trades.rank[gives], kind="stable")]
    first, giver = direct_givers(steps, lane, trades.step, rows, gives)
    left = np.maximum(-trades.taken, 0).tolist()
    unsure: set[int] = set()
    cuts = first.tolist()
    for i, (of, lacks) in enumerate(zip(lane[rows].tolist(), need[rows].tolist(), strict=True)):
        for g in giver[cuts[i] : cuts[i + 1]]:
            used = min(left[g], lacks)
            left[g] -= used
            lacks -= used
            if lacks == 0:
                break
        if lacks:
            unsure.add(of)
    # nearly always that was all: most steps wait for the very ones that give them room
    some = np.array(sorted(unsure), np.intp)
    low, high = np.searchsorted(lane, some), np.searchsorted(lane, some, side="right")
    lanes = [range(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    found = []
    for mine, givers in givers_ahead(steps, trades.step, trades.taken, lanes):
        short = first_lacking(trades.taken[mine.start : mine.stop].tolist(),
                              int(trades.free[mine.start]), givers)  # fmt: skip
        if short is not None:
            found.append((mine.start + short[0], short[1]))
    return found


def _beyond_free(trades: Trades, lane: Rows) -> Ints64:
    """Return what entries take beyond what is free, that being for the first of their lane."""
    comes = np.maximum(trades.taken, 0)
    total = np.cumsum(comes)
    opens = np.flatnonzero(np.diff(lane, prepend=-1))
    length = np.diff(np.append(opens, len(lane)))
    total -= np.repeat(total[opens] - comes[opens], length)
    return np.asarray(np.clip(total - trades.free, 0, comes))


BITS = 2048  # entries that give back whose followers are looked for in one go


def direct_givers(
    steps: Steps, lane: Ints, step: Ints, takes: Ints, gives: Ints
) -> tuple[Ints64, list[int]]:
    """Return, of entries that take, those of their lane that give to them, in the order given."""
    # Entries are of a ``step (E,)`` and a ``lane (E,)``. Only those are seen that come before a
    # step in its chain, or end in a chain that one of these waits for.
    chain, many = _chains(steps), np.int64(max(len(steps), 1))
    whose, of, end = _ends_before(steps, chain, step[takes])
    key = lane[gives] * many + chain[step[gives]]
    order = np.lexsort((step[gives], key))
    distinct, number = np.unique(key, return_inverse=True)
    wanted = lane[takes[whose]] * many + of
    at = np.searchsorted(distinct, wanted)
    there = np.flatnonzero(np.append(distinct, -1)[at] == wanted)
    place = number[order] * many + step[gives][order]
    low = np.searchsorted(place, at[there] * many)
    high = np.searchsorted(place, at[there] * many + end[there], side="right")
    each, where = _spread(low, high)
    whose, giver = whose[there][each], order[where]
    by_taker = np.lexsort((giver, whose))
    first = np.searchsorted(whose[by_taker], np.arange(len(takes) + 1))
    return first, gives[giver[by_taker]].tolist()


def _chains(steps: Steps) -> Ints32:
    """Return a number per step, equal for steps of a partition each of which waits for the last."""
    # short numbers: there are as many steps as anywhere
    order = sort_by(steps.partition, int(steps.partition.max(initial=0)) + 1).astype(np.int32)
    previous = np.full(len(steps), -1, np.int32)
    owner = steps.partition[order]
    same = owner[1:] == owner[:-1]
    previous[order[1:][same]] = order[:-1][same]
    linked = np.zeros(len(steps), bool)
    step, before = pairs(steps)
    linked[step[previous[step] == before]] = True
    chain = np.empty(len(steps), np.int32)
    chain[order] = np.cumsum(~linked[order], dtype=np.int32) - 1
    return chain


def _ends_before(steps: Steps, chain: Ints32, of: Ints) -> tuple[Rows, Ints64, Ints64]:
    """Return the chains that are partly done before some steps: whose, which, and up to where."""
    # a step's own chain up to before itself, and those that its chain waits for until then
    many = np.int64(max(len(steps), 1))
    step, before = pairs(steps)
    across = np.flatnonzero(chain[step] != chain[before])
    into = chain[step[across]] * many + step[across]
    order = np.argsort(into, kind="stable")
    into, ends = into[order], before[across[order]]
    low = np.searchsorted(into, chain[of] * many)
    high = np.searchsorted(into, chain[of] * many + of, side="right")
    each, where = _spread(low, high)
    whose = np.concatenate([np.arange(len(of)), each])
    return (whose, np.concatenate([chain[of], chain[ends[where]]]),
            np.concatenate([of - 1, ends[where]]).astype(np.int64))  # fmt: skip


def _spread(low: Ints, high: Ints) -> tuple[Rows, Rows]:
    """Return all of some ranges one after another: of which range each is, and what is there."""
    length = high - low
    each = np.repeat(np.arange(len(low)), length)
    laid = np.cumsum(length) - length
    return each, np.arange(len(each)) + (low - laid)[each]


def givers_ahead(
    steps: Steps, step: Ints, taken: Ints, lanes: Sequence[range]
) -> Iterator[tuple[range, list[list[int]]]]:
    """Yield lanes with the entries, counted from their first, that give to each of theirs."""
    # A lane is a range of entries, each of a ``step (E,)``, which take something or, below 0, give
    # it back. One gives to another if it is done before it in any case.
    part: list[range] = []
    count = 0
    for lane in lanes:
        gives = int(np.count_nonzero(taken[lane.start : lane.stop] < 0))
        if part and count + gives > BITS:
            yield from _givers_of(steps, step, taken, part)
            part, count = [], 0
        part.append(lane)
        count += gives
    yield from _givers_of(steps, step, taken, part)


def _givers_of(
    steps: Steps, step: Ints, taken: Ints, lanes: list[range]
) -> Iterator[tuple[range, list[list[int]]]]:
    """Follow all that gives through all dependencies, each a bit."""
    own: dict[int, int] = {}
    bits: list[list[tuple[int, int]]] = []
    takers: dict[int, int] = {}
    bit = 1
    for lane in lanes:
        bits.append([])
        for i, (s, amount) in enumerate(
            zip(step[lane.start : lane.stop].tolist(), taken[lane.start : lane.stop].tolist(),
                strict=True)
        ):  # fmt: skip
            if amount > 0:
                takers[s] = 0
            else:
                bits[-1].append((i, bit))
                own[s] = own.get(s, 0) | bit
                bit <<= 1
    done: dict[int, int] = {}
    begin, end = min(own, default=0), max(takers, default=-1)
    low = int(steps.first[begin]) if end >= begin else 0
    first, before = (steps.first[begin : end + 2] - low).tolist(), steps.before[low:].tolist()
    for s in range(begin, end + 1):
        found = 0
        for b in before[first[s - begin] : first[s - begin + 1]]:
            found |= done.get(b, 0)
        if s in takers:
            takers[s] = found
        found |= own.get(s, 0)
        if found:
            done[s] = found
    for lane, mine in zip(lanes, bits, strict=True):
        found_by = [takers.get(s, 0) for s in step[lane.start : lane.stop].tolist()]
        yield lane, [[i for i, bit in mine if found & bit] for found in found_by]


FREE = -1  # giver of what is free at the beginning, to all
Way = list[tuple[int, int]]  # takers, and the giver that each turns to


def first_lacking(
    taken: Sequence[int], free: int, givers: Sequence[Sequence[int]]
) -> tuple[int, int] | None:
    """Return the first entry that cannot have all that it takes, and how much it lacks."""
    # Entries below 0 give. Others take what is free, and from their ``givers`` by shortest
    # augmenting paths (Edmonds and Karp 1972).
    left = {i: -amount for i, amount in enumerate(taken) if amount < 0} | {FREE: free}
    used: dict[int, dict[int, int]] = {g: {} for g in left}
    for i, lacks in enumerate(taken):
        while lacks > 0:
            way = _way(i, givers, left, used)
            if not way:
                return i, lacks
            last = way[-1][1]
            amount = min(lacks, left[last], *(used[g][of] for of, g in _given_up(way)))
            for of, g in _given_up(way):
                used[g][of] -= amount
            for of, g in way:
                used[g][of] = used[g].get(of, 0) + amount
            left[last] -= amount
            lacks -= amount
    return None


def _given_up(way: Way) -> Iterator[tuple[int, int]]:
    """Yield the later takers of a way, and the giver that each leaves to the one before it."""
    yield from ((of, g) for (_, g), (of, _) in pairwise(way))


def _way(
    taker: int,
    givers: Sequence[Sequence[int]],
    left: dict[int, int],
    used: dict[int, dict[int, int]],
) -> Way:
    """Return the way from a taker to a giver that has something left; empty where there is none."""
    came: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    queue = [taker]
    for one in queue:
        for g in (FREE, *givers[one]):
            if g in seen:
                continue
            seen.add(g)
            if left[g]:
                way = [(one, g)]
                while way[0][0] in came:
                    way.insert(0, came[way[0][0]])
                return way
            for other, amount in used[g].items():
                if amount and other != taker and other not in came:
                    came[other] = one, g
                    queue.append(other)
    return []


# a limit in the fixed point that loads are added up in, so that what comes and goes cancels
ONE = 2.0**52

Signs = NDArray[np.int8]
Moment = tuple[Ints, Ints, Signs]  # steps, ranks of their events, and signs
MOST = 64.0  # single loads count as so many limits at most: sums beyond 2048 limits would overflow


SOME = 1 << 16  # entries that are looked at in one go: all of some places
# takes steps, signs and a dimension; returns the load put on, negative where it is taken off
Weigh = Callable[[Ints, Signs, int], Reals]


@dataclass(frozen=True, eq=False)
class Entries:
    """What steps put on nodes and take off again, an entry per step and end, in no order."""

    # step, node, rank: (E,) step, node that becomes fuller or emptier, and rank of the event
    step: Ints
    node: Ints
    rank: Ints
    sign: Signs  # (E,) 1 where load is put on, -1 where it is taken off

    @classmethod
    def of(cls, parts: Sequence[tuple[Rows, Ints, Ints, int]]) -> "Entries":
        """Join parts of steps, nodes of all steps, ranks of all steps, and a sign."""
        return cls(
            np.concatenate([which.astype(np.int32) for which, *_ in parts]),
            np.concatenate([node[which] for which, node, *_ in parts]),
            np.concatenate([rank[which] for which, _, rank, _ in parts]),
            np.concatenate([np.full(len(which), sign, np.int8) for which, *_, sign in parts]),
        )

    def by_place(self, place_of: Ints32, places: int) -> Iterator[tuple[Ints, Moment]]:
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


def check_loads(found: FoundBreaches, needs: Needs, target: Placement | None, begun: Begun) -> None:
    """Find nodes and domains that carry more than they can, and more than either end carries."""
    # dead nodes carry nothing; copies that have ``begun`` are carried from the beginning
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
        ends.append(PlacementCounts.of(cluster, target).loads)
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
    found: FoundBreaches,
    rooms: Rooms,
    serving: Flags,
    start: Ints64,
    target: Placement | None,
    goes_on: Flags,
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


def _entries(found: FoundBreaches, goes_on: Flags) -> Entries:
    """List what steps put on nodes as they start, and take off as they finish."""
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


def _weigher(found: FoundBreaches, needs: Needs) -> Weigh:
    """Return a function to the load that steps add or remove in a dimension."""
    cluster, steps, kinds = found.cluster, found.timeline.steps, found.timeline.kind
    load = cluster.partitions.load
    in_place = bool((kinds >= RAISE).any())

    def weigh(step: Ints, sign: Signs, d: int) -> Reals:
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


def _by_domain(loads: Reals, domain: Ints32, domains: int) -> Reals:
    """Add up the loads of the nodes of each domain."""
    columns = [np.bincount(domain + 1, loads[:, d], domains + 1)[1:] for d in range(loads.shape[1])]
    return np.stack(columns, 1)


def _check(
    found: FoundBreaches,
    rooms: Rooms,
    kind: str,
    column: str,
    names: Sequence[str],
    entries: Entries,
    place_of: Ints32,
    weigh: Weigh,
    start: Reals,
    limit: Reals,
    **where: int,
) -> None:
    """Find events after which a place exceeds its limit in a dimension; note them in ``rooms``."""
    for at, moment in entries.by_place(place_of, len(limit)):
        for d, name in enumerate(names):
            if np.isfinite(limit[at, d]).any():
                spot = where | {"dimension": d if name else -1}
                what = kind, name, column, spot
                load = weigh(moment[0], moment[2], d)
                _check_some(found, rooms, what, at, moment, load, start[:, d], limit[:, d])


def _check_some(
    found: FoundBreaches,
    rooms: Rooms,
    what: tuple[str, str, str, dict[str, int]],
    at: Ints,
    moment: Moment,
    load: Reals,
    start: Reals,
    limit: Reals,
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


def _fixed(load: Reals, limit: Reals) -> Ints64:
    """Return loads as shares of their limits in fixed point; beyond a limit of 0, by sign alone."""
    share = np.divide(load, limit, out=np.sign(load), where=limit > 0.0)
    return np.rint(np.clip(share, -MOST, MOST) * ONE).astype(np.int64)


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


def _loads(at: Ints32, size: Reals, count: int) -> Reals:
    """Return what each disk holds, (M,)."""
    lies = at >= 0
    return np.bincount(at[lies], size[lies], count).astype(float)
