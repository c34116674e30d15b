"""Actions: changes of single replicas, in the default order of each partition."""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Role
from evenkeel.model.reading.arrays import Columns, Flags, Ints, Ints32, Ints64, Reals, Roles, Rows
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable

NEVER = 99  # position of a slot that does not act
# ranks of the actions of a partition: joins before leaves, the next leader before the last
UNDER_WAY, LOST, FIRST, EARLY, NEXT_LEADER, USUAL, LATE, LAST = range(-2, 6)


@dataclass(frozen=True, eq=False)
class PartitionOrder:
    """Of A partitions with R slots: who changes when, and who leads. A slot of -1 is none."""

    moves: Flags  # (A, R) slots that change
    order: Rows  # (A, R) slots, those that change first, in the order in which they do
    disorderly: Flags  # (A,) rows of which that order breaks a rule, and so do those next to it
    front: Ints64  # (A,) slot to which leadership is handed before anything else
    current: Ints64  # (A,) slot that leads after that


def partition_orders(safety: Safety, unfit: Flags, order: Rows | None = None) -> PartitionOrder:
    """Order the changes of every partition, in an ``order (A, R)`` of slots or in the usual one."""
    # replicas that are ``unfit (K,)`` do not lead in between
    transitions, live = safety.transitions, safety.live
    before, moves = transitions.before, transitions.moves
    led_live = (transitions.led >= 0) & live[at_slot(before, transitions.led)]
    next_leader_votes = flag_at(transitions.becomes == Role.VOTER, transitions.leads)
    next_leader_stays = (
        (transitions.leads >= 0)
        & (transitions.leads != transitions.led)
        & ~flag_at(moves, transitions.leads)
    )
    # the next leader, if it has no vote yet, leads once it has one
    next_leader_stays &= ~flag_at(transitions.role != transitions.becomes, transitions.leads)
    cost = _interim_costs(safety, transitions.votes & ~unfit[transitions.replica])
    interim = np.argmin(cost, axis=1) if cost.shape[1] else np.zeros(len(transitions), np.int64)
    orphaned = (
        (transitions.led >= 0) & ~led_live & flag_at(moves, transitions.led) & next_leader_votes
    )
    orphaned &= flag_at(moves, transitions.leads) & (cost.min(axis=1, initial=NEVER) < NEVER)
    front = np.where(next_leader_stays, transitions.leads, np.where(orphaned, interim, -1))
    current = np.where(front >= 0, front, transitions.led)
    turn = _usual(safety)
    late = (current >= 0) & (current != transitions.leads)
    late |= (transitions.led == transitions.leads) & (front < 0)
    held = np.flatnonzero(late & (current >= 0))
    turn[held, current[held]] = np.maximum(turn[held, current[held]], LATE)
    # the leader goes only once its successor has its vote
    waits = flag_at(transitions.role != transitions.becomes, transitions.leads) & flag_at(
        moves, current
    )
    turn[transitions.recasts & (transitions.late & ~waits)[:, None]] = LAST
    after_leader = transitions.recasts & leader_before_roles(transitions, moves, current)[:, None]
    turn[after_leader] = NEXT_LEADER
    turn[~moves] = NEVER
    order = np.argsort(turn, axis=1, kind="stable") if order is None else order
    return PartitionOrder(moves, *safety.orders(order, current, safety.urgent), front, current)


def _interim_costs(safety: Safety, votes: Flags) -> Ints64:
    """Return the cost of each slot that may lead in between: a voter at both ends that lives."""
    transitions = safety.transitions
    may_lead = np.append(safety.cluster.nodes.may_lead, False) & safety.live
    before, after = transitions.before, transitions.after
    slots = np.arange(before.shape[1])
    fit = votes & (slots != transitions.led[:, None]) & (slots != transitions.leads[:, None])
    fit &= may_lead[before] & may_lead[after]
    fit &= before != at_slot(before, transitions.led)[:, None]
    fit &= after != at_slot(after, transitions.leads)[:, None]
    return np.where(fit, np.where(transitions.moves, 2, 1), NEVER)


