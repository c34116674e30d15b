"""Acts: what each partition that changes goes through in turn, and who leads meanwhile."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Role
from evenkeel.planning.changes.detours import detours
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.protocols import Protocol


class Act(IntEnum):
    """What happens to a replica of a partition."""

    MOVE = 0
    ADD = 1
    DROP = 2
    LEAD = 3


@dataclass(frozen=True, eq=False)
class Acts:
    """M acts, those of a partition together and in their order.

    Parameters
    ----------
    act : ndarray of int8, shape (M,)
        An ``Act``.
    partition, replica : ndarray of int32, shape (M,)
        Whom it concerns.
    source, target : ndarray of int32, shape (M,)
        Node that is left, and joined; -1 for none. What stays is on both.
    votes : ndarray of bool, shape (M,)
        Whether the replica is a voter as it moves.
    led : ndarray of bool, shape (M,)
        Whether it leads before.
    leads : ndarray of bool, shape (M,)
        Whether it leads after.
    heir : ndarray of int32, shape (M,)
        Replica from which it takes the lead; -1 for none.
    heir_node : ndarray of int32, shape (M,)
        Where that one stands.
    deputy, deputy_node : ndarray of int32, shape (M,)
        Replica, and its node, that leads while this one is exchanged; -1 for none.
    change : ndarray of int32, shape (M,)
        Acts with the same number happen at once.
    blocked : ndarray of bool, shape (M,)
        Whether rules admit it in no order that was tried.
    """

    act: NDArray[np.int8]
    partition: NDArray[np.int32]
    replica: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    votes: NDArray[np.bool_]
    led: NDArray[np.bool_]
    leads: NDArray[np.bool_]
    heir: NDArray[np.int32]
    heir_node: NDArray[np.int32]
    deputy: NDArray[np.int32]
    deputy_node: NDArray[np.int32]
    change: NDArray[np.int32]
    blocked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.act)


NEVER = 99
"""Position of a slot that does not act."""

FIRST, EARLY, HEIR, USUAL, LATE, LAST = range(6)
"""Turns of the acts of a partition: who comes before who leaves, who is to lead before who led."""


def acts_of(cluster: Cluster, ends: Ends, protocol: Protocol, at_once: float) -> Acts:
    """Say what every partition goes through; ``at_once`` copies of it may be under way together."""
    safety = Safety(cluster, ends)
    live = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)
    may_lead = np.append(cluster.nodes.may_lead, False)
    before, after = ends.before, ends.after
    moves = before != after
    led_live = (ends.led >= 0) & live[_at(before, ends.led)]
    stays = ends.led == ends.leads
    heir_changes = (ends.leads >= 0) & _at_flag(moves, ends.leads)

    # who may lead in between: a voter at both ends that lives; best one that does not change
    slots = np.arange(before.shape[1])
    votes = ends.role == Role.VOTER
    fit = votes & (slots != ends.led[:, None]) & (slots != ends.leads[:, None])
    fit &= may_lead[before] & may_lead[after]
    fit &= (before != _at(before, ends.led)[:, None]) & (after != _at(after, ends.leads)[:, None])
    cost = np.where(fit, np.where(moves, 2, 1), NEVER)
    deputy = np.argmin(cost, axis=1) if cost.shape[1] else np.zeros(len(ends), np.int64)
    has_deputy = fit.any(1)

    at_once = (ends.leads >= 0) & ~stays & ~heir_changes
    orphaned = (ends.led >= 0) & ~led_live & heir_changes & has_deputy & _at_flag(moves, ends.led)
    orphaned &= _at_flag(votes, ends.leads)
    front = np.where(at_once, ends.leads, np.where(orphaned, deputy, -1))
    current = np.where(front >= 0, front, ends.led)

    turn = _turns(ends, moves, live)
    late = (current >= 0) & (current != ends.leads)
    late |= stays & (front < 0)
    held = np.flatnonzero(late & (current >= 0))
    turn[held, current[held]] = np.maximum(turn[held, current[held]], LATE)
    turn[~moves] = NEVER
    order = np.argsort(turn, axis=1, kind="stable")
    order, disorderly = safety.orders(order, moves, ends.leads, current, protocol)
    # who makes a detour does not lead: one that stays does, until who is to lead has arrived
    lends = disorderly & (front < 0) & _at_flag(moves, ends.led) & protocol.joint
    lends &= (cost.min(axis=1, initial=NEVER) == 1) & _at_flag(votes, ends.leads)
    front = np.where(lends, deputy, front)
    current = np.where(lends, deputy, current)
    third = np.ones(moves.shape, bool) & protocol.joint
    for slot in (current, ends.leads, deputy):
        third &= slots != slot[:, None]
    third &= moves & (before >= 0) & (after >= 0)
    seeking = np.flatnonzero(disorderly)
    detour, spare = detours(cluster, ends, safety, seeking, order, third)
    blocked = disorderly & (detour < 0)
    # what is copied at once goes to nodes that hold nothing of the partition, and where the first
    # replica of what is nowhere is there already
    taken = (after[:, :, None] == before[:, None, :]) & (moves & (after >= 0))[:, :, None]
    together = protocol.whole & ~taken.any((1, 2)) & ~disorderly & live[before].any(1)
    together &= (moves & (after >= 0)).sum(1) <= at_once
    # copies of one partition have a source each, but for those whose own is lost
    together &= ~(moves & (after >= 0) & ~live[before]).any(1)
    together[together] = safety.admits_learners(np.flatnonzero(together))
    place = np.full(turn.shape, NEVER)
    np.put_along_axis(place, order, np.broadcast_to(slots, order.shape), 1)
    place[~moves] = NEVER
    away = np.flatnonzero(detour >= 0)
    place[away, detour[away]] = NEVER - 1

    exchanged = stays & (front < 0) & (ends.led >= 0) & _at_flag(moves, ends.led)
    exchanged &= _at_flag(votes, ends.led)
    split = exchanged & safety.admits_union(ends.led, exchanged, place)
    via = exchanged & ~split & has_deputy & protocol.joint
    # who leads without a vote, or with nobody to hand over to, cannot go
    stranded = (current == ends.leads) | ((ends.leads < 0) & led_live)
    stranded &= (front < 0) & _at_flag(moves, ends.led)
    blocked |= stranded & ~split & ~via
    blocked |= (front >= 0) & ~live[_at(before, front)]
    pinned = (cluster.placement.flags & Flag.PINNED) != 0
    blocked |= (moves & (before >= 0) & pinned[ends.replica]).any(1)
    blocked |= (moves & (after >= 0) & ~live[after]).any(1)

    made = [_leads_only(ends, front), _moving_acts(ends, moves, place)]
    made.append(
        np.stack([away, detour[away], np.full(len(away), -1), np.full(len(away), Act.MOVE)])
    )
    table = np.concatenate(made, axis=1)
    table = table[:, np.lexsort((table[2], table[0]))]
    return _described(
        ends, table, spare, place, current, front, via, deputy, together, blocked,
    )  # fmt: skip


def _turns(ends: Ends, moves: NDArray[np.bool_], live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return when each slot's turn is: what comes, then what lost its node, last what goes."""
    turn = np.full(moves.shape, USUAL)
    turn[moves & ~live[ends.before]] = EARLY
    turn[ends.before < 0] = FIRST
    some = np.flatnonzero((ends.leads >= 0) & (ends.leads != ends.led))
    slot = ends.leads[some]
    turn[some, slot] = np.minimum(turn[some, slot], HEIR)
    turn[ends.after < 0] = LAST
    return turn


