"""Choose the leaseholder of one range, or transfer leases until no range has a better one.

Leases follow the workload: the nearer a replica to where requests come from, the better. The mean
number of leases is taken over the stores that a configuration allows, so there is one for each
configuration. They are kept as sums, and a transfer changes two entries.

Over a whole cluster every decision is made on the stores as they have become. A lease that need not
move passes over some stores, or the pass would go on for ever. By counts it goes to none that has
as many leases, or one less: the two would only change places. Where load is levelled too, it goes
to none that would then carry too much: load would send it away again. And it does not return to
where it was in this run.

References
----------
CockroachDB, ``allocator.go``, ``TransferLeaseTarget``, ``ShouldTransferLease``,
``ValidLeaseTargets``, ``loadBasedLeaseRebalanceScore`` and
``shouldTransferLeaseForAccessLocality``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, inlined, no_alloc
from evenkeel_kernels.cockroach.actions import quorum
from evenkeel_kernels.cockroach.changes import (
    DecisionLog,
    Left,
    give_lease,
    has_left,
    has_room,
    is_worn,
    note,
    note_left,
)
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules, agrees
from evenkeel_kernels.cockroach.tables import (
    AVAILABLE,
    DECOMMISSIONING,
    LEADERLESS,
    LEADING,
    LEARNER,
    LEASES,
    NON_VOTER,
    NOT_MODELLED,
    NOWHERE,
    SUSPECT,
    THROTTLED,
    Configs,
    Flags,
    Floats,
    Ints,
    Localities,
    Longs,
    Ranges,
    Stores,
    draw,
    is_live,
    may_receive_load,
)
from evenkeel_kernels.core.problem import index

ENOUGH_SECONDS = 30.0  # of statistics; before that no lease is moved by them, nor by counts

LEAST_WEIGHT = 0.001

# share of the mean: twice what is tolerated in counts alone, against thrashing by small noise
TOLERANCE = 0.1

# what overload of a disk's bandwidth does to leases: it keeps them away, it drives them away
BLOCK_TRANSFER, SHED = 1, 2

# why a lease stays: no better place, no place that may hold it, too little known as yet
BALANCED, NO_TARGET, TOO_EARLY = 0, 1, 2

# Why a lease moves. The last three drive it away, wherever it may go.
BY_COUNT, BY_WORKLOAD, BY_PREFERENCE, BY_OVERLOAD, BY_REQUEST = 3, 4, 5, 6, 7

# what the origin of requests says: nothing, too little, the lease is well placed, it is not
SILENT, YOUNG, LOCAL, REMOTE = 0, 1, 2, 3

MOVED = 40  # added to why a lease moved, it is what the log calls it

# what the store rebalancer moves: nothing, leases, leases and replicas
OFF, LEASES_ONLY, REPLICAS = 0, 1, 2


@by_reference
class Workload(NamedTuple):
    """Where the requests for ranges come from, O localities in all."""

    first: Longs  # (P + 1,) origins of each range
    origin: Ints  # (.,) locality that requests come from
    rate: Floats  # (.,) requests per second from there
    # (P,) what the statistics of a range cover; negative for none. Of length 0 if there are none
    seconds: Floats
    near: Floats  # (O, C) 1 less the diversity between an origin and the hosts of a class of stores
    located: Flags  # (C,) whether stores of a class have a locality
    latency: Floats  # (hosts, hosts) milliseconds from a host to another
    eagerness: float  # ``kv.allocator.lease_rebalancing_aggressiveness``


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
class LoadSettings(NamedTuple):
    """Thresholds of the store rebalancer, for the load that it levels."""

    row: int  # of Stores.amount: QPS or CPU
    threshold: float  # share of the mean that a store may be above it
    least: float  # in the unit of the row, that it may be above the mean in any case
    difference: float  # least difference between two stores for load to be moved
    lease_share: float  # of the store's load below which a range's lease is left alone
    replica_share: float  # and its replicas
    mode: int  # OFF, LEASES_ONLY, REPLICAS


@by_reference
class LeaseBook(NamedTuple):
    """Sums over the stores that serve, of which those draining or suspect are no part."""

    # (Q, C) whether stores of a class satisfy both tables of constraints of a configuration
    valid: Flags
    leases: Floats  # (Q,) leases on the serving stores that a configuration allows
    number: Longs  # (Q,) those stores
    # (2,) sum of the overload of disks' bandwidth over all serving stores, and their number
    overload: Floats


@by_reference
class Contenders(NamedTuple):
    """The voters of one range, of which one holds the lease or may get it."""

    store: Longs  # (W,) where they are
    behind: Flags  # (W,) whether they may need a snapshot, or do not replicate
    eligible: Flags  # (W,) filled by `mark_eligible`
    size: Longs  # (1,) how many there are


@by_reference
class LeaseContext(NamedTuple):
    """All that decisions about leases read, and the scratch that they write to."""

    # ``stores`` are what is decided on; changes are booked there, and in ``book``

    localities: Localities
    stores: Stores
    configs: Configs
    workload: Workload
    settings: LeaseSettings
    load: LoadSettings
    book: LeaseBook
    contenders: Contenders
    rules: ClusterRules


def room_for_contenders(width: int) -> Contenders:
    """Make room for the voters of ranges of so many replicas."""
    return Contenders(
        np.zeros(width, np.int64),
        np.zeros(width, np.bool_),
        np.zeros(width, np.bool_),
        np.zeros(1, np.int64),
    )


def open_book(localities: Localities, configs: Configs) -> LeaseBook:
    """Make a book of all configurations; `count_leases` fills in what may change."""
    width = configs.replicas.size
    book = LeaseBook(
        np.zeros((width, localities.pair.shape[0]), np.bool_),
        np.zeros(width),
        np.zeros(width, np.int64),
        np.zeros(2),
    )
    allow(localities, configs, book.valid)
    return book


@no_alloc
def allow(localities: Localities, configs: Configs, valid: NDArray[np.bool_]) -> None:
    """Fill ``valid (Q, C)``: classes of stores that both tables allow. O(Q C E)."""
    for q in range(valid.shape[0]):
        for a in range(valid.shape[1]):
            valid[q, a] = satisfies_any(
                localities, configs.row, configs.first[q], configs.first[q + 1], a
            ) and satisfies_any(
                localities, configs.voter_row, configs.voter_first[q], configs.voter_first[q + 1], a
            )


@inlined
def satisfies_any(localities: Localities, row: Ints, start: int, stop: int, a: int) -> bool:
    """Whether class ``a`` satisfies one of the conjunctions ``row (.,)``, if there is any. O(E)."""
    for e in range(start, stop):
        if localities.matches[row[e], a]:
            return True
    return start == stop


@no_alloc
def count_leases(context: LeaseContext) -> None:
    """Count leases and overload afresh. O(Q S)."""
    localities, stores, book = context.localities, context.stores, context.book
    book.leases[:] = 0.0
    book.number[:] = 0
    book.overload[:] = 0.0
    for s in range(stores.io.size):
        if not may_receive_load(stores.status[s]):
            continue
        book.overload[0] += stores.io[s]
        book.overload[1] += 1.0
        for q in range(book.number.size):
            if book.valid[q, localities.alike[s]]:
                book.leases[q] += stores.amount[LEASES, s]
                book.number[q] += 1


@no_alloc
def move_in_book(context: LeaseContext, source: int, target: int) -> None:
    """Book that a lease has gone from one store to another; -1 for a store that is none. O(Q)."""
    localities, stores, book = context.localities, context.stores, context.book
    from_one = source >= 0 and may_receive_load(stores.status[source])
    to_one = target >= 0 and may_receive_load(stores.status[target])
    for q in range(book.number.size):
        if from_one and book.valid[q, localities.alike[source]]:
            book.leases[q] -= 1.0
        if to_one and book.valid[q, localities.alike[target]]:
            book.leases[q] += 1.0


@inlined
def mean_leases(context: LeaseContext, q: int) -> float:
    """Return the mean number of leases on the stores of a configuration; 0 without any."""
    book = context.book
    return book.leases[q] / book.number[q] if book.number[q] else 0.0


@inlined
def mean_overload(context: LeaseContext) -> float:
    """Return the mean overload of the stores that serve; 0 without any."""
    book = context.book
    return book.overload[0] / book.overload[1] if book.overload[1] else 0.0


@no_alloc
def workload_adjustment(
    eagerness: float, remote_weight: float, source_weight: float, latency: float
) -> float:
    """Return how much nearer to the requests the remote replica is; ``latency`` in milliseconds."""
    remote = max(remote_weight, LEAST_WEIGHT)
    source = max(source_weight, LEAST_WEIGHT)
    return eagerness * 0.1 * math.log10(remote / source) * math.log1p(latency)


@no_alloc
def workload_score(
    adjustment: float, remote_leases: float, source_leases: float, mean: float
) -> float:
    """Return the score of a transfer, a whole number; above 0 the lease should go there."""
    threshold = TOLERANCE - adjustment
    over = source_leases - math.ceil(mean * (1.0 + threshold))
    under = math.floor(mean * (1.0 - threshold)) - remote_leases
    return over + under


@inlined
def has_statistics(context: LeaseContext, p: int) -> bool:
    """Whether it is known where requests for a range come from, for however long."""
    workload = context.workload
    return workload.seconds.size > 0 and workload.seconds[p] >= 0.0


@inlined
def weight(context: LeaseContext, p: int, s: int) -> float:
    """Return the requests per second for a range that come from near a store. O(origins)."""
    localities, workload = context.localities, context.workload
    total = 0.0
    for i in range(workload.first[p], workload.first[p + 1]):
        total += workload.near[workload.origin[i], localities.alike[s]] * workload.rate[i]
    return max(total, LEAST_WEIGHT)


@inlined
def adjustment_between(context: LeaseContext, p: int, source: int, remote: int) -> float:
    """Return how much nearer to a range's requests a remote store is than its leaseholder's."""
    localities, workload = context.localities, context.workload
    return workload_adjustment(
        workload.eagerness,
        weight(context, p, remote),
        weight(context, p, source),
        workload.latency[localities.host[source], localities.host[remote]],
    )


@inlined
def prefers_local(context: LeaseContext, p: int, source: int, remote: int) -> bool:
    """Whether a range's lease had better stay near its requests than go to ``remote``."""
    localities, workload = context.localities, context.workload
    if not has_statistics(context, p) or workload.seconds[p] < ENOUGH_SECONDS:
        return False
    if localities.host[source] == localities.host[remote]:
        return False
    if not workload.located[localities.alike[source]]:
        return False
    if not workload.located[localities.alike[remote]]:
        return False
    return -adjustment_between(context, p, source, remote) > TOLERANCE


