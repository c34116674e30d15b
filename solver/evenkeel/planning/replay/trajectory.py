"""Trajectory: the states of the replicas of some partitions after every event."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Roles, Rows
from evenkeel.planning.replay.timeline import BEGINNING, KINDS, LOWER, RAISE, Timeline, sort_by
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True, eq=False)
class ReplicaColumns:
    """Q partitions that steps change, each with up to W columns: a replica on a node."""

    partition: Ints64  # (Q,) ascending
    local: Ints64  # (P,) index of each partition among these; -1 for the others
    # node, slot: (W, Q) node and slot of each column; node -1 where there is none
    node: Ints32
    slot: Ints32
    held: Flags  # (W, Q) ReplicaColumns that serve at the beginning
    # (A,) ReplicaColumns that no replica has at the beginning, as replica x N + node, ascending
    added: Ints64
    column: Ints64  # (A,) their columns

    @classmethod
    def of(cls, cluster: Cluster, steps: Steps) -> "ReplicaColumns":
        """Gather the columns of all partitions that steps change."""
        placement = cluster.placement
        touched = np.zeros(len(placement), bool)
        touched[steps.partition] = True
        partition = np.flatnonzero(touched)
        local = np.full(len(placement), -1, np.int64)
        local[partition] = np.arange(len(partition))
        start = placement.first[partition]
        width = placement.first[partition + 1] - start
        copied = np.flatnonzero(steps.kind == StepKind.COPY)
        copied = copied[placement.node[steps.replica[copied]] != steps.target[copied]]
        key = steps.replica[copied] * np.int64(len(cluster.nodes)) + steps.target[copied]
        added, at = np.unique(key, return_index=True)
        owner = local[steps.partition[copied[at]]]
        place = np.arange(len(added)) - np.searchsorted(owner, np.arange(len(partition)))[owner]
        column = width[owner] + place
        columns = int(max(width.max(initial=0), column.max(initial=-1) + 1))
        node = np.full((columns, len(partition)), -1, np.int32)
        slot = np.full(node.shape, -1, np.int32)
        for c in range(int(width.max(initial=0))):
            inside = np.flatnonzero(c < width)
            node[c, inside] = placement.node[start[inside] + c]
            slot[c, inside] = c
        held = node >= 0
        replica, on = np.divmod(added, max(len(cluster.nodes), 1))
        node[column, owner] = on
        slot[column, owner] = replica - start[owner]
        return cls(partition, local, node, slot, held, added, column)

    def find(self, cluster: Cluster, partition: Ints32, replica: Ints32, node: Ints32) -> Ints64:
        """Return the columns of replicas on nodes; -1 where a replica never has that column."""
        placement = cluster.placement
        home = (placement.node[replica] == node) & (node >= 0)
        found = np.where(home, replica - placement.first[partition], -1)
        other = np.flatnonzero(~home & (node >= 0))
        if len(self.added) and len(other):
            key = replica[other] * np.int64(len(cluster.nodes)) + node[other]
            at = np.minimum(np.searchsorted(self.added, key), len(self.added) - 1)
            found[other] = np.where(self.added[at] == key, self.column[at], -1)
        return found


BATCH = 30_000  # events in a table, so that it stays in the processor's cache


class ReplicaState(IntEnum):
    """What is on a column; those in -ING are between the start of a step and its finish."""

    EMPTY = 0
    COPYING = 1
    CAUGHT_UP = 2
    PROMOTING = 3
    SERVING = 4
    DEMOTING = 5
    LEFT = 6
    REMOVING = 7


NONE = -1  # a kind of step that changes no column on that side
# what a step makes of its target while it lasts, and in the end
JOINED: dict[int, tuple[ReplicaState, ReplicaState]] = {
    StepKind.COPY: (ReplicaState.COPYING, ReplicaState.CAUGHT_UP),
    StepKind.PROMOTE: (ReplicaState.PROMOTING, ReplicaState.SERVING),
    StepKind.SWAP: (ReplicaState.PROMOTING, ReplicaState.SERVING),
    RAISE: (ReplicaState.SERVING, ReplicaState.SERVING),
    LOWER: (ReplicaState.SERVING, ReplicaState.SERVING),
}

# what a step makes of its source while it lasts, and in the end
VACATED: dict[int, tuple[ReplicaState, ReplicaState]] = {
    StepKind.DEMOTE: (ReplicaState.DEMOTING, ReplicaState.LEFT),
    StepKind.SWAP: (ReplicaState.DEMOTING, ReplicaState.LEFT),
    StepKind.REMOVE: (ReplicaState.REMOVING, ReplicaState.EMPTY),
}


@dataclass(frozen=True, eq=False)
class Events:
    """Starts and finishes of steps by partition and rank; what takes no time is one event."""

    # step, rank, owner: (E,) step, rank, and index of the partition in ``ReplicaColumns``
    step: Ints64
    rank: Ints64
    owner: Ints64
    # begins, ends: (E,) whether the step starts here, and whether it finishes
    begins: Flags
    ends: Flags
    # joined, vacated: (E,) columns of the columns on target and source; -1 for none
    joined: Ints64
    vacated: Ints64

    @classmethod
    def of(
        cls, cluster: Cluster, timeline: Timeline, columns: ReplicaColumns, some: Rows
    ) -> "Events":
        """Lay out the events of some steps."""
        steps = timeline.steps
        longer = some[timeline.lasting[some]]
        step = np.concatenate([some, longer])
        rank = np.concatenate([timeline.start[some], timeline.finish[longer]])
        begins = np.arange(len(step)) < len(some)
        ends = np.concatenate([~timeline.lasting[some], np.ones(len(longer), bool)])
        owner = columns.local[steps.partition[step]]
        order = np.argsort(owner * np.int64(timeline.end + 1) + rank)
        step = step[order]
        whose = steps.partition[step], steps.replica[step]
        vacated = columns.find(cluster, *whose, steps.source[step])
        # a replica that changes its role keeps its column
        vacated[timeline.kind[step] >= RAISE] = -1
        return cls(
            step, rank[order], owner[order], begins[order], ends[order],
            columns.find(cluster, *whose, steps.target[step]), vacated,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states of some partitions, a column per event, after one for the beginning of each."""

    at: Ints64  # (E,) column of each event
    initial: Ints64  # (Q,) column of each partition's beginning
    # (E,) kind of each event's step, ``RAISE`` and ``LOWER`` where it changes a role in place
    kind: NDArray[np.int8]
    # step, rank: (n,) step and rank of each column; -1 at the beginning
    step: Ints64
    rank: Ints64
    partition: Ints64  # (n,) partition of each column
    # begins, ends, joined, vacated: as in ``Events``
    begins: Flags
    ends: Flags
    joined: Ints64
    vacated: Ints64
    # node, slot: (W, n) as in ``ReplicaColumns``
    node: Ints32
    slot: Ints32
    state: NDArray[np.int8]  # (W, n) a ``ReplicaState``, after the event
    since: Ints32  # (W, n) column of the event that last changed each column
    role: Roles  # (V, n) role of the replica in each slot, after the event

    @cached_property
    def serving(self) -> Flags:
        """ReplicaColumns that serve, (W, n)."""
        return np.asarray(
            (self.state == ReplicaState.SERVING) | (self.state == ReplicaState.DEMOTING)
        )

    @cached_property
    def present(self) -> Flags:
        """ReplicaColumns that hold anything, (W, n)."""
        return np.asarray(self.state != ReplicaState.EMPTY)

    @cached_property
    def votes(self) -> Flags:
        """ReplicaColumns of replicas that vote, whether they serve or not, (W, n)."""
        if not self.role.any():
            return np.broadcast_to(np.True_, self.node.shape)
        slot = np.minimum(np.maximum(self.slot, 0), len(self.role) - 1)
        return np.asarray(np.take_along_axis(self.role, slot, 0) == Role.VOTER)

    @cached_property
    def final(self) -> Ints64:
        """Column of each partition's last state, (Q,)."""
        return np.append(self.initial[1:], len(self.step)) - 1

    def event(self, kinds: tuple[int, ...]) -> Flags:
        """Return which events are of steps of some kinds, (E,)."""
        found = self.kind == kinds[0]
        for one in kinds[1:]:
            found |= self.kind == one
        return np.asarray(found)


