"""Transitions: whether each step finds the replica states and the leader that its kind needs."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node, stands
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.planning.replay.certificate import Findings
from evenkeel.planning.replay.timeline import BEGINNING, KINDS, LOWER, RAISE
from evenkeel.planning.replay.trajectory import JOINED, VACATED, ReplicaState, Trajectory
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True, eq=False)
class Begun:
    """Replicas of which a copy is under way, ascending, the node of each, and what it weighs there.

    That is its load in what is transient, and of a replica that was nowhere in all dimensions.
    """

    replica: NDArray[np.int64]
    node: NDArray[np.int32]
    weight: NDArray[np.float64]

    def steps(self, steps: Steps) -> NDArray[np.bool_]:
        """Return the steps that go on with one of the copies, (S,)."""
        copies = steps.kind == StepKind.COPY
        if len(self.replica) == 0:
            return np.zeros(len(steps), bool)
        at = np.minimum(np.searchsorted(self.replica, steps.replica), len(self.replica) - 1)
        same = (self.replica[at] == steps.replica) & (self.node[at] == steps.target)
        return np.asarray(copies & same)


def under_way(cluster: Cluster, in_flight: NDArray[np.int32] | None) -> Begun:
    """Return the copies that are under way where replicas are on, or on their way to, nodes."""
    start = cluster.placement
    node = start.node if in_flight is None else in_flight
    replica = np.flatnonzero((node != start.node) & (node >= 0))
    partition, load = start.owner[replica], cluster.partitions.load
    light = (start.role[replica] == Role.NON_VOTER)[:, None]
    weight = np.where(light, load.non_voter[partition], load.voter[partition])
    fresh = (start.node[replica] < 0)[:, None]
    return Begun(replica, node[replica], np.where(cluster.transient | fresh, weight, 0.0))


def check_begun(found: Findings, begun: Begun) -> None:
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
NEEDED_TO_LEAVE: dict[int, tuple[ReplicaState, ...]] = {
    StepKind.DEMOTE: (ReplicaState.SERVING,),
    StepKind.SWAP: (ReplicaState.SERVING,),
    StepKind.REMOVE: (ReplicaState.LEFT, ReplicaState.CAUGHT_UP),
}
"""What a step may find on its target, and on its source, as it starts."""

CHANGES = (StepKind.PROMOTE, StepKind.DEMOTE, StepKind.SWAP, RAISE, LOWER)
"""Kinds that change who is a member, and as what."""

CAN_BE_READ = (
    ReplicaState.CAUGHT_UP,
    ReplicaState.PROMOTING,
    ReplicaState.SERVING,
    ReplicaState.DEMOTING,
)
"""What can be copied from."""


@dataclass(frozen=True, eq=False)
class Needs:
    """Which steps build on which, and of which replicas they are."""

    # (S,) copies of a replica that was nowhere, and what is done with their learners later
    fresh: NDArray[np.bool_]
    light: NDArray[np.bool_]  # (S,) steps of replicas that are non-voters as they start
    # (S,) hand-overs from a leader that is no voter, and roles that change while the replica leads
    led: NDArray[np.bool_]
    # later, earlier, rank: steps, those that each builds on, and the rank of its start
    later: list[NDArray[np.int32]] = field(default_factory=list)
    earlier: list[NDArray[np.int32]] = field(default_factory=list)
    rank: list[NDArray[np.int32]] = field(default_factory=list)

    def note(
        self, trajectory: Trajectory, event: NDArray[np.intp], column: NDArray[np.integer]
    ) -> None:
        """Note that events build on what happened in other columns, unless in the beginning."""
        earlier = trajectory.step[column]
        real = np.flatnonzero(earlier >= 0)
        at = trajectory.at[event[real]]
        self.later.append(trajectory.step[at].astype(np.int32))
        self.earlier.append(earlier[real].astype(np.int32))
        self.rank.append(trajectory.rank[at].astype(np.int32))


def check_replica_states(found: Findings, trajectory: Trajectory, needs: Needs) -> None:
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


def check_roles(found: Findings, trajectory: Trajectory, needs: Needs) -> None:
    """Find steps that exchange what is no voter, or change the role of what is of another one.

    A role changes where the replica is alone: not while it is copied, nor before what it left is
    removed.
    """
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


def check_copies(
    found: Findings, trajectory: Trajectory, needs: Needs, live: NDArray[np.bool_]
) -> None:
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


def mark_fresh(found: Findings, trajectory: Trajectory, needs: Needs) -> None:
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


def check_changes(found: Findings, trajectory: Trajectory, needs: Needs) -> None:
    """Find membership changes that start while another of the partition is unsettled.

    A change is unsettled until its step has finished, and a replica that is promoted on one node
    until it is demoted on the other.
    """
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


def live_nodes(cluster: Cluster) -> NDArray[np.bool_]:
    """Return the nodes of which replicas live, (N,)."""
    live: NDArray[np.bool_] = cluster.nodes.serves
    return live


def check_arrivals(found: Findings, target: Placement | None) -> None:
    """Find copies to nodes that receive none, or that are forbidden to the partition.

    Where the target itself stands the plan has no choice, unless the node is dead.
    """
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


def check_pins(found: Findings, target: Placement | None) -> None:
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


def _breach(found: Findings, kind: str, step: NDArray[np.intp], *, leaving: bool = False) -> None:
    steps = found.timeline.steps
    node = steps.source if leaving else steps.target
    found.breach(
        kind, step, found.timeline.start[step], partition=steps.partition[step], node=node[step]
    )


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
