"""Whether the lease of one range should move, where to, and why.

References
----------
CockroachDB, ``allocator.go``, ``TransferLeaseTarget``, ``ShouldTransferLease`` and
``ValidLeaseTargets``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inlined, no_alloc
from evenkeel_kernels.cockroach.leases.follow_workload import (
    ENOUGH_SECONDS,
    Workload,
    adjustment_between,
    has_statistics,
    workload_score,
)
from evenkeel_kernels.cockroach.leases.stats import LeaseBook, mean_leases, mean_overload
from evenkeel_kernels.cockroach.tables import (
    LEADERLESS,
    LEARNER,
    LEASES,
    NON_VOTER,
    NOWHERE,
    Configs,
    Flags,
    Localities,
    Longs,
    Ranges,
    Stores,
    draw,
    may_receive_load,
)
from evenkeel_kernels.core.problem import index

BLOCK_TRANSFER, SHED = 1, 2
"""What overload of a disk's bandwidth does to leases: it keeps them away, it drives them away."""

BALANCED, NO_TARGET, TOO_EARLY = 0, 1, 2
"""Why a lease stays: no better place, no place that may hold it, too little known as yet."""

BY_COUNT, BY_WORKLOAD, BY_PREFERENCE, BY_OVERLOAD, BY_REQUEST = 3, 4, 5, 6, 7
"""Why a lease moves. The last three drive it away, wherever it may go."""

SILENT, YOUNG, LOCAL, REMOTE = 0, 1, 2, 3
"""What the origin of requests says: nothing, too little, the lease is well placed, it is not."""


@by_reference
class LeaseSettings(NamedTuple):
    """Thresholds; the settings of those names in CockroachDB."""

    io_threshold: float  # overload from which a store is given no lease
    io_factor: float  # times the mean, too
    io_shed_threshold: float  # overload from which a store gives leases away
    io_shed_factor: float  # times the mean, too
    io_enforcement: int  # IGNORE, BLOCK_TRANSFER, SHED
    share: float  # of the mean, that counts may be off it
    least: float  # leases that counts may be off the mean in any case


@by_reference
class Contenders(NamedTuple):
    """The voters of one range, of which one holds the lease or may get it."""

    store: Longs  # (W,) where they are
    behind: Flags  # (W,) whether they may need a snapshot, or do not replicate
    eligible: Flags  # (W,) filled by `mark_eligible`
    size: Longs  # (1,) how many there are


def room_for_contenders(width: int) -> Contenders:
    """Make room for the voters of ranges of so many replicas."""
    return Contenders(
        np.zeros(width, np.int64),
        np.zeros(width, np.bool_),
        np.zeros(width, np.bool_),
        np.zeros(1, np.int64),
    )


@inlined
def take_contenders(ranges: Ranges, p: int, contenders: Contenders) -> int:
    """Fill in the voters of a range; return the store of its leaseholder, or -1. O(W).

    The one that holds the lease is never behind.
    """
    size = 0
    start = ranges.first[p]
    holder = start + ranges.lease[p] if ranges.lease[p] >= 0 else NOWHERE
    for k in range(start, ranges.first[p + 1]):
        if ranges.store[k] < 0 or ranges.role[k] == NON_VOTER or ranges.role[k] == LEARNER:
            continue
        contenders.store[size] = ranges.store[k]
        contenders.behind[size] = ranges.behind[k] and k != holder
        size += 1
    contenders.size[0] = size
    return index(ranges.store[holder]) if holder >= 0 else NOWHERE


@inlined
def sheds_for_overload(stores: Stores, settings: LeaseSettings, mean: float, s: int) -> bool:
    """Whether a store's disk is so overloaded that it must give leases away."""
    if settings.io_enforcement < SHED:
        return False
    high = stores.io[s] >= settings.io_shed_threshold
    return high and stores.io[s] >= mean * settings.io_shed_factor


@inlined
def refuses_for_overload(stores: Stores, settings: LeaseSettings, mean: float, s: int) -> bool:
    """Whether a store's disk is so overloaded that it is given no lease."""
    if settings.io_enforcement < BLOCK_TRANSFER:
        return False
    return stores.io[s] >= settings.io_threshold and stores.io[s] >= mean * settings.io_factor


