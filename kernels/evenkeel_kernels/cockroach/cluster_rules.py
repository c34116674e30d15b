"""Check a change of a range against rules of the cluster that CockroachDB does not know.

CockroachDB decides by zone configurations, disks, diversity and counts. A cluster may ask for more:
capacities of any dimension and tier, limits per domain, what a group shares, pins, bans. After each
change of a range its row is compared with the one that was accepted last, rule by rule and node by
node: nothing may be broken that was not, nor more than before. The decisions are CockroachDB's own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only
from evenkeel_kernels.cockroach.changes import book
from evenkeel_kernels.cockroach.tables import (
    NON_VOTER,
    VOTER,
    Flags,
    Floats,
    Ints,
    Longs,
    Ranges,
    Stores,
)
from evenkeel_kernels.core.feasibility import beyond_group_limit, beyond_limit, may_stand
from evenkeel_kernels.core.problem import FEWEST, MOST, SKEW, Problem, State, index
from evenkeel_kernels.core.state import move, transfer_leader

FIXED = 4  # what is measured of every range: replicas it lacks, how it is led, in two, and its pins

ROUNDING = 5e-12  # part of a load that sums in another order may differ by


@by_reference
class Rows(NamedTuple):
    """The rows of ranges as they were last accepted; as in `Ranges`."""

    store: Ints
    role: NDArray[np.uint8]
    lease: NDArray[np.int16]
    up_to_date: Flags
    behind: Flags


@by_reference
class ClusterRules(NamedTuple):
    """What the cluster asks, and what it has, with its replicas in the slots of `Ranges`."""

    # problem, state: of the cluster, with replicas on dead nodes, too
    problem: Problem
    state: State
    # carries, serves: (N,) nodes whose loads count, and those that serve
    carries: Flags
    serves: Flags
    idle: Longs  # (I,) nodes whose loads do not count
    # wanted, voters: (P,) replicas of each range, and how many of them vote; of no range where
    # nothing is asked
    wanted: Ints
    voters: Ints
    accepted: Rows  # each range as it was last accepted
    living: Ints  # (K,) store of each replica that was accepted and serves, else -1
    touched: Longs  # (2 W,) scratch: nodes that a change concerns
    # was, now, drift: (M,) scratch: what was broken, what is, and what of it may be rounding
    was: Floats
    now: Floats
    drift: Floats


@device_function
def agrees(rules: ClusterRules, ranges: Ranges, stores: Stores, p: int) -> bool:
    """Whether the cluster allows what has become of a range; else its row is what it was."""
    # O(W) times the limits that bind it, and the domains of those that bind its group
    if rules.wanted.size == 0:
        return True
    many = touch(rules, ranges, p)
    measure(rules, rules.accepted.store, rules.accepted.lease, p, many, rules.was)
    forgive_the_dead(rules, p)
    stands = all_may_stand(rules, ranges, p)
    follow(rules, p, ranges.store, ranges.role, ranges.lease)
    size = measure(rules, ranges.store, ranges.lease, p, many, rules.now)
    for i in range(size):
        was, now = rules.was[i], rules.now[i]
        stands = stands and (now <= 0.0 or (was > 0.0 and now <= was + rules.drift[i]))
    if stands:
        accept(rules, ranges, p)
        return True
    follow(rules, p, rules.accepted.store, rules.accepted.role, rules.accepted.lease)
    restore(rules.accepted, ranges, stores, p)
    return False


@inline_only
def forgive_the_dead(rules: ClusterRules, p: int) -> None:
    """Let what only a dead replica met count as broken before: it did not hold."""
    first, dead = rules.problem.partitions.first, False
    for k in range(first[p], first[p + 1]):
        dead = dead or rules.living[k] != rules.accepted.store[k]
    if dead:
        size = measure_limits(rules, rules.living, p, rules.now, index(0))
        for i in range(size):
            rules.was[FIXED + i] = max(rules.was[FIXED + i], rules.now[i])


@inline_only
def touch(rules: ClusterRules, ranges: Ranges, p: int) -> int:
    """List the nodes of a range before and after, each once; return how many. O(W squared)."""
    many = index(0)
    for k in range(ranges.first[p], ranges.first[p + 1]):
        for turn in range(2):
            n = index(ranges.store[k] if turn == 0 else rules.accepted.store[k])
            known = n < 0
            for i in range(many):
                known = known or rules.touched[i] == n
            if not known:
                rules.touched[many] = n
                many += 1
    return many


@inline_only
def all_may_stand(rules: ClusterRules, ranges: Ranges, p: int) -> bool:
    """Whether replicas that come to a node, or come to vote, may stand there. O(W terms)."""
    terms = rules.problem.rules
    q = rules.problem.partitions.rule[p]
    for k in range(ranges.first[p], ranges.first[p + 1]):
        s = index(ranges.store[k])
        if s < 0:
            continue
        comes, votes = True, ranges.role[k] != NON_VOTER
        for j in range(ranges.first[p], ranges.first[p + 1]):
            if rules.accepted.store[j] == s:
                comes = False
                votes = votes and rules.accepted.role[j] == NON_VOTER
        if comes and not may_stand(rules.problem, p, s):
            return False
        for i in range(terms.term_first[q], terms.term_first[q + 1]):
            if votes and terms.term[i, 0] < 0 and not terms.term_mask[terms.term[i, 2], s]:
                return False
    return True


@device_function
def follow(
    rules: ClusterRules, p: int, store: Ints, role: NDArray[np.uint8], lease: NDArray[np.int16]
) -> None:
    """Bring the state of a range to a row of ``store``, ``role (K,)`` and ``lease (P,)``. O(W)."""
    problem, state = rules.problem, rules.state
    first = problem.partitions.first
    transfer_leader(problem, state, p, index(-1))
    for turn in range(2):
        for k in range(first[p], first[p + 1]):
            n = index(store[k])
            if turn == 0 and (state.node[k] != n or state.role[k] != role[k]):
                if state.node[k] >= 0:
                    move(problem, state, index(k), index(-1))
                state.role[k] = role[k]
            elif turn == 1 and state.node[k] != n:
                move(problem, state, index(k), n)
    transfer_leader(problem, state, p, index(lease[p]))


@device_function
def measure(
    rules: ClusterRules, store: Ints, lease: NDArray[np.int16], p: int, many: int, out: Floats
) -> int:
    """Write to ``out (M,)`` what is broken of a range, its group and ``many`` nodes touched first.

    ``store (K,)`` and ``lease (P,)`` are the row that the state has followed. Returns how much was
    written; what may be rounding stands in ``rules.drift``.
    """
    measure_life(rules, store, lease, p, out)
    size = measure_limits(rules, store, p, out, index(FIXED))
    size = measure_group(rules, p, out, size)
    for i in range(size):
        rules.drift[i] = 0.0
    return measure_nodes(rules, many, out, size)


@inline_only
def measure_life(
    rules: ClusterRules, store: Ints, lease: NDArray[np.int16], p: int, out: Floats
) -> None:
    """Measure live replicas, leader and pins into ``out (M,)``. O(W squared).

    ``store (K,)`` and ``lease (P,)`` are the row that the state has followed.
    """
    partitions, state = rules.problem.partitions, rules.state
    vote, listen, gone = 0, 0, 0
    for k in range(partitions.first[p], partitions.first[p + 1]):
        if store[k] >= 0 and rules.serves[store[k]]:
            vote += state.role[k] != NON_VOTER
            listen += state.role[k] == NON_VOTER
        if not partitions.movable[k]:
            there = False
            for j in range(partitions.first[p], partitions.first[p + 1]):
                there = there or store[j] == partitions.home[k]
            gone += not there
    led, unfit = rules.wanted[p] == 0, False
    if not led and lease[p] >= 0:
        k = partitions.first[p] + lease[p]
        n = store[k]
        led = n >= 0 and rules.serves[n]
        unfit = led and not (rules.problem.nodes.leads[n] and state.role[k] == VOTER)
    # who votes beyond what is wanted goes first where others that do not vote are to come
    out[0] = max(0, rules.wanted[p] - listen - min(vote, rules.voters[p]))
    out[1] = 0.0 if led else 1.0
    out[2] = 1.0 if unfit else 0.0
    out[3] = gone


@inline_only
def measure_limits(rules: ClusterRules, node: Ints, p: int, out: Floats, at: int) -> int:
    """Measure the limits of a range on ``node (K,)`` into ``out (M,)``. O(limits W squared)."""
    limits, no_replica = rules.problem.rules, index(-1)
    q = rules.problem.partitions.rule[p]
    for i in range(limits.limit_first[q], limits.limit_first[q + 1]):
        for column in range(MOST, SKEW + 1):
            out[at] = beyond_limit(rules.problem, node, p, index(i), column, no_replica, no_replica)
            at += 1
    return at


@inline_only
def measure_group(rules: ClusterRules, p: int, out: Floats, at: int) -> int:
    """Measure what a range's group shares into ``out (M,)``. O(limits domains), and tied groups."""
    problem, state = rules.problem, rules.state
    tables, offset = problem.rules, problem.domains.domain_offset
    g = index(problem.partitions.group[p])
    for i in range(tables.group_limit_first[g], tables.group_limit_first[g + 1]):
        limit, base = tables.group_limit[i], tables.group_base[i]
        beyond = 0
        for where in range(offset[limit[0] + 1] - offset[limit[0]]):
            if limit[1] >= 0:
                beyond += max(0, state.group_count[base + where] - limit[1])
        out[at] = beyond
        for column in range(FEWEST, SKEW + 1):
            out[at + column - MOST] = beyond_group_limit(
                problem, state, index(i), column, index(-1), index(-1)
            )
        at += 4
    for i in range(tables.group_term_first[g], tables.group_term_first[g + 1]):
        out[at] = max(0, tables.group_term[i, 0] - state.group_inside[i])
        at += 1
    out[at] = lonely(rules, g)
    for i in range(tables.needed_first[g], tables.needed_first[g + 1]):
        out[at] += lonely(rules, index(tables.needed[i, 0]))
    return at + 1


