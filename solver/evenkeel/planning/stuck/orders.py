"""Orders: those in which partitions that wait in vain may change as well, and trades of slots."""

from collections.abc import Iterator
from itertools import islice, permutations, zip_longest

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.planning.changes.acts import Act, Acts, acts_of
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.matching import by_way, tradable, ways_of
from evenkeel.planning.changes.safety import ORDERS
from evenkeel.planning.changes.turns import Lent
from evenkeel.planning.draft import Draft
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle

WAYS_TO_LEND: tuple[Lent | None, ...] = (None, "deputy", "heir")
"""Who leads once a leader that moves has handed over, None for nobody before its turn."""


def other_orders(
    draft: Draft, throttle: Throttle, protocol: Protocol, *, trades: bool, late: bool
) -> list[Draft]:
    """Return drafts, not scheduled, in which stuck partitions change in all orders there are.

    Where slots may trade what they are to become, in those of all ``trades`` as well; leaders that
    move lead on, or have lent the lead to one that stays, or left it to who leads next. Where it
    may be ``late``, it is also lent to any that stays, and who leads next may take over at the end
    instead of as it arrives. Partitions of which a copy is under way, or which others wait for,
    keep the order that they have.
    """
    acts, cluster = draft.acts, draft.cluster
    kept = (cluster.placement.flags[acts.replica] & Flag.INCOMING) != 0
    kept |= acts.recovers | acts.blocked | (acts.left < 1.0)
    ahead = draft.previous[acts.change]
    first = np.searchsorted(acts.change, np.maximum(ahead, 0))
    kept |= (ahead >= 0) & (acts.partition[first] != acts.partition)
    stuck = np.isin(acts.change, draft.stuck)
    free = np.setdiff1d(acts.partition[stuck], acts.partition[kept])
    some = draft.ends.take(np.flatnonzero(np.isin(draft.ends.partition, free)))
    found = []
    for ends, order in islice(_ways(draft, some, trades=trades), ORDERS // 2):
        made = [acts_of(cluster, ends, protocol, 0.0, order=order, lent=lent)
                for lent in WAYS_TO_LEND]  # fmt: skip
        if late:
            made += _late(cluster, ends, protocol, order)
        found += [draft.of_acts(acts, throttle, protocol) for acts in made]
    return found


def _late(
    cluster: Cluster, ends: Ends, protocol: Protocol, order: NDArray[np.intp]
) -> Iterator[Acts]:
    """Yield acts that end with leads handed over: lent to nobody before, then to each in turn."""
    yield acts_of(cluster, ends, protocol, 0.0, order=order, late=True)
    unfit = np.zeros(len(cluster.placement.node), bool)
    while True:
        made = acts_of(cluster, ends, protocol, 0.0, unfit, order=order, lent="deputy", late=True)
        alone = made.act == Act.LEAD
        lenders = np.intersect1d(made.replica[alone], made.heir[alone])
        if len(lenders) == 0:
            return
        unfit[lenders] = True
        yield made


def _ways(draft: Draft, ends: Ends, *, trades: bool) -> Iterator[tuple[Ends, NDArray[np.intp]]]:
    """Yield some partitions with what their slots are to become, and orders of the slots."""
    yield from _orders(ends)
    if not trades:
        return
    nowhere = (ends.before < 0) | (ends.after < 0)
    rows = np.flatnonzero(tradable(draft.target, ends) & ~(nowhere & ends.moves).any(1))
    for ways in zip_longest(*(ways_of(draft.cluster, ends, row) for row in rows.tolist())):
        some = np.array([i for i, way in enumerate(ways) if way is not None], np.intp)
        origin = np.array([ways[i] for i in some.tolist()], np.intp)
        yield from _orders(by_way(ends, rows[some], origin))


def _orders(ends: Ends) -> Iterator[tuple[Ends, NDArray[np.intp]]]:
    """Yield the partitions that have so many slots to change, and an order of those."""
    moving = ends.moves
    count = moving.sum(1)[:, None]
    usual = np.argsort(~moving, axis=1, kind="stable")
    most = int(count.max(initial=0))
    for way in permutations(range(most)):
        order = usual.copy()
        # a way that moves slots beyond those of a row is for longer rows
        own = ((np.array(way) < count) == (np.arange(most) < count)).all(1)
        order[own, :most] = usual[own][:, way]
        yield ends, order
