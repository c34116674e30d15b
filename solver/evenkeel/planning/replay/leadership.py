"""Leadership: it is handed over before its replica leaves, and only to a voter that may lead."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.placement import Placement
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.timeline import LOWER, RAISE
from evenkeel.planning.replay.trajectory import ReplicaState, Trajectory
from evenkeel.planning.replay.transitions import Needs
from evenkeel.planning.steps import StepKind

LEAVING = (StepKind.DEMOTE, StepKind.REMOVE, StepKind.SWAP, LOWER)


def check_leaders(
    found: Findings,
    trajectory: Trajectory,
    needs: Needs,
    live: NDArray[np.bool_],
    target: Placement | None,
) -> NDArray[np.int32]:
    """Find leaders that go before they hand over, and hand-overs to what may not lead.

    A leader on a dead node leads nothing: its replica may leave, and any other may take over.
    Returns the last leading node of each of the trajectory's partitions, -1 for none.
    """
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
    found: Findings,
    trajectory: Trajectory,
    needs: Needs,
    live: NDArray[np.bool_],
    column: NDArray[np.int64],
    since: NDArray[np.int64],
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


def _leading(
    found: Findings, trajectory: Trajectory
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