@device_function
def lonely(rules: ClusterRules, g: int) -> int:
    """Count the domains in which a group lacks another one that it needs there."""
    tables, state = rules.problem.rules, rules.state
    offset = rules.problem.domains.domain_offset
    found = 0
    for level in range(tables.near_base.shape[1]):
        base = tables.near_base[g, level]
        if base >= 0:
            for at in range(base, base + offset[level + 1] - offset[level]):
                found += state.near_count[at] > 0 and state.near_absent[at] > 0
    return found


@inline_only
def measure_nodes(rules: ClusterRules, many: int, out: Floats, at: int) -> int:
    """Measure into ``out (M,)`` what nodes, and domains, carry too much. O(nodes D tiers idle)."""
    nodes, domains, state = rules.problem.nodes, rules.problem.domains, rules.state
    dimensions = nodes.capacity.shape[0]
    for i in range(many):
        n = rules.touched[i]
        counts = rules.carries[n]
        out[at] = max(0, state.replicas[n] - nodes.max_replicas[n]) if counts else 0
        rules.drift[at] = 0.0
        at += 1
        for d in range(dimensions):
            load, capacity = state.load[d, n], nodes.capacity[d, n]
            if not load > capacity:
                load += state.held[d, n]
            at = excess(rules, load if counts else 0.0, capacity, out, at)
        for t in range(domains.limited.shape[0]):
            where = index(domains.domain[domains.limited[t], n])
            for d in range(dimensions):
                shared = state.domain_load[d, where] if where >= 0 else 0.0
                for other in rules.idle:
                    if where >= 0 and domains.domain[domains.limited[t], other] == where:
                        shared -= state.load[d, other]
                most = domains.tier_capacity[d, where] if where >= 0 else np.inf
                at = excess(rules, shared, most, out, at)
    return at


