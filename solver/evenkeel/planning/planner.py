"""Compute a plan from a cluster and a target placement.

Copies of a partition that come one after another are an open shop (Gonzalez and Sahni 1976) with
the nodes: their order is not given. So all is scheduled once as if every order were safe; then
each partition takes the order that this found, or the next to it that its rules admit.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evenkeel.measure.disks import sizes
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import lying
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.intake.stranded import marked
from evenkeel.model.placement import PREFERENCES, Flag, Placed, Placement, Role, placement_of
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Reals, Rows, read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.planning.changes.actions import Action, Actions, apart, never
from evenkeel.planning.changes.paths import actions_of, as_led, rematched
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.targets import (
    as_far,
    in_bounds,
    in_full,
    led_where_there_is_room,
    out_of_reach,
    still_listed,
    unlisted,
    with_unreplaced,
    within_reach,
)
from evenkeel.planning.changes.transition_table import (
    TransitionTable,
    check_roles,
    check_target,
    in_place,
)
from evenkeel.planning.observed import (
    Arrived,
    Flights,
    Settled,
    as_described,
    in_slots,
    serving,
    settled,
)
from evenkeel.planning.plan import Plan
from evenkeel.planning.schedule import RECOVERY, Schedule, begun, repairs
from evenkeel.planning.search import FEW, circles, halfway, searched, staged
from evenkeel.planning.steps import Blocked, StepKind, Steps
from evenkeel.planning.throttle import Protocol, Throttle, check_throttle


@known_keywords
def plan(
    cluster: Cluster,
    target: Placement | Placed,
    *,
    throttle: Throttle | None = None,
    protocol: str | Protocol | None = None,
) -> Plan:
    """Turn a target into steps that are safe at every instant, copies in flight included.

    No node and no domain goes above its capacity in any dimension, what moves counting on both ends
    where a dimension is transient; no rule that both ends keep is broken in between; every
    partition keeps as many live replicas as both ends have, and a quorum that survives the loss of
    any one domain, if both ends do; who leads hands over before it goes, to a replica that is
    caught up.

    Parameters
    ----------
    cluster : Cluster
        Where everything is now.
    target : Placement or Result
        Where it should be; anything with a ``placement`` will do.
    throttle : Throttle, optional
        How much may be under way at once; everything by default.
    protocol : str or Protocol, optional
        What the system can do: a name that ``Protocol.named`` knows, or a protocol of your own.
        By default that of the system that the cluster was read from, else ``"plain"``.

    Returns
    -------
    Plan
        Its steps, what each waits for, and what is ``blocked``.

    Raises
    ------
    InvalidInput
        If the target is of other partitions or nodes, or asks for roles that the protocol cannot
        change, or the throttle names unknown tiers.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[2.0]] * 3, load=[[1.0]], placement=[[0, 1]], leader=[0])
    >>> target = c.placement.replaced(np.array([0, 2], np.int32), c.placement.leader)
    >>> [row.kind for row in ek.plan(c, target).rows()]
    ['copy', 'swap', 'remove']
    """
    faults = FaultList()
    wanted = placement_of(target)
    pace = Throttle() if throttle is None else throttle
    for name, given, kind in (
        ("cluster", cluster, Cluster), ("throttle", pace, Throttle),
        ("protocol", protocol, str | Protocol | None),
    ):  # fmt: skip
        if not isinstance(given, kind):
            word = "a Cluster" if kind is Cluster else "a Throttle"
            word = "a Protocol, or the name of one" if name == "protocol" else word
            faults.add(name, given, f"must be {word}")
    faults.raise_if_any()
    check_target(faults, cluster, wanted)
    check_throttle(faults, cluster, pace)
    if protocol is None:
        protocol = Protocol.of(cluster)
    elif isinstance(protocol, str):
        protocol = Protocol.named(protocol)
    faults.raise_if_any()
    unplaced = getattr(target, "unplaced_replicas", np.zeros(0, np.int64))
    wanted, listed = still_listed(cluster, wanted, unplaced)
    found = _planned(cluster, _aim(cluster, wanted, protocol), pace, protocol)
    found = _with_disks(found, wanted)
    kept = list[Blocked]()
    while len(over := _beyond_disks(found)):
        wanted, more = _staying(found, wanted, over)
        if not more:
            break
        kept += more
        found = _planned(cluster, _aim(cluster, wanted, protocol), pace, protocol)
        found = _with_disks(found, wanted)
    found = _with_lists(found, wanted)
    lost = cluster.placement.node[listed].tolist()
    blocked = [
        _named(cluster, k, node, -1, _stays(cluster, node), -1, "move")
        for k, node in zip(listed.tolist(), lost, strict=True)
    ]
    goals = getattr(target, "goals", None) if getattr(target, "goals_asked", True) else None
    goals = goals if isinstance(goals, Goals | Cost) else found.goals
    return replace(found, blocked=(*found.blocked, *kept, *blocked), goals=goals)


class _Aim(NamedTuple):
    """A target, the replicas that cannot join their node there, (K,), and what changes."""

    # Of ``lost``, ``waits`` are in partitions that list a replica on a dead node, and
    # ``unreplaced`` are on dead nodes. ``free`` slots may trade targets. If there is a ``bound``,
    # loads stay within it, although it is not the whole target.

    target: Placement
    lost: Flags
    waits: Flags
    unreplaced: Flags
    transitions: TransitionTable
    free: bool
    bound: Placement | None


def _aim(
    cluster: Cluster, target: Placement, protocol: Protocol, towards: Placement | None = None
) -> _Aim:
    """Return a target in the cluster's slots, and what changes; raise if roles cannot change."""
    # if ``towards`` is given, nodes may carry what that placement does
    faults = FaultList()
    asked, proposed = in_place(cluster, target, protocol)
    wanted = led_where_there_is_room(cluster, asked, proposed)
    wanted, unreplaced = with_unreplaced(cluster, wanted, protocol)
    waits = np.zeros(len(wanted.node), np.bool_)
    if protocol.names_all:
        wanted, waits = unlisted(cluster, wanted, asked, unreplaced)
    check_roles(faults, cluster, wanted, protocol)
    faults.raise_if_any()
    if towards is not None:
        asked, _ = in_place(cluster, towards, protocol)
    return _reached(cluster, wanted, asked, waits, unreplaced, protocol, free=True)