@no_alloc
def mean_load(stores: Stores, row: int) -> float:
    """Return the mean load of the stores that serve; 0 without any. O(S)."""
    total, number = 0.0, 0
    for s in range(stores.io.size):
        if may_receive_load(stores.status[s]):
            total += stores.amount[row, s]
            number += 1
    return total / number if number else 0.0


@inlined
def overfull_load(load: LoadSettings, mean: float) -> float:
    """Return the load above which a store carries too much."""
    return mean + max(load.threshold * mean, load.least)


@inlined
def lags(ranges: Ranges, p: int, k: int) -> bool:
    """Whether a replica is not known to have all that is committed."""
    if ranges.raft[p] == LEADERLESS or ranges.behind[k]:
        return True
    return ranges.raft[p] == LEADING and not ranges.up_to_date[k]


@inlined
def take_contenders(context: LeaseContext, ranges: Ranges, p: int, for_load: bool) -> int:
    """Fill in the voters of a range; return the store of its leaseholder, or -1. O(W)."""
    # The one that holds the lease is never behind. Where it moves ``for_load`` alone, all that lag
    # are.
    contenders = context.contenders
    size = 0
    start = ranges.first[p]
    holder = start + ranges.lease[p] if ranges.lease[p] >= 0 else NOWHERE
    for k in range(start, ranges.first[p + 1]):
        if ranges.store[k] < 0 or ranges.role[k] == NON_VOTER or ranges.role[k] == LEARNER:
            continue
        behind = lags(ranges, p, k) if for_load else ranges.behind[k]
        contenders.store[size] = ranges.store[k]
        contenders.behind[size] = behind and k != holder
        size += 1
    contenders.size[0] = size
    return index(ranges.store[holder]) if holder >= 0 else NOWHERE


