"""Turns: in which order the replicas of a partition change, and who leads it meanwhile."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag, Role
from evenkeel.planning.changes.detours import detours
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.safety import Safety

NEVER = 99
"""Position of a slot that does not act."""

Lent = Literal["deputy", "heir"]
"""Who may lead before the leader moves."""

UNDER_WAY, FIRST, EARLY, HEIR, USUAL, LATE, LAST = range(-1, 6)
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
        Rows of which no order keeps the rules.
    front : ndarray of int64, shape (A,)
        Slot to which leadership is handed before anything else.
    current : ndarray of int64, shape (A,)
        Slot that leads after that.
    deputy : ndarray of int64, shape (A,)
        Slot that may lead in between, best one that does not change.
    deputes : ndarray of bool, shape (A,)
        Rows that have such a slot.
    lends : ndarray of bool, shape (A,)
        Disorderly rows in which one that does not change may lead in between.
    early : ndarray of bool, shape (A,)
        Rows of which the next leader, which moves as the leader does, may lead before that.
    late : ndarray of bool, shape (A,)
        Rows of which the next leader takes over last, not as it arrives.
    """

    moves: NDArray[np.bool_]
    order: NDArray[np.intp]
    disorderly: NDArray[np.bool_]
    front: NDArray[np.int64]
    current: NDArray[np.int64]
    deputy: NDArray[np.int64]
    deputes: NDArray[np.bool_]
    lends: NDArray[np.bool_]
    early: NDArray[np.bool_]
    late: NDArray[np.bool_]


def turns_of(safety: Safety, unfit: NDArray[np.bool_] | None = None) -> Turns:
    """Order the changes of every partition; who is ``unfit (K,)`` does not lead in between."""
    cluster, ends, live = safety.cluster, safety.ends, safety.live
    before, moves = ends.before, ends.moves
    led_live = (ends.led >= 0) & live[at_slot(before, ends.led)]
    heir_votes = flag_at(ends.becomes == Role.VOTER, ends.leads)
    heir_stays = (ends.leads >= 0) & (ends.leads != ends.led) & ~flag_at(moves, ends.leads)
    # the next leader, if it has no vote yet, leads once it has one
    heir_stays &= ~flag_at(ends.role != ends.becomes, ends.leads)
    led_moves = flag_at(moves, ends.led)
    votes = ends.votes if unfit is None else ends.votes & ~unfit[ends.replica]
    cost = _deputies(safety, votes)
    deputy = np.argmin(cost, axis=1) if cost.shape[1] else np.zeros(len(ends), np.int64)
    least = cost.min(axis=1, initial=NEVER)
    deputes = least < NEVER
    orphaned = (ends.led >= 0) & ~led_live & deputes & led_moves & heir_votes
    orphaned &= flag_at(moves, ends.leads)
    front = np.where(heir_stays, ends.leads, np.where(orphaned, deputy, -1))
    usual = _usual(safety)
    found = _ordered(safety, moves, front, usual)
    able = np.append(cluster.nodes.may_lead, False) & live
    early = led_moves & heir_votes & flag_at(moves & ends.votes, ends.leads)
    early &= able[at_slot(before, ends.leads)]
    none = np.zeros(len(ends), bool)
    turns = Turns(moves, *found, deputy, deputes, none, early, none)
    # where neither the old leader nor the new can lead in between, another does
    lends = turns.disorderly & (front < 0) & led_moves & deputes & heir_votes
    turns = _lent(safety, turns, lends, deputy, usual)
    # or the next leader leads before it moves
    soon = turns.disorderly & (turns.front < 0) & early
    turns = _lent(safety, turns, soon, ends.leads, usual)
    lends = turns.disorderly & (turns.front < 0) & led_moves & (least == 1) & heir_votes
    return replace(turns, lends=lends)


