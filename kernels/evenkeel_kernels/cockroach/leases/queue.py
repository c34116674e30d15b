"""All leases of a cluster, one after the other, until none has a better place.

Every decision is that of `evenkeel_kernels.cockroach.leases.target`, on the stores as they have
become. A lease that need not move passes over some stores, or the pass would go on for ever. By
counts it goes to none that has as many leases, or one less: the two would only change places. Where
load is levelled too, it goes to none that would then carry too much: load would send it away again.
And it does not return to where it was in this run.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.cockroach.apply import give_lease
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules, agrees
from evenkeel_kernels.cockroach.decision_log import (
    DecisionLog,
    Left,
    has_left,
    has_room,
    is_worn,
    note,
    note_left,
)
from evenkeel_kernels.cockroach.leases.follow_workload import Workload, prefers_local
from evenkeel_kernels.cockroach.leases.stats import LeaseBook, count_leases, move_in_book
from evenkeel_kernels.cockroach.leases.target import (
    BY_COUNT,
    BY_WORKLOAD,
    Contenders,
    LeaseSettings,
    lease_target,
    take_contenders,
)
from evenkeel_kernels.cockroach.load.tables import OFF, LoadSettings, mean_load, overfull_load
from evenkeel_kernels.cockroach.quorum import quorum
from evenkeel_kernels.cockroach.tables import (
    AVAILABLE,
    DECOMMISSIONING,
    LEADERLESS,
    LEASES,
    NOT_MODELLED,
    NOWHERE,
    SUSPECT,
    THROTTLED,
    Configs,
    Localities,
    Longs,
    Ranges,
    Stores,
    is_live,
)
from evenkeel_kernels.core.problem import index

MOVED = 40
"""Added to why a lease moved, it is what the log calls it."""


@by_reference
class LeaseDesk(NamedTuple):
    """All that decisions about leases read, and the scratch that they write to.

    ``stores`` are what is decided on; changes are booked there, and in ``book``.
    """

    localities: Localities
    stores: Stores
    configs: Configs
    workload: Workload
    settings: LeaseSettings
    load: LoadSettings
    book: LeaseBook
    contenders: Contenders
    rules: ClusterRules


@no_alloc
def transfer_leases(
    ranges: Ranges,
    context: LeaseDesk,
    cursor: Longs,
    budget: int,
    left: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> None:
    """Look at the lease of every range, again and again, until a whole round moves none.

    Goes on at range ``cursor[0]``, of which ``cursor[1]`` in a row have been left alone; adds
    transfers to ``cursor[2]`` and, each time a round begins, starts to count in ``cursor[3]`` those
    that memory forbade (``cursor (4,)``). It is done when ``cursor[1]`` is the number of ranges,
    and stops before that after ``budget`` ranges or when the log is full. ``left`` is the memory of
    leases; ``rng_state (1,)`` draws. O(budget W (E + origins)).
    """
    count_leases(context.localities, context.stores, context.book)
    limit = overfull_load(context.load, mean_load(context.stores, context.load.row))
    many = ranges.lease.size
    for _ in range(budget):
        if cursor[1] >= many or not has_room(log, 1):
            return
        if cursor[0] >= many:
            cursor[0] = 0
        if cursor[1] == 0:
            cursor[3] = 0
        cursor[1] += 1
        came = transfer_one(ranges, context, cursor[0], limit, left, log, rng_state)
        if came > 0:
            cursor[1] = 0
            cursor[2] += 1
        elif came < 0:
            cursor[3] += 1
        cursor[0] += 1


@device_function
def transfer_one(
    ranges: Ranges,
    context: LeaseDesk,
    p: int,
    limit: float,
    left: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> int:
    """Move the lease of one range, if it should: 1 if it moved, -1 if memory forbade it.

    ``rng_state (1,)`` draws.
    """
    here = take_contenders(ranges, p, context.contenders)
    if not has_quorum(context.stores, context.contenders):
        return 0
    raft = index(ranges.raft[p])
    asked = here < 0 or must_go(context.stores.status[here])
    if asked and raft == LEADERLESS and (here < 0 or not is_live(context.stores.status[here])):
        raft = NOT_MODELLED  # those that are left elect a leader among themselves
    forbidden = 0
    sifted = NOWHERE
    while True:
        place, why = lease_target(
            context.localities, context.stores, context.configs, context.workload,
            context.settings, context.book,
            index(ranges.config[p]), p, raft, here, asked, context.contenders, rng_state,
        )  # fmt: skip
        if place < 0:
            return forbidden
        if (why == BY_COUNT or why == BY_WORKLOAD) and why != sifted:
            sifted = why
            forbidden = min(forbidden, sift(ranges, context, p, here, why, limit, left))
            continue
        target = context.contenders.store[place]
        give_lease(ranges, context.stores, p, target)
        if agrees(context.rules, ranges, context.stores, p):
            break
        pass_over(context.contenders, place)
    move_in_book(context.localities, context.stores, context.book, here, target)
    if here >= 0:
        note_left(left, p, here)
    note(log, MOVED + why, p, here, target, 0.0)
    return 1


@inline_only
def has_quorum(stores: Stores, contenders: Contenders) -> bool:
    """Whether enough voters serve for anything to be decided."""
    live = 0
    for i in range(contenders.size[0]):
        live += is_live(stores.status[contenders.store[i]])
    return live >= quorum(contenders.size[0])


@inline_only
def must_go(status: int) -> bool:
    """Whether a store of that state sheds its leases: it drains, or does not serve."""
    keeps = status == AVAILABLE or status == THROTTLED or status == SUSPECT
    return not keeps and status != DECOMMISSIONING


@inline_only
def sift(
    ranges: Ranges, context: LeaseDesk, p: int, here: int, why: int, limit: float, left: Left
) -> int:
    """Take off the list whom the lease shall not go to by choice; -1 if memory forbade one. O(W).

    All at once, so that what is drawn among the rest decides nothing but where it goes.
    """
    contenders = context.contenders
    kept, forbidden = 0, 0
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if s != here:
            if goes_in_circles(ranges, context, p, here, s, why, limit):
                continue
            if has_left(left, p, s) or is_worn(left, p):
                forbidden = -1
                continue
        contenders.store[kept] = s
        contenders.behind[kept] = contenders.behind[i]
        kept += 1
    contenders.size[0] = kept
    return forbidden


@inline_only
def pass_over(contenders: Contenders, place: int) -> None:
    """Take one off the list, whom the cluster's own rules refuse. O(W)."""
    contenders.size[0] -= 1
    for i in range(place, contenders.size[0]):
        contenders.store[i] = contenders.store[i + 1]
        contenders.behind[i] = contenders.behind[i + 1]


@inline_only
def goes_in_circles(
    ranges: Ranges, context: LeaseDesk, p: int, here: int, target: int, why: int, limit: float
) -> bool:
    """Whether a transfer by choice would only be undone, or be made the other way round next.

    By counts it must bring the two stores closer together. Where load is levelled too, the target
    must not carry more than ``limit`` then, unless it is so much nearer to the requests that load
    leaves the lease there.
    """
    if why == BY_COUNT:
        if context.stores.amount[LEASES, here] - context.stores.amount[LEASES, target] < 2.0:
            return True
    row = context.load.row
    if context.load.mode == OFF:
        return False
    if context.stores.amount[row, target] + ranges.lease_load[row, p] <= limit:
        return False
    return why == BY_COUNT or not prefers_local(
        context.localities, context.workload, p, target, here
    )
