"""Schedule: actions with their ranks, resources and start times, and the steps made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, Reals, Rows
from evenkeel.planning.changes.actions import Action, Actions, under_way, ushered
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.list_scheduler import (
    Resources,
    SqueakyWheel,
    Timetable,
    chained,
    list_schedule,
)
from evenkeel.planning.resources import (
    Copies,
    Shifts,
    charge_groups,
    charge_space,
    charge_throttle,
    tied,
)
from evenkeel.planning.steps import StepKind, Steps
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel_kernels.planning.schedule import Benefits, Heap, order_by_benefit

RECOVERY = "recovery"  # kind of the resource that is free once everything has what it lacked


def lacking(cluster: Cluster) -> Ints64:
    """Return how many live replicas partitions lack, (P,); 0 or less where none."""
    live = cluster.nodes.serves
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    wanted = np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.asarray(wanted - having, np.int64)


def repairs(cluster: Cluster, actions: Actions) -> Flags:
    """Return the actions, (M,), by which partitions get what they lack, and those before them."""
    live = np.append(cluster.nodes.serves, False)
    lack = lacking(cluster)
    comes = np.isin(actions.action, (Action.MOVE, Action.ADD)) & live[actions.target]
    comes &= ~live[cluster.placement.node[actions.replica]]
    which = np.flatnonzero(comes & (lack > 0)[actions.partition])
    # a replica that goes by a third node comes once
    which = which[np.sort(np.unique(actions.replica[which], return_index=True)[1])]
    opens = np.flatnonzero(np.diff(actions.partition[which], prepend=-1))
    place = np.arange(len(which)) - np.repeat(opens, np.diff(np.append(opens, len(which))))
    last = np.full(len(lack), -1)
    needed = which[place < lack[actions.partition[which]]]
    last[actions.partition[needed]] = needed
    return np.asarray(np.arange(len(actions)) <= last[actions.partition])


def charge_recovery(resources: Resources, actions: Actions, free: Flags, duration: Reals) -> None:
    """Let no change begin before those that recover have finished, but for those ``free (C,)``."""
    recovers = np.zeros(resources.changes, bool)
    repairing = np.flatnonzero(actions.recovers & ~actions.blocked)
    recovers[actions.change[repairing]] = True
    others = np.flatnonzero(~recovers & ~free)
    if not (recovers.any() and len(others)):
        return
    last = np.unique(
        actions.change[repairing[np.diff(actions.partition[repairing], append=-1) != 0]]
    )
    last = last[[np.argmin(duration[last])]]
    before = np.setdiff1d(np.flatnonzero(recovers), last)
    base = resources.add(RECOVERY, np.zeros(2))
    if len(before):
        resources.give(np.full(len(before), base), before, np.ones(len(before)))
        resources.claim(np.array([base]), last, np.array([float(len(before))]))
    resources.give(np.array([base + 1]), last, np.array([float(len(others))]))
    resources.claim(np.full(len(others), base + 1), others, np.ones(len(others)))


def barred(
    cluster: Cluster, actions: Actions, begun: Flags, timetable: Timetable, previous: Ints32
) -> Timetable:
    """Return a schedule in which all other changes wait for repairs that wait for none of them."""
    # Repairs that found no room by themselves hold nothing up: they may get it from other repairs,
    # or by a detour. As no other dependency leads to them, all else may come after them; the last
    # of them waits for the others, and all else for it.
    count = len(timetable.start)
    starts = ~np.isnan(timetable.start)
    lacks = np.zeros(count, bool)
    lacks[actions.change[lacking(cluster)[actions.partition] > 0]] = True
    repairing = np.zeros(count, bool)
    repairing[actions.change[repairs(cluster, actions)]] = True
    repairing &= starts
    others = ~lacks & starts & ~begun
    first = float(timetable.start[others].min(initial=np.inf))
    if not (timetable.finish[repairing] > first).any():
        return timetable
    led = np.flatnonzero((previous >= 0) & starts)
    giver = np.concatenate([timetable.giver, previous[led]])
    taker = np.concatenate([timetable.taker, led.astype(np.int32)])
    own = _alone(~lacks, timetable.sequence, giver, taker)
    waited = timetable.sequence[(repairing & own)[timetable.sequence]]
    if not (timetable.finish[waited] > first).any():
        return timetable
    last, held = waited[-1], np.flatnonzero(others)
    more = np.concatenate([waited[:-1], np.full(len(held), last, np.int32)])
    then = np.concatenate([np.full(len(waited) - 1, last, np.int32), held.astype(np.int32)])
    order = timetable.sequence[np.argsort(~own[timetable.sequence], kind="stable")]
    return _later(
        replace(
            timetable, sequence=order,
            giver=np.concatenate([timetable.giver, more]).astype(np.int32),
            taker=np.concatenate([timetable.taker, then]).astype(np.int32),
        ),
        previous,
    )  # fmt: skip


def _alone(some: Flags, sequence: Ints32, giver: Ints32, taker: Ints32) -> Flags:
    """Return the changes, (C,), that are none of some, and wait for none of them in any way."""
    own = ~some
    first, ahead = _givers_of(giver, taker, len(some))
    for c in sequence.tolist():
        if own[c] and first[c] < first[c + 1]:
            own[c] = own[ahead[first[c] : first[c + 1]]].all()
    return own


def _later(timetable: Timetable, previous: Ints32) -> Timetable:
    """Return a schedule, of which the sequence keeps to the dependencies, with starts that do."""
    led = np.flatnonzero(previous >= 0)
    giver = np.concatenate([timetable.giver, previous[led]])
    taker = np.concatenate([timetable.taker, led.astype(np.int32)])
    first, ahead = _givers_of(giver, taker, len(previous))
    start, finish, wave = timetable.start.copy(), timetable.finish.copy(), timetable.wave.copy()
    for c in timetable.sequence.tolist():
        mine = ahead[first[c] : first[c + 1]]
        if len(mine):
            begins = max(float(start[c]), float(finish[mine].max()))
            finish[c] += begins - start[c]
            start[c], wave[c] = begins, wave[mine].max() + 1
    sequence = timetable.sequence[np.argsort(start[timetable.sequence], kind="stable")]
    return replace(timetable, start=start, finish=finish, wave=wave, sequence=sequence)


def _givers_of(giver: Ints32, taker: Ints32, count: int) -> tuple[Ints64, Ints32]:
    """Return where the givers of each taker begin, (C + 1,), and the givers."""
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(taker, minlength=count), out=first[1:])
    return first, giver[np.argsort(taker, kind="stable")]


SAFE = np.iinfo(np.int32).max  # danger of a partition that lacks nothing


def ranks(
    cluster: Cluster,
    actions: Actions,
    copies: Copies,
    shifts: Shifts,
    throttle: Throttle,
    previous: Ints32,
) -> tuple[Ints32, Ints64]:
    """Return changes in the order of their priority, (C,), and the class of each, the first 0."""
    # ``previous (C,)`` are the changes before them. Copies under way come first, then partitions
    # with the fewest live replicas, groups by priority, and what relieves nodes above capacity.
    # Where copies are throttled, what holds up the busiest nodes is next, so that the plan is
    # short; otherwise what levels the most per byte.
    changes = len(previous)
    first = np.flatnonzero(np.diff(actions.change, prepend=-1))
    urgency = dangers(cluster)[actions.partition[first]]
    urgency = _by_priority(cluster, throttle, urgency, actions.partition[first])
    urgency[begun(cluster, actions, changes)] = -1
    size = np.where(copies.moves, np.maximum(copies.size, 0.0), 0.0)
    if cluster.bytes_dimension < 0:
        size = copies.moves.astype(np.float64)
    total = np.asarray(np.bincount(actions.change, size, changes), np.float64)
    if not throttle.limits_copies:
        by_benefit = _by_benefit(cluster, shifts, urgency, total, previous)
        return by_benefit, np.zeros(changes, np.int64)
    relieved = np.bincount(actions.change, _relief(cluster, actions), changes)
    with np.errstate(over="ignore"):
        gain = np.divide(relieved, total, out=np.full(changes, np.inf), where=total > 0.0)
    held_up = busiest(actions, copies, throttle, changes) + _afterwards(actions, copies, previous)
    late = np.where(relieved > 0.0, -gain, -held_up)
    relieves = -(relieved > 0.0).astype(np.int8)
    order = np.lexsort((np.arange(changes), -total, late, relieves, urgency))
    # those that relieve nodes come first of those that are as urgent
    rank = 2 * np.unique(urgency, return_inverse=True)[1] + 1 + relieves
    return order.astype(np.int32), np.unique(rank, return_inverse=True)[1]


def _by_priority(
    cluster: Cluster, throttle: Throttle, urgency: Ints64, partition: Ints32
) -> Ints64:
    """Return urgencies in which those that are equal differ by the priority of their groups."""
    if not throttle.priority:
        return urgency
    names = cluster.partitions.group_names
    priority = np.array([float(throttle.priority.get(name, 0.0)) for name in names])
    _, rank = np.unique(-priority, return_inverse=True)
    return urgency * len(names) + rank[cluster.partitions.group[partition]]


def _by_benefit(
    cluster: Cluster, shifts: Shifts, urgency: Ints64, size: Reals, previous: Ints32
) -> Ints32:
    """Return changes by what they level per byte, judged anew after each."""
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    capacity, count = cluster.nodes.capacity, len(previous)
    holds = cluster.nodes.may_hold
    share = np.zeros(capacity.shape)
    np.divide(1.0, capacity, out=share, where=np.isfinite(capacity) & (capacity > 0.0))
    whole = capacity[holds].sum(0)
    mean = np.zeros(len(whole))
    np.divide(loads.sum(0), whole, out=mean, where=whole > 0.0)
    order = np.argsort(shifts.change, kind="stable")
    node = shifts.node[order]
    first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(shifts.change, minlength=count), out=first[1:])
    shift = shifts.amount[order] * share[node]
    following = np.full(count, -1, np.int32)
    follows = np.flatnonzero(previous >= 0)
    following[previous[follows]] = follows
    # what copies nothing is worth the more, and what is worth nothing goes last
    least = float(size.max(initial=0.0)) * 1e-6
    benefits = Benefits(
        urgency, np.maximum(size, least) if least > 0.0 else np.ones(count), previous, following,
        first, node, shift, mean,
    )  # fmt: skip
    heap = Heap(loads * share, np.zeros(count), *(np.full(count, -1, np.int32) for _ in range(2)))
    order_by_benefit(benefits, heap)
    return heap.order


def dangers(cluster: Cluster) -> Ints64:
    """Return the live replicas of partitions that lack some, (P,); of others more than any has."""
    live = cluster.nodes.serves
    having = PlacementCounts.of(cluster, cluster.placement).per_partition(live)
    lacking = having < np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    return np.where(lacking, having, SAFE)


def begun(cluster: Cluster, actions: Actions, changes: int) -> Flags:
    """Return the changes of which a copy has begun already, and those just before them, (C,)."""
    rows = under_way(actions, cluster.placement.flags)
    found = np.zeros(changes, bool)
    found[actions.change[rows]] = True
    found[actions.change[ushered(actions, rows)] - 1] = True
    return found


def _relief(cluster: Cluster, actions: Actions) -> Reals:
    """Return the share that actions take of nodes above capacity."""
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    capacity = cluster.nodes.capacity
    leaves = actions.source != actions.target
    over = np.vstack([loads > capacity, np.zeros(capacity.shape[1], bool)])
    if not over.any():
        return np.zeros(len(actions))
    weight = cluster.partitions.load.voter[actions.partition]
    share = utilisation(weight, np.vstack([capacity, capacity[:1]])[actions.source])
    share[~np.isfinite(share)] = 0.0
    return np.where(leaves, (share * over[actions.source]).sum(axis=1), 0.0)


def busiest(actions: Actions, copies: Copies, throttle: Throttle, changes: int) -> Reals:
    """Return the seconds that the busier end of each change's copies takes for all of its own."""
    rows = np.flatnonzero(copies.moves)
    found = np.zeros(changes)
    for where, slots in ((actions.target, throttle.node_in), (copies.source, throttle.node_out)):
        if slots is None and throttle.node_bandwidth is None:
            continue
        at_once = 1 if slots is None or throttle.node_bandwidth is not None else slots
        node = where[rows]
        work = np.bincount(node + 1, copies.seconds[rows]) / at_once
        work[:1] = 0.0
        np.maximum.at(found, actions.change[rows], work[node + 1])
    return found