def _usual(safety: Safety) -> Ints64:
    """Return when each slot's turn is: what is under way, roles, what is lost and given up, what
    comes, what lost its node, and last what goes.
    """
    transitions, moves = safety.transitions, safety.transitions.moves
    begun = (safety.cluster.placement.flags[transitions.replica] & Flag.INCOMING) != 0
    turn = np.full(moves.shape, USUAL)
    turn[moves & ~safety.live[transitions.before]] = EARLY
    turn[transitions.before < 0] = FIRST
    some = np.flatnonzero((transitions.leads >= 0) & (transitions.leads != transitions.led))
    slot = transitions.leads[some]
    turn[some, slot] = np.minimum(turn[some, slot], NEXT_LEADER)
    turn[transitions.after < 0] = LAST
    if not safety.protocol.whole:  # who is dead no longer counts for a majority
        turn[
            (transitions.before >= 0) & (transitions.after < 0) & ~safety.live[transitions.before]
        ] = LOST
    turn[(begun & moves & (transitions.replica >= 0)) | transitions.recasts] = UNDER_WAY
    return turn


def leader_before_roles(transitions: TransitionTable, moves: Flags, current: Ints64) -> Flags:
    """Return where the next leader moves before roles change, (A,)."""
    # it does if it leads from then on, or if ``current``, who leads until then, loses its vote
    comes = flag_at(moves, transitions.leads) & (transitions.leads != current)
    new = transitions.role != transitions.becomes
    return np.asarray(comes & (flag_at(new, transitions.leads) | flag_at(new, current)))


def at_slot(table: Ints32, slot: Ints64) -> Ints32:
    """Return the entry of one slot per row; -1 for none."""
    if table.shape[1] == 0:
        return np.full(len(table), -1, np.int32)
    found = table[np.arange(len(table)), np.maximum(slot, 0)]
    return np.where(slot >= 0, found, np.int32(-1))


def flag_at(table: Flags, slot: Ints64) -> Flags:
    """Return the flag of one slot per row; False for none."""
    return at_slot(table.astype(np.int32), slot) > 0


class Action(IntEnum):
    """What happens to a replica of a partition."""

    MOVE = 0
    ADD = 1
    DROP = 2
    LEAD = 3
    ROLE = 4


@dataclass(frozen=True, eq=False)
class Actions(Columns):
    """M actions, those of a partition together and in their order."""

    action: NDArray[np.int8]  # (M,) an ``Action``
    # partition, replica: (M,) whom it concerns
    partition: Ints32
    replica: Ints32
    # source, target: (M,) node that is left, and joined; -1 for none. What stays is on both
    source: Ints32
    target: Ints32
    # was, role: (M,) its role before and after, the same but where the act is to change it
    was: Roles
    role: Roles
    # led, leads: (M,) whether it leads before, and after
    led: Flags
    leads: Flags
    # next_leader, next_leader_node: (M,) replica from which it takes the lead, -1 for none, and
    # where that one stands
    next_leader: Ints32
    next_leader_node: Ints32
    change: Ints32  # (M,) actions with the same number happen at once
    blocked: Flags  # (M,) whether rules do not admit it in this order
    recovers: Flags  # (M,) whether all that does not waits for it
    left: Reals  # (M,) share of its copy that has not arrived yet
    flying: Flags  # (M,) whether its copy is under way as the plan begins

    def __len__(self) -> int:
        return len(self.action)

    @property
    def votes(self) -> Flags:
        """Whether the replica is a voter, afterwards, (M,)."""
        return np.asarray(self.role == Role.VOTER)

    @property
    def stays(self) -> Flags:
        """Whether the replica stays on its node, (M,)."""
        return np.asarray((self.action == Action.LEAD) | (self.action == Action.ROLE))

    def with_others(self, made: "Actions", partition: Ints32) -> "Actions":
        """Return the actions in which those of some partitions are others, or none at all."""
        kept = self.take(np.flatnonzero(~np.isin(self.partition, partition)))
        found = Actions.joined([kept, made])
        found = found.take(np.argsort(found.partition, kind="stable"))
        opens = np.append(True, (np.diff(found.change) != 0) | (np.diff(found.partition) != 0))
        change = np.cumsum(opens[: len(found)]) - 1
        return replace(found, change=change.astype(np.int32))