def in_order(
    safety: Safety,
    turns: Turns,
    order: NDArray[np.intp],
    holds: NDArray[np.bool_],
    *,
    lent: Lent | None,
    late: bool,
) -> Turns:
    """Return turns in which slots change in the order given; those changing come first there.

    The states in between keep the rules of rows that it ``holds (A,)`` for. Leaders that move may
    have ``lent`` the lead to a deputy before, or left it to the next leader. That one may take over
    ``late``, once all have moved, from who lives and stays.
    """
    ends, live = safety.ends, safety.live
    moves, front, current = turns.moves, turns.front, turns.current

    def stays(slot: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether that slot may lead until the next leader takes over late."""
        able = live[at_slot(ends.before, slot)] & ~flag_at(moves, slot) & ~ends.changes_roles
        other = (slot >= 0) & (ends.leads >= 0) & (slot != ends.leads)
        return np.asarray(late & other & able)

    waits = (front == ends.leads) & stays(ends.led)
    front, current = np.where(waits, -1, front), np.where(waits, ends.led, current)
    if lent is not None:
        to, fit = {"deputy": (turns.deputy, turns.deputes), "heir": (ends.leads, turns.early)}[lent]
        rows = (flag_at(moves, current) | stays(to)) & fit & (front < 0) & (ends.leads >= 0)
        front, current = (np.where(rows & (to != ends.led), to, one) for one in (front, current))
    fits = holds & safety.heir_first(np.arange(len(order)), order, ends.leads, current, moves)
    return replace(
        turns, order=order, front=front, current=current, disorderly=~fits,
        lends=np.zeros_like(turns.lends), late=stays(current),
    )  # fmt: skip


def with_detours(
    safety: Safety, turns: Turns, full: Collection[tuple[int, int]]
) -> tuple[Turns, NDArray[np.int64], NDArray[np.int32]]:
    """Return turns in which disorderly rows detour, the slot that does, and its third node.

    That slot goes there first, and on when all others have changed; -1 for none. Who makes a detour
    does not lead: one that stays does, until who is to lead has arrived. Partitions do not go by
    nodes that are ``full`` for them.
    """
    ends = safety.ends
    lends = turns.lends & safety.protocol.joint
    turns = replace(
        turns, front=np.where(lends, turns.deputy, turns.front),
        current=np.where(lends, turns.deputy, turns.current),
    )  # fmt: skip
    third = turns.moves & (ends.before >= 0) & (ends.after >= 0) & safety.protocol.joint
    third &= ends.role == ends.becomes
    slots = np.arange(turns.moves.shape[1])
    for slot in (turns.current, ends.leads, turns.deputy):
        third &= slots != slot[:, None]
    seeking = np.flatnonzero(turns.disorderly)
    return turns, *detours(safety, seeking, turns.order, third, full)


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


def _ordered(
    safety: Safety,
    moves: NDArray[np.bool_],
    front: NDArray[np.int64],
    usual: NDArray[np.int64],
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return an order, whether there is none, ``front`` and who leads after it."""
    ends = safety.ends
    current = np.where(front >= 0, front, ends.led)
    turn = usual.copy()
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
    return *safety.orders(order, moves, ends.leads, current), front, current


def _lent(
    safety: Safety,
    turns: Turns,
    lends: NDArray[np.bool_],
    deputy: NDArray[np.int64],
    usual: NDArray[np.int64],
) -> Turns:
    """Return turns in which rows that lend their leads to a deputy do so if that gives an order."""
    if not lends.any():
        return turns
    front = np.where(lends, deputy, turns.front)
    order, without, _, current = _ordered(safety, turns.moves & lends[:, None], front, usual)
    helped = lends & ~without
    return replace(
        turns, order=np.where(helped[:, None], order, turns.order),
        disorderly=turns.disorderly & ~helped, front=np.where(helped, front, turns.front),
        current=np.where(helped, current, turns.current),
    )  # fmt: skip


def _usual(safety: Safety) -> NDArray[np.int64]:
    """Return when each slot's turn is: what is under way, roles, what comes, what lost its node,
    and last what goes.
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