def least_seconds(actions: Actions, copies: Copies, throttle: Throttle, lasts: Reals) -> float:
    """Return what no order of changes that last so long (C,) takes less than."""
    first = np.flatnonzero(np.diff(actions.change, prepend=-1))
    found = [
        float(busiest(actions, copies, throttle, len(lasts)).max(initial=0.0)),
        float(np.bincount(actions.partition[first], lasts).max(initial=0.0)),
    ]
    if throttle.copies is not None:
        found.append(float(copies.seconds[copies.moves].sum()) / throttle.copies)
    return max(found)


def _afterwards(actions: Actions, copies: Copies, previous: Ints32) -> Reals:
    """Return the seconds that what a partition goes through after each change takes."""
    own = copies.durations(actions, len(previous))
    whole = np.cumsum(own)
    opens = np.flatnonzero(previous < 0)
    ends = np.append(opens[1:], len(previous)) - 1
    return np.asarray(np.repeat(whole[ends], np.diff(np.append(opens, len(previous)))) - whole)


def split_in_two(actions: Actions, protocol: Protocol) -> Flags:
    """Whether old and new replica of an act serve together for an instant, (M,)."""
    split = (actions.action == Action.MOVE) & actions.votes
    if protocol.joint:
        split &= actions.led & actions.leads
    return np.asarray(split)