@inlined
def sheds_for_overload(context: LeaseContext, mean: float, s: int) -> bool:
    """Whether a store's disk is so overloaded that it must give leases away."""
    stores, settings = context.stores, context.settings
    if settings.io_enforcement < SHED:
        return False
    high = stores.io[s] >= settings.io_shed_threshold
    return high and stores.io[s] >= mean * settings.io_shed_factor


@inlined
def refuses_for_overload(context: LeaseContext, mean: float, s: int) -> bool:
    """Whether a store's disk is so overloaded that it is given no lease."""
    stores, settings = context.stores, context.settings
    if settings.io_enforcement < BLOCK_TRANSFER:
        return False
    return stores.io[s] >= settings.io_threshold and stores.io[s] >= mean * settings.io_factor


@device_function
def mark_able(context: LeaseContext, raft: int) -> None:
    """Mark those that serve and are not behind; none if that is not known. O(W)."""
    stores, contenders = context.stores, context.contenders
    for i in range(contenders.size[0]):
        serves = may_receive_load(stores.status[contenders.store[i]])
        contenders.eligible[i] = serves and raft != LEADERLESS and not contenders.behind[i]


@device_function
def keep_preferred(context: LeaseContext, q: int) -> bool:
    """Keep those that satisfy the first preference that any satisfies; whether one did. O(W E)."""
    localities, configs, contenders = context.localities, context.configs, context.contenders
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
def mark_eligible(context: LeaseContext, q: int, raft: int, here: int, excluded: bool) -> int:
    """Mark those that may hold the lease; returns how many besides the one ``here``. O(W E)."""
    # the one that holds it is among them unless ``excluded``, or its disk is so overloaded that it
    # must give leases away
    contenders = context.contenders
    mark_able(context, raft)
    if excluded:
        for i in range(contenders.size[0]):
            contenders.eligible[i] &= contenders.store[i] != here
    keep_preferred(context, q)
    mean = mean_overload(context)
    found = 0
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if s == here:
            contenders.eligible[i] &= not sheds_for_overload(context, mean, s)
        else:
            contenders.eligible[i] &= not refuses_for_overload(context, mean, s)
            found += contenders.eligible[i]
    return found