@device_function
def mark_able(stores: Stores, raft: int, contenders: Contenders) -> None:
    """Mark those that serve and are not behind; if nobody knows who is, none. O(W)."""
    for i in range(contenders.size[0]):
        serves = may_receive_load(stores.status[contenders.store[i]])
        contenders.eligible[i] = serves and raft != LEADERLESS and not contenders.behind[i]


@device_function
def keep_preferred(
    localities: Localities, configs: Configs, q: int, contenders: Contenders
) -> bool:
    """Keep those that satisfy the first preference that any satisfies; whether one did. O(W E)."""
    for e in range(configs.lead_first[q], configs.lead_first[q + 1]):
        row = configs.lead_row[e]
        found = False
        for i in range(contenders.size[0]):
            if contenders.eligible[i]:
                found |= localities.matches[row, localities.alike[contenders.store[i]]]
        if found:
            for i in range(contenders.size[0]):
                contenders.eligible[i] &= localities.matches[
                    row, localities.alike[contenders.store[i]]
                ]
            return True
    return False


@device_function
def mark_eligible(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: LeaseSettings,
    book: LeaseBook,
    q: int,
    raft: int,
    here: int,
    excluded: bool,
    contenders: Contenders,
) -> int:
    """Mark those that may hold the lease; returns how many besides the one ``here``. O(W E).

    The one that holds it is among them unless ``excluded``, or its disk is so overloaded that it
    must give leases away.
    """
    mark_able(stores, raft, contenders)
    if excluded:
        for i in range(contenders.size[0]):
            contenders.eligible[i] &= contenders.store[i] != here
    keep_preferred(localities, configs, q, contenders)
    mean = mean_overload(book)
    found = 0
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if s == here:
            contenders.eligible[i] &= not sheds_for_overload(stores, settings, mean, s)
        else:
            contenders.eligible[i] &= not refuses_for_overload(stores, settings, mean, s)
            found += contenders.eligible[i]
    return found


@device_function
def driven_away(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: LeaseSettings,
    book: LeaseBook,
    q: int,
    raft: int,
    here: int,
    contenders: Contenders,
) -> int:
    """Return why the lease must leave ``here``: BY_PREFERENCE, BY_OVERLOAD, or BALANCED. O(W E)."""
    inside = False
    for i in range(contenders.size[0]):
        inside |= contenders.store[i] == here
    if not inside:
        return BALANCED
    mark_able(stores, raft, contenders)
    if keep_preferred(localities, configs, q, contenders):
        preferred = False
        for i in range(contenders.size[0]):
            preferred |= contenders.eligible[i] and contenders.store[i] == here
        if not preferred:
            return BY_PREFERENCE
    if sheds_for_overload(stores, settings, mean_overload(book), here):
        return BY_OVERLOAD
    return BALANCED


@device_function
def too_many_leases(
    stores: Stores, settings: LeaseSettings, mean: float, here: int, contenders: Contenders
) -> bool:
    """Whether counts ask for the lease to leave ``here``, given who is eligible. O(W)."""
    mine = stores.amount[LEASES, here]
    overfull = max(math.ceil(mean * (1.0 + settings.share)), math.ceil(mean + settings.least))
    if mine > overfull:
        return True
    if mine <= mean:
        return False
    underfull = min(math.ceil(mean * (1.0 - settings.share)), math.ceil(mean - settings.least))
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if contenders.eligible[i] and s != here and stores.amount[LEASES, s] < underfull:
            return True
    return False


@device_function
def by_workload(
    localities: Localities,
    stores: Stores,
    workload: Workload,
    mean: float,
    p: int,
    here: int,
    contenders: Contenders,
) -> tuple[int, int]:
    """Return what the origin of requests says, and the place of the best remote or -1. O(W)."""
    if here < 0 or not has_statistics(workload, p):
        return SILENT, NOWHERE
    for i in range(contenders.size[0]):
        if not workload.located[localities.alike[contenders.store[i]]]:
            return SILENT, NOWHERE
    if workload.seconds[p] < ENOUGH_SECONDS:
        return YOUNG, NOWHERE
    best, score = NOWHERE, 0.0
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if not contenders.eligible[i] or localities.host[s] == localities.host[here]:
            continue
        adjustment = adjustment_between(localities, workload, p, here, s)
        its = workload_score(
            adjustment, stores.amount[LEASES, s], stores.amount[LEASES, here], mean
        )
        if its > score:
            best, score = i, its
    return (REMOTE, best) if best >= 0 else (LOCAL, NOWHERE)


