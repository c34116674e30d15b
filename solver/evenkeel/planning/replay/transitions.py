"""Transitions: whether every step finds the replicas that it changes as it needs them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.planning.replay.course import JOINED, VACATED, Course, Seat
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.timeline import KINDS, LOWER, RAISE
from evenkeel.planning.steps import StepKind

NEEDED_TO_JOIN: dict[int, tuple[Seat, ...]] = {
    StepKind.COPY: (Seat.EMPTY,),
    StepKind.PROMOTE: (Seat.CAUGHT_UP,),
    StepKind.SWAP: (Seat.CAUGHT_UP,),
    RAISE: (Seat.SERVING,),
    LOWER: (Seat.SERVING,),
}
NEEDED_TO_LEAVE: dict[int, tuple[Seat, ...]] = {
    StepKind.DEMOTE: (Seat.SERVING,),
    StepKind.SWAP: (Seat.SERVING,),
    StepKind.REMOVE: (Seat.LEFT, Seat.CAUGHT_UP),
}
"""What a step may find on its target, and on its source, as it starts."""

CHANGES = (StepKind.PROMOTE, StepKind.DEMOTE, StepKind.SWAP, RAISE, LOWER)
"""Kinds that change who is a member, and as what."""

CAN_BE_READ = (Seat.CAUGHT_UP, Seat.PROMOTING, Seat.SERVING, Seat.DEMOTING)
"""What can be copied from."""


@dataclass(frozen=True, eq=False)
class Needs:
    """Which steps build on which, and of which replicas they are.

    Parameters
    ----------
    fresh : ndarray of bool, shape (S,)
        Copies of a replica that was nowhere, and what is done with their learners later.
    light : ndarray of bool, shape (S,)
        Steps of replicas that are non-voters as they start.
    led : ndarray of bool, shape (S,)
        Hand-overs from a leader that is no voter, and roles that change while the replica leads.
    later, earlier, rank : list of ndarray of int32
        Steps, those that each builds on, and the rank of its start.
    """

    fresh: NDArray[np.bool_]
    light: NDArray[np.bool_]
    led: NDArray[np.bool_]
    later: list[NDArray[np.int32]] = field(default_factory=list)
    earlier: list[NDArray[np.int32]] = field(default_factory=list)
    rank: list[NDArray[np.int32]] = field(default_factory=list)

    def note(self, course: Course, event: NDArray[np.intp], column: NDArray[np.integer]) -> None:
        """Note that events build on what happened in other columns, unless in the beginning."""
        earlier = course.step[column]
        real = np.flatnonzero(earlier >= 0)
        at = course.at[event[real]]
        self.later.append(course.step[at].astype(np.int32))
        self.earlier.append(earlier[real].astype(np.int32))
        self.rank.append(course.rank[at].astype(np.int32))


def check_seats(found: Findings, course: Course, needs: Needs) -> None:
    """Find steps whose target or source is not what they need, and where it became what it is."""
    steps = found.timeline.steps
    for column, end, needed, made in (
        (course.joined, steps.target, NEEDED_TO_JOIN, JOINED),
        (course.vacated, steps.source, NEEDED_TO_LEAVE, VACATED),
    ):
        fits = np.zeros((2, KINDS, len(Seat)), bool)
        for kind, states in needed.items():
            fits[0, kind, list(states)] = True
            fits[1, kind, made[kind][0]] = True
        event = np.flatnonzero(fits[0].any(1)[course.kind])
        step = course.step[course.at[event]]
        event = event[end[step] >= 0]
        at = course.at[event]
        col = column[event]
        before = np.where(col >= 0, course.state[col, at - 1], Seat.EMPTY)
        phase = (~course.begins[event]).astype(np.intp)
        bad = ~fits[phase, course.kind[event], before]
        step = course.step[at]
        found.breach(
            "precondition", step[bad], course.rank[at[bad]], partition=course.partition[at[bad]],
            node=end[step[bad]],
        )  # fmt: skip
        event, col = event[(phase == 0) & (col >= 0)], col[(phase == 0) & (col >= 0)]
        needs.note(course, event, course.since[col, course.at[event] - 1])


def check_roles(found: Findings, course: Course, needs: Needs) -> None:
    """Find steps that exchange what is no voter, or change the role of what is of another one.

    A role changes where the replica is alone: not while it is copied, nor before what it left is
    removed.
    """
    if not course.role.any() and not (course.kind >= RAISE).any():
        return
    steps = found.timeline.steps
    event = np.flatnonzero(course.begins)
    at = course.at[event]
    step = course.step[at]
    slot = steps.replica[step] - found.cluster.placement.first[course.partition[at]]
    role, kind = course.role[slot, at - 1], course.kind[event]
    needs.light[step] = role == Role.NON_VOTER
    voters_only = (kind == StepKind.PROMOTE) | (kind == StepKind.DEMOTE) | (kind == LOWER)
    bad = (voters_only & (role != Role.VOTER)) | ((kind == RAISE) & (role != Role.NON_VOTER))
    found.breach("role", step[bad], course.rank[at[bad]], partition=course.partition[at[bad]])
    event = np.flatnonzero((course.kind >= RAISE) & (course.joined >= 0))
    at = course.at[event]
    other = course.slot[:, at] == course.slot[course.joined[event], at]
    other &= course.state[:, at - 1] != Seat.EMPTY
    other[course.joined[event], np.arange(len(event))] = False
    bad = other.any(0)
    found.breach(
        "precondition", course.step[at[bad]], course.rank[at[bad]],
        partition=course.partition[at[bad]], node=steps.target[course.step[at[bad]]],
    )  # fmt: skip


def check_copies(found: Findings, course: Course, needs: Needs, live: NDArray[np.bool_]) -> None:
    """Find copies from nodes that have nothing to read from start to finish."""
    steps = found.timeline.steps
    event = np.flatnonzero(course.event((StepKind.COPY,)))
    at = course.at[event]
    step = course.step[at]
    source = steps.source[step]
    slot = course.slot[course.joined[event], at]
    readable = np.zeros(len(event), bool)
    anywhere = np.zeros(len(event), bool)
    nowhere = np.ones(len(event), bool)
    read_since = np.full(len(event), -1, np.int64)
    can = np.isin(np.arange(len(Seat)), CAN_BE_READ)
    for c in range(len(course.node)):
        node, state = course.node[c, at - 1], course.state[c, at - 1]
        alive = can[state] & at_node(live, node)
        anywhere |= alive
        here = alive & (node == source)
        readable |= here
        read_since = np.where(here, course.since[c, at - 1], read_since)
        nowhere &= (state == Seat.EMPTY) | (course.slot[c, at] != slot)
    begins = course.begins[event]
    needs.fresh[step[nowhere & begins]] = True
    bad = np.flatnonzero(np.where(source >= 0, ~readable, anywhere & begins))
    found.breach(
        "source", step[bad], course.rank[at[bad]], partition=course.partition[at[bad]],
        node=source[bad],
    )  # fmt: skip
    from_seat = np.flatnonzero(begins & (read_since >= 0))
    needs.note(course, event[from_seat], read_since[from_seat])


def mark_fresh(found: Findings, course: Course, needs: Needs) -> None:
    """Mark the steps that promote, swap or remove a learner of a replica that was nowhere."""
    for column, kinds in (
        (course.joined, (StepKind.PROMOTE, StepKind.SWAP)),
        (course.vacated, (StepKind.REMOVE,)),
    ):
        event = np.flatnonzero(course.event(kinds) & course.begins & (column >= 0))
        at, col = course.at[event], column[event]
        learner = course.state[col, at - 1] == Seat.CAUGHT_UP
        at, col = at[learner], col[learner]
        needs.fresh[course.step[at]] = needs.fresh[course.step[course.since[col, at - 1]]]


def check_changes(found: Findings, course: Course, needs: Needs, most: int | None) -> None:
    """Find membership changes that start while too many of the partition are unsettled.

    A change is unsettled until its step has finished, and a replica that is promoted on one node
    until it is demoted on the other.
    """
    event = np.flatnonzero(course.event(CHANGES))
    at, kind = course.at[event], course.kind[event]
    begins, ends = course.begins[event], course.ends[event]
    stays = (kind == StepKind.PROMOTE) | (kind >= RAISE)
    column = np.where(stays, course.joined[event], course.vacated[event])
    twin = np.full(len(event), -1, np.int64)
    own = course.slot[np.maximum(column, 0), at]
    for c in range(len(course.node)):
        other = (course.slot[c, at] == own) & (course.state[c, at - 1] == Seat.SERVING)
        twin = np.where(other & (c != column) & (column >= 0), c, twin)
    closes = begins & (kind == StepKind.DEMOTE) & (twin >= 0)
    opens = ends & (kind == StepKind.PROMOTE) & (twin >= 0)
    needs.note(course, event[closes], course.since[twin[closes], at[closes] - 1])
    change = begins.astype(np.int64) - ends - closes + opens
    delta = np.zeros(len(course.step), np.int64)
    delta[at] = change
    unsettled = np.cumsum(delta)
    base = np.repeat(unsettled[course.initial] - delta[course.initial], course.final
                     - course.initial + 1)  # fmt: skip
    unsettled -= base
    # what starts and finishes at once counts while it does
    now = unsettled[at - 1] + begins - closes
    if most is None:
        return
    bad = np.flatnonzero(begins & (now > most))
    found.breach(
        "change", course.step[at[bad]], course.rank[at[bad]], now[bad] - most,
        partition=course.partition[at[bad]],
    )  # fmt: skip
    first = np.flatnonzero(begins)
    found.tight(
        "change", "", now[first] - most, now[first], most, course.step[at[first]],
        course.rank[at[first]], partition=course.partition[at[first]],
    )  # fmt: skip
    if most == 1:
        follows = np.flatnonzero(
            begins[1:] & (course.partition[at[1:]] == course.partition[at[:-1]])
        )
        needs.note(course, event[follows + 1], at[follows])


def live_nodes(cluster: Cluster) -> NDArray[np.bool_]:
    """Return the nodes of which replicas live, (N,)."""
    live: NDArray[np.bool_] = cluster.nodes.alive & ~cluster.nodes.gone
    return live
