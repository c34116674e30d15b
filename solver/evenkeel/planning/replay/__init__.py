"""Replay: check a plan independently, in every state that its steps go through.

It imports nothing of the planner but the steps themselves, and nothing of the methods.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Reals, Roles, Rows
from evenkeel.planning.replay.certificate import (
    BREACHES,
    Breach,
    Certificate,
    End,
    FoundBreaches,
    Tightest,
)
from evenkeel.planning.replay.loads import (
    CHANGES,
    Needs,
    check_arrivals,
    check_begun,
    check_changes,
    check_copies,
    check_leaders,
    check_loads,
    check_pins,
    check_replica_states,
    check_roles,
    mark_fresh,
    under_way,
)
from evenkeel.planning.replay.rules import (
    Flow,
    PartitionStates,
    TrajectoryCheck,
    binds_groups,
    check_groups,
    check_limits,
    check_quorum,
    check_survival,
    check_survivors,
    check_terms,
    flow_of,
    joined_flows,
)
from evenkeel.planning.replay.timeline import (
    Timeline,
    check_shapes,
    misnamed,
    missized,
    mistimed,
    pairs,
    sort_by,
    unreached,
)
from evenkeel.planning.replay.trajectory import (
    ReplicaColumns,
    ReplicaState,
    Trajectory,
    trajectories,
)
from evenkeel.planning.steps import StepKind, Steps

if TYPE_CHECKING:
    from evenkeel.planning.throttle import Throttle


__all__ = ["BREACHES", "Breach", "Certificate", "Tightest", "replay"]


def replay(
    cluster: Cluster,
    steps: Steps,
    *,
    target: Placement | None = None,
    towards: Placement | None = None,
    throttle: "Throttle | None" = None,
    joint: bool = False,
    quorum: bool = True,
    in_flight: Ints32 | None = None,
) -> Certificate:
    """Replay a plan from the cluster's own placement, and check every state on the way."""
    # What the start of the plan breaks is not asked in between: limits are a capacity, or what
    # start or target carries where that is more; rules are those that both keep, partition by
    # partition. A replica counts once in a domain, though it stands there twice while it moves.
    # A partition has one unsettled membership change at a time: a promotion, demotion or swap,
    # until its step has finished; that of a replica promoted on one node until it is demoted on the
    # other.
    # Times are one trajectory. In any other that keeps what steps wait for, no place carries more
    # than its limit either.
    # Without a ``target``, all that the start keeps is asked. ``towards`` is the end of a longer
    # plan, of which limits and rules are asked. With ``joint``, what happens to members at one
    # instant is one change. With ``quorum``, voters need a majority that survives the loss of any
    # domain where both ends have one; else one live replica has to survive it. ``in_flight (K,)``
    # is the node that each replica is on, or is being copied to as the plan begins: such a copy has
    # its room from the start, and its own step precedes other changes of the members.
    faults = FaultList()
    check_shapes(faults, steps)
    for name, one in (("target", target), ("towards", towards)):
        if one is not None and not np.array_equal(one.first, cluster.placement.first):
            faults.add(name, len(one), "has other rows than the cluster's placement")
    if in_flight is not None and in_flight.shape != cluster.placement.node.shape:
        faults.add("in_flight", in_flight.shape, f"needs shape {cluster.placement.node.shape}")
    if faults:
        raise InvalidInput(faults.faults)
    unusable = _unusable(cluster, steps)
    if unusable is not None:
        return unusable
    timeline = Timeline.of(steps)
    found = FoundBreaches(cluster, timeline)
    fresh, light, led = (np.zeros(len(steps), bool) for _ in range(3))
    needs = Needs(fresh, light, led)
    other = target if towards is None else towards
    final = _replay_partitions(found, needs, other, joint, quorum)
    end = compare_ends(found, target, *final)
    check_lists(found)
    _check_order(found, needs)
    check_arrivals(found, other)
    check_pins(found, other)
    coming = under_way(cluster, in_flight)
    check_begun(found, coming)
    check_loads(found, needs, other, coming)
    if throttle is not None:
        check_flights(found, throttle)
    return Certificate(found.breaches(), found.tightest(), end, len(steps))


def _unusable(cluster: Cluster, steps: Steps) -> Certificate | None:
    """Return the certificate of steps that cannot be replayed, None of those that can."""
    found: list[Breach] = []
    start = np.where(np.isfinite(steps.start), steps.start, 0.0).tolist()
    for kind, bad in (("index", misnamed(cluster, steps)), ("time", mistimed(steps))):
        found += [Breach(i, start[i], kind, "", 1.0) for i in np.flatnonzero(bad).tolist()]
    step, before = pairs(steps)
    bad_edges = np.unique(step[(before < 0) | (before >= step)]).tolist()
    found += [Breach(i, start[i], "dependency", "waits for no earlier step", 1.0)
              for i in bad_edges]  # fmt: skip
    if not found:
        return None
    found.sort(key=lambda one: (one.time, one.step))
    return Certificate(tuple(found), (), "other", len(steps))


