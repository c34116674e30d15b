"""Leases follow the workload: the nearer a replica to where requests come from, the better.

References
----------
CockroachDB, ``allocator.go``, ``loadBasedLeaseRebalanceScore`` and
``shouldTransferLeaseForAccessLocality``.
"""

import math
from typing import NamedTuple

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.cockroach.tables import Flags, Floats, Ints, Localities, Longs

ENOUGH_SECONDS = 30.0
"""Of statistics; before that no lease is moved by them, nor by counts."""

LEAST_WEIGHT = 0.001
TOLERANCE = 0.1
"""Share of the mean: twice what is tolerated in counts alone, against thrashing by small noise."""


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
def has_statistics(workload: Workload, p: int) -> bool:
    """Whether it is known where requests for a range come from, for however long."""
    return workload.seconds.size > 0 and workload.seconds[p] >= 0.0


@inlined
def weight(localities: Localities, workload: Workload, p: int, s: int) -> float:
    """Return the requests per second for a range that come from near a store. O(origins)."""
    total = 0.0
    for i in range(workload.first[p], workload.first[p + 1]):
        total += workload.near[workload.origin[i], localities.alike[s]] * workload.rate[i]
    return max(total, LEAST_WEIGHT)


@inlined
def adjustment_between(
    localities: Localities, workload: Workload, p: int, source: int, remote: int
) -> float:
    """Return how much nearer to a range's requests a remote store is than its leaseholder's."""
    return workload_adjustment(
        workload.eagerness,
        weight(localities, workload, p, remote),
        weight(localities, workload, p, source),
        workload.latency[localities.host[source], localities.host[remote]],
    )


@inlined
def prefers_local(
    localities: Localities, workload: Workload, p: int, source: int, remote: int
) -> bool:
    """Whether a range's lease had better stay near its requests than go to ``remote``."""
    if not has_statistics(workload, p) or workload.seconds[p] < ENOUGH_SECONDS:
        return False
    if localities.host[source] == localities.host[remote]:
        return False
    if not workload.located[localities.alike[source]]:
        return False
    if not workload.located[localities.alike[remote]]:
        return False
    return -adjustment_between(localities, workload, p, source, remote) > TOLERANCE