def trajectories(
    cluster: Cluster, timeline: Timeline, columns: ReplicaColumns, role: Roles
) -> Iterator[Trajectory]:
    """Yield the states of all partitions that change; replicas begin in ``role (K,)``."""
    steps, count = timeline.steps, len(columns.partition)
    owner = columns.local[steps.partition]
    by_owner = sort_by(owner, count)
    step_ends = np.cumsum(np.bincount(owner, minlength=count))
    ends = np.cumsum(np.bincount(owner, 1.0 + timeline.lasting, count))
    q = 0
    while q < count:
        events, first = (float(ends[q - 1]), int(step_ends[q - 1])) if q else (0.0, 0)
        beyond = max(int(np.searchsorted(ends, events + BATCH, side="right")), q + 1)
        some = by_owner[first : int(step_ends[beyond - 1])]
        events_of = Events.of(cluster, timeline, columns, some)
        yield _trajectory(cluster, timeline, columns, role, events_of, slice(q, beyond))
        q = beyond


def _trajectory(
    cluster: Cluster,
    timeline: Timeline,
    columns: ReplicaColumns,
    role: Roles,
    events: Events,
    owners: slice,
) -> Trajectory:
    """Return the states of some partitions: each entry is set by the last event on it."""
    owner = events.owner - owners.start
    count = owners.stop - owners.start
    at = np.arange(len(owner)) + owner + 1
    per = np.bincount(owner, minlength=count)
    initial = np.cumsum(per) - per + np.arange(count)
    total = len(owner) + count
    step = np.full(total, -1, np.int64)
    rank = np.full(total, BEGINNING, np.int64)
    step[at], rank[at] = events.step, events.rank
    whose = np.repeat(np.arange(owners.start, owners.stop), per + 1)
    kind = timeline.kind[events.step]
    begins, finishes = events.begins, events.ends
    joined, vacated = events.joined, events.vacated
    node, slot = columns.node[:, whose], columns.slot[:, whose]
    since = np.zeros(node.shape, np.int32)
    value = np.zeros(node.shape, np.int8)
    since[:, initial] = initial
    value[:, initial] = np.where(columns.held[:, owners], ReplicaState.SERVING, ReplicaState.EMPTY)
    for column, made in ((joined, JOINED), (vacated, VACATED)):
        meanwhile, after = _made(made)
        changed = np.flatnonzero((column >= 0) & (after[kind] != NONE))
        where = column[changed], at[changed]
        since[where] = at[changed]
        value[where] = np.where(finishes[changed], after[kind[changed]], meanwhile[kind[changed]])
    np.maximum.accumulate(since, axis=1, out=since)
    state = np.take_along_axis(value, since, 1)
    partition = columns.partition[whose]
    changed = np.flatnonzero((kind >= RAISE) & finishes & (joined >= 0))
    to = np.where(kind[changed] == RAISE, Role.VOTER, Role.NON_VOTER)
    own = slot[joined[changed], at[changed]]
    roles = _roles(cluster, partition, role, initial, at[changed], own, to)
    return Trajectory(
        at, initial, kind, step, rank, partition, begins, finishes, joined, vacated, node, slot,
        state, since, roles,
    )  # fmt: skip