def _reached(
    cluster: Cluster, wanted: Placement, asked: Placement, waits: Flags, unreplaced: Flags,
    protocol: Protocol, *, free: bool,
) -> _Aim:  # fmt: skip
    """Return how far steps come to a target, which may carry what is ``asked`` for."""
    lost = out_of_reach(cluster, wanted, waits | unreplaced, protocol)
    within = within_reach(cluster, wanted, lost)
    transitions = TransitionTable.of(cluster.placement, within)
    if lost.any():
        transitions = transitions.take(np.flatnonzero(transitions.differ))
    full = in_full(wanted, lost, within)
    bound = in_bounds(cluster, asked, full)
    return _Aim(full, lost, waits, unreplaced, transitions, free, bound)


def planned(
    cluster: Cluster,
    target: Placement,
    throttle: Throttle,
    protocol: Protocol,
    towards: Placement | None = None,
) -> Plan:
    """Return the plan to a target in the cluster's own slots; what it cannot reach stays."""
    # if ``towards`` is given, nodes may carry what that placement does
    start = cluster.placement
    # no step takes leadership away without a successor
    led = (target.leader_node < 0) & (np.append(target.node, -1)[start.leader_replica] >= 0)
    asked = target if towards is None else towards
    target = led_where_there_is_room(cluster, target, np.where(led, start.leader, -1))
    none = np.zeros(len(target.node), np.bool_)
    aim = _reached(cluster, target, asked, none, none, protocol, free=False)
    return _with_lists(_with_disks(_planned(cluster, aim, throttle, protocol), asked), asked)


