"""Turns: in which order the replicas of a partition usually change, and who leads it meanwhile."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag, Role
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.transition_table import Ends

NEVER = 99
"""Position of a slot that does not act."""

UNDER_WAY, LOST, FIRST, EARLY, HEIR, USUAL, LATE, LAST = range(-2, 6)
"""Turns of the acts of a partition: who comes before who leaves, who is to lead before who led."""


@dataclass(frozen=True, eq=False)
class Turns:
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


def turns_of(safety: Safety, unfit: NDArray[np.bool_] | None = None) -> Turns:
    """Order the changes of every partition; who is ``unfit (K,)`` does not lead in between."""
    ends, live = safety.ends, safety.live
    before, moves = ends.before, ends.moves
    led_live = (ends.led >= 0) & live[at_slot(before, ends.led)]
    heir_votes = flag_at(ends.becomes == Role.VOTER, ends.leads)
    heir_stays = (ends.leads >= 0) & (ends.leads != ends.led) & ~flag_at(moves, ends.leads)
    # the next leader, if it has no vote yet, leads once it has one
    heir_stays &= ~flag_at(ends.role != ends.becomes, ends.leads)
    votes = ends.votes if unfit is None else ends.votes & ~unfit[ends.replica]
    cost = _deputies(safety, votes)
    deputy = np.argmin(cost, axis=1) if cost.shape[1] else np.zeros(len(ends), np.int64)
    orphaned = (ends.led >= 0) & ~led_live & flag_at(moves, ends.led) & heir_votes
    orphaned &= flag_at(moves, ends.leads) & (cost.min(axis=1, initial=NEVER) < NEVER)
    front = np.where(heir_stays, ends.leads, np.where(orphaned, deputy, -1))
    current = np.where(front >= 0, front, ends.led)
    turn = _usual(safety)
    late = (current >= 0) & (current != ends.leads)
    late |= (ends.led == ends.leads) & (front < 0)
    held = np.flatnonzero(late & (current >= 0))
    turn[held, current[held]] = np.maximum(turn[held, current[held]], LATE)
    # the leader goes only once its successor has its vote
    waits = flag_at(ends.role != ends.becomes, ends.leads) & flag_at(moves, current)
    turn[ends.recasts & (ends.late & ~waits)[:, None]] = LAST
    after_heir = ends.recasts & heir_before_roles(ends, moves, current)[:, None]
    turn[after_heir] = HEIR
    turn[~moves] = NEVER
    order = np.argsort(turn, axis=1, kind="stable")
    return Turns(
        moves, *safety.orders(order, moves, ends.leads, current, safety.urgent), front, current
    )


def _deputies(safety: Safety, votes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the cost of each slot that may lead in between: a voter at both ends that lives."""
    ends = safety.ends
    may_lead = np.append(safety.cluster.nodes.may_lead, False) & safety.live
    before, after = ends.before, ends.after
    slots = np.arange(before.shape[1])
    fit = votes & (slots != ends.led[:, None]) & (slots != ends.leads[:, None])
    fit &= may_lead[before] & may_lead[after]
    fit &= before != at_slot(before, ends.led)[:, None]
    fit &= after != at_slot(after, ends.leads)[:, None]
    return np.where(fit, np.where(ends.moves, 2, 1), NEVER)


def _usual(safety: Safety) -> NDArray[np.int64]:
    """Return when each slot's turn is: what is under way, roles, what is lost and given up, what
    comes, what lost its node, and last what goes.
    """
    ends, moves = safety.ends, safety.ends.moves
    begun = (safety.cluster.placement.flags[ends.replica] & Flag.INCOMING) != 0
    turn = np.full(moves.shape, USUAL)
    turn[moves & ~safety.live[ends.before]] = EARLY
    turn[ends.before < 0] = FIRST
    some = np.flatnonzero((ends.leads >= 0) & (ends.leads != ends.led))
    slot = ends.leads[some]
    turn[some, slot] = np.minimum(turn[some, slot], HEIR)
    turn[ends.after < 0] = LAST
    if not safety.protocol.whole:  # who is dead no longer counts for a majority
        turn[(ends.before >= 0) & (ends.after < 0) & ~safety.live[ends.before]] = LOST
    turn[(begun & moves & (ends.replica >= 0)) | ends.recasts] = UNDER_WAY
    return turn


def heir_before_roles(
    ends: Ends, moves: NDArray[np.bool_], current: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether who is to lead moves before roles change, (A,).

    It does if it leads from then on, or if ``current``, who leads until then, loses its vote.
    """
    comes = flag_at(moves, ends.leads) & (ends.leads != current)
    new = ends.role != ends.becomes
    return np.asarray(comes & (flag_at(new, ends.leads) | flag_at(new, current)))


def at_slot(table: NDArray[np.int32], slot: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the entry of one slot per row; -1 for none."""
    if table.shape[1] == 0:
        return np.full(len(table), -1, np.int32)
    found = table[np.arange(len(table)), np.maximum(slot, 0)]
    return np.where(slot >= 0, found, np.int32(-1))


def flag_at(table: NDArray[np.bool_], slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the flag of one slot per row; False for none."""
    return at_slot(table.astype(np.int32), slot) > 0
