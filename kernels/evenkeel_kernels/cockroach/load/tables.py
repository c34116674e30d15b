"""The load of stores: which carry too much, which ranges are hottest there, whose lease goes where.

References
----------
CockroachDB, ``pkg/kv/kvserver/store_rebalancer.go``, ``chooseLeaseToTransfer``, and
``allocator_scorer.go``, ``bestStoreToMinimizeLoadDelta``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.cockroach.leases.follow_workload import Workload, prefers_local
from evenkeel_kernels.cockroach.leases.stats import LeaseBook
from evenkeel_kernels.cockroach.leases.target import Contenders, LeaseSettings, mark_eligible
from evenkeel_kernels.cockroach.tables import (
    LEADERLESS,
    LEADING,
    LEARNER,
    NON_VOTER,
    NOWHERE,
    Configs,
    Floats,
    Localities,
    Longs,
    Ranges,
    Stores,
    may_receive_load,
)
from evenkeel_kernels.core.problem import index

OFF, LEASES_ONLY, REPLICAS = 0, 1, 2
"""What the store rebalancer moves: nothing, leases, leases and replicas."""

MOVES, NO_BETTER, STAYS_LOCAL, TOO_LITTLE = 0, 1, 2, 3
"""What phase 1 says of a lease: it goes; no store is better; it is near its requests; its range
has too little of the store's load."""


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
class HotList(NamedTuple):
    """The replicas with the most load on one store."""

    slot: Longs  # (H,) their slots in the row of all replicas; as a heap while it is filled
    range: Longs  # (H,) their ranges
    load: Floats  # (H,) what they carry there
    size: Longs  # (1,) how many there are


def room_for_hottest(most: int) -> HotList:
    """Make room for a list of so many."""
    return HotList(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most), np.zeros(1, np.int64)
    )


@inlined
def load_of(ranges: Ranges, row: int, p: int) -> float:
    """Return the whole load of a range at its leaseholder."""
    return ranges.replica_load[row, p] + ranges.lease_load[row, p]


@no_alloc
def list_replicas(
    ranges: Ranges,
    first: NDArray[np.int64],
    owner: NDArray[np.int64],
    slot: NDArray[np.int64],
) -> None:
    """Sort replicas by store: ``first (S + 1,)``, with ``owner (K,)`` and ``slot (K,)`` of each.

    These are its range and its slot, of the replicas on the first store, then of those on the next.
    O(K + S).
    """
    first[:] = 0
    stores = first.size - 1
    for k in range(ranges.store.size):
        if ranges.store[k] >= 0 and ranges.role[k] != LEARNER:
            first[ranges.store[k] + 1] += 1
    for s in range(stores):
        first[s + 1] += first[s]
    for p in range(ranges.lease.size):
        for k in range(ranges.first[p], ranges.first[p + 1]):
            if ranges.store[k] >= 0 and ranges.role[k] != LEARNER:
                at = first[ranges.store[k]]
                owner[at] = p
                slot[at] = k
                first[ranges.store[k]] += 1
    for s in range(stores, 0, -1):
        first[s] = first[s - 1]
    first[0] = 0


@inlined
def hotter(hot: HotList, i: int, load: float, p: int) -> bool:
    """Whether entry ``i`` is hotter than a range; of two alike, the one with the lower number."""
    return hot.load[i] > load or (hot.load[i] == load and hot.range[i] < p)