def _roles(
    cluster: Cluster,
    partition: Ints64,
    role: Roles,
    initial: Ints64,
    at: Ints64,
    slot: Ints32,
    to: Ints,
) -> Roles:
    """Return the role of each slot in each column, which some columns change."""
    first = cluster.placement.first[partition]
    width = cluster.placement.first[partition + 1] - first
    slots = np.arange(int(width.max(initial=1)))[:, None]
    if len(at) == 0 and not role.any():
        return np.broadcast_to(np.uint8(Role.VOTER), (len(slots), len(partition)))
    begin = np.where(slots < width, role[np.minimum(first + slots, len(role) - 1)], Role.VOTER)
    if len(at) == 0:
        return begin.astype(np.uint8)
    since = np.zeros(begin.shape, np.int64)
    since[:, initial] = initial
    begin[slot, at], since[slot, at] = to, at
    np.maximum.accumulate(since, axis=1, out=since)
    return np.take_along_axis(begin, since, 1).astype(np.uint8)


def _made(
    table: dict[int, tuple[ReplicaState, ReplicaState]],
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return what each kind of step makes of a column while it lasts, and in the end."""
    meanwhile, after = (np.full(KINDS, NONE, np.int8) for _ in range(2))
    for kind, (during, then) in table.items():
        meanwhile[kind], after[kind] = during, then
    return meanwhile, after