def _with_lists(plan: Plan, wanted: Placement) -> Plan:
    """Return a plan that also reorders lists of partitions of which it changes nothing else."""
    # A leader that is to stay is put first, since the system would give the lead to the first. A
    # list with a node that is down is refused, and stays.
    start, end, protocol = plan.cluster.placement, plan.target, plan.protocol
    first, then = start.preferred_node, wanted.preferred_node
    still = np.ones(len(start), np.bool_)
    still[plan.steps.partition] = False
    differs = still & (first != then) & (start.leader_node == end.leader_node) & protocol.names_all
    serves = np.append(plan.cluster.nodes.serves, True)
    differs[start.owner[~serves[start.node]]] = False
    at = np.flatnonzero(differs[start.owner] & (start.node == then[start.owner]))
    # a solve keeps the flags of the start where a list is written anew, with its leader first, and
    # a way back those of replicas that do not return to a node that is down
    written = (start.leader_node != end.leader_node)[start.owner] | (start.node != end.node)
    written &= marked(start, Flag.AWAITED)[start.owner] | (plan.end.node != wanted.node)
    kept = np.where(written, end.flags & ~Flag.AWAITED, end.flags)
    flags = np.where(still[start.owner], start.flags, kept)
    flags[differs[start.owner]] &= ~PREFERENCES
    beside = at[start.leader_node[start.owner[at]] != start.node[at]]
    waits = marked(wanted, Flag.AWAITED)[start.owner[beside]]
    flags[beside] |= np.where(waits, np.uint16(Flag.AWAITED), np.uint16(Flag.PREFERRED))
    target = replace(end, flags=read_only(flags))
    if not len(at):
        return replace(plan, target=target) if (flags != end.flags).any() else plan
    owner, count, open_at = start.owner[at], len(at), np.zeros(len(at))
    if plan.throttle.windows is not None:
        open_at = plan.throttle.windows.opening(open_at)
    orders = Steps(
        np.full(count, StepKind.ORDER, np.int8), owner.astype(np.int32), at.astype(np.int32),
        first[owner], then[owner], np.zeros(count), open_at, open_at, np.zeros(count, np.int32),
        np.zeros(count + 1, np.int64), np.zeros(0, np.int32),
    )  # fmt: skip
    change = np.arange(count, dtype=np.int32) + 1 + plan.change.max(initial=-1)
    return replace(
        plan, target=target, steps=plan.steps.followed_by(orders),
        change=np.append(plan.change, change),
    )  # fmt: skip


def _with_disks(plan: Plan, wanted: Placement) -> Plan:
    """Return a plan with the disks of a target, or else those on which replicas lie."""
    if plan.cluster.disks is None:
        return plan
    disk = _lying(plan.target, wanted, plan.cluster.placement)
    if disk is None:
        return plan
    found = replace(plan, target=replace(plan.target, disk=disk))
    if not found.blocked:
        return found
    return replace(found, target=replace(found.target, disk=_with_room(found, disk)))


def _with_room(plan: Plan, disk: Ints32) -> Ints32:
    """Return the disks of a target, others for what comes where a blocked change left no room."""
    cluster, end, disks = plan.cluster, plan.end, plan.cluster.disks
    assert disks is not None, "asked of plans with disks"
    assert end.disk is not None, "asked of plans with disks"
    disk, size, lies = disk.copy(), sizes(cluster, end), end.disk >= 0
    room = disks.capacity * (1.0 + ROUNDING)
    room -= np.bincount(end.disk[lies], size[lies], len(disks))
    for k in np.flatnonzero((end.node != cluster.placement.node) & lies).tolist():
        others = np.flatnonzero((disks.node == end.node[k]) & disks.usable)
        if room[disk[k]] >= 0.0 or len(others) == 0:
            continue
        best = others[np.argmax(room[others])]
        if size[k] <= room[best]:
            room[[disk[k], best]] += size[k], -size[k]
            disk[k] = best
    return read_only(disk)


