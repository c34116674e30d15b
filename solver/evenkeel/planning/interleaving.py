"""Interleaving: slots of a partition change in the order in which their nodes have time for them.

Copies of a partition that come one after another are an open shop (Gonzalez and Sahni 1976) with
the nodes: no order of theirs is given. So all is scheduled once as if every order were safe; then
each partition takes the order that this found, or the next to it that its rules admit.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag
from evenkeel.planning.changes.acts import Act, Acts, acts_by_turns
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.changes.turns import turns_of
from evenkeel.planning.draft import Draft, Leeway
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle

CLOSE = 1.04
"""What is as close to the least is not worth two more drafts."""


def interleaved(draft: Draft, throttle: Throttle, protocol: Protocol) -> Draft:
    """Return a draft that ends sooner since slots change in other orders, or the draft itself."""
    hurry = draft.schedule.hurry
    if hurry is None or len(draft.stuck) or draft.seconds <= hurry.least * CLOSE:
        return draft
    free = _free(draft)
    if len(free) == 0:
        return draft
    given = draft.cluster, draft.target, draft.ends
    leeway = Leeway(free, np.zeros(0))
    loose = Draft.of(*given, draft.acts, throttle, protocol, leeway=leeway)
    if len(loose.stuck) or loose.worth >= draft.worth:
        return draft
    start = loose.schedule.start
    acts = _reordered(draft, protocol, throttle.at_once, free, start[draft.acts.change])
    leeway = Leeway(free[:0], _by_turn(draft.acts, start, acts))
    found = Draft.of(*given, acts, throttle, protocol, leeway=leeway)
    return draft if len(found.stuck) or found.worth >= draft.worth else found


def _free(draft: Draft) -> NDArray[np.int32]:
    """Return the partitions of which several changes copy, and that may take another order.

    Those of which a copy is under way, that repair first or make a detour keep theirs.
    """
    acts, cluster = draft.acts, draft.cluster
    kept = (cluster.placement.flags[acts.replica] & Flag.INCOMING) != 0
    kept |= acts.recovers | acts.blocked | (acts.left < 1.0) | (acts.act == Act.ROLE)
    moves = acts.act == Act.MOVE
    kept |= moves & (acts.target != draft.target.node[acts.replica])
    copies = draft.copies.moves
    first = copies & (np.diff(acts.change, prepend=-1) > 0)
    several = np.flatnonzero(np.bincount(acts.partition[first]) > 1)
    return np.setdiff1d(several, acts.partition[kept]).astype(np.int32)


def _reordered(
    draft: Draft,
    protocol: Protocol,
    at_once: float,
    free: NDArray[np.int32],
    begins: NDArray[np.float64],
) -> Acts:
    """Return acts in which slots of the free partitions change in the order in which acts begin.

    Where rules do not admit that it is the next to it that they do, if leaders move as often.
    """
    acts, cluster = draft.acts, draft.cluster
    ends = draft.ends.take(np.flatnonzero(np.isin(draft.ends.partition, free)))
    safety = Safety(cluster, ends, protocol)
    turns, order = turns_of(safety), _slots_by_begin(ends, acts, begins)
    order, none = safety.orders(order, ends.moves, ends.leads, turns.current, safety.begun)
    made = acts_by_turns(safety, at_once, replace(turns, order=order, disorderly=none))
    worse = np.isin(made.partition, made.partition[made.blocked])
    counts = [np.bincount(one.partition, minlength=len(draft.target)) for one in (acts, made)]
    worse |= (counts[0] != counts[1])[made.partition]
    made = made.take(np.flatnonzero(~worse))
    return acts.with_others(made, made.partition)


def _slots_by_begin(ends: Ends, acts: Acts, begins: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the slots of the ends, (A, R), those that change first, as their acts begin."""
    moves = np.flatnonzero(acts.act != Act.LEAD)
    replicas = acts.replica[moves]
    when = np.full(int(ends.replica.max(initial=-1)) + 2, np.inf)
    inside = replicas < len(when) - 1
    when[replicas[inside]] = begins[moves[inside]]
    return np.argsort(np.where(ends.moves, when[ends.replica], np.inf), axis=1, kind="stable")


def _by_turn(acts: Acts, start: NDArray[np.float64], other: Acts) -> NDArray[np.float64]:
    """Return when changes of other acts begin if the k-th of a partition does as before, (C,).

    None where a partition has more of them, or less.
    """

    def of_change(one: Acts) -> NDArray[np.int32]:
        return one.partition[np.flatnonzero(np.diff(one.change, prepend=-1))]

    before = of_change(acts)
    order = np.lexsort((start, before))
    return start[order] if np.array_equal(before, of_change(other)) else np.zeros(0)