def _loosened(resources: Resources, actions: Actions, previous: Ints32, loose: Ints32) -> Ints32:
    """Return the change before each, in ``loose`` partitions only where it hands over the lead."""
    first = np.flatnonzero(np.diff(actions.change, prepend=-1))
    free = np.flatnonzero(np.isin(actions.partition[first], loose))
    # one change of such a partition comes after another, in whatever order
    base = resources.add("partition", np.ones(len(loose)))
    own = np.searchsorted(loose, actions.partition[first[free]])
    resources.borrow(base + own, free, np.ones(len(free)))
    previous = previous.copy()
    previous[free] = -1
    next_leader, led = _handed_over(actions)
    inside = np.isin(actions.partition[next_leader], loose)
    previous[actions.change[led[inside]]] = actions.change[next_leader[inside]]
    return previous


def _handed_over(actions: Actions) -> tuple[Rows, Rows]:
    """Return actions that take the lead from who changes later, and of each the act of that one."""
    takes = np.flatnonzero(actions.next_leader >= 0)
    action_of = np.full(
        int(max(actions.replica.max(initial=-1), actions.next_leader.max(initial=-1))) + 1, -1
    )
    moves = np.flatnonzero(actions.action != Action.LEAD)
    action_of[actions.replica[moves]] = moves
    gives = action_of[actions.next_leader[takes]]
    later = (gives >= 0) & (actions.change[gives] > actions.change[takes])
    return takes[later], gives[later]