def _beyond_disks(plan: Plan) -> Rows:
    """List what comes to disks without room for it, where blocked changes left theirs there."""
    end, disks = plan.end, plan.cluster.disks
    if disks is None or end.disk is None or not plan.blocked:
        return np.zeros(0, np.int64)
    size, lies = sizes(plan.cluster, end), end.disk >= 0
    load = np.bincount(end.disk[lies], size[lies], len(disks))
    over: Reals = load - disks.capacity * (1.0 + ROUNDING)
    found = list[int]()
    for k in np.flatnonzero((end.node != plan.cluster.placement.node) & lies)[::-1].tolist():
        if over[end.disk[k]] > 0.0:
            over[end.disk[k]] -= size[k]
            found.append(k)
    return np.array(found, np.int64)


def _staying(plan: Plan, wanted: Placement, over: Rows) -> tuple[Placement, list[Blocked]]:
    """Return a target in which what is ``over`` stays where it is, and name it."""
    start, end, node = plan.cluster.placement, plan.end, wanted.node.copy()
    blocked = list[Blocked]()
    for k in over.tolist():
        row = slice(*start.first[start.owner[k] : start.owner[k] + 2].tolist())
        source, target = int(start.node[k]), int(end.node[k])
        if source in node[row] and source >= 0:
            continue
        node[row] = np.where(node[row] == target, np.int32(source), node[row])
        lacks = f"room on a disk of {plan.cluster.nodes.names[target]}"
        blocked.append(_named(plan.cluster, k, source, target, lacks, -1, "move"))
    return wanted.replaced(node, wanted.leader), blocked


def _lying(placement: Placement, first: Placement, other: Placement) -> Ints32 | None:
    """Return the disks that replicas have in the first of two placements that has one for them."""
    disk, rest = lying(placement, first), lying(placement, other)
    if disk is None or rest is None:
        return rest if disk is None else disk
    return np.where(disk < 0, rest, disk)


def _planned(
    cluster: Cluster,
    aim: _Aim,
    throttle: Throttle,
    protocol: Protocol,
    flights: Flights | None = None,
) -> Plan:
    blocked = _beyond_reach(cluster, aim)
    none = np.zeros(0, np.int32)
    idle = Plan(cluster, aim.target, Steps.none(), throttle, protocol, none, blocked, aim.bound)
    if flights is not None:
        idle = replace(idle, in_flight=flights.node)
    if len(aim.transitions) == 0:
        return idle
    target, transitions, actions = _matched(cluster, aim, throttle, protocol)
    if len(actions) == 0:  # replicas that are alike had but traded their slots
        return replace(idle, target=target)

    def ordered(pace: Throttle) -> Schedule:
        marked = _marked(cluster, actions, pace, flights)
        schedule = Schedule.of(cluster, target, transitions, marked, pace, protocol)
        return _ordered(schedule, flights, trades=aim.free)

    schedule = ordered(throttle)
    if throttle.recovery_first:
        if len(schedule.stuck) and repairs(cluster, schedule.actions).any():
            # as a last resort what makes room for a repair goes before it
            other = ordered(replace(throttle, recovery_first=False))
            schedule = min(schedule, other, key=lambda one: one.left)
        schedule = schedule.barred()
    if flights is not None:  # what has arrived where a replica waits on its way is there, too
        schedule = schedule.of_actions(flights.of_actions(schedule.actions, cluster.placement))
    steps, change = schedule.steps()
    blocked += _blocked(schedule)
    target, towards = schedule.target, None
    if aim.bound is not None:
        target, towards = as_far(cluster, target, aim.bound, aim.target), target
    found = Plan(cluster, target, steps, throttle, protocol, change, blocked, towards)
    return found if flights is None else replace(found, in_flight=flights.node)


