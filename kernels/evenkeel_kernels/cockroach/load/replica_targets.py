"""Where the replicas of a hot range should be, and its lease among them, for the sake of load.

References
----------
CockroachDB, ``pkg/kv/kvserver/store_rebalancer.go``, ``chooseRangeToRebalance`` and
``getRebalanceTargetsBasedOnLoad``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.cockroach.leases.stats import LeaseBook
from evenkeel_kernels.cockroach.leases.target import Contenders, LeaseSettings, mark_eligible
from evenkeel_kernels.cockroach.load.tables import LoadSettings, lags, least_loaded, load_of
from evenkeel_kernels.cockroach.replicas.rebalance import (
    join_voters,
    leave,
    leave_voters,
    rebalance,
)
from evenkeel_kernels.cockroach.replicas.rooms import Rooms, make_members
from evenkeel_kernels.cockroach.store_stats import Tally
from evenkeel_kernels.cockroach.tables import (
    LEADING,
    LOAD,
    NON_VOTER,
    NOT_MODELLED,
    NOWHERE,
    VOTER,
    Configs,
    Localities,
    Members,
    Ranges,
    Scorer,
    Settings,
    Stores,
    add_member,
    place_of,
    take_members,
)
from evenkeel_kernels.core.problem import index

CHANGES, TOO_COLD, MISCOUNTED, NO_STEP, NO_LEADER = 0, 1, 2, 3, 4
"""What phase 2 says of a range: it changes; it has too little of the store's load; its replicas are
not as many as are wanted; no replica has a better place; none of the new ones may lead."""


@by_reference
class Change(NamedTuple):
    """The replicas of one range before and after.

    Attributes
    ----------
    before, after : Members
        Both kinds.
    """

    before: Members
    after: Members


def room_for_change(width: int) -> Change:
    """Make room for ranges of so many replicas."""
    return Change(make_members(width), make_members(width))


@inlined
def scorer_of(load: LoadSettings, impact: float) -> Scorer:
    """Return what levels the load, as a range of that ``impact`` moves."""
    return Scorer(LOAD, load.row, load.threshold, load.least, load.difference, impact)


@no_alloc
def replicas_by_load(
    localities: Localities,
    stores: Stores,
    tally: Tally,
    configs: Configs,
    settings: Settings,
    lease_settings: LeaseSettings,
    book: LeaseBook,
    load: LoadSettings,
    ranges: Ranges,
    p: int,
    change: Change,
    contenders: Contenders,
    rooms: Rooms,
    rng_state: NDArray[np.uint64],
) -> tuple[int, int]:
    """Return the store that should lead range ``p``, or -1, and CHANGES or why not.

    ``change.after`` then says where its replicas should be. ``tally`` is one of these stores for
    the scorer of ``load``; ``rng_state (1,)`` draws among what ties. Every step moves one replica,
    and
    the loads of stores stay as they are until all have been found. O(W) rebalances.
    """
    take_members(ranges, p, change.before)
    take_members(ranges, p, change.after)
    q, row = index(ranges.config[p]), load.row
    voters, others = change.before.size[0], change.before.size[1]
    if ranges.lease[p] < 0:
        return NOWHERE, NO_LEADER
    here = index(ranges.store[ranges.first[p] + ranges.lease[p]])
    impact = load_of(ranges, row, p)
    if impact < load.replica_share * stores.amount[row, here]:
        return NOWHERE, TOO_COLD
    if voters != configs.voters[q] or others != configs.replicas[q] - configs.voters[q]:
        return NOWHERE, MISCOUNTED
    scorer = scorer_of(load, impact)
    role, step = VOTER, 0
    while step < voters + others:
        found = rebalance(
            localities,
            stores,
            tally,
            configs,
            settings,
            scorer,
            q,
            change.after,
            role,
            rooms,
            rng_state,
        )
        if found.target >= 0:
            swap(change.after, role, found.target, found.removed)
            step += 1
        else:
            step = voters if role == VOTER else voters + others
        role = VOTER if step < voters else NON_VOTER
    if same(change.before, change.after):
        return NOWHERE, NO_STEP
    take_changed(ranges, p, here, change, contenders)
    mark_eligible(
        localities, stores, configs, lease_settings, book, q, NOT_MODELLED, here, False, contenders
    )
    best = least_loaded(stores, row, NOWHERE, contenders)
    if best < 0:
        return NOWHERE, NO_LEADER
    return contenders.store[best], CHANGES


@inlined
def swap(members: Members, role: int, target: int, removed: int) -> None:
    """Replace a replica; a non-voter whose store gets the voter goes where the voter was. O(W)."""
    if role == NON_VOTER:
        leave(members.non_voter, members, 1, removed)
        add_member(members.non_voter, members.size[1], target)
        members.size[1] += 1
        return
    promoted = leave(members.non_voter, members, 1, target)
    leave_voters(members, removed)
    join_voters(members, target)
    if promoted:
        add_member(members.non_voter, members.size[1], removed)
        members.size[1] += 1


@inlined
def same(one: Members, other: Members) -> bool:
    """Whether two have as many of each kind, in the same places. O(W)."""
    for i in range(one.size[0]):
        if one.voter[i] != other.voter[i]:
            return False
    for i in range(one.size[1]):
        if one.non_voter[i] != other.non_voter[i]:
            return False
    return True


@inlined
def take_changed(ranges: Ranges, p: int, here: int, change: Change, contenders: Contenders) -> None:
    """Fill in the voters that there will be; those that are new are not behind. O(W squared).

    Of the present ones the leaseholder is not behind either, if anything is known at all.
    """
    contenders.size[0] = change.after.size[0]
    for i in range(change.after.size[0]):
        s = change.after.voter[i]
        contenders.store[i] = s
        contenders.behind[i] = False
        if place_of(change.before.voter, change.before.size[0], s) < 0:
            continue
        for k in range(ranges.first[p], ranges.first[p + 1]):
            if ranges.store[k] == s:
                leads = s == here and ranges.raft[p] == LEADING
                contenders.behind[i] = lags(ranges, p, k) and not leads