def _leads_only(ends: Ends, front: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return acts (row, slot, place, act) of leadership alone, before all others."""
    row = np.flatnonzero(front >= 0)
    return np.stack([row, front[row], np.full(len(row), -2), np.full(len(row), Act.LEAD)])


def _moving_acts(
    ends: Ends, moves: NDArray[np.bool_], place: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return acts (row, slot, place, act) of replicas that join or leave nodes."""
    row, slot = np.nonzero(moves)
    comes, goes = ends.after[row, slot] >= 0, ends.before[row, slot] >= 0
    act = np.where(comes & goes, Act.MOVE, np.where(comes, Act.ADD, Act.DROP))
    return np.stack([row, slot, place[row, slot], act])


def _described(
    ends: Ends,
    table: NDArray[np.int64],
    spare: NDArray[np.int32],
    place: NDArray[np.int64],
    current: NDArray[np.int64],
    front: NDArray[np.int64],
    via: NDArray[np.bool_],
    deputy: NDArray[np.int64],
    together: NDArray[np.bool_],
    blocked: NDArray[np.bool_],
) -> Acts:
    """Fill in nodes and leaders of acts that are in order."""
    row, slot, when, act = table
    count = len(row)
    is_front = act == Act.LEAD
    source = ends.before[row, slot]
    target = np.where(is_front, source, ends.after[row, slot])
    target = np.where(when == -1, spare[row], target)
    source = np.where(when == NEVER - 1, spare[row], source)

    def node_of(other: NDArray[np.int64], when: NDArray[np.int64]) -> NDArray[np.int32]:
        """Where another slot of the same row stands at a place of the order."""
        moved = _at_rows(place, row, other) < when
        there = np.where(moved, _at_rows(ends.after, row, other), _at_rows(ends.before, row, other))
        return np.where(other >= 0, there, -1).astype(np.int32)

    ends_leading = ends.leads[row] == slot
    held = current[row] == slot
    led = ~is_front & held & (ends_leading | (ends.leads[row] < 0))
    takes = ends_leading & ~held & ~is_front
    leads = is_front | takes | (led & ends_leading)
    heir = np.where(is_front, ends.led[row], np.where(takes, current[row], -1))
    lends = via[row] & (act == Act.MOVE) & held
    deputy_slot = np.where(lends, deputy[row], -1)

    def replica_of(other: NDArray[np.int64]) -> NDArray[np.int32]:
        found = ends.replica[row, np.maximum(other, 0)]
        return np.where(other >= 0, found, -1).astype(np.int32)

    own = np.ones(count, bool)
    own[1:] = (row[1:] != row[:-1]) | ~together[row[1:]] | is_front[:-1]
    to = target.astype(np.int32)
    heir_node = node_of(heir, when)
    # slots on one node have nothing to hand over
    unmade = (heir >= 0) & (heir_node == to)
    return Acts(
        act=act.astype(np.int8), partition=ends.partition[row],
        replica=ends.replica[row, slot].astype(np.int32),
        source=source.astype(np.int32), target=to, votes=ends.role[row, slot] == Role.VOTER,
        led=led, leads=leads, heir=replica_of(heir), heir_node=heir_node,
        deputy=replica_of(deputy_slot), deputy_node=node_of(deputy_slot, when),
        change=(np.cumsum(own) - 1).astype(np.int32), blocked=blocked[row] | unmade,
    )  # fmt: skip


def _at(table: NDArray[np.int32], slot: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the entry of one slot per row; -1 for none."""
    if table.shape[1] == 0:
        return np.full(len(table), -1, np.int32)
    found = table[np.arange(len(table)), np.maximum(slot, 0)]
    return np.where(slot >= 0, found, np.int32(-1))


def _at_flag(table: NDArray[np.bool_], slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the flag of one slot per row; False for none."""
    return _at(table.astype(np.int32), slot) > 0


def _at_rows(
    table: NDArray[np.integer], row: NDArray[np.int64], slot: NDArray[np.int64]
) -> NDArray[np.integer]:
    """Return entries of some rows and slots; the first slot stands for none."""
    return table[row, np.maximum(slot, 0)]