def _matched(
    cluster: Cluster, aim: _Aim, throttle: Throttle, protocol: Protocol
) -> tuple[Placement, TransitionTable, Actions]:
    """Return the way to what is aimed at, slots taking other nodes of it where that opens one."""
    target, transitions, at_once = aim.bound or aim.target, aim.transitions, throttle.at_once
    actions = actions_of(
        cluster, transitions, protocol, at_once, detours=not aim.free, urged=aim.free
    )
    for urged in (True, False):
        if aim.free and actions.blocked.any():
            target, transitions, actions = rematched(
                cluster, target, transitions, actions, protocol, at_once, urged=urged
            )
    if aim.free and actions.blocked.any():
        actions = actions_of(cluster, transitions, protocol, at_once)
    return target, transitions, actions


def _marked(
    cluster: Cluster, actions: Actions, throttle: Throttle, flights: Flights | None
) -> Actions:
    """Return actions of which those that are under way, and repairs, are marked as such."""
    if flights is not None:
        actions = flights.of_actions(actions, cluster.placement)
    if throttle.recovery_first:
        actions = replace(actions, recovers=repairs(cluster, actions))
    return actions


def _ordered(schedule: Schedule, flights: Flights | None, *, trades: bool) -> Schedule:
    """Return a schedule with fewer stuck changes, if any; ``trades`` lets slots swap targets."""
    if schedule.transitions.recasts.any() and len(schedule.stuck):
        # a replica without room in its new role may have it once it has moved
        left = schedule.actions.partition[np.isin(schedule.actions.change, schedule.stuck)]
        late = np.isin(schedule.transitions.partition, left)
        other = replace(schedule, transitions=replace(schedule.transitions, late=late))
        other = other.again(_actions_anew(other, flights))
        schedule = min(schedule, other, key=lambda one: one.left)
    schedule = interleaved(_otherwise(schedule, flights))
    if schedule.protocol.whole and len(schedule.stuck):
        # what finds no room at once may find it one by one
        safety = Safety(schedule.cluster, schedule.transitions, schedule.protocol)
        schedule = schedule.again(apart(safety, schedule.actions, schedule.stuck))
    if len(schedule.stuck):
        schedule = _unstuck(schedule, trades=trades)
    return schedule


def _actions_anew(
    schedule: Schedule,
    flights: Flights | None,
    unfit: Flags | None = None,
    full: Collection[tuple[int, int]] = (),
) -> Actions:
    """Return the actions of what a schedule changes, without some leaders and third nodes."""
    cluster, throttle = schedule.cluster, schedule.throttle
    actions = actions_of(
        cluster, schedule.transitions, schedule.protocol, throttle.at_once, unfit, full
    )
    return _marked(cluster, actions, throttle, flights)


def _otherwise(schedule: Schedule, flights: Flights | None) -> Schedule:
    """Return a schedule that does without leaders and third nodes for which there was no room."""
    target, best = schedule.target, schedule
    unfit = np.zeros(len(target.node), bool)
    full: set[tuple[int, int]] = set()
    final = target.leader_replica
    while len(schedule.stuck):
        actions = schedule.actions
        waits = np.isin(actions.change, schedule.stuck)
        front = (
            waits & (actions.action == Action.LEAD) & (actions.replica != final[actions.partition])
        )
        found = actions.replica[front]
        away = (
            waits
            & (actions.action == Action.MOVE)
            & (actions.target != target.node[actions.replica])
        )
        away &= schedule.timetable.lacks[actions.change] >= 0
        thirds = {
            *zip(actions.partition[away].tolist(), actions.target[away].tolist(), strict=True)
        }
        if unfit[found].all() and thirds <= full:
            break
        unfit[found] = True
        full |= thirds
        schedule = schedule.again(_actions_anew(schedule, flights, unfit, full))
        best = min(best, schedule, key=lambda one: one.left)
    return best