@dataclass(frozen=True, eq=False)
class Schedule:
    """C changes of M actions, scheduled; those that never start wait for one another."""

    cluster: Cluster
    target: Placement
    transitions: TransitionTable
    throttle: Throttle
    protocol: Protocol
    actions: Actions
    copies: Copies
    split: Flags
    resources: Resources
    previous: Ints32
    timetable: Timetable

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        target: Placement,
        transitions: TransitionTable,
        actions: Actions,
        throttle: Throttle,
        protocol: Protocol,
        in_turn: Sequence[int] = (),
        loose: Ints32 | None = None,
    ) -> "Schedule":
        """Charge actions for what they take, and start each as early as there is room."""
        # The changes ``in_turn`` come after all others, one after another; not after those of
        # partitions that rules block, which may never come. Those of ``loose`` partitions come in
        # any order.
        count = int(actions.change.max(initial=-1)) + 1
        split = split_in_two(actions, protocol)
        copies = Copies.of(cluster, transitions, actions, throttle)
        resources = Resources(count)
        shifts = charge_space(resources, cluster, target, actions, split)
        charge_groups(resources, cluster, target, actions)
        charge_throttle(resources, cluster, throttle, actions, copies)
        hopeless = actions.change[np.isin(actions.partition, actions.partition[actions.blocked])]
        charge_turns(resources, np.array(in_turn, np.int64), hopeless)
        lasts = copies.durations(actions, count)
        if actions.recovers.any():
            free = begun(cluster, actions, count)
            free[actions.change[lacking(cluster)[actions.partition] > 0]] = True
            charge_recovery(resources, actions, free, lasts)
        chain = chained(actions, count)
        by_rank, rank = ranks(cluster, actions, copies, shifts, throttle, chain)
        del shifts
        if loose is not None:
            chain = _loosened(resources, actions, chain, loose)
        turn = np.array(in_turn, np.int32)
        in_order = np.append(by_rank[~np.isin(by_rank, turn)], turn)
        previous, held_back = tied(cluster, target, actions, in_order, chain)
        held_back[actions.change[actions.blocked]] = True
        squeaky_wheel = None
        if throttle.limits_copies and previous is chain:
            # copies in flight go first, then groups with a priority
            fixed = rank if throttle.priority else ~begun(cluster, actions, count) + 0
            squeaky_wheel = SqueakyWheel(
                fixed, rank, least_seconds(actions, copies, throttle, lasts)
            )
        timetable = list_schedule(resources, lasts, by_rank, previous, held_back, squeaky_wheel)
        return cls(
            cluster, target, transitions, throttle, protocol, actions, copies, split, resources,
            previous, timetable,
        )  # fmt: skip

    def again(
        self, actions: Actions, in_turn: Sequence[int] = (), loose: Ints32 | None = None
    ) -> "Schedule":
        """Return the schedule of other actions."""
        return Schedule.of(
            self.cluster, self.target, self.transitions, actions, self.throttle, self.protocol,
            in_turn, loose,
        )  # fmt: skip

    @property
    def stuck(self) -> Rows:
        """Changes that never start, ascending."""
        return np.flatnonzero(np.isnan(self.timetable.start))

    @property
    def seconds(self) -> float:
        """When the last change that starts has finished."""
        return float(np.nanmax(self.timetable.finish, initial=0.0))

    @property
    def worth(self) -> float:
        """What the ends of its classes amount to, the less the better; inf if that is all one."""
        squeaky_wheel = self.timetable.squeaky_wheel
        return (
            np.inf
            if squeaky_wheel is None
            else squeaky_wheel.worth(squeaky_wheel.completions(self.timetable.finish))
        )

    @property
    def left(self) -> int:
        """How many replicas do not arrive."""
        return len(np.unique(self.actions.replica[np.isin(self.actions.change, self.stuck)]))

    @property
    def bytes(self) -> float:
        """How much is copied of what starts; of copies each counts as one without bytes."""
        starts = ~np.isnan(self.timetable.start[self.actions.change]) & self.copies.moves
        sized = self.cluster.bytes_dimension >= 0
        return float(self.copies.size[starts].sum() if sized else np.count_nonzero(starts))

    def of_actions(self, actions: Actions) -> "Schedule":
        """Return the schedule with other actions, which are neither charged nor scheduled."""
        copies = Copies.of(self.cluster, self.transitions, actions, self.throttle)
        split = split_in_two(actions, self.protocol)
        return replace(self, actions=actions, copies=copies, split=split)

    def barred(self) -> "Schedule":
        """Schedule all other changes after the repairs that do not depend on them."""
        under_way = begun(self.cluster, self.actions, len(self.previous))
        timetable = barred(self.cluster, self.actions, under_way, self.timetable, self.previous)
        return replace(self, timetable=timetable)

    def steps(self) -> tuple[Steps, Ints32]:
        """Return the steps of everything that starts, and the change that each is of."""
        steps, change = steps_of(
            self.actions, self.copies, self.split, self.timetable, self.previous
        )
        windows = self.throttle.windows
        if windows is not None:
            start, finish = windows.opening(steps.start), windows.closing(steps.finish)
            # what takes no time is done when the copy before it is
            start = np.where(steps.start < steps.finish, start, finish)
            steps = replace(steps, start=start, finish=finish)
        return steps, change