@device_function
def by_count(
    stores: Stores,
    mean: float,
    here: int,
    forced: bool,
    contenders: Contenders,
    rng_state: NDArray[np.uint64],
) -> int:
    """Return the place of one with few leases or -1; ``rng_state (1,)`` draws among them. O(W).

    If none has fewer than the mean and the lease is ``forced`` away, one with the fewest gets it.
    """
    few = 0
    least = np.inf
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if contenders.eligible[i] and s != here:
            few += stores.amount[LEASES, s] < mean - 0.5
            least = min(least, stores.amount[LEASES, s])
    if few == 0 and not forced:
        return NOWHERE
    below = mean - 0.5 if few else least + 0.5
    chosen, found = NOWHERE, 0
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if contenders.eligible[i] and s != here and stores.amount[LEASES, s] < below:
            found += 1
            if found == 1 or draw(rng_state, found) == 0:  # each of those found is as likely
                chosen = i
    return chosen


@no_alloc
def lease_target(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    workload: Workload,
    settings: LeaseSettings,
    book: LeaseBook,
    q: int,
    p: int,
    raft: int,
    here: int,
    asked: bool,
    contenders: Contenders,
    rng_state: NDArray[np.uint64],
) -> tuple[int, int]:
    """Return the place among the contenders of who should get the lease, or -1, and why.

    Range ``p``, of configuration ``q``, is led from the store ``here``, which need not be one of
    the contenders; -1 if nobody holds the lease. ``asked`` drives it away: its store is being
    drained, or loses the replica. ``rng_state (1,)`` draws among those that counts find equally
    good.
    O(W (E + origins)).
    """
    why = BY_REQUEST
    if not asked and here >= 0:
        why = driven_away(localities, stores, configs, settings, book, q, raft, here, contenders)
    forced = why != BALANCED
    others = mark_eligible(
        localities, stores, configs, settings, book, q, raft, here, forced, contenders
    )
    if others == 0:
        return NOWHERE, NO_TARGET
    mean = mean_leases(book, q)
    says, place = by_workload(localities, stores, workload, mean, p, here, contenders)
    if says == REMOTE:
        return place, why if forced else BY_WORKLOAD
    if not forced:
        if says == LOCAL:
            return NOWHERE, BALANCED
        if says == YOUNG:
            return NOWHERE, TOO_EARLY
        if not too_many_leases(stores, settings, mean, here, contenders):
            return NOWHERE, BALANCED
    place = by_count(stores, mean, here, forced, contenders, rng_state)
    if place < 0:
        return NOWHERE, BALANCED
    return place, why if forced else BY_COUNT


@no_alloc
def should_transfer(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    workload: Workload,
    settings: LeaseSettings,
    book: LeaseBook,
    q: int,
    p: int,
    raft: int,
    here: int,
    contenders: Contenders,
) -> int:
    """Return why the lease should leave ``here``, or why it stays; no target is drawn.

    As `lease_target`, for who only asks whether it is worth while. O(W (E + origins)).
    """
    why = BY_REQUEST
    if here >= 0:
        why = driven_away(localities, stores, configs, settings, book, q, raft, here, contenders)
    forced = why != BALANCED
    others = mark_eligible(
        localities, stores, configs, settings, book, q, raft, here, forced, contenders
    )
    if others == 0:
        return NO_TARGET
    if forced:
        return why
    mean = mean_leases(book, q)
    says, _ = by_workload(localities, stores, workload, mean, p, here, contenders)
    if says == SILENT:
        crowded = too_many_leases(stores, settings, mean, here, contenders)
        return BY_COUNT if crowded else BALANCED
    if says == YOUNG:
        return TOO_EARLY
    return BY_WORKLOAD if says == REMOTE else BALANCED