def _unstuck(schedule: Schedule, *, trades: bool) -> Schedule:
    """Return a schedule in which as little as can be waits in vain, and then is copied."""
    beginnings = _beginnings(schedule)
    best = _searched(schedule, beginnings)
    while len(best.stuck):
        best = staged(best)
        if not halfway(best).any():
            break
        best = _less_halves(best)
    if len(best.actions) > len(schedule.actions) or len(best.stuck):
        # other orders may do without detours
        other = _searched(schedule, beginnings, free=True, trades=trades)
        while halfway(other).any():
            other = _less_halves(other)
        best = min(best, other, key=lambda one: (one.left, one.bytes))
    return best


def _less_halves(schedule: Schedule) -> Schedule:
    """Return a schedule in which what would end on its detour does not begin."""
    blocked = schedule.actions.blocked | halfway(schedule)
    return schedule.again(replace(schedule.actions, blocked=blocked))


def _searched(
    schedule: Schedule, beginnings: list[Schedule], *, free: bool = False, trades: bool = False
) -> Schedule:
    """Return a schedule in the order that a search from one of its beginnings finds, or itself."""
    for begin in beginnings:
        found = searched(begin, free=free, trades=trades)
        if found is None:
            continue
        actions, sequence = found
        target, transitions = as_led(schedule.target, schedule.transitions, actions)
        way = replace(schedule, target=target, transitions=transitions).again(actions, sequence)
        # what ties hold back the search does not see: then its order may come to a halt
        if way.left < schedule.left:
            return way
    return schedule


def _beginnings(schedule: Schedule) -> list[Schedule]:
    """Return schedules from which the orders of what is left are searched, the best first."""
    count = len(schedule.previous)
    if count > FEW:
        return [schedule]
    none = np.full(count, np.nan)
    free = np.concatenate(schedule.resources.free)
    found = [replace(schedule, timetable=replace(schedule.timetable, start=none, free=free))]
    going = begun(schedule.cluster, schedule.actions, count)
    if going.any():
        actions = schedule.actions
        on = schedule.again(replace(actions, blocked=actions.blocked | ~going[actions.change]))
        if (on.timetable.start[going] == 0.0).all():
            found.insert(0, replace(on, actions=actions))
    return found


TURN = "turn: another change of the partition is blocked"


def _blocked(schedule: Schedule) -> tuple[Blocked, ...]:
    """Name what never starts, what it lacks, and who waits for whom."""
    if len(schedule.stuck) == 0:
        return ()
    cluster, actions, circle = schedule.cluster, schedule.actions, circles(schedule)
    serves = cluster.nodes.serves
    pinned = (cluster.placement.flags & Flag.PINNED) != 0
    held = {*schedule.transitions.partition[never(cluster, schedule.transitions)].tolist()}
    found = []
    for i in np.flatnonzero(np.isin(actions.change, schedule.stuck)).tolist():
        change, target = int(actions.change[i]), int(actions.target[i])
        lacks = TURN if int(actions.partition[i]) in held else _lack(schedule, change)
        if target >= 0 and not serves[target]:
            lacks = _way_to(cluster, target)
        elif pinned[actions.replica[i]] and actions.source[i] not in (-1, target):
            lacks = "move of a replica that is pinned"
        ends = int(actions.replica[i]), int(actions.source[i]), target
        found.append(_named(cluster, *ends, lacks, int(circle[change]), _word(actions, i)))
    return tuple(found)


def _beyond_reach(cluster: Cluster, aim: _Aim) -> tuple[Blocked, ...]:
    """Name what should join nodes that are down, and what waits for it."""
    start, target, serves = cluster.placement, aim.target, cluster.nodes.serves
    found = []
    for k in np.flatnonzero(aim.lost).tolist():
        source, to = int(start.node[k]), int(target.node[k])
        word = "move"
        if source == to:
            rises = target.role[k] == Role.VOTER
            recast = target.role[k] != start.role[k]
            word = "lead" if not recast else "promote" if rises else "demote"
        lacks = TURN
        if source != to and to >= 0 and not serves[to]:
            lacks = _way_to(cluster, to)
        elif aim.unreplaced[k]:
            lacks = _stays(cluster, source)
        elif aim.waits[k]:
            lacks = "replica list without a dead node"
        found.append(_named(cluster, k, source, to, lacks, -1, word))
    return tuple(found)


