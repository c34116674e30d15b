"""Define the arrays that all searches share: the constant `Problem` and the mutable `State`.

``Problem`` holds what a search never changes, ``State`` what it does, so that a kernel takes two
arguments and not sixty. All arrays are C-contiguous. N nodes, P partitions, K replicas, G groups, D
dimensions, L levels, Q rules, M masks.

A *domain id* is global: the domains of level 0 come first, then those of level 1, and so on; the
last level (number L) is the node itself, so ``domain[L, n] == domain_offset[L] + n``. A node
without a domain on a level has -1 there, and limits on that level do not see it.

Loads stay in the units they came in. The level that a search aims at is a *watermark*: a node costs
``weight[d]`` for every unit of load above ``watermark[d, n]``, which is what the public machine
reassignment problem charges, and with ``watermark = (1 + tolerance) * fair share`` it is levelness.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only

VOTER = 0
NON_VOTER = 1
UNLIMITED = 2**62
# where a replica may lead: nowhere, only away from where it came from, or on any node that may
NOWHERE, MOVED, ANYWHERE = 0, 1, 2
# columns of a limit: most replicas in a domain, fewest and most domains, and the skew
MOST, FEWEST, WIDEST, SKEW = 1, 2, 3, 4


@by_reference
class NodeArrays(NamedTuple):
    """Per node. Dimension-major, so that a scan over nodes is contiguous."""

    capacity: NDArray[np.float64]  # (D, N) hard limit, inf for none and of nodes that are lost
    inverse: NDArray[np.float64]  # (D, N) 1 / the node's; 0 where that is inf; huge where 0
    watermark: NDArray[np.float64]  # (D, N) load above it costs
    weight: NDArray[np.float64]  # (D,) cost of one unit above the watermark
    transient: NDArray[np.bool_]  # (D,) a moved replica counts on both ends
    accepts: NDArray[np.bool_]  # (N,) may receive a replica (alive, accepting, not gone)
    leads: NDArray[np.bool_]  # (N,) may hold a leader
    max_replicas: NDArray[np.int32]  # (N,) most replicas; 2**31 - 1 for no limit
    proportion_of: NDArray[np.int32]  # (B, 2) dimensions (a, b): charge ratio * free_a - free_b
    proportion: NDArray[np.float64]  # (B, 2) ratio, weight
    hinge_of: NDArray[np.int32]  # (H,) dimension whose load beyond a point costs
    hinge: NDArray[np.float64]  # (H, 2) sign (1: above, -1: below), cost of one unit
    hinge_at: NDArray[np.float64]  # (H, N) the point; inf * sign where a node never pays


@by_reference
class PartitionArrays(NamedTuple):
    """Per partition, and per replica where it says so."""

    first: NDArray[np.int64]  # (P + 1,) its replicas are first[p] : first[p + 1]
    owner: NDArray[np.int32]  # (K,) partition of each replica
    movable: NDArray[np.bool_]  # (K,) not pinned
    home: NDArray[np.int32]  # (K,) the node it came from, -1 none
    ready: NDArray[np.bool_]  # (K,) could lead at once where it came from: it lives and is in sync
    led_from: NDArray[np.int32]  # (P,) the living node that led it at the start, -1 none
    electable: NDArray[np.uint8]  # (K,) where it may lead: ANYWHERE, MOVED, NOWHERE; (0,) all may
    leader_load: NDArray[np.float64]  # (P, D)
    voter_load: NDArray[np.float64]  # (P, D)
    non_voter_load: NDArray[np.float64]  # (P, D)
    group: NDArray[np.int32]  # (P,)
    rule: NDArray[np.int32]  # (P,) row of the rule tables
    mask: NDArray[np.int32]  # (P,) row of ``RuleArrays.allowed``
    forbidden_first: NDArray[np.int64]  # (P + 1,)
    forbidden: NDArray[np.int32]  # (F,) nodes on which this partition is disabled


@by_reference
class DomainArrays(NamedTuple):
    """Where a node sits, and who sits in a domain."""

    domain: NDArray[np.int32]  # (L + 1, N) global domain id, -1 for a missing tier
    domain_offset: NDArray[np.int64]  # (L + 2,) first id of each level
    member_first: NDArray[np.int64]  # (domains + 1,)
    member: NDArray[np.int32]  # (.,) nodes of each domain, ascending
    limited: NDArray[np.int32]  # (C,) levels that have a capacity of their own
    tier_capacity: NDArray[np.float64]  # (D, domains) inf for none


@by_reference
class RuleArrays(NamedTuple):
    """Limits and terms. A limit row is (level, most, fewest, most domains, skew); -1 for none."""

    allowed: NDArray[np.bool_]  # (M, N) nodes that may hold a replica at all
    limit_first: NDArray[np.int64]  # (Q + 1,) partition limits of each rule
    limit: NDArray[np.int32]  # (., 5)
    term_first: NDArray[np.int64]  # (Q + 1,) terms of each rule
    term: NDArray[np.int32]  # (., 3) least count (-1 all), voters only (0/1), row of term_mask
    term_mask: NDArray[np.bool_]  # (T, N)
    lead_rank: NDArray[np.uint8]  # (Q, N) 0 = first choice for a leader, 255 = may not lead
    group_limit_first: NDArray[np.int64]  # (G + 1,) group limits of each group
    group_limit: NDArray[np.int32]  # (., 5)
    group_base: NDArray[np.int64]  # (.,) where each group limit's counts start
    price_of: NDArray[
        np.int32
    ]  # (., 2) of each group limit: row of its first domain, -1 none; step
    price: NDArray[np.float64]  # (T, m) cost of 0, 1, 2 ... replicas; beyond it goes on straight
    group_term_first: NDArray[np.int64]  # (G + 1,) terms that bind the group as a whole
    group_term: NDArray[np.int32]  # (., 3) as ``term``
    needs_first: NDArray[np.int64]  # (G + 1,) groups that this group needs near it
    needs: NDArray[np.int32]  # (., 2) group, level
    needed_first: NDArray[np.int64]  # (G + 1,) groups that need this group near them
    needed: NDArray[np.int32]  # (., 2) group, level
    near_base: NDArray[np.int64]  # (G, L + 1) where a group's counts per domain start, -1 none
    group_open: NDArray[np.bool_]  # as the counts of group limits: domains that a skew looks at


@by_reference
class BudgetArrays(NamedTuple):
    """What a search may spend; `UNLIMITED`, or inf, for no limit. Booked only if it binds."""

    binds: bool
    moves: int
    data: float  # load moved in dimension ``data_dimension``
    data_dimension: int  # -1 none
    of_partition: int  # moves of one partition
    leader_changes: int
    tiers: NDArray[np.int32]  # (B,) levels whose domains have budgets; the node is level L
    into: NDArray[np.int64]  # (domains,) replicas that may enter each
    out_of: NDArray[np.int64]  # (domains,) replicas that may leave each
    source: NDArray[np.bool_]  # (N,) nodes that are alive: what leaves them counts


@by_reference
class MoveArrays(NamedTuple):
    """What moving costs."""

    move_cost: NDArray[np.float64]  # (P,)
    group_weight: float  # times the largest number of moved replicas of one group
    distance_weight: float  # times the distance from home
    tier_distance: NDArray[np.float64]  # (L + 1,) by the widest level that differs; last: none does
    distance: NDArray[np.float64]  # (N, N), or (0, 0) to use tier_distance


@by_reference
class Problem(NamedTuple):
    """What a search never changes."""

    nodes: NodeArrays
    partitions: PartitionArrays
    domains: DomainArrays
    rules: RuleArrays
    moves: MoveArrays
    budgets: BudgetArrays


@by_reference
class State(NamedTuple):
    """What a search changes."""

    node: NDArray[np.int32]  # (K,) -1 none
    role: NDArray[np.uint8]  # (K,) VOTER or NON_VOTER; who leads is ``leader`` alone
    leader: NDArray[np.int16]  # (P,) slot that leads, -1 none
    load: NDArray[np.float64]  # (D, N)
    held: NDArray[np.float64]  # (D, N) transient load of who left, as followers; 0 of dead nodes
    replicas: NDArray[np.int32]  # (N,)
    leaders: NDArray[np.int32]  # (N,)
    domain_load: NDArray[np.float64]  # (D, domains) on limited levels only
    group_count: NDArray[np.int32]  # replicas of a group per domain, one run per group limit
    group_domains: NDArray[np.int32]  # (.,) distinct domains, one per group limit
    group_inside: NDArray[np.int32]  # (.,) replicas inside the mask, one per group term
    near_count: NDArray[np.int32]  # replicas of a tied group per domain
    near_absent: NDArray[np.int32]  # groups that it needs and that are not in that domain
    near_relying: NDArray[np.int32]  # groups that need it and are in that domain
    moved: NDArray[np.int32]  # (G,) moved replicas of each group
    moved_histogram: NDArray[np.int32]  # groups by number of moved replicas
    moved_most: NDArray[np.int32]  # (1,) largest entry of ``moved``
    spent: NDArray[np.float64]  # (3,) moves, data moved, leader changes; budgets bind
    moved_of: NDArray[np.int64]  # (P,) moves of each partition; budgets bind
    came: NDArray[np.int64]  # (domains,) replicas that entered each; budgets bind
    went: NDArray[np.int64]  # (domains,) replicas that left each; budgets bind


@inline_only
def index(value: int) -> int:
    """Widen an index to 64 bits, so that no piece is compiled for two widths or for a constant."""
    return int(np.int64(value))


@inline_only
def is_away(problem: Problem, k: int, n: int) -> int:
    """Whether ``n`` is new to the partition of ``k``: 1 or 0; who trades roles does not move."""
    partitions = problem.partitions
    p = index(partitions.owner[k])
    for i in range(partitions.first[p], partitions.first[p + 1]):
        if partitions.home[i] == n:
            return 0
    return 1


@inline_only
def crossing(problem: Problem, level: int, here: int, n: int) -> tuple[int, int]:
    """Domains of ``level`` that a replica leaves and enters from ``here`` to ``n``, -1 for none.

    -1 and -1 where they are the same.
    """
    domain = problem.domains.domain
    come_from = index(domain[level, here]) if here >= 0 else index(-1)
    to = index(domain[level, n]) if n >= 0 else index(-1)
    if to == come_from:
        return index(-1), index(-1)
    return come_from, to


@inline_only
def leading_node(problem: Problem, state: State, p: int) -> int:
    """Node of the leader of ``p``; -1 where it has none, or the leader is nowhere."""
    if state.leader[p] < 0:
        return index(-1)
    return index(state.node[problem.partitions.first[p] + state.leader[p]])


@inline_only
def leads_now(first: NDArray[np.int64], leader: NDArray[np.int16], p: int, k: int) -> bool:
    """Whether replica ``k`` of ``p`` leads it, by ``first (P + 1,)`` and ``leader (P,)``."""
    return leader[p] >= 0 and k == first[p] + leader[p]


@inline_only
def following_load(partitions: PartitionArrays, state: State, k: int, d: int) -> float:
    """Load of replica ``k`` in dimension ``d`` while it does not lead."""
    p = index(partitions.owner[k])
    if state.role[k] == NON_VOTER:
        return partitions.non_voter_load[p, d]
    return partitions.voter_load[p, d]


@inline_only
def load_of(partitions: PartitionArrays, state: State, k: int, d: int) -> float:
    """Load of replica ``k`` in dimension ``d``, in the role it has now."""
    p = index(partitions.owner[k])
    if leads_now(partitions.first, state.leader, p, k):
        return partitions.leader_load[p, d]
    return following_load(partitions, state, k, d)


@inline_only
def squared_excess(pressure: float, threshold: float) -> float:
    """Square of what ``pressure`` is above ``threshold``."""
    over = pressure - threshold
    return over * over if over > 0.0 else 0.0
