"""Orders: those in which partitions that wait in vain may change as well, and trades of slots."""

from collections.abc import Iterator
from itertools import islice, permutations, zip_longest

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag
from evenkeel.planning.changes.acts import Act, Acts
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.given_orders import GivenOrders
from evenkeel.planning.changes.matching import by_way, tradable, ways_of
from evenkeel.planning.changes.safety import ORDERS
from evenkeel.planning.changes.turns import Lent
from evenkeel.planning.draft import Draft
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle

WAYS_TO_LEND: tuple[Lent | None, ...] = (None, "deputy", "heir")
"""Who leads once a leader that moves has handed over, None for nobody before its turn."""


def other_orders(
    draft: Draft, throttle: Throttle, protocol: Protocol, *, trades: bool
) -> Iterator[list[Draft]]:
    """Yield drafts, not scheduled, in which stuck partitions change in all orders there are.

    Where slots may trade what they are to become, in those of all ``trades`` as well; leaders that
    move lead on, or have lent the lead to one that stays, or left it to who leads next. Then the
    same and more: it is also lent to any that stays, and who leads next may take over at the end
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
    ways: list[tuple[GivenOrders, NDArray[np.intp]]] = []
    for ends, orders in _ways(draft, some, trades=trades):
        given = GivenOrders(cluster, ends, protocol)
        ways += [(given, order) for order in islice(orders, ORDERS // 2 - len(ways))]
        if len(ways) == ORDERS // 2:
            break

    def drafts(acts: Iterator[Acts]) -> list[Draft]:
        return [draft.of_acts(one, throttle, protocol) for one in acts]

    soon = drafts(given.acts(order, lent=lent) for given, order in ways for lent in WAYS_TO_LEND)
    yield soon
    more = drafts(one for given, order in ways for one in _late(given, order))
    yield soon + more


def _late(given: GivenOrders, order: NDArray[np.intp]) -> Iterator[Acts]:
    """Yield acts that end with leads handed over: lent to nobody before, then to each in turn."""
    yield given.acts(order, late=True)
    unfit = np.zeros(len(given.safety.cluster.placement.node), bool)
    while True:
        made = given.acts(order, unfit, lent="deputy", late=True)
        alone = made.act == Act.LEAD
        lenders = np.intersect1d(made.replica[alone], made.heir[alone])
        if len(lenders) == 0:
            return
        unfit[lenders] = True
        yield made


def _ways(
    draft: Draft, ends: Ends, *, trades: bool
) -> Iterator[tuple[Ends, Iterator[NDArray[np.intp]]]]:
    """Yield some partitions with what their slots are to become, and orders of the slots."""
    yield ends, _orders(ends)
    if not trades:
        return
    nowhere = (ends.before < 0) | (ends.after < 0)
    rows = np.flatnonzero(tradable(draft.target, ends) & ~(nowhere & ends.moves).any(1))
    for ways in zip_longest(*(ways_of(draft.cluster, ends, row) for row in rows.tolist())):
        some = np.array([i for i, way in enumerate(ways) if way is not None], np.intp)
        origin = np.array([ways[i] for i in some.tolist()], np.intp)
        traded = by_way(ends, rows[some], origin)
        yield traded, _orders(traded)


def _orders(ends: Ends) -> Iterator[NDArray[np.intp]]:
    """Yield orders of the slots, (A, R), those that change first."""
    moving = ends.moves
    count = moving.sum(1)[:, None]
    usual = np.argsort(~moving, axis=1, kind="stable")
    most = int(count.max(initial=0))
    for way in permutations(range(most)):
        order = usual.copy()
        # a way that moves slots beyond those of a row is for longer rows
        own = ((np.array(way) < count) == (np.arange(most) < count)).all(1)
        order[own, :most] = usual[own][:, way]
        yield order