def actions_in_order(safety: Safety, at_once: float, orders: PartitionOrder) -> Actions:
    """Return the actions of every partition in its usual order, ``at_once`` copies at a time."""
    cluster, transitions, live, protocol = (
        safety.cluster,
        safety.transitions,
        safety.live,
        safety.protocol,
    )
    moves, front, current = orders.moves, orders.front, orders.current
    before, after = transitions.before, transitions.after
    led_live = (transitions.led >= 0) & live[at_slot(before, transitions.led)]
    recasts = transitions.changes_roles
    # what is copied at once goes to nodes that hold nothing of the partition, and where the first
    # replica of what is nowhere is there already
    taken = (after[:, :, None] == before[:, None, :]) & (moves & (after >= 0))[:, :, None]
    together = protocol.whole & ~taken.any((1, 2)) & ~orders.disorderly & live[before].any(1)
    together &= ~recasts
    together &= ((moves & (after >= 0)).sum(1) <= at_once) & ~_shared(after, moves)
    together &= ~_shared(before, moves & (after >= 0))
    alone, fits = _alone(orders, transitions, live)
    together &= fits
    some = np.flatnonzero(together)
    together[some] = safety.admits_learners(some, before[some], after[some], transitions.role[some])
    blocked = orders.disorderly.copy()
    place = np.full(moves.shape, NEVER)
    np.put_along_axis(
        place, orders.order, np.broadcast_to(np.arange(moves.shape[1]), moves.shape), 1
    )
    place[~moves] = NEVER
    # a leader without a vote, or without a successor, cannot go; another hands over as it does
    stranded = (current == transitions.leads) & ~flag_at(transitions.votes, current)
    stranded |= (transitions.leads < 0) & led_live & (front < 0)
    blocked |= stranded & flag_at(moves, current)
    # nor can a leader that loses its vote
    next_leader = (transitions.leads >= 0) & (transitions.leads != current)
    blocked |= (
        recasts
        & ~next_leader
        & live[at_slot(before, current)]
        & flag_at((transitions.role == Role.VOTER) & (transitions.becomes != Role.VOTER), current)
    )
    blocked |= (front >= 0) & ~live[at_slot(before, front)]
    # a replica on a dead node does not lead
    gains = flag_at(transitions.role != transitions.becomes, transitions.leads)
    blocked |= recasts & gains & ~live[at_slot(after, transitions.leads)]
    blocked |= never(cluster, transitions)
    table = np.concatenate(
        [
            _leads_only(front),
            _moving_actions(transitions, moves & ~transitions.recasts, place),
            _role_actions(transitions, place, rises=True),
            _role_actions(transitions, place, rises=False),
        ],
        axis=1,
    )
    table = table[:, np.lexsort((table[2], table[0]))]
    own = together | (recasts & protocol.joint)
    return _described(transitions, table, orders, place, own, alone, blocked)


def never(cluster: Cluster, transitions: TransitionTable) -> Flags:
    """Return which partitions no order can change: a pinned replica leaves, or a target is down."""
    pinned = (cluster.placement.flags & Flag.PINNED) != 0
    live = np.append(cluster.nodes.serves, False)
    bad = transitions.moves & (transitions.before >= 0) & pinned[transitions.replica]
    bad |= transitions.moves & (transitions.after >= 0) & ~live[transitions.after]
    return np.asarray(bad.any(1))


def under_way(actions: Actions, flags: NDArray[np.uint16]) -> Rows:
    """Return the actions whose copies have begun already, by the flags of replicas."""
    begun = (flags[actions.replica] & Flag.INCOMING) != 0
    return np.flatnonzero(
        begun & ((actions.action == Action.MOVE) | (actions.action == Action.ADD))
    )


