"""The one incremental state that every search shares: what is fixed, what moves, what a move costs.

``Problem`` holds what a search never changes, ``State`` what it does; both are tuples of C-contiguous
arrays, so that a kernel takes two arguments and not sixty. N nodes, P partitions, K replicas,
G groups, D dimensions, L levels, Q rules, M masks.

A *domain id* is global: the domains of level 0 come first, then those of level 1, and so on; the
last level (number L) is the node itself, so ``domain[L, n] == domain_offset[L] + n``. A node without
a domain on a level has -1 there, and limits on that level do not see it.

Loads stay in the units they came in. The level that a search aims at is a *watermark*: a node costs
``weight[d]`` for every unit of load above ``watermark[d, n]``, which is what the public machine
reassignment problem charges, and with ``watermark = (1 + tolerance) * fair share`` it is levelness.

Everything here is inlined into the kernel that calls it, which should be ``lean`` itself: then a call
of ``admits`` takes some 60 ns and one of ``delta`` 45 ns, otherwise a microsecond and more.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.jit import inlined, lean

VOTER = 0
NON_VOTER = 1


class NodeArrays(NamedTuple):
    """Per node. Dimension-major, so that a scan over nodes is contiguous."""

    capacity: NDArray[np.float64]  # (D, N) hard limit, inf for none
    inverse: NDArray[np.float64]  # (D, N) 1 / capacity; 0 where that is inf; huge where 0
    watermark: NDArray[np.float64]  # (D, N) load above it costs
    weight: NDArray[np.float64]  # (D,) cost of one unit above the watermark
    transient: NDArray[np.bool_]  # (D,) a moved replica counts on both ends
    accepts: NDArray[np.bool_]  # (N,) may receive a replica (alive, accepting, not gone)
    leads: NDArray[np.bool_]  # (N,) may hold a leader
    max_replicas: NDArray[np.int32]  # (N,) most replicas; 2**31 - 1 for no limit
    proportion_of: NDArray[np.int32]  # (B, 2) dimensions (a, b): charge ratio * free_a - free_b
    proportion: NDArray[np.float64]  # (B, 2) ratio, weight


class PartitionArrays(NamedTuple):
    """Per partition, and per replica where it says so."""

    first: NDArray[np.int64]  # (P + 1,) its replicas are first[p] : first[p + 1]
    owner: NDArray[np.int32]  # (K,) partition of each replica
    movable: NDArray[np.bool_]  # (K,) not pinned
    home: NDArray[np.int32]  # (K,) the node it came from, -1 none
    leader_load: NDArray[np.float64]  # (P, D)
    voter_load: NDArray[np.float64]  # (P, D)
    non_voter_load: NDArray[np.float64]  # (P, D)
    group: NDArray[np.int32]  # (P,)
    rule: NDArray[np.int32]  # (P,) row of the rule tables
    mask: NDArray[np.int32]  # (P,) row of ``RuleArrays.allowed``
    forbidden_first: NDArray[np.int64]  # (P + 1,)
    forbidden: NDArray[np.int32]  # (F,) nodes on which this partition is disabled


class DomainArrays(NamedTuple):
    """Where a node sits, and who sits in a domain."""

    domain: NDArray[np.int32]  # (L + 1, N) global domain id, -1 for a missing tier
    domain_offset: NDArray[np.int64]  # (L + 2,) first id of each level
    member_first: NDArray[np.int64]  # (domains + 1,)
    member: NDArray[np.int32]  # (.,) nodes of each domain, ascending
    limited: NDArray[np.int32]  # (C,) levels that have a capacity of their own
    level_capacity: NDArray[np.float64]  # (D, domains) inf for none


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
    group_term_first: NDArray[np.int64]  # (G + 1,) terms that bind the group as a whole
    group_term: NDArray[np.int32]  # (., 3) as ``term``
    needs_first: NDArray[np.int64]  # (G + 1,) groups that this group needs near it
    needs: NDArray[np.int32]  # (., 2) group, level
    needed_first: NDArray[np.int64]  # (G + 1,) groups that need this group near them
    needed: NDArray[np.int32]  # (., 2) group, level
    near_base: NDArray[np.int64]  # (G, L + 1) where a group's counts per domain start, -1 none


class MoveArrays(NamedTuple):
    """What moving costs."""

    move_cost: NDArray[np.float64]  # (P,)
    group_weight: float  # times the largest number of moved replicas of one group
    distance_weight: float  # times the distance from home
    level_distance: NDArray[np.float64]  # (L + 1,) by the widest level that differs; last: none does
    distance: NDArray[np.float64]  # (N, N), or (0, 0) to use level_distance


class Problem(NamedTuple):
    """What a search never changes."""

    nodes: NodeArrays
    partitions: PartitionArrays
    domains: DomainArrays
    rules: RuleArrays
    moves: MoveArrays


class State(NamedTuple):
    """What a search changes."""

    node: NDArray[np.int32]  # (K,) -1 none
    role: NDArray[np.uint8]  # (K,) VOTER or NON_VOTER; who leads is ``leader`` alone
    leader: NDArray[np.int16]  # (P,) slot that leads, -1 none
    load: NDArray[np.float64]  # (D, N)
    held: NDArray[np.float64]  # (D, N) transient load of replicas that left
    replicas: NDArray[np.int32]  # (N,)
    leaders: NDArray[np.int32]  # (N,)
    domain_load: NDArray[np.float64]  # (D, domains) on limited levels only
    group_count: NDArray[np.int32]  # replicas of a group per domain, one run per group limit
    group_domains: NDArray[np.int32]  # (.,) distinct domains, one per group limit
    group_inside: NDArray[np.int32]  # (.,) replicas inside the mask, one per group term
    near_count: NDArray[np.int32]  # replicas of a tied group per domain
    moved: NDArray[np.int32]  # (G,) moved replicas of each group
    moved_histogram: NDArray[np.int32]  # groups by number of moved replicas
    moved_most: NDArray[np.int32]  # (1,) largest entry of ``moved``


@inlined
def leads_now(first: NDArray[np.int64], leader: NDArray[np.int16], p: int, k: int) -> bool:
    """Whether replica ``k`` of partition ``p`` is its leader."""
    return leader[p] >= 0 and k == first[p] + leader[p]


@inlined
def load_of(partitions: PartitionArrays, state: State, k: int, d: int) -> float:
    """Load of replica ``k`` in dimension ``d``, in the role it has now."""
    p = partitions.owner[k]
    if leads_now(partitions.first, state.leader, p, k):
        return partitions.leader_load[p, d]
    if state.role[k] == NON_VOTER:
        return partitions.non_voter_load[p, d]
    return partitions.voter_load[p, d]


@inlined
def count_in_domain(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    domain: NDArray[np.int32],
    p: int,
    except_k: int,
    level: int,
    where: int,
) -> int:
    """Replicas of ``p`` other than ``except_k`` whose node lies in domain ``where`` of ``level``."""
    count = 0
    for j in range(first[p], first[p + 1]):
        if j != except_k and node[j] >= 0 and domain[level, node[j]] == where:
            count += 1
    return count


@inlined
def distinct_domains(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    domain: NDArray[np.int32],
    p: int,
    moved_k: int,
    target: int,
    level: int,
) -> int:
    """Distinct domains that ``p`` touches on ``level`` if ``moved_k`` sat on ``target`` (-1: nowhere)."""
    count = 0
    for j in range(first[p], first[p + 1]):
        at = target if j == moved_k else node[j]
        if at < 0 or domain[level, at] < 0:
            continue
        seen = False
        for i in range(first[p], j):
            other = target if i == moved_k else node[i]
            if other >= 0 and domain[level, other] == domain[level, at]:
                seen = True
                break
        if not seen:
            count += 1
    return count


@inlined
def skew_of(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    domains: DomainArrays,
    allowed: NDArray[np.bool_],
    p: int,
    moved_k: int,
    target: int,
    level: int,
) -> int:
    """Most minus fewest replicas of ``p`` in the domains of ``level`` that hold an allowed node."""
    least = 1 << 30
    most = 0
    for where in range(domains.domain_offset[level], domains.domain_offset[level + 1]):
        eligible = False
        for i in range(domains.member_first[where], domains.member_first[where + 1]):
            if allowed[domains.member[i]]:
                eligible = True
                break
        count = count_in_domain(first, node, domains.domain, p, moved_k, level, where)
        if target >= 0 and domains.domain[level, target] == where:
            count += 1
        most = max(most, count)
        if eligible:
            least = min(least, count)
    return max(0, most - least)


@inlined
def may_stand(problem: Problem, p: int, n: int) -> bool:
    """Whether a replica of ``p`` may be put on ``n`` at all: the node accepts, mask and bans allow."""
    if not problem.nodes.accepts[n]:
        return False
    partitions = problem.partitions
    if not problem.rules.allowed[partitions.mask[p], n]:
        return False
    for i in range(partitions.forbidden_first[p], partitions.forbidden_first[p + 1]):
        if partitions.forbidden[i] == n:
            return False
    return True


@inlined
def fits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether node ``n`` and the domains around it have room for replica ``k``."""
    nodes = problem.nodes
    if state.replicas[n] >= nodes.max_replicas[n]:
        return False
    returns = problem.partitions.home[k] == n
    for d in range(nodes.capacity.shape[0]):
        more = load_of(problem.partitions, state, k, d)
        there = state.load[d, n] + state.held[d, n]
        if returns and nodes.transient[d]:
            there -= more
        if there + more > nodes.capacity[d, n]:
            return False
    domains = problem.domains
    for i in range(domains.limited.shape[0]):
        level = domains.limited[i]
        where = domains.domain[level, n]
        if where < 0 or (state.node[k] >= 0 and domains.domain[level, state.node[k]] == where):
            continue
        for d in range(nodes.capacity.shape[0]):
            more = load_of(problem.partitions, state, k, d)
            if state.domain_load[d, where] + more > domains.level_capacity[d, where]:
                return False
    return True