def _replay_partitions(
    found: FoundBreaches, needs: Needs, target: Placement | None, joint: bool, quorum: bool
) -> tuple[Ints32, Roles, Ints32]:
    """Check what concerns one partition at a time; return nodes, roles and leaders in the end."""
    cluster, timeline = found.cluster, found.timeline
    live = cluster.nodes.serves
    node, role = cluster.placement.node.copy(), cluster.placement.role.copy()
    if target is not None:
        # what was nowhere comes as what it is to be
        role = np.where(node >= 0, role, target.role)
    leader = cluster.placement.leader_node.copy()
    grouped = binds_groups(cluster)
    flows: list[tuple[Flow, Flow, Flow]] = []
    columns = ReplicaColumns.of(cluster, timeline.steps)
    for trajectory in trajectories(cluster, timeline, columns, role.copy()):
        check_replica_states(found, trajectory, needs)
        check_copies(found, trajectory, needs, live)
        mark_fresh(found, trajectory, needs)
        check_roles(found, trajectory, needs)
        check_changes(found, trajectory, needs)
        partition = trajectory.partition[trajectory.initial]
        leader[partition] = check_leaders(found, trajectory, needs, live, target)
        states = PartitionStates.of_course(cluster, trajectory)
        there = None
        if target is not None:
            there = PartitionStates.of_placement(cluster, target, partition)
        shown = _shown(timeline, trajectory, joint)
        judged = shown == np.arange(len(shown))
        check = TrajectoryCheck(found, trajectory, states, there, judged)
        check_survival(check)
        if quorum:
            check_quorum(check)
        else:
            check_survivors(check)
        check_limits(check)
        check_terms(check)
        if grouped:
            held = states.serving, states.present, states.voting
            serving, present, voting = (flow_of(cluster, trajectory, one, shown) for one in held)
            flows.append((serving, present, voting))
        settle(found, trajectory, node, role, live)
    if flows:
        serving, present, voting = (joined_flows([*one]) for one in zip(*flows, strict=True))
        check_groups(found, serving, present, voting, target)
    return node, role, leader


def _shown(timeline: Timeline, trajectory: Trajectory, joint: bool) -> Rows:
    """Return the state that is seen for each: of a joint change the last, else the state itself."""
    shown = np.arange(len(trajectory.step))
    at = trajectory.at
    if joint and len(at):
        time = timeline.time_at(trajectory.step[at], trajectory.rank[at])
        opens = np.ones(len(at), bool)
        opens[1:] = (trajectory.partition[at[1:]] != trajectory.partition[at[:-1]]) | (
            time[1:] > time[:-1]
        )
        instant = np.cumsum(opens) - 1
        changes = np.flatnonzero(trajectory.event(CHANGES) & trajectory.ends)
        last = np.full(int(instant[-1]) + 1, -1)
        last[instant[changes]] = changes
        shown[at] = at[np.maximum(np.arange(len(at)), last[instant])]
    return shown


def _check_order(found: FoundBreaches, needs: Needs) -> None:
    """Find steps that start too early, in too early a wave, or that nothing makes wait."""
    timeline, steps = found.timeline, found.timeline.steps
    bad = np.flatnonzero(missized(found.cluster, steps))
    found.breach("size", bad, timeline.start[bad], partition=steps.partition[bad])
    step, before = pairs(steps)
    early = steps.finish[before] - steps.start[step]
    late = np.flatnonzero(early > 0.0)
    found.breach("dependency", step[late], timeline.start[step[late]], early[late],
                 partition=steps.partition[step[late]])  # fmt: skip
    ahead = np.flatnonzero(steps.wave[before] > steps.wave[step])
    found.breach("wave", step[ahead], timeline.start[step[ahead]],
                 steps.wave[before[ahead]] - steps.wave[step[ahead]],
                 partition=steps.partition[step[ahead]])  # fmt: skip
    for later, earlier, rank in zip(needs.later, needs.earlier, needs.rank, strict=True):
        lacks = np.flatnonzero(unreached(steps, later, earlier))
        found.breach("dependency", later[lacks], rank[lacks],
                     partition=steps.partition[later[lacks]])  # fmt: skip


