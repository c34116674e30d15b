"""The usual order in which replicas of a partition change, and its leader at each point."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag, Role
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import TransitionTable

NEVER = 99
"""Position of a slot that does not act."""

UNDER_WAY, LOST, FIRST, EARLY, NEXT_LEADER, USUAL, LATE, LAST = range(-2, 6)
"""Ranks of the actions of a partition: joins before leaves, the next leader before the last."""


@dataclass(frozen=True, eq=False)
class PartitionOrder:
    """Of A partitions with R slots: who changes when, and who leads. A slot of -1 is none.

    Parameters
    ----------
    moves : ndarray of bool, shape (A, R)
        Slots that change.
    order : ndarray of int64, shape (A, R)
        Slots, those that change first, in the order in which they do.
    disorderly : ndarray of bool, shape (A,)
        Rows of which none of the orders that were tried keeps the rules.
    front : ndarray of int64, shape (A,)
        Slot to which leadership is handed before anything else.
    current : ndarray of int64, shape (A,)
        Slot that leads after that.
    """

    moves: NDArray[np.bool_]
    order: NDArray[np.intp]
    disorderly: NDArray[np.bool_]
    front: NDArray[np.int64]
    current: NDArray[np.int64]


def partition_orders(safety: Safety, unfit: NDArray[np.bool_] | None = None) -> PartitionOrder:
    """Order the changes of every partition; who is ``unfit (K,)`` does not lead in between."""
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
    votes = transitions.votes if unfit is None else transitions.votes & ~unfit[transitions.replica]
    cost = _interim_costs(safety, votes)
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
    order = np.argsort(turn, axis=1, kind="stable")
    return PartitionOrder(
        moves,
        *safety.orders(order, moves, transitions.leads, current, safety.urgent),
        front,
        current,
    )


def _interim_costs(safety: Safety, votes: NDArray[np.bool_]) -> NDArray[np.int64]:
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


def _usual(safety: Safety) -> NDArray[np.int64]:
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


def leader_before_roles(
    transitions: TransitionTable, moves: NDArray[np.bool_], current: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether who is to lead moves before roles change, (A,).

    It does if it leads from then on, or if ``current``, who leads until then, loses its vote.
    """
    comes = flag_at(moves, transitions.leads) & (transitions.leads != current)
    new = transitions.role != transitions.becomes
    return np.asarray(comes & (flag_at(new, transitions.leads) | flag_at(new, current)))


def at_slot(table: NDArray[np.int32], slot: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the entry of one slot per row; -1 for none."""
    if table.shape[1] == 0:
        return np.full(len(table), -1, np.int32)
    found = table[np.arange(len(table)), np.maximum(slot, 0)]
    return np.where(slot >= 0, found, np.int32(-1))


def flag_at(table: NDArray[np.bool_], slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the flag of one slot per row; False for none."""
    return at_slot(table.astype(np.int32), slot) > 0