# stages of a change: all copies, then who serves and who leads, then what is left behind
COPIED, SETTLED, REMOVED = range(3)

# which actions have a step, its stage, kind, source and target
Row = tuple[Flags, int, StepKind, Ints32, Ints32]


def steps_of(
    actions: Actions, copies: Copies, split: Flags, timetable: Timetable, previous: Ints32
) -> tuple[Steps, Ints32]:
    """Return the steps of all changes that were started, in the order in which they were."""
    steps, change = _laid_out(actions, copies, split, timetable)
    first, before = _dependencies(change, steps.kind == StepKind.COPY, timetable, previous)
    return replace(steps, first=first, before=before), change


def _laid_out(
    actions: Actions, copies: Copies, split: Flags, timetable: Timetable
) -> tuple[Steps, Ints32]:
    """Return steps without dependencies, and the change of each."""
    position = np.full(len(timetable.start), -1, np.int64)
    position[timetable.sequence] = np.arange(len(timetable.sequence))
    table, place = _rows(actions, copies, split), position[actions.change]
    keys = []
    for i, (which, stage, *_) in enumerate(table):
        at = np.flatnonzero(which & (place >= 0))
        keys.append(((place[at] * 3 + stage) * len(actions) + at) * len(table) + i)
    key = np.concatenate(keys)
    keys.clear()
    key.sort()
    action, row = key // len(table), (key % len(table)).astype(np.int8)
    action %= max(len(actions), 1)
    del key
    kind = np.array([one[2] for one in table], np.int8)[row]
    source, target = (np.stack([one[i] for one in table])[row, action] for i in (3, 4))
    change, copied = actions.change[action], kind == StepKind.COPY
    start, finish = timetable.start[change], timetable.finish[change]
    early = copied & (copies.seconds[action] < finish - start)
    return Steps(
        kind, actions.partition[action], actions.replica[action], source, target,
        size=np.where(copied, copies.size[action], 0.0), start=np.where(copied, start, finish),
        finish=np.where(early, start + copies.seconds[action], finish),
        wave=timetable.wave[change], first=np.zeros(1, np.int64), before=np.zeros(0, np.int32),
    ), change  # fmt: skip