def _named(
    cluster: Cluster, replica: int, source: int, target: int, lacks: str, circle: int, word: str
) -> Blocked:
    """Return what is blocked with the names of its partition and nodes."""
    start, nodes = cluster.placement, cluster.nodes.names
    p = int(start.owner[replica])
    return Blocked(
        cluster.partitions.names[p], replica - int(start.first[p]),
        nodes[source] if source >= 0 else None, nodes[target] if target >= 0 else None,
        lacks, circle, word,
    )  # fmt: skip


def _way_to(cluster: Cluster, node: int) -> str:
    return f"way to {cluster.nodes.names[node]}, which is down"


def _stays(cluster: Cluster, node: int) -> str:
    return f"node that takes its place: what is lost on {cluster.nodes.names[node]} stays listed"


def _word(actions: Actions, i: int) -> str:
    """Return the word for what an act changes."""
    if actions.action[i] == Action.ROLE:
        return "promote" if actions.role[i] == Role.VOTER else "demote"
    return "lead" if actions.action[i] == Action.LEAD else "move"


def _lack(schedule: Schedule, change: int) -> str:
    """Return the resource that blocks a change, in words."""
    resource = int(schedule.timetable.lacks[change])
    if resource < 0:
        return TURN
    cluster = schedule.cluster
    name, row, column = schedule.resources.place_of(resource)
    if name == "rules":
        return "order that its rules admit"
    dimensions = (*cluster.dimensions, "number of replicas")
    if name == RECOVERY:
        return "end of the repairs, of which some are blocked"
    if name == "node":
        return f"room on {cluster.nodes.names[row]} in {dimensions[column]}"
    if name in cluster.topology.tier_capacity:
        tier = cluster.topology.tier_index(name)
        return f"room in {name} {cluster.topology.domain_name(tier, row)} in {dimensions[column]}"
    return "room in what its group may have" if name == "group" else f"room under {name}"


CLOSE = 1.04  # what is as close to the least is not worth two more schedules


def interleaved(schedule: Schedule) -> Schedule:
    """Return a shorter schedule with slots in another order, or the schedule itself."""
    squeaky_wheel = schedule.timetable.squeaky_wheel
    if (
        squeaky_wheel is None
        or len(schedule.stuck)
        or schedule.seconds <= squeaky_wheel.least * CLOSE
    ):
        return schedule
    free = _free(schedule)
    if len(free) == 0:
        return schedule
    loose = schedule.again(schedule.actions, loose=free)
    if len(loose.stuck) or loose.worth >= schedule.worth:
        return schedule
    begins = loose.timetable.start[schedule.actions.change]
    found = schedule.again(_reordered(schedule, free, begins))
    return schedule if len(found.stuck) or found.worth >= schedule.worth else found


def _free(schedule: Schedule) -> Ints32:
    """Return the partitions of which several changes copy, and that may take another order."""
    actions, cluster = schedule.actions, schedule.cluster
    kept = (cluster.placement.flags[actions.replica] & Flag.INCOMING) != 0
    kept |= (
        actions.recovers | actions.blocked | (actions.left < 1.0) | (actions.action == Action.ROLE)
    )
    moves = actions.action == Action.MOVE
    kept |= moves & (actions.target != schedule.target.node[actions.replica])
    copies = schedule.copies.moves
    first = copies & (np.diff(actions.change, prepend=-1) > 0)
    several = np.flatnonzero(np.bincount(actions.partition[first]) > 1)
    return np.setdiff1d(several, actions.partition[kept]).astype(np.int32)