def settle(
    found: FoundBreaches, trajectory: Trajectory, final: Ints32, role: Roles, live: Flags
) -> None:
    """Write down where replicas stand in the end, and as what; find what is left over."""
    end = trajectory.final
    partition = trajectory.partition[end]
    first = found.cluster.placement.first[partition]
    width = found.cluster.placement.first[partition + 1] - first
    served = np.zeros((int(width.max(initial=0)), len(end)), np.int64)
    for slot in range(len(served)):
        inside = np.flatnonzero(slot < width)
        final[first[inside] + slot] = -1
        role[first[inside] + slot] = trajectory.role[slot, end[inside]]
    left = np.full(len(end), -1, np.int64)
    for c in range(len(trajectory.node)):
        state, slot, node = (
            trajectory.state[c, end],
            trajectory.slot[c, end],
            trajectory.node[c, end],
        )
        serves = np.flatnonzero(state == ReplicaState.SERVING)
        served[slot[serves], serves] += 1
        final[first[serves] + slot[serves]] = node[serves]
        unsettled = (state != ReplicaState.EMPTY) & (state != ReplicaState.SERVING)
        # what a dead node has left needs no cleaning up
        unsettled &= (state != ReplicaState.LEFT) | at_node(live, node)
        left = np.where(unsettled & (left < 0), node, left)
    twice = (served > 1).any(0)
    bad = np.flatnonzero(twice | (left >= 0))
    found.breach(
        "end", trajectory.step[end[bad]], trajectory.rank[end[bad]], partition=partition[bad],
        node=left[bad],
    )  # fmt: skip


def check_lists(found: FoundBreaches) -> None:
    """Find steps that reorder a list which is not as they assume."""
    # the first of a list is the replica that its system prefers, else the leader
    start, steps = found.cluster.placement, found.timeline.steps
    step = np.flatnonzero(steps.kind == StepKind.ORDER)
    if not len(step):
        return
    listed = start.node >= 0
    lost = np.zeros(len(start), bool)
    lost[start.owner[listed & ~at_node(found.cluster.nodes.serves, start.node)]] = True
    partition = steps.partition[step]
    bad = lost[partition] | (steps.source[step] != start.preferred_node[partition])
    bad |= steps.target[step] != start.node[steps.replica[step]]
    bad |= np.bincount(steps.partition, minlength=len(start))[partition] > 1
    found.breach(
        "order", step[bad], found.timeline.start[step[bad]], partition=partition[bad],
        node=steps.target[step[bad]],
    )  # fmt: skip


def compare_ends(
    found: FoundBreaches, target: Placement | None, node: Ints32, role: Roles, leader: Ints32
) -> End:
    """Compare the last state, nodes and roles (K,) and leading nodes (P,), with the target."""
    if target is None:
        return "open"
    start = found.cluster.placement
    moved = node != target.node
    other = (role != target.role) & (node >= 0) & (target.node >= 0)
    wanted = target.leader_node
    led = leader != wanted
    steps = found.timeline.steps
    first, touched = start.preferred_node.copy(), np.zeros(len(start), bool)
    touched[steps.partition] = True
    orders = steps.kind == StepKind.ORDER
    touched[steps.partition[orders]] = False
    first[steps.partition[orders]] = steps.target[orders]
    led |= ~touched & (first != target.preferred_node)
    if not (moved.any() or other.any() or led.any()):
        return "target"
    astray = np.flatnonzero((moved & (node != start.node)) | (other & (role != start.role)))
    if len(astray):
        owner = np.searchsorted(start.first, astray, side="right") - 1
        none = np.full(len(astray), -1)
        found.breach(
            "end", none, np.full(len(astray), found.timeline.end), partition=owner,
            node=node[astray],
        )  # fmt: skip
        return "other"
    return "prefix"


def check_flights(found: FoundBreaches, throttle: "Throttle") -> None:
    """Find copies that start while as many, or as many bytes per second, are under way."""
    timeline, cluster = found.timeline, found.cluster
    steps = timeline.steps
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    if len(copies) == 0:
        return
    source, target = steps.source[copies], steps.target[copies]
    all_of_it = np.zeros(len(copies), np.int32)
    one = np.ones(len(copies))
    nodes = len(cluster.nodes)
    ends = (("in", target), ("out", source))
    for way, node in ends:
        _hold(found, f"node_{way}", "", copies, node, one, getattr(throttle, f"node_{way}"), nodes,
              column="node")  # fmt: skip
    for way, node in ends:
        limits: Mapping[str, int] = getattr(throttle, f"domain_{way}")
        for tier, most in limits.items():
            row = cluster.topology.tier_index(tier)
            domain = np.append(cluster.topology.domain_with_nodes[row], np.int32(-1))
            crosses = domain[source] != domain[target]
            place = np.where(crosses, domain[node], -1)
            _hold(found, f"domain_{way}", tier, copies, place, one, most,
                  int(cluster.topology.domain_count[row]), column="domain", tier=row)  # fmt: skip
    _hold(found, "copies", "", copies, all_of_it, one, throttle.copies, 1, column="")
    time = steps.finish[copies] - steps.start[copies]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(steps.size[copies] > 0.0, steps.size[copies] / time, 0.0)
    for way, node in ends:
        _hold(found, f"bytes_{way}", "", copies, node, rate, throttle.node_bandwidth, nodes,
              column="node")  # fmt: skip
    if throttle.recovery_first:
        _check_recovery(found, copies)
    if throttle.windows is not None:
        # what is under way pauses in between
        for at in (timeline.start, timeline.finish):
            when = steps.start if at is timeline.start else steps.finish
            shut = np.flatnonzero(~throttle.windows.is_open(when))
            found.breach("window", shut, at[shut], partition=steps.partition[shut])