def _rows(actions: Actions, copies: Copies, split: Flags) -> list[Row]:
    """Return the steps that an act may have, in their order."""
    kind = actions.action
    move, add, drop = kind == Action.MOVE, kind == Action.ADD, kind == Action.DROP
    none = np.full(len(actions), -1, np.int32)
    takes = (kind == Action.LEAD) | (actions.leads & ~actions.led)
    promoted = split | (add & actions.votes)
    raised, lowered = (kind == Action.ROLE) & actions.votes, (kind == Action.ROLE) & ~actions.votes
    stays_led = split & actions.led & actions.leads
    demoted = split | (drop & actions.votes)
    swapped = (move & ~split) | ((add | drop) & ~actions.votes)
    return [
        (copies.moves, COPIED, StepKind.COPY, copies.source, actions.target),
        (promoted, SETTLED, StepKind.PROMOTE, none, actions.target),
        (raised, SETTLED, StepKind.PROMOTE, actions.source, actions.target),
        (stays_led, SETTLED, StepKind.LEAD, actions.source, actions.target),
        (demoted, SETTLED, StepKind.DEMOTE, actions.source, none),
        (swapped, SETTLED, StepKind.SWAP, actions.source, actions.target),
        (takes, SETTLED, StepKind.LEAD, actions.next_leader_node, actions.target),
        (lowered, SETTLED, StepKind.DEMOTE, actions.source, actions.target),
        (move | drop, REMOVED, StepKind.REMOVE, actions.source, none),
    ]