def ushered(actions: Actions, rows: Rows) -> Rows:
    """Return which of some actions follow one that hands leadership over and does nothing else."""
    before = np.maximum(rows - 1, 0)
    follows = (actions.action[before] == Action.LEAD) & (
        actions.partition[before] == actions.partition[rows]
    )
    at = np.flatnonzero(follows & (actions.change[before] == actions.change[rows] - 1))
    return rows[at]


def apart(safety: Safety, actions: Actions, changes: Rows) -> Actions:
    """Split changes that act at one instant into steps, where each of these keeps the rules."""
    # an exchange at one instant may keep a rule that its single steps break
    opens = np.diff(actions.change, prepend=-1) > 0
    opens |= np.isin(actions.change, np.setdiff1d(changes, _needed_whole(safety, actions, changes)))
    return replace(actions, change=(np.cumsum(opens) - 1).astype(np.int32))


def _needed_whole(safety: Safety, actions: Actions, changes: Rows) -> Ints32:
    """Return the changes of which a single action breaks a rule that the whole of it keeps."""
    transitions, doubles = safety.transitions, not safety.protocol.joint
    partitions = np.unique(actions.partition[np.isin(actions.change, changes)])
    first = np.searchsorted(actions.partition, partitions)
    end = np.searchsorted(actions.partition, partitions, side="right")
    rows = np.searchsorted(transitions.partition, partitions)
    node, role = transitions.before[rows].copy(), transitions.role[rows].copy()
    found = [np.zeros(0, np.int32)]
    for turn in range(int((end - first).max(initial=0))):
        some = np.flatnonzero(first + turn < end)
        at, row = first[some] + turn, rows[some]
        slot = (transitions.replica[row] == actions.replica[at, None]).argmax(1)
        new, was = actions.target[at, None], role[some]
        both = np.hstack([node[some], new]), np.hstack([was, was[np.arange(len(some)), slot, None]])
        node[some, slot], role[some, slot] = actions.target[at], actions.role[at]
        broken = ~safety.keeps(row, node[some], role[some])
        serves_twice = doubles & (actions.action[at] == Action.MOVE)
        broken |= serves_twice & ~safety.keeps(row, *both, slot)
        found.append(actions.change[at[broken]])
    return np.unique(np.concatenate(found))


def _alone(
    orders: PartitionOrder, transitions: TransitionTable, live: Flags
) -> tuple[Flags, Flags]:
    """Return slots that are copied before all others, each alone, and rows where that works."""
    copied = orders.moves & (transitions.after >= 0)
    lost = copied & ~live[transitions.before]
    stays = ~orders.moves & live[transitions.before]
    alone = lost & ((lost.sum(1) > 1) | ~stays.any(1))[:, None]
    place = np.argsort(orders.order, axis=1)
    last = np.where(alone, place, -1).max(1, initial=-1)
    first = np.where(orders.moves & ~alone, place, NEVER).min(1, initial=NEVER)
    return alone, last < first


def _shared(node: Ints32, moves: Flags) -> Flags:
    """Whether slots that move share a node, (A,)."""
    own = np.where(moves & (node >= 0), node, -1 - np.arange(node.shape[1], dtype=np.int32))
    own = np.sort(own, axis=1)
    return np.asarray((own[:, 1:] == own[:, :-1]).any(1))


def _leads_only(slot: Ints64) -> Ints64:
    """Return actions (row, slot, place, act) of leadership alone, before all others."""
    row = np.flatnonzero(slot >= 0)
    return np.stack([row, slot[row], np.full(len(row), -2), np.full(len(row), Action.LEAD)])


def _moving_actions(transitions: TransitionTable, moves: Flags, place: Ints64) -> Ints64:
    """Return actions (row, slot, place, act) of replicas that join or leave nodes."""
    row, slot = np.nonzero(moves)
    comes, goes = transitions.after[row, slot] >= 0, transitions.before[row, slot] >= 0
    action = np.where(comes & goes, Action.MOVE, np.where(comes, Action.ADD, Action.DROP))
    return np.stack([row, slot, place[row, slot], action])