@device_function
def driven_away(context: LeaseContext, q: int, raft: int, here: int) -> int:
    """Return why the lease must leave ``here``: BY_PREFERENCE, BY_OVERLOAD, or BALANCED. O(W E)."""
    contenders = context.contenders
    inside = False
    for i in range(contenders.size[0]):
        inside |= contenders.store[i] == here
    if not inside:
        return BALANCED
    mark_able(context, raft)
    if keep_preferred(context, q):
        preferred = False
        for i in range(contenders.size[0]):
            preferred |= contenders.eligible[i] and contenders.store[i] == here
        if not preferred:
            return BY_PREFERENCE
    if sheds_for_overload(context, mean_overload(context), here):
        return BY_OVERLOAD
    return BALANCED


@device_function
def too_many_leases(context: LeaseContext, mean: float, here: int) -> bool:
    """Whether counts ask for the lease to leave ``here``, given who is eligible. O(W)."""
    stores, settings, contenders = context.stores, context.settings, context.contenders
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
def by_workload(context: LeaseContext, mean: float, p: int, here: int) -> tuple[int, int]:
    """Return what the origin of requests says, and the place of the best remote or -1. O(W)."""
    localities, stores, workload = context.localities, context.stores, context.workload
    contenders = context.contenders
    if here < 0 or not has_statistics(context, p):
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
        adjustment = adjustment_between(context, p, here, s)
        its = workload_score(
            adjustment, stores.amount[LEASES, s], stores.amount[LEASES, here], mean
        )
        if its > score:
            best, score = i, its
    return (REMOTE, best) if best >= 0 else (LOCAL, NOWHERE)


@device_function
def by_count(
    context: LeaseContext, mean: float, here: int, forced: bool, rng_state: NDArray[np.uint64]
) -> int:
    """Return the place of one with few leases or -1; ``rng_state (1,)`` draws among them. O(W)."""
    # if none has fewer than the mean and the lease is ``forced`` away, one with the fewest gets it
    stores, contenders = context.stores, context.contenders
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
def lease_reason(
    context: LeaseContext, q: int, p: int, raft: int, here: int, asked: bool
) -> tuple[int, int]:
    """Return the place of the contender to which requests draw the lease, or -1, and why."""
    # Range ``p``, of configuration ``q``, is led from the store ``here``, which need not be one of
    # the contenders; -1 if none holds the lease. ``asked`` drives it away: its store is being
    # drained, or loses the replica. Without a place, a reason above TOO_EARLY leaves the choice to
    # counts. O(W (E + origins)).
    why = BY_REQUEST
    if not asked and here >= 0:
        why = driven_away(context, q, raft, here)
    forced = why != BALANCED
    if mark_eligible(context, q, raft, here, forced) == 0:
        return NOWHERE, NO_TARGET
    mean = mean_leases(context, q)
    says, place = by_workload(context, mean, p, here)
    if says == REMOTE:
        return place, why if forced else BY_WORKLOAD
    if forced:
        return NOWHERE, why
    if says == YOUNG:
        return NOWHERE, TOO_EARLY
    if says == LOCAL or not too_many_leases(context, mean, here):
        return NOWHERE, BALANCED
    return NOWHERE, BY_COUNT