def _dependencies(
    change: Ints32, copied: Flags, timetable: Timetable, previous: Ints32
) -> tuple[Ints64, Ints32]:
    """Return what each step waits for: the one before it in its change, and other changes' last."""
    steps = len(change)
    index = np.arange(steps, dtype=np.int32)
    same = np.zeros(steps, bool)
    same[1:] = change[1:] == change[:-1]
    begins = np.full(len(timetable.start), -1, np.int32)
    last_step = begins.copy()
    last_step[change] = index
    begins[change[::-1]] = index[::-1]
    # in a change, copies begin together; the first step after them waits for all of them
    chained = np.flatnonzero(same & ~copied)
    # a dependency is a later step times the number of steps, plus the earlier step
    dependencies = [chained * steps + chained - 1]
    several = np.flatnonzero(copied & np.append(same[1:] & copied[1:], False))
    if len(several):
        settles = np.full(len(timetable.start), -1, np.int64)
        later = np.flatnonzero(~copied)[::-1]
        settles[change[later]] = later
        dependencies.append(settles[change[several]] * steps + several)
    started = np.flatnonzero((previous >= 0) & (begins >= 0))
    giver = np.concatenate([timetable.giver, previous[started]])
    taker = np.concatenate([timetable.taker, started.astype(np.int32)])
    dependencies.append(begins[taker] * np.int64(steps) + last_step[giver])
    others = np.flatnonzero(same & copied)
    if len(others):
        # further copies of a change wait for what the first one waits for
        by_taker = np.argsort(taker, kind="stable")
        low = np.searchsorted(taker[by_taker], change[others])
        high = np.searchsorted(taker[by_taker], change[others], side="right")
        rows = np.repeat(np.arange(len(others)), high - low)
        laid = np.cumsum(high - low) - (high - low)
        at = np.arange(len(rows)) + (low - laid)[rows]
        dependencies.append(others[rows] * steps + last_step[giver[by_taker[at]]])
    key = np.concatenate(dependencies)
    dependencies.clear()
    key.sort()
    new = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    key = key[new]
    before = (key % max(steps, 1)).astype(np.int32)
    key //= max(steps, 1)
    first = np.zeros(steps + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=steps), out=first[1:])
    return first, before


def charge_turns(resources: Resources, sequence: Ints64, hopeless: Ints) -> None:
    """Start changes in a sequence, the first once all others have finished."""
    if len(sequence) == 0:
        return
    # those of blocked partitions are not waited for: they may never begin
    others = np.setdiff1d(np.arange(resources.changes), np.append(sequence, hopeless))
    base = resources.add("turn", np.zeros(len(sequence)))
    need = np.ones(len(sequence))
    need[0] = len(others)
    resources.claim(base + np.arange(len(sequence)), sequence, need)
    resources.give(np.full(len(others), base), others, np.ones(len(others)))
    resources.give(base + np.arange(1, len(sequence)), sequence[:-1], need[1:])