def _role_actions(transitions: TransitionTable, place: Ints64, *, rises: bool) -> Ints64:
    """Return actions (row, slot, place, act) of replicas that become voters, or cease to be."""
    changes = (transitions.role != transitions.becomes) & transitions.changes_roles[:, None]
    row, slot = np.nonzero(changes & ((transitions.becomes == Role.VOTER) == rises))
    when = place[row, np.argmax(transitions.recasts[row], axis=1)]
    return np.stack([row, slot, when, np.full(len(row), Action.ROLE)])


def _described(
    transitions: TransitionTable,
    table: Ints64,
    orders: PartitionOrder,
    place: Ints64,
    together: Flags,
    alone: Flags,
    blocked: Flags,
) -> Actions:
    """Fill in nodes and leaders of actions that are in order."""
    row, slot, when, action = table
    slots = transitions.recasts.shape[1]
    current = orders.current
    count = len(row)
    is_front, is_role = action == Action.LEAD, action == Action.ROLE
    source = transitions.before[row, slot]
    target = np.where(is_front, source, transitions.after[row, slot])

    def node_of(other: Ints64, when: Ints64) -> Ints32:
        """Where another slot of the same row stands at a place of the order."""
        moved = _at_rows(place, row, other) < when
        there = np.where(
            moved, _at_rows(transitions.after, row, other), _at_rows(transitions.before, row, other)
        )
        return np.where(other >= 0, there, -1).astype(np.int32)

    source = np.where(is_role, node_of(slot, when), source)
    target = np.where(is_role, source, target)
    recast = np.argmax(transitions.recasts, axis=1)[row] if slots else row
    late = transitions.changes_roles[row] & (_at_rows(place, row, recast) < when)
    was = np.where(late, transitions.becomes[row, slot], transitions.role[row, slot])
    gains = transitions.role[row, slot] != transitions.becomes[row, slot]
    transitions_leading = transitions.leads[row] == slot
    held = current[row] == slot
    led = ~is_front & held & (transitions_leading | (transitions.leads[row] < 0))
    takes = transitions_leading & ~held & ~is_front & (is_role | ~gains)
    leads = is_front | takes | (led & transitions_leading)
    next_leader = np.where(is_front, transitions.led[row], np.where(takes, current[row], -1))
    replica = transitions.replica[row, np.maximum(next_leader, 0)]
    own = np.ones(count, bool)
    own[1:] = (row[1:] != row[:-1]) | ~together[row[1:]] | is_front[:-1]
    own[1:] |= alone[row, slot][:-1]
    changes = transitions.changes_roles[row[1:]]
    own[1:] |= changes & ((is_role[1:] != is_role[:-1]) | ~is_role[1:])
    to = target.astype(np.int32)
    next_leader_node = node_of(next_leader, when)
    # slots on one node have nothing to hand over
    unmade = (next_leader >= 0) & (next_leader_node == to)
    return Actions(
        action=action.astype(np.int8), partition=transitions.partition[row],
        replica=transitions.replica[row, slot].astype(np.int32),
        source=source.astype(np.int32), target=to, was=was,
        role=np.where(is_role, transitions.becomes[row, slot], was),
        led=led, leads=leads, next_leader=np.where(next_leader >= 0, replica, -1).astype(np.int32),
        next_leader_node=next_leader_node, change=(np.cumsum(own) - 1).astype(np.int32),
        blocked=blocked[row] | unmade, recovers=np.zeros(count, bool), left=np.ones(count),
        flying=np.zeros(count, bool),
    )  # fmt: skip


def _at_rows(table: Ints, row: Ints64, slot: Ints64) -> Ints:
    """Return entries of some rows and slots; the first slot stands for none."""
    return table[row, np.maximum(slot, 0)]