@no_alloc
def lease_target(
    context: LeaseContext,
    q: int,
    p: int,
    raft: int,
    here: int,
    asked: bool,
    rng_state: NDArray[np.uint64],
) -> tuple[int, int]:
    """Return the place among the contenders of who should get the lease, or -1, and why.

    As `lease_reason`; ``rng_state (1,)`` draws among those that counts find equally good.
    """
    place, why = lease_reason(context, q, p, raft, here, asked)
    if place >= 0 or why <= TOO_EARLY:
        return place, why
    place = by_count(context, mean_leases(context, q), here, why != BY_COUNT, rng_state)
    return (place, why) if place >= 0 else (NOWHERE, BALANCED)


@no_alloc
def transfer_leases(
    ranges: Ranges,
    context: LeaseContext,
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
    count_leases(context)
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
    context: LeaseContext,
    p: int,
    limit: float,
    left: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> int:
    """Move the lease of one range, if it should: 1 if it moved, -1 if memory forbade it.

    ``rng_state (1,)`` draws.
    """
    here = take_contenders(context, ranges, p, False)
    if not has_quorum(context):
        return 0
    raft = index(ranges.raft[p])
    asked = here < 0 or must_go(context.stores.status[here])
    if asked and raft == LEADERLESS and (here < 0 or not is_live(context.stores.status[here])):
        raft = NOT_MODELLED  # those that are left elect a leader among themselves
    forbidden = 0
    sifted = NOWHERE
    while True:
        place, why = lease_target(context, index(ranges.config[p]), p, raft, here, asked, rng_state)
        if place < 0:
            return forbidden
        if (why == BY_COUNT or why == BY_WORKLOAD) and why != sifted:
            sifted = why
            forbidden = min(
                forbidden, exclude_by_choice(ranges, context, p, here, why, limit, left)
            )
            continue
        target = context.contenders.store[place]
        give_lease(ranges, context.stores, p, target)
        if agrees(context.rules, ranges, context.stores, p):
            break
        pass_over(context, place)
    move_in_book(context, here, target)
    if here >= 0:
        note_left(left, p, here)
    note(log, MOVED + why, p, here, target, 0.0)
    return 1


@inline_only
def has_quorum(context: LeaseContext) -> bool:
    """Whether enough voters serve for anything to be decided."""
    stores, contenders = context.stores, context.contenders
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
def exclude_by_choice(
    ranges: Ranges, context: LeaseContext, p: int, here: int, why: int, limit: float, left: Left
) -> int:
    """Unlist those whom the lease shall not go to by choice; -1 if memory forbade one. O(W)."""
    # all at once, so that what is drawn among the rest decides nothing but where it goes
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
def pass_over(context: LeaseContext, place: int) -> None:
    """Take one off the list, whom the cluster's own rules refuse. O(W)."""
    contenders = context.contenders
    contenders.size[0] -= 1
    for i in range(place, contenders.size[0]):
        contenders.store[i] = contenders.store[i + 1]
        contenders.behind[i] = contenders.behind[i + 1]


@inline_only
def goes_in_circles(
    ranges: Ranges, context: LeaseContext, p: int, here: int, target: int, why: int, limit: float
) -> bool:
    """Whether a transfer by choice would only be undone, or be made the other way round next."""
    # By counts it must bring the two stores closer together. Where load is levelled too, the target
    # must not carry more than ``limit`` then, unless it is so much nearer to the requests that load
    # leaves the lease there.
    if why == BY_COUNT:
        if context.stores.amount[LEASES, here] - context.stores.amount[LEASES, target] < 2.0:
            return True
    row = context.load.row
    if context.load.mode == OFF:
        return False
    if context.stores.amount[row, target] + ranges.lease_load[row, p] <= limit:
        return False
    return why == BY_COUNT or not prefers_local(context, p, target, here)
