"""Orders: those in which partitions that wait in vain may change as well."""

from itertools import islice, permutations

import numpy as np

from evenkeel.model.placement import Flag
from evenkeel.planning.changes.acts import acts_of
from evenkeel.planning.changes.safety import ORDERS
from evenkeel.planning.draft import Draft
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle


def other_orders(draft: Draft, throttle: Throttle, protocol: Protocol) -> list[Draft]:
    """Return drafts, not scheduled, in which stuck partitions change in all orders there are.

    Those of which a copy is under way, or which others wait for, keep the order that they have.
    """
    acts, cluster, ends = draft.acts, draft.cluster, draft.ends
    kept = (cluster.placement.flags[acts.replica] & Flag.INCOMING) != 0
    kept |= acts.recovers | acts.blocked | (acts.left < 1.0)
    ahead = draft.previous[acts.change]
    first = np.searchsorted(acts.change, np.maximum(ahead, 0))
    kept |= (ahead >= 0) & (acts.partition[first] != acts.partition)
    stuck = np.isin(acts.change, draft.stuck)
    free = np.setdiff1d(acts.partition[stuck], acts.partition[kept])
    some = ends.take(np.flatnonzero(np.isin(ends.partition, free)))
    moving = some.moves
    count = moving.sum(1)[:, None]
    most = int(count.max(initial=0))
    if most < 2:
        return []
    usual = np.argsort(~moving, axis=1, kind="stable")
    found = []
    for way in islice(permutations(range(most)), ORDERS):
        order = usual.copy()
        # a way that moves slots beyond those of a row is for longer rows
        own = ((np.array(way) < count) == (np.arange(most) < count)).all(1)
        order[own, :most] = usual[own][:, way]
        made = acts_of(cluster, some, protocol, 0.0, order=order)
        found.append(draft.of_acts(made, throttle, protocol))
    return found