def _check_recovery(found: FoundBreaches, copies: Rows) -> None:
    """Find copies that begin while partitions lack live replicas that they get later."""
    cluster, timeline = found.cluster, found.timeline
    steps, start = timeline.steps, cluster.placement
    live = cluster.nodes.serves
    was = at_node(live, start.node)
    lack = np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    lack = lack - np.bincount(start.owner, was, len(start)).astype(np.int64)
    comes = np.isin(steps.kind, (StepKind.PROMOTE, StepKind.SWAP)) & ~was[steps.replica]
    comes &= at_node(live, steps.target) & (lack > 0)[steps.partition]
    which = np.flatnonzero(comes)
    which = which[np.argsort(timeline.finish[which], kind="stable")]
    # a replica that goes by a third node comes once
    which = which[np.sort(np.unique(steps.replica[which], return_index=True)[1])]
    which = which[np.argsort(steps.partition[which], kind="stable")]
    partition = steps.partition[which]
    opens = np.flatnonzero(np.diff(partition, prepend=-1))
    place = np.arange(len(which)) - np.repeat(opens, np.diff(np.append(opens, len(which))))
    needed = which[place < lack[partition]]
    needed = needed[~_followers(steps, (lack <= 0)[steps.partition])[needed]]
    until = int(timeline.finish[needed].max(initial=-1))
    begun = (start.flags[steps.replica[copies]] & Flag.INCOMING) != 0
    early = copies[(lack[steps.partition[copies]] <= 0) & ~begun & (timeline.start[copies] < until)]
    found.breach("recovery", early, timeline.start[early], partition=steps.partition[early])


def _followers(steps: Steps, some: Flags) -> Flags:
    """Return some steps and all that wait for them, directly or not, (S,)."""
    step, before = pairs(steps)
    order = np.argsort(before, kind="stable")
    step = step[order]
    first = np.searchsorted(before[order], np.arange(len(steps) + 1))
    reached = some.copy()
    front = np.flatnonzero(some)
    while len(front):
        low, length = first[front], first[front + 1] - first[front]
        laid = np.cumsum(length) - length
        on = step[np.arange(int(length.sum())) + np.repeat(low - laid, length)]
        front = np.unique(on[~reached[on]])
        reached[front] = True
    return reached


def _hold(
    found: FoundBreaches,
    kind: str,
    of: str,
    copies: Rows,
    place: Ints32,
    amount: Reals,
    most: float | None,
    places: int,
    *,
    column: str,
    tier: int = -1,
) -> None:
    """Find copies with whose start a place has more under way than it may."""
    if most is None:
        return
    timeline = found.timeline
    inside = np.flatnonzero(place >= 0)
    which = copies[inside]
    step = np.concatenate([which, which])
    rank = np.concatenate([timeline.start[which], timeline.finish[which]])
    change = np.concatenate([amount[inside], -amount[inside]])
    at = np.concatenate([place[inside], place[inside]])
    by_rank = np.argsort(rank)
    order = by_rank[sort_by(at[by_rank], places)]
    at, change, step, rank = at[order], change[order], step[order], rank[order]
    endless = ~np.isfinite(change)
    change = np.where(endless, 0.0, change)
    total = np.cumsum(change)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    length = np.diff(np.append(opens, len(at)))
    under_way = total - np.repeat(total[opens] - change[opens], length)
    begins = rank == timeline.start[step]
    under_way = np.where(endless & begins, np.inf, under_way)
    seen = np.flatnonzero(begins)
    spot = {column: at[seen]} if column else {}
    if tier >= 0:
        spot["tier"] = np.full(len(seen), tier)
    reached = under_way[seen]
    over = np.flatnonzero(reached > most * (1.0 + ROUNDING))
    found.breach(kind, step[seen[over]], rank[seen[over]], reached[over] - most,
                 **{name: value[over] for name, value in spot.items()})  # fmt: skip
    found.tight(kind, of, reached, reached, most, step[seen], rank[seen], **spot)