@no_alloc
def hottest(
    ranges: Ranges,
    row: int,
    s: int,
    first: NDArray[np.int64],
    owner: NDArray[np.int64],
    slot: NDArray[np.int64],
    hot: HotList,
) -> None:
    """List the hottest replicas of store ``s``, hottest first.

    ``first (S + 1,)``, ``owner`` and ``slot (K,)`` are as `list_replicas` fills them; what has left
    the store since is passed over. O(replicas there * log H).
    """
    hot.size[0] = 0
    for j in range(first[s], first[s + 1]):
        p, k = owner[j], slot[j]
        if ranges.store[k] != s:
            continue
        load = ranges.replica_load[row, p]
        if ranges.lease[p] >= 0 and ranges.first[p] + ranges.lease[p] == k:
            load += ranges.lease_load[row, p]
        if hot.size[0] < hot.load.size:
            i = hot.size[0]
            hot.size[0] += 1
            while i > 0 and hotter(hot, (i - 1) // 2, load, p):
                move_entry(hot, (i - 1) // 2, i)
                i = (i - 1) // 2
            put_entry(hot, i, k, p, load)
        elif not hotter(hot, 0, load, p):
            sift(hot, hot.size[0], k, p, load)
    for end in range(hot.size[0] - 1, 0, -1):
        k, p, load = hot.slot[end], hot.range[end], hot.load[end]
        move_entry(hot, 0, end)
        sift(hot, end, k, p, load)


@inlined
def move_entry(hot: HotList, i: int, j: int) -> None:
    """Copy entry ``i`` to ``j``."""
    hot.slot[j] = hot.slot[i]
    hot.range[j] = hot.range[i]
    hot.load[j] = hot.load[i]


@inlined
def put_entry(hot: HotList, i: int, k: int, p: int, load: float) -> None:
    """Write entry ``i``."""
    hot.slot[i] = k
    hot.range[i] = p
    hot.load[i] = load


@no_alloc
def sift(hot: HotList, size: int, k: int, p: int, load: float) -> None:
    """Replace the coldest entry, at the top of a heap of ``size``. O(log H)."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and hotter(hot, child, hot.load[child + 1], hot.range[child + 1]):
            child += 1
        if hotter(hot, child, load, p):
            break
        move_entry(hot, child, i)
        i = child
    put_entry(hot, i, k, p, load)


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
def take_followers(ranges: Ranges, p: int, contenders: Contenders) -> int:
    """Fill in the voters of a range, those that lag as behind; return the leaseholder's store.

    This is stricter than what other transfers ask: here the lease moves for load alone. O(W).
    """
    size = 0
    holder = ranges.first[p] + ranges.lease[p] if ranges.lease[p] >= 0 else NOWHERE
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] < 0 or ranges.role[k] == NON_VOTER or ranges.role[k] == LEARNER:
            continue
        contenders.store[size] = ranges.store[k]
        contenders.behind[size] = k != holder and lags(ranges, p, k)
        size += 1
    contenders.size[0] = size
    return index(ranges.store[holder]) if holder >= 0 else NOWHERE


@inlined
def lags(ranges: Ranges, p: int, k: int) -> bool:
    """Whether a replica is not known to have all that is committed."""
    if ranges.raft[p] == LEADERLESS or ranges.behind[k]:
        return True
    return ranges.raft[p] == LEADING and not ranges.up_to_date[k]


@inlined
def least_loaded(stores: Stores, row: int, besides: int, contenders: Contenders) -> int:
    """Return the place of the eligible one with the least load, ``besides`` apart, or -1. O(W)."""
    best = NOWHERE
    for i in range(contenders.size[0]):
        s = contenders.store[i]
        if not contenders.eligible[i] or s == besides:
            continue
        if best >= 0:
            load, least = stores.amount[row, s], stores.amount[row, contenders.store[best]]
            if load > least or (load == least and s > contenders.store[best]):
                continue
        best = i
    return best


@inlined
def worth_moving(
    load: LoadSettings, mean: float, source: float, best: float, impact: float
) -> bool:
    """Whether load of that ``impact`` should go from a store to the ``best`` one there is."""
    if best > source or source <= overfull_load(load, mean):
        return False
    return max(source - impact, 0.0) - best >= load.difference


@no_alloc
def lease_by_load(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    lease_settings: LeaseSettings,
    book: LeaseBook,
    workload: Workload,
    load: LoadSettings,
    ranges: Ranges,
    mean: float,
    p: int,
    contenders: Contenders,
) -> tuple[int, int]:
    """Return the store to which a hot range's lease should go, or -1, and MOVES or why not.

    ``mean`` is the load of stores on the average. O(W E).
    """
    here = take_followers(ranges, p, contenders)
    row = load.row
    if here < 0 or load_of(ranges, row, p) < load.lease_share * stores.amount[row, here]:
        return NOWHERE, TOO_LITTLE
    mark_eligible(
        localities, stores, configs, lease_settings, book, index(ranges.config[p]),
        index(ranges.raft[p]), here,
        False, contenders,
    )  # fmt: skip
    best = least_loaded(stores, row, here, contenders)
    if best < 0:
        return NOWHERE, NO_BETTER
    target = contenders.store[best]
    source = stores.amount[row, here]
    if not worth_moving(load, mean, source, stores.amount[row, target], ranges.lease_load[row, p]):
        return NOWHERE, NO_BETTER
    if prefers_local(localities, workload, p, here, target):
        return NOWHERE, STAYS_LOCAL
    return target, MOVES
