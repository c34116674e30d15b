"""Tuples of arrays: the inputs, scratch arrays and reports of simulated losses of nodes.

N nodes, P partitions, K replicas, D dimensions, L tiers, Q classes of demands, A the most replicas
that may be lost at once. All inputs of the audit are counted and compiled apart from those of the
search.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference

# kinds of limits, in the middle column of ``Demanded.limit``; ``row_demands`` binds them
SPREAD, MIN_DOMAINS, MAX_DOMAINS = 0, 1, 2

# ways in which a partition is endangered: without data, short of live replicas, no quorum
DANGERS = 3


@by_reference
class Stock(NamedTuple):
    """The cluster before anything is lost; never written to."""

    first: NDArray[np.int64]  # (N + 1,) its replicas are member[first[n] : first[n + 1]]
    member: NDArray[np.int64]  # (.,) replicas by node
    share: NDArray[np.float64]  # (D,) part of the cluster's room that a load of 1 takes
    leader: NDArray[np.int16]  # (P,) slot that leads
    load: NDArray[np.float64]  # (D, N) counted anew, not by the search
    wanted: NDArray[np.float64]  # (D,) load of all that is wanted
    unit: NDArray[np.float64]  # (D,) of which all loads are multiples; 0 none
    alike: NDArray[np.bool_]  # (D,) whether every replica weighs one unit
    even: NDArray[np.float64]  # (D, N) share of capacity where all is as level as rules permit
    least: NDArray[np.float64]  # (D, N) load then, in whole units
    roomy: NDArray[np.float64]  # (D,) with more room than this in all, no rule forces any load
    lead_even: NDArray[np.float64]  # (N,) leaders by lead weight, as ``even``
    lead_least: NDArray[np.float64]  # (N,) the same in whole ones
    leads_alike: bool  # whether no rule forces leaders anywhere
    lead_weight: NDArray[np.float64]  # (N,) 0 where none may lead
    led: int  # partitions that are led; 0 where none is led
    bytes_dimension: int  # the dimension that moves; -1 none


@by_reference
class Demanded(NamedTuple):
    """What is demanded of partitions and nodes, as the audit reads it; never written to."""

    first: NDArray[np.int64]  # (P + 1,) its replicas
    role: NDArray[np.uint8]  # (K,) 0 votes
    replicas: NDArray[np.int32]  # (P,) wanted
    min_active: NDArray[np.int32]  # (P,)
    rule: NDArray[np.int32]  # (P,) class of demands
    is_open: NDArray[np.bool_]  # (Q, N) nodes that meet what every replica requires
    limit_first: NDArray[np.int64]  # (Q + 1,)
    limit: NDArray[np.int32]  # (., 3) tier, kind, amount
    domain: NDArray[np.int32]  # (L + 1, N) domain by tier, -1 none; the last tier is the node
    forbidden_first: NDArray[np.int64]  # (P + 1,)
    forbidden: NDArray[np.int32]  # (F,) nodes on which the partition is disabled
    capacity: NDArray[np.float64]  # (D, N)
    max_replicas: NDArray[np.int32]  # (N,) -1 none
    replicas_on: NDArray[np.int64]  # (N,)
    leaders_on: NDArray[np.int64]  # (N,)
    serves: NDArray[np.bool_]  # (N,) alive and not gone
    holds: NDArray[np.bool_]  # (N,) may hold replicas
    receives: NDArray[np.bool_]  # (N,) may be given replicas
    leads: NDArray[np.bool_]  # (N,) may lead


@by_reference
class Asked(NamedTuple):
    """The goals in numbers; -1 where nothing is asked."""

    tolerance: NDArray[np.float64]  # (D,)
    leaders: float


@by_reference
class LossReport(NamedTuple):
    """What became of a loss: the first entries are those of the replicas lost, or that moved."""

    replica: NDArray[np.int64]  # (A,) what was lost, in the order of placing, then what gave way
    urgency: NDArray[np.int64]  # (A,) by which they are placed, the least first
    size: NDArray[np.float64]  # (A,) and then by this
    node: NDArray[np.int32]  # (A,) where each is now: the lost node where it waits for a budget
    slot: NDArray[np.int16]  # (A,) slot that leads its partition now
    endangered: NDArray[np.int32]  # (3, A) partitions lost, under min_active, without quorum
    endangered_count: NDArray[np.int64]  # (3,)
    load: NDArray[np.float64]  # (D, N) as it is now, added up apart from the search
    replicas: NDArray[np.int64]  # (N,)
    leaders: NDArray[np.int64]  # (N,)
    most: NDArray[np.float64]  # (D,) highest utilisation of a node that serves
    fair: NDArray[np.float64]  # (D,) load on nodes that serve over capacity that receives
    moved: NDArray[np.float64]  # (D,) load of what moved
    gave_way: NDArray[np.int64]  # (1,) replicas that moved and were not lost
    waits: NDArray[np.int64]  # (3,) replicas that wait; 1 if they are known to fit; 1 if no target
    # was exceeded to place what does not wait
    lost: NDArray[np.bool_]  # (N,) scratch: nodes lost now
    hosts: NDArray[np.bool_]  # (N,) scratch: nodes that a rule of a row leaves open
    most_leaders: NDArray[np.float64]  # (N,) scratch: partitions that a node may lead
    forced: NDArray[np.bool_]  # (K,) all false
    led: NDArray[np.bool_]  # (P,) false while a partition lacks its leader; else true
    every: NDArray[np.bool_]  # (P,) scratch: all true, before and after


@by_reference
class Figures(NamedTuple):
    """What became of each of S losses; room for E partitions that they endanger, in all."""

    moves: NDArray[np.int64]  # (S,) replicas moved; -1 where it takes a search: nothing is reported
    gave_way: NDArray[np.int64]  # (S,) as in ``LossReport``
    most: NDArray[np.float64]  # (S, D) as in ``LossReport``
    fair: NDArray[np.float64]  # (S, D)
    moved: NDArray[np.float64]  # (S, D)
    endangered_count: NDArray[np.int64]  # (S, 3)
    endangered: NDArray[np.int32]  # (E,) loss by loss, list by list, each ascending


@by_reference
class Kept(NamedTuple):
    """What the search changes on the way, as it was; never written to."""

    load: NDArray[np.float64]  # (D, N)
    held: NDArray[np.float64]  # (D, N)
    domain_load: NDArray[np.float64]  # (D, domains)
    accepts: NDArray[np.bool_]  # (N,)
    leads: NDArray[np.bool_]  # (N,)
    allowed: NDArray[np.bool_]  # (M, N)
    closed: NDArray[np.float64]  # (M, N)