@inlined
def keeps_limits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` breaks no limit of its partition, or mends more than it breaks.

    A limit that is broken already may stay as broken as it is, never become worse.
    """
    partitions, rules, domains = problem.partitions, problem.rules, problem.domains
    p = partitions.owner[k]
    q = partitions.rule[p]
    here = state.node[k]
    for i in range(rules.limit_first[q], rules.limit_first[q + 1]):
        level = rules.limit[i, 0]
        where = domains.domain[level, n]
        same = here >= 0 and domains.domain[level, here] == where
        if rules.limit[i, 1] >= 0 and where >= 0 and not same:
            others = count_in_domain(
                partitions.first, state.node, domains.domain, p, k, level, where
            )
            if others >= rules.limit[i, 1]:
                return False
        if same:
            continue
        if rules.limit[i, 2] >= 0 or rules.limit[i, 3] >= 0:
            before = distinct_domains(
                partitions.first, state.node, domains.domain, p, k, here, level
            )
            after = distinct_domains(partitions.first, state.node, domains.domain, p, k, n, level)
            if rules.limit[i, 2] >= 0 and after < rules.limit[i, 2] and after < before:
                return False
            if rules.limit[i, 3] >= 0 and after > rules.limit[i, 3] and after > before:
                return False
        if rules.limit[i, 4] >= 0:
            allowed = rules.allowed[partitions.mask[p]]
            after = skew_of(partitions.first, state.node, domains, allowed, p, k, n, level)
            if after > rules.limit[i, 4] and after > skew_of(
                partitions.first, state.node, domains, allowed, p, k, here, level
            ):
                return False
    return True


@inlined
def keeps_terms(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` leaves every term of its rule as well met as it was."""
    partitions, rules = problem.partitions, problem.rules
    p = partitions.owner[k]
    q = partitions.rule[p]
    here = state.node[k]
    for i in range(rules.term_first[q], rules.term_first[q + 1]):
        if rules.term[i, 1] and state.role[k] == NON_VOTER:
            continue
        mask = rules.term[i, 2]
        if rules.term_mask[mask, n]:
            continue
        if rules.term[i, 0] < 0:  # every such replica must stand inside
            return False
        if here < 0 or not rules.term_mask[mask, here]:
            # outside before and after: fine while enough others can still stand inside
            others_inside = 0
            others_outside = 0
            for j in range(partitions.first[p], partitions.first[p + 1]):
                if j == k or (rules.term[i, 1] and state.role[j] == NON_VOTER):
                    continue
                if state.node[j] >= 0 and rules.term_mask[mask, state.node[j]]:
                    others_inside += 1
                elif state.node[j] < 0:
                    others_outside += 1
            if here < 0 and others_inside + others_outside < rules.term[i, 0]:
                return False
            continue
        inside = 0
        for j in range(partitions.first[p], partitions.first[p + 1]):
            if j == k or (rules.term[i, 1] and state.role[j] == NON_VOTER):
                continue
            if state.node[j] >= 0 and rules.term_mask[mask, state.node[j]]:
                inside += 1
        if inside < rules.term[i, 0]:
            return False
    return True


@inlined
def keeps_group_limits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether moving ``k`` to ``n`` leaves every limit and term of its group as well met as it was."""
    rules, domains = problem.rules, problem.domains
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = state.node[k]
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = rules.group_limit[i, 0]
        to = domains.domain[level, n]
        come_from = domains.domain[level, here] if here >= 0 else -1
        if to == come_from:
            continue
        base = rules.group_base[i] - domains.domain_offset[level]
        if to >= 0 and rules.group_limit[i, 1] >= 0:
            if state.group_count[base + to] >= rules.group_limit[i, 1]:
                return False
        lost = come_from >= 0 and state.group_count[base + come_from] == 1
        gained = to >= 0 and state.group_count[base + to] == 0
        after = state.group_domains[i] - int(lost) + int(gained)
        if lost and not gained and 0 <= after < rules.group_limit[i, 2]:
            return False
        if gained and not lost and 0 <= rules.group_limit[i, 3] < after:
            return False
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        mask = rules.term_mask[rules.group_term[i, 2]]
        if mask[n] or (rules.group_term[i, 1] and state.role[k] == NON_VOTER):
            continue
        if here >= 0 and mask[here] and state.group_inside[i] <= rules.group_term[i, 0]:
            return False
    return True


