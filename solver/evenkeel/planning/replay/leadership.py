"""Leadership: it leaves a replica before that goes, and goes to a voter that may lead."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.placement import Placement
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.timeline import LOWER, RAISE
from evenkeel.planning.replay.trajectory import Course, Seat
from evenkeel.planning.replay.transitions import Needs
from evenkeel.planning.steps import StepKind

LEAVING = (StepKind.DEMOTE, StepKind.REMOVE, StepKind.SWAP, LOWER)


def check_leaders(
    found: Findings,
    course: Course,
    needs: Needs,
    live: NDArray[np.bool_],
    target: Placement | None,
) -> NDArray[np.int32]:
    """Find leaders that go before they hand over, and hand-overs to what may not lead.

    A leader on a dead node leads nothing: its seat may go, and anybody may take over. Returns the
    node that leads each of the course's partitions in the end, -1 for none.
    """
    steps, cluster = found.timeline.steps, found.cluster
    column, since = _leading(found, course)
    lead = np.flatnonzero(course.event((StepKind.LEAD,)))
    at = course.at[lead]
    step, to = course.step[at], course.joined[lead]
    partition = course.partition[at]
    state = np.where(to >= 0, course.state[to, at - 1], Seat.EMPTY)
    fit = (state == Seat.SERVING) & course.votes[to, at - 1]
    may = cluster.nodes.may_lead
    if target is not None:
        # where the target itself wants a leader that may not lead, the plan has no choice
        wanted = target.leader_node[partition] == steps.target[step]
        fit &= may[steps.target[step]] | (wanted & live[steps.target[step]])
    else:
        fit &= may[steps.target[step]]
    led = column[at - 1]
    needs.led[step[course.begins[lead] & (led >= 0) & ~course.votes[led, at - 1]]] = True
    leader = np.where(led >= 0, course.node[led, at - 1], -1)
    alive = at_node(live, leader)
    fit &= (steps.source[step] == leader) | (~alive & (steps.source[step] < 0))
    fit &= ~alive | (leader != steps.target[step])
    bad = np.flatnonzero(~fit)
    found.breach(
        "leader", step[bad], course.rank[at[bad]], partition=partition[bad],
        node=steps.target[step[bad]],
    )  # fmt: skip
    begun = np.flatnonzero(course.begins[lead])
    needs.note(course, lead[begun], since[at[begun] - 1])
    seen = np.flatnonzero(course.begins[lead] & (to >= 0))
    needs.note(course, lead[seen], course.since[to[seen], at[seen] - 1])
    recast = np.flatnonzero((course.kind >= RAISE) & (course.joined >= 0) & course.begins)
    recast = recast[course.joined[recast] == column[course.at[recast] - 1]]
    needs.led[course.step[course.at[recast]]] = True
    _check_leaving(found, course, needs, live, column, since)
    final = column[course.final]
    serves = (final >= 0) & (course.state[final, course.final] == Seat.SERVING)
    return np.where(serves, course.node[final, course.final], np.int32(-1))


def _check_leaving(
    found: Findings,
    course: Course,
    needs: Needs,
    live: NDArray[np.bool_],
    column: NDArray[np.int64],
    since: NDArray[np.int64],
) -> None:
    """Find live leaders that are demoted, where they are or not, swapped or removed."""
    steps = found.timeline.steps
    seat = np.where(course.kind == LOWER, course.joined, course.vacated)
    gone = np.flatnonzero(course.event(LEAVING) & course.begins & (seat >= 0))
    at, col = course.at[gone], seat[gone]
    step = course.step[at]
    leads = (column[at - 1] == col) & live[steps.source[step]]
    leads &= course.state[col, at - 1] == Seat.SERVING
    bad = np.flatnonzero(leads)
    found.breach(
        "leader", step[bad], course.rank[at[bad]], partition=course.partition[at[bad]],
        node=steps.source[step[bad]],
    )  # fmt: skip
    handed = since[at - 1]
    was_lead = course.step[handed]
    here = np.flatnonzero(
        (was_lead >= 0) & (steps.source[np.maximum(was_lead, 0)] == steps.source[step])
        & (course.state[col, at - 1] == Seat.SERVING)
    )  # fmt: skip
    needs.note(course, gone[here], handed[here])


def _leading(found: Findings, course: Course) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who leads in each column, as the column of a seat, and the event that made it so."""
    cluster = found.cluster
    slot = cluster.placement.leader[course.partition[course.initial]].astype(np.int64)
    value = np.zeros(len(course.step), np.int64)
    since = np.zeros(len(course.step), np.int64)
    value[course.initial], since[course.initial] = slot, course.initial
    handed = np.flatnonzero(course.event((StepKind.LEAD,)) & course.ends)
    at = course.at[handed]
    value[at], since[at] = course.joined[handed], at
    np.maximum.accumulate(since, out=since)
    return value[since], since