@inline_only
def excess(rules: ClusterRules, load: float, capacity: float, out: Floats, at: int) -> int:
    """Write to ``out (M,)`` what of a load is beyond a capacity."""
    over = load > capacity + ROUNDING * capacity
    out[at] = load - capacity if over else 0.0
    rules.drift[at] = ROUNDING * load if over else 0.0
    return at + 1


@inline_only
def accept(rules: ClusterRules, ranges: Ranges, p: int) -> None:
    """Note a range as it is. O(W)."""
    accepted = rules.accepted
    accepted.lease[p] = ranges.lease[p]
    for k in range(ranges.first[p], ranges.first[p + 1]):
        accepted.store[k] = ranges.store[k]
        serves = ranges.store[k] >= 0 and rules.serves[ranges.store[k]]
        rules.living[k] = ranges.store[k] if serves else -1
        accepted.role[k] = ranges.role[k]
        accepted.up_to_date[k] = ranges.up_to_date[k]
        accepted.behind[k] = ranges.behind[k]


@inline_only
def restore(accepted: Rows, ranges: Ranges, stores: Stores, p: int) -> None:
    """Put a range back as it was accepted, and book it. O(W A)."""
    for turn in range(2):
        row, lease = (ranges.store, ranges.lease) if turn == 0 else (accepted.store, accepted.lease)
        sign = -1.0 if turn == 0 else 1.0
        for k in range(ranges.first[p], ranges.first[p + 1]):
            if row[k] >= 0:
                book(stores, ranges.replica_load, p, index(row[k]), sign)
        if lease[p] >= 0:
            book(stores, ranges.lease_load, p, index(row[ranges.first[p] + lease[p]]), sign)
    ranges.lease[p] = accepted.lease[p]
    for k in range(ranges.first[p], ranges.first[p + 1]):
        ranges.store[k] = accepted.store[k]
        ranges.role[k] = accepted.role[k]
        ranges.up_to_date[k] = accepted.up_to_date[k]
        ranges.behind[k] = accepted.behind[k]