def _reordered(schedule: Schedule, free: Ints32, begins: Reals) -> Actions:
    """Return actions in which slots of free partitions change in the order of their start times."""
    # where rules do not admit that, the nearest order that they do, if leaders move as often
    actions, cluster = schedule.actions, schedule.cluster
    transitions = schedule.transitions.take(
        np.flatnonzero(np.isin(schedule.transitions.partition, free))
    )
    order = _slots_by_begin(transitions, actions, begins)
    made = actions_of(
        cluster, transitions, schedule.protocol, schedule.throttle.at_once,
        order=order, detours=False,
    )  # fmt: skip
    worse = np.isin(made.partition, made.partition[made.blocked])
    counts = [np.bincount(one.partition, minlength=len(schedule.target)) for one in (actions, made)]
    worse |= (counts[0] != counts[1])[made.partition]
    made = made.take(np.flatnonzero(~worse))
    return actions.with_others(made, made.partition)


def _slots_by_begin(transitions: TransitionTable, actions: Actions, begins: Reals) -> Rows:
    """Return the slots of the ends, (A, R), those that change first, as their actions begin."""
    moves = np.flatnonzero(actions.action != Action.LEAD)
    replicas = actions.replica[moves]
    when = np.full(int(transitions.replica.max(initial=-1)) + 2, np.inf)
    inside = replicas < len(when) - 1
    when[replicas[inside]] = begins[moves[inside]]
    return np.argsort(
        np.where(transitions.moves, when[transitions.replica], np.inf), axis=1, kind="stable"
    )


def _led_as_seen(plan: Plan, now: Placement) -> Placement:
    """Return the target of a plan, led as observed where the plan keeps partition and leader."""
    target, led = plan.target, plan.cluster.placement.leader_node
    still = (now.leader >= 0) & (target.leader_node == led)
    still[plan.steps.partition] = False
    still[now.owner[now.node != target.node]] = False
    return target.replaced(target.node, np.where(still, now.leader, target.leader))


def resumed_plan(
    plan: Plan,
    observed: Cluster | Placement,
    target: Placement,
    arrived: Arrived | None = None,
    towards: Placement | None = None,
) -> Plan:
    """Plan from what is observed to a target, all of which may name slots in another order."""
    faults = FaultList()
    check_target(faults, plan.cluster, target)
    faults.raise_if_any()
    now = in_slots(plan.cluster, plan.target, plan.steps, observed)
    if now.disk is None and plan.cluster.disks is not None:  # seen without disks: as planned
        now = replace(now, disk=_lying(now, plan.cluster.placement, plan.target))
    cluster = replace(as_described(plan.cluster, observed), placement=now)
    flights = Flights.of(cluster, now, arrived)
    if target is plan.target:
        target = _led_as_seen(plan, now)

    def planned_from(state: Settled) -> Plan:
        """Return the plan from a state; what no step goes on with is cancelled first."""
        while True:
            begin = replace(cluster, placement=state.begin)
            aim = _aim(begin, target, plan.protocol, towards)
            found = _planned(begin, aim, plan.throttle, plan.protocol, state.flights)
            found = _with_lists(_with_disks(found, target), target)
            left = state.without(state.forgotten(found.steps), cluster)
            if left is state:
                return replace(found, cancelled=state.cancelled)
            state = left

    at_home = serving(plan.cluster.placement, plan.steps, now)
    if at_home is now:  # nothing is on its way
        return planned_from(Settled(now, flights, ()))
    wanted, _ = in_place(replace(cluster, placement=at_home), target, plan.protocol)
    state = settled(cluster, at_home, flights, wanted)
    found = planned_from(state)
    if state.cancelled:
        # a copy to where something waits on its way goes on, if that is its way again
        again = settled(cluster, at_home, flights, wanted, found.steps)
        if len(again.cancelled) < len(state.cancelled):
            other = planned_from(again)
            if again.first_to_arrive(other.steps) and len(other.blocked) <= len(found.blocked):
                return other
    return found