@inlined
def keeps_near(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether every group still has the groups it needs in each domain that it touches."""
    rules, domains = problem.rules, problem.domains
    g = problem.partitions.group[problem.partitions.owner[k]]
    here = state.node[k]
    for i in range(rules.needs_first[g], rules.needs_first[g + 1]):
        level = rules.needs[i, 1]
        to = domains.domain[level, n]
        if to < 0 or (here >= 0 and domains.domain[level, here] == to):
            continue
        base = rules.near_base[rules.needs[i, 0], level] - domains.domain_offset[level]
        if state.near_count[base + to] == 0:
            return False
    if here < 0:
        return True
    for i in range(rules.needed_first[g], rules.needed_first[g + 1]):
        level = rules.needed[i, 1]
        come_from = domains.domain[level, here]
        if come_from < 0 or domains.domain[level, n] == come_from:
            continue
        own = rules.near_base[g, level] - domains.domain_offset[level]
        if state.near_count[own + come_from] > 1:
            continue
        other = rules.near_base[rules.needed[i, 0], level] - domains.domain_offset[level]
        if state.near_count[other + come_from] > 0:
            return False
    return True


@inlined
def admits(problem: Problem, state: State, k: int, n: int) -> bool:
    """Whether replica ``k`` may move to node ``n``: every hard rule, and room.

    Complexity: O(R * levels + D), R the replicas of its partition.
    """
    p = problem.partitions.owner[k]
    here = state.node[k]
    if here == n or not problem.partitions.movable[k]:
        return False
    if leads_now(problem.partitions.first, state.leader, p, k):
        rank = problem.rules.lead_rank[problem.partitions.rule[p]]
        if not problem.nodes.leads[n] or rank[n] == 255:
            return False
        if here >= 0 and rank[n] > rank[here]:
            return False
    return (
        may_stand(problem, p, n)
        and fits(problem, state, k, n)
        and keeps_limits(problem, state, k, n)
        and keeps_terms(problem, state, k, n)
        and keeps_group_limits(problem, state, k, n)
        and keeps_near(problem, state, k, n)
    )


@inlined
def admits_leader(problem: Problem, state: State, p: int, slot: int) -> bool:
    """Whether ``slot`` may lead ``p``: a voter, on a node that leads, no less preferred, with room."""
    partitions = problem.partitions
    k = partitions.first[p] + slot
    n = state.node[k]
    if n < 0 or state.role[k] != VOTER or slot == state.leader[p] or not problem.nodes.leads[n]:
        return False
    rank = problem.rules.lead_rank[partitions.rule[p]]
    if rank[n] == 255:
        return False
    if state.leader[p] >= 0:
        now = state.node[partitions.first[p] + state.leader[p]]
        if now >= 0 and problem.nodes.leads[now] and rank[n] > rank[now]:
            return False
    for d in range(problem.nodes.capacity.shape[0]):
        more = partitions.leader_load[p, d] - partitions.voter_load[p, d]
        if more > 0.0:
            there = state.load[d, n] + state.held[d, n] + more
            if there > problem.nodes.capacity[d, n]:
                return False
    return True


@inlined
def excess_cost(problem: Problem, state: State, n: int) -> float:
    """Cost of node ``n`` as it stands: load above its watermarks, and dimensions out of proportion."""
    nodes = problem.nodes
    cost = 0.0
    for d in range(nodes.watermark.shape[0]):
        cost += nodes.weight[d] * max(0.0, state.load[d, n] - nodes.watermark[d, n])
    for b in range(nodes.proportion.shape[0]):
        i, j = nodes.proportion_of[b, 0], nodes.proportion_of[b, 1]
        free_i = nodes.capacity[i, n] - state.load[i, n]
        free_j = nodes.capacity[j, n] - state.load[j, n]
        cost += nodes.proportion[b, 1] * max(0.0, nodes.proportion[b, 0] * free_i - free_j)
    return cost


@inlined
def excess_cost_with(problem: Problem, state: State, n: int, k: int, sign: float) -> float:
    """Cost of node ``n`` with replica ``k`` added (``sign`` 1.0) or taken away (-1.0)."""
    nodes = problem.nodes
    cost = 0.0
    for d in range(nodes.watermark.shape[0]):
        load = state.load[d, n] + sign * load_of(problem.partitions, state, k, d)
        cost += nodes.weight[d] * max(0.0, load - nodes.watermark[d, n])
    for b in range(nodes.proportion.shape[0]):
        i, j = nodes.proportion_of[b, 0], nodes.proportion_of[b, 1]
        more_i = sign * load_of(problem.partitions, state, k, i)
        more_j = sign * load_of(problem.partitions, state, k, j)
        free_i = nodes.capacity[i, n] - state.load[i, n] - more_i
        free_j = nodes.capacity[j, n] - state.load[j, n] - more_j
        cost += nodes.proportion[b, 1] * max(0.0, nodes.proportion[b, 0] * free_i - free_j)
    return cost


@inlined
def distance(problem: Problem, a: int, b: int) -> float:
    """Distance between two nodes: the matrix if there is one, else by the widest level that differs."""
    moves, domains = problem.moves, problem.domains
    if a < 0 or b < 0:
        return 0.0
    if moves.distance.shape[0] > 0:
        return moves.distance[a, b]
    levels = domains.domain.shape[0] - 1
    for level in range(levels):
        if domains.domain[level, a] != domains.domain[level, b]:
            return moves.level_distance[level]
    return moves.level_distance[levels]


@inlined
def move_cost(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of the cost of movement if ``k`` went to ``n``: its own, its group's and its distance's."""
    partitions, moves = problem.partitions, problem.moves
    p = partitions.owner[k]
    home = partitions.home[k]
    here = state.node[k]
    was_moved = here != home
    is_moved = n != home
    cost = moves.distance_weight * (distance(problem, home, n) - distance(problem, home, here))
    if is_moved and not was_moved:
        cost += moves.move_cost[p]
        if moves.group_weight != 0.0 and state.moved[partitions.group[p]] == state.moved_most[0]:
            cost += moves.group_weight
    elif was_moved and not is_moved:
        cost -= moves.move_cost[p]
        if moves.group_weight != 0.0:
            most = state.moved_most[0]
            if state.moved[partitions.group[p]] == most and state.moved_histogram[most] == 1:
                cost -= moves.group_weight
    return cost


@inlined
def delta(problem: Problem, state: State, k: int, n: int) -> float:
    """Change of the total cost if replica ``k`` moved to node ``n``. O(D + proportions)."""
    here = state.node[k]
    change = excess_cost_with(problem, state, n, k, 1.0) - excess_cost(problem, state, n)
    if here >= 0:
        change += excess_cost_with(problem, state, here, k, -1.0) - excess_cost(
            problem, state, here
        )
    return change + move_cost(problem, state, k, n)


@inlined
def count_move(state: State, g: int, by: int) -> None:
    """Book one more (``by`` 1) or one fewer (-1) moved replica of group ``g``."""
    before = state.moved[g]
    after = before + by
    state.moved[g] = after
    state.moved_histogram[before] -= 1
    state.moved_histogram[after] += 1
    if after > state.moved_most[0]:
        state.moved_most[0] = after
    while state.moved_most[0] > 0 and state.moved_histogram[state.moved_most[0]] == 0:
        state.moved_most[0] -= 1


@inlined
def book(problem: Problem, state: State, k: int, n: int, sign: int) -> None:
    """Add replica ``k`` to the books of node ``n`` (``sign`` 1), or take it out of them (-1)."""
    partitions, domains, rules = problem.partitions, problem.domains, problem.rules
    p = partitions.owner[k]
    home = partitions.home[k]
    state.replicas[n] += sign
    if leads_now(partitions.first, state.leader, p, k):
        state.leaders[n] += sign
    for d in range(state.load.shape[0]):
        more = sign * load_of(partitions, state, k, d)
        state.load[d, n] += more
        if problem.nodes.transient[d] and home == n:
            state.held[d, n] -= more
    for i in range(domains.limited.shape[0]):
        where = domains.domain[domains.limited[i], n]
        if where >= 0:
            for d in range(state.load.shape[0]):
                state.domain_load[d, where] += sign * load_of(partitions, state, k, d)
    g = partitions.group[p]
    for i in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
        level = rules.group_limit[i, 0]
        where = domains.domain[level, n]
        if where >= 0:
            at = rules.group_base[i] - domains.domain_offset[level] + where
            before = state.group_count[at]
            state.group_count[at] = before + sign
            if sign > 0 and before == 0:
                state.group_domains[i] += 1
            elif sign < 0 and before == 1:
                state.group_domains[i] -= 1
    for i in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
        if rules.group_term[i, 1] and state.role[k] == NON_VOTER:
            continue
        if rules.term_mask[rules.group_term[i, 2], n]:
            state.group_inside[i] += sign
    if state.near_count.shape[0] > 0:
        for level in range(rules.near_base.shape[1]):
            if rules.near_base[g, level] >= 0 and domains.domain[level, n] >= 0:
                at = rules.near_base[g, level] - domains.domain_offset[level]
                state.near_count[at + domains.domain[level, n]] += sign


@inlined
def apply(problem: Problem, state: State, k: int, n: int) -> None:
    """Move replica ``k`` to node ``n`` (-1: nowhere) and keep every count and load in step."""
    here = state.node[k]
    home = problem.partitions.home[k]
    if here >= 0:
        book(problem, state, k, here, -1)
    if here == home and n != home:
        count_move(state, problem.partitions.group[problem.partitions.owner[k]], 1)
    elif here != home and n == home:
        count_move(state, problem.partitions.group[problem.partitions.owner[k]], -1)
    state.node[k] = n
    if n >= 0:
        book(problem, state, k, n, 1)


@inlined
def lead(problem: Problem, state: State, p: int, slot: int) -> None:
    """Let ``slot`` (-1: nobody) lead partition ``p``; the leader's extra load goes with it."""
    partitions = problem.partitions
    before = state.leader[p]
    for turn in range(2):
        s = before if turn == 0 else slot
        if s < 0:
            continue
        k = partitions.first[p] + s
        n = state.node[k]
        if n < 0:
            continue
        sign = -1.0 if turn == 0 else 1.0
        state.leaders[n] += -1 if turn == 0 else 1
        for d in range(state.load.shape[0]):
            more = sign * (partitions.leader_load[p, d] - partitions.voter_load[p, d])
            state.load[d, n] += more
            if problem.nodes.transient[d] and partitions.home[k] == n:
                state.held[d, n] -= more
        for i in range(problem.domains.limited.shape[0]):
            where = problem.domains.domain[problem.domains.limited[i], n]
            if where >= 0:
                for d in range(state.load.shape[0]):
                    more = sign * (partitions.leader_load[p, d] - partitions.voter_load[p, d])
                    state.domain_load[d, where] += more
    state.leader[p] = slot


@lean
def settle(problem: Problem, state: State) -> None:
    """Fill every book of ``state`` from ``node``, ``role`` and ``leader``, which are given.

    The counters must come in as zeros. ``held`` starts as what the replicas that already left their
    home would hold there, so a start other than the placement that came in is priced correctly.
    """
    partitions = problem.partitions
    groups = state.moved.shape[0]
    state.moved_histogram[0] = groups
    any_transient = False
    for d in range(state.load.shape[0]):
        any_transient |= problem.nodes.transient[d]
    for k in range(state.node.shape[0]):
        home = partitions.home[k]
        if any_transient and home >= 0:
            for d in range(state.load.shape[0]):
                if problem.nodes.transient[d]:
                    state.held[d, home] += load_of(partitions, state, k, d)
        if state.node[k] >= 0:
            book(problem, state, k, state.node[k], 1)
        if state.node[k] != home:
            count_move(state, partitions.group[partitions.owner[k]], 1)


@lean
def total_cost(problem: Problem, state: State) -> float:
    """Cost of the whole state, from scratch: nodes, moves, groups, distances. O(N D + K)."""
    cost = 0.0
    for n in range(state.replicas.shape[0]):
        cost += excess_cost(problem, state, n)
    partitions, moves = problem.partitions, problem.moves
    for k in range(state.node.shape[0]):
        home = partitions.home[k]
        if state.node[k] != home:
            cost += moves.move_cost[partitions.owner[k]]
            cost += moves.distance_weight * distance(problem, home, state.node[k])
    return cost + moves.group_weight * state.moved_most[0]
